//! The client without async, over TCP and in real time: from plain threads, each call waiting for its end.

use std::{sync::mpsc, thread, time::Duration};

use sim_broker::{
    SimCluster, TcpOptions,
    core::{ClusterConfig, Profile},
};
use stc_client::{
    BytesSchema, Category, Checkpoint, Error, InitialPosition, Message, MessageId, PulsarClient,
    StringSchema, TransactionState, blocking,
};
use tokio::runtime::Runtime;

use crate::support::TOPIC;

/// A cluster with a runtime of its own, and a client that knows nothing of it.
struct World {
    runtime: Runtime,
    cluster: SimCluster,
    client: blocking::PulsarClient,
}

impl World {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let config = ClusterConfig::new(Profile::built_in("spec-1.0").unwrap());
        let cluster = runtime.block_on(SimCluster::tcp(config, TcpOptions::default())).unwrap();
        let builder = PulsarClient::builder().service_url(cluster.service_url());
        let client = blocking::PulsarClient::new(builder).unwrap();
        World { runtime, cluster, client }
    }

    fn consumer(&self) -> blocking::QueueConsumer<String> {
        let subscribed = self.client.queue_consumer(StringSchema, |consumer| {
            consumer.topic(TOPIC).subscription("s").initial_position(InitialPosition::Earliest)
        });
        subscribed.unwrap()
    }

    fn end(self) {
        self.client.close().unwrap();
        self.runtime.block_on(self.cluster.shutdown());
    }
}

#[test]
fn transactions_wait_for_their_ends_too() {
    let world = World::new();
    let consumer = world.consumer();
    let stream = world.client.stream_consumer(StringSchema, |consumer| {
        consumer.topic(TOPIC).subscription("t").initial_position(InitialPosition::Earliest)
    });
    let stream = stream.unwrap();
    let producer = world.client.producer(StringSchema, |producer| producer.topic(TOPIC)).unwrap();
    let minute = Duration::from_secs(60);
    let transaction = world.client.new_transaction(minute).unwrap();
    producer.send(|message| message.transaction(&transaction).value("v".to_owned())).unwrap();
    transaction.commit().unwrap();
    assert_eq!(transaction.state(), TransactionState::Committed);
    let (queued, streamed) = (consumer.receive().unwrap(), stream.receive().unwrap());
    let transaction = world.client.new_transaction(minute).unwrap();
    consumer.acknowledge_in(queued.id(), &transaction).unwrap();
    stream.acknowledge_cumulative_in(streamed.id(), &transaction).unwrap();
    transaction.abort().unwrap();
    assert_eq!(consumer.receive().unwrap().redelivery_count(), 1);
    assert_eq!(stream.receive().unwrap().id(), streamed.id());
    world.end();
}

