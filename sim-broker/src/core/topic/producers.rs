//! The producers of a topic: access modes, names, the topic epoch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use stc_proto::pulsar::{
    CommandCloseProducer, CommandError, CommandProducer, CommandProducerSuccess, CommandSuccess, KeyValue,
    ProducerAccessMode, ServerError,
};

use super::{
    Topic,
    closing::{self, Assigned},
    config::Start,
    error::TopicError,
    schema,
    stats::ProducerStats,
};
use crate::core::{
    effects::Effects,
    ids::{ConnId, ProducerKey, ProducerNames},
};

#[derive(Debug)]
pub(super) struct Producer {
    pub(super) name: String,
    /// Counts the client's attempts to open this producer.
    epoch: u64,
    access_mode: ProducerAccessMode,
    /// The topic epoch that a returning exclusive producer had.
    topic_epoch: Option<u64>,
    schema_version: Bytes,
    metadata: Vec<KeyValue>,
}

#[derive(Debug)]
struct Waiting {
    key: ProducerKey,
    request_id: u64,
    producer: Producer,
}

#[derive(Debug, Default)]
pub(super) struct Producers {
    connected: BTreeMap<ProducerKey, Producer>,
    names: BTreeMap<String, ProducerKey>,
    /// The name of the one that has the topic for itself.
    exclusive: Option<String>,
    waiting: VecDeque<Waiting>,
    /// How often the topic changed hands between exclusive producers.
    epoch: Option<u64>,
    /// Closed by the broker, which the client may not have noticed yet.
    closed: BTreeSet<ProducerKey>,
}

impl Producers {
    pub(super) fn get(&self, key: ProducerKey) -> Option<&Producer> {
        self.connected.get(&key)
    }

