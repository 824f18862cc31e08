//! Messages that are larger than an entry may be: in several entries, and one message again.

use std::time::Duration;

use sim_broker::core::fault::{Fault, FaultEffect, Selector};
use stc_client::{
    Checkpoint, Compression, ConsumerEncryption, InitialPosition, ProducerBuilder, ProducerEncryption,
    PulsarClient, StaticKeys, StringSchema,
};

use crate::support::{Bench, TOPIC, soon};

fn producer(client: &PulsarClient) -> ProducerBuilder<String> {
    client.producer(StringSchema).topic(TOPIC).chunk_size(10)
}

/// 95 bytes, so ten chunks.
fn long(n: u64) -> String {
    format!("{n:05}").repeat(19)
}

fn chunks(bench: &Bench) -> Vec<(Option<u64>, Option<i32>)> {
    let entry = |bytes| stc_proto::Entry::parse(bytes).unwrap().metadata;
    let stored = bench.control.stored(TOPIC).unwrap();
    stored.into_iter().map(|view| (view.segment, entry(view.bytes).chunk_id)).collect()
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_consumer_gets_one_message_again() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let keys = || {
        StaticKeys::new()
            .public("rsa", include_bytes!("../../../features/keys/rsa-public.pem").as_slice())
            .private("rsa", include_bytes!("../../../features/keys/rsa-private.pem").as_slice())
    };
    let plain = producer(&client).create().await.unwrap();
    let packed = producer(&client).compression(Compression::Zlib).create().await.unwrap();
    let sealed =
        producer(&client).encryption(ProducerEncryption::new(keys(), ["rsa"])).create().await.unwrap();
    for (n, producer) in [&plain, &packed, &sealed].into_iter().enumerate() {
        producer.message().key("k").value(long(n as u64)).send().await.unwrap();
        producer.message().key("k").value(format!("short {n}")).send().await.unwrap();
    }
    let ids: Vec<i32> = chunks(&bench).iter().filter_map(|(_, chunk)| *chunk).collect();
    assert_eq!(ids[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let flags = bench.frames("SEND").iter().filter(|send| send["is_chunk"] == true).count();
    assert_eq!(flags, ids.len());

    let stream = client.stream_consumer(StringSchema).topic(TOPIC).subscription("stream");
    let stream =
        stream.encryption(ConsumerEncryption::new(keys())).initial_position(InitialPosition::Earliest);
    let stream = stream.subscribe().await.unwrap();
    let queue = client.queue_consumer(StringSchema).topic(TOPIC).subscription("queue");
    let queue = queue.encryption(ConsumerEncryption::new(keys())).initial_position(InitialPosition::Earliest);
    let queue = queue.subscribe().await.unwrap();
    let reader = client.checkpoint_consumer(StringSchema).topic(TOPIC).start(Checkpoint::earliest());
    let reader = reader.encryption(ConsumerEncryption::new(keys())).create().await.unwrap();
    for n in 0..3 {
        for expected in [long(n), format!("short {n}")] {
            let message = soon(stream.receive()).await.unwrap();
            assert_eq!(message.value().unwrap(), expected);
            stream.acknowledge_cumulative(message.id()).await.unwrap();
            let message = soon(queue.receive()).await.unwrap();
            assert_eq!(message.value().unwrap(), expected);
            queue.acknowledge(message.id()).await.unwrap();
            assert_eq!(soon(reader.receive()).await.unwrap().value().unwrap(), expected);
        }
    }
    stream.close().await.unwrap();
    queue.close().await.unwrap();
    // Every part is acknowledged: nothing comes again.
    let before = bench.count("MESSAGE");
    let stream =
        client.stream_consumer(StringSchema).topic(TOPIC).subscription("stream").subscribe().await.unwrap();
    let queue =
        client.queue_consumer(StringSchema).topic(TOPIC).subscription("queue").subscribe().await.unwrap();
    assert!(stream.receive_timeout(Duration::from_secs(5)).await.unwrap().is_none());
    assert!(queue.receive_timeout(Duration::from_secs(5)).await.unwrap().is_none());
    assert_eq!(bench.count("MESSAGE"), before);
}

#[tokio::test(start_paused = true)]
async fn messages_of_two_producers_may_alternate() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let (one, two) = (producer(&client).create().await.unwrap(), producer(&client).create().await.unwrap());
    let consumer = bench.consumer(&client, TOPIC).await;
    let mut expected: Vec<String> = (0..20).map(long).collect();
    for (n, value) in expected.iter().enumerate() {
        let producer = if n % 2 == 0 { &one } else { &two };
        producer.message().value(value.clone()).send_async();
    }
    let mut received = Vec::new();
    for _ in 0..20 {
        received.push(soon(consumer.receive()).await.unwrap().value().unwrap());
    }
    received.sort();
    expected.sort();
    assert_eq!(received, expected);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_segment_is_sealed_in_its_middle_moves_as_a_whole() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let sender = producer(&client).create().await.unwrap();
    sender.message().key("k").value("first".into()).send().await.unwrap();
    // The seal comes between the chunks.
    let hold = Fault { skip: 3, count: 100, ..Fault::new(Selector::command("SEND"), FaultEffect::Hold) };
    bench.control.arm(hold).unwrap();
    let sent = sender.message().key("k").value(long(7)).send_async();
    let held = async {
        while bench.control.held().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon(held).await;
    bench.control.faults().iter().for_each(|fault| bench.control.disarm(fault.id).unwrap());
    bench.split(0);
    bench.control.release_all();
    soon(sent).await.unwrap();
    let stored = chunks(&bench);
    assert!(stored.iter().any(|(segment, chunk)| *segment == Some(0) && chunk.is_some()), "{stored:?}");
    let stream = client.stream_consumer(StringSchema).topic(TOPIC).subscription("s");
    let stream = stream.initial_position(InitialPosition::Earliest).subscribe().await.unwrap();
    let message = soon(stream.receive()).await.unwrap();
    stream.acknowledge_cumulative(message.id()).await.unwrap();
    // What stayed behind holds up the successor until it is given up.
    let message = tokio::time::timeout(Duration::from_secs(120), stream.receive()).await.unwrap().unwrap();
    assert_eq!(message.value().unwrap(), long(7));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_message_comes_again_as_a_whole() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let sender = producer(&client).create().await.unwrap();
    sender.message().value(long(1)).send().await.unwrap();
    let message = soon(consumer.receive()).await.unwrap();
    consumer.negative_acknowledge(message.id()).await.unwrap();
    let again = soon(consumer.receive()).await.unwrap();
    assert_eq!((again.value().unwrap(), again.redelivery_count()), (long(1), 1));
}
