//! Steps about producers and sends.

use std::rc::Rc;

use cucumber::{gherkin, given, then, when};
use futures_util::FutureExt as _;

use super::encryption::producer_option;
use super::packing::{batching, chunking, compression};
use super::params::{ClientName, ProducerName, Topic, column, cycled_keys, number, options};
use super::schema::schema;
use crate::client::{AccessMode, ClientOptions, Outgoing, ProducerOptions, SchemaKind};
use crate::judge::{Step, Trouble};
use crate::world::{Producer, Sent, Started, THE, World};

/// What a failed create can break; also what a failed send can, with the reasons that a scenario gives for it.
const CREATE: [&str; 13] = [
    "COMPAT-1.3",
    "API-3.1.6",
    "API-3.1.7",
    "CONF-3.9",
    "CONF-3.10",
    "DATA-6.3",
    "DATA-6.1",
    "API-7.2",
    "API-3.1.14",
    "DATA-1.1",
    "API-3.1.10",
    "API-3.1.15",
    "API-2.7",
];
const SEND: [&str; 39] = [
    "ERR-1.3",
    "ERR-2.12",
    "COMPAT-1.3",
    "COMPAT-1.4",
    "IMPL-4.2",
    "IMPL-2.10",
    "API-3.1.6",
    "API-3.1.7",
    "CONF-3.9",
    "CONF-3.10",
    "KS-8.2",
    "WIRE-8.1.6",
    "WIRE-8.1.3",
    "COMPAT-3.5",
    "DATA-6.3",
    "DATA-6.1",
    "WIRE-10.2",
    "COMPAT-5.1",
    "IMPL-1.3",
    "IMPL-4.1",
    "IMPL-4.8",
    "API-2.8",
    "API-2.7",
    "API-2.10",
    "IMPL-1.5",
    "IMPL-1.7",
    "IMPL-1.6",
    "IMPL-1.4",
    "WIRE-4.10",
    "KS-5.2",
    "COMPAT-3.7",
    "API-3.3.3",
    "API-2.3",
    "STAB-4.1.1",
    "API-2.6",
    "WIRE-3.2",
    "API-3.1.14",
    "API-3.1.10",
    "IMPL-4.5",
];

/// A producer with the SDK's defaults.
#[given(expr = "{producer} on {topic}")]
#[when(expr = "the application creates {producer} on {topic}")]
async fn producer(world: &mut World, name: ProducerName, topic: Topic) -> Step {
    create(world, THE, &name.0, &topic.0, ProducerOptions::default()).await
}

/// A producer with options: name, access, schema, initial sequence id, batching (`off` or `N messages, M ms`), compression, chunking
/// (`off`, `on`, `N bytes`), encryption (names of keys), encryption failure, send timeout (ms), max pending, block if queue full, property NAME.
#[given(expr = "{producer} on {topic} with")]
#[when(expr = "the application creates {producer} on {topic} with")]
async fn producer_with(world: &mut World, name: ProducerName, topic: Topic, step: &gherkin::Step) -> Step {
    let options = producer_options(world, step)?;
    create(world, THE, &name.0, &topic.0, options).await
}

/// A producer of a second client object.
#[given(expr = "{producer} of {client} on {topic}")]
async fn producer_of(world: &mut World, name: ProducerName, client: ClientName, topic: Topic) -> Step {
    create(world, &client.0, &name.0, &topic.0, ProducerOptions::default()).await
}

pub(crate) async fn create(
    world: &mut World,
    client: &str,
    alias: &str,
    topic: &str,
    options: ProducerOptions,
) -> Step {
    let full = world.topic(topic)?;
    let object = world.client_object(client).await;
    let options = ProducerOptions { topic: Some(full), ..options };
    let (name, schema) = (options.name.clone(), options.schema.clone());
    let client = world.client().await;
    let created = world.within(client.create_producer(object, options)).await;
    let id = world.expect(&CREATE, created, "creating the producer");
    world.producers.insert(alias.to_owned(), Producer { id, topic: topic.to_owned(), name, schema });
    Ok(())
}

/// Creating a producer, under way while the scenario goes on.
#[when(expr = "the application starts to create {producer} on {topic}")]
async fn start_to_create(world: &mut World, name: ProducerName, topic: Topic) -> Step {
    start_create(world, name.0, topic.0, ProducerOptions::default()).await
}

