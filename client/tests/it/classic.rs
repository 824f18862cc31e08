//! Classic topics through the migration bridge.

use std::time::Duration;

use stc_client::StringSchema;
use stc_proto::KeyHash;

use crate::support::{Bench, drain, name, numbers, soon};

const CLASSIC: &str = "persistent://public/default/old";

#[tokio::test(start_paused = true)]
async fn keys_go_to_the_partition_that_classic_clients_use() {
    let bench = Bench::new();
    bench.admin(|cluster, now| cluster.create_partitioned_topic(&name(CLASSIC), 3, now));
    let client = bench.client();
    // The short form means the same topic.
    let producer = client.producer(StringSchema).topic("old").create().await.unwrap();
    assert_eq!(producer.topic(), "topic://public/default/old");
    let consumer = bench.consumer(&client, CLASSIC).await;
    for n in 0..30 {
        let key = format!("key-{n}");
        soon(producer.message().key(key).value(n.to_string()).send()).await.unwrap();
    }
    for view in bench.control.stored(CLASSIC).unwrap() {
        let metadata = view.metadata.unwrap();
        let key = metadata.partition_key.unwrap();
        assert_eq!(view.topic.partition_index(), Some(KeyHash::of(&key).legacy(3)), "{key}");
        assert_eq!(metadata.entry_hash_min, None, "no stamps on classic topics");
    }
    assert_eq!(numbers(&drain(&consumer).await), (0..30).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn partitions_that_were_added_count_once_the_topic_is_looked_up_again() {
    let bench = Bench::new();
    bench.admin(|cluster, now| cluster.create_partitioned_topic(&name(CLASSIC), 2, now));
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(CLASSIC).create().await.unwrap();
    let consumer = bench.consumer(&client, CLASSIC).await;
    bench.admin(|cluster, now| cluster.update_partitions(&name(CLASSIC), 5, now));
    assert!(bench.control.drop_connections(Default::default()) > 0);
    // In virtual time: the watches are open again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for n in 0..30 {
        soon(producer.message().key(format!("key-{n}")).value(n.to_string()).send()).await.unwrap();
    }
    for view in bench.control.stored(CLASSIC).unwrap() {
        let key = view.metadata.unwrap().partition_key.unwrap();
        assert_eq!(view.topic.partition_index(), Some(KeyHash::of(&key).legacy(5)), "{key}");
    }
    assert_eq!(numbers(&drain(&consumer).await), (0..30).collect::<Vec<_>>());
    assert!(bench.control.current_dag(CLASSIC).is_err(), "no scalable topic of the name came to be");
}

#[tokio::test(start_paused = true)]
async fn a_migration_under_a_producer_and_a_consumer_goes_unnoticed() {
    let bench = Bench::new();
    bench.admin(|cluster, now| cluster.create_partitioned_topic(&name(CLASSIC), 2, now));
    let client = bench.client();
    let producer = client.producer(StringSchema).topic(CLASSIC).create().await.unwrap();
    let consumer = bench.consumer(&client, CLASSIC).await;
    let mut tickets = Vec::new();
    for n in 0..100 {
        if n == 50 {
            bench.admin(|cluster, now| cluster.migrate_topic(&name(CLASSIC), false, now));
        }
        tickets.push(producer.message().key(format!("key-{}", n % 9)).value(n.to_string()).send_async());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for ticket in tickets {
        soon(ticket).await.unwrap();
    }
    assert_eq!(numbers(&drain(&consumer).await), (0..100).collect::<Vec<_>>());
}
