//! Differential runs: random sequences of operations on the simulated cluster and on the released broker, with the same
//! client and the same admin calls, compared step by step.
//!
//! | Module | Owns |
//! |---|---|
//! | [`op`] | the operations, as data and as a script |
//! | [`generate`] | sequences at random, and how they shrink |
//! | [`side`] | the two sides, and clients whose connections can be cut |
//! | [`world`] | carrying out a sequence on one side |
//! | `readers` | its consumers |
//! | `chance` | what is a matter of chance on a real broker, and how sequences stay clear of it |
//! | `observe` | what the admin REST tells |
//! | [`trace`] | what was seen, as values |
//! | [`mod@bench`] | one sequence on both sides |
//! | [`compare`] | the comparison |
//! | [`equivalences`] | the differences that are explained |
//! | [`shrink`] | making a divergence shorter |
//! | `broker` | the real broker of a run |
//! | `report` | how a divergence is told |
//! | `run` | the command: many sequences at once, figures |
//!
//! The simulated side runs first, in virtual time: every step waits until nothing moves any more. What it saw is what the
//! real side waits for, step by step, so that no step there waits for time to pass; it may wait in vain, which is a
//! divergence.

pub mod bench;
mod broker;
mod chance;
pub mod compare;
pub mod equivalences;
pub mod generate;
mod observe;
pub mod op;
mod readers;
mod report;
mod run;
pub mod shrink;
pub mod side;
pub mod trace;
pub mod world;

pub use run::{Options, run};
