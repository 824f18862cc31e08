//! The producer stepped by hand: events in, effects out, time as a number.

use std::{collections::BTreeMap, sync::Arc};

use stc_proto::{Entry, TopicName, batch};

use super::*;
use crate::core::{
    layout::{Layout, tests::dag},
    outgoing::tests::message,
};

const WHOLE: &[(u64, u32, u32, bool)] = &[(0, 0, 0xffff, true)];
const SPLIT: &[(u64, u32, u32, bool)] =
    &[(0, 0, 0xffff, false), (1, 0, 0x7fff, true), (2, 0x8000, 0xffff, true)];

fn view(epoch: u64, segments: &[(u64, u32, u32, bool)]) -> View {
    View {
        topic: TopicName::parse("topic://public/default/t").unwrap(),
        layout: Arc::new(Layout::from_dag(&dag(epoch, segments)).unwrap()),
        brokers: Arc::new(segments.iter().map(|s| (s.0, format!("pulsar://b{}:1", s.0))).collect()),
        controller: None,
        life: 0,
    }
}

fn config() -> ProducerConfig {
    ProducerConfig {
        name: Some("p".into()),
        access: ProducerAccessMode::Shared,
        limits: BatchLimits { enabled: false, max_messages: 10, max_bytes: 1000, max_delay: 1 },
        compression: CompressionType::None,
        encryption: None,
        chunk_size: None,
        send_timeout: Some(30_000),
        initial_sequence_id: None,
        backoff: BackoffLimits { initial: 100, max: 1000 },
        limits_of_queue: QueueLimits::default(),
        deviance: Deviance::default(),
    }
}

/// A producer with a broker that stores what it gets, until a test says otherwise.
struct Bench {
    core: ProducerCore,
    now: u64,
    /// What each segment was sent: sequence id and values.
    sent: Vec<(u64, u64, Vec<String>)>,
    settled: BTreeMap<u64, Result<MessageId, Error>>,
    attaches: Vec<Attach>,
    detaches: Vec<u64>,
    others: Vec<Effect>,
}

impl Bench {
    fn new(config: ProducerConfig, view: View) -> Self {
        let mut bench = Bench {
            core: ProducerCore::new(config, view, Rng::new(1), Now::default()),
            now: 0,
            sent: Vec::new(),
            settled: BTreeMap::new(),
            attaches: Vec::new(),
            detaches: Vec::new(),
            others: Vec::new(),
        };
        bench.collect();
        bench
    }

    fn now(&self) -> Now {
        Now { mono: self.now, wall: 1_000_000 + self.now }
    }

    fn collect(&mut self) {
        for effect in self.core.take_effects() {
            match effect {
                Effect::Attach(attach) => self.attaches.push(attach),
                Effect::Transmit { segment, sequence_id, bytes, .. } => {
                    let entry = Entry::parse(bytes).unwrap();
                    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
                    let values = match entry.metadata.num_messages_in_batch {
                        Some(count) => batch::read(entry.payload, count as usize)
                            .unwrap()
                            .into_iter()
                            .map(|(_, payload)| text(payload))
                            .collect(),
                        None => vec![text(entry.payload)],
                    };
                    self.sent.push((segment, sequence_id, values));
                }
                Effect::Detach { segment } => self.detaches.push(segment),
                Effect::Settle { order, result } => {
                    assert!(self.settled.insert(order, result).is_none(), "send {order} settled twice");
                }
                other => self.others.push(other),
            }
        }
    }

    fn send(&mut self, key: Option<&str>) -> u64 {
        let order = self.core.send(message(self.core.next_order, key), self.now());
        self.collect();
        order
    }

    fn attach_next(&mut self) -> Attach {
        let attach = self.attaches.remove(0);
        let attached = Attached {
            name: attach.name.clone().unwrap_or_else(|| "made-up".into()),
            at: attach.address.clone().unwrap_or_default(),
            last_sequence_id: -1,
            max_size: 1000,
            ..Attached::default()
        };
        assert!(self.core.attached(attach.segment, attach.generation, attached, self.now()));
        self.collect();
        attach
    }

    fn step(&mut self, event: impl FnOnce(&mut ProducerCore, Now)) {
        let now = self.now();
        event(&mut self.core, now);
        self.collect();
    }

