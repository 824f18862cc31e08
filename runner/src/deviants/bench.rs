//! One deviant at a time against the scenarios that are to catch it and some that it must leave alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use stc_client::DeviantInfo;
use stc_reports::{ScenarioResult, Verdict};

use crate::catalogue::Catalogue;
use crate::client::reference::ReferenceFactory;
use crate::feature::Scenario;
use crate::run::{self, Environment, Judged, RunConfig, Trace};
use crate::suite::Suite;
use crate::target::TargetConfig;

/// Scenarios of several checklist items, one of each, that a deviation of another item leaves alone.
const UNRELATED: [&str; 8] = [
    "C1-producer-watches",
    "C2-keyless-round-robin",
    "C4-drops-producer",
    "C8-receive",
    "C12-producer-not-found",
    "C14-close-twice",
    "C15-producer",
    "message-bare",
];

/// Deviations that reach beyond their own item, with the scenarios that must still pass and the reason.
const FAR_REACHING: [(&str, &[&str], &str); 8] = [
    (
        "fails-beside-another",
        &["C1-producer-watches", "C2-keyless-round-robin", "C12-producer-not-found", "C15-producer"],
        "a consumer of several segments needs connections at the same time",
    ),
    (
        "create-not-ready",
        &["C12-producer-not-found", "C15-producer"],
        "the first send of every producer fails",
    ),
    (
        "no-payload",
        &["C1-producer-watches", "C2-keyless-round-robin", "C4-drops-producer", "C12-producer-not-found"],
        "steps tell received messages by their payloads",
    ),
    (
        "one-session-id",
        &[
            "C2-keyless-round-robin",
            "C4-drops-producer",
            "C12-producer-not-found",
            "C14-close-twice",
            "C15-producer",
        ],
        "a second watch on a connection ends it, so nothing with two watches passes",
    ),
    (
        "ignore-watch-error",
        &["C2-keyless-round-robin", "C4-drops-producer", "C8-receive", "C14-close-twice", "C15-producer"],
        "an absent topic is told by such an error, so C12 cannot pass",
    ),
    (
        "decimal-descriptor",
        &["C12-producer-not-found", "C15-producer"],
        "no segment is attached to, so only what needs none passes",
    ),
    (
        "ignore-segment-broker",
        &["C12-producer-not-found", "C15-producer"],
        "a segment on another broker is not attached to, so only what needs none passes",
    ),
    (
        "needs-buckets",
        &[
            "C1-producer-watches",
            "C4-drops-producer",
            "C12-producer-not-found",
            "C14-close-twice",
            "C15-producer",
            "message-bare",
        ],
        "topics of several segments have one bucket each, so their layouts carry none",
    ),
];

/// What became of one deviant.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Caught, at least once, and it harmed nothing else.
    Caught(Vec<Catch>),
    /// Everything that it breaks waits for a scenario, and the catalogue says why.
    Waits(String),
    /// No scenario cites anything that it breaks.
    NoScenario,
    /// Its scenarios did not catch it; what they found instead.
    Survived(Vec<String>),
    /// Caught, but an unrelated scenario did not pass.
    Harmful(String),
}

/// A requirement whose breach a scenario noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Catch {
    pub(super) requirement: String,
    pub(super) scenario: String,
}

impl Catch {
    pub(super) fn line(&self) -> String {
        format!("caught    {:<12} {}", self.requirement, self.scenario)
    }
}

impl Outcome {
    pub(super) fn is_good(&self) -> bool {
        matches!(self, Outcome::Caught(_) | Outcome::Waits(_))
    }
}

pub(super) struct Bench<'a> {
    pub(super) suite: &'a Suite,
    pub(super) seed: u64,
    pub(super) jobs: usize,
    pub(super) program: &'a str,
}

