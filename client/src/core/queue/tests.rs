//! The queue consumer stepped by hand: events in, effects out, time as a number.

use std::sync::Arc;

use stc_proto::{
    Entry, TopicName, batch,
    pulsar::{CompressionType, EncryptionKeys, MessageMetadata, SingleMessageMetadata},
};

use super::*;
use crate::core::{
    backoff::BackoffLimits,
    deviant::Deviance,
    layout::{Layout, tests::dag},
};

type Subscribe = consumer::Subscribe<()>;

const TWO: &[(u64, u32, u32, bool)] =
    &[(0, 0, 0x7fff, false), (1, 0x8000, 0xffff, true), (2, 0, 0x7fff, true)];

fn view(epoch: u64, segments: &[(u64, u32, u32, bool)]) -> View {
    View {
        topic: TopicName::parse("topic://public/default/t").unwrap(),
        layout: Arc::new(Layout::from_dag(&dag(epoch, segments)).unwrap()),
        brokers: Arc::new(segments.iter().map(|s| (s.0, format!("pulsar://b{}:1", s.0))).collect()),
        controller: None,
        life: 0,
    }
}

struct Bench {
    core: QueueCore,
    now: u64,
    subscribes: Vec<Subscribe>,
    delivered: Vec<Delivery>,
    others: Vec<Effect>,
}

impl Bench {
    fn new(segments: &[(u64, u32, u32, bool)]) -> Self {
        Bench::with_policy(segments, None)
    }

    fn with_policy(segments: &[(u64, u32, u32, bool)], max_redeliveries: Option<u32>) -> Self {
        let config = QueueConfig {
            receiver_queue: 4,
            redelivery_delay: 100,
            max_redeliveries,
            life: LifeConfig {
                encryption: None,
                open_limit: 30_000,
                backoff: BackoffLimits { initial: 100, max: 1000 },
                deviance: Deviance::default(),
            },
        };
        let core = QueueCore::new(config, view(0, segments), Rng::new(1), Now::default());
        let mut bench =
            Bench { core, now: 0, subscribes: Vec::new(), delivered: Vec::new(), others: Vec::new() };
        bench.collect();
        bench
    }

    /// A consumer whose segments are all subscribed.
    fn open(segments: &[(u64, u32, u32, bool)]) -> Self {
        Bench::new(segments).opened()
    }

    fn opened(mut self) -> Self {
        let bench = &mut self;
        while !bench.subscribes.is_empty() {
            bench.subscribe_next();
        }
        bench.others.clear();
        self
    }

    fn now(&self) -> Now {
        Now { mono: self.now, wall: self.now }
    }

    fn collect(&mut self) {
        for effect in self.core.take_effects() {
            match effect {
                Effect::Subscribe(subscribe) => self.subscribes.push(subscribe),
                Effect::Deliver(delivery) => self.delivered.push(delivery),
                other => self.others.push(other),
            }
        }
    }

    fn step(&mut self, event: impl FnOnce(&mut QueueCore, Now)) {
        let now = self.now();
        event(&mut self.core, now);
        self.collect();
    }

    fn subscribe_next(&mut self) -> Subscribe {
        let subscribe = self.subscribes.remove(0);
        let at = subscribe.attempt.address.clone().unwrap_or_default();
        assert!(self.core.attached(subscribe.segment, subscribe.attempt.generation, at, self.now()));
        self.collect();
        subscribe
    }

    fn message(&mut self, segment: u64, entry: u64, values: &[&str], ack_set: &[i64]) {
        self.message_again(segment, entry, values, ack_set, None);
    }

    fn message_again(
        &mut self,
        segment: u64,
        entry: u64,
        values: &[&str],
        ack_set: &[i64],
        redelivery_count: Option<u32>,
    ) {
        let mut metadata = MessageMetadata { producer_name: "p".into(), ..Default::default() };
        let payload = match values {
            [value] => Bytes::copy_from_slice(value.as_bytes()),
            values => {
                metadata.num_messages_in_batch = Some(values.len() as i32);
                let mut payload = Default::default();
                for value in values {
                    batch::append(&mut payload, SingleMessageMetadata::default(), value.as_bytes());
                }
                payload.freeze()
            }
        };
        let ack_set = ack_set.to_vec();
        let command =
            CommandMessage { message_id: id(entry), ack_set, redelivery_count, ..Default::default() };
        self.entry(segment, &command, Entry::new(metadata, payload));
    }

