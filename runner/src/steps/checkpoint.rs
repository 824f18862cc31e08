//! Steps about checkpoint consumers: creating, receiving, capturing and restoring positions.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use cucumber::{gherkin, given, then, when};

use super::encryption::consumer_option;
use super::params::{ClientName, ReaderName, Topic, number, options};
use super::schema::schema;
use super::sends::await_sends;
use crate::client::{
    Boundary, Checkpoint, CheckpointOptions, ConsumerId, MessageId, Received, StartPosition,
};
use crate::judge::{Step, Trouble};
use crate::world::{THE, World};

/// What a failed create can break.
const CREATE: [&str; 11] = [
    "COMPAT-1.6",
    "COMPAT-1.3",
    "DATA-1.1",
    "API-4.1",
    "API-4.3.8",
    "API-4.3.9",
    "API-4.3.6",
    "API-4.3.10",
    "API-4.3.11",
    "IMPL-5.15",
    "API-2.7",
];
/// What messages that do not come, come again or come in the wrong order can break.
const RECEIVE: [&str; 22] = [
    "COMPAT-1.6",
    "COMPAT-1.3",
    "CONF-3.9",
    "CONF-3.10",
    "API-2.8",
    "API-2.7",
    "API-4.3.8",
    "API-4.3.7",
    "DATA-5.5",
    "API-4.3.2",
    "API-4.3.6",
    "IMPL-7.3",
    "API-4.3.14",
    "API-4.3.12",
    "API-4.3.9",
    "IMPL-5.15",
    "IMPL-5.13",
    "WIRE-6.3.2",
    "API-4.3.10",
    "API-4.3.11",
    "IMPL-5.14",
    "API-4.1",
];
/// How long a receive waits for a message that must come.
const PATIENCE_MS: u64 = 30_000;

/// What scenarios about positions remember.
#[derive(Debug, Default)]
pub struct Reading {
    /// Checkpoint consumers by alias.
    pub readers: BTreeMap<String, Reader>,
    /// Captured checkpoints by name.
    pub checkpoints: BTreeMap<String, Captured>,
    /// Identifiers that steps name.
    pub ids: BTreeMap<String, MessageId>,
}

/// A checkpoint consumer and what it gave.
#[derive(Debug)]
pub struct Reader {
    /// Handle.
    pub id: ConsumerId,
    /// The values that lie before its start, where that is a captured checkpoint.
    pub before: BTreeSet<String>,
    /// What the application received, in order.
    pub received: Vec<Received>,
}

/// A captured checkpoint.
#[derive(Debug)]
pub struct Captured {
    /// As it was captured.
    pub checkpoint: Checkpoint,
    /// The values that the application had received by then, those before the consumer's own start included.
    pub before: BTreeSet<String>,
}

/// A position as steps write it: `earliest`, `latest`, `checkpoint "x"`.
#[derive(Debug, Clone, PartialEq, Eq, cucumber::Parameter)]
#[param(name = "position", regex = r#"earliest|latest|checkpoint "[^"]+""#)]
pub struct Position(String);

impl FromStr for Position {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Position(text.to_owned()))
    }
}

impl Position {
    fn resolve(&self, world: &World) -> Result<(StartPosition, BTreeSet<String>), Trouble> {
        match self.0.as_str() {
            "earliest" => Ok((StartPosition::Boundary(Boundary::Earliest), BTreeSet::new())),
            "latest" => Ok((StartPosition::Boundary(Boundary::Latest), BTreeSet::new())),
            text => {
                let captured = captured(world, text.split('"').nth(1).unwrap_or_default())?;
                Ok((StartPosition::Checkpoint(captured.checkpoint.clone()), captured.before.clone()))
            }
        }
    }
}

pub(crate) fn captured<'w>(world: &'w World, name: &str) -> Result<&'w Captured, Trouble> {
    let captured = world.reading.checkpoints.get(name);
    captured.ok_or_else(|| Trouble(format!("no step captured a checkpoint {name:?}")))
}

pub(crate) fn reader<'w>(world: &'w World, alias: &str) -> Result<&'w Reader, Trouble> {
    let reader = world.reading.readers.get(alias);
    reader.ok_or_else(|| Trouble(format!("no step made a checkpoint consumer {alias:?}")))
}

// ---- creating ----

