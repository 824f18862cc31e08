//! How like the real thing the simulated cluster is, measured on the released Pulsar broker.
//!
//! A crate of its own, because containers bring many dependencies that `cargo xtask conformance` should not wait for:
//! `cargo xtask crosscheck` builds and runs it.
//!
//! - [`differential`]: random sequences of operations on both, compared step by step
//! - [`failover`]: a broker of two is killed or drained, on both
//! - [`figures`]: start-up, memory, throughput and latency of both, side by side
//! - [`ports`]: free ports
//! - [`portable`]: the scenarios that a real broker can run, on both, verdict by verdict
//! - [`recordings`]: the recorded exchanges of the real broker, replayed against the simulator
//! - [`signals`]: what is still done when somebody asks a run to end

// println! panics when the reader is gone; `stc_runner::output` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod differential;
pub mod failover;
pub mod figures;
pub mod portable;
pub mod ports;
pub mod recordings;
pub mod signals;