    /// Lets time pass until the next deadline.
    fn wait(&mut self) {
        self.now = self.core.next_deadline().expect("something is due");
        self.step(|core, now| core.tick(now));
    }

    fn values(&self, segment: u64) -> Vec<&str> {
        self.sent.iter().filter(|s| s.0 == segment).flat_map(|s| s.2.iter().map(String::as_str)).collect()
    }

    fn ok(&self, order: u64) -> &MessageId {
        self.settled[&order].as_ref().unwrap()
    }
}

fn terminated() -> Error {
    Error::new(Category::TopicTerminated, "terminated")
}

#[test]
fn a_segment_is_attached_on_its_first_send_and_gets_messages_in_call_order() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    assert!(bench.attaches.is_empty());
    for _ in 0..3 {
        bench.send(Some("k"));
    }
    assert_eq!((bench.attaches.len(), bench.sent.len()), (1, 0));
    let attach = bench.attach_next();
    assert_eq!(attach.topic, "segment://public/default/t/0000-ffff-0");
    assert_eq!((attach.name.as_deref(), attach.address.as_deref()), (Some("p-seg-0"), Some("pulsar://b0:1")));
    assert_eq!(bench.values(0), ["v0", "v1", "v2"]);
    assert_eq!(bench.sent.iter().map(|s| s.1).collect::<Vec<_>>(), [0, 1, 2]);
    bench.step(|core, now| core.receipt(0, 0, 7, 5, now));
    assert_eq!(bench.ok(0).position().unwrap().entry, 5);
    assert_eq!(bench.core.last_published(), Some(0));
}

#[test]
fn broker_close_first_then_the_layout() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    let keys = ["key-0", "key-3", "key-0", "key-3"]; // upper, lower half of the ring
    keys.iter().take(2).for_each(|key| {
        bench.send(Some(key));
    });
    bench.attach_next();
    bench.step(|core, now| core.closed_by_broker(0, None, now));
    bench.step(|core, now| core.send_failed(0, 0, terminated(), now));
    keys.iter().skip(2).for_each(|key| {
        bench.send(Some(key));
    });
    assert!(bench.settled.is_empty(), "nothing fails");
    bench.sent.clear();
    bench.step(|core, now| core.apply_layout(view(1, SPLIT), now));
    assert_eq!(bench.attaches.len(), 2, "both successors");
    bench.attach_next();
    bench.attach_next();
    assert_eq!(bench.values(1), ["v1", "v3"]);
    assert_eq!(bench.values(2), ["v0", "v2"]);
    assert!(bench.values(0).is_empty());
}

#[test]
fn the_layout_first_then_the_receipts_of_what_was_stored() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("key-0"));
    bench.send(Some("key-0"));
    bench.attach_next();
    bench.sent.clear();
    bench.step(|core, now| core.apply_layout(view(1, SPLIT), now));
    assert_eq!(bench.detaches, [0], "dropped before the broker closes it");
    bench.send(Some("key-0"));
    // The successor waits: what is in flight may be stored, and comes first.
    assert_eq!(bench.attaches.iter().map(|a| a.segment).collect::<Vec<_>>(), [2]);
    bench.attach_next();
    assert!(bench.sent.is_empty());
    bench.step(|core, now| core.receipt(0, 0, 7, 0, now));
    bench.step(|core, now| core.closed_by_broker(0, None, now));
    assert!(bench.sent.is_empty(), "the answer to the own close comes behind the receipts");
    bench.step(|core, now| core.detached(0, now));
    assert_eq!(bench.values(2), ["v1", "v2"], "the first one was stored");
    assert!(bench.ok(0).position().is_some());
}

