//! The producer against a model of a broker, in random interleavings: splits and merges, closes and pushes in either
//! order, sends in the pipe while a segment is sealed. Connections hold, so every message has to be stored exactly
//! once, and those of a key in the order of their sends.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use stc_proto::{Entry, Layout as BrokerLayout, TopicName};

use super::*;
use crate::core::{layout::Layout, outgoing::tests::message};

/// What is on its way to a segment's broker.
enum ToBroker {
    Send { sequence_id: u64, bytes: Bytes },
    Close,
}

/// What is on its way back.
enum ToClient {
    Receipt { sequence_id: u64, entry: u64 },
    Failed { sequence_id: u64 },
    Closed,
    Answered,
}

#[derive(Default)]
struct Pipe {
    there: VecDeque<ToBroker>,
    back: VecDeque<ToClient>,
    attached: bool,
}

struct Model {
    core: ProducerCore,
    rng: Rng,
    now: u64,
    layout: BrokerLayout,
    pushes: VecDeque<View>,
    attaches: Vec<Attach>,
    enlists: Vec<(u64, TxnId)>,
    enlisted: BTreeSet<(u64, TxnId)>,
    pipes: BTreeMap<u64, Pipe>,
    stored: BTreeMap<u64, Vec<(Option<String>, String)>>,
    results: BTreeMap<u64, Result<MessageId, Error>>,
}

fn view(layout: &BrokerLayout) -> View {
    View {
        topic: TopicName::parse("topic://public/default/t").unwrap(),
        layout: Arc::new(Layout::from_dag(&layout.to_dag()).unwrap()),
        brokers: Arc::default(),
        controller: None,
        life: 0,
    }
}

fn terminated() -> Error {
    Error::new(Category::TopicTerminated, "terminated")
}

impl Model {
    fn new(seed: u64) -> Self {
        let layout = BrokerLayout::initial(2, 4, 0);
        let config = ProducerConfig {
            name: None,
            access: ProducerAccessMode::Shared,
            limits: BatchLimits {
                enabled: seed.is_multiple_of(2),
                max_messages: 4,
                max_bytes: 1000,
                max_delay: 1,
            },
            compression: CompressionType::None,
            encryption: None,
            chunk_size: None,
            send_timeout: None,
            initial_sequence_id: None,
            backoff: BackoffLimits { initial: 100, max: 1000 },
            limits_of_queue: QueueLimits::default(),
            deviance: Deviance::default(),
        };
        Model {
            core: ProducerCore::new(config, view(&layout), Rng::new(seed), Now::default()),
            rng: Rng::new(seed),
            now: 0,
            layout,
            pushes: VecDeque::new(),
            attaches: Vec::new(),
            enlists: Vec::new(),
            enlisted: BTreeSet::new(),
            pipes: BTreeMap::new(),
            stored: BTreeMap::new(),
            results: BTreeMap::new(),
        }
    }

    fn pick(&mut self, n: usize) -> usize {
        (self.rng.next() % n.max(1) as u64) as usize
    }

    fn now(&self) -> Now {
        Now { mono: self.now, wall: self.now }
    }

    fn collect(&mut self) {
        for effect in self.core.take_effects() {
            match effect {
                Effect::Attach(attach) => self.attaches.push(attach),
                Effect::Transmit { segment, sequence_id, bytes, .. } => {
                    let pipe = self.pipes.entry(segment).or_default();
                    assert!(pipe.attached, "sent to segment {segment} without an attachment");
                    pipe.there.push_back(ToBroker::Send { sequence_id, bytes });
                }
                Effect::Detach { segment } => {
                    self.pipes.entry(segment).or_default().there.push_back(ToBroker::Close);
                }
                Effect::Forget { segment } => {
                    self.pipes.entry(segment).or_default().attached = false;
                }
                Effect::Settle { order, result } => {
                    assert!(self.results.insert(order, result).is_none(), "settled twice");
                }
                Effect::Enlist { segment, txn, .. } => self.enlists.push((segment, txn)),
                Effect::Opened(_) | Effect::Closed => {}
                Effect::Doubt => panic!("no segment is missing here"),
            }
        }
    }

    fn is_active(&self, segment: u64) -> bool {
        self.layout.segment(segment).is_some_and(|s| s.is_active())
    }

    fn send(&mut self) {
        let key = match self.pick(12) {
            0 => None,
            n => Some(format!("key-{n}")),
        };
        let now = self.now();
        let order = self.core.next_order;
        let txn = (self.pick(3) == 0).then_some(TxnId { coordinator: 0, number: order / 20 });
        self.core.send(Outgoing { txn, ..message(order, key.as_deref()) }, now);
    }

    /// A layout change: the broker closes what is attached and pushes, each on its own way to the client.
    fn change(&mut self) {
        let active: Vec<u64> = self.layout.active().map(|s| s.id).collect();
        let (a, b) = (active[self.pick(active.len())], active[self.pick(active.len())]);
        let changed =
            if a == b || active.len() < 3 { self.layout.split(a, 0) } else { self.layout.merge(a, b, 0) };
        let Ok(changed) = changed else { return };
        for id in active.iter().filter(|id| !changed.segment(**id).is_some_and(|s| s.is_active())) {
            let pipe = self.pipes.entry(*id).or_default();
            if pipe.attached {
                pipe.back.push_back(ToClient::Closed);
            }
        }
        self.layout = changed;
        self.pushes.push_back(view(&self.layout));
    }

