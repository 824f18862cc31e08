//! `figures`: the simulator and the released broker side by side, measured in one run with the same clients.
//!
//! Two clients, the reference client and Pulsar's Java client, are programs with the same directions
//! (`client/examples/load.rs`, `stc.load.Timed`). Each measures itself; start-up is taken here, from the start of the
//! broker's process to the client's word that a message is acknowledged.
//!
//! - [`client`]: the clients' programs
//! - [`broker`]: the brokers' processes
//! - [`plan`]: what is measured, in which order
//! - [`table`]: medians, spread, and the table

pub mod broker;
pub mod client;
pub mod plan;
pub mod table;

use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use clap::Args;
use stc_runner::output::say;

use self::plan::Plan;

/// The `figures` command line.
#[derive(Debug, Clone, Args)]
pub struct Figures {
    /// How often everything is measured; medians and spread are printed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    repetitions: u32,
    /// Unbatched sends in each repetition, one after the other
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    sends: u32,
    /// How long each repetition sends batched messages, and receives
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Measure only with the reference client
    #[arg(long)]
    no_java: bool,
}

/// Builds what is measured, measures, and prints the table. The figures judge nothing: the exit code is 0.
///
/// # Errors
/// When something does not build or start, or a client ends early; brokers that were started are ended first.
pub fn run(figures: &Figures) -> anyhow::Result<ExitCode> {
    build()?;
    let _armed = broker::end_on_signals()?;
    let plan = Plan {
        repetitions: figures.repetitions,
        sends: figures.sends,
        seconds: f64::from(figures.seconds),
        java: !figures.no_java,
    };
    let measured = plan.carry_out()?;
    say(format_args!("{}", table::markdown(&measured)));
    Ok(ExitCode::SUCCESS)
}

/// Release builds: a debug build would measure the compiler.
fn build() -> anyhow::Result<()> {
    let status = Command::new("cargo")
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--package",
            "sim-broker",
            "--package",
            "stc-client",
        ])
        .args(["--bin", "sim-broker", "--example", "load"])
        .current_dir(xtask::workspace_root())
        .status()
        .context("cargo does not start")?;
    if !status.success() {
        bail!("the simulator and the load program do not build");
    }
    Ok(())
}
