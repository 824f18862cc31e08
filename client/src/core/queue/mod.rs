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
    backoff::Rng,
    consumer::{self, Core, Delivery, Life, LifeConfig},
    deviant::Deviant,
    error::{Category, Error},
    incoming::{self, Unreadable},
    layout::Segment,
    message_id::{MessageId, Position},
    place::Place,
    tracker::View,
    transaction::{
        TxnId,
        acks::{Reach, TxnAck},
    },
};

/// What an application can set on a queue consumer, as far as the state machine needs it.
#[derive(Debug, Clone)]
pub(crate) struct QueueConfig {
    /// Messages of one segment that may be under way or wait to be received.
    pub(crate) receiver_queue: u32,
    /// How long a rejected message stays away.
    pub(crate) redelivery_delay: Millis,
    pub(crate) life: LifeConfig,
}

/// What only a queue consumer asks of the shell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Own {
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
    /// Takes the messages of a segment out of the receive queue: the broker will send them again.
    Purge {
        segment: u64,
    },
}

pub(crate) type Effect = consumer::Effect<(), Delivery, Own>;

#[derive(Debug)]
pub(crate) struct SegmentConsumer {
    segment: Segment,
    topic: String,
    place: Place,
    /// No longer in the layout.
    retired: bool,
    /// The broker said that nothing more will come.
    ended: bool,
    outstanding: Outstanding,
    /// Messages taken out of the receive queue since permits were granted last.
    consumed: u32,
    /// Acknowledgements made while not attached.
    held: Vec<MessageIdData>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct QueueCore {
    config: QueueConfig,
    life: Life<(), Delivery, Own>,
    segments: BTreeMap<u64, SegmentConsumer>,
    /// Rejected messages, by the time at which they are asked for again.
    rejected: BTreeSet<(Millis, u64, EntryId, i32)>,
}

impl QueueCore {
    /// A consumer on a topic that is resolved. It subscribes to every segment and then says [`Effect::Opened`].
    pub(crate) fn new(config: QueueConfig, view: View, rng: Rng, now: Now) -> Self {
        let life = Life::new(&config.life, view.clone(), rng, false, now);
        let mut core = QueueCore { config, life, segments: BTreeMap::new(), rejected: BTreeSet::new() };
        core.apply_layout(view, now);
        core
    }

    // ---- events from the application ----

    /// The application acknowledged a message.
    ///
    /// # Errors
    /// `InvalidConfiguration` for the identifiers earliest and latest, which are no messages.
    pub(crate) fn acknowledge(&mut self, id: &MessageId, now: Now) -> Result<(), Error> {
        let at = position(id)?;
        if self.life.deviance.is(Deviant::AckNothing) {
            return Ok(());
        }
        let Some(consumer) = self.segments.get_mut(&at.segment) else {
            // Drained and gone from the layout: it was acknowledged.
            return Ok(());
        };
        let whole = self.life.deviance.is(Deviant::AckWholeBatch);
        let index = if whole { -1 } else { at.batch_index };
        let data = consumer.outstanding.acknowledge((at.ledger, at.entry), index, at.batch_size);
        self.rejected.retain(|(_, segment, entry, index)| {
            (*segment, *entry, *index) != (at.segment, (at.ledger, at.entry), at.batch_index)
        });
        self.send_ack(at.segment, data, None);
        self.step(at.segment, now);
        Ok(())
    }

    /// The application acknowledged a message in a transaction; `group` names the call.
    ///
    /// # Errors
    /// As for [`QueueCore::acknowledge`].
    pub(crate) fn acknowledge_in(
        &mut self,
        txn: TxnId,
        group: u64,
        id: &MessageId,
        now: Now,
    ) -> Result<(), Error> {
        let at = position(id)?;
        let ack = self.segments.get_mut(&at.segment).map(|consumer| {
            let data = consumer.outstanding.acknowledge_in(
                txn,
                (at.ledger, at.entry),
                at.batch_index,
                at.batch_size,
            );
            let ack = TxnAck { segment: at.segment, ids: vec![data], up_to: None };
            (consumer.topic.clone(), ack)
        });
        self.life.acknowledge_in(group, txn, ack.into_iter().collect(), now);
        self.advance(now);
        Ok(())
    }

    /// The application rejected a message: it is asked for again after the redelivery delay.
    ///
    /// # Errors
    /// As for [`QueueCore::acknowledge`].
    pub(crate) fn reject(&mut self, id: &MessageId, now: Now) -> Result<(), Error> {
        let at = position(id)?;
        let deviance = self.life.deviance;
        if deviance.is(Deviant::NackAsAck) {
            return self.acknowledge(id, now);
        }
        let Some(consumer) = self.segments.get_mut(&at.segment) else { return Ok(()) };
        if deviance.is(Deviant::NackEverything) {
            let ids = consumer.outstanding.reject_all();
            self.own(Own::Redeliver { segment: at.segment, ids: ids.iter().map(entry_id).collect() });
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
        if enough && consumer.place.is_attached() && !self.life.deviance.is(Deviant::NoPermits) {
            let permits = std::mem::take(&mut consumer.consumed);
            self.life.effects.push(Effect::Flow { segment, permits });
        }
    }

    // ---- inside ----

    fn own(&mut self, own: Own) {
        self.life.effects.push(Effect::Own(own));
    }

    fn send_ack(&mut self, segment: u64, id: MessageIdData, invalid: Option<ValidationError>) {
        let cumulative = self.life.deviance.is(Deviant::AckCumulative);
        let segment = self.misrouted(segment, Deviant::AckWrongSegment);
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        if consumer.place.is_attached() {
            self.own(Own::Ack { segment, ids: vec![id], cumulative, invalid });
        } else {
            consumer.held.push(id);
        }
    }

    /// The segment itself; with that deviation another one.
    fn misrouted(&self, segment: u64, deviant: Deviant) -> u64 {
        if self.life.deviance.is(deviant) {
            return self.segments.keys().copied().find(|id| *id != segment).unwrap_or(segment);
        }
        segment
    }
}

impl consumer::Segment for SegmentConsumer {
    fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    fn reach(&self) -> Reach {
        if self.place.is_attached() { Reach::Shared } else { Reach::Away }
    }

