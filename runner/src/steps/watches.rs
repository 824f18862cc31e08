//! Steps that judge layout watches, what registered through them, and connections, by the wire journal.

use std::collections::BTreeSet;

use cucumber::then;
use sim_broker::core::journal::Event;
use stc_proto::Command;

use super::journal::{marked, producers_of, subscriptions_of};
use super::params::Topic;
use crate::judge::{Step, Trouble};
use crate::wire::WireWatch;
use crate::world::World;

pub(super) fn watches_of(world: &World, alias: &str) -> Result<Vec<WireWatch>, Trouble> {
    let full = world.topic(alias)?;
    Ok(world.wire()?.watches().into_iter().filter(|w| w.command.topic == full).collect())
}

/// At least one watch of the topic is open now. Producers and consumers of one client may share it.
#[then(expr = "the client has a layout watch of {topic} open")]
async fn a_watch(world: &mut World, topic: Topic) -> Step {
    world.observe().await;
    let watches = watches_of(world, &topic.0)?;
    world.judge(&["IMPL-1.1", "IMPL-1.2", "WIRE-4.10"], watches.iter().any(|w| w.ended.is_none()), || {
        match watches.len() {
            0 => "the client never opened a layout watch of the topic".to_owned(),
            n => format!("the client opened {n} layout watches of the topic, and none is open"),
        }
    });
    Ok(())
}

/// Every watch of the topic was ended by SCALABLE_TOPIC_CLOSE.
#[then(expr = "the client has closed every layout watch of {topic}")]
async fn watches_closed(world: &mut World, topic: Topic) -> Step {
    world.observe().await;
    let watches = watches_of(world, &topic.0)?;
    for watch in &watches {
        world.judge(&["WIRE-4.3", "API-3.3.4"], watch.closed_by_client, || {
            world.rests_on(Some(watch.n));
            format!("the layout watch with session id {} was never closed", watch.command.session_id)
        });
    }
    if watches.is_empty() { Err(Trouble::new("no layout watch was ever opened")) } else { Ok(()) }
}

/// No two watches that are open at one time on one connection share a session id.
#[then("layout watches that are open together have different session ids")]
fn distinct_sessions(world: &mut World) -> Step {
    let watches = world.wire()?.watches();
    let mut together = false;
    for (i, one) in watches.iter().enumerate() {
        for other in watches.iter().skip(i + 1) {
            let overlap = one.conn == other.conn && one.ended.is_none_or(|end| end > other.n);
            together |= overlap;
            let same = one.command.session_id == other.command.session_id;
            world.judge(&["WIRE-4.2"], !(overlap && same), || {
                world.rests_on(Some(other.n));
                format!("two open layout watches have the session id {}", one.command.session_id)
            });
        }
    }
    if together { Ok(()) } else { Err(Trouble::new("no two watches were open together on one connection")) }
}

/// The client looked the topic up again after the mark.
#[then(expr = "the client has opened a new layout watch of {topic} since the mark")]
async fn new_watch(world: &mut World, topic: Topic) -> Step {
    world.observe().await;
    let mark = marked(world)?;
    let watches = watches_of(world, &topic.0)?;
    world.judge(&["WIRE-4.10", "WIRE-4.5"], watches.iter().any(|w| w.n > mark), || {
        "the client opened no new layout watch after it lost its connection".to_owned()
    });
    Ok(())
}

/// Whoever registers names the topic as the broker resolved it. A layout watch may be opened by any of its names.
#[then("the client registered under the canonical name")]
fn canonical_registration(world: &mut World) -> Step {
    let full = world.topic("full")?;
    let wire = world.wire()?;
    let names: BTreeSet<String> = wire
        .from_clients()
        .filter_map(|(_, _, command)| match command {
            Command::ScalableTopicSubscribe(subscribe) => Some(subscribe.topic.clone()),
            _ => None,
        })
        .collect();
    world.judge(&["WIRE-4.5"], names.iter().all(|n| *n == full), || {
        format!("the client registered for {names:?}, and the canonical name is {full:?}")
    });
    if names.is_empty() { Err(Trouble::new("nobody registered")) } else { Ok(()) }
}

/// Neither side closed a connection. A send may cross the broker's CLOSE_PRODUCER on its way; brokers close the connection
/// then, and nobody did wrong.
#[then("no connection was closed")]
fn no_close(world: &mut World) -> Step {
    let wire = world.wire()?;
    let closed = wire.records().iter().find_map(|r| match &r.event {
        Event::TcpClose { side: "broker", reason } if reason.starts_with("SEND for unknown producer") => None,
        Event::TcpClose { side, reason } => Some((r.n, format!("the {side} closed a connection: {reason}"))),
        _ => None,
    });
    match closed {
        Some((n, message)) => {
            world.rests_on(Some(n));
            world.broken(&["API-2.7", "STAB-4.1.1"], message)
        }
        None => Ok(()),
    }
}

/// The first PRODUCER or SUBSCRIBE came after a layout.
#[then(expr = "the client attached to no segment of {topic} before it had a layout")]
fn layout_first(world: &mut World, topic: Topic) -> Step {
    let layout = watches_of(world, &topic.0)?.iter().flat_map(|w| &w.layouts).map(|(n, _)| *n).min();
    let producers = producers_of(world, &topic.0)?.into_iter().map(|p| p.n);
    let subscriptions = subscriptions_of(world, &topic.0)?.into_iter().map(|s| s.n);
    let attached = producers.chain(subscriptions).min();
    world.judge(&["API-7.4", "WIRE-4.11"], attached.is_none_or(|n| layout.is_some_and(|l| l < n)), || {
        world.rests_on(attached);
        "the client attached to a segment before any layout had come".to_owned()
    });
    Ok(())
}
