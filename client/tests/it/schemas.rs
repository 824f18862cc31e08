//! Schemas end to end: pairs, records, whatever the topic has; what the broker refuses.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sim_broker::core::fault::{ErrorCode, Fault, FaultEffect, Selector};
use stc_client::{
    AutoConsumeSchema, AvroSchema, Category, Checkpoint, FieldType, GenericValue, InitialPosition,
    Int32Schema, Int64Schema, JsonSchema, KeyValueEncoding, KeyValueSchema, PulsarClient, QueueConsumer,
    RecordDefinition, Schema, StringSchema,
};

use stc_proto::pulsar::ServerError;

use crate::support::{Bench, TOPIC, soon};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct User {
    name: String,
    #[serde(default)]
    age: Option<i32>,
}

fn old() -> RecordDefinition {
    RecordDefinition::new("User").field("name", FieldType::String)
}

fn new() -> RecordDefinition {
    old().optional("age", FieldType::Int)
}

fn ada(age: Option<i32>) -> User {
    User { name: "Ada".into(), age }
}

async fn consumer<T: 'static>(client: &PulsarClient, schema: impl Schema<T>) -> QueueConsumer<T> {
    let consumer = client.queue_consumer(schema).topic(TOPIC).subscription("s");
    consumer.initial_position(InitialPosition::Earliest).subscribe().await.unwrap()
}

async fn publish<T: 'static>(client: &PulsarClient, schema: impl Schema<T>, value: T) {
    let producer = client.producer(schema).topic(TOPIC).create().await.unwrap();
    producer.message().value(value).send().await.unwrap();
}

async fn next<T: 'static>(consumer: &QueueConsumer<T>) -> T {
    soon(consumer.receive()).await.unwrap().value().unwrap()
}

