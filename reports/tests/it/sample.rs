//! Reports to test with.

use serde_json::json;
use stc_reports::{
    ChecklistItem, ClientInfo, Failure, LeftOut, Level, Report, RequirementResult, RequirementStatus,
    ScenarioResult, StaleKnownFailure, StepResult, StepStatus, SuiteInfo, Target, TargetKind, Tool, Verdict,
    WireKind, WireRecord,
};

/// A scenario of item C1 that cites nothing and has the given verdict.
pub(crate) fn scenario(id: &str, verdict: Verdict) -> ScenarioResult {
    ScenarioResult {
        id: id.to_owned(),
        name: format!("Scenario {id}"),
        feature: "c1-layout.feature".to_owned(),
        line: 7,
        tags: vec!["@C1".to_owned()],
        checklist: vec!["C1".to_owned()],
        requirements: Vec::new(),
        verdict,
        reason: None,
        by_chance: None,
        duration_ms: 3,
        steps: Vec::new(),
        failure: None,
        transcript: Vec::new(),
        stderr_tail: Vec::new(),
        replay: format!("cargo xtask conformance --target memory --scenario {id} --seed 42"),
    }
}

/// A report of these scenarios and nothing else.
pub(crate) fn report(scenarios: Vec<ScenarioResult>) -> Report {
    Report {
        tool: Tool { name: "stc".to_owned(), version: "0.1.0".to_owned() },
        suite: SuiteInfo { version: "1.2.3".to_owned(), specification: "1.0".to_owned() },
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        seed: 42,
        profile: "spec-1.0".to_owned(),
        target: Target { kind: TargetKind::Memory, service_url: None, admin_url: None },
        client: ClientInfo { name: "reference".to_owned(), version: "0.1.0".to_owned() },
        duration_ms: 1234,
        filtered: false,
        command: "cargo xtask conformance --seed 42".to_owned(),
        checklist: vec![
            item("C1", "Layout tracking by epoch", true),
            item("C2", "Producer routing", true),
            item("C5", "Deduplication by sequence id", true),
            item("dead-letter", "Dead letters of a queue consumer", false),
        ],
        scenarios,
        left_out: Vec::new(),
        requirements: Vec::new(),
        stale_known_failures: Vec::new(),
    }
}

/// A report with every verdict and every requirement status.
pub(crate) fn full() -> Report {
    let mut report = report(vec![
        citing("C1-newer-epoch", Verdict::Pass, &["C1"], &["IMPL-1.1"]),
        known(),
        failing(),
        citing("C2-keyless", Verdict::Pass, &["C2"], &["IMPL-2.3", "IMPL-2.4"]),
        unsupported(),
        could_not_run(),
        harness_error(),
    ]);
    report.left_out = vec![
        left_out("C1-push-lost", "needs faults, and a broker elsewhere has no control API"),
        left_out("C2-stale-route", "needs faults, and a broker elsewhere has no control API"),
    ];
    report.requirements = vec![
        requirement(&report, "IMPL-1.1", "C1", &["C1-newer-epoch"], None),
        requirement(&report, "IMPL-1.2", "C1", &["C1-equal-epoch"], None),
        requirement(&report, "IMPL-2.1", "C2", &["C2-keyed"], None),
        requirement(&report, "IMPL-2.2", "C2", &["C2-keyed"], None),
        requirement(&report, "IMPL-2.3", "C2", &["C2-keyless"], Some("deviant keyless-to-first survives")),
        requirement(&report, "IMPL-2.4", "C2", &["C2-keyless", "C2-spread"], None),
        requirement(&report, "API-3.9", "C5", &[], None),
        requirement(&report, "API-4.7", "dead-letter", &["C8-dead-letter"], None),
    ];
    report
}

/// An entry of a stale known-failures list.
pub(crate) fn stale() -> StaleKnownFailure {
    StaleKnownFailure {
        scenario: "C1-newer-epoch".to_owned(),
        problem: "it is listed, and it passes".to_owned(),
    }
}

/// A requirement with its status derived from the scenarios of `report`.
pub(crate) fn requirement(
    report: &Report,
    id: &str,
    checklist: &str,
    cited_by: &[&str],
    unproven: Option<&str>,
) -> RequirementResult {
    let scenarios: Vec<String> = cited_by.iter().map(|s| (*s).to_owned()).collect();
    RequirementResult {
        id: id.to_owned(),
        level: Level::Must,
        checklist: checklist.to_owned(),
        binds: "client".to_owned(),
        section: "client-behavior §2".to_owned(),
        summary: format!("What {id} asks for."),
        status: RequirementStatus::derive(id, &scenarios, &report.scenarios, unproven),
        scenarios,
    }
}