pub(crate) async fn start_create(
    world: &mut World,
    alias: String,
    topic: String,
    options: ProducerOptions,
) -> Step {
    let options = ProducerOptions { topic: Some(world.topic(&topic)?), ..options };
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let task = tokio::task::spawn_local(async move {
        let (name, schema) = (options.name.clone(), options.schema.clone());
        let id = client.create_producer(object, options).await?;
        Ok(Started::Producer(alias, Producer { id, topic, name, schema }))
    });
    world.started.insert("create".to_owned(), task);
    world.settle().await;
    Ok(())
}

/// Creating a producer in the hope of a failure, which a later step judges.
#[when(expr = "the application tries to create {producer} on {topic}")]
async fn try_to_create(world: &mut World, name: ProducerName, topic: Topic) -> Step {
    try_create(world, &name.0, &topic.0, ProducerOptions::default()).await
}

/// The same with options.
#[when(expr = "the application tries to create {producer} on {topic} with")]
async fn try_to_create_with(
    world: &mut World,
    name: ProducerName,
    topic: Topic,
    step: &gherkin::Step,
) -> Step {
    let options = producer_options(world, step)?;
    try_create(world, &name.0, &topic.0, options).await
}

async fn try_create(world: &mut World, alias: &str, topic: &str, options: ProducerOptions) -> Step {
    let options = ProducerOptions { topic: Some(world.topic(topic)?), ..options };
    let object = world.client_object(THE).await;
    let (name, schema) = (options.name.clone(), options.schema.clone());
    let client = world.client().await;
    let created = world.within(client.create_producer(object, options)).await;
    let outcome = created.map(|id| {
        world.producers.insert(alias.to_owned(), Producer { id, topic: topic.to_owned(), name, schema });
    });
    world.tried(outcome);
    Ok(())
}

/// A producer whose topic was forgotten.
#[when("the application tries to create a producer without a topic")]
async fn try_without_topic(world: &mut World) -> Step {
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let created = world.within(client.create_producer(object, ProducerOptions::default())).await;
    world.tried(created.map(|_| ()));
    Ok(())
}

/// A client object with a service URL of its own.
#[when(expr = "the application tries to build a client for the service URL {string}")]
async fn try_service_url(world: &mut World, service_url: String) -> Step {
    let client = world.client().await;
    let options = ClientOptions { service_url, ..ClientOptions::default() };
    let opened = world.within(client.open(options)).await;
    world.tried(opened.map(|_| ()));
    Ok(())
}

pub(crate) fn producer_options(world: &World, step: &gherkin::Step) -> Result<ProducerOptions, Trouble> {
    let mut made = ProducerOptions::default();
    for (name, value) in options(step)? {
        match name.as_str() {
            "name" => made.name = Some(value),
            "access" => {
                made.access = match value.as_str() {
                    "shared" => AccessMode::Shared,
                    "exclusive" => AccessMode::Exclusive,
                    "exclusive-with-fencing" => AccessMode::ExclusiveWithFencing,
                    "wait-for-exclusive" => AccessMode::WaitForExclusive,
                    other => return Err(Trouble(format!("no such access mode: {other}"))),
                }
            }
            "schema" => made.schema = schema(world, &value)?,
            "initial sequence id" => made.initial_sequence_id = Some(number(&name, &value)?),
            "batching" => made.batching = Some(batching(&value)?),
            "compression" => made.compression = Some(compression(&value)?),
            "chunking" => made.chunking = Some(chunking(&value)?),
            "send timeout" => made.send_timeout_ms = Some(number(&name, value.trim_end_matches("ms"))?),
            "max pending" => made.max_pending = Some(number(&name, &value)?),
            "block if queue full" => made.block_if_queue_full = Some(value == "yes"),
            other if producer_option(&mut made.encryption, other, &value)? => {}
            other => match other.strip_prefix("property ") {
                Some(property) => made.properties.push((property.to_owned(), value)),
                None => return Err(Trouble(format!("a producer has no option {other:?}"))),
            },
        }
    }
    Ok(made)
}

// ---- sends that are waited for ----

/// One message without a key.
#[when(expr = "{producer} sends a message")]
async fn send_one(world: &mut World, name: ProducerName) -> Step {
    send(world, &name.0, None).await
}