/// A checkpoint consumer without a group that starts at a position.
#[given(expr = "{reader} on {topic} from {position}")]
#[when(expr = "the application creates {reader} on {topic} from {position}")]
async fn from(world: &mut World, name: ReaderName, topic: Topic, position: Position) -> Step {
    create(world, THE, &name.0, &topic.0, Some(position), CheckpointOptions::default()).await
}

/// The same of a second client object.
#[given(expr = "{reader} of {client} on {topic} from {position}")]
#[when(expr = "the application creates {reader} of {client} on {topic} from {position}")]
async fn of_client_from(
    world: &mut World,
    name: ReaderName,
    client: ClientName,
    topic: Topic,
    position: Position,
) -> Step {
    create(world, &client.0, &name.0, &topic.0, Some(position), CheckpointOptions::default()).await
}

/// A checkpoint consumer that is given no position.
#[given(expr = "{reader} on {topic}")]
#[when(expr = "the application creates {reader} on {topic}")]
async fn without_position(world: &mut World, name: ReaderName, topic: Topic) -> Step {
    create(world, THE, &name.0, &topic.0, None, CheckpointOptions::default()).await
}

/// A checkpoint consumer with options: start, group, name, receiver queue, private keys, decryption failure.
#[given(expr = "{reader} on {topic} with")]
#[when(expr = "the application creates {reader} on {topic} with")]
async fn with(world: &mut World, name: ReaderName, topic: Topic, step: &gherkin::Step) -> Step {
    let (position, options) = reader_options(world, step)?;
    create(world, THE, &name.0, &topic.0, position, options).await
}

/// The same of a second client object.
#[given(expr = "{reader} of {client} on {topic} with")]
#[when(expr = "the application creates {reader} of {client} on {topic} with")]
async fn of_client_with(
    world: &mut World,
    name: ReaderName,
    client: ClientName,
    topic: Topic,
    step: &gherkin::Step,
) -> Step {
    let (position, options) = reader_options(world, step)?;
    create(world, &client.0, &name.0, &topic.0, position, options).await
}

fn reader_options(
    world: &World,
    step: &gherkin::Step,
) -> Result<(Option<Position>, CheckpointOptions), Trouble> {
    let (mut position, mut made) = (None, CheckpointOptions::default());
    for (name, value) in options(step)? {
        match name.as_str() {
            "start" => position = Some(Position(value)),
            "group" => made.group = Some(value),
            "name" => made.name = Some(value),
            "schema" => made.schema = schema(world, &value)?,
            "receiver queue" => made.receiver_queue = Some(number(&name, &value)?),
            other if consumer_option(&mut made.encryption, other, &value)? => {}
            other => return Err(Trouble(format!("a checkpoint consumer has no option {other:?}"))),
        }
    }
    Ok((position, made))
}

async fn create(
    world: &mut World,
    client: &str,
    alias: &str,
    topic: &str,
    position: Option<Position>,
    options: CheckpointOptions,
) -> Step {
    let topic = Some(world.topic(topic)?);
    let (start, before) = position.map(|p| p.resolve(world)).transpose()?.unzip();
    let object = world.client_object(client).await;
    let client = world.client().await;
    let options = CheckpointOptions { topic, start, ..options };
    let created = world.within(client.create_checkpoint_consumer(object, options)).await;
    let id = world.expect(&CREATE, created, "creating the checkpoint consumer");
    let made = Reader { id, before: before.unwrap_or_default(), received: Vec::new() };
    world.reading.readers.insert(alias.to_owned(), made);
    Ok(())
}

/// A checkpoint consumer whose topic was forgotten.
#[when("the application tries to create a checkpoint consumer without a topic")]
async fn try_without_topic(world: &mut World) -> Step {
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let start = Some(StartPosition::Boundary(Boundary::Earliest));
    let options = CheckpointOptions { start, ..Default::default() };
    let created = world.within(client.create_checkpoint_consumer(object, options)).await;
    world.judge(&["API-4.3.1"], created.is_err(), || {
        "a checkpoint consumer was created although it was given no topic".to_owned()
    });
    world.tried(created.map(|_| ()));
    Ok(())
}

/// Closes a checkpoint consumer.
#[when(expr = "the application closes {reader}")]
async fn close(world: &mut World, name: ReaderName) -> Step {
    let id = reader(world, &name.0)?.id;
    let client = world.client().await;
    let closed = world.within(client.close_consumer(id)).await;
    world.expect(&["API-4.3.12", "API-2.7"], closed, "closing the checkpoint consumer");
    world.settle().await;
    Ok(())
}

