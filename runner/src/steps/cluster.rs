//! Steps about the cluster itself: its set-up, brokers that die, connections that break, time that passes.

use std::time::Duration;

use cucumber::{given, when};
use sim_broker::control::DropSelector;
use sim_broker::core::ids::BrokerId;
use sim_broker::core::profile::Feature;

use super::params::Topic;
use crate::feature::Need;
use crate::judge::{Step, Trouble};
use crate::world::World;

/// More or fewer brokers than three.
#[given(expr = "a cluster of {int} broker(s)")]
fn broker_count(world: &mut World, brokers: u32) -> Step {
    world.set_up(|setup| setup.brokers = brokers)
}

/// CONNECTED lacks `supports_scalable_topics`.
#[given("a cluster whose brokers do not advertise scalable topics")]
fn no_scalable_topics(world: &mut World) -> Step {
    world.set_up(|setup| setup.without.push(Feature::SupportsScalableTopics))
}

/// No layout carries entry buckets.
#[given("a cluster without entry buckets")]
fn no_buckets(world: &mut World) -> Step {
    world.set_up(|setup| setup.entry_buckets = false)
}

/// Every command that the brokers send has optional fields that no client knows.
#[given("a cluster whose brokers put unknown fields into every command")]
fn unknown_fields(world: &mut World) -> Step {
    world.set_up(|setup| setup.unknown_fields = true)
}

/// The broker that owns a segment dies; others take over what it had.
#[when(expr = "the broker of segment {int} of {topic} dies")]
async fn segment_broker_dies(world: &mut World, segment: u64, topic: Topic) -> Step {
    let broker = owner(world, segment, &topic.0).await?;
    world.control().await?.kill_broker(broker)?;
    Ok(())
}

/// A broker dies.
#[when(expr = "broker {int} dies")]
async fn broker_dies(world: &mut World, broker: u32) -> Step {
    world.control().await?.kill_broker(BrokerId(broker))?;
    Ok(())
}

/// A dead broker comes back.
#[when(expr = "broker {int} comes back")]
async fn broker_comes_back(world: &mut World, broker: u32) -> Step {
    world.control().await?.revive_broker(BrokerId(broker))?;
    Ok(())
}

/// Every connection is closed by the brokers.
#[when("all connections are lost")]
async fn connections_lost(world: &mut World) -> Step {
    world.faults().await?.drop_connections(DropSelector::default());
    Ok(())
}

/// A segment moves to a broker that does not own it now; its layout says so.
#[when(expr = "segment {int} of {topic} moves to another broker")]
async fn segment_moves(world: &mut World, segment: u64, topic: Topic) -> Step {
    let from = owner(world, segment, &topic.0).await?;
    let name = world.topic(&topic.0)?;
    let broker = world.broker().await;
    let brokers = broker.broker_urls().len();
    let other = (0..).map(BrokerId).take(brokers).find(|b| *b != from);
    let other = other.ok_or_else(|| Trouble::new("there is no other broker"))?;
    world.control().await?.move_segment(&name, segment, other)?;
    world.settle().await;
    Ok(())
}

/// Lets virtual time pass while nothing else happens.
#[when(expr = "{int} s pass")]
async fn time_passes(world: &mut World, seconds: u64) -> Step {
    world.uses(Need::VirtualTime);
    if !world.virtual_time() {
        return Err(Trouble::new("only virtual time can pass: tag the scenario @needs-virtual-time"));
    }
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(())
}

/// The broker that the newest layout names for a segment.
pub(crate) async fn owner(world: &mut World, segment: u64, topic: &str) -> Result<BrokerId, Trouble> {
    let full = world.topic(topic)?;
    let broker = world.broker().await;
    let layouts = world.wire()?.watches().into_iter().filter(|w| w.command.topic == full);
    let dag = layouts
        .filter_map(|w| w.layouts.last().cloned())
        .max_by_key(|(n, _)| *n)
        .map(|(_, dag)| dag)
        .ok_or_else(|| Trouble::new("no layout of the topic was pushed yet"))?;
    let url = dag
        .segment_brokers
        .iter()
        .find(|b| b.segment_id == segment)
        .map(|b| b.broker_url.clone())
        .ok_or_else(|| Trouble(format!("the layout names no broker for segment {segment}")))?;
    let urls = broker.broker_urls();
    let index = urls.iter().position(|u| *u == url);
    index
        .and_then(|i| u32::try_from(i).ok())
        .map(BrokerId)
        .ok_or_else(|| Trouble(format!("no broker of the cluster is at {url}")))
}
