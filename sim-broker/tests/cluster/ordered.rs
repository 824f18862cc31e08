//! What scripts about ordered consumers need: registrations, attachments, and everything that a client saw as lines.

use std::time::Duration;

use bytes::Bytes;
use sim_broker::SimCluster;
use stc_proto::{
    Command, Entry, Frame, KeyHash,
    pulsar::{command_ack::AckType, command_subscribe::*, *},
};

use crate::support::*;

pub(crate) const TOPIC: &str = "topic://public/default/t";
pub(crate) const STREAM: ScalableConsumerType = ScalableConsumerType::Stream;
pub(crate) const CHECKPOINT: ScalableConsumerType = ScalableConsumerType::Checkpoint;

/// The stored topic of a segment, from its descriptor such as `0000-7fff-0`.
pub(crate) fn segment(descriptor: &str) -> String {
    format!("segment://public/default/t/{descriptor}")
}

/// Three brokers that play `spec-1.0`, with a topic.
pub(crate) fn topic_cluster(segments: i64) -> SimCluster {
    let cluster = cluster();
    create(&cluster, TOPIC, segments);
    cluster
}

/// A standalone 5.0.1, as the recordings have it, with a topic.
pub(crate) fn standalone(segments: i64) -> SimCluster {
    let cluster = cluster_as("pulsar-5.0.1", |c| {
        c.brokers = 1;
        // They would come in between, at times that have nothing to do with a script.
        c.profile.load_report_interval_ms = 0;
    });
    create(&cluster, TOPIC, segments);
    cluster
}

/// Opens a connection to the leader of the topic.
pub(crate) async fn to_leader(cluster: &SimCluster) -> Client {
    let dag = cluster.control().current_dag(TOPIC).unwrap();
    Client::connect(cluster, dag.controller_broker_url()).await
}

/// Lets time pass for clients that answer pings, and gives what each saw.
pub(crate) async fn pass<const N: usize>(clients: [&mut Client; N], ms: u64) -> [Vec<String>; N] {
    let mut seen: [Vec<String>; N] = std::array::from_fn(|_| Vec::new());
    let mut left = ms;
    while left > 0 {
        let step = left.min(20_000);
        tokio::time::sleep(Duration::from_millis(step)).await;
        left -= step;
        for i in 0..N {
            seen[i].extend(clients[i].seen_now().await);
        }
    }
    seen
}

impl Client {
    /// Sends SCALABLE_TOPIC_SUBSCRIBE.
    pub(crate) async fn register(&mut self, id: u64, group: &str, name: &str, kind: ScalableConsumerType) {
        let request_id = self.request();
        self.send(CommandScalableTopicSubscribe {
            request_id,
            topic: TOPIC.into(),
            subscription: group.into(),
            consumer_name: name.into(),
            consumer_id: id,
            consumer_type: kind as i32,
        })
        .await;
    }

    /// Sends SCALABLE_TOPIC_UNSUBSCRIBE.
    pub(crate) async fn leave(&mut self, id: u64) {
        let request_id = self.request();
        self.send(CommandScalableTopicUnsubscribe { request_id, consumer_id: id }).await;
    }

    /// Attaches to a segment as its sole owner, with permits.
    pub(crate) async fn own(&mut self, id: u64, descriptor: &str, subscription: &str) {
        let sub_type = SubType::Exclusive as i32;
        self.attach(CommandSubscribe { sub_type, ..attachment(id, descriptor, subscription) }).await;
    }

    /// The same; a new subscription begins behind what is stored.
    pub(crate) async fn own_from_latest(&mut self, id: u64, descriptor: &str, subscription: &str) {
        let sub_type = SubType::Exclusive as i32;
        let initial_position = Some(InitialPosition::Latest as i32);
        let attachment = attachment(id, descriptor, subscription);
        self.attach(CommandSubscribe { sub_type, initial_position, ..attachment }).await;
    }

    /// Attaches to a segment as one of those who share its buckets, with permits. The name decides about the buckets.
    pub(crate) async fn share(&mut self, id: u64, descriptor: &str, subscription: &str, name: &str, n: u32) {
        let range =
            |range: &stc_proto::HashRange| IntRange { start: range.start().into(), end: range.end().into() };
        let buckets = stc_proto::layout::BucketSplits::equal(n).ranges();
        self.attach(CommandSubscribe {
            sub_type: SubType::KeyShared as i32,
            consumer_name: Some(name.into()),
            key_shared_meta: Some(KeySharedMeta {
                key_shared_mode: KeySharedMode::Sticky as i32,
                hash_ranges: buckets.iter().map(range).collect(),
                entry_bucket_dispatch: Some(true),
                ..Default::default()
            }),
            ..attachment(id, descriptor, subscription)
        })
        .await;
    }

    /// Reads a segment from a message on (from its beginning without one), as a checkpoint consumer does.
    pub(crate) async fn read(&mut self, id: u64, descriptor: &str, name: &str, start: Option<MessageIdData>) {
        let earliest = MessageIdData { ledger_id: u64::MAX, entry_id: u64::MAX, ..Default::default() };
        self.attach(CommandSubscribe {
            sub_type: SubType::Exclusive as i32,
            durable: Some(false),
            consumer_name: Some(name.into()),
            start_message_id: Some(start.unwrap_or(earliest)),
            ..attachment(id, descriptor, &format!("reader-{name}-{id}"))
        })
        .await;
    }

