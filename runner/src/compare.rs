//! The command that makes one page of the JSON reports of several runs, each a column.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use stc_reports::{ExitCode, Report, files, html, json};

use crate::output::{complain, say};

/// Makes one HTML page of JSON reports, the runs side by side.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Where the page goes
    #[arg(long, value_name = "FILE")]
    pub html: PathBuf,
    /// Reports of runs (report.json); one alone, or several as columns: SDKs, versions, targets
    #[arg(required = true, value_name = "REPORT")]
    pub reports: Vec<PathBuf>,
}

/// Writes the page and prints its path. It judges nothing: 0 written, 2 a report cannot be used, 3 the page cannot be
/// written.
pub fn report(args: &ReportArgs) -> ExitCode {
    let mut reports: Vec<Report> = Vec::with_capacity(args.reports.len());
    for path in &args.reports {
        let read = fs::read_to_string(path).map_err(|e| e.to_string());
        match read.and_then(|text| json::read(&text).map_err(|e| e.to_string())) {
            Ok(report) => reports.push(report),
            Err(e) => {
                complain(format_args!("error: {}: {e}", path.display()));
                return ExitCode::Usage;
            }
        }
    }
    let references: Vec<&Report> = reports.iter().collect();
    let page = html::render(&references).map_err(|e| e.to_string());
    match page.and_then(|page| files::write(&args.html, &page).map_err(|e| e.to_string())) {
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
