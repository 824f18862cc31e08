//! Producers and consumers: commands go to the stored topic that they belong to.

use bytes::Bytes;
use stc_proto::{SegmentName, TopicName, name::Domain, pulsar::*};

use super::{Cluster, about::error_for, conn::Conn, transactions::code};
use crate::core::{
    effects::Effects,
    ids::{ConnId, ConsumerKey, Millis, ProducerKey, TxnId},
    topic::{Start, Topic, TopicError},
};

impl Cluster {
    /// Runs `act` on a stored topic, and sees to it that the topic's next tick comes. `None` when there is no such
    /// topic.
    pub(super) fn on_topic<R>(
        &mut self,
        name: &TopicName,
        act: impl FnOnce(&mut Topic, &mut Effects) -> R,
    ) -> Option<R> {
        let stored = self.stored.get_mut(name)?;
        let result = act(&mut stored.topic, &mut self.effects);
        if let Some(due) = stored.topic.next_deadline()
            && stored.tick_at.is_none_or(|planned| due < planned)
        {
            stored.tick_at = Some(due);
            self.agenda.add(due, super::flow::Due::Tick(name.clone()));
        }
        Some(result)
    }

    /// PRODUCER.
    pub(super) fn producer(&mut self, conn: ConnId, command: CommandProducer, now: Millis) {
        let result =
            self.attachable(conn, Attaching::Producer, &command.topic, true, now).and_then(|topic| {
                let key = ProducerKey { conn, id: command.producer_id };
                if self
                    .conns
                    .get(&conn)
                    .and_then(|c| c.producers.get(&key.id))
                    .is_some_and(|other| *other != topic)
                {
                    let message = "Producer id is in use on the connection, for another topic";
                    return Err(TopicError::new(ServerError::ServiceNotReady, message));
                }
                // The names are cluster-wide and the topic is inside the cluster: take them out for the call.
                let mut names = self.names.clone();
                let added =
                    self.on_topic(&topic, |t, effects| t.add_producer(key, &command, &mut names, effects));
                self.names = names;
                added.unwrap_or_else(|| Err(gone(&topic, Attaching::Producer)))?;
                if let Some(c) = self.conns.get_mut(&conn) {
                    c.closed_producers.remove(&key.id);
                    c.producers.insert(key.id, topic);
                }
                Ok(())
            });
        self.answer_error(conn, command.request_id, result);
    }

    /// SEND. The topic decides about a producer that the broker closed; one that never was closes the connection. A
    /// transaction that is not open takes nothing (NotAllowedError).
    pub(super) fn send(&mut self, conn: ConnId, command: CommandSend, entry: Bytes, now: Millis) {
        let key = ProducerKey { conn, id: command.producer_id };
        let Some(c) = self.conns.get(&conn) else { return };
        let topic = c.producers.get(&key.id).or_else(|| c.closed_producers.get(&key.id)).cloned();
        let txn = TxnId::of(command.txnid_most_bits, command.txnid_least_bits);
        if let Some(error) = txn.filter(|_| topic.is_some()).and_then(|txn| self.not_open(txn)) {
            let message = error.to_string();
            return self.refuse(conn, &command.into(), ServerError::NotAllowedError, &message);
        }
        match topic {
            Some(topic) => {
                self.on_topic(&topic, |t, effects| t.send(key, &command, entry, now, effects));
            }
            None => self.effects.close(conn, format!("SEND for unknown producer {}", key.id)),
        }
    }

    /// CLOSE_PRODUCER.
    pub(super) fn close_producer(&mut self, conn: ConnId, command: CommandCloseProducer) {
        let key = ProducerKey { conn, id: command.producer_id };
        // One that the broker closed stays known as such: messages may have been under way when the client closed it too.
        let topic = self.conns.get_mut(&conn).and_then(|c| c.producers.remove(&key.id));
        let closed = topic
            .and_then(|topic| self.on_topic(&topic, |t, effects| t.remove_producer(key, &command, effects)));
        if closed.is_none() {
            self.effects.send(conn, CommandSuccess { request_id: command.request_id, schema: None });
        }
    }

