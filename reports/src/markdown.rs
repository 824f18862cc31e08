//! The report as Markdown, for a comment on a pull request or the summary of a CI job.
//!
//! Text from outside stands in code blocks or HTML `code` elements only, where neither markup nor mentions of users
//! take effect.

use crate::model::{Report, ScenarioResult};
use crate::score::Score;
use crate::summary::{self, ChecklistRow};
use crate::text::{cut, one_line, plural, ratio, seconds, tail, visible, wire_tail};
use crate::verdict::{ExitCode, Verdict};

/// Bytes after which failures are only counted: a comment on GitHub holds 65,536 characters.
const BUDGET: usize = 56_000;

/// How many of the last wire lines a failure shows.
const TRANSCRIPT_LINES: usize = 40;

/// Characters of a wire line that are shown.
const LINE_WIDTH: usize = 240;

/// Characters of a message that are shown.
const MESSAGE_WIDTH: usize = 4_000;

/// Characters of a headline that are shown.
const HEADLINE_WIDTH: usize = 300;

/// Renders the report as GitHub-flavoured Markdown of less than 65,536 bytes, however much failed.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let mark = match report.exit_code() {
        ExitCode::Conforms => "✅",
        ExitCode::DoesNotConform => "❌",
        ExitCode::Usage | ExitCode::Harness => "⚠️",
    };
    push(&mut out, &format!("## {mark} Scalable Topics conformance: {}\n", summary::outcome(report)));
    push(&mut out, &format!("**{}.** {}\n", Score::of(report), subject(report)));
    counts(&mut out, report);
    table(&mut out, report);
    problems(&mut out, report);
    out
}

