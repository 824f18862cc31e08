//! Steps about what stream consumers acknowledge at the brokers (client-behavior §6, key-shared §4).

use std::collections::{BTreeMap, BTreeSet};

use cucumber::then;
use stc_proto::pulsar::command_subscribe::SubType;

use super::params::StreamName;
use super::stream::own;
use crate::client::Received;
use crate::judge::{Step, Trouble};
use crate::stream_wire::{self, WireAck, WireDelivery};
use crate::wire::{WireSubscription, segment_of};
use crate::world::World;

struct Story {
    attachments: Vec<WireSubscription>,
    deliveries: Vec<WireDelivery>,
    acks: Vec<WireAck>,
}

/// Whoever asks for it only looks.
async fn story(world: &mut World, alias: &str) -> Result<Story, Trouble> {
    world.observe().await;
    let stream = world.stream(alias)?;
    let wire = world.wire()?;
    let topic = world.topic(&stream.topic)?;
    let attachments = stream_wire::attachments(&wire, &topic, &stream.subscription, &stream.name);
    let deliveries = stream_wire::deliveries(&wire, &attachments);
    let acks = stream_wire::acks(&wire, &attachments);
    Ok(Story { attachments, deliveries, acks })
}

impl Story {
    fn is_shared(&self, ack: &WireAck) -> bool {
        let attachment = self.attachments.iter().find(|s| s.n == ack.subscribe);
        attachment.is_some_and(|s| s.command.sub_type() == SubType::KeyShared)
    }

    /// Segments that this consumer was ever to read with others.
    fn acks_where(&self, shared: bool) -> Vec<&WireAck> {
        self.acks.iter().filter(|ack| self.is_shared(ack) == shared).collect()
    }
}

/// On segments that several consumers share each message is acknowledged by itself.
#[then(expr = "{stream} acknowledged one by one where it shares the segment")]
async fn individual(world: &mut World, name: StreamName) -> Step {
    let story = story(world, &name.0).await?;
    let acks = story.acks_where(true);
    for ack in &acks {
        world.judge(&["KS-4.9", "KS-9.2"], !ack.cumulative, || {
            world.rests_on(Some(ack.n));
            format!("a cumulative acknowledgement went to the shared segment {}", ack.segment)
        });
    }
    let shares = story.attachments.iter().any(|s| s.opened && s.command.sub_type() == SubType::KeyShared);
    match (acks.is_empty(), shares) {
        (false, _) => Ok(()),
        (true, true) => {
            world.broken(&["IMPL-6.5", "KS-4.9", "KS-9.2"], "no acknowledgement went to the shared segment")
        }
        (true, false) => Err(Trouble::new("the consumer never shared a segment")),
    }
}

/// On segments that the consumer owns alone one acknowledgement is for all that came before.
#[then(expr = "{stream} acknowledged cumulatively where it has the segment alone")]
async fn cumulative(world: &mut World, name: StreamName) -> Step {
    let story = story(world, &name.0).await?;
    let acks = story.acks_where(false);
    for ack in &acks {
        world.judge(&["KS-4.11"], ack.cumulative, || {
            world.rests_on(Some(ack.n));
            format!("an individual acknowledgement went to segment {}, which has one owner", ack.segment)
        });
    }
    if acks.is_empty() {
        world.broken(&["KS-4.11", "IMPL-6.1"], "no acknowledgement went to a segment with one owner");
    }
    Ok(())
}

/// The brokers were told of everything up to this message, in every segment, and of nothing behind it.
#[then(expr = "the brokers were told of exactly what {stream} received up to message number {int}")]
async fn exactly(world: &mut World, name: StreamName, number: usize) -> Step {
    let story = story(world, &name.0).await?;
    let upto: BTreeSet<String> = own(world, &name.0).into_iter().take(number).map(Received::text).collect();
    if upto.len() < number {
        return Err(Trouble(format!("the consumer gave fewer than {number} messages")));
    }
    let told = stream_wire::covered(&story.deliveries, &story.acks);
    let mut expected: BTreeMap<u64, BTreeSet<(u64, u64)>> = BTreeMap::new();
    for delivery in &story.deliveries {
        let value = |m: &crate::wire::WireMessage| String::from_utf8_lossy(&m.payload).into_owned();
        if delivery.messages.iter().any(|m| upto.contains(&value(m))) {
            expected.entry(delivery.segment).or_default().insert(delivery.id);
        }
    }
    let none = BTreeSet::new();
    let segments: BTreeSet<u64> = told.keys().chain(expected.keys()).copied().collect();
    for segment in segments {
        let told = told.get(&segment).unwrap_or(&none);
        let expected = expected.get(&segment).unwrap_or(&none);
        let too_many: Vec<_> = told.difference(expected).collect();
        world.judge(&["IMPL-6.3", "IMPL-6.2", "IMPL-6.5", "KS-4.15"], too_many.is_empty(), || {
            format!("of segment {segment} the broker was told of {too_many:?}, which came later")
        });
        let missing: Vec<_> = expected.difference(told).collect();
        world.judge(&["IMPL-6.1", "API-4.1.6", "IMPL-6.5", "IMPL-6.3"], missing.is_empty(), || {
            format!("of segment {segment} the broker was not told of {missing:?}")
        });
    }
    Ok(())
}

