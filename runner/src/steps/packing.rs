//! Steps about how producers pack messages into entries: compression, the limits of batches, chunks of large messages.

use std::collections::BTreeMap;

use bytes::Bytes;
use cucumber::{gherkin, given, then, when};
use stc_proto::pulsar::{CompressionType, MessageMetadata};

use super::entries::heads;
use super::journal::{belongs, marked};
use super::params::{ProducerName, Topic, column, cycled_keys};
use super::sends::{deliver, start};
use crate::client::{Batching, Chunking, Compression, Outgoing, Value};
use crate::feature::Need;
use crate::judge::{Step, Trouble};
use crate::stored::{StoredMessage, writer};
use crate::world::World;

/// What can break when a packed message does not arrive as it was sent.
const WHOLE: [&str; 2] = ["CONF-3.10", "CONF-3.9"];

/// `off`, `10 messages, 5 ms` or `10 messages, 100 bytes, 5 ms`.
pub(super) fn batching(text: &str) -> Result<Batching, Trouble> {
    if text == "off" {
        return Ok(Batching::Off);
    }
    let parts: Vec<&str> = text.split(", ").collect();
    let number = |part: &str, unit: &str| part.strip_suffix(unit).and_then(|n| n.trim().parse().ok());
    let parsed = match parts.as_slice() {
        [messages, delay] => number(messages, "messages").zip(number(delay, "ms")).map(|(m, d)| (m, None, d)),
        [messages, bytes, delay] => number(messages, "messages")
            .zip(number(bytes, "bytes"))
            .zip(number(delay, "ms"))
            .map(|((m, b), d)| (m, Some(b), d)),
        _ => None,
    };
    let (max_messages, max_bytes, max_delay_ms) = parsed.ok_or_else(|| {
        Trouble(format!(
            "batching is `off`, `10 messages, 5 ms` or `10 messages, 90 bytes, 5 ms`, not {text:?}"
        ))
    })?;
    Ok(Batching::On { max_messages, max_bytes, max_delay_ms: u64::from(max_delay_ms) })
}

/// `off`, `on`, or `100 bytes`.
pub(super) fn chunking(text: &str) -> Result<Chunking, Trouble> {
    match text {
        "off" => Ok(Chunking::Off),
        "on" => Ok(Chunking::On { max_bytes: None }),
        text => match text.strip_suffix(" bytes").and_then(|bytes| bytes.parse().ok()) {
            Some(bytes) => Ok(Chunking::On { max_bytes: Some(bytes) }),
            None => Err(Trouble(format!("chunking is `off`, `on` or `100 bytes`, not {text:?}"))),
        },
    }
}

/// A codec by its name in lower case, or `none`.
pub(super) fn compression(name: &str) -> Result<Compression, Trouble> {
    match name {
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "zlib" => Ok(Compression::Zlib),
        "zstd" => Ok(Compression::Zstd),
        "snappy" => Ok(Compression::Snappy),
        other => Err(Trouble(format!("no such compression: {other}"))),
    }
}

// ---- sends ----

/// A text of this many bytes that says which message it is and does not compress well.
fn large(index: usize, size: usize) -> Value {
    let mut text = format!("m-{index}-");
    let mut state = index as u32 ^ 0x9e37_79b9;
    while text.len() < size {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend(char::from_digit(state >> 27, 32));
    }
    Value::Text(text)
}

/// Messages of this many bytes, each waited for, with keys in turn.
#[when(expr = "{producer} sends {int} message(s) of {int} bytes with {int} key(s)")]
async fn send_large(world: &mut World, name: ProducerName, count: usize, size: usize, keys: usize) -> Step {
    for key in cycled_keys(count, keys) {
        let value = large(world.sent.len(), size);
        deliver(world, &name.0, Outgoing { value, key: Some(key), ..Outgoing::default() }).await?;
    }
    Ok(())
}

/// Asynchronous sends of messages of this many bytes, with keys in turn.
#[when(expr = "{producer} starts to send {int} message(s) of {int} bytes with {int} key(s)")]
async fn start_large(world: &mut World, name: ProducerName, count: usize, size: usize, keys: usize) -> Step {
    let first = world.sent.len();
    let message =
        |(i, key)| Outgoing { value: large(first + i, size), key: Some(key), ..Outgoing::default() };
    let messages = cycled_keys(count, keys).enumerate().map(message).collect();
    start(world, &name.0, messages).await
}

// ---- chunks that no client under test sent ----