    fn entry(&mut self, segment: u64, command: &CommandMessage, entry: Entry) {
        self.step(|core, now| core.message(segment, command, entry.to_bytes(), now));
    }

    /// The two chunks of a message, in entries 3 and 4.
    fn chunks(&mut self, segment: u64, metadata: &MessageMetadata, redelivery_count: Option<u32>) {
        for chunk in 0..2 {
            let metadata = MessageMetadata {
                uuid: Some("u".into()),
                chunk_id: Some(chunk),
                num_chunks_from_msg: Some(2),
                total_chunk_msg_size: Some(4),
                ..metadata.clone()
            };
            let message_id = id(3 + chunk as u64);
            let command = CommandMessage { message_id, redelivery_count, ..Default::default() };
            self.entry(segment, &command, Entry::new(metadata, Bytes::from_static(b"ab")));
        }
    }

    /// Entry 3, a batch of three messages that cannot be decrypted.
    fn sealed(&mut self, segment: u64, redelivery_count: Option<u32>) {
        let key = EncryptionKeys { key: "k".into(), ..Default::default() };
        let metadata = MessageMetadata {
            num_messages_in_batch: Some(3),
            encryption_keys: vec![key],
            ..Default::default()
        };
        let command = CommandMessage { message_id: id(3), redelivery_count, ..Default::default() };
        self.entry(segment, &command, Entry::new(metadata, Bytes::from_static(b"sealed")));
    }

    fn values(&self) -> Vec<&[u8]> {
        self.delivered.iter().map(|d| &d.message.payload[..]).collect()
    }

    fn take_others(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.others)
    }
}

fn id(entry: u64) -> MessageIdData {
    MessageIdData { ledger_id: 7, entry_id: entry, ..Default::default() }
}

fn ack(segment: u64, id: MessageIdData) -> Effect {
    Effect::Own(Own::Ack { segment, ids: vec![id], cumulative: false, invalid: None })
}

#[test]
fn every_segment_is_subscribed_before_the_consumer_is_ready() {
    let mut bench = Bench::new(TWO);
    let segments: Vec<u64> = bench.subscribes.iter().map(|s| s.segment).collect();
    assert_eq!(segments, [0, 1, 2], "sealed ones too");
    bench.subscribe_next();
    bench.subscribe_next();
    assert!(!bench.others.contains(&Effect::Opened(Ok(()))));
    bench.subscribe_next();
    assert_eq!(bench.others.last(), Some(&Effect::Opened(Ok(()))));
    assert!(bench.others.contains(&Effect::Flow { segment: 1, permits: 4 }));
}

#[test]
fn a_refused_segment_fails_the_subscribe() {
    let mut bench = Bench::new(TWO);
    let subscribe = bench.subscribes.remove(1);
    let busy = Error::new(Category::ConsumerBusy, "exclusive");
    bench.step(|core, now| core.attach_failed(1, subscribe.attempt.generation, busy.clone(), now));
    assert_eq!(bench.others.last(), Some(&Effect::Opened(Err(busy))));
}

#[test]
fn acknowledgements_go_to_the_segment_of_the_message() {
    let mut bench = Bench::open(TWO);
    bench.message(1, 3, &["a"], &[]);
    bench.message(2, 4, &["b"], &[]);
    assert_eq!(bench.values(), [b"a", b"b"]);
    for (index, expected) in [(1, ack(2, id(4))), (0, ack(1, id(3)))] {
        let message = bench.delivered[index].id.clone();
        bench.step(|core, now| core.acknowledge(position(&message).unwrap(), now));
        assert_eq!(bench.take_others(), [expected]);
    }
    let latest = MessageId::latest();
    assert_eq!(position(&latest).unwrap_err().category(), Category::InvalidConfiguration);
}

#[test]
fn members_of_a_batch_are_acknowledged_one_by_one() {
    let mut bench = Bench::open(TWO);
    bench.message(1, 3, &["a", "b", "c"], &[0b110]);
    assert_eq!(bench.values(), [b"b", b"c"], "a was acknowledged before");
    let (b, c) = (bench.delivered[0].id.clone(), bench.delivered[1].id.clone());
    bench.step(|core, now| core.acknowledge(position(&c).unwrap(), now));
    let partial = MessageIdData { ack_set: vec![0b010], batch_size: Some(3), ..id(3) };
    assert_eq!(bench.take_others(), [ack(1, partial)]);
    bench.step(|core, now| core.acknowledge(position(&b).unwrap(), now));
    assert_eq!(bench.take_others(), [ack(1, id(3))]);
}