/// One message with a key, which may be empty.
#[when(expr = "{producer} sends a message with key {string}")]
async fn send_keyed(world: &mut World, name: ProducerName, key: String) -> Step {
    send(world, &name.0, Some(key)).await
}

/// Messages one after another, each waited for, without keys.
#[given(expr = "{producer} has sent {int} message(s)")]
#[when(expr = "{producer} sends {int} message(s) without keys")]
async fn send_many(world: &mut World, name: ProducerName, count: usize) -> Step {
    for _ in 0..count {
        send(world, &name.0, None).await?;
    }
    Ok(())
}

/// Messages one after another, each waited for, with keys in turn.
#[given(expr = "{producer} has sent {int} message(s) with {int} key(s)")]
#[when(expr = "{producer} sends {int} message(s) with {int} key(s)")]
async fn send_keys(world: &mut World, name: ProducerName, count: usize, keys: usize) -> Step {
    for key in cycled_keys(count, keys) {
        send(world, &name.0, Some(key)).await?;
    }
    Ok(())
}

/// One message for each key in the step's table.
#[when(expr = "{producer} sends one message for each key")]
async fn send_listed(world: &mut World, name: ProducerName, step: &gherkin::Step) -> Step {
    for key in column(step)? {
        send(world, &name.0, Some(key)).await?;
    }
    Ok(())
}

/// One message with attributes: key, value (of the producer's schema), property NAME, event time, sequence id, deliver after, deliver at,
/// replicate to.
#[when(expr = "{producer} sends a message with")]
async fn send_with(world: &mut World, name: ProducerName, step: &gherkin::Step) -> Step {
    let kind = world.producer(&name.0)?.schema;
    let message = outgoing(world, &kind, step)?;
    deliver(world, &name.0, message).await
}

async fn send(world: &mut World, alias: &str, key: Option<String>) -> Step {
    let message = world.next_message(key);
    deliver(world, alias, message).await
}

pub(crate) async fn deliver(world: &mut World, alias: &str, message: Outgoing) -> Step {
    let producer = world.producer(alias)?;
    let client = world.client().await;
    let outcome = world.within(client.send(producer.id, message.clone())).await;
    let id = world.expect(&SEND, outcome, "a send");
    world.sent.push(Sent {
        producer: alias.to_owned(),
        topic: producer.topic,
        message,
        ticket: None,
        outcome: Some(Ok(id)),
    });
    Ok(())
}

/// A send in the hope of a failure, which a later step judges.
#[when(expr = "{producer} tries to send a message")]
async fn try_send(world: &mut World, name: ProducerName) -> Step {
    let message = world.next_message(None);
    try_deliver(world, &name.0, message).await
}

/// The same with a key.
#[when(expr = "{producer} tries to send a message with key {string}")]
async fn try_send_keyed(world: &mut World, name: ProducerName, key: String) -> Step {
    let message = world.next_message(Some(key));
    try_deliver(world, &name.0, message).await
}

/// The same with attributes.
#[when(expr = "{producer} tries to send a message with")]
async fn try_send_with(world: &mut World, name: ProducerName, step: &gherkin::Step) -> Step {
    let kind = world.producer(&name.0)?.schema;
    let message = outgoing(world, &kind, step)?;
    try_deliver(world, &name.0, message).await
}

pub(crate) async fn try_deliver(world: &mut World, alias: &str, message: Outgoing) -> Step {
    let producer = world.producer(alias)?;
    let client = world.client().await;
    let outcome = world.within(client.send(producer.id, message.clone())).await;
    world.tried(outcome.clone().map(|_| ()));
    world.sent.push(Sent {
        producer: alias.to_owned(),
        topic: producer.topic,
        message,
        ticket: None,
        outcome: Some(outcome),
    });
    Ok(())
}

fn outgoing(world: &World, kind: &SchemaKind, step: &gherkin::Step) -> Result<Outgoing, Trouble> {
    let mut message = world.next_message(None);
    for (name, value) in options(step)? {
        match name.as_str() {
            "key" => message.key = Some(value),
            "value" => message.value = super::schema::value(kind, &value)?,
            "event time" => message.event_time_ms = Some(number(&name, &value)?),
            "sequence id" => message.sequence_id = Some(number(&name, &value)?),
            "deliver after" => message.deliver_after_ms = Some(number(&name, value.trim_end_matches("ms"))?),
            "deliver at" => message.deliver_at_ms = Some(number(&name, &value)?),
            "replicate to" => message.replicate_to = value.split(", ").map(str::to_owned).collect(),
            other => match other.strip_prefix("property ") {
                Some(property) => message.properties.push((property.to_owned(), value)),
                None => return Err(Trouble(format!("a message has no attribute {other:?}"))),
            },
        }
    }
    Ok(message)
}

