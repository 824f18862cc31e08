//! What the brokers have stored, message by message: the truth that sends are measured by.
//!
//! A simulated cluster tells it by its control API, so that looking leaves no trace in the journal. From a broker
//! elsewhere [`reader`] reads it over the wire. Both give whole entries, with their metadata and stamps.

use std::time::Duration;

use bytes::Bytes;
use sim_broker::control::Control;
use stc_proto::name::Domain;
use stc_proto::pulsar::{KeyValue, MessageMetadata};
use stc_proto::{Entry, HashRange, KeyHash, SegmentName, TopicName};

use crate::judge::Trouble;
use crate::target::Broker;
use crate::wire;

mod brokers;
pub mod classic;
mod link;
pub mod reader;
pub mod writer;

/// A stored message.
#[derive(Debug, Clone)]
pub struct StoredMessage {
    /// The topic that stores it: a segment, a partition or a classic topic.
    pub topic: String,
    /// Segment id, if it is a segment.
    pub segment: Option<u64>,
    /// The segment's hash range, if it is a segment.
    pub range: Option<HashRange>,
    /// Ledger and entry.
    pub position: (u64, u64),
    /// Its place in its entry, from 0.
    pub index: usize,
    /// How many messages the entry has.
    pub entry_size: usize,
    /// Its key.
    pub key: Option<String>,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Its properties.
    pub properties: Vec<KeyValue>,
    /// The application's own time for it, in ms since 1970; 0 for none.
    pub event_time: u64,
    /// The entry's outer metadata.
    pub metadata: MessageMetadata,
}

impl StoredMessage {
    /// The payload as text, for messages.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }

    /// Where it is, in words.
    pub fn place(&self) -> String {
        match self.segment {
            Some(id) => format!("segment {id}"),
            None => self.topic.clone(),
        }
    }
}

/// Everything stored under a topic, segments in the order of their ids, each in stored order.
///
/// # Errors
/// When the topic does not exist, the broker cannot be read from, or an entry does not parse.
pub async fn of(broker: &Broker, topic: &str) -> Result<Vec<StoredMessage>, Trouble> {
    with_late(broker, topic, Duration::ZERO).await
}

/// The same, and what a broker elsewhere sends in this time after the entry that it calls the last: 5.0.1 does not always
/// know of the newest ones (docs/divergences.md, B51). For who reads until something is there.
///
/// # Errors
/// Those of [`of`].
pub async fn with_late(broker: &Broker, topic: &str, late: Duration) -> Result<Vec<StoredMessage>, Trouble> {
    match &broker.cluster {
        Some(cluster) => in_cluster(&cluster.control(), topic),
        None => reader::read(&broker.own_url, &broker.admin, topic, late).await,
    }
}

/// The same of a simulated cluster, by its control API. A classic topic that was migrated is the scalable one of its name.
///
/// # Errors
/// When the topic does not exist, or an entry cannot be read.
pub fn in_cluster(control: &Control, topic: &str) -> Result<Vec<StoredMessage>, Trouble> {
    let mut found = Vec::new();
    let scalable = TopicName::parse(topic)?.with_domain(Domain::Topic);
    let topic = if control.current_dag(scalable.as_str()).is_ok() { scalable.as_str() } else { topic };
    // What no consumer may see, a reader over the wire does not see either.
    for stored in control.stored(topic)?.into_iter().filter(|stored| stored.visible) {
        let position = (stored.position.ledger, stored.position.entry);
        found.extend(messages(stored.topic.as_str(), position, stored.bytes.clone())?);
    }
    Ok(sorted(found))
}

fn sorted(mut messages: Vec<StoredMessage>) -> Vec<StoredMessage> {
    messages.sort_by_key(|m| (m.segment, m.topic.clone(), m.position, m.index));
    messages
}

/// The messages of an entry that `topic` stores at `position`.
fn messages(topic: &str, position: (u64, u64), bytes: Bytes) -> Result<Vec<StoredMessage>, Trouble> {
    let entry = Entry::parse(bytes)?;
    let name = SegmentName::parse(topic).ok();
    let members = wire::messages(&entry);
    let entry_size = members.len();
    let stored = |(index, message): (usize, wire::WireMessage)| StoredMessage {
        topic: topic.to_owned(),
        segment: name.as_ref().map(|n| n.id),
        range: name.as_ref().map(|n| n.range),
        position,
        index,
        entry_size,
        key: message.key,
        payload: message.payload,
        properties: message.properties,
        event_time: message.event_time,
        metadata: entry.metadata.clone(),
    };
    Ok(members.into_iter().enumerate().map(stored).collect())
}

/// A key as failure messages show it: with the half of its hash that routes it.
pub fn describe(key: &str) -> String {
    format!("key {key:?} (high half 0x{:04x})", KeyHash::of(key).segment())
}
