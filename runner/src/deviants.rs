//! Tests the suite itself: the reference client with one behaviour broken on purpose must be caught.
//!
//! A deviant is caught when a step that asserts one of the requirements it breaks ends a scenario that cites the
//! requirement with *fail*. A panic, a hang or a fault of the suite does not count. Beside it, scenarios that have
//! nothing to do with the deviation must still pass: a client that is broken altogether would be caught by anything.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use stc_client::{Deviant, DeviantInfo};
use stc_reports::{ExitCode, ScenarioResult, Verdict};

use crate::catalogue::Catalogue;
use crate::cli;
use crate::client::reference::ReferenceFactory;
use crate::feature::Scenario;
use crate::output::{complain, say};
use crate::run::{self, Environment, RunConfig, Trace};
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
const FAR_REACHING: [(&str, &[&str], &str); 4] = [
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
];

/// Runs every deviant of the reference client against the scenarios that are to catch it.
#[derive(Debug, Clone, Args)]
pub struct DeviantsArgs {
    /// Only this deviant; may be given several times
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// List the deviants instead of running them
    #[arg(long)]
    pub list: bool,
    /// How many scenarios run at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Seed of all randomness [default: another one each time]
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Runs as the arguments say and prints the outcome. `program` is how the conformance command is called, for the
/// commands to paste.
pub fn deviants(args: &DeviantsArgs, features: &Path, program: &str) -> ExitCode {
    let (suite, chosen) = match prepare(args, features) {
        Ok(prepared) => prepared,
        Err(message) => {
            complain(format_args!("error: {message}"));
            return ExitCode::Usage;
        }
    };
    if args.list {
        for info in chosen {
            say(format_args!("{:<28} {:<32} {}", info.name, info.requirements.join(" "), info.what));
        }
        return ExitCode::Conforms;
    }
    let started = Instant::now();
    let bench = Bench {
        suite: &suite,
        seed: args.seed.unwrap_or_else(cli::fresh_seed),
        jobs: args.jobs.map_or_else(cli::default_jobs, usize::from),
        program,
    };
    let sound = bench.baseline(&chosen);
    if !sound.is_empty() {
        for result in sound {
            say(format_args!(
                "{}: {} without any deviation: {}",
                result.id,
                result.verdict,
                message(&result)
            ));
        }
        say(format_args!("deviants prove nothing while the reference client itself does not pass"));
        return ExitCode::Harness;
    }
    let outcomes: Vec<(&DeviantInfo, Outcome)> =
        chosen.into_iter().map(|info| (info, bench.run(info))).collect();
    let count = |which: fn(&Outcome) -> bool| outcomes.iter().filter(|(_, o)| which(o)).count();
    let caught = count(|o| matches!(o, Outcome::Caught { .. }));
    let waiting = count(|o| matches!(o, Outcome::Waits(_)));
    let survivors = count(|o| !o.is_good());
    say(table(&outcomes).trim_end());
    say(format_args!(
        "\n{} deviants: {caught} caught, {survivors} not caught, {waiting} wait for their scenarios; {:.1} s, seed {}",
        outcomes.len(),
        started.elapsed().as_secs_f64(),
        bench.seed
    ));
    if survivors == 0 { ExitCode::Conforms } else { ExitCode::DoesNotConform }
}

type Prepared = (Suite, Vec<&'static DeviantInfo>);

fn prepare(args: &DeviantsArgs, features: &Path) -> Result<Prepared, String> {
    let suite = Suite::load(features).map_err(|e| e.to_string())?;
    if let Some(unknown) = args.only.iter().find(|name| Deviant::by_name(name).is_none()) {
        return Err(format!("--only: there is no deviant {unknown:?}; --list names them all"));
    }
    let wanted = |info: &&DeviantInfo| args.only.is_empty() || args.only.iter().any(|n| n == info.name);
    Ok((suite, Deviant::all().iter().filter(wanted).collect()))
}

/// What became of one deviant.
#[derive(Debug)]
enum Outcome {
    /// Caught, by this requirement in this scenario, and it harmed nothing else.
    Caught { requirement: String, scenario: String },
    /// Everything that it breaks waits for a scenario, and the catalogue says why.
    Waits(String),
    /// No scenario cites anything that it breaks.
    NoScenario,
    /// Its scenarios did not catch it; what they found instead.
    Survived(Vec<String>),
    /// Caught, but an unrelated scenario did not pass.
    Harmful(String),
}

impl Outcome {
    fn is_good(&self) -> bool {
        matches!(self, Outcome::Caught { .. } | Outcome::Waits(_))
    }
}

struct Bench<'a> {
    suite: &'a Suite,
    seed: u64,
    jobs: usize,
    program: &'a str,
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
    fn baseline(&self, chosen: &[&DeviantInfo]) -> Vec<ScenarioResult> {
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

    fn run(&self, info: &DeviantInfo) -> Outcome {
        let aimed = self.aimed_at(info);
        let broken = broken_by(&self.suite.catalogue, info);
        if aimed.is_empty() {
            let reason =
                |id: &String| self.suite.catalogue.get(id).and_then(|e| self.suite.catalogue.reason(e));
            let reasons: Option<Vec<String>> = broken.iter().map(reason).collect();
            return match reasons.and_then(|r| r.into_iter().next()) {
                Some(reason) => Outcome::Waits(reason),
                None => Outcome::NoScenario,
            };
        }
        let config = self.config(Some(info));
        let results = run::run(&aimed, &config);
        let caught = results.iter().find_map(|r| Some((catches(r, &broken)?, r.id.clone())));
        let Some((requirement, scenario)) = caught else {
            let describe = |r: &ScenarioResult| format!("{}: {} {}", r.id, r.verdict, message(r));
            return Outcome::Survived(results.iter().map(describe).collect());
        };
        let harmed =
            run::run(&self.unrelated(info), &config).into_iter().find(|r| r.verdict != Verdict::Pass);
        match harmed {
            Some(r) => Outcome::Harmful(format!("{}: {} {}", r.id, r.verdict, message(&r))),
            None => Outcome::Caught { requirement, scenario },
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

/// The ids that scenarios cite for what a deviant breaks: an entry that repeats another stands for that one.
fn broken_by(catalogue: &Catalogue, info: &DeviantInfo) -> BTreeSet<String> {
    let cited = |id: &&str| {
        let entry = catalogue.get(id);
        entry.and_then(|e| e.same_as()).unwrap_or(id).to_owned()
    };
    info.requirements.iter().map(cited).collect()
}

/// The requirement by which this result catches a deviant that breaks `broken`.
fn catches(result: &ScenarioResult, broken: &BTreeSet<String>) -> Option<String> {
    let blamed = result.failure.as_ref()?.requirement.as_ref()?;
    let fair =
        result.verdict == Verdict::Fail && broken.contains(blamed) && result.requirements.contains(blamed);
    fair.then(|| blamed.clone())
}

fn message(result: &ScenarioResult) -> String {
    let failure = result.failure.as_ref().map(|f| match &f.requirement {
        Some(requirement) => format!("{requirement}: {}", f.message),
        None => f.message.clone(),
    });
    failure.or_else(|| result.reason.clone()).unwrap_or_default()
}

fn table(outcomes: &[(&DeviantInfo, Outcome)]) -> String {
    let width = outcomes.iter().map(|(info, _)| info.name.len()).max().unwrap_or(0);
    let mut table = String::new();
    for (info, outcome) in outcomes {
        let line = match outcome {
            Outcome::Caught { requirement, scenario } => format!("caught    {requirement:<12} {scenario}"),
            Outcome::Waits(reason) => format!("waits     {}", reason.split('.').next().unwrap_or(reason)),
            Outcome::NoScenario => {
                format!("SURVIVES  no scenario cites {}", info.requirements.join(" or "))
            }
            Outcome::Survived(_) => format!("SURVIVES  {}", info.what),
            Outcome::Harmful(what) => format!("HARMS     {what}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{:<width$}  {line}", info.name);
        if let Outcome::Survived(findings) = outcome {
            for finding in findings {
                let _ = writeln!(table, "{:<width$}    {finding}", "");
            }
        }
    }
    table
}
