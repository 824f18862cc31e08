//! The stream consumer stepped by hand: events in, effects out, time as a number. Every race between an assignment, a
//! delivery, an acknowledgement and a loss is a sequence of calls here.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use stc_proto::{
    Entry, TopicName, batch,
    pulsar::{CommandMessage, MessageMetadata, SingleMessageMetadata},
};

use super::*;
use crate::core::{
    assignment::{Assigned, Assignment},
    backoff::BackoffLimits,
    error::Error,
    layout::{Layout, tests::dag},
    message_id::{MessageId, Position},
    place::Attempt,
};

type Subscribe = consumer::Subscribe<Mode>;

const SEGMENTS: &[(u64, u32, u32, bool)] = &[(0, 0, 0x7fff, true), (1, 0x8000, 0xffff, true)];

fn view(controller: &str) -> View {
    View {
        topic: TopicName::parse("topic://public/default/t").unwrap(),
        layout: Arc::new(Layout::from_dag(&dag(0, SEGMENTS)).unwrap()),
        brokers: Arc::new(SEGMENTS.iter().map(|s| (s.0, format!("pulsar://b{}:1", s.0))).collect()),
        controller: Some(controller.into()),
        life: 0,
    }
}

/// An assignment in the notation of the tests: a segment, and whether it is shared.
fn assignment(epoch: u64, segments: &[(u64, bool)]) -> Assignment {
    let mode =
        |shared| if shared { Mode::Shared(vec![(0, 0x7fff), (0x8000, 0xffff)]) } else { Mode::Exclusive };
    let assigned = |(id, shared): &(u64, bool)| {
        (
            *id,
            Assigned { topic: format!("segment://public/default/t/{id}"), mode: mode(*shared), range: None },
        )
    };
    Assignment { epoch, segments: segments.iter().map(assigned).collect() }
}

