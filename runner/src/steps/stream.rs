//! Steps about stream consumers: subscribing, receiving, acknowledging, and what the application sees of it.
//!
//! The runner names every stream consumer, so that the journal shows which registration and attachment is whose.

use std::collections::{BTreeMap, BTreeSet};

use cucumber::{gherkin, given, then, when};

use super::encryption::consumer_option;
use super::params::{ClientName, StreamName, Topic, initial_position, number, options};
use super::schema::schema;
use super::sends::await_sends;
use crate::client::{ClientError, ConsumerId, Received, StreamOptions};
use crate::judge::{Step, Trouble};
use crate::world::{Delivery, Started, Stream, THE, World};

/// What a failed subscribe can break.
pub(super) const SUBSCRIBE: [&str; 15] = [
    "API-4.4.1",
    "API-4.4.3",
    "CONF-3.4",
    "API-4.1",
    "WIRE-6.2.6",
    "IMPL-8.4",
    "IMPL-8.5",
    "IMPL-8.1",
    "IMPL-8.13",
    "API-4.1.10",
    "API-4.1.4",
    "KS-4.3",
    "API-4.1.9",
    "DATA-1.1",
    "API-2.7",
];
/// What it can break that a message does not come, or one that must not.
const RECEIVE: [&str; 36] = [
    "CONF-3.9",
    "CONF-3.10",
    "API-4.4.1",
    "API-4.4.2",
    "API-4.4.3",
    "API-4.4.4",
    "API-4.4.5",
    "API-4.4.6",
    "IMPL-6.10",
    "WIRE-7.5",
    "WIRE-7.6",
    "WIRE-7.10",
    "WIRE-7.12",
    "WIRE-11.8",
    "CONF-3.4",
    "API-2.8",
    "API-4.1.12",
    "API-6.6",
    "API-6.8",
    "API-4.1.8",
    "API-4.1.9",
    "API-4.1.3",
    "IMPL-6.3",
    "API-4.1.6",
    "IMPL-6.1",
    "IMPL-6.5",
    "IMPL-6.8",
    "IMPL-8.12",
    "KS-4.13",
    "KS-4.9",
    "IMPL-5.12",
    "IMPL-8.5",
    "API-4.1.10",
    "IMPL-8.13",
    "IMPL-8.15",
    "KS-9.2",
];
/// How long a receive waits for a message that must come.
const PATIENCE_MS: u64 = 30_000;
/// How long nothing comes when nothing waits in the client.
const QUIET_MS: u64 = 300;

// ---- subscribing ----

/// A stream consumer on a subscription that begins at the oldest message.
#[given(expr = "{stream} on {topic} with subscription {string}")]
#[when(expr = "the application subscribes {stream} on {topic} with subscription {string}")]
async fn stream(world: &mut World, name: StreamName, topic: Topic, subscription: String) -> Step {
    let options = StreamOptions { subscription: Some(subscription), ..Default::default() };
    subscribe(world, THE, &name.0, &topic.0, options).await
}

/// A stream consumer of a client object of its own.
#[given(expr = "{stream} of {client} on {topic} with subscription {string}")]
#[when(expr = "the application subscribes {stream} of {client} on {topic} with subscription {string}")]
async fn stream_of(
    world: &mut World,
    name: StreamName,
    client: ClientName,
    topic: Topic,
    subscription: String,
) -> Step {
    let options = StreamOptions { subscription: Some(subscription), ..Default::default() };
    subscribe(world, &client.0, &name.0, &topic.0, options).await
}

/// A stream consumer with options: subscription, name, initial position, receiver queue, read compacted, replicate
/// state, ack group time, property NAME.
#[given(expr = "{stream} on {topic} with")]
#[when(expr = "the application subscribes {stream} on {topic} with")]
async fn stream_with(world: &mut World, name: StreamName, topic: Topic, step: &gherkin::Step) -> Step {
    let options = stream_options(world, step)?;
    subscribe(world, THE, &name.0, &topic.0, options).await
}

/// A subscribe that is under way while the scenario goes on.
#[when(expr = "the application starts to subscribe {stream} on {topic} with subscription {string}")]
async fn start(world: &mut World, name: StreamName, topic: Topic, subscription: String) -> Step {
    let options = StreamOptions { subscription: Some(subscription), ..Default::default() };
    let options = announce(world, &name.0, Some(&topic.0), options)?;
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let alias = name.0.clone();
    let task = tokio::task::spawn_local(async move {
        Ok(Started::Stream(alias, client.subscribe_stream(object, options).await?))
    });
    world.started.insert(format!("subscribe {}", name.0), task);
    world.settle().await;
    Ok(())
}