#[test]
fn acknowledgements_that_follow_one_another_go_together() {
    let mut bench = Bench::open(TWO);
    bench.message(1, 3, &["a", "b", "c"], &[]);
    bench.message(1, 4, &["d"], &[]);
    bench.message(2, 5, &["e"], &[]);
    let ids: Vec<Position> = bench.delivered.iter().map(|one| position(&one.id).unwrap()).collect();
    bench.step(|core, now| [0, 1, 3, 4, 2].into_iter().for_each(|at| core.acknowledge(ids[at], now)));
    let open = MessageIdData { ack_set: vec![0b100], batch_size: Some(3), ..id(3) };
    let together = Own::Ack { segment: 1, ids: vec![open, id(4)], cumulative: false, invalid: None };
    assert_eq!(bench.take_others(), [Effect::Own(together), ack(2, id(5)), ack(1, id(3))]);
}

#[test]
fn one_frame_names_no_entry_twice() {
    let mut bench = Bench::open(TWO);
    bench.message(1, 3, &["a", "b"], &[]);
    bench.message(1, 4, &["c", "d"], &[]);
    let ids: Vec<Position> = bench.delivered.iter().map(|one| position(&one.id).unwrap()).collect();
    bench.step(|core, now| [0, 2, 1, 3].into_iter().for_each(|at| core.acknowledge(ids[at], now)));
    let together = Own::Ack { segment: 1, ids: vec![id(3), id(4)], cumulative: false, invalid: None };
    assert_eq!(bench.take_others(), [Effect::Own(together)]);
}

#[test]
fn permits_come_back_by_halves_of_the_queue() {
    let mut bench = Bench::open(TWO);
    bench.step(|core, _| core.consumed(1, 1));
    assert!(bench.others.is_empty());
    bench.step(|core, _| core.consumed(1, 1));
    assert_eq!(bench.take_others(), [Effect::Flow { segment: 1, permits: 2 }]);
    // What the application does not get gives its permits back at once.
    bench.message(1, 9, &["a", "b", "c"], &[0b100]);
    assert_eq!(bench.take_others(), [Effect::Flow { segment: 1, permits: 2 }]);
}

#[test]
fn what_cannot_be_decrypted_gives_back_all_its_permits() {
    let mut bench = Bench::open(TWO);
    bench.sealed(1, None);
    assert_eq!(bench.delivered.len(), 1);
    assert_eq!(bench.take_others(), [Effect::Flow { segment: 1, permits: 2 }]);
}

#[test]
fn a_rejected_message_is_asked_for_after_the_delay_and_comes_alone() {
    let mut bench = Bench::open(TWO);
    bench.message(1, 3, &["a", "b"], &[]);
    let rejected = bench.delivered[1].id.clone();
    bench.step(|core, now| core.reject(&rejected, now).unwrap());
    assert!(bench.others.is_empty());
    bench.now = bench.core.next_deadline().unwrap();
    assert_eq!(bench.now, 100);
    bench.step(|core, now| core.tick(now));
    assert_eq!(bench.take_others(), [Effect::Own(Own::Redeliver { segment: 1, ids: vec![id(3)] })]);
    bench.message(1, 3, &["a", "b"], &[]);
    assert_eq!(bench.values(), [b"a", b"b", b"b"], "a is with the application already");
}

#[test]
fn a_new_layout_adds_and_removes_subscriptions() {
    let mut bench = Bench::open(&[(0, 0, 0xffff, true)]);
    let split = [(0, 0, 0xffff, false), (1, 0, 0x7fff, true), (2, 0x8000, 0xffff, true)];
    bench.step(|core, now| core.apply_layout(view(1, &split), now));
    assert_eq!(bench.subscribes.iter().map(|s| s.segment).collect::<Vec<_>>(), [1, 2]);
    bench.subscribe_next();
    bench.subscribe_next();
    bench.others.clear();
    bench.step(|core, now| core.apply_layout(view(2, &split[1..]), now));
    assert_eq!(bench.take_others(), [Effect::Detach { segment: 0 }]);
    bench.step(|core, now| core.detached(0, now));
    assert!(bench.take_others().contains(&Effect::Forget { segment: 0 }));
}