/// A consumer with the receive queue and the application in front of it, and nothing behind it: tests play the brokers.
struct Bench {
    core: StreamCore,
    now: Millis,
    queue: VecDeque<StreamDelivery>,
    subscribes: VecDeque<Subscribe>,
    acks: VecDeque<(u64, u64, Ack)>,
    /// Everything else, in a short form.
    log: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        Bench::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut StreamConfig)) -> Self {
        let mut config = StreamConfig {
            consumer: 7,
            receiver_queue: 100,
            group_time: 0,
            life: LifeConfig {
                encryption: None,
                open_limit: 30_000,
                backoff: BackoffLimits { initial: 100, max: 1000 },
                deviance: Deviance::default(),
            },
        };
        change(&mut config);
        let core = StreamCore::new(config, view("pulsar://c:1"), Rng::new(1), Now::default());
        let (queue, subscribes, acks, log) = Default::default();
        let mut bench = Bench { core, now: 0, queue, subscribes, acks, log };
        bench.collect();
        bench
    }

    /// A consumer that is registered and attached to what it is assigned.
    fn open(segments: &[(u64, bool)]) -> Self {
        let mut bench = Bench::new();
        bench.registered(1, assignment(0, segments));
        bench.attach_all();
        assert_eq!(bench.log.last().unwrap(), "opened");
        bench.log.clear();
        bench
    }

    fn now(&self) -> Now {
        Now { mono: self.now, wall: self.now }
    }

    /// Carries out what can be carried out here.
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
                    Effect::Own(Own::Ack { segment, generation, ack }) => {
                        self.acks.push_back((segment, generation, ack));
                        continue;
                    }
                    Effect::Own(Own::Withdraw { segment, generation }) => {
                        let (gone, kept): (Vec<_>, Vec<_>) =
                            self.queue.drain(..).partition(|queued| queued.generation == generation);
                        self.queue = kept.into();
                        let places: Vec<Position> =
                            gone.iter().filter_map(|queued| queued.delivery.id.position()).collect();
                        self.core.withdrawn(segment, generation, &places, self.now());
                        continue;
                    }
                    Effect::Register(register) => {
                        format!("register {}", register.controller.unwrap_or_default())
                    }
                    Effect::Lookup => "lookup".into(),
                    Effect::Doubt => "doubt".into(),
                    Effect::Leave => "leave".into(),
                    Effect::Flow { segment, permits } => format!("flow {segment} {permits}"),
                    Effect::Own(Own::Invalid { segment, .. }) => format!("invalid {segment}"),
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

    /// Calls the core and carries out what follows. Gives what was logged.
    fn then(&mut self, call: impl FnOnce(&mut StreamCore, Now)) -> Vec<String> {
        let before = self.log.len();
        let now = self.now();
        call(&mut self.core, now);
        self.collect();
        self.log[before..].to_vec()
    }

    fn registered(&mut self, generation: u64, assignment: Assignment) -> Vec<String> {
        self.then(|core, now| core.registered(generation, "pulsar://c:1", assignment, now))
    }

    fn assigned(&mut self, epoch: u64, segments: &[(u64, bool)]) -> Vec<String> {
        let update = assignment(epoch, segments);
        self.then(|core, now| core.assignment_update(1, update, now))
    }

    /// The broker answers the next SUBSCRIBE.
    fn attach(&mut self) -> Subscribe {
        let subscribe = self.subscribes.pop_front().expect("a SUBSCRIBE is under way");
        let (segment, generation) = (subscribe.segment, subscribe.attempt.generation);
        let at = format!("pulsar://b{segment}:1");
        self.then(|core, now| assert!(core.attached(segment, generation, at, now)));
        subscribe
    }

    fn attach_all(&mut self) {
        while !self.subscribes.is_empty() {
            self.attach();
        }
    }

    fn detached(&mut self, segment: u64) -> Vec<String> {
        self.then(|core, now| core.detached(segment, now))
    }

    /// MESSAGE with an entry of one message.
    fn message(&mut self, segment: u64, entry: u64) {
        let metadata = MessageMetadata { producer_name: "p".into(), ..Default::default() };
        let payload = Entry::new(metadata, Bytes::from(format!("{segment}:{entry}"))).to_bytes();
        self.deliver(segment, entry, payload);
    }

    /// MESSAGE with a batch.
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
        self.then(|core, _| core.message(segment, &command, payload, Now::default()));
    }

    /// The application receives everything. Gives the values and the last identifier.
    fn receive(&mut self) -> (Vec<String>, MessageId) {
        let mut values = Vec::new();
        let mut last = MessageId::earliest();
        while let Some((value, id)) = self.receive_one() {
            values.push(value);
            last = id;
        }
        (values, last)
    }

    fn receive_one(&mut self) -> Option<(String, MessageId)> {
        let StreamDelivery { generation, delivery } = self.queue.pop_front()?;
        self.then(|core, _| core.consumed(delivery.segment, generation, 1));
        Some((String::from_utf8(delivery.message.payload.to_vec()).unwrap(), delivery.id))
    }

    fn ack(&mut self, id: &MessageId) -> Vec<String> {
        self.then(|core, now| core.acknowledge(id, now).unwrap())
    }

    /// The acknowledgements that were sent and are not looked at yet: `segment: entries`, `<=` when cumulative.
    fn sent(&mut self) -> Vec<String> {
        let acks = self.acks.iter().map(|(segment, _, ack)| {
            let sign = if ack.cumulative { "<=" } else { "" };
            let ids = ack.ids.iter().map(|id| match id.ack_set.as_slice() {
                [] => id.entry_id.to_string(),
                words => format!("{}{words:?}", id.entry_id),
            });
            format!("{segment}: {sign}{}", ids.collect::<Vec<_>>().join(" "))
        });
        acks.collect()
    }

    /// The brokers answer everything that was sent.
    fn accept(&mut self) -> Vec<String> {
        let before = self.log.len();
        for (segment, generation, ack) in std::mem::take(&mut self.acks) {
            self.then(|core, now| core.ack_answered(segment, generation, ack.ticket, Ok(()), now));
        }
        self.log[before..].to_vec()
    }

    fn pass(&mut self, ms: Millis) -> Vec<String> {
        let before = self.log.len();
        let until = self.now + ms;
        while let Some(due) = self.core.next_deadline().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.then(|core, now| core.tick(now));
        }
        self.now = until;
        self.log[before..].to_vec()
    }
}

fn lost() -> Error {
    Error::not_connected("lost")
}