    /// SUBSCRIBE.
    pub(super) fn subscribe(&mut self, conn: ConnId, command: CommandSubscribe, now: Millis) {
        let create = command.force_topic_creation();
        let result =
            self.attachable(conn, Attaching::Consumer, &command.topic, create, now).and_then(|topic| {
                let key = ConsumerKey { conn, id: command.consumer_id };
                if self
                    .conns
                    .get(&conn)
                    .and_then(|c| c.consumers.get(&key.id))
                    .is_some_and(|other| *other != topic)
                {
                    let message = "Consumer id is in use on the connection, for another topic";
                    return Err(TopicError::new(ServerError::ServiceNotReady, message));
                }
                let added = self.on_topic(&topic, |t, effects| {
                    let known = t.has_subscription(&command.subscription);
                    t.subscribe(key, &command, now, effects).map(|()| !known)
                });
                if added.unwrap_or_else(|| Err(gone(&topic, Attaching::Consumer)))? && command.durable() {
                    self.span_segments(&topic, &command);
                }
                if let Some(c) = self.conns.get_mut(&conn) {
                    c.consumers.insert(key.id, topic);
                }
                Ok(())
            });
        self.answer_error(conn, command.request_id, result);
    }

    /// A client made a subscription on one segment. Where the profile says so it begins on all segments of the topic at
    /// that moment: one that begins at the latest message then misses nothing of what comes, also on segments that its
    /// consumers attach to later.
    fn span_segments(&mut self, segment: &TopicName, command: &CommandSubscribe) {
        if !self.config.profile.subscriptions_span_segments || segment.domain() != Domain::Segment {
            return;
        }
        let Ok(SegmentName { topic, .. }) = SegmentName::of(segment) else { return };
        let start = match command.initial_position() {
            command_subscribe::InitialPosition::Latest => Start::Latest,
            command_subscribe::InitialPosition::Earliest => Start::Earliest,
        };
        for name in self.stored_names(&topic) {
            self.on_topic(&name, |t, _| t.create_subscription(&command.subscription, start));
        }
    }

    /// FLOW; ignored for an unknown consumer.
    pub(super) fn flow(&mut self, conn: ConnId, command: CommandFlow, now: Millis) {
        self.on_consumer(conn, command.consumer_id, |t, key, effects| t.flow(key, &command, now, effects));
    }

    /// ACK; ignored for an unknown consumer. A transaction that is not open takes nothing.
    pub(super) fn ack(&mut self, conn: ConnId, command: CommandAck, now: Millis) {
        let txn = TxnId::of(command.txnid_most_bits, command.txnid_least_bits);
        if let Some(error) = txn.and_then(|txn| self.not_open(txn)) {
            return self.refuse(conn, &command.into(), code(&error), &error.to_string());
        }
        self.on_consumer(conn, command.consumer_id, |t, key, effects| t.ack(key, &command, now, effects));
    }

    /// REDELIVER_UNACKNOWLEDGED_MESSAGES; ignored for an unknown consumer.
    pub(super) fn redeliver(
        &mut self,
        conn: ConnId,
        command: CommandRedeliverUnacknowledgedMessages,
        now: Millis,
    ) {
        self.on_consumer(conn, command.consumer_id, |t, key, effects| {
            t.redeliver(key, &command, now, effects)
        });
    }

    /// CLOSE_CONSUMER.
    pub(super) fn close_consumer(&mut self, conn: ConnId, command: CommandCloseConsumer, now: Millis) {
        let closed = self.on_consumer(conn, command.consumer_id, |t, key, effects| {
            t.remove_consumer(key, &command, now, effects);
        });
        if let Some(c) = self.conns.get_mut(&conn) {
            c.consumers.remove(&command.consumer_id);
        }
        if closed.is_none() {
            self.effects.send(conn, CommandSuccess { request_id: command.request_id, schema: None });
        }
    }

    /// UNSUBSCRIBE.
    pub(super) fn unsubscribe(&mut self, conn: ConnId, command: CommandUnsubscribe) {
        let done = self
            .on_consumer(conn, command.consumer_id, |t, key, effects| t.unsubscribe(key, &command, effects));
        if let (Some(Ok(())), Some(c)) = (&done, self.conns.get_mut(&conn)) {
            c.consumers.remove(&command.consumer_id);
        }
        self.answer_error(conn, command.request_id, done.unwrap_or_else(|| Err(no_consumer())));
    }

    /// SEEK.
    pub(super) fn seek(&mut self, conn: ConnId, command: CommandSeek) {
        let done =
            self.on_consumer(conn, command.consumer_id, |t, key, effects| t.seek(key, &command, effects));
        self.answer_error(conn, command.request_id, done.unwrap_or_else(|| Err(no_consumer())));
    }

    /// GET_LAST_MESSAGE_ID.
    pub(super) fn last_message_id(&mut self, conn: ConnId, command: CommandGetLastMessageId) {
        let done = self.on_consumer(conn, command.consumer_id, |t, key, effects| {
            t.last_message_id(key, &command, effects)
        });
        self.answer_error(conn, command.request_id, done.unwrap_or_else(|| Err(no_consumer())));
    }

