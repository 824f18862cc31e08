//! What the brokers of segments say to their readers.

use bytes::Bytes;
use stc_proto::pulsar::{CommandGetLastMessageIdResponse, CommandMessage};

use super::{
    CheckpointCore, CheckpointDelivery, Effect, Own,
    position::Mark,
    reader::{Asking, From},
};
use crate::core::{
    Now,
    consumer::{Core as _, Delivery},
    deviant::Deviant,
    error::Error,
    incoming::Unreadable,
    message_id::{MessageId, Position},
};

impl CheckpointCore {
    /// The broker told the last message of a segment, or did not.
    pub(crate) fn last_message(
        &mut self,
        segment: u64,
        generation: u64,
        answer: Result<CommandGetLastMessageIdResponse, Error>,
        now: Now,
    ) {
        let Some(reader) =
            self.readers.get_mut(&segment).filter(|reader| reader.place.generation == generation)
        else {
            return;
        };
        match answer {
            Ok(answer) => {
                let last = answer.last_message_id;
                // Entry -1 is the place before the first one.
                let mark = (last.entry_id < i64::MAX as u64).then(|| Mark {
                    ledger: last.ledger_id,
                    entry: last.entry_id,
                    batch_index: last.batch_index.unwrap_or(-1),
                });
                // One that was sealed after the question may have got more.
                if reader.asking == (Asking::UnderWay { sealed: true }) {
                    reader.end = Some(mark);
                }
                reader.asking = Asking::No;
                if reader.from == From::Latest {
                    reader.from = From::Behind(mark);
                    self.life.effects.extend(mark.map(|mark| Effect::Own(Own::Mark { segment, mark })));
                }
            }
            Err(error) => {
                tracing::debug!(segment, %error, "the last message of a segment is not known yet");
                reader.asking = Asking::Later(now.mono + reader.place.delay());
            }
        }
        self.advance(now);
    }

    /// MESSAGE.
    pub(super) fn arrived(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, now: Now) {
        let deviance = self.deviance();
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        if !reader.place.is_attached() || reader.withdrawn {
            return;
        }
        let (ledger, entry) = (command.message_id.ledger_id, command.message_id.entry_id);
        let From::Behind(seen) = reader.from else { return };
        let (permits, opened) = self.life.opener.open(segment, (ledger, entry), payload, now.mono);
        let (opened, last) = match opened {
            Ok(opened) => {
                let last = if opened.batch { opened.count as i32 - 1 } else { -1 };
                (Some(opened), last)
            }
            Err(Unreadable::Corrupt(_, why)) => {
                tracing::warn!(segment, ledger, entry, why, "dropping a corrupt entry");
                (None, -1)
            }
            Err(Unreadable::Part | Unreadable::Duplicate) => (None, -1),
            Err(Unreadable::Unsupported(why)) => {
                tracing::warn!(segment, ledger, entry, why, "passing over an entry");
                (None, -1)
            }
        };
        let batch = opened.as_ref().filter(|opened| opened.batch);
        let batch_size = batch.map_or(0, |opened| opened.count as i32);
        let mut handed_on = 0;
        for message in opened.into_iter().flat_map(|opened| opened.messages) {
            let mark = Mark { ledger, entry, batch_index: message.batch_index };
            let repeats = deviance.is(Deviant::RestoreRepeatsOne) && seen == Some(mark);
            // A broker delivers the entry at the start position once more.
            if seen.is_some_and(|seen| mark <= seen) && !repeats {
                continue;
            }
            if reader.skip > 0 {
                reader.skip -= 1;
                continue;
            }
            let forgets = deviance.is(Deviant::IdForgetsBatch);
            let batch_index = if forgets { -1 } else { message.batch_index };
            let at = Position { segment, ledger, entry, batch_index, batch_size };
            let redelivery_count = command.redelivery_count.unwrap_or_default();
            let delivery = Delivery { segment, id: MessageId::from(at), redelivery_count, message };
            let generation = reader.place.generation;
            self.life.effects.push(Effect::Deliver(CheckpointDelivery { generation, mark, delivery }));
            handed_on += 1;
        }
        reader.waiting += handed_on;
        let through = Mark { ledger, entry, batch_index: last };
        reader.from = From::Behind(seen.max(Some(through)));
        if Some(through) >= seen {
            // All of it is read again: from here on the parts are known.
            reader.incomplete = None;
        }
        // What the application does not get is not waited for.
        self.permit(segment, permits.saturating_sub(handed_on));
        self.advance(now);
    }

    /// A segment's messages were taken back; this is what the application had received of it.
    /// It stays in checkpoints: the segment may come back, to this consumer or to one that is restored.
    pub(crate) fn withdrawn(&mut self, segment: u64, received: Option<Mark>) {
        self.resume.extend(received.map(|mark| (segment, mark)));
    }
}
