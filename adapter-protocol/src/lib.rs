//! What the suite and a client under test say to each other: plain data in, plain data out, and how it is written as
//! JSON.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`handle`] | numbers that stand for objects of the SDK |
//! | [`options`] | how clients, producers and consumers are made |
//! | [`message`] | messages, values, identifiers |
//! | [`error`] | why an operation gave nothing |
//! | [`encoding`] | bytes and pairs in JSON |
//!
//! Nothing here is a type of any client, and nothing judges. In JSON, names are in camel case, bytes are base64, absent
//! options are left out, and an unknown field is an error.

#![forbid(unsafe_code)]

pub mod encoding;
pub mod error;
pub mod handle;
pub mod message;
pub mod options;

pub use error::{ApiError, ClientError, Signalled};
pub use handle::{ClientId, ConsumerId, ProducerId, TicketId};
pub use message::{MessageId, Order, Outgoing, Received, SchemaKind, Value};
pub use options::{
    AccessMode, Batching, Boundary, CheckpointOptions, ClientOptions, Compression, Described,
    InitialPosition, ProducerOptions, QueueOptions, StartPosition, StreamOptions,
};