// ---- receiving ----

async fn next(world: &mut World, alias: &str, wait_ms: u64) -> Result<bool, Trouble> {
    let id = reader(world, alias)?.id;
    let received = world.client().await.receive(id, Some(wait_ms)).await;
    let message = world.expect(&RECEIVE, received, "receive");
    let came = message.is_some();
    if let Some(reader) = world.reading.readers.get_mut(alias) {
        reader.received.extend(message);
    }
    Ok(came)
}

/// Receives this many messages; each must come.
#[when(expr = "{reader} receives {int} message(s)")]
async fn receives(world: &mut World, name: ReaderName, count: usize) -> Step {
    for got in 0..count {
        if !next(world, &name.0, PATIENCE_MS).await? {
            let waited = PATIENCE_MS / 1000;
            world.broken(
                &RECEIVE,
                format!("{got} messages came instead of {count}, then none for {waited} s"),
            );
        }
    }
    Ok(())
}

/// Members of a group receive this many messages together, whoever gets them.
#[when(expr = "checkpoint consumers {string} and {string} receive {int} messages together")]
async fn receive_together(world: &mut World, one: String, other: String, count: usize) -> Step {
    let (mut got, mut waited) = (0, 0);
    while got < count {
        for alias in [&one, &other] {
            if next(world, alias, 20).await? {
                got += 1;
                waited = 0;
            } else {
                waited += 20;
            }
        }
        if waited > PATIENCE_MS {
            world.broken(&RECEIVE, format!("{got} messages came instead of {count}, then none"));
        }
    }
    Ok(())
}

/// Members of a group receive the last messages that were sent, whoever gets them, each once. What comes besides them is
/// what a member has to read again of segments that it gained.
#[when(expr = "checkpoint consumers {string} and {string} receive the last {int} messages together")]
async fn receive_the_last(world: &mut World, one: String, other: String, count: usize) -> Step {
    let all = published(world).await;
    let last: BTreeSet<String> = all.iter().rev().take(count).map(|(value, _)| value.clone()).collect();
    let mut waited = 0;
    loop {
        let mut came: Vec<String> = Vec::new();
        for alias in [&one, &other] {
            let own = reader(world, alias)?.received.iter().map(Received::text);
            came.extend(own.filter(|value| last.contains(value)));
        }
        let distinct: BTreeSet<&String> = came.iter().collect();
        world.judge(&RECEIVE, distinct.len() == came.len(), || {
            "the members received a message twice that was sent while both were there".to_owned()
        });
        if distinct.len() == last.len() {
            return Ok(());
        }
        if waited > PATIENCE_MS {
            world.broken(&RECEIVE, format!("{} of {count} messages came, then none", distinct.len()));
        }
        for alias in [&one, &other] {
            waited = if next(world, alias, 20).await? { 0 } else { waited + 20 };
        }
    }
}

/// A receive with a limit gives nothing.
#[then(expr = "a receive from {reader} gives nothing within {int} ms")]
async fn gives_nothing(world: &mut World, name: ReaderName, wait_ms: u64) -> Step {
    if next(world, &name.0, wait_ms).await? {
        let strange = reader(world, &name.0)?.received.last().map(Received::text).unwrap_or_default();
        world.broken(&RECEIVE, format!("{strange:?} came although nothing was outstanding"));
    }
    Ok(())
}

// ---- capturing ----

/// Captures the consumer's position as bytes.
#[when(expr = "the application takes checkpoint {string} of {reader}")]
async fn capture(world: &mut World, checkpoint: String, name: ReaderName) -> Step {
    let id = reader(world, &name.0)?.id;
    let client = world.client().await;
    let taken = world.within(client.checkpoint(id)).await;
    let taken = world.expect(&["API-4.3.8", "API-4.3.7", "IMPL-7.4"], taken, "taking a checkpoint");
    let reader = reader(world, &name.0)?;
    let before = reader.before.iter().cloned().chain(reader.received.iter().map(Received::text)).collect();
    world.reading.checkpoints.insert(checkpoint, Captured { checkpoint: taken, before });
    Ok(())
}

// ---- judging ----

/// The values of all sends that succeeded, in the order of the calls, with their keys.
async fn published(world: &mut World) -> Vec<(String, Option<String>)> {
    await_sends(world).await;
    world.sent_texts().map(|(value, message)| (value.to_owned(), message.key.clone())).collect()
}

