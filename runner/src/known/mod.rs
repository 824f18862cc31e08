//! The list of known failures: what a client is known to fail, and why. It excuses exactly what it describes; an entry
//! that the run contradicts makes the list stale, and a stale list fails the run.
//!
//! Some failures come by chance: a race inside the client that nothing on the wire decides. An entry says so with
//! `by-chance: true`. Its scenario is a known failure whether it failed or passed, so that the verdicts of two runs do not
//! differ; what came of it stands beside the verdict.

mod rewrite;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use stc_reports::{Chance, Report, ScenarioResult, StaleKnownFailure, Verdict};
use thiserror::Error;

/// Why a list cannot be used.
#[derive(Debug, Error)]
pub enum KnownError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what such a list looks like.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        message: String,
    },
    /// Two entries for one scenario.
    #[error("{path}: scenario {scenario} is listed twice")]
    Twice {
        /// The file.
        path: PathBuf,
        /// The scenario.
        scenario: String,
    },
    /// Entries that nobody explained.
    #[error("{path}: no reason is given for {}; write down why the client fails it", scenarios.join(", "))]
    Unexplained {
        /// The file.
        path: PathBuf,
        /// The scenarios.
        scenarios: Vec<String>,
    },
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Id of the scenario.
    pub scenario: String,
    /// Why the client fails it, or does not offer what it asks for: the section of the specification and what the client does instead.
    #[serde(default)]
    pub reason: String,
    /// How the message of the failure begins.
    pub message: String,
    /// Whether the failure comes by chance: the scenario may pass just as well.
    #[serde(default, rename = "by-chance")]
    pub by_chance: bool,
}

impl Entry {
    /// Whether nobody has written down why the client fails. Such an entry excuses nothing.
    pub fn waits_for_a_reason(&self) -> bool {
        self.reason.trim().is_empty()
    }
}

/// The list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownFailures {
    /// Its entries, in the order of the file.
    pub entries: Vec<Entry>,
}

impl KnownFailures {
    /// Reads a list whose entries all have a reason.
    ///
    /// # Errors
    /// [`KnownError`].
    pub fn load(path: &Path) -> Result<KnownFailures, KnownError> {
        let list = KnownFailures::load_unexplained(path)?;
        let waiting = list.entries.iter().filter(|e| e.waits_for_a_reason());
        let scenarios: Vec<String> = waiting.map(|e| e.scenario.clone()).collect();
        if scenarios.is_empty() {
            Ok(list)
        } else {
            Err(KnownError::Unexplained { path: path.to_owned(), scenarios })
        }
    }

    /// Reads a list that is to be rewritten: reasons may be missing.
    ///
    /// # Errors
    /// [`KnownError`].
    pub fn load_unexplained(path: &Path) -> Result<KnownFailures, KnownError> {
        let text =
            fs::read_to_string(path).map_err(|source| KnownError::File { path: path.to_owned(), source })?;
        // An empty file is an empty list.
        let entries: Option<Vec<Entry>> = serde_saphyr::from_str(&text)
            .map_err(|e| KnownError::Parse { path: path.to_owned(), message: e.to_string() })?;
        let entries = entries.unwrap_or_default();
        let mut seen = std::collections::BTreeSet::new();
        for entry in &entries {
            if !seen.insert(entry.scenario.as_str()) {
                return Err(KnownError::Twice { path: path.to_owned(), scenario: entry.scenario.clone() });
            }
        }
        Ok(KnownFailures { entries })
    }

    /// Turns the failures that the list describes into known ones, and notes the entries that the report contradicts.
    /// An entry of a scenario that was not selected is not contradicted, if `exists` says that there is such a scenario.
    pub fn apply(&self, report: &mut Report, exists: impl Fn(&str) -> bool) {
        for entry in &self.entries {
            let left_out = report.left_out.iter().any(|l| l.scenario == entry.scenario);
            let result = report.scenarios.iter_mut().find(|s| s.id == entry.scenario);
            let problem = match result {
                Some(result) => judge(entry, result),
                None if left_out => Some("it was left out: the target cannot run it".to_owned()),
                None if exists(&entry.scenario) => None,
                None => Some("there is no such scenario".to_owned()),
            };
            report.stale_known_failures.extend(
                problem.map(|problem| StaleKnownFailure { scenario: entry.scenario.clone(), problem }),
            );
        }
    }