fn busy() -> Error {
    Error::server(stc_proto::pulsar::ServerError::ConsumerBusy as i32, "")
}

// ---- opening ----

#[test]
fn it_opens_when_everything_assigned_is_attached() {
    let mut bench = Bench::new();
    assert_eq!(bench.log, ["register pulsar://c:1"]);
    bench.registered(1, assignment(0, &[(0, false), (1, true)]));
    let first = bench.attach();
    assert_eq!(
        (first.segment, first.how, first.attempt.address.as_deref()),
        (0, Mode::Exclusive, Some("pulsar://b0:1"))
    );
    assert!(!bench.log.contains(&"opened".to_owned()));
    assert!(bench.attach().how.is_shared());
    assert_eq!(bench.log.last().unwrap(), "opened");
}

#[test]
fn a_consumer_without_a_share_is_open_too() {
    let mut bench = Bench::new();
    assert_eq!(bench.registered(1, assignment(0, &[])), ["opened"]);
}

#[test]
fn an_owner_that_drains_is_waited_for_up_to_the_limit() {
    let mut bench = Bench::new();
    bench.registered(1, assignment(0, &[(0, false)]));
    let mut attempts = 0;
    while !bench.log.iter().any(|line| line.starts_with("failed")) {
        if let Some(Subscribe { segment, attempt: Attempt { generation, .. }, .. }) =
            bench.subscribes.pop_front()
        {
            attempts += 1;
            bench.then(|core, now| core.attach_failed(segment, generation, busy(), now));
        }
        bench.pass(50);
    }
    assert_eq!(bench.log.last().unwrap(), "failed ConsumerBusy");
    assert!(attempts > 10 && bench.now >= 30_000, "{attempts} attempts in {} ms", bench.now);
}

#[test]
fn an_error_that_no_retry_helps_fails_opening() {
    let mut bench = Bench::new();
    bench.registered(1, assignment(0, &[(0, false)]));
    let Subscribe { segment, attempt: Attempt { generation, .. }, .. } =
        bench.subscribes.pop_front().unwrap();
    let error = Error::server(stc_proto::pulsar::ServerError::IncompatibleSchema as i32, "");
    let log = bench.then(|core, now| core.attach_failed(segment, generation, error, now));
    assert_eq!(log, ["failed IncompatibleSchema"]);
}

// ---- cumulative acknowledgement ----

#[test]
fn an_acknowledgement_advances_every_segment_up_to_what_was_delivered_by_then() {
    let mut bench = Bench::open(&[(0, false), (1, false)]);
    bench.message(0, 0);
    bench.message(1, 0);
    bench.message(0, 1);
    bench.message(1, 1);
    let ids: Vec<MessageId> = std::iter::from_fn(|| bench.receive_one()).map(|(_, id)| id).collect();
    bench.ack(&ids[2]);
    assert_eq!(bench.sent(), ["0: <=1", "1: <=0"]);
    bench.accept();
    bench.ack(&ids[0]);
    assert!(bench.sent().is_empty(), "nothing is new in it");
    bench.ack(&ids[3]);
    assert_eq!(bench.sent(), ["1: <=1"]);
}

#[test]
fn on_a_shared_segment_what_is_open_is_named_one_by_one() {
    let mut bench = Bench::open(&[(0, true), (1, false)]);
    for entry in [0, 3, 4, 8] {
        bench.message(0, entry);
    }
    bench.message(1, 0);
    let ids: Vec<MessageId> = std::iter::from_fn(|| bench.receive_one()).map(|(_, id)| id).collect();
    bench.ack(&ids[1]);
    bench.ack(&ids[4]);
    assert_eq!(bench.sent(), ["0: 0 3", "0: 4 8", "1: <=0"]);
}

#[test]
fn an_older_message_that_came_later_is_not_covered() {
    let mut bench = Bench::open(&[(0, true)]);
    bench.message(0, 9);
    bench.message(0, 2);
    let ids: Vec<MessageId> = std::iter::from_fn(|| bench.receive_one()).map(|(_, id)| id).collect();
    bench.ack(&ids[0]);
    assert_eq!(bench.sent(), ["0: 9"]);
    bench.ack(&ids[1]);
    assert_eq!(bench.sent()[1..], ["0: 2"]);
}

