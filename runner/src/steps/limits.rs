//! Steps about limits of a client and about what it does at the same time: queues, memory, concurrent use, reconnects.

use std::collections::BTreeMap;
use std::time::Duration;

use cucumber::{then, when};
use stc_proto::Command;

use super::journal::marked;
use super::params::{Topic, cycled_keys};
use super::sends::{await_sends, start};
use super::stored::all;
use crate::client::{ClientError, Outgoing, ProducerOptions, Signalled, Value};
use crate::judge::{Step, Trouble};
use crate::world::{GRACE, Producer, Sent, THE, World};

/// Asynchronous sends of messages of this many bytes each.
#[when(expr = "the producer starts to send {int} messages of {int} bytes")]
async fn start_large(world: &mut World, count: usize, size: usize) -> Step {
    let first = world.sent.len();
    let large = |index: usize| {
        let value = format!("m-{index}-");
        let padding = ".".repeat(size.saturating_sub(value.len()));
        Outgoing { value: Value::Text(value + &padding), ..Outgoing::default() }
    };
    let messages = (first..first + count).map(large).collect();
    start(world, THE, messages).await
}

/// Some of the started sends have failed by now, all of them with this category and by their futures. The others go on.
#[then(expr = "some of the started sends have failed with the category {word}")]
async fn some_failed(world: &mut World, category: String) -> Step {
    let failed = failures(world, &category).await?;
    let pending = world.sent.iter().filter(|s| s.ticket.is_some()).count();
    if failed > 0 && pending == 0 {
        return Err(Trouble::new("no send is pending, so nothing filled up"));
    }
    let own = own(&category);
    world.judge(&own, failed > 0, || format!("no send failed with {category}, and {pending} are pending"));
    Ok(())
}

/// All of the started sends have failed by now, with this category and by their futures.
#[then(expr = "the started sends have failed with the category {word}")]
async fn all_failed(world: &mut World, category: String) -> Step {
    let started = world.sent.iter().filter(|s| s.ticket.is_some()).count();
    let failed = failures(world, &category).await?;
    world.judge(&["ERR-1.2"], failed == started, || {
        format!("of {started} futures of sends that cannot succeed {failed} tell a failure")
    });
    if started == 0 { Err(Trouble::new("no send was started")) } else { Ok(()) }
}

fn own(category: &str) -> Vec<&'static str> {
    match category {
        "MemoryBufferFull" => vec!["ERR-2.12", "ERR-1.2", "ERR-1.1"],
        "ProducerQueueFull" => vec!["ERR-2.11", "ERR-1.2", "ERR-1.1"],
        "AlreadyClosed" => vec!["ERR-2.5", "ERR-1.2", "ERR-1.1"],
        _ => vec!["ERR-1.2", "ERR-1.1"],
    }
}

/// Takes the outcomes of started sends that have ended, and judges the failures.
async fn failures(world: &mut World, category: &str) -> Result<usize, Trouble> {
    // An outcome that is there comes at once, from another process after a while.
    let patience = if world.virtual_time() { Duration::from_millis(1) } else { GRACE };
    let client = world.client().await;
    let mut failed = 0;
    for index in 0..world.sent.len() {
        let Some(ticket) = world.sent.get(index).and_then(|s| s.ticket) else { continue };
        let Ok(outcome) = tokio::time::timeout(patience, client.outcome(ticket)).await else { continue };
        match &outcome {
            Ok(_) => {}
            Err(ClientError::Failed(error)) => {
                world.judge(&own(category), error.category == category, || {
                    format!("a send failed with {error} instead of {category}")
                });
                world.judge(&["ERR-1.3"], error.how == Signalled::ByFuture, || {
                    format!("the call of a send itself threw {category} instead of failing its future")
                });
                failed += 1;
            }
            Err(other) => world.surprise(&own(category), other.clone(), "a send"),
        }
        if let Some(sent) = world.sent.get_mut(index) {
            sent.ticket = None;
            sent.outcome = Some(outcome);
        }
    }
    Ok(failed)
}

/// What a send that failed was to publish is nowhere: nobody tries it again behind the application's back.
#[then(expr = "no message of {topic} whose send failed is stored")]
async fn failed_not_stored(world: &mut World, topic: Topic) -> Step {
    await_sends(world).await;
    world.settle().await;
    let stored = all(world, &topic.0).await?;
    let failed = world.sent.iter().filter(|s| s.topic == topic.0 && matches!(s.outcome, Some(Err(_))));
    let failed: Vec<String> = failed.map(|s| super::schema::text(&s.message.value)).collect();
    for value in &failed {
        let is_there = stored.iter().any(|m| m.text() == *value);
        world.judge(&["ERR-3.13", "ERR-3.12", "ERR-3.11"], !is_there, || {
            format!("the send of {:?} failed, and the message is stored", value.split('.').next())
        });
    }
    if failed.is_empty() { Err(Trouble::new("no send failed")) } else { Ok(()) }
}

// ---- at the same time ----

/// Producers of one client object that are made at the same time.
#[when(expr = "the application creates {int} producers on {topic} at the same time")]
async fn create_together(world: &mut World, count: usize, topic: Topic) -> Step {
    let full = world.topic(&topic.0)?;
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let create = |_| {
        let options = ProducerOptions { topic: Some(full.clone()), ..Default::default() };
        client.create_producer(object, options)
    };
    let created = futures_util::future::join_all((0..count).map(create)).await;
    for (index, created) in created.into_iter().enumerate() {
        let id = world.expect(&["API-2.1"], created, "creating a producer beside others");
        let producer = Producer { id, topic: topic.0.clone(), name: None, schema: Default::default() };
        world.producers.insert(format!("{}", index + 1), producer);
    }
    Ok(())
}

/// Every producer sends at the same time, each message waited for.
#[when(expr = "every producer sends {int} messages with {int} keys at the same time")]
async fn send_together(world: &mut World, count: usize, keys: usize) -> Step {
    let client = world.client().await;
    let mut planned = Vec::new();
    for (alias, producer) in &world.producers {
        for key in cycled_keys(count, keys) {
            let message = world.message(world.sent.len() + planned.len(), Some(key));
            planned.push((alias.clone(), producer.clone(), message));
        }
    }
    let sends = planned.iter().map(|(_, producer, message)| client.send(producer.id, message.clone()));
    let outcomes = futures_util::future::join_all(sends).await;
    for ((alias, producer, message), outcome) in planned.into_iter().zip(outcomes) {
        let id = world.expect(&["API-2.1"], outcome, "a send beside others");
        let outcome = Some(Ok(id));
        world.sent.push(Sent { producer: alias, topic: producer.topic, message, ticket: None, outcome });
    }
    Ok(())
}

/// One loss leads to one new connection for each broker, not to one for each thing that was on it.
#[then("the client has connected to each broker once since the mark")]
async fn connected_once(world: &mut World) -> Step {
    world.observe().await;
    let mark = marked(world)?;
    let wire = world.wire()?;
    let mut counts: BTreeMap<Option<u32>, usize> = BTreeMap::new();
    for (record, _, command) in wire.from_clients() {
        if record.n > mark && matches!(command, Command::Connect(_)) {
            *counts.entry(record.broker.map(|b| b.0)).or_default() += 1;
        }
    }
    for (broker, count) in &counts {
        world.judge(&["IMPL-9.5"], *count == 1, || {
            format!("one loss of the connections led to {count} connections to broker {broker:?}")
        });
    }
    if counts.is_empty() { Err(Trouble::new("the client did not connect again")) } else { Ok(()) }
}