#[test]
fn a_merge_brings_two_queues_back_into_call_order() {
    let mut bench = Bench::new(config(), view(1, SPLIT));
    for key in ["key-0", "key-3", "key-0", "key-3", "key-0"] {
        bench.send(Some(key));
    }
    bench.attach_next();
    bench.attach_next();
    bench.sent.clear();
    for segment in [1, 2] {
        bench.step(|core, now| core.closed_by_broker(segment, None, now));
    }
    let merged = [(1, 0, 0x7fff, false), (2, 0x8000, 0xffff, false), (3, 0, 0xffff, true)];
    bench.step(|core, now| core.apply_layout(view(2, &merged), now));
    bench.attach_next();
    assert_eq!(bench.values(3), ["v0", "v1", "v2", "v3", "v4"]);
    let ids: Vec<u64> = bench.sent.iter().map(|s| s.1).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[test]
fn a_segment_that_stays_gone_fails_the_send_after_ten_attempts() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("k"));
    let mut attempts = 0;
    while bench.settled.is_empty() {
        let attach = bench.attaches.remove(0);
        bench.step(|core, now| core.attach_failed(0, attach.generation, terminated(), now));
        attempts += 1;
        if bench.settled.is_empty() {
            bench.wait();
        }
    }
    assert_eq!(attempts, 11, "the first and ten more");
    assert_eq!(bench.now, 4000);
    assert_eq!(bench.settled[&0].as_ref().unwrap_err().category(), Category::TopicTerminated);
    // The producer is still good.
    bench.send(Some("k"));
    bench.wait();
    bench.attach_next();
    assert_eq!(bench.values(0), ["v1"]);
}

#[test]
fn after_a_lost_connection_entries_are_sent_again_as_they_were() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("a"));
    bench.send(Some("b"));
    bench.attach_next();
    bench.step(|core, now| core.receipt(0, 0, 7, 0, now));
    bench.step(|core, now| core.set_synced(false, now));
    bench.step(|core, now| core.disconnected(0, now));
    bench.send(Some("c"));
    bench.sent.clear();
    assert_eq!(
        bench.core.next_deadline(),
        Some(30_000),
        "the layout comes first; only the send timeout is due"
    );
    bench.step(|core, now| core.set_synced(true, now));
    bench.wait();
    let attach = bench.attach_next();
    assert_eq!(attach.epoch, 1);
    assert_eq!(bench.sent, [(0, 1, vec!["v1".to_owned()]), (0, 2, vec!["v2".to_owned()])]);
}

#[test]
fn a_segment_split_while_disconnected_gets_no_more_messages() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("key-0"));
    bench.attach_next();
    bench.step(|core, now| core.set_synced(false, now));
    bench.step(|core, now| core.disconnected(0, now));
    bench.sent.clear();
    bench.step(|core, now| core.apply_layout(view(1, SPLIT), now));
    bench.step(|core, now| core.set_synced(true, now));
    assert_eq!(bench.attach_next().segment, 2);
    assert_eq!(bench.values(2), ["v0"]);
}

#[test]
fn sends_time_out_and_are_not_sent_again() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("a"));
    bench.attach_next();
    bench.wait();
    assert_eq!(bench.now, 30_000);
    assert_eq!(bench.settled[&0].as_ref().unwrap_err().category(), Category::Timeout);
    bench.sent.clear();
    bench.step(|core, now| core.disconnected(0, now));
    bench.wait();
    bench.attach_next();
    assert!(bench.sent.is_empty());
}

#[test]
fn an_exclusive_producer_attaches_everywhere_one_after_the_other() {
    let mut bench =
        Bench::new(ProducerConfig { access: ProducerAccessMode::Exclusive, ..config() }, view(1, SPLIT));
    assert_eq!(bench.attaches.len(), 1);
    assert_eq!(bench.attach_next().segment, 1);
    assert!(bench.others.is_empty());
    assert_eq!(bench.attach_next().segment, 2);
    assert_eq!(bench.others, [Effect::Opened(Ok(()))]);
}

#[test]
fn a_collision_fails_the_opening() {
    let mut bench =
        Bench::new(ProducerConfig { access: ProducerAccessMode::Exclusive, ..config() }, view(0, WHOLE));
    let attach = bench.attaches.remove(0);
    let fenced = Error::server(stc_proto::pulsar::ServerError::ProducerFenced as i32, "taken");
    bench.step(|core, now| core.attach_failed(0, attach.generation, fenced.clone(), now));
    assert_eq!(bench.others, [Effect::Opened(Err(fenced))]);
}

#[test]
fn a_moved_segment_is_left_for_its_new_broker() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("a"));
    bench.attach_next();
    let mut moved = view(0, WHOLE);
    moved.brokers = Arc::new([(0, "pulsar://elsewhere:1".to_owned())].into());
    bench.step(|core, now| core.apply_layout(moved, now));
    assert_eq!(bench.detaches, [0]);
    bench.step(|core, now| core.receipt(0, 0, 7, 0, now));
    bench.step(|core, now| core.detached(0, now));
    assert_eq!(bench.attaches[0].address.as_deref(), Some("pulsar://elsewhere:1"));
}