/// That subscribe is waited for and has to succeed.
#[when(expr = "the subscribe of {stream} has ended")]
async fn subscribed(world: &mut World, name: StreamName) -> Step {
    let task = world.started.remove(&format!("subscribe {}", name.0));
    let mut task = task.ok_or_else(|| Trouble::new("no subscribe of it was started"))?;
    let ended = world
        .within(Box::pin(async move {
            match (&mut task).await {
                Ok(ended) => ended,
                Err(e) => Err(ClientError::Gone(e.to_string())),
            }
        }))
        .await;
    if let Started::Stream(alias, id) = world.expect(&SUBSCRIBE, ended, "subscribing the stream consumer") {
        ready(world, &alias, id)?;
    }
    Ok(())
}

/// Subscribing in the hope of a failure, which a later step judges.
#[when(expr = "the application tries to subscribe {stream} on {topic} with")]
async fn try_with(world: &mut World, name: StreamName, topic: Topic, step: &gherkin::Step) -> Step {
    let options = announce(world, &name.0, Some(&topic.0), stream_options(world, step)?)?;
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let subscribed = world.within(client.subscribe_stream(object, options)).await;
    world.tried(subscribed.map(|_| ()));
    Ok(())
}

/// Subscribing to neither a topic nor a namespace.
#[when("the application tries to subscribe a stream consumer to nothing")]
async fn try_nothing(world: &mut World) -> Step {
    let options = StreamOptions { subscription: Some("s".to_owned()), ..Default::default() };
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let subscribed = world.within(client.subscribe_stream(object, options)).await;
    world.tried(subscribed.map(|_| ()));
    Ok(())
}

/// A subscribe to nothing is refused.
#[then("the subscribe to nothing is refused")]
fn nothing_refused(world: &mut World) -> Step {
    match world.outcome()? {
        Ok(()) => {
            world.broken(&["API-4.1.1"], "a stream consumer was subscribed to neither topic nor namespace")
        }
        Err(ClientError::Failed(_)) => Ok(()),
        Err(other) => world.surprise(&["API-4.1.1"], other, "the subscribe"),
    }
}

/// A subscribe without a subscription name is refused.
#[then("the subscribe without a subscription name is refused")]
fn refused(world: &mut World) -> Step {
    match world.outcome()? {
        Ok(()) => world.broken(&["API-4.1.2"], "a stream consumer was subscribed under no subscription name"),
        Err(ClientError::Failed(_)) => Ok(()),
        Err(other) => world.surprise(&["API-4.1.2"], other, "the subscribe"),
    }
}

async fn subscribe(
    world: &mut World,
    client: &str,
    alias: &str,
    topic: &str,
    options: StreamOptions,
) -> Step {
    let options = announce(world, alias, Some(topic), options)?;
    let object = world.client_object(client).await;
    let client = world.client().await;
    let subscribed = world.within(client.subscribe_stream(object, options)).await;
    let id = world.expect(&SUBSCRIBE, subscribed, "subscribing the stream consumer");
    ready(world, alias, id)
}

/// Notes who is about to subscribe, and completes the options. `None` for the topic of a namespace's consumer.
pub(super) fn announce(
    world: &mut World,
    alias: &str,
    topic: Option<&str>,
    options: StreamOptions,
) -> Result<StreamOptions, Trouble> {
    let name = options.name.clone().unwrap_or_else(|| match alias {
        THE => "stream".to_owned(),
        alias => alias.to_owned(),
    });
    let subscription = options.subscription.clone().unwrap_or_default();
    let full = topic.map(|topic| world.topic(topic)).transpose()?;
    let topic = topic.unwrap_or_default().to_owned();
    let stream = Stream { id: None, topic, subscription, name: name.clone() };
    world.streams.insert(alias.to_owned(), stream);
    Ok(StreamOptions { topic: full, name: Some(name), ..options })
}

pub(super) fn ready(world: &mut World, alias: &str, id: ConsumerId) -> Step {
    let stream = world.streams.get_mut(alias).ok_or_else(|| Trouble::new("nobody announced it"))?;
    stream.id = Some(id);
    Ok(())
}

