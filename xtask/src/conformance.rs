//! `cargo xtask conformance`: runs the scenarios against a client and judges it.

use std::process::ExitCode;

use stc_runner::cli::{self, ConformanceArgs};

use crate::workspace_root;

/// How the command is called.
pub const PROGRAM: &str = "cargo xtask conformance";

/// Runs it. The exit code says how it went: 0 conforms, 1 does not, 2 usage or an empty selection, 3 the harness or
/// its environment failed.
#[must_use]
pub fn run(args: &ConformanceArgs) -> ExitCode {
    cli::conformance(args, &workspace_root().join("features"), PROGRAM).into()
}