    fn attach(&mut self) -> bool {
        if self.attaches.is_empty() {
            return false;
        }
        let at = self.pick(self.attaches.len());
        let attach = self.attaches.remove(at);
        let (segment, now) = (attach.segment, self.now());
        if self.is_active(segment) {
            let attached =
                Attached { name: "p".into(), last_sequence_id: -1, max_size: 1000, ..Default::default() };
            self.pipes.entry(segment).or_default().attached = true;
            if !self.core.attached(segment, attach.generation, attached, now) {
                self.pipes.entry(segment).or_default().attached = false;
            }
        } else {
            self.core.attach_failed(segment, attach.generation, terminated(), now);
        }
        true
    }

    /// A coordinator answers, in any order.
    fn enlist(&mut self) -> bool {
        if self.enlists.is_empty() {
            return false;
        }
        let at = self.pick(self.enlists.len());
        let (segment, txn) = self.enlists.remove(at);
        let now = self.now();
        self.core.enlisted(segment, txn, Ok(()), now);
        self.enlisted.insert((segment, txn));
        true
    }

    /// The broker takes one frame off a pipe.
    fn broker(&mut self) -> bool {
        let busy: Vec<u64> =
            self.pipes.iter().filter(|(_, p)| !p.there.is_empty()).map(|(id, _)| *id).collect();
        if busy.is_empty() {
            return false;
        }
        let segment = busy[self.pick(busy.len())];
        let active = self.is_active(segment);
        let pipe = self.pipes.get_mut(&segment).unwrap();
        match pipe.there.pop_front().unwrap() {
            ToBroker::Close => pipe.back.push_back(ToClient::Answered),
            ToBroker::Send { sequence_id, .. } if !active => {
                pipe.back.push_back(ToClient::Failed { sequence_id });
            }
            ToBroker::Send { sequence_id, bytes } => {
                let log = self.stored.entry(segment).or_default();
                pipe.back.push_back(ToClient::Receipt { sequence_id, entry: log.len() as u64 });
                let entry = Entry::parse(bytes).unwrap();
                if let (Some(coordinator), Some(number)) =
                    (entry.metadata.txnid_most_bits, entry.metadata.txnid_least_bits)
                {
                    assert!(self.enlisted.contains(&(segment, TxnId { coordinator, number })));
                }
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                match entry.metadata.num_messages_in_batch {
                    Some(count) => {
                        for (single, payload) in
                            stc_proto::batch::read(entry.payload, count as usize).unwrap()
                        {
                            log.push((single.partition_key, text(&payload)));
                        }
                    }
                    None => log.push((entry.metadata.partition_key, text(&entry.payload))),
                }
            }
        }
        true
    }

    /// The client gets one frame.
    fn client(&mut self) -> bool {
        let busy: Vec<u64> =
            self.pipes.iter().filter(|(_, p)| !p.back.is_empty()).map(|(id, _)| *id).collect();
        if busy.is_empty() {
            return false;
        }
        let segment = busy[self.pick(busy.len())];
        let frame = self.pipes.get_mut(&segment).unwrap().back.pop_front().unwrap();
        let now = self.now();
        match frame {
            ToClient::Receipt { sequence_id, entry } => {
                self.core.receipt(segment, sequence_id, 1, entry, now)
            }
            ToClient::Failed { sequence_id } => {
                self.core.send_failed(segment, sequence_id, terminated(), now)
            }
            ToClient::Closed => self.core.closed_by_broker(segment, None, now),
            ToClient::Answered => self.core.detached(segment, now),
        }
        true
    }

    fn push(&mut self) -> bool {
        let Some(view) = self.pushes.pop_front() else { return false };
        let now = self.now();
        self.core.apply_layout(view, now);
        true
    }

    fn step(&mut self, changes: bool) -> bool {
        let done = match self.pick(if changes { 14 } else { 10 }) {
            0..4 => self.broker(),
            4..8 => self.client(),
            8 => self.attach() | self.enlist(),
            9 => self.push(),
            10..13 => {
                self.send();
                true
            }
            _ => {
                if self.pick(6) == 0 {
                    self.change();
                }
                true
            }
        };
        self.collect();
        done
    }

    /// Lets everything under way arrive, and time pass when nothing is.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            if self.core.pending.is_empty() {
                return;
            }
            let mut moved = false;
            for _ in 0..40 {
                moved |= self.step(false);
            }
            if !moved && let Some(deadline) = self.core.next_deadline() {
                self.now = self.now.max(deadline);
                let now = self.now();
                self.core.tick(now);
                self.collect();
            }
        }
        panic!("{:?} never settled", self.core.pending);
    }
}

#[test]
fn every_message_is_stored_once_and_each_key_in_order() {
    for seed in 0..300 {
        let mut model = Model::new(seed);
        for _ in 0..400 {
            model.step(true);
        }
        model.settle();
        let mut by_key: BTreeMap<Option<String>, Vec<u64>> = BTreeMap::new();
        let mut count = 0;
        // Segments in the order of their ids: a key's segments ascend.
        for (key, value) in model.stored.values().flatten() {
            by_key.entry(key.clone()).or_default().push(value.trim_start_matches('v').parse().unwrap());
            count += 1;
        }
        assert_eq!(count, model.results.len(), "seed {seed}: lost or stored twice");
        for (order, result) in &model.results {
            assert!(result.is_ok(), "seed {seed}: send {order}: {result:?}");
        }
        for (key, values) in by_key.iter().filter(|(key, _)| key.is_some()) {
            assert!(values.is_sorted_by(|a, b| a < b), "seed {seed}: {key:?}: {values:?}");
        }
    }
}
