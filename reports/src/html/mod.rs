//! The report as one HTML page that needs nothing else: no other file, no other host.
//!
//! | Module | What it owns |
//! |---|---|
//! | `page` | the frame of the page: verdicts, scores, what needs attention |
//! | `matrix` | the requirements by checklist item, a column for each run |
//! | `session` | the page of exchanges that were only recorded |
//! | `data` | what the script reads: scenarios, steps and wire exchanges as JSON inside the page |
//! | `assets/` | the style sheet and the script |
//!
//! What a reader needs first (verdict, score, failures, the matrix) is plain HTML. Steps and exchanges are JSON that
//! the script turns into elements when somebody opens a scenario, so that a page of thousands of frames opens at once.
//!
//! Everything in a report may come from the network. The templates escape, the JSON cannot end its element, the script
//! sets text and never markup, and a content security policy allows this one script and this one style sheet by their
//! hashes and no request at all.

mod data;
mod matrix;
mod page;
mod session;

pub use session::{Session, sessions};

use crate::model::Report;
use crate::requirement::RequirementStatus;
use crate::verdict::Verdict;

/// The style sheet.
const STYLE: &str = include_str!("assets/report.css");

/// The script; its parts share one scope, which the first opens and the last closes.
const SCRIPT: &str = concat!(
    include_str!("assets/base.js"),
    include_str!("assets/diagram.js"),
    include_str!("assets/scenario.js"),
    include_str!("assets/filter.js"),
);

/// The script of a page of recorded sessions, made of the same parts.
const SESSION_SCRIPT: &str = concat!(
    include_str!("assets/base.js"),
    include_str!("assets/diagram.js"),
    include_str!("assets/session.js"),
);

/// SHA-256 of these in base64, as a content security policy names them. A test compares them.
const STYLE_HASH: &str = include_str!("assets/report.css.sha256");
const SCRIPT_HASH: &str = include_str!("assets/script.sha256");
const SESSION_SCRIPT_HASH: &str = include_str!("assets/session.sha256");

/// Renders one report, or several side by side, each a column. Scenarios and requirements that not all of them know
/// are shown all the same.
///
/// # Errors
/// Never for reports of this crate: nothing in them has a map key or a number that JSON lacks.
pub fn render(reports: &[&Report]) -> Result<String, serde_json::Error> {
    let scenarios = data::scenarios(reports);
    let data = data::render(reports, &scenarios)?;
    Ok(page::page(reports, &scenarios, &data).into_string())
}

/// The style sheet and the scripts, for the test of their hashes.
pub fn assets() -> [(&'static str, &'static str); 3] {
    [(STYLE, STYLE_HASH), (SCRIPT, SCRIPT_HASH), (SESSION_SCRIPT, SESSION_SCRIPT_HASH)]
}

/// Letter of a run: its column's head.
fn letter(run: usize) -> String {
    u32::try_from(run)
        .ok()
        .and_then(|n| char::from_u32(u32::from('A') + n))
        .filter(char::is_ascii_uppercase)
        .map_or_else(|| format!("#{}", run + 1), String::from)
}

/// CSS class and sign of a verdict. Signs differ too: colour alone tells not everyone something.
fn verdict_look(verdict: Verdict, against: bool) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("good", "✓"),
        _ if against => ("bad", "✗"),
        Verdict::Fail | Verdict::KnownFailure => ("warn", "!"),
        Verdict::Unsupported => ("dim", "–"),
        Verdict::CouldNotRun => ("odd", "?"),
        Verdict::HarnessError => ("odd", "⚠"),
    }
}

/// CSS class and sign of a requirement's status.
fn status_look(status: &RequirementStatus) -> (&'static str, &'static str) {
    match status {
        RequirementStatus::Proven => ("good", "✓"),
        RequirementStatus::Broken => ("bad", "✗"),
        RequirementStatus::Known => ("warn", "!"),
        RequirementStatus::PartlyRun { .. } => ("dim", "◐"),
        RequirementStatus::NotRun => ("odd", "?"),
        RequirementStatus::Unsupported => ("dim", "–"),
        RequirementStatus::Unproven { .. } => ("dim", "○"),
    }
}
