//! Messages of a segment that are acknowledged in transactions. Until the end of its transaction such a message is neither
//! open nor acknowledged: a drain waits for it, and an abort has it delivered again.

use stc_proto::pulsar::MessageIdData;

use super::{Deliveries, Entry, State};
use crate::core::{acks::EntryId, message_id::Position, transaction::TxnId};

/// What a broker is to be told within a transaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AckIn {
    /// The messages one by one.
    pub(crate) ids: Vec<MessageIdData>,
    /// The same as everything up to one message, where this consumer has the segment alone and everything before is
    /// acknowledged too.
    pub(crate) up_to: Option<MessageIdData>,
}

impl Deliveries {
    /// The application acknowledged, in a transaction, everything up to this place that was delivered no later than
    /// `sequence`. Gives what to tell the broker, if anything.
    pub(crate) fn want_in(
        &mut self,
        txn: TxnId,
        upto: &Position,
        sequence: Option<u64>,
        exclusive: bool,
    ) -> Option<AckIn> {
        let mut touched: Vec<(EntryId, Vec<usize>)> = Vec::new();
        for (id, entry) in self.entries.range_mut(..=(upto.ledger, upto.entry)) {
            let last = *id == (upto.ledger, upto.entry);
            let mut members = Vec::new();
            for (state, index) in entry.members.iter_mut().zip(0i32..) {
                let within = !last || upto.batch_index < 0 || index <= upto.batch_index;
                if let State::Open(at) | State::Held(at) = *state
                    && within
                    && sequence.is_none_or(|sequence| at <= sequence)
                {
                    *state = State::Pending { txn, sequence: at };
                    members.extend(usize::try_from(index).ok());
                }
            }
            if !members.is_empty() {
                touched.push((*id, members));
            }
        }
        for (id, _) in touched.clone() {
            touched.extend(self.parts_in(txn, &id).into_iter().map(|part| (part, vec![0])));
        }
        touched.sort();
        let (top, _) = touched.last()?;
        let up_to = if exclusive && self.is_prefix(txn, top) {
            self.entries.get(top).map(|entry| entry.name(top, |state| covered(state, txn)))
        } else {
            None
        };
        let name = |(id, members): &(EntryId, Vec<usize>)| {
            let entry = self.entries.get(id)?;
            Some(entry.name_members(id, members))
        };
        Some(AckIn { ids: touched.iter().filter_map(name).collect(), up_to })
    }

    /// Whether everything up to the last message that a transaction acknowledged in an entry is acknowledged, by it or
    /// otherwise.
    fn is_prefix(&self, txn: TxnId, top: &EntryId) -> bool {
        self.entries.range(..=*top).all(|(id, entry)| {
            let mine = |state: &State| matches!(state, State::Pending { txn: of, .. } if *of == txn);
            let upto = match *id == *top {
                true => entry.members.iter().rposition(mine).map_or(0, |last| last + 1),
                false => entry.members.len(),
            };
            entry.prefix && entry.members.iter().take(upto).all(|state| covered(state, txn))
        })
    }

    /// Whether a transaction that is open has acknowledged anything here.
    pub(crate) fn has_pending(&self) -> bool {
        let pending = |state: &State| matches!(state, State::Pending { .. });
        self.entries.values().flat_map(|entry| &entry.members).any(pending)
    }

    /// The transaction that acknowledged a message of this entry, if one is open.
    pub(crate) fn pending_in(&self, id: &EntryId) -> Option<TxnId> {
        let txn = |state: &State| match state {
            State::Pending { txn, .. } => Some(*txn),
            _ => None,
        };
        self.entries.get(id)?.members.iter().find_map(txn)
    }

    /// A transaction was committed: what it acknowledged is acknowledged.
    pub(crate) fn committed(&mut self, txn: TxnId) {
        for state in self.entries.values_mut().flat_map(|entry| &mut entry.members) {
            if matches!(state, State::Pending { txn: of, .. } if *of == txn) {
                *state = State::Acked;
            }
        }
        self.forget_settled();
    }