    pub(super) fn contains(&self, key: ProducerKey) -> bool {
        self.connected.contains_key(&key) || self.waiting.iter().any(|waiting| waiting.key == key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connected.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn was_closed(&self, key: ProducerKey) -> bool {
        self.closed.contains(&key)
    }

    pub(super) fn stats(&self) -> Vec<ProducerStats> {
        let named = self.names.values().filter_map(|key| Some((key, self.connected.get(key)?)));
        named
            .map(|(key, producer)| ProducerStats {
                key: *key,
                name: producer.name.clone(),
                access_mode: producer.access_mode,
                metadata: producer.metadata.clone(),
            })
            .collect()
    }

    /// Lets a producer in, or queues it (`false`), as its access mode and the ones that are there demand.
    fn admit(&mut self, producer: &Producer, effects: &mut Effects) -> Result<bool, TopicError> {
        let fenced = |message: String| {
            Err(TopicError::exception(ServerError::ProducerFenced, "ProducerFencedException", message))
        };
        let taken = self.exclusive.is_some() || !self.waiting.is_empty();
        let holder = self.exclusive.as_deref().unwrap_or("null");
        let existing = format!("Topic has an existing exclusive producer: {holder}");
        match producer.access_mode {
            ProducerAccessMode::Shared if taken => {
                return Err(TopicError::exception(
                    ServerError::ProducerBusy,
                    "ProducerBusyException",
                    existing,
                ));
            }
            ProducerAccessMode::Shared => return Ok(true),
            ProducerAccessMode::Exclusive if taken => return fenced(existing),
            ProducerAccessMode::Exclusive if !self.connected.is_empty() => {
                return fenced("Topic has existing shared producers".into());
            }
            ProducerAccessMode::WaitForExclusive if taken || !self.connected.is_empty() => return Ok(false),
            _ => {}
        }
        if let (Some(current), Some(had)) = (self.epoch, producer.topic_epoch)
            && had < current
        {
            return fenced(format!(
                "Topic epoch has already moved. Current epoch: {current}, Producer epoch: {had}"
            ));
        }
        if producer.access_mode == ProducerAccessMode::ExclusiveWithFencing {
            self.fence(effects);
        }
        self.take_over(producer);
        Ok(true)
    }

    /// Drops everyone in favour of a fencing producer. They are not told: their next SEND closes the connection.
    fn fence(&mut self, effects: &mut Effects) {
        let error =
            TopicError::exception(ServerError::ProducerFenced, "ProducerFencedException", "Fenced out");
        self.refuse_waiting(&error, effects);
        self.connected.clear();
        self.names.clear();
        self.exclusive = None;
    }

    fn refuse_waiting(&mut self, error: &TopicError, effects: &mut Effects) {
        for Waiting { key, request_id, .. } in self.waiting.drain(..) {
            let (error, message) = (error.code as i32, error.message.clone());
            effects.send(key.conn, CommandError { request_id, error, message });
        }
    }

    fn take_over(&mut self, producer: &Producer) {
        self.exclusive = Some(producer.name.clone());
        // A client may have brought the highest one there is.
        let next = self.epoch.map_or(0, |epoch| epoch.saturating_add(1));
        self.epoch = Some(producer.topic_epoch.unwrap_or(next));
    }

    fn insert(&mut self, key: ProducerKey, producer: Producer) {
        self.closed.remove(&key);
        self.names.insert(producer.name.clone(), key);
        self.connected.insert(key, producer);
    }

    /// Takes out a producer that is connected or waits.
    fn remove(&mut self, key: ProducerKey) {
        self.closed.remove(&key);
        self.waiting.retain(|waiting| waiting.key != key);
        if let Some(producer) = self.connected.remove(&key) {
            self.names.remove(&producer.name);
            if self.exclusive.as_ref() == Some(&producer.name) {
                self.exclusive = None;
            }
        }
    }

    /// Takes out a producer that the broker closes; `false` when there is none.
    pub(super) fn close(&mut self, key: ProducerKey) -> bool {
        let known = self.contains(key);
        if known {
            self.remove(key);
            self.closed.insert(key);
        }
        known
    }

    fn keys_of(&self, conn: ConnId) -> Vec<ProducerKey> {
        let all = self.connected.keys().chain(self.waiting.iter().map(|w| &w.key)).chain(&self.closed);
        all.filter(|key| key.conn == conn).copied().collect()
    }

    /// Closes all producers for good (`refusal` is for those that wait).
    pub(super) fn close_all(
        &mut self,
        assigned: Option<&Assigned>,
        refusal: &TopicError,
        effects: &mut Effects,
    ) {
        self.refuse_waiting(refusal, effects);
        for key in std::mem::take(&mut self.connected).into_keys() {
            effects.send(key.conn, closing::close_producer(key.id, assigned));
            self.closed.insert(key);
        }
        self.names.clear();
        self.exclusive = None;
    }
}

impl Topic {
    /// PRODUCER. Answers PRODUCER_SUCCESS; a WaitForExclusive producer that has to wait gets a first one with
    /// `producer_ready=false`, and a second one with the same request id when its turn comes.
    ///
    /// # Errors
    /// TopicTerminatedError, IncompatibleSchema, ProducerBusy (a name that is in use, or a Shared producer where an
    /// exclusive one is), ProducerFenced (an exclusive producer where others are, or one that was overtaken).
    pub fn add_producer(
        &mut self,
        key: ProducerKey,
        command: &CommandProducer,
        names: &mut ProducerNames,
        effects: &mut Effects,
    ) -> Result<(), TopicError> {
        let request_id = command.request_id;
        if let Some(existing) = self.producers.connected.get(&key) {
            if command.epoch() <= existing.epoch {
                let answer = self.producer_success(request_id, existing, -1);
                effects.send(key.conn, answer);
                return Ok(());
            }
            self.producers.remove(key);
        } else if self.producers.contains(key) {
            let message = "Producer is already present on the connection";
            return Err(TopicError::new(ServerError::ServiceNotReady, message));
        }
        if self.ledger.terminated() {
            return Err(TopicError::terminated());
        }
        let name = match command.producer_name() {
            "" => names.generate(),
            name => name.to_owned(),
        };
        let schema_version = self.producer_schema(command)?;
        let producer = Producer {
            name,
            epoch: command.epoch(),
            access_mode: command.producer_access_mode(),
            topic_epoch: command.topic_epoch,
            schema_version,
            metadata: command.metadata.clone(),
        };
        if producer.access_mode == ProducerAccessMode::Shared
            && self.producers.names.contains_key(&producer.name)
        {
            let message = format!(
                "Producer with name '{}' is already connected to topic '{}'",
                producer.name, self.name
            );
            return Err(TopicError::exception(ServerError::ProducerBusy, "NamingException", message));
        }
        let ready = self.producers.admit(&producer, effects)?;
        if let Some(subscription) =
            command.initial_subscription_name.as_deref().filter(|name| !name.is_empty())
        {
            self.create_subscription(subscription, Start::Earliest);
        }
        let last_sequence_id = self.deduplication.last_sequence_id(&producer.name);
        let mut answer = self.producer_success(request_id, &producer, last_sequence_id);
        if ready {
            self.producers.insert(key, producer);
        } else {
            answer.topic_epoch = None;
            answer.producer_ready = Some(false);
            self.producers.waiting.push_back(Waiting { key, request_id, producer });
        }
        effects.send(key.conn, answer);
        Ok(())
    }

    /// Whether this producer is connected or waiting.
    pub fn has_producer(&self, key: ProducerKey) -> bool {
        self.producers.contains(key)
    }

    /// CLOSE_PRODUCER. Answers SUCCESS, for an unknown producer too.
    pub fn remove_producer(
        &mut self,
        key: ProducerKey,
        command: &CommandCloseProducer,
        effects: &mut Effects,
    ) {
        self.producers.remove(key);
        self.promote_waiting(effects);
        effects.send(key.conn, CommandSuccess { request_id: command.request_id, schema: None });
    }

    pub(super) fn disconnect_producers(&mut self, conn: ConnId, effects: &mut Effects) {
        for key in self.producers.keys_of(conn) {
            self.producers.remove(key);
        }
        self.promote_waiting(effects);
    }

    pub(super) fn promote_waiting(&mut self, effects: &mut Effects) {
        if !self.producers.connected.is_empty() {
            return;
        }
        if let Some(Waiting { key, request_id, producer }) = self.producers.waiting.pop_front() {
            self.producers.take_over(&producer);
            let last_sequence_id = self.deduplication.last_sequence_id(&producer.name);
            let answer = self.producer_success(request_id, &producer, last_sequence_id);
            self.producers.insert(key, producer);
            effects.send(key.conn, answer);
        }
    }

    fn producer_success(&self, request_id: u64, producer: &Producer, last: i64) -> CommandProducerSuccess {
        CommandProducerSuccess {
            request_id,
            producer_name: producer.name.clone(),
            last_sequence_id: Some(last),
            schema_version: Some(producer.schema_version.clone()),
            topic_epoch: self.producers.epoch,
            producer_ready: Some(true),
        }
    }

    /// The version of the producer's schema; empty when it has none.
    fn producer_schema(&mut self, command: &CommandProducer) -> Result<Bytes, TopicError> {
        match schema::declared(command.schema.as_ref()) {
            Some(schema) => self.schemas.lock().register(schema, self.config.compatibility),
            None if self.config.schema_validation_enforced && !self.schemas.lock().is_empty() => {
                Err(schema::incompatible(
                    "Producers cannot connect or send message without a schema to topics with a schema when \
                     SchemaValidationEnforced is enabled",
                ))
            }
            None => Ok(Bytes::new()),
        }
    }
}
