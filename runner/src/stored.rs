//! What the brokers have stored, message by message: the truth that sends are measured by.

use sim_broker::control::Control;
use stc_proto::pulsar::MessageMetadata;
use stc_proto::{Entry, HashRange, KeyHash, SegmentName};

use crate::judge::Trouble;
use crate::target::Broker;
use crate::wire;

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
/// When the target has no control API, or an entry cannot be read.
pub fn of(broker: &Broker, topic: &str) -> Result<Vec<StoredMessage>, Trouble> {
    in_cluster(&broker.control()?, topic)
}

/// The same of a simulated cluster, by its control API.
///
/// # Errors
/// When the topic does not exist, or an entry cannot be read.
pub fn in_cluster(control: &Control, topic: &str) -> Result<Vec<StoredMessage>, Trouble> {
    let mut found = Vec::new();
    for stored in control.stored(topic)? {
        let entry = Entry::parse(stored.bytes.clone())?;
        let name = SegmentName::of(&stored.topic).ok();
        let messages = wire::messages(&entry);
        let entry_size = messages.len();
        for (index, message) in messages.into_iter().enumerate() {
            found.push(StoredMessage {
                topic: stored.topic.to_string(),
                segment: name.as_ref().map(|n| n.id),
                range: name.as_ref().map(|n| n.range),
                position: (stored.position.ledger, stored.position.entry),
                index,
                entry_size,
                key: message.key,
                payload: message.payload,
                metadata: entry.metadata.clone(),
            });
        }
    }
    found.sort_by_key(|m| (m.segment, m.topic.clone(), m.position, m.index));
    Ok(found)
}

/// A key as failure messages show it: with the half of its hash that routes it.
pub fn describe(key: &str) -> String {
    format!("key {key:?} (high half 0x{:04x})", KeyHash::of(key).segment())
}
