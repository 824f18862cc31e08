//! One segment of a checkpoint consumer and its reader.

use stc_proto::HashRange;

use super::position::Mark;
use crate::core::{
    Millis,
    acks::EntryId,
    consumer::{Life, Segment},
    place::Place,
    transaction::acks::Reach,
};

/// Where the next reader of a segment starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// At the next message to be published; to be turned into a position before anything is read.
    Latest,
    /// Behind this message; at the oldest one without it.
    Behind(Option<Mark>),
}

/// How the last message of a segment is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    No,
    /// Whether the segment was sealed when it was asked for.
    UnderWay {
        sealed: bool,
    },
    /// Not again before this time.
    Later(Millis),
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) topic: String,
    /// The hashes that the segment owns, once they are known.
    pub(crate) range: Option<HashRange>,
    /// Takes writes, so that it has no end yet.
    pub(crate) active: bool,
    /// Whether this consumer is to read it.
    pub(crate) wanted: bool,
    /// What it had in the receive queue was taken back: it is to go, and a new one to come if it is wanted after all.
    pub(crate) withdrawn: bool,
    pub(crate) place: Place,
    /// No attachment of an earlier generation was one of this reader.
    pub(crate) since: u64,
    pub(crate) from: From,
    /// Ledger and entry that the first part of an incomplete message was in when the attachment was lost: the next reader
    /// starts there, and leaves out what was read since.
    pub(crate) incomplete: Option<EntryId>,
    /// The last message of a sealed segment, once it is known; an empty segment has none.
    pub(crate) end: Option<Option<Mark>>,
    pub(crate) asking: Asking,
    /// Permits were granted on this attachment.
    pub(crate) granted: bool,
    /// Messages in the receive queue.
    pub(crate) waiting: u32,
    /// Messages taken out of it since permits were granted last.
    pub(crate) consumed: u32,
    /// Messages to be left out, for a deviant.
    pub(crate) skip: u32,
}

impl Reader {
    pub(crate) fn new<H, D, O>(topic: String, from: From, life: &mut Life<H, D, O>) -> Self {
        Reader {
            topic,
            range: None,
            active: true,
            wanted: true,
            withdrawn: false,
            since: life.next_generation(),
            place: life.place(),
            from,
            incomplete: None,
            end: None,
            asking: Asking::No,
            granted: false,
            waiting: 0,
            consumed: 0,
            skip: 0,
        }
    }

    /// Where the next attachment starts. Brokers deliver the message at the start position once more.
    pub(crate) fn start(&self) -> From {
        match self.incomplete {
            Some((ledger, entry)) => From::Behind(Some(Mark { ledger, entry, batch_index: -1 })),
            None => self.from,
        }
    }

    /// Whether the application has received everything that was and will be in the segment.
    pub(crate) fn is_finished(&self) -> bool {
        let read = match (self.end, self.from) {
            (Some(None), _) => true,
            (Some(Some(end)), From::Behind(Some(mark))) => mark >= end,
            _ => false,
        };
        read && self.waiting == 0
    }

    /// Whether a key's messages in the other segment come before those in this one. Segment ids count up, and the active
    /// segments of one time do not overlap: what overlaps and is older is an ancestor, of whatever degree. Legacy
    /// segments are not divided by hashes.
    pub(crate) fn comes_after(&self, id: u64, other_id: u64, other: &Reader) -> bool {
        let overlap = match (self.range, other.range) {
            (Some(a), Some(b)) => a.start() <= b.end() && b.start() <= a.end(),
            _ => false,
        };
        let legacy = |reader: &Reader| reader.topic.starts_with("persistent://");
        other_id < id && overlap && !(legacy(self) && legacy(other))
    }

    /// Whether the broker is to be asked for the last message: to turn latest into a position, and to know the end of a
    /// sealed segment.
    pub(crate) fn has_question(&self) -> bool {
        self.from == From::Latest || (!self.active && self.end.is_none())
    }
}

impl Segment for Reader {
    fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    /// Readers acknowledge nothing.
    fn reach(&self) -> Reach {
        Reach::Away
    }

    fn retry_at(&self) -> Option<Millis> {
        self.place.retry_at().filter(|_| self.wanted)
    }
}