// ---- asynchronous sends ----

/// Asynchronous sends without keys, called one after another; nothing is waited for.
#[when(expr = "{producer} starts to send {int} message(s)")]
async fn start_many(world: &mut World, name: ProducerName, count: usize) -> Step {
    let messages = numbered(world, std::iter::repeat_n(None, count));
    start(world, &name.0, messages).await
}

/// Asynchronous sends with keys in turn.
#[given(expr = "{producer} has started to send {int} message(s) with {int} key(s)")]
#[when(expr = "{producer} starts to send {int} message(s) with {int} key(s)")]
async fn start_keys(world: &mut World, name: ProducerName, count: usize, keys: usize) -> Step {
    let messages = numbered(world, cycled_keys(count, keys).map(Some));
    start(world, &name.0, messages).await
}

/// One asynchronous send for each key in the step's table.
#[when(expr = "{producer} starts to send one message for each key")]
async fn start_listed(world: &mut World, name: ProducerName, step: &gherkin::Step) -> Step {
    let messages = numbered(world, column(step)?.into_iter().map(Some));
    start(world, &name.0, messages).await
}

/// The next messages, one for each key.
pub(crate) fn numbered(world: &World, keys: impl Iterator<Item = Option<String>>) -> Vec<Outgoing> {
    let first = world.sent.len();
    keys.enumerate().map(|(i, key)| world.message(first + i, key)).collect()
}

pub(crate) async fn start(world: &mut World, alias: &str, messages: Vec<Outgoing>) -> Step {
    let producer = world.producer(alias)?;
    let client = world.client().await;
    let started = world.within(client.send_async(producer.id, messages.clone())).await;
    let tickets = world.expect(&SEND, started, "starting the sends");
    if tickets.len() != messages.len() {
        return Err(Trouble::new("the client under test gave another number of tickets than of sends"));
    }
    for (message, ticket) in messages.into_iter().zip(tickets) {
        world.sent.push(Sent {
            producer: alias.to_owned(),
            topic: producer.topic.clone(),
            message,
            ticket: Some(ticket),
            outcome: None,
        });
    }
    Ok(())
}

/// Waits for the outcome of every send.
pub(crate) async fn await_sends(world: &mut World) {
    let client = world.client().await;
    for sent in &mut world.sent {
        if let Some(ticket) = sent.ticket.take() {
            sent.outcome = Some(client.outcome(ticket).await);
        }
    }
}

/// Every send so far has ended, however.
#[when("every send has ended")]
async fn every_send_ended(world: &mut World) {
    await_sends(world).await;
}

/// Every send so far succeeds.
#[then("every send succeeds")]
async fn every_send_succeeds(world: &mut World) -> Step {
    await_sends(world).await;
    for (index, sent) in world.sent.iter().enumerate() {
        if let Some(Err(error)) = &sent.outcome {
            let what = format!("send {} of {}", index + 1, world.sent.len());
            world.surprise(&SEND, error.clone(), &what);
        }
    }
    if world.sent.is_empty() { Err(Trouble::new("nothing was sent")) } else { Ok(()) }
}

/// The newest sends succeeded, whatever became of those before.
#[then(expr = "the last {int} sends succeeded")]
async fn last_succeeded(world: &mut World, count: usize) -> Step {
    await_sends(world).await;
    for sent in world.sent.iter().rev().take(count) {
        if let Some(Err(error)) = &sent.outcome {
            world.surprise(&SEND, error.clone(), "a send");
        }
    }
    Ok(())
}

/// No send that the application started has ended yet.
#[then("no started send has ended")]
async fn none_ended(world: &mut World) -> Step {
    world.settle().await;
    let client = world.client().await;
    for sent in &mut world.sent {
        if let Some(ticket) = sent.ticket
            && let Some(outcome) = client.outcome(ticket).now_or_never()
        {
            sent.ticket = None;
            let requirements = ["IMPL-4.4", "IMPL-4.7", "ERR-3.11", "API-3.3.1", "ERR-2.11"];
            world.broken(
                &requirements,
                format!("a send ended before anything could complete it: {outcome:?}"),
            );
        }
    }
    Ok(())
}

