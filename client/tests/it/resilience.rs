//! Lost connections, moved and killed brokers, stale layouts, brokers without support.

use std::time::Duration;

use sim_broker::core::{
    BrokerId,
    cluster::control::DropSelector,
    fault::{At, ErrorCode, Fault, FaultEffect, Selector},
    profile::Feature,
};
use stc_client::{AccessMode, Category, StringSchema};
use stc_proto::pulsar::ServerError;

use crate::support::{Bench, TOPIC, drain, name, numbers, soon};

#[tokio::test(start_paused = true)]
async fn producers_and_consumers_survive_lost_connections() {
    let bench = Bench::new();
    bench.create(2);
    bench.admin(|cluster, now| cluster.set_deduplication("public", "default", true, now));
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).name("p").create().await.unwrap();
    let consumer = bench.consumer(&client, TOPIC).await;
    let mut tickets = Vec::new();
    for n in 0..200 {
        tickets.push(producer.message().key(format!("k{}", n % 11)).value(n.to_string()).send_async());
        if n % 50 == 25 {
            // Sends are pending at this moment.
            tokio::task::yield_now().await;
            assert!(bench.control.drop_connections(DropSelector::default()) > 0);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for ticket in tickets {
        soon(ticket).await.unwrap();
    }
    let mut received = numbers(&drain(&consumer).await);
    received.dedup();
    assert_eq!(received, (0..200).collect::<Vec<_>>());
    let sessions: Vec<_> =
        bench.frames("SCALABLE_TOPIC_LOOKUP").iter().map(|lookup| lookup["session_id"].clone()).collect();
    assert_eq!(sessions.len(), 10, "two, and again after each of four losses");
    assert_eq!(sessions.iter().filter(|id| **id == sessions[0]).count(), 5, "under the same id");
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_moves_is_followed() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let consumer = bench.consumer(&client, TOPIC).await;
    for n in 0..6u32 {
        bench.control.move_segment(TOPIC, 0, BrokerId(n % 3)).unwrap();
        soon(producer.message().value(n.to_string()).send()).await.unwrap();
    }
    assert_eq!(numbers(&drain(&consumer).await), (0..6).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_killed_broker_is_left_for_another() {
    let bench = Bench::new();
    bench.create(3);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let consumer = bench.consumer(&client, TOPIC).await;
    let mut tickets = Vec::new();
    for n in 0..30 {
        if n == 10 {
            bench.control.kill_broker(BrokerId(1)).unwrap();
        }
        if n == 20 {
            bench.control.kill_broker(BrokerId(2)).unwrap();
        }
        tickets.push(producer.message().value(n.to_string()).send_async());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for ticket in tickets {
        soon(ticket).await.unwrap();
    }
    let mut received = numbers(&drain(&consumer).await);
    received.dedup();
    assert_eq!(received, (0..30).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_stale_layout_changes_nothing() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let old = bench.control.current_dag(TOPIC).unwrap();
    bench.split(0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    soon(producer.message().key("key-0").value("1".to_owned()).send()).await.unwrap();
    bench.control.push_layout(TOPIC, &old).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    soon(producer.message().key("key-0").value("2".to_owned()).send()).await.unwrap();
    let segments: Vec<_> = bench.stored(TOPIC).into_iter().map(|(segment, ..)| segment).collect();
    assert_eq!(segments, [Some(2), Some(2)]);
    assert!(bench.frames("PRODUCER").iter().all(|p| !p["topic"].as_str().unwrap().ends_with("-0")));
}

#[tokio::test(start_paused = true)]
async fn a_broker_without_support_gets_no_scalable_command() {
    let bench = Bench::with(|config| {
        config.profile.features.retain(|feature| *feature != Feature::SupportsScalableTopics)
    });
    let client = bench.client();
    for topic in [TOPIC, "persistent://public/default/old"] {
        let refused = soon(client.producer(StringSchema).topic(topic).create()).await.unwrap_err();
        assert_eq!(refused.category(), Category::NotSupported, "{topic}");
    }
    assert_eq!(bench.count("SCALABLE_TOPIC_LOOKUP"), 0);
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_and_silence_is_noticed() {
    let bench = Bench::new();
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().value("1".to_owned()).send().await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let lost =
        |bench: &Bench| bench.control.journal().iter().filter(|r| r.event.name() == "TCP_CLOSE").count();
    assert_eq!(lost(&bench), 0);
    // Neither pings nor answers to them arrive any more.
    for command in ["PING", "PONG"] {
        let mut silence = Fault::new(Selector::command(command), FaultEffect::Drop);
        silence.count = 1000;
        bench.control.arm(silence).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(lost(&bench) > 0);
    soon(producer.message().value("2".to_owned()).send()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_watch_fail_what_opened_it() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    for (code, category) in
        [("AuthorizationError", Category::Authorization), ("TopicNotFound", Category::NotFound)]
    {
        let effect = serde_json::from_value(serde_json::json!({ "error": { "code": code } })).unwrap();
        bench.control.arm(Fault::new(Selector::command("SCALABLE_TOPIC_LOOKUP"), effect)).unwrap();
        let error = soon(client.producer(StringSchema).topic(TOPIC).create()).await.unwrap_err();
        assert_eq!(error.category(), category);
    }
}

#[tokio::test(start_paused = true)]
async fn a_prune_takes_the_subscription_with_it() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    bench.split(0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.control.prune(TOPIC).unwrap();
    let topic = name(TOPIC);
    let producer = client.producer(StringSchema).topic(topic.to_string()).create().await.unwrap();
    producer.message().key("k").value("7".to_owned()).send().await.unwrap();
    assert_eq!(numbers(&drain(&consumer).await), [7]);
}

/// The same seed gives the same journal, byte for byte.
#[test]
fn a_run_can_be_repeated() {
    let run = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let bench = Bench::new();
            bench.create(3);
            let client = bench.client();
            let consumer = bench.consumer(&client, TOPIC).await;
            let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
            for n in 0..40 {
                producer.message().key(format!("k{n}")).value(n.to_string()).send_async();
                if n == 20 {
                    bench.control.drop_connections(DropSelector::default());
                    bench.split(0);
                }
            }
            producer.flush().await.unwrap();
            drain(&consumer).await;
            client.close().await.unwrap();
            let journal = bench.control.journal();
            journal.iter().map(|record| record.to_json().to_string()).collect::<Vec<_>>()
        })
    };
    let (first, second) = (run(), run());
    assert!(first.len() > 100);
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a, b);
    }
    assert_eq!(first.len(), second.len());
}

/// On several threads nothing is lost either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_producer_serves_several_threads() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let tasks: Vec<_> = (0..4u64)
        .map(|task| {
            let producer = producer.clone();
            tokio::spawn(async move {
                for n in 0..100 {
                    producer
                        .message()
                        .key(format!("k{n}"))
                        .value((task * 100 + n).to_string())
                        .send()
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut received = Vec::new();
    while received.len() < 400 {
        let message = consumer.receive().await.unwrap();
        consumer.acknowledge(message.id()).await.unwrap();
        received.push(message);
    }
    assert_eq!(numbers(&received), (0..400).collect::<Vec<_>>());
    client.close().await.unwrap();
}

/// The close with the new address is lost; the layout's address is enough.
#[tokio::test(start_paused = true)]
async fn a_pushed_address_alone_moves_producers_and_consumers() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let consumer = bench.consumer(&client, TOPIC).await;
    soon(producer.message().value("0".to_owned()).send()).await.unwrap();
    for command in ["CLOSE_PRODUCER", "CLOSE_CONSUMER"] {
        bench.control.arm(Fault::new(Selector::command(command), FaultEffect::Drop)).unwrap();
    }
    let (before, after) = (bench.count("PRODUCER"), bench.count("SUBSCRIBE"));
    // To two brokers, one of which is another than now.
    bench.control.move_segment(TOPIC, 0, BrokerId(1)).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    bench.control.move_segment(TOPIC, 0, BrokerId(2)).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bench.count("PRODUCER") > before && bench.count("SUBSCRIBE") > after, "without a send");
    soon(producer.message().value("1".to_owned()).send()).await.unwrap();
    assert_eq!(numbers(&drain(&consumer).await), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_fails_on_one_segment_leaves_none_behind_on_another() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let segment = |name: &str| Selector {
        topic: Some(format!("segment://public/default/t/{name}")),
        ..Selector::command("SUBSCRIBE")
    };
    // The first segment's broker grants what is asked for, and says so when the consumer has failed already.
    let late = Fault { at: At::After, ..Fault::new(segment("0000-7fff-0"), FaultEffect::Delay { ms: 1000 }) };
    bench.control.arm(late).unwrap();
    let busy = FaultEffect::Error { code: ErrorCode(ServerError::ConsumerBusy), message: "busy".to_owned() };
    bench.control.arm(Fault::new(segment("8000-ffff-1"), busy)).unwrap();
    let consumer = client.queue_consumer(StringSchema).topic(TOPIC).subscription("s").subscribe();
    assert_eq!(soon(consumer).await.unwrap_err().category(), Category::ConsumerBusy);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bench.control.faults().iter().all(|fault| fault.fired == 1));
    let stats = bench.cluster.read(|cluster| cluster.scalable_stats(&name(TOPIC)).unwrap());
    let attached = stats.segments.iter().flat_map(|segment| &segment.topic.subscriptions);
    assert_eq!(attached.map(|subscription| subscription.consumers.len()).sum::<usize>(), 0);
}

/// The segments of a topic that was made with two.
const HALVES: [&str; 2] =
    ["segment://public/default/t/0000-7fff-0", "segment://public/default/t/8000-ffff-1"];

#[tokio::test(start_paused = true)]
async fn exclusive_access_that_is_refused_leaves_no_producer_on_other_segments() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let refusal = FaultEffect::Error { code: ErrorCode(ServerError::ProducerBusy), message: "no".into() };
    let on = |segment: usize| Selector::command("PRODUCER").on_topic(HALVES[segment]);
    bench.control.arm(Fault::new(on(0), refusal)).unwrap();
    // Granted long after the refusal, and overtaken by whatever the client sends meanwhile.
    bench.control.arm(Fault::new(on(1), FaultEffect::Delay { ms: 2_000 })).unwrap();
    let exclusive = client.producer(StringSchema).topic(TOPIC).access_mode(AccessMode::Exclusive);
    let error = exclusive.create().await.unwrap_err();
    assert_eq!(error.category(), Category::ProducerBusy);
    assert_eq!(bench.count("PRODUCER_SUCCESS"), 1, "the answer came before the create failed");
    // Nobody is in the way.
    let next = client.producer(StringSchema).topic(TOPIC).access_mode(AccessMode::Exclusive).create();
    soon(next).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_granted_behind_the_answer_to_its_close_is_closed_again() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let subscribe = Selector::command("SUBSCRIBE");
    bench.control.arm(Fault::new(subscribe, FaultEffect::Delay { ms: 2_000 })).unwrap();
    let subscribing = client.queue_consumer(StringSchema).topic(TOPIC).subscription("s").subscribe();
    let given_up = tokio::time::timeout(Duration::from_millis(500), subscribing).await;
    assert!(given_up.is_err(), "SUBSCRIBE is not answered yet");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(bench.count("CLOSE_CONSUMER"), 1, "closed at once, which nobody knows of yet");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.count("CLOSE_CONSUMER"), 2, "closed again");
    let attached = bench.cluster.with(|cluster, _| {
        let segment = cluster.topic_stats(&name("segment://public/default/t/0000-ffff-0")).unwrap();
        segment.subscriptions.iter().map(|subscription| subscription.consumers.len()).sum::<usize>()
    });
    assert_eq!(attached, 0);
}
