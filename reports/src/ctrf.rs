//! The report in the Common Test Report Format (CTRF, version 0.0): one test for each scenario.
//!
//! | Verdict | `status` |
//! |---|---|
//! | pass | `passed` |
//! | fail, unsupported where it is required, harness error | `failed` |
//! | unsupported where it is optional | `skipped` |
//! | known failure, a broken SHOULD, could not run | `other` |
//!
//! `rawStatus` has the verdict itself. Times of single scenarios are durations only; the run has its start and end.

use chrono::DateTime;
use serde_json::{Value as Json, json};

use crate::model::{Report, ScenarioResult, StepResult, StepStatus};
use crate::score::Score;
use crate::summary;
use crate::text::{visible, wire};
use crate::verdict::Verdict;

/// Renders the report as indented CTRF JSON.
///
/// # Errors
/// Never for a report of this crate: nothing in it has a map key or a number that JSON lacks.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let start = started(report);
    let statuses: Vec<&str> = report.scenarios.iter().map(|s| status(report, s)).collect();
    let count = |wanted: &str| statuses.iter().filter(|s| **s == wanted).count();
    let tests: Vec<Json> =
        report.scenarios.iter().zip(&statuses).map(|(s, st)| test(report, s, st)).collect();
    let mut document = json!({
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "generatedBy": visible(&report.tool.name),
        "results": {
            "tool": { "name": visible(&report.tool.name), "version": visible(&report.tool.version) },
            "summary": {
                "tests": statuses.len(),
                "passed": count("passed"),
                "failed": count("failed"),
                "skipped": count("skipped"),
                "pending": 0,
                "other": count("other"),
                "start": start,
                "stop": start.saturating_add(report.duration_ms),
                "duration": report.duration_ms,
                "extra": {
                    "outcome": summary::outcome(report),
                    "exitCode": report.exit_code().code(),
                    "score": Score::of(report).to_string(),
                },
            },
            "tests": tests,
            "environment": {
                "appName": visible(&report.client.name),
                "appVersion": visible(&report.client.version),
                "testEnvironment": format!("{}, profile {}", report.target.kind.as_str(), visible(&report.profile)),
                "extra": {
                    "suite": visible(&report.suite.version),
                    "seed": report.seed.to_string(),
                    "command": visible(&report.command),
                },
            },
        },
    });
    // A time that cannot be read is left out rather than invented.
    if DateTime::parse_from_rfc3339(&report.started_at).is_ok()
        && let Some(document) = document.as_object_mut()
    {
        document.insert("timestamp".to_owned(), report.started_at.as_str().into());
    }
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// When the run started, in milliseconds since 1970; 0 when that cannot be read, for the format insists on a number.
fn started(report: &Report) -> u64 {
    DateTime::parse_from_rfc3339(&report.started_at)
        .ok()
        .and_then(|time| u64::try_from(time.timestamp_millis()).ok())
        .unwrap_or(0)
}

fn status(report: &Report, scenario: &ScenarioResult) -> &'static str {
    match scenario.verdict {
        Verdict::Pass => "passed",
        Verdict::HarnessError => "failed",
        _ if report.counts_against(scenario) => "failed",
        Verdict::Unsupported => "skipped",
        Verdict::Fail | Verdict::KnownFailure | Verdict::CouldNotRun => "other",
    }
}

fn test(report: &Report, scenario: &ScenarioResult, status: &str) -> Json {
    let mut test = json!({
        "name": visible(&format!("{}: {}", scenario.id, scenario.name)),
        "status": status,
        "rawStatus": scenario.verdict.as_str(),
        "duration": scenario.duration_ms,
        "suite": [visible(&scenario.feature)],
        "filePath": visible(&scenario.feature),
        "line": scenario.line,
        "tags": texts(&scenario.tags),
        "steps": scenario.steps.iter().map(step).collect::<Vec<_>>(),
        "extra": {
            "id": visible(&scenario.id),
            "checklist": texts(&scenario.checklist),
            "requirements": texts(&scenario.requirements),
            "replay": visible(&scenario.replay),
        },
    });
    let Some(fields) = test.as_object_mut() else { return test };
    if scenario.verdict != Verdict::Pass {
        fields.insert("message".to_owned(), visible(&summary::headline(report, scenario)).into());
    }
    if let (Some(chance), Some(extra)) =
        (scenario.by_chance, fields.get_mut("extra").and_then(Json::as_object_mut))
    {
        extra.insert("byChance".to_owned(), chance.as_str().into());
    }
    if let Some(failure) = &scenario.failure {
        fields.insert("trace".to_owned(), visible(&format!("{}\n{}", failure.step, failure.location)).into());
    }
    let wire = wire(scenario);
    for (name, lines) in [("stdout", wire.as_slice()), ("stderr", scenario.stderr_tail.as_slice())] {
        if !lines.is_empty() {
            fields.insert(name.to_owned(), texts(lines));
        }
    }
    test
}

fn texts(texts: &[String]) -> Json {
    texts.iter().map(|text| Json::from(visible(text))).collect()
}

fn step(step: &StepResult) -> Json {
    let status = match step.status {
        StepStatus::Passed => "passed",
        StepStatus::Failed => "failed",
        StepStatus::Skipped => "skipped",
    };
    json!({ "name": visible(&format!("{} {}", step.keyword, step.text)), "status": status })
}
