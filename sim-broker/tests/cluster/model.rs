//! Random lives of a topic with stream consumers that do what the specification asks of them: through splits, merges,
//! rebuckets, joins, leaves, crashes and broker deaths no message is lost, each key's messages first reach an
//! application in the order in which they were stored, and no two applications have some of a key at one time.
//!
//! proptest prints the operations of a failing case, shrunk, and the seed to run it again.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use sim_broker::core::{Addresses, BrokerId, Cluster, ClusterConfig, ConnId, Output, Profile};
use stc_proto::{
    Command, Entry, Frame, KeyHash,
    pulsar::{command_ack::AckType, command_subscribe::*, *},
};

use crate::support::topic;

const TOPIC: &str = "topic://public/default/t";
const KEYS: u8 = 6;
const CONSUMERS: usize = 4;
const BROKERS: u32 = 2;

#[derive(Debug, Clone)]
enum Op {
    Publish(u8),
    Join(usize),
    Leave(usize),
    /// Every connection of a consumer breaks, and it forgets everything.
    Crash(usize),
    /// Only the connections break.
    Disconnect(usize),
    Ack(usize),
    Split(usize),
    Merge(usize),
    Rebucket(usize, i64),
    Kill(u32),
    Revive(u32),
    Move(usize, u32),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..CONSUMERS;
    prop_oneof![
        12 => (0..KEYS).prop_map(Op::Publish),
        4 => who.clone().prop_map(Op::Join),
        1 => who.clone().prop_map(Op::Leave),
        1 => who.clone().prop_map(Op::Crash),
        1 => who.clone().prop_map(Op::Disconnect),
        6 => who.prop_map(Op::Ack),
        1 => (0usize..8).prop_map(Op::Split),
        1 => (0usize..8).prop_map(Op::Merge),
        1 => (0usize..8, 1i64..9).prop_map(|(segment, n)| Op::Rebucket(segment, n)),
        1 => (0..BROKERS).prop_map(Op::Kill),
        2 => (0..BROKERS).prop_map(Op::Revive),
        1 => (0usize..8, 0..BROKERS).prop_map(|(segment, to)| Op::Move(segment, to)),
        6 => prop_oneof![Just(100u64), Just(2_500), Just(10_000), Just(65_000)].prop_map(Op::Pass),
    ]
}

/// A consumer on one segment.
#[derive(Debug)]
struct Attachment {
    conn: ConnId,
    id: u64,
    shared: bool,
    /// Whether the broker said yes.
    open: bool,
    /// Whether it is to close once everything is acknowledged. What came meanwhile the application has not seen, so
    /// there is no way back.
    draining: bool,
    /// Delivered to the application and not acknowledged, with their keys.
    held: BTreeMap<u64, u8>,
    ledger: u64,
}

#[derive(Debug, Default)]
struct Consumer {
    conns: BTreeMap<u32, ConnId>,
    /// The connection of its registration.
    session: Option<ConnId>,
    assignment: Option<ScalableConsumerAssignment>,
    attached: BTreeMap<u64, Attachment>,
}

impl Consumer {
    /// Whether it is to read a segment, and whether it shares it.
    fn wants(&self, segment: u64) -> Option<&ScalableAssignedSegment> {
        self.assignment.as_ref()?.segments.iter().find(|s| s.segment_id == segment)
    }

    /// Takes an assignment: drains what is gone from it, and what changed its mode.
    fn assign(&mut self, assignment: ScalableConsumerAssignment) {
        self.assignment = Some(assignment);
        let drained: Vec<u64> = self
            .attached
            .iter()
            .filter(|(id, a)| self.wants(**id).is_none_or(|s| s.bucket_ranges.is_empty() == a.shared))
            .map(|(id, _)| *id)
            .collect();
        for id in drained {
            self.attached.get_mut(&id).unwrap().draining = true;
        }
    }
}

struct World {
    cluster: Cluster,
    now: u64,
    producer: BTreeMap<u32, ConnId>,
    consumers: BTreeMap<usize, Consumer>,
    /// Of each key, how many messages are stored, and how many first reached an application.
    stored: BTreeMap<u8, u64>,
    seen: BTreeMap<u8, u64>,
    next: u64,
}

