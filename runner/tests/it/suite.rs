//! The feature files and the catalogue of this repository fit together.

use std::collections::BTreeSet;
use std::path::Path;

use cucumber::World as _;
use stc_reports::{RequirementStatus, ScenarioResult, Verdict};
use stc_runner::catalogue::{Catalogue, checklist};
use stc_runner::feature::Scenario;
use stc_runner::report;
use stc_runner::suite::Suite;
use stc_runner::world::World;

fn suite() -> Suite {
    Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap()
}

#[test]
fn every_requirement_tag_names_an_entry_that_needs_a_scenario() {
    let suite = suite();
    for scenario in &suite.scenarios {
        for id in &scenario.requirements {
            let entry =
                suite.catalogue.get(id).unwrap_or_else(|| panic!("{}: @{id} names no entry", scenario.id));
            assert_eq!(
                entry.unproven, None,
                "{} cites {id}, whose entry says why it has no scenario",
                scenario.id
            );
        }
    }
}

#[test]
fn every_entry_has_a_scenario_or_a_stated_reason() {
    let suite = suite();
    let cited: BTreeSet<&str> =
        suite.scenarios.iter().flat_map(|s| &s.requirements).map(String::as_str).collect();
    let missing: Vec<&str> = suite
        .catalogue
        .requirements
        .iter()
        .filter(|r| r.unproven.is_none() && !cited.contains(r.id.as_str()))
        .map(|r| r.id.as_str())
        .collect();
    assert!(missing.is_empty(), "{} entries have neither scenario nor reason: {missing:?}", missing.len());
}

#[test]
fn every_reason_is_stated_and_every_same_as_leads_to_an_entry_of_its_own() {
    let catalogue = suite().catalogue;
    for entry in &catalogue.requirements {
        match (entry.same_as(), entry.unproven.as_deref()) {
            (Some(id), _) => {
                let other = catalogue.get(id).unwrap_or_else(|| panic!("{}: no entry {id}", entry.id));
                assert_eq!(other.same_as(), None, "{} and {id} point on", entry.id);
            }
            (None, Some(reason)) => {
                assert!(catalogue.reasons.contains_key(reason), "{}: no reason {reason:?}", entry.id);
            }
            (None, None) => {}
        }
    }
}

#[test]
fn every_entry_has_a_known_form() {
    let catalogue = suite().catalogue;
    let items: BTreeSet<String> = checklist().into_iter().map(|i| i.id).collect();
    for entry in &catalogue.requirements {
        assert!(Catalogue::looks_like_id(&entry.id), "{}", entry.id);
        assert!(
            entry.checklist == "-" || items.contains(&entry.checklist),
            "{}: no checklist item {}",
            entry.id,
            entry.checklist
        );
        assert!(["client", "broker"].contains(&entry.binds.as_str()), "{} binds {}", entry.id, entry.binds);
    }
}

#[test]
fn every_step_matches_one_function() {
    let functions = World::collection();
    for scenario in suite().scenarios {
        for step in &scenario.steps {
            let place =
                format!("{}:{}: {}{}", scenario.feature, step.position.line, step.keyword, step.value);
            match functions.find(step) {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{place}: no step matches"),
                Err(e) => panic!("{place}: {e}"),
            }
        }
    }
}

#[test]
fn every_scenario_belongs_where_its_requirements_do() {
    let suite = suite();
    for scenario in &suite.scenarios {
        let items: BTreeSet<&str> = scenario
            .requirements
            .iter()
            .filter_map(|id| suite.catalogue.get(id))
            .map(|entry| entry.checklist.as_str())
            .collect();
        // What the checklist has no item for is filed under `-`, for which there is no tag.
        let belongs = scenario.checklist.iter().any(|item| items.contains(item.as_str()))
            || (scenario.checklist.is_empty() && items.contains("-"));
        assert!(
            belongs,
            "{} is tagged {:?} and cites requirements of {items:?}",
            scenario.id, scenario.checklist
        );
        assert!(!scenario.requirements.is_empty(), "{} cites no requirement", scenario.id);
        let plain = |c: char| c.is_alphanumeric() || "-/._".contains(c);
        assert!(scenario.id.chars().all(plain), "{} needs quoting", scenario.id);
    }
}

