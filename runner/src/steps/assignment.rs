//! Steps about stream consumers and the controller (client-behavior §8, wire-protocol §6.2): registrations,
//! assignments, and what is attached because of them.

use std::collections::BTreeSet;

use cucumber::{given, then, when};
use sim_broker::core::ids::BrokerId;
use stc_proto::Command;
use stc_proto::pulsar::{IntRange, ScalableConsumerAssignment, ServerError};

use super::cluster::owner;
use super::params::{StreamName, Topic};
use crate::judge::{Step, Trouble};
use crate::stream_wire::{self, WireRegistration};
use crate::wire::{Wire, WireSubscription, segment_of};
use crate::world::{Stream, World};

/// What an attachment can break that is missing or too many.
const ATTACHED: [&str; 13] = [
    "IMPL-8.9",
    "IMPL-8.7",
    "IMPL-8.8",
    "IMPL-8.15",
    "IMPL-8.5",
    "IMPL-5.9",
    "IMPL-8.13",
    "IMPL-8.1",
    "API-4.1.10",
    "KS-4.1",
    "WIRE-6.2.5",
    "IMPL-8.12",
    "KS-4.13",
];

pub(crate) fn registrations(world: &World, stream: &Stream) -> Result<Vec<WireRegistration>, Trouble> {
    let topic = world.topic(&stream.topic)?;
    Ok(stream_wire::registrations(&world.wire()?, &topic, &stream.name))
}

pub(crate) fn attachments(world: &World, stream: &Stream) -> Result<Vec<WireSubscription>, Trouble> {
    let topic = world.topic(&stream.topic)?;
    Ok(stream_wire::attachments(&world.wire()?, &topic, &stream.subscription, &stream.name))
}

fn marked(world: &World) -> Result<u64, Trouble> {
    world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))
}

fn ids(text: &str) -> Result<BTreeSet<u64>, Trouble> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|t| !t.is_empty())
        .map(|t| t.parse().map_err(|_| Trouble(format!("{t:?} is no segment id"))))
        .collect()
}

fn alias(text: &str) -> String {
    text.split('"').nth(1).unwrap_or(crate::world::THE).to_owned()
}

// ---- the controller's side: what the scenario is about did happen ----

/// The newest assignment that came has these segments.
#[when(
    regex = r#"^(the stream consumer|stream consumer "[^"]+") is assigned (no segment|segments? [\d, ]+)$"#
)]
#[then(
    regex = r#"^(the stream consumer|stream consumer "[^"]+") is assigned (no segment|segments? [\d, ]+)$"#
)]
async fn assigned(world: &mut World, who: String, segments: String) -> Step {
    let stream = world.stream(&alias(&who))?;
    let expected = ids(&segments)?;
    let given = |world: &World| -> Result<Option<BTreeSet<u64>>, Trouble> {
        let all = registrations(world, &stream)?;
        let newest = all.iter().flat_map(|r| &r.assignments).max_by_key(|(n, _)| *n);
        Ok(newest.map(|(_, a)| a.segments.iter().map(|s| s.segment_id).collect()))
    };
    if world.eventually(|world| Ok(given(world)?.as_ref() == Some(&expected))).await? {
        return Ok(());
    }
    let registered = registrations(world, &stream)?.iter().any(|r| r.ended.is_none());
    let last = given(world)?;
    world.judge(&["IMPL-8.4", "IMPL-8.13", "IMPL-8.1", "IMPL-8.16", "API-4.1.10"], registered, || {
        "the consumer is not registered with the controller".to_owned()
    });
    // What the controller assigns follows from who is registered, and from what was read.
    world.judge(&["IMPL-8.16", "API-4.1.10", "IMPL-8.13", "IMPL-6.1", "API-4.1.6"], false, || {
        format!("the controller assigns {last:?} instead of {expected:?}")
    });
    Ok(())
}

/// How many buckets the newest assignment gives for a segment; 0 for a sole owner.
#[when(expr = "segment {int} is given to {stream} alone")]
async fn given_alone(world: &mut World, segment: u64, name: StreamName) -> Step {
    given(world, segment, name, false).await
}

/// The same for a segment that others get as well.
#[when(expr = "segment {int} is given to {stream} and others")]
async fn given_shared(world: &mut World, segment: u64, name: StreamName) -> Step {
    given(world, segment, name, true).await
}

