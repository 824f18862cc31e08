//! Stream consumers: order, cumulative acknowledgement, sharing, drains, losses.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use sim_broker::{
    control::DropSelector,
    core::{
        BrokerId, Profile,
        fault::{ErrorCode, Fault, FaultEffect, Selector},
    },
};
use stc_client::{
    Category, Checkpoint, InitialPosition, Message, MessageId, PulsarClient, StreamConsumer, StringSchema,
};
use stc_proto::pulsar::{ScalableAssignedSegment, ScalableConsumerAssignment, ServerError};

use crate::support::{Bench, TOPIC, receive, soon, values};

const SECOND: Duration = Duration::from_secs(1);

async fn stream(client: &PulsarClient, name: &str) -> StreamConsumer<String> {
    soon(try_stream(client, name)).await.unwrap()
}

async fn try_stream(client: &PulsarClient, name: &str) -> Result<StreamConsumer<String>, stc_client::Error> {
    let builder = client.stream_consumer(StringSchema).topic(TOPIC).subscription("s").name(name);
    builder.initial_position(InitialPosition::Earliest).subscribe().await
}

/// Publishes numbers, each under the key that it has modulo five.
async fn send(client: &PulsarClient, numbers: std::ops::Range<u64>) {
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    for n in numbers {
        producer.message().key(format!("key-{}", n % 5)).value(n.to_string()).send_async();
    }
    producer.close().await.unwrap();
}

/// Receives and acknowledges until nothing comes any more.
async fn drain(consumer: &StreamConsumer<String>) -> Vec<Message<String>> {
    let mut messages = Vec::new();
    while let Some(message) = consumer.receive_timeout(Duration::from_secs(120)).await.unwrap() {
        consumer.acknowledge_cumulative(message.id()).await.unwrap();
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
        assert!(numbers.is_sorted(), "{key}: {numbers:?}");
    }
}

