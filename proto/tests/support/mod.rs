//! What the integration tests share: the recordings, and messages of any type.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // each test uses a part of it

use std::{fs, path::PathBuf};

use serde::Deserialize;
use serde_json::Value;
use stc_proto::fields::unhex;

pub(crate) mod arbitrary;

/// A file below `tests/`.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// One row of a recording (see `recordings/README.md`).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) n: u64,
    #[serde(rename = "t_ms")]
    pub(crate) _t_ms: u64,
    #[serde(rename = "conn")]
    pub(crate) _conn: u64,
    pub(crate) dir: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) fields: Value,
    pub(crate) cmd_len: Option<usize>,
    #[serde(default)]
    pub(crate) rewritten: bool,
    pub(crate) payload_len: usize,
    pub(crate) crc32c: Option<String>,
    pub(crate) metadata: Option<Value>,
    pub(crate) payload_hex: Option<String>,
    #[serde(default)]
    pub(crate) batch: Vec<BatchRow>,
    /// The file that the row is from.
    #[serde(skip)]
    pub(crate) file: String,
}

/// One message of a batch in a recording.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchRow {
    pub(crate) single_metadata: Value,
    pub(crate) payload_hex: String,
}

impl Row {
    /// Whether the row is a frame, and not something that the recorder noted.
    pub(crate) fn is_frame(&self) -> bool {
        !["MARK", "TCP_", "TAP_"].iter().any(|kind| self.kind.starts_with(kind))
    }

    /// Where the row is, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{} row {} ({})", self.file, self.n, self.kind)
    }

    /// The payload. The four that the recorder cut off consist of zeros, which their checksums confirm.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let hex = self.payload_hex.as_ref().expect("a row with a payload");
        let mut payload = unhex(hex.trim_end_matches("...")).unwrap();
        payload.resize(self.payload_len, 0);
        payload
    }
}

/// All rows of all recordings.
pub(crate) fn rows() -> Vec<Row> {
    let mut files: Vec<PathBuf> = fs::read_dir(path("recordings"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        for line in fs::read_to_string(&file).unwrap().lines() {
            let row: Row = serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {e}: {line}"));
            rows.push(Row { file: name.clone(), ..row });
        }
    }
    rows
}
