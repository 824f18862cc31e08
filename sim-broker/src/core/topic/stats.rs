//! What a topic tells about itself.

use stc_proto::pulsar::{KeyValue, ProducerAccessMode, command_subscribe::SubType};

use crate::core::ids::{ConsumerKey, ProducerKey};

/// What [`Topic::stats`](super::Topic::stats) tells.
#[derive(Debug, Clone, Default)]
pub struct TopicStats {
    /// Stored entries.
    pub entries: u64,
    /// Messages in them; a batch counts as its messages.
    pub messages: u64,
    /// Their size in bytes.
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
    /// Its type; `None` while no consumer is connected.
    pub kind: Option<SubType>,
    /// Whether it outlives its consumers.
    pub durable: bool,
    /// Entries that are not fully acknowledged, delivered or not (Pulsar's `msgBacklog`).
    pub backlog: u64,
    /// Messages that are not acknowledged, delivered or not.
    pub backlog_messages: u64,
    /// Messages that are delivered and not acknowledged; 0 where a consumer has the topic to itself, as Pulsar counts
    /// them for consumers that share it.
    pub unacked: u64,
    /// Consumers, in the order in which they came.
    pub consumers: Vec<ConsumerStats>,
}

/// A connected reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reader {
    /// Who it is.
    pub key: ConsumerKey,
    /// Its name.
    pub name: String,
    /// Whether the topic is terminated and the reader has acknowledged everything after its start position. The
    /// message at that position, which comes once more, it had seen before.
    pub done: bool,
    /// Whether the topic is terminated, everything was delivered to the reader, and it has acknowledged nothing at all:
    /// readers need not.
    pub delivered: bool,
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
    /// Messages that are delivered to it and not acknowledged; 0 where it has the topic to itself.
    pub unacked: u64,
    /// The metadata of its SUBSCRIBE command.
    pub metadata: Vec<KeyValue>,
}
