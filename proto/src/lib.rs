//! The wire format of Scalable Topics: everything that both sides of a connection must agree on. No I/O.
//!
//! | Module | Owns |
//! |---|---|
//! | [`pulsar`] | the prost types, one for each protocol message |
//! | [`command`] | [`Command`]: one command with its body, as an enum |
//! | [`frame`] | [`Frame`] and [`Decoder`]: bytes to commands and back |
//! | [`entry`] | [`Entry`]: metadata, checksum and payload behind SEND and MESSAGE |
//! | [`batch`] | several messages in one entry |
//! | [`required`] | the check that no required field is missing |
//! | [`fields`] | any message as JSON, the form that journals and recordings use |
//! | [`name`] | topic and segment names |
//! | [`hash`] | key hashing and the two halves of the hash |
//! | [`layout`] | a topic's segments as a self-validating value; split, merge, rebucket |
//!
//! The simulated broker and the reference client share this crate and nothing else, so it is checked from outside:
//! against recordings of the real broker and against Pulsar's own classes (`tests/`).

pub mod batch;
pub mod command;
pub mod entry;
pub mod fields;
pub mod frame;
pub mod hash;
pub mod layout;
pub mod name;
pub mod required;

/// The protocol messages, generated from `proto/pulsar.proto`. Field docs are in that file.
pub mod pulsar {
    #![allow(missing_docs, unreachable_pub, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/pulsar.rs"));
}

pub use command::Command;
pub use entry::Entry;
pub use frame::{Decoder, Frame, FrameError};
pub use hash::KeyHash;
pub use layout::{HashRange, Layout, Segment};
pub use name::{SegmentName, TopicName};