#[test]
fn the_blocking_client_does_what_the_other_does() {
    let world = World::new();
    let consumer = world.consumer();
    let producer = world.client.producer(StringSchema, |producer| producer.topic(TOPIC).name("p")).unwrap();
    assert_eq!((producer.topic(), producer.name(), producer.last_sequence_id()), (TOPIC, Some("p"), None));
    let id = producer.send(|message| message.key("k").property("a", "1").value("first".to_owned())).unwrap();
    let tickets: Vec<_> =
        (0..10).map(|n| producer.send_async(|message| message.key("k").value(n.to_string()))).collect();
    producer.flush().unwrap();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!(producer.last_sequence_id(), Some(10));
    let first = consumer.receive().unwrap();
    assert_eq!((first.id(), first.property("a")), (&id, Some("1")));
    consumer.acknowledge(first.id()).unwrap();
    let rest = consumer.receive_multi(10, Duration::from_secs(60)).unwrap();
    let values: Vec<String> = rest.iter().map(|message| message.value().unwrap()).collect();
    assert_eq!(values, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
    consumer.negative_acknowledge(rest[9].id()).unwrap();
    let again = consumer.receive_timeout(Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!((again.id(), again.redelivery_count()), (rest[9].id(), 1));
    assert!(consumer.receive_timeout(Duration::from_millis(1)).unwrap().is_none());
    producer.close().unwrap();
    producer.close().unwrap();
    consumer.close().unwrap();
    assert_eq!(consumer.receive().unwrap_err().category(), Category::AlreadyClosed);
    let late = producer.send(|message| message.value("late".to_owned()));
    assert_eq!(late.unwrap_err().category(), Category::AlreadyClosed);
    let unnamed = world.client.producer(StringSchema, |producer| producer);
    assert_eq!(unnamed.unwrap_err().category(), Category::InvalidConfiguration);
    let client = world.client.clone();
    world.end();
    let closed = client.producer(StringSchema, |producer| producer.topic(TOPIC));
    assert_eq!(closed.unwrap_err().category(), Category::AlreadyClosed);
}

#[test]
fn ordered_consumers_come_in_the_blocking_form_too() {
    let world = World::new();
    let producer = world.client.producer(StringSchema, |producer| producer.topic(TOPIC)).unwrap();
    let from_start = |consumer: stc_client::StreamConsumerBuilder<String>| {
        consumer.topic(TOPIC).subscription("ordered").initial_position(InitialPosition::Earliest)
    };
    let stream = world.client.stream_consumer(StringSchema, from_start).unwrap();
    let position = |start: Checkpoint| {
        let created = world
            .client
            .checkpoint_consumer(StringSchema, |consumer| consumer.topic(TOPIC).start(start.clone()));
        created.unwrap()
    };
    let reader = position(Checkpoint::earliest());
    for n in 0..4 {
        producer.send(|message| message.key("k").value(n.to_string())).unwrap();
    }
    let values = |messages: Vec<Message<String>>| -> Vec<String> {
        messages.iter().map(|message| message.value().unwrap()).collect()
    };
    assert_eq!(values(vec![reader.receive().unwrap(), reader.receive().unwrap()]), ["0", "1"]);
    let checkpoint = reader.checkpoint();
    reader.close().unwrap();
    let again = position(checkpoint);
    assert_eq!(values(again.receive_multi(2, Duration::from_secs(60)).unwrap()), ["2", "3"]);
    let received = stream.receive_multi(4, Duration::from_secs(60)).unwrap();
    stream.acknowledge_cumulative(received[2].id()).unwrap();
    assert_eq!(values(received), ["0", "1", "2", "3"]);
    stream.close().unwrap();
    let stream = world.client.stream_consumer(StringSchema, from_start).unwrap();
    assert_eq!(stream.receive().unwrap().value().unwrap(), "3", "the rest was acknowledged");
    world.end();
}

#[test]
fn an_interrupt_ends_what_waits_and_breaks_nothing() {
    let world = World::new();
    let consumer = world.consumer();
    let (results, ended) = mpsc::channel();
    let waiting = {
        let (client, consumer, results) = (world.client.clone(), consumer.clone(), results.clone());
        thread::spawn(move || {
            let one = consumer.receive().map(drop).map_err(|error| error.category());
            results.send(one).unwrap();
            let many = consumer.receive_multi(5, Duration::from_secs(3600));
            results.send(many.map(drop).map_err(|error| error.category())).unwrap();
            drop(client);
        })
    };
    for _ in 0..2 {
        // An interrupt concerns what waits already: repeated until the thread is there.
        let result = loop {
            world.client.interrupt();
            if let Ok(result) = ended.recv_timeout(Duration::from_millis(5)) {
                break result;
            }
        };
        assert_eq!(result, Err(Category::Interrupted));
    }
    waiting.join().unwrap();
    let producer = world.client.producer(StringSchema, |producer| producer.topic(TOPIC)).unwrap();
    producer.send(|message| message.value("after".to_owned())).unwrap();
    assert_eq!(consumer.receive().unwrap().value().unwrap(), "after");
    world.end();
}

#[test]
fn threads_share_a_client_a_producer_and_a_consumer() {
    let world = World::new();
    let (producer, consumer) =
        (world.client.producer(StringSchema, |producer| producer.topic(TOPIC)).unwrap(), world.consumer());
    thread::scope(|scope| {
        for thread in 0..4 {
            let producer = &producer;
            scope.spawn(move || {
                for n in 0..50 {
                    producer.send(|message| message.key("k").value(format!("{thread}-{n}"))).unwrap();
                }
            });
        }
    });
    let (received, values) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (consumer, received) = (&consumer, received.clone());
            scope.spawn(move || {
                for _ in 0..50 {
                    let message = consumer.receive().unwrap();
                    consumer.acknowledge(message.id()).unwrap();
                    received.send(message.value().unwrap()).unwrap();
                }
            });
        }
    });
    drop(received);
    let mut values: Vec<String> = values.into_iter().collect();
    values.sort();
    values.dedup();
    assert_eq!(values.len(), 200, "each message once");
    world.end();
}

#[test]
fn handles_that_are_dropped_publish_what_is_pending() {
    let world = World::new();
    let consumer = world.consumer();
    let producer = world.client.producer(StringSchema, |producer| producer.topic(TOPIC)).unwrap();
    for n in 0..20 {
        drop(producer.send_async(|message| message.key("k").value(n.to_string())));
    }
    drop(producer);
    let values: Vec<_> = (0..20).map(|_| consumer.receive().unwrap().value().unwrap()).collect();
    assert_eq!(values, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
    world.end();
}

/// Everything may be used by several threads at once (client-behavior §10).
#[test]
fn public_types_are_send_and_sync() {
    fn both<T: Send + Sync>() {}
    both::<PulsarClient>();
    both::<stc_client::Producer<String>>();
    both::<stc_client::QueueConsumer<String>>();
    both::<Message<String>>();
    both::<MessageId>();
    both::<Error>();
    both::<stc_client::MessageBuilder<'static, String>>();
    both::<stc_client::SendTicket>();
    both::<stc_client::ClientBuilder>();
    both::<stc_client::ProducerBuilder<String>>();
    both::<stc_client::QueueConsumerBuilder<String>>();
    both::<blocking::PulsarClient>();
    both::<blocking::Producer<String>>();
    both::<blocking::QueueConsumer<String>>();
    both::<blocking::SendTicket>();
    both::<blocking::StreamConsumer<String>>();
    both::<blocking::CheckpointConsumer<String>>();
    both::<stc_client::StreamConsumer<String>>();
    both::<stc_client::CheckpointConsumer<String>>();
    both::<Checkpoint>();
    both::<BytesSchema>();
    fn sent<T: Send>(_: T) {}
    // The futures of operations move between threads too.
    let client = PulsarClient::builder().service_url("pulsar://nowhere").build().unwrap();
    sent(client.producer(StringSchema).topic(TOPIC).create());
    sent(client.queue_consumer(StringSchema).topic(TOPIC).subscribe());
    sent(client.close());
}
