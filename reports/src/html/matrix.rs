//! The matrix: requirements by checklist item, with a column for each run.

use maud::{Markup, html};

use super::{letter, status_look};
use crate::model::Report;
use crate::requirement::{RequirementResult, RequirementStatus};
use crate::summary::{self, ChecklistRow};
use crate::text::{ratio, visible};
use crate::verdict::Verdict;

/// A requirement and what each run says about it.
struct Row<'a> {
    any: &'a RequirementResult,
    results: Vec<Option<&'a RequirementResult>>,
}

/// An item and its requirements.
struct Item<'a> {
    id: String,
    title: String,
    rows: Vec<Option<ChecklistRow>>,
    requirements: Vec<Row<'a>>,
}

pub(super) fn matrix(reports: &[&Report]) -> Markup {
    let items = items(reports);
    html! {
        @if reports.len() > 1 {
            p.columns aria-hidden="true" {
                @for (run, report) in reports.iter().enumerate() {
                    @let who = format!("{} {}", report.client.name, report.client.version);
                    span.column title=(visible(&who)) { span.letter { (letter(run)) } (visible(&who)) }
                }
            }
        }
        @for item in items.iter().filter(|item| !item.requirements.is_empty()) { (section(item)) }
        p.note #nothing hidden { "Nothing matches." }
    }
}

/// The items of all runs, those of the first in its order, then what others add; the same for requirements.
fn items<'a>(reports: &[&'a Report]) -> Vec<Item<'a>> {
    let mut items: Vec<Item<'a>> = Vec::new();
    for (run, report) in reports.iter().enumerate() {
        for row in summary::by_checklist(report) {
            let place = items.iter().position(|i| i.id == row.item).unwrap_or_else(|| {
                items.push(Item {
                    id: row.item.clone(),
                    title: row.title.clone(),
                    rows: vec![None; reports.len()],
                    requirements: Vec::new(),
                });
                items.len() - 1
            });
            let Some(item) = items.get_mut(place) else { continue };
            let of_item = |r: &&RequirementResult| summary::named(&r.checklist) == row.item;
            for requirement in report.requirements.iter().filter(of_item) {
                add(&mut item.requirements, reports.len(), run, requirement);
            }
            if let Some(slot) = item.rows.get_mut(run) {
                *slot = Some(row);
            }
        }
    }
    items
}

fn add<'a>(rows: &mut Vec<Row<'a>>, runs: usize, run: usize, requirement: &'a RequirementResult) {
    let place = rows.iter().position(|r| r.any.id == requirement.id).unwrap_or_else(|| {
        rows.push(Row { any: requirement, results: vec![None; runs] });
        rows.len() - 1
    });
    if let Some(slot) = rows.get_mut(place).and_then(|row| row.results.get_mut(run)) {
        *slot = Some(requirement);
    }
}

fn section(item: &Item<'_>) -> Markup {
    let name = if item.id.is_empty() { "Other".to_owned() } else { visible(&item.id).into_owned() };
    let title = if item.id.is_empty() { "In no checklist item" } else { &item.title };
    html! {
        details.item id={ "item-" (slug(&item.id)) } {
            summary {
                span.id { (name) }
                span.text { (visible(title)) }
                span.cells {
                    @for row in &item.rows {
                        @match row {
                            Some(row) => {
                                @let (look, sign) = row_look(row);
                                span class={ "cell " (look) } {
                                    span aria-hidden="true" { (sign) } " " (row.result())
                                    small { (ratio(row.proven, row.requirements)) }
                                }
                            }
                            None => span.cell.dim { "–" },
                        }
                    }
                }
            }
            @for row in &item.requirements { (requirement(row)) }
        }
    }
}

fn requirement(row: &Row<'_>) -> Markup {
    let any = row.any;
    let statuses: Vec<&str> = row.results.iter().map(|r| r.map_or("absent", |r| r.status.as_str())).collect();
    let reasons = row.results.iter().flatten().filter_map(|r| match &r.status {
        RequirementStatus::Unproven { reason } => Some(reason.as_str()),
        _ => None,
    });
    html! {
        details.req id=(visible(&any.id)) data-level=(any.level.as_str()) data-status=(statuses.join("|")) {
            summary {
                span.id { (visible(&any.id)) }
                span.level { (any.level.as_str()) }
                span.text { (visible(&any.summary)) }
                span.cells {
                    @for result in &row.results {
                        @match result {
                            Some(result) => {
                                @let (look, sign) = status_look(&result.status);
                                span class={ "cell " (look) } {
                                    span aria-hidden="true" { (sign) } " " (result.status.as_str())
                                    @if let RequirementStatus::PartlyRun { passed, of } = result.status {
                                        small { (ratio(passed, of)) }
                                    }
                                }
                            }
                            None => span.cell.dim { "–" },
                        }
                    }
                }
            }
            div.body {
                p.sub { (visible(&any.section)) ", binds the " (visible(&any.binds)) }
                @if let Some(reason) = reasons.into_iter().next() { p { "Not proven: " (visible(reason)) } }
                // The script puts the scenarios themselves in the place of their ids.
                @if !any.scenarios.is_empty() {
                    ul.cited { @for id in &any.scenarios { li { code { (visible(id)) } } } }
                }
            }
        }
    }
}

/// CSS class and sign of an item's result.
pub(super) fn row_look(row: &ChecklistRow) -> (&'static str, &'static str) {
    match row.gravest {
        _ if row.fails => ("bad", "✗"),
        None => ("dim", "○"),
        Some(Verdict::Pass) => ("good", "✓"),
        Some(Verdict::Unsupported) => ("dim", "–"),
        Some(Verdict::Fail | Verdict::KnownFailure) => ("warn", "!"),
        Some(Verdict::CouldNotRun | Verdict::HarnessError) => ("odd", "?"),
    }
}

/// An item's id as a part of a link.
pub(super) fn slug(item: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    if item.is_empty() { "none".to_owned() } else { item.chars().map(plain).collect() }
}