#[test]
fn an_ended_segment_is_left_once_all_of_it_is_acknowledged() {
    let mut bench = Bench::open(TWO);
    bench.message(0, 3, &["a"], &[]);
    bench.step(|core, now| core.end_of_topic(0, now));
    assert!(bench.others.is_empty());
    let message = bench.delivered[0].id.clone();
    bench.step(|core, now| core.acknowledge(position(&message).unwrap(), now));
    assert_eq!(bench.take_others(), [ack(0, id(3)), Effect::Detach { segment: 0 }]);
    bench.step(|core, now| core.detached(0, now));
    bench.step(|core, now| core.apply_layout(view(0, TWO), now));
    assert!(bench.subscribes.is_empty(), "not again while the layout still has it");
}

#[test]
fn after_a_lost_connection_the_segment_is_subscribed_again_and_held_acknowledgements_go_first() {
    let mut bench = Bench::open(TWO);
    bench.message(1, 3, &["a"], &[]);
    let message = bench.delivered[0].id.clone();
    bench.step(|core, now| core.disconnected(1, now));
    assert_eq!(bench.take_others(), [Effect::Own(Own::Purge { segment: 1 })]);
    bench.step(|core, now| core.acknowledge(position(&message).unwrap(), now));
    assert!(bench.take_others().is_empty());
    bench.now = bench.core.next_deadline().unwrap();
    bench.step(|core, now| core.tick(now));
    bench.subscribe_next();
    assert_eq!(bench.take_others(), [ack(1, id(3)), Effect::Flow { segment: 1, permits: 4 }]);
}

#[test]
fn a_corrupt_entry_is_acknowledged_with_the_reason() {
    let mut bench = Bench::open(TWO);
    let command = CommandMessage { message_id: id(3), ..Default::default() };
    let payload = Bytes::from_static(&[0x0e, 0x01, 1, 2, 3, 4, 5]);
    bench.step(|core, now| core.message(1, &command, payload, now));
    let reason = Some(ValidationError::ChecksumMismatch);
    assert_eq!(
        bench.take_others(),
        [Effect::Own(Own::Ack { segment: 1, ids: vec![id(3)], cumulative: false, invalid: reason })]
    );
    assert!(bench.delivered.is_empty());
}

#[test]
fn of_a_corrupt_message_all_parts_are_acknowledged() {
    let mut bench = Bench::open(TWO);
    let zlib = MessageMetadata {
        compression: Some(CompressionType::Zlib as i32),
        uncompressed_size: Some(9),
        ..Default::default()
    };
    bench.chunks(1, &zlib, None);
    let reason = Some(ValidationError::DecompressionError);
    let corrupt = Own::Ack { segment: 1, ids: vec![id(4)], cumulative: false, invalid: reason };
    assert!(bench.take_others().contains(&Effect::Own(corrupt)));
    bench.now = bench.core.next_deadline().expect("the other part is to be let go of");
    bench.step(|core, now| core.tick(now));
    assert_eq!(bench.take_others(), [ack(1, id(3))]);
}

#[test]
fn close_detaches_everything_and_acknowledges_nothing() {
    let mut bench = Bench::open(TWO);
    bench.message(1, 3, &["a"], &[]);
    bench.step(|core, now| core.close(now));
    let detaches: Vec<Effect> = (0..3).map(|segment| Effect::Detach { segment }).collect();
    assert_eq!(bench.take_others(), detaches);
    for segment in 0..3 {
        bench.step(|core, now| core.detached(segment, now));
    }
    assert_eq!(bench.others.last(), Some(&Effect::Closed));
}

/// A consumer whose messages may come again once.
fn with_letters() -> Bench {
    Bench::with_policy(TWO, Some(1)).opened()
}

/// The values of the messages that are to be sent to the dead-letter topic, and their identifiers.
fn buried(effects: Vec<Effect>) -> Vec<(Bytes, MessageId)> {
    let letter = |effect| match effect {
        Effect::Own(Own::Bury(delivery)) => Some((delivery.message.payload, delivery.id)),
        _ => None,
    };
    effects.into_iter().filter_map(letter).collect()
}

fn refused() -> Result<(), Error> {
    Err(Error::new(Category::NotFound, "no dead-letter topic"))
}