async fn given(world: &mut World, segment: u64, name: StreamName, shared: bool) -> Step {
    let stream = world.stream(&name.0)?;
    let seen = |world: &mut World| {
        let all = registrations(world, &stream)?;
        let newest = all.iter().flat_map(|r| &r.assignments).max_by_key(|(n, _)| *n);
        let found = newest.and_then(|(_, a)| a.segments.iter().find(|s| s.segment_id == segment));
        Ok(found.is_some_and(|s| s.bucket_ranges.is_empty() != shared))
    };
    if world.eventually(seen).await? {
        Ok(())
    } else {
        Err(Trouble(format!("the controller does not give segment {segment} in this way")))
    }
}

/// The controller of the topic is on another broker than that of the service URL.
#[given(expr = "the controller of {topic} is not on the broker of the service URL")]
async fn controller_elsewhere(world: &mut World, topic: Topic) -> Step {
    move_controller(world, &topic.0, BrokerId(1)).await
}

/// The controller of the topic is on the broker of the service URL, so that a client which registers there whatever the
/// layout says gets as far as the move.
#[given(expr = "the controller of {topic} is on the broker of the service URL")]
async fn controller_here(world: &mut World, topic: Topic) -> Step {
    move_controller(world, &topic.0, BrokerId(0)).await
}

/// The controller moves to a broker that is not the one of the service URL; the layout that says so keeps its epoch.
#[when(expr = "the controller of {topic} moves to another broker at the same epoch")]
async fn controller_moves(world: &mut World, topic: Topic) -> Step {
    let name = world.topic(&topic.0)?;
    let (broker, control) = (world.broker().await, world.control().await?);
    let before = control.current_dag(&name)?;
    let urls = broker.broker_urls();
    let other =
        (0u32..).zip(&urls).skip(1).find(|(_, url)| Some(*url) != before.controller_broker_url.as_ref());
    let (other, _) = other.ok_or_else(|| Trouble::new("there is no other broker"))?;
    move_controller(world, &topic.0, BrokerId(other)).await?;
    let after = control.current_dag(&name)?;
    if before.epoch != after.epoch || before.controller_broker_url == after.controller_broker_url {
        return Err(Trouble::new("the layout did not change in its controller alone"));
    }
    Ok(())
}

async fn move_controller(world: &mut World, topic: &str, to: BrokerId) -> Step {
    let name = world.topic(topic)?;
    world.control().await?.move_controller(&name, to)?;
    world.settle().await;
    Ok(())
}

/// The broker dies that leads the topic.
#[when(expr = "the broker of the controller of {topic} dies")]
async fn controller_dies(world: &mut World, topic: Topic) -> Step {
    let name = world.topic(&topic.0)?;
    let (broker, control) = (world.broker().await, world.control().await?);
    let url = control.current_dag(&name)?.controller_broker_url;
    let urls = broker.broker_urls();
    let index = urls.iter().position(|u| Some(u) == url.as_ref()).and_then(|i| u32::try_from(i).ok());
    let leader = index.ok_or_else(|| Trouble::new("the topic has no controller"))?;
    control.kill_broker(BrokerId(leader))?;
    Ok(())
}

/// The first assignment that the consumer got comes again. By now its layout is an old one.
#[when(expr = "the first assignment of {stream} is pushed again")]
async fn push_first(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let all = registrations(world, &stream)?;
    let first = all.iter().flat_map(|r| &r.assignments).map(|(_, a)| a).next().cloned();
    let first = first.ok_or_else(|| Trouble::new("no assignment came yet"))?;
    let epoch = stream_wire::in_force(&all).map_or(0, |a| a.layout_epoch);
    if first.layout_epoch >= epoch {
        return Err(Trouble::new("the first assignment is not an old one"));
    }
    push(world, &stream, &first).await
}

/// The assignment in force comes again, unchanged.
#[when(expr = "the assignment of {stream} is pushed again")]
async fn push_again(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let assignment = newest(world, &stream)?;
    push(world, &stream, &assignment).await
}

