//! What a subscription has acknowledged.

use std::collections::BTreeMap;

use super::{ack_set::AckSet, ledger::Ledger, pending_acks::PendingAcks};

/// Acknowledged entries: everything below one entry, ranges above it, and batches in part.
#[derive(Debug)]
pub(super) struct Cursor {
    /// Every entry below this one is acknowledged; the mark-delete position is the one before it.
    below: u64,
    /// Acknowledged entries above, as start → end (exclusive); never adjacent, all above `below`.
    ranges: BTreeMap<u64, u64>,
    /// Entries in those ranges.
    above: u64,
    /// Batches that are acknowledged in part.
    partial: BTreeMap<u64, AckSet>,
    /// Acknowledgements that count once their transactions are committed.
    pub(super) pending: PendingAcks,
}

/// What an acknowledgement of one entry did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acked {
    /// Messages that became acknowledged by it.
    pub(super) messages: u32,
    /// Whether the whole entry is acknowledged now.
    pub(super) complete: bool,
}

impl Cursor {
    /// A cursor that begins at this entry. What was aborted counts as acknowledged, as nobody will ever see it.
    pub(super) fn new(first: u64, ledger: &Ledger) -> Self {
        let mut cursor = Cursor::empty(first);
        for entry in ledger.aborted() {
            cursor.ack(entry);
        }
        cursor
    }

    fn empty(first: u64) -> Self {
        Cursor {
            below: first,
            ranges: BTreeMap::new(),
            above: 0,
            partial: BTreeMap::new(),
            pending: PendingAcks::default(),
        }
    }

    /// The first entry that is not acknowledged.
    pub(super) fn first_unacked(&self) -> u64 {
        self.below
    }

    /// The first entry at or above `from` that is not acknowledged, stored or not.
    pub(super) fn next_unacked(&self, from: u64) -> u64 {
        if from < self.below {
            return self.below;
        }
        match self.ranges.range(..=from).next_back() {
            Some((_, end)) if *end > from => *end,
            _ => from,
        }
    }

    pub(super) fn is_acked(&self, entry: u64) -> bool {
        self.next_unacked(entry) != entry
    }

    /// Acknowledges one entry; false when it was before.
    pub(super) fn ack(&mut self, entry: u64) -> bool {
        if self.is_acked(entry) {
            return false;
        }
        self.partial.remove(&entry);
        if entry == self.below {
            self.below += 1;
            self.absorb();
            return true;
        }
        let mut range = (entry, entry + 1);
        if let Some((&start, &end)) = self.ranges.range(..entry).next_back()
            && end == entry
        {
            range.0 = start;
        }
        if let Some(end) = self.ranges.remove(&(entry + 1)) {
            range.1 = end;
        }
        self.ranges.insert(range.0, range.1);
        self.above += 1;
        true
    }

    /// Acknowledges the messages of a batch that `wire` does not have.
    pub(super) fn ack_part(&mut self, entry: u64, batch: u32, wire: &[i64]) -> Acked {
        if self.is_acked(entry) {
            return Acked { messages: 0, complete: true };
        }
        let (messages, left) = match self.partial.get_mut(&entry) {
            Some(set) => (set.intersect(wire), set.unacked()),
            None => {
                let set = AckSet::first(batch, wire);
                let left = set.unacked();
                if left > 0 && left < batch {
                    self.partial.insert(entry, set);
                }
                (batch - left, left)
            }
        };
        let complete = left == 0;
        if complete {
            self.ack(entry);
        }
        Acked { messages, complete }
    }

    /// Acknowledges every entry below this one.
    pub(super) fn ack_below(&mut self, entry: u64) {
        if entry <= self.below {
            return;
        }
        self.below = entry;
        while let Some(range) = self.ranges.first_entry() {
            let (start, end) = (*range.key(), *range.get());
            if start > entry {
                break;
            }
            range.remove();
            self.above -= end - start;
            self.below = self.below.max(end);
        }
        self.partial = self.partial.split_off(&self.below);
    }

    /// Swallows the range that `below` has reached.
    fn absorb(&mut self) {
        if let Some(range) = self.ranges.first_entry()
            && *range.key() == self.below
        {
            let (start, end) = range.remove_entry();
            self.above -= end - start;
            self.below = end;
        }
    }

