//! `stc reference-adapter`: the reference client, as the suite meets a client of another language.

use clap::Args;
use stc_reports::ExitCode;

use crate::adapter::reference;
use crate::cli::DeviantArg;
use crate::output::complain;

/// The `reference-adapter` command line.
#[derive(Debug, Args)]
pub(super) struct ReferenceAdapter {
    #[command(flatten)]
    deviant: DeviantArg,
}

pub(super) fn run(args: &ReferenceAdapter) -> ExitCode {
    let deviant = match args.deviant.find() {
        Ok(deviant) => deviant,
        Err(message) => {
            complain(format_args!("error: {message}"));
            return ExitCode::Usage;
        }
    };
    match reference::serve(deviant) {
        Ok(()) => ExitCode::Conforms,
        Err(e) => {
            complain(format_args!("error: {e}"));
            ExitCode::Harness
        }
    }
}
