//! The client under test, as the steps see it: plain data in, plain data out.
//!
//! The reference client implements [`ClientUnderTest`] in process ([`mod@reference`]). An adapter for another SDK implements
//! it over a pipe; so handles are numbers, and nothing here is a type of any client. An implementation reports what
//! happened and judges nothing.

use std::future::Future;
use std::pin::Pin;

pub use stc_adapter_protocol::{
    AccessMode, ApiError, Batching, Boundary, Checkpoint, CheckpointOptions, Chunking, ClientError, ClientId,
    ClientOptions, Compression, ConsumerCryptoFailure, ConsumerEncryption, ConsumerId, DeadLetters,
    Described, InitialPosition, Key, MessageId, NamespaceOptions, Order, Outgoing, ProducerCryptoFailure,
    ProducerEncryption, ProducerId, ProducerOptions, QueueOptions, Received, SchemaKind, Signalled,
    StartPosition, StreamOptions, TicketId, TransactionId, TransactionState, Value,
};
use stc_reports::ClientInfo;

pub use self::asked::Asked;

mod asked;
pub mod paired;
pub mod reference;

/// What an operation gives.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + 'a>>;

/// A client under test. Operations may be under way at the same time; none blocks the thread. A client whose SDK has
/// threads calls it from several of them then.
pub trait ClientUnderTest {
    /// Who it is.
    fn info(&self) -> ClientInfo;

    /// Makes a client object.
    fn open(&self, options: ClientOptions) -> Reply<'_, ClientId>;
    /// From now on the client shows this token, on new connections and whenever a broker asks.
    fn renew_token(&self, client: ClientId, token: String) -> Reply<'_, ()>;
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
    /// Waits for the outcome of an asynchronous send. Whoever asks again gets the same.
    fn outcome(&self, ticket: TicketId) -> Reply<'_, MessageId>;
    /// Flush.
    fn flush(&self, producer: ProducerId) -> Reply<'_, ()>;
    /// The last published sequence id; `None` before the first.
    fn last_sequence_id(&self, producer: ProducerId) -> Reply<'_, Option<u64>>;
    /// Closes a producer.
    fn close_producer(&self, producer: ProducerId) -> Reply<'_, ()>;

    /// Subscribes a queue consumer.
    fn subscribe_queue(&self, client: ClientId, options: QueueOptions) -> Reply<'_, ConsumerId>;
    /// Subscribes a stream consumer.
    fn subscribe_stream(&self, client: ClientId, options: StreamOptions) -> Reply<'_, ConsumerId>;
    /// Subscribes a stream consumer to a namespace.
    fn subscribe_namespace(&self, client: ClientId, options: NamespaceOptions) -> Reply<'_, ConsumerId>;
    /// Creates a checkpoint consumer.
    fn create_checkpoint_consumer(
        &self,
        client: ClientId,
        options: CheckpointOptions,
    ) -> Reply<'_, ConsumerId>;
    /// What the consumer says about itself.
    fn describe_consumer(&self, consumer: ConsumerId) -> Reply<'_, Described>;
    /// Receives one message. Waits for it without limit, or gives `None` after `wait_ms`.
    fn receive(&self, consumer: ConsumerId, wait_ms: Option<u64>) -> Reply<'_, Option<Received>>;
    /// Receives at most `max` messages: what comes until then or within `wait_ms`.
    fn receive_many(&self, consumer: ConsumerId, max: u32, wait_ms: u64) -> Reply<'_, Vec<Received>>;
    /// Acknowledges one message of a queue consumer.
    fn acknowledge(&self, consumer: ConsumerId, handle: u64) -> Reply<'_, ()>;
    /// Acknowledges the message of a queue consumer that this identifier, restored from its bytes, names.
    fn acknowledge_id(&self, consumer: ConsumerId, id: MessageId) -> Reply<'_, ()>;
    /// Acknowledges a message of a stream consumer and everything that it received before.
    fn acknowledge_cumulative(&self, consumer: ConsumerId, handle: u64) -> Reply<'_, ()>;
    /// Negatively acknowledges one message of a queue consumer.
    fn negative_acknowledge(&self, consumer: ConsumerId, handle: u64) -> Reply<'_, ()>;
    /// Captures the position of a checkpoint consumer, as bytes.
    fn checkpoint(&self, consumer: ConsumerId) -> Reply<'_, Checkpoint>;
    /// Closes a consumer.
    fn close_consumer(&self, consumer: ConsumerId) -> Reply<'_, ()>;

    /// NewTransaction.
    fn new_transaction(&self, client: ClientId, timeout_ms: u64) -> Reply<'_, TransactionId>;
    /// How far a transaction is.
    fn transaction_state(&self, transaction: TransactionId) -> Reply<'_, TransactionState>;
    /// Commit.
    fn commit(&self, transaction: TransactionId) -> Reply<'_, ()>;
    /// Abort.
    fn abort(&self, transaction: TransactionId) -> Reply<'_, ()>;
    /// Acknowledges one message of a queue consumer within a transaction.
    fn acknowledge_in(&self, consumer: ConsumerId, handle: u64, transaction: TransactionId) -> Reply<'_, ()>;
    /// Acknowledges a message of a stream consumer and everything before it within a transaction.
    fn acknowledge_cumulative_in(
        &self,
        consumer: ConsumerId,
        handle: u64,
        transaction: TransactionId,
    ) -> Reply<'_, ()>;

    /// The earliest or the latest identifier.
    fn boundary_id(&self, boundary: Boundary) -> Reply<'_, MessageId>;
    /// Restores an identifier from its bytes, and serializes what came of it.
    fn restore_id(&self, id: MessageId) -> Reply<'_, MessageId>;
    /// How the SDK orders two identifiers, both restored from their bytes.
    fn compare_ids(&self, one: MessageId, other: MessageId) -> Reply<'_, Order>;

    /// The end of a scenario: closes whatever is still open.
    fn stop(&self) -> Reply<'_, ()>;
    /// The last lines that the client wrote to its standard error.
    fn stderr_tail(&self) -> Vec<String> {
        Vec::new()
    }
}