#[test]
fn a_part_of_a_batch_is_acknowledged_by_its_ack_set() {
    for (shared, expected) in [(false, ["0: <=0[6]", "0: <=0"]), (true, ["0: 0[6]", "0: 0"])] {
        let mut bench = Bench::open(&[(0, shared)]);
        bench.batch(0, 0, 3);
        let ids: Vec<MessageId> = std::iter::from_fn(|| bench.receive_one()).map(|(_, id)| id).collect();
        bench.ack(&ids[0]);
        bench.ack(&ids[2]);
        assert_eq!(bench.sent(), expected);
    }
}

#[test]
fn an_acknowledgement_that_is_not_accepted_is_sent_again() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.message(0, 0);
    let (_, id) = bench.receive();
    bench.ack(&id);
    let (segment, generation, ack) = bench.acks.pop_front().unwrap();
    bench.then(|core, now| core.ack_answered(segment, generation, ack.ticket, Err(lost()), now));
    assert!(bench.sent().is_empty());
    bench.pass(100);
    assert_eq!(bench.sent(), ["0: <=0"]);
}

#[test]
fn acknowledgements_are_collected_when_that_is_configured() {
    let mut bench = Bench::with(|config| config.group_time = 50);
    bench.registered(1, assignment(0, &[(0, false)]));
    bench.attach_all();
    for entry in 0..3 {
        bench.message(0, entry);
        let (_, id) = bench.receive();
        bench.ack(&id);
    }
    bench.pass(49);
    assert!(bench.sent().is_empty());
    bench.pass(1);
    assert_eq!(bench.sent(), ["0: <=2"]);
    bench.message(0, 3);
    let (_, id) = bench.receive();
    bench.ack(&id);
    bench.then(|core, now| core.close(now));
    assert_eq!(bench.sent()[1..], ["0: <=3"], "explicit, so it is not lost in a close");
}

#[test]
fn an_identifier_from_bytes_acknowledges_by_its_positions() {
    let mut bench = Bench::open(&[(0, false), (1, true)]);
    bench.message(0, 0);
    bench.message(1, 0);
    bench.message(1, 2);
    let (_, id) = bench.receive();
    let stored = id.to_bytes();
    // Another life of the application: nothing of this is known.
    let mut bench = Bench::open(&[(0, false), (1, true)]);
    bench.message(1, 0);
    bench.ack(&MessageId::from_bytes(&stored).unwrap());
    assert_eq!(bench.sent(), ["0: <=0", "1: 0 2"]);
}

// ---- assignments ----

#[test]
fn unchanged_segments_are_left_alone() {
    let mut bench = Bench::open(&[(0, false), (1, true)]);
    assert!(bench.assigned(0, &[(0, false), (1, true)]).is_empty());
    assert!(bench.assigned(3, &[(0, false), (1, true)]).is_empty());
    assert!(bench.assigned(2, &[]).is_empty(), "older");
    assert!(bench.subscribes.is_empty());
}

#[test]
fn a_dropped_segment_is_drained_first() {
    let mut bench = Bench::open(&[(0, false), (1, false)]);
    bench.message(0, 0);
    bench.message(0, 1);
    bench.message(0, 2);
    let (_, first) = bench.receive_one().unwrap();
    let (_, second) = bench.receive_one().unwrap();
    assert!(bench.assigned(0, &[(1, false)]).is_empty(), "two messages are with the application");
    assert!(bench.queue.is_empty(), "what nobody received is withdrawn");
    // Under way when the drain began: fenced off.
    bench.message(0, 3);
    assert!(bench.queue.is_empty());
    assert!(bench.ack(&first).is_empty());
    assert!(bench.accept().is_empty(), "one is left");
    assert!(bench.ack(&second).is_empty());
    assert_eq!(bench.sent(), ["0: <=1"], "to the consumer that is being drained");
    assert_eq!(bench.accept(), ["detach 0"]);
    assert_eq!(bench.detached(0), ["forget 0"]);
    bench.ack(&second);
    assert!(bench.sent().is_empty(), "another consumer's now");
}

