//! What the brokers of segments say to their readers.

use bytes::Bytes;
use stc_proto::pulsar::{CommandGetLastMessageIdResponse, CommandMessage};

use super::{
    CheckpointCore, CheckpointDelivery, Effect,
    position::Mark,
    reader::{Asking, From},
};
use crate::core::{
    Link, Now,
    consumer::Delivery,
    deviant::Deviant,
    error::{Category, Error},
    incoming::{self, Unreadable},
    message_id::{MessageId, Position},
};

impl CheckpointCore {
    /// SUBSCRIBE succeeded. False when nobody waits for it any more: the shell has to close it.
    pub(crate) fn attached(&mut self, segment: u64, generation: u64, at: String, now: Now) -> bool {
        let Some(reader) = self.readers.get_mut(&segment) else { return false };
        if reader.generation != generation || reader.link != Link::Attaching {
            return false;
        }
        reader.link = Link::Attached;
        reader.at = Some(at);
        reader.lookup = false;
        reader.redirect = None;
        reader.fresh = false;
        reader.backoff.reset();
        if self.config.deviance.is(Deviant::RestoreAsksBroker) {
            self.effects.push(Effect::Ask { segment, generation });
        }
        self.advance(now);
        true
    }

    /// SUBSCRIBE failed, or no connection could be made for it.
    pub(crate) fn attach_failed(&mut self, segment: u64, generation: u64, error: Error, now: Now) {
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        if reader.generation != generation || reader.link != Link::Attaching {
            return;
        }
        reader.lookup = !reader.lookup;
        reader.redirect = None;
        reader.link = Link::Waiting(now.mono + reader.backoff.delay());
        let gone = error.category() == Category::NotFound && !reader.active;
        if self.opening.is_some() && !error.is_transient() && !gone {
            self.opening = None;
            self.effects.push(Effect::Opened(Err(error)));
        } else {
            tracing::debug!(segment, %error, "attaching a reader failed, trying again");
            self.last_error = Some(error);
        }
        self.advance(now);
    }

    /// The broker told the last message of a segment, or did not.
    pub(crate) fn last_message(
        &mut self,
        segment: u64,
        generation: u64,
        answer: Result<CommandGetLastMessageIdResponse, Error>,
        now: Now,
    ) {
        let Some(reader) = self.readers.get_mut(&segment).filter(|reader| reader.generation == generation)
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
                    self.effects.extend(mark.map(|mark| Effect::Mark { segment, mark }));
                }
            }
            Err(error) => {
                tracing::debug!(segment, %error, "the last message of a segment is not known yet");
                reader.asking = Asking::Later(now.mono + reader.backoff.delay());
            }
        }
        self.advance(now);
    }

    /// MESSAGE.
    pub(crate) fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, now: Now) {
        let deviance = self.deviance();
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        if reader.link != Link::Attached || reader.withdrawn {
            return;
        }
        let (ledger, entry) = (command.message_id.ledger_id, command.message_id.entry_id);
        let From::Behind(seen) = reader.from else { return };
        let (opened, last) = match incoming::open(payload, deviance) {
            Ok(opened) => {
                let last = if opened.batch { opened.count as i32 - 1 } else { -1 };
                (Some(opened), last)
            }
            Err(Unreadable::Corrupt(_, why)) => {
                tracing::warn!(segment, ledger, entry, why, "dropping a corrupt entry");
                (None, -1)
            }
            Err(Unreadable::Unsupported(why)) => {
                tracing::warn!(segment, ledger, entry, why, "passing over an entry");
                (None, -1)
            }
        };
        let (count, batch) = opened.as_ref().map_or((1, false), |opened| (opened.count as u32, opened.batch));
        let batch_size = if batch { count as i32 } else { 0 };
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
            let generation = reader.generation;
            self.effects.push(Effect::Deliver(CheckpointDelivery { generation, mark, delivery }));
            handed_on += 1;
        }
        reader.waiting += handed_on;
        let through = Mark { ledger, entry, batch_index: last };
        reader.from = From::Behind(seen.max(Some(through)));
        // What the application does not get is not waited for.
        self.permit(segment, count.saturating_sub(handed_on));
        self.advance(now);
    }

    /// CLOSE_CONSUMER from the broker; with an address the segment has moved there.
    pub(crate) fn closed_by_broker(&mut self, segment: u64, assigned: Option<String>, now: Now) {
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        let delay = if assigned.is_some() { 0 } else { reader.backoff.delay() };
        reader.lookup = assigned.is_none();
        reader.redirect = assigned;
        reader.lost(now.mono + delay);
        self.advance(now);
    }

    /// The connection that the reader was attached on is lost.
    pub(crate) fn disconnected(&mut self, segment: u64, now: Now) {
        if let Some(reader) = self.readers.get_mut(&segment)
            && matches!(reader.link, Link::Attached | Link::Detaching)
        {
            let until = now.mono + reader.backoff.delay();
            reader.lost(until);
            if self.config.deviance.is(Deviant::ReadersStartOver) {
                reader.from = From::Behind(None);
            }
        }
        self.advance(now);
    }

    /// The broker answered our CLOSE_CONSUMER, or the wait for the answer is over.
    pub(crate) fn detached(&mut self, segment: u64, now: Now) {
        if let Some(reader) = self.readers.get_mut(&segment)
            && reader.link == Link::Detaching
        {
            reader.lost(now.mono);
            reader.fresh = true;
        }
        self.advance(now);
    }

    /// A segment's messages were taken back; this is what the application had received of it.
    /// It stays in checkpoints: the segment may come back, to this consumer or to one that is restored.
    pub(crate) fn withdrawn(&mut self, segment: u64, received: Option<Mark>) {
        self.resume.extend(received.map(|mark| (segment, mark)));
    }
}