    /// A transaction was aborted: the broker delivers again what it acknowledged. Where this consumer has the segment alone
    /// everything behind that comes again as well, so that the order stays. Those deliveries are moved to `late`, where the
    /// next one of each finds it.
    pub(crate) fn aborted(&mut self, txn: TxnId, exclusive: bool, late: &mut Deliveries) {
        let has = |entry: &Entry| {
            entry.members.iter().any(|state| matches!(state, State::Pending { txn: of, .. } if *of == txn))
        };
        let mut again = Vec::new();
        for (id, entry) in &self.entries {
            if has(entry) || (exclusive && !again.is_empty()) {
                again.push(*id);
            }
        }
        for id in again {
            if let Some(mut entry) = self.entries.remove(&id) {
                entry.reopen(txn);
                late.entries.insert(id, entry);
                let parts = self.parts.remove_entry(&id);
                late.parts.extend(parts);
            }
        }
        // What an earlier attachment delivered comes again too.
        late.entries.values_mut().for_each(|entry| entry.reopen(txn));
        late.forget_settled();
    }
}

/// Whether a message is acknowledged by a transaction, or otherwise.
fn covered(state: &State, txn: TxnId) -> bool {
    match state {
        State::Pending { txn: of, .. } => *of == txn,
        State::Open(_) | State::Held(_) | State::Withdrawn => false,
        State::Wanted(_) | State::Asked { .. } | State::Acked => true,
    }
}

impl Entry {
    fn reopen(&mut self, txn: TxnId) {
        for state in &mut self.members {
            match *state {
                State::Pending { txn: of, sequence } if of == txn => *state = State::Open(sequence),
                State::Asked { sequence, .. } => *state = State::Wanted(sequence),
                _ => {}
            }
        }
    }

