//! Handshake, keep-alive, slow readers, clean shutdown.

use std::time::Duration;

use sim_broker::core::{KEEP_ALIVE_MS, journal::Event};
use stc_proto::{Command, pulsar::*};
use tokio::time::Instant;

use crate::{expect, support::*};

#[tokio::test(start_paused = true)]
async fn connected_tells_version_limits_and_features() {
    for (profile, server) in [
        ("spec-1.0", "stc-sim-broker"),
        ("pulsar-5.0.1", "Pulsar Server5.0.1"),
        ("pulsar-5.0.0-M1", "Pulsar Server5.0.0-M1"),
    ] {
        let cluster = cluster_as(profile, |_| ());
        let mut client = Client::open(&cluster, &cluster.service_url());
        client.send(connect()).await;
        let connected = expect!(client, Connected);
        assert_eq!(connected.server_version, server);
        assert_eq!((connected.protocol_version(), connected.max_message_size()), (21, 5_242_880));
        let flags = connected.feature_flags.unwrap();
        assert_eq!(
            flags,
            FeatureFlags {
                supports_topic_watchers: Some(true),
                supports_get_partitioned_metadata_without_auto_creation: Some(true),
                supports_repl_dedup_by_lid_and_eid: Some(true),
                supports_topic_watcher_reconcile: Some(true),
                supports_scalable_topics: Some(true),
                supports_tc_metadata_discovery: Some(true),
                ..Default::default()
            }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_broker_pings_every_30_s_and_closes_who_stays_silent_for_60_s() {
    let cluster = cluster();
    let start = Instant::now();
    let mut client = Client::connect(&cluster, &cluster.service_url()).await;
    for i in 1..=3 {
        tokio::time::sleep(Duration::from_millis(KEEP_ALIVE_MS)).await;
        expect!(client.raw(), Ping);
        assert_eq!(start.elapsed(), Duration::from_millis(i * KEEP_ALIVE_MS));
        client.send(CommandPong {}).await;
    }
    tokio::time::sleep(Duration::from_millis(KEEP_ALIVE_MS)).await;
    expect!(client.raw(), Ping);
    tokio::time::sleep(Duration::from_millis(KEEP_ALIVE_MS)).await;
    client.expect_closed().await;
    assert_eq!(start.elapsed(), Duration::from_millis(5 * KEEP_ALIVE_MS));
    assert!(close_reason(&cluster.control()).contains("60 s"));
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_never_comes_ends_the_connection_after_30_s() {
    let cluster = cluster();
    let mut client = Client::open(&cluster, &cluster.service_url());
    tokio::time::sleep(Duration::from_millis(KEEP_ALIVE_MS)).await;
    client.expect_closed().await;
    assert!(close_reason(&cluster.control()).contains("handshake"));
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_and_an_unasked_auth_response_is_ignored() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    client.send(CommandAuthResponse::default()).await;
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_closed_and_others_go_on() {
    let cluster = cluster_as("spec-1.0", |c| c.outbound_limit = 1_000_000);
    let segment = segment_of(&cluster, "topic://public/default/t").await;
    let mut slow = Client::to_owner(&cluster, &segment).await;
    slow.subscribe(0, &segment, "slow").await;
    slow.send(CommandFlow { consumer_id: 0, message_permits: 100_000 }).await;
    let mut client = Client::to_owner(&cluster, &segment).await;
    client.producer(0, &segment, "p").await;
    let payload = "x".repeat(10_000);
    for i in 0..200 {
        client.publish_ok(0, i, &payload).await;
    }
    assert!(close_reason(&cluster.control()).contains("too slowly"));
    client.expect_nothing().await;
    assert_eq!(cluster.control().stored("topic://public/default/t").unwrap().len(), 200);
    // It is cut off although it never read; what the link held is still there.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut read = 0;
    while slow.try_recv().await.is_some() {
        read += 1;
    }
    assert!(read < 100, "{read}");
}

#[tokio::test(start_paused = true)]
async fn shutdown_closes_connections_and_ends_every_task() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    cluster.shutdown().await;
    client.expect_closed().await;
    let closed = cluster.control().journal().into_iter().any(
        |r| matches!(r.event, Event::TcpClose { side: "broker", ref reason } if reason.contains("shut down")),
    );
    assert!(closed);
}

#[tokio::test(start_paused = true)]
async fn moving_the_clock_makes_due_what_was_planned() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    let before = cluster.now();
    cluster.control().advance_clock(KEEP_ALIVE_MS);
    assert_eq!(cluster.now() - before, KEEP_ALIVE_MS);
    assert!(matches!(client.raw().recv().await.command, Command::Ping(_)));
    // The timer knows of the move: the next one comes by itself, 30 s of waiting later.
    client.send(CommandPong {}).await;
    tokio::time::sleep(Duration::from_millis(KEEP_ALIVE_MS)).await;
    assert!(matches!(client.raw().recv().await.command, Command::Ping(_)));
}

#[tokio::test(start_paused = true)]
async fn reset_empties_the_cluster_and_drops_its_connections() {
    let cluster = cluster();
    let control = cluster.control();
    let mut client = Client::to(&cluster, 0).await;
    client.watch(1, "topic://public/default/t").await;
    control.reset();
    client.expect_closed().await;
    assert!(control.journal().is_empty());
    assert!(control.current_dag("topic://public/default/t").is_err());
    let mut client = Client::to(&cluster, 0).await;
    assert_eq!(client.watch(1, "topic://public/default/t").await.dag.unwrap().epoch, 0);
}
