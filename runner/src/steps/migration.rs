//! Steps about classic topics, a classic client beside the one under test, and the migration to a scalable topic.
//!
//! Until it is migrated a topic has its `persistent://` name here, from then on its `topic://` name.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::Method;
use cucumber::{given, then, when};
use serde_json::json;
use stc_proto::TopicName;
use stc_proto::name::Domain;
use stc_proto::pulsar::ServerError;

use super::params::{Topic, cycled_keys};
use super::sends::await_sends;
use super::stored::all;
use crate::client::{MessageId, Outgoing, Value};
use crate::judge::{Step, Trouble};
use crate::stored::classic::{ClassicClient, ClassicMessage, partition_of, partitions};
use crate::world::{Sent, THE, World};

/// Who sent what the classic client sent.
const CLASSIC: &str = "the classic client";

// ---- topics ----

/// A classic topic of this many partitions, addressed by its `persistent://` name.
#[given(expr = "a classic topic with {int} partition(s)")]
async fn partitioned(world: &mut World, partitions: u32) -> Step {
    name(world, THE, "public/default");
    make_partitions(world, Method::PUT, THE, partitions).await
}

/// A classic topic without partitions, addressed by its `persistent://` name.
#[given("a classic topic without partitions")]
async fn unpartitioned(world: &mut World) -> Step {
    name(world, THE, "public/default");
    let path = classic_path(world, THE)?;
    world.admin(Method::PUT, &path, None).await?;
    Ok(())
}

/// The same in the scenario's namespace.
#[given(expr = "classic topic {string} in the namespace with {int} partition(s)")]
async fn in_namespace(world: &mut World, alias: String, partitions: u32) -> Step {
    let namespace = world.namespace.clone().ok_or_else(|| Trouble::new("no step made a namespace"))?;
    name(world, &alias, &namespace);
    make_partitions(world, Method::PUT, &alias, partitions).await
}

/// A `persistent://` name under which nothing was made yet.
#[given("the name of an absent classic topic")]
fn absent(world: &mut World) {
    name(world, THE, "public/default");
}

/// Partitions are added to a classic topic.
#[when(expr = "{topic} gets {int} partitions")]
async fn more_partitions(world: &mut World, topic: Topic, partitions: u32) -> Step {
    make_partitions(world, Method::POST, &topic.0, partitions).await
}

/// From here on the application writes the topic without its tenant, namespace and domain.
#[given("the topic is called by its short name")]
fn short_name(world: &mut World) -> Step {
    let name = TopicName::parse(&world.topic(THE)?)?;
    world.topics.insert("full".to_owned(), name.to_string());
    world.topics.insert(THE.to_owned(), name.local().to_owned());
    Ok(())
}

/// From here on the application writes `persistent://` for the topic's domain.
#[given("the topic is called by its persistent name")]
#[when("the topic is called by its persistent name")]
fn persistent_name(world: &mut World) -> Step {
    let name = TopicName::parse(&world.topic(THE)?)?;
    world.topics.insert("full".to_owned(), name.to_string());
    world.topics.insert(THE.to_owned(), name.with_domain(Domain::Persistent).to_string());
    Ok(())
}

fn name(world: &mut World, alias: &str, namespace: &str) {
    let local = world.fresh_name(alias);
    world.topics.insert(alias.to_owned(), format!("persistent://{namespace}/{local}"));
}

fn classic_path(world: &World, alias: &str) -> Result<String, Trouble> {
    let name = TopicName::parse(&world.topic(alias)?)?;
    Ok(format!("/admin/v2/persistent/{}/{}", name.namespace(), name.local()))
}

async fn make_partitions(world: &mut World, method: Method, alias: &str, partitions: u32) -> Step {
    let path = format!("{}/partitions", classic_path(world, alias)?);
    world.admin(method, &path, Some(json!(partitions))).await?;
    Ok(())
}

// ---- the migration ----

/// The topic becomes a scalable one. A client need not tell the broker that it knows scalable topics (compatibility §1),
/// so the migration is forced.
#[when(expr = "{topic} is migrated")]
async fn migrated(world: &mut World, topic: Topic) -> Step {
    let path = format!("{}/migrate?force=true", world.scalable_path(&topic.0)?);
    world.admin(Method::POST, &path, None).await?;
    let name = TopicName::parse(&world.topic(&topic.0)?)?.with_domain(Domain::Topic);
    world.topics.insert(topic.0, name.to_string());
    world.settle().await;
    Ok(())
}

/// A classic client is attached to the topic, so that the broker refuses to migrate it.
#[when(expr = "a migration of {topic} is refused since a classic client is attached")]
async fn refused(world: &mut World, topic: Topic) -> Step {
    let broker = world.broker().await;
    let mut client = ClassicClient::new(&broker)?;
    let place = stored_names(world, &topic.0).await?.into_iter().next();
    let place = place.ok_or_else(|| Trouble::new("the topic has no partition"))?;
    let opened = client.produce_to(&place).await?;
    opened.map_err(|e| Trouble(format!("the classic client cannot attach: {e:?}")))?;
    let path = format!("{}/migrate", world.scalable_path(&topic.0)?);
    let answer = broker.admin.call(Method::POST, &path, None).await?;
    if answer.status == 409 {
        Ok(())
    } else {
        Err(Trouble(format!(
            "POST {path}: {} {}, and a classic client is attached",
            answer.status, answer.body
        )))
    }
}

