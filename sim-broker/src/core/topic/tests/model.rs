//! Random operations against a model of what clients know: nothing is lost, nothing comes twice without a reason,
//! permits are kept, and a key's messages stay in order.
//!
//! With entry buckets, what holds for a key has to hold for a bucket, and each bucket has one owner.
//!
//! proptest prints the operations of a failing case, shrunk, and the seed to run it again.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use stc_proto::{KeyHash, layout::BucketSplits};

use super::*;

const CONSUMERS: usize = 4;

#[derive(Debug, Clone)]
enum Op {
    /// A key's index, and the messages in the entry.
    Publish(u8, u8),
    Connect(usize),
    /// Closes one consumer.
    Close(usize),
    /// Drops the connection that two consumers share.
    Drop(usize),
    Flow(usize, u8),
    /// Acknowledges the nth delivered entry.
    Ack(usize, usize),
    /// Acknowledges one message of the nth delivered entry.
    AckOne(usize, usize, u8),
    /// Acknowledges everything up to the nth delivered entry (Exclusive and Failover).
    AckUpTo(usize, usize),
    /// Gives back the nth delivered entry, or rewinds (Exclusive and Failover).
    GiveBack(usize, usize),
    GiveBackAll(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..CONSUMERS;
    let nth = 0usize..8;
    prop_oneof![
        5 => (0u8..5, 1u8..4).prop_map(|(key, messages)| Op::Publish(key, messages)),
        3 => who.clone().prop_map(Op::Connect),
        1 => who.clone().prop_map(Op::Close),
        1 => who.clone().prop_map(Op::Drop),
        4 => (who.clone(), 1u8..6).prop_map(|(c, n)| Op::Flow(c, n)),
        4 => (who.clone(), nth.clone()).prop_map(|(c, n)| Op::Ack(c, n)),
        2 => (who.clone(), nth.clone(), 0u8..4).prop_map(|(c, n, m)| Op::AckOne(c, n, m)),
        1 => (who.clone(), nth.clone()).prop_map(|(c, n)| Op::AckUpTo(c, n)),
        2 => (who.clone(), nth).prop_map(|(c, n)| Op::GiveBack(c, n)),
        1 => who.prop_map(Op::GiveBackAll),
    ]
}

/// What a client knows of its consumer.
#[derive(Debug, Default)]
struct Client {
    permits: i64,
    /// Delivered and neither acknowledged nor given back.
    held: BTreeSet<u64>,
}

#[derive(Debug)]
struct Published {
    key: u8,
    /// The messages that are not acknowledged, one bit each.
    left: i64,
    given_back: u32,
}

struct Model {
    rig: Rig,
    kind: SubType,
    /// The buckets that consumers ask for.
    buckets: Option<BucketSplits>,
    clients: BTreeMap<usize, Client>,
    entries: Vec<Published>,
    producer: ProducerKey,
}

impl Model {
    fn new(kind: SubType, buckets: Option<BucketSplits>) -> Self {
        let mut rig = Rig::new();
        rig.topic.create_subscription("s", crate::core::topic::Start::Earliest);
        let producer = rig.any_producer();
        Model { rig, kind, buckets, clients: BTreeMap::new(), entries: Vec::new(), producer }
    }

    /// What keeps together: the bucket of a key, or the key.
    fn lane(&self, key: u8) -> usize {
        match &self.buckets {
            Some(buckets) => buckets.index_of(bucket_hash(key)),
            None => key.into(),
        }
    }

    /// Who owns a bucket while these consumers are connected; their names are in the order of their numbers.
    fn bucket_owner(&self, bucket: usize) -> Option<usize> {
        let (n, k) = (self.buckets.as_ref()?.count() as usize, self.clients.len());
        let mut slices = self.clients.keys().enumerate().map(|(j, c)| (*c, j * n / k..(j + 1) * n / k));
        slices.find(|(_, slice)| slice.contains(&bucket)).map(|(c, _)| c)
    }

    /// Two consumers share a connection, which is never that of the producer.
    fn key(consumer: usize) -> ConsumerKey {
        c(10 + consumer as u64 / 2, consumer as u64)
    }

    fn individual(&self) -> bool {
        matches!(self.kind, SubType::Shared | SubType::KeyShared)
    }

    fn nth_held(&self, consumer: usize, nth: usize) -> Option<u64> {
        let held = &self.clients.get(&consumer)?.held;
        held.iter().nth(nth % held.len().max(1)).copied()
    }

