//! Steps that judge by what the brokers have stored: where, in which order, how often.

use std::collections::BTreeMap;

use cucumber::{then, when};
use stc_proto::KeyHash;
use stc_proto::pulsar::MessageMetadata;

use super::params::{Hash, ProducerName, Topic};
use super::sends::await_sends;
use crate::client::Value;
use crate::feature::Need;
use crate::judge::{Step, Trouble};
use crate::stored::{self, StoredMessage, describe};
use crate::world::{Sent, THE, World};

/// What a replicator would store, by a connection of the suite's own.
#[when(expr = "a message that was replicated from {string} is stored in {topic}")]
async fn replicated(world: &mut World, cluster: String, topic: Topic) -> Step {
    world.uses(Need::Control);
    let full = world.topic(&topic.0)?;
    let broker = world.broker().await;
    let simulated =
        broker.cluster.as_ref().ok_or_else(|| Trouble::new("only a simulated cluster takes it"))?;
    let metadata = MessageMetadata {
        producer_name: format!("pulsar.repl.{cluster}"),
        publish_time: simulated.now(),
        replicated_from: Some(cluster),
        ..Default::default()
    };
    stored::writer::publish(simulated, &full, metadata, "from elsewhere".into()).await
}

/// Everything that is stored under the topic, once every send has ended.
pub(super) async fn all(world: &mut World, topic: &str) -> Result<Vec<StoredMessage>, Trouble> {
    await_sends(world).await;
    let name = world.topic(topic)?;
    let messages = stored::of(&world.broker().await, &name).await?;
    if messages.is_empty() && world.sent.iter().any(|s| matches!(s.outcome, Some(Ok(_)))) {
        let requirements = ["IMPL-2.1", "IMPL-4.5", "API-3.2.1", "IMPL-4.8"];
        world.broken(&requirements, "sends succeeded, and nothing is stored");
    }
    Ok(messages)
}

fn value(world: &World, index: usize) -> Option<Vec<u8>> {
    Some(match &world.sent.get(index)?.message.value {
        Value::Bytes(bytes) => bytes.clone(),
        Value::Text(text) => text.clone().into_bytes(),
        Value::Int64(number) => number.to_be_bytes().to_vec(),
        // Their payloads depend on the schema; steps on schemas judge them.
        Value::Bool(_) | Value::Double(_) | Value::Record(_) | Value::Pair(..) => return None,
    })
}

/// The last message that was sent is in the segment that holds this hash. The feature file gives the hash, so that a
/// hash function that both sides share cannot hide its own fault.
#[then(expr = "the message is stored in the segment whose range holds {hash}")]
async fn in_segment_of(world: &mut World, hash: Hash) -> Step {
    let messages = all(world, THE).await?;
    let last = value(world, world.sent.len().saturating_sub(1));
    let message = messages.iter().find(|m| Some(&m.payload) == last.as_ref());
    let key = world.sent.last().and_then(|s| s.message.key.clone()).unwrap_or_default();
    let layout = world.layout(THE).await?;
    let owner = layout.active().find(|s| s.range.contains(hash.0)).map(|s| s.id);
    let owner = owner.ok_or_else(|| Trouble(format!("no segment holds 0x{:04x}", hash.0)))?;
    let Some(message) = message else {
        world.broken(&["IMPL-2.1"], format!("the message with key {key:?} is stored nowhere"));
    };
    world.judge(&["IMPL-2.1"], message.segment == Some(owner), || {
        world.rests_on_send_of(&message.payload);
        format!(
            "key {key:?} went to {}; its high half 0x{:04x} belongs to segment {owner}",
            message.place(),
            hash.0
        )
    });
    Ok(())
}

