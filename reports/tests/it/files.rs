//! Writing into a folder.

use std::fs;
use std::path::{Path, PathBuf};

use stc_reports::{badge, ctrf, html, json, junit, markdown, write_all};

use crate::sample;

const FILES: [&str; 6] = ["report.html", "report.json", "report.md", "junit.xml", "ctrf.json", "badge.json"];

fn sorted() -> Vec<&'static str> {
    let mut files = FILES.to_vec();
    files.sort_unstable();
    files
}

/// A fresh folder below cargo's own for tests.
fn fresh(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reports-{}-{name}", std::process::id()));
    assert!(!dir.exists());
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn writes_every_format_and_replaces_what_was_there() {
    let dir = fresh("replace");
    let nested = dir.join("a/b");
    write_all(&sample::report(Vec::new()), &nested).unwrap();
    let report = sample::full();
    let written = write_all(&report, &nested).unwrap();
    assert_eq!(written, FILES.map(|n| nested.join(n)));
    // No temporary file stays behind.
    assert_eq!(names(&nested), sorted());
    let contents: Vec<String> = written.iter().map(|p| fs::read_to_string(p).unwrap()).collect();
    let expected = [
        html::render(&[&report]).unwrap(),
        json::render(&report).unwrap(),
        markdown::render(&report),
        junit::render(&report).unwrap(),
        ctrf::render(&report).unwrap(),
        badge::render(&report).unwrap(),
    ];
    assert_eq!(contents, expected);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn an_error_names_the_path_and_leaves_no_temporary_file() {
    let dir = fresh("error");
    // A folder stands where the file should go.
    fs::create_dir_all(dir.join("report.json/in-the-way")).unwrap();
    let error = write_all(&sample::full(), &dir).unwrap_err();
    assert!(error.to_string().contains("report.json"), "{error}");
    assert_eq!(names(&dir), ["report.html", "report.json"]);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let dir = fresh("file");
    fs::write(&dir, "a file").unwrap();
    let error = write_all(&sample::full(), &dir.join("below")).unwrap_err();
    assert!(error.to_string().contains("below"), "{error}");
    fs::remove_file(&dir).unwrap();
}
