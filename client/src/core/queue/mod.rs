//! The queue consumer as a state machine (client-behavior §5): one Shared subscription for each segment of the layout,
//! active and sealed, one stream of messages out of all of them, acknowledgements routed by the segment in the
//! message's identifier.
//!
//! A sealed segment is let go once the broker has said that the end of it is reached and everything from it is
//! acknowledged, or when it leaves the layout. It is let go only when none of its messages is on its way to the
//! dead-letter topic, so that what arrives there is acknowledged.

mod letters;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use stc_proto::pulsar::{CommandMessage, MessageIdData, command_ack::ValidationError};

use self::letters::Letters;
use super::{
    Link, Millis, Now,
    acks::{EntryId, Outstanding},
    backoff::{Backoff, Rng},
    consumer::{self, Core, Delivery, Life, LifeConfig},
    deviant::Deviant,
    error::{Category, Error},
    incoming::Unreadable,
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
    /// How often a message may come again before it is a dead letter; `None` without a dead-letter policy.
    pub(crate) max_redeliveries: Option<u32>,
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
    /// Sends a message to the dead-letter topic; how that went goes to [`QueueCore::buried`].
    Bury(Box<Delivery>),
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
    letters: Letters,
}

impl QueueCore {
    /// A consumer on a topic that is resolved. It subscribes to every segment and then says [`Effect::Opened`].
    pub(crate) fn new(config: QueueConfig, view: View, mut rng: Rng, now: Now) -> Self {
        let backoff = Backoff::new(config.life.backoff, rng.fork());
        let letters = Letters::new(config.max_redeliveries, backoff, config.life.deviance);
        let life = Life::new(&config.life, view.clone(), rng, false, now);
        let (segments, rejected) = (BTreeMap::new(), BTreeSet::new());
        let mut core = QueueCore { config, life, segments, rejected, letters };
        core.apply_layout(view, now);
        core
    }

    // ---- events from the application ----

    /// The application acknowledged a message.
    pub(crate) fn acknowledge(&mut self, at: Position, now: Now) {
        if self.life.deviance.is(Deviant::AckNothing) {
            return;
        }
        // Drained and gone from the layout: it was acknowledged.
        let Some(consumer) = self.segments.get_mut(&at.segment) else { return };
        let whole = self.life.deviance.is(Deviant::AckWholeBatch);
        let index = if whole { -1 } else { at.batch_index };
        let entry = (at.ledger, at.entry);
        let parts = consumer.outstanding.parts(entry);
        let data = consumer.outstanding.acknowledge(entry, index, at.batch_size);
        self.rejected.retain(|(_, segment, entry, index)| {
            (*segment, *entry, *index) != (at.segment, (at.ledger, at.entry), at.batch_index)
        });
        self.send_ack(at.segment, data, None);
        self.drop_parts(at.segment, parts);
        self.step(at.segment, now);
    }