impl Bench<'_> {
    fn config(&self, deviant: Option<&DeviantInfo>) -> RunConfig {
        let with = deviant.map(|d| format!(" --deviant {}", d.name)).unwrap_or_default();
        RunConfig {
            environment: Arc::new(Environment::new(
                TargetConfig::Memory,
                "spec-1.0",
                Arc::new(ReferenceFactory { deviant: deviant.map(|d| d.deviant) }),
            )),
            seed: self.seed,
            jobs: self.jobs,
            trace: Trace::Failed,
            replay: format!("{} --target memory --seed {}{with}", self.program, self.seed),
        }
    }

    /// Scenarios of these deviants that the unbroken client does not pass.
    pub(super) fn baseline(&self, chosen: &[&DeviantInfo]) -> Vec<ScenarioResult> {
        let involved: BTreeSet<&str> = chosen
            .iter()
            .flat_map(|info| self.aimed_at(info).into_iter().chain(self.unrelated(info)))
            .map(|s| s.id.as_str())
            .collect();
        let scenarios: Vec<&Scenario> =
            self.suite.scenarios.iter().filter(|s| involved.contains(s.id.as_str())).collect();
        let results = run::run(&scenarios, &self.config(None));
        results.into_iter().filter(|r| r.verdict != Verdict::Pass).collect()
    }

    /// What becomes of a deviant, and the scenarios aimed at it that failed.
    pub(super) fn run(&self, info: &DeviantInfo) -> (Outcome, BTreeSet<String>) {
        let config = self.config(Some(info));
        let judged = run::run_judged(&self.aimed_at(info), &config);
        let failed = failed(judged.iter().map(|j| &j.result));
        (self.outcome(info, &judged, &config), failed)
    }

    /// Those of these scenarios that pass whatever deviant the client is.
    pub(super) fn never_fail(&self, left: BTreeSet<&str>, deviants: &[&DeviantInfo]) -> Vec<String> {
        let mut left: Vec<&Scenario> =
            self.suite.scenarios.iter().filter(|s| left.contains(s.id.as_str())).collect();
        for info in deviants {
            if left.is_empty() {
                break;
            }
            let results = run::run(&left, &self.config(Some(info)));
            let failed = failed(results.iter());
            left.retain(|scenario| !failed.contains(&scenario.id));
        }
        left.into_iter().map(|scenario| scenario.id.clone()).collect()
    }

    fn outcome(&self, info: &DeviantInfo, judged: &[Judged], config: &RunConfig) -> Outcome {
        let broken = broken_by(&self.suite.catalogue, info);
        if judged.is_empty() {
            let reason =
                |id: &String| self.suite.catalogue.get(id).and_then(|e| self.suite.catalogue.reason(e));
            let reasons: Option<Vec<String>> = broken.iter().map(reason).collect();
            return match reasons.and_then(|r| r.into_iter().next()) {
                Some(reason) => Outcome::Waits(reason),
                None => Outcome::NoScenario,
            };
        }
        let caught: Vec<Catch> = judged.iter().flat_map(|j| catches(j, &broken)).collect();
        if caught.is_empty() {
            let describe = |r: &ScenarioResult| format!("{}: {} {}", r.id, r.verdict, message(r));
            return Outcome::Survived(judged.iter().map(|j| describe(&j.result)).collect());
        }
        let harmed = run::run(&self.unrelated(info), config).into_iter().find(|r| r.verdict != Verdict::Pass);
        match harmed {
            Some(r) => Outcome::Harmful(format!("{}: {} {}", r.id, r.verdict, message(&r))),
            None => Outcome::Caught(caught),
        }
    }

    /// Scenarios that cite something the deviant breaks.
    fn aimed_at(&self, info: &DeviantInfo) -> Vec<&Scenario> {
        let broken = broken_by(&self.suite.catalogue, info);
        self.suite.scenarios.iter().filter(|s| s.requirements.iter().any(|r| broken.contains(r))).collect()
    }

    /// Scenarios that the deviant must leave alone.
    fn unrelated(&self, info: &DeviantInfo) -> Vec<&Scenario> {
        let far_reaching = FAR_REACHING.iter().find(|(name, _, _)| *name == info.name);
        let broken = broken_by(&self.suite.catalogue, info);
        let items: BTreeSet<&str> =
            broken.iter().filter_map(|id| Some(self.suite.catalogue.get(id)?.checklist.as_str())).collect();
        let is_unrelated = |s: &&Scenario| match far_reaching {
            Some((_, still_pass, _)) => still_pass.contains(&s.id.as_str()),
            None => {
                UNRELATED.contains(&s.id.as_str())
                    && !s.checklist.iter().any(|item| items.contains(item.as_str()))
            }
        };
        self.suite.scenarios.iter().filter(is_unrelated).collect()
    }
}

/// The ids of the scenarios that failed.
fn failed<'a>(results: impl Iterator<Item = &'a ScenarioResult>) -> BTreeSet<String> {
    results.filter(|r| r.verdict == Verdict::Fail).map(|r| r.id.clone()).collect()
}

/// The ids that scenarios cite for what a deviant breaks: an entry that repeats another stands for that one.
fn broken_by(catalogue: &Catalogue, info: &DeviantInfo) -> BTreeSet<String> {
    let cited = |id: &&str| {
        let entry = catalogue.get(id);
        entry.and_then(|e| e.same_as()).unwrap_or(id).to_owned()
    };
    info.requirements.iter().map(cited).collect()
}

/// The requirements at which this result catches a deviant that breaks `broken`: the step that failed asserts them,
/// the scenario cites them.
fn catches(judged: &Judged, broken: &BTreeSet<String>) -> Vec<Catch> {
    let Judged { result, asserted } = judged;
    let fair = |id: &&String| {
        result.verdict == Verdict::Fail && broken.contains(*id) && result.requirements.contains(id)
    };
    let catch = |id: &String| Catch { requirement: id.clone(), scenario: result.id.clone() };
    asserted.iter().filter(fair).map(catch).collect()
}

pub(super) fn message(result: &ScenarioResult) -> String {
    let failure = result.failure.as_ref().map(|f| match &f.requirement {
        Some(requirement) => format!("{requirement}: {}", f.message),
        None => f.message.clone(),
    });
    failure.or_else(|| result.reason.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stc_client::Deviant;

    use super::*;

    #[test]
    fn a_scenario_that_every_deviant_passes_is_named() {
        let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
        let bench = Bench { suite: &suite, seed: 1, jobs: 1, program: "stc run" };
        let silent = Deviant::all().iter().find(|info| info.name == "no-pong").unwrap();
        let passed = bench.never_fail(BTreeSet::from(["C14-keep-alive", "C15-producer"]), &[silent]);
        assert_eq!(passed, ["C15-producer"]);
    }
}
