//! Checkpoint consumers: positions, restoring, order through layout changes, groups, losses.

use std::{collections::BTreeMap, time::Duration};

use sim_broker::core::{
    BrokerId, Profile,
    fault::{Fault, FaultEffect, Selector},
};
use stc_client::{Category, Checkpoint, CheckpointConsumer, Message, PulsarClient, StringSchema};

use crate::support::{Bench, TOPIC, soon, values};

const SECOND: Duration = Duration::from_secs(1);

async fn open(client: &PulsarClient, start: Checkpoint) -> CheckpointConsumer<String> {
    let builder = client.checkpoint_consumer(StringSchema).topic(TOPIC).name("c").start(start);
    soon(builder.create()).await.unwrap()
}

async fn member(client: &PulsarClient, name: &str, start: Checkpoint) -> CheckpointConsumer<String> {
    let builder = client.checkpoint_consumer(StringSchema).topic(TOPIC).group("g").name(name).start(start);
    soon(builder.create()).await.unwrap()
}

async fn send(client: &PulsarClient, numbers: std::ops::Range<u64>) {
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    for n in numbers {
        producer.message().key(format!("key-{}", n % 5)).value(n.to_string()).send_async();
    }
    producer.close().await.unwrap();
}

async fn receive(consumer: &CheckpointConsumer<String>) -> Vec<Message<String>> {
    receive_for(consumer, SECOND).await
}

async fn receive_for(consumer: &CheckpointConsumer<String>, pause: Duration) -> Vec<Message<String>> {
    let mut messages = Vec::new();
    while let Some(message) = consumer.receive_timeout(pause).await.unwrap() {
        messages.push(message);
    }
    messages
}

fn assert_order(messages: &[Message<String>]) {
    let mut keys: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for message in messages {
        keys.entry(message.key().unwrap()).or_default().push(message.value().unwrap().parse().unwrap());
    }
    for (key, numbers) in keys {
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{key}: {numbers:?}");
    }
}

