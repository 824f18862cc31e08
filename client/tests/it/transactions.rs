//! Transactions: what is sent and acknowledged in them, elections, time-outs, and every kind of end.

use std::time::Duration;

use sim_broker::core::{
    BrokerId,
    fault::{ErrorCode, Fault, FaultEffect, Selector},
};
use stc_client::{
    Category, InitialPosition, Producer, PulsarClient, StreamConsumer, StringSchema, Transaction,
    TransactionState,
};

use crate::support::{Bench, TOPIC, drain, soon, values};

const MINUTE: Duration = Duration::from_secs(60);

async fn producer(client: &PulsarClient) -> Producer<String> {
    client.producer(StringSchema).topic(TOPIC).create().await.unwrap()
}

async fn stream(client: &PulsarClient, name: &str) -> StreamConsumer<String> {
    let builder = client.stream_consumer(StringSchema).topic(TOPIC).subscription("s").name(name);
    builder.initial_position(InitialPosition::Earliest).subscribe().await.unwrap()
}

async fn send(producer: &Producer<String>, key: &str, value: &str, txn: Option<&Transaction>) {
    let mut message = producer.message().key(key).value(value.to_owned());
    if let Some(txn) = txn {
        message = message.transaction(txn);
    }
    message.send().await.unwrap();
}

async fn stream_all(consumer: &StreamConsumer<String>) -> Vec<String> {
    let mut got = Vec::new();
    while let Some(message) = consumer.receive_timeout(Duration::from_secs(5)).await.unwrap() {
        got.push(message.value().unwrap());
    }
    got
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_in_a_transaction_is_seen_after_the_commit_only() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = producer(&client).await;
    let txn = client.new_transaction(MINUTE).await.unwrap();
    assert_eq!(txn.state(), TransactionState::Open);
    for key in ["key-0", "key-1", "key-2", "key-3"] {
        send(&producer, key, key, Some(&txn)).await;
    }
    let nothing = consumer.receive_timeout(Duration::from_secs(5)).await.unwrap();
    assert!(nothing.is_none());
    soon(txn.commit()).await.unwrap();
    assert_eq!(txn.state(), TransactionState::Committed);
    let mut got = values(&drain(&consumer).await);
    got.sort();
    assert_eq!(got, ["key-0", "key-1", "key-2", "key-3"]);
    // Each segment once, although several messages went there.
    assert_eq!(bench.count("ADD_PARTITION_TO_TXN"), 2);
    let error = txn.commit().await.unwrap_err();
    assert_eq!(error.category(), Category::TransactionConflict);
    let late = producer.message().value("late".to_owned()).transaction(&txn).send().await.unwrap_err();
    assert_eq!(late.category(), Category::TransactionConflict);
    client.close().await.unwrap();
    assert_eq!(bench.count("WATCH_TC_ASSIGNMENTS_CLOSE"), 1);
    assert_eq!(client.new_transaction(MINUTE).await.unwrap_err().category(), Category::AlreadyClosed);
}

