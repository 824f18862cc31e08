//! The HTTP side of the cluster, called on its routers without sockets; `tcp` goes over one.

// Helpers are no tests to clippy; a panic is how they fail one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod auth;
mod control;
mod likeness;
mod nonsense;
mod page;
mod stats;
mod support;
mod tcp;

/// The client of raw frames that the tests of the cluster use, of which these need little.
#[path = "../cluster/support.rs"]
#[allow(dead_code)]
mod raw;
