//! The checkpoint consumer stepped by hand: events in, effects out, time as a number.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use stc_proto::{
    Entry, HashRange, TopicName, batch,
    pulsar::{
        CommandGetLastMessageIdResponse, CommandMessage, MessageIdData, MessageMetadata,
        SingleMessageMetadata,
    },
};

use super::*;
use crate::core::{
    Millis,
    assignment::{Assigned, Assignment, Mode},
    backoff::BackoffLimits,
    error::Error,
    layout::{Layout, tests::dag},
};

type Subscribe = consumer::Subscribe<Reading>;

const ONE: &[(u64, u32, u32, bool)] = &[(0, 0, 0xffff, true)];
const SPLIT: &[(u64, u32, u32, bool)] =
    &[(0, 0, 0xffff, false), (1, 0, 0x7fff, true), (2, 0x8000, 0xffff, true)];
const MERGED: &[(u64, u32, u32, bool)] =
    &[(0, 0, 0xffff, false), (1, 0, 0x7fff, false), (2, 0x8000, 0xffff, false), (3, 0, 0xffff, true)];

fn view(epoch: u64, segments: &[(u64, u32, u32, bool)]) -> View {
    View {
        topic: TopicName::parse("topic://public/default/t").unwrap(),
        layout: Arc::new(Layout::from_dag(&dag(epoch, segments)).unwrap()),
        brokers: Arc::default(),
        controller: None,
        life: 0,
    }
}

fn mark(entry: u64) -> Mark {
    Mark { ledger: 5, entry, batch_index: -1 }
}

/// A consumer with the receive queue in front of it; tests play the brokers.
struct Bench {
    core: CheckpointCore,
    now: Millis,
    queue: VecDeque<CheckpointDelivery>,
    received: Marks,
    subscribes: VecDeque<Subscribe>,
    asked: VecDeque<(u64, u64)>,
    log: Vec<String>,
}