fn push(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn subject(report: &Report) -> String {
    let client = format!("{} {}", report.client.name, report.client.version);
    let target = match &report.target.service_url {
        Some(url) => format!("{} {url}", report.target.kind.as_str()),
        None => report.target.kind.as_str().to_owned(),
    };
    format!(
        "Client {}, target {}, profile {}, seed {}. {} in {}{}.",
        code(&client),
        code(&target),
        code(&report.profile),
        report.seed,
        plural(report.counts().total, "scenario"),
        seconds(report.duration_ms),
        if report.filtered { ", a selection" } else { "" },
    )
}

fn counts(out: &mut String, report: &Report) {
    let counts = report.counts();
    let heads: Vec<&str> = Verdict::ALL.iter().map(|v| v.as_str()).collect();
    let cells: Vec<String> = Verdict::ALL.iter().map(|v| counts.get(*v).to_string()).collect();
    push(out, &format!("| {} | total |", heads.join(" | ")));
    push(out, &format!("|{}", "---:|".repeat(heads.len() + 1)));
    push(out, &format!("| {} | {} |\n", cells.join(" | "), counts.total));
    if let Some(chance) = summary::by_chance(report) {
        push(out, &format!("{chance}.\n"));
    }
    if !report.requirements.is_empty() {
        let requirements = plural(report.requirements.len(), "requirement");
        push(out, &format!("{requirements}: {}.\n", summary::requirement_counts(report)));
    }
    for left_out in summary::left_out(report, short_code) {
        push(out, &format!("Left out: {left_out}\n"));
    }
}

/// The table by checklist item alone, for a page of documentation.
pub fn checklist_table(report: &Report) -> String {
    let mut out = String::new();
    rows(&mut out, &summary::shown_rows(report).0);
    out
}

fn table(out: &mut String, report: &Report) {
    let (shown, hidden) = summary::shown_rows(report);
    rows(out, &shown);
    push(out, "");
    if hidden > 0 {
        push(out, &format!("{} without a selected scenario not shown.\n", plural(hidden, "item")));
    }
}

fn rows(out: &mut String, rows: &[ChecklistRow]) {
    push(out, "| Item | Title | Scenarios passed | Requirements proven | Result |");
    push(out, "|---|---|---:|---:|---|");
    for row in rows {
        push(
            out,
            &format!(
                "| {} | {} | {} | {} | {} |",
                cell(if row.item.is_empty() { "(none)" } else { &row.item }),
                cell(&row.title),
                ratio(row.passed, row.scenarios),
                ratio(row.proven, row.requirements),
                row.result(),
            ),
        );
    }
}

/// What has to be acted upon, the gravest first, within the budget.
fn problems(out: &mut String, report: &Report) {
    for stale in &report.stale_known_failures {
        if out.len() < BUDGET {
            let text = format!("{}: {}", stale.scenario, stale.problem);
            push(out, &format!("Stale entry of the known-failures list: {}\n", short_code(&text)));
        }
    }
    let failures = report.scenarios.iter().filter(|s| report.counts_against(s));
    let rest = [Verdict::HarnessError, Verdict::CouldNotRun, Verdict::KnownFailure]
        .into_iter()
        .flat_map(|v| report.scenarios.iter().filter(move |s| s.verdict == v));
    let mut unshown = 0;
    for scenario in failures.chain(rest) {
        let block = details(report, scenario);
        if out.len() + block.len() > BUDGET {
            unshown += 1;
        } else {
            out.push_str(&block);
        }
    }
    if unshown > 0 {
        push(out, &format!("{} more did not pass: see `report.json`.", plural(unshown, "scenario")));
    }
}

fn details(report: &Report, scenario: &ScenarioResult) -> String {
    let mut out = String::new();
    let headline = summary::headline(report, scenario);
    push(&mut out, &format!("<details><summary>{}</summary>\n", short_code(&headline)));
    let mut lines = vec![format!("scenario: {}: {}", one_line(&scenario.id), one_line(&scenario.name))];
    if let Some(failure) = &scenario.failure {
        lines.push(format!("step:     {}", one_line(&failure.step)));
        lines.push(format!("at:       {}", one_line(&failure.location)));
        lines.push(format!("message:  {}", cut(&visible(&failure.message), MESSAGE_WIDTH)));
    } else {
        lines.push(format!("at:       {}:{}", one_line(&scenario.feature), scenario.line));
    }
    if let Some(reason) = &scenario.reason {
        lines.push(format!("reason:   {}", cut(&visible(reason), MESSAGE_WIDTH)));
    }
    fence(&mut out, "", &lines);
    block(&mut out, "Wire", &wire_tail(scenario, TRANSCRIPT_LINES, "report.json"));
    exchange(&mut out, "Standard error of the client", &scenario.stderr_tail);
    push(&mut out, "Replay:\n");
    fence(&mut out, "sh", &[visible(&scenario.replay).into_owned()]);
    push(&mut out, "</details>\n");
    out
}

fn exchange(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let (before, last) = tail(lines, TRANSCRIPT_LINES);
    let note = match before {
        0 => String::new(),
        n => format!(" ({} before these: see `report.json`)", plural(n, "line")),
    };
    block(out, &format!("{title}{note}"), last);
}

fn block(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    push(out, &format!("{title}:\n"));
    let lines: Vec<String> = lines.iter().map(|l| cut(&one_line(l), LINE_WIDTH).into_owned()).collect();
    fence(out, "", &lines);
}

/// A code block whose fence is longer than any run of backticks in it.
fn fence(out: &mut String, language: &str, lines: &[String]) {
    let longest = lines.iter().map(|l| longest_backticks(l)).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    push(out, &format!("{fence}{language}"));
    for line in lines {
        push(out, line);
    }
    push(out, &format!("{fence}\n"));
}

fn longest_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text from outside within a line: an HTML `code` element with everything escaped that HTML or Markdown would read.
fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(&one_line(text)))
}

fn short_code(text: &str) -> String {
    format!("<code>{}</code>", escape(&cut(&one_line(text), HEADLINE_WIDTH)))
}

/// Text in a table cell.
fn cell(text: &str) -> String {
    escape(&cut(&one_line(text), HEADLINE_WIDTH))
}

/// Replaces ASCII characters with a meaning in HTML or Markdown by character references, which both read as text.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '<' | '>' | '"' | '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' | '#' | '@' | '!'
            | '$' => {
                out.push_str(&format!("&#{};", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_outlasts_the_backticks_in_it() {
        let mut out = String::new();
        fence(&mut out, "sh", &["a ```` b".to_owned(), "```".to_owned()]);
        assert_eq!(out, "`````sh\na ```` b\n```\n`````\n\n");
    }

    #[test]
    fn nothing_in_a_cell_is_read_as_markup() {
        assert_eq!(cell("a|b\n<i>`c`"), "a&#124;b &#60;i&#62;&#96;c&#96;");
    }
}
