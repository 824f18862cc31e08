//! Shared and Key_Shared subscriptions.

use super::*;

fn keys(keys: &str) -> Vec<MessageMetadata> {
    keys.chars().map(|key| keyed(&key.to_string())).collect()
}

/// Which consumer got which entries since the last look.
fn deliveries(rig: &mut Rig) -> Vec<(u64, u64)> {
    let message = |effect: Effect| match effect {
        Effect::Send(_, frame) => match frame.command {
            Command::Message(message) => Some((message.consumer_id, message.message_id.entry_id)),
            _ => None,
        },
        Effect::Close(..) => None,
    };
    rig.effects.drain().filter_map(message).collect()
}

#[test]
fn shared_consumers_take_turns() {
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.consumer(c(1, 1), SubType::Shared, 10);
    rig.store(keys("abcd"));
    assert_eq!(deliveries(&mut rig), [(0, 0), (1, 1), (0, 2), (1, 3)]);
}

#[test]
fn a_better_priority_is_served_first() {
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::Shared, 0);
    rig.subscribe(c(1, 1), SubType::Shared, |command| command.priority_level = Some(1)).unwrap();
    rig.flow(c(1, 1), 10);
    rig.flow(c(1, 0), 2);
    rig.store(keys("abc"));
    assert_eq!(deliveries(&mut rig), [(0, 0), (0, 1), (1, 2)]);
}

#[test]
fn given_back_messages_count_up() {
    let mut rig = Rig::new();
    rig.store(keys("abc"));
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.quiet();
    rig.redeliver(c(1, 0), &[1], None);
    rig.redeliver(c(1, 0), &[1, 2], None);
    // Not delivered to anyone, so not given back.
    rig.redeliver(c(1, 0), &[99], None);
    rig.expect(&["1 MESSAGE 0 1 again=1", "1 MESSAGE 0 1 again=2", "1 MESSAGE 0 2 again=1"]);
    rig.ack(c(1, 0), &[1]);
    rig.redeliver(c(1, 0), &[], None);
    rig.expect(&["1 MESSAGE 0 0 again=1", "1 MESSAGE 0 2 again=2"]);
    assert_eq!(rig.topic.stats().subscriptions[0].unacked, 2);
}

#[test]
fn a_hand_over_is_no_redelivery() {
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.store([batch(3), keyed("b")]);
    rig.consumer(c(2, 1), SubType::Shared, 10);
    rig.ack_with(c(1, 0), AckType::Individual, &[part(0, 0b101)]);
    rig.quiet();
    rig.disconnect(1);
    rig.expect(&["2 MESSAGE 1 0 ack_set=[5]", "2 MESSAGE 1 1"]);
    assert_eq!(rig.topic.stats().subscriptions[0].consumers[0].permits, 7);
    assert_eq!(rig.topic.stats().subscriptions[0].consumers[0].unacked, 3);
}

#[test]
fn an_ack_after_giving_back_still_counts() {
    let mut rig = Rig::new();
    rig.store(keys("ab"));
    rig.consumer(c(1, 0), SubType::Shared, 2);
    rig.redeliver(c(1, 0), &[0, 1], None);
    rig.ack(c(1, 0), &[0]);
    rig.quiet();
    rig.flow(c(1, 0), 10);
    rig.expect(&["1 MESSAGE 0 1 again=1"]);
    assert_eq!(rig.backlog("s"), 1);
}

#[test]
fn a_batch_given_back_costs_what_is_left_of_it() {
    let mut rig = Rig::new();
    rig.store([batch(4)]);
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.ack_with(c(1, 0), AckType::Individual, &[part(0, 0b1000)]);
    assert_eq!(rig.topic.stats().subscriptions[0].unacked, 1);
    rig.quiet();
    rig.redeliver(c(1, 0), &[0], None);
    rig.expect(&["1 MESSAGE 0 0 again=1 ack_set=[8]"]);
    assert_eq!(rig.topic.stats().subscriptions[0].consumers[0].permits, 5);
}

#[test]
fn cumulative_acks_are_ignored() {
    let mut rig = Rig::new();
    rig.store(keys("abc"));
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.ack_cumulative(c(1, 0), id(2));
    assert_eq!(rig.backlog("s"), 3);
}

