//! One stored topic: a classic topic, a partition, or a segment.
//!
//! [`Topic`] takes one command at a time. Commands that carry a request id are answered here when they succeed (through
//! [`Effects`]); a refusal is returned as [`TopicError`], and the caller turns it into ERROR with that request id.
//! Producers and consumers are known by connection and the id the client chose; commands for ids that this topic does
//! not know (any more) are ignored, as Pulsar does, except SEND, which closes the connection.
//!
//! | Module | Owns |
//! |---|---|
//! | `ledger` | the stored entries |
//! | `producers`, `publish`, `dedup` | access modes and names; SEND; sequence ids |
//! | `consumers`, `subscription`, `consumer` | the commands of consumers; a cursor and its consumers; one consumer |
//! | `cursor`, `ack_set` | what is acknowledged: entries, and messages within a batch |
//! | `transactions`, `uncommitted`, `pending_acks` | what waits for the end of a transaction |
//! | `dispatch`, `delayed` | which consumer gets which entry, and when |
//! | `waiting` | who is told of the end of a sealed topic |
//! | `closing` | what the broker closes by itself |
//! | `schema` | versions and compatibility |

mod ack_set;
mod closing;
mod config;
mod consumer;
mod consumers;
mod cursor;
mod dedup;
mod delayed;
mod dispatch;
mod error;
mod ledger;
mod pending_acks;
mod producers;
mod publish;
mod schema;
mod stats;
mod subscription;
#[cfg(test)]
mod tests;
mod transactions;
mod uncommitted;
mod waiting;

use std::collections::BTreeMap;

use stc_proto::{
    TopicName,
    pulsar::{
        CommandGetOrCreateSchema, CommandGetOrCreateSchemaResponse, CommandGetSchema,
        CommandGetSchemaResponse, ServerError,
    },
};

pub use self::{
    closing::Assigned,
    config::{SchemaCompatibility, Start, TopicConfig},
    error::TopicError,
    ledger::{Position, StoredEntry},
    schema::SharedSchemas,
    stats::{ConsumerStats, ProducerStats, Reader, SubscriptionStats, TopicStats},
};
use self::{consumers::scope, cursor::Cursor, dispatch::Scope, subscription::Subscription};
use super::{
    effects::Effects,
    ids::{ConnId, ConsumerKey, Millis},
};

/// The request id of closes that the broker starts.
pub const UNSOLICITED: u64 = u64::MAX;

/// One stored topic.
///
/// The entries live in one ledger for the topic's whole life, so message ids of one topic differ in the entry only.
#[derive(Debug)]
pub struct Topic {
    name: TopicName,
    config: TopicConfig,
    /// The partition that message ids name; -1 on a topic that is no partition.
    partition: i32,
    ledger: ledger::Ledger,
    producers: producers::Producers,
    deduplication: dedup::Deduplication,
    schemas: SharedSchemas,
    subscriptions: BTreeMap<String, Subscription>,
    /// The subscription of each connected consumer. Ordered, as everything that effects are made from.
    consumers: BTreeMap<ConsumerKey, String>,
}

impl Topic {
    /// An empty topic. `ledger` is the ledger id in the ids of its messages, unique in the cluster; `schemas` may be
    /// shared with other segments or partitions of one topic.
    pub fn new(name: TopicName, config: TopicConfig, ledger: u64, schemas: SharedSchemas) -> Self {
        Topic {
            partition: name.partition_index().and_then(|index| i32::try_from(index).ok()).unwrap_or(-1),
            name,
            config,
            ledger: ledger::Ledger::new(ledger),
            producers: Default::default(),
            deduplication: Default::default(),
            schemas,
            subscriptions: BTreeMap::new(),
            consumers: BTreeMap::new(),
        }
    }

    /// The topic's name.
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// The settings; a change applies to what comes next.
    pub fn config_mut(&mut self) -> &mut TopicConfig {
        &mut self.config
    }

    // ---- Schemas ----

    /// GET_SCHEMA. Answers GET_SCHEMA_RESPONSE, an error too: TopicNotFound when there is no such version.
    pub fn get_schema(&self, conn: ConnId, command: &CommandGetSchema, effects: &mut Effects) {
        let mut answer = CommandGetSchemaResponse { request_id: command.request_id, ..Default::default() };
        match self.schemas.lock().get(command.schema_version.as_deref()) {
            Some((schema, version)) => {
                answer.schema = Some(schema.clone());
                answer.schema_version = Some(version);
            }
            None => {
                answer.error_code = Some(ServerError::TopicNotFound as i32);
                answer.error_message = Some("Topic not found or no-schema".into());
            }
        }
        effects.send(conn, answer);
    }

