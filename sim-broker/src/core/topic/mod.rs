//! One stored topic: a classic topic, a partition, or a segment.
//!
//! [`Topic`] takes one command at a time. Commands that carry a request id are answered here when they succeed (through
//! [`Effects`]); a refusal is returned as [`TopicError`], and the caller turns it into ERROR with that request id.
//! Producers and consumers are known by connection and the id the client chose; commands for ids that this topic does
//! not know (any more) are ignored, as Pulsar does, except SEND, which closes the connection.

use bytes::Bytes;
use stc_proto::{TopicName, pulsar::*};

use super::{
    effects::Effects,
    ids::{ConnId, ConsumerKey, Millis, ProducerKey, ProducerNames},
};

pub mod error;

pub use error::TopicError;

/// The request id of closes that the broker starts.
pub const UNSOLICITED: u64 = u64::MAX;

/// Settings of a topic.
#[derive(Debug, Clone)]
pub struct TopicConfig {
    /// Whether messages that repeat a producer's sequence ids are dropped.
    pub deduplication: bool,
    /// The largest entry that is taken, in bytes (`max_message_size` in CONNECTED).
    pub max_message_size: usize,
    /// Which schemas may follow which.
    pub compatibility: SchemaCompatibility,
    /// Whether producers and consumers without a schema are refused once the topic has one.
    pub schema_validation_enforced: bool,
}

impl Default for TopicConfig {
    fn default() -> Self {
        TopicConfig {
            deduplication: false,
            max_message_size: 5 * 1024 * 1024,
            compatibility: SchemaCompatibility::Full,
            schema_validation_enforced: false,
        }
    }
}

/// Which schemas may follow the latest one of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchemaCompatibility {
    /// Any schema.
    AlwaysCompatible,
    /// None.
    AlwaysIncompatible,
    /// The new schema reads what the latest one wrote.
    Backward,
    /// The latest schema reads what the new one writes.
    Forward,
    /// Both.
    #[default]
    Full,
}

/// The place of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The ledger's id. A topic has one ledger.
    pub ledger: u64,
    /// The entry, counted from 0.
    pub entry: u64,
}

/// A stored entry, as [`Topic::stored`] lists them.
#[derive(Debug, Clone, Copy)]
pub struct StoredEntry<'a> {
    /// Where it is.
    pub position: Position,
    /// When it was stored.
    pub stored_at: Millis,
    /// Its bytes, as they were sent; [`stc_proto::Entry::parse`] reads them.
    pub bytes: &'a Bytes,
}

/// Where a subscription made by an admin call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the first entry.
    Earliest,
    /// Behind the last entry.
    Latest,
}

/// Which subscriptions a new segment takes over from its parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyRule {
    /// Every durable one.
    Durable,
    /// Durable ones that have a consumer, or were made by an admin call (as the broker 5.0.1 does).
    ConnectedOrAdmin,
}

/// What [`Topic::stats`] tells.
#[derive(Debug, Clone, Default)]
pub struct TopicStats {
    /// Stored entries.
    pub entries: u64,
    /// Messages in them; a batch counts as its messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether the topic is terminated.
    pub terminated: bool,
    /// Connected producers (not the waiting ones), by name.
    pub producers: Vec<ProducerStats>,
    /// Subscriptions, by name.
    pub subscriptions: Vec<SubscriptionStats>,
}

/// A connected producer.
#[derive(Debug, Clone)]
pub struct ProducerStats {
    /// Who it is.
    pub key: ProducerKey,
    /// Its name.
    pub name: String,
    /// Its access mode.
    pub access_mode: ProducerAccessMode,
    /// The metadata of its PRODUCER command.
    pub metadata: Vec<KeyValue>,
}

/// A subscription.
#[derive(Debug, Clone)]
pub struct SubscriptionStats {
    /// Its name.
    pub name: String,
    /// Its type; `None` until a consumer has come.
    pub kind: Option<command_subscribe::SubType>,
    /// Whether it outlives its consumers.
    pub durable: bool,
    /// Messages that are not acknowledged, delivered or not.
    pub backlog: u64,
    /// Messages that are delivered and not acknowledged.
    pub unacked: u64,
    /// Consumers, in the order in which they came.
    pub consumers: Vec<ConsumerStats>,
}