// ---- the classic client ----

/// A classic client sends to the partitions, each key to the one that classic routing gives it. The application of the
/// client under test reads that too.
#[when(expr = "a classic client sends {int} message(s) with {int} key(s) to {topic}")]
async fn classic_sends(world: &mut World, count: usize, keys: usize, topic: Topic) -> Step {
    await_sends(world).await;
    let places = stored_names(world, &topic.0).await?;
    let broker = world.broker().await;
    let mut client = ClassicClient::new(&broker)?;
    for key in cycled_keys(count, keys) {
        let message: Outgoing = world.next_message(Some(key.clone()));
        let place = places.get(partition_of(&key, u32::try_from(places.len())?) as usize);
        let place = place.cloned().ok_or_else(|| Trouble::new("the topic has no partition"))?;
        let Value::Text(text) = &message.value else { return Err(Trouble::new("messages are texts")) };
        let payload = text.clone().into_bytes();
        let time = broker.cluster.as_ref().map_or_else(wall_clock, sim_broker::SimCluster::now);
        client.publish(ClassicMessage { topic: place, key, payload }, time).await?;
        let outcome = Some(Ok(MessageId { bytes: Vec::new() }));
        let producer = CLASSIC.to_owned();
        world.sent.push(Sent { producer, topic: topic.0.clone(), message, ticket: None, outcome });
    }
    Ok(())
}

/// The partitions of a migrated topic are terminated: the set-up that the scenario is about did come about.
#[then(expr = "a classic client can send to {topic} no more")]
async fn classic_refused(world: &mut World, topic: Topic) -> Step {
    let places = stored_names(world, &topic.0).await?;
    let mut client = ClassicClient::new(&world.broker().await)?;
    for place in places {
        match client.produce_to(&place).await? {
            Err(ServerError::TopicTerminatedError) => {}
            other => return Err(Trouble(format!("a classic producer on {place} gets {other:?}"))),
        }
    }
    Ok(())
}

/// The classic topics behind a topic: its partitions, or itself.
async fn stored_names(world: &mut World, alias: &str) -> Result<Vec<TopicName>, Trouble> {
    let name = TopicName::parse(&world.topic(alias)?)?.with_domain(Domain::Persistent);
    partitions(&world.broker().await.admin, &name).await
}

/// Milliseconds since 1970.
fn wall_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

// ---- judging ----

/// Every PRODUCER and SUBSCRIBE names a partition of the classic topic.
#[then(expr = "the client attached to the {int} partitions of {topic} by their names")]
fn by_their_names(world: &mut World, partitions: u32, topic: Topic) -> Step {
    let name = TopicName::parse(&world.topic(&topic.0)?)?;
    judge_names(world, &(0..partitions).map(|i| name.partition(i).to_string()).collect())
}

/// Every PRODUCER and SUBSCRIBE names the classic topic itself.
#[then(expr = "the client attached to {topic} by its own name")]
fn by_its_name(world: &mut World, topic: Topic) -> Step {
    let name = world.topic(&topic.0)?;
    judge_names(world, &BTreeSet::from([name]))
}

fn judge_names(world: &World, expected: &BTreeSet<String>) -> Step {
    let wire = world.wire()?;
    let produced: BTreeSet<String> = wire.producers().into_iter().map(|p| p.topic).collect();
    let subscribed = |durable: bool| -> BTreeSet<String> {
        let subscriptions = wire.subscriptions().into_iter().map(|s| s.command);
        subscriptions.filter(|c| c.durable.unwrap_or(true) == durable).map(|c| c.topic).collect()
    };
    let (queued, read) = (subscribed(true), subscribed(false));
    world.judge(&["WIRE-3.2"], world.producers.is_empty() || produced == *expected, || {
        format!("producers were opened on {produced:?}")
    });
    world.judge(&["COMPAT-1.5"], world.consumers.is_empty() || queued == *expected, || {
        format!("queue consumers subscribed to {queued:?}")
    });
    world.judge(&["COMPAT-1.6"], world.reading.readers.is_empty() || read == *expected, || {
        format!("readers were opened on {read:?}")
    });
    Ok(())
}

/// What is stored in the classic topic or its partitions, and not in segments.
#[then(expr = "the classic part of {topic} holds {int} messages")]
async fn classic_part(world: &mut World, topic: Topic, count: usize) -> Step {
    let messages = all(world, &topic.0).await?;
    let held = messages.iter().filter(|m| m.segment.is_none()).count();
    world.judge(&["COMPAT-1.4", "IMPL-2.1"], held == count, || {
        format!("{held} messages are in the classic topic, and {} elsewhere", messages.len() - held)
    });
    Ok(())
}

/// What was sent to a short name is in `persistent://public/default/` and that name.
#[then("the messages are stored in the persistent topic of that name")]
async fn in_persistent(world: &mut World) -> Step {
    let full = world.topic("full")?;
    let stored = all(world, "full").await?;
    let stored = stored.iter().filter(|m| m.segment.is_none()).count();
    world.judge(&["COMPAT-1.3"], stored == world.sent.len(), || {
        format!("{stored} of {} messages are in {full}", world.sent.len())
    });
    Ok(())
}
