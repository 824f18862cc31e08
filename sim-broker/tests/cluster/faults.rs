//! Faults over the wire: what the client sees, and that what fired can be read.

use std::time::Duration;

use sim_broker::{
    SimCluster,
    core::fault::{At, ErrorCode, Fault, FaultEffect, Selector, Side},
};
use stc_proto::pulsar::*;
use tokio::time::Instant;

use crate::{expect, support::*};

const TOPIC: &str = "topic://public/default/t";

async fn producing(cluster: &SimCluster) -> (Client, String) {
    let segment = segment_of(cluster, TOPIC).await;
    let mut client = Client::to_owner(cluster, &segment).await;
    client.producer(0, &segment, "p").await;
    (client, segment)
}

fn stored(cluster: &SimCluster) -> usize {
    cluster.control().stored(TOPIC).unwrap().len()
}

fn arm(cluster: &SimCluster, command: &str, effect: FaultEffect, at: At) -> u64 {
    cluster.control().arm(Fault { at, ..Fault::new(Selector::command(command), effect) }).unwrap()
}

fn fired(cluster: &SimCluster, id: u64) -> u32 {
    cluster.control().faults().iter().find(|s| s.id == id).unwrap().fired
}

#[tokio::test(start_paused = true)]
async fn drop_before_and_after_the_state_change() {
    let cluster = cluster();
    let (mut client, _) = producing(&cluster).await;
    let before = arm(&cluster, "SEND", FaultEffect::Drop, At::Before);
    client.publish(0, 0, "never arrives").await;
    client.expect_nothing().await;
    assert_eq!((stored(&cluster), fired(&cluster, before)), (0, 1));
    let after = arm(&cluster, "SEND", FaultEffect::Drop, At::After);
    client.publish(0, 1, "stored, receipt lost").await;
    client.expect_nothing().await;
    assert_eq!((stored(&cluster), fired(&cluster, after)), (1, 1));
    client.publish_ok(0, 2, "well").await;
    assert_eq!(stored(&cluster), 2);
}

#[tokio::test(start_paused = true)]
async fn delay_lets_others_overtake() {
    let cluster = cluster();
    let (mut client, _) = producing(&cluster).await;
    arm(&cluster, "SEND_RECEIPT", FaultEffect::Delay { ms: 700 }, At::Before);
    let start = Instant::now();
    client.publish(0, 0, "a").await;
    client.publish(0, 1, "b").await;
    assert_eq!(expect!(client, SendReceipt).sequence_id, 1);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(expect!(client, SendReceipt).sequence_id, 0);
    assert_eq!(start.elapsed(), Duration::from_millis(700));
    arm(&cluster, "SEND", FaultEffect::Delay { ms: 300 }, At::Before);
    client.publish(0, 2, "c").await;
    client.expect_nothing().await;
    assert_eq!(stored(&cluster), 2);
    assert_eq!(expect!(client, SendReceipt).sequence_id, 2);
    assert_eq!(stored(&cluster), 3);
}

#[tokio::test(start_paused = true)]
async fn close_before_and_after_the_state_change() {
    let cluster = cluster();
    for (at, kept) in [(At::Before, 0), (At::After, 1)] {
        let (mut client, _) = producing(&cluster).await;
        arm(&cluster, "SEND", FaultEffect::Close, at);
        client.publish(0, 0, "x").await;
        client.expect_closed().await;
        assert_eq!(stored(&cluster), kept);
    }
    let (mut client, _) = producing(&cluster).await;
    arm(&cluster, "SEND_RECEIPT", FaultEffect::Close, At::After);
    client.publish(0, 1, "y").await;
    expect!(client, SendReceipt);
    client.expect_closed().await;
}

#[tokio::test(start_paused = true)]
async fn error_answers_in_the_commands_own_way() {
    let cluster = cluster();
    let (mut client, segment) = producing(&cluster).await;
    let error =
        || FaultEffect::Error { code: ErrorCode(ServerError::PersistenceError), message: "so it is".into() };
    for command in ["SEND", "LOOKUP", "SCALABLE_TOPIC_LOOKUP", "PRODUCER", "SUBSCRIBE"] {
        arm(&cluster, command, error(), At::Before);
    }
    client.publish(0, 0, "x").await;
    let refused = expect!(client, SendError);
    assert_eq!((refused.error(), refused.message.as_str()), (ServerError::PersistenceError, "so it is"));
    assert_eq!(client.lookup(TOPIC).await.error(), ServerError::PersistenceError);
    assert_eq!(client.watch(1, TOPIC).await.error(), ServerError::PersistenceError);
    client.send(producer(1, &segment, "q", 11)).await;
    let refused = expect!(client, Error);
    assert_eq!((refused.request_id, refused.error()), (11, ServerError::PersistenceError));
    client.send(subscribe(1, &segment, "s", 12)).await;
    assert_eq!(expect!(client, Error).request_id, 12);
    assert_eq!(stored(&cluster), 0);
    arm(&cluster, "SEND", error(), At::After);
    client.publish(0, 1, "stored all the same").await;
    assert_eq!(expect!(client, SendError).sequence_id, 1);
    assert_eq!(stored(&cluster), 1);
}

