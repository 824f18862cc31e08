//! CTRF, badge and JUnit XML against their schemas.

use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Value, json};
use stc_reports::{
    Chance, ExitCode, Report, ScenarioResult, Verdict, WireRecord, badge, ctrf, html, junit, markdown,
    terminal,
};

use crate::sample;

fn reports() -> Vec<Report> {
    let mut unreadable = sample::full();
    unreadable.started_at = "yesterday".to_owned();
    let mut stale = sample::full();
    stale.stale_known_failures.push(sample::stale());
    let mut all = vec![sample::full(), sample::report(Vec::new()), unreadable, stale];
    all.extend(Verdict::ALL.map(|verdict| sample::report(vec![sample::scenario("s", verdict)])));
    all
}

fn errors(validator: &jsonschema::Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|e| format!("{e} at {}", e.instance_path())).collect()
}

#[test]
fn ctrf_is_what_its_schema_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas/ctrf-schema-0.0.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for report in reports() {
        let document: Value = serde_json::from_str(&ctrf::render(&report).unwrap()).unwrap();
        assert_eq!(errors(&validator, &document), Vec::<String>::new());
        let summary = &document["results"]["summary"];
        let sum: u64 = ["passed", "failed", "skipped", "pending", "other"]
            .iter()
            .map(|status| summary[status].as_u64().unwrap())
            .sum();
        assert_eq!(sum, summary["tests"].as_u64().unwrap());
        let tests = document["results"]["tests"].as_array().unwrap();
        assert_eq!(tests.len(), report.scenarios.len());
        for status in ["passed", "failed", "skipped", "other"] {
            let counted = tests.iter().filter(|t| t["status"] == status).count();
            assert_eq!(summary[status], counted, "{status}");
        }
    }
    let mut document: Value = serde_json::from_str(&ctrf::render(&sample::full()).unwrap()).unwrap();
    document["results"]["tests"][0]["status"] = json!("known failure");
    assert_eq!(errors(&validator, &document).len(), 1, "the schema refuses nothing");
}

#[test]
fn ctrf_statuses() {
    let cases = [
        (Verdict::Pass, "passed"),
        (Verdict::Fail, "failed"),
        (Verdict::KnownFailure, "other"),
        (Verdict::Unsupported, "skipped"),
        (Verdict::CouldNotRun, "other"),
        (Verdict::HarnessError, "failed"),
    ];
    assert_eq!(cases.map(|(verdict, _)| verdict), Verdict::ALL);
    for (verdict, status) in cases {
        let report = sample::report(vec![sample::citing("s", verdict, &["dead-letter"], &[])]);
        let document: Value = serde_json::from_str(&ctrf::render(&report).unwrap()).unwrap();
        assert_eq!(document["results"]["tests"][0]["status"], status, "{verdict}");
    }
}

/// What <https://shields.io/badges/endpoint-badge> reads.
fn badge_schema() -> Value {
    json!({
        "type": "object",
        "required": ["schemaVersion", "label", "message"],
        "additionalProperties": false,
        "properties": {
            "schemaVersion": { "const": 1 },
            "label": { "type": "string" },
            "message": { "type": "string", "minLength": 1 },
            "color": { "type": "string" },
            "labelColor": { "type": "string" },
            "isError": { "type": "boolean" },
            "namedLogo": { "type": "string" },
            "logoSvg": { "type": "string" },
            "logoColor": { "type": "string" },
            "style": { "type": "string" },
            "cacheSeconds": { "type": "integer" },
        },
    })
}

#[test]
fn badges() {
    let validator = jsonschema::validator_for(&badge_schema()).unwrap();
    let badge = |report: &Report| -> (String, String, bool) {
        let document: Value = serde_json::from_str(&badge::render(report).unwrap()).unwrap();
        assert_eq!(errors(&validator, &document), Vec::<String>::new());
        let text = |name: &str| document[name].as_str().unwrap().to_owned();
        (text("message"), text("color"), document["isError"].as_bool().unwrap())
    };
    let one = |verdict| sample::report(vec![sample::scenario("s", verdict)]);
    assert_eq!(badge(&one(Verdict::Pass)), ("conforms, 1 of 1".to_owned(), "brightgreen".to_owned(), false));
    assert_eq!(badge(&one(Verdict::Fail)), ("0 of 1 items".to_owned(), "red".to_owned(), false));
    assert_eq!(badge(&one(Verdict::HarnessError)), ("not judged".to_owned(), "lightgrey".to_owned(), true));
    assert_eq!(badge(&sample::report(Vec::new())), ("not run".to_owned(), "lightgrey".to_owned(), true));
    let part = Report { filtered: true, ..one(Verdict::Pass) };
    assert_eq!(badge(&part).0, "partly run, conforms, 1 of 1");
}

type Element = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// Element, the elements that it may be in, attributes that it must have, attributes that it may have: the common core
/// of the JUnit schemas in use, with `file` and `line` as pytest and others write them.
const JUNIT: [Element; 10] = [
    (
        "testsuites",
        &[""],
        &["name", "tests", "failures", "errors"],
        &["time", "timestamp", "uuid", "skipped"],
    ),
    (
        "testsuite",
        &["testsuites"],
        &["name", "tests", "skipped", "errors", "failures"],
        &["time", "timestamp"],
    ),
    ("properties", &["testsuite", "testcase"], &[], &[]),
    ("property", &["properties"], &["name", "value"], &[]),
    ("testcase", &["testsuite"], &["name", "classname"], &["time", "timestamp", "file", "line"]),
    ("failure", &["testcase"], &["message", "type"], &[]),
    ("error", &["testcase"], &["message", "type"], &[]),
    ("skipped", &["testcase"], &["message", "type"], &[]),
    ("system-out", &["testcase"], &[], &[]),
    ("system-err", &["testcase"], &[], &[]),
];

