//! Feature files as a flat list of scenarios, outlines expanded, ids and tags checked.
//!
//! Tags of a scenario, its own and its feature's:
//! `@id:C2-keyed-high-half` its permanent id; `@C2` a checklist item or capability; `@IMPL-2.1` a requirement;
//! `@needs-…` what the target must offer ([`Need`]). A row of an outline adds `/` and the value of its column `case`
//! (its number from 1 where there is no such column) to the id.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cucumber::feature::Ext as _;
use cucumber::gherkin::{self, GherkinEnv};
use thiserror::Error;

use crate::catalogue::{Catalogue, checklist};

/// Why the feature files cannot be used. All but reading is a mistake in a file, told with its place.
#[derive(Debug, Error)]
pub enum FeatureError {
    /// A file or folder cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the file system says.
        source: std::io::Error,
    },
    /// Something in a file is wrong.
    #[error("{feature}:{line}: {message}")]
    Mistake {
        /// The file, relative to the folder of the features.
        feature: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

/// What a scenario needs that not every target offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Need {
    /// Raw pushes, brokers that die, a cluster set up in a special way: the control API of the simulated cluster. What
    /// is stored needs no control: [`crate::stored`] reads it anywhere.
    Control,
    /// Frames that are lost, held, late or answered with an error, and connections that break. A proxy does that too.
    Faults,
    /// The wire journal.
    Journal,
    /// Virtual time: the scenario lets minutes pass, or shows that something never happens.
    VirtualTime,
}

impl Need {
    /// The tag, without `@`.
    pub fn tag(self) -> &'static str {
        match self {
            Need::Control => "needs-control",
            Need::Faults => "needs-faults",
            Need::Journal => "needs-journal",
            Need::VirtualTime => "needs-virtual-time",
        }
    }

    /// All of them.
    pub const ALL: [Need; 4] = [Need::Control, Need::Faults, Need::Journal, Need::VirtualTime];
}

/// One scenario, ready to run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Permanent id, unique; `outline/case` for a row of an outline.
    pub id: String,
    /// Title.
    pub name: String,
    /// Feature file, relative to the folder of the features.
    pub feature: String,
    /// Line in the file, from 1; of a row of an outline the row's.
    pub line: usize,
    /// All tags without `@`, the feature's first.
    pub tags: Vec<String>,
    /// Checklist items and capabilities among the tags.
    pub checklist: Vec<String>,
    /// Requirement ids among the tags.
    pub requirements: Vec<String>,
    /// What the target must offer.
    pub needs: Vec<Need>,
    /// The steps, background first.
    pub steps: Vec<gherkin::Step>,
}

impl Scenario {
    /// Whether the name on a command line means this scenario: its id, or its outline's.
    pub fn is_called(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    /// What it is called on a command line: its id, and that of its outline.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let outline = self.id.split_once('/').map(|(outline, _)| outline);
        [self.id.as_str()].into_iter().chain(outline)
    }
}