/// Chunks, one a line: `a 1/3` is the first of three of the message "a", whose value is as many times `a0123456789`. Stored
/// by the suite itself, in this order.
#[given(expr = "these chunks are stored in {topic}")]
#[when(expr = "these chunks are stored in {topic}")]
async fn store_chunks(world: &mut World, topic: Topic, step: &gherkin::Step) -> Step {
    world.uses(Need::Control);
    let full = world.topic(&topic.0)?;
    let broker = world.broker().await;
    let cluster =
        broker.cluster.as_ref().ok_or_else(|| Trouble::new("only a simulated cluster takes them"))?;
    for line in column(step)? {
        let parsed = line.split_once(' ').and_then(|(name, part)| {
            let (index, count) = part.split_once('/')?;
            Some((name, index.parse::<i32>().ok()?, count.parse::<i32>().ok()?))
        });
        let (name, index, count) =
            parsed.ok_or_else(|| Trouble(format!("a chunk is `a 1/3`, not {line:?}")))?;
        let part = chunk_of(name);
        let metadata = MessageMetadata {
            producer_name: format!("producer-{name}"),
            publish_time: cluster.now(),
            uuid: Some(format!("producer-{name}-0")),
            chunk_id: Some(index - 1),
            num_chunks_from_msg: Some(count),
            total_chunk_msg_size: i32::try_from(part.len()).ok().map(|size| size * count),
            ..Default::default()
        };
        writer::publish(cluster, &full, metadata, Bytes::from(part)).await?;
    }
    Ok(())
}

/// What each chunk of the message with this name has.
fn chunk_of(name: &str) -> String {
    format!("{name}0123456789")
}

/// What came from the topic are these messages that were stored in chunks, in this order and nothing else: `a x3` has three.
#[then("the received messages are those of the chunks")]
fn are_joined(world: &mut World, step: &gherkin::Step) -> Step {
    let mut expected = Vec::new();
    for line in column(step)? {
        let parsed = line.split_once(" x").and_then(|(name, n)| Some((name, n.parse::<usize>().ok()?)));
        let (name, count) = parsed.ok_or_else(|| Trouble(format!("a message is `a x3`, not {line:?}")))?;
        expected.push(chunk_of(name).repeat(count));
    }
    let readers = world.reading.readers.values().flat_map(|reader| &reader.received);
    let seen: Vec<String> =
        world.deliveries.iter().map(|d| &d.message).chain(readers).map(|message| message.text()).collect();
    world.judge(&WHOLE, seen == expected, || format!("{seen:?} came instead of {expected:?}"));
    Ok(())
}

// ---- judging ----

/// Chunks by the message that they are of, in stored order.
async fn chunks(world: &mut World, topic: &str) -> Result<BTreeMap<String, Vec<StoredMessage>>, Trouble> {
    let mut found: BTreeMap<String, Vec<StoredMessage>> = BTreeMap::new();
    for entry in heads(world, topic).await? {
        if entry.metadata.num_chunks_from_msg() > 1 {
            found.entry(entry.metadata.uuid().to_owned()).or_default().push(entry);
        }
    }
    Ok(found)
}

/// Every message that was sent is stored in several entries, all of whose chunks are there, once, in their order.
#[then(expr = "every message of {topic} is stored in several chunks")]
async fn in_chunks(world: &mut World, topic: Topic) -> Step {
    let found = chunks(world, &topic.0).await?;
    world.judge(&["API-3.1.6", "CONF-3.10"], found.len() == world.sent.len(), || {
        format!("{} messages were sent, and {} are stored in chunks", world.sent.len(), found.len())
    });
    for (uuid, parts) in found {
        let ids: Vec<i32> = parts.iter().map(|part| part.metadata.chunk_id()).collect();
        let count = parts.first().map(|part| part.metadata.num_chunks_from_msg()).unwrap_or_default();
        world.judge(&["CONF-3.10", "API-3.1.6"], ids == Vec::from_iter(0..count), || {
            format!("of message {uuid} with {count} chunks these are stored: {ids:?}")
        });
    }
    Ok(())
}

/// The chunks of two messages alternate: what the scenario says about that is not said about nothing.
#[then(expr = "chunks of different messages of {topic} alternate")]
async fn alternate(world: &mut World, topic: Topic) -> Step {
    let ids: Vec<String> =
        heads(world, &topic.0).await?.iter().map(|entry| entry.metadata.uuid().to_owned()).collect();
    let mut runs = ids.clone();
    runs.dedup();
    let mut distinct = ids;
    distinct.sort();
    distinct.dedup();
    if runs.len() > distinct.len() {
        Ok(())
    } else {
        Err(Trouble::new("the chunks of each message follow one another: nothing alternates"))
    }
}

