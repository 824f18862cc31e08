//! `stc explain`: a requirement in words, the scenarios that prove it, and what it looks like when a client breaks it.

use std::sync::Arc;

use clap::Args;
use stc_reports::{ExitCode, Verdict, WireRecord};

use super::Features;
use crate::catalogue::Requirement;
use crate::client::reference::{Deviant, ReferenceFactory};
use crate::feature::Scenario;
use crate::output::{complain, say};
use crate::run::{Environment, RunConfig, Trace, run};
use crate::suite::Suite;
use crate::target::TargetConfig;

/// How many of the last records of the exchange are shown.
const RECORDS: usize = 20;

/// How much of a record is shown, in characters.
const COLUMNS: usize = 240;

/// The `explain` command line.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// A requirement, such as IMPL-2.1, or a scenario, such as C2-keyless-round-robin
    id: String,
    #[command(flatten)]
    features: Features,
}

pub(super) fn explain(args: &Explain) -> ExitCode {
    let suite = match args.features.suite() {
        Ok(suite) => suite,
        Err(e) => {
            complain(format_args!("error: {e}"));
            return ExitCode::Usage;
        }
    };
    let scenarios: Vec<&Scenario> = suite.scenarios.iter().filter(|s| s.is_called(&args.id)).collect();
    if let Some(requirement) = suite.catalogue.get(&args.id) {
        explain_requirement(&suite, requirement);
    } else if scenarios.is_empty() {
        complain(format_args!("error: there is no requirement and no scenario {}", args.id));
        return ExitCode::Usage;
    } else {
        scenarios.into_iter().for_each(|scenario| explain_scenario(&suite, scenario));
    }
    ExitCode::Conforms
}

fn explain_requirement(suite: &Suite, entry: &Requirement) {
    say(format_args!(
        "{} ({}, {} §{}, {})",
        entry.id,
        level(entry),
        entry.document,
        entry.section,
        entry.checklist
    ));
    say(format_args!("  {}", entry.summary));
    let entry = match entry.same_as().and_then(|id| suite.catalogue.get(id)) {
        Some(other) => {
            say(format_args!("\nIt says the same as {}: {}", other.id, other.summary));
            other
        }
        None => entry,
    };
    if let Some(reason) = suite.catalogue.reason(entry) {
        say(format_args!("\nNo scenario: {reason}"));
        return;
    }
    let citing: Vec<&Scenario> =
        suite.scenarios.iter().filter(|s| s.requirements.contains(&entry.id)).collect();
    say("\nScenarios that prove it:");
    for scenario in &citing {
        say(format_args!("  {:<44} {}", scenario.id, scenario.name));
    }
    match broken(&citing, &entry.id) {
        Some(broken) => say(broken.trim_end()),
        None => say("\nThis program has no client to show that breaks it."),
    }
}

fn level(entry: &Requirement) -> &'static str {
    stc_reports::Level::from(entry.level).as_str()
}

fn explain_scenario(suite: &Suite, scenario: &Scenario) {
    say(format_args!("{}: {}\n  {}:{}", scenario.id, scenario.name, scenario.feature, scenario.line));
    for step in &scenario.steps {
        say(format_args!("    {}{}", step.keyword, step.value));
    }
    for id in &scenario.requirements {
        if let Some(entry) = suite.catalogue.get(id) {
            say(format_args!("  {id} ({}): {}", level(entry), entry.summary));
        }
    }
    say("");
}

/// The ways to break a requirement that this program has, with what each does.
#[cfg(feature = "deviants")]
fn breaking(requirement: &str) -> Vec<(Deviant, &'static str)> {
    let all = Deviant::all().iter();
    all.filter(|info| info.requirements.contains(&requirement))
        .map(|info| (info.deviant, info.what))
        .collect()
}

/// None: nothing can be broken in this build.
#[cfg(not(feature = "deviants"))]
fn breaking(_: &str) -> Vec<(Deviant, &'static str)> {
    Vec::new()
}

/// A client of ours that breaks the requirement, in one of its scenarios: what it does, what the step says, and the end
/// of the exchange.
fn broken(citing: &[&Scenario], requirement: &str) -> Option<String> {
    breaking(requirement).into_iter().find_map(|(deviant, what)| {
        let client = Arc::new(ReferenceFactory { deviant: Some(deviant) });
        let config = RunConfig {
            environment: Arc::new(Environment::new(TargetConfig::Memory, "spec-1.0", client)),
            seed: 1,
            jobs: crate::cli::default_jobs(),
            trace: Trace::Failed,
            replay: String::new(),
        };
        let results = run(citing, &config);
        let blames = |f: &stc_reports::Failure| f.requirement.as_deref() == Some(requirement);
        let failed = results
            .into_iter()
            .find(|r| r.verdict == Verdict::Fail && r.failure.as_ref().is_some_and(blames))?;
        let failure = failed.failure?;
        let mut text = format!(
            "\nA client that breaks it: {what}\n  scenario  {}\n  step      {}\n  judged    {}\n",
            failed.id, failure.step, failure.message
        );
        let from = failed.transcript.len().saturating_sub(RECORDS);
        for record in failed.transcript.get(from..).unwrap_or_default() {
            let mark = if failure.record == Some(record.n) { "=>" } else { "" };
            let line: String = WireRecord::line(record).chars().take(COLUMNS).collect();
            text.push_str(&format!("  {mark:<10}{line}\n"));
        }
        Some(text)
    })
}
