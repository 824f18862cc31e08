//! Large messages, which are in several entries. Until it is complete, an entry with a part of one holds up acknowledgements
//! of everything before; from then on it is acknowledged with the entry that has the end.

use std::collections::BTreeMap;

use super::{Deliveries, Entry, State};
use crate::core::{acks::EntryId, transaction::TxnId};

impl Deliveries {
    /// An entry with a part of a message arrived that is not complete yet.
    pub(crate) fn part(&mut self, id: EntryId, exclusive: bool, before: &mut Deliveries) {
        let known = before.entries.remove(&id).and_then(|entry| entry.members.first().copied());
        let state = match known {
            Some(wanted @ State::Wanted(_)) => wanted,
            _ => State::Withdrawn,
        };
        self.entries.entry(id).or_insert_with(|| Entry {
            members: vec![state],
            batch: false,
            prefix: exclusive,
        });
    }

    /// An entry that arrived has the end of a message whose other parts are in these.
    pub(crate) fn join(&mut self, id: EntryId, parts: Vec<EntryId>) {
        if !parts.is_empty() {
            self.parts.insert(id, parts);
        }
    }

    /// An entry with a part of a message that will not become complete.
    pub(crate) fn give_up(&mut self, id: &EntryId) {
        if let Some([state @ State::Withdrawn]) = self.entries.get_mut(id).map(|entry| &mut entry.members[..])
        {
            *state = State::Wanted(0);
        }
    }

    /// What the application acknowledged is acknowledged in all its parts.
    pub(super) fn want_parts(&mut self) {
        for (id, parts) in &self.parts {
            if let Some([State::Wanted(sequence)]) = self.entries.get(id).map(|entry| &entry.members[..]) {
                let wanted = State::Wanted(*sequence);
                set(&mut self.entries, parts, wanted);
            }
        }
    }

    /// The same in a transaction; gives the entries of the other parts.
    pub(super) fn parts_in(&mut self, txn: TxnId, id: &EntryId) -> Vec<EntryId> {
        let Some(parts) = self.parts.get(id) else { return Vec::new() };
        let sequence = match self.entries.get(id).map(|entry| &entry.members[..]) {
            Some([State::Pending { sequence, .. }]) => *sequence,
            _ => return Vec::new(),
        };
        set(&mut self.entries, parts, State::Pending { txn, sequence });
        parts.clone()
    }
}

fn set(entries: &mut BTreeMap<EntryId, Entry>, parts: &[EntryId], state: State) {
    for part in parts {
        if let Some([part @ State::Withdrawn]) = entries.get_mut(part).map(|entry| &mut entry.members[..]) {
            *part = state;
        }
    }
}
