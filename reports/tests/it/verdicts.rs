//! Counts and exit codes.

use stc_reports::{Counts, ExitCode, Level, ScenarioResult, Verdict, summary};

use crate::sample::{self, citing, report, scenario, stale};

/// Every way to give three scenarios a verdict each.
fn all_triples() -> impl Iterator<Item = [Verdict; 3]> {
    let all = Verdict::ALL;
    all.into_iter()
        .flat_map(move |a| all.into_iter().flat_map(move |b| all.into_iter().map(move |c| [a, b, c])))
}

/// Optional scenarios, so that `unsupported` does not count against the client.
fn optional(verdicts: &[Verdict]) -> Vec<ScenarioResult> {
    verdicts.iter().enumerate().map(|(n, v)| citing(&format!("s{n}"), *v, &["dead-letter"], &[])).collect()
}

#[test]
fn counts_add_up_to_the_total() {
    for verdicts in all_triples() {
        let counts = Counts::of(verdicts);
        assert_eq!(counts.total, 3);
        assert_eq!(Verdict::ALL.iter().map(|v| counts.get(*v)).sum::<usize>(), counts.total, "{verdicts:?}");
        for verdict in Verdict::ALL {
            assert_eq!(
                counts.get(verdict),
                verdicts.iter().filter(|v| **v == verdict).count(),
                "{verdicts:?}"
            );
        }
    }
}

#[test]
fn each_verdict_alone_has_its_exit_code() {
    let expected = [
        (Verdict::Pass, ExitCode::Conforms),
        (Verdict::Fail, ExitCode::DoesNotConform),
        (Verdict::KnownFailure, ExitCode::Conforms),
        (Verdict::Unsupported, ExitCode::Conforms),
        (Verdict::CouldNotRun, ExitCode::Harness),
        (Verdict::HarnessError, ExitCode::Harness),
    ];
    assert_eq!(expected.map(|(v, _)| v), Verdict::ALL);
    for (verdict, code) in expected {
        assert_eq!(report(optional(&[verdict])).exit_code(), code, "{verdict}");
        assert_eq!(report(optional(&[Verdict::Pass, verdict])).exit_code(), code, "pass and {verdict}");
    }
}

#[test]
fn the_exit_code_ignores_order_and_a_failure_outweighs_what_was_not_judged() {
    for verdicts in all_triples() {
        let has = |v| verdicts.contains(&v);
        let expected = match () {
            () if has(Verdict::Fail) => ExitCode::DoesNotConform,
            () if has(Verdict::CouldNotRun) || has(Verdict::HarnessError) => ExitCode::Harness,
            () => ExitCode::Conforms,
        };
        assert_eq!(report(optional(&verdicts)).exit_code(), expected, "{verdicts:?}");
    }
}

#[test]
fn the_numbers_of_the_exit_codes_are_the_interface() {
    let codes = [ExitCode::Conforms, ExitCode::DoesNotConform, ExitCode::Usage, ExitCode::Harness];
    assert_eq!(codes.map(ExitCode::code), [0, 1, 2, 3]);
}

#[test]
fn a_run_of_nothing_is_no_success() {
    assert_eq!(report(Vec::new()).exit_code(), ExitCode::Usage);
}

#[test]
fn unsupported_counts_against_the_client_only_in_the_required_core() {
    let cases: [(&[&str], bool); 5] = [
        (&["C1"], true),
        (&["dead-letter"], false),
        (&["C1", "dead-letter"], false),
        (&["C99"], true),
        (&[], true),
    ];
    for (items, against) in cases {
        let report =
            report(vec![citing("s", Verdict::Unsupported, items, &[]), scenario("t", Verdict::Pass)]);
        assert_eq!(report.counts_against(&report.scenarios[0]), against, "{items:?}");
        assert_eq!(report.exit_code() == ExitCode::DoesNotConform, against, "{items:?}");
    }
}

#[test]
fn a_stale_known_failures_list_fails_the_run() {
    let mut report = report(vec![scenario("s", Verdict::Pass)]);
    report.stale_known_failures.push(stale());
    assert_eq!(report.exit_code(), ExitCode::DoesNotConform);
}

