//! Subscriptions that share a segment by entry bucket.

use stc_proto::layout::BucketSplits;

use super::*;

fn two() -> Vec<HashRange> {
    BucketSplits::equal(2).ranges()
}

/// A message whose stamp says which bucket hashes are in it, whatever its key.
fn stamped(key: &str, min: u32, max: u32) -> MessageMetadata {
    MessageMetadata { entry_hash_min: Some(min), entry_hash_max: Some(max), ..keyed(key) }
}

/// Two sharers, c0 of the lower half and c1 of the upper one, with permits.
fn shared() -> Rig {
    let mut rig = Rig::new();
    for (conn, consumer) in [(1, 0), (2, 1)] {
        rig.subscribe(c(conn, consumer), SubType::KeyShared, share(&two())).unwrap();
        rig.flow(c(conn, consumer), 100);
    }
    rig.quiet();
    rig
}

#[test]
fn stamps_decide_and_keys_where_there_is_none() {
    let mut rig = shared();
    // The bucket hash of key-0 is f8bf, that of key-1 is 15a0.
    rig.store([
        keyed("key-0"),
        keyed("key-1"),
        stamped("key-0", 0, 0x7fff),
        stamped("key-1", 0x8000, 0xffff),
        // Not a hash: as if there were no stamp.
        stamped("key-0", 0x1_0000, 0x1_0000),
    ]);
    rig.expect(&["2 MESSAGE 1 0", "1 MESSAGE 0 1", "1 MESSAGE 0 2", "2 MESSAGE 1 3", "2 MESSAGE 1 4"]);
}

#[test]
fn a_moving_bucket_waits_for_the_acks_of_its_owner() {
    let mut rig = Rig::new();
    rig.subscribe(c(1, 0), SubType::KeyShared, share(&two())).unwrap();
    rig.flow(c(1, 0), 100);
    rig.store([stamped("a", 1, 1), stamped("b", 0x9000, 0x9000), stamped("c", 0x9001, 0x9001)]);
    rig.quiet();
    // The upper bucket moves to c1, which gets nothing while c0 has some of it; the lower one flows on.
    rig.subscribe(c(2, 1), SubType::KeyShared, share(&two())).unwrap();
    rig.flow(c(2, 1), 100);
    rig.store([stamped("d", 0xffff, 0xffff), stamped("e", 0, 0)]);
    rig.expect(&["2 SUCCESS 3", "1 MESSAGE 0 4"]);
    rig.ack(c(1, 0), &[1]);
    rig.expect(&[]);
    rig.ack(c(1, 0), &[2]);
    rig.expect(&["2 MESSAGE 1 3"]);
}

#[test]
fn what_a_crashed_owner_had_goes_to_the_next_one_in_order() {
    let mut rig = shared();
    rig.store([stamped("a", 0x9000, 0x9000), stamped("b", 0x9001, 0x9001), stamped("a", 0x9000, 0x9000)]);
    rig.ack(c(2, 1), &[1]);
    rig.quiet();
    rig.disconnect(2);
    rig.expect(&["1 MESSAGE 0 0", "1 MESSAGE 0 2"]);
}

#[test]
fn what_an_owner_gives_back_after_the_move_goes_to_the_new_one() {
    let mut rig = Rig::new();
    rig.subscribe(c(1, 0), SubType::KeyShared, share(&two())).unwrap();
    rig.flow(c(1, 0), 100);
    rig.store([stamped("a", 0x9000, 0x9000), stamped("a", 0x9000, 0x9000)]);
    rig.subscribe(c(2, 1), SubType::KeyShared, share(&two())).unwrap();
    rig.flow(c(2, 1), 100);
    rig.quiet();
    rig.redeliver(c(1, 0), &[0], None);
    rig.expect(&[]);
    rig.ack(c(1, 0), &[1]);
    rig.expect(&["2 MESSAGE 1 0 again=1"]);
}

#[test]
fn a_moving_bucket_waits_even_for_those_who_do_not_care_for_order() {
    let loose = |command: &mut CommandSubscribe| {
        share(&two())(command);
        command.key_shared_meta.as_mut().unwrap().allow_out_of_order_delivery = Some(true);
    };
    let mut rig = Rig::new();
    rig.subscribe(c(1, 0), SubType::KeyShared, loose).unwrap();
    rig.flow(c(1, 0), 1);
    rig.store([stamped("a", 0x9000, 0x9000), stamped("a", 0x9000, 0x9000)]);
    rig.subscribe(c(2, 1), SubType::KeyShared, loose).unwrap();
    rig.quiet();
    rig.flow(c(2, 1), 100);
    rig.expect(&[]);
}

