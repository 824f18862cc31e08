//! Steps that judge by the wire journal: per-segment producers, subscriptions.

use std::collections::{BTreeMap, BTreeSet};

use cucumber::{then, when};
use sim_broker::core::journal::Direction;
use stc_proto::{Command, SegmentName};

use super::params::{ConsumerName, ProducerName, Topic};
use super::watches::watches_of;
use crate::judge::{Step, Trouble};
use crate::stored;
use crate::wire::{Wire, WireProducer, WireSubscription, segment_of};
use crate::world::{THE, World};

/// Remembers this moment; later steps look at what came after it.
#[when("the journal is marked")]
async fn mark(world: &mut World) -> Step {
    world.settle().await;
    let last = world.wire()?.last();
    world.marks.insert("mark".to_owned(), last);
    Ok(())
}

pub(crate) fn marked(world: &World) -> Result<u64, Trouble> {
    world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))
}

/// Whether a topic on the wire is the scalable topic `full` or one of its segments.
pub(crate) fn belongs(topic: &str, full: &str) -> bool {
    topic == full
        || SegmentName::parse(topic).is_ok_and(|segment| segment.topic.as_str() == full)
        || topic.strip_prefix(full).is_some_and(|rest| rest.starts_with("-partition-"))
}

pub(crate) fn producers_of(world: &World, alias: &str) -> Result<Vec<WireProducer>, Trouble> {
    let full = world.topic(alias)?;
    Ok(world.wire()?.producers().into_iter().filter(|p| belongs(&p.topic, &full)).collect())
}

pub(crate) fn subscriptions_of(world: &World, alias: &str) -> Result<Vec<WireSubscription>, Trouble> {
    let full = world.topic(alias)?;
    Ok(world.wire()?.subscriptions().into_iter().filter(|s| belongs(&s.command.topic, &full)).collect())
}

// ---- what happened at all ----

/// The client sent a command this often.
#[then(expr = "the client sent {word} {int} time(s)")]
async fn sent_times(world: &mut World, command: String, times: usize) -> Step {
    world.observe().await;
    let sent = world.wire()?.from_clients().filter(|(_, _, c)| c.name() == command).count();
    let requirements =
        ["ERR-3.4", "ERR-3.6", "ERR-3.5", "ERR-3.11", "API-3.3.5", "IMPL-4.6", "IMPL-4.8", "IMPL-2.8"];
    world.judge(&requirements, sent == times, || {
        world.rests_on_sent(&command);
        format!("the client sent {command} {sent} times instead of {times}")
    });
    Ok(())
}

/// The client sent no command of a kind.
#[then(expr = "the client sent no {word}")]
async fn sent_none(world: &mut World, command: String) -> Step {
    world.settle().await;
    let sent = world.wire()?.from_clients().filter(|(_, _, c)| c.name() == command).count();
    let requirements = ["API-7.4", "WIRE-6.1.1", "IMPL-2.2", "API-7.3"];
    world.judge(&requirements, sent == 0, || {
        world.rests_on_sent(&command);
        format!("the client sent {command} {sent} times")
    });
    Ok(())
}

/// None of the commands that came with scalable topics (numbers 70 to 82) was sent.
#[then("the client sent no scalable-topic command")]
async fn no_scalable_command(world: &mut World) -> Step {
    world.settle().await;
    let wire = world.wire()?;
    let first = wire.from_clients().find(|(_, _, c)| (70..=82).contains(&c.number()));
    if let Some((record, _, command)) = first {
        world.rests_on(Some(record.n));
        world.broken(
            &["COMPAT-3.2"],
            format!("{} went to a broker that does not advertise scalable topics", command.name()),
        );
    }
    if wire.from_brokers().any(|(_, _, c)| matches!(c, Command::Connected(_))) {
        Ok(())
    } else {
        Err(Trouble::new("the client never connected, so it could not send anything"))
    }
}

// ---- per-segment producers ----

/// No segment had two producers of this client at a time.
#[then(expr = "no segment of {topic} had two producers at a time")]
fn one_producer(world: &mut World, topic: Topic) -> Step {
    let producers = producers_of(world, &topic.0)?;
    for (i, one) in producers.iter().enumerate() {
        let overlapping = producers
            .iter()
            .skip(i + 1)
            .any(|other| other.topic == one.topic && one.ended.is_none_or(|end| end > other.n));
        world.judge(&["IMPL-2.8"], !overlapping, || {
            world.rests_on(Some(one.n));
            format!("two producers were open on {} at a time", one.topic)
        });
    }
    if producers.is_empty() { Err(Trouble::new("no producer was ever opened")) } else { Ok(()) }
}

