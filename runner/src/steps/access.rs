//! Steps about producers that ask for exclusive access.

use cucumber::{gherkin, given, then, when};
use stc_proto::Command;
use stc_proto::pulsar::ServerError;

use super::journal::{belongs, producers_of};
use super::params::{ClientName, ProducerName, Topic};
use super::produce::{create, producer_options, start_create};
use crate::client::ClientError;
use crate::judge::{Step, Trouble};
use crate::stored;
use crate::wire::segment_of;
use crate::world::World;

/// What a collision of producers can break.
const EXCLUSIVE: [&str; 5] = ["API-3.1.13", "API-3.1.15", "API-3.1.16", "API-3.1.17", "ERR-3.9"];

/// A producer with options, of a second client object.
#[given(expr = "{producer} of {client} on {topic} with")]
#[when(expr = "the application creates {producer} of {client} on {topic} with")]
async fn of_client_with(
    world: &mut World,
    name: ProducerName,
    client: ClientName,
    topic: Topic,
    step: &gherkin::Step,
) -> Step {
    let options = producer_options(world, step)?;
    create(world, &client.0, &name.0, &topic.0, options).await
}

/// Creating a producer with options, under way while the scenario goes on.
#[when(expr = "the application starts to create {producer} on {topic} with")]
async fn start_to_create_with(
    world: &mut World,
    name: ProducerName,
    topic: Topic,
    step: &gherkin::Step,
) -> Step {
    let options = producer_options(world, step)?;
    start_create(world, name.0, topic.0, options).await
}

/// Every active segment has an open producer of the client.
#[then(expr = "producers are open on every active segment of {topic}")]
async fn open_everywhere(world: &mut World, topic: Topic) -> Step {
    world.observe().await;
    let active: Vec<u64> = world.layout(&topic.0).await?.active().map(|s| s.id).collect();
    let producers = producers_of(world, &topic.0)?;
    for segment in active {
        let open =
            producers.iter().any(|p| segment_of(&p.topic) == Some(segment) && p.opened && p.ended.is_none());
        world.judge(&["IMPL-2.10"], open, || format!("no producer is open on segment {segment}"));
    }
    Ok(())
}

/// Some PRODUCER was refused because another one holds the topic.
#[then(expr = "a producer of {topic} was refused as busy or fenced")]
fn refused(world: &mut World, topic: Topic) -> Step {
    let refused = producers_of(world, &topic.0)?
        .into_iter()
        .any(|p| matches!(p.refused, Some(ServerError::ProducerBusy | ServerError::ProducerFenced)));
    if refused { Ok(()) } else { Err(Trouble::new("no PRODUCER was refused: nothing collided")) }
}

/// On each segment at most one PRODUCER was refused as busy: the client did not try again.
#[then(expr = "no refused producer of {topic} was tried again")]
async fn not_again(world: &mut World, topic: Topic) -> Step {
    world.settle().await;
    let producers = producers_of(world, &topic.0)?;
    for (i, refused) in producers.iter().enumerate().filter(|(_, p)| p.refused.is_some()) {
        let again = producers.iter().skip(i + 1).any(|p| p.topic == refused.topic && p.n > refused.n);
        world.judge(&["ERR-3.9"], !again, || {
            format!("PRODUCER went to {} again after it was refused", refused.topic)
        });
    }
    Ok(())
}

/// The create that was tried failed.
#[then(expr = "the create fails because another producer holds the topic")]
#[then(expr = "the send fails because another producer holds the topic")]
fn held(world: &mut World) -> Step {
    match world.outcome()? {
        Ok(()) => world.broken(&EXCLUSIVE, "it succeeded although another producer holds the topic"),
        Err(ClientError::Failed(_)) => Ok(()),
        Err(other) => world.surprise(&EXCLUSIVE, other, "the operation"),
    }
}

/// The create that was tried, or waited, succeeded.
#[then("the create succeeds and takes the topic over")]
fn taken_over(world: &mut World) -> Step {
    let outcome = world.outcome()?;
    world.expect(&["API-3.1.16", "API-3.1.17"], outcome, "creating the producer");
    Ok(())
}

/// The create in the background has not ended: its producer is not exclusive yet.
#[then("the create that was started waits for the topic")]
async fn waits(world: &mut World) -> Step {
    world.settle().await;
    let task = world.started.get("create").ok_or_else(|| Trouble::new("no create was started"))?;
    let waits = !task.is_finished();
    world.judge(&["API-3.1.17"], waits, || {
        "the create ended while another producer holds the topic".to_owned()
    });
    Ok(())
}

/// The newest PRODUCER asks for this access mode.
#[then(expr = "the last producer of {topic} was opened with the access mode {word}")]
async fn opened_as(world: &mut World, topic: Topic, mode: String) -> Step {
    world.observe().await;
    let full = world.topic(&topic.0)?;
    let wire = world.wire()?;
    let asked = wire
        .from_clients()
        .filter_map(|(_, _, c)| match c {
            Command::Producer(c) if belongs(&c.topic, &full) => Some(c.producer_access_mode()),
            _ => None,
        })
        .last();
    let asked = asked.ok_or_else(|| Trouble::new("no producer was opened"))?;
    world.judge(&["API-3.1.3"], format!("{asked:?}") == mode, || {
        format!("PRODUCER asks for {asked:?} instead of {mode}")
    });
    Ok(())
}

/// The brokers store this many messages.
#[then(expr = "{topic} stores {int} messages")]
async fn stores(world: &mut World, topic: Topic, count: usize) -> Step {
    world.observe().await;
    let full = world.topic(&topic.0)?;
    let stored = stored::of(&world.broker().await, &full).await?.len();
    world.judge(&["API-3.1.16", "API-3.1.15"], stored == count, || {
        format!("{stored} messages are stored instead of {count}")
    });
    Ok(())
}
