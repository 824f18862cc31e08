//! Feature files: what is read from them, and what is refused.

use stc_runner::feature::{Need, parse};

const OUTLINE: &str = "@C2
Feature: routing

  Background:
    Given a topic

  @id:C2-a @IMPL-2.1 @needs-control
  Scenario Outline: key <key>
    When \"<key>\" is sent

    Examples:
      | case  | key |
      | one   | a   |
      | two/2 | b   |

  @id:C2-b
  Scenario: plain
    When nothing is sent
";

#[test]
fn rows_of_an_outline_are_scenarios_called_by_their_case() {
    let scenarios = parse("f.feature", OUTLINE).unwrap();
    let ids: Vec<&str> = scenarios.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["C2-a/one", "C2-a/two-2", "C2-b"]);
    let first = &scenarios[0];
    assert_eq!(first.checklist, ["C2"]);
    assert_eq!(first.requirements, ["IMPL-2.1"]);
    assert_eq!(first.needs, [Need::Control]);
    assert_eq!(first.name, "key a");
    let steps: Vec<&str> = first.steps.iter().map(|s| s.value.as_str()).collect();
    assert_eq!(steps, ["a topic", "\"a\" is sent"]);
    assert!(first.is_called("C2-a") && first.is_called("C2-a/one") && !first.is_called("C2-a/two-2"));
    assert!(!scenarios[2].is_called("C2"));
}

#[test]
fn rows_without_a_case_are_counted() {
    let text = OUTLINE.replace("| case  |", "| other |");
    let scenarios = parse("f.feature", &text).unwrap();
    assert_eq!(scenarios[1].id, "C2-a/2");
}

#[test]
fn mistakes_are_told_with_their_place() {
    let cases = [
        (OUTLINE.replace("  @id:C2-b\n", ""), "f.feature:", "without an @id: tag"),
        (OUTLINE.replace("@id:C2-b", "@id:C2-b @id:C2-c"), "f.feature:", "two @id: tags"),
        (OUTLINE.replace("@IMPL-2.1", "@IMPL-2"), "f.feature:", "@IMPL-2 is no id"),
        (OUTLINE.replace("@needs-control", "@need-control"), "f.feature:", "@need-control"),
        (OUTLINE.replace("<key>\" is", "<kee>\" is"), "f.feature:", "kee"),
        ("Feature\nnonsense".to_owned(), "f.feature:1:", ""),
    ];
    for (text, place, what) in cases {
        let error = parse("f.feature", &text).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(what), "{error}");
    }
}