/// The assignment comes again at its epoch, without one of its segments.
#[when(expr = "an assignment without segment {int} is pushed to {stream}")]
async fn push_without(world: &mut World, segment: u64, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let mut assignment = newest(world, &stream)?;
    let before = assignment.segments.len();
    assignment.segments.retain(|s| s.segment_id != segment);
    if assignment.segments.len() == before {
        return Err(Trouble(format!("segment {segment} is not assigned to the consumer")));
    }
    push(world, &stream, &assignment).await
}

/// What the controller has really assigned is pushed, after other assignments were made up.
#[when(expr = "the controller's assignment is pushed to {stream}")]
async fn push_true(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let all = registrations(world, &stream)?;
    // The answer to a registration is never made up.
    let first = all.iter().filter_map(|r| r.assignments.first()).max_by_key(|(n, _)| *n);
    let assignment = first.map(|(_, a)| a.clone()).ok_or_else(|| Trouble::new("no assignment came yet"))?;
    push(world, &stream, &assignment).await
}

/// The assignment comes again at its epoch, with a segment shared by all of its buckets.
#[when(expr = "an assignment is pushed to {stream} that shares segment {int}")]
async fn push_shared(world: &mut World, name: StreamName, segment: u64) -> Step {
    let stream = world.stream(&name.0)?;
    let topic = world.topic(&stream.topic)?;
    let dag = world.control().await?.current_dag(&topic)?;
    let listed = dag.segments.iter().find(|s| s.segment_id == segment);
    let listed = listed.ok_or_else(|| Trouble(format!("the layout has no segment {segment}")))?;
    let starts: Vec<u32> = std::iter::once(0).chain(listed.entry_bucket_splits.iter().copied()).collect();
    let ends = starts.iter().skip(1).map(|start| start - 1).chain([0xffff]);
    let range =
        |(start, end): (&u32, u32)| Ok(IntRange { start: i32::try_from(*start)?, end: i32::try_from(end)? });
    let ranges: Vec<IntRange> = starts.iter().zip(ends).map(range).collect::<Result<_, Trouble>>()?;
    set_ranges(world, &stream, segment, ranges).await
}

/// The assignment comes again at its epoch, with a segment for this consumer alone.
#[when(expr = "an assignment is pushed to {stream} that gives it segment {int} alone")]
async fn push_alone(world: &mut World, name: StreamName, segment: u64) -> Step {
    let stream = world.stream(&name.0)?;
    set_ranges(world, &stream, segment, Vec::new()).await
}

async fn set_ranges(world: &mut World, stream: &Stream, segment: u64, ranges: Vec<IntRange>) -> Step {
    let mut assignment = newest(world, stream)?;
    let assigned = assignment.segments.iter_mut().find(|s| s.segment_id == segment);
    let assigned = assigned.ok_or_else(|| Trouble(format!("segment {segment} is not assigned")))?;
    if assigned.bucket_ranges == ranges {
        return Err(Trouble::new("the mode does not change"));
    }
    assigned.bucket_ranges = ranges;
    push(world, stream, &assignment).await
}

fn newest(world: &World, stream: &Stream) -> Result<ScalableConsumerAssignment, Trouble> {
    let all = registrations(world, stream)?;
    stream_wire::in_force(&all).cloned().ok_or_else(|| Trouble::new("no assignment came yet"))
}

async fn push(world: &mut World, stream: &Stream, assignment: &ScalableConsumerAssignment) -> Step {
    let topic = world.topic(&stream.topic)?;
    let control = world.control().await?;
    control.push_assignment(&topic, &stream.subscription, &stream.name, assignment)?;
    world.settle().await;
    Ok(())
}

/// A SUBSCRIBE met the former owner of its segment, who still drains it.
#[then("a segment was still another consumer's when it was subscribed")]
async fn was_busy(world: &mut World) -> Step {
    let busy = |world: &mut World| {
        let is_busy = |c: &Command| match c {
            Command::Error(e) => e.error() == ServerError::ConsumerBusy,
            _ => false,
        };
        Ok(world.wire()?.from_brokers().any(|(_, _, c)| is_busy(c)))
    };
    match world.eventually(busy).await? {
        true => Ok(()),
        false => Err(Trouble::new("no SUBSCRIBE was answered with ConsumerBusy: nothing was in the way")),
    }
}

