//! The read of a shared subscription that waits for entries, as far as it decides who is told of the end of a sealed
//! topic under [`TopicConfig::end_is_read_once`](super::TopicConfig::end_is_read_once).

/// Whether a cursor's read waits, and for whom. A cursor takes one at a time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitingRead {
    None,
    /// The consumers wait for it, so that it goes with the last of them.
    Awaited,
    /// It has found the end of a sealed topic, and stays.
    Behind,
}

impl WaitingRead {
    /// Consumers asked for more, or could not: `at_end` when all is read and somebody takes more. Gives whether this is
    /// the read that finds the end of a sealed topic.
    pub(super) fn looked(&mut self, at_end: bool, sealed: bool) -> bool {
        if !sealed {
            *self = if at_end { WaitingRead::Awaited } else { WaitingRead::None };
            return false;
        }
        let finds = at_end && *self == WaitingRead::None;
        if finds {
            *self = WaitingRead::Behind;
        }
        finds
    }

    /// The last consumer has left.
    pub(super) fn left(&mut self) {
        if *self == WaitingRead::Awaited {
            *self = WaitingRead::None;
        }
    }
}
