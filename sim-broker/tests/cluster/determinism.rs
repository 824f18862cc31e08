//! Same seed, same calls: the same journal, byte for byte.

use std::time::Duration;

use sim_broker::core::{
    BrokerId,
    fault::{Fault, FaultEffect, Selector},
};

use crate::{expect, ordered::STREAM, support::*};

/// A run with producers, consumers, faults, splits, a move and a death, on three brokers.
async fn run(seed: u64) -> String {
    let cluster = cluster_as("pulsar-5.0.1", |c| c.seed = seed);
    let name = "topic://public/default/t";
    create(&cluster, name, 2);
    let control = cluster.control();
    control
        .arm(Fault {
            count: 2,
            ..Fault::new(Selector::command("SEND_RECEIPT"), FaultEffect::Delay { ms: 40 })
        })
        .unwrap();
    let segments = ["segment://public/default/t/0000-7fff-0", "segment://public/default/t/8000-ffff-1"];
    let mut clients = Vec::new();
    for segment in segments {
        let mut client = Client::to_owner(&cluster, segment).await;
        client.producer(0, segment, "").await;
        client.subscribe(0, segment, "s").await;
        for i in 0..5 {
            client.publish(0, i, "x").await;
        }
        clients.push(client);
    }
    let mut watching = Client::to(&cluster, 0).await;
    watching.watch(1, name).await;
    for (id, consumer) in ["b", "a", "c"].into_iter().enumerate() {
        watching.register(id as u64, "s", consumer, STREAM).await;
    }
    watching.seen_now().await;
    split(&cluster, name, 0);
    expect!(watching, ScalableTopicUpdate);
    control.move_segment(name, 1, BrokerId(seed as u32 % 3)).unwrap();
    control.kill_broker(BrokerId(2)).unwrap();
    tokio::time::sleep(Duration::from_secs(70)).await;
    cluster.shutdown().await;
    control.journal().iter().map(|r| r.to_json().to_string() + "\n").collect()
}

#[test]
fn two_runs_give_one_journal_and_another_seed_another() {
    let once = |seed| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(seed))
    };
    let first = once(1);
    assert!(first.lines().count() > 60, "{first}");
    assert_eq!(first, once(1));
    assert_ne!(first, once(2), "the seed decides who owns what");
}