fn addresses(broker: u32) -> Addresses {
    Addresses {
        service: format!("pulsar://b{broker}:6650"),
        service_tls: None,
        admin: format!("http://b{broker}:80"),
        admin_tls: None,
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut config = ClusterConfig::new(Profile::built_in("spec-1.0").unwrap());
        config.brokers = BROKERS;
        config.seed = seed;
        config.failover_ms = 5_000;
        let urls = (0..BROKERS).map(addresses).collect();
        let mut cluster = Cluster::new(config, urls);
        cluster.create_scalable_topic(&topic(TOPIC), 1, Default::default(), 1_000).unwrap();
        World {
            cluster,
            now: 1_000,
            producer: BTreeMap::new(),
            consumers: BTreeMap::new(),
            stored: BTreeMap::new(),
            seen: BTreeMap::new(),
            next: 0,
        }
    }

    fn connect(&mut self, broker: u32) -> Option<ConnId> {
        let conn = self.cluster.open(BrokerId(broker), "model", false, self.now)?;
        self.send(conn, CommandConnect { client_version: "model".into(), ..Default::default() });
        Some(conn)
    }

    /// A consumer's connection to a broker, opened if there is none.
    fn consumer_conn(&mut self, who: usize, broker: u32) -> Option<ConnId> {
        if let Some(conn) = self.consumers[&who].conns.get(&broker) {
            return Some(*conn);
        }
        let conn = self.connect(broker)?;
        self.consumers.get_mut(&who).unwrap().conns.insert(broker, conn);
        Some(conn)
    }

    fn send(&mut self, conn: ConnId, command: impl Into<Command>) {
        self.send_frame(conn, Frame::from(command.into()));
    }

    fn send_frame(&mut self, conn: ConnId, frame: Frame) {
        self.cluster.receive(conn, Ok(frame), self.now);
        self.take_in();
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn active(&self) -> Vec<SegmentInfoProto> {
        let mut active: Vec<_> = self.cluster.current_dag(TOPIC).unwrap().segments;
        active.retain(|s| s.state == SegmentState::Active as i32);
        active.sort_by_key(|s| s.hash_start);
        active
    }

    fn name_of(s: &SegmentInfoProto) -> String {
        format!("segment://public/default/t/{:04x}-{:04x}-{}", s.hash_start, s.hash_end, s.segment_id)
    }

    fn owner(&self, stored: &str) -> Option<u32> {
        self.cluster.owners().into_iter().find(|(name, _)| name.as_str() == stored)?.1.map(|b| b.0)
    }

    fn leader(&self) -> Option<u32> {
        let url = self.cluster.current_dag(TOPIC).unwrap().controller_broker_url?;
        self.cluster.brokers().iter().position(|b| b.service_url == url).map(|i| i as u32)
    }

    // ---- What the broker sends ----

    fn take_in(&mut self) {
        for output in self.cluster.take_output() {
            match output {
                Output::Frame(conn, frame) => self.frame(conn, frame),
                Output::Close(conn) => self.closed(conn),
            }
        }
    }

    fn closed(&mut self, conn: ConnId) {
        self.producer.retain(|_, c| *c != conn);
        for consumer in self.consumers.values_mut() {
            consumer.conns.retain(|_, c| *c != conn);
            consumer.attached.retain(|_, a| a.conn != conn);
            consumer.session = consumer.session.filter(|session| *session != conn);
        }
    }

    fn frame(&mut self, conn: ConnId, frame: Frame) {
        if let Command::Ping(_) = frame.command {
            return self.send(conn, CommandPong {});
        }
        let Some((_, consumer)) =
            self.consumers.iter_mut().find(|(_, c)| c.conns.values().any(|known| *known == conn))
        else {
            return;
        };
        match frame.command {
            Command::ScalableTopicSubscribeResponse(c) => match c.assignment {
                Some(assignment) => {
                    consumer.session = Some(conn);
                    consumer.assign(assignment);
                }
                None => consumer.session = None,
            },
            Command::ScalableTopicAssignmentUpdate(c) => consumer.assign(c.assignment),
            Command::Success(c) => {
                if let Some(a) = consumer.attached.values_mut().find(|a| a.id == c.request_id) {
                    a.open = true;
                    let flow = CommandFlow { consumer_id: a.id, message_permits: 1_000_000 };
                    self.send(conn, flow);
                }
            }
            Command::Error(c) => {
                assert_eq!(c.error(), ServerError::ConsumerBusy, "{}", c.message);
                consumer.attached.retain(|_, a| a.id != c.request_id);
            }
            Command::CloseConsumer(c) => consumer.attached.retain(|_, a| a.id != c.consumer_id),
            Command::Message(c) => {
                let found = consumer.attached.iter().find(|(_, a)| a.id == c.consumer_id);
                let Some((segment, draining)) = found.map(|(segment, a)| (*segment, a.draining)) else {
                    return;
                };
                // While a segment drains, nothing new goes to the application.
                if draining {
                    return;
                }
                let a = consumer.attached.get_mut(&segment).unwrap();
                let entry = Entry::parse(frame.payload.unwrap()).unwrap();
                let (key, n) = (entry.payload[0], u64::from(entry.payload[1]));
                a.held.insert(c.message_id.entry_id, key);
                a.ledger = c.message_id.ledger_id;
                let holds = |c: &Consumer| c.attached.values().any(|a| a.held.values().any(|k| *k == key));
                let holders = self.consumers.values().filter(|consumer| holds(consumer)).count();
                assert_eq!(
                    holders, 1,
                    "message {n} of key {key} comes while another consumer has some of it"
                );
                let seen = self.seen.entry(key).or_default();
                assert!(n <= *seen, "message {n} of key {key} comes before message {seen}");
                *seen = (*seen).max(n + 1);
            }
            _ => {}
        }
    }

    // ---- What the consumers do ----

    /// Consumers register, close what they drained, and attach to what they are to read.
    fn work(&mut self) {
        for who in self.consumers.keys().copied().collect::<Vec<_>>() {
            if self.consumers[&who].session.is_none()
                && let Some(leader) = self.leader()
                && let Some(conn) = self.consumer_conn(who, leader)
            {
                self.send(
                    conn,
                    CommandScalableTopicSubscribe {
                        request_id: 0,
                        topic: TOPIC.into(),
                        subscription: "s".into(),
                        consumer_name: format!("c{who}"),
                        consumer_id: 0,
                        consumer_type: ScalableConsumerType::Stream as i32,
                    },
                );
            }
            let consumer = &self.consumers[&who];
            let drained: Vec<(u64, ConnId, u64)> = consumer
                .attached
                .iter()
                .filter(|(_, a)| a.open && a.draining && a.held.is_empty())
                .map(|(segment, a)| (*segment, a.conn, a.id))
                .collect();
            for (segment, conn, id) in drained {
                self.consumers.get_mut(&who).unwrap().attached.remove(&segment);
                let request_id = self.number();
                self.send(conn, CommandCloseConsumer { consumer_id: id, request_id, ..Default::default() });
            }
            let consumer = &self.consumers[&who];
            let wanted: Vec<ScalableAssignedSegment> =
                consumer.assignment.iter().flat_map(|a| a.segments.clone()).collect();
            for segment in wanted {
                self.attach(who, segment);
            }
        }
    }

    fn attach(&mut self, who: usize, segment: ScalableAssignedSegment) {
        if self.consumers[&who].attached.contains_key(&segment.segment_id) {
            return;
        }
        let Some(owner) = self.owner(&segment.segment_topic) else { return };
        let Some(conn) = self.consumer_conn(who, owner) else { return };
        let (id, shared) = (self.number(), !segment.bucket_ranges.is_empty());
        let attachment =
            Attachment { conn, id, shared, open: false, draining: false, held: BTreeMap::new(), ledger: 0 };
        let consumer = self.consumers.get_mut(&who).unwrap();
        consumer.attached.insert(segment.segment_id, attachment);
        let key_shared_meta = shared.then_some(KeySharedMeta {
            key_shared_mode: KeySharedMode::Sticky as i32,
            hash_ranges: segment.bucket_ranges,
            entry_bucket_dispatch: Some(true),
            ..Default::default()
        });
        let sub_type = if shared { SubType::KeyShared } else { SubType::Exclusive };
        self.send(
            conn,
            CommandSubscribe {
                topic: segment.segment_topic,
                subscription: "s".into(),
                sub_type: sub_type as i32,
                consumer_id: id,
                request_id: id,
                consumer_name: Some(format!("c{who}-seg-{}", segment.segment_id)),
                initial_position: Some(InitialPosition::Earliest as i32),
                key_shared_meta,
                ..Default::default()
            },
        );
    }

    /// The application acknowledges everything that it has.
    fn ack(&mut self, who: usize) {
        let Some(consumer) = self.consumers.get_mut(&who) else { return };
        let mut acks = Vec::new();
        for a in consumer.attached.values_mut() {
            let id =
                |entry: &u64| MessageIdData { ledger_id: a.ledger, entry_id: *entry, ..Default::default() };
            let (ack_type, message_id) = match a.shared {
                true => (AckType::Individual, a.held.keys().map(id).collect()),
                false => {
                    (AckType::Cumulative, a.held.keys().next_back().map(id).into_iter().collect::<Vec<_>>())
                }
            };
            a.held.clear();
            if !message_id.is_empty() {
                let ack_type = ack_type as i32;
                acks.push((
                    a.conn,
                    CommandAck { consumer_id: a.id, ack_type, message_id, ..Default::default() },
                ));
            }
        }
        acks.into_iter().for_each(|(conn, ack)| self.send(conn, ack));
    }

    fn publish(&mut self, key: u8) {
        let text = format!("key-{key}");
        let hash = KeyHash::of(&text);
        let active = self.active();
        let covers = |s: &&SegmentInfoProto| (s.hash_start..=s.hash_end).contains(&hash.segment().into());
        let name = World::name_of(active.iter().find(covers).unwrap());
        let Some(owner) = self.owner(&name) else { return };
        let conn = match self.producer.get(&owner) {
            Some(conn) => *conn,
            None => self.connect(owner).unwrap(),
        };
        self.producer.insert(owner, conn);
        let (n, id) = (*self.stored.entry(key).or_default(), self.number());
        self.send(
            conn,
            CommandProducer { topic: name, producer_id: id, request_id: id, ..Default::default() },
        );
        let stamp = Some(u32::from(hash.bucket())).filter(|_| n.is_multiple_of(2));
        let metadata = MessageMetadata {
            producer_name: "p".into(),
            partition_key: Some(text),
            entry_hash_min: stamp,
            entry_hash_max: stamp,
            ..Default::default()
        };
        let entry = Entry::new(metadata, Bytes::from(vec![key, n as u8])).to_bytes();
        let send = CommandSend { producer_id: id, ..Default::default() };
        self.send_frame(conn, Frame::with_payload(send, entry));
        self.send(conn, CommandCloseProducer { producer_id: id, request_id: id, ..Default::default() });
        *self.stored.entry(key).or_default() += 1;
    }

    fn apply(&mut self, op: &Op) {
        let nth = |segments: Vec<SegmentInfoProto>, n: usize| segments[n % segments.len()].segment_id;
        let name = topic(TOPIC);
        match *op {
            Op::Publish(key) => self.publish(key),
            Op::Join(who) => {
                self.consumers.entry(who).or_default();
            }
            Op::Leave(who) => {
                let Some(consumer) = self.consumers.get(&who) else { return };
                if let Some(conn) = consumer.session {
                    self.send(conn, CommandScalableTopicUnsubscribe { request_id: 0, consumer_id: 0 });
                }
                self.break_connections(who);
                self.consumers.remove(&who);
            }
            Op::Crash(who) => {
                self.break_connections(who);
                self.consumers.remove(&who);
            }
            Op::Disconnect(who) => self.break_connections(who),
            Op::Ack(who) => self.ack(who),
            // A change may be refused: a range of one hash, the same buckets, a segment that nobody serves.
            Op::Split(n) => {
                let _ = self.cluster.split_segment(&name, nth(self.active(), n), self.now);
            }
            Op::Merge(n) => {
                let active = self.active();
                let (a, b) = (&active[n % active.len()], &active[(n + 1) % active.len()]);
                let _ = self.cluster.merge_segments(&name, a.segment_id, b.segment_id, self.now);
            }
            Op::Rebucket(n, count) => {
                let _ = self.cluster.rebucket_segment(&name, nth(self.active(), n), Some(count), self.now);
            }
            Op::Kill(broker) => {
                let _ = self.cluster.kill_broker(BrokerId(broker), self.now);
            }
            Op::Revive(broker) => {
                let _ = self.cluster.revive_broker(BrokerId(broker), self.now);
            }
            Op::Move(n, to) => {
                let segment = nth(self.active(), n);
                let _ = self.cluster.move_segment(TOPIC, segment, BrokerId(to), self.now);
            }
            Op::Pass(ms) => self.pass(ms),
        }
        self.take_in();
        self.work();
    }

    fn break_connections(&mut self, who: usize) {
        let Some(consumer) = self.consumers.get(&who) else { return };
        for conn in consumer.conns.values().copied().collect::<Vec<_>>() {
            self.cluster.closed(conn, "broken", self.now);
            self.take_in();
        }
    }

    fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(due) = self.cluster.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.cluster.tick(self.now);
            self.take_in();
            self.work();
        }
        self.now = end;
    }

    /// In the end every broker is up and two consumers read and acknowledge what is there.
    fn finish(&mut self) {
        for broker in 0..BROKERS {
            self.apply(&Op::Revive(broker));
        }
        for who in 0..2 {
            self.apply(&Op::Join(who));
        }
        for _ in 0..60 {
            for who in 0..CONSUMERS {
                self.ack(who);
            }
            self.work();
            self.pass(10_000);
        }
        assert_eq!(
            self.seen.iter().filter(|(_, n)| **n > 0).collect::<Vec<_>>(),
            self.stored.iter().collect::<Vec<_>>()
        );
        for segment in self.cluster.scalable_stats(&topic(TOPIC)).unwrap().segments {
            let left: u64 = segment.topic.subscriptions.iter().map(|s| s.backlog).sum();
            assert_eq!(left, 0, "unread on {}", segment.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn keys_stay_in_order_and_nothing_is_lost(seed in 0u64..8, ops in prop::collection::vec(op(), 1..120)) {
        let mut world = World::new(seed);
        ops.iter().for_each(|op| world.apply(op));
        world.finish();
    }
}
