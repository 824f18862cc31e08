//! The badge: a file for the endpoint badge of shields.io, to be put where that service can read it.

use serde_json::json;

use crate::model::Report;
use crate::score::Score;
use crate::verdict::ExitCode;

/// Renders the badge as JSON: the verdict and, where a client was judged, how many checklist items it has.
///
/// The badge of a part of the scenarios says so: a green badge of one tag must not pass for the whole.
///
/// # Errors
/// Never: it is a handful of short texts.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let part = if report.is_partial() { "partly run, " } else { "" };
    let items = Score::of(report).core;
    let (message, color) = match report.exit_code() {
        ExitCode::Conforms => (format!("{part}conforms, {} of {}", items.held, items.asked), "brightgreen"),
        ExitCode::DoesNotConform => (format!("{part}{} of {} items", items.held, items.asked), "red"),
        ExitCode::Usage => ("not run".to_owned(), "lightgrey"),
        ExitCode::Harness => ("not judged".to_owned(), "lightgrey"),
    };
    let judged = matches!(report.exit_code(), ExitCode::Conforms | ExitCode::DoesNotConform);
    let badge = json!({
        "schemaVersion": 1,
        "label": "scalable topics",
        "message": message,
        "color": color,
        "isError": !judged,
    });
    let mut text = serde_json::to_string_pretty(&badge)?;
    text.push('\n');
    Ok(text)
}
