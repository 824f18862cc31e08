//! `stc journal`: the journal of a simulated cluster that runs elsewhere, one line a record.

use std::io::{BufRead as _, BufReader};

use clap::Args;
use serde_json::Value as Json;
use stc_reports::ExitCode;

use crate::output::{complain, say};
use crate::transcript;

/// The `journal` command line.
#[derive(Debug, Args)]
pub(super) struct Journal {
    /// Admin URL of the simulated cluster
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    admin_url: String,
    /// Go on with what comes, until the cluster ends
    #[arg(long)]
    follow: bool,
    /// Number of the first record
    #[arg(long, value_name = "N", default_value_t = 1)]
    from: u64,
    /// Records as JSON, one a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Journal) -> ExitCode {
    match show(args) {
        Ok(()) => ExitCode::Conforms,
        Err(e) => {
            complain(format_args!("error: {}: {e}", args.admin_url));
            ExitCode::Harness
        }
    }
}

fn show(args: &Journal) -> Result<(), Box<dyn std::error::Error>> {
    let base = args.admin_url.trim_end_matches('/');
    let print = |row: &Json| {
        if args.json { say(row) } else { say(transcript::row(row.clone()).line()) }
    };
    if args.follow {
        let url = format!("{base}/control/v1/journal/follow?from={}", args.from);
        let mut response = ureq::get(&url).call()?;
        for line in BufReader::new(response.body_mut().as_reader()).lines() {
            print(&serde_json::from_str(&line?)?);
        }
        return Ok(());
    }
    let url = format!("{base}/control/v1/journal?from={}", args.from);
    let rows: Json = serde_json::from_str(&ureq::get(&url).call()?.body_mut().read_to_string()?)?;
    let rows = rows.get("records").unwrap_or(&rows);
    rows.as_array().into_iter().flatten().for_each(print);
    Ok(())
}