/// Every keyed message is in a segment whose range holds the high half of its key's hash.
#[then(expr = "every keyed message of {topic} is in a segment whose range holds the high half of its key")]
async fn all_in_range(world: &mut World, topic: Topic) -> Step {
    let messages = all(world, &topic.0).await?;
    for message in &messages {
        let (Some(key), Some(range)) = (&message.key, message.range) else { continue };
        let requirements = ["IMPL-2.1", "IMPL-4.5", "IMPL-1.4", "IMPL-1.3", "WIRE-4.11"];
        world.judge(&requirements, range.contains(KeyHash::of(key).segment()), || {
            world.rests_on_send_of(&message.payload);
            format!(
                "{} went to {}, whose range is {:04x} to {:04x}",
                describe(key),
                message.place(),
                range.start(),
                range.end()
            )
        });
    }
    Ok(())
}

/// Every keyed message is in the partition that its masked hash modulo the number of partitions names.
#[then(expr = "every keyed message is in partition \\(masked hash of its key) mod {int}")]
async fn in_partition(world: &mut World, partitions: u32) -> Step {
    judge_partitions(world, partitions, None).await
}

/// The same of what one producer sent.
#[then(
    expr = "every keyed message that {producer} sent is in partition \\(masked hash of its key) mod {int}"
)]
async fn own_in_partition(world: &mut World, producer: ProducerName, partitions: u32) -> Step {
    judge_partitions(world, partitions, Some(producer.0)).await
}

async fn judge_partitions(world: &mut World, partitions: u32, producer: Option<String>) -> Step {
    let topic = world.topic(THE)?;
    let messages = all(world, THE).await?;
    for index in 0..world.sent.len() {
        let ours = |sent: &&Sent| producer.as_ref().is_none_or(|name| *name == sent.producer);
        let Some(sent) = world.sent.get(index).filter(ours) else { continue };
        let (Some(key), value) = (sent.message.key.clone(), value(world, index)) else { continue };
        let expected = stored::classic::partition_of(&key, partitions);
        let place = messages.iter().find(|m| Some(&m.payload) == value.as_ref()).map(|m| m.topic.clone());
        world.judge(&["IMPL-2.7"], place == Some(format!("{topic}-partition-{expected}")), || {
            world.rests_on_send_of(&value.unwrap_or_default());
            format!("key {key:?} went to {place:?}, and belongs to partition {expected}")
        });
    }
    Ok(())
}

/// Every message whose send succeeded is stored, once; nothing else is.
#[then(expr = "every message of {topic} is stored exactly once")]
async fn exactly_once(world: &mut World, topic: Topic) -> Step {
    let messages = all(world, &topic.0).await?;
    let mut copies: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    for message in &messages {
        copies.entry(message.payload.clone()).or_default().push(message.place());
    }
    for index in 0..world.sent.len() {
        let sent = world.sent.get(index).filter(|s| s.topic == topic.0);
        let (Some(sent), Some(value)) = (sent, value(world, index)) else { continue };
        let places = copies.remove(&value).unwrap_or_default();
        let shown = String::from_utf8_lossy(&value).into_owned();
        if matches!(sent.outcome, Some(Ok(_))) {
            let lost = [
                "IMPL-4.2",
                "IMPL-4.5",
                "API-3.3.3",
                "API-2.3",
                "API-2.7",
                "API-2.8",
                "API-3.2.14",
                "API-3.2.1",
            ];
            world.judge(&lost, !places.is_empty(), || {
                world.rests_on_send_of(&value);
                format!("the send of {shown:?} succeeded, and the message is stored nowhere")
            });
        }
        let doubled = ["IMPL-4.2", "IMPL-4.8", "ERR-3.11", "API-3.2.11", "API-3.2.14", "IMPL-4.5"];
        world.judge(&doubled, places.len() <= 1, || {
            world.rests_on_send_of(&value);
            format!(
                "{shown:?} was sent once and is stored {} times, in {}",
                places.len(),
                places.join(" and ")
            )
        });
    }
    world.judge(&["API-3.2.1"], copies.is_empty(), || {
        let strange: Vec<String> = copies.keys().map(|v| String::from_utf8_lossy(v).into_owned()).collect();
        format!("stored and never sent: {}", strange.join(", "))
    });
    Ok(())
}

