//! Steps about consumers of a namespace: its topics, subscribing, and what the journal shows of both.
//!
//! A scenario has one namespace of its own, so that nobody else's topics are in it.

use std::collections::BTreeSet;

use axum::http::Method;
use cucumber::{given, then, when};
use serde_json::json;
use sim_broker::core::journal::{Direction, Record};
use stc_proto::Command;
use stc_proto::hash::topic_set_hash;
use stc_proto::pulsar::command_watch_scalable_topics_update::Event as Update;
use stc_proto::pulsar::{CommandWatchScalableTopics, ScalableTopicsDiff};

use super::journal::{marked, subscriptions_of};
use super::params::{StreamName, Topic};
use super::stream::{self, SUBSCRIBE};
use crate::client::{ClientError, NamespaceOptions, StreamOptions, Value};
use crate::feature::Need;
use crate::judge::{Step, Trouble};
use crate::stream_wire::registrations_for;
use crate::wire::Wire;
use crate::world::{THE, World};

// ---- the namespace and its topics ----

/// A namespace without topics.
#[given("a namespace")]
async fn namespace(world: &mut World) -> Step {
    let name = format!("public/{}", world.fresh_name("ns"));
    world.admin(Method::PUT, &format!("/admin/v2/namespaces/{name}"), Some(json!({}))).await?;
    world.namespace = Some(name);
    Ok(())
}

/// A name that no namespace has. Only the simulated cluster does as the specification says (docs/divergences.md).
#[given("the name of a namespace that does not exist")]
fn absent(world: &mut World) -> Step {
    world.uses(Need::Control);
    world.namespace = Some(format!("public/{}", world.fresh_name("nowhere")));
    Ok(())
}

/// A scalable topic in the namespace.
#[given(expr = "scalable topic {string} in the namespace with {int} segment(s)")]
#[when(expr = "scalable topic {string} is created in the namespace with {int} segment(s)")]
async fn plain(world: &mut World, alias: String, segments: u32) -> Step {
    create(world, &alias, segments, "").await
}

/// One with properties, such as `team=x, tier=1`.
#[given(expr = "scalable topic {string} in the namespace with {int} segment(s) and the properties {string}")]
#[when(
    expr = "scalable topic {string} is created in the namespace with {int} segment(s) and the properties {string}"
)]
async fn with_properties(world: &mut World, alias: String, segments: u32, properties: String) -> Step {
    create(world, &alias, segments, &properties).await
}

async fn create(world: &mut World, alias: &str, segments: u32, properties: &str) -> Step {
    let name = format!("topic://{}/{alias}", own(world)?);
    world.topics.insert(alias.to_owned(), name);
    let properties: serde_json::Map<_, _> =
        pairs(properties)?.into_iter().map(|(key, value)| (key, value.into())).collect();
    let path = format!("{}?numInitialSegments={segments}", world.scalable_path(alias)?);
    world.admin(Method::PUT, &path, Some(properties.into())).await?;
    Ok(())
}

/// A topic enters or leaves a filtered set without being deleted.
#[when(expr = "{topic} gets the properties {string}")]
async fn gets_properties(world: &mut World, topic: Topic, properties: String) -> Step {
    let name = world.topic(&topic.0)?;
    let properties = pairs(&properties)?.into_iter().collect();
    world.control().await?.set_topic_properties(&name, properties)?;
    told(world).await;
    Ok(())
}

/// Watches hear of changes some time later, of all together. In virtual time that passes here; outside something has to
/// show that the client was told.
async fn told(world: &World) {
    if world.virtual_time() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    world.settle().await;
}

/// Both happen before watches hear of either.
#[when(expr = "{topic} is deleted and created again at once")]
async fn replaced(world: &mut World, topic: Topic) -> Step {
    world.uses(Need::VirtualTime);
    let path = world.scalable_path(&topic.0)?;
    world.admin(Method::DELETE, &format!("{path}?force=true"), None).await?;
    world.admin(Method::PUT, &format!("{path}?numInitialSegments=1"), Some(json!({}))).await?;
    told(world).await;
    Ok(())
}

