//! The cluster as a client sees it: raw frames over in-memory links, under paused time.

// Helpers are no tests to clippy; a panic is how they fail one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

mod attach;
mod bad_input;
mod brokers;
mod connections;
mod controllers;
mod determinism;
mod drains;
mod faults;
mod layouts;
mod lists;
mod lookup;
mod migration;
mod model;
mod ordered;
mod recorded;
mod security;
mod topic_sets;
mod transactions;
mod watch;