/// Checks an element and returns its name.
fn junit_element(element: &BytesStart<'_>, parent: &str) -> String {
    let name = String::from_utf8(element.name().as_ref().to_vec()).unwrap();
    let (_, parents, required, optional) =
        JUNIT.iter().find(|(known, ..)| *known == name).unwrap_or_else(|| panic!("unknown element {name}"));
    assert!(parents.contains(&parent), "{name} in {parent:?}");
    let attributes: Vec<String> =
        element.attributes().map(|a| String::from_utf8(a.unwrap().key.as_ref().to_vec()).unwrap()).collect();
    for attribute in *required {
        assert!(attributes.iter().any(|a| a == attribute), "{name} has no {attribute}: {attributes:?}");
    }
    for attribute in &attributes {
        assert!(
            required.contains(&attribute.as_str()) || optional.contains(&attribute.as_str()),
            "{name} has {attribute}"
        );
    }
    name
}

#[test]
fn junit_has_the_elements_and_attributes_that_readers_know() {
    for report in reports() {
        let xml = junit::render(&report).unwrap();
        let mut reader = Reader::from_str(&xml);
        let mut open: Vec<String> = Vec::new();
        let mut cases = 0;
        loop {
            let parent = open.last().cloned().unwrap_or_default();
            match reader.read_event().unwrap() {
                Event::Start(element) => open.push(junit_element(&element, &parent)),
                Event::Empty(element) => drop(junit_element(&element, &parent)),
                Event::End(_) => cases += usize::from(open.pop().unwrap() == "testcase"),
                Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(cases, report.scenarios.len() + report.stale_known_failures.len());
    }
}

#[test]
fn every_report_tells_a_failure_by_chance_from_a_sure_one() {
    let chance = |id: &str, chance: Chance| ScenarioResult {
        by_chance: Some(chance),
        reason: Some("a race inside the client".to_owned()),
        ..sample::citing(id, Verdict::KnownFailure, &["C1"], &[])
    };
    let report = sample::report(vec![
        chance("C1-hangs", Chance::Failed),
        chance("C1-held", Chance::Passed),
        sample::citing("C1-sure", Verdict::KnownFailure, &["C1"], &[]),
    ]);
    let counts = report.counts();
    assert_eq!((counts.total, counts.known_failure, counts.by_chance), (3, 3, 2));
    assert_eq!(report.exit_code(), ExitCode::Conforms);
    let said = "2 of the known failures come by chance: 1 failed, 1 passed this time";
    let text = terminal::render(&report, &terminal::Options::default());
    assert!(text.contains(said), "{text}");
    assert!(text.contains("C1 is a known failure by chance, and passed this time"), "{text}");
    let page = html::render(&[&report]).unwrap();
    assert!(page.contains(said) && page.contains("by chance, and passed this time"), "{page}");
    let comment = markdown::render(&report);
    assert!(comment.contains(said) && comment.contains("by chance, and passed this time"), "{comment}");
    let suites = junit::render(&report).unwrap();
    assert!(
        suites.contains("known failure by chance (passed this time): a race inside the client"),
        "{suites}"
    );
    assert_eq!(suites.matches("name=\"by-chance\"").count(), 2, "{suites}");
    let tests: Value = serde_json::from_str(&ctrf::render(&report).unwrap()).unwrap();
    let came = |n: usize| tests["results"]["tests"][n]["extra"]["byChance"].clone();
    assert_eq!([came(0), came(1), came(2)], [json!("failed"), json!("passed"), Value::Null]);
    assert_eq!(stc_reports::json::read(&stc_reports::json::render(&report).unwrap()).unwrap(), report);
}

#[test]
fn the_record_that_decided_the_verdict_is_always_among_the_lines() {
    let mut scenario = sample::full().scenarios.into_iter().find(|s| s.id == "C2-keyed").unwrap();
    let send = scenario.transcript.last().unwrap().clone();
    scenario.transcript.extend((4..104).map(|n| WireRecord { n, name: "PING".to_owned(), ..send.clone() }));
    let report = sample::report(vec![scenario]);
    let text = terminal::render(&report, &terminal::Options::default());
    let comment = markdown::render(&report);
    for text in [&text, &comment] {
        let decisive = text.lines().position(|line| line.trim().starts_with("wire")).unwrap_or(0);
        let lines: Vec<&str> = text.lines().skip(decisive).collect();
        let marked =
            lines.iter().position(|line| line.trim_start().starts_with("* ") && line.contains("SEND"));
        let marked = marked.unwrap_or_else(|| panic!("{text}"));
        assert!(lines[marked - 1].contains("(2 lines before this: see report.json)"), "{text}");
        assert!(lines[marked + 1].contains("(60 lines between)"), "{text}");
        assert_eq!(text.matches("PING").count(), 40, "{text}");
        assert!(text.contains("(* decided the verdict)"), "{text}");
    }
    assert!(junit::render(&report).unwrap().contains("\n* 0.001 b0 c1 &gt; SEND"));
}
