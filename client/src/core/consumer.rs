//! The queue consumer as a state machine (client-behavior §5): one Shared subscription for each segment of the layout,
//! active and sealed, one stream of messages out of all of them, acknowledgements routed by the segment in the
//! message's identifier.
//!
//! A sealed segment is let go once the broker has said that the end of it is reached and everything from it is
//! acknowledged, or when it leaves the layout.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use stc_proto::pulsar::{CommandMessage, MessageIdData, command_ack::ValidationError};

use super::{
    Link, Millis, Now,
    acks::{EntryId, Outstanding},
    backoff::{Backoff, BackoffLimits, Rng},
    deviant::{Deviance, Deviant},
    error::{Category, Error},
    incoming::{self, Incoming, Unreadable},
    layout::Segment,
    message_id::{MessageId, Position},
    tracker::View,
};

/// What an application can set on a queue consumer, as far as the state machine needs it.
#[derive(Debug, Clone)]
pub(crate) struct ConsumerConfig {
    /// Messages of one segment that may be under way or wait to be received.
    pub(crate) receiver_queue: u32,
    /// How long a rejected message stays away.
    pub(crate) redelivery_delay: Millis,
    pub(crate) backoff: BackoffLimits,
    pub(crate) deviance: Deviance,
}

/// Sends SUBSCRIBE for a segment. The answer goes to [`ConsumerCore::attached`] or [`ConsumerCore::attach_failed`]
/// with the same generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscribe {
    pub(crate) segment: u64,
    pub(crate) generation: u64,
    pub(crate) topic: String,
    /// Whether the topic is a wrapped classic one.
    pub(crate) legacy: bool,
    /// The broker to try; `None` asks for the owner.
    pub(crate) address: Option<String>,
}

/// A message for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) segment: u64,
    pub(crate) id: MessageId,
    pub(crate) redelivery_count: u32,
    pub(crate) message: Incoming,
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // nearly all are deliveries
pub(crate) enum Effect {
    Subscribe(Subscribe),
    Flow {
        segment: u64,
        permits: u32,
    },
    Ack {
        segment: u64,
        ids: Vec<MessageIdData>,
        cumulative: bool,
        invalid: Option<ValidationError>,
    },
    Redeliver {
        segment: u64,
        ids: Vec<MessageIdData>,
    },
    /// Sends CLOSE_CONSUMER; its answer goes to [`ConsumerCore::detached`].
    Detach {
        segment: u64,
    },
    /// Lets go of the segment's attachment without waiting for anything.
    Forget {
        segment: u64,
    },
    /// Puts a message into the receive queue.
    Deliver(Delivery),
    /// Takes the messages of a segment out of the receive queue: the broker will send them again.
    Purge {
        segment: u64,
    },
    /// Every segment is subscribed, or one cannot be.
    Opened(Result<(), Error>),
    /// Nothing is attached any more.
    Closed,
}

#[derive(Debug)]
struct SegmentConsumer {
    segment: Segment,
    topic: String,
    address: Option<String>,
    redirect: Option<String>,
    lookup: bool,
    /// No longer in the layout.
    retired: bool,
    /// The broker said that nothing more will come.
    ended: bool,
    link: Link,
    generation: u64,
    /// The broker's URL while attached.
    at: Option<String>,
    outstanding: Outstanding,
    /// Messages taken out of the receive queue since permits were granted last.
    consumed: u32,
    /// Acknowledgements made while not attached.
    held: Vec<MessageIdData>,
    backoff: Backoff,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ConsumerCore {
    config: ConsumerConfig,
    view: View,
    rng: Rng,
    segments: BTreeMap<u64, SegmentConsumer>,
    /// Rejected messages, by the time at which they are asked for again.
    rejected: BTreeSet<(Millis, u64, EntryId, i32)>,
    synced: bool,
    opening: bool,
    closing: bool,
    closed: bool,
    effects: Vec<Effect>,
}

impl ConsumerCore {
    /// A consumer on a topic that is resolved. It subscribes to every segment and then says [`Effect::Opened`].
    pub(crate) fn new(config: ConsumerConfig, view: View, rng: Rng, now: Now) -> Self {
        let mut core = ConsumerCore {
            config,
            view: view.clone(),
            rng,
            segments: BTreeMap::new(),
            rejected: BTreeSet::new(),
            synced: true,
            opening: true,
            closing: false,
            closed: false,
            effects: Vec::new(),
        };
        core.apply_layout(view, now);
        core
    }

