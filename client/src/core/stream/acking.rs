//! From the application's cumulative acknowledgements to what each segment's broker is told (client-behavior §6).
//!
//! An acknowledgement covers what had been delivered when its message was: of each segment in the message's position
//! vector, the messages up to the position there. Which of them are still open is known from the deliveries, so that
//! messages which the application never received are not covered, and neither is what was delivered to others.

use stc_proto::pulsar::MessageIdData;

use super::{Effect, Own, StreamCore, deliveries::in_transaction::AckIn, segment::Attachment};
use crate::core::{
    Now,
    consumer::Core as _,
    deviant::Deviant,
    error::{Category, Error},
    message_id::{Delivered, MessageId, Position, Slice, Vector},
    transaction::{TxnId, acks::TxnAck},
};

impl StreamCore {
    /// The application acknowledged everything up to a message.
    ///
    /// # Errors
    /// `InvalidConfiguration` for the identifiers earliest and latest, which are no messages.
    pub(crate) fn acknowledge(&mut self, id: &MessageId, now: Now) -> Result<(), Error> {
        let why = "earliest and latest are positions, not messages to acknowledge";
        let own = id.position().ok_or_else(|| Error::new(Category::InvalidConfiguration, why))?;
        let deviance = self.deviance();
        if deviance.is(Deviant::IgnoreAcks) {
            return Ok(());
        }
        let vector = id.vector();
        // Of another consumer's deliveries only the positions count.
        let delivered = vector.and_then(|vector| vector.delivered);
        let mut sequence = delivered.filter(|d| d.consumer == self.config.consumer).map(|d| d.sequence);
        let alone = [Slice { at: own, shared: true }];
        let mut slices = vector.map_or(&alone[..], |vector| &vector.slices).to_vec();
        if deviance.is(Deviant::PositionVectorAtReceive) {
            (slices, sequence) = (self.positions.values().copied().collect(), None);
        }
        for slice in &slices {
            if deviance.is(Deviant::AckOnlyOwnSegment) && slice.at.segment != own.segment {
                continue;
            }
            self.want(slice, &own, sequence);
        }
        if self.acks_due.is_none() && self.config.group_time > 0 {
            self.acks_due = Some(now.mono + self.config.group_time);
        }
        self.send_acks(now);
        self.advance(now);
        Ok(())
    }

    /// The application acknowledged everything up to a message in a transaction; `group` names the call.
    ///
    /// # Errors
    /// As for [`StreamCore::acknowledge`].
    pub(crate) fn acknowledge_in(
        &mut self,
        txn: TxnId,
        group: u64,
        id: &MessageId,
        now: Now,
    ) -> Result<(), Error> {
        let why = "earliest and latest are positions, not messages to acknowledge";
        let own = id.position().ok_or_else(|| Error::new(Category::InvalidConfiguration, why))?;
        let vector = id.vector();
        let delivered = vector.and_then(|vector| vector.delivered);
        let sequence = delivered.filter(|d| d.consumer == self.config.consumer).map(|d| d.sequence);
        let alone = [Slice { at: own, shared: true }];
        let slices = vector.map_or(&alone[..], |vector| &vector.slices);
        let acks = slices.iter().flat_map(|slice| self.want_in(txn, slice, &own, sequence)).collect();
        self.life.acknowledge_in(group, txn, acks, now);
        self.advance(now);
        Ok(())
    }

    /// What is to be acknowledged in a transaction of one segment.
    fn want_in(
        &mut self,
        txn: TxnId,
        slice: &Slice,
        own: &Position,
        sequence: Option<u64>,
    ) -> Vec<(String, TxnAck)> {
        // A segment that went to another consumer is that one's now.
        let Some(segment) = self.segments.get_mut(&slice.at.segment) else { return Vec::new() };
        let upto = slice.at;
        let exclusive = segment.attachment.as_ref().is_some_and(|a| !a.mode.is_shared());
        let deliveries = segment.attachment.as_mut().map(|attachment| &mut attachment.deliveries);
        let unknown = sequence.is_none()
            && !deliveries.as_ref().is_some_and(|deliveries| deliveries.knows(&upto))
            && !segment.late.knows(&upto);
        let mut acks: Vec<AckIn> = segment.late.want_in(txn, &upto, sequence, false).into_iter().collect();
        acks.extend(deliveries.and_then(|deliveries| deliveries.want_in(txn, &upto, sequence, exclusive)));
        if unknown && ((exclusive && !slice.shared) || own.segment == upto.segment) {
            // Restored from bytes, or delivered to another consumer object: the position itself is all there is.
            let id = MessageIdData { ledger_id: upto.ledger, entry_id: upto.entry, ..Default::default() };
            let up_to = (exclusive && !slice.shared).then(|| id.clone());
            acks.push(AckIn { ids: vec![id], up_to });
        }
        let topic = &segment.topic;
        let segment = slice.at.segment;
        let named = |AckIn { ids, up_to }| (topic.clone(), TxnAck { segment, ids, up_to });
        acks.into_iter().map(named).collect()
    }