// ---- what is attached ----

/// What is attached now is what is assigned: all of it, nothing else.
#[then(expr = "{stream} is attached to exactly what it is assigned")]
async fn as_assigned(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let expected = |world: &World| -> Result<BTreeSet<u64>, Trouble> {
        let all = registrations(world, &stream)?;
        let in_force = stream_wire::in_force(&all).map(|a| a.segments.clone()).unwrap_or_default();
        Ok(in_force.iter().map(|s| s.segment_id).collect())
    };
    let open = |world: &World| Ok::<_, Trouble>(stream_wire::open_segments(&attachments(world, &stream)?));
    world.eventually(|world| Ok(open(world)? == expected(world)?)).await?;
    world.settle().await;
    let (open, expected) = (open(world)?, expected(world)?);
    world.judge(&ATTACHED, open == expected, || {
        format!("the consumer is attached to segments {open:?}, and assigned are {expected:?}")
    });
    Ok(())
}

/// What is attached now.
#[then(
    regex = r#"^(the stream consumer|stream consumer "[^"]+") is attached to (no segment|segments? [\d, ]+)$"#
)]
async fn attached_to(world: &mut World, who: String, segments: String) -> Step {
    let stream = world.stream(&alias(&who))?;
    let expected = ids(&segments)?;
    let open = |world: &World| Ok::<_, Trouble>(stream_wire::open_segments(&attachments(world, &stream)?));
    world.eventually(|world| Ok(open(world)? == expected)).await?;
    world.settle().await;
    let open = open(world)?;
    world.judge(&ATTACHED, open == expected, || {
        format!("the consumer is attached to segments {open:?} instead of {expected:?}")
    });
    Ok(())
}

/// Since the mark it attached to one segment only, whatever number of times.
#[then(expr = "{stream} has subscribed to segment {int} alone since the mark")]
async fn subscribed_alone(world: &mut World, name: StreamName, segment: u64) -> Step {
    world.observe().await;
    let (mark, stream) = (marked(world)?, world.stream(&name.0)?);
    let new = attachments(world, &stream)?.into_iter().filter(|s| s.n > mark);
    let segments: BTreeSet<u64> = new.filter_map(|s| segment_of(&s.command.topic)).collect();
    world.judge(&ATTACHED, segments == BTreeSet::from([segment]), || {
        format!("the consumer subscribed to segments {segments:?} instead of {segment} alone")
    });
    Ok(())
}

/// Where the open attachment of a segment is.
#[then(expr = "{stream} has segment {int} at the broker that the newest layout names")]
async fn at_named(world: &mut World, name: StreamName, segment: u64) -> Step {
    world.observe().await;
    let stream = world.stream(&name.0)?;
    let named = owner(world, segment, &stream.topic).await?;
    let at: Vec<_> = attachments(world, &stream)?
        .into_iter()
        .filter(|s| s.opened && s.ended.is_none() && segment_of(&s.command.topic) == Some(segment))
        .map(|s| s.broker)
        .collect();
    world.judge(&ATTACHED, at == [Some(named)], || {
        format!("segment {segment} is at broker {}, and the consumer has it at {at:?}", named.0)
    });
    Ok(())
}

/// It lost its registration after the mark, registered again, and was given the same segments as before: it has
/// attached to those and at no time to others.
#[then(
    regex = r#"^(the stream consumer|stream consumer "[^"]+") got back (segments? [\d, ]+) and nothing else since the mark$"#
)]
async fn got_back(world: &mut World, who: String, segments: String) -> Step {
    let (mark, stream, expected) = (marked(world)?, world.stream(&alias(&who))?, ids(&segments)?);
    let open = |world: &World| Ok::<_, Trouble>(stream_wire::open_segments(&attachments(world, &stream)?));
    let since = |world: &World| -> Result<BTreeSet<u64>, Trouble> {
        let new = attachments(world, &stream)?.into_iter().filter(|s| s.n > mark);
        Ok(new.filter_map(|s| segment_of(&s.command.topic)).collect())
    };
    world.eventually(|world| Ok(open(world)? == expected && since(world)? == expected)).await?;
    world.settle().await;
    let all = registrations(world, &stream)?;
    if !all.iter().any(|r| r.n < mark && r.ended.is_some_and(|end| end > mark)) {
        return Err(Trouble::new("the registration was not lost since the mark"));
    }
    let given = all.iter().filter(|r| r.n > mark).flat_map(|r| &r.assignments);
    for (_, assignment) in given {
        let given: BTreeSet<u64> = assignment.segments.iter().map(|s| s.segment_id).collect();
        if given != expected {
            return Err(Trouble(format!("the controller gave {given:?} instead of {expected:?}")));
        }
    }
    let (open, since) = (open(world)?, since(world)?);
    world.judge(&ATTACHED, open == expected && since == expected, || {
        format!("the consumer attached to {since:?} and has {open:?} instead of {expected:?}")
    });
    Ok(())
}

