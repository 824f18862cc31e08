//! Complete outputs of every writer.

use stc_reports::{Verdict, json, junit, markdown, terminal};

use crate::sample;

#[test]
fn terminal_for_a_log() {
    insta::assert_snapshot!(terminal::render(&sample::full(), &terminal::Options::default()));
}

#[test]
fn terminal_of_72_columns() {
    let options = terminal::Options {
        width: Some(72),
        transcript_lines: 2,
        reports: vec!["reports-out/junit.xml".into(), "reports-out/report.json".into()],
        ..Default::default()
    };
    insta::assert_snapshot!(terminal::render(&sample::full(), &options));
}

#[test]
fn terminal_when_all_is_well() {
    let report =
        sample::report(vec![sample::scenario("a", Verdict::Pass), sample::scenario("b", Verdict::Pass)]);
    insta::assert_snapshot!(terminal::render(&report, &terminal::Options::default()));
}

#[test]
fn terminal_of_a_selection_with_a_stale_list() {
    let mut report = sample::report(vec![sample::scenario("C1-newer-epoch", Verdict::Pass)]);
    report.filtered = true;
    report.stale_known_failures.push(sample::stale());
    insta::assert_snapshot!(terminal::render(&report, &terminal::Options::default()));
}

#[test]
fn junit_xml() {
    let mut report = sample::full();
    report.stale_known_failures.push(sample::stale());
    insta::assert_snapshot!(junit::render(&report).unwrap());
}

#[test]
fn json_document() {
    insta::assert_snapshot!(json::render(&sample::full()).unwrap());
}

#[test]
fn markdown_summary() {
    insta::assert_snapshot!(markdown::render(&sample::full()));
}
