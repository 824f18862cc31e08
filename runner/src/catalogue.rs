//! The catalogue of requirements (`features/requirements.yaml`), why they matter (`features/why.yaml`), and the checklist
//! it belongs to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use stc_reports::{ChecklistItem, Level};
use thiserror::Error;

/// Why the catalogue cannot be used.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: std::io::Error,
    },
    /// The file is not what a catalogue looks like.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        message: String,
    },
    /// Two entries have one id.
    #[error("requirement {0} is listed twice")]
    Duplicate(String),
    /// A text that says why requirements matter is about none that there is.
    #[error("why.yaml: there is no requirement {0}")]
    Unknown(String),
}

impl CatalogueError {
    fn at(self, path: &Path) -> CatalogueError {
        match self {
            CatalogueError::Parse { message, .. } => CatalogueError::Parse { path: path.to_owned(), message },
            other => other,
        }
    }
}

fn read(path: &Path) -> Result<String, CatalogueError> {
    fs::read_to_string(path).map_err(|source| CatalogueError::Read { path: path.to_owned(), source })
}

/// Every requirement that the suite knows, in the order of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// Version of the suite, catalogue and scenarios together.
    pub version: String,
    /// Version of the specification that the entries are from.
    pub specification: String,
    /// Why entries have no scenario: key to sentence. [`Requirement::unproven`] names a key.
    pub reasons: BTreeMap<String, String>,
    /// The entries.
    pub requirements: Vec<Requirement>,
    /// Why they matter, by id. Filled by [`Catalogue::explain`].
    #[serde(skip)]
    why: BTreeMap<String, String>,
}

/// One text of `why.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    requirements: Vec<String>,
    why: String,
}

/// One normative sentence of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Permanent id, such as `IMPL-2.1`.
    pub id: String,
    /// MUST, MUST NOT, SHOULD, SHOULD NOT or MAY.
    pub level: Strength,
    /// Checklist item (`C1`…), optional capability, or `-`.
    pub checklist: String,
    /// `client` or `broker`.
    pub binds: String,
    /// Document, such as `client-behavior`.
    pub document: String,
    /// Section of the document, such as `2`.
    pub section: String,
    /// What it asks for, in one sentence.
    pub summary: String,
    /// Why no scenario cites it: a key of [`Catalogue::reasons`], or `same-as ID`.
    #[serde(default)]
    pub unproven: Option<String>,
}

/// How strongly an entry binds, as the catalogue writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Strength {
    /// An absolute requirement.
    #[serde(rename = "MUST")]
    Must,
    /// An absolute prohibition.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// A recommendation.
    #[serde(rename = "SHOULD")]
    Should,
    /// A recommendation against something.
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// A permission.
    #[serde(rename = "MAY")]
    May,
}

impl From<Strength> for Level {
    fn from(strength: Strength) -> Self {
        match strength {
            Strength::Must | Strength::MustNot => Level::Must,
            Strength::Should | Strength::ShouldNot => Level::Should,
            Strength::May => Level::May,
        }
    }
}

impl Strength {
    /// Whether breaking it breaks conformance.
    pub fn is_absolute(self) -> bool {
        Level::from(self).is_absolute()
    }
}

impl Requirement {
    /// The entry that this one repeats, if it says `same-as ID`.
    pub fn same_as(&self) -> Option<&str> {
        self.unproven.as_deref()?.strip_prefix("same-as ").map(str::trim)
    }
}

impl Catalogue {
    /// Reads the catalogue.
    ///
    /// # Errors
    /// [`CatalogueError`]; a parse error names the line.
    pub fn load(path: &Path) -> Result<Catalogue, CatalogueError> {
        let text = read(path)?;
        Catalogue::parse(&text).map_err(|e| e.at(path))
    }

    /// Reads why requirements matter from a file.
    ///
    /// # Errors
    /// [`CatalogueError`]; a parse error names the line.
    pub fn explain_from(self, path: &Path) -> Result<Catalogue, CatalogueError> {
        let text = read(path)?;
        self.explain(&text).map_err(|e| e.at(path))
    }

    /// Reads the text of a catalogue.
    ///
    /// # Errors
    /// [`CatalogueError`], with an empty path.
    pub fn parse(text: &str) -> Result<Catalogue, CatalogueError> {
        let catalogue: Catalogue = serde_saphyr::from_str(text)
            .map_err(|e| CatalogueError::Parse { path: PathBuf::new(), message: e.to_string() })?;
        let mut seen = std::collections::BTreeSet::new();
        for entry in &catalogue.requirements {
            if !seen.insert(entry.id.as_str()) {
                return Err(CatalogueError::Duplicate(entry.id.clone()));
            }
        }
        Ok(catalogue)
    }