#[test]
fn messages_without_a_segment_wait_for_a_layout_and_then_fail() {
    let gap = &[(0, 0, 0x7fff, true)];
    let mut bench = Bench::new(config(), view(0, gap));
    bench.send(Some("key-0"));
    bench.send(Some("key-3"));
    bench.attach_next();
    assert_eq!(bench.values(0), ["v1"]);
    bench.step(|core, now| core.receipt(0, 0, 7, 0, now));
    while !bench.settled.contains_key(&0) {
        bench.wait();
    }
    assert_eq!(bench.settled[&0].as_ref().unwrap_err().category(), Category::Unknown);
    assert_eq!(bench.now, 4500);
    bench.send(Some("key-0"));
    bench.step(|core, now| core.apply_layout(view(1, SPLIT), now));
    assert_eq!(bench.attach_next().segment, 2);
    assert_eq!(bench.values(2), ["v2"]);
}

#[test]
fn batches_wait_for_company_and_flush_does_not() {
    let mut config = config();
    config.limits.enabled = true;
    let mut bench = Bench::new(config, view(0, WHOLE));
    bench.core.observe_buckets();
    bench.send(Some("a"));
    bench.attach_next();
    assert!(bench.sent.is_empty());
    bench.send(Some("b"));
    bench.wait();
    assert_eq!(bench.sent, [(0, 0, vec!["v0".to_owned(), "v1".to_owned()])]);
    bench.step(|core, now| core.receipt(0, 0, 7, 3, now));
    let places: Vec<_> = (0..2).map(|order| bench.ok(order).position().unwrap().batch_index).collect();
    assert_eq!(places, [0, 1]);
    bench.send(Some("c"));
    let mut before = 0;
    bench.step(|core, now| before = core.flush(now));
    assert_eq!(bench.sent.len(), 2);
    assert!(!bench.core.settled_before(before));
    bench.step(|core, now| core.receipt(0, 2, 7, 4, now));
    assert!(bench.core.settled_before(before));
}

#[test]
fn ids_of_the_application_raise_those_that_follow() {
    let mut bench = Bench::new(ProducerConfig { initial_sequence_id: Some(4), ..config() }, view(0, WHOLE));
    bench.send(Some("a"));
    bench.attach_next();
    let mut own = message(1, Some("a"));
    own.sequence_id = Some(1000);
    bench.step(|core, now| {
        core.send(own, now);
    });
    bench.send(Some("a"));
    assert_eq!(bench.sent.iter().map(|s| s.1).collect::<Vec<_>>(), [5, 1000, 1001]);
}

#[test]
fn a_returning_producer_goes_on_above_what_the_broker_remembers() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("a"));
    let attach = bench.attaches.remove(0);
    let attached =
        Attached { name: "p-seg-0".into(), last_sequence_id: 41, max_size: 99, ..Default::default() };
    assert!(bench.core.attached(0, attach.generation, attached, bench.now()));
    bench.collect();
    assert_eq!(bench.sent[0].1, 42);
    assert_eq!(bench.core.last_published(), Some(41));
}

#[test]
fn close_completes_what_is_pending_and_then_detaches() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("a"));
    bench.attach_next();
    bench.step(|core, now| core.close(now));
    assert!(bench.detaches.is_empty() && bench.others.is_empty());
    bench.step(|core, now| core.receipt(0, 0, 7, 0, now));
    assert_eq!(bench.detaches, [0]);
    bench.step(|core, now| core.detached(0, now));
    assert_eq!(bench.others, [Effect::Forget { segment: 0 }, Effect::Closed]);
    let late = bench.send(Some("b"));
    assert_eq!(bench.settled[&late].as_ref().unwrap_err().category(), Category::AlreadyClosed);
}

#[test]
fn an_answer_to_an_abandoned_attachment_is_refused() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("key-0"));
    let stale = bench.attaches.remove(0);
    bench.step(|core, now| core.apply_layout(view(1, SPLIT), now));
    assert!(!bench.core.attached(0, stale.generation, Attached::default(), bench.now()));
    assert_eq!(bench.attach_next().segment, 2);
    assert_eq!(bench.values(2), ["v0"]);
}