fn own(world: &World) -> Result<String, Trouble> {
    world.namespace.clone().ok_or_else(|| Trouble::new("no step made a namespace"))
}

/// `team=x, tier=1` as pairs; nothing as none.
fn pairs(text: &str) -> Result<Vec<(String, String)>, Trouble> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    };
    parts.map(|part| pair(part).ok_or_else(|| Trouble(format!("{part}: NAME=VALUE is needed")))).collect()
}

// ---- subscribing ----

/// A stream consumer of the namespace, on a subscription that begins at the oldest message.
#[given(expr = "{stream} on the namespace with subscription {string}")]
#[when(expr = "the application subscribes {stream} on the namespace with subscription {string}")]
async fn subscribes(world: &mut World, name: StreamName, subscription: String) -> Step {
    subscribe(world, name, subscription, "").await
}

/// Only of the topics that have these properties.
#[given(expr = "{stream} on the topics with {string} of the namespace with subscription {string}")]
#[when(
    expr = "the application subscribes {stream} on the topics with {string} of the namespace with subscription {string}"
)]
async fn subscribes_some(
    world: &mut World,
    name: StreamName,
    properties: String,
    subscription: String,
) -> Step {
    subscribe(world, name, subscription, &properties).await
}

async fn subscribe(world: &mut World, name: StreamName, subscription: String, properties: &str) -> Step {
    let stream = stream::announce(world, &name.0, None, subscribing(subscription))?;
    let namespace = own(world)?;
    let options = NamespaceOptions { namespace, topic_properties: pairs(properties)?, stream };
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let subscribed = world.within(client.subscribe_namespace(object, options)).await;
    let id = world.expect(&SUBSCRIBE, subscribed, "subscribing to the namespace");
    stream::ready(world, &name.0, id)
}

/// Subscribing in the hope of a failure, which a later step judges.
#[when("the application tries to subscribe a stream consumer on the namespace")]
async fn try_subscribe(world: &mut World) -> Step {
    let options = NamespaceOptions {
        namespace: own(world)?,
        stream: subscribing("s".to_owned()),
        ..Default::default()
    };
    attempt(world, options).await
}

/// Subscribing to two things at once.
#[when(expr = "the application tries to subscribe a stream consumer on {topic} and the namespace")]
async fn try_both(world: &mut World, topic: Topic) -> Step {
    let topic = Some(world.topic(&topic.0)?);
    let stream = StreamOptions { topic, ..subscribing("s".to_owned()) };
    attempt(world, NamespaceOptions { namespace: own(world)?, stream, ..Default::default() }).await
}

fn subscribing(subscription: String) -> StreamOptions {
    StreamOptions { subscription: Some(subscription), ..Default::default() }
}

async fn attempt(world: &mut World, options: NamespaceOptions) -> Step {
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let subscribed = world.within(client.subscribe_namespace(object, options)).await;
    world.tried(subscribed.map(|_| ()));
    Ok(())
}

/// A subscribe to both is refused.
#[then("the subscribe to both is refused")]
fn both_refused(world: &mut World) -> Step {
    match world.outcome()? {
        Ok(()) => world
            .broken(&["API-4.1.1"], "a stream consumer was subscribed to a topic and a namespace at once"),
        Err(ClientError::Failed(_)) => Ok(()),
        Err(other) => world.surprise(&["API-4.1.1"], other, "the subscribe"),
    }
}

// ---- what the application sees ----

/// Each message that came tells the topic that it was sent to.
#[then("every message told the topic that it was sent to")]
fn topics_told(world: &mut World) -> Step {
    for delivery in &world.deliveries {
        let value = delivery.message.text();
        let sent = world.sent.iter().find(|sent| sent.message.value == Value::Text(value.clone()));
        let sent = sent.ok_or_else(|| Trouble(format!("nobody sent {value:?}")))?;
        let topic = world.topic(&sent.topic)?;
        world.judge(&["API-4.4.1", "WIRE-7.10"], delivery.message.topic == topic, || {
            format!("{value:?} was sent to {topic} and came from {}", delivery.message.topic)
        });
    }
    if world.deliveries.is_empty() { Err(Trouble::new("no message came")) } else { Ok(()) }
}

