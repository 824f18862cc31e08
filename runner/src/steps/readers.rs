//! Steps that judge what checkpoint consumers send over the wire: readers, registrations, and what must not be sent.

use std::collections::{BTreeMap, BTreeSet};

use cucumber::{given, then, when};
use sim_broker::core::fault::{Fault, FaultEffect, Selector, Side};
use sim_broker::core::journal::Direction;
use stc_proto::pulsar::{CommandScalableTopicSubscribe, ScalableConsumerType};
use stc_proto::{Command, SegmentName, TopicName};

use super::checkpoint::{captured, reader};
use super::journal::{marked, subscriptions_of};
use super::params::{ReaderName, Topic};
use crate::judge::{Step, Trouble};
use crate::stored;
use crate::wire::{WireSubscription, messages, segment_of};
use crate::world::World;

/// What is stored in one segment by now comes late, in its order: its readers are behind those of other segments.
#[given(expr = "the messages of segment {int} of {topic} come {int} ms late")]
#[when(expr = "the messages of segment {int} of {topic} come {int} ms late")]
async fn slow_segment(world: &mut World, id: u64, topic: Topic, ms: u64) -> Step {
    let name = TopicName::parse(&world.topic(&topic.0)?)?;
    let layout = world.layout(&topic.0).await?;
    let segment = layout.segment(id).ok_or_else(|| Trouble(format!("there is no segment {id}")))?;
    let segment = match &segment.legacy_topic {
        Some(legacy) => legacy.clone(),
        None => SegmentName::new(name, segment.range, id)?.to_string(),
    };
    let when = Selector { direction: Some(Side::ToClient), ..Selector::command("MESSAGE") };
    let stored = stored::of(&world.broker().await, &world.topic(&topic.0)?).await?;
    let entries = stored.iter().filter(|m| m.topic == segment && m.index == 0).count();
    let fault = Fault {
        count: u32::try_from(entries)?,
        ..Fault::new(when.on_topic(&segment), FaultEffect::Delay { ms })
    };
    world.faults().await?.arm(fault)?;
    Ok(())
}

/// More messages of the topic's segments went to the client than the application received: what was captured had to
/// leave some of them out.
#[then(expr = "more messages went to the client than {reader} has received")]
async fn more_delivered(world: &mut World, name: ReaderName) -> Step {
    world.observe().await;
    let wire = world.wire()?;
    let delivered: usize = wire
        .records()
        .iter()
        .filter(|r| r.direction == Direction::ToClient)
        .filter(|r| matches!(r.frame().map(|f| &f.command), Some(Command::Message(_))))
        .filter_map(|r| r.entry())
        .map(|entry| messages(&entry).len())
        .sum();
    let received = reader(world, &name.0)?.received.len();
    if delivered > received {
        Ok(())
    } else {
        Err(Trouble(format!("{delivered} messages went to the client and {received} were received")))
    }
}

/// A lost connection or a death of a broker made the client attach some segment a second time.
#[then(expr = "a reader of {topic} was attached again")]
async fn attached_again(world: &mut World, topic: Topic) -> Step {
    let again = |world: &mut World| {
        let mut seen = BTreeSet::new();
        let mut opened = subscriptions_of(world, &topic.0)?.into_iter().filter(|s| s.opened);
        Ok(opened.any(|s| !seen.insert((s.command.topic, s.command.consumer_name))))
    };
    if world.eventually(again).await? {
        Ok(())
    } else {
        Err(Trouble::new("no segment was attached twice: nothing was interrupted"))
    }
}

/// Every SUBSCRIBE is of a reader: not durable.
#[then(expr = "no reader of {topic} left a subscription at the broker")]
async fn not_durable(world: &mut World, topic: Topic) -> Step {
    world.settle().await;
    let subscriptions = subscriptions_of(world, &topic.0)?;
    for subscription in &subscriptions {
        let command = &subscription.command;
        // Durable is the default.
        world.judge(&["API-4.3.4", "API-4.3.13"], command.durable == Some(false), || {
            world.rests_on(Some(subscription.n));
            format!("the subscription {:?} on {} is durable", command.subscription, command.topic)
        });
    }
    if subscriptions.is_empty() { Err(Trouble::new("nothing was subscribed")) } else { Ok(()) }
}