#[test]
fn boundaries_that_are_none_or_not_those_of_the_others_are_refused() {
    let mut rig = Rig::new();
    let gap = [HashRange::new(0, 10).unwrap(), HashRange::new(12, u16::MAX).unwrap()];
    let result = rig.subscribe(c(1, 0), SubType::KeyShared, share(&gap));
    refused(result, ServerError::ConsumerAssignError, "contiguous");
    let mut rig = shared();
    let result = rig.subscribe(c(3, 2), SubType::KeyShared, share(&BucketSplits::equal(4).ranges()));
    refused(result, ServerError::ConsumerAssignError, "not those of the subscription");
    // The refused one left no trace.
    rig.store([keyed("key-0"), keyed("key-1")]);
    rig.expect(&["2 MESSAGE 1 0", "1 MESSAGE 0 1"]);
}

#[test]
fn other_kinds_of_sharing_do_not_mix_with_buckets() {
    let sticky = |command: &mut CommandSubscribe| {
        share(&two())(command);
        command.key_shared_meta.as_mut().unwrap().entry_bucket_dispatch = None;
    };
    let mut rig = shared();
    for kind in [SubType::Exclusive, SubType::Shared, SubType::Failover, SubType::KeyShared] {
        refused(
            rig.subscribe(c(3, 2), kind, sticky),
            ServerError::ConsumerBusy,
            "Subscription is of different type",
        );
    }
    let mut rig = Rig::new();
    rig.subscribe(c(1, 0), SubType::KeyShared, sticky).unwrap();
    refused(
        rig.subscribe(c(3, 2), SubType::KeyShared, share(&two())),
        ServerError::ConsumerBusy,
        "entry bucket dispatch 'false'",
    );
}

#[test]
fn plain_sticky_consumers_go_by_the_key_and_leave_no_dispatcher_behind() {
    let mut rig = Rig::new();
    let sticky = |command: &mut CommandSubscribe| {
        share(&[HashRange::FULL])(command);
        command.key_shared_meta.as_mut().unwrap().entry_bucket_dispatch = None;
    };
    rig.subscribe(c(1, 0), SubType::KeyShared, sticky).unwrap();
    rig.close_consumer(c(1, 0));
    // Were the plain dispatcher still there, two whole rings would conflict.
    for (conn, consumer) in [(1, 0), (2, 1)] {
        rig.subscribe(c(conn, consumer), SubType::KeyShared, share(&two())).unwrap();
        rig.flow(c(conn, consumer), 100);
    }
    rig.quiet();
    rig.store([stamped("key-0", 0, 0)]);
    rig.expect(&["1 MESSAGE 0 0"]);
    rig.ack(c(1, 0), &[0]);
    rig.close_consumer(c(1, 0));
    rig.close_consumer(c(2, 1));
    // And the other way round: a stamp says nothing to plain Key_Shared (the bucket hash of key-0 is f8bf).
    let half = |command: &mut CommandSubscribe| {
        share(&two()[1..])(command);
        command.key_shared_meta.as_mut().unwrap().entry_bucket_dispatch = None;
    };
    rig.subscribe(c(3, 2), SubType::KeyShared, half).unwrap();
    rig.flow(c(3, 2), 100);
    rig.quiet();
    rig.store([stamped("key-0", 0, 0), stamped("key-1", 0xffff, 0xffff)]);
    rig.expect(&["3 MESSAGE 2 1"]);
}

#[test]
fn a_broker_without_buckets_does_not_see_the_flag() {
    let mut rig = Rig::new();
    rig.topic.config_mut().entry_buckets = false;
    rig.subscribe(c(1, 0), SubType::KeyShared, share(&two())).unwrap();
    let result = rig.subscribe(c(2, 1), SubType::KeyShared, share(&two()));
    refused(result, ServerError::ConsumerAssignError, "Range conflict");
}

#[test]
fn a_cumulative_ack_changes_nothing() {
    let mut rig = shared();
    rig.store([stamped("a", 1, 1), stamped("b", 0x9000, 0x9000)]);
    rig.ack_cumulative(c(2, 1), id(1));
    assert_eq!(rig.backlog("s"), 2);
}
