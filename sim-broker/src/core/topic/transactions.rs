//! The end of a transaction on one topic: END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION, as the coordinator sends them.

use super::{Topic, consumers::scope, dispatch::Scope};
use crate::core::{
    effects::Effects,
    ids::{Millis, TxnId},
};

impl Topic {
    /// Makes the entries of a transaction visible, or drops them. `false` when it has none here.
    pub fn end_entries(&mut self, txn: TxnId, commit: bool, now: Millis, effects: &mut Effects) -> bool {
        let Some(aborted) = self.ledger.end(txn, commit) else { return false };
        for subscription in self.subscriptions.values_mut() {
            for entry in &aborted {
                subscription.cursor.ack(*entry);
            }
            subscription.check_end(scope!(self, now, effects));
        }
        self.dispatch_all(now, effects);
        true
    }

    /// Makes the acknowledgements of a transaction on one subscription count, or takes them back: what they named is
    /// delivered again. `false` when it has none there.
    pub fn end_acks(
        &mut self,
        subscription: &str,
        txn: TxnId,
        commit: bool,
        now: Millis,
        effects: &mut Effects,
    ) -> bool {
        let subscription = self.subscriptions.get_mut(subscription);
        subscription.is_some_and(|s| s.end_acks(txn, commit, scope!(self, now, effects)))
    }

    /// Drops whatever is left of a transaction here. `false` when nothing is.
    pub fn forget_txn(&mut self, txn: TxnId, now: Millis, effects: &mut Effects) -> bool {
        let mut found = self.end_entries(txn, false, now, effects);
        for subscription in self.subscriptions.values_mut() {
            found |= subscription.end_acks(txn, false, scope!(self, now, effects));
        }
        found
    }

    /// Whether a transaction that is open has anything here.
    pub fn has_txn(&self, txn: TxnId) -> bool {
        self.ledger.has_open(txn) || self.subscriptions.values().any(|s| s.cursor.pending.has(txn))
    }
}
