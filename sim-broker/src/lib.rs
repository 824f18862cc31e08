//! A simulated Pulsar cluster.
//!
//! | Module | Owns |
//! |---|---|
//! | [`core`] | the cluster as a pure state machine: no I/O, no clock, no randomness of its own |

pub mod core;
