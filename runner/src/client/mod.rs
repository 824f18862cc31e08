//! The client under test, as the steps see it: plain data in, plain data out.
//!
//! The reference client implements [`ClientUnderTest`] in process ([`mod@reference`]). An adapter for another SDK implements
//! it over a pipe; so handles are numbers, and nothing here is a type of any client. An implementation reports what
//! happened and judges nothing.

use std::cmp::Ordering;
use std::future::Future;
use std::pin::Pin;

use stc_reports::ClientInfo;
use thiserror::Error;

pub mod reference;

/// What an operation gives.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + 'a>>;

/// A client object of the SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// A producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerId(pub u64);

/// A queue consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerId(pub u64);

/// A checkpoint consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckpointConsumerId(pub u64);

/// A stream consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// An asynchronous send whose outcome is still to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TicketId(pub u64);

/// A message identifier. `bytes` is its serialized form, which is opaque; two ids of one message are equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId {
    /// The SDK's own serialized form.
    pub bytes: Vec<u8>,
}

/// Why an operation gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The client does not offer the operation or an option of it.
    #[error("the client does not offer {0}")]
    Unsupported(String),
    /// The operation failed and the SDK said how.
    #[error("{0}")]
    Failed(ApiError),
    /// The operation did not end within this many seconds, far beyond the client's own time-outs.
    #[error("no end within {0} s")]
    Hangs(u64),
    /// The client crashed or answered nonsense.
    #[error("the client is gone: {0}")]
    Gone(String),
}

/// A failure as the application sees it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{category}: {message}")]
pub struct ApiError {
    /// Category by the names of error-model §2, such as `NotFound`; `Other` when the SDK has none for it.
    pub category: String,
    /// The SDK's text.
    pub message: String,
    /// How it was signalled.
    pub how: Signalled,
}

/// How a failure reached the application (error-model §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// Thrown by the call itself.
    Synchronously,
    /// By the future that the call returned.
    ByFuture,
}

/// Options of a client object.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// `pulsar://host:port`.
    pub service_url: String,
    /// How long an operation (lookup, create, subscribe) may take; the SDK's default when absent.
    pub operation_timeout_ms: Option<u64>,
}

/// Access modes (client-api §3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessMode {
    /// Many producers.
    #[default]
    Shared,
    /// One producer; others fail.
    Exclusive,
    /// One producer; older ones are fenced.
    ExclusiveWithFencing,
    /// One producer; others wait.
    WaitForExclusive,
}

/// Schemas that steps use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SchemaKind {
    /// Bytes as they are.
    Bytes,
    /// UTF-8 text.
    #[default]
    Text,
    /// 64-bit integers.
    Int64,
}

/// A value of one of the schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of [`SchemaKind::Bytes`].
    Bytes(Vec<u8>),
    /// Of [`SchemaKind::Text`].
    Text(String),
    /// Of [`SchemaKind::Int64`].
    Int64(i64),
}

impl Default for Value {
    fn default() -> Self {
        Value::Text(String::new())
    }
}

/// Compression codecs (client-api §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Compression {
    Lz4,
    Zlib,
    Zstd,
    Snappy,
}

/// Options of a producer. Absent ones are the SDK's defaults.
#[derive(Debug, Clone, Default)]
pub struct ProducerOptions {
    /// The topic as the application writes it; absent only to see what the client says to that.
    pub topic: Option<String>,
    /// Producer name.
    pub name: Option<String>,
    /// Access mode.
    pub access: AccessMode,
    /// The sequence id before that of the first message.
    pub initial_sequence_id: Option<u64>,
    /// Schema.
    pub schema: SchemaKind,
    /// Batching on or off.
    pub batching: Option<Batching>,
    /// Compression.
    pub compression: Option<Compression>,
    /// Send timeout, in ms.
    pub send_timeout_ms: Option<u64>,
    /// How many sends may be pending.
    pub max_pending: Option<u32>,
    /// Whether a send waits for room in a full queue.
    pub block_if_queue_full: Option<bool>,
}