#[test]
fn headlines_name_item_requirement_and_message() {
    let report = sample::full();
    let headline = |id: &str| {
        let scenario = report.scenarios.iter().find(|s| s.id == id).unwrap();
        summary::headline(&report, scenario)
    };
    assert_eq!(
        headline("C2-keyed"),
        "C2 fails, IMPL-2.1: key \"鍵\" (hash 0x9a3c) went to segment 1, segment 2 covers it"
    );
    assert_eq!(
        headline("C1-equal-epoch"),
        "C1 is a known failure, IMPL-1.2: the layout of an equal epoch was applied"
    );
    let mut crashed = citing("s", Verdict::Fail, &["C1", "C2"], &["IMPL-1.1", "IMPL-2.1"]);
    crashed.failure = Some(sample::failure("the client exited with code 139", None));
    assert_eq!(
        summary::headline(&report, &crashed),
        "C1/C2 fails, one of IMPL-1.1, IMPL-2.1: the client exited with code 139"
    );
}

#[test]
fn headlines_say_when_only_a_recommendation_is_broken() {
    let mut report = sample::full();
    for (level, expected) in [
        (Level::Must, "C2 fails, IMPL-2.1: no"),
        (Level::MustNot, "C2 fails, IMPL-2.1: no"),
        (Level::Should, "C2 fails, IMPL-2.1 (SHOULD): no"),
        (Level::ShouldNot, "C2 fails, IMPL-2.1 (SHOULD NOT): no"),
    ] {
        report.requirements.iter_mut().filter(|r| r.id == "IMPL-2.1").for_each(|r| r.level = level);
        let mut failing = citing("s", Verdict::Fail, &["C2"], &["IMPL-2.1"]);
        failing.failure = Some(sample::failure("no", Some("IMPL-2.1")));
        assert_eq!(summary::headline(&report, &failing), expected);
        // A broken recommendation is reported, and the client conforms all the same.
        let alone =
            stc_reports::Report { scenarios: vec![failing], stale_known_failures: vec![], ..report.clone() };
        let conforms = alone.exit_code() == ExitCode::Conforms;
        assert_eq!(conforms, !level.is_absolute());
        assert_eq!(summary::outcome(&alone).ends_with("apart from 1 broken SHOULD"), conforms);
    }
}

#[test]
fn scenarios_and_requirements_without_an_item_share_a_row() {
    let mut report = report(vec![citing("a", Verdict::Fail, &[], &["CONV-1.1"])]);
    report.requirements = vec![sample::requirement(&report, "CONV-1.1", "-", &["a"], None)];
    let rows = summary::by_checklist(&report);
    let row = rows.last().unwrap();
    assert_eq!((rows.len(), row.item.as_str(), row.scenarios, row.requirements), (5, "", 1, 1));
    assert_eq!(
        summary::headline(&report, &report.scenarios[0]),
        "a fails, CONV-1.1: no message was recorded"
    );
}

#[test]
fn the_table_leaves_nothing_out() {
    let mut report = report(vec![
        citing("a", Verdict::Pass, &["C1", "C2"], &[]),
        citing("b", Verdict::Fail, &["C2"], &[]),
        citing("c", Verdict::Pass, &["X9"], &[]),
        citing("d", Verdict::Pass, &[], &[]),
    ]);
    let rows = summary::by_checklist(&report);
    let cells: Vec<_> = rows.iter().map(|r| (r.item.as_str(), r.passed, r.scenarios, r.result())).collect();
    let expected = [
        ("C1", 1, 1, "passes"),
        ("C2", 1, 2, "fails"),
        ("C5", 0, 0, "no scenario"),
        ("dead-letter", 0, 0, "no scenario"),
        ("X9", 1, 1, "passes"),
        ("", 1, 1, "passes"),
    ];
    assert_eq!(cells, expected);
    report.filtered = true;
    let (shown, hidden) = summary::shown_rows(&report);
    assert_eq!((shown.len(), hidden), (4, 2));
}
