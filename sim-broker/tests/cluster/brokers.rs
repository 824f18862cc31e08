//! Brokers that die, come back, and give segments and controllers to each other.

use std::time::Duration;

use sim_broker::core::{BrokerId, cluster::control::DropSelector, journal::Event};
use stc_proto::pulsar::*;

use crate::{expect, support::*};

const TOPIC: &str = "topic://public/default/t";

fn index_of(cluster: &sim_broker::SimCluster, url: &str) -> u32 {
    cluster.broker_urls().iter().position(|u| u == url).unwrap() as u32
}

#[tokio::test(start_paused = true)]
async fn a_moved_segment_tells_its_clients_where_it_is_and_keeps_its_messages() {
    let cluster = cluster();
    create(&cluster, TOPIC, 1);
    let segment = "segment://public/default/t/0000-ffff-0";
    let mut watching = Client::to(&cluster, 0).await;
    let first = watching.watch(1, TOPIC).await.dag.unwrap();
    let from = index_of(&cluster, &first.segment_brokers[0].broker_url);
    let to = (from + 1) % 3;
    let to_url = cluster.broker_urls()[to as usize].clone();
    let mut client = Client::to(&cluster, from as usize).await;
    client.producer(0, segment, "p").await;
    client.publish_ok(0, 0, "kept").await;
    client.subscribe(0, segment, "s").await;
    assert_eq!(client.message().await.0, "kept");

    cluster.control().move_segment(TOPIC, 0, BrokerId(to)).unwrap();
    let close = expect!(client, CloseProducer);
    assert_eq!(
        (close.request_id, close.assigned_broker_service_url.as_deref()),
        (u64::MAX, Some(to_url.as_str()))
    );
    let close = expect!(client, CloseConsumer);
    assert_eq!(
        (close.request_id, close.assigned_broker_service_url.as_deref()),
        (u64::MAX, Some(to_url.as_str()))
    );
    let moved = expect!(watching, ScalableTopicUpdate).dag.unwrap();
    assert_eq!((moved.epoch, &moved.segments), (first.epoch, &first.segments));
    assert_eq!(moved.segment_brokers[0].broker_url, to_url);
    // What was on its way is ignored, and the old owner serves it no more.
    client.publish(0, 1, "on its way").await;
    client.expect_nothing().await;
    client.send(producer(0, segment, "p", 9)).await;
    assert_eq!(expect!(client, Error).error(), ServerError::ServiceNotReady);
    assert_eq!(client.lookup(segment).await.broker_service_url.as_deref(), Some(to_url.as_str()));

    let mut client = Client::to(&cluster, to as usize).await;
    client.producer(0, segment, "p").await;
    client.publish_ok(0, 1, "second").await;
    client.subscribe(0, segment, "s").await;
    assert_eq!(client.message().await.0, "kept", "not acknowledged before the move");
    assert_eq!(client.message().await.0, "second");
}

