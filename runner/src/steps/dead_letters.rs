//! Steps about the dead letters of queue consumers (client-api §4.2, error-model §5): messages that come too often, and
//! what the dead-letter topic has of them.

use std::time::Duration;

use axum::http::Method;
use cucumber::{given, then, when};
use serde_json::json;

use super::consume::PATIENCE_MS;
use super::journal::belongs;
use super::params::{ConsumerName, Topic};
use crate::client::{Received, Value};
use crate::judge::{Step, Trouble};
use crate::stored::{self, StoredMessage};
use crate::target::Broker;
use crate::world::{Delivery, Sent, THE, World};

/// What it can break when messages do not get to the dead-letter topic, or get there when they should not.
const ROUTED: [&str; 4] = ["ERR-5.3", "CONF-3.8", "API-4.2.8", "API-4.2.5"];
/// How long a client may take to write a dead letter, with attempts that fail in between.
const PATIENCE: Duration = Duration::from_secs(60);

/// A name that nothing was made under, in a namespace that permits or forbids that a client makes topics.
#[given(
    regex = r#"^"([^"]+)" is the name of an absent topic, in a namespace that (permits|forbids) auto-creation$"#
)]
async fn absent(world: &mut World, alias: String, policy: String) -> Step {
    let local = world.fresh_name(&alias);
    let namespace = format!("public/ns-{local}");
    world.admin(Method::PUT, &format!("/admin/v2/namespaces/{namespace}"), Some(json!({}))).await?;
    let body = json!({ "allowAutoTopicCreation": policy == "permits", "topicType": "non-partitioned" });
    let path = format!("/admin/v2/namespaces/{namespace}/autoTopicCreation");
    world.admin(Method::POST, &path, Some(body)).await?;
    world.topics.insert(alias, format!("topic://{namespace}/{local}"));
    Ok(())
}

/// The name of an absent topic gets its topic.
#[when(expr = "{topic} is created with {int} segment(s)")]
async fn created(world: &mut World, topic: Topic, segments: u32) -> Step {
    let path = format!("{}?numInitialSegments={segments}", world.scalable_path(&topic.0)?);
    world.admin(Method::PUT, &path, Some(json!({}))).await?;
    Ok(())
}

/// Receives this many messages, one after another, and negatively acknowledges each before the next.
#[when(expr = "{consumer} receives and negatively acknowledges {int} message(s)")]
async fn rejects(world: &mut World, name: ConsumerName, count: usize) -> Step {
    for got in 0..count {
        let Some(message) = next(world, &name.0).await? else {
            let what =
                format!("a message that was negatively acknowledged came {got} times instead of {count}");
            world.broken(&ROUTED, what);
        };
        let handle = message.handle;
        world.deliveries.push(Delivery { consumer: name.0.clone(), message });
        reject(world, &name.0, handle).await?;
    }
    Ok(())
}

async fn next(world: &mut World, alias: &str) -> Result<Option<Received>, Trouble> {
    let consumer = world.consumer(alias)?;
    let received = world.client().await.receive(consumer.id, Some(PATIENCE_MS)).await;
    Ok(world.expect(&ROUTED, received, "receive"))
}

async fn reject(world: &mut World, alias: &str, handle: u64) -> Step {
    let consumer = world.consumer(alias)?;
    let client = world.client().await;
    let done = world.within(client.negative_acknowledge(consumer.id, handle)).await;
    world.expect(&ROUTED, done, "negative acknowledgement");
    Ok(())
}

/// A receive gives nothing and no error while a message is on its way to the dead-letter topic, or is there.
#[then(expr = "{consumer} gives no more")]
async fn gives_no_more(world: &mut World, name: ConsumerName) -> Step {
    let consumer = world.consumer(&name.0)?;
    let received = world.client().await.receive(consumer.id, Some(1_000)).await;
    if let Some(message) = world.expect(&ROUTED, received, "receive") {
        let (text, count) = (message.text(), message.redelivery_count);
        world.broken(&ROUTED, format!("{text:?} came once more, with redelivery count {count}"));
    }
    Ok(())
}