/// No ACK was sent, although messages were received. What a client tells the broker when it reads, on a subscription that
/// ends with its connection, is no matter of this.
#[then("nothing was acknowledged since the mark")]
async fn no_acks(world: &mut World) -> Step {
    world.settle().await;
    let mark = world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))?;
    let acks = world.wire()?.acks().iter().filter(|(n, ..)| *n > mark).count();
    world.judge(&["IMPL-7.6"], acks == 0, || {
        world.rests_on_sent("ACK");
        format!("{acks} acknowledgements were sent")
    });
    if world.reading.readers.values().all(|r| r.received.is_empty()) {
        return Err(Trouble::new("nothing was received, so nothing could be acknowledged"));
    }
    Ok(())
}

/// Nothing but keep-alive went to any broker after the mark.
#[then("the client sent nothing since the mark")]
async fn silence(world: &mut World) -> Step {
    world.settle().await;
    let mark = marked(world)?;
    let wire = world.wire()?;
    let sent: Vec<(u64, &str)> = wire
        .from_clients()
        .filter(|(r, _, c)| r.n > mark && !matches!(c, Command::Ping(_) | Command::Pong(_)))
        .map(|(r, _, c)| (r.n, c.name()))
        .collect();
    world.judge(&["IMPL-7.4", "IMPL-7.6"], sent.is_empty(), || {
        world.rests_on(sent.first().map(|(n, _)| *n));
        format!("the client sent {:?}", sent.iter().map(|(_, name)| name).collect::<Vec<_>>())
    });
    Ok(())
}

/// After the mark the client sent what attaching takes, and nothing else.
#[then("the client sent only what attaching takes since the mark")]
async fn only_attaching(world: &mut World) -> Step {
    world.settle().await;
    let mark = marked(world)?;
    let wire = world.wire()?;
    let since: Vec<(u64, &Command)> =
        wire.from_clients().filter(|(r, _, _)| r.n > mark).map(|(r, _, c)| (r.n, c)).collect();
    for (n, command) in &since {
        let attaching = matches!(
            command,
            Command::Connect(_)
                | Command::Ping(_)
                | Command::Pong(_)
                | Command::Lookup(_)
                | Command::ScalableTopicLookup(_)
                | Command::Subscribe(_)
                | Command::Flow(_)
        );
        world.judge(&["IMPL-7.5"], attaching, || {
            world.rests_on(Some(*n));
            format!("restoring sent {}", command.name())
        });
    }
    if since.iter().any(|(_, c)| matches!(c, Command::Subscribe(_))) {
        Ok(())
    } else {
        Err(Trouble::new("nothing was attached since the mark"))
    }
}

/// No SCALABLE_TOPIC_SUBSCRIBE was sent.
#[then("the client registered with no controller")]
async fn not_registered(world: &mut World) -> Step {
    world.settle().await;
    let registrations = registrations(world)?.len();
    world.judge(&["WIRE-6.3.1"], registrations == 0, || {
        world.rests_on_sent("SCALABLE_TOPIC_SUBSCRIBE");
        format!("the client registered {registrations} times, and it has no group")
    });
    Ok(())
}

fn registrations(world: &World) -> Result<Vec<CommandScalableTopicSubscribe>, Trouble> {
    let wire = world.wire()?;
    let commands = wire.from_clients().filter_map(|(_, _, c)| match c {
        Command::ScalableTopicSubscribe(c) => Some(c.clone()),
        _ => None,
    });
    Ok(commands.collect())
}

/// Every registration is one of a checkpoint consumer in the group.
#[then(expr = "the members registered as checkpoint consumers of group {string}")]
async fn registered(world: &mut World, group: String) -> Step {
    world.observe().await;
    let registrations = registrations(world)?;
    for registration in &registrations {
        let kind = ScalableConsumerType::try_from(registration.consumer_type).ok();
        world.judge(&["WIRE-6.2.9"], kind == Some(ScalableConsumerType::Checkpoint), || {
            format!("{:?} registered as {kind:?}", registration.consumer_name)
        });
        world.judge(&["API-4.3.3"], registration.subscription == group, || {
            format!("a member registered for {:?} instead of {group:?}", registration.subscription)
        });
    }
    if registrations.is_empty() {
        world.broken(&["WIRE-6.2.9", "API-4.3.11"], "a group was given, and nobody registered");
    }
    Ok(())
}

/// Some registration carries the name that the application gave.
#[then(expr = "a member registered under the name {string}")]
async fn registered_as(world: &mut World, name: String) -> Step {
    world.observe().await;
    let names: Vec<String> = registrations(world)?.into_iter().map(|r| r.consumer_name).collect();
    world.judge(&["API-4.3.3"], names.contains(&name), || {
        format!("the members registered under {names:?} instead of {name:?}")
    });
    Ok(())
}

