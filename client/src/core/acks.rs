//! What one segment delivered and the application has not acknowledged, message by message.
//!
//! Brokers acknowledge and redeliver entries; an application does messages. Of a batch, an acknowledgement names the
//! members that are still open (`ack_set`), and of a redelivered batch only the members are handed on whose
//! redelivery was asked for: the others are with the application already.

use std::collections::BTreeMap;

use stc_proto::pulsar::MessageIdData;

use super::transaction::TxnId;

/// Ledger and entry.
pub(crate) type EntryId = (u64, u64);

/// How far one message of an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Handed to the application or waiting for it.
    Delivered,
    Acknowledged,
    /// Acknowledged in a transaction that is open.
    Pending(TxnId),
    /// To be delivered again.
    Rejected,
}

/// The entries of one segment that are not fully acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    entries: BTreeMap<EntryId, Vec<State>>,
    /// By the entry that a large message is complete with: the entries of its other parts.
    parts: BTreeMap<EntryId, Vec<EntryId>>,
}

impl Outstanding {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The broker forgot what it had delivered: it will come again.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.parts.clear();
    }

    /// An entry that arrived has the end of a message whose other parts are in these.
    pub(crate) fn join(&mut self, id: EntryId, parts: Vec<EntryId>) {
        self.parts.retain(|id, _| self.entries.contains_key(id));
        if !parts.is_empty() {
            self.parts.insert(id, parts);
        }
    }

    /// The entries that have the other parts of a message.
    pub(crate) fn parts(&self, id: EntryId) -> Vec<EntryId> {
        self.parts.get(&id).cloned().unwrap_or_default()
    }

    /// An entry of `count` messages arrived. `ack_set` has a bit for each that is not acknowledged; empty means all.
    /// Gives the places whose messages the application gets.
    pub(crate) fn deliver(&mut self, id: EntryId, count: usize, ack_set: &[i64]) -> Vec<usize> {
        let open = |index: usize| ack_set.is_empty() || bit(ack_set, index);
        let again = |state: &State| matches!(state, State::Rejected | State::Pending(_));
        let asked_for = self.entries.get(&id).is_some_and(|states| states.iter().any(again));
        let states = self.entries.entry(id).or_default();
        states.resize(count, State::Delivered);
        let mut deliver = Vec::new();
        for (index, state) in states.iter_mut().enumerate() {
            // What a transaction acknowledged comes again because it was aborted, told here or not.
            let wanted = !asked_for || matches!(state, State::Rejected | State::Pending(_));
            if !open(index) {
                if !matches!(state, State::Pending(_)) {
                    *state = State::Acknowledged;
                }
            } else if wanted {
                *state = State::Delivered;
                deliver.push(index);
            }
        }
        if states.iter().all(|state| *state == State::Acknowledged) {
            self.entries.remove(&id);
        }
        deliver
    }

    /// The application acknowledged a message. Gives what to tell the broker: the entry when that was its last open
    /// message, the members that are still open otherwise.
    pub(crate) fn acknowledge(&mut self, id: EntryId, index: i32, size: i32) -> MessageIdData {
        let mut data = MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() };
        let Ok(index) = usize::try_from(index) else {
            self.entries.remove(&id);
            return data;
        };
        // An identifier from before a reconnect, or restored from bytes: nothing is known of its neighbours.
        let count = usize::try_from(size).unwrap_or_default().max(index + 1);
        let states = self.entries.entry(id).or_insert_with(|| vec![State::Delivered; count]);
        if let Some(state) = states.get_mut(index) {
            *state = State::Acknowledged;
        }
        if states.iter().all(|state| *state == State::Acknowledged) {
            self.entries.remove(&id);
            return data;
        }
        data.ack_set = words(states);
        data.batch_size = Some(states.len() as i32);
        data
    }

    /// The application acknowledged a message in a transaction. Gives what to tell the broker: this message alone,
    /// whatever else of its entry is acknowledged.
    pub(crate) fn acknowledge_in(&mut self, txn: TxnId, id: EntryId, index: i32, size: i32) -> MessageIdData {
        let mut data = MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() };
        let at = usize::try_from(index).unwrap_or_default();
        let count = usize::try_from(size).unwrap_or_default().max(at + 1);
        let states = self.entries.entry(id).or_insert_with(|| vec![State::Delivered; count]);
        if let Some(state) = states.get_mut(at) {
            *state = State::Pending(txn);
        }
        if index >= 0 && states.len() > 1 {
            let mut alone = vec![State::Delivered; states.len()];
            alone.get_mut(at).into_iter().for_each(|state| *state = State::Acknowledged);
            data.ack_set = words(&alone);
            data.batch_size = Some(states.len() as i32);
        }
        data
    }

    /// A transaction ended: what was acknowledged in it is acknowledged, or comes again.
    pub(crate) fn ended(&mut self, txn: TxnId, committed: bool) {
        let after = if committed { State::Acknowledged } else { State::Rejected };
        for state in self.entries.values_mut().flatten().filter(|state| **state == State::Pending(txn)) {
            *state = after;
        }
        self.entries.retain(|_, states| states.iter().any(|state| *state != State::Acknowledged));
    }

    /// The application rejected a message. False when it is not open: nothing is to be redelivered.
    pub(crate) fn reject(&mut self, id: EntryId, index: i32) -> bool {
        let at = usize::try_from(index).unwrap_or(0);
        match self.entries.get_mut(&id).and_then(|states| states.get_mut(at)) {
            Some(state @ (State::Delivered | State::Rejected)) => {
                *state = State::Rejected;
                true
            }
            _ => false,
        }
    }

    /// Whether a message still waits to be delivered again.
    pub(crate) fn is_rejected(&self, id: EntryId, index: i32) -> bool {
        let at = usize::try_from(index).unwrap_or(0);
        self.entries.get(&id).and_then(|states| states.get(at)) == Some(&State::Rejected)
    }

    /// Everything that is open, for a deviant that rejects all of it.
    pub(crate) fn reject_all(&mut self) -> Vec<EntryId> {
        for states in self.entries.values_mut() {
            for state in states.iter_mut().filter(|state| **state == State::Delivered) {
                *state = State::Rejected;
            }
        }
        self.entries.keys().copied().collect()
    }
}

