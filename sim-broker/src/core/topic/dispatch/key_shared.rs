//! Key_Shared: the entries of one key hash go to one consumer at a time, in order.
//!
//! The same for entry buckets, each of which stands for one hash.
//!
//! Every hash that has entries to deliver, or delivered ones that are not acknowledged, is a *lane*. A lane's entries go
//! to the consumer that owns the hash. When the owner changes while entries are still with the previous one, the lane
//! waits until those are acknowledged or given back (unless the subscription allows out-of-order delivery).

use std::collections::{BTreeSet, HashMap};

use stc_proto::pulsar::KeySharedMeta;

use super::{Redeliveries, Scope, deliver, selector::Selector};
use crate::core::{
    ids::{ConsumerKey, Millis},
    topic::{consumer::Consumer, cursor::Cursor, delayed::Delayed, error::TopicError, ledger::Stored},
};

#[derive(Debug)]
pub(in crate::core::topic) struct KeyShared {
    selector: Selector,
    out_of_order: bool,
    lanes: HashMap<u16, Lane>,
    /// Lanes that could be served, by consumer, in the order of their first entries.
    ready: HashMap<ConsumerKey, BTreeSet<(u64, u16)>>,
    delayed: Delayed,
    /// Entries below this one are in a lane, delayed, or were.
    read: u64,
}

#[derive(Debug, Default)]
struct Lane {
    /// Entries to deliver.
    queue: BTreeSet<u64>,
    /// Who has delivered entries that are not acknowledged, and how many.
    holder: Option<(ConsumerKey, usize)>,
    /// Where the lane is in `ready`.
    listed: Option<(ConsumerKey, u64)>,
}

impl KeyShared {
    pub(super) fn new(meta: Option<&KeySharedMeta>, read: u64) -> Self {
        KeyShared {
            selector: Selector::new(meta),
            // A moving entry bucket always waits.
            out_of_order: meta
                .is_some_and(|meta| meta.allow_out_of_order_delivery() && !meta.entry_bucket_dispatch()),
            lanes: HashMap::new(),
            ready: HashMap::new(),
            delayed: Delayed::default(),
            read,
        }
    }

    pub(super) fn join(&mut self, new: &Consumer, others: &[Consumer]) -> Result<(), TopicError> {
        self.selector.join(new, others)?;
        self.relist_all();
        Ok(())
    }

    pub(super) fn leave(&mut self, key: ConsumerKey) {
        self.selector.leave(key);
        self.relist_all();
        self.ready.remove(&key);
    }

    pub(super) fn queue(&mut self, entry: u64, stored: &Stored) {
        let hash = self.selector.hash(stored);
        self.lanes.entry(hash).or_default().queue.insert(entry);
        self.relist(hash);
    }

    pub(super) fn settled(&mut self, stored: &Stored, owner: ConsumerKey) {
        let hash = self.selector.hash(stored);
        let Some(lane) = self.lanes.get_mut(&hash) else { return };
        if let Some((holder, count)) = &mut lane.holder
            && *holder == owner
        {
            *count -= 1;
            if *count == 0 {
                lane.holder = None;
                self.relist(hash);
            }
        }
    }

    pub(super) fn forget(&mut self, entry: u64, stored: &Stored) {
        self.delayed.remove(stored.deliver_at, entry);
        let hash = self.selector.hash(stored);
        if let Some(lane) = self.lanes.get_mut(&hash)
            && lane.queue.remove(&entry)
        {
            self.relist(hash);
        }
    }

    pub(super) fn clear(&mut self, read: u64) {
        self.lanes.clear();
        self.ready.clear();
        self.delayed = Delayed::default();
        self.read = read;
    }

    pub(super) fn next_deadline(&self) -> Option<Millis> {
        self.delayed.next()
    }

    pub(super) fn dispatch(
        &mut self,
        consumers: &mut [Consumer],
        cursor: &Cursor,
        redeliveries: &Redeliveries,
        scope: &mut Scope<'_>,
    ) {
        self.read_ahead(cursor, scope);
        let ledger = scope.ledger;
        for consumer in consumers {
            while consumer.permits > 0 {
                let Some(lanes) = self.ready.get(&consumer.key) else { break };
                let Some(&(entry, hash)) = lanes.first() else { break };
                let Some(lane) = self.lanes.get_mut(&hash) else { break };
                lane.queue.remove(&entry);
                if let Some(stored) = ledger.get(entry) {
                    let count = redeliveries.get(&entry).copied().unwrap_or(0);
                    let messages = deliver(scope, cursor, consumer, entry, stored, count);
                    consumer.track(entry, messages);
                    if !self.out_of_order {
                        lane.holder.get_or_insert((consumer.key, 0)).1 += 1;
                    }
                }
                self.relist(hash);
            }
        }
    }

    /// Puts what was stored since the last time, and what became due, into lanes.
    fn read_ahead(&mut self, cursor: &Cursor, scope: &Scope<'_>) {
        let ledger = scope.ledger;
        while let Some(entry) = self.delayed.pop_due(scope.now) {
            if let Some(stored) = ledger.get(entry) {
                self.queue(entry, stored);
            }
        }
        loop {
            let entry = cursor.next_deliverable(self.read, ledger);
            let Some(stored) = ledger.readable(entry) else { return };
            self.read = entry + 1;
            match stored.deliver_at <= scope.now {
                true => self.queue(entry, stored),
                false => self.delayed.insert(stored.deliver_at, entry),
            }
        }
    }

    fn relist_all(&mut self) {
        let hashes: Vec<u16> = self.lanes.keys().copied().collect();
        hashes.into_iter().for_each(|hash| self.relist(hash));
    }

    /// Brings a lane's place in `ready` up to date, and drops the lane when there is nothing in it.
    fn relist(&mut self, hash: u16) {
        let Some(lane) = self.lanes.get_mut(&hash) else { return };
        let free = |owner: &ConsumerKey| lane.holder.is_none_or(|(holder, _)| holder == *owner);
        let first = lane.queue.first().copied();
        let place = first.and_then(|entry| Some((self.selector.owner(hash).filter(free)?, entry)));
        if place != lane.listed {
            if let Some((owner, entry)) = lane.listed
                && let Some(lanes) = self.ready.get_mut(&owner)
            {
                lanes.remove(&(entry, hash));
            }
            if let Some((owner, entry)) = place {
                self.ready.entry(owner).or_default().insert((entry, hash));
            }
            lane.listed = place;
        }
        if lane.queue.is_empty() && lane.holder.is_none() {
            self.lanes.remove(&hash);
        }
    }
}
