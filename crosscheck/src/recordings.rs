//! The recorded exchanges of the real broker, replayed against the simulator.

use std::process::{Command, ExitCode};

use anyhow::Context;

/// Replays every recording; prints how many frames agree. The exit code is 1 when fewer do than `docs/likeness.md`
/// says.
///
/// # Errors
/// When cargo does not start.
pub fn run() -> anyhow::Result<ExitCode> {
    let status = Command::new("cargo")
        .args(["test", "--quiet", "--workspace", "--test", "recordings", "--", "--nocapture"])
        .current_dir(xtask::workspace_root())
        .status()
        .context("cargo does not start")?;
    Ok(ExitCode::from(if status.success() { 0 } else { xtask::exit::FAILED }))
}
