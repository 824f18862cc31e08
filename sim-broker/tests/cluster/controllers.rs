//! Controllers: who leads, what outlives a leader, and who is registered.

use std::time::Duration;

use sim_broker::{
    SimCluster,
    control::ControlError,
    core::{
        BrokerId,
        fault::{Fault, FaultEffect, Selector},
        journal::Event,
    },
};
use stc_proto::pulsar::{command_ack::AckType, *};

use crate::{expect, ordered::*, support::*};

const NOT_LEADER: &str =
    "REFUSED UnknownError This broker is not the leader for topic: topic://public/default/t";

/// The index of the broker that leads the topic.
fn leader(cluster: &SimCluster) -> usize {
    let dag = cluster.control().current_dag(TOPIC).unwrap();
    cluster.broker_urls().iter().position(|url| url == dag.controller_broker_url()).unwrap()
}

/// `group/consumer`, with `?` in the grace period, and the segments, one registration a line.
fn registered(cluster: &SimCluster) -> Vec<String> {
    let registered = cluster.control().registered(TOPIC).unwrap();
    let line = |r: &sim_broker::core::cluster::Registered| {
        let mut text = format!("{}/{}", r.group.subscription, r.consumer);
        text += if r.session.is_none() { "?" } else { "" };
        r.shares.iter().fold(text, |text, share| format!("{text} {}", share.segment))
    };
    registered.iter().map(line).collect()
}

// ---- Who leads ----

