//! Steps about transaction coordinators: how many, where they are led, elections, how clients find them.

use cucumber::{given, then, when};
use sim_broker::core::ids::BrokerId;
use sim_broker::core::profile::Feature;
use stc_proto::Command;

use crate::judge::{Step, Trouble};
use crate::transaction_wire::{ASSIGN, asked};
use crate::world::World;

/// Fewer coordinators than sixteen: with one, every transaction is that one's.
#[given(expr = "a cluster of {int} transaction coordinator(s)")]
fn count(world: &mut World, coordinators: u32) -> Step {
    world.set_up(|setup| setup.coordinators = coordinators)
}

/// The brokers lead the coordinators in turn.
#[given("a cluster whose transaction coordinators are spread over its brokers")]
fn spread(world: &mut World) -> Step {
    world.set_up(|setup| setup.coordinators_spread = true)
}

/// CONNECTED lacks `supports_tc_metadata_discovery`.
#[given("a cluster whose brokers do not advertise the watch of transaction coordinators")]
fn without_watch(world: &mut World) -> Step {
    world.set_up(|setup| setup.without.push(Feature::SupportsTcMetadataDiscovery))
}

/// The election of a coordinator begins and does not end by itself; its former leader stays up.
#[when(expr = "the election of transaction coordinator {int} begins")]
async fn depose(world: &mut World, coordinator: u64) -> Step {
    world.control().await?.depose_coordinator(coordinator)?;
    world.settle().await;
    Ok(())
}

/// A coordinator gets this leader.
#[given(expr = "transaction coordinator {int} is led by broker {int}")]
#[when(expr = "transaction coordinator {int} is led by broker {int}")]
async fn elect(world: &mut World, coordinator: u64, broker: u32) -> Step {
    world.control().await?.elect_coordinator(coordinator, Some(BrokerId(broker)))?;
    world.settle().await;
    Ok(())
}

/// Ends of transactions are decided and not carried out.
#[when("the ends of transactions are held")]
async fn hold(world: &mut World) -> Step {
    world.control().await?.hold_ends();
    Ok(())
}

/// What was decided is carried out.
#[when("the ends of transactions are carried out")]
async fn release(world: &mut World) -> Step {
    world.control().await?.release_ends();
    world.settle().await;
    Ok(())
}

/// The coordinators are found by one watch, and none of them is looked up.
#[then("the client found the coordinators by one watch")]
async fn by_watch(world: &mut World) -> Step {
    let wire = world.wire()?;
    let watches = wire.from_clients().filter(|(_, _, c)| matches!(c, Command::WatchTcAssignments(_))).count();
    world.judge(&["WIRE-8.1.1"], watches == 1, || format!("the client opened {watches} coordinator watches"));
    let looked_up = lookups(&wire);
    world.judge(&["WIRE-8.1.1"], looked_up.is_empty(), || format!("the client looked up {looked_up:?}"));
    Ok(())
}

/// The coordinators are found by the classic lookup, and no watch is opened.
#[then("the client found the coordinators by the classic lookup")]
async fn by_lookup(world: &mut World) -> Step {
    let wire = world.wire()?;
    let watches = wire.from_clients().filter(|(_, _, c)| matches!(c, Command::WatchTcAssignments(_))).count();
    world.judge(&["COMPAT-3.4", "COMPAT-3.5"], watches == 0, || {
        "the client opened a coordinator watch at a broker that does not advertise it".to_owned()
    });
    world.judge(&["COMPAT-3.5"], !lookups(&wire).is_empty(), || "no coordinator was looked up".to_owned());
    Ok(())
}

fn lookups(wire: &crate::wire::Wire) -> Vec<String> {
    let topic = |command: &Command| match command {
        Command::Lookup(lookup) => Some(lookup.topic.clone()),
        Command::PartitionedMetadata(metadata) => Some(metadata.topic.clone()),
        _ => None,
    };
    wire.from_clients().filter_map(|(_, _, c)| topic(c)).filter(|topic| topic.starts_with(ASSIGN)).collect()
}

/// Since the mark nothing was asked of a coordinator.
#[then(expr = "nothing was asked of transaction coordinator {int} since the mark")]
async fn nothing_asked(world: &mut World, coordinator: u64) -> Step {
    world.settle().await;
    let mark = marked(world)?;
    let asked = asked(&world.wire()?, coordinator).into_iter().find(|asked| asked.n > mark);
    world.rests_on(asked.as_ref().map(|asked| asked.n));
    world.judge(&["WIRE-8.1.3", "WIRE-8.1.6"], asked.is_none(), || {
        format!(
            "a broker was asked for {}, and the coordinator has no leader",
            asked.map_or("", |a| a.command)
        )
    });
    Ok(())
}

/// Since the mark a coordinator was asked at this broker, and at no other.
#[then(expr = "transaction coordinator {int} was asked at broker {int} since the mark")]
async fn asked_at(world: &mut World, coordinator: u64, broker: u32) -> Step {
    world.observe().await;
    let mark = marked(world)?;
    let all: Vec<_> = asked(&world.wire()?, coordinator).into_iter().filter(|asked| asked.n > mark).collect();
    let elsewhere = all.iter().find(|asked| asked.broker != Some(BrokerId(broker)));
    world.rests_on(elsewhere.map(|asked| asked.n));
    world.judge(&["WIRE-8.1.4", "WIRE-8.1.3"], elsewhere.is_none(), || {
        let at = elsewhere.and_then(|asked| asked.broker);
        format!("{} went to {at:?}, which does not lead the coordinator", elsewhere.map_or("", |a| a.command))
    });
    world.judge(&["WIRE-8.1.4"], !all.is_empty(), || "the coordinator was not asked at all".to_owned());
    Ok(())
}

/// The client has opened a new coordinator watch since the mark.
#[then("the client has opened a new coordinator watch since the mark")]
async fn rewatched(world: &mut World) -> Step {
    let mark = marked(world)?;
    let again = world
        .eventually(|world| {
            let wire = world.wire()?;
            let mut watches = wire.from_clients().filter(|(r, _, _)| r.n > mark);
            Ok(watches.any(|(_, _, command)| matches!(command, Command::WatchTcAssignments(_))))
        })
        .await?;
    world.judge(&["WIRE-11.9"], again, || {
        "no coordinator watch was opened after the old one was lost".to_owned()
    });
    Ok(())
}

fn marked(world: &World) -> Result<u64, Trouble> {
    world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))
}