    /// Reads why requirements matter, the text of `why.yaml`.
    ///
    /// # Errors
    /// [`CatalogueError`], with an empty path.
    pub fn explain(mut self, text: &str) -> Result<Catalogue, CatalogueError> {
        let texts: Vec<Why> = serde_saphyr::from_str(text)
            .map_err(|e| CatalogueError::Parse { path: PathBuf::new(), message: e.to_string() })?;
        for Why { requirements, why } in texts {
            for id in requirements {
                if self.get(&id).is_none() {
                    return Err(CatalogueError::Unknown(id));
                }
                if self.why.insert(id.clone(), why.clone()).is_some() {
                    return Err(CatalogueError::Duplicate(id));
                }
            }
        }
        Ok(self)
    }

    /// What somebody who uses a client loses when it breaks this requirement; one that repeats another has that one's
    /// text.
    pub fn why(&self, entry: &Requirement) -> Option<&str> {
        let repeated = || self.why.get(entry.same_as()?);
        self.why.get(&entry.id).or_else(repeated).map(String::as_str)
    }

    /// The entry of this id.
    pub fn get(&self, id: &str) -> Option<&Requirement> {
        self.requirements.iter().find(|r| r.id == id)
    }

    /// The entries of the required core: those that belong to no optional capability.
    pub fn core(&self) -> impl Iterator<Item = &Requirement> {
        self.of_capabilities(false)
    }

    /// The entries of the optional capabilities.
    pub fn optional(&self) -> impl Iterator<Item = &Requirement> {
        self.of_capabilities(true)
    }

    fn of_capabilities(&self, wanted: bool) -> impl Iterator<Item = &Requirement> {
        let optional: Vec<String> = checklist().into_iter().filter(|i| !i.required).map(|i| i.id).collect();
        self.requirements.iter().filter(move |r| optional.contains(&r.checklist) == wanted)
    }

    /// Whether a tag has the form of a requirement id of this catalogue: a known document prefix, then a number.
    pub fn looks_like_id(tag: &str) -> bool {
        const DOCUMENTS: [&str; 11] =
            ["API", "IMPL", "WIRE", "KS", "ERR", "DATA", "COMPAT", "STAB", "CONF", "CONV", "TERM"];
        tag.split_once('-').is_some_and(|(document, number)| {
            DOCUMENTS.contains(&document)
                && number.contains('.')
                && number.split('.').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
    }

    /// The sentence that explains why an entry has no scenario; `None` when it must have one.
    pub fn reason(&self, entry: &Requirement) -> Option<String> {
        let unproven = entry.unproven.as_deref()?;
        Some(self.reasons.get(unproven).cloned().unwrap_or_else(|| unproven.to_owned()))
    }
}

/// The checklist of conformance §2 and §3, in the order of tables. Requirements that it has no item for are filed
/// under `-`.
pub fn checklist() -> Vec<ChecklistItem> {
    const ITEMS: [(&str, &str, bool); 24] = [
        ("C1", "Resolution and layout tracking", true),
        ("C2", "Producer routing", true),
        ("C3", "Publish order", true),
        ("C4", "Segment-gone retry", true),
        ("C5", "Deduplication", true),
        ("C6", "Producer access modes", true),
        ("C7", "Stream consumer", true),
        ("C8", "Queue consumer", true),
        ("C9", "Checkpoint consumer", true),
        ("C10", "Message ids and checkpoints", true),
        ("C11", "Schema", true),
        ("C12", "Auto-creation and not-found", true),
        ("C13", "Error model", true),
        ("C14", "Resource lifetime", true),
        ("C15", "Feature gating", true),
        ("KS-4", "Shared segments of a stream consumer", true),
        ("KS-9", "Mixed clients on shared segments", true),
        ("transactions", "Transactions", false),
        ("namespace", "Namespace subscription", false),
        ("entry-bucketing", "Entry buckets of a producer", false),
        ("dead-letter", "Dead letters", false),
        ("encryption", "End-to-end encryption", false),
        ("chunking-compression-batching", "Chunks, compression, batching policies", false),
        ("migration", "Migration bridge", false),
    ];
    ITEMS
        .iter()
        .map(|(id, title, required)| ChecklistItem {
            id: (*id).to_owned(),
            title: (*title).to_owned(),
            required: *required,
        })
        .collect()
}