#[test]
fn a_drain_waits_for_the_broker_to_accept() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.message(0, 0);
    let (_, id) = bench.receive();
    bench.ack(&id);
    assert!(bench.assigned(0, &[]).is_empty(), "sent, not accepted");
    let (segment, generation, ack) = bench.acks.pop_front().unwrap();
    let refused =
        |core: &mut StreamCore, now| core.ack_answered(segment, generation, ack.ticket, Err(lost()), now);
    assert!(bench.then(refused).is_empty());
    assert!(bench.pass(100).is_empty());
    assert_eq!(bench.accept(), ["detach 0"]);
}

#[test]
fn a_flip_drains_and_subscribes_in_the_other_mode() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.message(0, 0);
    let (_, id) = bench.receive();
    assert!(bench.assigned(0, &[(0, true)]).is_empty());
    assert!(bench.subscribes.is_empty());
    bench.ack(&id);
    assert_eq!(bench.accept(), ["detach 0"]);
    assert!(bench.subscribes.is_empty(), "not before it is detached");
    bench.detached(0);
    let subscribe = bench.attach();
    assert!(subscribe.how.is_shared() && subscribe.attempt.fresh);
    bench.message(0, 1);
    assert_eq!(bench.receive().0, ["0:1"]);
}

/// Exclusive, shared, exclusive, shared again: nothing of an earlier mode holds up a later drain, or lets one go early.
#[test]
fn nothing_of_one_generation_counts_in_the_next() {
    let mut bench = Bench::open(&[(0, false)]);
    for (entry, shared) in (0..).zip([true, false, true, false]) {
        bench.message(0, entry);
        let (_, id) = bench.receive();
        assert!(bench.assigned(0, &[(0, shared)]).is_empty(), "the application has a message");
        bench.ack(&id);
        assert_eq!(bench.accept(), ["detach 0"]);
        bench.detached(0);
        bench.attach();
    }
    // And with nothing delivered at all.
    assert_eq!(bench.assigned(0, &[(0, true)]), ["detach 0"]);
}

#[test]
fn a_flip_back_during_the_drain_is_finished_all_the_same() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.message(0, 0);
    bench.message(0, 1);
    let (_, id) = bench.receive_one().unwrap();
    bench.assigned(0, &[(0, true)]);
    assert!(bench.assigned(0, &[(0, false)]).is_empty());
    bench.ack(&id);
    assert_eq!(bench.accept(), ["detach 0"], "the broker would not send entry 1 again otherwise");
    bench.detached(0);
    assert_eq!(bench.attach().how, Mode::Exclusive);
    bench.message(0, 1);
    assert_eq!(bench.receive().0, ["0:1"]);
}

#[test]
fn a_mode_that_changes_before_the_subscribe_is_answered_needs_no_drain() {
    let mut bench = Bench::new();
    bench.registered(1, assignment(0, &[(0, false)]));
    bench.assigned(0, &[(0, true)]);
    bench.attach();
    assert_eq!(bench.log[1..], ["detach 0"], "and no permits");
    bench.detached(0);
    assert!(bench.attach().how.is_shared());
    assert_eq!(bench.log.last().unwrap(), "opened");
}

#[test]
fn a_segment_dropped_before_the_subscribe_is_answered_is_let_go() {
    let mut bench = Bench::open(&[(1, false)]);
    bench.assigned(0, &[(0, false), (1, false)]);
    bench.assigned(0, &[(1, false)]);
    bench.attach();
    assert_eq!(bench.log, ["detach 0"]);
    assert_eq!(bench.detached(0), ["forget 0"]);
}

#[test]
fn a_segment_that_comes_back_during_its_drain_is_subscribed_anew() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.message(0, 0);
    let (_, id) = bench.receive();
    bench.assigned(0, &[]);
    bench.assigned(0, &[(0, false)]);
    bench.ack(&id);
    assert_eq!(bench.accept(), ["detach 0"]);
    bench.detached(0);
    assert_eq!(bench.attach().segment, 0);
}