/// What the topic has, once it has this many messages, or when the patience is over. None while it does not exist.
async fn letters(world: &mut World, alias: &str, count: usize) -> Result<Vec<StoredMessage>, Trouble> {
    let full = world.topic(alias)?;
    let path = world.scalable_path(alias)?;
    let pause = Duration::from_millis(if world.virtual_time() { 500 } else { 100 });
    let mut waited = Duration::ZERO;
    loop {
        let broker = world.broker().await;
        let exists = broker.admin.call(Method::GET, &path, None).await?.status == 200;
        // Not before there is something: 5.0.1 goes on saying that a topic is empty which was read when it was.
        let filled = exists && (broker.cluster.is_some() || size(&broker, &path).await? > 0);
        let found = if filled { stored::of(&broker, &full).await? } else { Vec::new() };
        if found.len() >= count || waited >= PATIENCE {
            return Ok(found);
        }
        tokio::time::sleep(pause).await;
        waited += pause;
    }
}

/// How many bytes a topic has, as the broker counts them.
async fn size(broker: &Broker, path: &str) -> Result<u64, Trouble> {
    let body = broker.admin.must(Method::GET, &format!("{path}/stats"), None).await?;
    let stats: serde_json::Value = serde_json::from_str(&body)?;
    Ok(stats.get("storageSize").and_then(serde_json::Value::as_u64).unwrap_or_default())
}

/// The topic gets the messages of these numbers, counted from 1 in the order of their sends, and nothing else.
#[then(regex = r#"^(the topic|topic "[^"]+") gets messages? ([\d, ]+) of those sent$"#)]
async fn gets(world: &mut World, topic: Topic, numbers: String) -> Step {
    let mut wanted = Vec::new();
    for number in numbers.split(',') {
        let index: usize = number.trim().parse()?;
        wanted.push(sent(world, index)?);
    }
    let found = letters(world, &topic.0, wanted.len()).await?;
    for sent in &wanted {
        let value = text(sent);
        let copies = found.iter().filter(|letter| letter.text() == value).count();
        world.judge(&ROUTED, copies == 1, || match copies {
            0 => format!("{value:?} came too often, and the dead-letter topic does not have it"),
            _ => format!("{value:?} is in the dead-letter topic {copies} times"),
        });
    }
    world.judge(&ROUTED, found.len() == wanted.len(), || {
        let texts: Vec<String> = found.iter().map(StoredMessage::text).collect();
        format!("the dead-letter topic has {texts:?}; {} messages came too often", wanted.len())
    });
    Ok(())
}

/// The topic has no message.
#[then(expr = "{topic} has got no message")]
async fn gets_none(world: &mut World, topic: Topic) -> Step {
    let found = letters(world, &topic.0, 0).await?;
    world.judge(&ROUTED, found.is_empty(), || {
        format!("the dead-letter topic has {:?} already", found.first().map(StoredMessage::text))
    });
    Ok(())
}

/// While the dead-letter topic has yet to take a message, it is not acknowledged.
#[then(expr = "nothing of {topic} is acknowledged yet")]
async fn not_acknowledged(world: &mut World, topic: Topic) -> Step {
    world.settle().await;
    let full = world.topic(&topic.0)?;
    let acks = world.wire()?.acks();
    let ack = acks.iter().find(|(_, on, _)| belongs(on, &full));
    world.judge(&ROUTED, ack.is_none(), || {
        world.rests_on(ack.map(|(record, ..)| *record));
        "a message was acknowledged before the dead-letter topic had it".to_owned()
    });
    Ok(())
}

/// What the topic has of the last message that was sent: value, key, properties and event time.
#[then(expr = "the message in {topic} is as it was sent")]
async fn as_sent(world: &mut World, topic: Topic) -> Step {
    let sent = sent(world, world.sent.len())?.message;
    let found = letters(world, &topic.0, 1).await?;
    let Some(letter) = found.first() else {
        world.broken(&ROUTED, "the dead-letter topic has no message");
    };
    world.judge(&ROUTED, letter.text() == text_of(&sent.value), || {
        format!("the dead letter is {:?}, and {:?} was sent", letter.text(), text_of(&sent.value))
    });
    world.judge(&ROUTED, letter.key == sent.key, || {
        format!("the dead letter's key is {:?}, and the message's is {:?}", letter.key, sent.key)
    });
    for (name, value) in &sent.properties {
        let kept = property(letter, name);
        world.judge(&ROUTED, kept == Some(value), || {
            format!("the dead letter's property {name} is {kept:?}, and the message's is {value:?}")
        });
    }
    let event_time = sent.event_time_ms.unwrap_or_default();
    world.judge(&ROUTED, letter.event_time == event_time, || {
        format!("the dead letter's event time is {}, and the message's is {event_time}", letter.event_time)
    });
    Ok(())
}

