//! Shared: every entry goes to some consumer, in turns; consumers with a better priority are served first. The chunks of a
//! large message go to one consumer, which could not put it together otherwise.

use std::collections::{BTreeMap, BTreeSet};

use super::{Redeliveries, Scope, deliver};
use crate::core::{
    ids::{ConsumerKey, Millis},
    topic::{
        consumer::Consumer,
        cursor::Cursor,
        delayed::Delayed,
        ledger::{Ledger, Stored},
    },
};

/// Messages that one consumer gets before the next one's turn, as in Pulsar (`dispatcherMaxRoundRobinBatchSize`).
const TURN: u32 = 20;

#[derive(Debug)]
pub(in crate::core::topic) struct Shared {
    /// Entries below this one were delivered, are delayed or wait again.
    read: u64,
    /// Entries that wait to be delivered again.
    again: BTreeSet<u64>,
    delayed: Delayed,
    /// Who had the last turn.
    last: Option<ConsumerKey>,
    /// Who has the beginning of a large message, by its uuid.
    begun: BTreeMap<String, ConsumerKey>,
}

impl Shared {
    pub(super) fn new(read: u64) -> Self {
        Shared {
            read,
            again: BTreeSet::new(),
            delayed: Delayed::default(),
            last: None,
            begun: BTreeMap::new(),
        }
    }

    /// Whether there is nothing more to read.
    pub(in crate::core::topic) fn at_end(&self, cursor: &Cursor, ledger: &Ledger) -> bool {
        cursor.next_deliverable(self.read, ledger) >= ledger.len()
    }

    pub(super) fn again(&mut self, entry: u64) {
        self.again.insert(entry);
    }

    pub(super) fn forget(&mut self, entry: u64, stored: &Stored) {
        self.again.remove(&entry);
        self.delayed.remove(stored.deliver_at, entry);
    }

    pub(super) fn clear(&mut self, read: u64) {
        self.again.clear();
        self.delayed = Delayed::default();
        self.begun.clear();
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
        while let Some(entry) = self.delayed.pop_due(scope.now) {
            self.again.insert(entry);
        }
        // Chunks whose consumer has no room for them.
        let mut aside = Vec::new();
        'turns: while let Some(at) = self.pick(consumers) {
            let mut turn = TURN;
            while turn > 0 && consumers.get(at).is_some_and(|consumer| consumer.permits > 0) {
                let Some((entry, stored)) = self.next(cursor, scope) else { break 'turns };
                let Some(consumer) = self.owner(stored, at, consumers) else {
                    aside.push(entry);
                    continue;
                };
                let count = redeliveries.get(&entry).copied().unwrap_or(0);
                let messages = deliver(scope, cursor, consumer, entry, stored, count);
                consumer.track(entry, messages);
                self.last = Some(consumer.key);
                turn = turn.saturating_sub(messages.max(1));
            }
        }
        self.again.extend(aside);
    }

    /// Who gets an entry in the turn of the consumer at a place: that one, or for a chunk whoever has the beginning of its
    /// message, if there is room.
    fn owner<'a>(
        &mut self,
        stored: &Stored,
        turn: usize,
        consumers: &'a mut [Consumer],
    ) -> Option<&'a mut Consumer> {
        let Some(chunk) = &stored.chunk else { return consumers.get_mut(turn) };
        let begun = self.begun.get(&chunk.uuid);
        let owner = begun.and_then(|key| consumers.iter().position(|consumer| consumer.key == *key));
        let consumer = consumers.get_mut(owner.unwrap_or(turn)).filter(|consumer| consumer.permits > 0)?;
        if chunk.last {
            self.begun.remove(&chunk.uuid);
        } else {
            self.begun.insert(chunk.uuid.clone(), consumer.key);
        }
        Some(consumer)
    }

    /// The consumer whose turn it is: of those with permits, the best priority, then the next one after the last.
    fn pick(&self, consumers: &[Consumer]) -> Option<usize> {
        let ready = consumers.iter().filter(|consumer| consumer.permits > 0);
        let best = ready.map(|consumer| consumer.priority).min()?;
        let len = consumers.len();
        let start = consumers.iter().position(|c| Some(c.key) == self.last).map_or(0, |last| last + 1);
        let serves = |c: &Consumer| c.permits > 0 && c.priority == best;
        (0..len).map(|i| (start + i) % len).find(|i| consumers.get(*i).is_some_and(serves))
    }

    /// The next entry to deliver; delayed ones are put aside.
    fn next<'a>(&mut self, cursor: &Cursor, scope: &Scope<'a>) -> Option<(u64, &'a Stored)> {
        let ledger = scope.ledger;
        while let Some(entry) = self.again.pop_first() {
            if let Some(stored) =
                ledger.get(entry).filter(|_| cursor.next_deliverable(entry, ledger) == entry)
            {
                return Some((entry, stored));
            }
        }
        loop {
            let entry = cursor.next_deliverable(self.read, ledger);
            let stored = ledger.readable(entry)?;
            self.read = entry + 1;
            if stored.deliver_at <= scope.now {
                return Some((entry, stored));
            }
            self.delayed.insert(stored.deliver_at, entry);
        }
    }
}