#[test]
fn a_message_beyond_the_limit_is_buried_and_acknowledged_after_that() {
    let mut bench = with_letters();
    bench.message_again(1, 3, &["a"], &[], Some(1));
    assert_eq!(bench.values(), [b"a"], "as often as the policy permits");
    bench.message_again(1, 3, &["a"], &[], Some(2));
    assert_eq!(bench.values().len(), 1);
    let letters = buried(bench.take_others());
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].0, "a");
    bench.step(|core, now| core.buried(&letters[0].1, Ok(()), now));
    // Its permit came back when it came; the queue holds four.
    assert_eq!(bench.take_others(), [ack(1, id(3))]);
}

#[test]
fn of_a_batch_only_the_rejected_member_is_buried() {
    let mut bench = with_letters();
    bench.message(1, 3, &["a", "b"], &[]);
    let rejected = bench.delivered[1].id.clone();
    bench.step(|core, now| core.reject(&rejected, now).unwrap());
    bench.message_again(1, 3, &["a", "b"], &[], Some(2));
    let letters = buried(bench.take_others());
    assert_eq!(letters.iter().map(|(value, _)| &value[..]).collect::<Vec<_>>(), [b"b"]);
    bench.step(|core, now| core.buried(&letters[0].1, Ok(()), now));
    let partial = MessageIdData { ack_set: vec![0b01], batch_size: Some(2), ..id(3) };
    assert_eq!(bench.take_others(), [ack(1, partial)]);
}

#[test]
fn what_cannot_be_buried_comes_again_later_each_time() {
    let mut bench = with_letters();
    let mut waits = Vec::new();
    for count in 2..5 {
        bench.message_again(1, 3, &["a"], &[], Some(count));
        let letters = buried(bench.take_others());
        bench.step(|core, now| core.buried(&letters[0].1, refused(), now));
        assert!(bench.take_others().is_empty(), "nothing is acknowledged");
        let due = bench.core.next_deadline().unwrap();
        waits.push(due - bench.now);
        bench.now = due;
        bench.step(|core, now| core.tick(now));
        let again = Effect::Own(Own::Redeliver { segment: 1, ids: vec![id(3)] });
        assert!(bench.take_others().contains(&again));
    }
    assert!(waits.is_sorted() && waits[2] > waits[0], "{waits:?}");
}

#[test]
fn what_cannot_be_buried_comes_again_with_all_its_parts() {
    let mut bench = with_letters();
    bench.chunks(1, &MessageMetadata::default(), Some(2));
    let letters = buried(bench.take_others());
    assert_eq!(letters[0].0, "abab");
    bench.step(|core, now| core.buried(&letters[0].1, refused(), now));
    bench.now = bench.core.next_deadline().unwrap();
    bench.step(|core, now| core.tick(now));
    let again = Own::Redeliver { segment: 1, ids: vec![id(3), id(4)] };
    assert_eq!(bench.take_others(), [Effect::Own(again)]);
    bench.chunks(1, &MessageMetadata::default(), Some(3));
    assert_eq!(buried(bench.take_others())[0].0, "abab");
}

#[test]
fn what_cannot_be_decrypted_is_not_buried() {
    let mut bench = with_letters();
    bench.sealed(1, Some(2));
    assert!(buried(bench.take_others()).is_empty());
    assert!(bench.delivered[0].message.failure.is_some());
}

#[test]
fn what_is_on_its_way_is_not_buried_twice() {
    let mut bench = with_letters();
    bench.message_again(1, 3, &["a"], &[], Some(2));
    let letters = buried(bench.take_others());
    bench.step(|core, now| core.disconnected(1, now));
    bench.now = bench.core.next_deadline().unwrap();
    bench.step(|core, now| core.tick(now));
    bench.subscribe_next();
    bench.take_others();
    bench.message_again(1, 3, &["a"], &[], Some(2));
    assert!(buried(bench.take_others()).is_empty());
    bench.step(|core, now| core.buried(&letters[0].1, Ok(()), now));
    assert!(bench.take_others().contains(&ack(1, id(3))));
}

#[test]
fn a_close_waits_for_what_is_on_its_way() {
    let mut bench = with_letters();
    bench.message_again(1, 3, &["a"], &[], Some(2));
    let letters = buried(bench.take_others());
    bench.step(|core, now| core.close(now));
    assert_eq!(bench.take_others(), [Effect::Detach { segment: 0 }, Effect::Detach { segment: 2 }]);
    bench.step(|core, now| core.buried(&letters[0].1, Ok(()), now));
    assert_eq!(bench.take_others(), [ack(1, id(3)), Effect::Detach { segment: 1 }]);
}
