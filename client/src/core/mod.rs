//! The pure half of the client: no I/O, no clock, no task, no randomness of its own. Events and the time go in,
//! effects come out; the shell around it carries them out. Everything here can be stepped by a test.
//!
//! | Module | Owns |
//! |---|---|
//! | [`acks`] | what was delivered and not yet acknowledged, message by message |
//! | [`assignment`] | what a controller assigns |
//! | [`avro`] | Avro's binary form |
//! | [`backoff`] | retry delays, and the seeded generator behind their jitter |
//! | [`checkpoint`] | the checkpoint consumer as a state machine; checkpoints |
//! | [`chunks`] | large messages put together again |
//! | [`compression`] | payload compression of all SDKs, with a limit against bombs |
//! | [`consumer`] | what the state machines of all consumers share |
//! | [`deviant`] | behaviours that a test can break on purpose |
//! | [`encryption`] | payloads under keys that brokers do not have |
//! | [`error`] | typed errors and their categories |
//! | [`incoming`] | from a delivered entry to messages |
//! | [`layout`] | the client's copy of a topic's layout |
//! | [`memory`] | the limit for messages on their way |
//! | [`message_id`] | message identifiers |
//! | [`namespace`] | the consumer of a namespace as a state machine |
//! | [`outgoing`] | from messages to entries: batches, stamps, metadata |
//! | [`place`] | where one segment is attached, and how far that is |
//! | [`producer`] | the producer as a state machine |
//! | [`queue`] | the queue consumer as a state machine |
//! | [`routing`] | which segment a message goes to |
//! | [`schema_info`] | what is known about a schema |
//! | [`secure`] | addresses for TLS |
//! | [`session`] | a consumer's registration with the controller |
//! | [`stream`] | the stream consumer as a state machine |
//! | [`tracker`] | which pushed layouts count |
//! | [`transaction`] | transactions, and the requests to their coordinators |

pub(crate) mod acks;
pub(crate) mod assignment;
pub(crate) mod avro;
pub(crate) mod backoff;
pub(crate) mod checkpoint;
pub(crate) mod chunks;
pub(crate) mod compression;
pub(crate) mod consumer;
pub(crate) mod deviant;
pub(crate) mod encryption;
pub(crate) mod error;
pub(crate) mod incoming;
pub(crate) mod layout;
pub(crate) mod memory;
pub(crate) mod message_id;
pub(crate) mod namespace;
pub(crate) mod outgoing;
pub(crate) mod place;
pub(crate) mod producer;
pub(crate) mod queue;
pub(crate) mod routing;
pub(crate) mod schema_info;
pub(crate) mod secure;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod tracker;
pub(crate) mod transaction;

pub(crate) use place::Link;

/// Milliseconds.
pub(crate) type Millis = u64;

/// The time of an event, on the two clocks that the core needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Now {
    /// Milliseconds on a clock that never jumps; retries and timeouts count on it.
    pub(crate) mono: Millis,
    /// Milliseconds since 1970; publish times are taken from it.
    pub(crate) wall: Millis,
}