    fn retry_at(&self) -> Option<Millis> {
        self.place.retry_at().filter(|_| self.wanted())
    }
}

impl SegmentConsumer {
    /// Whether it should be attached.
    fn wanted(&self) -> bool {
        !self.retired && !self.ended
    }
}

impl Core for QueueCore {
    type How = ();
    type Delivery = Delivery;
    type Own = Own;
    type Segment = SegmentConsumer;

    fn life(&self) -> &Life<(), Delivery, Own> {
        &self.life
    }

    fn segments(&self) -> &BTreeMap<u64, SegmentConsumer> {
        &self.segments
    }

    fn parts(&mut self) -> (&mut Life<(), Delivery, Own>, &mut BTreeMap<u64, SegmentConsumer>) {
        (&mut self.life, &mut self.segments)
    }

    fn on_another_topic(&mut self) {
        self.rejected.clear();
    }

    fn choose(&mut self) {
        let deviance = self.life.deviance;
        let first = self.segments.is_empty();
        let layout = self.life.view.layout.clone();
        for segment in layout.segments() {
            let skipped = (deviance.is(Deviant::SubscribeActiveOnly) && !segment.active)
                || (deviance.is(Deviant::NoNewSegments) && !first);
            if skipped {
                continue;
            }
            let life = &mut self.life;
            let consumer = self.segments.entry(segment.id).or_insert_with(|| SegmentConsumer {
                segment: segment.clone(),
                topic: String::new(),
                place: life.place(),
                retired: false,
                ended: false,
                outstanding: Outstanding::default(),
                consumed: 0,
                held: Vec::new(),
            });
            consumer.segment = segment.clone();
            consumer.topic = segment.topic(&self.life.view.topic, deviance);
        }
        for (id, consumer) in &mut self.segments {
            consumer.retired = layout.segment(*id).is_none() && !deviance.is(Deviant::KeepGoneSegments);
        }
    }

    fn step(&mut self, id: u64, _: Now) {
        let Some(consumer) = self.segments.get_mut(&id) else { return };
        let leaving = self.life.is_detaching() || consumer.retired;
        let finished = consumer.ended && consumer.outstanding.is_empty();
        match consumer.place.link {
            Link::Attached if leaving || finished => self.detach(id),
            Link::Attached | Link::Detaching => {}
            _ if leaving => {
                self.segments.remove(&id);
                self.life.effects.push(Effect::Forget { segment: id });
            }
            Link::Idle if consumer.wanted() && self.life.may_attach() => {
                self.life.attach(id, &consumer.topic, &mut consumer.place, ());
            }
            _ => {}
        }
    }

    fn is_ready(&self) -> bool {
        self.segments.values().all(|consumer| !consumer.wanted() || consumer.place.is_attached())
    }

    fn on_attached(&mut self, segment: u64, _: Now) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        consumer.consumed = 0;
        // Before the permits, so that the broker does not send what is acknowledged already.
        let ids = std::mem::take(&mut consumer.held);
        if !ids.is_empty() {
            self.own(Own::Ack { segment, ids, cumulative: false, invalid: None });
        }
        self.life.effects.push(Effect::Flow { segment, permits: self.config.receiver_queue });
    }

    /// What was delivered on the attachment and not acknowledged comes again.
    fn on_lost(&mut self, segment: u64, _: bool) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        // The end was told of a subscription with nothing open; if something is, it has to be read again.
        consumer.ended &= consumer.outstanding.is_empty();
        consumer.outstanding.clear();
        self.own(Own::Purge { segment });
    }

    /// A sealed segment can be pruned between the layout and the subscribe: the next layout says so.
    fn forgives(&self, consumer: &SegmentConsumer, error: &Error) -> bool {
        error.category() == Category::NotFound && !consumer.segment.active
    }

    fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, _: Now) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        let id: EntryId = (command.message_id.ledger_id, command.message_id.entry_id);
        let deviance = self.life.deviance;
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
                self.life.effects.push(Effect::Deliver(Delivery {
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

    fn on_transaction_end(&mut self, txn: TxnId, committed: bool, _: Now) {
        self.segments.values_mut().for_each(|consumer| consumer.outstanding.ended(txn, committed));
    }

    fn end_of_topic(&mut self, segment: u64, now: Now) {
        if let Some(consumer) = self.segments.get_mut(&segment) {
            consumer.ended = true;
        }
        self.advance(now);
    }

    /// Asks for rejected messages whose time has come.
    fn due(&mut self, now: Now) {
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
            self.own(Own::Redeliver { segment, ids: entries.iter().map(entry_id).collect() });
        }
    }

    fn own_deadline(&self) -> Option<Millis> {
        self.rejected.first().map(|(due, ..)| *due)
    }
}

fn position(id: &MessageId) -> Result<Position, Error> {
    let why = "earliest and latest are positions, not messages to acknowledge";
    id.position().ok_or_else(|| Error::new(Category::InvalidConfiguration, why))
}

fn entry_id(id: &EntryId) -> MessageIdData {
    MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() }
}
