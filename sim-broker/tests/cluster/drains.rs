//! What a group reads when: parents before children, successors after predecessors, and checkpoint groups, which have no
//! cursor.

use sim_broker::SimCluster;
use stc_proto::pulsar::{command_ack::AckType, *};

use crate::{ordered::*, support::*};

#[tokio::test(start_paused = true)]
async fn a_grandchild_waits_for_its_grandparent_behind_an_empty_parent() {
    let cluster = topic_cluster(1);
    let mut segment = Client::to_owner(&cluster, &segment("0000-ffff-0")).await;
    let ids = segment.store("0000-ffff-0", &["k"]).await;
    let mut client = to_leader(&cluster).await;
    client.register(0, "s", "a", STREAM).await;
    segment.own(1, "0000-ffff-0", "s").await;
    segment.sees(&["SUCCESS", "MESSAGE 1 0 k"]).await;
    client.sees(&["ASSIGNED 0: 0"]).await;
    split(&cluster, TOPIC, 0);
    split(&cluster, TOPIC, 1);
    client.sees(&["UPDATE 0 1: 0", "UPDATE 0 2: 0"]).await;
    let [seen, _] = pass([&mut client, &mut segment], 10_000).await;
    // Segment 1 is empty and sealed, so it is read; its children wait for segment 0 all the same.
    assert_eq!(seen, ["UPDATE 0 2: 0"]);
    segment.ack(1, AckType::Cumulative, &ids).await;
    segment.seen_now().await;
    let [seen, _] = pass([&mut client, &mut segment], 10_000).await;
    assert_eq!(seen, ["UPDATE 0 2: 3 4 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_parent_stays_while_a_registered_consumer_has_not_read_it() {
    let cluster = cluster_as("spec-1.0", |c| c.brokers = 1);
    create(&cluster, TOPIC, 1);
    let mut client = to_leader(&cluster).await;
    let ids = client.store("0000-ffff-0", &["k"]).await;
    client.own(1, "0000-ffff-0", "drained").await;
    client.ack(1, AckType::Cumulative, &ids).await;
    client.register(0, "late", "a", STREAM).await;
    client.sees(&["SUCCESS", "MESSAGE 1 0 k", "ASSIGNED 0: 0"]).await;
    split(&cluster, TOPIC, 0);
    client.seen_now().await;
    assert_eq!(cluster.control().prune(TOPIC).unwrap(), 0, "a is still to attach");
    client.leave(0).await;
    client.sees(&["SUCCESS"]).await;
    assert_eq!(cluster.control().prune(TOPIC).unwrap(), 1);
}

/// A segment that goes before its parents would leave its children with no word of them.
#[tokio::test(start_paused = true)]
async fn parents_are_pruned_before_children() {
    let cluster = cluster_as("spec-1.0", |c| c.brokers = 1);
    create(&cluster, TOPIC, 1);
    let mut client = to_leader(&cluster).await;
    let ids = client.store("0000-ffff-0", &["k"]).await;
    client.register(0, "s", "a", STREAM).await;
    client.own(1, "0000-ffff-0", "s").await;
    client.sees(&["ASSIGNED 0: 0", "SUCCESS", "MESSAGE 1 0 k"]).await;
    split(&cluster, TOPIC, 0);
    split(&cluster, TOPIC, 1);
    client.seen_now().await;
    // Segment 1 was empty and is drained, but segment 0 is not.
    let [seen] = pass([&mut client], 70_000).await;
    assert_eq!(seen, ["UPDATE 0 2: 0"]);
    assert_eq!(cluster.control().prune(TOPIC).unwrap(), 0);
    client.ack(1, AckType::Cumulative, &ids).await;
    client.seen_now().await;
    let [seen] = pass([&mut client], 115_000).await;
    assert_eq!(seen.last().unwrap(), "UPDATE 0 4: 3 4 2", "{seen:?}");
}

/// A new subscription at the latest message, on a topic that was split: its children are handed out 2 s later.
#[tokio::test(start_paused = true)]
async fn what_comes_while_a_new_subscription_waits_for_parents_is_not_lost_but_in_5_0_1() {
    for (profile, missed) in [("spec-1.0", false), ("pulsar-5.0.1", true)] {
        let cluster = cluster_as(profile, |c| c.brokers = 1);
        create(&cluster, TOPIC, 1);
        split(&cluster, TOPIC, 0);
        let mut client = to_leader(&cluster).await;
        client.store("0000-7fff-1", &["before"]).await;
        client.register(0, "s", "a", STREAM).await;
        client.own_from_latest(1, "0000-ffff-0", "s").await;
        client.sees(&["ASSIGNED 1: 0", "SUCCESS", "END 1"]).await;
        client.store("0000-7fff-1", &["meanwhile"]).await;
        let [seen] = pass([&mut client], 2_000).await;
        assert_eq!(seen, ["UPDATE 0 1: 1 2"]);
        client.own_from_latest(2, "0000-7fff-1", "s").await;
        let seen = client.seen_now().await;
        let expected: &[&str] = if missed { &["SUCCESS"] } else { &["SUCCESS", "MESSAGE 2 1 meanwhile"] };
        assert_eq!(seen, expected, "{profile}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rebucket_rolls_over_once_its_predecessor_is_read() {
    let cluster = cluster_as("spec-1.0", |c| c.brokers = 1);
    create(&cluster, TOPIC, 1);
    let mut one = to_leader(&cluster).await;
    let mut two = to_leader(&cluster).await;
    one.register(0, "s", "a", STREAM).await;
    two.register(0, "s", "b", STREAM).await;
    two.sees(&["ASSIGNED 0: 0!4"]).await;
    one.sees(&["ASSIGNED 0: 0", "UPDATE 0 0: 0!4"]).await;
    one.share(1, "0000-ffff-0", "s", "a", 4).await;
    one.sees(&["SUCCESS"]).await;
    two.share(1, "0000-ffff-0", "s", "b", 4).await;
    two.sees(&["SUCCESS"]).await;
    let ids = Client::to(&cluster, 0).await.store("0000-ffff-0", &["key-0", "key-1"]).await;
    one.sees(&["MESSAGE 1 1 key-1"]).await;
    cluster.with(|c, now| c.rebucket_segment(&topic(TOPIC), 0, Some(8), now)).unwrap();
    two.sees(&["MESSAGE 1 0 key-0", "UPDATE 0 1: 0!4"]).await;
    one.sees(&["UPDATE 0 1: 0!4"]).await;
    two.ack(1, AckType::Individual, &ids[..1]).await;
    one.ack(1, AckType::Individual, &ids[1..]).await;
    let [seen, other] = pass([&mut one, &mut two], 2_000).await;
    assert_eq!(seen, ["END 1", "UPDATE 0 1: 1!8"]);
    assert_eq!(other, ["END 1", "UPDATE 0 1: 1!8"]);
    // The old boundaries are refused on the new segment once it has sharers.
    one.share(2, "0000-ffff-1", "s", "a", 8).await;
    one.sees(&["SUCCESS"]).await;
    two.share(2, "0000-ffff-1", "s", "b", 4).await;
    let seen = two.seen_now().await;
    assert!(seen[0].starts_with("ERROR ConsumerAssignError"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_moved_back_reads_its_parents_first() {
    let cluster = cluster_as("spec-1.0", |c| c.brokers = 1);
    create(&cluster, TOPIC, 1);
    let mut client = to_leader(&cluster).await;
    let ids = client.store("0000-ffff-0", &["k"]).await;
    client.register(0, "s", "a", STREAM).await;
    client.own(1, "0000-ffff-0", "s").await;
    client.ack(1, AckType::Cumulative, &ids).await;
    split(&cluster, TOPIC, 0);
    client.seen_now().await;
    let [seen] = pass([&mut client], 2_000).await;
    assert_eq!(seen, ["UPDATE 0 1: 1 2"]);
    cluster.with(|c, now| c.seek_scalable_subscription(&topic(TOPIC), "s", 0, now)).unwrap();
    client.sees(&["CLOSE_CONSUMER 1", "UPDATE 0 1: 0"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_moved_past_a_sealed_segment_keeps_its_consumer_there() {
    let cluster = cluster_as("spec-1.0", |c| c.brokers = 1);
    create(&cluster, TOPIC, 1);
    let mut client = to_leader(&cluster).await;
    client.store("0000-ffff-0", &["k"]).await;
    client.register(0, "s", "a", STREAM).await;
    client.own(1, "0000-ffff-0", "s").await;
    split(&cluster, TOPIC, 0);
    client.seen_now().await;
    cluster.with(|c, now| c.seek_scalable_subscription(&topic(TOPIC), "s", now, now)).unwrap();
    // Its message is acknowledged, and it is not closed.
    client.sees(&["END 1"]).await;
    let [seen] = pass([&mut client], 2_000).await;
    assert_eq!(seen, ["UPDATE 0 1: 1 2"]);
}

// ---- Checkpoint groups, which have no cursor ----

/// A member of a checkpoint group, a message in segment 0, and a split of it.
async fn checkpoint_group() -> (SimCluster, Client, Vec<MessageIdData>) {
    let cluster = cluster_as("spec-1.0", |c| c.brokers = 1);
    create(&cluster, TOPIC, 1);
    let mut client = to_leader(&cluster).await;
    let ids = client.store("0000-ffff-0", &["a", "b"]).await;
    client.register(0, "g", "m", CHECKPOINT).await;
    client.sees(&["ASSIGNED 0: 0"]).await;
    split(&cluster, TOPIC, 0);
    client.sees(&["UPDATE 0 1: 0"]).await;
    (cluster, client, ids)
}

const READ: [&str; 1] = ["UPDATE 0 1: 1 2"];

#[tokio::test(start_paused = true)]
async fn a_checkpoint_group_gets_children_when_its_reader_acknowledged_the_parent() {
    let (_cluster, mut client, ids) = checkpoint_group().await;
    let [seen] = pass([&mut client], 10_000).await;
    assert!(seen.is_empty(), "nobody has read anything: {seen:?}");
    client.read(1, "0000-ffff-0", "m-seg-0", None).await;
    client.sees(&["SUCCESS", "MESSAGE 1 0 a", "MESSAGE 1 1 b"]).await;
    client.ack(1, AckType::Cumulative, &ids[..1]).await;
    let [seen] = pass([&mut client], 20_000).await;
    assert!(seen.is_empty(), "one message is left: {seen:?}");
    client.ack(1, AckType::Cumulative, &ids[1..]).await;
    client.sees(&["END 1"]).await;
    // A reader that goes at the end has read it all the same.
    client.detach(1).await;
    client.sees(&["SUCCESS"]).await;
    let [seen] = pass([&mut client], 40_000).await;
    assert_eq!(seen, READ);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_begins_at_the_last_message_has_read_it() {
    let (_cluster, mut client, ids) = checkpoint_group().await;
    client.read(1, "0000-ffff-0", "m-seg-0", Some(ids[0].clone())).await;
    client.sees(&["SUCCESS", "MESSAGE 1 0 a", "MESSAGE 1 1 b"]).await;
    let [seen] = pass([&mut client], 10_000).await;
    assert!(seen.is_empty(), "b is left: {seen:?}");
    client.detach(1).await;
    // The last message comes once more, and a client may drop it without a word.
    client.read(2, "0000-ffff-0", "m-seg-0", Some(ids[1].clone())).await;
    client.sees(&["SUCCESS", "SUCCESS", "MESSAGE 2 1 b"]).await;
    let [seen] = pass([&mut client], 20_000).await;
    assert_eq!(seen, READ);
}

/// Readers need not acknowledge: then what they were sent counts as read, a grace period later.
#[tokio::test(start_paused = true)]
async fn a_reader_that_never_acknowledges_holds_its_group_up_for_a_grace_period() {
    let (_cluster, mut client, _) = checkpoint_group().await;
    client.read(1, "0000-ffff-0", "m-seg-0", None).await;
    client.sees(&["SUCCESS", "MESSAGE 1 0 a", "MESSAGE 1 1 b"]).await;
    // Looks come 2, 6, 14, 30 and 62 s after the split.
    let [seen] = pass([&mut client], 61_990).await;
    assert!(seen.is_empty(), "{seen:?}");
    let [seen] = pass([&mut client], 20).await;
    assert_eq!(seen, READ);
}

#[tokio::test(start_paused = true)]
async fn the_reader_of_somebody_else_says_nothing_of_the_group() {
    let (cluster, mut client, ids) = checkpoint_group().await;
    let mut other = Client::to(&cluster, 0).await;
    client.read(1, "0000-ffff-0", "m-seg-0", None).await;
    other.read(1, "0000-ffff-0", "5mpoJ", None).await;
    other.ack(1, AckType::Cumulative, &ids[1..]).await;
    assert_eq!(other.seen_now().await.last().unwrap(), "END 1");
    client.seen_now().await;
    let [seen, _] = pass([&mut client, &mut other], 20_000).await;
    assert!(seen.is_empty(), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_without_the_members_name_counts_when_it_has_the_members_connection() {
    let (cluster, mut client, ids) = checkpoint_group().await;
    let mut other = Client::to(&cluster, 0).await;
    other.read(1, "0000-ffff-0", "5mpoJ", None).await;
    other.seen_now().await;
    client.read(1, "0000-ffff-0", "any", None).await;
    client.ack(1, AckType::Cumulative, &ids[1..]).await;
    assert_eq!(client.seen_now().await.last().unwrap(), "END 1");
    let [seen, _] = pass([&mut client, &mut other], 2_000).await;
    assert_eq!(seen, READ);
}