#[test]
fn delayed_messages_wait_on_shared_subscriptions_only() {
    let mut rig = Rig::new();
    let later = |at| MessageMetadata { deliver_at_time: Some(at), ..keyed("k") };
    rig.subscribe(c(1, 9), SubType::Exclusive, |command| command.subscription = "exclusive".into()).unwrap();
    rig.flow(c(1, 9), 10);
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.store([later(3000), later(2000), keyed("k"), later(500)]);
    rig.expect(&[
        "1 MESSAGE 9 0",
        "1 MESSAGE 9 1",
        "1 MESSAGE 9 2",
        "1 MESSAGE 0 2",
        "1 MESSAGE 9 3",
        "1 MESSAGE 0 3",
    ]);
    rig.wait();
    assert_eq!(rig.now, 2000);
    rig.expect(&["1 MESSAGE 0 1"]);
    rig.wait();
    assert_eq!(rig.now, 3000);
    rig.expect(&["1 MESSAGE 0 0"]);
    assert_eq!(rig.topic.next_deadline(), None);
}

#[test]
fn delayed_messages_outlive_their_consumers() {
    for kind in [SubType::Shared, SubType::KeyShared] {
        let mut rig = Rig::new();
        rig.consumer(c(1, 0), kind, 10);
        rig.store([MessageMetadata { deliver_at_time: Some(2000), ..keyed("k") }]);
        rig.disconnect(1);
        assert_eq!(rig.topic.next_deadline(), None);
        rig.consumer(c(2, 0), kind, 10);
        rig.expect(&[]);
        rig.wait();
        rig.expect(&["2 MESSAGE 0 0"]);
    }
}

#[test]
fn a_key_stays_with_one_consumer() {
    let mut rig = Rig::new();
    for consumer in 0..3 {
        rig.consumer(c(1, consumer), SubType::KeyShared, 100);
    }
    let text: String = ('a'..='t').chain('a'..='t').collect();
    rig.store(keys(&text));
    let got = deliveries(&mut rig);
    assert_eq!(got.len(), 40);
    let owner = |entry: u64| got.iter().find(|(_, e)| *e == entry).unwrap().0;
    for entry in 0..20 {
        assert_eq!(owner(entry), owner(entry + 20));
    }
    let mut used: Vec<u64> = got.iter().map(|(consumer, _)| *consumer).collect();
    used.sort();
    used.dedup();
    assert_eq!(used, [0, 1, 2], "20 keys leave none of three consumers idle");
}

/// A key that consumer 0 gets alone, and consumer 1 once both are there.
fn moving_key() -> char {
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::KeyShared, 1000);
    rig.consumer(c(1, 1), SubType::KeyShared, 1000);
    rig.store(keys("abcdefghijklmnop"));
    let moved = deliveries(&mut rig).into_iter().find(|(consumer, _)| *consumer == 1).unwrap().1;
    char::from(b'a' + moved as u8)
}

#[test]
fn a_newcomer_waits_for_the_acks_of_a_key() {
    let key = moving_key().to_string().repeat(3);
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::KeyShared, 2);
    rig.store(keys(&key));
    assert_eq!(deliveries(&mut rig), [(0, 0), (0, 1)]);
    rig.consumer(c(1, 1), SubType::KeyShared, 100);
    rig.flow(c(1, 0), 100);
    rig.ack(c(1, 0), &[0]);
    rig.expect(&[]);
    rig.ack(c(1, 0), &[1]);
    assert_eq!(deliveries(&mut rig), [(1, 2)]);
}

#[test]
fn a_newcomer_gets_what_a_leaver_had_in_order() {
    let key = moving_key().to_string().repeat(3);
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::KeyShared, 2);
    rig.store(keys(&key));
    rig.consumer(c(2, 1), SubType::KeyShared, 100);
    rig.quiet();
    rig.disconnect(1);
    rig.expect(&["2 MESSAGE 1 0", "2 MESSAGE 1 1", "2 MESSAGE 1 2"]);
}

#[test]
fn out_of_order_delivery_does_not_wait() {
    let key = moving_key().to_string().repeat(3);
    let loose = |command: &mut CommandSubscribe| {
        command.key_shared_meta =
            Some(KeySharedMeta { allow_out_of_order_delivery: Some(true), ..Default::default() });
    };
    let mut rig = Rig::new();
    rig.subscribe(c(1, 0), SubType::KeyShared, loose).unwrap();
    rig.flow(c(1, 0), 2);
    rig.store(keys(&key));
    rig.subscribe(c(1, 1), SubType::KeyShared, loose).unwrap();
    rig.flow(c(1, 1), 2);
    assert_eq!(deliveries(&mut rig), [(0, 0), (0, 1), (1, 2)]);
    refused(
        rig.subscribe(c(1, 2), SubType::KeyShared, |_| {}),
        ServerError::ConsumerBusy,
        "Active subscription allows out of order delivery",
    );
}

