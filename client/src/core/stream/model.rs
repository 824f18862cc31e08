//! The stream consumer against a model of its brokers and its application in random interleavings: assignments change,
//! connections are lost, answers get lost, another consumer shares the segments, and the application acknowledges what
//! it likes. What must never happen is checked at every step, and that everything ends well at the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use stc_proto::{
    Entry, TopicName,
    pulsar::{CommandMessage, MessageIdData, MessageMetadata},
};

use super::*;
use crate::core::{
    assignment::{Assigned, Assignment},
    backoff::BackoffLimits,
    error::Error,
    layout::{Layout, tests::dag},
    message_id::{MessageId, Position},
};

type Subscribe = consumer::Subscribe<Mode>;

const SEGMENTS: &[(u64, u32, u32, bool)] = &[(0, 0, 0x7fff, true), (1, 0x8000, 0xffff, true)];

/// A segment at its broker. While it is shared, the entries with odd numbers are another consumer's.
#[derive(Default)]
struct Stored {
    entries: u64,
    acked: BTreeSet<u64>,
    /// The attached consumer: its mode and what it was sent.
    attached: Option<(bool, BTreeSet<u64>)>,
}

struct Model {
    core: StreamCore,
    rng: Rng,
    now: Millis,
    stored: BTreeMap<u64, Stored>,
    queue: VecDeque<StreamDelivery>,
    subscribes: VecDeque<Subscribe>,
    acks: VecDeque<(u64, u64, Ack)>,
    detaching: BTreeSet<u64>,
    /// What the application received, in order: generation, segment, entry, identifier.
    received: Vec<(u64, u64, u64, MessageId)>,
    /// What it acknowledged, by covering it.
    covered: BTreeSet<(u64, u64)>,
    epoch: u64,
}

impl Model {
    fn new(seed: u64) -> Self {
        let config = StreamConfig {
            consumer: 1,
            receiver_queue: 1000,
            group_time: 0,
            life: LifeConfig {
                encryption: None,
                open_limit: 1_000_000_000,
                backoff: BackoffLimits { initial: 100, max: 1000 },
                deviance: Deviance::default(),
            },
        };
        let view = View {
            topic: TopicName::parse("topic://public/default/t").unwrap(),
            layout: std::sync::Arc::new(Layout::from_dag(&dag(0, SEGMENTS)).unwrap()),
            brokers: Default::default(),
            controller: None,
            life: 0,
        };
        let core = StreamCore::new(config, view, Rng::new(seed), Now::default());
        let mut model = Model {
            core,
            rng: Rng::new(seed ^ 0xabcd),
            now: 0,
            stored: SEGMENTS.iter().map(|segment| (segment.0, Stored::default())).collect(),
            queue: VecDeque::new(),
            subscribes: VecDeque::new(),
            acks: VecDeque::new(),
            detaching: BTreeSet::new(),
            received: Vec::new(),
            covered: BTreeSet::new(),
            epoch: 0,
        };
        model.collect();
        model
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.next() % n
    }

    fn now(&self) -> Now {
        Now { mono: self.now, wall: self.now }
    }

