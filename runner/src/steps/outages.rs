//! Steps about clients that are cut off, and about brokers that die one by one.

use std::collections::BTreeSet;
use std::time::Duration;

use cucumber::when;
use sim_broker::control::DropSelector;
use sim_broker::core::fault::{Fault, FaultEffect, Selector, Side};
use sim_broker::core::ids::{BrokerId, ConnId};
use sim_broker::core::journal::Event;

use super::journal::marked;
use super::params::Topic;
use crate::feature::Need;
use crate::judge::{Step, Trouble};
use crate::world::World;

/// The mark under which the fault is kept that refuses connections.
const REFUSAL: &str = "cut off";

/// Who connected since the mark loses its connections, and for this long no broker takes a new one. Needs virtual time,
/// and that nobody else has to connect meanwhile.
#[when(expr = "the connections since the mark are cut off for {int} s")]
async fn cut_off(world: &mut World, seconds: u64) -> Step {
    world.uses(Need::VirtualTime);
    let mark = marked(world)?;
    let mut open: BTreeSet<ConnId> = BTreeSet::new();
    for record in world.wire()?.records().iter().filter(|record| record.n > mark) {
        match (&record.event, record.conn) {
            (Event::TcpOpen { .. }, Some(conn)) => open.insert(conn),
            (Event::TcpClose { .. }, Some(conn)) => open.remove(&conn),
            _ => continue,
        };
    }
    if open.is_empty() {
        return Err(Trouble::new("nobody connected since the mark"));
    }
    let faults = world.faults().await?;
    let when = Selector { direction: Some(Side::ToBroker), ..Selector::command("CONNECT") };
    let fault = faults.arm(Fault { count: 10_000, ..Fault::new(when, FaultEffect::Close) })?;
    world.marks.insert(REFUSAL.to_owned(), fault);
    for conn in open {
        if faults.drop_connections(DropSelector { conn: Some(conn), ..Default::default() }) != 1 {
            return Err(Trouble::new("a connection that was open is not there"));
        }
    }
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(())
}

/// The brokers take connections again.
#[when("connections may be made again")]
async fn may_connect(world: &mut World) -> Step {
    let fault = world.marks.get(REFUSAL).copied().ok_or_else(|| Trouble::new("nobody is cut off"))?;
    let faults = world.faults().await?;
    let tried = faults.status().iter().any(|status| status.id == fault && status.fired > 0);
    faults.disarm(fault)?;
    world.judge(&["IMPL-8.13", "IMPL-8.15", "API-2.7", "API-4.3.12"], tried, || {
        "nobody tried to connect again after the connections were lost".to_owned()
    });
    Ok(())
}

/// A broker dies that owns a segment, does not lead the topic and is not that of the service URL. Segment 0 moves there
/// first when it owns none.
#[when(expr = "a broker of segments of {topic} dies that is not its controller's")]
async fn not_the_leader(world: &mut World, topic: Topic) -> Step {
    let name = world.topic(&topic.0)?;
    let (broker, control) = (world.broker().await, world.control().await?);
    let dag = control.current_dag(&name)?;
    let urls = broker.broker_urls();
    let leader =
        dag.controller_broker_url.clone().ok_or_else(|| Trouble::new("the topic has no controller"))?;
    let other = (0u32..).zip(&urls).skip(1).find(|(_, url)| **url != leader);
    let (victim, url) = other.ok_or_else(|| Trouble::new("there is no such broker"))?;
    if dag.segment_brokers.iter().all(|segment| segment.broker_url != *url) {
        control.move_segment(&name, 0, BrokerId(victim))?;
        world.settle().await;
    }
    control.kill_broker(BrokerId(victim))?;
    Ok(())
}