/// Batching of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batching {
    /// Every message is an entry.
    Off,
    /// Entries of up to `max_messages`, closed at the latest `max_delay_ms` after their first message.
    On {
        /// Messages in one entry at most.
        max_messages: u32,
        /// How long the first message waits at most, in ms.
        max_delay_ms: u64,
    },
}

/// A message to send (client-api §3.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the specification's
pub struct Outgoing {
    pub value: Value,
    pub key: Option<String>,
    pub properties: Vec<(String, String)>,
    pub event_time_ms: Option<u64>,
    pub sequence_id: Option<u64>,
    pub deliver_after_ms: Option<u64>,
    pub deliver_at_ms: Option<u64>,
    pub replicate_to: Vec<String>,
}

/// Where a new subscription begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InitialPosition {
    /// At the oldest message.
    #[default]
    Earliest,
    /// Behind the newest message.
    Latest,
}

/// Options of a queue consumer.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // the names are the specification's
pub struct QueueOptions {
    pub topic: Option<String>,
    pub subscription: Option<String>,
    pub name: Option<String>,
    pub initial_position: InitialPosition,
    pub schema: SchemaKind,
    /// How many messages may wait in the client for the application.
    pub receiver_queue: Option<u32>,
}

/// The ends that every topic has (data-model §4, §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// Before everything that is still there.
    Earliest,
    /// Behind everything that is there now.
    Latest,
}

/// Where a checkpoint consumer starts (client-api §4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartPosition {
    /// At one of the two checkpoints that every topic has.
    Boundary(Boundary),
    /// At a captured checkpoint, restored from its bytes.
    Checkpoint(Vec<u8>),
}

/// Options of a checkpoint consumer. Absent ones are the SDK's defaults.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // the names are the specification's
pub struct CheckpointOptions {
    pub topic: Option<String>,
    pub start: Option<StartPosition>,
    pub group: Option<String>,
    pub name: Option<String>,
    /// How many messages may wait in the client for the application.
    pub receiver_queue: Option<u32>,
}

/// Options of a stream consumer.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // the names are the specification's
pub struct StreamOptions {
    pub topic: Option<String>,
    pub subscription: Option<String>,
    pub name: Option<String>,
    pub initial_position: InitialPosition,
    pub schema: SchemaKind,
    /// How many messages may wait in the client for the application.
    pub receiver_queue: Option<u32>,
    /// Properties of the subscription.
    pub properties: Vec<(String, String)>,
    pub read_compacted: bool,
    pub replicate_state: bool,
    /// How long acknowledgements are collected, in ms.
    pub ack_group_time_ms: Option<u64>,
}

/// A received message (data-model §3).
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the specification's
pub struct Received {
    /// Names the message when it is acknowledged; unique for the consumer.
    pub handle: u64,
    pub id: MessageId,
    pub value: Value,
    pub payload: Vec<u8>,
    pub key: Option<String>,
    pub properties: Vec<(String, String)>,
    pub publish_time_ms: u64,
    pub event_time_ms: Option<u64>,
    pub sequence_id: u64,
    pub producer_name: Option<String>,
    pub topic: String,
    pub redelivery_count: u32,
    pub size: u64,
    pub replicated_from: Option<String>,
}

/// What a producer or consumer says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The topic that it reports.
    pub topic: String,
    /// Its name, where it tells one.
    pub name: Option<String>,
}

/// A client under test. Operations may be under way at the same time; none blocks the thread.
pub trait ClientUnderTest {
    /// Who it is.
    fn info(&self) -> ClientInfo;

    /// Makes a client object.
    fn open(&self, options: ClientOptions) -> Reply<'_, ClientId>;
    /// Closes a client object gracefully.
    fn close(&self, client: ClientId) -> Reply<'_, ()>;

