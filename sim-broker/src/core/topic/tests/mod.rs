//! Scripts against one topic: commands go in, and what the clients would see comes out as lines of text.

mod buckets;
mod consuming;
mod lifecycle;
mod model;
mod producing;
mod sharing;
mod transactions;

use bytes::Bytes;
use stc_proto::{
    Command, Entry, HashRange, TopicName,
    pulsar::{command_ack::AckType, command_subscribe::*, *},
};

use super::{Topic, TopicConfig, TopicError};
use crate::core::{
    effects::{Effect, Effects},
    ids::{ConnId, ConsumerKey, Millis, ProducerKey, ProducerNames, TxnId},
};

/// The ledger of the topic under test.
const LEDGER: u64 = 7;

/// A producer on a connection.
fn p(conn: u64, id: u64) -> ProducerKey {
    ProducerKey { conn: ConnId(conn), id }
}

/// A consumer on a connection.
fn c(conn: u64, id: u64) -> ConsumerKey {
    ConsumerKey { conn: ConnId(conn), id }
}

fn id(entry: u64) -> MessageIdData {
    MessageIdData { ledger_id: LEDGER, entry_id: entry, ..Default::default() }
}

/// A message id with a batch's set of messages that are *not* acknowledged.
fn part(entry: u64, left: i64) -> MessageIdData {
    MessageIdData { ack_set: if left == 0 { vec![0] } else { vec![left] }, ..id(entry) }
}

fn keyed(key: &str) -> MessageMetadata {
    MessageMetadata { producer_name: "p".into(), partition_key: Some(key.into()), ..Default::default() }
}

fn batch(messages: i32) -> MessageMetadata {
    MessageMetadata { producer_name: "p".into(), num_messages_in_batch: Some(messages), ..Default::default() }
}

/// A SUBSCRIBE that shares these entry buckets.
fn share(buckets: &[HashRange]) -> impl FnOnce(&mut CommandSubscribe) + use<> {
    let range = |range: &HashRange| IntRange { start: range.start().into(), end: range.end().into() };
    let hash_ranges = buckets.iter().map(range).collect();
    move |command| {
        command.key_shared_meta = Some(KeySharedMeta {
            key_shared_mode: KeySharedMode::Sticky as i32,
            hash_ranges,
            entry_bucket_dispatch: Some(true),
            ..Default::default()
        });
    }
}

/// One topic, its clock, and what was sent so far.
struct Rig {
    topic: Topic,
    names: ProducerNames,
    effects: Effects,
    now: Millis,
    requests: u64,
    sequence: u64,
}

impl Rig {
    fn new() -> Self {
        Rig::named("persistent://public/default/t")
    }

    fn named(name: &str) -> Self {
        Rig {
            topic: Topic::new(
                TopicName::parse(name).unwrap(),
                TopicConfig::default(),
                LEDGER,
                Default::default(),
            ),
            names: ProducerNames::new("standalone-0"),
            effects: Effects::new(),
            now: 1000,
            requests: 0,
            sequence: 0,
        }
    }

    fn request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// What was sent since the last call, one line for each frame: `CONNECTION COMMAND what matters of it`.
    #[track_caller]
    fn expect(&mut self, lines: &[&str]) {
        let got: Vec<String> = self.effects.drain().map(|effect| line(&effect)).collect();
        assert_eq!(got, lines);
    }

    fn quiet(&mut self) {
        self.effects.drain().for_each(drop);
    }

    // ---- Producing ----

    fn producer(
        &mut self,
        key: ProducerKey,
        change: impl FnOnce(&mut CommandProducer),
    ) -> Result<(), TopicError> {
        let mut command =
            CommandProducer { producer_id: key.id, request_id: self.request(), ..Default::default() };
        change(&mut command);
        self.topic.add_producer(key, &command, &mut self.names, &mut self.effects)
    }

    /// Connects a Shared producer and ignores the answer.
    fn any_producer(&mut self) -> ProducerKey {
        self.producer(p(1, 0), |_| {}).unwrap();
        self.quiet();
        p(1, 0)
    }

    fn send_raw(&mut self, key: ProducerKey, command: CommandSend, entry: Bytes) {
        self.topic.send(key, &command, entry, self.now, &mut self.effects);
    }

    fn send_seq(&mut self, key: ProducerKey, sequence_id: u64, mut metadata: MessageMetadata) {
        metadata.sequence_id = sequence_id;
        metadata.publish_time = self.now;
        let command = CommandSend { producer_id: key.id, sequence_id, ..Default::default() };
        let entry = Entry::new(metadata, Bytes::from_static(b"payload"));
        self.send_raw(key, command, entry.to_bytes());
    }

