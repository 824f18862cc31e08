//! The operations of a client under test. Each is declared once, in the table below: from it come the parameters here,
//! the host and the server in the runner, the JSON Schema and the reference for people.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::handle::{ClientId, ConsumerId, ProducerId, TicketId, TransactionId};
use crate::message::{Checkpoint, MessageId, Order, Outgoing, Received, TransactionState};
use crate::options::{
    Boundary, CheckpointOptions, ClientOptions, Described, NamespaceOptions, ProducerOptions, QueueOptions,
    StreamOptions,
};
use crate::session::Capability;

/// Parameters of a method, and what belongs to them.
pub trait Operation: Serialize + DeserializeOwned + JsonSchema {
    /// Name of the method.
    const METHOD: &'static str;
    /// What it does, as the lines of its documentation.
    const ABOUT: &'static [&'static str];
    /// What a client offers that has it. Every client has those with `None`.
    const NEEDS: Option<Capability>;
    /// What it gives.
    type Result: Serialize + DeserializeOwned + JsonSchema;
}

/// Calls `$then! { … }` with the table of all operations that scenarios ask for. A line is: what it does; the name of
/// the method; the function of the runner's `ClientUnderTest`; the type of its parameters; in brackets the
/// [`Capability`] of clients that have it, where not every client does; the parameters; the result.
#[macro_export]
macro_rules! for_each_operation {
    ($then:ident) => {
        $then! {
            /// Makes a client object of the SDK. Connects to nothing yet, unless the SDK does.
            "openClient" open OpenClient [] { options: ClientOptions } -> ClientId;
            /// From now on the client shows this token, on new connections and whenever a broker asks for credentials.
            "renewToken" renew_token RenewToken [] { client: ClientId, token: String } -> ();
            /// Closes a client object gracefully.
            "closeClient" close CloseClient [] { client: ClientId } -> ();

            /// CreateProducer.
            "createProducer" create_producer CreateProducer []
                { client: ClientId, options: ProducerOptions } -> ProducerId;
            /// What the producer says about itself.
            "describeProducer" describe_producer DescribeProducer [] { producer: ProducerId } -> Described;
            /// Send, and wait for the identifier.
            "send" send Send [Sync] { producer: ProducerId, message: Outgoing } -> MessageId;
            /// Asynchronous sends, called one after another; answered when the last call has returned, with a ticket
            /// for each. A send whose call itself fails has that failure as its outcome.
            "sendAsync" send_async SendAsync [Async]
                { producer: ProducerId, messages: Vec<Outgoing> } -> Vec<TicketId>;
            /// Waits for the outcome of an asynchronous send. It may be asked for again, also while the first request waits,
            /// and is the same then.
            "sendOutcome" outcome SendOutcome [Async] { ticket: TicketId } -> MessageId;
            /// Flush.
            "flush" flush Flush [] { producer: ProducerId } -> ();
            /// The last published sequence id; `null` before the first.
            "lastSequenceId" last_sequence_id LastSequenceId [] { producer: ProducerId } -> Option<u64>;
            /// Closes a producer.
            "closeProducer" close_producer CloseProducer [] { producer: ProducerId } -> ();

            /// Subscribes a queue consumer.
            "subscribeQueue" subscribe_queue SubscribeQueue [QueueConsumer]
                { client: ClientId, options: QueueOptions } -> ConsumerId;
            /// Subscribes a stream consumer.
            "subscribeStream" subscribe_stream SubscribeStream [StreamConsumer]
                { client: ClientId, options: StreamOptions } -> ConsumerId;
            /// Subscribes a stream consumer to a namespace. Its messages are received and acknowledged as those of any
            /// other stream consumer.
            "subscribeNamespace" subscribe_namespace SubscribeNamespace [Namespace]
                { client: ClientId, options: NamespaceOptions } -> ConsumerId;
            /// CreateCheckpointConsumer.
            "createCheckpointConsumer" create_checkpoint_consumer CreateCheckpointConsumer [CheckpointConsumer]
                { client: ClientId, options: CheckpointOptions } -> ConsumerId;
            /// What the consumer says about itself.
            "describeConsumer" describe_consumer DescribeConsumer [] { consumer: ConsumerId } -> Described;
            /// Receives one message. Waits for it without limit, or gives `null` after `waitMs`. The scenario goes on
            /// meanwhile: other requests come and are answered before this one.
            "receive" receive Receive [] { consumer: ConsumerId, wait_ms: Option<u64> } -> Option<Received>;
            /// Receives at most `max` messages: what comes until then or within `waitMs`.
            "receiveMulti" receive_many ReceiveMulti []
                { consumer: ConsumerId, max: u32, wait_ms: u64 } -> Vec<Received>;
            /// Acknowledges one message of a queue consumer, named by the handle that it was received with.
            "acknowledge" acknowledge Acknowledge [QueueConsumer] { consumer: ConsumerId, handle: u64 } -> ();
            /// Acknowledges the message of a queue consumer that this identifier, restored from its bytes, names.
            "acknowledgeId" acknowledge_id AcknowledgeId [QueueConsumer]
                { consumer: ConsumerId, id: MessageId } -> ();
            /// Acknowledges a message of a stream consumer and everything that it received before.
            "acknowledgeCumulative" acknowledge_cumulative AcknowledgeCumulative [StreamConsumer]
                { consumer: ConsumerId, handle: u64 } -> ();
            /// Negatively acknowledges one message of a queue consumer.
            "negativeAcknowledge" negative_acknowledge NegativeAcknowledge [QueueConsumer]
                { consumer: ConsumerId, handle: u64 } -> ();
            /// Captures the position of a checkpoint consumer and serializes it.
            "checkpoint" checkpoint TakeCheckpoint [CheckpointConsumer] { consumer: ConsumerId } -> Checkpoint;
            /// Closes a consumer of any kind.
            "closeConsumer" close_consumer CloseConsumer [] { consumer: ConsumerId } -> ();

            /// NewTransaction, with the timeout in ms.
            "newTransaction" new_transaction NewTransaction [Transactions]
                { client: ClientId, timeout_ms: u64 } -> TransactionId;
            /// How far the transaction is.
            "transactionState" transaction_state GetTransactionState [Transactions]
                { transaction: TransactionId } -> TransactionState;
            /// Commit.
            "commit" commit Commit [Transactions] { transaction: TransactionId } -> ();
            /// Abort.
            "abort" abort Abort [Transactions] { transaction: TransactionId } -> ();
            /// Acknowledges one message of a queue consumer within a transaction. Answered when the SDK's call has ended,
            /// whether or not the broker has taken the acknowledgement by then.
            "acknowledgeInTransaction" acknowledge_in AcknowledgeIn [Transactions]
                { consumer: ConsumerId, handle: u64, transaction: TransactionId } -> ();
            /// Acknowledges a message of a stream consumer and everything that it received before within a transaction.
            /// Answered like `acknowledgeInTransaction`.
            "acknowledgeCumulativeInTransaction" acknowledge_cumulative_in AcknowledgeCumulativeIn [Transactions]
                { consumer: ConsumerId, handle: u64, transaction: TransactionId } -> ();

            /// The earliest or the latest identifier, serialized.
            "boundaryId" boundary_id BoundaryId [] { boundary: Boundary } -> MessageId;
            /// Restores an identifier from its bytes, and serializes what came of it.
            "restoreId" restore_id RestoreId [] { id: MessageId } -> MessageId;
            /// How the SDK orders two identifiers, both restored from their bytes.
            "compareIds" compare_ids CompareIds [] { one: MessageId, other: MessageId } -> Order;
        }
    };
}