    /// The entry with the members that `acknowledged` does not hold for left over.
    fn name(&self, id: &EntryId, acknowledged: impl Fn(&State) -> bool) -> MessageIdData {
        let members: Vec<usize> = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, state)| acknowledged(state))
            .map(|(i, _)| i)
            .collect();
        self.name_members(id, &members)
    }

    /// The entry with all members left over but these.
    fn name_members(&self, id: &EntryId, members: &[usize]) -> MessageIdData {
        let mut data = MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() };
        if members.len() < self.members.len() {
            let indexes: Vec<usize> = (0..self.members.len()).collect();
            let word = |chunk: &[usize]| {
                let left = chunk.iter().zip(0..).filter(|(index, _)| !members.contains(index));
                left.fold(0i64, |word, (_, bit)| word | 1 << bit)
            };
            data.ack_set = indexes.chunks(64).map(word).collect();
            data.batch_size = Some(self.members.len() as i32);
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        deviant::Deviance,
        stream::deliveries::{Arrived, State},
    };

    const TXN: TxnId = TxnId { coordinator: 0, number: 1 };
    const OTHER: TxnId = TxnId { coordinator: 0, number: 2 };

    fn at(entry: u64, batch_index: i32) -> Position {
        Position { segment: 0, ledger: 7, entry, batch_index, batch_size: 0 }
    }

    fn arrive(deliveries: &mut Deliveries, late: &mut Deliveries, entry: u64, count: usize) -> usize {
        let arrived = Arrived { id: (7, entry), count, batch: count > 1, exclusive: true, ack_set: &[] };
        let present: Vec<usize> = (0..count).collect();
        deliveries.deliver(&arrived, &present, late, &mut 0).len()
    }

    fn delivered(entries: u64) -> (Deliveries, Deliveries) {
        let (mut deliveries, mut late) = (Deliveries::default(), Deliveries::default());
        (0..entries).for_each(|entry| assert_eq!(arrive(&mut deliveries, &mut late, entry, 1), 1));
        (deliveries, late)
    }

    /// Whether it is cumulative, and entries with their ack sets.
    fn ids(ack: &AckIn) -> (bool, Vec<(u64, Vec<i64>)>) {
        let ids = ack.up_to.as_ref().map_or(&ack.ids[..], std::slice::from_ref);
        (ack.up_to.is_some(), ids.iter().map(|id| (id.entry_id, id.ack_set.clone())).collect())
    }

    #[test]
    fn a_drain_waits_for_the_commit() {
        let (mut deliveries, _) = delivered(2);
        let ack = deliveries.want_in(TXN, &at(1, -1), None, true).unwrap();
        assert_eq!(ids(&ack), (true, vec![(1, vec![])]));
        assert!(!deliveries.is_settled(Deviance::default()));
        assert_eq!(deliveries.want_in(TXN, &at(1, -1), None, true), None, "nothing is open any more");
        deliveries.committed(TXN);
        assert!(deliveries.is_settled(Deviance::default()));
    }

    #[test]
    fn after_an_abort_everything_from_there_on_comes_again() {
        let (mut deliveries, mut late) = delivered(4);
        deliveries.want(&at(0, -1), None);
        deliveries.want_in(TXN, &at(1, -1), None, true);
        deliveries.aborted(TXN, true, &mut late);
        for entry in 1..4 {
            assert_eq!(arrive(&mut deliveries, &mut late, entry, 1), 1, "entry {entry}");
        }
        assert!(!deliveries.has_pending());
        assert_eq!(arrive(&mut deliveries, &mut late, 2, 1), 0, "the same delivery once more");
    }

    #[test]
    fn a_shared_segment_brings_only_what_was_acknowledged() {
        let (mut deliveries, mut late) = delivered(3);
        let ack = deliveries.want_in(TXN, &at(1, -1), None, false);
        assert_eq!(ids(&ack.unwrap()), (false, vec![(0, vec![]), (1, vec![])]));
        deliveries.aborted(TXN, false, &mut late);
        assert_eq!(arrive(&mut deliveries, &mut late, 0, 1), 1);
        assert_eq!(arrive(&mut deliveries, &mut late, 2, 1), 0, "it was never acknowledged");
    }

    #[test]
    fn what_another_transaction_acknowledged_is_not_covered() {
        let (mut deliveries, _) = delivered(3);
        deliveries.want_in(OTHER, &at(0, -1), None, true);
        let ack = deliveries.want_in(TXN, &at(2, -1), None, true).unwrap();
        assert_eq!(ids(&ack), (false, vec![(1, vec![]), (2, vec![])]));
    }

    #[test]
    fn a_part_of_a_batch_leaves_the_rest() {
        let (mut deliveries, mut late) = delivered(1);
        arrive(&mut deliveries, &mut late, 1, 3);
        let ack = deliveries.want_in(TXN, &at(1, 1), None, true).unwrap();
        assert_eq!(ids(&ack), (true, vec![(1, vec![0b100])]));
        let ack = deliveries.want_in(OTHER, &at(1, 2), None, true).unwrap();
        assert_eq!(ids(&ack), (false, vec![(1, vec![0b011])]));
        assert_eq!(deliveries.pending_in(&(7, 1)), Some(TXN));
    }

    #[test]
    fn a_plain_acknowledgement_leaves_what_is_pending_to_its_transaction() {
        let (mut deliveries, _) = delivered(3);
        deliveries.want_in(TXN, &at(0, -1), None, true);
        deliveries.want(&at(2, -1), None);
        let acks = deliveries.acks(true, &mut 0, Deviance::default());
        assert!(acks.iter().all(|ack| !ack.cumulative), "{acks:?}");
        let pending = deliveries.entries.get(&(7, 0)).unwrap();
        assert!(matches!(pending.members[..], [State::Pending { .. }]));
    }
}