#[test]
fn a_busy_segment_is_tried_again_without_end_once_open() {
    let mut bench = Bench::open(&[]);
    bench.assigned(0, &[(0, false)]);
    for _ in 0..100 {
        let Subscribe { segment, attempt: Attempt { generation, address, .. }, .. } =
            bench.subscribes.pop_front().unwrap();
        assert_eq!(address.as_deref(), Some("pulsar://b0:1"), "the broker is the right one");
        bench.then(|core, now| core.attach_failed(segment, generation, busy(), now));
        bench.pass(1000);
    }
    bench.attach();
    assert_eq!(bench.log, ["flow 0 100"]);
}

// ---- losses ----

#[test]
fn a_lost_connection_brings_everything_open_again() {
    let mut bench = Bench::open(&[(0, false), (1, false)]);
    bench.message(0, 0);
    bench.message(0, 1);
    let (_, id) = bench.receive_one().unwrap();
    bench.then(|core, now| core.disconnected(0, now));
    assert!(bench.queue.is_empty(), "entry 1 comes again");
    bench.pass(100);
    let subscribe = bench.attach();
    assert!(!subscribe.attempt.fresh, "the same consumer");
    bench.message(0, 0);
    bench.message(0, 1);
    assert_eq!(bench.receive().0, ["0:0", "0:1"]);
    // The identifier of the first delivery is as good as that of the second.
    bench.ack(&id);
    assert_eq!(bench.sent(), ["0: <=0"]);
}

#[test]
fn an_acknowledgement_without_a_connection_is_sent_before_the_permits() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.message(0, 0);
    bench.message(0, 1);
    let (_, id) = bench.receive();
    bench.then(|core, now| core.disconnected(0, now));
    bench.ack(&id);
    assert!(bench.sent().is_empty());
    bench.pass(100);
    let Subscribe { segment, attempt: Attempt { generation, .. }, .. } =
        bench.subscribes.pop_front().unwrap();
    let now = bench.now();
    assert!(bench.core.attached(segment, generation, "pulsar://b0:1".into(), now));
    let effects = bench.core.take_effects();
    assert!(
        matches!(effects.as_slice(), [Effect::Own(Own::Ack { ack, .. }), Effect::Flow { .. }] if ack.cumulative),
        "{effects:?}"
    );
}

/// What another segment delivered later has the withdrawn message in its vector; it must not cover it.
#[test]
fn what_was_withdrawn_is_not_acknowledged_by_a_later_message() {
    let mut bench = Bench::open(&[(0, false), (1, false)]);
    bench.message(0, 0);
    bench.message(1, 0);
    bench.then(|core, now| core.disconnected(0, now));
    bench.pass(100);
    bench.attach();
    let (values, id) = bench.receive();
    assert_eq!(values, ["1:0"]);
    bench.ack(&id);
    assert_eq!(bench.sent(), ["1: <=0"]);
}

#[test]
fn a_late_acknowledgement_of_a_shared_time_leaves_the_others_messages_alone() {
    let mut bench = Bench::open(&[(0, true)]);
    bench.message(0, 0);
    bench.message(0, 4);
    let (_, id) = bench.receive();
    bench.then(|core, now| core.disconnected(0, now));
    // The other consumer is gone meanwhile; its entries 1 to 3 are not acknowledged.
    bench.assigned(0, &[(0, false)]);
    bench.pass(100);
    assert_eq!(bench.attach().how, Mode::Exclusive);
    bench.ack(&id);
    assert_eq!(bench.sent(), ["0: 0 4"]);
}

#[test]
fn a_loss_ends_a_drain() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.message(0, 0);
    bench.receive();
    bench.assigned(0, &[(0, true)]);
    bench.then(|core, now| core.disconnected(0, now));
    bench.pass(100);
    assert!(bench.attach().how.is_shared());
    bench.assigned(0, &[]);
    assert_eq!(bench.log, ["flow 0 100", "detach 0"], "the old delivery holds up nothing");
}

#[test]
fn the_answer_to_an_old_acknowledgement_says_nothing_of_the_new_attachment() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.message(0, 0);
    let (_, id) = bench.receive();
    bench.ack(&id);
    let (segment, generation, ack) = bench.acks.pop_front().unwrap();
    bench.then(|core, now| core.disconnected(0, now));
    bench.pass(100);
    bench.attach();
    assert_eq!(bench.sent(), ["0: <=0"], "nobody knows whether the first one arrived");
    bench.then(|core, now| core.ack_answered(segment, generation, ack.ticket, Ok(()), now));
    assert!(bench.assigned(0, &[]).is_empty());
    assert_eq!(bench.accept(), ["detach 0"]);
}