impl Bench {
    fn new(start: Start, grouped: bool, segments: &[(u64, u32, u32, bool)]) -> Self {
        let config = CheckpointConfig {
            start,
            grouped,
            receiver_queue: 100,
            life: LifeConfig {
                encryption: None,
                open_limit: 30_000,
                backoff: BackoffLimits { initial: 100, max: 1000 },
                deviance: Deviance::default(),
            },
        };
        let core = CheckpointCore::new(config, view(0, segments), Rng::new(1), Now::default());
        let (queue, received, subscribes, asked, log) = Default::default();
        let mut bench = Bench { core, now: 0, queue, received, subscribes, asked, log };
        bench.collect();
        bench
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
            for effect in effects {
                let line = match effect {
                    Effect::Deliver(delivery) => {
                        self.queue.push_back(delivery);
                        continue;
                    }
                    Effect::Subscribe(subscribe) => {
                        self.subscribes.push_back(subscribe);
                        continue;
                    }
                    Effect::Own(Own::Ask { segment, generation }) => {
                        self.asked.push_back((segment, generation));
                        continue;
                    }
                    Effect::Own(Own::Withdraw { segment }) => {
                        self.queue.retain(|queued| queued.delivery.segment != segment);
                        let received = self.received.get(&segment).copied();
                        self.core.withdrawn(segment, received);
                        continue;
                    }
                    Effect::Own(Own::Unmark { segment }) => {
                        self.received.remove(&segment);
                        continue;
                    }
                    Effect::Own(Own::Mark { segment, mark }) => {
                        self.received.insert(segment, mark);
                        continue;
                    }
                    Effect::Register(_) => "register".into(),
                    Effect::Lookup => "lookup".into(),
                    Effect::Doubt => "doubt".into(),
                    Effect::Leave => "leave".into(),
                    Effect::Flow { segment, permits } => format!("flow {segment} {permits}"),
                    Effect::Detach { segment } => format!("detach {segment}"),
                    Effect::Forget { segment } => format!("forget {segment}"),
                    Effect::Opened(Ok(())) => "opened".into(),
                    Effect::Opened(Err(error)) => format!("failed {}", error.category()),
                    Effect::Transaction(effect) => panic!("{effect:?}"),
                    Effect::Closed => "closed".into(),
                };
                self.log.push(line);
            }
        }
    }

    fn then(&mut self, call: impl FnOnce(&mut CheckpointCore, Now)) -> Vec<String> {
        let before = self.log.len();
        let now = self.now();
        call(&mut self.core, now);
        self.collect();
        self.log[before..].to_vec()
    }

    fn attach(&mut self) -> Subscribe {
        let subscribe = self.subscribes.pop_front().expect("a SUBSCRIBE is under way");
        let (segment, generation) = (subscribe.segment, subscribe.attempt.generation);
        self.then(|core, now| assert!(core.attached(segment, generation, "pulsar://b:1".into(), now)));
        subscribe
    }

    /// The broker tells the last message of the segment that was asked about first.
    fn last(&mut self, segment: u64, entry: Option<u64>) -> Vec<String> {
        let (asked, generation) = self.asked.pop_front().expect("GET_LAST_MESSAGE_ID is under way");
        assert_eq!(asked, segment);
        let entry_id = entry.unwrap_or(u64::MAX);
        let last_message_id =
            MessageIdData { ledger_id: 5, entry_id, batch_index: Some(-1), ..Default::default() };
        let answer = CommandGetLastMessageIdResponse { last_message_id, ..Default::default() };
        self.then(|core, now| core.last_message(segment, generation, Ok(answer), now))
    }

    fn message(&mut self, segment: u64, entry: u64) {
        let metadata = MessageMetadata { producer_name: "p".into(), ..Default::default() };
        let payload = Entry::new(metadata, Bytes::from(format!("{segment}:{entry}"))).to_bytes();
        self.deliver(segment, entry, payload);
    }

    /// One of the two chunks of a message.
    fn chunk(&mut self, segment: u64, entry: u64, uuid: &str, index: i32) {
        let metadata = MessageMetadata {
            uuid: Some(uuid.into()),
            chunk_id: Some(index),
            num_chunks_from_msg: Some(2),
            total_chunk_msg_size: Some(4),
            ..Default::default()
        };
        self.deliver(segment, entry, Entry::new(metadata, Bytes::from(format!("{uuid}{index}"))).to_bytes());
    }

    fn batch(&mut self, segment: u64, entry: u64, count: i32) {
        let mut payload = bytes::BytesMut::new();
        for index in 0..count {
            let text = format!("{segment}:{entry}.{index}");
            batch::append(&mut payload, SingleMessageMetadata::default(), text.as_bytes());
        }
        let metadata = MessageMetadata {
            producer_name: "p".into(),
            num_messages_in_batch: Some(count),
            ..Default::default()
        };
        self.deliver(segment, entry, Entry::new(metadata, payload.freeze()).to_bytes());
    }

    fn deliver(&mut self, segment: u64, entry: u64, payload: Bytes) {
        let message_id = MessageIdData { ledger_id: 5, entry_id: entry, ..Default::default() };
        let command = CommandMessage { consumer_id: 0, message_id, ..Default::default() };
        self.then(|core, now| core.message(segment, &command, payload, now));
    }

    fn receive_one(&mut self) -> Option<String> {
        let CheckpointDelivery { generation, mark, delivery } = self.queue.pop_front()?;
        self.received.insert(delivery.segment, mark);
        self.then(|core, now| core.consumed(delivery.segment, generation, now));
        Some(String::from_utf8(delivery.message.payload.to_vec()).unwrap())
    }

    fn receive(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.receive_one()).collect()
    }

    fn layout(&mut self, epoch: u64, segments: &[(u64, u32, u32, bool)]) -> Vec<String> {
        self.then(|core, now| core.apply_layout(view(epoch, segments), now))
    }

    /// An assignment of these segments of a layout.
    fn assigned(&mut self, ids: &[u64], segments: &[(u64, u32, u32, bool)]) -> Vec<String> {
        let assigned = |id: &u64| {
            let (_, start, end, _) = segments.iter().find(|s| s.0 == *id).unwrap();
            let range = HashRange::new(*start as u16, *end as u16);
            (
                *id,
                Assigned { topic: format!("segment://public/default/t/{id}"), mode: Mode::Exclusive, range },
            )
        };
        let assignment = Assignment { epoch: 0, segments: ids.iter().map(assigned).collect() };
        self.then(|core, now| match core.life().is_registered() {
            true => core.assignment_update(1, assignment, now),
            false => core.registered(1, "pulsar://c:1", assignment, now),
        })
    }

    fn pass(&mut self, ms: Millis) {
        let until = self.now + ms;
        while let Some(due) = self.core.next_deadline().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.then(|core, now| core.tick(now));
        }
        self.now = until;
    }
}

