//! What `cargo xtask …` does, as a library: other crates' tests may start the real broker through it.
//!
//! - [`adapters`]: real clients, built and ready to run
//! - [`browser`]: reports looked at in a real browser
//! - [`conformance`]: judging a client by the scenarios
//! - [`containers`]: container images made on this machine
//! - [`crosscheck`]: the simulator measured against the real broker
//! - [`deviants`]: testing the scenarios by broken clients
//! - [`exit`]: the exit codes and how an error chooses one
//! - [`image`]: a container image of the program `stc`
//! - [`java`]: finding a JDK and Maven, and running a Maven project from the local repository
//! - [`real_broker`]: the released Pulsar standalone as a background process
//! - [`real_client`]: a real client against the simulated cluster, judged by what is stored
//! - [`sdk_page`]: the conformance tables in the pages of SDKs
//! - [`soak`]: the Java client's consumers through layout changes and failures, judged message by message
//! - [`mod@test`]: every check of the project
//! - [`transactions`]: transactions under seeded schedules of failures, all or nothing
//! - [`vectors`]: the golden vectors

// println! panics when the reader is gone; `stc_runner::output` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod adapters;
pub mod browser;
pub mod conformance;
pub mod containers;
pub mod crosscheck;
pub mod deviants;
pub mod exit;
pub mod image;
pub mod java;
pub mod real_broker;
pub mod real_client;
pub mod sdk_page;
pub mod soak;
mod tail;
pub mod test;
pub mod transactions;
pub mod vectors;

use std::path::{Path, PathBuf};

/// The root of the workspace, where `real-broker/`, `adapters/` and `target/` are.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}