    fn send(&mut self, key: ProducerKey, metadata: MessageMetadata) {
        self.sequence += 1;
        self.send_seq(key, self.sequence, metadata);
    }

    /// Stores messages and ignores the receipts.
    fn store(&mut self, messages: impl IntoIterator<Item = MessageMetadata>) {
        if !self.topic.has_producer(p(999, 0)) {
            self.producer(p(999, 0), |command| command.producer_name = Some("storer".into())).unwrap();
        }
        messages.into_iter().for_each(|metadata| self.send(p(999, 0), metadata));
        let others = |effect: &Effect| !matches!(effect, Effect::Send(ConnId(999), _));
        let kept: Vec<Effect> = self.effects.drain().filter(others).collect();
        for effect in kept {
            match effect {
                Effect::Send(conn, frame) => self.effects.send(conn, frame),
                Effect::Close(conn, reason) => self.effects.close(conn, reason),
            }
        }
    }

    fn close_producer(&mut self, key: ProducerKey) {
        let command =
            CommandCloseProducer { producer_id: key.id, request_id: self.request(), ..Default::default() };
        self.topic.remove_producer(key, &command, &mut self.effects);
    }

    // ---- Consuming ----

    fn subscribe(
        &mut self,
        key: ConsumerKey,
        sub_type: SubType,
        change: impl FnOnce(&mut CommandSubscribe),
    ) -> Result<(), TopicError> {
        let mut command = CommandSubscribe {
            subscription: "s".into(),
            sub_type: sub_type as i32,
            consumer_id: key.id,
            request_id: self.request(),
            consumer_name: Some(format!("c{}", key.id)),
            initial_position: Some(InitialPosition::Earliest as i32),
            ..Default::default()
        };
        change(&mut command);
        self.topic.subscribe(key, &command, self.now, &mut self.effects)
    }

    /// Connects a consumer with permits, and ignores the answer.
    fn consumer(&mut self, key: ConsumerKey, sub_type: SubType, permits: u32) {
        self.subscribe(key, sub_type, |_| {}).unwrap();
        self.quiet();
        if permits > 0 {
            self.flow(key, permits);
        }
    }

    fn reader(&mut self, key: ConsumerKey, start: MessageIdData) {
        self.subscribe(key, SubType::Exclusive, |command| {
            command.subscription = "reader".into();
            command.durable = Some(false);
            command.start_message_id = Some(start);
        })
        .unwrap();
        self.quiet();
    }

    fn flow(&mut self, key: ConsumerKey, permits: u32) {
        let command = CommandFlow { consumer_id: key.id, message_permits: permits };
        self.topic.flow(key, &command, self.now, &mut self.effects);
    }

    fn ack_with(&mut self, key: ConsumerKey, ack_type: AckType, ids: &[MessageIdData]) {
        let command = CommandAck {
            consumer_id: key.id,
            ack_type: ack_type as i32,
            message_id: ids.to_vec(),
            ..Default::default()
        };
        self.topic.ack(key, &command, self.now, &mut self.effects);
    }

    fn ack(&mut self, key: ConsumerKey, entries: &[u64]) {
        let ids: Vec<_> = entries.iter().map(|entry| id(*entry)).collect();
        self.ack_with(key, AckType::Individual, &ids);
    }

    fn ack_cumulative(&mut self, key: ConsumerKey, up_to: MessageIdData) {
        self.ack_with(key, AckType::Cumulative, &[up_to]);
    }

    fn redeliver(&mut self, key: ConsumerKey, entries: &[u64], consumer_epoch: Option<u64>) {
        let command = CommandRedeliverUnacknowledgedMessages {
            consumer_id: key.id,
            message_ids: entries.iter().map(|entry| id(*entry)).collect(),
            consumer_epoch,
        };
        self.topic.redeliver(key, &command, self.now, &mut self.effects);
    }

    fn seek(
        &mut self,
        key: ConsumerKey,
        to: Option<MessageIdData>,
        time: Option<Millis>,
    ) -> Result<(), TopicError> {
        let command = CommandSeek {
            consumer_id: key.id,
            request_id: self.request(),
            message_id: to,
            message_publish_time: time,
        };
        self.topic.seek(key, &command, &mut self.effects)
    }

    fn unsubscribe(&mut self, key: ConsumerKey, force: bool) -> Result<(), TopicError> {
        let command =
            CommandUnsubscribe { consumer_id: key.id, request_id: self.request(), force: Some(force) };
        self.topic.unsubscribe(key, &command, &mut self.effects)
    }