/// Every send that was started and not waited for has failed by now.
#[then("the started sends have failed")]
async fn started_failed(world: &mut World) -> Step {
    let client = world.client().await;
    let mut judged = 0;
    for index in 0..world.sent.len() {
        let Some(ticket) = world.sent.get_mut(index).and_then(|s| s.ticket.take()) else { continue };
        judged += 1;
        match client.outcome(ticket).now_or_never() {
            Some(Err(_)) => {}
            Some(Ok(_)) => {
                world.broken(&["IMPL-4.7", "IMPL-4.6"], "the send succeeded, and nothing could store it")
            }
            None => world.broken(&["IMPL-4.6", "ERR-2.4"], "the send is still pending"),
        }
    }
    if judged == 0 { Err(Trouble::new("no send was started")) } else { Ok(()) }
}

/// The producer reports the canonical name of its topic.
#[then(expr = "{producer} names {topic} as its topic")]
async fn names_topic(world: &mut World, name: ProducerName, topic: Topic) -> Step {
    let producer = world.producer(&name.0)?;
    let expected = world.topic(&topic.0)?;
    let described = world.client().await.describe_producer(producer.id).await;
    let described = world.expect(&["DATA-1.3"], described, "asking the producer for its topic");
    world.judge(&["DATA-1.3"], described.topic == expected, || {
        format!("the producer's topic is {:?} instead of {expected:?}", described.topic)
    });
    Ok(())
}

// ---- flush and close ----

/// Flush, waited for.
#[when(expr = "the application flushes {producer}")]
async fn flush(world: &mut World, name: ProducerName) -> Step {
    let producer = world.producer(&name.0)?;
    let client = world.client().await;
    let flushed = world.within(client.flush(producer.id)).await;
    world.expect(&["API-3.3.1"], flushed, "flush");
    Ok(())
}

/// Flush, under way while the scenario goes on.
#[when(expr = "the application starts to flush {producer}")]
async fn start_flush(world: &mut World, name: ProducerName) -> Step {
    let producer = world.producer(&name.0)?.id;
    let client = world.client().await;
    let task = tokio::task::spawn_local(async move { client.flush(producer).await.map(|()| Started::Done) });
    world.started.insert("flush".to_owned(), task);
    world.settle().await;
    Ok(())
}

/// Close of a producer, waited for.
#[when(expr = "the application closes {producer}")]
async fn close(world: &mut World, name: ProducerName) -> Step {
    let producer = world.producer(&name.0)?;
    let client = world.client().await;
    let closed = world.within(client.close_producer(producer.id)).await;
    world.expect(&["API-3.3.5", "API-3.3.4", "API-3.3.3"], closed, "closing the producer");
    Ok(())
}

/// Close of a producer, under way while the scenario goes on.
#[when(expr = "the application starts to close {producer}")]
async fn start_close(world: &mut World, name: ProducerName) -> Step {
    let producer = world.producer(&name.0)?.id;
    let client = world.client().await;
    let task =
        tokio::task::spawn_local(
            async move { client.close_producer(producer).await.map(|()| Started::Done) },
        );
    world.started.insert("close".to_owned(), task);
    world.settle().await;
    Ok(())
}

/// Close of a client object, waited for.
#[when(expr = "the application closes {client}")]
async fn close_client(world: &mut World, name: ClientName) -> Step {
    let object = world.client_object(&name.0).await;
    let client = world.client().await;
    let closed = world.within(client.close(object)).await;
    world.expect(&["API-2.3"], closed, "closing the client");
    Ok(())
}

/// Close of a client object, under way while the scenario goes on.
#[when(expr = "the application starts to close {client}")]
async fn start_close_client(world: &mut World, name: ClientName) -> Step {
    let object = world.client_object(&name.0).await;
    let client: Rc<_> = world.client().await;
    let task = tokio::task::spawn_local(async move { client.close(object).await.map(|()| Started::Done) });
    world.started.insert("close".to_owned(), task);
    world.settle().await;
    Ok(())
}
