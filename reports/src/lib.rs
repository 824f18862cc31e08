//! One report model of a conformance run, and its writers.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`model`] | the run: scenarios, steps, failures, requirements; plain data with a JSON Schema |
//! | [`verdict`] | verdicts, counts that add up, exit codes and how they are derived |
//! | [`requirement`] | what the scenarios say about each requirement of the specification |
//! | [`summary`] | what every writer says alike: the checklist table, headlines, the outcome in words |
//! | [`score`] | how far the client is, for people |
//! | [`wire`] | one record of the wire exchange |
//! | [`terminal`], [`junit`], [`json`], [`markdown`], [`ctrf`], [`badge`] | the writers: each turns a [`Report`] into text |
//! | [`html`] | one page of one or several reports, side by side |
//! | [`files`] | writing all file formats into a folder |
//!
//! The crate does no clock reading, no terminal detection and knows none of the other crates: whoever ran the
//! scenarios fills in a [`Report`] and says whether colour is wanted.
//!
//! Text in a report may come from the client under test or from the wire, so every writer treats it as hostile:
//! control characters are made visible, and nothing in it can end a table cell, a code block or an XML element.

pub mod badge;
pub mod ctrf;
pub mod files;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod model;
pub mod requirement;
pub mod score;
pub mod summary;
pub mod terminal;
mod text;
pub mod verdict;
pub mod wire;

pub use files::write_all;
pub use model::{
    ChecklistItem, ClientInfo, Failure, LeftOut, Report, ScenarioResult, StaleKnownFailure, StepResult,
    StepStatus, SuiteInfo, Target, TargetKind, Tool,
};
pub use requirement::{Level, RequirementResult, RequirementStatus};
pub use score::Score;
pub use verdict::{Chance, Counts, ExitCode, Verdict};
pub use wire::{WireKind, WireRecord};