// ---- what the journal shows ----

/// The commands that opened watches of the scenario's namespace.
fn watches(world: &World, wire: &Wire) -> Result<Vec<(u64, CommandWatchScalableTopics)>, Trouble> {
    let namespace = own(world)?;
    let watch = |(record, _, command): (&Record, _, &Command)| match command {
        Command::WatchScalableTopics(c) if c.namespace == namespace => Some((record.n, c.clone())),
        _ => None,
    };
    Ok(wire.from_clients().filter_map(watch).collect())
}

/// The updates of namespace watches after a record.
fn updates(wire: &Wire, since: u64) -> Vec<Update> {
    let update = |(record, _, command): (&Record, _, &Command)| match command {
        Command::WatchScalableTopicsUpdate(c) if record.n > since => c.event.clone(),
        _ => None,
    };
    wire.from_brokers().filter_map(update).collect()
}

/// The client watches the namespace, with exactly these filters.
#[then(expr = "the client watches the namespace for topics with {string}")]
async fn watched(world: &mut World, properties: String) -> Step {
    world.observe().await;
    let wire = world.wire()?;
    let watches = watches(world, &wire)?;
    let Some((n, watch)) = watches.first() else {
        world.broken(&["WIRE-7.1"], "the client sent no WATCH_SCALABLE_TOPICS for the namespace")
    };
    let asked: BTreeSet<(String, String)> =
        watch.property_filters.iter().map(|filter| (filter.key.clone(), filter.value.clone())).collect();
    let wanted: BTreeSet<(String, String)> = pairs(&properties)?.into_iter().collect();
    world.judge(&["WIRE-7.2", "API-4.4.2", "API-4.4.3", "WIRE-7.1"], asked == wanted, || {
        world.rests_on(Some(*n));
        format!("the watch asks for topics with {asked:?} instead of {wanted:?}")
    });
    Ok(())
}

/// The watch that was opened again carries the hash of exactly these topics.
#[then(expr = "the namespace watch was opened again since the mark with the hash of topics {string}")]
async fn reopened(world: &mut World, topics: String) -> Step {
    let mark = marked(world)?;
    let again = |world: &World| -> Result<_, Trouble> {
        let wire = world.wire()?;
        Ok(watches(world, &wire)?.into_iter().find(|(n, _)| *n > mark))
    };
    world.eventually(|world| Ok(again(world)?.is_some())).await?;
    let Some((n, watch)) = again(world)? else {
        world.broken(&["WIRE-11.8", "WIRE-7.7"], "the namespace watch was not opened again")
    };
    let names: Vec<String> =
        topics.split(',').map(|alias| world.topic(alias.trim())).collect::<Result<_, _>>()?;
    let expected = topic_set_hash(&names);
    world.judge(&["WIRE-7.7"], watch.current_hash.as_deref() == Some(&expected), || {
        world.rests_on(Some(n));
        let carried = watch.current_hash.as_deref().unwrap_or("none");
        format!("the watch was opened again with the hash {carried} instead of {expected}")
    });
    Ok(())
}

/// The broker left the snapshot out: the scenario is about a set that did not change.
#[then("no snapshot of the namespace went to the client since the mark")]
fn no_snapshot(world: &mut World) -> Step {
    let updates = updates(&world.wire()?, marked(world)?);
    match updates.iter().any(|update| matches!(update, Update::Snapshot(_))) {
        true => Err(Trouble::new("a snapshot went to the client, so the hash was another one")),
        false => Ok(()),
    }
}

/// The broker sent a snapshot: the scenario is about a set that changed meanwhile.
#[then("a snapshot of the namespace went to the client since the mark")]
async fn a_snapshot(world: &mut World) -> Step {
    world.observe().await;
    let updates = updates(&world.wire()?, marked(world)?);
    match updates.iter().any(|update| matches!(update, Update::Snapshot(_))) {
        true => Ok(()),
        false => Err(Trouble::new("no snapshot went to the client")),
    }
}