    async fn attach(&mut self, command: CommandSubscribe) {
        let consumer_id = command.consumer_id;
        let request_id = self.request();
        self.send(CommandSubscribe { request_id, ..command }).await;
        self.send(CommandFlow { consumer_id, message_permits: 1000 }).await;
    }

    /// Closes a consumer.
    pub(crate) async fn detach(&mut self, id: u64) {
        let request_id = self.request();
        self.send(CommandCloseConsumer { consumer_id: id, request_id, ..Default::default() }).await;
    }

    pub(crate) async fn ack(&mut self, id: u64, ack_type: AckType, ids: &[MessageIdData]) {
        let message_id = ids.to_vec();
        let ack_type = ack_type as i32;
        self.send(CommandAck { consumer_id: id, ack_type, message_id, ..Default::default() }).await;
    }

    /// Stores keyed messages on a segment, stamped as the V5 clients do, and gives their ids.
    pub(crate) async fn store(&mut self, descriptor: &str, keys: &[&str]) -> Vec<MessageIdData> {
        let id = self.request();
        self.send(producer(id, &segment(descriptor), "", id)).await;
        let mut ids = Vec::new();
        for (sequence_id, key) in (0..).zip(keys) {
            let hash = Some(u32::from(KeyHash::of(key).bucket()));
            let metadata = MessageMetadata {
                producer_name: "p".into(),
                sequence_id,
                publish_time: 1,
                partition_key: Some((*key).into()),
                entry_hash_min: hash,
                entry_hash_max: hash,
                ..Default::default()
            };
            let entry = Entry::new(metadata, Bytes::copy_from_slice(key.as_bytes()));
            let send = CommandSend { producer_id: id, sequence_id, ..Default::default() };
            self.send_frame(Frame::with_payload(send, entry.to_bytes())).await;
        }
        while ids.len() < keys.len() {
            match self.recv().await.command {
                Command::ProducerSuccess(_) => {}
                Command::SendReceipt(receipt) => ids.push(receipt.message_id.unwrap()),
                other => panic!("expected a receipt, got {other:?}"),
            }
        }
        let request_id = self.request();
        let close = CommandCloseProducer { producer_id: id, request_id, ..Default::default() };
        self.send(close).await;
        assert_eq!(self.seen_now().await.last().unwrap(), "SUCCESS");
        ids
    }

    /// What came until now, one line a frame.
    pub(crate) async fn seen_now(&mut self) -> Vec<String> {
        self.send(CommandPing {}).await;
        let mut lines = Vec::new();
        loop {
            let frame = self.recv().await;
            if matches!(frame.command, Command::Pong(_)) {
                return lines;
            }
            lines.push(line(&frame));
        }
    }

    /// Asserts what came until now.
    #[track_caller]
    pub(crate) fn sees<'a>(&'a mut self, expected: &'a [&'a str]) -> impl Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move { assert_eq!(self.seen_now().await, expected, "at {caller}") }
    }
}

fn attachment(id: u64, descriptor: &str, subscription: &str) -> CommandSubscribe {
    CommandSubscribe {
        topic: segment(descriptor),
        subscription: subscription.into(),
        consumer_id: id,
        initial_position: Some(InitialPosition::Earliest as i32),
        ..Default::default()
    }
}

fn line(frame: &Frame) -> String {
    match &frame.command {
        Command::ScalableTopicSubscribeResponse(c) => match (&c.assignment, c.error) {
            (Some(a), None) => format!("ASSIGNED {}", assignment(a)),
            _ => format!("REFUSED {:?} {}", c.error(), c.message()),
        },
        Command::ScalableTopicAssignmentUpdate(c) => {
            format!("UPDATE {} {}", c.consumer_id, assignment(&c.assignment))
        }
        Command::ScalableTopicUpdate(c) => {
            let dag = c.dag.as_ref().unwrap();
            let led = if dag.controller_broker_url.is_some() { "led" } else { "headless" };
            format!("LAYOUT {} {led}", dag.epoch)
        }
        Command::Message(c) => {
            let again = c.redelivery_count.map_or(String::new(), |n| format!(" again={n}"));
            let entry = Entry::parse(frame.payload.clone().unwrap()).unwrap();
            let text = String::from_utf8(entry.payload.to_vec()).unwrap();
            format!("MESSAGE {} {} {text}{again}", c.consumer_id, c.message_id.entry_id)
        }
        Command::ReachedEndOfTopic(c) => format!("END {}", c.consumer_id),
        Command::Error(c) => format!("ERROR {:?} {}", c.error(), c.message),
        Command::CloseConsumer(c) => format!("CLOSE_CONSUMER {}", c.consumer_id),
        other => other.name().to_owned(),
    }
}

/// `EPOCH: segments`, those with buckets as `segment!buckets`. The segment's topic and range have to agree.
fn assignment(a: &ScalableConsumerAssignment) -> String {
    let mut text = format!("{}:", a.layout_epoch);
    for s in &a.segments {
        let descriptor = format!("{:04x}-{:04x}-{}", s.hash_start, s.hash_end, s.segment_id);
        assert_eq!(s.segment_topic, segment(&descriptor));
        text += &format!(" {}", s.segment_id);
        if !s.bucket_ranges.is_empty() {
            assert_eq!((s.bucket_ranges[0].start, s.bucket_ranges.last().unwrap().end), (0, 0xffff));
            text += &format!("!{}", s.bucket_ranges.len());
        }
    }
    text
}
