//! What a producer holds, and what it does at the limits; sequence ids and exclusive access across reconnects.

use std::time::Duration;

use sim_broker::core::{
    cluster::control::DropSelector,
    fault::{ErrorCode, Fault, FaultEffect, Selector},
};
use stc_client::{AccessMode, Category, QueueFull, StringSchema};
use stc_proto::pulsar::ServerError;

use crate::support::{Bench, TOPIC, drain, soon, values};

#[tokio::test(start_paused = true)]
async fn a_full_queue_fails_or_waits() {
    for policy in [QueueFull::Fail, QueueFull::Wait] {
        let bench = Bench::new();
        let client = bench.client();
        let producer = client.producer(StringSchema).topic(TOPIC).max_pending(3).queue_full(policy);
        let producer = producer.create().await.unwrap();
        let tickets: Vec<_> =
            (0..5).map(|n| producer.message().key("k").value(n.to_string()).send_async()).collect();
        let mut results = Vec::new();
        for ticket in tickets {
            results.push(soon(ticket).await.map(drop).map_err(|error| error.category()));
        }
        let expected = match policy {
            QueueFull::Fail => Err(Category::ProducerQueueFull),
            QueueFull::Wait => Ok(()),
        };
        assert_eq!(results, [Ok(()), Ok(()), Ok(()), expected, expected]);
        // The producer goes on as before.
        producer.message().key("k").value("last".to_owned()).send().await.unwrap();
        let stored: Vec<_> = bench.stored(TOPIC).into_iter().map(|(.., value)| value).collect();
        match policy {
            QueueFull::Fail => assert_eq!(stored, ["0", "1", "2", "last"]),
            QueueFull::Wait => assert_eq!(stored, ["0", "1", "2", "3", "4", "last"]),
        }
        client.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_a_client_is_shared_by_its_producers() {
    let bench = Bench::new();
    let client = bench.builder().memory_limit(2_000).build().unwrap();
    let other = "topic://public/default/other";
    let waits = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let fails =
        client.producer(StringSchema).topic(other).queue_full(QueueFull::Fail).create().await.unwrap();
    let large = waits.message().value("x".repeat(2_000)).send_async();
    tokio::task::yield_now().await;
    let refused = fails.message().value("y".to_owned()).send_async();
    let waiting = waits.message().value("z".to_owned()).send_async();
    assert_eq!(soon(refused).await.unwrap_err().category(), Category::MemoryBufferFull);
    soon(large).await.unwrap();
    soon(waiting).await.unwrap();
    // All of it was given back.
    soon(fails.message().value("y".to_owned()).send()).await.unwrap();
    client.close().await.unwrap();
}

/// Two producers: one holds all memory until the broker answers, the other waits for it.
#[tokio::test(start_paused = true)]
async fn memory_that_one_producer_gives_back_lets_another_go_on() {
    let bench = Bench::new();
    let client = bench.builder().memory_limit(100).build().unwrap();
    let first = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let second = client.producer(StringSchema).topic("topic://public/default/other").create().await.unwrap();
    bench
        .control
        .arm(Fault::new(Selector::command("SEND").on_topic(TOPIC), FaultEffect::Delay { ms: 5_000 }))
        .unwrap();
    let large = first.message().value("x".repeat(100)).send_async();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let start = bench.cluster.now();
    soon(second.message().value("y".to_owned()).send()).await.unwrap();
    assert!(bench.cluster.now() - start > 4_000, "it waited");
    soon(large).await.unwrap();
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn batches_keep_to_their_limits() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let sizes = async |producer: stc_client::Producer<String>| {
        let from = bench.control.stored(TOPIC).unwrap().len();
        for _ in 0..10 {
            producer.message().key("k").value("x".repeat(100)).send_async();
        }
        producer.flush().await.unwrap();
        let stored = bench.control.stored(TOPIC).unwrap();
        let counts =
            stored[from..].iter().map(|entry| entry.metadata.as_ref().unwrap().num_messages_in_batch);
        counts.map(|count| count.unwrap_or(1)).collect::<Vec<_>>()
    };
    let builder = || client.producer(StringSchema).topic(TOPIC);
    assert_eq!(sizes(builder().batching_max_messages(4).create().await.unwrap()).await, [4, 4, 2]);
    assert_eq!(sizes(builder().batching_max_bytes(400).create().await.unwrap()).await, [3, 3, 3, 1]);
    assert_eq!(sizes(builder().batching(false).create().await.unwrap()).await, [1; 10]);
    let patient = builder().batching_max_delay(Duration::from_secs(3)).create().await.unwrap();
    let start = bench.cluster.now();
    patient.message().value("x".to_owned()).send().await.unwrap();
    assert!(bench.cluster.now() - start >= 3_000);
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn sequence_ids_go_on_after_a_reconnect_and_a_return() {
    let bench = Bench::new();
    bench.create(2);
    bench.admin(|cluster, now| cluster.set_deduplication("public", "default", true, now));
    let client = bench.client();
    let create = async || {
        let producer =
            client.producer(StringSchema).topic(TOPIC).name("p").access_mode(AccessMode::Exclusive);
        producer.create().await.unwrap()
    };
    let producer = create().await;
    assert_eq!(producer.last_sequence_id(), None);
    for n in 0..10 {
        producer.message().key(format!("key-{n}")).value(n.to_string()).send().await.unwrap();
    }
    assert_eq!(producer.last_sequence_id(), Some(9));
    assert!(bench.control.drop_connections(DropSelector::default()) > 0);
    let tickets: Vec<_> = (10..20)
        .map(|n| producer.message().key(format!("key-{n}")).value(n.to_string()).send_async())
        .collect();
    for ticket in tickets {
        soon(ticket).await.unwrap();
    }
    assert_eq!(producer.last_sequence_id(), Some(19));
    producer.close().await.unwrap();
    let again = create().await;
    assert_eq!(again.last_sequence_id(), Some(19), "both segments are attached, and the broker remembers");
    again.message().key("key-0").value("20".to_owned()).send().await.unwrap();
    assert_eq!(again.last_sequence_id(), Some(20));
    let consumer = bench.consumer(&client, TOPIC).await;
    let mut received = values(&drain(&consumer).await);
    received.sort_by_key(|value| value.parse::<u32>().unwrap());
    assert_eq!(received, (0..21).map(|n| n.to_string()).collect::<Vec<_>>(), "nothing lost, nothing twice");
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_message_follows_the_initial_sequence_id() {
    let bench = Bench::new();
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).initial_sequence_id(41).create().await.unwrap();
    assert_eq!(producer.last_sequence_id(), None, "nothing is published");
    producer.message().value("a".to_owned()).send().await.unwrap();
    assert_eq!(producer.last_sequence_id(), Some(42));
    assert_eq!(bench.frames("SEND")[0]["sequence_id"], 42);
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn properties_of_the_producer_reach_the_broker() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).property("team", "a").create().await.unwrap();
    producer.message().value("a".to_owned()).send().await.unwrap();
    assert_eq!(bench.frames("PRODUCER")[0]["metadata"], serde_json::json!([{"key": "team", "value": "a"}]));
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_refusal_of_exclusive_access_shows_at_create() {
    for mode in [AccessMode::Exclusive, AccessMode::ExclusiveWithFencing, AccessMode::WaitForExclusive] {
        for (code, category) in [
            (ServerError::ProducerBusy, Category::ProducerBusy),
            (ServerError::ProducerFenced, Category::ProducerBusy),
            (ServerError::AuthorizationError, Category::Authorization),
            (ServerError::IncompatibleSchema, Category::IncompatibleSchema),
            (ServerError::NotAllowedError, Category::NotSupported),
        ] {
            let bench = Bench::new();
            bench.create(3);
            let client = bench.client();
            let refusal = FaultEffect::Error { code: ErrorCode(code), message: "no".into() };
            // The last of the segments refuses.
            bench
                .control
                .arm(Fault { skip: 2, ..Fault::new(Selector::command("PRODUCER"), refusal) })
                .unwrap();
            let created = client.producer(StringSchema).topic(TOPIC).access_mode(mode).create();
            assert_eq!(soon(created).await.unwrap_err().category(), category, "{mode:?} {code:?}");
            // What was attached before the refusal is free again.
            let next = client.producer(StringSchema).topic(TOPIC).access_mode(AccessMode::Exclusive).create();
            soon(next).await.unwrap();
            client.close().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fenced_producer_is_told_so_and_the_one_that_waits_gets_its_turn() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let create = |mode| client.producer(StringSchema).topic(TOPIC).access_mode(mode).create();
    let first = create(AccessMode::Exclusive).await.unwrap();
    first.message().key("key-0").value("1".to_owned()).send().await.unwrap();
    let second = create(AccessMode::ExclusiveWithFencing).await.unwrap();
    let fenced = soon(first.message().key("key-0").value("2".to_owned()).send()).await;
    assert_eq!(fenced.unwrap_err().category(), Category::ProducerBusy);
    let waiting = tokio::spawn(create(AccessMode::WaitForExclusive));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(!waiting.is_finished(), "longer than any operation may take");
    second.message().key("key-0").value("3".to_owned()).send().await.unwrap();
    // A split while one waits.
    bench.split(0);
    tokio::time::sleep(Duration::from_secs(5)).await;
    second.close().await.unwrap();
    let third = soon(waiting).await.unwrap().unwrap();
    for n in 0..8 {
        soon(third.message().key(format!("key-{n}")).value(n.to_string()).send()).await.unwrap();
    }
    client.close().await.unwrap();
}
