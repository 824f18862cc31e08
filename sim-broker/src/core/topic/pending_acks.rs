//! Acknowledgements that were made in transactions which are still open: they count from the commit on, and until then
//! what they name is not delivered to anyone.

use std::collections::BTreeMap;

use super::ack_set::AckSet;
use crate::core::ids::TxnId;

/// An acknowledgement of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PendingAck {
    txn: TxnId,
    /// The messages of the batch that it leaves; `None` when it acknowledges the whole entry.
    left: Option<Vec<i64>>,
}

/// What a transaction acknowledged on one subscription.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// Up to and including this entry, or of that one only what is not left.
    pub(super) up_to: Option<(u64, Option<Vec<i64>>)>,
    /// Entries, and what is left of each when it was not acknowledged as a whole.
    pub(super) entries: Vec<(u64, Option<Vec<i64>>)>,
}

#[derive(Debug, Default)]
pub(super) struct PendingAcks {
    individual: BTreeMap<u64, Vec<PendingAck>>,
    cumulative: Option<(TxnId, u64, Option<Vec<i64>>)>,
}

impl PendingAcks {
    /// Whether another open transaction acknowledges a message of an entry too.
    pub(super) fn conflicts(&self, txn: TxnId, entry: u64, messages: u32, left: &Option<Vec<i64>>) -> bool {
        let mut acks = self.individual.get(&entry).into_iter().flatten();
        acks.any(|ack| ack.txn != txn && overlap(messages, &ack.left, left))
            || self.cumulative.as_ref().is_some_and(|(other, up_to, rest)| {
                *other != txn && (entry < *up_to || entry == *up_to && overlap(messages, rest, left))
            })
    }

    /// Notes an acknowledgement of one entry. Repeating one's own changes nothing.
    pub(super) fn add(&mut self, txn: TxnId, entry: u64, left: Option<Vec<i64>>) {
        let acks = self.individual.entry(entry).or_default();
        match acks.iter_mut().find(|ack| ack.txn == txn) {
            Some(mine) => mine.left = both(mine.left.take(), left),
            None => acks.push(PendingAck { txn, left }),
        }
    }

    /// Notes an acknowledgement of everything up to an entry; `false` when another open transaction has one, or one of a
    /// message before.
    pub(super) fn add_up_to(&mut self, txn: TxnId, entry: u64, left: Option<Vec<i64>>) -> bool {
        let below = self.individual.range(..=entry).filter(|(at, _)| **at < entry || left.is_none());
        if below.flat_map(|(_, acks)| acks).any(|ack| ack.txn != txn) {
            return false;
        }
        match &mut self.cumulative {
            Some((other, _, _)) if *other != txn => return false,
            Some((_, up_to, _)) if *up_to > entry => {}
            Some((_, up_to, rest)) if *up_to == entry => *rest = both(rest.take(), left),
            cumulative => *cumulative = Some((txn, entry, left)),
        }
        true
    }

    /// Takes out what a transaction acknowledged; `None` when it acknowledged nothing here.
    pub(super) fn end(&mut self, txn: TxnId) -> Option<Ended> {
        let mut ended = Ended::default();
        if let Some((_, entry, left)) = self.cumulative.take_if(|(owner, _, _)| *owner == txn) {
            ended.up_to = Some((entry, left));
        }
        for (entry, acks) in &mut self.individual {
            let mine = acks.iter().position(|ack| ack.txn == txn);
            if let Some(mine) = mine.map(|i| acks.swap_remove(i)) {
                ended.entries.push((*entry, mine.left));
            }
        }
        self.individual.retain(|_, acks| !acks.is_empty());
        (ended != Ended::default()).then_some(ended)
    }

    pub(super) fn has(&self, txn: TxnId) -> bool {
        self.cumulative.as_ref().is_some_and(|(owner, _, _)| *owner == txn)
            || self.individual.values().flatten().any(|ack| ack.txn == txn)
    }

