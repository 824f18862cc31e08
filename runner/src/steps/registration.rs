//! Steps that judge how a stream consumer registers with its topic's controller, and leaves it.

use std::collections::BTreeSet;
use std::time::Duration;

use cucumber::{then, when};
use sim_broker::control::DropSelector;
use sim_broker::core::fault::{Fault, FaultEffect, Selector, Side};
use sim_broker::core::journal::Direction;
use stc_proto::Command;

use super::assignment::{attachments, controller_before, registrations};
use super::params::{StreamName, Topic};
use crate::feature::Need;
use crate::judge::{Step, Trouble};
use crate::stream_wire::WireRegistration;
use crate::world::World;

fn marked(world: &World) -> Result<u64, Trouble> {
    world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))
}

/// The connection of a registration is lost, and for this long the controller takes no new one. Needs virtual time, and
/// that nobody else registers meanwhile.
#[when(expr = "the registration of {stream} is kept away for {int} s")]
async fn kept_away(world: &mut World, name: StreamName, seconds: u64) -> Step {
    world.uses(Need::VirtualTime);
    let stream = world.stream(&name.0)?;
    let topic = world.topic(&stream.topic)?;
    let conn = registrations(world, &stream)?.iter().find(|r| r.ended.is_none()).map(|r| r.conn);
    let conn = conn.ok_or_else(|| Trouble::new("the consumer is not registered"))?;
    let faults = world.faults().await?;
    let when = Selector { direction: Some(Side::ToBroker), ..Selector::command("SCALABLE_TOPIC_SUBSCRIBE") };
    let code = "UnknownError".to_owned().try_into().map_err(Trouble)?;
    let effect = FaultEffect::Error { code, message: "by a fault of the scenario".to_owned() };
    let fault = faults.arm(Fault { count: 10_000, ..Fault::new(when.on_topic(&topic), effect) })?;
    world.marks.insert("kept away".to_owned(), fault);
    if faults.drop_connections(DropSelector { conn: Some(conn), ..Default::default() }) != 1 {
        return Err(Trouble::new("the connection of the registration is not there"));
    }
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(())
}

/// The controller takes registrations again.
#[when(expr = "the registration of {stream} may come again")]
async fn may_come(world: &mut World, name: StreamName) -> Step {
    world.stream(&name.0)?;
    let faults = world.faults().await?;
    let fault = world.marks.get("kept away").copied().ok_or_else(|| Trouble::new("nothing is kept away"))?;
    let tried = faults.status().iter().any(|status| status.id == fault && status.fired > 0);
    faults.disarm(fault)?;
    world.judge(&["IMPL-8.13", "IMPL-8.15"], tried, || {
        "the consumer did not try to register again after it had lost its connection".to_owned()
    });
    Ok(())
}

/// Every registration went to the broker that the newest layout before it names as the controller's.
#[then(expr = "{stream} registered where the layout says that the controller is")]
async fn at_controller(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let topic = world.topic(&stream.topic)?;
    let broker = world.broker().await;
    let urls = broker.broker_urls();
    let wire = world.wire()?;
    let all = registrations(world, &stream)?;
    world.judge(&["IMPL-8.4"], !all.is_empty(), || "the consumer never registered".to_owned());
    let mut named = 0;
    for registration in &all {
        let Some(expected) = controller_before(&wire, &topic, registration.n) else { continue };
        named += 1;
        let at = registration.broker.and_then(|b| urls.get(b.0 as usize)).cloned().unwrap_or_default();
        world.judge(&["IMPL-8.1", "IMPL-8.2"], at == expected, || {
            format!("the layout names the controller {expected}, and the consumer registered at {at}")
        });
    }
    if named == 0 { Err(Trouble::new("no layout named a controller")) } else { Ok(()) }
}

/// The open registration is at the controller of the newest layout.
#[then(expr = "{stream} is registered at the newest controller")]
async fn at_newest(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let topic = world.topic(&stream.topic)?;
    let broker = world.broker().await;
    let urls = broker.broker_urls();
    let there = |world: &mut World| {
        let newest = controller_before(&world.wire()?, &topic, u64::MAX);
        let all = registrations(world, &stream)?;
        let is_there = |r: &WireRegistration| {
            let at = r.broker.and_then(|b| urls.get(b.0 as usize));
            r.ended.is_none() && !r.assignments.is_empty() && at.is_some() && at == newest.as_ref()
        };
        Ok(all.iter().any(is_there))
    };
    let there = world.eventually(there).await?;
    world.judge(&["IMPL-8.1", "IMPL-8.13", "IMPL-8.15"], there, || {
        "the consumer is not registered at the broker that the newest layout names as the controller's"
            .to_owned()
    });
    Ok(())
}

/// Once a layout has named the controller, no classic lookup is made on the way to it.
#[then(expr = "{stream} needed no classic lookup to register")]
async fn no_lookup(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let full = world.topic(&stream.topic)?;
    let wire = world.wire()?;
    let watches = wire.watches().into_iter().filter(|w| w.command.topic == full);
    let layout = watches.flat_map(|w| w.layouts).map(|(n, _)| n).min();
    let layout = layout.ok_or_else(|| Trouble::new("no layout was pushed"))?;
    let first = registrations(world, &stream)?.first().map(|r| r.n);
    world.judge(&["IMPL-8.4"], first.is_some(), || "the consumer never registered".to_owned());
    let asked = wire.from_clients().any(|(record, _, c)| {
        let asks = matches!(c, Command::Lookup(l) if l.topic == full);
        asks && record.n > layout && Some(record.n) < first
    });
    world.judge(&["IMPL-8.2"], !asked, || {
        "the layout names the controller, and LOOKUP was sent for the topic before registering".to_owned()
    });
    Ok(())
}

