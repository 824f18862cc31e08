//! Lists of known failures, run options that change what runs.

use std::path::Path;
use std::sync::Arc;

use stc_reports::{Chance, ExitCode, Report, Verdict};
use stc_runner::client::reference::ReferenceFactory;
use stc_runner::known::{Entry, KnownFailures};
use stc_runner::run::{Environment, RunConfig, Trace};
use stc_runner::select::Selection;
use stc_runner::suite::{Suite, Watching};
use stc_runner::target::TargetConfig;

const SCENARIOS: [&str; 2] = ["C1-producer-watches", "C2-keyless-round-robin"];

fn suite() -> Suite {
    Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap()
}

/// A report of the two scenarios, of a profile that makes both end with this verdict and message.
fn report(suite: &Suite, failures: &[(&str, &str)]) -> Report {
    let client = Arc::new(ReferenceFactory::default());
    let config = RunConfig {
        environment: Arc::new(Environment::new(TargetConfig::Memory, "spec-1.0", client)),
        seed: 7,
        jobs: 1,
        trace: Trace::Failed,
        replay: String::new(),
    };
    let selection = Selection { scenarios: SCENARIOS.map(str::to_owned).to_vec(), ..Selection::default() };
    let mut report = suite.run(&selection, &config, String::new(), Watching::default()).unwrap();
    for (id, message) in failures {
        let result = report.scenarios.iter_mut().find(|s| s.id == *id).unwrap();
        result.verdict = Verdict::Fail;
        result.failure = Some(
            serde_json::from_value(
                serde_json::json!({ "step": "Then x", "message": message, "location": "f:1" }),
            )
            .unwrap(),
        );
    }
    report
}

fn entry(scenario: &str, message: &str) -> Entry {
    Entry {
        scenario: scenario.to_owned(),
        reason: "API-1".to_owned(),
        message: message.to_owned(),
        by_chance: false,
    }
}

fn stale(report: &Report) -> Vec<String> {
    report.stale_known_failures.iter().map(|s| format!("{}: {}", s.scenario, s.problem)).collect()
}

#[test]
fn a_list_excuses_what_it_describes_and_nothing_else() {
    let suite = suite();
    let [first, second] = SCENARIOS;
    let mut described = report(&suite, &[(first, "key 3 was lost\nand more")]);
    let known = KnownFailures { entries: vec![entry(first, "key 3 ")] };
    assert_eq!(described.exit_code(), ExitCode::DoesNotConform);
    suite.excuse(&mut described, &known);
    assert_eq!(described.exit_code(), ExitCode::Conforms);
    let result = &described.scenarios[0];
    assert_eq!((result.verdict, result.reason.as_deref()), (Verdict::KnownFailure, Some("API-1")));

    let mut otherwise = report(&suite, &[(first, "key 4 was lost"), (second, "boom")]);
    suite.excuse(&mut otherwise, &KnownFailures { entries: vec![entry(first, "key 3 "), entry("gone", "")] });
    assert_eq!(otherwise.exit_code(), ExitCode::DoesNotConform);
    assert_eq!(
        stale(&otherwise),
        [
            format!("{first}: it fails differently: key 4 was lost"),
            "gone: there is no such scenario".to_owned()
        ]
    );

    let mut passing = report(&suite, &[]);
    // An entry of a scenario that was not selected says nothing.
    let known = KnownFailures { entries: vec![entry(second, "boom"), entry("C8-receive", "x")] };
    suite.excuse(&mut passing, &known);
    assert_eq!(stale(&passing), [format!("{second}: it passes")]);
    assert_eq!(passing.exit_code(), ExitCode::DoesNotConform);

    let mut skipped = report(&suite, &[]);
    skipped.scenarios[0].verdict = Verdict::CouldNotRun;
    suite.excuse(&mut skipped, &KnownFailures { entries: vec![entry(first, "")] });
    assert_eq!(stale(&skipped), [format!("{first}: it was not judged: could not run")]);
}

#[test]
fn what_fails_by_chance_has_one_verdict_whatever_came_of_it() {
    let suite = suite();
    let [first, _] = SCENARIOS;
    let list = tempfile::NamedTempFile::new().unwrap();
    let text =
        format!("- {{ scenario: {first}, reason: a race, message: nothing happens, by-chance: true }}\n");
    std::fs::write(list.path(), &text).unwrap();
    let known = KnownFailures::load(list.path()).unwrap();
    let failing = [(first, "nothing happens any more")];
    for (failures, came) in [(&failing[..], Chance::Failed), (&[], Chance::Passed)] {
        let mut run = report(&suite, failures);
        assert_eq!(known.fixed(&run), known);
        suite.excuse(&mut run, &known);
        let result = &run.scenarios[0];
        assert_eq!((result.verdict, result.by_chance), (Verdict::KnownFailure, Some(came)));
        assert_eq!(
            (stale(&run), run.exit_code(), run.counts().by_chance),
            (Vec::new(), ExitCode::Conforms, 1)
        );
    }
    known.save(list.path()).unwrap();
    assert_eq!(std::fs::read_to_string(list.path()).unwrap(), text);
    assert_eq!(
        KnownFailures::load_unexplained(list.path()).unwrap().to_yaml().matches("by-chance: true").count(),
        1
    );

    // It excuses nothing but what it describes.
    let mut otherwise = report(&suite, &[(first, "key 4 was lost")]);
    let fixed = known.fixed(&otherwise);
    assert_eq!((fixed.entries[0].message.as_str(), fixed.entries[0].by_chance), ("key 4 was lost", true));
    suite.excuse(&mut otherwise, &known);
    assert_eq!(stale(&otherwise), [format!("{first}: it fails differently: key 4 was lost")]);
    assert_eq!(otherwise.exit_code(), ExitCode::DoesNotConform);
}

