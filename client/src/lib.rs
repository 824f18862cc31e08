//! A client for Apache Pulsar Scalable Topics, as the Scalable Topics Client Specification 1.0 describes it: the
//! producer and the queue, stream and checkpoint consumers.
//!
//! ```no_run
//! # async fn example() -> Result<(), stc_client::Error> {
//! use stc_client::{InitialPosition, PulsarClient, StringSchema};
//!
//! let client = PulsarClient::builder().service_url("pulsar://localhost:6650").build()?;
//! let topic = "topic://public/default/orders";
//! let consumer = client
//!     .queue_consumer(StringSchema)
//!     .topic(topic)
//!     .subscription("billing")
//!     .initial_position(InitialPosition::Earliest)
//!     .subscribe()
//!     .await?;
//! let producer = client.producer(StringSchema).topic(topic).create().await?;
//! producer.message().key("customer-7").value("paid".to_owned()).send().await?;
//! let message = consumer.receive().await?;
//! consumer.acknowledge(message.id()).await?;
//! client.close().await
//! # }
//! ```
//!
//! Segments are nowhere in the public API: keys are the only structure an application sees.
//!
//! | Module | Owns |
//! |---|---|
//! | `core` | state machines and everything else without I/O |
//! | `client` | the client and its configuration |
//! | `producer` | the producer: handle, builders, task |
//! | `consumer` | what all consumers share: handle and task |
//! | `queue` | the queue consumer: public handle, builder, what its task does differently |
//! | `stream` | the stream consumer, likewise |
//! | `checkpoint` | the checkpoint consumer, likewise |
//! | `transaction` | transactions: handle, and the task that talks to their coordinators |
//! | `registration` | an ordered consumer's registration on the connection to its controller |
//! | `message` | a received message |
//! | `schema` | values to payloads and back |
//! | `layout_watch` | resolves a topic and follows its layout |
//! | `watching` | what every watch is on its connection |
//! | `namespace_watch` | the topics of a namespace, as the broker tells them |
//! | `attachments` | per-segment producers and consumers on their connections |
//! | `receive_queue` | the one queue of a consumer |
//! | `blocking` | the same for code without async |
//! | `pool` | a connection for each broker; the classic lookup |
//! | `connection` | one connection: handshake, keep-alive, answers, events |
//! | `transport` | how links are made |
//! | `tls`, `authentication` | whom the client trusts; who it is |
//! | `address`, `clock` | service URLs; what time it is |

mod address;
mod attachments;
mod authentication;
pub mod blocking;
mod checkpoint;
mod client;
mod clock;
mod connection;
mod consumer;
mod core;
mod layout_watch;
mod message;
mod namespace_watch;
mod pool;
mod producer;
mod queue;
mod receive_queue;
mod registration;
mod schema;
mod stream;
mod tls;
mod transaction;
mod transport;
mod watching;

pub use address::BrokerAddress;
pub use authentication::{Authentication, TokenAuthentication};
pub use checkpoint::{CheckpointConsumer, CheckpointConsumerBuilder};
pub use client::{ClientBuilder, PulsarClient};
pub use clock::{Clock, SystemClock};

pub use core::{
    checkpoint::position::Checkpoint,
    encryption::policy::{
        ConsumerCryptoFailure, ConsumerEncryption, EncryptionContext, EncryptionKey, PrivateKeyProvider,
        ProducerCryptoFailure, ProducerEncryption, PublicKeyProvider, StaticKeys, WrappedKey,
    },
    error::{Category, Error},
    message_id::MessageId,
    transaction::TransactionState,
};
pub use message::Message;
pub use producer::{
    AccessMode, Compression, MessageBuilder, Producer, ProducerBuilder, QueueFull, SendTicket,
};
pub use queue::{DeadLetterPolicy, InitialPosition, QueueConsumer, QueueConsumerBuilder};
pub use schema::{
    AutoConsumeSchema, AvroSchema, BoolSchema, BytesSchema, DateSchema, DoubleSchema, Encoded, FieldType,
    FloatSchema, GenericValue, InstantSchema, Int8Schema, Int16Schema, Int32Schema, Int64Schema, JsonSchema,
    KeyValueEncoding, KeyValueSchema, LocalDate, LocalDateSchema, LocalDateTimeSchema, LocalTime,
    LocalTimeSchema, RecordDefinition, Schema, SchemaInfo, StringSchema, TimeSchema, TimestampSchema,
};
pub use stc_proto::pulsar::schema::Type as SchemaType;
pub use stream::{StreamConsumer, StreamConsumerBuilder};
pub use tls::TlsOptions;
pub use transaction::Transaction;
pub use transport::{BoxFuture, Link, TcpTransport, Transport};

#[cfg(feature = "deviants")]
pub use core::deviant::{Deviant, DeviantInfo};
