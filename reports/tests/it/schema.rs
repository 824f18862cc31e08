//! The JSON report against its schema.

use std::path::Path;

use serde_json::{Value, json};
use stc_reports::{Report, json as writer};

use crate::sample;

/// Spoils a valid document in one place.
type Change = fn(&mut Value);

fn document() -> Value {
    serde_json::from_str(&writer::render(&sample::full()).unwrap()).unwrap()
}

#[test]
fn the_checked_in_schema_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/report.schema.json");
    let generated = serde_json::to_string_pretty(&writer::schema()).unwrap() + "\n";
    if std::env::var_os("STC_UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == generated,
        "schema/report.schema.json is out of date; STC_UPDATE_SCHEMA=1 cargo test -p stc-reports rewrites it"
    );
}

#[test]
fn reports_validate() {
    let validator = jsonschema::validator_for(&writer::schema()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document()).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    let empty: Value = serde_json::from_str(&writer::render(&sample::report(Vec::new())).unwrap()).unwrap();
    assert!(validator.is_valid(&empty));
}

#[test]
fn the_schema_refuses_what_is_no_report() {
    let validator = jsonschema::validator_for(&writer::schema()).unwrap();
    let changes: [(&str, Change); 6] = [
        ("an unknown verdict", |d| d["scenarios"][0]["verdict"] = json!("maybe")),
        ("a negative time", |d| d["duration_ms"] = json!(-1)),
        ("no seed", |d| drop(d.as_object_mut().unwrap().remove("seed"))),
        ("no counts", |d| drop(d.as_object_mut().unwrap().remove("counts"))),
        ("an unproven requirement without a reason", |d| {
            d["requirements"][0]["status"] = json!({"state": "unproven"})
        }),
        ("an unknown level", |d| d["requirements"][0]["level"] = json!("OUGHT")),
    ];
    for (what, change) in changes {
        let mut document = document();
        change(&mut document);
        assert!(!validator.is_valid(&document), "{what}");
    }
}

#[test]
fn a_report_can_be_read_back() {
    let mut report = sample::full();
    report.seed = u64::MAX;
    let text = writer::render(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
}
