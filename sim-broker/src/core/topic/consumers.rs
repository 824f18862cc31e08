//! The commands of consumers: SUBSCRIBE, FLOW, ACK, REDELIVER_UNACKNOWLEDGED_MESSAGES, SEEK, UNSUBSCRIBE,
//! CLOSE_CONSUMER, GET_LAST_MESSAGE_ID, CONSUMER_STATS.

use stc_proto::pulsar::{
    CommandAck, CommandAckResponse, CommandCloseConsumer, CommandConsumerStats, CommandConsumerStatsResponse,
    CommandFlow, CommandGetLastMessageId, CommandGetLastMessageIdResponse,
    CommandRedeliverUnacknowledgedMessages, CommandSeek, CommandSubscribe, CommandSuccess,
    CommandUnsubscribe, MessageIdData, ServerError,
    command_subscribe::{InitialPosition, SubType},
};

use super::{
    Topic, consumer::Consumer, dispatch::Scope, error::TopicError, schema, subscription::Subscription,
};
use crate::core::{
    effects::Effects,
    ids::{ConsumerKey, Millis, TxnId},
};

/// Borrows the parts of a topic that a call on one of its subscriptions works with.
macro_rules! scope {
    ($topic:ident, $now:expr, $effects:expr) => {
        &mut Scope {
            ledger: &$topic.ledger,
            partition: $topic.partition,
            end_is_read_once: $topic.config.end_is_read_once,
            now: $now,
            effects: $effects,
        }
    };
}
pub(super) use scope;

impl Topic {
    /// SUBSCRIBE. Answers SUCCESS; a consumer id that is connected already gets it too.
    ///
    /// # Errors
    /// ConsumerBusy (an exclusive consumer is there, or consumers of another type), ConsumerAssignError (key ranges),
    /// IncompatibleSchema, NotAllowedError, ProducerBusy (an empty subscription name: Pulsar's own code for it).
    pub fn subscribe(
        &mut self,
        key: ConsumerKey,
        command: &CommandSubscribe,
        now: Millis,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        let success = CommandSuccess { request_id: command.request_id, schema: None };
        if self.has_consumer(key) {
            effects.send(key.conn, success);
            return Ok(());
        }
        self.check_subscribe(command)?;
        let name = command.subscription.as_str();
        let durable = command.durable();
        if !self.subscriptions.contains_key(name) {
            let mut subscription = Subscription::new(name, durable, self.first_entry(command), &self.ledger);
            subscription.seen = self.seen(command);
            self.subscriptions.insert(name.to_owned(), subscription);
        }
        let Some(subscription) = self.subscriptions.get_mut(name) else { return Ok(()) };
        if subscription.durable != durable {
            let existing = if subscription.durable { "Durable" } else { "NonDurable" };
            let message = format!("{existing} subscription with the same name already exists.");
            return Err(TopicError::not_allowed(message));
        }
        let rollback = command.start_message_rollback_duration_sec().saturating_mul(1000);
        if rollback > 0 && subscription.consumers().is_empty() {
            let first = self.ledger.published_since(now.saturating_sub(rollback));
            subscription.cursor = super::cursor::Cursor::new(first, &self.ledger);
        }
        let mut consumer = Consumer::new(key, command);
        if let (false, Some(meta)) = (self.config.entry_buckets, &mut consumer.key_shared) {
            meta.entry_bucket_dispatch = None;
        }
        let joined = subscription.join(consumer);
        if let Err(error) = joined {
            if !durable && subscription.consumers().is_empty() {
                self.subscriptions.remove(name);
            }
            return Err(error);
        }
        self.consumers.insert(key, name.to_owned());
        effects.send(key.conn, success);
        subscription.joined(scope!(self, now, effects));
        Ok(())
    }

    fn check_subscribe(&mut self, command: &CommandSubscribe) -> Result<(), TopicError> {
        if command.subscription.is_empty() {
            return Err(TopicError::new(ServerError::ProducerBusy, "Empty subscription name"));
        }
        if command.read_compacted() && matches!(command.sub_type(), SubType::Shared | SubType::KeyShared) {
            let message = "readCompacted only allowed on failover or exclusive subscriptions";
            return Err(TopicError::not_allowed(message));
        }
        let Some(schema) = schema::declared(command.schema.as_ref()) else { return Ok(()) };
        let consumers = || self.subscriptions.values().flat_map(Subscription::consumers);
        let in_use = !self.schemas.lock().is_empty()
            || self.ledger.len() > 0
            || !self.producers.is_empty()
            || consumers().any(|consumer| !consumer.auto_consume);
        match in_use {
            true => self.schemas.lock().check_consumer(schema),
            false => self.schemas.lock().register(schema, self.config.compatibility).map(|_| ()),
        }
    }

    /// Where a new subscription begins. A reader's start id is the last message that it has seen; the entry is
    /// delivered once more all the same, because a batch may have been read in part.
    fn first_entry(&self, command: &CommandSubscribe) -> u64 {
        match (&command.start_message_id, command.durable(), command.initial_position()) {
            (Some(id), false, _) => self.ledger.resolve(id.ledger_id, id.entry_id),
            (None, false, _) | (_, true, InitialPosition::Latest) => self.ledger.len(),
            (_, true, InitialPosition::Earliest) => 0,
        }
    }

