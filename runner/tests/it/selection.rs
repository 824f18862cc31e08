//! Which scenarios a run is about.

use stc_runner::feature::{Need, parse};
use stc_runner::select::{Selection, SelectionError, unmet};

const TEXT: &str = "Feature: f
  @id:a @C1 @IMPL-1.4
  Scenario: a
    Given x
  @id:b @C2 @IMPL-2.1 @needs-control
  Scenario: b
    Given x
  @id:c @C2 @needs-journal @needs-control
  Scenario: c
    Given x
";

fn select(tags: Option<&str>, names: &[&str]) -> Result<Vec<String>, SelectionError> {
    let selection = Selection {
        tags: tags.map(str::to_owned),
        scenarios: names.iter().map(|n| (*n).to_owned()).collect(),
        skip: Vec::new(),
        paired: false,
    };
    let all = parse("f.feature", TEXT).expect("the text is a feature");
    selection.select(&all).map(|s| s.iter().map(|s| s.id.clone()).collect())
}

#[test]
fn tags_and_names_narrow_the_selection() {
    assert_eq!(select(None, &[]).unwrap(), ["a", "b", "c"]);
    assert_eq!(select(Some("@C2"), &[]).unwrap(), ["b", "c"]);
    assert_eq!(select(Some("@C2 and not @needs-journal"), &[]).unwrap(), ["b"]);
    assert_eq!(select(Some("@IMPL-1.4 or (@C2 and @IMPL-2.1)"), &[]).unwrap(), ["a", "b"]);
    assert_eq!(select(Some("@id:c"), &[]).unwrap(), ["c"]);
    assert_eq!(select(None, &["c", "a"]).unwrap(), ["a", "c"]);
}

#[test]
fn a_pattern_that_matches_nothing_is_named() {
    assert_eq!(
        select(Some("@C2 and not @C99"), &[]),
        Err(SelectionError::UnknownTag { tag: "C99".to_owned(), hint: String::new() })
    );
    assert_eq!(
        select(None, &["a", "zz"]),
        Err(SelectionError::UnknownScenario {
            option: "--scenario",
            name: "zz".to_owned(),
            hint: String::new()
        })
    );
    assert_eq!(select(Some("@C1 and @C2"), &[]), Err(SelectionError::Empty));
    assert_eq!(select(Some("@C1"), &["b"]), Err(SelectionError::Empty));
    assert!(matches!(select(Some("C1 &&"), &[]), Err(SelectionError::Expression { .. })));
}

#[test]
fn what_a_target_lacks_is_told() {
    let all = parse("f.feature", TEXT).unwrap();
    assert_eq!(unmet(&all[0], &[], "url"), None);
    assert_eq!(unmet(&all[1], &[Need::Control], "tcp"), None);
    let reason = unmet(&all[2], &[], "url").unwrap();
    assert!(
        reason.contains("control of the cluster and the wire journal") && reason.contains("url"),
        "{reason}"
    );
}
