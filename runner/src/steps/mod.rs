//! The vocabulary of the scenarios, by subject.
//!
//! | Module | Steps about |
//! |---|---|
//! | [`cluster`] | how the simulated cluster is set up, brokers that die, connections that break |
//! | [`outages`] | clients that are cut off, brokers of segments that die |
//! | [`topic`] | making topics, changing their segments |
//! | [`migration`] | classic topics, a classic client beside, the migration |
//! | [`layout`] | layout pushes: held, repeated, forged |
//! | [`produce`] | producers |
//! | [`sends`] | sends, waited for or not, and how they end |
//! | [`stream`] | stream consumers: subscribing, receiving, acknowledging |
//! | [`namespace`] | consumers of a namespace, and its topics |
//! | [`assignment`] | registrations with the controller, assignments, what is attached and how |
//! | [`registration`] | how stream consumers register and leave |
//! | [`stream_acks`] | what stream consumers acknowledge at the brokers |
//! | [`stored`] | where and in which order messages are stored |
//! | [`entries`] | batches and bucket stamps |
//! | [`packing`] | compression, limits of batches, chunks |
//! | [`encryption`] | keys, failure actions, encrypted entries |
//! | [`consume`] | queue consumers: subscribing, receiving, acknowledging |
//! | [`received`] | what queue consumers gave |
//! | [`dead_letters`] | queue consumers with a dead-letter policy |
//! | [`checkpoint`] | checkpoint consumers: positions, what was received |
//! | [`readers`] | what checkpoint consumers send over the wire |
//! | [`ids`] | message identifiers as values |
//! | [`transactions`], [`coordinators`] | transactions; where their coordinators are |
//! | [`sequence`] | sequence ids and deduplication |
//! | [`access`] | producers under exclusive access |
//! | [`journal`] | what went over the wire |
//! | [`watches`] | layout watches on the wire |
//! | [`faults`] | faults that are armed |
//! | [`errors`] | operations that fail |
//! | [`schema`] | schemas and values |
//! | [`security`] | tokens, permissions, TLS |
//! | [`limits`] | queues, memory, operations at the same time |
//! | [`params`] | parameters: who, which topic, which hash |
//!
//! `Given` and `When` steps do things and hold the client to succeed; `Then` steps judge. A step that judges names the
//! requirements that it can stand for, and blames the one that the scenario cites.

pub mod access;
pub mod assignment;
pub mod checkpoint;
pub mod cluster;
pub mod consume;
pub mod coordinators;
pub mod dead_letters;
pub mod encryption;
pub mod entries;
pub mod errors;
pub mod faults;
pub mod ids;
pub mod journal;
pub mod layout;
pub mod limits;
pub mod migration;
pub mod namespace;
pub mod outages;
pub mod packing;
pub mod params;
pub mod produce;
pub mod readers;
pub mod received;
pub mod registration;
pub mod schema;
pub mod security;
pub mod sends;
pub mod sequence;
pub mod stored;
pub mod stream;
pub mod stream_acks;
pub mod topic;
pub mod transactions;
pub mod watches;