// ---- where it starts ----

#[test]
fn from_the_oldest_message_everything_is_read() {
    let mut bench = Bench::new(Start::Earliest, false, ONE);
    assert_eq!(bench.attach().how.from, From::Behind(None));
    assert_eq!(bench.log, ["flow 0 100", "opened"]);
    bench.message(0, 0);
    assert_eq!(bench.receive(), ["0:0"]);
    assert_eq!(bench.received, Marks::from([(0, mark(0))]));
    assert!(bench.asked.is_empty());
}

#[test]
fn latest_becomes_a_position_before_anything_is_read() {
    let mut bench = Bench::new(Start::Latest, false, SPLIT);
    for _ in 0..3 {
        assert_eq!(bench.attach().how.from, From::Latest);
    }
    assert!(bench.log.is_empty());
    bench.last(0, Some(9));
    bench.last(1, None);
    assert_eq!(bench.last(2, Some(4)).last().unwrap(), "opened");
    // Published between the subscribe and the question: part of what latest passes over.
    bench.message(2, 4);
    bench.message(2, 5);
    assert_eq!(bench.receive(), ["2:5"]);
    assert_eq!(bench.received, Marks::from([(0, mark(9)), (2, mark(5))]));
    bench.then(|core, now| core.disconnected(2, now));
    bench.pass(100);
    assert_eq!(bench.attach().how.from, From::Behind(Some(mark(5))), "concrete from then on");
}

#[test]
fn what_is_created_after_a_start_at_latest_is_read_from_its_beginning() {
    let mut bench = Bench::new(Start::Latest, false, ONE);
    bench.attach();
    bench.last(0, Some(3));
    bench.layout(1, SPLIT);
    bench.last(0, Some(3));
    assert_eq!(bench.attach().how.from, From::Behind(None));
}

#[test]
fn a_restored_position_goes_on_exactly_behind_it() {
    let start = Start::Behind(Marks::from([(0, Mark { ledger: 5, entry: 7, batch_index: 1 })]));
    let mut bench = Bench::new(start.clone(), false, ONE);
    assert_eq!(Start::Behind(bench.received.clone()), start, "before anything is received");
    bench.attach();
    // The broker begins with the entry itself.
    bench.batch(0, 7, 3);
    bench.message(0, 8);
    assert_eq!(bench.receive(), ["0:7.2", "0:8"]);
}

// ---- parents before children ----

#[test]
fn a_child_waits_until_the_application_received_everything_of_its_parent() {
    let mut bench = Bench::new(Start::Earliest, false, ONE);
    bench.attach();
    bench.message(0, 0);
    bench.layout(1, SPLIT);
    assert!(bench.subscribes.is_empty());
    bench.last(0, Some(1));
    bench.receive();
    assert!(bench.subscribes.is_empty(), "entry 1 is still to come");
    bench.message(0, 1);
    assert!(bench.subscribes.is_empty(), "it is not received");
    bench.receive();
    assert_eq!(bench.subscribes.len(), 2);
}

#[test]
fn an_empty_parent_holds_up_nothing() {
    let mut bench = Bench::new(Start::Earliest, false, SPLIT);
    assert_eq!(bench.attach().segment, 0);
    bench.last(0, None);
    assert_eq!(bench.subscribes.len(), 2);
}

#[test]
fn a_grandchild_waits_behind_an_empty_parent() {
    let mut bench = Bench::new(Start::Earliest, false, MERGED);
    assert_eq!(bench.attach().segment, 0);
    assert!(bench.subscribes.is_empty());
    bench.last(0, Some(0));
    bench.message(0, 0);
    bench.receive();
    assert_eq!(bench.attach().segment, 1);
    assert_eq!(bench.attach().segment, 2);
    bench.last(1, None);
    assert!(bench.subscribes.is_empty(), "one of two parents");
    bench.last(2, None);
    assert_eq!(bench.attach().segment, 3);
}

