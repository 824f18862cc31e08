//! What every writer says alike: the table by checklist item, the headline of a scenario, the outcome in words.

use std::fmt::Display;

use crate::model::{ChecklistItem, Report, ScenarioResult};
use crate::requirement::{RequirementResult, RequirementStatus};
use crate::text::plural;
use crate::verdict::{Chance, ExitCode, Verdict};

/// One row of the table by checklist item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChecklistRow {
    /// Checklist item; empty in the row of scenarios and requirements that belong to none.
    pub item: String,
    /// Title; empty where [`Report::checklist`] does not list the item.
    pub title: String,
    /// Scenarios of the item that passed.
    pub passed: usize,
    /// Scenarios of the item that were selected and need no other capability that the client does not offer.
    pub scenarios: usize,
    /// Requirements of the item that are proven.
    pub proven: usize,
    /// Requirements of the item.
    pub requirements: usize,
    /// The gravest verdict among its scenarios; `None` without scenarios.
    pub gravest: Option<Verdict>,
    /// Whether one of its scenarios shows that the client does not conform.
    pub fails: bool,
}

impl ChecklistRow {
    /// The row's last cell: what became of the item.
    pub fn result(&self) -> &'static str {
        match self.gravest {
            _ if self.fails => "fails",
            None => "no scenario",
            Some(Verdict::Pass) => "passes",
            Some(verdict) => verdict.as_str(),
        }
    }
}

/// The table by checklist item, in the order of [`Report::checklist`]. Items that only scenarios or requirements name
/// follow, so that nothing is missing from the table. A scenario of two items is in both rows.
pub fn by_checklist(report: &Report) -> Vec<ChecklistRow> {
    let mut items: Vec<(&str, &str)> =
        report.checklist.iter().map(|i| (i.id.as_str(), i.title.as_str())).collect();
    let others = report.scenarios.iter().flat_map(items_of).chain(report.requirements.iter().map(item_of));
    for id in others {
        if !items.iter().any(|(known, _)| *known == id) {
            items.push((id, ""));
        }
    }
    items.into_iter().map(|(id, title)| row(report, id, title)).collect()
}

/// The items of a scenario; the empty item when it has none.
fn items_of(scenario: &ScenarioResult) -> Vec<&str> {
    if scenario.checklist.is_empty() {
        vec![""]
    } else {
        scenario.checklist.iter().map(|id| named(id)).collect()
    }
}

/// The selected scenarios of an item that say something about it.
pub(crate) fn scenarios_of<'a>(report: &'a Report, item: &str) -> Vec<&'a ScenarioResult> {
    let all = report.scenarios.iter().filter(|s| items_of(s).contains(&item)).collect();
    telling(item, &report.checklist, all, |scenario| Some(*scenario))
}

/// Of scenarios those that say something about an item: one that did not run because the client does not offer another,
/// optional capability says nothing. All of them when there are no others. `result` is `None` for one that was not
/// selected.
pub fn telling<'a, T>(
    item: &str,
    checklist: &[ChecklistItem],
    mut scenarios: Vec<T>,
    result: impl Fn(&T) -> Option<&'a ScenarioResult>,
) -> Vec<T> {
    let another = |id: &String| id != item && checklist.iter().any(|i| i.id == *id && !i.required);
    let tells = |scenario: &T| {
        result(scenario).is_none_or(|r| r.verdict != Verdict::Unsupported || !r.checklist.iter().any(another))
    };
    if scenarios.iter().any(tells) {
        scenarios.retain(tells);
    }
    scenarios
}

fn item_of(requirement: &RequirementResult) -> &str {
    named(&requirement.checklist)
}

/// The catalogue writes `-` for "no item".
pub(crate) fn named(item: &str) -> &str {
    if item == "-" { "" } else { item }
}

fn row(report: &Report, id: &str, title: &str) -> ChecklistRow {
    let scenarios = scenarios_of(report, id);
    let requirements = || report.requirements.iter().filter(|r| item_of(r) == id);
    ChecklistRow {
        item: id.to_owned(),
        title: title.to_owned(),
        passed: scenarios.iter().filter(|s| s.verdict == Verdict::Pass).count(),
        scenarios: scenarios.len(),
        proven: requirements().filter(|r| r.status == RequirementStatus::Proven).count(),
        requirements: requirements().count(),
        gravest: scenarios.iter().map(|s| s.verdict).max_by_key(|v| v.gravity()),
        fails: scenarios.iter().any(|s| report.counts_against(s)),
    }
}

