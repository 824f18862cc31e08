//! Steps about the dead letters of queue consumers (client-api §4.2, error-model §5): messages that come too often, and
//! what the dead-letter topic has of them.

use std::time::Duration;

use axum::http::Method;
use cucumber::then;
use tokio::time::Instant;

use super::journal::belongs;
use super::params::Topic;
use super::schema::text;
use crate::judge::{Step, Trouble};
use crate::stored::{self, StoredMessage};
use crate::target::Broker;
use crate::world::{Sent, THE, World};

/// What it can break when messages do not get to the dead-letter topic, or get there when they should not.
const ROUTED: [&str; 4] = ["ERR-5.3", "CONF-3.8", "API-4.2.8", "API-4.2.5"];
/// How long a client may take to write a dead letter, with attempts that fail in between.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two looks at a topic.
const PAUSE: Duration = Duration::from_millis(100);

/// What the topic has, once it has this many messages, or when the patience is over. None while it does not exist.
async fn letters(world: &mut World, alias: &str, count: usize) -> Result<Vec<StoredMessage>, Trouble> {
    let full = world.topic(alias)?;
    let path = world.scalable_path(alias)?;
    let pause = if world.virtual_time() { 5 * PAUSE } else { PAUSE };
    let start = Instant::now();
    loop {
        let broker = world.broker().await;
        let found = match filled(&broker, &path).await? {
            true => stored::with_late(&broker, &full, PAUSE).await?,
            false => Vec::new(),
        };
        if found.len() >= count || start.elapsed() >= PATIENCE {
            return Ok(found);
        }
        tokio::time::sleep(pause).await;
    }
}

/// Whether there is something in the scalable topic at this path of the admin REST. 5.0.1 tells the layout of a new topic
/// before its segments can be read.
async fn filled(broker: &Broker, path: &str) -> Result<bool, Trouble> {
    let exists = broker.admin.call(Method::GET, path, None).await?.status == 200;
    if !exists || broker.cluster.is_some() {
        return Ok(exists);
    }
    let body = broker.admin.must(Method::GET, &format!("{path}/stats"), None).await?;
    let stats: serde_json::Value = serde_json::from_str(&body)?;
    Ok(stats.get("storageSize").and_then(serde_json::Value::as_u64).unwrap_or_default() > 0)
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
        let value = text(&sent.message.value);
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
    world.judge(&ROUTED, letter.text() == text(&sent.value), || {
        format!("the dead letter is {:?}, and {:?} was sent", letter.text(), text(&sent.value))
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
    let value = text(&sent(world, world.sent.len())?.message.value);
    for _ in 0..100 {
        for name in names.iter().chain(&classic) {
            let broker = world.broker().await;
            let path = format!("/admin/v2/scalable/{}", name.split_once("://").map_or("", |(_, path)| path));
            let scalable = name.starts_with("topic://");
            if scalable && !filled(&broker, &path).await? {
                continue;
            }
            let found = stored::with_late(&broker, name, PAUSE).await;
            let found = if scalable { found? } else { found.unwrap_or_default() };
            if found.iter().any(|letter| letter.text() == value) {
                return Ok(());
            }
        }
        tokio::time::sleep(PAUSE).await;
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