fn sorted(messages: &[Message<String>]) -> Vec<u64> {
    let mut numbers: Vec<u64> = values(messages).iter().map(|value| value.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// Two splits and a merge with messages in each layout.
async fn history(bench: &Bench, client: &PulsarClient) {
    send(client, 0..20).await;
    bench.split(0);
    send(client, 20..40).await;
    bench.split(1);
    send(client, 40..60).await;
    bench.merge(3, 4);
    send(client, 60..80).await;
}

/// Sealed segments stay in the layout.
fn unpruned() -> Bench {
    Bench::with(|config| config.profile.prune_interval_ms = 1_000_000_000)
}

#[tokio::test(start_paused = true)]
async fn a_whole_history_is_read_in_order_and_nothing_is_left_at_the_broker() {
    let bench = unpruned();
    bench.create(1);
    let client = bench.client();
    history(&bench, &client).await;
    let consumer = open(&client, Checkpoint::earliest()).await;
    let messages = receive(&consumer).await;
    assert_eq!(sorted(&messages), (0..80).collect::<Vec<_>>());
    assert_order(&messages);
    // And what comes while it reads.
    bench.split(5);
    send(&client, 80..100).await;
    let messages = receive(&consumer).await;
    assert_eq!(sorted(&messages), (80..100).collect::<Vec<_>>());
    assert_order(&messages);
    consumer.close().await.unwrap();
    consumer.close().await.unwrap();
    assert_eq!((bench.count("ACK"), bench.count("SCALABLE_TOPIC_SUBSCRIBE")), (0, 0));
    assert!(bench.frames("SUBSCRIBE").iter().all(|s| s["durable"] == false && s["subType"] == "Exclusive"));
    assert_eq!(consumer.receive().await.unwrap_err().category(), Category::AlreadyClosed);
}

#[tokio::test(start_paused = true)]
async fn a_restored_consumer_goes_on_exactly_there_at_every_message() {
    let bench = unpruned();
    bench.create(2);
    let client = bench.client();
    send(&client, 0..12).await;
    let consumer = open(&client, Checkpoint::earliest()).await;
    let mut received = Vec::new();
    let mut checkpoints = vec![(0, consumer.checkpoint())];
    while let Some(message) = consumer.receive_timeout(SECOND).await.unwrap() {
        received.push(message);
        checkpoints.push((received.len(), consumer.checkpoint()));
        if received.len() == 6 {
            bench.split(0);
            send(&client, 12..24).await;
        }
    }
    assert_eq!(received.len(), 24);
    let asked = bench.count("GET_LAST_MESSAGE_ID");
    for (n, checkpoint) in checkpoints {
        let stored = Checkpoint::from_bytes(&checkpoint.to_bytes()).unwrap();
        assert_eq!(stored, checkpoint);
        let restored = open(&client, stored).await;
        assert_eq!(restored.checkpoint(), checkpoint, "before anything is received");
        let rest = receive(&restored).await;
        let mut all = sorted(&received[..n]);
        all.extend(sorted(&rest));
        all.sort_unstable();
        assert_eq!(all, (0..24).collect::<Vec<_>>(), "after {n}");
        assert_order(&rest);
        restored.close().await.unwrap();
    }
    assert!(asked <= bench.count("GET_LAST_MESSAGE_ID"));
    assert_eq!(bench.count("ACK"), 0);
}

/// What waits in the client is not part of a checkpoint: only what the application received.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_is_what_the_application_received() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    send(&client, 0..20).await;
    let consumer = open(&client, Checkpoint::earliest()).await;
    let mut first = consumer.receive_multi(7, SECOND).await.unwrap();
    let frames = bench.control.journal().len();
    let checkpoint = consumer.checkpoint();
    tokio::task::yield_now().await;
    assert_eq!(bench.control.journal().len(), frames, "nothing is asked");
    first.extend(receive(&open(&client, checkpoint).await).await);
    assert_eq!(sorted(&first), (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn without_a_position_it_starts_at_the_end() {
    let bench = unpruned();
    bench.create(1);
    let client = bench.client();
    send(&client, 0..10).await;
    bench.split(0);
    send(&client, 10..15).await;
    let consumer = client.checkpoint_consumer(StringSchema).topic(TOPIC).name("c").create().await.unwrap();
    let before = consumer.checkpoint();
    bench.split(1);
    send(&client, 15..30).await;
    assert_eq!(sorted(&receive(&consumer).await), (15..30).collect::<Vec<_>>());
    // Latest is a position from then on.
    assert_eq!(sorted(&receive(&open(&client, before).await).await), (15..30).collect::<Vec<_>>());
    assert_ne!(consumer.checkpoint(), Checkpoint::latest());
}

#[tokio::test(start_paused = true)]
async fn lost_connections_and_brokers_lose_and_repeat_nothing() {
    let bench = unpruned();
    bench.create(2);
    let client = bench.client();
    let consumer = open(&client, Checkpoint::earliest()).await;
    send(&client, 0..20).await;
    let mut messages = consumer.receive_multi(5, SECOND).await.unwrap();
    bench.control.drop_connections(Default::default());
    messages.extend(receive_for(&consumer, Duration::from_secs(20)).await);
    for broker in 0..3 {
        bench.control.kill_broker(BrokerId(broker)).unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        bench.control.revive_broker(BrokerId(broker)).unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        let n = u64::from(broker) * 10 + 20;
        send(&client, n..n + 10).await;
        messages.extend(receive_for(&consumer, Duration::from_secs(20)).await);
    }
    bench.control.move_segment(TOPIC, 0, BrokerId(1)).unwrap();
    send(&client, 50..60).await;
    messages.extend(receive_for(&consumer, Duration::from_secs(20)).await);
    assert_eq!(sorted(&messages), (0..60).collect::<Vec<_>>());
    assert_order(&messages);
}

#[tokio::test(start_paused = true)]
async fn a_group_shares_the_topic_and_rebalances() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let one = member(&client, "a", Checkpoint::earliest()).await;
    let two = member(&client, "b", Checkpoint::earliest()).await;
    send(&client, 0..20).await;
    let (first, second) = (receive(&one).await, receive(&two).await);
    assert!(!first.is_empty() && !second.is_empty());
    assert_eq!(first.len() + second.len(), 20);
    two.close().await.unwrap();
    assert_eq!(bench.count("SCALABLE_TOPIC_UNSUBSCRIBE"), 1);
    send(&client, 20..40).await;
    // What the other one had is read from this one's own start position.
    let rest = receive(&one).await;
    assert_eq!(rest.len(), 20 + second.len());
    assert_eq!(bench.count("ACK"), 0);
    let types = bench.frames("SCALABLE_TOPIC_SUBSCRIBE");
    assert!(types.iter().all(|subscribe| subscribe["consumer_type"] == "CHECKPOINT"));
}

/// The controller of the specification's profile hands children out when the parents were delivered a while ago.
#[tokio::test(start_paused = true)]
async fn a_group_reads_parents_before_children() {
    for profile in ["spec-1.0", "pulsar-5.0.1"] {
        let bench = Bench::with(|config| {
            config.profile = Profile::built_in(profile).unwrap();
            config.profile.prune_interval_ms = 1_000_000_000;
        });
        bench.create(1);
        let client = bench.client();
        history(&bench, &client).await;
        let consumer = member(&client, "a", Checkpoint::earliest()).await;
        let messages = receive_for(&consumer, Duration::from_secs(300)).await;
        assert_eq!(sorted(&messages), (0..80).collect::<Vec<_>>(), "{profile}");
        assert_order(&messages);
        let checkpoint = consumer.checkpoint();
        consumer.close().await.unwrap();
        send(&client, 80..90).await;
        let consumer = member(&client, "a", checkpoint).await;
        let messages = receive_for(&consumer, Duration::from_secs(600)).await;
        assert_eq!(sorted(&messages), (80..90).collect::<Vec<_>>(), "{profile}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_registration_of_a_member_is_made_again() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let one = member(&client, "a", Checkpoint::earliest()).await;
    send(&client, 0..10).await;
    let before = receive(&one).await;
    let registrations = bench.count("SCALABLE_TOPIC_SUBSCRIBE");
    bench.control.drop_connections(Default::default());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.count("SCALABLE_TOPIC_SUBSCRIBE"), registrations + 1);
    send(&client, 10..20).await;
    let after = receive(&one).await;
    assert_eq!((before.len(), after.len()), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_gets_lost_is_asked_again() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    send(&client, 0..5).await;
    let question = Selector::command("GET_LAST_MESSAGE_ID");
    bench.control.arm(Fault::new(question, FaultEffect::Close)).unwrap();
    let consumer = open(&client, Checkpoint::latest()).await;
    send(&client, 5..10).await;
    assert_eq!(sorted(&receive(&consumer).await), (5..10).collect::<Vec<_>>());
    let missing = client.checkpoint_consumer(StringSchema).create().await.unwrap_err();
    assert_eq!(missing.category(), Category::InvalidConfiguration);
}
