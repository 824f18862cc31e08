//! Statistics of topics that are in use.

use serde_json::Value as Json;
use stc_proto::{Command, pulsar::*};

use crate::{raw::Client, support::Site};

const SEGMENTS: [&str; 2] =
    ["segment://public/default/t/0000-7fff-0", "segment://public/default/t/8000-ffff-1"];

#[tokio::test(start_paused = true)]
async fn a_scalable_topic_tells_who_is_attached_and_what_is_left() {
    let site = Site::with_brokers("spec-1.0", 1);
    let t = "/admin/v2/scalable/public/default/t";
    site.call("PUT", &format!("{t}?numInitialSegments=2")).await;
    let mut client = Client::to(&site.cluster, 0).await;
    for (id, segment) in (1..).zip(SEGMENTS) {
        client.producer(id, segment, &format!("orders-seg-{}", id - 1)).await;
        client.publish_ok(id, 0, "one").await;
        client.publish_ok(id, 1, "two").await;
        client.subscribe(id, segment, "work").await;
        for _ in 0..2 {
            client.message().await;
        }
    }
    let stats = site.call("GET", &format!("{t}/stats")).await.json();
    assert_eq!(stats["controllerBroker"], "broker-0:8080");
    assert_eq!(stats["layout"]["segments"]["1"]["name"], SEGMENTS[1]);
    assert_eq!(stats["layout"]["segments"]["1"]["ownerBroker"], "broker-0:8080");
    assert!(stats["storageSize"].as_u64().unwrap() > 0);
    // One line for the producer, though each segment has one.
    let producers = stats["producers"].as_array().unwrap();
    assert_eq!(producers.len(), 1, "{producers:?}");
    assert_eq!(producers[0]["producerName"], "orders");
    assert_eq!(producers[0]["accessMode"], "Shared");
    let work = &stats["subscriptions"]["work"];
    assert_eq!(
        (&work["type"], &work["msgBacklog"], &work["unackedMessages"]),
        (&"QUEUE".into(), &4.into(), &4.into())
    );
    assert_eq!(work["segments"]["0"]["msgBacklog"], 2);
    assert_eq!(work["segments"]["1"]["consumerCount"], 1);

    let segment = site.call("GET", &format!("{t}/segments/1/stats")).await.json();
    assert_eq!(segment["producers"][0]["producerName"], "orders-seg-1");
    assert_eq!(segment["subscriptions"]["work"]["type"], "Shared");
    assert_eq!(segment["subscriptions"]["work"]["consumers"][0]["availablePermits"], 998);

    site.call("POST", &format!("{t}/subscriptions/work/skip-all")).await;
    let stats = site.call("GET", &format!("{t}/stats")).await.json();
    assert_eq!(stats["subscriptions"]["work"]["msgBacklog"], 0);
}

/// What a controller gave a stream consumer counts, attached or not (5.0.1: `segmentIds` in the controller's order).
#[tokio::test(start_paused = true)]
async fn a_stream_consumer_is_shown_with_its_assignment() {
    let site = Site::with_brokers("pulsar-5.0.1", 1);
    let t = "/admin/v2/scalable/public/default/t";
    site.call("PUT", &format!("{t}?numInitialSegments=2")).await;
    site.call("PUT", &format!("{t}/subscriptions/work")).await;
    let mut client = Client::to(&site.cluster, 0).await;
    for (consumer_id, name) in (0..).zip(["a", "b"]) {
        client
            .send(CommandScalableTopicSubscribe {
                request_id: consumer_id,
                topic: "topic://public/default/t".into(),
                subscription: "work".into(),
                consumer_name: name.into(),
                consumer_id,
                consumer_type: ScalableConsumerType::Stream as i32,
            })
            .await;
    }
    let mut responses = 0;
    while responses < 2 {
        responses +=
            usize::from(matches!(client.recv().await.command, Command::ScalableTopicSubscribeResponse(_)));
    }
    let shown = async || {
        let stats = site.call("GET", &format!("{t}/stats")).await.json();
        let line = |c: &Json| (c["consumerName"].clone(), c["connected"].clone(), c["segmentIds"].clone());
        let consumers = stats["subscriptions"]["work"]["consumers"].as_array().unwrap().clone();
        consumers.iter().map(line).collect::<Vec<_>>()
    };
    let line = |name: &str, connected: bool, id: u64| (name.into(), connected.into(), vec![id].into());
    assert_eq!(shown().await, [line("a", true, 0), line("b", true, 1)]);
    drop(client);
    site.cluster.control().drop_connections(Default::default());
    assert_eq!(shown().await, [line("a", false, 0), line("b", false, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_classic_topic_tells_who_is_attached_and_what_is_left() {
    let site = Site::with_brokers("spec-1.0", 1);
    let c = "/admin/v2/persistent/public/default/c";
    site.call("PUT", c).await;
    let mut client = Client::to(&site.cluster, 0).await;
    client.producer(1, "persistent://public/default/c", "p").await;
    let last = client.publish_ok(1, 0, "one").await;
    site.call_with("PUT", &format!("{c}/subscription/early"), r#"{"ledgerId":-1,"entryId":-1}"#).await;
    site.call("PUT", &format!("{c}/subscription/late")).await;
    let stats = site.call("GET", &format!("{c}/stats")).await.json();
    assert_eq!((&stats["msgInCounter"], &stats["ownerBroker"]), (&1.into(), &"broker-0:8080".into()));
    assert_eq!(stats["publishers"][0]["producerName"], "p");
    assert_eq!(stats["subscriptions"]["early"]["msgBacklog"], 1);
    assert_eq!(stats["subscriptions"]["late"]["msgBacklog"], 0);
    let id = site.call("GET", &format!("{c}/lastMessageId")).await.json();
    assert_eq!((&id["ledgerId"], &id["entryId"]), (&last.ledger_id.into(), &last.entry_id.into()));
    // Sent back to the beginning, everything is left to read.
    site.call("POST", &format!("{c}/subscription/late/resetcursor/0")).await;
    let stats = site.call("GET", &format!("{c}/stats")).await.json();
    assert_eq!(stats["subscriptions"]["late"]["msgBacklog"], 1);
}

#[tokio::test(start_paused = true)]
async fn classic_clients_hold_a_migration_up_until_it_is_forced() {
    let site = Site::with_brokers("spec-1.0", 1);
    site.call_with("PUT", "/admin/v2/persistent/public/default/m/partitions", "2").await;
    let mut client = Client::to(&site.cluster, 0).await;
    client.producer(1, "persistent://public/default/m-partition-0", "p").await;
    let m = "/admin/v2/scalable/public/default/m";
    let refused = site.call("POST", &format!("{m}/migrate")).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.reason().starts_with("1 legacy v4 client connection(s) still attached"),
        "{}",
        refused.body
    );
    assert_eq!(site.call("GET", m).await.status, 404);
    assert_eq!(site.call("POST", &format!("{m}/migrate?force=true")).await.status, 204);
    let layout = site.call("GET", m).await.json();
    assert_eq!(layout["segments"]["0"]["legacyTopicName"], "persistent://public/default/m-partition-0");
    assert_eq!((&layout["epoch"], &layout["segments"]["2"]["parentIds"][1]), (&0.into(), &1.into()));
}
