//! Entries whose time has not come, in the order in which they become due.

use std::collections::BTreeSet;

use crate::core::ids::Millis;

#[derive(Debug, Default)]
pub(super) struct Delayed(BTreeSet<(Millis, u64)>);

impl Delayed {
    pub(super) fn insert(&mut self, deliver_at: Millis, entry: u64) {
        self.0.insert((deliver_at, entry));
    }

    pub(super) fn remove(&mut self, deliver_at: Millis, entry: u64) {
        self.0.remove(&(deliver_at, entry));
    }

    /// Takes out an entry that is due.
    pub(super) fn pop_due(&mut self, now: Millis) -> Option<u64> {
        let (deliver_at, _) = self.0.first()?;
        if *deliver_at > now {
            return None;
        }
        self.0.pop_first().map(|(_, entry)| entry)
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.0.first().map(|(deliver_at, _)| *deliver_at)
    }
}