/// The parent between them is pruned already; the layout no longer says how they are related.
#[test]
fn a_grandchild_waits_for_its_grandparent_alone() {
    let mut bench = Bench::new(Start::Earliest, false, &[(0, 0, 0xffff, false), (3, 0, 0xffff, true)]);
    assert_eq!(bench.attach().segment, 0);
    assert!(bench.subscribes.is_empty());
    bench.last(0, None);
    assert_eq!(bench.attach().segment, 3);
}

#[test]
fn restored_behind_the_end_of_a_parent_it_goes_on_with_the_children() {
    let start = Start::Behind(Marks::from([(0, mark(3)), (1, mark(0))]));
    let mut bench = Bench::new(start, false, SPLIT);
    bench.attach();
    bench.message(0, 3);
    assert!(bench.queue.is_empty());
    bench.last(0, Some(3));
    let (first, second) = (bench.attach(), bench.attach());
    assert_eq!((first.segment, first.how.from), (1, From::Behind(Some(mark(0)))));
    assert_eq!((second.segment, second.how.from), (2, From::Behind(None)), "absent: from its beginning");
}

#[test]
fn a_question_that_nobody_has_any_more_waits_for_nothing() {
    let mut bench = Bench::new(Start::Earliest, false, ONE);
    bench.attach();
    bench.then(|core, now| core.ask_again(now));
    let (segment, generation) = bench.asked.pop_front().expect("GET_LAST_MESSAGE_ID is under way");
    let error = Err(Error::unanswered("late"));
    bench.then(|core, now| core.last_message(segment, generation, error, now));
    assert_eq!(bench.core.next_deadline(), None);
}

#[test]
fn an_unanswered_question_is_asked_again() {
    let mut bench = Bench::new(Start::Earliest, false, SPLIT);
    bench.attach();
    let (segment, generation) = bench.asked.pop_front().unwrap();
    let error = Err(Error::unanswered("late"));
    bench.then(|core, now| core.last_message(segment, generation, error, now));
    bench.pass(100);
    bench.last(0, None);
    assert_eq!(bench.subscribes.len(), 2);
}

/// Sealed between the question and the answer: the answer is not the end.
#[test]
fn an_answer_from_before_the_seal_is_not_the_end() {
    let mut bench = Bench::new(Start::Latest, false, ONE);
    bench.attach();
    bench.layout(1, SPLIT);
    bench.last(0, Some(3));
    let children = bench.subscribes.len();
    bench.last(0, Some(4));
    assert_eq!((children, bench.subscribes.len()), (0, 0));
    bench.message(0, 4);
    bench.receive();
    assert_eq!(bench.subscribes.len(), 2);
}

// ---- losses ----

#[test]
fn after_a_loss_it_goes_on_behind_what_came() {
    let mut bench = Bench::new(Start::Earliest, false, ONE);
    bench.attach();
    bench.message(0, 0);
    bench.message(0, 1);
    bench.receive_one();
    bench.then(|core, now| core.disconnected(0, now));
    bench.pass(100);
    assert_eq!(bench.attach().how.from, From::Behind(Some(mark(1))));
    bench.message(0, 1);
    bench.message(0, 2);
    assert_eq!(bench.receive(), ["0:1", "0:2"]);
}

#[test]
fn after_each_loss_it_goes_on_at_an_incomplete_message() {
    let mut bench = Bench::new(Start::Earliest, false, ONE);
    let lose = |bench: &mut Bench| {
        bench.then(|core, now| core.disconnected(0, now));
        bench.pass(1000);
        bench.attach().how.from
    };
    bench.attach();
    bench.chunk(0, 0, "a", 0);
    bench.message(0, 1);
    bench.chunk(0, 2, "b", 0);
    for _ in 0..2 {
        assert_eq!(lose(&mut bench), From::Behind(Some(mark(0))), "nothing came between the losses");
    }
    bench.chunk(0, 0, "a", 0);
    bench.message(0, 1);
    bench.chunk(0, 2, "b", 0);
    bench.chunk(0, 3, "a", 1);
    assert_eq!(lose(&mut bench), From::Behind(Some(mark(2))));
    bench.chunk(0, 2, "b", 0);
    bench.chunk(0, 3, "a", 1);
    bench.chunk(0, 4, "b", 1);
    assert_eq!(lose(&mut bench), From::Behind(Some(mark(4))), "all of it is read");
    assert_eq!(bench.receive(), ["0:1", "a0a1", "b0b1"]);
}