/// What came before the acknowledged message came from that many segments: it says something about all of them.
#[then(expr = "the messages of {stream} came from {int} segments")]
async fn from_segments(world: &mut World, name: StreamName, count: usize) -> Step {
    let story = story(world, &name.0).await?;
    let segments: BTreeSet<u64> = story.deliveries.iter().map(|d| d.segment).collect();
    if segments.len() == count {
        Ok(())
    } else {
        Err(Trouble(format!("messages came from the segments {segments:?}, the scenario is about {count}")))
    }
}

/// Nothing was acknowledged since the mark.
#[then(expr = "{stream} has acknowledged nothing since the mark")]
async fn nothing(world: &mut World, name: StreamName) -> Step {
    let mark = world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))?;
    let story = story(world, &name.0).await?;
    let acks = story.acks.iter().filter(|ack| ack.n > mark).count();
    world.judge(&["KS-4.15", "IMPL-6.8"], acks == 0, || {
        world.rests_on_sent("ACK");
        format!("{acks} acknowledgements were sent that the application did not ask for")
    });
    Ok(())
}

/// The broker has told the consumer of messages of a segment since the mark: there is something to hold back.
#[then(expr = "messages of segment {int} went to {stream} since the mark")]
async fn delivered_since(world: &mut World, segment: u64, name: StreamName) -> Step {
    let mark = world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))?;
    let story = story(world, &name.0).await?;
    if story.deliveries.iter().any(|d| d.n > mark && d.segment == segment) {
        Ok(())
    } else {
        Err(Trouble::new("no message went to the consumer since the mark: the scenario shows nothing"))
    }
}

/// The broker has nothing of a segment to give to the consumer any more.
#[then(expr = "no message of segment {int} went to {stream} since the mark")]
async fn not_delivered_since(world: &mut World, segment: u64, name: StreamName) -> Step {
    let mark = world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))?;
    let story = story(world, &name.0).await?;
    let came = story.deliveries.iter().filter(|d| d.n > mark && d.segment == segment).count();
    world.judge(&["API-4.1.6", "IMPL-8.12", "KS-4.13"], came == 0, || {
        format!("{came} messages of segment {segment} were delivered again although they were acknowledged")
    });
    Ok(())
}

/// Of the messages of its acknowledgements none went to another attachment than the one that is open.
#[then(expr = "an acknowledgement went to segment {int} of {stream} since the mark")]
async fn acked_since(world: &mut World, segment: u64, name: StreamName) -> Step {
    let mark = world.marks.get("mark").copied().ok_or_else(|| Trouble::new("no step marked the journal"))?;
    let story = story(world, &name.0).await?;
    let acks: Vec<&WireAck> = story.acks.iter().filter(|a| a.n > mark && a.segment == segment).collect();
    world.judge(&["IMPL-8.12", "KS-4.13", "IMPL-6.1", "IMPL-6.5", "KS-9.2"], !acks.is_empty(), || {
        format!("the acknowledgement of what segment {segment} delivered did not go to its consumer")
    });
    for ack in acks {
        let attachment = story.attachments.iter().find(|s| s.n == ack.subscribe);
        let open = attachment.is_some_and(|s| s.ended.is_none_or(|end| end > ack.n));
        let on = attachment.and_then(|s| segment_of(&s.command.topic));
        world.judge(&["IMPL-8.12", "KS-4.13", "KS-9.2"], open, || {
            world.rests_on(Some(ack.n));
            format!("an acknowledgement went to the consumer of segment {on:?} after it was closed")
        });
    }
    Ok(())
}