    fn close_consumer(&mut self, key: ConsumerKey) {
        let command =
            CommandCloseConsumer { consumer_id: key.id, request_id: self.request(), ..Default::default() };
        self.topic.remove_consumer(key, &command, self.now, &mut self.effects);
    }

    fn last_message_id(&mut self, key: ConsumerKey) -> Result<(), TopicError> {
        let command = CommandGetLastMessageId { consumer_id: key.id, request_id: self.request() };
        self.topic.last_message_id(key, &command, &mut self.effects)
    }

    fn disconnect(&mut self, conn: u64) {
        self.topic.disconnect(ConnId(conn), self.now, &mut self.effects);
    }

    fn terminate(&mut self) {
        self.topic.terminate(self.now, &mut self.effects);
    }

    /// Moves the clock to the topic's next deadline.
    fn wait(&mut self) {
        self.now = self.topic.next_deadline().expect("nothing to wait for");
        self.topic.tick(self.now, &mut self.effects);
    }

    fn backlog(&self, subscription: &str) -> u64 {
        let stats = self.topic.stats();
        stats.subscriptions.iter().find(|s| s.name == subscription).expect("no such subscription").backlog
    }
}

/// Asserts a refusal: its code, and a part of its text.
#[track_caller]
fn refused(result: Result<(), TopicError>, code: ServerError, text: &str) {
    let error = result.expect_err("should be refused");
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(text), "{error}");
}

fn line(effect: &Effect) -> String {
    let (conn, frame) = match effect {
        Effect::Send(ConnId(conn), frame) => (conn, frame),
        Effect::Close(ConnId(conn), _) => return format!("{conn} closed"),
    };
    let signed = |n: u64| n as i64;
    let code = |error: i32| ServerError::try_from(error).unwrap();
    let text = match &frame.command {
        Command::Message(m) => {
            let mut text = format!("MESSAGE {} {}", m.consumer_id, m.message_id.entry_id);
            if let Some(count) = m.redelivery_count {
                text += &format!(" again={count}");
            }
            if !m.ack_set.is_empty() {
                text += &format!(" ack_set={:?}", m.ack_set);
            }
            if let Some(epoch) = m.consumer_epoch {
                text += &format!(" epoch={epoch}");
            }
            text
        }
        Command::ProducerSuccess(m) => {
            let epoch = m.topic_epoch.map_or(String::new(), |epoch| format!(" epoch={epoch}"));
            let ready = if m.producer_ready() { "" } else { " waits" };
            format!(
                "PRODUCER_SUCCESS {} {} last={}{epoch}{ready}",
                m.request_id,
                m.producer_name,
                m.last_sequence_id()
            )
        }
        Command::SendReceipt(m) => {
            format!(
                "RECEIPT {} {} at {}",
                m.producer_id,
                m.sequence_id,
                signed(m.message_id.as_ref().unwrap().entry_id)
            )
        }
        Command::SendError(m) => {
            format!("SEND_ERROR {} {} {:?}", m.producer_id, m.sequence_id, code(m.error))
        }
        Command::Error(m) => format!("ERROR {} {:?}", m.request_id, code(m.error)),
        Command::Success(m) => format!("SUCCESS {}", m.request_id),
        Command::CloseProducer(m) => {
            let to = m.assigned_broker_service_url.as_ref().map_or(String::new(), |url| format!(" -> {url}"));
            format!("CLOSE_PRODUCER {} {}{to}", m.producer_id, signed(m.request_id))
        }
        Command::CloseConsumer(m) => {
            let to = m.assigned_broker_service_url.as_ref().map_or(String::new(), |url| format!(" -> {url}"));
            format!("CLOSE_CONSUMER {} {}{to}", m.consumer_id, signed(m.request_id))
        }
        Command::ActiveConsumerChange(m) => {
            format!("ACTIVE {} {}", m.consumer_id, if m.is_active() { "yes" } else { "no" })
        }
        Command::ReachedEndOfTopic(m) => format!("END {}", m.consumer_id),
        Command::AckResponse(m) => format!("ACK_RESPONSE {:?} {:?}", m.request_id, m.error.map(code)),
        Command::GetLastMessageIdResponse(m) => format!(
            "LAST {}/{} deleted={}",
            signed(m.last_message_id.entry_id),
            m.last_message_id.batch_index(),
            signed(m.consumer_mark_delete_position.as_ref().unwrap().entry_id)
        ),
        other => format!("{} {}", other.name(), other.fields()),
    };
    format!("{conn} {text}")
}
