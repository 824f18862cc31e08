//! The frame of the page: head, verdicts, scores, what needs attention, and the places that the script fills.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::data::{Data, Merged};
use super::{SCRIPT, SCRIPT_HASH, STYLE, STYLE_HASH, letter, matrix, verdict_look};
use crate::model::{Report, ScenarioResult};
use crate::score::{Part, Score};
use crate::summary;
use crate::text::{plural, seconds, visible};
use crate::verdict::{ExitCode, Verdict};

pub(super) fn page(reports: &[&Report], scenarios: &[Merged<'_>], data: &Data) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title(reports), SCRIPT_HASH))
            body data-runs=(reports.len()) {
                a.skip href="#requirements" { "Skip to the requirements" }
                header.top {
                    p.kicker { "Scalable Topics Client Specification " (specification(reports)) " · conformance" }
                    @if let [only] = reports {
                        (verdict(only))
                    } @else {
                        h1 { "Comparison of " (plural(reports.len(), "run")) }
                    }
                }
                main {
                    div.runs {
                        @for (run, report) in reports.iter().enumerate() { (card(run, report, reports.len() > 1)) }
                    }
                    (attention(reports, scenarios))
                    (toolbar(reports.len()))
                    section #requirements data-view="requirements" aria-labelledby="requirements-title" {
                        h2 #requirements-title { "Requirements by checklist item" }
                        (matrix::matrix(reports))
                    }
                    section #scenarios data-view="scenarios" hidden aria-labelledby="scenarios-title" {
                        h2 #scenarios-title { "Scenarios" }
                        div #scenario-list {}
                    }
                    noscript {
                        p.note { "Scripts are off: steps and wire exchanges are not shown. report.json holds them." }
                    }
                }
                footer {
                    @for (run, report) in reports.iter().enumerate() {
                        p {
                            @if reports.len() > 1 { (letter(run)) ": " }
                            (visible(&report.tool.name)) " " (visible(&report.tool.version))
                            ", suite " (visible(&report.suite.version)) ", " (visible(&report.started_at))
                        }
                    }
                }
                script #stc-data type="application/json" { (PreEscaped(&data.index)) }
                @for (id, text) in &data.exchanges {
                    script id=(id) type="application/json" { (PreEscaped(text)) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The head of a page that may run one script, have one style sheet, and ask for nothing.
pub(super) fn head(title: &str, script_hash: &str) -> Markup {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        STYLE_HASH.trim(),
        script_hash.trim()
    );
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="referrer" content="no-referrer";
            title { (title) }
            style { (PreEscaped(STYLE)) }
        }
    }
}

fn title(reports: &[&Report]) -> String {
    match reports {
        [only] => {
            visible(&format!("{} {}: {}", only.client.name, only.client.version, summary::outcome(only)))
                .into_owned()
        }
        several => format!("Conformance of {}", plural(several.len(), "run")),
    }
}

fn specification(reports: &[&Report]) -> String {
    let mut versions: Vec<&str> = reports.iter().map(|r| r.suite.specification.as_str()).collect();
    versions.dedup();
    visible(&versions.join(", ")).into_owned()
}

/// The verdict as the page's heading.
fn verdict(report: &Report) -> Markup {
    let (look, sign) = outcome_look(report);
    html! {
        h1 class={ "verdict " (look) } {
            span.sign aria-hidden="true" { (sign) }
            span {
                (visible(&report.client.name)) " " (visible(&report.client.version)) " "
                strong { (summary::outcome(report)) }
            }
        }
    }
}

fn outcome_look(report: &Report) -> (&'static str, &'static str) {
    match report.exit_code() {
        ExitCode::Conforms => ("good", "✓"),
        ExitCode::DoesNotConform => ("bad", "✗"),
        ExitCode::Usage | ExitCode::Harness => ("odd", "⚠"),
    }
}

