//! Steps about sequence ids and deduplication.

use std::collections::BTreeMap;

use axum::http::Method;
use cucumber::{given, then};
use serde_json::json;

use super::journal::producers_of;
use super::params::{ProducerName, Topic};
use super::produce::await_sends;
use crate::judge::{Step, Trouble};
use crate::stored;
use crate::wire::WireSend;
use crate::world::World;

/// Brokers drop what a producer has stored before, for every topic of the scenario's namespace.
#[given("deduplication is enabled for the namespace")]
async fn enabled(world: &mut World) -> Step {
    let path = "/admin/v2/namespaces/public/default/deduplication";
    world.admin(Method::POST, path, Some(json!(true))).await?;
    Ok(())
}

/// The producer tells the sequence id that was published last.
#[then(expr = "the last sequence id of {producer} is {int}")]
async fn last(world: &mut World, name: ProducerName, expected: u64) -> Step {
    judge_last(world, &name.0, Some(expected)).await
}

/// The producer tells that nothing was published yet.
#[then(expr = "{producer} has no last sequence id")]
async fn none(world: &mut World, name: ProducerName) -> Step {
    judge_last(world, &name.0, None).await
}

async fn judge_last(world: &mut World, alias: &str, expected: Option<u64>) -> Step {
    world.settle().await;
    let producer = world.producer(alias)?;
    let told = world.client().await.last_sequence_id(producer.id).await;
    let told = world.expect(&["API-3.2.17"], told, "asking for the last sequence id");
    world.judge(&["API-3.2.17"], told == expected, || {
        format!("the last published sequence id is {expected:?}, and the producer tells {told:?}")
    });
    Ok(())
}

/// The stored messages carry these sequence ids, in the order of the sends.
#[then(expr = "the messages of {topic} are stored with the sequence ids {int} to {int}")]
async fn stored_ids(world: &mut World, topic: Topic, first: u64, last: u64) -> Step {
    let ids = ids(world, &topic.0).await?;
    let expected: Vec<u64> = (first..=last).collect();
    world.judge(&["API-3.1.8", "API-3.2.15"], ids == expected, || {
        format!("the messages carry the sequence ids {ids:?} instead of {expected:?}")
    });
    Ok(())
}

/// The sequence ids of the stored messages increase, in the order of the sends.
#[then(expr = "the sequence ids of the messages of {topic} increase")]
async fn increase(world: &mut World, topic: Topic) -> Step {
    let ids = ids(world, &topic.0).await?;
    world.judge(&["API-3.2.15"], ids.is_sorted_by(|a, b| a < b), || {
        format!("in the order of the sends the messages carry the sequence ids {ids:?}")
    });
    if ids.len() < 2 { Err(Trouble::new("fewer than two messages are stored")) } else { Ok(()) }
}

/// The sequence ids of the messages, in the order of the sends.
async fn ids(world: &mut World, topic: &str) -> Result<Vec<u64>, Trouble> {
    await_sends(world).await;
    let full = world.topic(topic)?;
    let stored = stored::of(&world.broker().await, &full)?;
    let of = |value: &str| stored.iter().find(|m| m.text() == value);
    let sent = world.sent.iter().filter_map(|s| match &s.message.value {
        crate::client::Value::Text(value) => Some(value.clone()),
        _ => None,
    });
    sent.map(|value| {
        // A batch carries the id of its first message.
        of(&value)
            .map(|m| m.metadata.sequence_id + m.index as u64)
            .ok_or_else(|| Trouble(format!("{value:?} is stored nowhere")))
    })
    .collect()
}

/// Some message went over the wire more than once, under the name and the sequence id that it had the first time.
#[then(expr = "what was sent again of {topic} kept its producer name and sequence id")]
async fn kept(world: &mut World, topic: Topic) -> Step {
    await_sends(world).await;
    let full = world.topic(&topic.0)?;
    let names: BTreeMap<(u64, u64), String> = producers_of(world, &topic.0)?
        .into_iter()
        .filter_map(|p| Some(((p.conn.0, p.id), p.name?)))
        .collect();
    let mut first: BTreeMap<Vec<u8>, WireSend> = BTreeMap::new();
    let mut again = 0;
    for send in world.wire()?.sends().into_iter().filter(|s| super::journal::belongs(&s.topic, &full)) {
        let Some(payload) = send.messages.first().map(|m| m.payload.clone()) else { continue };
        let Some(before) = first.get(&payload) else {
            first.insert(payload, send);
            continue;
        };
        again += 1;
        let name = |s: &WireSend| names.get(&(s.conn.0, s.producer)).cloned();
        let same = before.sequence_id == send.sequence_id
            && before.metadata.producer_name == send.metadata.producer_name
            && name(before).zip(name(&send)).is_none_or(|(a, b)| a == b);
        world.judge(&["API-3.2.15", "API-2.7"], same, || {
            format!(
                "a message that was {:?}/{} went out again as {:?}/{}",
                before.metadata.producer_name,
                before.sequence_id,
                send.metadata.producer_name,
                send.sequence_id
            )
        });
    }
    if again == 0 { Err(Trouble::new("nothing was sent twice: no receipt was missed")) } else { Ok(()) }
}

/// Every message is there once, which only the broker's deduplication can have seen to.
#[then(expr = "the broker stored every message of {topic} once although it came twice")]
async fn stored_once(world: &mut World, topic: Topic) -> Step {
    await_sends(world).await;
    let full = world.topic(&topic.0)?;
    let stored = stored::of(&world.broker().await, &full)?;
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for message in &stored {
        *times.entry(message.text()).or_default() += 1;
    }
    let wrong: Vec<String> = times.iter().filter(|(_, n)| **n != 1).map(|(v, n)| format!("{v}: {n}")).collect();
    world.judge(&["API-3.2.15"], wrong.is_empty(), || format!("stored more than once: {wrong:?}"));
    let missing = world.sent.iter().filter(|s| matches!(s.outcome, Some(Ok(_)))).count() - times.len().min(world.sent.len());
    world.judge(&["API-3.2.15"], missing == 0, || format!("{missing} messages are stored nowhere"));
    Ok(())
}
