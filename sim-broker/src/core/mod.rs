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
//! | [`cluster`] | brokers, connections, scalable topics: everything around stored topics |
//! | [`controller`] | registrations of ordered consumers, and who reads what |
//! | [`coordinator`] | transaction coordinators and their transactions |
//! | [`config`] | how a cluster is set up |
//! | [`profile`] | which broker a cluster plays, as data |
//! | [`security`] | who may do what, as configuration |
//! | [`fault`] | what goes wrong on purpose, as data |
//! | [`journal`] | the record of everything that happened |

pub mod cluster;
pub mod config;
pub mod controller;
pub mod coordinator;
pub mod effects;
pub mod fault;
pub mod ids;
pub mod journal;
pub mod profile;
pub mod security;
pub mod topic;

pub use cluster::{Addresses, Cluster, Output};
pub use config::{ClusterConfig, JournalConfig, KEEP_ALIVE_MS};
pub use effects::{Effect, Effects};
pub use ids::{BrokerId, ConnId, ConsumerKey, Millis, ProducerKey, TxnId};
pub use profile::Profile;
pub use security::{Action, Authorization, Security};
