//! The client against the simulated cluster, over links in memory and under paused time.

// Helpers are no tests to clippy; a panic is how they fail one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// Each test prints its seed.
#![allow(clippy::print_stdout)]

mod blocking;
mod checkpointing;
mod chunking;
mod classic;
mod consuming;
mod dead_letters;
mod encryption;
mod golden;
mod limits;
mod namespaces;
mod producing;
mod public_api;
mod resilience;
mod schemas;
mod security;
mod streaming;
mod support;
mod transactions;