    fn acked(&mut self, entry: u64, left: i64) {
        let published = &mut self.entries[entry as usize];
        published.left &= left;
        if published.left == 0 {
            for client in self.clients.values_mut() {
                client.held.remove(&entry);
            }
        }
    }

    fn left(&mut self, gone: impl Fn(usize) -> bool) {
        self.clients.retain(|consumer, _| !gone(*consumer));
        if self.clients.is_empty() {
            self.entries.iter_mut().for_each(|published| published.given_back = 0);
        }
    }

    /// Applies an operation to the topic and to the model. The model learns of deliveries in `check`.
    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Publish(key, messages) => {
                self.entries.push(Published { key, left: (1 << messages) - 1, given_back: 0 });
                // The stamp says the same as the key, so producers with and without it can be mixed.
                let hash = Some(u32::from(bucket_hash(key))).filter(|_| self.entries.len().is_multiple_of(2));
                let metadata = MessageMetadata {
                    num_messages_in_batch: Some(messages.into()),
                    entry_hash_min: hash,
                    entry_hash_max: hash,
                    ..keyed(&format!("key-{key}"))
                };
                self.rig.send(self.producer, metadata);
            }
            Op::Connect(consumer) => {
                let result = match &self.buckets {
                    Some(buckets) => {
                        self.rig.subscribe(Model::key(consumer), self.kind, share(&buckets.ranges()))
                    }
                    None => self.rig.subscribe(Model::key(consumer), self.kind, |_| {}),
                };
                if result.is_ok() {
                    self.clients.entry(consumer).or_default();
                } else {
                    assert!(self.kind == SubType::Exclusive && !self.clients.is_empty());
                }
            }
            Op::Close(consumer) => {
                self.left(|c| c == consumer);
                self.rig.close_consumer(Model::key(consumer));
            }
            Op::Drop(consumer) => {
                self.left(|c| c / 2 == consumer / 2);
                self.rig.disconnect(Model::key(consumer).conn.0);
            }
            Op::Flow(consumer, permits) => {
                if let Some(client) = self.clients.get_mut(&consumer) {
                    client.permits += i64::from(permits);
                    self.rig.flow(Model::key(consumer), permits.into());
                }
            }
            Op::Ack(consumer, nth) => {
                let Some(entry) = self.nth_held(consumer, nth) else { return };
                self.acked(entry, 0);
                self.rig.ack(Model::key(consumer), &[entry]);
            }
            Op::AckOne(consumer, nth, message) => {
                let Some(entry) = self.nth_held(consumer, nth) else { return };
                let left = !(1 << message);
                self.acked(entry, left);
                self.rig.ack_with(Model::key(consumer), AckType::Individual, &[part(entry, left)]);
            }
            Op::AckUpTo(consumer, nth) => {
                let Some(entry) = self.nth_held(consumer, nth) else { return };
                if !self.individual() {
                    (0..=entry).for_each(|e| self.acked(e, 0));
                }
                self.rig.ack_cumulative(Model::key(consumer), id(entry));
            }
            Op::GiveBack(consumer, nth) => {
                if let Some(entry) = self.nth_held(consumer, nth) {
                    self.give_back(consumer, &[entry]);
                }
            }
            Op::GiveBackAll(consumer) => self.give_back(consumer, &[]),
        }
    }

    fn give_back(&mut self, consumer: usize, entries: &[u64]) {
        let individual = self.individual();
        let Some(client) = self.clients.get_mut(&consumer) else { return };
        let back: Vec<u64> = match individual && !entries.is_empty() {
            true => entries.to_vec(),
            false => client.held.iter().copied().collect(),
        };
        for entry in back {
            client.held.remove(&entry);
            self.entries[entry as usize].given_back += u32::from(individual);
        }
        self.rig.redeliver(Model::key(consumer), entries, None);
    }

    /// Looks at everything that was delivered since the last time.
    fn check(&mut self) {
        let effects: Vec<Effect> = self.rig.effects.drain().collect();
        for effect in effects {
            let Effect::Send(_, frame) = effect else { panic!("{effect:?}") };
            match frame.command {
                Command::Message(message) => self.delivered(&message),
                // The newly active consumer begins at the cursor; the others keep what they have for nothing.
                Command::ActiveConsumerChange(change) if change.is_active() => {
                    self.clients.values_mut().for_each(|client| client.held.clear());
                }
                _ => {}
            }
        }
    }

    fn delivered(&mut self, message: &CommandMessage) {
        let (consumer, entry) = (message.consumer_id as usize, message.message_id.entry_id);
        let published = &self.entries[entry as usize];
        assert_ne!(published.left, 0, "entry {entry} is acknowledged");
        if let [left] = message.ack_set[..] {
            assert_eq!(left, published.left, "entry {entry}: acknowledged members");
        } else {
            assert_eq!(published.left.count_zeros() + published.left.count_ones(), 64);
            assert!((published.left + 1).count_ones() == 1, "entry {entry}: members are acknowledged");
        }
        assert_eq!(message.redelivery_count(), published.given_back, "entry {entry}: redeliveries");
        for (other, client) in &self.clients {
            assert!(!client.held.contains(&entry), "entry {entry} is with consumer {other} already");
        }
        let waiting = |e: u64| {
            self.entries[e as usize].left != 0
                && self.clients.values().all(|client| !client.held.contains(&e))
        };
        let lane = self.lane(published.key);
        let same_key = |e: &u64| self.lane(self.entries[*e as usize].key) == lane;
        if self.buckets.is_some() {
            assert_eq!(
                self.bucket_owner(lane),
                Some(consumer),
                "entry {entry} is for the owner of its bucket"
            );
        }
        match self.kind {
            SubType::Shared => {}
            SubType::KeyShared => {
                let overtaken = (0..entry).filter(same_key).find(|e| waiting(*e));
                assert_eq!(overtaken, None, "entry {entry} comes before an earlier one of its key");
                let elsewhere = self.clients.iter().filter(|(other, _)| **other != consumer);
                let split = elsewhere.flat_map(|(_, client)| &client.held).find(|e| same_key(e));
                assert_eq!(split, None, "entry {entry}: its key is with another consumer");
            }
            SubType::Exclusive | SubType::Failover => {
                assert_eq!(
                    (0..entry).find(|e| waiting(*e)),
                    None,
                    "entry {entry} comes before an earlier one"
                );
            }
        }
        let messages = i64::from(published.left.count_ones());
        let client = self.clients.get_mut(&consumer).expect("a message for a consumer that is not there");
        assert!(client.permits > 0, "entry {entry} comes without a permit");
        client.permits -= messages;
        client.held.insert(entry);
    }

    /// In the end everyone takes and acknowledges what comes: nothing may be left.
    fn finish(&mut self) {
        for consumer in 0..CONSUMERS {
            self.step(&Op::Connect(consumer));
        }
        loop {
            for consumer in 0..CONSUMERS {
                (0..40).for_each(|_| self.step(&Op::Flow(consumer, 250)));
            }
            let held = |(consumer, client): (&usize, &Client)| Some((*consumer, *client.held.first()?));
            let Some((consumer, entry)) = self.clients.iter().find_map(held) else { break };
            self.acked(entry, 0);
            self.rig.ack(Model::key(consumer), &[entry]);
            self.check();
        }
        let lost: Vec<usize> = (0..self.entries.len()).filter(|e| self.entries[*e].left != 0).collect();
        assert!(lost.is_empty(), "lost entries {lost:?}");
        assert_eq!(self.rig.backlog("s"), 0);
        assert_eq!(self.rig.topic.stats().subscriptions[0].unacked, 0);
    }

    fn step(&mut self, op: &Op) {
        self.apply(op);
        self.check();
    }
}

