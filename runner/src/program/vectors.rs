//! `stc vectors`: the golden vectors, for the unit tests of a client.

use std::path::PathBuf;

use clap::Args;
use stc_reports::ExitCode;
use stc_vectors::store;

use crate::output::{complain, say};

/// The `vectors` command line.
#[derive(Debug, Args)]
pub(super) struct Vectors {
    /// Folder to write them into, with their JSON Schemas
    #[arg(long, value_name = "DIR", default_value = "stc-vectors")]
    out: PathBuf,
}

pub(super) fn run(args: &Vectors) -> ExitCode {
    let documents = match stc_vectors::generate() {
        Ok(documents) => documents,
        Err(e) => {
            complain(format_args!("error: {e}"));
            return ExitCode::Harness;
        }
    };
    if let Err(e) = store::write(&args.out, &documents) {
        complain(format_args!("error: {e}"));
        return ExitCode::Harness;
    }
    say(format_args!("wrote {} files of golden vectors into {}", documents.len(), args.out.display()));
    ExitCode::Conforms
}