/// Readers that are attached now, by segment.
fn open(world: &World, topic: &str) -> Result<BTreeMap<u64, Vec<WireSubscription>>, Trouble> {
    let mut open: BTreeMap<u64, Vec<WireSubscription>> = BTreeMap::new();
    for subscription in subscriptions_of(world, topic)? {
        let Some(segment) = segment_of(&subscription.command.topic) else { continue };
        if subscription.opened && subscription.ended.is_none() {
            open.entry(segment).or_default().push(subscription);
        }
    }
    Ok(open)
}

/// Each active segment has one reader, of whichever consumer.
#[then(expr = "each active segment of {topic} has exactly one reader")]
async fn one_reader(world: &mut World, topic: Topic) -> Step {
    let active: BTreeSet<u64> = world.layout(&topic.0).await?.active().map(|s| s.id).collect();
    let one_each = |world: &mut World| {
        let open = open(world, &topic.0)?;
        Ok(active.iter().all(|segment| open.get(segment).map_or(0, Vec::len) == 1))
    };
    world.eventually(one_each).await?;
    world.settle().await;
    let open = open(world, &topic.0)?;
    for segment in active {
        let readers = open.get(&segment).map_or(0, Vec::len);
        let requirements = ["API-4.3.12", "API-4.3.11", "IMPL-5.14", "IMPL-5.13", "WIRE-6.3.2"];
        world.judge(&requirements, readers == 1, || format!("segment {segment} has {readers} readers"));
    }
    Ok(())
}

/// No reader is attached any more.
#[then(expr = "no reader of {topic} is open any more")]
async fn no_reader(world: &mut World, topic: Topic) -> Step {
    world.eventually(|world| Ok(open(world, &topic.0)?.is_empty())).await?;
    let left: usize = open(world, &topic.0)?.values().map(Vec::len).sum();
    world.judge(&["API-2.7", "API-4.3.12"], left == 0, || format!("{left} readers are still open"));
    Ok(())
}

/// The segments are shared between this many members, none of which has none.
#[then(expr = "the segments of {topic} are shared between {int} members")]
async fn shared_between(world: &mut World, topic: Topic, members: usize) -> Step {
    world.eventually(|world| Ok(owners(world, &topic.0)?.len() == members)).await?;
    world.settle().await;
    let owners = owners(world, &topic.0)?;
    world.judge(&["API-4.3.12", "IMPL-5.14", "API-4.3.11", "IMPL-8.15"], owners.len() == members, || {
        format!("the segments are read by {owners:?}, and the group has {members} members")
    });
    Ok(())
}

/// The consumers whose readers are attached now: the name of a reader begins with its consumer's.
fn owners(world: &World, topic: &str) -> Result<BTreeSet<String>, Trouble> {
    let open = open(world, topic)?;
    let owners = open
        .iter()
        .flat_map(|(segment, readers)| readers.iter().map(move |r| (segment, r)))
        .map(|(segment, r)| {
            let name = r.command.consumer_name.clone().unwrap_or_default();
            name.strip_suffix(&format!("-seg-{segment}")).map(str::to_owned).unwrap_or(name)
        })
        .collect();
    Ok(owners)
}

/// The readers that were attached after the mark start behind the last message of their segment that lies before the
/// checkpoint.
#[then(expr = "the readers of {topic} since the mark start at the positions of checkpoint {string}")]
async fn start_positions(world: &mut World, topic: Topic, checkpoint: String) -> Step {
    world.observe().await;
    let mark = marked(world)?;
    let full = world.topic(&topic.0)?;
    let stored = stored::of(&world.broker().await, &full).await?;
    let before = &captured(world, &checkpoint)?.before;
    let mut last: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for message in stored.iter().filter(|m| before.contains(&m.text())) {
        if let Some(segment) = message.segment {
            let position = last.entry(segment).or_insert(message.position);
            *position = (*position).max(message.position);
        }
    }
    let mut judged = 0;
    for subscription in subscriptions_of(world, &topic.0)?.iter().filter(|s| s.n > mark) {
        let Some(position) = segment_of(&subscription.command.topic).and_then(|id| last.get(&id)) else {
            continue;
        };
        judged += 1;
        let start = subscription.command.start_message_id.as_ref().map(|id| (id.ledger_id, id.entry_id));
        // The last entry read, or the one behind it.
        let fits = start == Some(*position) || start == Some((position.0, position.1 + 1));
        world.judge(&["IMPL-7.3"], fits, || {
            world.rests_on(Some(subscription.n));
            format!(
                "the reader of {} starts at {start:?}, and the checkpoint is behind {position:?}",
                subscription.command.topic
            )
        });
    }
    if judged < 2 { Err(Trouble::new("fewer than two segments were resumed")) } else { Ok(()) }
}