/// A connected consumer.
#[derive(Debug, Clone)]
pub struct ConsumerStats {
    /// Who it is.
    pub key: ConsumerKey,
    /// Its name.
    pub name: String,
    /// Messages that it may still be sent; negative after a batch that was larger than what was left.
    pub permits: i64,
    /// Messages that are delivered to it and not acknowledged.
    pub unacked: u64,
    /// The metadata of its SUBSCRIBE command.
    pub metadata: Vec<KeyValue>,
}

/// One stored topic.
#[derive(Debug)]
pub struct Topic {}

#[allow(unused_variables, clippy::todo)]
impl Topic {
    /// An empty topic. `ledger` is the ledger id in the ids of its messages, unique in the cluster.
    pub fn new(name: TopicName, config: TopicConfig, ledger: u64) -> Self {
        todo!()
    }
    /// The topic's name.
    pub fn name(&self) -> &TopicName {
        todo!()
    }
    /// The settings; changes apply to what comes next.
    pub fn config_mut(&mut self) -> &mut TopicConfig {
        todo!()
    }

    // ---- Producers ----

    /// PRODUCER. Answers PRODUCER_SUCCESS, for a WaitForExclusive producer that has to wait a first time with
    /// `producer_ready=false`. Fails with TopicTerminatedError, ProducerBusy, ProducerFenced or IncompatibleSchema.
    pub fn add_producer(
        &mut self,
        key: ProducerKey,
        command: &CommandProducer,
        names: &mut ProducerNames,
        now: Millis,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        todo!()
    }
    /// Whether this producer is connected or waiting.
    pub fn has_producer(&self, key: ProducerKey) -> bool {
        todo!()
    }
    /// SEND with the entry behind it. Answers SEND_RECEIPT or SEND_ERROR. A SEND of a producer that is unknown, was
    /// fenced or still waits closes its connection.
    pub fn send(
        &mut self,
        key: ProducerKey,
        command: &CommandSend,
        entry: Bytes,
        now: Millis,
        effects: &mut Effects,
    ) {
        todo!()
    }
    /// CLOSE_PRODUCER. Answers SUCCESS, for an unknown producer too.
    pub fn remove_producer(
        &mut self,
        key: ProducerKey,
        command: &CommandCloseProducer,
        now: Millis,
        effects: &mut Effects,
    ) {
        todo!()
    }

    // ---- Consumers ----

    /// SUBSCRIBE. Answers SUCCESS. Fails with ConsumerBusy, ConsumerAssignError, IncompatibleSchema, NotAllowedError.
    pub fn subscribe(
        &mut self,
        key: ConsumerKey,
        command: &CommandSubscribe,
        now: Millis,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        todo!()
    }
    /// Whether this consumer is connected.
    pub fn has_consumer(&self, key: ConsumerKey) -> bool {
        todo!()
    }
    /// FLOW.
    pub fn flow(&mut self, key: ConsumerKey, command: &CommandFlow, now: Millis, effects: &mut Effects) {
        todo!()
    }
    /// ACK. Answers ACK_RESPONSE when the command has a request id, an error too.
    pub fn ack(&mut self, key: ConsumerKey, command: &CommandAck, now: Millis, effects: &mut Effects) {
        todo!()
    }
    /// REDELIVER_UNACKNOWLEDGED_MESSAGES.
    pub fn redeliver(
        &mut self,
        key: ConsumerKey,
        command: &CommandRedeliverUnacknowledgedMessages,
        now: Millis,
        effects: &mut Effects,
    ) {
        todo!()
    }
    /// SEEK. Closes every consumer of the subscription (CLOSE_CONSUMER, unsolicited), then answers SUCCESS.
    pub fn seek(
        &mut self,
        key: ConsumerKey,
        command: &CommandSeek,
        now: Millis,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        todo!()
    }
    /// UNSUBSCRIBE. Answers SUCCESS.
    pub fn unsubscribe(
        &mut self,
        key: ConsumerKey,
        command: &CommandUnsubscribe,
        now: Millis,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        todo!()
    }
    /// CLOSE_CONSUMER. Answers SUCCESS, for an unknown consumer too.
    pub fn remove_consumer(
        &mut self,
        key: ConsumerKey,
        command: &CommandCloseConsumer,
        now: Millis,
        effects: &mut Effects,
    ) {
        todo!()
    }
    /// GET_LAST_MESSAGE_ID. Answers GET_LAST_MESSAGE_ID_RESPONSE.
    pub fn last_message_id(
        &self,
        key: ConsumerKey,
        command: &CommandGetLastMessageId,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        todo!()
    }
    /// CONSUMER_STATS. Answers CONSUMER_STATS_RESPONSE, for an unknown consumer with an error in it.
    pub fn consumer_stats(&self, key: ConsumerKey, command: &CommandConsumerStats, effects: &mut Effects) {
        todo!()
    }

