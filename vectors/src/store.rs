//! A directory of vectors: `v1/*.json` and `schema/*.schema.json` below one root.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::Document;

/// A file that could not be read or written.
#[derive(Debug, Error)]
#[error("cannot use {}", path.display())]
pub struct StoreError {
    /// The file or directory.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Where a directory differs from what the generator makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The file is not there.
    Missing(PathBuf),
    /// A line is another one.
    Line {
        /// The file.
        file: PathBuf,
        /// The number of the first such line, from 1.
        line: usize,
        /// The line in the directory; empty behind its last line.
        found: String,
        /// The line as generated; empty behind its last line.
        expected: String,
    },
    /// No generator makes this file.
    Unknown(PathBuf),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Difference::Missing(file) => write!(f, "{}: missing", file.display()),
            Difference::Unknown(file) => write!(f, "{}: no generator makes it", file.display()),
            Difference::Line { file, line, found, expected } => {
                let cut = |text: &str| text.chars().take(300).collect::<String>();
                write!(
                    f,
                    "{}:{line}: the file says   {}\n{}:{line}: the generator says {}",
                    file.display(),
                    cut(found),
                    file.display(),
                    cut(expected)
                )
            }
        }
    }
}

/// The files of a document below `root`, with their texts.
fn files<'a>(root: &Path, document: &'a Document) -> [(PathBuf, &'a str); 2] {
    [
        (root.join("v1").join(format!("{}.json", document.name)), document.text.as_str()),
        (root.join("schema").join(format!("{}.schema.json", document.name)), document.schema.as_str()),
    ]
}

/// Writes the files below `root`, making the directories when needed. Other files are left alone.
///
/// # Errors
/// A directory or file that cannot be written.
pub fn write(root: &Path, documents: &[Document]) -> Result<(), StoreError> {
    for (path, text) in documents.iter().flat_map(|document| files(root, document)) {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)
                .map_err(|source| StoreError { path: directory.to_path_buf(), source })?;
        }
        fs::write(&path, text).map_err(|source| StoreError { path, source })?;
    }
    Ok(())
}

/// Compares the files below `root` with the generated ones; empty when they are the same.
///
/// # Errors
/// A directory or file that is there and cannot be read.
pub fn compare(root: &Path, documents: &[Document]) -> Result<Vec<Difference>, StoreError> {
    let mut differences = Vec::new();
    let mut known = BTreeSet::new();
    for (path, expected) in documents.iter().flat_map(|document| files(root, document)) {
        match fs::read(&path) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                differences.push(Difference::Missing(path.clone()));
            }
            Err(source) => return Err(StoreError { path, source }),
            Ok(bytes) => {
                differences.extend(first_difference(&path, &String::from_utf8_lossy(&bytes), expected));
            }
        }
        known.insert(path);
    }
    for directory in ["v1", "schema"].map(|name| root.join(name)) {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let error = |source| StoreError { path: directory.clone(), source };
        for entry in entries {
            let path = entry.map_err(error)?.path();
            if path.extension() == Some(OsStr::new("json")) && !known.contains(&path) {
                differences.push(Difference::Unknown(path));
            }
        }
    }
    Ok(differences)
}

fn first_difference(file: &Path, found: &str, expected: &str) -> Option<Difference> {
    if found == expected {
        return None;
    }
    // With the line ends, so that a changed one shows too.
    let (mut left, mut right) = (found.split_inclusive('\n'), expected.split_inclusive('\n'));
    let mut line = 0;
    loop {
        line += 1;
        let (found, expected) = (left.next().unwrap_or_default(), right.next().unwrap_or_default());
        if found != expected {
            let text = |line: &str| line.trim_end_matches('\n').to_owned();
            return Some(Difference::Line {
                file: file.to_path_buf(),
                line,
                found: text(found),
                expected: text(expected),
            });
        }
    }
}