/// The requirements that steps can blame are written in their source; each must be an entry.
#[test]
fn every_requirement_that_a_step_can_blame_is_an_entry() {
    let catalogue = suite().catalogue;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/steps");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for word in text.split('"').filter(|w| Catalogue::looks_like_id(w)) {
            assert!(catalogue.get(word).is_some(), "{}: no entry {word}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} ids found: the search is broken");
}

#[test]
fn every_absolute_requirement_of_the_core_with_a_scenario_says_why_it_matters() {
    let suites = [suite(), Suite::embedded().unwrap()];
    for catalogue in suites.map(|suite| suite.catalogue) {
        let silent: Vec<&str> = catalogue
            .core()
            .filter(|r| r.level.is_absolute())
            .filter(|r| {
                r.same_as().map_or(r.unproven.is_none(), |id| catalogue.get(id).unwrap().unproven.is_none())
            })
            .filter(|r| catalogue.why(r).is_none_or(|why| why.trim().is_empty()))
            .map(|r| r.id.as_str())
            .collect();
        assert!(silent.is_empty(), "features/why.yaml has nothing about {silent:?}");
    }
}

#[test]
fn a_text_about_nothing_and_two_about_one_requirement_are_refused() {
    let refused = |text: &str| suite().catalogue.explain(text).map(drop).unwrap_err().to_string();
    assert!(refused("- { requirements: [IMPL-99.1], why: x }").contains("no requirement IMPL-99.1"));
    assert!(refused("- { requirements: [IMPL-2.1], why: x }").contains("IMPL-2.1 is listed twice"));
    assert!(refused("- { requirement: IMPL-2.1, why: x }").contains("requirement"));
}

#[test]
fn a_capability_that_is_not_offered_leaves_the_requirements_of_others_as_they_are() {
    let suite = suite();
    let without = |item: &str| {
        let results: Vec<ScenarioResult> = suite
            .scenarios
            .iter()
            .map(|scenario| ScenarioResult {
                verdict: match scenario.checklist.iter().any(|of| of == item) {
                    true => Verdict::Unsupported,
                    false => Verdict::Pass,
                },
                ..judged(scenario)
            })
            .collect();
        report::requirements(&suite.catalogue, &suite.scenarios, &results)
    };
    for item in checklist().iter().filter(|item| !item.required) {
        for requirement in without(&item.id) {
            let entry = suite.catalogue.get(&requirement.id).unwrap();
            let of = entry.same_as().and_then(|id| suite.catalogue.get(id)).unwrap_or(entry);
            let mut citing = suite.scenarios.iter().filter(|s| requirement.scenarios.contains(&s.id));
            let lacks = |scenario: &Scenario| scenario.checklist.contains(&item.id);
            let unsupported = match of.checklist == item.id {
                true => citing.any(lacks),
                false => !requirement.scenarios.is_empty() && citing.all(lacks),
            };
            assert_eq!(
                requirement.status == RequirementStatus::Unsupported,
                unsupported,
                "{} without {}",
                requirement.id,
                item.id
            );
        }
    }
}

fn judged(scenario: &Scenario) -> ScenarioResult {
    ScenarioResult {
        id: scenario.id.clone(),
        name: scenario.name.clone(),
        feature: scenario.feature.clone(),
        line: scenario.line,
        tags: Vec::new(),
        checklist: scenario.checklist.clone(),
        requirements: scenario.requirements.clone(),
        verdict: Verdict::Pass,
        by_chance: None,
        reason: None,
        duration_ms: 0,
        steps: Vec::new(),
        failure: None,
        transcript: Vec::new(),
        stderr_tail: Vec::new(),
        replay: String::new(),
    }
}
