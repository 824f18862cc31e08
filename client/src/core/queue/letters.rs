//! Which messages go to the dead-letter topic (client-api §4.2, error-model §5), and which are on their way there.
//!
//! How often a message came is what the broker says. A message stays unacknowledged until the dead-letter topic has it;
//! when that fails, it is rejected and comes again, later each time.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::{
    Millis,
    acks::EntryId,
    backoff::Backoff,
    deviant::{Deviance, Deviant},
    message_id::Position,
};

#[derive(Debug)]
pub(super) struct Letters {
    /// How often a message may come again; `None` without a policy.
    limit: Option<u32>,
    under_way: BTreeSet<(u64, EntryId, i32)>,
    backoff: Backoff,
    /// Messages that could not be sent are asked for again then, together.
    rest_until: Millis,
    deviance: Deviance,
    /// How often each entry came, for a deviant that counts by itself.
    came: BTreeMap<(u64, EntryId), u32>,
}

impl Letters {
    pub(super) fn new(limit: Option<u32>, backoff: Backoff, deviance: Deviance) -> Self {
        let limit = match limit {
            None if deviance.is(Deviant::DeadLettersUnasked) => Some(2),
            Some(_) if deviance.is(Deviant::DeadLettersIgnored) => None,
            limit => limit,
        };
        Letters { limit, under_way: BTreeSet::new(), backoff, rest_until: 0, deviance, came: BTreeMap::new() }
    }

    /// Whether the messages of an entry that came again this often are dead letters.
    pub(super) fn take(&mut self, segment: u64, entry: EntryId, active: bool, redeliveries: u32) -> bool {
        let Some(limit) = self.limit else { return false };
        if !active && self.deviance.is(Deviant::DeadLettersOfActiveOnly) {
            return false;
        }
        if self.deviance.is(Deviant::DeadLetterOwnCount) {
            let came = self.came.entry((segment, entry)).or_default();
            *came += 1;
            return *came > limit.saturating_add(1);
        }
        if self.deviance.is(Deviant::DeadLetterEarly) { redeliveries >= limit } else { redeliveries > limit }
    }

    /// A message is to be sent. False when it is on its way already: it came again on another attachment.
    pub(super) fn begin(&mut self, at: &Position) -> bool {
        self.under_way.insert(key(at))
    }

    /// A message was sent, or could not be. False when nobody waits for that any more.
    pub(super) fn end(&mut self, at: &Position) -> bool {
        self.under_way.remove(&key(at))
    }

    pub(super) fn succeeded(&mut self) {
        self.backoff.reset();
    }

    /// Gives the time from which on the messages that could not be sent are asked for again.
    pub(super) fn failed(&mut self, now: Millis) -> Millis {
        if self.rest_until <= now {
            self.rest_until = now + self.backoff.delay();
        }
        self.rest_until
    }

    /// Whether messages of a segment are on their way.
    pub(super) fn is_busy(&self, segment: u64) -> bool {
        self.under_way.iter().any(|(of, ..)| *of == segment)
    }

    /// The topic is another one of the same name.
    pub(super) fn clear(&mut self) {
        self.under_way.clear();
    }
}

fn key(at: &Position) -> (u64, EntryId, i32) {
    (at.segment, (at.ledger, at.entry), at.batch_index)
}
