//! Queue consumers: sharing, acknowledging, rejecting, following the layout.

use std::time::Duration;

use stc_client::{Category, MessageId, PulsarClient, StringSchema};

use crate::support::{Bench, TOPIC, drain, numbers, soon, values};

async fn send(client: &PulsarClient, numbers: std::ops::Range<u64>) {
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    for n in numbers {
        producer.message().key(format!("k{n}")).value(n.to_string()).send_async();
    }
    producer.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn all_active_and_sealed_segments_are_read() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    send(&client, 0..10).await;
    bench.split(0);
    send(&client, 10..20).await;
    bench.split(1);
    send(&client, 20..30).await;
    let consumer = bench.consumer(&client, TOPIC).await;
    assert_eq!(bench.count("SUBSCRIBE"), 5);
    assert!(bench.frames("SUBSCRIBE").iter().all(|subscribe| subscribe["subType"] == "Shared"));
    let messages = drain(&consumer).await;
    assert_eq!(numbers(&messages), (0..30).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn consumers_of_a_subscription_share_the_messages() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let small = || {
        client.queue_consumer(StringSchema).topic(TOPIC).subscription("s").receiver_queue_size(2).subscribe()
    };
    let (one, two) = (small().await.unwrap(), small().await.unwrap());
    let producer = client.producer(StringSchema).topic(TOPIC).batching(false).create().await.unwrap();
    for n in 0..40 {
        producer.message().value(n.to_string()).send_async();
    }
    producer.flush().await.unwrap();
    let (mut first, second) = tokio::join!(drain(&one), drain(&two));
    assert!(!first.is_empty() && !second.is_empty());
    first.extend(second);
    assert_eq!(numbers(&first), (0..40).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_was_not_acknowledged_comes_to_the_next_consumer() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    send(&client, 0..20).await;
    let messages = consumer.receive_multi(20, Duration::from_secs(10)).await.unwrap();
    assert_eq!(messages.len(), 20);
    // Members of batches among them.
    for message in messages.iter().step_by(3) {
        consumer.acknowledge(message.id()).await.unwrap();
    }
    consumer.close().await.unwrap();
    let consumer = bench.consumer(&client, TOPIC).await;
    let mut left: Vec<String> = values(&messages);
    let mut index = 0;
    left.retain(|_| {
        index += 1;
        (index - 1) % 3 != 0
    });
    let mut again = values(&drain(&consumer).await);
    left.sort();
    again.sort();
    assert_eq!(again, left);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_message_comes_again_alone_with_a_higher_count() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    send(&client, 0..5).await;
    let messages = consumer.receive_multi(5, Duration::from_secs(10)).await.unwrap();
    consumer.negative_acknowledge(messages[2].id()).await.unwrap();
    let again = soon(consumer.receive()).await.unwrap();
    assert_eq!((again.id(), again.redelivery_count()), (messages[2].id(), 1));
    assert!(consumer.receive_timeout(Duration::from_secs(60)).await.unwrap().is_none());
    for message in &messages {
        consumer.acknowledge(message.id()).await.unwrap();
    }
    consumer.close().await.unwrap();
    assert!(drain(&bench.consumer(&client, TOPIC).await).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_split_under_a_consumer_loses_nothing_and_ended_segments_are_left() {
    let bench = Bench::with(|config| config.profile.prune_interval_ms = 1_000_000_000);
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    send(&client, 0..10).await;
    bench.split(0);
    send(&client, 10..20).await;
    assert_eq!(numbers(&drain(&consumer).await), (0..20).collect::<Vec<_>>());
    assert_eq!(bench.count("REACHED_END_OF_TOPIC"), 1);
    assert_eq!(bench.count("CLOSE_CONSUMER"), 1);
    assert_eq!(bench.count("SUBSCRIBE"), 3);
}

#[tokio::test(start_paused = true)]
async fn permits_keep_a_slow_consumer_supplied() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = client
        .queue_consumer(StringSchema)
        .topic(TOPIC)
        .subscription("s")
        .receiver_queue_size(3)
        .subscribe()
        .await
        .unwrap();
    send(&client, 0..100).await;
    assert_eq!(numbers(&drain(&consumer).await), (0..100).collect::<Vec<_>>());
    assert!(bench.count("FLOW") > 10);
}

#[tokio::test(start_paused = true)]
async fn a_closed_consumer_says_so() {
    let bench = Bench::new();
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let waiting = tokio::spawn({
        let consumer = consumer.clone();
        async move { consumer.receive().await.map(drop) }
    });
    tokio::task::yield_now().await;
    consumer.close().await.unwrap();
    consumer.close().await.unwrap();
    assert_eq!(soon(waiting).await.unwrap().unwrap_err().category(), Category::AlreadyClosed);
    let closed = consumer.acknowledge(&MessageId::earliest()).await.unwrap_err();
    assert_eq!(closed.category(), Category::AlreadyClosed);
    assert_eq!(bench.count("SCALABLE_TOPIC_CLOSE"), 1);
    assert_eq!(bench.count("CLOSE_CONSUMER"), 1);
}

#[tokio::test(start_paused = true)]
async fn subscribing_without_a_name_or_to_nothing_is_refused() {
    let bench = Bench::new();
    let client = bench.client();
    let missing = client.queue_consumer(StringSchema).topic(TOPIC).subscribe().await.unwrap_err();
    assert_eq!(missing.category(), Category::InvalidConfiguration);
    let absent = client
        .queue_consumer(StringSchema)
        .topic("topic://public/none/t")
        .subscription("s")
        .subscribe()
        .await;
    assert_eq!(absent.unwrap_err().category(), Category::NotFound);
}