    /// Whether a message that an acknowledgement names is acknowledged already: any one outside of what it leaves.
    pub(super) fn has_acked(&self, entry: u64, messages: u32, left: Option<&[i64]>) -> bool {
        if self.is_acked(entry) {
            return true;
        }
        let Some(partial) = self.partial.get(&entry) else { return false };
        let mut after = partial.clone();
        let named = messages - AckSet::first(messages, left.unwrap_or_default()).unacked();
        after.intersect(left.unwrap_or_default()) < named
    }

    /// The first entry at or above `from` of which there is something to deliver, stored or not.
    pub(super) fn next_deliverable(&self, from: u64, ledger: &Ledger) -> u64 {
        let mut entry = self.next_unacked(from);
        while self.is_withheld(entry, ledger) {
            entry = self.next_unacked(entry + 1);
        }
        entry
    }

    /// Whether open transactions acknowledge all that is left of an entry.
    pub(super) fn is_withheld(&self, entry: u64, ledger: &Ledger) -> bool {
        let left = || self.pending.left(entry, ledger.get(entry)?.messages, self.partial.get(&entry));
        left().is_some_and(|left| left.unacked() == 0)
    }

    /// What is there to deliver of an entry; `None`: all of it.
    pub(super) fn partial(&self, entry: u64, messages: u32) -> Option<AckSet> {
        let partial = self.partial.get(&entry);
        self.pending.left(entry, messages, partial).or_else(|| partial.cloned())
    }

    /// Entries of the ledger that are not fully acknowledged.
    pub(super) fn backlog(&self, ledger: &Ledger) -> u64 {
        ledger.len().saturating_sub(self.below + self.above)
    }

    /// Messages in the entries below `end` that are not acknowledged.
    pub(super) fn unacked_messages(&self, ledger: &Ledger, end: u64) -> u64 {
        let total = ledger.messages_before(end).saturating_sub(ledger.messages_before(self.below));
        let acked: u64 = self
            .ranges
            .range(..end)
            .map(|(start, stop)| ledger.messages_before((*stop).min(end)) - ledger.messages_before(*start))
            .sum();
        let parts: u64 = self
            .partial
            .range(..end)
            .filter_map(|(entry, set)| Some(u64::from(ledger.get(*entry)?.messages - set.unacked())))
            .sum();
        total.saturating_sub(acked + parts)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_join_and_sink() {
        let mut cursor = Cursor::empty(0);
        for entry in [3, 1, 5, 4] {
            assert!(cursor.ack(entry));
        }
        assert_eq!(cursor.ranges, BTreeMap::from([(1, 2), (3, 6)]));
        assert_eq!(cursor.next_unacked(3), 6);
        assert!(!cursor.ack(4));
        assert!(cursor.ack(0));
        assert_eq!(cursor.first_unacked(), 2);
        cursor.ack_below(4);
        assert_eq!((cursor.first_unacked(), cursor.above), (6, 0));
    }

    #[test]
    fn a_batch_completes_with_its_last_message() {
        let mut cursor = Cursor::empty(0);
        assert_eq!(cursor.ack_part(0, 3, &[6]), Acked { messages: 1, complete: false });
        assert_eq!(cursor.ack_part(0, 3, &[6]), Acked { messages: 0, complete: false });
        assert_eq!(cursor.partial(0, 3).unwrap().to_wire(), [6]);
        assert_eq!(cursor.ack_part(0, 3, &[1]), Acked { messages: 2, complete: true });
        assert_eq!(cursor.first_unacked(), 1);
        assert!(cursor.partial(0, 3).is_none());
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(ops in prop::collection::vec((0u64..40, any::<bool>()), 0..60)) {
            let (mut cursor, mut model) = (Cursor::empty(0), BTreeSet::new());
            for (entry, below) in ops {
                if below {
                    cursor.ack_below(entry / 4);
                    model.extend(0..entry / 4);
                } else {
                    prop_assert_eq!(cursor.ack(entry), model.insert(entry));
                }
                for e in 0..41 {
                    prop_assert_eq!(cursor.is_acked(e), model.contains(&e));
                }
                prop_assert_eq!(cursor.below + cursor.above, model.len() as u64);
            }
        }
    }
}
