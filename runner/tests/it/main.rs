//! Tests of the runner, and of the feature files and the catalogue that it runs.
// Helpers of tests may panic as tests may; clippy exempts test functions only.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod adapter;
mod ci;
mod elsewhere;
mod features;
mod known;
mod paired;
mod proxy;
mod run;
mod selection;
mod suite;
mod tap;
