//! The report as JUnit XML: one suite for each feature file, one test case for each scenario.
//!
//! | Verdict | Element |
//! |---|---|
//! | pass | none |
//! | fail, and unsupported where it is required | `failure` |
//! | known failure, unsupported, could not run | `skipped` with the reason |
//! | harness error | `error` |
//!
//! JUnit cannot say more than that; the exit code and `report.json` do.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, SerializeError, TestCase, TestCaseStatus, TestSuite, XmlString};

use crate::model::{Report, ScenarioResult};
use crate::summary;
use crate::text::{one_line, visible, wire};
use crate::verdict::Verdict;

/// Name of the suite that holds the entries of a stale known-failures list.
const STALE_SUITE: &str = "known-failures list";

/// Renders the report as JUnit XML.
///
/// # Errors
/// Never in practice: it is written into memory.
pub fn render(report: &Report) -> Result<String, SerializeError> {
    let mut junit = quick_junit::Report::new(line(&report.tool.name));
    junit.set_time(Duration::from_millis(report.duration_ms));
    // A start time that cannot be read is left out rather than invented.
    junit.timestamp = report.started_at.parse().ok();
    for feature in features(report) {
        junit.add_test_suite(suite(report, feature));
    }
    if !report.stale_known_failures.is_empty() {
        junit.add_test_suite(stale_suite(report));
    }
    junit.to_string()
}

/// The feature files in the order of their first scenario.
fn features(report: &Report) -> Vec<&str> {
    let mut features: Vec<&str> = Vec::new();
    for scenario in &report.scenarios {
        if !features.contains(&scenario.feature.as_str()) {
            features.push(&scenario.feature);
        }
    }
    features
}

fn suite(report: &Report, feature: &str) -> TestSuite {
    let scenarios = || report.scenarios.iter().filter(|s| s.feature == feature);
    let mut suite = TestSuite::new(line(feature));
    suite.timestamp = report.started_at.parse().ok();
    suite.set_time(Duration::from_millis(scenarios().map(|s| s.duration_ms).fold(0, u64::saturating_add)));
    let client = format!("{} {}", report.client.name, report.client.version);
    let properties = [
        ("client", client.as_str()),
        ("target", report.target.kind.as_str()),
        ("profile", &report.profile),
        ("suite", &report.suite.version),
        ("seed", &report.seed.to_string()),
        ("command", &report.command),
    ];
    for (name, value) in properties {
        suite.add_property(Property::new(name, line(value)));
    }
    for scenario in scenarios() {
        suite.add_test_case(case(report, scenario));
    }
    suite
}

fn case(report: &Report, scenario: &ScenarioResult) -> TestCase {
    let name = format!("{}: {}", scenario.id, scenario.name);
    let mut case = TestCase::new(line(&name), status(report, scenario));
    case.set_classname(line(scenario.feature.trim_end_matches(".feature")));
    case.set_time(Duration::from_millis(scenario.duration_ms));
    case.extra.insert("file".into(), line(&scenario.feature));
    case.extra.insert("line".into(), scenario.line.to_string().into());
    case.add_property(("verdict", scenario.verdict.as_str()));
    if let Some(chance) = scenario.by_chance {
        case.add_property(("by-chance", chance.as_str()));
    }
    for item in &scenario.checklist {
        case.add_property(Property::new("checklist", line(item)));
    }
    for id in &scenario.requirements {
        case.add_property(Property::new("requirement", line(id)));
    }
    case.add_property(Property::new("replay", line(&scenario.replay)));
    if !scenario.transcript.is_empty() {
        case.set_system_out(block(&wire(scenario)));
    }
    if !scenario.stderr_tail.is_empty() {
        case.set_system_err(block(&scenario.stderr_tail));
    }
    case
}

fn status(report: &Report, scenario: &ScenarioResult) -> TestCaseStatus {
    let headline = summary::headline(report, scenario);
    let mut status = match scenario.verdict {
        Verdict::Pass => return TestCaseStatus::success(),
        Verdict::HarnessError => TestCaseStatus::non_success(NonSuccessKind::Error),
        _ if report.counts_against(scenario) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        _ => TestCaseStatus::skipped(),
    };
    let message = match (scenario.verdict, &scenario.reason) {
        (Verdict::KnownFailure, Some(reason)) => match scenario.by_chance {
            Some(chance) => format!("known failure by chance ({} this time): {reason}", chance.as_str()),
            None => format!("known failure: {reason}"),
        },
        _ => headline.clone(),
    };
    status.set_message(line(&message));
    status.set_type(scenario.verdict.as_str());
    let mut description = visible(&headline).into_owned();
    if let Some(failure) = &scenario.failure {
        description.push_str(&format!(
            "\nstep: {}\nat: {}",
            one_line(&failure.step),
            one_line(&failure.location)
        ));
    }
    description.push_str(&format!("\nreplay: {}", one_line(&scenario.replay)));
    status.set_description(description);
    status
}

fn stale_suite(report: &Report) -> TestSuite {
    let mut suite = TestSuite::new(STALE_SUITE);
    suite.add_test_cases(report.stale_known_failures.iter().map(|stale| {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(line(&stale.problem)).set_type("stale");
        let mut case = TestCase::new(line(&stale.scenario), status);
        case.set_classname(STALE_SUITE);
        case
    }));
    suite
}

/// Text for an attribute, where XML would turn a newline into a space anyway.
///
/// Control characters are made visible *before* quick-junit sees the text: it would drop them, and with an unfinished
/// escape sequence everything after it.
fn line(text: &str) -> XmlString {
    XmlString::new(one_line(text))
}

fn block(lines: &[String]) -> XmlString {
    let lines: Vec<String> = lines.iter().map(|l| one_line(l)).collect();
    XmlString::new(lines.join("\n"))
}