/// One diff both removed and added a topic: the scenario is about the order of the two.
#[then(expr = "a diff that removes and adds {topic} went to the client")]
fn replaced_in_diff(world: &mut World, topic: Topic) -> Step {
    let name = world.topic(&topic.0)?;
    let both = |update: &Update| match update {
        Update::Diff(ScalableTopicsDiff { added, removed }) => {
            added.contains(&name) && removed.contains(&name)
        }
        Update::Snapshot(_) => false,
    };
    match updates(&world.wire()?, 0).iter().any(both) {
        true => Ok(()),
        false => Err(Trouble::new("no diff names the topic as removed and as added")),
    }
}

/// Each of these topics was looked up and registered for by itself.
#[then(expr = "{stream} has a layout watch and a registration of its own for each of the topics {string}")]
async fn own_sessions(world: &mut World, name: StreamName, topics: String) -> Step {
    world.observe().await;
    let wire = world.wire()?;
    let subscription = world.stream(&name.0)?.subscription;
    let mut ids = BTreeSet::new();
    for alias in topics.split(',').map(str::trim) {
        let topic = world.topic(alias)?;
        let watched = wire.watches().iter().any(|watch| watch.command.topic == topic);
        world.judge(&["WIRE-7.9"], watched, || format!("{topic} has no layout watch"));
        let register = |(record, conn, command): (&Record, _, &Command)| match command {
            Command::ScalableTopicSubscribe(c) if c.topic == topic && c.subscription == subscription => {
                Some((record.n, (conn, c.consumer_id)))
            }
            _ => None,
        };
        let Some((n, id)) = wire.from_clients().find_map(register) else {
            world.broken(&["WIRE-7.9"], format!("nobody registered for {topic}"))
        };
        world.judge(&["WIRE-7.9"], ids.insert(id), || {
            world.rests_on(Some(n));
            format!("{topic} is registered for under the consumer id of another topic")
        });
    }
    Ok(())
}

/// What the client had of a topic is given back.
#[then(expr = "the client has let go of {topic}")]
async fn let_go(world: &mut World, topic: Topic) -> Step {
    let held = |world: &World| -> Result<Option<(u64, &'static str)>, Trouble> {
        let subscriptions = subscriptions_of(world, &topic.0)?;
        if subscriptions.is_empty() {
            return Err(Trouble::new("the client never attached to the topic"));
        }
        let attached = subscriptions.iter().find(|s| s.ended.is_none());
        let registrations = registrations_for(&world.wire()?, &world.topic(&topic.0)?);
        let registered = registrations.iter().find(|r| r.ended.is_none());
        let attached = attached.map(|s| (s.n, "attached to"));
        Ok(attached.or(registered.map(|r| (r.n, "registered for"))))
    };
    world.eventually(|world| Ok(held(world)?.is_none())).await?;
    if let Some((n, how)) = held(world)? {
        world.rests_on(Some(n));
        let message = format!("the client is still {how} a topic that left the set");
        world.broken(&["API-4.4.5", "WIRE-7.5"], message);
    }
    Ok(())
}

/// No ACK went to any consumer of the topic's segments.
#[then(expr = "nothing of {topic} was acknowledged")]
async fn nothing_acknowledged(world: &mut World, topic: Topic) -> Step {
    world.settle().await;
    let subscriptions = subscriptions_of(world, &topic.0)?;
    let wire = world.wire()?;
    for record in wire.records().iter().filter(|r| r.direction == Direction::ToBroker) {
        let Some(Command::Ack(ack)) = record.frame().map(|frame| &frame.command) else { continue };
        let of_topic = subscriptions.iter().any(|s| {
            Some(s.conn) == record.conn && s.command.consumer_id == ack.consumer_id && s.n < record.n
        });
        world.judge(&["IMPL-6.9", "IMPL-6.8"], !of_topic, || {
            world.rests_on(Some(record.n));
            "a message was acknowledged, and the application acknowledged none".to_owned()
        });
    }
    if subscriptions.is_empty() {
        Err(Trouble::new("the client never attached to the topic"))
    } else {
        Ok(())
    }
}
