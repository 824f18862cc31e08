//! `cargo xtask crosscheck …`: parses the command line and calls the library.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use stc_crosscheck::portable::{self, Portable};
use stc_crosscheck::{differential, failover, figures, recordings};

/// Measure the simulated cluster against the released Pulsar broker; without a part: all of them but the figures.
#[derive(Parser)]
#[command(
    name = "cargo xtask crosscheck",
    bin_name = "cargo xtask crosscheck",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// Kill and drain a broker of two under producers and consumers, on both, and compare what is seen
    Failover(failover::Failover),
    /// Measure start-up, memory, throughput and latency of both, side by side
    Figures(figures::Figures),
    /// Run the portable scenarios on both, with the reference client and the V5 Java client, and compare the verdicts
    Portable(Portable),
    /// Replay the recorded exchanges of the real broker against the simulator
    Recordings,
    /// Random sequences of operations on the simulator and on the real broker, compared step by step
    Differential(differential::Options),
}

fn main() -> ExitCode {
    let result = Cli::parse().part.map_or_else(all, run);
    result.unwrap_or_else(|error| xtask::exit::report(&error))
}

fn run(part: Part) -> anyhow::Result<ExitCode> {
    match part {
        Part::Failover(failover) => failover::run(&failover),
        Part::Figures(figures) => figures::run(&figures),
        Part::Portable(args) => portable::run(&args),
        Part::Recordings => recordings::run(),
        Part::Differential(options) => differential::run(&options),
    }
}

/// The parts one after the other; the first code that is not good counts.
fn all() -> anyhow::Result<ExitCode> {
    let parts: [&[&str]; 4] =
        [&["recordings"], &["differential", "--sequences", "40"], &["portable"], &["failover"]];
    let mut outcome = ExitCode::SUCCESS;
    for words in parts {
        // Their options have the defaults that the command line gives them.
        let cli = Cli::try_parse_from(["crosscheck"].iter().chain(words))?;
        let code = cli.part.map_or(Ok(ExitCode::SUCCESS), run)?;
        if outcome == ExitCode::SUCCESS {
            outcome = code;
        }
    }
    Ok(outcome)
}
