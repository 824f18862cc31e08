//! `cargo xtask conformance`: runs the scenarios against a client and judges it.

use std::process::ExitCode;

use stc_runner::cli::{self, ConformanceArgs};
use stc_runner::output::complain;
use stc_runner::suite::Suite;

use crate::{exit, workspace_root};

/// How the command is called.
pub const PROGRAM: &str = "cargo xtask conformance";

/// Runs it. The exit code says how it went: 0 conforms, 1 does not, 2 usage or an empty selection, 3 the harness or
/// its environment failed.
#[must_use]
pub fn run(args: &ConformanceArgs) -> ExitCode {
    // From the folder, so that an edited feature needs no build.
    match Suite::load(&workspace_root().join("features")) {
        Ok(suite) => cli::conformance(args, &suite, PROGRAM).into(),
        Err(e) => {
            complain(format_args!("error: {e}"));
            ExitCode::from(exit::USAGE)
        }
    }
}