#[tokio::test(start_paused = true)]
async fn a_moved_controller_is_pushed_at_the_same_epoch() {
    let cluster = cluster();
    create(&cluster, TOPIC, 1);
    let mut client = Client::to(&cluster, 0).await;
    let first = client.watch(1, TOPIC).await.dag.unwrap();
    let to = (index_of(&cluster, first.controller_broker_url()) + 1) % 3;
    cluster.control().move_controller(TOPIC, BrokerId(to)).unwrap();
    let moved = expect!(client, ScalableTopicUpdate).dag.unwrap();
    assert_eq!(moved.controller_broker_url, Some(cluster.broker_urls()[to as usize].clone()));
    assert_eq!(
        ScalableTopicDag { controller_broker_url: first.controller_broker_url.clone(), ..moved },
        first
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_broker_owned_is_unavailable_until_others_take_over() {
    let cluster = cluster_as("spec-1.0", |c| c.failover_ms = 4_000);
    create(&cluster, TOPIC, 3);
    let control = cluster.control();
    let dag = control.current_dag(TOPIC).unwrap();
    let dead = index_of(&cluster, &dag.segment_brokers[1].broker_url);
    let dead_url = dag.segment_brokers[1].broker_url.clone();
    let segment = "segment://public/default/t/5555-aaa9-1";
    let mut attached = Client::to(&cluster, dead as usize).await;
    attached.producer(0, segment, "p").await;
    attached.publish_ok(0, 0, "kept").await;
    let alive = (dead + 1) % 3;
    let mut watching = Client::to(&cluster, alive as usize).await;
    watching.watch(1, TOPIC).await;

    control.kill_broker(BrokerId(dead)).unwrap();
    attached.expect_closed().await;
    assert!(cluster.connect(&dead_url).is_err());
    assert!(control.journal().iter().any(|r| r.event == Event::TcpRefused));
    assert_eq!(watching.lookup(segment).await.error(), ServerError::ServiceNotReady);
    let split = cluster.with(|c, now| c.split_segment(&topic(TOPIC), 1, now));
    assert_eq!(split.unwrap_err().status, 503);

    tokio::time::sleep(Duration::from_millis(4_000)).await;
    let moved = expect!(watching, ScalableTopicUpdate).dag.unwrap();
    assert_eq!(moved.epoch, 0);
    assert_eq!(moved.segment_brokers.len(), 3);
    assert!(moved.segment_brokers.iter().all(|b| b.broker_url != dead_url), "{moved:?}");
    let answer = watching.lookup(segment).await;
    let mut client = Client::connect(&cluster, &answer.broker_service_url.unwrap()).await;
    client.subscribe(0, segment, "s").await;
    assert_eq!(client.message().await.0, "kept");

    // Back again: it owns nothing of this until something is moved to it.
    control.revive_broker(BrokerId(dead)).unwrap();
    watching.expect_nothing().await;
    assert!(cluster.connect(&dead_url).is_ok());
    control.move_segment(TOPIC, 1, BrokerId(dead)).unwrap();
    assert_eq!(expect!(watching, ScalableTopicUpdate).dag.unwrap().segment_brokers[1].broker_url, dead_url);
}

/// A consumer of a sealed segment that has nothing, and whether it is told so.
async fn is_told_of_the_end(client: &mut Client, id: u64, segment: &str) -> bool {
    client.subscribe(id, segment, "s").await;
    client.send(CommandPing {}).await;
    let frame = client.recv().await;
    let told = matches!(frame.command, stc_proto::Command::ReachedEndOfTopic(_));
    if told {
        expect!(client, Pong);
    }
    told
}

#[tokio::test(start_paused = true)]
async fn the_read_that_found_the_end_of_a_segment_dies_with_its_broker() {
    let cluster = cluster_as("pulsar-5.0.1", |_| ());
    let segment = segment_of(&cluster, TOPIC).await;
    split(&cluster, TOPIC, 0);
    let url = Client::to(&cluster, 0).await.lookup(&segment).await.broker_service_url.unwrap();
    let owner = index_of(&cluster, &url);
    let mut client = Client::connect(&cluster, &url).await;
    assert!(is_told_of_the_end(&mut client, 0, &segment).await, "the first one");
    assert!(!is_told_of_the_end(&mut client, 1, &segment).await);

    // Back at once, it is another process all the same.
    let control = cluster.control();
    control.kill_broker(BrokerId(owner)).unwrap();
    control.revive_broker(BrokerId(owner)).unwrap();
    let mut client = Client::connect(&cluster, &url).await;
    assert!(is_told_of_the_end(&mut client, 0, &segment).await, "the first one after a restart");
    assert!(!is_told_of_the_end(&mut client, 1, &segment).await);

    control.kill_broker(BrokerId(owner)).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut other = Client::to(&cluster, (owner as usize + 1) % 3).await;
    let url = other.lookup(&segment).await.broker_service_url.unwrap();
    assert_ne!(index_of(&cluster, &url), owner);
    let mut client = Client::connect(&cluster, &url).await;
    assert!(is_told_of_the_end(&mut client, 0, &segment).await, "the first one at the new owner");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_comes_back_in_time_keeps_what_it_owned() {
    let cluster = cluster();
    create(&cluster, TOPIC, 1);
    let control = cluster.control();
    let before = control.current_dag(TOPIC).unwrap();
    let owner = BrokerId(index_of(&cluster, &before.segment_brokers[0].broker_url));
    control.kill_broker(owner).unwrap();
    assert!(control.current_dag(TOPIC).unwrap().segment_brokers.is_empty());
    control.revive_broker(owner).unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(control.current_dag(TOPIC).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn each_broker_is_given_its_own_time_to_come_back() {
    let cluster = cluster();
    create(&cluster, TOPIC, 3);
    let control = cluster.control();
    let url = |i: usize| cluster.broker_urls()[i].clone();
    let served = || control.current_dag(TOPIC).unwrap().segment_brokers;
    control.kill_broker(BrokerId(0)).unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    control.kill_broker(BrokerId(1)).unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    // What broker 0 had is taken over; what broker 1 has waits for it.
    assert_eq!(served().len(), 2);
    assert!(served().iter().all(|b| b.broker_url == url(2)));
    control.revive_broker(BrokerId(1)).unwrap();
    assert_eq!(served().iter().filter(|b| b.broker_url == url(1)).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn with_every_broker_dead_the_first_one_back_takes_everything() {
    let cluster = cluster();
    create(&cluster, TOPIC, 3);
    let control = cluster.control();
    for i in 0..3 {
        control.kill_broker(BrokerId(i)).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    control.revive_broker(BrokerId(2)).unwrap();
    let url = cluster.broker_urls()[2].clone();
    let dag = control.current_dag(TOPIC).unwrap();
    assert_eq!(dag.segment_brokers.len(), 3);
    assert!(dag.segment_brokers.iter().all(|b| b.broker_url == url));
    assert_eq!(dag.controller_broker_url, Some(url));
}

#[tokio::test(start_paused = true)]
async fn coordinators_are_spread_watched_and_elected_again() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    client.send(CommandWatchTcAssignments { watch_id: 5 }).await;
    let snapshot = expect!(client, WatchTcAssignmentsUpdate).snapshot.unwrap();
    assert_eq!((snapshot.parallelism, snapshot.assignments.len()), (16, 16));
    let url = cluster.broker_urls()[0].clone();
    for assignment in &snapshot.assignments {
        let request_id = client.request();
        let tc_id = assignment.tc_id;
        client.send(CommandTcClientConnectRequest { request_id, tc_id, scalable: Some(true) }).await;
        let error = expect!(client, TcClientConnectResponse).error;
        let led_here = assignment.broker_service_url() == url;
        assert_eq!(error.is_none(), led_here, "coordinator {tc_id}");
    }
    assert!((1..16).contains(&snapshot.assignments.iter().filter(|a| a.broker_service_url() == url).count()));

    cluster.control().kill_broker(BrokerId(1)).unwrap();
    let during = expect!(client, WatchTcAssignmentsUpdate).snapshot.unwrap();
    assert!(during.assignments.len() < 16, "an election leaves coordinators out");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = expect!(client, WatchTcAssignmentsUpdate).snapshot.unwrap();
    assert_eq!(after.assignments.len(), 16);
    assert!(after.assignments.iter().all(|a| a.broker_service_url() != cluster.broker_urls()[1]));
    client.send(CommandWatchTcAssignmentsClose { watch_id: 5 }).await;
    client.expect_nothing().await;
    cluster.control().kill_broker(BrokerId(2)).unwrap();
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn connections_are_dropped_by_broker_or_number() {
    let cluster = cluster();
    let control = cluster.control();
    let mut at_0 = Client::to(&cluster, 0).await;
    let mut at_1 = Client::to(&cluster, 1).await;
    let which = DropSelector { broker: Some(BrokerId(0)), ..Default::default() };
    assert_eq!(control.drop_connections(which), 1);
    at_0.expect_closed().await;
    at_1.expect_nothing().await;
    assert_eq!(control.drop_connections(DropSelector::default()), 1);
    at_1.expect_closed().await;
}

#[tokio::test(start_paused = true)]
async fn nonsense_is_refused() {
    let cluster = cluster();
    create(&cluster, TOPIC, 1);
    let control = cluster.control();
    assert!(control.kill_broker(BrokerId(3)).is_err());
    assert!(control.revive_broker(BrokerId(0)).is_err(), "it is up");
    assert!(control.move_segment(TOPIC, 9, BrokerId(0)).is_err());
    assert!(control.move_segment("topic://public/default/none", 0, BrokerId(0)).is_err());
    assert!(control.move_segment("nonsense://", 0, BrokerId(0)).is_err());
    control.kill_broker(BrokerId(0)).unwrap();
    assert!(control.kill_broker(BrokerId(0)).is_err(), "it is down");
    assert!(control.move_controller(TOPIC, BrokerId(0)).is_err(), "it is down");
    assert!(control.release(1).is_err());
    assert!(control.disarm(1).is_err());
}
