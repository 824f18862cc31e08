//! The report as JSON, and the JSON Schema of it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::Report;
use crate::verdict::Counts;

/// Version of the format. It rises when a reader of the old format could misread the new one.
pub const FORMAT: u32 = 2;

/// A report of one conformance run: the run itself, and what follows from it.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Report of a conformance run")]
struct Document<'a> {
    /// Version of this format.
    format: u32,
    /// Counts over all scenarios; they add up to the total.
    counts: Counts,
    /// Exit code of the run: 0 conforms, 1 does not (or the known-failures list is stale), 2 nothing was selected,
    /// 3 the harness or the environment failed.
    exit_code: u8,
    #[serde(flatten)]
    report: &'a Report,
}

/// Renders the report as indented JSON that [`schema`] describes. A [`Report`] can be read back from it.
///
/// Numbers are written in full; `seed` may be larger than what JavaScript keeps exactly, but `command` and each
/// `replay` hold it as text too.
///
/// # Errors
/// Never for a report of this crate: nothing in it has a map key or a number that JSON lacks.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let document =
        Document { format: FORMAT, counts: report.counts(), exit_code: report.exit_code().code(), report };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// Why a text is not a report that this version can read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is no JSON, or no report.
    #[error("not a report of a conformance run: {0}")]
    Parse(#[from] serde_json::Error),
    /// It was written by another version.
    #[error("its format is {found}, this version reads {FORMAT}")]
    Format {
        /// The format that it names.
        found: u32,
    },
}

/// Reads back what [`render`] wrote.
///
/// # Errors
/// [`ReadError`].
pub fn read(text: &str) -> Result<Report, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    // The format goes first: a report of another one would only complain about a field.
    let head: Head = serde_json::from_str(text)?;
    if head.format != FORMAT {
        return Err(ReadError::Format { found: head.format });
    }
    Ok(serde_json::from_str(text)?)
}

/// The JSON Schema (draft 2020-12) of what [`render`] writes. `schema/report.schema.json` is a copy of it.
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Document<'static>>()
        .to_value()
}
