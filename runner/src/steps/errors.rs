//! Steps about operations that fail, and about operations in the background.

use cucumber::{then, when};

use crate::client::{ClientError, Signalled};
use crate::judge::{Step, Trouble};
use crate::world::{Started, World};

/// What a wrong category can break, by category.
fn category_requirements(category: &str) -> Vec<&'static str> {
    let own: &[&str] = match category {
        "NotFound" => &["ERR-2.18", "ERR-2.19", "API-3.1.12", "API-7.3", "ERR-3.4"],
        "Authentication" => &["ERR-2.2", "ERR-3.5"],
        "Authorization" => &["ERR-2.3", "ERR-3.5"],
        "Timeout" => &["ERR-2.4", "ERR-3.11"],
        "AlreadyClosed" => &["ERR-2.5", "API-2.5"],
        "ProducerBusy" => &["ERR-2.6"],
        "ConsumerBusy" => &["ERR-2.7"],
        "IncompatibleSchema" => &["ERR-2.8", "ERR-3.6"],
        "NotConnected" => &["ERR-2.10"],
        "MemoryBufferFull" => &["ERR-2.12", "ERR-3.13"],
        "ProducerQueueFull" => &["ERR-2.11"],
        "Crypto" => &["ERR-2.14", "ERR-3.15", "CONF-3.9"],
        "TransactionConflict" => &["API-6.10", "ERR-2.13", "API-6.1", "ERR-3.14"],
        "InvalidConfiguration" => &["ERR-2.15"],
        "InvalidServiceURL" => &["ERR-2.16"],
        _ => &[],
    };
    own.iter().chain(&["API-4.4.7", "WIRE-11.5", "ERR-4.4", "WIRE-4.9", "ERR-1.1"]).copied().collect()
}

/// The operation that was tried failed with this category of error-model §2.
#[then(expr = "it fails with the category {word}")]
fn fails_with(world: &mut World, category: String) -> Step {
    let outcome = world.outcome()?;
    let requirements = category_requirements(&category);
    match outcome {
        Ok(()) => {
            // That it failed at all is another requirement than the category.
            let first = ["ERR-3.15", "CONF-3.9", "API-7.3", "WIRE-4.9", "ERR-2.11", "ERR-2.4", "ERR-3.14"];
            let requirements: Vec<&str> = first.into_iter().chain(requirements).collect();
            world.broken(&requirements, format!("the operation succeeded instead of failing with {category}"))
        }
        Err(ClientError::Failed(error)) => {
            world.judge(&requirements, error.category == category, || {
                format!("the category is {} instead of {category}: {}", error.category, error.message)
            });
            world.judge(&["ERR-1.3", "ERR-1.1"], error.how != Signalled::Synchronously, || {
                format!("the call itself threw {category} instead of failing its future")
            });
            Ok(())
        }
        // Here the requirement is that the operation ends, and when.
        Err(ClientError::Hangs(seconds)) if category == "Timeout" => {
            world.broken(&["ERR-2.4"], format!("the operation does not time out: nothing in {seconds} s"))
        }
        Err(other) => world.surprise(&requirements, other, "the operation"),
    }
}

/// The operation that was tried failed, with whichever category.
#[then("it fails")]
fn fails(world: &mut World) -> Step {
    let requirements = [
        "API-4.4.7",
        "IMPL-2.2",
        "IMPL-4.6",
        "COMPAT-3.3",
        "ERR-4.4",
        "WIRE-4.9",
        "API-7.3",
        "API-2.5",
        "ERR-1.1",
    ];
    match world.outcome()? {
        Ok(()) => world.broken(&requirements, "the operation succeeded instead of failing"),
        Err(ClientError::Failed(_)) => Ok(()),
        // Here the requirement is that the operation ends.
        Err(ClientError::Hangs(seconds)) => {
            world.broken(&["COMPAT-3.3"], format!("the operation is left hanging: nothing in {seconds} s"))
        }
        Err(other) => world.surprise(&requirements, other, "the operation"),
    }
}

/// The operation that was tried succeeded.
#[then("it succeeds")]
fn succeeds(world: &mut World) -> Step {
    let requirements = ["API-3.3.5", "API-7.2", "API-2.10", "API-3.1.10", "WIRE-4.10", "STAB-4.1.1"];
    match world.outcome()? {
        Ok(()) => Ok(()),
        Err(error) => world.surprise(&requirements, error, "the operation"),
    }
}

/// Waits for an operation in the background (`create`, `subscribe`, `receive`, `flush`, `close`) and takes what it
/// made.
#[when(regex = r"^the (create|subscribe|receive|flush|close) that was started has ended$")]
async fn ended(world: &mut World, what: String) -> Step {
    let task = world.started.remove(&what).ok_or_else(|| Trouble(format!("no {what} was started")))?;
    let ended = task.await?;
    let outcome = ended.map(|started| keep(world, started));
    world.tried(outcome);
    Ok(())
}

/// An operation in the background is still waiting.
#[then(regex = r"^the (create|subscribe|receive|flush|close) that was started is still waiting$")]
async fn still_waiting(world: &mut World, what: String) -> Step {
    world.settle().await;
    let requirements = ["API-3.3.1", "API-3.3.3", "API-2.3", "API-4.3", "WIRE-4.10", "API-3.1.10"];
    let task = world.started.get(&what).ok_or_else(|| Trouble(format!("no {what} was started")))?;
    world.judge(&requirements, !task.is_finished(), || format!("the {what} ended although it had to wait"));
    Ok(())
}

fn keep(world: &mut World, started: Started) {
    match started {
        Started::Producer(alias, producer) => {
            world.producers.insert(alias, producer);
        }
        Started::Consumer(alias, consumer) => {
            world.consumers.insert(alias, consumer);
        }
        Started::Message(consumer, Some(message)) => {
            world.deliveries.push(crate::world::Delivery { consumer, message });
        }
        Started::Stream(alias, id) => {
            if let Some(stream) = world.streams.get_mut(&alias) {
                stream.id = Some(id);
            }
        }
        Started::Message(_, None) | Started::Done => {}
    }
}