#[test]
fn a_moved_segment_follows_the_address_that_the_broker_names() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.then(|core, now| core.closed_by_broker(0, Some("pulsar://new:1".into()), now));
    assert_eq!(bench.attach().attempt.address.as_deref(), Some("pulsar://new:1"));
}

#[test]
fn a_lost_registration_is_looked_up_and_made_again() {
    let mut bench = Bench::open(&[(0, false)]);
    assert_eq!(bench.then(|core, now| core.unregistered(1, lost(), now)), ["lookup"]);
    assert!(bench.pass(10_000).is_empty(), "not before the layout is known");
    bench.then(|core, now| core.apply_layout(view("pulsar://d:1"), now));
    let log = bench.then(|core, now| core.set_synced(true, now));
    assert_eq!(log, ["register pulsar://d:1"]);
    // The segments never noticed, and the same assignment changes nothing.
    bench.message(0, 0);
    assert_eq!(bench.receive().0, ["0:0"]);
    assert!(bench.registered(2, assignment(0, &[(0, false)])).is_empty());
    // Past the grace period it is another one.
    let update = assignment(0, &[(0, false), (1, false)]);
    bench.then(|core, now| core.assignment_update(2, update, now));
    assert_eq!(bench.attach().segment, 1);
}

#[test]
fn a_controller_that_moved_is_registered_with() {
    let mut bench = Bench::open(&[(0, false)]);
    let log = bench.then(|core, now| core.apply_layout(view("pulsar://d:1"), now));
    assert_eq!(log, ["register pulsar://d:1"]);
    assert!(bench.assigned(9, &[]).is_empty(), "the old controller has nothing to say any more");
}

// ---- closing ----

#[test]
fn a_close_leaves_first_and_acknowledges_nothing() {
    let mut bench = Bench::open(&[(0, false), (1, true)]);
    bench.message(0, 0);
    bench.message(1, 0);
    bench.receive();
    assert_eq!(bench.then(|core, now| core.close(now)), ["leave"]);
    assert_eq!(bench.then(|core, now| core.left(now)), ["detach 0", "detach 1"]);
    assert_eq!(bench.detached(0), ["forget 0"]);
    assert_eq!(bench.detached(1), ["forget 1", "closed"]);
    assert!(bench.acks.is_empty());
}

#[test]
fn a_close_waits_for_what_is_being_drained() {
    let mut bench = Bench::open(&[(0, false), (1, false)]);
    bench.message(0, 0);
    bench.receive();
    bench.assigned(0, &[(1, false)]);
    bench.then(|core, now| core.close(now));
    bench.then(|core, now| core.left(now));
    assert_eq!(bench.log[1..], ["detach 0", "detach 1"]);
    bench.detached(1);
    assert_ne!(bench.log.last().unwrap(), "closed");
    assert_eq!(bench.detached(0).last().unwrap(), "closed");
}

#[test]
fn a_close_waits_for_a_subscribe_that_is_under_way() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.assigned(0, &[(0, false), (1, false)]);
    bench.then(|core, now| core.close(now));
    bench.then(|core, now| core.left(now));
    bench.detached(0);
    assert_ne!(bench.log.last().unwrap(), "closed");
    bench.attach();
    assert_eq!(bench.log.last().unwrap(), "detach 1");
    assert_eq!(bench.detached(1).last().unwrap(), "closed");
}

#[test]
fn an_assignment_that_comes_during_a_close_changes_nothing() {
    let mut bench = Bench::open(&[(0, false)]);
    bench.then(|core, now| core.close(now));
    assert!(bench.assigned(5, &[(0, false), (1, false)]).is_empty());
    assert!(bench.subscribes.is_empty());
}

#[test]
fn permits_follow_what_the_application_takes() {
    let mut bench = Bench::open(&[(0, false)]);
    for entry in 0..120 {
        bench.message(0, entry);
    }
    bench.receive();
    assert_eq!(bench.log, ["flow 0 50", "flow 0 50"]);
}