    /// The first entry that a reader has not seen when it comes: behind that of its start id, unless that is a batch
    /// which it has read in part. 0 for a subscription that has a cursor.
    fn seen(&self, command: &CommandSubscribe) -> u64 {
        let Some(id) = command.start_message_id.as_ref().filter(|_| !command.durable()) else { return 0 };
        let seen = self.ledger.known(id.ledger_id, id.entry_id).filter(|entry| {
            let index = id.batch_index.and_then(|index| u32::try_from(index).ok());
            let messages = self.ledger.get(*entry).map_or(1, |stored| stored.messages);
            index.is_none_or(|index| index + 1 >= messages)
        });
        seen.map_or(0, |entry| entry + 1)
    }

    /// Whether this consumer is connected.
    pub fn has_consumer(&self, key: ConsumerKey) -> bool {
        self.consumers.contains_key(&key)
    }

    /// FLOW.
    pub fn flow(&mut self, key: ConsumerKey, command: &CommandFlow, now: Millis, effects: &mut Effects) {
        let Some(name) = self.consumers.get(&key) else { return };
        if let Some(subscription) = self.subscriptions.get_mut(name) {
            subscription.flow(key, command.message_permits, scope!(self, now, effects));
        }
    }

    /// ACK. Answers ACK_RESPONSE when the command has a request id, an error too: TransactionConflict when a transaction
    /// acknowledges what is acknowledged already or by another open one. In a transaction it counts from the commit on.
    pub fn ack(&mut self, key: ConsumerKey, command: &CommandAck, now: Millis, effects: &mut Effects) {
        let Some(name) = self.consumers.get(&key) else { return };
        let mut answer = CommandAckResponse {
            consumer_id: command.consumer_id,
            request_id: command.request_id,
            ..Default::default()
        };
        if let Some(subscription) = self.subscriptions.get_mut(name) {
            match TxnId::of(command.txnid_most_bits, command.txnid_least_bits) {
                Some(txn) => {
                    if let Err(error) = subscription.ack_in(txn, key, command, &self.ledger) {
                        // Success names no transaction.
                        answer.txnid_most_bits = command.txnid_most_bits;
                        answer.txnid_least_bits = command.txnid_least_bits;
                        answer.error = Some(error.code as i32);
                        answer.message = Some(error.message);
                    }
                }
                None => subscription.ack(key, command, scope!(self, now, effects)),
            }
        }
        if command.request_id.is_some() {
            effects.send(key.conn, answer);
        }
    }

    /// REDELIVER_UNACKNOWLEDGED_MESSAGES.
    pub fn redeliver(
        &mut self,
        key: ConsumerKey,
        command: &CommandRedeliverUnacknowledgedMessages,
        now: Millis,
        effects: &mut Effects,
    ) {
        let Some(name) = self.consumers.get(&key) else { return };
        if let Some(subscription) = self.subscriptions.get_mut(name) {
            subscription.redeliver(key, command, scope!(self, now, effects));
        }
    }

    /// SEEK. Closes every consumer of the subscription (CLOSE_CONSUMER, unsolicited), moves the cursor, then answers
    /// SUCCESS; the consumers come back by themselves.
    ///
    /// # Errors
    /// MetadataError: the consumer is unknown, or the command names neither a message nor a time.
    pub fn seek(
        &mut self,
        key: ConsumerKey,
        command: &CommandSeek,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        let name = self.consumers.get(&key).cloned().ok_or_else(TopicError::consumer_not_found)?;
        match (&command.message_id, command.message_publish_time) {
            (Some(id), _) => self.seek_to(&name, id, effects),
            (None, Some(time)) => {
                self.reset_subscription(&name, time, effects);
            }
            (None, None) => return Err(TopicError::consumer_not_found()),
        }
        effects.send(key.conn, CommandSuccess { request_id: command.request_id, schema: None });
        Ok(())
    }

    fn seek_to(&mut self, name: &str, id: &MessageIdData, effects: &mut Effects) {
        let first = self.ledger.resolve(id.ledger_id, id.entry_id);
        self.move_cursor(name, first, effects);
        let Some(subscription) = self.subscriptions.get_mut(name) else { return };
        if let (Some(entry), false) = (self.ledger.known(id.ledger_id, id.entry_id), id.ack_set.is_empty()) {
            let messages = self.ledger.get(entry).map_or(1, |stored| stored.messages);
            subscription.cursor.ack_part(entry, messages, &id.ack_set);
        }
    }

