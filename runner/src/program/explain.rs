//! `stc explain`: a requirement in words, why it matters, the scenarios that prove it, and what goes over the wire when a
//! client breaks it; a scenario step by step; an item of the checklist requirement by requirement.

use std::sync::Arc;

use clap::Args;
use stc_reports::{ChecklistItem, ExitCode, Verdict, WireRecord};

use super::{Features, RUN};
use crate::catalogue::{Requirement, checklist};
use crate::client::reference::{Deviant, ReferenceFactory};
use crate::feature::Scenario;
use crate::nearest::did_you_mean;
use crate::output::{complain, say};
use crate::run::{Environment, Judged, RunConfig, Trace, run_judged};
use crate::suite::Suite;
use crate::target::TargetConfig;

/// How many records of the exchange are shown: the last ones, or those that lead to the one that decided.
const RECORDS: usize = 20;

/// How many of them come after the one that decided.
const AFTER: usize = 3;

/// The seed of the run that is shown.
const SEED: u64 = 1;

/// How much of a record is shown, in characters.
const COLUMNS: usize = 240;

/// The `explain` command line.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// A requirement, such as IMPL-2.1, a scenario, such as C2-keyless-round-robin, or an item of the checklist, such as
    /// C2 or transactions
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
    } else if let Some(item) = checklist().into_iter().find(|item| item.id == args.id) {
        explain_item(&suite, &item);
    } else if scenarios.is_empty() {
        complain(format_args!(
            "error: there is no requirement, no scenario and no item of the checklist {}{}",
            args.id,
            did_you_mean(&args.id, names(&suite).iter().map(String::as_str), "")
        ));
        return ExitCode::Usage;
    } else {
        scenarios.into_iter().for_each(|scenario| explain_scenario(&suite, scenario));
    }
    ExitCode::Conforms
}

/// Everything that can be explained.
fn names(suite: &Suite) -> Vec<String> {
    let items = checklist().into_iter().map(|item| item.id);
    let requirements = suite.catalogue.requirements.iter().map(|entry| entry.id.clone());
    let scenarios = suite.scenarios.iter().flat_map(Scenario::names).map(str::to_owned);
    items.chain(requirements).chain(scenarios).collect()
}

fn explain_item(suite: &Suite, item: &ChecklistItem) {
    let kind = if item.required { "required core" } else { "optional capability" };
    say(format_args!("{}: {} ({kind})", item.id, item.title));
    for entry in suite.catalogue.requirements.iter().filter(|entry| entry.checklist == item.id) {
        say(format_args!("\n{} ({}): {}", entry.id, level(entry), entry.summary));
        match (entry.same_as(), suite.catalogue.reason(entry)) {
            (Some(other), _) => say(format_args!("  It says the same as {other}.")),
            (None, Some(reason)) => say(format_args!("  No scenario: {reason}")),
            (None, None) => list(&citing(suite, entry)),
        }
    }
}

/// The scenarios that cite a requirement.
fn citing<'a>(suite: &'a Suite, entry: &Requirement) -> Vec<&'a Scenario> {
    suite.scenarios.iter().filter(|s| s.requirements.contains(&entry.id)).collect()
}

fn list(scenarios: &[&Scenario]) {
    for scenario in scenarios {
        say(format_args!("  {:<44} {}", scenario.id, scenario.name));
    }
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
    if let Some(why) = suite.catalogue.why(entry) {
        say(format_args!("\nWhy it matters:\n  {why}"));
    }
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
    let citing = citing(suite, entry);
    say("\nScenarios that prove it:");
    list(&citing);
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

/// The ways to break a requirement that this program has, with the name of each and what it does.
#[cfg(feature = "deviants")]
fn breaking(requirement: &str) -> Vec<(Deviant, &'static str, &'static str)> {
    let all = Deviant::all().iter();
    all.filter(|info| info.requirements.contains(&requirement))
        .map(|info| (info.deviant, info.name, info.what))
        .collect()
}

/// None: nothing can be broken in this build.
#[cfg(not(feature = "deviants"))]
fn breaking(_: &str) -> Vec<(Deviant, &'static str, &'static str)> {
    Vec::new()
}

/// A client of ours that breaks the requirement, in one of its scenarios: what it does, what the step says, and what went
/// over the wire. It is run here and now, so that nothing of it can be out of date.
fn broken(citing: &[&Scenario], requirement: &str) -> Option<String> {
    breaking(requirement).into_iter().find_map(|(deviant, name, what)| {
        let client = Arc::new(ReferenceFactory { deviant: Some(deviant) });
        let config = RunConfig {
            environment: Arc::new(Environment::new(TargetConfig::Memory, "spec-1.0", client)),
            seed: SEED,
            jobs: crate::cli::default_jobs(),
            trace: Trace::Failed,
            replay: String::new(),
        };
        let broke = |judged: &Judged| {
            judged.result.verdict == Verdict::Fail && judged.asserted.iter().any(|id| id == requirement)
        };
        let failed = run_judged(citing, &config).into_iter().find(broke)?.result;
        let failure = failed.failure?;
        let (records, decided) = (&failed.transcript, failure.record);
        let place = decided.and_then(|n| records.iter().position(|r| r.n == n));
        let end = place.map_or(records.len(), |place| (place + 1 + AFTER).min(records.len()));
        let shown = records.get(end.saturating_sub(RECORDS)..end).unwrap_or_default();
        let hint = match place {
            Some(_) => "the one at => decided",
            None => "no single one decided: something is missing, or several together show it",
        };
        let mut text = format!(
            "\nA client that breaks it: {what}\n  scenario  {}\n  step      {}\n  judged    {}\n  exchange  {} of {} \
             records; {hint}\n",
            failed.id,
            failure.step,
            failure.message,
            shown.len(),
            records.len()
        );
        for record in shown {
            let mark = if decided == Some(record.n) { "=>" } else { "" };
            let line: String = WireRecord::line(record).chars().take(COLUMNS).collect();
            text.push_str(&format!("  {mark:<10}{line}\n"));
        }
        let again = format!("{RUN} --deviant {name} --scenario {} --seed {SEED}", failed.id);
        text.push_str(&format!("  replay    {again}\n"));
        Some(text)
    })
}