fn stream_options(world: &World, step: &gherkin::Step) -> Result<StreamOptions, Trouble> {
    let mut made = StreamOptions::default();
    for (name, value) in options(step)? {
        match name.as_str() {
            "subscription" => made.subscription = Some(value),
            "schema" => made.schema = schema(world, &value)?,
            "name" => made.name = Some(value),
            "initial position" => made.initial_position = initial_position(&value)?,
            "receiver queue" => made.receiver_queue = Some(number(&name, &value)?),
            "read compacted" => made.read_compacted = value == "yes",
            "replicate state" => made.replicate_state = value == "yes",
            "ack group time" => {
                made.ack_group_time_ms = Some(number(&name, value.trim_end_matches("ms"))?);
            }
            other if consumer_option(&mut made.encryption, other, &value)? => {}
            other => match other.strip_prefix("property ") {
                Some(property) => made.properties.push((property.to_owned(), value)),
                None => return Err(Trouble(format!("a stream consumer has no option {other:?}"))),
            },
        }
    }
    Ok(made)
}

// ---- receiving ----

pub(super) fn handle(world: &World, alias: &str) -> Result<ConsumerId, Trouble> {
    world.stream(alias)?.id.ok_or_else(|| Trouble::new("the stream consumer is not subscribed yet"))
}

async fn next(world: &mut World, alias: &str, wait_ms: u64) -> Result<Option<Received>, Trouble> {
    let id = handle(world, alias)?;
    let received = world.client().await.receive(id, Some(wait_ms)).await;
    Ok(world.expect(&RECEIVE, received, "receive"))
}

/// Receives this many messages; each must come.
#[when(expr = "{stream} receives {int} message(s)")]
async fn receives(world: &mut World, name: StreamName, count: usize) -> Step {
    for got in 0..count {
        match next(world, &name.0, PATIENCE_MS).await? {
            Some(message) => world.deliveries.push(Delivery { consumer: name.0.clone(), message }),
            None => world.broken(
                &RECEIVE,
                format!("{got} messages came instead of {count}, then none for {} s", PATIENCE_MS / 1000),
            ),
        }
    }
    Ok(())
}

/// Receives this many messages and acknowledges the last.
#[when(expr = "{stream} receives and acknowledges {int} message(s)")]
async fn receives_and_acknowledges(world: &mut World, name: StreamName, count: usize) -> Step {
    receives(world, name.clone(), count).await?;
    acknowledge_last(world, name).await
}

/// Receives until nothing comes for a while, and acknowledges the last message. What waits in the client when a segment is
/// to be given up may still be delivered, or not.
#[when(expr = "{stream} receives and acknowledges what still comes")]
async fn receives_the_rest(world: &mut World, name: StreamName) -> Step {
    while let Some(message) = next(world, &name.0, QUIET_MS).await? {
        world.deliveries.push(Delivery { consumer: name.0.clone(), message });
    }
    acknowledge_last(world, name).await
}