    // ---- Schemas ----

    /// GET_SCHEMA. Answers GET_SCHEMA_RESPONSE, an error too.
    pub fn get_schema(&self, conn: ConnId, command: &CommandGetSchema, effects: &mut Effects) {
        todo!()
    }
    /// GET_OR_CREATE_SCHEMA. Answers GET_OR_CREATE_SCHEMA_RESPONSE, an error too.
    pub fn get_or_create_schema(
        &mut self,
        conn: ConnId,
        command: &CommandGetOrCreateSchema,
        effects: &mut Effects,
    ) {
        todo!()
    }

    // ---- The topic as a whole ----

    /// A connection is gone: drops its producers and consumers; what was not acknowledged goes to others.
    pub fn disconnect(&mut self, conn: ConnId, now: Millis, effects: &mut Effects) {
        todo!()
    }
    /// Seals the topic: producers get CLOSE_PRODUCER (unsolicited, no assigned address), later SENDs and PRODUCERs
    /// TopicTerminatedError, and consumers REACHED_END_OF_TOPIC once their subscription has nothing left. Returns the
    /// last position, `None` for an empty topic. A second call changes nothing.
    pub fn terminate(&mut self, now: Millis, effects: &mut Effects) -> Option<Position> {
        todo!()
    }
    /// Whether the topic is sealed.
    pub fn is_terminated(&self) -> bool {
        todo!()
    }
    /// Closes every producer and consumer (unsolicited), naming the broker that has the topic now, if any; also the
    /// first half of a delete. Durable subscriptions, messages, schemas and sequence ids stay.
    pub fn close_all(&mut self, assigned: Option<&str>, effects: &mut Effects) {
        todo!()
    }
    /// Whether anyone is attached.
    pub fn in_use(&self) -> bool {
        todo!()
    }
    /// Delivers what became due. Call it at [`Topic::next_deadline`].
    pub fn tick(&mut self, now: Millis, effects: &mut Effects) {
        todo!()
    }
    /// When the next delayed message becomes due that a consumer could take.
    pub fn next_deadline(&self) -> Option<Millis> {
        todo!()
    }
    /// What is there.
    pub fn stats(&self) -> TopicStats {
        todo!()
    }
    /// Every stored entry, in stored order.
    pub fn stored(&self) -> impl Iterator<Item = StoredEntry<'_>> + '_ {
        std::iter::empty()
    }

    // ---- Subscriptions, for controllers and admin calls ----

    /// Makes a durable subscription; `false` when there is one of that name already.
    pub fn create_subscription(&mut self, name: &str, start: Start) -> bool {
        todo!()
    }
    /// Deletes a subscription; its consumers are closed (unsolicited). `false` when there is none.
    pub fn delete_subscription(&mut self, name: &str, effects: &mut Effects) -> bool {
        todo!()
    }
    /// Moves a subscription to the first entry published at or after `time`; its consumers are closed (unsolicited)
    /// and come back. `false` when there is no such subscription.
    pub fn reset_subscription(&mut self, name: &str, time: Millis, effects: &mut Effects) -> bool {
        todo!()
    }
    /// Acknowledges everything that is stored. `false` when there is no such subscription.
    pub fn skip_all(&mut self, name: &str, now: Millis, effects: &mut Effects) -> bool {
        todo!()
    }
    /// Whether a subscription exists.
    pub fn has_subscription(&self, name: &str) -> bool {
        todo!()
    }
    /// Whether the topic is terminated and this subscription has acknowledged everything. A subscription that does
    /// not exist on a terminated topic counts as drained only when the topic is empty.
    pub fn drained(&self, name: &str) -> bool {
        todo!()
    }
    /// Makes this topic's subscriptions on a child segment too, at its beginning.
    pub fn copy_subscriptions_to(&self, child: &mut Topic, rule: CopyRule) {
        todo!()
    }
}