    /// Takes what the shell has to do, in order.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The canonical name of the topic.
    pub(crate) fn topic(&self) -> &str {
        self.view.topic.as_str()
    }

    // ---- events from the application ----

    /// The application acknowledged a message.
    ///
    /// # Errors
    /// `InvalidConfiguration` for the identifiers earliest and latest, which are no messages.
    pub(crate) fn acknowledge(&mut self, id: &MessageId) -> Result<(), Error> {
        let at = position(id)?;
        if self.config.deviance.is(Deviant::AckNothing) {
            return Ok(());
        }
        let Some(consumer) = self.segments.get_mut(&at.segment) else {
            // Drained and gone from the layout: it was acknowledged.
            return Ok(());
        };
        let whole = self.config.deviance.is(Deviant::AckWholeBatch);
        let index = if whole { -1 } else { at.batch_index };
        let data = consumer.outstanding.acknowledge((at.ledger, at.entry), index, at.batch_size);
        self.rejected.retain(|(_, segment, entry, index)| {
            (*segment, *entry, *index) != (at.segment, (at.ledger, at.entry), at.batch_index)
        });
        self.send_ack(at.segment, data, None);
        self.step(at.segment, None);
        Ok(())
    }

    /// The application rejected a message: it is asked for again after the redelivery delay.
    ///
    /// # Errors
    /// As for [`ConsumerCore::acknowledge`].
    pub(crate) fn reject(&mut self, id: &MessageId, now: Now) -> Result<(), Error> {
        let at = position(id)?;
        let deviance = self.config.deviance;
        if deviance.is(Deviant::NackAsAck) {
            return self.acknowledge(id);
        }
        let Some(consumer) = self.segments.get_mut(&at.segment) else { return Ok(()) };
        if deviance.is(Deviant::NackEverything) {
            let ids = consumer.outstanding.reject_all();
            self.effects
                .push(Effect::Redeliver { segment: at.segment, ids: ids.iter().map(entry_id).collect() });
        } else if !deviance.is(Deviant::NackIgnored)
            && consumer.outstanding.reject((at.ledger, at.entry), at.batch_index)
        {
            let due = now.mono + self.config.redelivery_delay;
            self.rejected.insert((due, at.segment, (at.ledger, at.entry), at.batch_index));
        }
        self.tick(now);
        Ok(())
    }

    /// The application took messages of a segment out of the receive queue.
    pub(crate) fn consumed(&mut self, segment: u64, count: u32) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        consumer.consumed = consumer.consumed.saturating_add(count);
        let enough = consumer.consumed >= (self.config.receiver_queue / 2).max(1);
        if enough && consumer.link == Link::Attached && !self.config.deviance.is(Deviant::NoPermits) {
            let permits = std::mem::take(&mut consumer.consumed);
            self.effects.push(Effect::Flow { segment, permits });
        }
    }

    /// Detaches everything and says [`Effect::Closed`]. Acknowledges nothing.
    pub(crate) fn close(&mut self, now: Now) {
        self.closing = true;
        self.opening = false;
        self.advance(now);
    }

    /// Lets go of everything at once.
    pub(crate) fn abort(&mut self) {
        self.closing = true;
        for segment in std::mem::take(&mut self.segments).into_keys() {
            self.effects.push(Effect::Forget { segment });
        }
        self.say_closed();
    }

    // ---- events from the layout watch ----

