//! The consumer of a namespace: topics that come and go, acknowledgements across topics, losses.

use std::{collections::BTreeMap, time::Duration};

use sim_broker::{
    control::DropSelector,
    core::fault::{Fault, FaultEffect, Selector},
};
use stc_client::{
    Category, Error, InitialPosition, Message, MessageId, PulsarClient, StreamConsumer, StringSchema,
};

use crate::support::{Bench, receive, soon, values};

const SECOND: Duration = Duration::from_secs(1);
const NAMESPACE: &str = "public/default";

fn topic(local: &str) -> String {
    format!("topic://{NAMESPACE}/{local}")
}

fn create(bench: &Bench, local: &str, segments: i64, team: &str) {
    let properties = BTreeMap::from([("team".to_owned(), team.to_owned())]);
    bench.admin(|c, now| c.create_scalable_topic(&topic(local).parse().unwrap(), segments, properties, now));
}

fn delete(bench: &Bench, local: &str) {
    bench.admin(|c, now| c.delete_scalable_topic(&topic(local).parse().unwrap(), true, now));
}

async fn subscribe(client: &PulsarClient, team: Option<&str>) -> Result<StreamConsumer<String>, Error> {
    let builder = client.stream_consumer(StringSchema).namespace(NAMESPACE).subscription("s").name("c");
    let builder = builder.initial_position(InitialPosition::Earliest);
    match team {
        Some(team) => builder.topic_property("team", team).subscribe().await,
        None => builder.subscribe().await,
    }
}

/// Publishes numbers, each under a key of its own.
async fn send(client: &PulsarClient, local: &str, numbers: std::ops::Range<u64>) {
    let producer = client.producer(StringSchema).topic(topic(local)).create().await.unwrap();
    for n in numbers {
        producer.message().key(format!("key-{n}")).value(format!("{local}-{n}")).send().await.unwrap();
    }
    producer.close().await.unwrap();
}

fn sorted(messages: &[Message<String>]) -> Vec<String> {
    let mut values = values(messages);
    values.sort_unstable();
    values
}

