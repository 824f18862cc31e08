//! What scenarios say about a requirement.

use stc_reports::{RequirementStatus, ScenarioResult, Verdict};

use crate::sample::{citing, failure};

/// The status of `R-1`, cited by one scenario for each verdict.
fn status(verdicts: &[Verdict]) -> RequirementStatus {
    let results: Vec<ScenarioResult> =
        verdicts.iter().enumerate().map(|(n, v)| citing(&format!("s{n}"), *v, &["C1"], &["R-1"])).collect();
    let cited_by: Vec<String> = results.iter().map(|r| r.id.clone()).collect();
    RequirementStatus::derive("R-1", &cited_by, &results, None)
}

fn unproven(reason: &str) -> RequirementStatus {
    RequirementStatus::Unproven { reason: reason.to_owned() }
}

#[test]
fn only_passing_everywhere_proves() {
    use Verdict::{CouldNotRun, Fail, HarnessError, KnownFailure, Pass, Unsupported};
    assert_eq!(status(&[Pass]), RequirementStatus::Proven);
    assert_eq!(status(&[Pass, Pass]), RequirementStatus::Proven);
    assert_eq!(status(&[Pass, CouldNotRun]), RequirementStatus::NotRun);
    assert_eq!(status(&[HarnessError, Pass]), RequirementStatus::NotRun);
    assert_eq!(status(&[Pass, Unsupported, CouldNotRun]), RequirementStatus::Unsupported);
    assert_eq!(status(&[Pass, KnownFailure, Unsupported]), RequirementStatus::Known);
    assert_eq!(status(&[KnownFailure, Fail, HarnessError]), RequirementStatus::Broken);
}

#[test]
fn a_scenario_that_was_not_selected_leaves_it_open() {
    let cited_by = ["s0", "s1", "s2"].map(str::to_owned);
    let derive = |verdicts: &[Verdict]| {
        let result = |(n, verdict): (usize, &Verdict)| citing(&format!("s{n}"), *verdict, &["C1"], &["R-1"]);
        let results: Vec<ScenarioResult> = verdicts.iter().enumerate().map(result).collect();
        RequirementStatus::derive("R-1", &cited_by, &results, None)
    };
    use Verdict::{CouldNotRun, Fail, Pass};
    assert_eq!(derive(&[]), RequirementStatus::NotRun);
    assert_eq!(derive(&[Pass]), RequirementStatus::PartlyRun { passed: 1, of: 3 });
    assert_eq!(derive(&[Pass, Pass]), RequirementStatus::PartlyRun { passed: 2, of: 3 });
    assert_eq!(derive(&[Pass, CouldNotRun]), RequirementStatus::NotRun);
    assert_eq!(derive(&[Pass, Fail]), RequirementStatus::Broken);
}

#[test]
fn without_a_scenario_it_is_unproven_with_a_reason() {
    assert_eq!(RequirementStatus::derive("R-1", &[], &[], None), unproven("no scenario cites it"));
    assert_eq!(
        RequirementStatus::derive("R-1", &[], &[], Some("binds the API text")),
        unproven("binds the API text")
    );
}

#[test]
fn a_surviving_deviant_voids_passes_but_hides_no_failure() {
    let cited_by = ["s".to_owned()];
    let derive = |verdict| {
        RequirementStatus::derive(
            "R-1",
            &cited_by,
            &[citing("s", verdict, &["C1"], &["R-1"])],
            Some("deviant lives"),
        )
    };
    assert_eq!(derive(Verdict::Pass), unproven("deviant lives"));
    assert_eq!(derive(Verdict::Fail), RequirementStatus::Broken);
    assert_eq!(derive(Verdict::KnownFailure), RequirementStatus::Known);
}

#[test]
fn a_failure_breaks_the_requirement_that_its_step_asserts() {
    let cited_by = ["s".to_owned()];
    let derive = |id: &str, verdict, blamed: Option<&str>| {
        let mut result = citing("s", verdict, &["C1"], &["R-1", "R-2"]);
        result.failure = Some(failure("no", blamed));
        RequirementStatus::derive(id, &cited_by, &[result], None)
    };
    assert_eq!(derive("R-1", Verdict::Fail, Some("R-1")), RequirementStatus::Broken);
    assert_eq!(derive("R-2", Verdict::Fail, Some("R-1")), RequirementStatus::NotRun);
    assert_eq!(derive("R-2", Verdict::KnownFailure, Some("R-1")), RequirementStatus::NotRun);
    // Nobody blamed, or somebody whom the scenario does not cite: the failure must not get lost.
    for blamed in [None, Some("R-99")] {
        assert_eq!(derive("R-1", Verdict::Fail, blamed), RequirementStatus::Broken);
        assert_eq!(derive("R-2", Verdict::Fail, blamed), RequirementStatus::Broken);
    }
}
