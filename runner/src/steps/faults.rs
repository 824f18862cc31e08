//! Steps that arm faults. A fault that never strikes fails its scenario at the end.

use cucumber::{gherkin, given, when};
use sim_broker::core::fault::{At, Fault, FaultEffect, Selector, Side};
use sim_broker::core::journal::{Direction, Event, Record};

use super::params::Topic;
use crate::judge::{Step, Trouble};
use crate::world::World;

/// Any fault, as the YAML that the control API takes too.
#[given("the fault")]
#[when("the fault is armed")]
async fn any(world: &mut World, step: &gherkin::Step) -> Step {
    let text = step.docstring.as_deref().ok_or_else(|| Trouble::new("the step needs a doc string"))?;
    let fault: Fault = serde_saphyr::from_str(text).map_err(|e| Trouble(e.to_string()))?;
    arm(world, fault).await
}

/// The next frames of a command towards the broker, on a topic, are answered with an error.
#[given(expr = "the next {int} {word} on {topic} is/are answered with {word}")]
#[when(expr = "the next {int} {word} on {topic} is/are answered with {word}")]
async fn answered(world: &mut World, count: u32, command: String, topic: Topic, code: String) -> Step {
    let when = selector(world, &command, Some(&topic.0), Side::ToBroker)?;
    let code = code.try_into().map_err(Trouble)?;
    let effect = FaultEffect::Error { code, message: "by a fault of the scenario".to_owned() };
    arm(world, Fault { count, ..Fault::new(when, effect) }).await
}

/// The same for commands that are about no topic.
#[given(expr = "the next {int} {word} is/are answered with {word}")]
async fn answered_anywhere(world: &mut World, count: u32, command: String, code: String) -> Step {
    let when = selector(world, &command, None, Side::ToBroker)?;
    let code = code.try_into().map_err(Trouble)?;
    let effect = FaultEffect::Error { code, message: "by a fault of the scenario".to_owned() };
    arm(world, Fault { count, ..Fault::new(when, effect) }).await
}

/// The connection breaks when the next frame of a command arrives, and the frame is lost with it.
#[given(expr = "the connection breaks at the next {word} on {topic}")]
#[when(expr = "the connection breaks at the next {word} on {topic}")]
async fn breaks(world: &mut World, command: String, topic: Topic) -> Step {
    let when = selector(world, &command, Some(&topic.0), Side::ToBroker)?;
    arm(world, Fault::new(when, FaultEffect::Close)).await
}

/// The connection breaks at the next frame of a command, on whatever topic: `at`, and the frame is lost with it, or
/// `after` the broker acted on it, and the answer is lost.
#[given(regex = r"^the connection breaks (at|after) the next (\w+)$")]
#[when(regex = r"^the connection breaks (at|after) the next (\w+)$")]
async fn breaks_anywhere(world: &mut World, when: String, command: String) -> Step {
    let at = if when == "after" { At::After } else { At::Before };
    let when = selector(world, &command, None, Side::ToBroker)?;
    arm(world, Fault { at, ..Fault::new(when, FaultEffect::Close) }).await
}

/// Frames of a command towards the broker are held until they are released.
#[given(expr = "the next {int} {word} on {topic} is/are held")]
#[when(expr = "the next {int} {word} on {topic} is/are held")]
async fn held(world: &mut World, count: u32, command: String, topic: Topic) -> Step {
    let when = selector(world, &command, Some(&topic.0), Side::ToBroker)?;
    arm(world, Fault { count, ..Fault::new(when, FaultEffect::Hold) }).await
}

/// Frames of a command towards the client get lost.
#[given(expr = "the next {int} {word} to the client gets/get lost")]
#[when(expr = "the next {int} {word} to the client gets/get lost")]
async fn lost(world: &mut World, count: u32, command: String) -> Step {
    let when = selector(world, &command, None, Side::ToClient)?;
    arm(world, Fault { count, ..Fault::new(when, FaultEffect::Drop) }).await
}

/// Frames of a command towards the client come late.
#[given(expr = "the next {int} {word} to the client comes/come {int} ms late")]
#[when(expr = "the next {int} {word} to the client comes/come {int} ms late")]
async fn late(world: &mut World, count: u32, command: String, ms: u64) -> Step {
    let when = selector(world, &command, None, Side::ToClient)?;
    arm(world, Fault { count, ..Fault::new(when, FaultEffect::Delay { ms }) }).await
}

/// Waits until faults hold this many frames: what the scenario is about is under way.
#[when(expr = "{int} frame(s) is/are held")]
async fn are_held(world: &mut World, count: usize) -> Step {
    let faults = world.faults().await?;
    let mut from = 0;
    while faults.held() < count {
        let record =
            faults.wait_for_from(from, |r| matches!(r.event, Event::Fault { held: Some(_), .. })).await;
        from = record.n + 1;
    }
    Ok(())
}

/// Waits until the broker has sent clients this many frames of a command since the scenario began.
#[when(expr = "the broker has sent {int} {word}")]
async fn has_sent(world: &mut World, count: usize, command: String) -> Step {
    let faults = world.faults().await?;
    let mut from = 0;
    for _ in 0..count {
        let wanted = |r: &Record| r.direction == Direction::ToClient && r.event.name() == command;
        from = faults.wait_for_from(from, wanted).await.n + 1;
    }
    Ok(())
}

/// All held frames go on, in the order in which they came.
#[when("the held frames are released")]
async fn released(world: &mut World) -> Step {
    let faults = world.faults().await?;
    if faults.release_all() == 0 {
        let closed = |event: &Event| matches!(event, Event::TcpClose { side: "client", .. });
        if faults.journal().iter().any(|record| closed(&record.event)) {
            let lost = "the client closed the connection on which the broker had yet to answer";
            world.broken(&["API-2.3", "API-3.3.3"], lost);
        }
        return Err(Trouble::new("no frame is held"));
    }
    world.settle().await;
    Ok(())
}

fn selector(world: &World, command: &str, topic: Option<&str>, side: Side) -> Result<Selector, Trouble> {
    let mut selector = Selector { direction: Some(side), ..Selector::command(command) };
    if let Some(alias) = topic {
        selector = selector.on_topic(&world.topic(alias)?);
    }
    Ok(selector)
}

async fn arm(world: &mut World, fault: Fault) -> Step {
    world.faults().await?.arm(fault)?;
    Ok(())
}