#[tokio::test(start_paused = true)]
async fn topics_come_and_go_and_come_back() {
    let bench = Bench::new();
    create(&bench, "a", 2, "x");
    create(&bench, "b", 1, "y");
    let client = bench.client();
    let consumer = soon(subscribe(&client, None)).await.unwrap();
    assert_eq!((consumer.topic(), consumer.namespace()), (None, Some(NAMESPACE)));
    send(&client, "a", 0..2).await;
    send(&client, "b", 0..1).await;
    create(&bench, "c", 1, "x");
    send(&client, "c", 0..1).await;
    let first = receive(&consumer).await;
    assert_eq!(sorted(&first), ["a-0", "a-1", "b-0", "c-0"]);
    assert!(first.iter().all(|m| m.topic() == topic(&m.value().unwrap()[..1])));
    delete(&bench, "b");
    create(&bench, "b", 1, "y");
    send(&client, "b", 7..8).await;
    assert_eq!(values(&receive(&consumer).await), ["b-7"]);
    delete(&bench, "a");
    tokio::time::sleep(SECOND).await;
    assert_eq!(bench.count("SCALABLE_TOPIC_UNSUBSCRIBE"), 2, "of b and of a");
    soon(client.close()).await.unwrap();
    assert!(bench.control.current_dag(&topic("a")).is_err(), "nobody made it again");
    assert_eq!(bench.count("ACK"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_covers_all_topics_and_passes_over_what_left() {
    let bench = Bench::new();
    for local in ["a", "b", "c"] {
        create(&bench, local, 1, "x");
    }
    let client = bench.client();
    let consumer = soon(subscribe(&client, Some("x"))).await.unwrap();
    for local in ["a", "b", "c"] {
        send(&client, local, 0..2).await;
    }
    let received = receive(&consumer).await;
    assert_eq!(received.len(), 6);
    // Of c one message came after it.
    let at = received.iter().position(|m| m.value().unwrap() == "c-0").unwrap();
    bench.control.set_topic_properties(&topic("b"), BTreeMap::new()).unwrap();
    tokio::time::sleep(SECOND).await;
    consumer.acknowledge_cumulative(received[at].id()).await.unwrap();
    let team = BTreeMap::from([("team".to_owned(), "x".to_owned())]);
    bench.control.set_topic_properties(&topic("b"), team).unwrap();
    assert_eq!(values(&receive(&consumer).await), ["b-0", "b-1"], "what was not acknowledged comes again");
    soon(consumer.close()).await.unwrap();
    let again = soon(subscribe(&client, Some("x"))).await.unwrap();
    assert_eq!(sorted(&receive(&again).await), ["b-0", "b-1", "c-1"]);
    // From bytes too.
    let last = MessageId::from_bytes(&received[at].id().to_bytes()).unwrap();
    again.acknowledge_cumulative(&last).await.unwrap();
    soon(again.close()).await.unwrap();
    let again = soon(subscribe(&client, Some("x"))).await.unwrap();
    assert_eq!(values(&receive(&again).await), ["c-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_watch_is_opened_again_and_brings_what_was_missed() {
    let bench = Bench::new();
    create(&bench, "a", 1, "x");
    create(&bench, "b", 1, "x");
    let client = bench.client();
    let consumer = soon(subscribe(&client, None)).await.unwrap();
    send(&client, "a", 0..1).await;
    consumer.acknowledge_cumulative(consumer.receive().await.unwrap().id()).await.unwrap();
    let updates = bench.count("WATCH_SCALABLE_TOPICS_UPDATE");
    bench.control.drop_connections(DropSelector::default());
    tokio::time::sleep(SECOND).await;
    assert_eq!(bench.count("WATCH_SCALABLE_TOPICS"), 2);
    assert_eq!(bench.count("WATCH_SCALABLE_TOPICS_UPDATE"), updates, "the hash was known");
    send(&client, "b", 0..1).await;
    let received = receive(&consumer).await;
    assert_eq!(values(&received), ["b-0"]);
    consumer.acknowledge_cumulative(received[0].id()).await.unwrap();
    bench
        .control
        .arm(Fault::new(Selector::command("WATCH_SCALABLE_TOPICS"), FaultEffect::Delay { ms: 900 }))
        .unwrap();
    bench.control.drop_connections(DropSelector::default());
    delete(&bench, "a");
    create(&bench, "c", 1, "x");
    send(&client, "c", 0..1).await;
    assert_eq!(values(&receive(&consumer).await), ["c-0"]);
    soon(client.close()).await.unwrap();
}

/// The released broker does not say that a topic left before it came again.
#[tokio::test(start_paused = true)]
async fn a_topic_that_was_made_again_unnoticed_is_read_on() {
    let bench =
        Bench::with(|config| config.profile = sim_broker::core::Profile::built_in("pulsar-5.0.1").unwrap());
    create(&bench, "a", 2, "x");
    let client = bench.client();
    let consumer = soon(subscribe(&client, None)).await.unwrap();
    send(&client, "a", 0..2).await;
    let received = receive(&consumer).await;
    assert_eq!(received.len(), 2);
    delete(&bench, "a");
    create(&bench, "a", 1, "x");
    send(&client, "a", 5..8).await;
    assert_eq!(sorted(&receive(&consumer).await), ["a-5", "a-6", "a-7"]);
    consumer.acknowledge_cumulative(received[1].id()).await.unwrap();
    soon(consumer.close()).await.unwrap();
    let again = soon(subscribe(&client, None)).await.unwrap();
    assert_eq!(receive(&again).await.len(), 3, "what is acknowledged is the old topic's");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_acknowledges_in_all_topics_or_in_none() {
    let bench = Bench::new();
    create(&bench, "a", 1, "x");
    create(&bench, "b", 1, "x");
    let client = bench.client();
    let consumer = soon(subscribe(&client, None)).await.unwrap();
    send(&client, "a", 0..1).await;
    send(&client, "b", 0..1).await;
    for commit in [false, true] {
        let received = receive(&consumer).await;
        assert_eq!(sorted(&received), ["a-0", "b-0"]);
        let transaction = soon(client.new_transaction(60 * SECOND)).await.unwrap();
        let last = received.last().unwrap().id();
        soon(consumer.acknowledge_cumulative_in(last, &transaction)).await.unwrap();
        match commit {
            true => soon(transaction.commit()).await.unwrap(),
            false => soon(transaction.abort()).await.unwrap(),
        }
    }
    soon(consumer.close()).await.unwrap();
    let again = soon(subscribe(&client, None)).await.unwrap();
    assert_eq!(receive(&again).await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_subscribed_to_says_why() {
    let bench = Bench::new();
    create(&bench, "a", 1, "x");
    let client = bench.client();
    let builder = || client.stream_consumer(StringSchema).subscription("s");
    for refused in [
        builder(),
        builder().topic(topic("a")).namespace(NAMESPACE),
        builder().topic(topic("a")).topic_property("team", "x"),
        builder().namespace("public"),
        builder().namespace("public/default/a"),
    ] {
        let error = soon(refused.subscribe()).await.unwrap_err();
        assert_eq!(error.category(), Category::InvalidConfiguration, "{error}");
    }
    let error = soon(builder().namespace("public/none").subscribe()).await.unwrap_err();
    assert_eq!(error.category(), Category::NotFound);
    let one = soon(builder().topic(topic("a")).subscribe()).await.unwrap();
    let all = soon(client.stream_consumer(StringSchema).namespace(NAMESPACE).subscription("t").subscribe());
    let all = all.await.unwrap();
    send(&client, "a", 0..1).await;
    let message = soon(one.receive()).await.unwrap();
    let error = all.acknowledge_cumulative(message.id()).await.unwrap_err();
    assert_eq!(error.category(), Category::InvalidConfiguration, "it says nothing of other topics");
    soon(all.close()).await.unwrap();
    assert_eq!(bench.count("WATCH_SCALABLE_TOPICS_CLOSE"), 1, "one was refused");
    soon(all.close()).await.unwrap();
    assert_eq!(all.receive().await.unwrap_err().category(), Category::AlreadyClosed);
    let error = all.acknowledge_cumulative(message.id()).await.unwrap_err();
    assert_eq!(error.category(), Category::AlreadyClosed);
}
