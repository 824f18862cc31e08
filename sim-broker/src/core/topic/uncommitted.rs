//! What transactions stored: entries that wait for the end of theirs, and entries that were aborted.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::ids::TxnId;

#[derive(Debug, Default)]
pub(super) struct Uncommitted {
    /// The entries of each open transaction, in stored order.
    open: BTreeMap<TxnId, Vec<u64>>,
    /// The first entry of any of them: it holds back everything that was stored after it.
    first: Option<u64>,
    aborted: BTreeSet<u64>,
}

impl Uncommitted {
    pub(super) fn hold(&mut self, txn: TxnId, entry: u64) {
        self.open.entry(txn).or_default().push(entry);
        self.first = Some(self.first.map_or(entry, |first| first.min(entry)));
    }

    /// Ends a transaction. Returns the entries that are aborted by it, `None` when it had none.
    pub(super) fn end(&mut self, txn: TxnId, commit: bool) -> Option<Vec<u64>> {
        let entries = self.open.remove(&txn)?;
        self.first = self.open.values().filter_map(|entries| entries.first()).min().copied();
        if commit {
            return Some(Vec::new());
        }
        self.aborted.extend(&entries);
        Some(entries)
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.first
    }

    pub(super) fn has(&self, txn: TxnId) -> bool {
        self.open.contains_key(&txn)
    }

    pub(super) fn aborted(&self) -> impl Iterator<Item = u64> + '_ {
        self.aborted.iter().copied()
    }

    pub(super) fn is_aborted(&self, entry: u64) -> bool {
        self.aborted.contains(&entry)
    }
}