    fn want(&mut self, slice: &Slice, own: &Position, sequence: Option<u64>) {
        let deviance = self.deviance();
        // A segment that went to another consumer is that one's now.
        let Some(segment) = self.segments.get_mut(&slice.at.segment) else { return };
        let mut upto = slice.at;
        if deviance.is(Deviant::AckBeforePosition) {
            upto.entry = upto.entry.wrapping_sub(1);
        }
        segment.late.want(&upto, sequence);
        let Some(attachment) = &mut segment.attachment else {
            if sequence.is_none() && !segment.late.knows(&upto) {
                segment.late.want_unknown(&upto, !slice.shared);
            }
            return;
        };
        let shared = attachment.mode.is_shared();
        if deviance.is(Deviant::AckOnlyLastOnShared) && shared {
            if own.segment == upto.segment {
                attachment.deliveries.want_unknown(own, false);
            }
            return;
        }
        attachment.deliveries.want(&upto, sequence);
        // Restored from bytes, or delivered to another consumer object: the position itself is all there is.
        let unknown = sequence.is_none() && !attachment.deliveries.knows(&upto) && !segment.late.knows(&upto);
        if unknown && !slice.shared && !shared {
            attachment.deliveries.want_unknown(&upto, true);
        } else if unknown && own.segment == upto.segment {
            attachment.deliveries.want_unknown(own, false);
        }
    }

    /// For the deviants that acknowledge what the application did not.
    pub(super) fn want_everything(&mut self) {
        for attachment in self.segments.values_mut().filter_map(|segment| segment.attachment.as_mut()) {
            let end =
                Position { segment: 0, ledger: u64::MAX, entry: u64::MAX, batch_index: -1, batch_size: 0 };
            attachment.deliveries.want(&end, None);
        }
    }

    /// Tells the brokers what the application acknowledged, unless it is still being collected.
    pub(super) fn send_acks(&mut self, now: Now) {
        if self.acks_due.is_some() {
            return;
        }
        let deviance = self.deviance();
        for (id, segment) in &mut self.segments {
            let generation = segment.place.generation;
            let open = segment.place.is_attached();
            let due = |attachment: &&mut Attachment| open && attachment.acks_after <= now.mono;
            let Some(attachment) = segment.attachment.as_mut().filter(due) else { continue };
            attachment.deliveries.adopt_wanted(&mut segment.late);
            let exclusive = !attachment.mode.is_shared();
            for ack in attachment.deliveries.acks(exclusive, &mut self.next_ticket, deviance) {
                self.life.effects.push(Effect::Own(Own::Ack { segment: *id, generation, ack }));
            }
        }
    }

    /// The broker answered an acknowledgement, or did not in time.
    pub(crate) fn ack_answered(
        &mut self,
        segment: u64,
        generation: u64,
        ticket: u64,
        result: Result<(), Error>,
        now: Now,
    ) {
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        let delay = result.is_err().then(|| stream.acks_backoff.delay());
        if let (Some(attachment), Some(delay)) = (stream.of(generation), delay) {
            attachment.acks_after = now.mono + delay;
        }
        if let Err(error) = &result {
            tracing::debug!(segment, %error, "an acknowledgement was not accepted, sending it again");
        } else {
            stream.acks_backoff.reset();
        }
        if let Some(attachment) = stream.of(generation) {
            attachment.deliveries.answered(ticket, result.is_ok());
        }
        self.advance(now);
    }

    /// Notes a delivery and gives what had been delivered by then.
    pub(super) fn vector(&mut self, generation: u64, at: Position, shared: bool, sequence: u64) -> Vector {
        let slice = self.positions.entry(at.segment).or_insert(Slice { at, shared });
        // Of one attachment the furthest counts: a bucket that moved here brings older messages.
        let same = self.generations.insert(at.segment, generation) == Some(generation);
        let further = (slice.at.ledger, slice.at.entry, slice.at.batch_index);
        if !same || (at.ledger, at.entry, at.batch_index) > further {
            *slice = Slice { at, shared };
        }
        let delivered = Delivered { consumer: self.config.consumer, sequence };
        Vector { delivered: Some(delivered), slices: self.positions.values().copied().collect() }
    }

    /// For the deviant that does not keep the order.
    pub(super) fn swap_deliveries(&mut self) {
        if !self.deviance().is(Deviant::ReorderStream) {
            return;
        }
        if let [.., Effect::Deliver(a), Effect::Deliver(b)] = self.life.effects.as_mut_slice() {
            std::mem::swap(a, b);
        }
    }
}