/// All stream consumers take turns, and acknowledge each message, until everything that was sent has come.
#[when("the stream consumers receive and acknowledge everything")]
async fn everything(world: &mut World) -> Step {
    await_sends(world).await;
    let open: Vec<String> =
        world.streams.iter().filter(|(_, s)| s.id.is_some()).map(|(alias, _)| alias.clone()).collect();
    let wait_ms = if world.virtual_time() { 100 } else { 30 };
    let mut idle = 0;
    loop {
        let came = values(world);
        let missing: Vec<String> = sent(world).into_iter().filter(|value| !came.contains(value)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if idle * wait_ms > PATIENCE_MS {
            world.broken(&RECEIVE, format!("never received, and nothing else comes: {}", missing.join(", ")));
        }
        idle += 1;
        for alias in &open {
            while let Some(message) = next(world, alias, wait_ms).await? {
                idle = 0;
                world.deliveries.push(Delivery { consumer: alias.clone(), message });
                let last = own(world, alias).len();
                acknowledge(world, alias, last).await?;
            }
        }
    }
}

/// A receive without a limit, under way while the scenario goes on.
#[when(expr = "the application starts to receive from {stream}")]
async fn start_receive(world: &mut World, name: StreamName) -> Step {
    let id = handle(world, &name.0)?;
    let client = world.client().await;
    let alias = name.0.clone();
    let task =
        tokio::task::spawn_local(async move { Ok(Started::Message(alias, client.receive(id, None).await?)) });
    world.started.insert(format!("receive {}", name.0), task);
    world.settle().await;
    Ok(())
}

/// That receive is still waiting.
#[then(expr = "the receive from {stream} is still waiting")]
async fn waiting(world: &mut World, name: StreamName) -> Step {
    world.settle().await;
    let task = world.started.get(&format!("receive {}", name.0));
    let task = task.ok_or_else(|| Trouble::new("no receive was started"))?;
    world.judge(&["IMPL-8.11", "KS-4.12", "KS-9.2"], !task.is_finished(), || {
        "a receive that was under way got a message of a segment that is being drained".to_owned()
    });
    Ok(())
}

/// A receive with a limit gives nothing, and no error.
#[then(expr = "a receive from {stream} gives nothing within {int} ms")]
async fn gives_nothing(world: &mut World, name: StreamName, wait_ms: u64) -> Step {
    if let Some(message) = next(world, &name.0, wait_ms).await? {
        let first = ["IMPL-8.11", "KS-4.12"];
        let requirements: Vec<&str> = first.into_iter().chain(RECEIVE).collect();
        world.broken(&requirements, format!("{:?} came, and nothing was to come", message.text()));
    }
    Ok(())
}

// ---- acknowledging and closing ----

/// Acknowledges the message that the consumer gave last, and with it everything before.
#[when(expr = "{stream} acknowledges its last message")]
async fn acknowledge_last(world: &mut World, name: StreamName) -> Step {
    let last = own(world, &name.0).len();
    acknowledge(world, &name.0, last).await
}

/// Acknowledges one of the messages that the consumer gave, counted from 1 in the order in which they came.
#[when(expr = "{stream} acknowledges message number {int} of those it received")]
async fn acknowledge_nth(world: &mut World, name: StreamName, number: usize) -> Step {
    acknowledge(world, &name.0, number).await
}

async fn acknowledge(world: &mut World, alias: &str, number: usize) -> Step {
    let id = handle(world, alias)?;
    let upto: Vec<(u64, String)> =
        own(world, alias).into_iter().take(number).map(|m| (m.handle, m.text())).collect();
    let (message, _) = upto
        .get(number.wrapping_sub(1))
        .cloned()
        .ok_or_else(|| Trouble(format!("the consumer gave fewer than {number} messages")))?;
    let client = world.client().await;
    let done = world.within(client.acknowledge_cumulative(id, message)).await;
    world.expect(
        &["IMPL-6.11", "API-4.4.6", "API-4.1.6", "IMPL-6.3", "IMPL-6.5"],
        done,
        "the cumulative acknowledgement",
    );
    world.acknowledged.extend(upto.into_iter().map(|(_, value)| value));
    world.settle().await;
    Ok(())
}

/// Closes a stream consumer.
#[when(expr = "the application closes {stream}")]
async fn close(world: &mut World, name: StreamName) -> Step {
    let id = handle(world, &name.0)?;
    let client = world.client().await;
    let closed = world.within(client.close_consumer(id)).await;
    world.expect(&["IMPL-8.17", "IMPL-8.16", "IMPL-6.8"], closed, "closing the stream consumer");
    if let Some(stream) = world.streams.get_mut(&name.0) {
        stream.id = None;
    }
    Ok(())
}

// ---- judging ----

/// What the consumer gave, in order.
pub(super) fn own<'w>(world: &'w World, alias: &str) -> Vec<&'w Received> {
    world.deliveries.iter().filter(|d| d.consumer == alias).map(|d| &d.message).collect()
}

fn values(world: &World) -> BTreeSet<String> {
    world.deliveries.iter().map(|d| d.message.text()).collect()
}

/// The values of the messages whose sends succeeded, in order.
fn sent(world: &World) -> Vec<String> {
    world.sent_texts().map(|(value, _)| value.to_owned()).collect()
}

/// What was sent came to one of the consumers, once.
#[then("every message came to the stream consumers exactly once")]
async fn exactly_once(world: &mut World) -> Step {
    await_sends(world).await;
    let mut came: BTreeMap<String, usize> = BTreeMap::new();
    world.deliveries.iter().for_each(|d| *came.entry(d.message.text()).or_default() += 1);
    for value in sent(world) {
        let times = came.get(&value).copied().unwrap_or(0);
        world.judge(&RECEIVE, times == 1, || format!("{value:?} was sent once and received {times} times"));
    }
    Ok(())
}

