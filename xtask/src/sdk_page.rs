//! The `sdk-page` command: the conformance table in the page of an SDK (`docs/sdk-*.md`), written from a report of a run.
//!
//! The table stands between two comments that name the adapter, so that prose around it is left alone. What a table says
//! about the list of known failures can be checked without a run ([`stale`]); the rest is as old as its run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use stc_reports::{Report, Verdict, json, markdown};
use stc_runner::feature::Scenario;
use stc_runner::known::KnownFailures;
use stc_runner::output::say;

use crate::exit::UsageError;
use crate::workspace_root;

/// The `sdk-page` command line.
#[derive(Debug, Args)]
pub struct SdkPage {
    /// The adapter, a folder in adapters/
    adapter: String,
    /// The report of its run (report.json)
    #[arg(long, value_name = "FILE")]
    report: PathBuf,
}

/// Rewrites the table of the adapter in whichever page has one.
///
/// # Errors
/// When the report cannot be read, or no page has a place for the table.
pub fn run(command: &SdkPage) -> anyhow::Result<ExitCode> {
    let path = &command.report;
    let read = fs::read_to_string(path).map_err(|e| e.to_string());
    let report = read.and_then(|text| json::read(&text).map_err(|e| e.to_string()));
    let report = report.map_err(|e| UsageError(format!("{}: {e}", path.display())))?;
    for page in pages()? {
        let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        if let Some(text) = with_table(&text, &command.adapter, &table(&report)) {
            fs::write(&page, text).with_context(|| page.display().to_string())?;
            say(page.display());
            return Ok(ExitCode::SUCCESS);
        }
    }
    let (begin, end) = marks(&command.adapter);
    Err(UsageError(format!("no page docs/sdk-*.md has the lines {begin:?} and {end:?}")).into())
}

/// The pages of SDKs.
///
/// # Errors
/// When the folder cannot be read.
pub fn pages() -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(workspace_root().join("docs"))? {
        let path = entry?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("sdk-") && name.ends_with(".md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// The lines around a table.
fn marks(adapter: &str) -> (String, String) {
    (format!("<!-- conformance of {adapter} -->"), "<!-- end of conformance -->".to_owned())
}

/// The text between the marks of an adapter, and where it stands.
fn between<'a>(page: &'a str, adapter: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (begin, end) = marks(adapter);
    let start = page.find(&begin)? + begin.len();
    let (before, rest) = page.split_at_checked(start)?;
    let (table, after) = rest.split_at_checked(rest.find(&end)?)?;
    Some((before, table, after))
}

fn with_table(page: &str, adapter: &str, table: &str) -> Option<String> {
    let (before, _, after) = between(page, adapter)?;
    Some(format!("{before}\n\n{table}\n{after}"))
}

/// Adapters whose tables a page has.
fn adapters(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("<!-- conformance of ")?.strip_suffix(" -->"))
}

fn table(report: &Report) -> String {
    let counts = report.counts();
    let left_out = match report.left_out.len() {
        0 => String::new(),
        n => format!(", {n} left out since they need virtual time or what else the target lacks"),
    };
    let counted: Vec<String> = Verdict::ALL
        .iter()
        .map(|v| (counts.get(*v), v))
        .filter(|(n, _)| *n > 0)
        .map(|(n, v)| match v {
            Verdict::KnownFailure if counts.by_chance > 0 => {
                format!("{n} {v} ({} by chance)", counts.by_chance)
            }
            _ => format!("{n} {v}"),
        })
        .collect();
    format!(
        "From the report of a run of {} {} with seed {}, suite {}, profile {}{}: {} scenarios, {}{left_out}.\n\n{}",
        report.client.name,
        report.client.version,
        report.seed,
        report.suite.version,
        report.profile,
        if report.filtered { ", a selection" } else { "" },
        counts.total,
        counted.join(", "),
        markdown::checklist_table(report),
    )
}

