//! Messages that come too often: where they go, what they say, and that none is lost.

use std::time::Duration;

use sim_broker::core::fault::{Fault, FaultEffect, Selector};
use stc_client::{
    BytesSchema, Category, DeadLetterPolicy, InitialPosition, Int32Schema, KeyValueEncoding, KeyValueSchema,
    Message, PulsarClient, QueueConsumer, Schema, StringSchema,
};

use crate::support::{Bench, TOPIC, drain, soon, values};

const DEAD: &str = "topic://public/default/dead";

async fn consumer<T: 'static>(
    client: &PulsarClient,
    schema: impl Schema<T>,
    policy: DeadLetterPolicy,
) -> QueueConsumer<T> {
    let builder = client.queue_consumer(schema).topic(TOPIC).subscription("s");
    let builder = builder.initial_position(InitialPosition::Earliest).dead_letter_policy(policy);
    builder.subscribe().await.unwrap()
}

/// What the topic has.
async fn read<T: 'static>(client: &PulsarClient, schema: impl Schema<T>, topic: &str) -> Vec<Message<T>> {
    let builder = client.queue_consumer(schema).topic(topic).subscription("reads");
    let consumer = builder.initial_position(InitialPosition::Earliest).subscribe().await.unwrap();
    let mut messages = Vec::new();
    while let Some(message) = consumer.receive_timeout(Duration::from_secs(60)).await.unwrap() {
        messages.push(message);
    }
    messages
}

async fn reject_all<T: 'static>(consumer: &QueueConsumer<T>) {
    while let Some(message) = consumer.receive_timeout(Duration::from_secs(60)).await.unwrap() {
        consumer.negative_acknowledge(message.id()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_tells_where_it_is_from() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let policy = DeadLetterPolicy::new(1);
    let consumer = consumer(&client, StringSchema, policy).await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    for n in 0..3 {
        let message = producer.message().key(format!("k{n}")).value(n.to_string());
        message.property("own", "kept").property("REAL_TOPIC", "elsewhere").send_async();
    }
    producer.close().await.unwrap();
    reject_all(&consumer).await;
    let letters = read(&client, StringSchema, "topic://public/default/t-DLQ").await;
    assert_eq!(letters.len(), 3);
    for letter in letters {
        assert_eq!(letter.property("own"), Some("kept"));
        assert_eq!(letter.property("REAL_SUBSCRIPTION"), Some("s"));
        let topics: Vec<&str> =
            letter.properties().iter().filter(|(k, _)| k == "REAL_TOPIC").map(|(_, v)| v.as_str()).collect();
        assert_eq!(topics, [TOPIC], "what an earlier dead letter said gives way");
        let id = letter.property("ORIGIN_MESSAGE_ID").unwrap();
        let numbers: Vec<i64> = id.split(':').map(|number| number.parse().unwrap()).collect();
        assert!((3..=4).contains(&numbers.len()) && numbers[2] == -1, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_key_of_a_separated_pair_goes_along() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let schema = || KeyValueSchema::new(StringSchema, StringSchema, KeyValueEncoding::Separated);
    let consumer = consumer(&client, schema(), DeadLetterPolicy::new(0).topic(DEAD)).await;
    let producer = client.producer(schema()).topic(TOPIC).create().await.unwrap();
    producer.message().value(("key".to_owned(), "value".to_owned())).send().await.unwrap();
    reject_all(&consumer).await;
    let letters = read(&client, schema(), DEAD).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].value().unwrap(), ("key".to_owned(), "value".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_initial_subscription_is_there_before_the_first_letter() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let policy = DeadLetterPolicy::new(0).topic(DEAD).initial_subscription("inspection");
    let consumer = consumer(&client, StringSchema, policy).await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().value("a".to_owned()).send().await.unwrap();
    reject_all(&consumer).await;
    // A new subscription would begin at the next message.
    let later = client.queue_consumer(StringSchema).topic(DEAD).subscription("inspection");
    let later = later.initial_position(InitialPosition::Latest).subscribe().await.unwrap();
    assert_eq!(values(&drain(&later).await), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_after_the_letter_that_is_under_way() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = consumer(&client, StringSchema, DeadLetterPolicy::new(0).topic(DEAD)).await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().value("a".to_owned()).send().await.unwrap();
    let message = soon(consumer.receive()).await.unwrap();
    let slow = Fault::new(Selector::command("SEND").on_topic(DEAD), FaultEffect::Delay { ms: 5_000 });
    bench.control.arm(slow).unwrap();
    consumer.negative_acknowledge(message.id()).await.unwrap();
    // The letter is under way by now.
    assert!(consumer.receive_timeout(Duration::from_secs(2)).await.unwrap().is_none());
    assert_eq!(bench.count("ACK"), 0);
    consumer.close().await.unwrap();
    assert_eq!(bench.count("ACK"), 1);
    assert_eq!(bench.count("CLOSE_PRODUCER"), 1, "that of the dead letters");
    assert_eq!(bench.stored(DEAD).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_topic_that_is_none_is_refused() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let policy = DeadLetterPolicy::new(0).topic("segment://public/default/t/0000-ffff-0");
    let builder = client.queue_consumer(StringSchema).topic(TOPIC).subscription("s");
    let error = builder.dead_letter_policy(policy).subscribe().await.unwrap_err();
    assert_eq!(error.category(), Category::InvalidConfiguration);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_topic_of_another_schema_takes_the_payload_alone() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let other = client.producer(Int32Schema).topic(DEAD).create().await.unwrap();
    other.message().value(7).send().await.unwrap();
    let consumer = consumer(&client, StringSchema, DeadLetterPolicy::new(0).topic(DEAD)).await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().value("a".to_owned()).send().await.unwrap();
    reject_all(&consumer).await;
    let letters = read(&client, BytesSchema, DEAD).await;
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[1].payload(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_may_be_larger_than_an_entry() {
    let bench = Bench::with(|config| config.profile.max_message_size = 2_000);
    bench.create(1);
    let client = bench.client();
    let consumer = consumer(&client, StringSchema, DeadLetterPolicy::new(0).topic(DEAD)).await;
    let producer = client.producer(StringSchema).topic(TOPIC).chunking(true).create().await.unwrap();
    let large = "x".repeat(5_000);
    producer.message().value(large.clone()).send().await.unwrap();
    reject_all(&consumer).await;
    assert_eq!(values(&read(&client, StringSchema, DEAD).await), [large]);
}