    /// GET_OR_CREATE_SCHEMA. Answers GET_OR_CREATE_SCHEMA_RESPONSE, an error too: IncompatibleSchema.
    pub fn get_or_create_schema(
        &mut self,
        conn: ConnId,
        command: &CommandGetOrCreateSchema,
        effects: &mut Effects,
    ) {
        let mut answer =
            CommandGetOrCreateSchemaResponse { request_id: command.request_id, ..Default::default() };
        match self.schemas.lock().register(&command.schema, self.config.compatibility) {
            Ok(version) => answer.schema_version = Some(version),
            Err(TopicError { code, message }) => {
                answer.error_code = Some(code as i32);
                answer.error_message = Some(message);
            }
        }
        effects.send(conn, answer);
    }

    // ---- The topic as a whole ----

    fn dispatch_all(&mut self, now: Millis, effects: &mut Effects) {
        for subscription in self.subscriptions.values_mut() {
            subscription.dispatch(scope!(self, now, effects));
        }
    }

    /// A connection is gone: drops its producers and consumers; what they did not acknowledge goes to others.
    pub fn disconnect(&mut self, conn: ConnId, now: Millis, effects: &mut Effects) {
        self.disconnect_producers(conn, effects);
        let of_conn = ConsumerKey { conn, id: 0 }..=ConsumerKey { conn, id: u64::MAX };
        let gone: Vec<ConsumerKey> = self.consumers.range(of_conn).map(|(key, _)| *key).collect();
        // All consumers of the connection leave a subscription at once: none of them is handed what another one had.
        for key in gone {
            if let Some(name) = self.consumers.remove(&key) {
                self.leave(&name, |consumer| consumer.conn == conn, now, effects);
            }
        }
    }

    /// Seals the topic: producers get CLOSE_PRODUCER (unsolicited, no assigned address), later SENDs and PRODUCERs get
    /// TopicTerminatedError, and consumers REACHED_END_OF_TOPIC once their subscription has nothing left. Returns the
    /// last position, `None` for an empty topic. A second call changes nothing.
    pub fn terminate(&mut self, now: Millis, effects: &mut Effects) -> Option<Position> {
        if !self.ledger.terminated() {
            self.ledger.terminate();
            self.producers.close_all(None, &TopicError::terminated(), effects);
            for subscription in self.subscriptions.values_mut() {
                subscription.check_end(scope!(self, now, effects));
            }
        }
        self.ledger.last().map(|(position, _)| position)
    }

    /// Whether the topic is sealed.
    pub fn is_terminated(&self) -> bool {
        self.ledger.terminated()
    }

    /// Closes every producer and consumer (unsolicited), naming the broker that has the topic now, if any; also the
    /// first half of a delete. Messages, durable subscriptions, schemas and sequence ids stay. SENDs that are on
    /// their way are ignored.
    pub fn close_all(&mut self, assigned: Option<&Assigned>, effects: &mut Effects) {
        self.producers.close_all(assigned, &TopicError::unavailable(), effects);
        for subscription in self.subscriptions.values_mut() {
            for consumer in subscription.take_consumers() {
                consumer.send_close(assigned, effects);
            }
        }
        self.subscriptions.retain(|_, subscription| subscription.durable);
        self.consumers.clear();
        self.reopen();
    }

    /// Another broker, or a new life of the same one, serves the topic from now on: it has nothing of what is not
    /// stored, reads that wait among it.
    pub fn reopen(&mut self) {
        self.subscriptions.values_mut().for_each(Subscription::reopen);
    }

    /// Whether anyone is attached.
    pub fn in_use(&self) -> bool {
        !self.producers.is_empty() || !self.consumers.is_empty()
    }

    /// Delivers what became due. To be called at [`Topic::next_deadline`].
    pub fn tick(&mut self, now: Millis, effects: &mut Effects) {
        self.dispatch_all(now, effects);
    }