    /// CreateProducer.
    fn create_producer(&self, client: ClientId, options: ProducerOptions) -> Reply<'_, ProducerId>;
    /// What the producer says about itself.
    fn describe_producer(&self, producer: ProducerId) -> Reply<'_, Described>;
    /// Send, and wait for the identifier.
    fn send(&self, producer: ProducerId, message: Outgoing) -> Reply<'_, MessageId>;
    /// Asynchronous sends, called one after another; completes when the last call has returned. A send whose call
    /// itself fails has that failure as its outcome.
    fn send_async(&self, producer: ProducerId, messages: Vec<Outgoing>) -> Reply<'_, Vec<TicketId>>;
    /// Waits for the outcome of an asynchronous send. Each can be asked for once.
    fn outcome(&self, ticket: TicketId) -> Reply<'_, MessageId>;
    /// Flush.
    fn flush(&self, producer: ProducerId) -> Reply<'_, ()>;
    /// The last published sequence id; `None` before the first.
    fn last_sequence_id(&self, producer: ProducerId) -> Reply<'_, Option<u64>>;
    /// Closes a producer.
    fn close_producer(&self, producer: ProducerId) -> Reply<'_, ()>;

    /// Subscribes a queue consumer.
    fn subscribe_queue(&self, client: ClientId, options: QueueOptions) -> Reply<'_, ConsumerId>;
    /// What the consumer says about itself.
    fn describe_consumer(&self, consumer: ConsumerId) -> Reply<'_, Described>;
    /// Receives one message, and waits for it without limit.
    fn receive(&self, consumer: ConsumerId) -> Reply<'_, Received>;
    /// Receives one message, or `None` after `wait_ms`.
    fn receive_within(&self, consumer: ConsumerId, wait_ms: u64) -> Reply<'_, Option<Received>>;
    /// Receives at most `max` messages: what comes until then or within `wait_ms`.
    fn receive_many(&self, consumer: ConsumerId, max: usize, wait_ms: u64) -> Reply<'_, Vec<Received>>;
    /// Acknowledges one message.
    fn acknowledge(&self, consumer: ConsumerId, handle: u64) -> Reply<'_, ()>;
    /// Negatively acknowledges one message.
    fn negative_acknowledge(&self, consumer: ConsumerId, handle: u64) -> Reply<'_, ()>;
    /// Closes a consumer.
    fn close_consumer(&self, consumer: ConsumerId) -> Reply<'_, ()>;

    /// Acknowledges the message that this identifier, restored from its bytes, names.
    fn acknowledge_id(&self, consumer: ConsumerId, id: MessageId) -> Reply<'_, ()>;

    /// Creates a checkpoint consumer of text messages.
    fn create_checkpoint_consumer(
        &self,
        client: ClientId,
        options: CheckpointOptions,
    ) -> Reply<'_, CheckpointConsumerId>;
    /// Receives one message, or `None` after `wait_ms`.
    fn checkpoint_receive(&self, consumer: CheckpointConsumerId, wait_ms: u64)
    -> Reply<'_, Option<Received>>;
    /// Captures the position, as bytes.
    fn checkpoint(&self, consumer: CheckpointConsumerId) -> Reply<'_, Vec<u8>>;
    /// Closes a checkpoint consumer.
    fn close_checkpoint_consumer(&self, consumer: CheckpointConsumerId) -> Reply<'_, ()>;

    /// The earliest or the latest identifier.
    fn boundary_id(&self, boundary: Boundary) -> Reply<'_, MessageId>;
    /// Restores an identifier from its bytes, and serializes what came of it.
    fn restore_id(&self, bytes: Vec<u8>) -> Reply<'_, MessageId>;
    /// How the SDK orders two identifiers, both restored from their bytes.
    fn compare_ids(&self, one: MessageId, other: MessageId) -> Reply<'_, Ordering>;

    /// Subscribes a stream consumer.
    fn subscribe_stream(&self, client: ClientId, options: StreamOptions) -> Reply<'_, StreamId>;
    /// Receives one message from a stream consumer. Waits for it without limit, or gives `None` after `wait_ms`.
    fn receive_stream(&self, consumer: StreamId, wait_ms: Option<u64>) -> Reply<'_, Option<Received>>;
    /// Acknowledges a message of a stream consumer and everything that it received before.
    fn acknowledge_cumulative(&self, consumer: StreamId, handle: u64) -> Reply<'_, ()>;
    /// Closes a stream consumer.
    fn close_stream(&self, consumer: StreamId) -> Reply<'_, ()>;

    /// The end of a scenario: closes whatever is still open.
    fn stop(&self) -> Reply<'_, ()>;
    /// The last lines that the client wrote to its standard error.
    fn stderr_tail(&self) -> Vec<String> {
        Vec::new()
    }
}