/// It came back after the mark, as the one that it was.
#[then(expr = "{stream} has registered again under its name since the mark")]
async fn again(world: &mut World, name: StreamName) -> Step {
    let (mark, stream) = (marked(world)?, world.stream(&name.0)?);
    let back = world
        .eventually(|world| {
            let all = registrations(world, &stream)?;
            Ok(all.iter().any(|r| r.n > mark && !r.assignments.is_empty()))
        })
        .await?;
    world.judge(&["IMPL-8.13", "IMPL-8.15"], back, || {
        format!("the consumer did not register again under its name {:?}", stream.name)
    });
    let topic = world.topic(&stream.topic)?;
    let own: BTreeSet<String> = world.streams.values().map(|s| s.name.clone()).collect();
    let wire = world.wire()?;
    let strange = wire.from_clients().find_map(|(_, _, c)| match c {
        Command::ScalableTopicSubscribe(c) if c.topic == topic && !own.contains(&c.consumer_name) => {
            Some(c.consumer_name.clone())
        }
        _ => None,
    });
    if let Some(strange) = strange {
        world.broken(&["IMPL-8.13"], format!("a consumer registered under the new name {strange:?}"));
    }
    Ok(())
}

/// Between the end of a registration and the next one the topic was looked up.
#[then(expr = "{stream} looked {topic} up before it registered again")]
async fn looked_up(world: &mut World, name: StreamName, topic: Topic) -> Step {
    let stream = world.stream(&name.0)?;
    let full = world.topic(&topic.0)?;
    let back = world
        .eventually(|world| {
            let all = registrations(world, &stream)?;
            Ok(all.len() > 1 && all.last().is_some_and(|r| !r.assignments.is_empty()))
        })
        .await?;
    world.judge(&["IMPL-8.13"], back, || "the consumer did not register again".to_owned());
    let all = registrations(world, &stream)?;
    let wire = world.wire()?;
    for (before, after) in all.iter().zip(all.iter().skip(1)) {
        let Some(ended) = before.ended else { continue };
        let asked = wire.from_clients().any(|(record, _, c)| {
            let asks = matches!(c, Command::ScalableTopicLookup(l) if l.topic == full);
            asks && record.n > ended && record.n < after.n
        });
        world.judge(&["IMPL-8.13"], asked, || {
            world.rests_on(Some(after.n));
            "the consumer registered again without looking the topic up first".to_owned()
        });
    }
    Ok(())
}

/// SCALABLE_TOPIC_UNSUBSCRIBE came on the connection of the registration.
#[then(expr = "{stream} has left the controller")]
async fn left(world: &mut World, name: StreamName) -> Step {
    world.observe().await;
    let stream = world.stream(&name.0)?;
    let all = registrations(world, &stream)?;
    world.judge(&["IMPL-8.16"], all.iter().any(|r| r.left), || {
        "no SCALABLE_TOPIC_UNSUBSCRIBE came on the connection of the registration".to_owned()
    });
    Ok(())
}

/// The controller knows it no more, although the connection is open.
#[then(expr = "{stream} is out of the group while its connection stays open")]
async fn out_at_once(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let topic = world.topic(&stream.topic)?;
    let members = world.control().await?.registered(&topic)?;
    let member = members.iter().any(|m| m.consumer == stream.name);
    world.judge(&["IMPL-8.16", "API-4.1.10"], !member, || {
        "the controller still keeps the consumer that was closed".to_owned()
    });
    let last = registrations(world, &stream)?.last().map(|r| r.conn);
    let wire = world.wire()?;
    let closed = wire
        .records()
        .iter()
        .any(|r| r.conn == last && matches!(r.event, sim_broker::core::journal::Event::TcpClose { .. }));
    if closed { Err(Trouble::new("the connection is closed, which alone would end it")) } else { Ok(()) }
}

/// Nothing of the consumer is open any more: neither an attachment nor a registration.
#[then(expr = "nothing of {stream} is open any more")]
async fn all_over(world: &mut World, name: StreamName) -> Step {
    world.observe().await;
    let stream = world.stream(&name.0)?;
    let open = attachments(world, &stream)?.iter().filter(|s| s.opened && s.ended.is_none()).count();
    world.judge(&["IMPL-8.16", "KS-9.2"], open == 0, || {
        format!("{open} segment consumers of the closed stream consumer are still open")
    });
    Ok(())
}

/// Two registrations on one connection are told apart by their consumer ids.
#[then("the registrations of one connection have different consumer ids")]
fn distinct(world: &mut World) -> Step {
    let wire = world.wire()?;
    let mut seen = BTreeSet::new();
    let mut connections = BTreeSet::new();
    let mut together = false;
    for record in wire.records().iter().filter(|r| r.direction == Direction::ToBroker) {
        let (Some(conn), Some(frame)) = (record.conn, record.frame()) else { continue };
        let Command::ScalableTopicSubscribe(c) = &frame.command else { continue };
        together |= !connections.insert(conn);
        world.judge(&["WIRE-6.2.5"], seen.insert((conn, c.consumer_id)), || {
            world.rests_on(Some(record.n));
            format!("two consumers of one connection registered with the consumer id {}", c.consumer_id)
        });
    }
    if together { Ok(()) } else { Err(Trouble::new("no two consumers registered on one connection")) }
}