#[tokio::test(start_paused = true)]
async fn only_the_leader_takes_registrations() {
    let cluster = topic_cluster(2);
    let leader = leader(&cluster);
    for broker in (0..3).filter(|broker| *broker != leader) {
        let mut client = Client::to(&cluster, broker).await;
        client.register(0, "s", "a", STREAM).await;
        client.sees(&[NOT_LEADER]).await;
    }
    assert!(registered(&cluster).is_empty());
    let mut client = Client::to(&cluster, leader).await;
    client.register(0, "s", "a", STREAM).await;
    client.sees(&["ASSIGNED 0: 0 1"]).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_broker_that_is_asked_leads_a_topic_without_a_controller() {
    for broker in 0..3 {
        let cluster = cluster_as("pulsar-5.0.1", |_| ());
        create(&cluster, TOPIC, 1);
        let mut client = Client::to(&cluster, broker).await;
        client.watch(1, TOPIC).await;
        client.register(0, "s", "a", STREAM).await;
        client.sees(&["LAYOUT 0 led", "ASSIGNED 0: 0", "LAYOUT 0 led"]).await;
        assert_eq!(leader(&cluster), broker);
        let mut other = Client::to(&cluster, (broker + 1) % 3).await;
        other.register(0, "s", "b", STREAM).await;
        other.sees(&[NOT_LEADER]).await;
    }
}

// ---- What outlives a leader ----

#[tokio::test(start_paused = true)]
async fn registrations_outlive_their_leader() {
    let cluster = cluster_as("spec-1.0", |c| c.failover_ms = 70_000);
    create(&cluster, TOPIC, 3);
    let old = leader(&cluster);
    for name in ["a", "b", "c"] {
        let mut client = to_leader(&cluster).await;
        client.register(0, "s", name, STREAM).await;
        client.seen_now().await;
        // The connection stays open until its broker dies.
        std::mem::forget(client);
    }
    assert_eq!(registered(&cluster), ["s/a 0", "s/b 1", "s/c 2"]);
    let mut watching = Client::to(&cluster, (old + 1) % 3).await;
    watching.watch(1, TOPIC).await;
    cluster.control().kill_broker(BrokerId(old as u32)).unwrap();
    assert_eq!(registered(&cluster), ["s/a? 0", "s/b? 1", "s/c? 2"]);
    // Longer than a grace period, but nobody leads meanwhile.
    let [seen] = pass([&mut watching], 69_990).await;
    assert!(seen.is_empty(), "{seen:?}");
    watching.register(0, "s", "a", STREAM).await;
    watching.sees(&[NOT_LEADER]).await;
    let [seen] = pass([&mut watching], 20).await;
    assert_eq!(seen, ["LAYOUT 0 led"]);
    let new = leader(&cluster);
    assert_ne!(new, old);

    // The first to come finds its assignment as it was.
    let mut a = Client::to(&cluster, new).await;
    a.register(5, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 0: 0"]).await;
    pass([&mut a, &mut watching], 30_000).await;
    let mut b = Client::to(&cluster, new).await;
    b.register(6, "s", "b", STREAM).await;
    b.sees(&["ASSIGNED 0: 1"]).await;
    // c does not come: its grace period began with the new leader.
    let [seen, other, _] = pass([&mut a, &mut b, &mut watching], 29_970).await;
    assert!(seen.is_empty() && other.is_empty(), "{seen:?} {other:?}");
    let [seen, other, _] = pass([&mut a, &mut b, &mut watching], 20).await;
    assert_eq!((seen, other), (vec!["UPDATE 5 0: 0 2".into()], vec!["UPDATE 6 0: 1".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_comes_back_in_time_leads_on() {
    let cluster = topic_cluster(2);
    let led = leader(&cluster);
    let mut a = to_leader(&cluster).await;
    a.register(0, "s", "a", STREAM).await;
    a.seen_now().await;
    let control = cluster.control();
    control.kill_broker(BrokerId(led as u32)).unwrap();
    tokio::time::sleep(Duration::from_millis(900)).await;
    control.revive_broker(BrokerId(led as u32)).unwrap();
    // The grace period began with its return, not with its death.
    tokio::time::sleep(Duration::from_millis(59_500)).await;
    assert_eq!(registered(&cluster), ["s/a? 0 1"]);
    let mut a = Client::to(&cluster, led).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 0: 0 1"]).await;
    let [seen] = pass([&mut a], 61_000).await;
    assert!(seen.is_empty(), "{seen:?}");
    assert_eq!(registered(&cluster), ["s/a 0 1"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_drained_outlives_a_leader_too() {
    let cluster = topic_cluster(1);
    // Without it nothing would be drained: a subscription that is not there has not read anything.
    cluster.with(|c, now| c.create_scalable_subscription(&topic(TOPIC), "s", false, now)).unwrap();
    let mut a = to_leader(&cluster).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 0: 0"]).await;
    split(&cluster, TOPIC, 0);
    pass([&mut a], 2_000).await;
    assert_eq!(registered(&cluster), ["s/a 1 2"]);
    let dead = leader(&cluster);
    cluster.control().kill_broker(BrokerId(dead as u32)).unwrap();
    tokio::time::sleep(Duration::from_millis(1_001)).await;
    let mut a = to_leader(&cluster).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 1: 1 2"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_looks_for_drained_parents_and_prunes() {
    let cluster = topic_cluster(1);
    let mut segment = Client::to_owner(&cluster, &segment("0000-ffff-0")).await;
    let mut a = to_leader(&cluster).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 0: 0"]).await;
    let ids = segment.store("0000-ffff-0", &["k"]).await;
    segment.own(1, "0000-ffff-0", "s").await;
    segment.sees(&["SUCCESS", "MESSAGE 1 0 k"]).await;
    split(&cluster, TOPIC, 0);
    let moved = (leader(&cluster) + 1) % 3;
    cluster.control().move_controller(TOPIC, BrokerId(moved as u32)).unwrap();
    segment.ack(1, AckType::Cumulative, &ids).await;
    segment.detach(1).await;
    segment.seen_now().await;
    let mut a = to_leader(&cluster).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 1: 0"]).await;
    let [seen, _] = pass([&mut a, &mut segment], 2_000).await;
    assert_eq!(seen, ["UPDATE 0 1: 1 2"]);
    let [seen, _] = pass([&mut a, &mut segment], 58_000).await;
    assert_eq!(seen, ["UPDATE 0 2: 1 2"], "pruned: another epoch");
}

#[tokio::test(start_paused = true)]
async fn a_deposed_leader_closes_the_connections_of_its_consumers() {
    let cluster = topic_cluster(2);
    let (old, new) = (leader(&cluster), (leader(&cluster) + 1) % 3);
    let mut watch = Client::to(&cluster, new).await;
    watch.watch(1, TOPIC).await;
    let mut other = Client::to(&cluster, old).await;
    let mut a = Client::to(&cluster, old).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 0: 0 1"]).await;
    cluster.control().move_controller(TOPIC, BrokerId(new as u32)).unwrap();
    a.expect_closed().await;
    watch.sees(&["LAYOUT 0 led"]).await;
    // Who is not registered stays.
    other.watch(2, TOPIC).await;
    assert_eq!(registered(&cluster), ["s/a? 0 1"]);
    let mut a = Client::to(&cluster, new).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 0: 0 1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_moved_controller_waits_for_its_consumers_on_the_new_broker() {
    let cluster = cluster_as("spec-1.0", |c| c.profile.deposed_leader_closes = false);
    create(&cluster, TOPIC, 2);
    let old = leader(&cluster);
    let mut a = Client::to(&cluster, old).await;
    a.watch(1, TOPIC).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["ASSIGNED 0: 0 1"]).await;
    let new = (old + 1) % 3;
    let control = cluster.control();
    control.move_controller(TOPIC, BrokerId(old as u32)).unwrap();
    assert_eq!(registered(&cluster), ["s/a 0 1"], "it led already");
    control.move_controller(TOPIC, BrokerId(new as u32)).unwrap();
    a.sees(&["LAYOUT 0 led"]).await;
    assert_eq!(registered(&cluster), ["s/a? 0 1"]);
    // The old leader has nothing to say any more, and cannot drop the registration.
    a.leave(0).await;
    a.register(0, "s", "a", STREAM).await;
    a.sees(&["SUCCESS", NOT_LEADER]).await;
    let mut moved = Client::to(&cluster, new).await;
    moved.register(0, "s", "a", STREAM).await;
    moved.sees(&["ASSIGNED 0: 0 1"]).await;
    let led =
        |r: &sim_broker::core::journal::Record| matches!(&r.event, Event::Controller { change: "lead", .. });
    assert_eq!(control.journal().iter().filter(|r| led(r)).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unloaded_broker_gives_everything_away_at_once() {
    let cluster = topic_cluster(3);
    let control = cluster.control();
    let unloaded = leader(&cluster);
    let url = cluster.broker_urls()[unloaded].clone();
    let mut client = Client::to(&cluster, unloaded).await;
    client.watch(1, TOPIC).await;
    let dag = control.current_dag(TOPIC).unwrap();
    let own = dag.segment_brokers.iter().find(|b| b.broker_url == url).unwrap().segment_id;
    let descriptor = ["0000-5554-0", "5555-aaa9-1", "aaaa-ffff-2"][own as usize];
    client.producer(7, &segment(descriptor), "p").await;
    control.unload_broker(BrokerId(unloaded as u32)).unwrap();
    let close = expect!(client, CloseProducer);
    assert_eq!((close.producer_id, close.request_id), (7, u64::MAX));
    assert!(close.assigned_broker_service_url() != url && !close.assigned_broker_service_url().is_empty());
    let moved = expect!(client, ScalableTopicUpdate).dag.unwrap();
    assert_eq!((moved.epoch, moved.segment_brokers.len()), (0, 3));
    assert!(moved.segment_brokers.iter().all(|b| b.broker_url != url), "{moved:?}");
    assert_ne!(moved.controller_broker_url(), url);
    // It is up all the same, and what is moved to it comes back.
    client.expect_nothing().await;
    control.move_segment(TOPIC, own, BrokerId(unloaded as u32)).unwrap();
    assert_eq!(
        expect!(client, ScalableTopicUpdate).dag.unwrap().segment_brokers[own as usize].broker_url,
        url
    );
    for other in (0..3).filter(|other| *other != unloaded) {
        control.kill_broker(BrokerId(other as u32)).unwrap();
    }
    let alone = control.unload_broker(BrokerId(unloaded as u32)).unwrap_err();
    assert!(matches!(alone, ControlError::State(text) if text.contains("the only one")));
}

// ---- Who is registered ----

#[tokio::test(start_paused = true)]
async fn a_consumer_leaves_at_once_while_others_use_its_connection() {
    let cluster = topic_cluster(2);
    let mut client = to_leader(&cluster).await;
    client.register(1, "s", "a", STREAM).await;
    client.register(2, "s", "b", STREAM).await;
    client.register(3, "t", "a", STREAM).await;
    client.sees(&["ASSIGNED 0: 0 1", "UPDATE 1 0: 0", "ASSIGNED 0: 1", "ASSIGNED 0: 0 1"]).await;
    client.leave(1).await;
    client.sees(&["UPDATE 2 0: 0 1", "SUCCESS"]).await;
    client.leave(1).await;
    client.sees(&["SUCCESS"]).await;
    assert_eq!(registered(&cluster), ["s/b 0 1", "t/a 0 1"]);
}

#[tokio::test(start_paused = true)]
async fn the_session_that_a_name_was_taken_from_can_neither_leave_nor_expire() {
    let cluster = topic_cluster(1);
    let mut first = to_leader(&cluster).await;
    let mut second = to_leader(&cluster).await;
    first.register(1, "s", "a", STREAM).await;
    first.seen_now().await;
    second.register(9, "s", "a", STREAM).await;
    second.seen_now().await;
    first.leave(1).await;
    first.sees(&["SUCCESS"]).await;
    first.register(1, "s", "a", STREAM).await;
    first.seen_now().await;
    second.register(9, "s", "a", STREAM).await;
    second.seen_now().await;
    drop(first);
    let [seen] = pass([&mut second], 70_000).await;
    assert!(seen.is_empty(), "{seen:?}");
    assert_eq!(registered(&cluster), ["s/a 0"]);
    split(&cluster, TOPIC, 0);
    second.sees(&["UPDATE 9 1: 0"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_id_that_registers_under_another_name_lets_go_of_the_first() {
    let cluster = topic_cluster(2);
    let mut client = to_leader(&cluster).await;
    client.register(1, "s", "a", STREAM).await;
    client.register(1, "s", "b", STREAM).await;
    client.sees(&["ASSIGNED 0: 0 1", "ASSIGNED 0: 1"]).await;
    assert_eq!(registered(&cluster), ["s/a? 0", "s/b 1"]);
    let [seen] = pass([&mut client], 60_000).await;
    assert_eq!(seen, ["UPDATE 1 0: 0 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_is_made_again_has_no_registrations() {
    let cluster = topic_cluster(1);
    let mut client = to_leader(&cluster).await;
    client.register(1, "s", "a", STREAM).await;
    client.seen_now().await;
    cluster.with(|c, now| c.delete_scalable_topic(&topic(TOPIC), true, now)).unwrap();
    create(&cluster, TOPIC, 1);
    client.leave(1).await;
    client.sees(&["SUCCESS"]).await;
    assert!(registered(&cluster).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_timer_of_an_earlier_life_means_nothing() {
    let cluster = topic_cluster(1);
    let mut watching = Client::to(&cluster, 0).await;
    for _ in 0..2 {
        let mut client = to_leader(&cluster).await;
        client.register(1, "s", "a", STREAM).await;
        client.sees(&["ASSIGNED 0: 0"]).await;
        drop(client);
        pass([&mut watching], 30_000).await;
        assert_eq!(registered(&cluster), ["s/a? 0"]);
        cluster.with(|c, now| c.delete_scalable_topic(&topic(TOPIC), true, now)).unwrap();
        create(&cluster, TOPIC, 1);
    }
    let mut client = to_leader(&cluster).await;
    client.register(1, "s", "a", STREAM).await;
    client.sees(&["ASSIGNED 0: 0"]).await;
    drop(client);
    // The first life's timer is due now, the second one's in 30 s.
    pass([&mut watching], 59_990).await;
    assert_eq!(registered(&cluster), ["s/a? 0"]);
    pass([&mut watching], 20).await;
    assert!(registered(&cluster).is_empty());
}

#[tokio::test(start_paused = true)]
async fn any_assignment_can_be_pushed_and_any_update_held() {
    let cluster = topic_cluster(2);
    let control = cluster.control();
    let mut client = to_leader(&cluster).await;
    client.register(1, "s", "a", STREAM).await;
    client.seen_now().await;
    let stale = ScalableConsumerAssignment { layout_epoch: 7, segments: Vec::new() };
    control.push_assignment(TOPIC, "s", "a", &stale).unwrap();
    client.sees(&["UPDATE 1 7:"]).await;
    let none = control.push_assignment(TOPIC, "s", "b", &stale).unwrap_err();
    assert!(matches!(none, ControlError::NotFound(_)));

    let updates =
        Selector { topic: Some(TOPIC.into()), ..Selector::command("SCALABLE_TOPIC_ASSIGNMENT_UPDATE") };
    control.arm(Fault::new(updates, FaultEffect::Hold)).unwrap();
    client.register(2, "s", "b", STREAM).await;
    client.sees(&["ASSIGNED 0: 1"]).await;
    assert_eq!(control.release_all(), 1);
    client.sees(&["UPDATE 1 0: 0"]).await;
}

/// What 5.0.1 writes beside a layout pushes it: the first load report of each segment, a policy, and the end of both.
#[tokio::test(start_paused = true)]
async fn records_beside_the_layout_push_it() {
    let cluster = cluster_as("pulsar-5.0.1", |c| c.brokers = 1);
    create(&cluster, TOPIC, 2);
    let mut client = Client::to(&cluster, 0).await;
    client.watch(1, TOPIC).await;
    let [seen] = pass([&mut client], 10_000).await;
    assert_eq!(seen, ["LAYOUT 0 headless", "LAYOUT 0 headless"]);
    let [seen] = pass([&mut client], 10_000).await;
    assert!(seen.is_empty(), "{seen:?}");
    split(&cluster, TOPIC, 0);
    client.sees(&["LAYOUT 0 led", "LAYOUT 1 led"]).await;
    let [seen] = pass([&mut client], 10_000).await;
    assert_eq!(seen, ["LAYOUT 1 led", "LAYOUT 1 led"], "two new segments");
    cluster.with(|c, now| c.set_auto_scale_policy(&topic(TOPIC), None, now)).unwrap();
    client.sees(&["LAYOUT 1 led"]).await;
    client.register(0, "s", "a", STREAM).await;
    client.sees(&["ASSIGNED 1: 0 1", "LAYOUT 1 led"]).await;
    cluster.with(|c, now| c.delete_scalable_topic(&topic(TOPIC), true, now)).unwrap();
    // The controller, a subscription, its consumer, and four reports.
    client.sees(&["LAYOUT 1 headless"; 7]).await;
}