fn bit(words: &[i64], index: usize) -> bool {
    words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
}

/// A bit for each message that is not acknowledged; trailing zero words are left out, as brokers write it.
fn words(states: &[State]) -> Vec<i64> {
    let mut words: Vec<i64> =
        states
            .chunks(64)
            .map(|chunk| {
                chunk.iter().zip(0..).fold(0, |word, (state, bit)| {
                    if *state == State::Acknowledged { word } else { word | 1 << bit }
                })
            })
            .collect();
    while words.last() == Some(&0) {
        words.pop();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: EntryId = (7, 3);

    #[test]
    fn a_batch_is_acknowledged_member_by_member() {
        let mut outstanding = Outstanding::default();
        assert_eq!(outstanding.deliver(ID, 3, &[]), [0, 1, 2]);
        let partial = outstanding.acknowledge(ID, 1, 3);
        assert_eq!((partial.ack_set, partial.batch_size), (vec![0b101], Some(3)));
        outstanding.acknowledge(ID, 0, 3);
        let last = outstanding.acknowledge(ID, 2, 3);
        assert_eq!((last.ledger_id, last.entry_id, last.ack_set.len()), (7, 3, 0));
        assert!(outstanding.is_empty());
    }

    #[test]
    fn of_a_batch_a_transaction_names_its_own_member_only() {
        let (txn, other) = (TxnId { coordinator: 0, number: 1 }, TxnId { coordinator: 0, number: 2 });
        let mut outstanding = Outstanding::default();
        outstanding.deliver(ID, 3, &[]);
        outstanding.acknowledge(ID, 0, 3);
        assert_eq!(outstanding.acknowledge_in(txn, ID, 1, 3).ack_set, [0b101]);
        assert_eq!(outstanding.acknowledge_in(other, ID, 2, 3).ack_set, [0b011]);
        assert!(!outstanding.reject(ID, 1), "its transaction decides");
        outstanding.ended(other, false);
        assert_eq!(outstanding.deliver(ID, 3, &[0b110]), [1, 2], "the first abort was not told yet");
        outstanding.acknowledge_in(txn, ID, 1, 3);
        outstanding.acknowledge(ID, 2, 3);
        outstanding.ended(txn, true);
        assert!(outstanding.is_empty());
    }

    #[test]
    fn only_rejected_members_come_again() {
        let mut outstanding = Outstanding::default();
        outstanding.deliver(ID, 3, &[]);
        outstanding.acknowledge(ID, 0, 3);
        assert!(outstanding.reject(ID, 2));
        assert_eq!(outstanding.deliver(ID, 3, &[0b110]), [2]);
        assert!(!outstanding.reject(ID, 0), "acknowledged");
    }

    #[test]
    fn a_redelivery_that_nobody_asked_for_hands_on_all_that_is_open() {
        let mut outstanding = Outstanding::default();
        outstanding.deliver(ID, 3, &[]);
        assert_eq!(outstanding.deliver(ID, 3, &[0b011]), [0, 1]);
    }

    #[test]
    fn an_unknown_identifier_leaves_its_neighbours_open() {
        let mut outstanding = Outstanding::default();
        let data = outstanding.acknowledge(ID, 64, 70);
        assert_eq!(data.ack_set, [-1, 0b111110]);
        assert_eq!(outstanding.acknowledge((7, 4), -1, 0).ack_set.len(), 0);
    }
}
