//! How fast one stored topic takes messages, and hands them on.

#![allow(missing_docs, reason = "criterion's macros write public functions without docs")]

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sim_broker::core::{
    ConnId, ConsumerKey, Effects, ProducerKey,
    ids::ProducerNames,
    topic::{Topic, TopicConfig},
};
use stc_proto::{
    Entry, TopicName,
    pulsar::{command_subscribe::SubType, *},
};

const MESSAGES: u64 = 10_000;
const PRODUCER: ProducerKey = ProducerKey { conn: ConnId(1), id: 0 };
const CONSUMER: ConsumerKey = ConsumerKey { conn: ConnId(2), id: 0 };

/// Entries of 100 bytes under 100 keys.
fn entries() -> Vec<Bytes> {
    (0..MESSAGES)
        .map(|sequence_id| {
            let metadata = MessageMetadata {
                producer_name: "producer".into(),
                sequence_id,
                publish_time: 1,
                partition_key: Some(format!("key-{}", sequence_id % 100)),
                ..Default::default()
            };
            Entry::new(metadata, Bytes::from_static(&[7; 100])).to_bytes()
        })
        .collect()
}

fn topic(subscription: Option<SubType>, effects: &mut Effects) -> Option<Topic> {
    let name = TopicName::parse("persistent://public/default/bench").ok()?;
    let mut topic = Topic::new(name, TopicConfig::default(), 1, Default::default());
    let mut names = ProducerNames::new("bench");
    topic.add_producer(PRODUCER, &CommandProducer::default(), &mut names, effects).ok()?;
    if let Some(kind) = subscription {
        let subscribe =
            CommandSubscribe { subscription: "s".into(), sub_type: kind as i32, ..Default::default() };
        topic.subscribe(CONSUMER, &subscribe, 0, effects).ok()?;
        let flow = CommandFlow { message_permits: MESSAGES as u32, ..Default::default() };
        topic.flow(CONSUMER, &flow, 0, effects);
    }
    effects.drain().for_each(drop);
    Some(topic)
}

/// Sends everything, and acknowledges each entry once it is out when there is a consumer.
fn run(topic: &mut Topic, entries: &[Bytes], acks: bool, effects: &mut Effects) {
    for (sequence_id, entry) in (0..).zip(entries) {
        let send = CommandSend { sequence_id, ..Default::default() };
        topic.send(PRODUCER, &send, entry.clone(), 0, effects);
        if acks {
            let id = MessageIdData { ledger_id: 1, entry_id: sequence_id, ..Default::default() };
            let ack = CommandAck { message_id: vec![id], ..Default::default() };
            topic.ack(CONSUMER, &ack, 0, effects);
        }
        effects.drain().for_each(drop);
    }
}

fn core(criterion: &mut Criterion) {
    let entries = entries();
    let mut group = criterion.benchmark_group("core");
    group.throughput(Throughput::Elements(MESSAGES)).sample_size(20);
    let cases = [
        ("publish", None),
        ("publish, dispatch, ack: Exclusive", Some(SubType::Exclusive)),
        ("publish, dispatch, ack: Shared", Some(SubType::Shared)),
        ("publish, dispatch, ack: Key_Shared", Some(SubType::KeyShared)),
    ];
    for (name, subscription) in cases {
        group.bench_function(name, |bencher| {
            let mut effects = Effects::new();
            bencher.iter_batched(
                || topic(subscription, &mut Effects::new()),
                |mut topic| {
                    if let Some(topic) = &mut topic {
                        run(topic, &entries, subscription.is_some(), &mut effects);
                    }
                    topic
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, core);
criterion_main!(benches);