#[test]
fn a_failed_send_leaves_the_producer_and_its_neighbours_alone() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("a"));
    bench.send(Some("b"));
    bench.attach_next();
    let refused = Error::server(stc_proto::pulsar::ServerError::NotAllowedError as i32, "no");
    bench.step(|core, now| core.send_failed(0, 0, refused, now));
    bench.step(|core, now| core.receipt(0, 1, 7, 0, now));
    assert_eq!(bench.settled[&0].as_ref().unwrap_err().category(), Category::NotSupported);
    assert!(bench.settled[&1].is_ok());
}

#[test]
fn a_message_that_is_too_large_fails_alone() {
    let mut bench = Bench::new(config(), view(0, WHOLE));
    bench.send(Some("a"));
    bench.attach_next();
    let mut large = message(1, Some("a"));
    large.payload = Bytes::from(vec![0; 1001]);
    bench.step(|core, now| {
        core.send(large, now);
    });
    assert_eq!(bench.settled[&1].as_ref().unwrap_err().category(), Category::InvalidConfiguration);
    bench.send(Some("a"));
    assert_eq!(bench.values(0), ["v0", "v2"]);
}

fn limited(max_pending: usize, fails: bool) -> ProducerConfig {
    let limits = QueueLimits { max_pending: Some(max_pending), fails, memory: None };
    ProducerConfig { limits_of_queue: limits, ..config() }
}

#[test]
fn a_full_queue_fails_sends_and_takes_them_again_later() {
    let mut bench = Bench::new(limited(2, true), view(0, WHOLE));
    bench.send(None);
    bench.send(None);
    let third = bench.send(None);
    let error = bench.settled[&third].clone().unwrap_err();
    assert_eq!(error.category(), Category::ProducerQueueFull);
    bench.attach_next();
    assert_eq!(bench.sent.len(), 2);
    bench.core.receipt(0, 0, 7, 0, bench.now());
    bench.collect();
    let fourth = bench.send(None);
    assert!(!bench.settled.contains_key(&fourth));
    assert_eq!(bench.sent.len(), 3);
}

#[test]
fn sends_wait_for_room_in_their_order() {
    let mut bench = Bench::new(limited(2, false), view(0, WHOLE));
    for _ in 0..5 {
        bench.send(Some("k"));
    }
    bench.attach_next();
    assert_eq!(bench.sent.len(), 2);
    for sequence_id in 0..5 {
        bench.core.receipt(0, sequence_id, 7, sequence_id, bench.now());
        bench.collect();
    }
    let order: Vec<u64> = bench.sent.iter().map(|(_, sequence_id, _)| *sequence_id).collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
    assert!(bench.settled.values().all(Result::is_ok));
}

#[test]
fn sends_that_wait_for_room_time_out_and_are_flushed_and_aborted() {
    let mut bench = Bench::new(limited(1, false), view(0, WHOLE));
    bench.send(None);
    bench.now = 10_000;
    let second = bench.send(None);
    let third = bench.send(None);
    let before = bench.core.flush(bench.now());
    bench.now = 40_000;
    bench.core.tick(bench.now());
    bench.collect();
    assert_eq!(bench.settled[&second].clone().unwrap_err().category(), Category::Timeout);
    assert!(bench.core.settled_before(before), "{third} timed out as well");
    bench.send(None);
    let last = bench.send(None);
    bench.core.abort(&Error::closed("producer"));
    bench.collect();
    assert_eq!(bench.settled[&last].clone().unwrap_err().category(), Category::AlreadyClosed);
}

#[test]
fn a_send_waits_for_memory_that_others_have() {
    let memory = Memory::new(10, || {});
    let limits = QueueLimits { max_pending: None, fails: false, memory: Some(memory.clone()) };
    let others = memory.reserve(10);
    let mut bench = Bench::new(ProducerConfig { limits_of_queue: limits, ..config() }, view(0, WHOLE));
    bench.send(None);
    assert!(bench.core.waits_for_memory());
    assert!(bench.attaches.is_empty());
    drop(others);
    bench.core.tick(bench.now());
    bench.collect();
    assert!(!bench.core.waits_for_memory());
    bench.attach_next();
    bench.core.receipt(0, 0, 7, 0, bench.now());
    bench.collect();
    assert!(memory.reserve(1).is_some_and(|share| Arc::strong_count(&share) == 1), "all was given back");
}
