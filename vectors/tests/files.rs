//! The files that are checked in: what the generator makes, valid by their schemas, and true to the recordings.
// A helper of a test may fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{fs, path::Path, sync::LazyLock};

use serde_json::{Value, json};
use stc_vectors::{
    Document,
    store::{self, Difference},
};

static DOCUMENTS: LazyLock<Vec<Document>> = LazyLock::new(|| stc_vectors::generate().unwrap());

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn file(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(root().join(format!("v1/{name}.json"))).unwrap()).unwrap()
}

fn cases(name: &str) -> Vec<Value> {
    file(name)["cases"].as_array().unwrap().clone()
}

#[test]
fn the_checked_in_files_are_the_generated_ones() {
    let differences: Vec<String> =
        store::compare(root(), &DOCUMENTS).unwrap().iter().map(ToString::to_string).collect();
    assert!(differences.is_empty(), "cargo xtask vectors generate:\n{}", differences.join("\n"));
}

#[test]
fn the_generator_repeats_itself() {
    assert_eq!(stc_vectors::generate().unwrap(), *DOCUMENTS);
}

#[test]
fn the_files_validate() {
    for document in DOCUMENTS.iter() {
        let path = root().join(format!("schema/{}.schema.json", document.name));
        let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut file = file(document.name);
        let errors: Vec<String> = validator.iter_errors(&file).map(|e| e.to_string()).take(3).collect();
        assert_eq!(errors, Vec::<String>::new(), "{}", document.name);
        assert_eq!(file["cases"].as_array().unwrap().len(), document.cases);

        for (what, place, value) in [
            ("another version", "/header/version", json!("1")),
            ("no cases", "/cases", Value::Null),
            ("a case that is none", "/cases/0", json!({"unheard-of": 1})),
        ] {
            let mut spoiled = file.clone();
            *spoiled.pointer_mut(place).unwrap() = value;
            assert!(!validator.is_valid(&spoiled), "{}: {what}", document.name);
        }
        file["header"]["extra"] = json!(1);
        assert!(!validator.is_valid(&file), "{}: an unknown field", document.name);
    }
}

#[test]
fn a_case_is_a_line_of_ascii() {
    for document in DOCUMENTS.iter() {
        let lines: Vec<&str> = document.text.lines().collect();
        assert_eq!(lines.len(), document.cases + 6, "{}", document.name);
        assert!(document.text.is_ascii(), "{}", document.name);
    }
}

#[test]
fn every_file_names_sections_of_the_specification() {
    let documents = [
        "client-api",
        "client-behavior",
        "compatibility",
        "conformance",
        "conventions",
        "data-model",
        "error-model",
        "key-shared",
        "stability",
        "terminology",
        "wire-protocol",
    ];
    for document in DOCUMENTS.iter() {
        let header = &file(document.name)["header"];
        let sections = header["specification"].as_array().unwrap();
        assert!(!sections.is_empty(), "{}", document.name);
        for section in sections {
            assert!(documents.contains(&section["document"].as_str().unwrap()), "{section}");
        }
    }
}

#[test]
fn a_changed_directory_is_found_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    store::write(directory.path(), &DOCUMENTS).unwrap();
    assert_eq!(store::compare(directory.path(), &DOCUMENTS).unwrap(), []);

    let text = fs::read_to_string(path("v1/hashing.json")).unwrap();
    fs::write(path("v1/hashing.json"), text.replacen("\"raw\":3812096191", "\"raw\":3812096190", 1)).unwrap();
    fs::remove_file(path("schema/frames.schema.json")).unwrap();
    fs::write(path("v1/other.json"), "{}").unwrap();
    let differences = store::compare(directory.path(), &DOCUMENTS).unwrap();
    assert_eq!(differences.len(), 3, "{differences:?}");
    assert!(
        matches!(&differences[0], Difference::Line { line: 5, found, .. } if found.contains("3812096190"))
    );
    assert_eq!(differences[1], Difference::Missing(path("schema/frames.schema.json")));
    assert_eq!(differences[2], Difference::Unknown(path("v1/other.json")));

    // A file that was cut short differs where it ends.
    fs::write(path("v1/hashing.json"), &text[..text.len() - 2]).unwrap();
    let differences = store::compare(directory.path(), &DOCUMENTS).unwrap();
    assert!(
        matches!(&differences[0], Difference::Line { found, expected, .. } if found.is_empty() && expected == "}")
    );
}

/// The rows of a recording of the real broker that a `recorded` text names: `FILE, frame N`, `FILE, frames N and M`
/// or `FILE, frames N to M`.
fn recorded_rows(text: &str) -> Vec<Value> {
    let (file, frames) = text.split_once(", frame").unwrap();
    let numbers: Vec<u64> = frames.split(' ').filter_map(|word| word.parse().ok()).collect();
    let wanted = |n: u64| match numbers[..] {
        [first, last] if text.contains(" to ") => (first..=last).contains(&n),
        _ => numbers.contains(&n),
    };
    let path = root().join(format!("../proto/tests/recordings/{file}.jsonl"));
    let rows: Vec<Value> = fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| wanted(row["n"].as_u64().unwrap()))
        .collect();
    assert!(!rows.is_empty(), "{text}");
    rows
}

/// An assigned segment without its topic, whose name is another one in the recordings.
fn nameless(segment: &Value) -> String {
    let topic = segment["segment_topic"].as_str().unwrap();
    let descriptor = topic.rsplit_once('/').unwrap().1;
    let ranges = segment.get("bucket_ranges").cloned().unwrap_or(json!([]));
    format!(
        "{} {} {} {descriptor} {ranges}",
        segment["segment_id"], segment["hash_start"], segment["hash_end"]
    )
}

#[test]
fn assignments_are_those_of_the_recordings() {
    let mut compared = 0;
    for case in cases("assignments") {
        let Some(recorded) = case.get("recorded") else { continue };
        let list = |segments: Option<&Value>| -> Vec<String> {
            segments.and_then(Value::as_array).into_iter().flatten().map(nameless).collect()
        };
        let mut real = Vec::new();
        for row in recorded_rows(recorded.as_str().unwrap()) {
            let assignment = &row["fields"]["assignment"];
            assert_eq!(assignment["layout_epoch"], case["layout"]["epoch"], "{recorded}");
            real.push(list(assignment.get("segments")));
        }
        let mut ours: Vec<_> =
            case["assignments"].as_object().unwrap().values().map(|segments| list(Some(segments))).collect();
        real.sort();
        ours.sort();
        assert_eq!(real, ours, "{recorded}");
        compared += 1;
    }
    assert_eq!(compared, 15);
}

#[test]
fn namespace_hashes_are_those_of_the_recordings() {
    let mut compared = 0;
    for case in cases("namespace-hash") {
        let Some(recorded) = case.get("recorded") else { continue };
        for row in recorded_rows(recorded.as_str().unwrap()) {
            assert_eq!(row["fields"]["current_hash"], case["current_hash"], "{recorded}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2);
}

#[test]
fn every_command_and_every_refusal_occurs() {
    let mut frames = [0; 13];
    for case in cases("frames") {
        frames[case["number"].as_u64().unwrap() as usize - 70] += 1;
    }
    assert!(frames.iter().all(|n| *n >= 2), "{frames:?}");
    for (name, refusals) in
        [("layout-changes", 8), ("segment-names", 10), ("topic-names", 6), ("bucket-boundaries", 4)]
    {
        let mut found: Vec<String> =
            cases(name).iter().filter_map(|case| Some(case.get("refused")?.to_string())).collect();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), refusals, "{name}: {found:?}");
    }
}