#[test]
fn a_list_excuses_what_is_not_offered() {
    let suite = suite();
    let first = SCENARIOS[0];
    let mut run = report(&suite, &[]);
    run.scenarios[0].verdict = Verdict::Unsupported;
    run.scenarios[0].reason = Some("the client does not offer maps".to_owned());
    assert_eq!(run.exit_code(), ExitCode::DoesNotConform);
    let fixed = KnownFailures::default().fixed(&run);
    assert_eq!(
        fixed.entries.iter().map(|e| e.message.as_str()).collect::<Vec<_>>(),
        ["the client does not offer maps"]
    );
    suite.excuse(&mut run, &KnownFailures { entries: vec![entry(first, "the client does not offer ")] });
    assert_eq!((stale(&run), run.exit_code()), (Vec::new(), ExitCode::Conforms));
}

#[test]
fn a_reason_of_several_lines_is_written_as_lines() {
    for reason in ["one: # two\nthree \"x\"", "a\n\nb", "a\n  b", "\ta\nb", "a\n", "- a\n- b"] {
        let list = KnownFailures { entries: vec![Entry { reason: reason.to_owned(), ..entry("A", "m") }] };
        let written = tempfile::NamedTempFile::new().unwrap();
        list.save(written.path()).unwrap();
        assert_eq!(KnownFailures::load(written.path()).unwrap(), list);
    }
    let entries = vec![Entry { reason: "one\ntwo".to_owned(), ..entry("A", "m") }];
    let yaml = "- scenario: \"A\"\n  reason: |-\n    one\n    two\n  message: \"m\"\n";
    assert_eq!(KnownFailures { entries }.to_yaml(), yaml);
}

#[test]
fn a_fixed_list_fits_the_run_and_keeps_what_people_wrote() {
    let suite = suite();
    let [first, second] = SCENARIOS;
    let mut run = report(&suite, &[(first, "key 4: \"lost\"\nmore"), (second, "boom # 1")]);
    let old = KnownFailures { entries: vec![entry(first, "key 3"), entry("C8-receive", "x")] };
    let fixed = old.fixed(&run);
    let written = tempfile::NamedTempFile::new().unwrap();
    fixed.save(written.path()).unwrap();
    let read = KnownFailures::load_unexplained(written.path()).unwrap();
    assert_eq!(read, fixed);
    assert_eq!(read.entries[0], entry(first, "key 4: \"lost\""));
    assert_eq!(read.entries[1].reason, "");
    let unexplained = KnownFailures::load(written.path()).unwrap_err().to_string();
    assert!(unexplained.contains(second) && unexplained.contains("reason"), "{unexplained}");
    let mut waiting = run.clone();
    suite.excuse(&mut waiting, &read);
    let verdicts: Vec<Verdict> = waiting.scenarios.iter().map(|s| s.verdict).collect();
    assert_eq!(verdicts, [Verdict::KnownFailure, Verdict::Fail]);
    assert_eq!(stale(&waiting), [format!("{second}: its entry waits for a reason")]);
    assert_eq!(waiting.exit_code(), ExitCode::DoesNotConform);
    let mut explained = read.clone();
    explained.entries[1].reason = "API-2".to_owned();
    suite.excuse(&mut run, &explained);
    assert_eq!((stale(&run), run.exit_code()), (Vec::new(), ExitCode::Conforms));
    // A prefix that still fits stays as somebody wrote it.
    let kept = KnownFailures { entries: vec![entry(first, "key")] };
    assert_eq!(kept.fixed(&report(&suite, &[(first, "key 5")])), kept);
    assert_eq!(KnownFailures::default().to_yaml(), "[]\n");
}

#[test]
fn a_run_can_end_with_its_first_failure() {
    let suite = suite();
    let client = Arc::new(ReferenceFactory::default());
    let config = RunConfig {
        // Nothing starts with this profile.
        environment: Arc::new(Environment::new(
            TargetConfig::Url {
                service_url: "pulsar://127.0.0.1:1".to_owned(),
                admin_url: "http://127.0.0.1:1".to_owned(),
            },
            "spec-1.0",
            client,
        )),
        seed: 7,
        jobs: 1,
        trace: Trace::Failed,
        replay: String::new(),
    };
    let selection = Selection {
        tags: Some("@C2 and not @needs-control and not @needs-journal".to_owned()),
        ..Selection::default()
    };
    let watching = Watching { fail_fast: true, ..Watching::default() };
    let report = suite.run(&selection, &config, String::new(), watching).unwrap();
    assert_eq!(report.scenarios.len(), 1);
    assert!(report.filtered && report.left_out.iter().any(|l| l.reason.contains("--fail-fast")));
}