#[tokio::test(start_paused = true)]
async fn pairs_are_in_the_payload_or_beside_it() {
    for encoding in [KeyValueEncoding::Inline, KeyValueEncoding::Separated] {
        let bench = Bench::new();
        bench.create(2);
        let client = bench.client();
        let schema = || KeyValueSchema::new(StringSchema, Int32Schema, encoding);
        let producer = client.producer(schema()).topic(TOPIC).create().await.unwrap();
        let consumer = consumer(&client, schema()).await;
        let any = client.queue_consumer(AutoConsumeSchema).topic(TOPIC).subscription("any");
        let any = any.initial_position(InitialPosition::Earliest).subscribe().await.unwrap();
        // Several at once, so that they are batched.
        let tickets = [("key-0", 1), ("key-0", 2), ("key-4", 3)]
            .map(|(key, value)| producer.message().value((key.to_owned(), value)).send_async());
        for ticket in tickets {
            ticket.await.unwrap();
        }
        let mut pairs = Vec::new();
        let mut generic = Vec::new();
        for _ in 0..3 {
            let message = soon(consumer.receive()).await.unwrap();
            let key = (encoding == KeyValueEncoding::Separated).then(|| message.value().unwrap().0);
            assert_eq!(message.key_bytes(), key.map(String::into_bytes));
            pairs.push(message.value().unwrap());
            generic.push(next(&any).await);
        }
        // The two segments deliver in any order.
        pairs.sort();
        assert_eq!(pairs, [("key-0".into(), 1), ("key-0".into(), 2), ("key-4".into(), 3)]);
        let pair = |key: &str, value| {
            GenericValue::KeyValue(
                Box::new(GenericValue::Text(key.into())),
                Box::new(GenericValue::Integer(value)),
            )
        };
        for expected in [pair("key-0", 1), pair("key-0", 2), pair("key-4", 3)] {
            assert!(generic.contains(&expected), "{generic:?}");
        }
        client.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_separated_pair_is_routed_by_the_bytes_of_its_key() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let schema = KeyValueSchema::new(StringSchema, StringSchema, KeyValueEncoding::Separated);
    let producer = client.producer(schema).topic(TOPIC).create().await.unwrap();
    for key in ["key-0", "key-1", "key-2", "key-5"] {
        producer.message().value((key.to_owned(), key.to_owned())).send().await.unwrap();
    }
    for (segment, _, key) in bench.stored(TOPIC) {
        let half = stc_proto::KeyHash::of(&key).segment() >> 15;
        assert_eq!(segment, Some(u64::from(half)), "{key}");
    }
    let own = producer.message().key("own").value(("a".to_owned(), "b".to_owned())).send().await;
    assert_eq!(own.unwrap_err().category(), Category::InvalidConfiguration);
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn records_are_read_as_they_were_written() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    publish(&client, AvroSchema::new(old()).unwrap(), ada(None)).await;
    publish(&client, AvroSchema::new(new()).unwrap(), ada(Some(36))).await;
    publish(&client, AvroSchema::new(old()).unwrap(), ada(None)).await;
    let typed = consumer(&client, AvroSchema::<User>::new(new()).unwrap()).await;
    let received = [next(&typed).await, next(&typed).await, next(&typed).await];
    assert_eq!(received, [ada(None), ada(Some(36)), ada(None)]);
    assert_eq!(bench.count("GET_SCHEMA"), 2, "once for each version");
    typed.close().await.unwrap();
    let any = client.queue_consumer(AutoConsumeSchema).topic(TOPIC).subscription("any");
    let any = any.initial_position(InitialPosition::Earliest).subscribe().await.unwrap();
    let first = soon(any.receive()).await.unwrap();
    assert_eq!(first.value().unwrap(), GenericValue::Record(json!({"name": "Ada"})));
    assert_eq!(first.schema_version().unwrap()[..], [0; 8]);
    let second = soon(any.receive()).await.unwrap();
    assert_eq!(second.value().unwrap(), GenericValue::Record(json!({"name": "Ada", "age": 36})));
    assert_eq!(second.schema_version().unwrap()[..], [0, 0, 0, 0, 0, 0, 0, 1]);
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ordered_consumers_read_records_as_they_were_written() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    publish(&client, AvroSchema::new(old()).unwrap(), ada(None)).await;
    publish(&client, AvroSchema::new(new()).unwrap(), ada(Some(36))).await;
    let typed = client.stream_consumer(AvroSchema::<User>::new(new()).unwrap()).topic(TOPIC);
    let typed =
        typed.subscription("s").initial_position(InitialPosition::Earliest).subscribe().await.unwrap();
    let received = soon(typed.receive_multi(2, Duration::from_secs(60))).await.unwrap();
    let values: Vec<User> = received.iter().map(|message| message.value().unwrap()).collect();
    assert_eq!(values, [ada(None), ada(Some(36))]);
    let any = client.checkpoint_consumer(AutoConsumeSchema).topic(TOPIC).start(Checkpoint::earliest());
    let any = any.create().await.unwrap();
    let first = soon(any.receive()).await.unwrap();
    assert_eq!(first.value().unwrap(), GenericValue::Record(json!({"name": "Ada"})));
    let position = any.checkpoint();
    // A position in which a message waits for its schema stays before that message.
    bench.control.arm(Fault::new(Selector::command("GET_SCHEMA"), FaultEffect::Delay { ms: 5_000 })).unwrap();
    assert!(any.receive_timeout(Duration::from_millis(100)).await.unwrap().is_none());
    assert_eq!(any.checkpoint(), position);
    let second = soon(any.receive()).await.unwrap();
    assert_eq!(second.value().unwrap(), GenericValue::Record(json!({"name": "Ada", "age": 36})));
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn json_records_need_no_question() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    publish(&client, JsonSchema::new(new()).unwrap(), ada(Some(36))).await;
    let consumer = consumer(&client, JsonSchema::<User>::new(new()).unwrap()).await;
    assert_eq!(next(&consumer).await, ada(Some(36)));
    assert_eq!(bench.count("GET_SCHEMA"), 0);
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_schema_goes_to_the_whole_topic() {
    let bench = Bench::new();
    bench.create(4);
    let client = bench.client();
    let producer = client.producer(Int64Schema).topic(TOPIC).create().await.unwrap();
    let _consumer = consumer(&client, Int64Schema).await;
    for n in 0..40 {
        producer.message().key(format!("key-{n}")).value(n).send().await.unwrap();
    }
    for command in ["PRODUCER", "SUBSCRIBE"] {
        let frames = bench.frames(command);
        assert_eq!(frames.len(), 4);
        for frame in frames {
            assert_eq!(frame["schema"], json!({"name": "INT64", "schema_data": "", "type": "Int64"}));
        }
    }
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_incompatible_schema_is_named_so() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    publish(&client, Int64Schema, 1).await;
    let subscribing = client.queue_consumer(StringSchema).topic(TOPIC).subscription("s").subscribe().await;
    assert_eq!(subscribing.unwrap_err().category(), Category::IncompatibleSchema);
    let producer = client.producer(StringSchema).topic(TOPIC);
    let sending = match producer.create().await {
        Ok(producer) => producer.message().value("a".to_owned()).send().await.map(drop),
        Err(error) => Err(error),
    };
    assert_eq!(sending.unwrap_err().category(), Category::IncompatibleSchema);
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_for_its_schema_and_is_not_lost() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    publish(&client, Int64Schema, 7).await;
    let consumer = consumer(&client, AutoConsumeSchema).await;
    let slow = Fault::new(Selector::command("GET_SCHEMA"), FaultEffect::Delay { ms: 5_000 });
    bench.control.arm(slow).unwrap();
    let early = consumer.receive_timeout(Duration::from_millis(200)).await.unwrap();
    assert!(early.is_none(), "its schema is under way");
    bench.control.arm(Fault::new(Selector::command("GET_SCHEMA"), FaultEffect::Close)).unwrap();
    assert_eq!(next(&consumer).await, GenericValue::Integer(7));
    assert!(bench.count("GET_SCHEMA") >= 2);
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_the_broker_does_not_know_leaves_bytes() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    publish(&client, Int64Schema, 7).await;
    let consumer = consumer(&client, AutoConsumeSchema).await;
    let gone =
        FaultEffect::Error { code: ErrorCode(ServerError::TopicNotFound), message: "no schema".into() };
    bench.control.arm(Fault::new(Selector::command("GET_SCHEMA"), gone)).unwrap();
    let value = next(&consumer).await;
    assert_eq!(value, GenericValue::Bytes(bytes::Bytes::copy_from_slice(&7i64.to_be_bytes())));
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_a_receive_that_waits_for_a_schema() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    publish(&client, Int64Schema, 7).await;
    let consumer = consumer(&client, AutoConsumeSchema).await;
    bench.control.arm(Fault::new(Selector::command("GET_SCHEMA"), FaultEffect::Drop)).unwrap();
    let receiving = tokio::spawn({
        let consumer = consumer.clone();
        async move { consumer.receive().await.map(drop) }
    });
    bench.control.wait_for(|record| record.frame().is_some_and(|f| f.command.name() == "GET_SCHEMA")).await;
    let before = bench.cluster.now();
    consumer.close().await.unwrap();
    assert_eq!(receiving.await.unwrap().unwrap_err().category(), Category::AlreadyClosed);
    assert!(bench.cluster.now() - before < 1_000, "it did not wait for the answer");
    client.close().await.unwrap();
}
