//! What the brokers of segments say to their attachments.

use bytes::Bytes;
use stc_proto::pulsar::{CommandMessage, MessageIdData};

use super::{Effect, Ending, StreamCore, StreamDelivery, deliveries::Arrived, segment::Phase};
use crate::core::{
    Millis, Now,
    acks::EntryId,
    consumer::Delivery,
    deviant::Deviant,
    error::{Category, Error},
    incoming::{self, Unreadable},
    message_id::{MessageId, Position},
};

impl StreamCore {
    /// SUBSCRIBE succeeded. False when nobody waits for it any more: the shell has to close it.
    pub(crate) fn attached(&mut self, segment: u64, generation: u64, at: String, now: Now) -> bool {
        let Some(stream) = self.segments.get_mut(&segment) else { return false };
        let Some(attachment) = stream.of(generation).filter(|a| a.phase == Phase::Attaching) else {
            return false;
        };
        attachment.phase = Phase::Attached;
        attachment.at = Some(at);
        let wanted = Some(attachment.mode.clone());
        stream.lookup = false;
        stream.redirect = None;
        stream.fresh = false;
        stream.backoff.reset();
        // Not when it is let go again at once.
        let stays = stream.wanted == wanted && self.ending == Ending::Not;
        // Before the permits, so that the broker does not send what is acknowledged already.
        self.send_acks(now);
        if stays {
            self.effects.push(Effect::Flow { segment, permits: self.config.receiver_queue });
        }
        self.advance(now);
        true
    }

    /// SUBSCRIBE failed, or no connection could be made for it.
    pub(crate) fn attach_failed(&mut self, segment: u64, generation: u64, error: Error, now: Now) {
        let deviance = self.deviance();
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        if stream.of(generation).is_none_or(|a| a.phase != Phase::Attaching) {
            return;
        }
        stream.attachment = None;
        stream.redirect = None;
        stream.not_before = now.mono + stream.backoff.delay();
        let busy = error.category() == Category::ConsumerBusy && !deviance.is(Deviant::ConsumerBusySurfaces);
        // The former owner may still drain the segment.
        if !busy {
            stream.lookup = !stream.lookup;
        }
        // A segment can be drained and pruned between the assignment and the subscribe: the next one says so.
        let gone = matches!(error.category(), Category::NotFound | Category::TopicTerminated);
        if self.opening.is_some() && !(error.is_transient() || busy || gone) {
            self.opening = None;
            self.effects.push(Effect::Opened(Err(error)));
        } else {
            tracing::debug!(segment, %error, "subscribing to a segment failed, trying again");
            self.last_error = Some(error);
        }
        self.advance(now);
    }

    /// MESSAGE.
    pub(crate) fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes) {
        let deviance = self.deviance();
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        let Some(attachment) = &mut stream.attachment else { return };
        let generation = attachment.generation;
        let fenced = match attachment.phase {
            Phase::Attached => false,
            // On its way when the drain began: it comes again to whoever is next.
            Phase::Draining => !deviance.is(Deviant::DeliverWhileDraining),
            Phase::Attaching | Phase::Detaching => true,
        };
        if fenced {
            return;
        }
        let id: EntryId = (command.message_id.ledger_id, command.message_id.entry_id);
        let opened = match incoming::open(payload, deviance) {
            Ok(opened) => opened,
            Err(Unreadable::Corrupt(reason, why)) => {
                tracing::warn!(segment, ledger = id.0, entry = id.1, why, "dropping a corrupt entry");
                let id = MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() };
                self.effects.push(Effect::Invalid { segment, id, reason });
                return self.consumed(segment, generation, 1);
            }
            Err(Unreadable::Unsupported(why)) => {
                tracing::warn!(segment, ledger = id.0, entry = id.1, why, "passing over an entry");
                return self.consumed(segment, generation, 1);
            }
        };
        let shared = attachment.mode.is_shared();
        let index = |message: &incoming::Incoming| usize::try_from(message.batch_index).unwrap_or(0);
        let present: Vec<usize> = opened.messages.iter().map(index).collect();
        let arrived = Arrived {
            id,
            count: opened.count,
            batch: opened.batch,
            exclusive: !shared,
            ack_set: &command.ack_set,
        };
        let places = attachment.deliveries.deliver(&arrived, &present, &mut stream.late, &mut self.sequence);
        let batch_size = if opened.batch { opened.count as i32 } else { 0 };
        let skipped = (opened.count as u32).saturating_sub(places.len() as u32);
        for message in opened.messages {
            let Some((_, sequence)) = places.iter().find(|(place, _)| *place == index(&message)) else {
                continue;
            };
            let batch_index = message.batch_index;
            let at = Position { segment, ledger: id.0, entry: id.1, batch_index, batch_size };
            let vector = self.vector(generation, at, shared, *sequence);
            let delivery = Delivery {
                segment,
                id: MessageId::delivered(at, vector),
                redelivery_count: command.redelivery_count.unwrap_or_default(),
                message,
            };
            self.effects.push(Effect::Deliver(StreamDelivery { generation, delivery }));
        }
        self.swap_deliveries();
        // What the application does not get is not waited for.
        self.consumed(segment, generation, skipped);
    }

    /// CLOSE_CONSUMER from the broker; with an address the segment has moved there.
    pub(crate) fn closed_by_broker(&mut self, segment: u64, assigned: Option<String>, now: Now) {
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        let delay = if assigned.is_some() { 0 } else { stream.backoff.delay() };
        stream.lookup = assigned.is_none();
        stream.redirect = assigned;
        self.lost(segment, now.mono + delay);
        self.advance(now);
    }

    /// The connection that the segment was attached on is lost.
    pub(crate) fn disconnected(&mut self, segment: u64, now: Now) {
        if let Some(stream) = self.segments.get_mut(&segment)
            && stream.phase().is_some_and(|phase| phase != Phase::Attaching)
        {
            let until = now.mono + stream.backoff.delay();
            self.lost(segment, until);
        }
        self.advance(now);
    }

    /// The broker answered our CLOSE_CONSUMER, or the wait for the answer is over.
    pub(crate) fn detached(&mut self, segment: u64, now: Now) {
        if self.segments.get(&segment).is_some_and(|stream| stream.phase() == Some(Phase::Detaching)) {
            self.lost(segment, now.mono);
            if let Some(stream) = self.segments.get_mut(&segment) {
                stream.fresh = true;
            }
        }
        self.advance(now);
    }

    /// An attachment is over: what was delivered on it and not acknowledged comes again, here or to another consumer.
    fn lost(&mut self, segment: u64, until: Millis) {
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        if let Some(attachment) = stream.attachment.take() {
            stream.not_before = until;
            attachment.deliveries.outlive(&mut stream.late);
            self.effects.push(Effect::Withdraw { segment, generation: attachment.generation });
        }
    }

    /// Messages of an attachment were taken out of the receive queue before the application could receive them.
    pub(crate) fn withdrawn(&mut self, segment: u64, generation: u64, places: &[Position], now: Now) {
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        match stream.of(generation) {
            Some(attachment) => attachment.deliveries.withdraw(places),
            None => stream.late.withdraw(places),
        }
        self.advance(now);
    }
}