/// The rows that a reader of this run wants to see: all of them after a whole run, those with scenarios after a
/// filtered one. The second value counts the hidden rows.
pub fn shown_rows(report: &Report) -> (Vec<ChecklistRow>, usize) {
    let rows = by_checklist(report);
    let all = rows.len();
    let shown: Vec<ChecklistRow> = rows.into_iter().filter(|r| !report.filtered || r.scenarios > 0).collect();
    let hidden = all - shown.len();
    (shown, hidden)
}

/// What a scenario shows, as one sentence: `C2 fails, IMPL-2.1: <message>`. The message may have several lines.
pub fn headline(report: &Report, scenario: &ScenarioResult) -> String {
    let item = headline_item(report, scenario);
    let cited = headline_requirements(report, scenario);
    let message = scenario.failure.as_ref().map(|f| f.message.as_str());
    let reason = scenario.reason.as_deref();
    let text = message.or(reason).unwrap_or("no message was recorded");
    let why = reason.or(message).unwrap_or("no reason was recorded");
    match scenario.verdict {
        Verdict::Pass => format!("{item} passes{cited}"),
        Verdict::Fail => format!("{item} fails{cited}: {text}"),
        Verdict::KnownFailure => match scenario.by_chance {
            None => format!("{item} is a known failure{cited}: {text}"),
            Some(Chance::Failed) => format!("{item} is a known failure by chance{cited}, and failed: {text}"),
            Some(Chance::Passed) => {
                format!("{item} is a known failure by chance{cited}, and passed this time")
            }
        },
        Verdict::Unsupported if report.counts_against(scenario) => {
            format!("{item} fails{cited}: the client calls a part of the required core unsupported: {why}")
        }
        Verdict::Unsupported => format!("{item} is not offered{cited}: {why}"),
        Verdict::CouldNotRun => format!("{item} could not run{cited}: {why}"),
        Verdict::HarnessError => format!("{item} was not judged{cited}, harness error: {text}"),
    }
}

/// The item of the requirement that failed, else all items of the scenario, else its id.
fn headline_item(report: &Report, scenario: &ScenarioResult) -> String {
    let items: Vec<&str> = match report.blamed(scenario) {
        Some(requirement) if !item_of(requirement).is_empty() => vec![item_of(requirement)],
        _ => items_of(scenario).into_iter().filter(|item| !item.is_empty()).collect(),
    };
    if items.is_empty() { scenario.id.clone() } else { items.join("/") }
}

/// `, IMPL-2.1` where the failing step says which requirement it asserts, with its level where that is not absolute;
/// all that are in doubt where it does not.
fn headline_requirements(report: &Report, scenario: &ScenarioResult) -> String {
    let with_level = |id: &str| match find(report, id) {
        Some(requirement) if !requirement.level.is_absolute() => {
            format!("{id} ({})", requirement.level.as_str())
        }
        _ => id.to_owned(),
    };
    match (blamed(scenario), scenario.requirements.as_slice()) {
        (Some(id), _) => format!(", {}", with_level(id)),
        (None, []) => String::new(),
        (None, [only]) => format!(", {}", with_level(only)),
        (None, several) => {
            let ids: Vec<String> = several.iter().map(|id| with_level(id)).collect();
            format!(", one of {}", ids.join(", "))
        }
    }
}

fn blamed(scenario: &ScenarioResult) -> Option<&str> {
    scenario.failure.as_ref().and_then(|f| f.requirement.as_deref())
}

fn find<'a>(report: &'a Report, id: &str) -> Option<&'a RequirementResult> {
    report.requirements.iter().find(|r| r.id == id)
}

/// The MUST-level requirements of the required core: how many of them the run proves, and how many there are. Those that
/// are not proven say why: see [`RequirementStatus`].
pub fn core_musts(report: &Report) -> (usize, usize) {
    let optional = |item: &str| report.checklist.iter().any(|i| i.id == item && !i.required);
    let core = || report.requirements.iter().filter(|r| r.level.is_absolute() && !optional(&r.checklist));
    (core().filter(|r| r.status == RequirementStatus::Proven).count(), core().count())
}

