//! The read of a shared subscription that waits for entries, as far as it decides who is told of the end of a sealed
//! topic under [`TopicConfig::end_is_read_once`](super::TopicConfig::end_is_read_once).

/// Whether a read waits, and for whom.
#[derive(Debug, Default)]
pub(super) struct WaitingRead {
    /// The cursor has one, and takes no other.
    there: bool,
    /// The consumers wait for it, so that it goes with the last of them. One that has found the end of a sealed topic
    /// stays behind.
    awaited: bool,
}

impl WaitingRead {
    /// Consumers asked for more, or could not: `at_end` when all is read and somebody takes more. Gives whether this is the
    /// read that finds the end of a sealed topic.
    pub(super) fn looked(&mut self, at_end: bool, sealed: bool) -> bool {
        if !sealed {
            *self = WaitingRead { there: at_end, awaited: at_end };
            return false;
        }
        if !at_end || self.there {
            return false;
        }
        self.there = true;
        true
    }

    /// The last consumer has left.
    pub(super) fn left(&mut self) {
        if self.awaited {
            *self = WaitingRead::default();
        }
    }
}