/// Every SUBSCRIBE was made in the mode that the assignment of its time asks for.
#[then(expr = "{stream} subscribed every segment in the mode of its assignment")]
async fn modes(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    world.settle().await;
    let all = registrations(world, &stream)?;
    let subscriptions = attachments(world, &stream)?;
    for subscription in &subscriptions {
        let id = segment_of(&subscription.command.topic);
        let before = all.iter().flat_map(|r| &r.assignments).filter(|(n, _)| *n < subscription.n);
        let newest = before.max_by_key(|(n, a)| (a.layout_epoch, *n));
        let assigned = newest.and_then(|(_, a)| a.segments.iter().find(|s| Some(s.segment_id) == id));
        let Some(assigned) = assigned else { continue };
        if let Some(wrong) = stream_wire::wrong_mode(subscription, assigned) {
            world.rests_on(Some(subscription.n));
            let own = if wrong.shared { "KS-4.3" } else { "KS-4.2" };
            world.broken(&[own, "KS-4.1", "IMPL-8.8", "KS-9.2"], wrong.message);
        }
    }
    if subscriptions.is_empty() { Err(Trouble::new("nothing was subscribed")) } else { Ok(()) }
}

/// Every open attachment is in the mode that the assignment asks for now.
#[then(expr = "{stream} has every segment in the mode of its assignment")]
async fn modes_now(world: &mut World, name: StreamName) -> Step {
    let stream = world.stream(&name.0)?;
    let wrong = |world: &World| -> Result<Option<String>, Trouble> {
        let assignment = newest(world, &stream)?;
        let all = attachments(world, &stream)?;
        for assigned in &assignment.segments {
            let open = all.iter().find(|s| {
                s.opened && s.ended.is_none() && segment_of(&s.command.topic) == Some(assigned.segment_id)
            });
            match open {
                None => return Ok(Some(format!("segment {} is not attached", assigned.segment_id))),
                Some(open) => {
                    if let Some(wrong) = stream_wire::wrong_mode(open, assigned) {
                        return Ok(Some(wrong.message));
                    }
                }
            }
        }
        Ok(None)
    };
    world.eventually(|world| Ok(wrong(world)?.is_none())).await?;
    if let Some(message) = wrong(world)? {
        world.broken(&["IMPL-8.8", "KS-4.13", "KS-4.1", "IMPL-8.12", "KS-9.2", "KS-4.3", "KS-4.2"], message);
    }
    Ok(())
}

/// An attachment is still there: its drain is not over.
#[then(expr = "{stream} has not let go of segment {int} since the mark")]
async fn holds(world: &mut World, name: StreamName, segment: u64) -> Step {
    world.settle().await;
    let (mark, stream) = (marked(world)?, world.stream(&name.0)?);
    let closed = attachments(world, &stream)?
        .into_iter()
        .any(|s| segment_of(&s.command.topic) == Some(segment) && s.ended.is_some_and(|end| end > mark));
    world.judge(&["IMPL-8.12", "KS-4.13", "KS-9.2"], !closed, || {
        format!("the consumer of segment {segment} was closed before all that it gave was acknowledged")
    });
    Ok(())
}