#[test]
fn a_consumer_without_permits_holds_up_its_own_keys_only() {
    let moving = moving_key();
    let other = ('a'..='p').find(|key| {
        let mut rig = Rig::new();
        rig.consumer(c(1, 0), SubType::KeyShared, 10);
        rig.consumer(c(1, 1), SubType::KeyShared, 10);
        rig.store(keys(&key.to_string()));
        deliveries(&mut rig) == [(0, 0)]
    });
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::KeyShared, 10);
    rig.consumer(c(1, 1), SubType::KeyShared, 0);
    rig.store([keyed(&moving.to_string()), keyed(&other.unwrap().to_string())]);
    assert_eq!(deliveries(&mut rig), [(0, 1)]);
    rig.flow(c(1, 1), 1);
    assert_eq!(deliveries(&mut rig), [(1, 0)]);
}

fn sticky(ranges: &[(i32, i32)]) -> impl FnOnce(&mut CommandSubscribe) + use<> {
    let hash_ranges = ranges.iter().map(|(start, end)| IntRange { start: *start, end: *end }).collect();
    move |command| {
        command.key_shared_meta = Some(KeySharedMeta {
            key_shared_mode: KeySharedMode::Sticky as i32,
            hash_ranges,
            ..Default::default()
        });
    }
}

#[test]
fn sticky_ranges_say_who_gets_a_key() {
    let mut rig = Rig::new();
    rig.subscribe(c(1, 0), SubType::KeyShared, sticky(&[(0, 0x7fff)])).unwrap();
    rig.subscribe(c(1, 1), SubType::KeyShared, sticky(&[(0xe000, 0xffff)])).unwrap();
    rig.flow(c(1, 0), 10);
    rig.flow(c(1, 1), 10);
    // The low halves of the hashes of these keys are f8bf, 15a0, 550c and c7ac.
    rig.store(["key-0", "key-1", "key-2", "key-5"].map(keyed));
    assert_eq!(deliveries(&mut rig), [(1, 0), (0, 1), (0, 2)]);
    // key-5 waits for someone to own it.
    rig.subscribe(c(1, 2), SubType::KeyShared, sticky(&[(0x8000, 0xdfff)])).unwrap();
    rig.flow(c(1, 2), 10);
    assert_eq!(deliveries(&mut rig), [(2, 3)]);
}

#[test]
fn sticky_ranges_are_checked() {
    let mut rig = Rig::new();
    let mut fails = |ranges: &[(i32, i32)], text: &str| {
        let result = rig.subscribe(c(1, 1), SubType::KeyShared, sticky(ranges));
        refused(result, ServerError::ConsumerAssignError, text);
    };
    fails(&[], "must not be empty");
    fails(&[(5, 4)], "start > end for range: [5,4]");
    fails(&[(0, 65536)], "not within");
    fails(&[(-1, 5)], "not within");
    fails(&[(10, 20), (0, 10)], "[0,10] overlaps with [10,20]");
    rig.subscribe(c(1, 0), SubType::KeyShared, sticky(&[(0, 100)])).unwrap();
    let conflict = rig.subscribe(c(1, 1), SubType::KeyShared, sticky(&[(200, 300), (50, 60)]));
    refused(conflict, ServerError::ConsumerAssignError, "Range conflict with consumer c0");
    let other_mode = rig.subscribe(c(1, 1), SubType::KeyShared, |_| {});
    refused(other_mode, ServerError::ConsumerBusy, "key_shared mode of 'STICKY'");
}

#[test]
fn skipping_everything_leaves_nothing_to_deliver() {
    for kind in [SubType::Shared, SubType::KeyShared, SubType::Exclusive] {
        let mut rig = Rig::new();
        rig.consumer(c(1, 0), kind, 2);
        rig.store(keys("aab"));
        rig.quiet();
        assert!(rig.topic.skip_all("s", rig.now, &mut rig.effects));
        assert_eq!(rig.backlog("s"), 0);
        rig.ack(c(1, 0), &[0]);
        rig.flow(c(1, 0), 10);
        rig.expect(&[]);
        rig.store(keys("a"));
        rig.expect(&["1 MESSAGE 0 3"]);
    }
}