#[test]
fn a_pruned_segment_is_read_to_its_end_and_leaves_the_position() {
    let mut bench = Bench::new(Start::Earliest, false, SPLIT);
    bench.attach();
    bench.last(0, Some(1));
    bench.message(0, 0);
    bench.layout(2, &SPLIT[1..]);
    assert!(bench.subscribes.is_empty());
    bench.message(0, 1);
    bench.receive();
    assert_eq!(bench.log.last().unwrap(), "detach 0");
    bench.then(|core, now| core.detached(0, now));
    assert!(bench.received.is_empty());
    assert_eq!(bench.subscribes.len(), 2);
}

// ---- groups ----

#[test]
fn a_member_reads_its_share_parents_first() {
    let mut bench = Bench::new(Start::Earliest, true, SPLIT);
    assert_eq!(bench.log, ["register"]);
    bench.assigned(&[0, 2], SPLIT);
    assert_eq!(bench.attach().segment, 0);
    assert!(bench.subscribes.is_empty(), "handed out together");
    bench.last(0, None);
    assert_eq!(bench.attach().segment, 2);
}

/// The assignment is here before the layout that it was made for.
#[test]
fn the_ranges_of_the_assignment_tell_parents_too() {
    let mut bench = Bench::new(Start::Earliest, true, ONE);
    bench.assigned(&[0, 1, 2], SPLIT);
    assert_eq!(bench.attach().segment, 0);
    assert!(bench.subscribes.is_empty());
    bench.layout(1, SPLIT);
    bench.last(0, None);
    assert_eq!(bench.subscribes.len(), 2);
}

#[test]
fn a_lost_share_is_taken_back_and_one_that_returns_goes_on() {
    let mut bench = Bench::new(Start::Earliest, true, &SPLIT[1..]);
    bench.assigned(&[1, 2], SPLIT);
    bench.attach();
    bench.attach();
    bench.message(1, 0);
    bench.message(1, 1);
    bench.receive_one();
    assert_eq!(
        bench.assigned(&[2], SPLIT),
        ["detach 1"],
        "at once: nothing is acknowledged, so nothing is waited for"
    );
    assert!(bench.queue.is_empty());
    bench.message(1, 2);
    assert!(bench.queue.is_empty());
    // Back before the close is answered.
    bench.assigned(&[1, 2], SPLIT);
    bench.then(|core, now| core.detached(1, now));
    assert_eq!(bench.attach().how.from, From::Behind(Some(mark(0))));
    assert_eq!(bench.received, Marks::from([(1, mark(0))]));
}

/// A parent that is read is taken out of the assignment; a checkpoint still says that it is read, until it is pruned.
#[test]
fn what_was_read_and_handed_back_stays_in_the_position() {
    let mut bench = Bench::new(Start::Earliest, true, SPLIT);
    bench.assigned(&[0], SPLIT);
    bench.attach();
    bench.last(0, Some(0));
    bench.message(0, 0);
    bench.receive();
    bench.assigned(&[1, 2], SPLIT);
    bench.then(|core, now| core.detached(0, now));
    assert_eq!(bench.received, Marks::from([(0, mark(0))]));
    bench.layout(2, &SPLIT[1..]);
    assert!(bench.received.is_empty());
}

#[test]
fn a_close_leaves_the_group_first() {
    let mut bench = Bench::new(Start::Earliest, true, ONE);
    bench.assigned(&[0], ONE);
    bench.attach();
    assert_eq!(bench.then(|core, now| core.close(now)), ["leave"]);
    assert_eq!(bench.then(|core, now| core.left(now)), ["detach 0"]);
    assert_eq!(bench.then(|core, now| core.detached(0, now)), ["forget 0", "closed"]);
}

#[test]
fn a_close_without_a_group_keeps_the_position() {
    let mut bench = Bench::new(Start::Earliest, false, ONE);
    bench.attach();
    bench.message(0, 0);
    bench.receive();
    assert_eq!(bench.then(|core, now| core.close(now)), ["detach 0"]);
    bench.then(|core, now| core.detached(0, now));
    assert_eq!(bench.received, Marks::from([(0, mark(0))]));
}