#[tokio::test(start_paused = true)]
async fn an_abort_drops_messages_and_gives_acknowledged_ones_back() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = producer(&client).await;
    send(&producer, "k", "plain", None).await;
    let message = soon(consumer.receive()).await.unwrap();
    let txn = client.new_transaction(MINUTE).await.unwrap();
    send(&producer, "k", "gone", Some(&txn)).await;
    soon(consumer.acknowledge_in(message.id(), &txn)).await.unwrap();
    soon(txn.abort()).await.unwrap();
    assert_eq!(txn.state(), TransactionState::Aborted);
    let again = soon(consumer.receive()).await.unwrap();
    assert_eq!((again.value().unwrap(), again.redelivery_count()), ("plain".to_owned(), 1));
    consumer.acknowledge(again.id()).await.unwrap();
    assert!(drain(&consumer).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_conflict_shows_at_the_acknowledgement_and_aborts_the_commit() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = producer(&client).await;
    send(&producer, "k", "one", None).await;
    let message = soon(consumer.receive()).await.unwrap();
    let first = client.new_transaction(MINUTE).await.unwrap();
    let second = client.new_transaction(MINUTE).await.unwrap();
    consumer.acknowledge_in(message.id(), &first).await.unwrap();
    send(&producer, "k", "of the second", Some(&second)).await;
    let error = consumer.acknowledge_in(message.id(), &second).await.unwrap_err();
    assert_eq!(error.category(), Category::TransactionConflict);
    assert_eq!(second.state(), TransactionState::Open);
    let error = soon(second.commit()).await.unwrap_err();
    assert_eq!(error.category(), Category::TransactionConflict);
    assert_eq!(second.state(), TransactionState::Aborted);
    soon(first.commit()).await.unwrap();
    assert!(drain(&consumer).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_transaction_waits_while_its_coordinator_is_elected() {
    let bench = Bench::with(|config| config.coordinators = 1);
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = producer(&client).await;
    let txn = client.new_transaction(MINUTE).await.unwrap();
    bench.control.depose_coordinator(0).unwrap();
    let sending = producer.message().value("parked".to_owned()).transaction(&txn).send_async();
    let committing = tokio::spawn({
        let txn = txn.clone();
        async move { txn.commit().await }
    });
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(txn.state(), TransactionState::Committing);
    assert_eq!(bench.count("ADD_PARTITION_TO_TXN"), 0, "nobody is asked");
    bench.control.elect_coordinator(0, Some(BrokerId(1))).unwrap();
    soon(sending).await.unwrap();
    soon(committing).await.unwrap().unwrap();
    assert_eq!(values(&drain(&consumer).await), ["parked"]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_survives_the_death_of_its_coordinators_broker() {
    for classic in [false, true] {
        let bench = Bench::with(|config| {
            config.coordinators = 1;
            if classic {
                config.profile.features.retain(|feature| {
                    *feature != sim_broker::core::profile::Feature::SupportsTcMetadataDiscovery
                });
            }
        });
        bench.create(1);
        // The service URL leads to broker 0, which stays.
        bench.control.elect_coordinator(0, Some(BrokerId(1))).unwrap();
        let client = bench.client();
        let producer = producer(&client).await;
        let txn = client.new_transaction(MINUTE).await.unwrap();
        send(&producer, "k", "kept", Some(&txn)).await;
        bench.control.hold_ends();
        let committing = tokio::spawn({
            let txn = txn.clone();
            async move { txn.commit().await }
        });
        bench.control.wait_for(|r| r.frame().is_some_and(|f| f.command.name() == "END_TXN")).await;
        bench.control.kill_broker(BrokerId(1)).unwrap();
        bench.control.release_ends();
        soon(committing).await.unwrap().unwrap();
        assert_eq!(txn.state(), TransactionState::Committed);
        assert!(bench.count("END_TXN") > 1, "asked again");
        assert_eq!(bench.count("WATCH_TC_ASSIGNMENTS") == 0, classic);
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_is_left_alone_times_out() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = producer(&client).await;
    let txn = client.new_transaction(Duration::from_secs(3)).await.unwrap();
    send(&producer, "k", "gone", Some(&txn)).await;
    send(&producer, "k", "held back", None).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(txn.state(), TransactionState::TimedOut);
    for end in [txn.commit().await, txn.abort().await] {
        assert_eq!(end.unwrap_err().category(), Category::TransactionConflict);
    }
    assert_eq!(bench.count("END_TXN"), 0);
    assert_eq!(values(&drain(&consumer).await), ["held back"]);
    let short = client.new_transaction(Duration::from_micros(1)).await.unwrap_err();
    assert_eq!(short.category(), Category::InvalidConfiguration);
}

#[tokio::test(start_paused = true)]
async fn a_split_adds_the_successor_to_an_open_transaction() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = producer(&client).await;
    let txn = client.new_transaction(MINUTE).await.unwrap();
    send(&producer, "key-1", "before", Some(&txn)).await;
    bench.split(0);
    send(&producer, "key-1", "after", Some(&txn)).await;
    soon(txn.commit()).await.unwrap();
    assert_eq!(values(&drain(&consumer).await), ["before", "after"]);
    let added: Vec<String> =
        bench.frames("ADD_PARTITION_TO_TXN").iter().map(|f| f["partitions"][0].to_string()).collect();
    assert_eq!(added.len(), 2);
    assert_ne!(added[0], added[1]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_acknowledges_cumulatively_in_a_transaction() {
    let bench = Bench::new();
    bench.create(2);
    let client = bench.client();
    let producer = producer(&client).await;
    for n in 0..6 {
        send(&producer, &format!("key-{n}"), &n.to_string(), None).await;
    }
    let consumer = stream(&client, "a").await;
    let mut last = None;
    for _ in 0..6 {
        last = Some(soon(consumer.receive()).await.unwrap());
    }
    let last = last.unwrap();
    let txn = client.new_transaction(MINUTE).await.unwrap();
    soon(consumer.acknowledge_cumulative_in(last.id(), &txn)).await.unwrap();
    assert_eq!(bench.count("ADD_SUBSCRIPTION_TO_TXN"), 2);
    soon(txn.abort()).await.unwrap();
    let mut again = stream_all(&consumer).await;
    again.sort();
    assert_eq!(again, ["0", "1", "2", "3", "4", "5"]);
    let txn = client.new_transaction(MINUTE).await.unwrap();
    soon(consumer.acknowledge_cumulative_in(last.id(), &txn)).await.unwrap();
    soon(txn.commit()).await.unwrap();
    consumer.close().await.unwrap();
    let consumer = stream(&client, "a").await;
    assert!(stream_all(&consumer).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_transaction_that_acknowledged() {
    for commits in [true, false] {
        let bench = Bench::new();
        bench.create(1);
        let client = bench.client();
        let producer = producer(&client).await;
        for n in 0..4 {
            send(&producer, &format!("key-{n}"), &n.to_string(), None).await;
        }
        let first = stream(&client, "a").await;
        let mut last = None;
        for _ in 0..4 {
            last = Some(soon(first.receive()).await.unwrap());
        }
        let txn = client.new_transaction(MINUTE).await.unwrap();
        soon(first.acknowledge_cumulative_in(last.unwrap().id(), &txn)).await.unwrap();
        // A second consumer: the segment is to be shared by buckets.
        let other = bench.client();
        let joining = tokio::spawn(async move { (stream(&other, "b").await, other) });
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(bench.count("CLOSE_CONSUMER"), 0, "the transaction is open");
        assert!(!joining.is_finished());
        if commits {
            soon(txn.commit()).await.unwrap();
        } else {
            soon(txn.abort()).await.unwrap();
        }
        let (second, _other) = soon(joining).await.unwrap();
        let mut got = stream_all(&first).await;
        got.extend(stream_all(&second).await);
        got.sort();
        let expected: &[&str] = if commits { &[] } else { &["0", "1", "2", "3"] };
        assert_eq!(got, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_watch_fails_the_transaction_that_needed_it() {
    let bench = Bench::new();
    let client = bench.client();
    let when = Selector { command: Some("WATCH_TC_ASSIGNMENTS".into()), ..Selector::default() };
    let code = ErrorCode(stc_proto::pulsar::ServerError::AuthorizationError);
    let effect = FaultEffect::Error { code, message: "no".into() };
    bench.control.arm(Fault::new(when, effect)).unwrap();
    let error = client.new_transaction(MINUTE).await.unwrap_err();
    assert_eq!(error.category(), Category::Authorization);
    client.new_transaction(MINUTE).await.unwrap();
}