    /// Works by this layout from now on.
    pub(crate) fn apply_layout(&mut self, view: View, now: Now) {
        let deviance = self.config.deviance;
        let first = self.segments.is_empty();
        let before = std::mem::replace(&mut self.view, view);
        let layout = self.view.layout.clone();
        for segment in layout.segments() {
            let skipped = (deviance.is(Deviant::SubscribeActiveOnly) && !segment.active)
                || (deviance.is(Deviant::NoNewSegments) && !first);
            if skipped {
                continue;
            }
            let (config, rng) = (&self.config, &mut self.rng);
            let consumer = self.segments.entry(segment.id).or_insert_with(|| {
                SegmentConsumer::new(segment.clone(), Backoff::new(config.backoff, rng.fork()))
            });
            consumer.segment = segment.clone();
            consumer.topic = segment.topic(&self.view.topic, deviance);
            consumer.address = self.view.brokers.get(&segment.id).cloned();
            let named_before = before.brokers.get(&segment.id);
            let moved = named_before.is_some() && named_before != consumer.address.as_ref();
            if moved && !deviance.is(Deviant::IgnoreMovedSegment) {
                consumer.lookup = false;
                if consumer.link == Link::Attached && consumer.at != consumer.address {
                    consumer.link = Link::Detaching;
                    self.effects.push(Effect::Detach { segment: segment.id });
                }
            }
        }
        for (id, consumer) in &mut self.segments {
            consumer.retired = layout.segment(*id).is_none() && !deviance.is(Deviant::KeepGoneSegments);
        }
        self.advance(now);
    }

    /// Whether the layout watch is up. While it is not, nothing is attached anew.
    pub(crate) fn set_synced(&mut self, synced: bool, now: Now) {
        self.synced = synced || self.config.deviance.is(Deviant::ResumeBeforeLayout);
        self.advance(now);
    }

    // ---- events from brokers ----

    /// SUBSCRIBE succeeded. False when nobody waits for it any more: the shell has to close it.
    pub(crate) fn attached(&mut self, segment: u64, generation: u64, at: String, now: Now) -> bool {
        let Some(consumer) = self.segments.get_mut(&segment) else { return false };
        if consumer.generation != generation || consumer.link != Link::Attaching {
            return false;
        }
        consumer.link = Link::Attached;
        consumer.at = Some(at);
        consumer.lookup = false;
        consumer.redirect = None;
        consumer.consumed = 0;
        consumer.backoff.reset();
        // Before the permits, so that the broker does not send what is acknowledged already.
        let held = std::mem::take(&mut consumer.held);
        if !held.is_empty() {
            self.effects.push(Effect::Ack { segment, ids: held, cumulative: false, invalid: None });
        }
        self.effects.push(Effect::Flow { segment, permits: self.config.receiver_queue });
        self.advance(now);
        true
    }

