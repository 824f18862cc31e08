//! Steps about sends: one after another, asynchronous, and how they end.

use cucumber::{gherkin, given, then, when};
use futures_util::FutureExt as _;

use super::params::{ProducerName, column, cycled_keys, number, options};
use crate::client::{Outgoing, SchemaKind};
use crate::judge::{Step, Trouble};
use crate::world::{Sent, World};

/// What a failed send can break, with the reasons that a scenario gives for it.
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