/// What was sent came to one of the consumers. What a lost connection left unacknowledged may come twice.
#[then("every message came to the stream consumers")]
async fn at_least_once(world: &mut World) -> Step {
    await_sends(world).await;
    let came = values(world);
    let missing: Vec<String> = sent(world).into_iter().filter(|value| !came.contains(value)).collect();
    world.judge(&RECEIVE, missing.is_empty(), || format!("{missing:?} never came"));
    Ok(())
}

/// A consumer gets what nobody acknowledged, all of it and nothing else.
#[then(expr = "{stream} receives exactly what was not acknowledged")]
async fn exactly_the_rest(world: &mut World, name: StreamName) -> Step {
    await_sends(world).await;
    let mut missing: BTreeSet<String> = sent(world).into_iter().collect();
    missing.retain(|value| !world.acknowledged.contains(value));
    while !missing.is_empty() {
        let Some(message) = next(world, &name.0, PATIENCE_MS).await? else {
            let lost: Vec<String> = missing.into_iter().collect();
            world.broken(
                &[
                    "IMPL-6.6",
                    "IMPL-6.8",
                    "IMPL-6.9",
                    "IMPL-6.10",
                    "IMPL-6.3",
                    "IMPL-6.2",
                    "API-4.1.3",
                    "API-4.1.6",
                    "API-4.1.8",
                    "IMPL-6.5",
                    "KS-4.15",
                ],
                format!("never acknowledged, and yet not delivered again: {}", lost.join(", ")),
            )
        };
        let value = message.text();
        let acknowledged = world.acknowledged.contains(&value);
        world.judge(&ACKNOWLEDGED, !acknowledged, || {
            format!("{value:?} was acknowledged, and was delivered again")
        });
        missing.remove(&value);
        world.deliveries.push(Delivery { consumer: name.0.clone(), message });
    }
    let wait_ms = if world.virtual_time() { 5_000 } else { 200 };
    if let Some(message) = next(world, &name.0, wait_ms).await? {
        world.broken(&ACKNOWLEDGED, format!("{:?} came although it was acknowledged", message.text()));
    }
    Ok(())
}

/// What it can break that an acknowledged message comes again.
const ACKNOWLEDGED: [&str; 14] = [
    "API-4.4.6",
    "IMPL-6.6",
    "IMPL-6.7",
    "WIRE-7.11",
    "IMPL-6.1",
    "API-4.1.6",
    "IMPL-6.3",
    "IMPL-6.5",
    "KS-4.9",
    "API-4.1.8",
    "IMPL-8.12",
    "KS-4.13",
    "API-4.1.3",
    "KS-9.2",
];

/// In the order of the application's receives, across all consumers.
#[then("the messages of each key came in the order of their sends")]
fn in_order(world: &mut World) -> Step {
    let order: BTreeMap<String, usize> = sent(world).into_iter().zip(0..).collect();
    let mut newest: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    // What comes again says nothing about the order.
    for delivery in world.deliveries.iter().filter(|d| seen.insert(d.message.text())) {
        let value = delivery.message.text();
        let (Some(key), Some(index)) = (delivery.message.key.as_deref(), order.get(&value)) else { continue };
        if let Some((before, earlier)) = newest.insert(key, (*index, value.clone())) {
            let requirements =
                ["API-4.1.5", "API-4.1.11", "IMPL-8.12", "KS-4.13", "IMPL-8.5", "IMPL-8.4", "KS-9.2"];
            world.judge(&requirements, before < *index, || {
                format!("of key {key:?}, {value:?} came behind {earlier:?}")
            });
        }
    }
    if newest.is_empty() {
        Err(Trouble::new("no message with a key came, so there is no order"))
    } else {
        Ok(())
    }
}

/// The scenario shows something about sharing only if each of them had a share.
#[then("each stream consumer received a part of the messages")]
fn shared(world: &mut World) -> Step {
    let parts: BTreeSet<&str> = world.deliveries.iter().map(|d| d.consumer.as_str()).collect();
    let without: Vec<&String> = world.streams.keys().filter(|a| !parts.contains(a.as_str())).collect();
    world.judge(&["API-4.1.10", "IMPL-8.4", "IMPL-8.5", "KS-4.1"], without.is_empty(), || {
        format!("some consumers received nothing: {without:?}")
    });
    Ok(())
}
