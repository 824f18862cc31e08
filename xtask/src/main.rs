//! `cargo xtask …`: parses the command line and calls the library.

// println! panics when the reader is gone; `stc_runner::output` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use stc_runner::compare::{self, ReportArgs};
use stc_runner::{cli::ConformanceArgs, deviants::DeviantsArgs};
use xtask::{
    adapters, browser, conformance, crosscheck, deviants, exit, image, real_broker, real_client, sdk_page,
    test, transactions, vectors,
};

/// Development tasks of the conformance suite.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the scenarios against a client and judge it
    Conformance(Box<ConformanceArgs>),
    /// Measure the simulated cluster against the released Pulsar broker
    #[command(disable_help_flag = true)]
    Crosscheck(crosscheck::Crosscheck),
    /// Show that clients which are broken on purpose are caught
    Deviants(DeviantsArgs),
    /// Make one page of the JSON reports of several runs, side by side, or of journals
    Report(ReportArgs),
    /// Look at reports in a real browser (Chromium): filters, diagrams, screenshots, print
    Browser(browser::Browser),
    /// Start, stop or look at the released Pulsar standalone broker
    RealBroker(real_broker::cli::RealBroker),
    /// Make a container image of the program `stc`
    Image(image::Image),
    /// Run a real client against a broker, building it first when needed
    Adapter(adapters::Run),
    /// Run a real client against the simulated cluster and judge it by what is stored
    RealClient(real_client::RealClient),
    /// Write the conformance table of an SDK's page (docs/sdk-*.md) from the report of a run
    SdkPage(sdk_page::SdkPage),
    /// Every check of the project; what this machine has no tools for is named and left out
    Test(test::Test),
    /// Run transactions under seeded schedules of failures, and see that each shows whole or not at all
    Transactions(transactions::Transactions),
    /// Write or check the golden vectors
    Vectors(vectors::Vectors),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.task {
        Task::Conformance(args) => Ok(conformance::run(&args)),
        Task::Crosscheck(command) => crosscheck::run(&command),
        Task::Deviants(args) => Ok(deviants::run(&args)),
        Task::Report(args) => Ok(compare::report(&args).into()),
        Task::Browser(command) => browser::run(&command),
        Task::RealBroker(command) => real_broker::cli::run(command),
        Task::Image(command) => image::run(&command),
        Task::Adapter(command) => adapters::run(&command),
        Task::RealClient(command) => real_client::run(&command),
        Task::SdkPage(command) => sdk_page::run(&command),
        Task::Test(command) => test::run(&command),
        Task::Transactions(args) => transactions::run(&args),
        Task::Vectors(command) => vectors::run(&command),
    };
    result.unwrap_or_else(|error| exit::report(&error))
}
