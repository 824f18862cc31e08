//! The command that makes one page of JSON reports, each a column, or of recorded journals, each a diagram.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value as Json;
use stc_reports::html::{self, Session};
use stc_reports::{ExitCode, Report, WireRecord, files, json};

use crate::output::{complain, say};
use crate::transcript;

/// Makes one HTML page of JSON reports, the runs side by side, or of journals.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Where the page goes
    #[arg(long, value_name = "FILE")]
    pub html: PathBuf,
    /// Reports of runs (report.json), one alone or several as columns: SDKs, versions, targets; or journals (`stc tap
    /// --journal`, `stc journal --json`), whose exchanges are drawn
    #[arg(required = true, value_name = "REPORT|JOURNAL")]
    pub reports: Vec<PathBuf>,
}

/// Writes the page and prints its path. It judges nothing: 0 written, 2 a report cannot be used, 3 the page cannot be
/// written.
pub fn report(args: &ReportArgs) -> ExitCode {
    let page = match page(args) {
        Ok(page) => page,
        Err(message) => {
            complain(format_args!("error: {message}"));
            return ExitCode::Usage;
        }
    };
    match files::write(&args.html, &page) {
        Ok(()) => {
            say(args.html.display());
            ExitCode::Conforms
        }
        Err(e) => {
            complain(format_args!("error: {e}"));
            ExitCode::Harness
        }
    }
}

fn page(args: &ReportArgs) -> Result<String, String> {
    let (mut reports, mut journals): (Vec<Report>, Vec<(String, Vec<WireRecord>)>) = Default::default();
    for path in &args.reports {
        let failed = |e: String| format!("{}: {e}", path.display());
        let text = fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        match journal(&text).map_err(failed)? {
            Some(records) => journals.push((path.display().to_string(), records)),
            None => reports.push(json::read(&text).map_err(|e| failed(e.to_string()))?),
        }
    }
    let page = match (reports.is_empty(), journals.is_empty()) {
        (false, false) => return Err("reports and journals do not go on one page".to_owned()),
        (_, true) => html::render(&reports.iter().collect::<Vec<_>>()),
        (true, _) => {
            let sessions: Vec<_> = journals.iter().map(|(name, records)| Session { name, records }).collect();
            html::sessions(&sessions)
        }
    };
    page.map_err(|e| e.to_string())
}

/// The records of a journal, one JSON object a line; `None` where the text is something else. A last line that was not
/// written to its end is left out.
fn journal(text: &str) -> Result<Option<Vec<WireRecord>>, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let is_record = |row: &Json| row.get("dir").is_some() && row.get("type").is_some();
    let first: Option<Json> = lines.peek().and_then(|(_, line)| serde_json::from_str(line).ok());
    if !first.as_ref().is_some_and(is_record) {
        return Ok(None);
    }
    let mut records = Vec::new();
    while let Some((number, line)) = lines.next() {
        match serde_json::from_str::<Json>(line) {
            Ok(row) if is_record(&row) => records.push(transcript::row(row)),
            Err(_) if lines.peek().is_none() && !text.ends_with('\n') => {}
            _ => return Err(format!("line {} is no record of a journal", number + 1)),
        }
    }
    Ok(Some(records))
}