/// A message has begun in a segment that was sealed before its end.
#[then(expr = "segment {int} of {topic} holds the beginning of a message only")]
async fn beginning_only(world: &mut World, segment: u64, topic: Topic) -> Step {
    for parts in chunks(world, &topic.0).await?.into_values() {
        let here = parts.iter().filter(|part| part.segment == Some(segment));
        let ids: Vec<i32> = here.map(|part| part.metadata.chunk_id()).collect();
        let count = parts.first().map(|part| part.metadata.num_chunks_from_msg()).unwrap_or_default();
        if ids.contains(&0) && !ids.contains(&(count - 1)) {
            return Ok(());
        }
    }
    Err(Trouble(format!("segment {segment} has no message without its end: the scenario shows nothing")))
}

/// Every entry says that it is compressed with this codec.
#[then(expr = "every entry of {topic} is compressed with {word}")]
async fn compressed(world: &mut World, topic: Topic, codec: String) -> Step {
    let expected = match compression(&codec)? {
        Compression::None => CompressionType::None,
        Compression::Lz4 => CompressionType::Lz4,
        Compression::Zlib => CompressionType::Zlib,
        Compression::Zstd => CompressionType::Zstd,
        Compression::Snappy => CompressionType::Snappy,
    };
    for entry in heads(world, &topic.0).await? {
        let seen = entry.metadata.compression();
        world.judge(&["API-3.1.6"], seen == expected, || {
            world.rests_on_send_of(&entry.payload);
            format!("an entry is compressed with {seen:?} instead of {expected:?}")
        });
    }
    Ok(())
}

/// Every entry, as it says, has at most so many messages, and some have several.
#[then(expr = "every entry of {topic} has at most {int} messages, and some have several")]
async fn at_most(world: &mut World, topic: Topic, limit: i32) -> Step {
    let counts = counts(world, &topic.0).await?;
    world.judge(&["API-3.1.6"], counts.iter().all(|count| *count <= limit), || {
        format!("the entries have {counts:?} messages; {limit} are allowed")
    });
    world.judge(&["API-3.1.6"], counts.iter().any(|count| *count > 1), || {
        "every message is an entry of its own although they were sent together".to_owned()
    });
    Ok(())
}

/// All messages are in one entry, as it says.
#[then(expr = "{topic} holds one entry with {int} messages")]
async fn one_entry(world: &mut World, topic: Topic, count: i32) -> Step {
    let counts = counts(world, &topic.0).await?;
    world.judge(&["API-3.1.6"], counts == [count], || {
        format!("the entries have {counts:?} messages instead of {count} in one")
    });
    Ok(())
}

async fn counts(world: &mut World, topic: &str) -> Result<Vec<i32>, Trouble> {
    let counts = heads(world, topic).await?;
    Ok(counts.iter().map(|entry| entry.metadata.num_messages_in_batch.unwrap_or(1)).collect())
}

/// Nothing was published: what was started waits for company.
#[then(expr = "nothing was sent to {topic} since the mark")]
async fn nothing_sent(world: &mut World, topic: Topic) -> Step {
    world.settle().await;
    let full = world.topic(&topic.0)?;
    let mark = marked(world)?;
    let sends = world.wire()?.sends();
    let early = sends.iter().find(|send| send.n > mark && belongs(&send.topic, &full));
    world.judge(&["API-3.1.6"], early.is_none(), || {
        world.rests_on(early.map(|send| send.n));
        "messages were sent before their batch was full and before its delay".to_owned()
    });
    Ok(())
}

/// No message was delivered since the mark: everything that was received is acknowledged as a whole.
#[then("no MESSAGE went to the client since the mark")]
async fn none_again(world: &mut World) -> Step {
    world.settle().await;
    let mark = marked(world)?;
    let wire = world.wire()?;
    let again =
        wire.from_brokers().find(|(record, _, command)| record.n > mark && command.name() == "MESSAGE");
    let again = again.map(|(record, ..)| record.n);
    world.judge(&["CONF-3.10", "API-4.2.4"], again.is_none(), || {
        world.rests_on(again);
        "an entry came again although its message was acknowledged".to_owned()
    });
    Ok(())
}