/// The capability between brackets.
macro_rules! needs {
    () => {
        None
    };
    ($capability:ident) => {
        Some(Capability::$capability)
    };
}

macro_rules! parameters {
    ($(
        $(#[doc = $about:literal])*
        $method:literal $function:ident $Name:ident [$($needs:ident)?]
        { $($field:ident: $type:ty),* } -> $result:ty;
    )*) => {
        $(
            #[doc = concat!("Parameters of `", $method, "`.")]
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            #[allow(missing_docs)] // the names say it
            pub struct $Name {
                $(pub $field: $type,)*
            }

            impl Operation for $Name {
                const METHOD: &'static str = $method;
                const ABOUT: &'static [&'static str] = &[$($about),*];
                const NEEDS: Option<Capability> = needs!($($needs)?);
                type Result = $result;
            }
        )*

        /// Calls `visitor` with every operation of the table, in its order.
        pub(crate) fn visit(visitor: &mut impl Visitor) {
            $(visitor.visit::<$Name>();)*
        }
    };
}

for_each_operation!(parameters);

/// What is done with each operation.
pub(crate) trait Visitor {
    fn visit<O: Operation>(&mut self);
}

/// Calls `visitor` with the operations of the session, then with those of the table.
pub(crate) fn visit_all(visitor: &mut impl Visitor) {
    visitor.visit::<crate::session::Initialize>();
    visitor.visit::<crate::session::StartScenario>();
    visitor.visit::<crate::session::EndScenario>();
    visit(visitor);
}
