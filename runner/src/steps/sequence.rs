//! Steps about sequence ids and deduplication.

use std::collections::BTreeMap;

use axum::http::Method;
use cucumber::{given, then, when};
use serde_json::json;
use sim_broker::core::journal::{Event, Record};

use super::journal::producers_of;
use super::params::{ProducerName, Topic};
use super::sends::await_sends;
use super::stored::all;
use crate::client::Value;
use crate::judge::{Step, Trouble};
use crate::wire::WireSend;
use crate::world::World;

/// Brokers drop what a producer has stored before, for every topic of the scenario's namespace.
#[given("deduplication is enabled for the namespace")]
async fn enabled(world: &mut World) -> Step {
    let path = "/admin/v2/namespaces/public/default/deduplication";
    world.admin(Method::POST, path, Some(json!(true))).await?;
    Ok(())
}

/// This many receipts were lost on their way: what they are about is stored, and the client does not know.
#[when(expr = "{int} receipts are lost")]
async fn receipts_lost(world: &mut World, count: usize) -> Step {
    let faults = world.faults().await?;
    let mut from = 0;
    for _ in 0..count {
        let lost = |r: &Record| matches!(&r.event, Event::Fault { command: "SEND_RECEIPT", .. });
        from = faults.wait_for_from(from, lost).await.n + 1;
    }
    Ok(())
}

/// The producer tells the sequence id that was published last.
#[then(expr = "the last sequence id of {producer} is {int}")]
async fn last(world: &mut World, name: ProducerName, expected: u64) -> Step {
    judge_last(world, &name.0, Some(expected)).await
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

/// In each segment the sequence ids of the producer's entries increase in stored order. Of a batch the highest counts:
/// batches by bucket interleave.
#[then(expr = "the sequence ids of the messages of {topic} increase")]
async fn increase(world: &mut World, topic: Topic) -> Step {
    let stored = all(world, &topic.0).await?;
    let mut last: BTreeMap<Option<u64>, u64> = BTreeMap::new();
    let mut compared = 0;
    for message in stored.iter().filter(|m| m.index == 0) {
        let id = message.metadata.sequence_id.max(message.metadata.highest_sequence_id());
        if let Some(before) = last.insert(message.segment, id) {
            compared += 1;
            world.judge(&["API-3.2.15"], before < id, || {
                format!("in {} the sequence id {before} is followed by {id}", message.place())
            });
        }
    }
    if compared == 0 { Err(Trouble::new("fewer than two entries are stored in a segment")) } else { Ok(()) }
}

/// The sequence ids of the messages that were sent unbatched, in the order of the sends.
async fn ids(world: &mut World, topic: &str) -> Result<Vec<u64>, Trouble> {
    let stored = all(world, topic).await?;
    let sent = world.sent.iter().filter_map(|s| match &s.message.value {
        Value::Text(value) => Some(value),
        _ => None,
    });
    sent.map(|value| {
        let message = stored.iter().find(|m| m.text() == *value);
        message.map(|m| m.metadata.sequence_id).ok_or_else(|| Trouble(format!("{value:?} is stored nowhere")))
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
    let stored = all(world, &topic.0).await?;
    for (value, _) in world.sent_texts() {
        let times = stored.iter().filter(|m| m.text() == value).count();
        world.judge(&["API-3.2.15"], times == 1, || format!("{value:?} is stored {times} times"));
    }
    Ok(())
}