fn sorted(messages: &[Message<String>]) -> Vec<u64> {
    let mut numbers: Vec<u64> = values(messages).iter().map(|value| value.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

fn all(n: u64) -> Vec<u64> {
    (0..n).collect()
}

fn types(bench: &Bench) -> Vec<String> {
    let text = |subscribe: &serde_json::Value| subscribe["subType"].as_str().unwrap().to_owned();
    bench.frames("SUBSCRIBE").iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn one_consumer_gets_every_key_in_order_through_splits_and_merges() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = stream(&client, "a").await;
    send(&client, 0..40).await;
    bench.split(0);
    send(&client, 40..80).await;
    bench.split(1);
    send(&client, 80..120).await;
    bench.merge(3, 4);
    send(&client, 120..160).await;
    let messages = drain(&consumer).await;
    assert_eq!(sorted(&messages), all(160));
    assert_order(&messages);
    assert!(types(&bench).iter().all(|kind| kind == "Exclusive"));
    assert!(bench.frames("ACK").iter().all(|ack| ack["ack_type"] == "Cumulative"));
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_subscription_starts_where_it_is_told_and_an_old_one_goes_on() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    send(&client, 0..10).await;
    let consumer = stream(&client, "a").await;
    assert_eq!(sorted(&drain(&consumer).await), all(10));
    consumer.close().await.unwrap();
    send(&client, 10..20).await;
    let latest =
        client.stream_consumer(StringSchema).topic(TOPIC).subscription("s").subscribe().await.unwrap();
    assert_eq!(drain(&latest).await.len(), 10, "the position counts for new subscriptions only");
    let new = client.stream_consumer(StringSchema).topic(TOPIC).subscription("t").subscribe().await.unwrap();
    assert!(receive(&new).await.is_empty());
    assert!(bench.frames("SUBSCRIBE").iter().all(|subscribe| subscribe["durable"] == true));
}

/// One acknowledgement of the last message covers everything before it, on shared segments too.
#[tokio::test(start_paused = true)]
async fn the_last_acknowledgement_covers_a_shared_segment() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let (one, two) = (stream(&client, "a").await, stream(&client, "b").await);
    send(&client, 0..30).await;
    for consumer in [&one, &two] {
        let messages = receive(consumer).await;
        consumer.acknowledge_cumulative(messages.last().unwrap().id()).await.unwrap();
    }
    assert!(bench.frames("ACK").iter().all(|ack| ack["ack_type"] == "Individual"));
    one.close().await.unwrap();
    two.close().await.unwrap();
    assert!(receive(&stream(&client, "c").await).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_older_assignment_is_not_applied_and_an_unchanged_one_disturbs_nothing() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = stream(&client, "a").await;
    bench.split(0);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let subscribes = bench.count("SUBSCRIBE");
    let older = ScalableConsumerAssignment { layout_epoch: 0, segments: Vec::new() };
    bench.control.push_assignment(TOPIC, "s", "a", &older).unwrap();
    let assignments = bench.frames("SCALABLE_TOPIC_ASSIGNMENT_UPDATE");
    let current = &assignments[assignments.len() - 2];
    assert_eq!(current["assignment"]["segments"].as_array().unwrap().len(), 2);
    tokio::time::sleep(SECOND).await;
    // An epoch further, with the same segments.
    let segments = (0..2u32).map(|i| ScalableAssignedSegment {
        segment_id: u64::from(i) + 1,
        hash_start: i * 0x8000,
        hash_end: i * 0x8000 + 0x7fff,
        segment_topic: ["0000-7fff-1", "8000-ffff-2"]
            .map(|descriptor| format!("segment://public/default/t/{descriptor}"))[i as usize]
            .clone(),
        bucket_ranges: Vec::new(),
    });
    let same = ScalableConsumerAssignment { layout_epoch: 9, segments: segments.collect() };
    bench.control.push_assignment(TOPIC, "s", "a", &same).unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(bench.count("SUBSCRIBE"), subscribes);
    send(&client, 0..10).await;
    assert_eq!(drain(&consumer).await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_refused_registration_is_looked_up_and_tried_again() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let refusal = FaultEffect::Error { code: ErrorCode(ServerError::UnknownError), message: "no".into() };
    let mut fault = Fault::new(Selector::command("SCALABLE_TOPIC_SUBSCRIBE"), refusal);
    fault.count = 3;
    bench.control.arm(fault).unwrap();
    let consumer = stream(&client, "a").await;
    assert_eq!(bench.count("SCALABLE_TOPIC_SUBSCRIBE"), 4);
    assert_eq!(bench.count("SCALABLE_TOPIC_LOOKUP"), 4, "the controller may be elsewhere");
    consumer.close().await.unwrap();
}

/// The push with the new controller is lost; the old one refuses, and looking up finds the new one.
#[tokio::test(start_paused = true)]
async fn a_controller_that_moved_unheard_is_looked_up() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let _consumer = stream(&client, "a").await;
    let dag = bench.control.current_dag(TOPIC).unwrap();
    let urls = bench.cluster.broker_urls();
    let old = urls.iter().position(|url| Some(url) == dag.controller_broker_url.as_ref()).unwrap();
    bench.control.hold_pushes(TOPIC).unwrap();
    bench.control.move_controller(TOPIC, BrokerId((old as u32 + 1) % 3)).unwrap();
    bench.control.drop_connections(DropSelector { broker: Some(BrokerId(old as u32)), conn: None });
    tokio::time::sleep(SECOND).await;
    bench.control.release_pushes(TOPIC).unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(bench.control.registered(TOPIC).unwrap()[0].session.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_covers_all_segments_and_a_reader_goes_on_behind_it() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let consumer = stream(&client, "a").await;
    send(&client, 0..20).await;
    let first: Vec<_> = consumer.receive_multi(12, SECOND).await.unwrap();
    consumer.acknowledge_cumulative(first[11].id()).await.unwrap();
    consumer.close().await.unwrap();
    let again = stream(&client, "a").await;
    let rest = receive(&again).await;
    assert_eq!(rest.len(), 8);
    let mut received = sorted(&first);
    received.extend(sorted(&rest));
    received.sort_unstable();
    assert_eq!(received, all(20));
    // Stored identifiers acknowledge as well.
    let stored = MessageId::from_bytes(&rest[7].id().to_bytes()).unwrap();
    again.close().await.unwrap();
    let last = stream(&client, "a").await;
    last.acknowledge_cumulative(&stored).await.unwrap();
    last.close().await.unwrap();
    assert!(receive(&stream(&client, "a").await).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn consumers_share_by_segment_and_then_by_bucket() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let one = stream(&client, "a").await;
    send(&client, 0..50).await;
    let two = stream(&client, "b").await;
    // Nothing of the first half was received, so it is shared as well.
    send(&client, 50..100).await;
    let (first, second) = tokio::join!(drain(&one), drain(&two));
    assert_order(&first);
    assert_order(&second);
    assert!(!first.is_empty() && !second.is_empty());
    // Whoever was there first got everything at first; what came later went to the owner of its key.
    let late = |messages: &[Message<String>]| -> BTreeSet<String> {
        let late = messages.iter().filter(|message| message.value().unwrap().parse::<u64>().unwrap() >= 50);
        late.map(|message| message.key().unwrap().to_owned()).collect()
    };
    assert!(late(&first).is_disjoint(&late(&second)));
    let mut numbers = sorted(&first);
    numbers.extend(sorted(&second));
    numbers.sort_unstable();
    assert_eq!(numbers, all(100));
    let shared: Vec<_> =
        bench.frames("SUBSCRIBE").into_iter().filter(|s| s["subType"] == "Key_Shared").collect();
    for subscribe in &shared {
        assert_eq!(subscribe["keySharedMeta"]["entryBucketDispatch"], true, "{subscribe}");
        assert_eq!(subscribe["keySharedMeta"]["keySharedMode"], "STICKY", "{subscribe}");
        assert_eq!(subscribe["keySharedMeta"]["hashRanges"].as_array().unwrap().len(), 4, "{subscribe}");
    }
    assert!(shared.len() >= 2);
}

/// The joiner waits until what the owner received is acknowledged, and gets nothing of it.
#[tokio::test(start_paused = true)]
async fn a_flip_waits_for_a_slow_application() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let one = stream(&client, "a").await;
    send(&client, 0..20).await;
    let held = one.receive_multi(7, SECOND).await.unwrap();
    let joining = tokio::spawn({
        let client = bench.client();
        async move { (stream(&client, "b").await, client) }
    });
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!joining.is_finished() && bench.count("CLOSE_CONSUMER") == 0);
    assert!(one.receive_timeout(SECOND).await.unwrap().is_none(), "paused");
    one.acknowledge_cumulative(held[6].id()).await.unwrap();
    let (two, _other) = soon(joining).await.unwrap();
    let (first, second) = tokio::join!(drain(&one), drain(&two));
    let mut numbers = sorted(&held);
    numbers.extend(sorted(&first));
    numbers.extend(sorted(&second));
    numbers.sort_unstable();
    assert_eq!(numbers, all(20), "nothing twice");
    // And back: the second leaves, the first is the sole owner again.
    two.close().await.unwrap();
    send(&client, 20..40).await;
    assert_eq!(drain(&one).await.len(), 20);
    assert_eq!(types(&bench).last().unwrap(), "Exclusive");
}

#[tokio::test(start_paused = true)]
async fn a_joiner_that_waits_in_vain_says_consumer_busy() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let one = stream(&client, "a").await;
    send(&client, 0..5).await;
    let held = receive(&one).await;
    assert_eq!(held.len(), 5);
    let busy = try_stream(&client, "b").await.unwrap_err();
    assert_eq!(busy.category(), Category::ConsumerBusy);
    // It left again, and the first one goes on.
    one.acknowledge_cumulative(held[4].id()).await.unwrap();
    send(&client, 5..10).await;
    assert_eq!(drain(&one).await.len(), 5);
}

/// Two mode flips in a row with messages under way; each of them waits for the broker, not for the call.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_brokers_answer() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let one = stream(&client, "a").await;
    send(&client, 0..5).await;
    let held = receive(&one).await;
    bench.control.arm(Fault::new(Selector::command("ACK"), FaultEffect::Hold)).unwrap();
    one.acknowledge_cumulative(held[4].id()).await.unwrap();
    let joining = tokio::spawn({
        let client = bench.client();
        async move { (stream(&client, "b").await, client) }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!joining.is_finished() && bench.count("CLOSE_CONSUMER") == 0);
    assert_eq!(bench.control.release_all(), 1);
    let (two, _other) = soon(joining).await.unwrap();
    assert!(receive(&two).await.is_empty() && receive(&one).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_segment_is_drained_before_the_next_owner_gets_it() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let one = stream(&client, "a").await;
    send(&client, 0..20).await;
    let held = receive(&one).await;
    assert_eq!(held.len(), 20);
    let joining = tokio::spawn({
        let client = bench.client();
        async move { (stream(&client, "b").await, client) }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!joining.is_finished());
    one.acknowledge_cumulative(held[19].id()).await.unwrap();
    let (two, _other) = soon(joining).await.unwrap();
    assert!(receive(&two).await.is_empty());
    send(&client, 20..40).await;
    let (first, second) = tokio::join!(drain(&one), drain(&two));
    assert!(!first.is_empty() && !second.is_empty());
    assert_eq!(first.len() + second.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_close_tells_the_controller_and_acknowledges_nothing() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let (one, two) = (stream(&client, "a").await, stream(&client, "b").await);
    send(&client, 0..20).await;
    let held = receive(&one).await;
    assert!(!held.is_empty());
    // The answer is an error, and the close succeeds all the same.
    let refusal = FaultEffect::Error { code: ErrorCode(ServerError::UnknownError), message: "no".into() };
    bench.control.arm(Fault::new(Selector::command("SCALABLE_TOPIC_UNSUBSCRIBE"), refusal)).unwrap();
    one.close().await.unwrap();
    one.close().await.unwrap();
    assert_eq!(bench.count("ACK"), 0);
    assert_eq!(bench.count("SCALABLE_TOPIC_UNSUBSCRIBE"), 1);
    assert_eq!(one.receive().await.unwrap_err().category(), Category::AlreadyClosed);
    let rest = drain(&two).await;
    assert_eq!(sorted(&rest), all(20), "at once, with everything that was not acknowledged");
}

#[tokio::test(start_paused = true)]
async fn within_the_grace_period_a_lost_consumer_keeps_its_share() {
    let bench = Bench::new();
    bench.create(2);
    let (client, other) = (bench.client(), bench.client());
    let (one, two) = (stream(&client, "a").await, stream(&other, "b").await);
    send(&client, 0..20).await;
    let (before, _) = (drain(&one).await, drain(&two).await);
    let subscribes = bench.frames("SCALABLE_TOPIC_SUBSCRIBE").len();
    bench.control.drop_connections(Default::default());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let again = bench.frames("SCALABLE_TOPIC_SUBSCRIBE");
    assert_eq!(again.len(), subscribes + 2);
    for subscribe in &again[subscribes..] {
        let id = |s: &serde_json::Value| (s["consumer_name"].clone(), s["consumer_id"].clone());
        assert!(again[..subscribes].iter().any(|earlier| id(earlier) == id(subscribe)));
    }
    send(&client, 20..40).await;
    let (first, second) = tokio::join!(drain(&one), drain(&two));
    assert_eq!(first.len() + second.len(), 20);
    let keys = |messages: &[Message<String>]| -> BTreeSet<String> {
        messages.iter().map(|message| message.key().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&first), keys(&before));
}

#[tokio::test(start_paused = true)]
async fn past_the_grace_period_the_others_take_over() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let one = stream(&client, "a").await;
    {
        // A process that dies: its connections end without a word to the controller.
        let process = bench.client();
        let gone = stream(&process, "b").await;
        let unsubscribe = Selector::command("SCALABLE_TOPIC_UNSUBSCRIBE");
        bench.control.arm(Fault::new(unsubscribe, FaultEffect::Drop)).unwrap();
        gone.close().await.unwrap();
        process.close().await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(bench.control.registered(TOPIC).unwrap().len(), 2);
    tokio::time::sleep(Duration::from_secs(60)).await;
    send(&client, 0..20).await;
    assert_eq!(sorted(&drain(&one).await), all(20));
}

#[tokio::test(start_paused = true)]
async fn a_moved_controller_is_found() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let one = stream(&client, "a").await;
    let leader = bench.control.current_dag(TOPIC).unwrap().controller_broker_url.unwrap();
    for n in 0..3 {
        bench.control.move_controller(TOPIC, BrokerId(n)).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let registered = bench.control.registered(TOPIC).unwrap();
        assert!(registered[0].session.is_some(), "{registered:?}");
    }
    let _ = leader;
    send(&client, 0..10).await;
    assert_eq!(drain(&one).await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_dead_controller_or_segment_broker_is_survived() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let one = stream(&client, "a").await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let mut received = BTreeSet::new();
    for broker in 0..3u64 {
        for n in broker * 20..broker * 20 + 20 {
            producer.message().key(format!("key-{}", n % 5)).value(n.to_string()).send_async();
            if n % 20 == 10 {
                // Some are received and not acknowledged: they come again.
                received.extend(sorted(&receive(&one).await));
                bench.control.kill_broker(BrokerId(broker as u32)).unwrap();
            }
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
        bench.control.revive_broker(BrokerId(broker as u32)).unwrap();
        let messages = drain(&one).await;
        assert_order(&messages);
        received.extend(sorted(&messages));
    }
    assert_eq!(received.into_iter().collect::<Vec<_>>(), all(60));
    send(&client, 60..70).await;
    assert_eq!(drain(&one).await.len(), 10);
}

/// A topic of 5.0.1 whose controller died has none until a consumer registers; its layouts name none meanwhile.
#[tokio::test(start_paused = true)]
async fn a_controller_that_a_lookup_does_not_name_is_forgotten() {
    let bench = Bench::with(|config| {
        config.profile = Profile::built_in("pulsar-5.0.1").unwrap();
        config.brokers = 2;
    });
    bench.create(1);
    let both = "pulsar://broker-0:6650,broker-1:6650";
    let client = bench.builder().service_url(both).build().unwrap();
    let one = stream(&client, "a").await;
    let controller = || bench.control.current_dag(TOPIC).unwrap().controller_broker_url;
    let dead = controller().unwrap();
    let index = if dead == "pulsar://broker-0:6650" { 0 } else { 1 };
    bench.control.kill_broker(BrokerId(index)).unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let registered = bench.control.registered(TOPIC).unwrap();
    assert!(registered[0].session.is_some(), "{registered:?}");
    assert_ne!(controller().unwrap(), dead);
    send(&client, 0..10).await;
    assert_eq!(drain(&one).await.len(), 10);
}

/// Consumers come and go while messages flow; every key stays in order, nothing is lost and nothing comes twice.
#[tokio::test(start_paused = true)]
async fn keys_stay_in_order_while_consumers_come_and_go() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let (log, mut received) = tokio::sync::mpsc::unbounded_channel();
    let worker = |consumer: StreamConsumer<String>| {
        let log = log.clone();
        tokio::spawn(async move {
            while let Ok(message) = consumer.receive().await {
                log.send((message.key().unwrap().to_owned(), message.value().unwrap())).unwrap();
                tokio::time::sleep(Duration::from_millis(3)).await;
                if consumer.acknowledge_cumulative(message.id()).await.is_err() {
                    return;
                }
            }
        })
    };
    let mut consumers = vec![stream(&client, "c0").await];
    worker(consumers[0].clone());
    for step in 0..10u64 {
        for n in step * 40..step * 40 + 40 {
            producer.message().key(format!("key-{}", n % 5)).value(n.to_string()).send_async();
        }
        match step {
            1 | 2 | 5 | 6 => {
                let consumer = stream(&client, &format!("c{step}")).await;
                worker(consumer.clone());
                consumers.push(consumer);
            }
            3 => bench.split(0),
            _ => {}
        }
        tokio::time::sleep(SECOND).await;
    }
    producer.flush().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    client.close().await.unwrap();
    let mut keys: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    while let Ok((key, value)) = received.try_recv() {
        keys.entry(key).or_default().push(value.parse().unwrap());
    }
    let total: usize = keys.values().map(Vec::len).sum();
    for (key, numbers) in keys {
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{key}: {numbers:?}");
    }
    assert_eq!(total, 400);
    assert!(
        types(&bench).contains(&"Key_Shared".to_owned()) && types(&bench).contains(&"Exclusive".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_configured_is_on_the_wire() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let builder = client.stream_consumer(StringSchema).topic(TOPIC);
    assert_eq!(builder.subscribe().await.unwrap_err().category(), Category::InvalidConfiguration);
    let consumer = client
        .stream_consumer(StringSchema)
        .topic(TOPIC)
        .subscription("s")
        .subscription_property("a", "1")
        .read_compacted(true)
        .replicate_subscription_state(true)
        .acknowledgment_group_time(Duration::from_millis(10))
        .subscribe()
        .await
        .unwrap();
    let subscribe = &bench.frames("SUBSCRIBE")[0];
    assert_eq!(subscribe["read_compacted"], true);
    assert_eq!(subscribe["replicate_subscription_state"], true);
    assert_eq!(subscribe["subscription_properties"][0]["key"], "a");
    assert_eq!(subscribe["initialPosition"], "Latest");
    assert!(subscribe["consumer_name"].as_str().unwrap().ends_with("-seg-0"));
    consumer.close().await.unwrap();
    let absent = client
        .stream_consumer(StringSchema)
        .topic("topic://public/none/t")
        .subscription("s")
        .subscribe()
        .await;
    assert_eq!(absent.unwrap_err().category(), Category::NotFound);
}

/// The same seed gives the same frames at the same times, with ordered consumers that come, go and are lost.
#[test]
fn a_run_of_ordered_consumers_can_be_repeated() {
    let run = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let bench = Bench::new();
            bench.create(2);
            let client = bench.client();
            let (one, two, three) =
                (stream(&client, "a").await, stream(&client, "b").await, stream(&client, "c").await);
            let builder = client.checkpoint_consumer(StringSchema).topic(TOPIC).group("g");
            let member = builder.start(Checkpoint::earliest()).create().await.unwrap();
            send(&client, 0..40).await;
            bench.control.drop_connections(DropSelector::default());
            bench.split(0);
            two.close().await.unwrap();
            send(&client, 40..60).await;
            let received = [drain(&one).await.len(), drain(&three).await.len()];
            assert!(received.iter().sum::<usize>() >= 60);
            assert!(!member.receive_multi(60, SECOND).await.unwrap().is_empty());
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
