//! What the suite and a client under test say to each other: plain data in, plain data out, and how it is written as
//! JSON.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`handle`] | numbers that stand for objects of the SDK |
//! | [`options`] | how clients, producers and consumers are made |
//! | [`encryption`] | keys of producers and consumers |
//! | [`message`] | messages, values, identifiers |
//! | [`error`] | why an operation gave nothing |
//! | [`operation`] | the operations: one table with name, parameters and result of each |
//! | [`session`] | how a process introduces itself, and where scenarios begin and end |
//! | [`rpc`] | requests, answers, errors and lines: JSON-RPC 2.0 |
//! | [`schema`], [`reference`](mod@reference) | the JSON Schema of all that, and the table for people |
//! | [`encoding`] | bytes and pairs in JSON |
//!
//! Nothing here is a type of any client, and nothing judges. In JSON, names are in camel case, bytes are base64, absent
//! options are left out, and an unknown field is an error.

#![forbid(unsafe_code)]

pub mod encoding;
pub mod encryption;
pub mod error;
pub mod handle;
pub mod message;
pub mod operation;
pub mod options;
pub mod reference;
pub mod rpc;
pub mod schema;
pub mod session;

pub use encryption::{
    ConsumerCryptoFailure, ConsumerEncryption, Key, ProducerCryptoFailure, ProducerEncryption,
};
pub use error::{ApiError, CATEGORIES, ClientError, Signalled};
pub use handle::{ClientId, ConsumerId, ProducerId, TicketId, TransactionId};
pub use message::{Checkpoint, MessageId, Order, Outgoing, Received, SchemaKind, TransactionState, Value};
pub use operation::Operation;
pub use options::{
    AccessMode, Batching, Boundary, CheckpointOptions, Chunking, ClientOptions, Compression, DeadLetters,
    Described, InitialPosition, NamespaceOptions, ProducerOptions, QueueOptions, StartPosition,
    StreamOptions,
};
pub use session::{Capability, EndScenario, Initialize, Initialized, Sdk, StartScenario, Suite};