    /// When the next delayed message becomes due on a subscription that has consumers.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.subscriptions.values().filter_map(Subscription::next_deadline).min()
    }

    /// What is there.
    pub fn stats(&self) -> TopicStats {
        TopicStats {
            entries: self.ledger.len(),
            messages: self.ledger.messages(),
            bytes: self.ledger.bytes(),
            terminated: self.ledger.terminated(),
            producers: self.producers.stats(),
            subscriptions: self.subscriptions.values().map(|s| s.stats(&self.ledger)).collect(),
        }
    }

    /// Every stored entry, in stored order.
    pub fn stored(&self) -> impl Iterator<Item = StoredEntry<'_>> + '_ {
        self.ledger.iter()
    }

    // ---- Subscriptions, for controllers and admin calls ----

    /// Makes a durable subscription; `false` when there is one of that name already.
    pub fn create_subscription(&mut self, name: &str, start: Start) -> bool {
        if self.subscriptions.contains_key(name) {
            return false;
        }
        let first = match start {
            Start::Earliest => 0,
            Start::Latest => self.ledger.len(),
        };
        let subscription = Subscription::new(name, true, first, &self.ledger);
        self.subscriptions.insert(name.to_owned(), subscription);
        true
    }

    /// Deletes a subscription; its consumers are closed (unsolicited). `false` when there is none.
    pub fn delete_subscription(&mut self, name: &str, effects: &mut Effects) -> bool {
        self.close_consumers(name, effects);
        self.subscriptions.remove(name).is_some()
    }

    /// Moves a subscription to the first entry published at or after `time`; its consumers are closed (unsolicited)
    /// and come back by themselves. `false` when there is no such subscription.
    pub fn reset_subscription(&mut self, name: &str, time: Millis, effects: &mut Effects) -> bool {
        self.move_cursor(name, self.ledger.published_since(time), effects)
    }

    /// Acknowledges everything that is stored. `false` when there is no such subscription.
    pub fn skip_all(&mut self, name: &str, now: Millis, effects: &mut Effects) -> bool {
        let subscription = self.subscriptions.get_mut(name);
        subscription.map(|subscription| subscription.skip_all(scope!(self, now, effects))).is_some()
    }

    /// Closes a subscription's consumers and moves its cursor. A reader's subscription stays, so that its reader finds
    /// the new place.
    fn move_cursor(&mut self, name: &str, first: u64, effects: &mut Effects) -> bool {
        self.close_consumers(name, effects);
        let subscription = self.subscriptions.get_mut(name);
        subscription.map(|subscription| subscription.cursor = Cursor::new(first, &self.ledger)).is_some()
    }

    fn close_consumers(&mut self, name: &str, effects: &mut Effects) {
        let consumers = self.subscriptions.get_mut(name).map(Subscription::take_consumers);
        for consumer in consumers.into_iter().flatten() {
            self.consumers.remove(&consumer.key);
            consumer.send_close(None, effects);
        }
    }

    /// Whether consumers are attached to a subscription.
    pub fn has_consumers(&self, name: &str) -> bool {
        self.subscriptions.get(name).is_some_and(|subscription| !subscription.consumers().is_empty())
    }

    /// Whether a subscription exists.
    pub fn has_subscription(&self, name: &str) -> bool {
        self.subscriptions.contains_key(name)
    }

    /// Whether the topic is terminated and this subscription has acknowledged everything. One that does not exist, since
    /// its consumer comes yet, has not.
    pub fn drained(&self, name: &str) -> bool {
        self.subscriptions.get(name).is_some_and(|subscription| subscription.drained(&self.ledger))
    }

    /// Whether the topic is terminated and nothing was ever stored.
    pub fn is_empty_and_sealed(&self) -> bool {
        self.ledger.terminated() && self.ledger.len() == 0
    }

    /// The connected readers: consumers of subscriptions that do not outlive them.
    pub fn readers(&self) -> Vec<Reader> {
        let readers = self.subscriptions.values().filter(|subscription| !subscription.durable);
        readers.flat_map(|subscription| subscription.readers(&self.ledger)).collect()
    }

    /// The subscriptions that outlive their consumers.
    pub fn durable_subscriptions(&self) -> impl Iterator<Item = &str> {
        self.subscriptions
            .iter()
            .filter(|(_, subscription)| subscription.durable)
            .map(|(name, _)| name.as_str())
    }
}