/// Segments that producers were opened on so far, in the order of ids.
#[then(regex = r"^producers were opened on (no segment|segments? [\d, ]+) of the topic$")]
async fn opened_on(world: &mut World, segments: String) -> Step {
    world.observe().await;
    let expected: BTreeSet<u64> = segments
        .split(|c: char| !c.is_ascii_digit())
        .filter(|t| !t.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let opened: BTreeSet<u64> =
        producers_of(world, THE)?.iter().filter_map(|p| segment_of(&p.topic)).collect();
    if !opened.is_subset(&expected) {
        world.conclude();
    }
    let requirements = ["IMPL-2.9", "WIRE-2.3", "IMPL-1.5", "IMPL-1.4", "WIRE-5.9", "IMPL-2.2"];
    world.judge(&requirements, opened == expected, || {
        format!("producers were opened on segments {opened:?} instead of {expected:?}")
    });
    Ok(())
}

/// Every per-segment producer is called `<name>-seg-<id>`.
#[then(expr = "every segment producer is called after {producer} and its segment")]
fn named(world: &mut World, producer: ProducerName) -> Step {
    let producer = world.producer(&producer.0)?;
    let name = producer.name.ok_or_else(|| Trouble::new("the producer has no name"))?;
    let producers = producers_of(world, &producer.topic)?;
    for opened in &producers {
        let Some(id) = segment_of(&opened.topic) else { continue };
        let expected = format!("{name}-seg-{id}");
        world.judge(&["WIRE-5.7"], opened.name.as_deref() == Some(&expected), || {
            world.rests_on(Some(opened.n));
            let called = opened.name.as_ref().map_or("nothing".to_owned(), |name| format!("{name:?}"));
            format!("the producer of segment {id} is called {called} instead of {expected:?}")
        });
    }
    if producers.is_empty() { Err(Trouble::new("no producer was ever opened")) } else { Ok(()) }
}

/// Every PRODUCER of the topic carries these properties.
#[then(expr = "every producer of {topic} was opened with")]
fn opened_with(world: &mut World, topic: Topic, step: &cucumber::gherkin::Step) -> Step {
    let full = world.topic(&topic.0)?;
    let wire = world.wire()?;
    let expected = super::params::options(step)?;
    let mut opened = 0;
    for (_, _, command) in wire.from_clients() {
        let Command::Producer(producer) = command else { continue };
        if !belongs(&producer.topic, &full) {
            continue;
        }
        opened += 1;
        for (name, value) in &expected {
            let there = producer.metadata.iter().any(|p| p.key == *name && p.value == *value);
            world.judge(&["API-3.1.9"], there, || {
                format!("PRODUCER of {} does not carry the property {name:?} = {value:?}", producer.topic)
            });
        }
    }
    if opened > 0 { Ok(()) } else { Err(Trouble::new("no producer was ever opened")) }
}

/// Every PRODUCER and SUBSCRIBE of a segment went to the broker that the newest layout before it names.
#[then(expr = "the client attached to every segment of {topic} at the broker that the layout names")]
async fn at_owner(world: &mut World, topic: Topic) -> Step {
    world.observe().await;
    let broker = world.broker().await;
    let urls = broker.broker_urls();
    let layouts: Vec<_> = watches_of(world, &topic.0)?.into_iter().flat_map(|w| w.layouts).collect();
    let producers = producers_of(world, &topic.0)?.into_iter().map(|p| (p.n, p.topic, p.broker));
    let subscriptions =
        subscriptions_of(world, &topic.0)?.into_iter().map(|s| (s.n, s.command.topic, s.broker));
    let mut judged = 0;
    for (n, segment_topic, at) in producers.chain(subscriptions) {
        let Some(id) = segment_of(&segment_topic) else { continue };
        let named = layouts
            .iter()
            .filter(|(pushed, _)| *pushed < n)
            .max_by_key(|(pushed, _)| *pushed)
            .and_then(|(_, dag)| dag.segment_brokers.iter().find(|b| b.segment_id == id));
        let (Some(named), Some(at)) = (named, at) else { continue };
        let url = urls.get(at.0 as usize).cloned().unwrap_or_default();
        judged += 1;
        world.judge(&["WIRE-5.8", "IMPL-1.6"], url == named.broker_url, || {
            world.rests_on(Some(n));
            format!("segment {id} is at {}, and the client attached at {url}", named.broker_url)
        });
    }
    if judged == 0 { Err(Trouble::new("the client attached to no segment")) } else { Ok(()) }
}

/// Of every segment the newest attachment is at the broker that the newest layout names.
#[then(expr = "the segments of {topic} are attached to at their newest brokers")]
async fn at_newest(world: &mut World, topic: Topic) -> Step {
    world.observe().await;
    let broker = world.broker().await;
    let urls = broker.broker_urls();
    let watches = watches_of(world, &topic.0)?;
    let newest = watches.iter().flat_map(|w| &w.layouts).max_by_key(|(n, _)| *n);
    let (_, dag) = newest.ok_or_else(|| Trouble::new("no layout was pushed"))?;
    let producers = producers_of(world, &topic.0)?.into_iter().map(|p| (p.n, p.topic, p.broker));
    let subscriptions =
        subscriptions_of(world, &topic.0)?.into_iter().map(|s| (s.n, s.command.topic, s.broker));
    let attached: Vec<_> = producers.chain(subscriptions).collect();
    for named in &dag.segment_brokers {
        let last =
            attached.iter().filter(|(_, t, _)| segment_of(t) == Some(named.segment_id)).max_by_key(|a| a.0);
        let Some((_, _, Some(at))) = last else { continue };
        let url = urls.get(at.0 as usize).cloned().unwrap_or_default();
        world.judge(&["IMPL-1.6", "API-2.8", "IMPL-8.5"], url == named.broker_url, || {
            format!(
                "segment {} moved to {}, and the client stayed at {url}",
                named.segment_id, named.broker_url
            )
        });
    }
    Ok(())
}

/// Every topic that the client attached to is the name of a segment of the layout.
#[then(expr = "the client attached to segments of {topic} by their names")]
async fn by_name(world: &mut World, topic: Topic) -> Step {
    let full = world.topic(&topic.0)?;
    let layout = world.layout(&topic.0).await?;
    let name = full.trim_start_matches("topic://").to_owned();
    let expected: BTreeSet<String> = layout
        .segments()
        .map(|s| format!("segment://{name}/{:04x}-{:04x}-{}", s.range.start(), s.range.end(), s.id))
        .collect();
    let wire = world.wire()?;
    let mut attached = 0;
    for (record, _, command) in wire.from_clients() {
        let used = match command {
            Command::Producer(c) => &c.topic,
            Command::Subscribe(c) => &c.topic,
            _ => continue,
        };
        attached += 1;
        world.judge(&["WIRE-3.1"], expected.contains(used), || {
            world.rests_on(Some(record.n));
            format!("the client attached to {used:?}, which names no segment of the topic")
        });
    }
    if attached == 0 { Err(Trouble::new("the client attached to no segment")) } else { Ok(()) }
}

/// Since the mark nothing was sent to a segment, and no producer was opened on it.
#[then(expr = "nothing was sent to segment {int} of {topic} since the mark")]
async fn nothing_sent(world: &mut World, segment: u64, topic: Topic) -> Step {
    world.settle().await;
    let mark = marked(world)?;
    let full = world.topic(&topic.0)?;
    let wire = world.wire()?;
    let is_it = |t: &str| belongs(t, &full) && segment_of(t) == Some(segment);
    let sent: Vec<u64> = wire.sends().iter().filter(|s| s.n > mark && is_it(&s.topic)).map(|s| s.n).collect();
    let opened: Vec<u64> =
        wire.producers().iter().filter(|p| p.n > mark && is_it(&p.topic)).map(|p| p.n).collect();
    let requirements = ["IMPL-4.3", "WIRE-5.9", "WIRE-2.3", "WIRE-4.11", "IMPL-1.4"];
    world.judge(&requirements, sent.is_empty() && opened.is_empty(), || {
        world.rests_on(sent.first().or(opened.first()).copied());
        format!("segment {segment} got {} more sends and {} more producers", sent.len(), opened.len())
    });
    Ok(())
}

/// No producer is open on a segment any more.
#[then(expr = "no producer is open on segment {int} of {topic}")]
async fn not_open(world: &mut World, segment: u64, topic: Topic) -> Step {
    world.observe().await;
    let producers = producers_of(world, &topic.0)?;
    let open = producers.iter().any(|p| segment_of(&p.topic) == Some(segment) && p.ended.is_none());
    world.judge(&["WIRE-5.9", "IMPL-4.3", "IMPL-1.5"], !open, || {
        format!("the producer of segment {segment} is still open")
    });
    Ok(())
}

/// Every per-segment producer that was not ended otherwise was closed by CLOSE_PRODUCER.
#[then(expr = "no producer of {topic} is open any more")]
async fn none_open(world: &mut World, topic: Topic) -> Step {
    world.observe().await;
    let producers = producers_of(world, &topic.0)?;
    for producer in producers.iter().filter(|p| p.opened) {
        world.judge(&["API-3.3.4"], producer.ended.is_some(), || {
            world.rests_on(Some(producer.n));
            format!("the producer on {} was never closed", producer.topic)
        });
    }
    if producers.is_empty() { Err(Trouble::new("no producer was ever opened")) } else { Ok(()) }
}

// ---- subscriptions ----

/// The consumer is attached Shared to these segments now, and to no others.
#[then(regex = r"^the subscription reads segments? ([\d, ]+) of the topic$")]
async fn reads(world: &mut World, segments: String) -> Step {
    world.observe().await;
    let expected: BTreeSet<u64> = segments.split(", ").map(|t| t.trim().parse()).collect::<Result<_, _>>()?;
    let subscriptions = subscriptions_of(world, THE)?;
    let open: BTreeSet<u64> = subscriptions
        .iter()
        .filter(|s| s.opened && s.ended.is_none())
        .filter_map(|s| segment_of(&s.command.topic))
        .collect();
    let requirements = ["IMPL-5.3", "IMPL-5.7", "IMPL-5.8", "IMPL-5.2", "IMPL-1.5"];
    world.judge(&requirements, open == expected, || {
        format!("the consumer is attached to segments {open:?} instead of {expected:?}")
    });
    Ok(())
}

/// Every SUBSCRIBE is of the type Shared.
#[then(expr = "every subscription of {topic} is Shared")]
fn all_shared(world: &mut World, topic: Topic) -> Step {
    use stc_proto::pulsar::command_subscribe::SubType;
    let subscriptions = subscriptions_of(world, &topic.0)?;
    for subscription in &subscriptions {
        let kind = SubType::try_from(subscription.command.sub_type).ok();
        world.judge(&["IMPL-5.2", "IMPL-5.3"], kind == Some(SubType::Shared), || {
            world.rests_on(Some(subscription.n));
            format!("the subscription on {} is {kind:?} instead of Shared", subscription.command.topic)
        });
    }
    if subscriptions.is_empty() { Err(Trouble::new("nothing was subscribed")) } else { Ok(()) }
}

/// No SUBSCRIBE says anything about keys.
#[then(expr = "no subscription of {topic} declares keys")]
fn no_keys(world: &mut World, topic: Topic) -> Step {
    let subscriptions = subscriptions_of(world, &topic.0)?;
    for subscription in &subscriptions {
        world.judge(&["API-4.2.3"], subscription.command.key_shared_meta.is_none(), || {
            world.rests_on(Some(subscription.n));
            format!("the subscription on {} carries keySharedMeta", subscription.command.topic)
        });
    }
    if subscriptions.is_empty() { Err(Trouble::new("nothing was subscribed")) } else { Ok(()) }
}

/// Every ACK names messages that were delivered to the consumer that it is for, and is individual.
#[then("every acknowledgement went to the segment consumer that gave the message")]
async fn acks_at_home(world: &mut World) -> Step {
    world.observe().await;
    let wire = world.wire()?;
    let given = deliveries(&wire);
    let mut acks = 0;
    for (record, conn, command) in wire.from_clients() {
        let Command::Ack(ack) = command else { continue };
        for id in &ack.message_id {
            acks += 1;
            let known = given
                .get(&(conn.0, ack.consumer_id))
                .is_some_and(|s| s.contains(&(id.ledger_id, id.entry_id)));
            world.judge(&["IMPL-5.5"], known, || {
                world.rests_on(Some(record.n));
                format!(
                    "{}:{} was acknowledged on consumer {}, which never gave it",
                    id.ledger_id, id.entry_id, ack.consumer_id
                )
            });
        }
        world.judge(&["API-4.2.4"], ack.ack_type == 0, || {
            world.rests_on(Some(record.n));
            "an acknowledgement is cumulative".to_owned()
        });
    }
    if acks == 0 {
        world.broken(&["IMPL-5.5", "API-4.2.6"], "messages were acknowledged, and no ACK was sent");
    }
    Ok(())
}

/// Every REDELIVER_UNACKNOWLEDGED_MESSAGES names messages that were delivered to the consumer that it is for.
#[then("redelivery was asked of the segment consumer that gave the message")]
async fn nacks_at_home(world: &mut World) -> Step {
    world.observe().await;
    let wire = world.wire()?;
    let given = deliveries(&wire);
    let mut asked = 0;
    for (record, conn, command) in wire.from_clients() {
        let Command::RedeliverUnacknowledgedMessages(ask) = command else { continue };
        for id in &ask.message_ids {
            asked += 1;
            let known = given
                .get(&(conn.0, ask.consumer_id))
                .is_some_and(|s| s.contains(&(id.ledger_id, id.entry_id)));
            world.judge(&["IMPL-5.6"], known, || {
                world.rests_on(Some(record.n));
                format!("redelivery of {}:{} was asked of another consumer", id.ledger_id, id.entry_id)
            });
        }
    }
    if asked == 0 {
        world.broken(
            &["IMPL-5.6", "API-4.2.5"],
            "a message was negatively acknowledged, and its redelivery not asked for",
        );
    }
    Ok(())
}

type Given = BTreeMap<(u64, u64), BTreeSet<(u64, u64)>>;

/// Ledger and entry of every MESSAGE, by connection and consumer.
fn deliveries(wire: &Wire) -> Given {
    let mut given = Given::new();
    for record in wire.records().iter().filter(|r| r.direction == Direction::ToClient) {
        if let (Some(conn), Some(Command::Message(m))) = (record.conn, record.frame().map(|f| &f.command)) {
            let id = (m.message_id.ledger_id, m.message_id.entry_id);
            given.entry((conn.0, m.consumer_id)).or_default().insert(id);
        }
    }
    given
}

/// The consumer holds no subscription on the wire any more.
#[then(expr = "{consumer} is attached to no segment any more")]
async fn detached(world: &mut World, consumer: ConsumerName) -> Step {
    world.observe().await;
    let consumer = world.consumer(&consumer.0)?;
    let open = subscriptions_of(world, &consumer.topic)?
        .into_iter()
        .filter(|s| s.command.subscription == consumer.subscription && s.opened && s.ended.is_none())
        .count();
    world.judge(&["IMPL-5.8", "WIRE-4.3"], open == 0, || format!("{open} subscriptions are still open"));
    Ok(())
}

// ---- what a SEND carried ----

/// The entry of the last stored message carries these in its metadata: key, property NAME, event time, deliver at,
/// sequence id, replicate to.
#[then("the stored entry carries")]
async fn carries(world: &mut World, step: &cucumber::gherkin::Step) -> Step {
    let topic = world.topic(THE)?;
    let stored = stored::of(&world.broker().await, &topic).await?;
    let message = stored.last().ok_or_else(|| Trouble::new("nothing is stored"))?;
    let metadata = &message.metadata;
    let absent = || "absent".to_owned();
    for (name, expected) in super::params::options(step)? {
        let (requirement, seen) = match name.as_str() {
            "key" => ("API-3.2.2", message.key.clone().unwrap_or_else(absent)),
            "event time" => {
                ("API-3.2.4", metadata.event_time.filter(|t| *t > 0).map_or_else(absent, |t| t.to_string()))
            }
            "deliver at" => ("API-3.2.7", metadata.deliver_at_time.map_or_else(absent, |t| t.to_string())),
            "sequence id" => ("API-3.2.5", metadata.sequence_id.to_string()),
            "replicate to" => ("API-3.2.9", metadata.replicate_to.join(", ")),
            other => match other.strip_prefix("property ") {
                Some(property) => (
                    "API-3.2.3",
                    metadata
                        .properties
                        .iter()
                        .find(|p| p.key == property)
                        .map_or_else(absent, |p| p.value.clone()),
                ),
                None => return Err(Trouble(format!("an entry has no {other:?}"))),
            },
        };
        world.judge(&[requirement], seen == expected, || {
            format!("the entry's {name} is {seen:?} instead of {expected:?}")
        });
    }
    Ok(())
}
