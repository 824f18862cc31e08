//! Exclusive and Failover: one consumer gets everything, in order.

use stc_proto::pulsar::CommandActiveConsumerChange;

use super::{Scope, deliver};
use crate::core::{
    ids::ConsumerKey,
    topic::{consumer::Consumer, cursor::Cursor, error::TopicError},
};

#[derive(Debug)]
pub(in crate::core::topic) struct Single {
    failover: bool,
    active: Option<ConsumerKey>,
    /// Entries below this one were delivered to the active consumer.
    read: u64,
}

impl Single {
    pub(super) fn new(failover: bool, read: u64) -> Self {
        Single { failover, active: None, read }
    }

    pub(super) fn check(&self, others: &[Consumer]) -> Result<(), TopicError> {
        if !self.failover && !others.is_empty() {
            return Err(TopicError::consumer_busy("Exclusive consumer is already connected"));
        }
        Ok(())
    }

    pub(in crate::core::topic) fn active(&self) -> Option<ConsumerKey> {
        self.active
    }

    /// Entries below this one were delivered.
    pub(in crate::core::topic) fn read(&self) -> u64 {
        self.read
    }

    /// Begins again at the first entry that is not acknowledged.
    pub(in crate::core::topic) fn rewind(&mut self, cursor: &Cursor) {
        self.read = cursor.first_unacked();
    }

    /// Chooses the active consumer: the best priority, then the first name; the partitions of a topic take turns among
    /// those of the best priority. A new one begins at the cursor. Failover consumers are told: all of them when the
    /// active one changed, else the newcomer (the last in the list) if there is one.
    pub(in crate::core::topic) fn elect(
        &mut self,
        consumers: &[Consumer],
        joined: bool,
        cursor: &Cursor,
        scope: &mut Scope<'_>,
    ) {
        let mut order: Vec<&Consumer> = consumers.iter().collect();
        order.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
        let best = order.first().map(|consumer| consumer.priority);
        let candidates = order.iter().take_while(|consumer| Some(consumer.priority) == best).count();
        let turn = usize::try_from(scope.partition).ok().and_then(|p| p.checked_rem(candidates)).unwrap_or(0);
        let elected = order.get(turn).map(|consumer| consumer.key);
        let changed = elected != self.active;
        self.active = elected;
        if changed {
            self.rewind(cursor);
        }
        if self.failover {
            let told = match (changed, joined) {
                (true, _) => consumers,
                (false, true) => consumers.last().map_or(&[][..], std::slice::from_ref),
                (false, false) => &[],
            };
            for consumer in told {
                let is_active = Some(Some(consumer.key) == elected);
                let change = CommandActiveConsumerChange { consumer_id: consumer.key.id, is_active };
                scope.effects.send(consumer.key.conn, change);
            }
        }
    }

    pub(super) fn dispatch(&mut self, consumers: &mut [Consumer], cursor: &Cursor, scope: &mut Scope<'_>) {
        let Some(consumer) = consumers.iter_mut().find(|consumer| Some(consumer.key) == self.active) else {
            return;
        };
        let ledger = scope.ledger;
        while consumer.permits > 0 {
            let entry = cursor.next_deliverable(self.read, ledger);
            let Some(stored) = ledger.readable(entry) else { return };
            self.read = entry + 1;
            deliver(scope, cursor, consumer, entry, stored, 0);
        }
    }
}
