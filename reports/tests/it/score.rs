//! The score for people.

use stc_reports::score::Part;
use stc_reports::summary::by_checklist;
use stc_reports::{Level, Score, Verdict};

use crate::sample::{self, citing, report, requirement};

fn part(held: usize, asked: usize) -> Part {
    Part { held, asked }
}

#[test]
fn it_counts_what_the_run_asked_for() {
    let score = Score::of(&sample::full());
    // C1 has a known failure and what was not judged, C2 fails, C5 has no scenario; dead letters are not offered.
    assert_eq!(score.core, part(0, 2));
    assert_eq!(score.optional, part(0, 0));
    // IMPL-1.1 and 2.4 of eight: two are unproven, API-4.7 is not offered, of IMPL-2.2 nothing is known.
    assert_eq!(score.requirements, part(2, 5));
    assert_eq!(score.to_string(), "0 of 2 checklist items, 2 of 5 requirements");
}

#[test]
fn a_selection_is_measured_by_what_was_selected() {
    let mut report = report(vec![citing("s", Verdict::Pass, &["C1", "dead-letter"], &["R-1"])]);
    report.filtered = true;
    report.requirements = vec![
        requirement(&report, "R-1", "C1", &["s", "another"], None),
        requirement(&report, "R-2", "C1", &["another"], None),
    ];
    let score = Score::of(&report);
    assert_eq!((score.core, score.optional, score.requirements), (part(1, 1), part(1, 1), part(1, 1)));
    assert_eq!(score.to_string(), "1 of 1 checklist item, 1 of 1 requirement, 1 of 1 optional capability");
}

#[test]
fn only_a_pass_or_a_broken_should_fulfils_an_item() {
    for verdict in Verdict::ALL {
        let report = report(vec![citing("s", verdict, &["C1"], &[])]);
        assert_eq!(Score::of(&report).core, part(usize::from(verdict == Verdict::Pass), 1), "{verdict}");
    }
    let mut failing = citing("s", Verdict::Fail, &["C1"], &["R-1"]);
    failing.failure = Some(sample::failure("no", Some("R-1")));
    let mut report = report(vec![failing]);
    report.requirements = vec![requirement(&report, "R-1", "C1", &["s"], None)];
    report.requirements[0].level = Level::Should;
    assert_eq!(Score::of(&report).core, part(1, 1));
    assert_eq!(Score::of(&report).requirements, part(0, 1));
}

#[test]
fn a_capability_that_is_not_offered_counts_nowhere_and_one_of_the_core_does() {
    let mut report = report(vec![
        citing("o", Verdict::Unsupported, &["dead-letter"], &["R-1"]),
        citing("c", Verdict::Unsupported, &["C1"], &["R-2"]),
    ]);
    report.requirements = vec![
        requirement(&report, "R-1", "dead-letter", &["o"], None),
        requirement(&report, "R-2", "C1", &["c"], None),
    ];
    let score = Score::of(&report);
    assert_eq!((score.core, score.optional, score.requirements), (part(0, 1), part(0, 0), part(0, 1)));
}

#[test]
fn what_needs_another_capability_that_is_not_offered_says_nothing_of_an_item() {
    let mut report = report(vec![
        citing("both", Verdict::Unsupported, &["C1", "dead-letter"], &[]),
        citing("one", Verdict::Pass, &["C1"], &[]),
    ]);
    assert_eq!(Score::of(&report).core, part(1, 1));
    let rows = by_checklist(&report);
    assert_eq!((rows[0].result(), rows[0].passed, rows[0].scenarios), ("passes", 1, 1));
    assert_eq!((rows[3].result(), rows[3].scenarios), ("unsupported", 1));
    // What the core itself lacks does.
    report.scenarios[0].checklist = vec!["C1".to_owned()];
    assert_eq!(Score::of(&report).core, part(0, 1));
}