/// A scenario with its items and requirements.
pub(crate) fn citing(
    id: &str,
    verdict: Verdict,
    checklist: &[&str],
    requirements: &[&str],
) -> ScenarioResult {
    let owned = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect();
    ScenarioResult { checklist: owned(checklist), requirements: owned(requirements), ..scenario(id, verdict) }
}

/// A failure that blames `requirement`.
pub(crate) fn failure(message: &str, requirement: Option<&str>) -> Failure {
    Failure {
        step: "Then every message is in the segment that covers its key".to_owned(),
        message: message.to_owned(),
        requirement: requirement.map(str::to_owned),
        location: "c2-routing.feature:19".to_owned(),
        record: None,
    }
}

fn item(id: &str, title: &str, required: bool) -> ChecklistItem {
    ChecklistItem { id: id.to_owned(), title: title.to_owned(), required }
}

fn left_out(scenario: &str, reason: &str) -> LeftOut {
    LeftOut { scenario: scenario.to_owned(), reason: reason.to_owned() }
}

fn step(keyword: &str, text: &str, line: usize, status: StepStatus) -> StepResult {
    StepResult { keyword: keyword.to_owned(), text: text.to_owned(), line, status, wire: None }
}

/// A frame between the client and a broker.
pub(crate) fn frame(n: u64, name: &str, from: &str, to: &str, fields: serde_json::Value) -> WireRecord {
    WireRecord {
        n,
        t_ms: n / 3,
        kind: WireKind::Frame,
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        broker: Some(0),
        conn: Some(1),
        fields: fields.as_object().cloned().unwrap_or_default(),
        entry: None,
    }
}

fn failing() -> ScenarioResult {
    ScenarioResult {
        name: "A keyed message goes to the segment that covers its hash".to_owned(),
        feature: "c2-routing.feature".to_owned(),
        line: 14,
        steps: vec![
            StepResult { wire: Some(2), ..step("Given", "a topic with 4 segments", 15, StepStatus::Passed) },
            StepResult {
                wire: Some(3),
                ..step("Then", "every message is in the segment that covers its key", 19, StepStatus::Failed)
            },
            step("And", "nothing was sent twice", 20, StepStatus::Skipped),
        ],
        failure: Some(Failure {
            record: Some(3),
            ..failure("key \"鍵\" (hash 0x9a3c) went to segment 1, segment 2 covers it", Some("IMPL-2.1"))
        }),
        transcript: vec![
            frame(1, "CONNECT", "client", "broker 0", json!({ "client_version": "reference-0.1.0" })),
            frame(2, "CONNECTED", "broker 0", "client", json!({ "server_version": "sim" })),
            WireRecord {
                entry: json!({
                    "metadata": { "partition_key": "鍵", "producer_name": "p" },
                    "payload_len": 3,
                    "payload_hex": "6d2d30",
                })
                .as_object()
                .cloned(),
                ..frame(3, "SEND", "client", "broker 0", json!({ "producer_id": 3, "sequence_id": u64::MAX }))
            },
        ],
        stderr_tail: vec!["WARN route: fell back to the first segment".to_owned()],
        ..citing("C2-keyed", Verdict::Fail, &["C2"], &["IMPL-2.1", "IMPL-2.2"])
    }
}

fn known() -> ScenarioResult {
    ScenarioResult {
        reason: Some("waits for the next release of the client".to_owned()),
        failure: Some(failure("the layout of an equal epoch was applied", Some("IMPL-1.2"))),
        ..citing("C1-equal-epoch", Verdict::KnownFailure, &["C1"], &["IMPL-1.2"])
    }
}

fn unsupported() -> ScenarioResult {
    ScenarioResult {
        feature: "c8-queue.feature".to_owned(),
        reason: Some("the client does not offer dead letters".to_owned()),
        ..citing("C8-dead-letter", Verdict::Unsupported, &["dead-letter"], &["API-4.7"])
    }
}

fn could_not_run() -> ScenarioResult {
    ScenarioResult {
        reason: Some("no free port for a third broker".to_owned()),
        ..citing("C1-three-brokers", Verdict::CouldNotRun, &["C1"], &["IMPL-1.1"])
    }
}

fn harness_error() -> ScenarioResult {
    ScenarioResult {
        failure: Some(failure("no step matches \"Then the moon is full\"", None)),
        ..citing("C1-moon", Verdict::HarnessError, &["C1"], &[])
    }
}