    /// CONSUMER_STATS.
    pub(super) fn consumer_stats(&mut self, conn: ConnId, command: CommandConsumerStats) {
        let done = self.on_consumer(conn, command.consumer_id, |t, key, effects| {
            t.consumer_stats(key, &command, effects)
        });
        if done.is_none() {
            let message = format!("Consumer {} not found", command.consumer_id);
            self.refuse(conn, &command.into(), ServerError::ConsumerNotFound, &message);
        }
    }

    /// GET_SCHEMA.
    pub(super) fn get_schema(&mut self, conn: ConnId, command: CommandGetSchema) {
        let Ok(topic) = TopicName::parse(&command.topic) else {
            return self.refuse(conn, &command.into(), ServerError::InvalidTopicName, "Invalid topic name");
        };
        if self.on_topic(&topic, |t, effects| t.get_schema(conn, &command, effects)).is_none() {
            self.refuse(conn, &command.into(), ServerError::TopicNotFound, "Topic not found or no-schema");
        }
    }

    /// GET_OR_CREATE_SCHEMA.
    pub(super) fn get_or_create_schema(
        &mut self,
        conn: ConnId,
        command: CommandGetOrCreateSchema,
        now: Millis,
    ) {
        match self.attachable(conn, Attaching::Producer, &command.topic, true, now) {
            Ok(topic) => {
                self.on_topic(&topic, |t, effects| t.get_or_create_schema(conn, &command, effects));
            }
            Err(error) => self.refuse(conn, &command.into(), error.code, &error.message),
        }
    }

    /// Runs `act` on the topic of a consumer; `None` when the connection has no such consumer.
    fn on_consumer<R>(
        &mut self,
        conn: ConnId,
        id: u64,
        act: impl FnOnce(&mut Topic, ConsumerKey, &mut Effects) -> R,
    ) -> Option<R> {
        let topic = self.conns.get(&conn).and_then(|c: &Conn| c.consumers.get(&id)).cloned()?;
        self.on_topic(&topic, |t, effects| act(t, ConsumerKey { conn, id }, effects))
    }

    fn answer_error(&mut self, conn: ConnId, request_id: u64, result: Result<(), TopicError>) {
        if let Err(error) = result {
            self.effects.send(conn, error_for(request_id, error.code, &error.message));
        }
    }

    /// The stored topic behind a name that a client wants to attach to, made where the namespace's policy allows it.
    fn attachable(
        &mut self,
        conn: ConnId,
        attaching: Attaching,
        name: &str,
        create: bool,
        now: Millis,
    ) -> Result<TopicName, TopicError> {
        let broker = self.conns.get(&conn).map(|c| c.broker);
        let topic = TopicName::parse(name)
            .map_err(|error| TopicError::new(ServerError::InvalidTopicName, error.to_string()))?;
        match topic.domain() {
            Domain::NonPersistent => {
                let message = format!("{topic}: non-persistent topics are not supported");
                return Err(TopicError::new(ServerError::NotAllowedError, message));
            }
            Domain::Topic => {
                let message = format!("{topic} is a scalable topic: attach to its segments");
                return Err(TopicError::new(ServerError::NotAllowedError, message));
            }
            Domain::Segment => {
                SegmentName::of(&topic)
                    .map_err(|error| TopicError::new(ServerError::InvalidTopicName, error.to_string()))?;
            }
            Domain::Persistent => {}
        }
        if !self.namespaces.contains_key(topic.namespace()) {
            return Err(TopicError::new(ServerError::TopicNotFound, "Namespace not found"));
        }
        if self.owner(&topic) != broker {
            let message = format!("{topic} is not served by this broker. Please redo the lookup");
            return Err(TopicError::new(ServerError::ServiceNotReady, message));
        }
        if self.stored.contains_key(&topic) {
            return Ok(topic);
        }
        if self.partitioned.contains_key(&topic) {
            let message = format!("{topic} is partitioned: attach to its partitions");
            return Err(TopicError::new(ServerError::NotAllowedError, message));
        }
        if topic.domain() == Domain::Persistent && create && self.may_auto_create(topic.namespace()) {
            self.create_stored(&topic, now);
            return Ok(topic);
        }
        Err(gone(&topic, attaching))
    }
}

/// There is no such topic, in the words that 5.0.1 has for each command.
fn gone(topic: &TopicName, command: Attaching) -> TopicError {
    let message = match command {
        Attaching::Producer => format!("Topic not found {topic}"),
        Attaching::Consumer => format!("Topic {topic} does not exist"),
    };
    TopicError::new(ServerError::TopicNotFound, message)
}

/// What is attached to a topic.
#[derive(Debug, Clone, Copy)]
enum Attaching {
    Producer,
    Consumer,
}

fn no_consumer() -> TopicError {
    TopicError::new(ServerError::MetadataError, "Consumer not found")
}