/// Reads all `*.feature` files under `dir`, in the order of their paths.
///
/// # Errors
/// [`FeatureError`]: the first mistake found.
pub fn load(dir: &Path) -> Result<Vec<Scenario>, FeatureError> {
    let mut files = Vec::new();
    collect(dir, &mut files)?;
    files.sort();
    let mut texts = Vec::new();
    for path in files {
        let text =
            fs::read_to_string(&path).map_err(|source| FeatureError::Read { path: path.clone(), source })?;
        let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
        texts.push((name, text));
    }
    parse_all(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// Reads the texts of several feature files, each with its name.
///
/// # Errors
/// [`FeatureError::Mistake`]: the first one found.
pub fn parse_all<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Scenario>, FeatureError> {
    let mut scenarios = Vec::new();
    for (name, text) in files {
        scenarios.extend(parse(name, text)?);
    }
    unique(&scenarios)?;
    Ok(scenarios)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), FeatureError> {
    let read = |source| FeatureError::Read { path: dir.to_owned(), source };
    for entry in fs::read_dir(dir).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "feature") {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads one feature file's text.
///
/// # Errors
/// [`FeatureError::Mistake`].
pub fn parse(file: &str, text: &str) -> Result<Vec<Scenario>, FeatureError> {
    let mistake =
        |line: usize, message: String| FeatureError::Mistake { feature: file.to_owned(), line, message };
    let feature = gherkin::Feature::parse(text, GherkinEnv::default())
        .map_err(|e| mistake(1, e.to_string()))?
        .expand_examples()
        .map_err(|e| mistake(e.pos.line, e.to_string()))?;
    let background = feature.background.iter().flat_map(|b| &b.steps);
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    let mut scenarios = Vec::new();
    if let Some(rule) = feature.rules.first() {
        return Err(mistake(rule.position.line, "the suite uses no Rule blocks".to_owned()));
    }
    for parsed in &feature.scenarios {
        let line = parsed.position.line;
        let mut tags: Vec<String> = Vec::new();
        for tag in feature.tags.iter().chain(&parsed.tags) {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        let mut ids = tags.iter().filter_map(|t| t.strip_prefix("id:"));
        let id = match (ids.next(), ids.next()) {
            (Some(id), None) if !id.is_empty() && !id.contains('/') => id.to_owned(),
            (Some(_), None) => return Err(mistake(line, "an id is not empty and has no '/'".to_owned())),
            (None, _) => return Err(mistake(line, "a scenario without an @id: tag".to_owned())),
            (Some(_), Some(_)) => return Err(mistake(line, "a scenario with two @id: tags".to_owned())),
        };
        let id = match case(parsed) {
            None if parsed.examples.is_empty() => id,
            Some(case) => format!("{id}/{case}"),
            None => {
                let row = rows.entry(id.clone()).or_insert(0);
                *row += 1;
                format!("{id}/{row}")
            }
        };
        scenarios.push(Scenario {
            id,
            name: parsed.name.clone(),
            feature: file.to_owned(),
            line,
            checklist: classify(&tags, |t| checklist().iter().any(|item| item.id == t)),
            requirements: classify(&tags, Catalogue::looks_like_id),
            needs: Need::ALL.into_iter().filter(|n| tags.iter().any(|t| t == n.tag())).collect(),
            steps: background.clone().chain(&parsed.steps).cloned().collect(),
            tags: check_tags(tags).map_err(|message| mistake(line, message))?,
        });
    }
    Ok(scenarios)
}

/// The value of the column `case` of the row that an outline was expanded with.
fn case(scenario: &gherkin::Scenario) -> Option<String> {
    let rows = &scenario.examples.first()?.table.as_ref()?.rows;
    let column = rows.first()?.iter().position(|name| name == "case")?;
    rows.get(1)?.get(column).map(|value| value.trim().replace([' ', '/'], "-"))
}

fn classify(tags: &[String], belongs: impl Fn(&str) -> bool) -> Vec<String> {
    tags.iter().filter(|t| belongs(t)).cloned().collect()
}

/// A misspelt tag would silently drop what it stands for, so every tag must be of a known kind.
fn check_tags(tags: Vec<String>) -> Result<Vec<String>, String> {
    for tag in &tags {
        let known = tag.starts_with("id:")
            || Catalogue::looks_like_id(tag)
            || checklist().iter().any(|item| item.id == *tag)
            || Need::ALL.iter().any(|n| n.tag() == tag);
        if !known {
            return Err(format!(
                "@{tag} is no id, no checklist item or capability, no requirement and no known @needs- tag"
            ));
        }
    }
    Ok(tags)
}

fn unique(scenarios: &[Scenario]) -> Result<(), FeatureError> {
    let mut seen: BTreeMap<&str, &Scenario> = BTreeMap::new();
    for scenario in scenarios {
        if let Some(other) = seen.insert(&scenario.id, scenario) {
            return Err(FeatureError::Mistake {
                feature: scenario.feature.clone(),
                line: scenario.line,
                message: format!("id {} is taken by {}:{}", scenario.id, other.feature, other.line),
            });
        }
    }
    Ok(())
}