    /// What open transactions leave of an entry of so many messages, of which the cursor has `unacked` left; `None`
    /// when they acknowledge nothing of it.
    pub(super) fn left(&self, entry: u64, messages: u32, unacked: Option<&AckSet>) -> Option<AckSet> {
        if self.individual.is_empty() && self.cumulative.is_none() {
            return None;
        }
        let mut parts: Vec<&Option<Vec<i64>>> =
            self.individual.get(&entry).into_iter().flatten().map(|ack| &ack.left).collect();
        match &self.cumulative {
            Some((_, up_to, left)) if entry == *up_to => parts.push(left),
            Some((_, up_to, _)) if entry < *up_to => parts.push(&None),
            _ => {}
        }
        let (first, rest) = parts.split_first()?;
        let mut set = match unacked {
            Some(unacked) => unacked.clone(),
            None => AckSet::first(messages, first.as_deref().unwrap_or_default()),
        };
        set.intersect(first.as_deref().unwrap_or_default());
        for part in rest {
            set.intersect(part.as_deref().unwrap_or_default());
        }
        Some(set)
    }
}

/// Whether two acknowledgements of one entry name a message in common.
fn overlap(messages: u32, a: &Option<Vec<i64>>, b: &Option<Vec<i64>>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return true };
    // Left by either one: when that is all, they share nothing.
    let words = a.len().max(b.len()).max(messages.div_ceil(64).min(64) as usize);
    let word = |set: &[i64], i: usize| set.get(i).copied().unwrap_or_default() as u64;
    (0..words).any(|i| {
        let bits = messages.saturating_sub(i as u32 * 64).min(64);
        let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        !word(a, i) & !word(b, i) & mask != 0
    })
}

/// What two acknowledgements of one entry leave together.
fn both(a: Option<Vec<i64>>, b: Option<Vec<i64>>) -> Option<Vec<i64>> {
    let (a, b) = (a?, b?);
    Some(a.iter().zip(&b).map(|(a, b)| a & b).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(number: u64) -> TxnId {
        TxnId { coordinator: 0, number }
    }

    #[test]
    fn two_transactions_share_a_batch_but_not_a_message() {
        let mut pending = PendingAcks::default();
        pending.add(txn(1), 4, Some(vec![0b110]));
        assert!(!pending.conflicts(txn(2), 4, 3, &Some(vec![0b101])));
        pending.add(txn(2), 4, Some(vec![0b101]));
        assert!(pending.conflicts(txn(3), 4, 3, &Some(vec![0b001])), "the second message is taken");
        assert!(pending.conflicts(txn(3), 4, 3, &None));
        assert!(!pending.conflicts(txn(1), 4, 3, &Some(vec![0b110])), "a repeat");
        pending.add(txn(1), 4, Some(vec![0b110]));
        assert_eq!(pending.left(4, 3, None).unwrap().to_wire(), [0b100]);
        let cursor = AckSet::first(3, &[0b011]);
        assert_eq!(pending.left(4, 3, Some(&cursor)).unwrap().unacked(), 0);
        let ended = pending.end(txn(1)).unwrap();
        assert_eq!(ended.entries, [(4, Some(vec![0b110]))]);
        assert!(!pending.has(txn(1)) && pending.has(txn(2)));
        assert_eq!(pending.end(txn(1)), None);
        assert!(pending.left(5, 1, None).is_none());
    }

    #[test]
    fn a_cumulative_one_belongs_to_one_transaction_and_only_grows() {
        let mut pending = PendingAcks::default();
        assert!(pending.add_up_to(txn(1), 5, None));
        assert!(!pending.add_up_to(txn(2), 7, None));
        assert!(pending.conflicts(txn(2), 3, 1, &None));
        pending.add(txn(3), 9, None);
        assert!(!pending.add_up_to(txn(1), 9, None));
        pending.end(txn(3));
        assert!(!pending.conflicts(txn(2), 6, 1, &None));
        assert!(pending.add_up_to(txn(1), 2, None));
        assert_eq!(pending.left(5, 1, None).unwrap().unacked(), 0);
        assert!(pending.add_up_to(txn(1), 8, Some(vec![0b10])));
        assert_eq!(pending.left(8, 2, None).unwrap().to_wire(), [0b10]);
        assert_eq!(pending.end(txn(1)).unwrap().up_to, Some((8, Some(vec![0b10]))));
    }
}