/// Score, facts and items of one run.
fn card(run: usize, report: &Report, several: bool) -> Markup {
    let score = Score::of(report);
    let (look, sign) = outcome_look(report);
    html! {
        article.card aria-label={ "Run " (letter(run)) } {
            @if several {
                h2 class={ "verdict " (look) } {
                    span.letter { (letter(run)) }
                    span {
                        (visible(&report.client.name)) " " (visible(&report.client.version)) " "
                        strong { span aria-hidden="true" { (sign) " " } (summary::outcome(report)) }
                    }
                }
            }
            div.scores {
                (number(score.core, "checklist items"))
                (number(score.requirements, "requirements"))
                @if score.optional.asked > 0 { (number(score.optional, "optional capabilities")) }
            }
            (bar(report))
            (tiles(run, report))
            details.facts {
                summary { (plural(report.counts().total, "scenario")) " in " (seconds(report.duration_ms)) ", how it ran" }
                (facts(report))
            }
        }
    }
}

fn number(part: Part, noun: &str) -> Markup {
    html! {
        p.score {
            span.held { (part.held) } " " span.of { "of " (part.asked) } " " span.noun { (noun) }
        }
    }
}

/// Scenarios by verdict as one bar, with the same in words below.
fn bar(report: &Report) -> Markup {
    let counts = report.counts();
    let shares: Vec<(Verdict, usize)> =
        Verdict::ALL.iter().map(|v| (*v, counts.get(*v))).filter(|(_, n)| *n > 0).collect();
    let look = |v: Verdict| verdict_look(v, v == Verdict::Fail);
    let before = |verdict: &Verdict| -> usize {
        shares.iter().take_while(|(v, _)| v != verdict).map(|(_, n)| n).sum()
    };
    html! {
        svg.bar viewBox={ "0 0 " (counts.total.max(1)) " 1" } preserveAspectRatio="none" aria-hidden="true" {
            @for (verdict, n) in &shares {
                rect class=(look(*verdict).0) x=(before(verdict)) width=(n) height="1" {}
            }
        }
        p.legend {
            @for (verdict, n) in &shares {
                span class=(look(*verdict).0) {
                    span.sign aria-hidden="true" { (look(*verdict).1) } " " (n) " " (verdict)
                }
            }
        }
    }
}

/// One tile for each checklist item, a link to its requirements.
fn tiles(run: usize, report: &Report) -> Markup {
    html! {
        nav.tiles aria-label={ "Checklist items of run " (letter(run)) } {
            @for row in summary::by_checklist(report).iter().filter(|row| !row.item.is_empty()) {
                @let (look, sign) = matrix::row_look(row);
                a class={ "tile " (look) } href={ "#item-" (matrix::slug(&row.item)) }
                    title={ (visible(&row.title)) ": " (row.result()) } {
                    (visible(&row.item)) " " span aria-label=(row.result()) { (sign) }
                }
            }
        }
    }
}

fn facts(report: &Report) -> Markup {
    let target = [&report.target.service_url, &report.target.admin_url];
    html! {
        dl {
            dt { "Target" }
            dd { (report.target.kind.as_str()) @for url in target.into_iter().flatten() { " " (visible(url)) } }
            dt { "Profile" } dd { (visible(&report.profile)) }
            dt { "Suite" } dd { (visible(&report.suite.version)) }
            dt { "Seed" } dd { (report.seed) }
            dt { "Started" } dd { (visible(&report.started_at)) }
            dt { "Selection" } dd { @if report.filtered { "a part of the scenarios" } @else { "all scenarios" } }
            @for left_out in summary::left_out(report, visible) { dt { "Left out" } dd { (left_out) } }
            @if let Some(chance) = summary::by_chance(report) { dt { "By chance" } dd { (chance) } }
            dt { "Requirements" } dd { (summary::requirement_counts(report)) }
            dt { "Command" } dd { code.command { (visible(&report.command)) } }
        }
    }
}

/// How many problems stand before the matrix; whoever wants the rest opens it.
const SHOWN_AT_ONCE: usize = 10;

