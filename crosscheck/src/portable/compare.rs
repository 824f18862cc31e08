//! Two runs of the same scenarios, verdict by verdict.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use stc_reports::{Report, ScenarioResult, Verdict};

/// A difference that somebody explained.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Explained {
    /// `reference` or `java-v5`; none for both.
    client: Option<String>,
    /// Id of the scenario.
    pub(super) scenario: String,
    /// Why the verdicts differ, with the evidence.
    pub(super) reason: String,
    /// Whether they only differ in some runs.
    #[serde(default)]
    pub(super) by_chance: bool,
}

impl Explained {
    /// Whether it is about this client.
    pub(super) fn is_of(&self, client: &str) -> bool {
        self.client.as_deref().is_none_or(|own| own == client)
    }
}

/// Reads the list of explained differences.
pub(super) fn explained(path: &Path) -> anyhow::Result<Vec<Explained>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

/// One scenario with different verdicts.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    pub(super) scenario: String,
    pub(super) simulator: String,
    pub(super) real: String,
}

/// How the verdicts of one client compare.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Scenarios that ended alike, by how.
    pub(super) alike: BTreeMap<&'static str, usize>,
    pub(super) differ: Vec<Difference>,
}

impl Comparison {
    /// How many scenarios ended alike.
    pub(super) fn agreed(&self) -> usize {
        self.alike.values().sum()
    }

    /// Compares what both reports have.
    pub(super) fn of(simulator: &Report, real: &Report) -> Comparison {
        let mut comparison = Comparison::default();
        let there: BTreeMap<&str, &ScenarioResult> =
            real.scenarios.iter().map(|scenario| (scenario.id.as_str(), scenario)).collect();
        for here in &simulator.scenarios {
            let Some(there) = there.get(here.id.as_str()) else { continue };
            // One that could not be judged says nothing about how alike the two are.
            let judged = matches!(here.verdict, Verdict::Pass | Verdict::Fail | Verdict::Unsupported);
            if judged && here.verdict == there.verdict {
                *comparison.alike.entry(here.verdict.as_str()).or_default() += 1;
            } else {
                comparison.differ.push(Difference {
                    scenario: here.id.clone(),
                    simulator: told(here),
                    real: told(there),
                });
            }
        }
        comparison
    }
}

/// A verdict and what it rests on.
fn told(result: &ScenarioResult) -> String {
    let why = result.failure.as_ref().map(|failure| failure.message.as_str()).or(result.reason.as_deref());
    match why {
        Some(why) => format!("{}: {}", result.verdict.as_str(), why.lines().next().unwrap_or_default()),
        None => result.verdict.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(verdicts: &[(&str, &str)]) -> Report {
        let scenario = |(id, verdict): &(&str, &str)| {
            serde_json::json!({
                "id": id, "name": "", "feature": "", "line": 1, "tags": [], "checklist": [], "requirements": [],
                "verdict": verdict, "duration_ms": 0, "steps": [], "transcript": [], "stderr_tail": [], "replay": "",
            })
        };
        let scenarios: Vec<_> = verdicts.iter().map(scenario).collect();
        serde_json::from_value(serde_json::json!({
            "tool": { "name": "stc", "version": "0" },
            "suite": { "version": "0", "specification": "" },
            "started_at": "", "seed": 1, "profile": PROFILE, "target": { "kind": "tcp" },
            "client": { "name": "", "version": "" }, "duration_ms": 0, "filtered": false, "command": "",
            "checklist": [], "requirements": [], "scenarios": scenarios, "left_out": [], "stale_known_failures": [],
        }))
        .unwrap()
    }

    const PROFILE: &str = "pulsar-5.0.1";

    #[test]
    fn equal_verdicts_agree_unless_nothing_was_judged() {
        let simulator =
            report(&[("a", "pass"), ("b", "fail"), ("c", "pass"), ("d", "could_not_run"), ("e", "pass")]);
        let real = report(&[("a", "pass"), ("b", "fail"), ("c", "fail"), ("d", "could_not_run")]);
        let comparison = Comparison::of(&simulator, &real);
        assert_eq!(comparison.agreed(), 2);
        let differ: Vec<&str> = comparison.differ.iter().map(|d| d.scenario.as_str()).collect();
        assert_eq!(differ, ["c", "d"]);
    }
}