/// The drain has come to its end.
#[then(expr = "{stream} has let go of segment {int} since the mark")]
async fn let_go(world: &mut World, name: StreamName, segment: u64) -> Step {
    let (mark, stream) = (marked(world)?, world.stream(&name.0)?);
    let closed = |world: &mut World| {
        let all = attachments(world, &stream)?;
        let is_it = |s: &WireSubscription| segment_of(&s.command.topic) == Some(segment);
        Ok(all.iter().any(|s| is_it(s) && s.closed_by_client && s.ended.is_some_and(|end| end > mark)))
    };
    let closed = world.eventually(closed).await?;
    world.judge(&["IMPL-8.12", "KS-4.13", "IMPL-8.7", "IMPL-8.8", "KS-9.2"], closed, || {
        format!("everything that segment {segment} gave is acknowledged, and its consumer is not closed")
    });
    Ok(())
}

/// Nothing was subscribed since the mark.
#[then(expr = "{stream} has subscribed to no segment since the mark")]
async fn undisturbed(world: &mut World, name: StreamName) -> Step {
    world.settle().await;
    let (mark, stream) = (marked(world)?, world.stream(&name.0)?);
    let again: Vec<u64> = attachments(world, &stream)?.iter().filter(|s| s.n > mark).map(|s| s.n).collect();
    let requirements = ["IMPL-8.10", "KS-4.16", "IMPL-8.9", "IMPL-8.13"];
    world.judge(&requirements, again.is_empty(), || {
        world.rests_on(again.first().copied());
        format!("{} segments were subscribed anew, and nothing had changed for them", again.len())
    });
    Ok(())
}

/// Of all attachments of one segment, no two were open at a time in the subscription, where one owns it alone.
#[then(expr = "segment {int} of {topic} had one exclusive consumer at a time")]
fn one_at_a_time(world: &mut World, segment: u64, topic: Topic) -> Step {
    let full = world.topic(&topic.0)?;
    let local = full.trim_start_matches("topic://").to_owned();
    let all = world.wire()?.subscriptions();
    let own: Vec<&WireSubscription> = all
        .iter()
        .filter(|s| s.opened && segment_of(&s.command.topic) == Some(segment))
        .filter(|s| s.command.topic.contains(&local))
        .collect();
    for (i, one) in own.iter().enumerate() {
        let second = own.iter().skip(i + 1).find(|other| one.ended.is_none_or(|end| end > other.n));
        world.judge(&["IMPL-8.5", "KS-4.2"], second.is_none(), || {
            world.rests_on(second.map(|s| s.n));
            "a segment had two exclusive consumers".to_owned()
        });
    }
    if own.is_empty() { Err(Trouble::new("nobody subscribed to it")) } else { Ok(()) }
}

/// Every SUBSCRIBE of the consumer carries these: property NAME, read compacted, replicate state, durable.
#[then(expr = "every subscription of {stream} carries")]
async fn carries(world: &mut World, name: StreamName, step: &cucumber::gherkin::Step) -> Step {
    let stream = world.stream(&name.0)?;
    let all = attachments(world, &stream)?;
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    for (name, expected) in super::params::options(step)? {
        for subscription in &all {
            let command = &subscription.command;
            let (requirement, seen) = match name.as_str() {
                "read compacted" => ("API-4.1.4", yes(command.read_compacted())),
                "replicate state" => ("API-4.1.4", yes(command.replicate_subscription_state())),
                "durable" => ("API-4.1.8", yes(command.durable())),
                other => match other.strip_prefix("property ") {
                    Some(property) => {
                        let found = command.subscription_properties.iter().find(|p| p.key == property);
                        ("API-4.1.4", found.map_or_else(|| "absent".to_owned(), |p| p.value.clone()))
                    }
                    None => return Err(Trouble(format!("a subscription has no {other:?}"))),
                },
            };
            world.judge(&[requirement], seen == expected, || {
                world.rests_on(Some(subscription.n));
                format!("{name} of the subscription is {seen:?} instead of {expected:?}")
            });
        }
    }
    if all.is_empty() { Err(Trouble::new("nothing was subscribed")) } else { Ok(()) }
}

/// The newest controller URL among the layouts that were pushed before a moment.
pub(crate) fn controller_before(wire: &Wire, topic: &str, n: u64) -> Option<String> {
    let layouts = wire.watches().into_iter().filter(|w| w.command.topic == topic).flat_map(|w| w.layouts);
    let newest = layouts.filter(|(at, _)| *at < n).max_by_key(|(at, _)| *at);
    newest.and_then(|(_, dag)| dag.controller_broker_url)
}