#[tokio::test(start_paused = true)]
async fn duplicate_and_reorder() {
    let cluster = cluster();
    let (mut client, segment) = producing(&cluster).await;
    arm(&cluster, "SEND", FaultEffect::Duplicate, At::Before);
    client.publish(0, 0, "a").await;
    assert_eq!(expect!(client, SendReceipt).sequence_id, 0);
    assert_eq!(expect!(client, SendReceipt).sequence_id, 0);
    assert_eq!(stored(&cluster), 2, "deduplication is off");
    arm(&cluster, "SEND", FaultEffect::Reorder, At::Before);
    client.publish(0, 1, "b").await;
    client.publish(0, 2, "c").await;
    assert_eq!(expect!(client, SendReceipt).sequence_id, 2);
    assert_eq!(expect!(client, SendReceipt).sequence_id, 1);
    arm(&cluster, "MESSAGE", FaultEffect::Reorder, At::Before);
    arm(&cluster, "MESSAGE", FaultEffect::Duplicate, At::Before);
    client.subscribe(0, &segment, "s").await;
    let mut got = Vec::new();
    for _ in 0..5 {
        got.push(client.message().await.0);
    }
    // The first is overtaken by the second, which comes twice.
    assert_eq!(got, ["a", "a", "a", "c", "b"]);
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn hold_and_release_put_a_push_before_its_splits_close() {
    let cluster = cluster_as("spec-1.0", |c| c.brokers = 1);
    let (mut client, _) = producing(&cluster).await;
    client.watch(1, TOPIC).await;
    arm(&cluster, "CLOSE_PRODUCER", FaultEffect::Hold, At::Before);
    split(&cluster, TOPIC, 0);
    assert_eq!(expect!(client, ScalableTopicUpdate).dag.unwrap().epoch, 1);
    client.expect_nothing().await;
    let control = cluster.control();
    let held = control.held();
    assert_eq!(held.len(), 1);
    control.release(held[0].id).unwrap();
    assert_eq!(expect!(client, CloseProducer).request_id, u64::MAX);
    assert!(control.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn answers_held_after_the_state_change_come_when_released() {
    let cluster = cluster();
    let (mut client, _) = producing(&cluster).await;
    arm(&cluster, "SEND", FaultEffect::Hold, At::After);
    client.publish(0, 0, "a").await;
    client.expect_nothing().await;
    assert_eq!(stored(&cluster), 1);
    assert_eq!(cluster.control().release_all(), 1);
    assert_eq!(expect!(client, SendReceipt).sequence_id, 0);
}

#[tokio::test(start_paused = true)]
async fn selectors_tell_topics_sides_brokers_and_producers_apart() {
    let cluster = cluster_as("spec-1.0", |c| c.brokers = 2);
    // Broker 0 owns everything then.
    cluster.control().kill_broker(sim_broker::core::BrokerId(1)).unwrap();
    let other = segment_of(&cluster, "topic://public/default/other").await;
    let (mut client, _) = producing(&cluster).await;
    client.producer(1, &other, "q").await;
    let control = cluster.control();
    let on_topic = control
        .arm(Fault::new(
            Selector::command("SEND").on_topic("topic://public/default/other"),
            FaultEffect::Drop,
        ))
        .unwrap();
    let receipts = control
        .arm(Fault::new(
            Selector {
                producer_id: Some(0),
                direction: Some(Side::ToClient),
                broker: Some(0),
                ..Default::default()
            },
            FaultEffect::Drop,
        ))
        .unwrap();
    let nowhere = control
        .arm(Fault::new(Selector { broker: Some(1), ..Selector::command("SEND") }, FaultEffect::Drop))
        .unwrap();
    // The answer to a request about a topic is about that topic too.
    let answers = control
        .arm(Fault::new(Selector::command("LOOKUP_RESPONSE").on_topic(&other), FaultEffect::Drop))
        .unwrap();
    client.publish(0, 0, "stored, receipt dropped").await;
    client.publish(1, 0, "dropped").await;
    client.publish_ok(0, 1, "well").await;
    client.lookup(TOPIC).await;
    client.send(CommandLookupTopic { topic: other.clone(), request_id: 77, ..Default::default() }).await;
    client.expect_nothing().await;
    let fired: Vec<u32> = [on_topic, receipts, nowhere, answers].map(|id| fired(&cluster, id)).to_vec();
    assert_eq!(fired, [1, 1, 0, 1]);
    assert_eq!(stored(&cluster), 2);
}