/// The messages of each key are stored in the order of their sends, parents before children.
#[then(expr = "the messages of every key of {topic} are stored in the order of their sends")]
async fn in_order(world: &mut World, topic: Topic) -> Step {
    let messages = all(world, &topic.0).await?;
    let mut order: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for index in 0..world.sent.len() {
        order.insert(value(world, index).unwrap_or_default(), index);
    }
    // The segments that can hold one key form a chain, and ids count up along it.
    let mut newest: BTreeMap<&str, (usize, &StoredMessage)> = BTreeMap::new();
    for message in &messages {
        let (Some(key), Some(index)) = (message.key.as_deref(), order.get(&message.payload)) else {
            continue;
        };
        if let Some((before, earlier)) = newest.insert(key, (*index, message)) {
            let requirements = ["IMPL-4.2", "API-3.2.12", "KS-5.3", "IMPL-3.3", "API-3.2.14", "API-3.2.11"];
            world.judge(&requirements, before < *index, || {
                world.rests_on_send_of(&message.payload);
                format!(
                    "key {key:?}: {:?} was sent before {:?}, and is stored behind it ({} and {})",
                    message.text(),
                    earlier.text(),
                    message.place(),
                    earlier.place()
                )
            });
        }
    }
    if newest.is_empty() {
        Err(Trouble::new("no keyed message is stored, so there is no order"))
    } else {
        Ok(())
    }
}

/// Messages without a key that were sent one after another went round the segments.
#[then(expr = "the messages without a key went round the {int} segments in turn")]
async fn round_robin(world: &mut World, segments: usize) -> Step {
    let messages = all(world, THE).await?;
    let mut places = Vec::new();
    for index in 0..world.sent.len() {
        let keyless = world.sent.get(index).is_some_and(|s| s.message.key.is_none());
        let value = value(world, index);
        let stored = messages.iter().find(|m| keyless && Some(&m.payload) == value.as_ref());
        places.extend(stored.map(StoredMessage::place));
    }
    if places.len() < segments {
        return Err(Trouble::new("fewer messages without a key than segments: nothing could go round"));
    }
    for window in places.windows(segments) {
        let mut distinct = window.to_vec();
        distinct.sort();
        distinct.dedup();
        world.judge(&["IMPL-2.6"], distinct.len() == segments, || {
            format!(
                "{segments} messages without a key in a row went to {}: {segments} active segments take turns",
                window.join(", ")
            )
        });
    }
    Ok(())
}

/// Segments that hold messages, by id.
#[then(expr = "segment {int} of {topic} holds {int} message(s)")]
async fn holds(world: &mut World, segment: u64, topic: Topic, count: usize) -> Step {
    let messages = all(world, &topic.0).await?;
    let held = messages.iter().filter(|m| m.segment == Some(segment)).count();
    let requirements =
        ["IMPL-4.3", "IMPL-4.5", "WIRE-2.3", "WIRE-5.9", "IMPL-2.2", "IMPL-1.4", "WIRE-4.11", "IMPL-2.1"];
    world.judge(&requirements, held == count, || {
        format!("segment {segment} holds {held} messages instead of {count}")
    });
    Ok(())
}

/// The message is stored nowhere.
#[then(expr = "nothing is stored in {topic}")]
async fn nothing(world: &mut World, topic: Topic) -> Step {
    let messages = all(world, &topic.0).await?;
    world.judge(&["IMPL-2.2", "ERR-3.11", "CONF-3.9"], messages.is_empty(), || {
        format!(
            "{} messages are stored, the first in {}",
            messages.len(),
            messages.first().map(StoredMessage::place).unwrap_or_default()
        )
    });
    Ok(())
}