/// Everything that somebody has to act upon, the gravest first.
fn attention(reports: &[&Report], scenarios: &[Merged<'_>]) -> Markup {
    let mut entries: Vec<(u8, usize, usize, &ScenarioResult)> = Vec::new();
    for (place, merged) in scenarios.iter().enumerate() {
        for (run, (result, report)) in merged.results.iter().zip(reports).enumerate() {
            let Some(result) = result else { continue };
            let rank = match result.verdict {
                _ if report.counts_against(result) => 0,
                Verdict::HarnessError => 1,
                Verdict::CouldNotRun => 2,
                Verdict::Fail => 3,
                Verdict::KnownFailure => 4,
                Verdict::Pass | Verdict::Unsupported => continue,
            };
            entries.push((rank, place, run, result));
        }
    }
    entries.sort_by_key(|(rank, place, run, _)| (*rank, *place, *run));
    let stale = || {
        reports.iter().enumerate().flat_map(|(run, r)| r.stale_known_failures.iter().map(move |s| (run, s)))
    };
    if entries.is_empty() && stale().next().is_none() {
        return html! {};
    }
    html! {
        section #attention aria-labelledby="attention-title" {
            h2 #attention-title { "Needs attention" span.count { (entries.len() + stale().count()) } }
            @for (run, stale) in stale() {
                p.stale {
                    @if reports.len() > 1 { span.letter { (letter(run)) } }
                    strong { "The known-failures list is stale: " } code { (visible(&stale.scenario)) } " "
                    (visible(&stale.problem))
                }
            }
            @let (first, rest) = entries.split_at(entries.len().min(SHOWN_AT_ONCE));
            @for entry in first { (problem(reports, *entry)) }
            @if !rest.is_empty() {
                details.rest {
                    summary { (rest.len()) " more" }
                    @for entry in rest { (problem(reports, *entry)) }
                }
            }
        }
    }
}

fn problem(reports: &[&Report], (_, place, run, result): (u8, usize, usize, &ScenarioResult)) -> Markup {
    let several = reports.len() > 1;
    let Some(report) = reports.get(run) else { return html! {} };
    let (look, sign) = verdict_look(result.verdict, report.counts_against(result));
    html! {
        details.scenario data-s=(place) data-r=(run) {
            summary {
                span class={ "sign " (look) } aria-hidden="true" { (sign) }
                span.what {
                    @if several { span.letter { (letter(run)) } }
                    (visible(&summary::headline(report, result)))
                    span.sub { code { (visible(&result.id)) } " " (visible(&result.name)) }
                }
            }
            // The script puts the whole scenario in the place of this.
            div.body {
                @if let Some(failure) = &result.failure {
                    p { (visible(&failure.step)) " (" (visible(&failure.location)) ")" }
                }
                @if let Some(reason) = &result.reason { p { (visible(reason)) } }
                p { code.command { (visible(&result.replay)) } }
            }
        }
    }
}

/// Search and filters; the script makes them work, so it also shows them.
fn toolbar(runs: usize) -> Markup {
    html! {
        form.toolbar #toolbar role="search" hidden {
            div.line {
                label.search {
                    span.hide { "Search" }
                    input #q type="search" placeholder="Search ids, words, messages…  ( / )" autocomplete="off"
                        spellcheck="false";
                }
                div.views role="group" aria-label="View" {
                    button type="button" data-show="requirements" aria-pressed="true" { "Requirements" }
                    button type="button" data-show="scenarios" aria-pressed="false" { "Scenarios" }
                }
            }
            div.line {
                div.chips #chips role="group" aria-label="Only with this status" {}
                label.pick {
                    span.hide { "Level" }
                    select #level {
                        option value="" { "all levels" }
                        option value="MUST" { "MUST, MUST NOT" }
                        option value="SHOULD" { "SHOULD, SHOULD NOT" }
                        option value="MAY" { "MAY" }
                    }
                }
                @if runs > 1 {
                    label.differ { input #differ type="checkbox"; " only where runs differ" }
                }
                output #shown aria-live="polite" {}
                button #clear type="button" hidden { "Clear" }
            }
        }
    }
}
