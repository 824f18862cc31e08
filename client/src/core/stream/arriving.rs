//! From the entries that segments' brokers send to messages for the application.

use bytes::Bytes;
use stc_proto::pulsar::{CommandMessage, MessageIdData};

use super::{Effect, Own, StreamCore, StreamDelivery, deliveries::Arrived};
use crate::core::{
    Now,
    acks::EntryId,
    consumer::Delivery,
    deviant::Deviant,
    incoming::{self, Unreadable},
    message_id::{MessageId, Position},
};

impl StreamCore {
    /// MESSAGE.
    pub(super) fn arrived(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, now: Now) {
        let deviance = self.deviance();
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        let generation = stream.place.generation;
        let Some(attachment) = stream.attachment.as_mut().filter(|_| stream.place.is_attached()) else {
            return;
        };
        if attachment.draining && !deviance.is(Deviant::DeliverWhileDraining) {
            // On its way when the drain began: it comes again to whoever is next.
            return;
        }
        let id: EntryId = (command.message_id.ledger_id, command.message_id.entry_id);
        // The broker withholds what an open transaction acknowledged: that one was aborted, though nobody told yet.
        if let Some(txn) = attachment.deliveries.pending_in(&id) {
            let exclusive = !attachment.mode.is_shared();
            attachment.deliveries.aborted(txn, exclusive, &mut stream.late);
        }
        let shared = attachment.mode.is_shared();
        let (permits, opened) = self.life.opener.open(segment, id, payload, now.mono);
        let opened = match opened {
            Ok(opened) => opened,
            Err(Unreadable::Corrupt(reason, why)) => {
                tracing::warn!(segment, ledger = id.0, entry = id.1, why, "dropping a corrupt entry");
                let id = MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() };
                self.own(Own::Invalid { segment, id, reason });
                return self.consumed(segment, generation, permits);
            }
            Err(Unreadable::Part) => {
                attachment.deliveries.part(id, !shared, &mut stream.late);
                return self.consumed(segment, generation, permits);
            }
            Err(Unreadable::Duplicate) => {
                let arrived = Arrived { id, count: 1, batch: false, exclusive: !shared, ack_set: &[] };
                attachment.deliveries.deliver(&arrived, &[], &mut stream.late, &mut self.sequence);
                return self.consumed(segment, generation, permits);
            }
            Err(Unreadable::Unsupported(why)) => {
                tracing::warn!(segment, ledger = id.0, entry = id.1, why, "passing over an entry");
                return self.consumed(segment, generation, permits);
            }
        };
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
        attachment.deliveries.join(id, opened.parts);
        let batch_size = if opened.batch { opened.count as i32 } else { 0 };
        let skipped = permits.saturating_sub(places.len() as u32);
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
            self.life.effects.push(Effect::Deliver(StreamDelivery { generation, delivery }));
        }
        self.swap_deliveries();
        // What the application does not get is not waited for.
        self.consumed(segment, generation, skipped);
    }
}