/// What a dead letter says about where it is from is true, as far as it says anything in the way of Pulsar's clients.
#[then(expr = "what the message in {topic} says of its origin is true")]
async fn origin(world: &mut World, topic: Topic) -> Step {
    let found = letters(world, &topic.0, 1).await?;
    let Some(letter) = found.first() else {
        world.broken(&ROUTED, "the dead-letter topic has no message");
    };
    let full = world.topic(THE)?;
    let subscription = world.consumer(THE)?.subscription;
    let stored = stored::of(&world.broker().await, &full).await?;
    let source = stored.iter().find(|message| message.payload == letter.payload);
    let source = source.ok_or_else(|| Trouble::new("the topic does not have the message that was sent"))?;
    let place = format!("{}:{}:", source.position.0, source.position.1);
    let truths: [(&str, bool, &str); 3] = [
        ("REAL_TOPIC", property(letter, "REAL_TOPIC").is_none_or(|name| *name == full), &full),
        (
            "REAL_SUBSCRIPTION",
            property(letter, "REAL_SUBSCRIPTION").is_none_or(|name| *name == subscription),
            &subscription,
        ),
        (
            "ORIGIN_MESSAGE_ID",
            property(letter, "ORIGIN_MESSAGE_ID").is_none_or(|id| id.starts_with(&place)),
            &place,
        ),
    ];
    for (name, holds, expected) in truths {
        world.judge(&["API-4.2.8"], holds, || {
            let told = property(letter, name);
            format!("the dead letter's property {name} is {told:?}; the message is from {expected}")
        });
    }
    Ok(())
}

/// Where a policy without a topic sends to: the topic's name and `-DLQ` behind it, or the subscription between them, as
/// Pulsar's clients have it, scalable or classic.
#[then(expr = "the message is in a dead-letter topic called after {topic}")]
async fn default_topic(world: &mut World, topic: Topic) -> Step {
    let full = world.topic(&topic.0)?;
    let subscription = world.consumer(THE)?.subscription;
    let names = [format!("{full}-DLQ"), format!("{full}-{subscription}-DLQ")];
    let classic = names.clone().map(|name| name.replacen("topic://", "persistent://", 1));
    let value = text(&sent(world, world.sent.len())?);
    for _ in 0..100 {
        for name in names.iter().chain(&classic) {
            let broker = world.broker().await;
            let path = format!("/admin/v2/scalable/{}", name.split_once("://").map_or("", |(_, path)| path));
            let scalable = name.starts_with("topic://");
            if scalable && broker.admin.call(Method::GET, &path, None).await?.status != 200 {
                continue;
            }
            if scalable && broker.cluster.is_none() && size(&broker, &path).await? == 0 {
                continue;
            }
            let found = stored::of(&broker, name).await;
            let found = if scalable { found? } else { found.unwrap_or_default() };
            if found.iter().any(|letter| letter.text() == value) {
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world.broken(&ROUTED, format!("{value:?} came too often, and none of {names:?} has it"));
}

fn property<'a>(letter: &'a StoredMessage, name: &str) -> Option<&'a String> {
    letter.properties.iter().find(|pair| pair.key == name).map(|pair| &pair.value)
}

/// The message of this number, counted from 1.
fn sent(world: &World, number: usize) -> Result<Sent, Trouble> {
    let sent = world.sent.get(number.saturating_sub(1)).cloned();
    sent.ok_or_else(|| Trouble(format!("fewer than {number} messages were sent")))
}

fn text(sent: &Sent) -> String {
    text_of(&sent.message.value)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}
