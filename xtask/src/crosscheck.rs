//! `cargo xtask crosscheck`: builds and runs `stc-crosscheck`, whose dependencies no other command waits for.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::anyhow;
use clap::Args;

/// The `crosscheck` command line; `stc-crosscheck` parses it.
#[derive(Debug, Args)]
pub struct Crosscheck {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// Becomes cargo, so that Ctrl-C and the exit code pass through.
///
/// # Errors
/// When cargo does not start.
pub fn run(command: &Crosscheck) -> anyhow::Result<ExitCode> {
    let error = Command::new("cargo")
        .args(["run", "--quiet", "--package", "stc-crosscheck", "--"])
        .args(&command.arguments)
        .current_dir(crate::workspace_root())
        .exec();
    Err(anyhow!(error).context("cargo does not start"))
}
