//! One connected consumer.

use std::collections::BTreeMap;

use stc_proto::pulsar::{
    CommandSubscribe, KeySharedMeta, KeyValue, command_subscribe::SubType, schema::Type,
};

use super::{
    closing::{self, Assigned},
    stats::ConsumerStats,
};
use crate::core::{effects::Effects, ids::ConsumerKey};

#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) key: ConsumerKey,
    pub(super) name: String,
    pub(super) kind: SubType,
    /// Lower is served first.
    pub(super) priority: i32,
    pub(super) key_shared: Option<KeySharedMeta>,
    /// Messages that it may still be sent.
    pub(super) permits: i64,
    /// Counts the client's rewinds; Exclusive and Failover messages carry it.
    pub(super) epoch: Option<u64>,
    /// Entries that are delivered and not acknowledged, with the messages in them that are not. Kept for Shared and
    /// Key_Shared, which acknowledge one by one.
    pub(super) pending: BTreeMap<u64, u32>,
    /// The sum of those messages.
    pub(super) unacked: u64,
    /// Whether REACHED_END_OF_TOPIC was sent.
    pub(super) told_end: bool,
    /// Whether it takes any schema that the topic has.
    pub(super) auto_consume: bool,
    metadata: Vec<KeyValue>,
}

impl Consumer {
    pub(super) fn new(key: ConsumerKey, command: &CommandSubscribe) -> Self {
        Consumer {
            key,
            name: command.consumer_name().to_owned(),
            kind: command.sub_type(),
            priority: command.priority_level(),
            key_shared: command.key_shared_meta.clone(),
            permits: 0,
            epoch: command.consumer_epoch,
            pending: BTreeMap::new(),
            unacked: 0,
            told_end: false,
            auto_consume: command.schema.as_ref().is_some_and(|schema| schema.r#type() == Type::AutoConsume),
            metadata: command.metadata.clone(),
        }
    }

    /// Notes a delivered entry.
    pub(super) fn track(&mut self, entry: u64, messages: u32) {
        self.pending.insert(entry, messages);
        self.unacked += u64::from(messages);
    }

    /// Takes an entry off the delivered ones; false when it was not among them.
    pub(super) fn settle(&mut self, entry: u64) -> bool {
        let Some(messages) = self.pending.remove(&entry) else { return false };
        self.unacked -= u64::from(messages);
        true
    }

    /// Notes that messages of a delivered batch were acknowledged.
    pub(super) fn settle_part(&mut self, entry: u64, messages: u32) {
        if let Some(left) = self.pending.get_mut(&entry) {
            let messages = messages.min(*left);
            *left -= messages;
            self.unacked -= u64::from(messages);
        }
    }

    /// Tells the client that the broker closes this consumer, and which broker has the topic now, if any.
    pub(super) fn send_close(&self, assigned: Option<&Assigned>, effects: &mut Effects) {
        effects.send(self.key.conn, closing::close_consumer(self.key.id, assigned));
    }

    pub(super) fn stats(&self) -> ConsumerStats {
        ConsumerStats {
            key: self.key,
            name: self.name.clone(),
            permits: self.permits,
            unacked: self.unacked,
            metadata: self.metadata.clone(),
        }
    }
}
