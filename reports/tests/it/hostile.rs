//! Text from the client or the wire that tries to break out of its place.

use serde_json::json;
use stc_reports::{
    LeftOut, Report, StaleKnownFailure, StepResult, StepStatus, Verdict, badge, ctrf, html, json as writer,
    junit, markdown, terminal,
};

use crate::sample;

/// Each piece breaks something somewhere: XML sections and characters, Markdown tables and fences, HTML blocks,
/// terminal escapes (one unfinished), text direction. `EVIL` marks the beginning of a line that must not be one.
const PIECES: [&str; 12] = [
    "]]>",
    "<![CDATA[",
    "</system-out><failure message=\"x\"/>",
    "a|b",
    "\n```\nEVIL",
    "\n`````\nEVIL",
    "\n\n</summary></details>\n\nEVIL <script>alert(1)</script>",
    "\nEVIL | x |\n|---|---|\n",
    "\u{1b}[2J\u{1b}]0;title",
    "\u{0}\u{8}\u{b}\u{7f}\u{85}\u{9b}31m",
    "\u{202e}\u{2066}\u{feff}\u{fffe}\u{ffff}",
    "&amp; &#60; @someone \\ \r\r\n\t \"quoted\" 'single' 鍵 🔑",
];

/// A report in which every text that may come from outside is `text`.
fn hostile(text: &str) -> Report {
    let mut report = sample::full();
    report.client.name = text.to_owned();
    report.client.version = text.to_owned();
    report.target.service_url = Some(text.to_owned());
    report.command = text.to_owned();
    report.started_at = text.to_owned();
    report.checklist[0].title = text.to_owned();
    for scenario in &mut report.scenarios {
        scenario.name = text.to_owned();
        scenario.reason = Some(text.to_owned());
        scenario.transcript =
            vec![sample::frame(1, text, text, "client", json!({ text: text, "a": [text] }))];
        scenario.stderr_tail = vec![text.to_owned()];
        scenario.replay = text.to_owned();
        scenario.checklist.push(text.to_owned());
        scenario.feature = text.to_owned();
        scenario.steps.push(StepResult {
            keyword: "Then".to_owned(),
            text: text.to_owned(),
            line: 1,
            status: StepStatus::Failed,
            wire: Some(1),
        });
        if let Some(failure) = &mut scenario.failure {
            failure.message = text.to_owned();
            failure.step = text.to_owned();
            failure.location = text.to_owned();
            failure.requirement = Some(text.to_owned());
        }
    }
    report.left_out = vec![LeftOut { scenario: text.to_owned(), reason: text.to_owned() }];
    report.stale_known_failures =
        vec![StaleKnownFailure { scenario: text.to_owned(), problem: text.to_owned() }];
    report
}

fn hostile_reports() -> Vec<Report> {
    PIECES.iter().map(|p| hostile(p)).chain([hostile(&PIECES.concat())]).collect()
}

fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[test]
fn xml_stays_well_formed_and_loses_nothing() {
    for report in hostile_reports() {
        let xml = junit::render(&report).unwrap();
        assert!(xml.chars().all(is_xml_char), "{xml}");
        let read = quick_junit::Report::deserialize_from_str(&xml).unwrap();
        let cases: Vec<_> = read.test_suites.iter().flat_map(|s| &s.test_cases).collect();
        assert_eq!(cases.len(), report.scenarios.len() + report.stale_known_failures.len());
        // Of `sample::full` and its stale entry: one failure, one stale entry, one error, three skipped.
        assert_eq!((read.failures, read.errors, read.skipped), (2, 1, 3));
    }
}

#[test]
fn xml_keeps_text_behind_an_unfinished_escape_sequence() {
    let mut report = sample::full();
    report.scenarios[0].stderr_tail =
        vec!["before \u{1b}]0;title, and what follows".to_owned(), "next".to_owned()];
    let xml = junit::render(&report).unwrap();
    assert!(xml.contains("before \\u{1b}]0;title, and what follows\nnext"), "{xml}");
}