fn judge_received(world: &World, who: &str, expected: &BTreeSet<String>, received: &[&Received]) {
    let mut seen = BTreeSet::new();
    for message in received {
        let value = message.text();
        world.judge(&RECEIVE, seen.insert(value.clone()), || format!("{who} received {value:?} twice"));
    }
    let missing: Vec<&String> = expected.difference(&seen).collect();
    world.judge(&RECEIVE, missing.is_empty(), || format!("{who} did not receive {missing:?}"));
    let strange: Vec<&String> = seen.difference(expected).collect();
    world.judge(&RECEIVE, strange.is_empty(), || {
        format!("{who} received {strange:?}, which lies outside of what it reads")
    });
}

/// The consumer gave every message whose send succeeded, once.
#[then(expr = "{reader} received every message exactly once")]
async fn everything(world: &mut World, name: ReaderName) -> Step {
    let expected: BTreeSet<String> = published(world).await.into_iter().map(|(value, _)| value).collect();
    let reader = reader(world, &name.0)?;
    judge_received(world, "the consumer", &expected, &reader.received.iter().collect::<Vec<_>>());
    if expected.is_empty() { Err(Trouble::new("nothing was sent")) } else { Ok(()) }
}

/// All consumers together gave every message whose send succeeded, once.
#[then("the checkpoint consumers together received every message exactly once")]
async fn everything_together(world: &mut World) -> Step {
    let expected: BTreeSet<String> = published(world).await.into_iter().map(|(value, _)| value).collect();
    let received: Vec<&Received> = world.reading.readers.values().flat_map(|r| &r.received).collect();
    judge_received(world, "one of the consumers", &expected, &received);
    if expected.is_empty() { Err(Trouble::new("nothing was sent")) } else { Ok(()) }
}

/// The consumer gave the last messages that were sent, once, and none of those before.
#[then(expr = "{reader} received exactly the last {int} messages")]
async fn the_last(world: &mut World, name: ReaderName, count: usize) -> Step {
    let published = published(world).await;
    let expected: BTreeSet<String> =
        published.into_iter().rev().take(count).map(|(value, _)| value).collect();
    let reader = reader(world, &name.0)?;
    judge_received(world, "the consumer", &expected, &reader.received.iter().collect::<Vec<_>>());
    Ok(())
}

/// The consumer gave what had not been received when the checkpoint was taken, once.
#[then(expr = "{reader} received exactly what lies behind checkpoint {string}")]
async fn behind(world: &mut World, name: ReaderName, checkpoint: String) -> Step {
    let published = published(world).await;
    let before = &captured(world, &checkpoint)?.before;
    let expected: BTreeSet<String> =
        published.into_iter().map(|(value, _)| value).filter(|value| !before.contains(value)).collect();
    let reader = reader(world, &name.0)?;
    judge_received(world, "the consumer", &expected, &reader.received.iter().collect::<Vec<_>>());
    if before.is_empty() || expected.is_empty() {
        return Err(Trouble::new("the checkpoint has everything on one side, so it divides nothing"));
    }
    Ok(())
}

/// The messages of each key came in the order in which they were published.
#[then(expr = "{reader} received the messages of each key in the order of publishing")]
async fn key_order(world: &mut World, name: ReaderName) -> Step {
    let published = published(world).await;
    let place: BTreeMap<&str, usize> =
        published.iter().enumerate().map(|(i, (value, _))| (value.as_str(), i)).collect();
    let mut last: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut compared = 0;
    for message in &reader(world, &name.0)?.received {
        let value = message.text();
        let (Some(key), Some(place)) = (message.key.clone(), place.get(value.as_str())) else { continue };
        if let Some((before, former)) = last.insert(key.clone(), (*place, value.clone())) {
            compared += 1;
            world.judge(&RECEIVE, before < *place, || {
                format!(
                    "{value:?} came after {former:?}, which was published later with the same key {key:?}"
                )
            });
        }
    }
    if compared == 0 { Err(Trouble::new("no two messages of one key were received")) } else { Ok(()) }
}

/// The consumer has given something: the share that the scenario is about is not empty.
#[then(expr = "{reader} has received something")]
fn something(world: &mut World, name: ReaderName) -> Step {
    match reader(world, &name.0)?.received.as_slice() {
        [] => Err(Trouble::new("the consumer received nothing, so the scenario shows nothing")),
        _ => Ok(()),
    }
}
