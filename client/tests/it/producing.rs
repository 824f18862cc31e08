//! Producers: results, order, attributes, errors.

use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use sim_broker::core::fault::{Fault, FaultEffect, Selector};
use stc_client::{AccessMode, BytesSchema, Category, Compression, MessageId, StringSchema};

use crate::support::{Bench, TOPIC, drain, name, numbers, soon, values};

#[tokio::test(start_paused = true)]
async fn what_is_sent_is_received_with_all_its_attributes() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = client.producer(StringSchema).topic(TOPIC).name("p").create().await.unwrap();
    let sent = producer
        .message()
        .key("key-0")
        .property("a", "1")
        .property("b", "2")
        .event_time_ms(1234)
        .value("hello".to_owned())
        .send()
        .await
        .unwrap();
    let message = soon(consumer.receive()).await.unwrap();
    assert_eq!(message.id(), &sent);
    assert_eq!(MessageId::from_bytes(&sent.to_bytes()).unwrap(), sent);
    assert_eq!(message.value().unwrap(), "hello");
    assert_eq!(message.payload(), "hello");
    assert_eq!(message.key(), Some("key-0"));
    assert_eq!((message.property("a"), message.property("b")), (Some("1"), Some("2")));
    assert_eq!(message.event_time(), Some(UNIX_EPOCH + Duration::from_millis(1234)));
    assert_eq!(message.topic(), TOPIC);
    assert_eq!((message.size(), message.redelivery_count()), (5, 0));
    assert_eq!(message.producer_name(), Some("p-seg-1"));
    assert_eq!((message.sequence_id(), producer.last_sequence_id()), (0, Some(0)));
    let plain = producer.message().value("plain".to_owned()).send().await.unwrap();
    let message = soon(consumer.receive()).await.unwrap();
    assert_eq!((message.id(), message.key(), message.event_time()), (&plain, None, None));
    assert!(message.properties().is_empty());
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn batches_of_every_compression_arrive() {
    for compression in
        [Compression::None, Compression::Lz4, Compression::Zlib, Compression::Zstd, Compression::Snappy]
    {
        let bench = Bench::new();
        bench.create(1);
        let client = bench.client();
        let consumer = bench.consumer(&client, TOPIC).await;
        let producer =
            client.producer(StringSchema).topic(TOPIC).compression(compression).create().await.unwrap();
        let tickets: Vec<_> = (0..50)
            .map(|n| producer.message().key(format!("k{}", n % 7)).value(n.to_string()).send_async())
            .collect();
        let mut ids = Vec::new();
        for ticket in tickets {
            ids.push(ticket.await.unwrap());
        }
        let messages = drain(&consumer).await;
        assert_eq!(numbers(&messages), (0..50).collect::<Vec<_>>(), "{compression:?}");
        ids.sort();
        let mut received: Vec<_> = messages.iter().map(|message| message.id().clone()).collect();
        received.sort();
        assert_eq!(ids, received);
        assert!(bench.count("SEND") < 50, "they were batched");
        client.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_order_of_each_key_survives_splits_and_merges() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = client.producer(StringSchema).topic(TOPIC).name("p").create().await.unwrap();
    let mut tickets = Vec::new();
    for n in 0..600 {
        let key = format!("key-{}", n % 5);
        tickets.push(producer.message().key(key).value(n.to_string()).send_async());
        match n {
            100 => bench.split(0),
            200 => bench.split(1),
            // Without letting the client see the last change first.
            201 => bench.merge(3, 4),
            400 => bench.merge(5, 2),
            _ => {}
        }
        if n % 10 == 0 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    for ticket in tickets {
        soon(ticket).await.unwrap();
    }
    let messages = drain(&consumer).await;
    assert_eq!(numbers(&messages), (0..600).collect::<Vec<_>>(), "nothing lost, nothing twice");
    let mut order: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    // Segments are listed in the order of their ids, and those of a key's segments ascend.
    for (_, key, value) in bench.stored(TOPIC) {
        order.entry(key.unwrap()).or_default().push(value.parse().unwrap());
    }
    assert_eq!(order.len(), 5);
    for (key, values) in order {
        assert!(values.is_sorted(), "{key}: {values:?}");
    }
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_split_whose_push_is_late_is_waited_for() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().key("key-0").value("1".to_owned()).send().await.unwrap();
    bench.control.hold_pushes(TOPIC).unwrap();
    bench.split(0);
    let ticket = producer.message().key("key-0").value("2".to_owned()).send_async();
    tokio::time::sleep(Duration::from_secs(2)).await;
    bench.control.release_pushes(TOPIC).unwrap();
    soon(ticket).await.unwrap();
    let stored: Vec<_> =
        bench.stored(TOPIC).into_iter().map(|(segment, _, value)| (segment, value)).collect();
    assert_eq!(stored, [(Some(0), "1".into()), (Some(2), "2".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_split_that_is_never_pushed_fails_the_send_and_not_the_producer() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().key("k").value("1".to_owned()).send().await.unwrap();
    bench.control.hold_pushes(TOPIC).unwrap();
    bench.split(0);
    let error = soon(producer.message().key("k").value("2".to_owned()).send()).await.unwrap_err();
    assert_eq!(error.category(), Category::TopicTerminated);
    bench.control.release_pushes(TOPIC).unwrap();
    soon(producer.message().key("k").value("3".to_owned()).send()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn delayed_messages_come_after_their_time() {
    let bench = Bench::new();
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().value("late".to_owned()).deliver_after(Duration::from_secs(60)).send().await.unwrap();
    producer.message().value("now".to_owned()).send().await.unwrap();
    assert!(consumer.receive_timeout(Duration::from_secs(50)).await.unwrap().is_some());
    assert!(consumer.receive_timeout(Duration::from_secs(55)).await.unwrap().is_none());
    let late = consumer.receive_timeout(Duration::from_secs(10)).await.unwrap().unwrap();
    assert_eq!(late.value().unwrap(), "late");
}

#[tokio::test(start_paused = true)]
async fn bytes_and_replication_clusters_and_sequence_ids_reach_the_entry() {
    let bench = Bench::new();
    let client = bench.client();
    let producer = client
        .producer(BytesSchema)
        .topic(TOPIC)
        .initial_sequence_id(9)
        .property("app", "test")
        .create()
        .await
        .unwrap();
    producer.message().value("a".into()).replicate_to(["west", "east"]).send().await.unwrap();
    producer.message().value("b".into()).sequence_id(50).send().await.unwrap();
    producer.message().value("c".into()).send().await.unwrap();
    assert_eq!(producer.last_sequence_id(), Some(51));
    let stored = bench.control.stored(TOPIC).unwrap();
    let metadata: Vec<_> = stored.into_iter().map(|view| view.metadata.unwrap()).collect();
    assert_eq!(metadata.iter().map(|m| m.sequence_id).collect::<Vec<_>>(), [10, 50, 51]);
    assert_eq!(metadata[0].replicate_to, ["west", "east"]);
    assert_eq!(bench.frames("PRODUCER")[0]["metadata"][0]["key"], "app");
}

#[tokio::test(start_paused = true)]
async fn keyless_messages_go_round_and_producers_open_on_first_send() {
    let bench = Bench::new();
    bench.create(4);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    assert_eq!(bench.count("PRODUCER"), 0);
    for n in 0..8 {
        producer.message().value(n.to_string()).send().await.unwrap();
    }
    assert_eq!(bench.count("PRODUCER"), 4);
    let mut by_segment: BTreeMap<_, usize> = BTreeMap::new();
    for (segment, ..) in bench.stored(TOPIC) {
        *by_segment.entry(segment).or_default() += 1;
    }
    assert!(by_segment.values().all(|count| *count == 2), "{by_segment:?}");
}

#[tokio::test(start_paused = true)]
async fn exclusive_producers_collide_at_create() {
    let bench = Bench::new();
    bench.create(2);
    let (one, two) = (bench.client(), bench.client());
    let exclusive = |client: &stc_client::PulsarClient, mode, name: &str| {
        client.producer(StringSchema).topic(TOPIC).name(name).access_mode(mode).create()
    };
    let first = exclusive(&one, AccessMode::Exclusive, "a").await.unwrap();
    assert_eq!(bench.count("PRODUCER"), 2, "attached everywhere");
    let error = soon(exclusive(&two, AccessMode::Exclusive, "b")).await.unwrap_err();
    assert_eq!(error.category(), Category::ProducerBusy);
    let waiting = tokio::spawn(exclusive(&two, AccessMode::WaitForExclusive, "c"));
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(!waiting.is_finished());
    first.close().await.unwrap();
    let second = soon(waiting).await.unwrap().unwrap();
    second.message().key("k").value("1".to_owned()).send().await.unwrap();
    second.close().await.unwrap();
    let third = soon(exclusive(&two, AccessMode::Exclusive, "d")).await.unwrap();
    let fourth = soon(exclusive(&one, AccessMode::ExclusiveWithFencing, "e")).await.unwrap();
    fourth.message().key("k").value("2".to_owned()).send().await.unwrap();
    let fenced = soon(third.message().key("k").value("3".to_owned()).send()).await.unwrap_err();
    assert_eq!(fenced.category(), Category::ProducerBusy);
}

#[tokio::test(start_paused = true)]
async fn flush_and_close_complete_what_is_pending() {
    let bench = Bench::new();
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let tickets: Vec<_> = (0..10).map(|n| producer.message().value(n.to_string()).send_async()).collect();
    producer.flush().await.unwrap();
    assert_eq!(bench.stored(TOPIC).len(), 10);
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let pending = producer.message().value("last".to_owned()).send_async();
    producer.close().await.unwrap();
    pending.await.unwrap();
    producer.close().await.unwrap();
    assert_eq!(bench.count("SCALABLE_TOPIC_CLOSE"), 1);
    assert_eq!(bench.count("CLOSE_PRODUCER"), 1);
    let error = producer.message().value("more".to_owned()).send().await.unwrap_err();
    assert_eq!(error.category(), Category::AlreadyClosed);
    assert_eq!(producer.flush().await.unwrap_err().category(), Category::AlreadyClosed);
}

#[tokio::test(start_paused = true)]
async fn dropping_everything_publishes_what_is_pending_and_closes() {
    let bench = Bench::new();
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let ticket = producer.message().value("1".to_owned()).send_async();
    drop((producer, client));
    ticket.await.unwrap();
    soon(bench.control.wait_for(|record| record.event.name() == "TCP_CLOSE")).await;
    assert_eq!((bench.count("CLOSE_PRODUCER"), bench.count("SCALABLE_TOPIC_CLOSE")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn errors_have_their_categories() {
    let bench = Bench::new();
    bench.admin(|cluster, now| cluster.create_namespace("public", "closed", now));
    bench.admin(|cluster, now| {
        let policy = sim_broker::core::cluster::AutoTopicCreation { allowed: false, ..Default::default() };
        cluster.set_auto_topic_creation("public", "closed", Some(policy), now)
    });
    let client = bench.client();
    let create = |topic: &str| client.producer(StringSchema).topic(topic).create();
    for (topic, category) in [
        ("topic://public/closed/absent", Category::NotFound),
        ("topic://public/nowhere/t", Category::NotFound),
        ("non-persistent://public/default/t", Category::InvalidConfiguration),
        ("topic://public", Category::InvalidConfiguration),
        ("segment://public/default/t/0000-ffff-0", Category::InvalidConfiguration),
    ] {
        assert_eq!(soon(create(topic)).await.unwrap_err().category(), category, "{topic}");
    }
    let nameless = client.producer(StringSchema).create().await.unwrap_err();
    assert_eq!(nameless.category(), Category::InvalidConfiguration);
    let producer = create(TOPIC).await.unwrap();
    let empty = producer.message().send().await.unwrap_err();
    assert_eq!(empty.category(), Category::InvalidConfiguration);
    let large = producer.message().value("x".repeat(6 * 1024 * 1024)).send().await.unwrap_err();
    assert_eq!(large.category(), Category::InvalidConfiguration);
    producer.message().value("fine".to_owned()).send().await.unwrap();
    client.close().await.unwrap();
    assert_eq!(create(TOPIC).await.unwrap_err().category(), Category::AlreadyClosed);
    assert_eq!(producer.message().send().await.unwrap_err().category(), Category::InvalidConfiguration);
    let nowhere = bench.builder().service_url("pulsar://nowhere:1").build().unwrap();
    let unreachable = soon(nowhere.producer(StringSchema).topic(TOPIC).create()).await.unwrap_err();
    assert_eq!(unreachable.category(), Category::NotConnected);
}

#[tokio::test(start_paused = true)]
async fn a_send_without_a_receipt_times_out() {
    let bench = Bench::new();
    let client = bench.client();
    let producer = client
        .producer(StringSchema)
        .topic(TOPIC)
        .send_timeout(Duration::from_secs(5))
        .create()
        .await
        .unwrap();
    bench.control.arm(Fault::new(Selector::command("SEND_RECEIPT"), FaultEffect::Drop)).unwrap();
    let error = soon(producer.message().value("1".to_owned()).send()).await.unwrap_err();
    assert_eq!(error.category(), Category::Timeout);
    producer.message().value("2".to_owned()).send().await.unwrap();
    assert_eq!(values(&drain(&bench.consumer(&client, TOPIC).await).await), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_batched_where_buckets_were_not_observed() {
    let bench = Bench::with(|config| config.profile.entry_bucket_budget = 0);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    for n in 0..5 {
        producer.message().key("k").value(n.to_string()).send_async();
    }
    producer.flush().await.unwrap();
    let stored = bench.control.stored(TOPIC).unwrap();
    assert_eq!(stored.len(), 5);
    assert!(stored.iter().all(|view| view.metadata.as_ref().unwrap().entry_hash_min.is_none()));
    // Another topic of this client shows that the broker knows buckets.
    let mut dag = bench.control.current_dag(TOPIC).unwrap();
    dag.epoch += 1;
    dag.segments[0].entry_bucket_splits = vec![0x8000];
    assert_eq!(bench.control.push_layout(TOPIC, &dag).unwrap(), 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for key in ["key-0", "key-1", "key-4", "key-2"] {
        producer.message().key(key).value(key.to_owned()).send_async();
    }
    producer.flush().await.unwrap();
    let stored = bench.control.stored(&name(TOPIC).to_string()).unwrap();
    let stamps: Vec<_> = stored[5..]
        .iter()
        .map(|view| {
            let metadata = view.metadata.as_ref().unwrap();
            (metadata.entry_hash_min.unwrap(), metadata.entry_hash_max.unwrap())
        })
        .collect();
    assert_eq!(stamps, [(0xf8bf, 0xf9a6), (0x15a0, 0x550c)]);
}

/// The broker's close is lost: the error of a send tells that the segment is gone.
#[tokio::test(start_paused = true)]
async fn a_send_into_a_terminated_segment_moves_on() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().key("key-0").value("1".to_owned()).send().await.unwrap();
    bench.control.arm(Fault::new(Selector::command("CLOSE_PRODUCER"), FaultEffect::Drop)).unwrap();
    bench.control.hold_pushes(TOPIC).unwrap();
    bench.split(0);
    let tickets: Vec<_> =
        (2..6).map(|n: u32| producer.message().key("key-0").value(n.to_string()).send_async()).collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    bench.control.release_pushes(TOPIC).unwrap();
    for ticket in tickets {
        soon(ticket).await.unwrap();
    }
    assert!(bench.count("SEND_ERROR") > 0, "the race took place");
    let stored: Vec<_> =
        bench.stored(TOPIC).into_iter().map(|(segment, _, value)| (segment, value)).collect();
    let expected = [(0, "1"), (2, "2"), (2, "3"), (2, "4"), (2, "5")];
    assert_eq!(stored, expected.map(|(segment, value)| (Some(segment), value.to_owned())));
}

/// The push seals the segment and the broker's close does not come: the client closes by itself.
#[tokio::test(start_paused = true)]
async fn a_push_without_a_close_drops_the_producer() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().key("key-0").value("1".to_owned()).send().await.unwrap();
    bench.control.arm(Fault::new(Selector::command("CLOSE_PRODUCER"), FaultEffect::Drop)).unwrap();
    bench.split(0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.count("CLOSE_PRODUCER"), 1, "the client's; the broker's got lost");
    soon(producer.message().key("key-0").value("2".to_owned()).send()).await.unwrap();
    let values: Vec<_> = bench.stored(TOPIC).into_iter().map(|(.., value)| value).collect();
    assert_eq!(values, ["1", "2"]);
    assert_eq!(bench.count("SEND_ERROR"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_no_segment_covers_reaches_none() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let mut gap = bench.control.current_dag(TOPIC).unwrap();
    gap.epoch += 1;
    gap.segments.retain(|segment| segment.segment_id == 0);
    bench.control.push_layout(TOPIC, &gap).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let error = soon(producer.message().key("key-0").value("1".to_owned()).send()).await.unwrap_err();
    assert_eq!(error.category(), Category::Unknown);
    soon(producer.message().key("key-3").value("2".to_owned()).send()).await.unwrap();
    let stored: Vec<_> =
        bench.stored(TOPIC).into_iter().map(|(segment, _, value)| (segment, value)).collect();
    assert_eq!(stored, [(Some(0), "2".to_owned())]);
}