/// What the tables of a page contradict in the lists of known failures: their number, and items that pass with a
/// scenario on the list.
///
/// # Errors
/// When a list cannot be read, or a table has no such numbers.
pub fn stale(page: &str, scenarios: &[Scenario]) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for adapter in adapters(page) {
        let Some((_, table, _)) = between(page, adapter) else { bail!("{adapter}: its table has no end") };
        let list = workspace_root().join("adapters").join(adapter).join("known-failures.yaml");
        problems.extend(contradictions(adapter, table, &list, scenarios)?);
    }
    Ok(problems)
}

fn contradictions(
    adapter: &str,
    table: &str,
    list: &Path,
    scenarios: &[Scenario],
) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    let entries = KnownFailures::load(list)?.entries;
    let told = number_before(table, Verdict::KnownFailure.as_str()).unwrap_or(0);
    if told != entries.len() {
        problems.push(format!("{adapter}: the table has {told} known failures, the list {}", entries.len()));
    }
    for entry in &entries {
        let Some(scenario) = scenarios.iter().find(|s| s.id == entry.scenario) else { continue };
        let passes = |item: &&String| {
            table.lines().any(|l| l.starts_with(&format!("| {item} |")) && l.ends_with("| passes |"))
        };
        if let Some(item) = scenario.checklist.iter().find(passes) {
            problems.push(format!(
                "{adapter}: {item} passes in the table, and {} is on the list",
                entry.scenario
            ));
        }
    }
    Ok(problems)
}

/// The number that stands before a word in the first sentence of a table.
fn number_before(table: &str, word: &str) -> Option<usize> {
    let sentence = table.trim_start().lines().next()?;
    let (before, _) = sentence.split_once(&format!(" {word}"))?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n<!-- conformance of a -->\nold\n<!-- end of conformance -->\nprose\n";

    #[test]
    fn a_table_replaces_the_one_before_and_nothing_else() {
        let once = with_table(PAGE, "a", "new\n").unwrap();
        assert_eq!(once, "# A\n<!-- conformance of a -->\n\nnew\n\n<!-- end of conformance -->\nprose\n");
        assert_eq!(with_table(&once, "a", "new\n").unwrap(), once);
        assert_eq!(with_table(PAGE, "b", "new\n"), None);
        assert_eq!(adapters(PAGE).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn a_list_that_changed_since_makes_the_table_stale() {
        let scenarios = stc_runner::suite::Suite::embedded().unwrap().scenarios;
        let dir = workspace_root().join("target/sdk-page-test");
        fs::create_dir_all(&dir).unwrap();
        let list = dir.join("list.yaml");
        fs::write(&list, "- { scenario: C2-keyless-round-robin, reason: x, message: y }\n").unwrap();
        let stale = |table: &str| contradictions("a", table, &list, &scenarios).unwrap();
        let fits = "\n\nFrom a run: 3 scenarios, 2 pass, 1 known failure, 4 left out.\n\n| C2 | t | 1/2 | 1/2 | known failure |\n";
        assert_eq!(stale(fits), Vec::<String>::new());
        let other = fits.replace("1 known", "2 known");
        assert_eq!(stale(&other), ["a: the table has 2 known failures, the list 1"]);
        let passes = fits.replace("| known failure |", "| passes |");
        assert_eq!(stale(&passes), ["a: C2 passes in the table, and C2-keyless-round-robin is on the list"]);
    }

    #[test]
    fn the_tables_of_the_pages_fit_the_lists_of_known_failures() {
        let scenarios = stc_runner::suite::Suite::embedded().unwrap().scenarios;
        let mut tables = 0;
        for page in pages().unwrap() {
            let text = fs::read_to_string(&page).unwrap();
            tables += adapters(&text).count();
            let problems = stale(&text, &scenarios).unwrap();
            assert!(
                problems.is_empty(),
                "{}: {problems:#?}; `cargo xtask conformance --client NAME`, then `cargo xtask sdk-page NAME --report \
                 target/stc-reports/report.json` writes it anew",
                page.display()
            );
        }
        assert_eq!(tables, 2, "a page lost its table");
    }
}
