//! The program `stc`: its commands, each thin over the library.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use stc_reports::ExitCode;

use crate::cli::{self, ConformanceArgs};
use crate::compare::{self, ReportArgs};
use crate::output::complain;
use crate::suite::{Suite, SuiteError};

mod adapter_check;
mod explain;
mod journal;
mod reference_adapter;
mod tap;
mod vectors;

/// How the program is called, for the commands to paste.
const RUN: &str = "stc run";

/// Conformance of clients of Apache Pulsar's Scalable Topics
#[derive(Debug, Parser)]
#[command(name = "stc", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the scenarios against a client and judge it
    Run(Box<Run>),
    /// Say what a requirement asks for, why, which scenarios prove it, and show a client that breaks it; what a scenario or
    /// an item of the checklist is made of
    Explain(explain::Explain),
    /// Tell whether an adapter itself is sound, without judging its SDK
    AdapterCheck(adapter_check::AdapterCheck),
    /// Serve a simulated cluster, to work with by hand
    Serve(Box<sim_broker::program::Options>),
    /// Stand between a client and a broker, and show what they say
    Tap(tap::Tap),
    /// Show the journal of a simulated cluster
    Journal(journal::Journal),
    /// Write the golden vectors, for the unit tests of a client
    Vectors(vectors::Vectors),
    /// Make one page of the JSON reports of several runs, side by side, or of journals
    Report(ReportArgs),
    /// Be the adapter of the reference client, on standard input and output
    ReferenceAdapter(reference_adapter::ReferenceAdapter),
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    conformance: ConformanceArgs,
    #[command(flatten)]
    features: Features,
}

/// Which suite.
#[derive(Debug, Clone, Args)]
struct Features {
    /// Feature files and catalogue from this folder instead of those that the program carries
    #[arg(long = "features", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Features {
    fn suite(&self) -> Result<Suite, SuiteError> {
        self.folder.as_deref().map_or_else(Suite::embedded, Suite::load)
    }
}

/// Parses the command line and does what it says.
pub fn main() -> std::process::ExitCode {
    let code = match Cli::parse().command {
        Command::Run(run) => match run.features.suite() {
            Ok(suite) => cli::conformance(&run.conformance, &suite, RUN),
            Err(e) => {
                complain(format_args!("error: {e}"));
                ExitCode::Usage
            }
        },
        Command::Explain(args) => explain::explain(&args),
        Command::AdapterCheck(args) => adapter_check::run(&args),
        Command::Serve(options) => return sim_broker::program::serve(&options),
        Command::Tap(args) => tap::run(&args),
        Command::Journal(args) => journal::run(&args),
        Command::Vectors(args) => vectors::run(&args),
        Command::Report(args) => compare::report(&args),
        Command::ReferenceAdapter(args) => reference_adapter::run(&args),
    };
    code.into()
}