/// Lines of Markdown that are not inside a fence, and whether every fence was closed.
fn outside_fences(markdown: &str) -> (Vec<&str>, bool) {
    let mut outside = Vec::new();
    let mut open: Option<usize> = None;
    for line in markdown.lines() {
        let ticks = line.chars().take_while(|c| *c == '`').count();
        let bare = line.trim_end().len() == ticks;
        match open {
            Some(length) if ticks >= length && bare => open = None,
            Some(_) => {}
            None if ticks >= 3 => open = Some(ticks),
            None => outside.push(line),
        }
    }
    (outside, open.is_none())
}

#[test]
fn markdown_keeps_its_structure() {
    for report in hostile_reports() {
        let text = markdown::render(&report);
        let (lines, closed) = outside_fences(&text);
        assert!(closed, "{text}");
        assert!(lines.iter().all(|l| !l.starts_with("EVIL") && !l.contains("<script")), "{text}");
        let opening = lines.iter().filter(|l| l.starts_with("<details><summary>")).count();
        let closing = lines.iter().filter(|l| **l == "</details>").count();
        // One failure, one harness error, one that could not run, one known failure.
        assert_eq!((opening, closing), (4, 4), "{text}");
        assert_eq!(lines.iter().filter(|l| l.contains("</details>")).count(), 4, "{text}");
        let rows: Vec<_> = lines.iter().filter(|l| l.starts_with('|')).collect();
        // Three lines of counts with 7 cells, then the table with 5: a head, a rule, 4 items and the hostile one.
        let cells: Vec<usize> = rows.iter().map(|r| r.matches('|').count() - 1).collect();
        assert_eq!(cells, [7, 7, 7, 5, 5, 5, 5, 5, 5, 5], "{text}");
    }
}

#[test]
fn markdown_fits_a_comment_however_much_failed() {
    let mut report = sample::full();
    let mut failing = report.scenarios.iter().find(|s| s.verdict == Verdict::Fail).unwrap().clone();
    failing.stderr_tail = vec!["x".repeat(1_000); 50];
    report.scenarios.extend(std::iter::repeat_n(failing, 300));
    report.stale_known_failures = vec![sample::stale(); 5_000];
    let text = markdown::render(&report);
    assert!(text.len() < 65_536, "{} bytes", text.len());
    assert!(text.contains("scenarios more did not pass"), "{text}");
}

#[test]
fn the_terminal_gets_no_control_characters() {
    for report in hostile_reports() {
        for width in [None, Some(1), Some(80)] {
            let options =
                terminal::Options { width, reports: vec!["a\u{1b}[2Jb".into()], ..Default::default() };
            let text = terminal::render(&report, &options);
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
    }
}

#[test]
fn colour_only_when_asked_and_then_only_colour() {
    let report = sample::full();
    let plain = terminal::render(&report, &terminal::Options::default());
    let coloured = terminal::render(&report, &terminal::Options { color: true, ..Default::default() });
    assert!(!plain.contains('\u{1b}'));
    let mut stripped = coloured.clone();
    for code in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"] {
        assert!(coloured.contains(code) || code == "\u{1b}[32m");
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn json_keeps_every_byte() {
    for report in hostile_reports() {
        let read: Report = serde_json::from_str(&writer::render(&report).unwrap()).unwrap();
        assert_eq!(read, report);
    }
}

#[test]
fn ctrf_and_the_badge_stay_json_without_control_characters() {
    for report in hostile_reports() {
        for text in [ctrf::render(&report).unwrap(), badge::render(&report).unwrap()] {
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
            assert!(!text.contains("\\u001b") && !text.contains("\\u0000"), "{text}");
        }
    }
}

#[test]
fn the_page_has_no_element_and_no_address_that_a_report_brought() {
    let harmless = html::render(&[&hostile("harmless")]).unwrap();
    let tags = |page: &str| {
        page.split('<')
            .skip(1)
            .map(|t| t.split([' ', '>']).next().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    for report in hostile_reports() {
        let page = html::render(&[&report]).unwrap();
        assert_eq!(tags(&page), tags(&harmless), "other elements");
        assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{page}");
    }
}
