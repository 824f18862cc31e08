//! Migration: what the call refuses, what watches and classic clients see of it, what becomes of subscriptions.

use std::time::Duration;

use sim_broker::{SimCluster, core::ids::BrokerId};
use stc_proto::pulsar::*;

use crate::{expect, support::*};

const TOPIC: &str = "topic://public/default/t";
const CLASSIC: &str = "persistent://public/default/t";

fn partitioned(cluster: &SimCluster, partitions: u32) {
    cluster.with(|c, now| c.create_partitioned_topic(&topic(CLASSIC), partitions, now)).unwrap();
}

fn migrate(cluster: &SimCluster) {
    cluster.with(|c, now| c.migrate_topic(&topic(CLASSIC), true, now)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_migration_pushes_a_real_epoch_0_and_closes_the_partitions() {
    let cluster = cluster_as("pulsar-5.0.1", |c| c.brokers = 1);
    let classic = topic("persistent://public/default/t");
    cluster.with(|c, now| c.create_partitioned_topic(&classic, 2, now)).unwrap();
    let mut client = Client::to(&cluster, 0).await;
    client.watch(1, "t").await;
    let partition = "persistent://public/default/t-partition-1";
    client.producer(0, partition, "old").await;
    client.publish_ok(0, 0, "kept").await;
    client.subscribe(0, partition, "s").await;
    assert_eq!(client.message().await.0, "kept");
    let refused = cluster.with(|c, now| c.migrate_topic(&classic, false, now)).unwrap_err();
    assert_eq!(refused.status, 409);
    assert!(refused.reason.starts_with("2 legacy v4 client connection(s)"), "{}", refused.reason);
    cluster.with(|c, now| c.migrate_topic(&classic, true, now)).unwrap();
    let update = expect!(client, ScalableTopicUpdate);
    assert_eq!(expect!(client, CloseProducer).producer_id, 0);
    let dag = update.dag.unwrap();
    let shape: Vec<_> = dag
        .segments
        .iter()
        .map(|s| (s.segment_id, s.hash_start, s.hash_end, s.legacy_topic_name.clone(), s.child_ids.clone()))
        .collect();
    let legacy = |i: u32| Some(classic.partition(i).to_string());
    assert_eq!(dag.epoch, 0);
    assert_eq!(
        shape,
        [
            (0, 0, 0xffff, legacy(0), vec![2, 3]),
            (1, 0, 0xffff, legacy(1), vec![2, 3]),
            (2, 0, 0x7fff, None, vec![]),
            (3, 0x8000, 0xffff, None, vec![]),
        ]
    );
    client.send(producer(3, partition, "late", 9)).await;
    assert_eq!(expect!(client, Error).error(), ServerError::TopicTerminatedError);
    assert_eq!(cluster.control().stored(TOPIC).unwrap().len(), 1);
    let again = cluster.with(|c, now| c.migrate_topic(&classic, true, now)).unwrap_err();
    assert_eq!(
        (again.status, again.reason.as_str()),
        (409, "Topic is already scalable: topic://public/default/t")
    );
    let none = topic("persistent://public/default/none");
    assert_eq!(cluster.with(|c, now| c.migrate_topic(&none, true, now)).unwrap_err().status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_partition_is_not_migrated_alone() {
    let cluster = cluster();
    partitioned(&cluster, 2);
    let partition = topic(CLASSIC).partition(0);
    let refused = cluster.with(|c, now| c.migrate_topic(&partition, true, now)).unwrap_err();
    assert_eq!(refused.status, 500);
    assert!(cluster.control().current_dag("topic://public/default/t-partition-0").is_err());
    migrate(&cluster);
}

/// The messages that a subscription finds which was there before the migration and whose consumer comes back with
/// initial position Latest, when something was sent in between.
async fn found_by_who_comes_back(profile: &str) -> Vec<String> {
    let cluster = cluster_as(profile, |c| c.brokers = 1);
    partitioned(&cluster, 1);
    let mut client = Client::to(&cluster, 0).await;
    let old = format!("{CLASSIC}-partition-0");
    client.subscribe(0, &old, "s").await;
    let request_id = client.request();
    client.send(CommandCloseConsumer { consumer_id: 0, request_id, ..Default::default() }).await;
    expect!(client, Success);
    migrate(&cluster);
    let child = "segment://public/default/t/0000-ffff-1";
    client.producer(1, child, "p").await;
    client.publish_ok(1, 0, "in between").await;
    let request_id = client.request();
    let latest = CommandSubscribe {
        initial_position: Some(command_subscribe::InitialPosition::Latest as i32),
        ..subscribe(2, child, "s", request_id)
    };
    client.send(latest).await;
    expect!(client, Success);
    client.send(CommandFlow { consumer_id: 2, message_permits: 10 }).await;
    client.publish(1, 1, "after").await;
    let mut found = Vec::new();
    loop {
        let frame = client.recv().await;
        if let Some(payload) = frame.payload {
            let entry = stc_proto::Entry::parse(payload).unwrap();
            found.push(String::from_utf8(entry.payload.to_vec()).unwrap());
            if found.last().unwrap() == "after" {
                return found;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn new_segments_take_over_the_subscriptions_and_do_not_in_5_0_1() {
    assert_eq!(found_by_who_comes_back("spec-1.0").await, ["in between", "after"]);
    assert_eq!(found_by_who_comes_back("pulsar-5.0.1").await, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn a_migration_waits_until_every_partition_is_served() {
    let cluster = cluster_as("spec-1.0", |c| c.failover_ms = 4_000);
    partitioned(&cluster, 3);
    let mut client = Client::to(&cluster, 0).await;
    let answer = client.lookup(&format!("{CLASSIC}-partition-1")).await;
    let url = answer.broker_service_url.unwrap();
    let dead = cluster.broker_urls().iter().position(|u| *u == url).unwrap();
    cluster.control().kill_broker(BrokerId(dead as u32)).unwrap();
    let refused = cluster.with(|c, now| c.migrate_topic(&topic(CLASSIC), true, now)).unwrap_err();
    assert_eq!(refused.status, 503);
    assert!(cluster.control().current_dag(TOPIC).is_err(), "nothing was changed");
    tokio::time::sleep(Duration::from_millis(4_000)).await;
    migrate(&cluster);
}

#[tokio::test(start_paused = true)]
async fn partitions_that_are_added_show_to_those_who_look_again() {
    let cluster = cluster();
    partitioned(&cluster, 2);
    let mut client = Client::to(&cluster, 0).await;
    let segments = |update: CommandScalableTopicUpdate| update.dag.unwrap().segments.len();
    assert_eq!(segments(client.watch(1, CLASSIC).await), 2);
    cluster.with(|c, now| c.update_partitions(&topic(CLASSIC), 3, now)).unwrap();
    // Nobody is told, as in 5.0.1: a watch hears of scalable topics only.
    client.expect_nothing().await;
    assert_eq!(segments(client.watch(2, CLASSIC).await), 3);
    migrate(&cluster);
    let dag = cluster.control().current_dag(TOPIC).unwrap();
    assert_eq!(dag.segments.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_was_read_to_its_end_is_pruned_and_deleted() {
    let cluster = cluster();
    partitioned(&cluster, 1);
    let old = format!("{CLASSIC}-partition-0");
    let mut client = Client::to_owner(&cluster, &old).await;
    client.producer(0, &old, "p").await;
    client.publish_ok(0, 0, "old").await;
    client.subscribe(0, &old, "s").await;
    let (_, id) = client.message().await;
    migrate(&cluster);
    assert_eq!(cluster.control().prune(TOPIC).unwrap(), 0, "not read to its end");
    client.send(CommandAck { consumer_id: 0, ack_type: 0, message_id: vec![id], ..Default::default() }).await;
    expect!(client, CloseProducer);
    expect!(client, ReachedEndOfTopic);
    assert_eq!(cluster.control().prune(TOPIC).unwrap(), 1);
    let dag = cluster.control().current_dag(TOPIC).unwrap();
    assert_eq!(dag.segments.iter().map(|s| s.segment_id).collect::<Vec<_>>(), [1]);
    assert!(cluster.control().stored(&old).is_err());
}

#[tokio::test(start_paused = true)]
async fn deleting_a_migrated_topic_takes_its_partitions_with_it() {
    let cluster = cluster();
    partitioned(&cluster, 2);
    let old = format!("{CLASSIC}-partition-0");
    let mut client = Client::to_owner(&cluster, &old).await;
    client.producer(0, &old, "p").await;
    client.publish_ok(0, 0, "old").await;
    migrate(&cluster);
    assert_eq!(cluster.control().stored(&old).unwrap().len(), 1);
    cluster.with(|c, now| c.delete_scalable_topic(&topic(TOPIC), true, now)).unwrap();
    assert!(cluster.control().stored(&old).is_err());
}