    /// SUBSCRIBE failed, or no connection could be made for it.
    pub(crate) fn attach_failed(&mut self, segment: u64, generation: u64, error: Error, now: Now) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        if consumer.generation != generation || consumer.link != Link::Attaching {
            return;
        }
        consumer.lookup = !consumer.lookup;
        consumer.redirect = None;
        consumer.link = Link::Waiting(now.mono + consumer.backoff.delay());
        // A sealed segment can be pruned between the layout and the subscribe: the next layout says so.
        let pruned = error.category() == Category::NotFound && !consumer.segment.active;
        if self.opening && !error.is_transient() && !pruned {
            self.opening = false;
            self.effects.push(Effect::Opened(Err(error)));
        } else {
            tracing::debug!(segment, %error, "subscribing to a segment failed, trying again");
        }
        self.advance(now);
    }

    /// MESSAGE.
    pub(crate) fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        let id: EntryId = (command.message_id.ledger_id, command.message_id.entry_id);
        let deviance = self.config.deviance;
        let opened = match incoming::open(payload, deviance) {
            Ok(opened) => opened,
            Err(Unreadable::Corrupt(reason, why)) => {
                tracing::warn!(segment, ledger = id.0, entry = id.1, why, "dropping a corrupt entry");
                self.send_ack(segment, entry_id(&id), Some(reason));
                return self.consumed(segment, 1);
            }
            Err(Unreadable::Unsupported(why)) => {
                tracing::warn!(
                    segment,
                    ledger = id.0,
                    entry = id.1,
                    why,
                    "leaving an entry to other consumers"
                );
                return self.consumed(segment, 1);
            }
        };
        let places = consumer.outstanding.deliver(id, opened.count, &command.ack_set);
        let redelivery_count = match command.redelivery_count {
            Some(count) if !deviance.is(Deviant::RedeliveryCountZero) => count,
            _ => 0,
        };
        let size = if opened.batch { opened.count as i32 } else { 0 };
        let mut handed_on = 0;
        for message in opened.messages {
            let place = usize::try_from(message.batch_index).unwrap_or(0);
            if places.contains(&place) {
                let (batch_index, batch_size) = (message.batch_index, size);
                let at = Position { segment, ledger: id.0, entry: id.1, batch_index, batch_size };
                self.effects.push(Effect::Deliver(Delivery {
                    segment,
                    id: at.into(),
                    redelivery_count,
                    message,
                }));
                handed_on += 1;
            }
        }
        // What the application does not get is not waited for.
        self.consumed(segment, (opened.count as u32).saturating_sub(handed_on));
    }

    /// REACHED_END_OF_TOPIC.
    pub(crate) fn end_of_topic(&mut self, segment: u64, now: Now) {
        if let Some(consumer) = self.segments.get_mut(&segment) {
            consumer.ended = true;
        }
        self.advance(now);
    }

    /// CLOSE_CONSUMER from the broker; with an address the segment has moved there.
    pub(crate) fn closed_by_broker(&mut self, segment: u64, assigned: Option<String>, now: Now) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        let delay = if assigned.is_some() { 0 } else { consumer.backoff.delay() };
        consumer.lookup = assigned.is_none();
        consumer.redirect = assigned;
        self.lost(segment, now.mono + delay);
        self.advance(now);
    }

    /// The broker answered our CLOSE_CONSUMER, or the wait for the answer is over.
    pub(crate) fn detached(&mut self, segment: u64, now: Now) {
        if self.segments.get(&segment).is_some_and(|consumer| consumer.link == Link::Detaching) {
            self.lost(segment, now.mono);
        }
        self.advance(now);
    }

    /// The connection that the segment was attached on is lost.
    pub(crate) fn disconnected(&mut self, segment: u64, now: Now) {
        if let Some(consumer) = self.segments.get_mut(&segment)
            && matches!(consumer.link, Link::Attached | Link::Detaching)
        {
            let until = now.mono + consumer.backoff.delay();
            self.lost(segment, until);
        }
        self.advance(now);
    }

    /// The time has come that [`ConsumerCore::next_deadline`] gave.
    pub(crate) fn tick(&mut self, now: Now) {
        let mut again: BTreeMap<u64, BTreeSet<EntryId>> = BTreeMap::new();
        while let Some((due, segment, entry, index)) = self.rejected.first().copied()
            && due <= now.mono
        {
            self.rejected.pop_first();
            // Not when it came again already, or the segment was attached anew: then the broker sends it anyway.
            let waits = |consumer: &SegmentConsumer| consumer.outstanding.is_rejected(entry, index);
            if self.segments.get(&segment).is_some_and(waits) {
                again.entry(segment).or_default().insert(entry);
            }
        }
        for (segment, entries) in again {
            let segment = self.misrouted(segment, Deviant::NackWrongSegment);
            self.effects.push(Effect::Redeliver { segment, ids: entries.iter().map(entry_id).collect() });
        }
        self.advance(now);
    }

    /// When something is due next, on the clock that never jumps.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let retries = self.segments.values().filter_map(|consumer| match consumer.link {
            Link::Waiting(until) if self.synced && consumer.wanted() => Some(until),
            _ => None,
        });
        retries.chain(self.rejected.first().map(|(due, ..)| *due)).min()
    }

    // ---- inside ----

    fn advance(&mut self, now: Now) {
        let ids: Vec<u64> = self.segments.keys().copied().collect();
        for id in ids {
            self.step(id, Some(now));
        }
        let ready = |c: &SegmentConsumer| !c.wanted() || c.link == Link::Attached;
        if self.opening && self.segments.values().all(ready) {
            self.opening = false;
            self.effects.push(Effect::Opened(Ok(())));
        }
        if self.closing && self.segments.is_empty() {
            self.say_closed();
        }
    }

    /// Attaches or detaches one segment, as the layout and its state ask for.
    fn step(&mut self, id: u64, now: Option<Now>) {
        let Some(consumer) = self.segments.get_mut(&id) else { return };
        if let (Link::Waiting(until), Some(now)) = (consumer.link, now)
            && until <= now.mono
        {
            consumer.link = Link::Idle;
        }
        let leaving = self.closing || consumer.retired;
        let finished = consumer.ended && consumer.outstanding.is_empty();
        match consumer.link {
            Link::Attached if leaving || finished => {
                consumer.link = Link::Detaching;
                self.effects.push(Effect::Detach { segment: id });
            }
            Link::Attached | Link::Detaching => {}
            _ if leaving => {
                self.segments.remove(&id);
                self.effects.push(Effect::Forget { segment: id });
            }
            Link::Idle if consumer.wanted() && self.synced => {
                consumer.link = Link::Attaching;
                consumer.generation += 1;
                let address = match (&consumer.redirect, &consumer.address, consumer.lookup) {
                    (Some(redirect), _, _) => Some(redirect.clone()),
                    (None, Some(address), false) => Some(address.clone()),
                    _ => None,
                };
                self.effects.push(Effect::Subscribe(Subscribe {
                    segment: id,
                    generation: consumer.generation,
                    topic: consumer.topic.clone(),
                    legacy: consumer.segment.legacy.is_some(),
                    address,
                }));
            }
            _ => {}
        }
    }

    /// A segment's attachment is over: what was delivered on it and not acknowledged comes again.
    fn lost(&mut self, segment: u64, until: Millis) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        consumer.link = Link::Waiting(until);
        consumer.at = None;
        // The end was told of a subscription with nothing open; if something is, it has to be read again.
        consumer.ended &= consumer.outstanding.is_empty();
        consumer.outstanding.clear();
        self.effects.push(Effect::Purge { segment });
    }

    fn send_ack(&mut self, segment: u64, id: MessageIdData, invalid: Option<ValidationError>) {
        let cumulative = self.config.deviance.is(Deviant::AckCumulative);
        let segment = self.misrouted(segment, Deviant::AckWrongSegment);
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        if consumer.link == Link::Attached {
            self.effects.push(Effect::Ack { segment, ids: vec![id], cumulative, invalid });
        } else {
            consumer.held.push(id);
        }
    }

    /// The segment itself; with that deviation another one.
    fn misrouted(&self, segment: u64, deviant: Deviant) -> u64 {
        if self.config.deviance.is(deviant) {
            return self.segments.keys().copied().find(|id| *id != segment).unwrap_or(segment);
        }
        segment
    }

    fn say_closed(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.effects.push(Effect::Closed);
        }
    }
}

impl SegmentConsumer {
    fn new(segment: Segment, backoff: Backoff) -> Self {
        SegmentConsumer {
            segment,
            topic: String::new(),
            address: None,
            redirect: None,
            lookup: false,
            retired: false,
            ended: false,
            link: Link::Idle,
            generation: 0,
            at: None,
            outstanding: Outstanding::default(),
            consumed: 0,
            held: Vec::new(),
            backoff,
        }
    }

    /// Whether it should be attached.
    fn wanted(&self) -> bool {
        !self.retired && !self.ended
    }
}

fn position(id: &MessageId) -> Result<Position, Error> {
    let why = "earliest and latest are positions, not messages to acknowledge";
    id.position().ok_or_else(|| Error::new(Category::InvalidConfiguration, why))
}

fn entry_id(id: &EntryId) -> MessageIdData {
    MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() }
}
