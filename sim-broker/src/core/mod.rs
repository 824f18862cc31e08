//! The cluster as a pure state machine.
//!
//! Every call gets the time and appends what shall happen to an [`Effects`]; nothing here does I/O, reads a clock or
//! draws a random number. Same calls, same effects.
//!
//! | Module | Owns |
//! |---|---|
//! | [`ids`] | identities of brokers, connections, producers and consumers |
//! | [`effects`] | what a call wants to happen outside |
//! | [`topic`] | one stored topic: its messages, producers, subscriptions and schemas |

pub mod effects;
pub mod ids;
pub mod topic;

pub use effects::{Effect, Effects};
pub use ids::{BrokerId, ConnId, ConsumerKey, Millis, ProducerKey};