    /// The application acknowledged a message in a transaction; `group` names the call.
    ///
    /// # Errors
    /// As for [`position`].
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
            let parts = consumer.outstanding.parts((at.ledger, at.entry)).into_iter();
            let mut ids: Vec<MessageIdData> =
                parts.map(|part| consumer.outstanding.acknowledge_in(txn, part, -1, 0)).collect();
            ids.push(data);
            let ack = TxnAck { segment: at.segment, ids, up_to: None };
            (consumer.topic.clone(), ack)
        });
        self.life.acknowledge_in(group, txn, ack.into_iter().collect(), now);
        self.advance(now);
        Ok(())
    }

    /// The application rejected a message: it is asked for again after the redelivery delay.
    ///
    /// # Errors
    /// As for [`position`].
    pub(crate) fn reject(&mut self, id: &MessageId, now: Now) -> Result<(), Error> {
        let at = position(id)?;
        let deviance = self.life.deviance;
        if deviance.is(Deviant::NackAsAck) {
            self.acknowledge(at, now);
            return Ok(());
        }
        let Some(consumer) = self.segments.get_mut(&at.segment) else { return Ok(()) };
        if deviance.is(Deviant::NackEverything) {
            let ids = consumer.outstanding.reject_all();
            self.own(Own::Redeliver { segment: at.segment, ids: ids.iter().map(entry_id).collect() });
        } else if !deviance.is(Deviant::NackIgnored) {
            self.again(&at, now.mono + self.config.redelivery_delay);
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

    /// A message was sent to the dead-letter topic, or could not be: then it comes again.
    pub(crate) fn buried(&mut self, id: &MessageId, result: Result<(), Error>, now: Now) {
        let Some(at) = id.position().filter(|at| self.letters.end(at)) else { return };
        let deviance = self.life.deviance;
        match result {
            Ok(()) => {
                self.letters.succeeded();
                if !deviance.is(Deviant::DeadLetterKept) {
                    self.acknowledge(at, now);
                }
            }
            Err(error) => {
                tracing::warn!(segment = at.segment, %error, "a message did not get to the dead-letter topic");
                if !deviance.is(Deviant::DeadLetterGivenUp) {
                    let due = self.letters.failed(now.mono).max(now.mono + self.config.redelivery_delay);
                    self.again(&at, due);
                }
            }
        }
        self.advance(now);
    }

    // ---- inside ----

    /// Has a message delivered again at this time, with all its parts. Where it is not open any more, the broker does so
    /// by itself, or it is acknowledged.
    fn again(&mut self, at: &Position, due: Millis) {
        let Some(consumer) = self.segments.get_mut(&at.segment) else { return };
        let entry = (at.ledger, at.entry);
        if !consumer.outstanding.reject(entry, at.batch_index) {
            return;
        }
        for part in consumer.outstanding.parts(entry) {
            consumer.outstanding.reject(part, -1);
            self.rejected.insert((due, at.segment, part, -1));
        }
        self.rejected.insert((due, at.segment, entry, at.batch_index));
    }

    /// A message came too often.
    fn bury(&mut self, at: &Position, delivery: Delivery, now: Now) {
        let deviance = self.life.deviance;
        if deviance.is(Deviant::DeadLetterDeliveredToo) {
            self.life.effects.push(Effect::Deliver(delivery.clone()));
        }
        let dropped = deviance.is(Deviant::DeadLetterDropped);
        if dropped || deviance.is(Deviant::DeadLetterAckedFirst) {
            self.acknowledge(*at, now);
        }
        if !dropped && self.letters.begin(at) {
            self.own(Own::Bury(Box::new(delivery)));
        }
    }

    fn own(&mut self, own: Own) {
        self.life.effects.push(Effect::Own(own));
    }

    /// Acknowledges entries that have parts of a message.
    fn drop_parts(&mut self, segment: u64, parts: Vec<EntryId>) {
        for part in parts {
            let Some(consumer) = self.segments.get_mut(&segment) else { return };
            let data = consumer.outstanding.acknowledge(part, -1, 0);
            self.send_ack(segment, data, None);
        }
    }

    fn send_ack(&mut self, segment: u64, id: MessageIdData, invalid: Option<ValidationError>) {
        let cumulative = self.life.deviance.is(Deviant::AckCumulative);
        let segment = self.misrouted(segment, Deviant::AckWrongSegment);
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        if consumer.place.is_attached() {
            // Those that follow one another go together.
            match self.life.effects.last_mut() {
                Some(Effect::Own(Own::Ack { segment: same, ids, cumulative: false, invalid: None }))
                    if *same == segment && !cumulative && invalid.is_none() =>
                {
                    // Of a batch with open members, what is said later says more. 5.0.1 miscounts what is left to be
                    // acknowledged when a frame names an entry twice, though other entries stand between.
                    let again = |before: &MessageIdData| {
                        !before.ack_set.is_empty()
                            && (before.ledger_id, before.entry_id) == (id.ledger_id, id.entry_id)
                    };
                    if let Some(at) = ids.iter().rposition(again) {
                        ids.remove(at);
                    }
                    ids.push(id);
                }
                _ => self.own(Own::Ack { segment, ids: vec![id], cumulative, invalid }),
            }
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
        self.letters.clear();
    }

    fn choose(&mut self) {
        let deviance = self.life.deviance;
        let first = self.segments.is_empty();
        let layout = self.life.view.layout.clone();
        for segment in layout.segments() {
            let skipped = (deviance.is(Deviant::SubscribeActiveOnly) && !segment.active)
                || (deviance.is(Deviant::NoNewSegments) && !first)
                || (deviance.is(Deviant::QueueFirstPartition) && segment.legacy.is_some() && segment.id > 0);
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
        let busy = self.letters.is_busy(id);
        let finished = consumer.ended && consumer.outstanding.is_empty();
        match consumer.place.link {
            Link::Attached if (leaving || finished) && !busy => self.detach(id),
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
        self.life.opener.forget(segment);
        self.own(Own::Purge { segment });
    }

    /// A sealed segment can be pruned between the layout and the subscribe: the next layout says so.
    fn forgives(&self, consumer: &SegmentConsumer, error: &Error) -> bool {
        error.category() == Category::NotFound && !consumer.segment.active
    }

    fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, now: Now) {
        let Some(consumer) = self.segments.get_mut(&segment) else { return };
        let id: EntryId = (command.message_id.ledger_id, command.message_id.entry_id);
        let deviance = self.life.deviance;
        let (permits, opened) = self.life.opener.open(segment, id, payload, now.mono);
        let opened = match opened {
            Ok(opened) => opened,
            Err(Unreadable::Corrupt(reason, why)) => {
                tracing::warn!(segment, ledger = id.0, entry = id.1, why, "dropping a corrupt entry");
                self.send_ack(segment, entry_id(&id), Some(reason));
                return self.consumed(segment, permits);
            }
            Err(Unreadable::Part) => {
                consumer.outstanding.deliver(id, 1, &[]);
                return self.consumed(segment, permits);
            }
            Err(Unreadable::Duplicate) => {
                self.send_ack(segment, entry_id(&id), None);
                return self.consumed(segment, permits);
            }
            Err(Unreadable::Unsupported(why)) => {
                tracing::warn!(
                    segment,
                    ledger = id.0,
                    entry = id.1,
                    why,
                    "leaving an entry to other consumers"
                );
                return self.consumed(segment, permits);
            }
        };
        let places = consumer.outstanding.deliver(id, opened.count, &command.ack_set);
        consumer.outstanding.join(id, opened.parts);
        let redelivery_count = match command.redelivery_count {
            Some(count) if !deviance.is(Deviant::RedeliveryCountZero) => count,
            _ => 0,
        };
        let active = consumer.segment.active;
        let came_again = command.redelivery_count.unwrap_or_default();
        let dead = self.letters.take(segment, id, active, came_again);
        let whole = dead && deviance.is(Deviant::DeadLetterWholeEntry);
        let size = if opened.batch { opened.count as i32 } else { 0 };
        let mut handed_on = 0;
        for message in opened.messages {
            let place = usize::try_from(message.batch_index).unwrap_or(0);
            if !places.contains(&place) && !whole {
                continue;
            }
            let (batch_index, batch_size) = (message.batch_index, size);
            let at = Position { segment, ledger: id.0, entry: id.1, batch_index, batch_size };
            let delivery = Delivery { segment, id: at.into(), redelivery_count, message };
            if dead && !delivery.message.is_sealed() {
                self.bury(&at, delivery, now);
            } else {
                self.life.effects.push(Effect::Deliver(delivery));
                handed_on += 1;
            }
        }
        // What the application does not get is not waited for.
        self.consumed(segment, permits.saturating_sub(handed_on));
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

    /// Asks for rejected messages whose time has come, and lets go of what will not become a message.
    fn due(&mut self, now: Now) {
        for (segment, entry) in self.life.opener.give_up(now.mono) {
            self.drop_parts(segment, vec![entry]);
        }
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

/// Where a message is that is to be acknowledged or rejected.
///
/// # Errors
/// `InvalidConfiguration` for the identifiers earliest and latest, which are no messages.
pub(crate) fn position(id: &MessageId) -> Result<Position, Error> {
    let why = "earliest and latest are positions, not messages to acknowledge";
    id.position().ok_or_else(|| Error::new(Category::InvalidConfiguration, why))
}

fn entry_id(id: &EntryId) -> MessageIdData {
    MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() }
}