/// Requirements by status, in words: `3 proven, 1 broken; 2 of 4 MUST-level ones of the required core proven`; statuses
/// that no requirement has are left out. Of those that were partly run, all that ran passed.
pub fn requirement_counts(report: &Report) -> String {
    let mut counts: Vec<(&str, usize)> =
        ["proven", "partly run", "broken", "known failure", "unsupported", "unproven", "not run"]
            .map(|s| (s, 0))
            .to_vec();
    for requirement in &report.requirements {
        if let Some((_, n)) = counts.iter_mut().find(|(status, _)| *status == requirement.status.as_str()) {
            *n += 1;
        }
    }
    let word = |status| if status == "partly run" { "partly run and passed" } else { status };
    let words: Vec<String> =
        counts.iter().filter(|(_, n)| *n > 0).map(|(status, n)| format!("{n} {}", word(status))).collect();
    let (proven, musts) = core_musts(report);
    format!("{}; {proven} of {musts} MUST-level ones of the required core proven", words.join(", "))
}

/// Scenarios by verdict, in words: `20 pass, 1 fail, 0 known failure, …`. All verdicts are named, so that the reader
/// can add them up.
pub fn scenario_counts(report: &Report) -> String {
    let counts = report.counts();
    let words: Vec<String> = Verdict::ALL.iter().map(|v| format!("{} {v}", counts.get(*v))).collect();
    words.join(", ")
}

/// Of the known failures those that come by chance, in words: `2 of the known failures come by chance: 1 failed, 1 passed
/// this time`. `None` where there are none.
pub fn by_chance(report: &Report) -> Option<String> {
    let came = |chance: Chance| report.scenarios.iter().filter(|s| s.by_chance == Some(chance)).count();
    let (failed, passed) = (came(Chance::Failed), came(Chance::Passed));
    let verb = if failed + passed == 1 { "comes" } else { "come" };
    (failed + passed > 0).then(|| {
        format!(
            "{} of the known failures {verb} by chance: {failed} failed, {passed} passed this time",
            failed + passed
        )
    })
}

/// The outcome of the run in one sentence.
pub fn outcome(report: &Report) -> String {
    let counts = report.counts();
    let broken = report.scenarios.iter().filter(|s| report.counts_against(s)).count();
    let unjudged = counts.harness_error + counts.could_not_run;
    match report.exit_code() {
        ExitCode::Usage => "no scenario ran".to_owned(),
        ExitCode::DoesNotConform if broken == 0 => "the known-failures list is stale".to_owned(),
        ExitCode::DoesNotConform => {
            format!("does not conform ({})", plural(broken, "failure"))
        }
        ExitCode::Harness => format!("not judged: {} did not run to the end", plural(unjudged, "scenario")),
        ExitCode::Conforms => {
            let part = if report.is_partial() { ", as far as it was asked" } else { "" };
            // A failure that leaves the client conforming is about a SHOULD.
            let excused: Vec<String> =
                [(counts.known_failure, "known failure"), (counts.fail, "broken SHOULD")]
                    .into_iter()
                    .filter(|(n, _)| *n > 0)
                    .map(|(n, what)| plural(n, what))
                    .collect();
            let apart = if excused.is_empty() {
                String::new()
            } else {
                format!(", apart from {}", excused.join(" and "))
            };
            format!("conforms{part}{apart}")
        }
    }
}

/// What was left out, in words: `3 scenarios: <reason>` for each reason, in the order in which they appear. `shown` gives a
/// reason as the format can take it.
pub(crate) fn left_out<'a, T: Display>(report: &'a Report, shown: impl Fn(&'a str) -> T) -> Vec<String> {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for left_out in &report.left_out {
        match groups.iter_mut().find(|(reason, _)| *reason == left_out.reason) {
            Some((_, n)) => *n += 1,
            None => groups.push((&left_out.reason, 1)),
        }
    }
    let words = |(reason, n)| format!("{}: {}", plural(n, "scenario"), shown(reason));
    groups.into_iter().map(words).collect()
}
