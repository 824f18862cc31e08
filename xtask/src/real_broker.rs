//! The released Pulsar standalone broker as a process on this machine's loopback.
//!
//! - [`cli`]: the `real-broker` command
//! - `launch`: the Java command line, the wait until it is ready
//! - `ports`: free ports
//! - `process`: signals and identity of a process that another call started
//! - `state`: what a running broker's work directory records

pub mod cli;
mod launch;
mod ports;
mod process;
mod state;

pub use launch::{Options, start};
pub use state::{Running, stop};
