//! The form of a vectors file: a header, then one case a line, in plain ASCII, with a JSON Schema beside it.

use std::io;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;
use thiserror::Error;

/// The version of the form and of the directory `v1`. A change that a reader of version 1 would not understand makes
/// another version and another directory.
pub const VERSION: u32 = 1;

/// A fault of the generator: a case that contradicts itself, or a value that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot generate {file}: {reason}")]
pub struct GenerateError {
    /// The file, without its ending.
    pub file: &'static str,
    /// What is wrong.
    pub reason: String,
}

impl GenerateError {
    /// The fault `reason` in `file`.
    pub fn new(file: &'static str, reason: impl std::fmt::Display) -> Self {
        GenerateError { file, reason: reason.to_string() }
    }
}

/// What a file is about.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `scalable-topics-vectors`.
    pub format: String,
    /// The version of the form.
    pub version: u32,
    /// What the file holds, in a few words.
    pub title: String,
    /// How a case is to be read.
    pub description: String,
    /// The sections of the Scalable Topics Client Specification 1.0 that the cases follow.
    pub specification: Vec<Section>,
    /// What made the file.
    pub generator: String,
    /// The seed of what was drawn at random; null when nothing was.
    pub seed: Option<u64>,
    /// The SPDX identifier of the license.
    pub license: String,
}

/// A section of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// The document, like `client-behavior`.
    pub document: String,
    /// The section's number, like `2` or `6.2`.
    pub section: String,
}

/// A whole file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File<C> {
    /// Where the schema is, relative to the file.
    #[serde(rename = "$schema")]
    pub schema: String,
    /// What the file is about.
    pub header: Header,
    /// The cases. New ones are added at the end.
    pub cases: Vec<C>,
}

/// What a generator says about its file.
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    /// `document §section`, several divided by commas.
    pub(crate) specification: &'static str,
    pub(crate) seed: Option<u64>,
}

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name without `.json`.
    pub name: &'static str,
    /// How many cases it has.
    pub cases: usize,
    /// Its text.
    pub text: String,
    /// The text of its JSON Schema.
    pub schema: String,
}

impl Document {
    pub(crate) fn new<C: Serialize + JsonSchema>(about: &About, cases: &[C]) -> Result<Self, GenerateError> {
        let error = |e: serde_json::Error| GenerateError::new(about.name, e);
        let header = Header {
            format: "scalable-topics-vectors".to_owned(),
            version: VERSION,
            title: about.title.to_owned(),
            description: about.description.to_owned(),
            specification: sections(about.specification),
            generator: "cargo xtask vectors generate".to_owned(),
            seed: about.seed,
            license: "Apache-2.0".to_owned(),
        };
        let schema = ascii(&format!("../schema/{}.schema.json", about.name)).map_err(error)?;
        let lines = cases.iter().map(ascii).collect::<Result<Vec<_>, _>>().map_err(error)?;
        let text = format!(
            "{{\n\"$schema\":{schema},\n\"header\":{},\n\"cases\":[\n{}\n]\n}}\n",
            ascii(&header).map_err(error)?,
            lines.join(",\n")
        );
        let settings = SchemaSettings::draft2020_12();
        let mut root = SchemaGenerator::new(settings).into_root_schema_for::<File<C>>();
        root.insert("title".to_owned(), about.title.into());
        root.insert("description".to_owned(), about.description.into());
        let schema = serde_json::to_string_pretty(&root).map_err(error)? + "\n";
        Ok(Document { name: about.name, cases: cases.len(), text, schema })
    }
}

fn sections(text: &str) -> Vec<Section> {
    let section = |one: &str| {
        let (document, section) = one.split_once(" §").unwrap_or((one, ""));
        Section { document: document.to_owned(), section: section.to_owned() }
    };
    text.split(", ").map(section).collect()
}

/// JSON on one line, in which nothing but ASCII stands: no editor, diff or checkout can change a key then.
fn ascii(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Ascii))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        for c in text.chars() {
            if c.is_ascii() && !c.is_ascii_control() {
                writer.write_all(&[c as u8])?;
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ascii_and_read_back() {
        for text in ["a\"\\\n\0\u{7f}", "e\u{301}", "\u{1f511}\u{200b}"] {
            let line = ascii(&text).unwrap();
            assert!(line.is_ascii() && !line.contains(|c: char| c.is_ascii_control()), "{line}");
            assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
        }
    }

    #[test]
    fn sections_are_listed() {
        let found = sections("client-behavior §2, key-shared §9");
        let expected = [("client-behavior", "2"), ("key-shared", "9")]
            .map(|(document, section)| Section { document: document.into(), section: section.into() });
        assert_eq!(found, expected);
    }
}