    /// UNSUBSCRIBE. Deletes the subscription and answers SUCCESS; with `force` other consumers are closed.
    ///
    /// # Errors
    /// MetadataError: the consumer is unknown, or not the only one and `force` is not set.
    pub fn unsubscribe(
        &mut self,
        key: ConsumerKey,
        command: &CommandUnsubscribe,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        let name = self.consumers.get(&key).cloned().ok_or_else(TopicError::consumer_not_found)?;
        let Some(subscription) = self.subscriptions.get_mut(&name) else { return Ok(()) };
        if !command.force() && !subscription.is_sole_consumer(key) {
            let message = "Unconnected or shared consumer attempting to unsubscribe";
            return Err(TopicError::new(ServerError::MetadataError, message));
        }
        for consumer in subscription.take_consumers() {
            self.consumers.remove(&consumer.key);
            if consumer.key != key {
                consumer.send_close(None, effects);
            }
        }
        self.subscriptions.remove(&name);
        effects.send(key.conn, CommandSuccess { request_id: command.request_id, schema: None });
        Ok(())
    }

    /// CLOSE_CONSUMER. Answers SUCCESS, for an unknown consumer too; what the consumer did not acknowledge goes to
    /// others.
    pub fn remove_consumer(
        &mut self,
        key: ConsumerKey,
        command: &CommandCloseConsumer,
        now: Millis,
        effects: &mut Effects,
    ) {
        effects.send(key.conn, CommandSuccess { request_id: command.request_id, schema: None });
        if let Some(name) = self.consumers.remove(&key) {
            self.leave(&name, |consumer| consumer == key, now, effects);
        }
    }

    /// Lets consumers of a subscription go, and a reader's subscription with its last one.
    pub(super) fn leave(
        &mut self,
        name: &str,
        leaves: impl Fn(ConsumerKey) -> bool,
        now: Millis,
        effects: &mut Effects,
    ) {
        let Some(subscription) = self.subscriptions.get_mut(name) else { return };
        subscription.leave(leaves, scope!(self, now, effects));
        if !subscription.durable && subscription.consumers().is_empty() {
            self.subscriptions.remove(name);
        }
    }

    /// GET_LAST_MESSAGE_ID. Answers GET_LAST_MESSAGE_ID_RESPONSE with the last message that consumers may see (entry -1
    /// when there is none, a batch index when the last entry is a batch) and the consumer's mark-delete position.
    ///
    /// # Errors
    /// MetadataError: the consumer is unknown.
    pub fn last_message_id(
        &self,
        key: ConsumerKey,
        command: &CommandGetLastMessageId,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        let subscription = self.consumers.get(&key).and_then(|name| self.subscriptions.get(name));
        let subscription = subscription.ok_or_else(TopicError::consumer_not_found)?;
        // The position before the first entry is entry -1.
        let before = |entry: u64| entry.wrapping_sub(1);
        let last = self.ledger.last_readable();
        let batch_index = match last {
            Some((_, last)) if last.batch => last.messages as i32 - 1,
            _ => -1,
        };
        let ledger_id = self.ledger.id();
        let written = self.ledger.len() > 0;
        let answer = CommandGetLastMessageIdResponse {
            request_id: command.request_id,
            last_message_id: MessageIdData {
                // What was never written to has no last position, not even one in its ledger.
                ledger_id: if written { ledger_id } else { u64::MAX },
                entry_id: before(last.map_or(0, |(entry, _)| entry + 1)),
                partition: Some(self.partition),
                batch_index: Some(batch_index),
                ..Default::default()
            },
            consumer_mark_delete_position: Some(MessageIdData {
                ledger_id,
                entry_id: before(subscription.cursor.first_unacked()),
                ..Default::default()
            }),
        };
        effects.send(key.conn, answer);
        Ok(())
    }

    /// CONSUMER_STATS. Answers CONSUMER_STATS_RESPONSE, for an unknown consumer with ConsumerNotFound in it. Rates are
    /// 0: they would depend on when one asks.
    pub fn consumer_stats(&self, key: ConsumerKey, command: &CommandConsumerStats, effects: &mut Effects) {
        let subscription = self.consumers.get(&key).and_then(|name| self.subscriptions.get(name));
        let stats = subscription.map(|subscription| subscription.stats(&self.ledger));
        let consumer = stats.as_ref().and_then(|stats| stats.consumers.iter().find(|c| c.key == key));
        let mut answer =
            CommandConsumerStatsResponse { request_id: command.request_id, ..Default::default() };
        if let (Some(stats), Some(consumer)) = (&stats, consumer) {
            answer.msg_rate_out = Some(0.0);
            answer.msg_throughput_out = Some(0.0);
            answer.msg_rate_redeliver = Some(0.0);
            answer.msg_rate_expired = Some(0.0);
            answer.message_ack_rate = Some(0.0);
            answer.consumer_name = Some(consumer.name.clone());
            answer.available_permits = Some(consumer.permits.max(0) as u64);
            answer.unacked_messages = Some(consumer.unacked);
            answer.blocked_consumer_on_unacked_msgs = Some(false);
            answer.r#type = stats.kind.map(|kind| kind.as_str_name().to_owned());
            answer.msg_backlog = Some(stats.backlog);
        } else {
            answer.error_code = Some(ServerError::ConsumerNotFound as i32);
            answer.error_message = Some(format!("Consumer {} not found", key.id));
        }
        effects.send(key.conn, answer);
    }
}