    /// The list that this report, to which no list was applied yet, would not contradict. Entries stay where they are,
    /// with their reasons, new ones follow; a new entry has no reason, so that somebody has to write it, and is stale until
    /// then.
    #[must_use]
    pub fn fixed(&self, report: &Report) -> KnownFailures {
        let known: BTreeMap<&str, &Entry> = self.entries.iter().map(|e| (e.scenario.as_str(), e)).collect();
        let mut fixed: BTreeMap<&str, Entry> = report
            .scenarios
            .iter()
            .filter_map(|result| {
                Some((result.id.as_str(), fitting(report, result, known.get(result.id.as_str()))?))
            })
            .collect();
        let kept: Vec<Entry> =
            self.entries.iter().filter_map(|e| fixed.remove(e.scenario.as_str())).collect();
        let new = report.scenarios.iter().filter_map(|result| fixed.remove(result.id.as_str()));
        KnownFailures { entries: kept.into_iter().chain(new).collect() }
    }

    /// The list as YAML.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        if self.entries.is_empty() {
            return "[]\n".to_owned();
        }
        self.entries.iter().map(rewrite::yaml).collect()
    }

    /// Writes the list. Where the file holds one already, comments and the form of entries that did not change are kept;
    /// only a file that is not one entry below the other is written anew. Whether comments got lost by that.
    ///
    /// # Errors
    /// [`KnownError::File`].
    pub fn save(&self, path: &Path) -> Result<bool, KnownError> {
        let old = fs::read_to_string(path).unwrap_or_default();
        let edited = rewrite::rewritten(&old, &self.entries);
        let lost = edited.is_none() && old.contains('#');
        let text = edited.unwrap_or_else(|| self.to_yaml());
        fs::write(path, text).map_err(|source| KnownError::File { path: path.to_owned(), source })?;
        Ok(lost)
    }
}

/// The entry that a result needs, made from the one that there is.
fn fitting(report: &Report, result: &ScenarioResult, old: Option<&&Entry>) -> Option<Entry> {
    let chance = old.filter(|old| old.by_chance && result.verdict == Verdict::Pass);
    if let Some(old) = chance {
        return Some((**old).clone());
    }
    let counts = result.verdict == Verdict::Fail || report.counts_against(result);
    let failure = failure(result).filter(|_| counts)?;
    Some(match old {
        Some(old) if begins(&failure, &old.message) => (**old).clone(),
        _ => Entry {
            scenario: result.id.clone(),
            reason: old.map(|e| e.reason.clone()).unwrap_or_default(),
            message: first_line(&failure),
            by_chance: old.is_some_and(|e| e.by_chance),
        },
    })
}

/// The message of a result that failed; of one that was not offered, what is missing.
fn failure(result: &ScenarioResult) -> Option<String> {
    match result.verdict {
        Verdict::Fail => result.failure.as_ref().map(|f| f.message.clone()),
        Verdict::Unsupported => result.reason.clone(),
        _ => None,
    }
}

/// Numbers that differ from run to run are not in the first line of a message, but what follows may have them.
fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

fn begins(message: &str, prefix: &str) -> bool {
    message.starts_with(prefix)
}

/// Applies an entry to its scenario. What is wrong with the entry.
fn judge(entry: &Entry, result: &mut ScenarioResult) -> Option<String> {
    if entry.waits_for_a_reason() {
        return Some("its entry waits for a reason".to_owned());
    }
    match result.verdict {
        Verdict::Fail | Verdict::Unsupported => {
            let message = failure(result).unwrap_or_default();
            if begins(&message, &entry.message) {
                excuse(entry, result, Chance::Failed);
                return None;
            }
            Some(format!("it fails differently: {}", first_line(&message)))
        }
        Verdict::Pass if entry.by_chance => {
            excuse(entry, result, Chance::Passed);
            None
        }
        Verdict::Pass => Some("it passes".to_owned()),
        other => Some(format!("it was not judged: {other}")),
    }
}

fn excuse(entry: &Entry, result: &mut ScenarioResult, came: Chance) {
    result.verdict = Verdict::KnownFailure;
    result.reason = Some(entry.reason.clone());
    result.by_chance = entry.by_chance.then_some(came);
}