fn bucket_hash(key: u8) -> u16 {
    KeyHash::of(&format!("key-{key}")).bucket()
}

fn run(kind: SubType, ops: &[Op]) {
    run_with(kind, None, ops);
}

fn run_with(kind: SubType, buckets: Option<BucketSplits>, ops: &[Op]) {
    let mut model = Model::new(kind, buckets);
    ops.iter().for_each(|op| model.step(op));
    model.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn exclusive(ops in prop::collection::vec(op(), 1..120)) {
        run(SubType::Exclusive, &ops);
    }

    #[test]
    fn failover(ops in prop::collection::vec(op(), 1..120)) {
        run(SubType::Failover, &ops);
    }

    #[test]
    fn shared(ops in prop::collection::vec(op(), 1..120)) {
        run(SubType::Shared, &ops);
    }

    #[test]
    fn key_shared(ops in prop::collection::vec(op(), 1..120)) {
        run(SubType::KeyShared, &ops);
    }

    #[test]
    fn entry_buckets(
        ops in prop::collection::vec(op(), 1..120),
        starts in prop::collection::btree_set(1u32..65536, 0..7),
    ) {
        let buckets = BucketSplits::try_from(Vec::from_iter(starts)).unwrap();
        run_with(SubType::KeyShared, Some(buckets), &ops);
    }
}
