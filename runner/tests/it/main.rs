//! Tests of the runner, and of the feature files and the catalogue that it runs.

mod features;
mod selection;
mod suite;