    fn collect(&mut self) {
        loop {
            let effects = self.core.take_effects();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out(effect));
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Deliver(delivery) => self.queue.push_back(delivery),
            Effect::Subscribe(subscribe) => self.subscribes.push_back(subscribe),
            Effect::Own(Own::Ack { segment, generation, ack }) => {
                self.acks.push_back((segment, generation, ack))
            }
            Effect::Own(Own::Withdraw { segment, generation }) => {
                let gone: Vec<Position> = self
                    .queue
                    .iter()
                    .filter(|queued| queued.generation == generation)
                    .filter_map(|queued| queued.delivery.id.position())
                    .collect();
                self.queue.retain(|queued| queued.generation != generation);
                self.core.withdrawn(segment, generation, &gone, self.now());
            }
            Effect::Detach { segment } => {
                // A drain is over only when the broker knows everything that the application received here.
                let generation = self.core.segments[&segment].place.generation;
                for (of, _, entry, _) in self.received.iter().filter(|received| received.1 == segment) {
                    let known = self.stored[&segment].acked.contains(entry);
                    assert!(*of != generation || known, "closed with {segment}:{entry} open");
                }
                self.detaching.insert(segment);
            }
            Effect::Own(Own::Invalid { .. })
            | Effect::Transaction(_)
            | Effect::Leave
            | Effect::Doubt
            | Effect::Closed => {
                panic!("{effect:?}")
            }
            Effect::Register(_) | Effect::Lookup | Effect::Flow { .. } | Effect::Forget { .. } => {}
            Effect::Opened(result) => result.unwrap(),
        }
    }

    fn then(&mut self, call: impl FnOnce(&mut StreamCore, Now)) {
        let now = self.now();
        call(&mut self.core, now);
        self.collect();
    }

    fn assign(&mut self, modes: [Option<bool>; 2]) {
        let mode =
            |shared| if shared { Mode::Shared(vec![(0, 0x7fff), (0x8000, 0xffff)]) } else { Mode::Exclusive };
        let segments = (0..).zip(modes).filter_map(|(id, shared)| {
            let topic = format!("segment://public/default/t/{id}");
            Some((id, Assigned { topic, mode: mode(shared?), range: None }))
        });
        let assignment = Assignment { epoch: self.epoch, segments: segments.collect() };
        self.then(|core, now| match core.life().is_registered() {
            true => core.assignment_update(1, assignment, now),
            false => core.registered(1, "pulsar://c:1", assignment, now),
        });
    }

    fn answer_subscribe(&mut self, succeeds: bool) {
        let Some(Subscribe { segment, attempt, how: mode, .. }) = self.subscribes.pop_front() else { return };
        let generation = attempt.generation;
        if succeeds {
            let stored = self.stored.get_mut(&segment).unwrap();
            assert!(stored.attached.is_none(), "two consumers of one segment");
            stored.attached = Some((mode.is_shared(), BTreeSet::new()));
            self.then(|core, now| assert!(core.attached(segment, generation, "pulsar://b:1".into(), now)));
        } else {
            let error = Error::server(stc_proto::pulsar::ServerError::ConsumerBusy as i32, "");
            self.then(|core, now| core.attach_failed(segment, generation, error, now));
        }
    }

    /// The broker sends the next message of a segment.
    fn send(&mut self, segment: u64) -> bool {
        let stored = self.stored.get_mut(&segment).unwrap();
        let Some((shared, sent)) = &mut stored.attached else { return false };
        let mine = |entry: &u64| !*shared || entry.is_multiple_of(2);
        let next = (0..stored.entries).find(|e| mine(e) && !sent.contains(e) && !stored.acked.contains(e));
        let Some(entry) = next else { return false };
        sent.insert(entry);
        let metadata = MessageMetadata { producer_name: "p".into(), ..Default::default() };
        let payload = Entry::new(metadata, Bytes::new()).to_bytes();
        let message_id = MessageIdData { ledger_id: 5, entry_id: entry, ..Default::default() };
        let command = CommandMessage { consumer_id: 0, message_id, ..Default::default() };
        self.then(|core, _| core.message(segment, &command, payload, Now::default()));
        true
    }

    fn receive(&mut self) -> bool {
        let Some(StreamDelivery { generation, delivery }) = self.queue.pop_front() else { return false };
        let at = delivery.id.position().unwrap();
        self.received.push((generation, at.segment, at.entry, delivery.id));
        true
    }

    fn acknowledge(&mut self, index: usize) {
        let covered = self.received.iter().take(index + 1).map(|(_, segment, entry, _)| (*segment, *entry));
        self.covered.extend(covered);
        let id = self.received[index].3.clone();
        self.then(|core, now| core.acknowledge(&id, now).unwrap());
    }

    /// The broker takes the oldest acknowledgement; `answers` says whether its answer arrives.
    fn take_ack(&mut self, accepts: bool) {
        let Some((segment, generation, Ack { ticket, ids, cumulative })) = self.acks.pop_front() else {
            return;
        };
        if accepts {
            let stored = self.stored.get_mut(&segment).unwrap();
            let shared = stored.attached.as_ref().is_some_and(|(shared, _)| *shared);
            assert!(!(cumulative && shared), "cumulative on a shared segment");
            for id in ids {
                let first = if cumulative { 0 } else { id.entry_id };
                for entry in first..=id.entry_id {
                    if stored.acked.insert(entry) {
                        // Never for a message that the application has not acknowledged, or never received.
                        assert!(self.covered.contains(&(segment, entry)), "{segment}:{entry} is lost");
                    }
                }
            }
        }
        let result = if accepts { Ok(()) } else { Err(Error::unanswered("lost")) };
        self.then(|core, now| core.ack_answered(segment, generation, ticket, result, now));
    }

    fn detached(&mut self) {
        if let Some(segment) = self.detaching.pop_first() {
            // What was sent on the connection before the close is there before it.
            while self.acks.iter().any(|(of, ..)| *of == segment) {
                self.take_ack(true);
            }
            self.stored.get_mut(&segment).unwrap().attached = None;
            self.then(|core, now| core.detached(segment, now));
        }
    }

    fn disconnect(&mut self, segment: u64) {
        let Some(stored) = self.stored.get_mut(&segment).filter(|stored| stored.attached.is_some()) else {
            return;
        };
        stored.attached = None;
        self.detaching.remove(&segment);
        // What was under way is lost with the connection.
        let (lost, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.acks).into_iter().partition(|(of, ..)| *of == segment);
        self.acks = kept;
        self.then(|core, now| core.disconnected(segment, now));
        for (segment, generation, ack) in lost {
            let error = Err(Error::not_connected("lost"));
            self.then(|core, now| core.ack_answered(segment, generation, ack.ticket, error, now));
        }
    }

    fn pass(&mut self, ms: Millis) {
        self.now += ms;
        if self.core.next_deadline().is_some_and(|due| due <= self.now) {
            self.then(|core, now| core.tick(now));
        }
    }

    fn step(&mut self) {
        let segment = self.below(2);
        match self.below(24) {
            0 | 1 => {
                let mode = |n| [None, Some(false), Some(true), Some(true)][n as usize];
                let modes = [mode(self.below(4)), mode(self.below(4))];
                self.epoch += self.below(2);
                self.assign(modes);
            }
            2 => self.disconnect(segment),
            3 | 4 => {
                let succeeds = self.below(4) > 0;
                self.answer_subscribe(succeeds);
            }
            5..=7 => self.stored.get_mut(&segment).unwrap().entries += 1,
            8..=11 => drop(self.send(segment)),
            12..=14 => drop(self.receive()),
            15 | 16 => {
                if let Some(last) = self.received.len().checked_sub(1) {
                    // Mostly something recent, at times something from long ago.
                    let back = match self.below(4) {
                        0 => self.below(self.received.len() as u64) as usize,
                        _ => self.below(4) as usize,
                    };
                    self.acknowledge(last.saturating_sub(back));
                }
            }
            17..=19 => {
                let accepts = self.below(6) > 0;
                self.take_ack(accepts);
            }
            20 | 21 => self.detached(),
            22 => {
                // The other consumer gets on with its own entries.
                let stored = self.stored.get_mut(&segment).unwrap();
                let theirs =
                    (0..stored.entries).find(|entry| entry % 2 == 1 && !stored.acked.contains(entry));
                if let (Some((true, _)), Some(entry)) = (&stored.attached, theirs) {
                    stored.acked.insert(entry);
                }
            }
            _ => self.pass(150),
        }
    }

    /// From here on nothing goes wrong any more: everything is delivered, acknowledged and accepted.
    fn settle(&mut self) {
        self.assign([Some(false), Some(false)]);
        for _ in 0..200 {
            self.pass(1000);
            self.answer_subscribe(true);
            while self.send(0) || self.send(1) || self.receive() {}
            if let Some(last) = self.received.len().checked_sub(1) {
                self.acknowledge(last);
            }
            while !self.acks.is_empty() {
                self.take_ack(true);
            }
            self.detached();
        }
        for (id, stored) in &self.stored {
            assert_eq!(stored.acked.len() as u64, stored.entries, "segment {id} never got to its end");
        }
    }
}

#[test]
fn no_interleaving_loses_a_message_or_wedges_a_drain() {
    for seed in 0..400 {
        let result = std::panic::catch_unwind(|| {
            let mut model = Model::new(seed);
            model.assign([Some(false), None]);
            for _ in 0..300 {
                model.step();
            }
            model.settle();
        });
        assert!(result.is_ok(), "seed {seed}");
    }
}
