//! The acknowledgements that a consumer makes in transactions, on their way: first the transaction's coordinator is told of
//! the subscription, then the segment's broker is asked. What fails in passing is tried again until the time is over, also
//! on a later attachment of the segment.
//!
//! One call of the application is a *group*: it may mean acknowledgements on several segments, and has one result.

use std::collections::{BTreeMap, BTreeSet};

use stc_proto::pulsar::MessageIdData;

use super::TxnId;
use crate::core::{Millis, backoff::Backoff, error::Error};

/// An acknowledgement on one segment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TxnAck {
    pub(crate) segment: u64,
    /// Its messages one by one.
    pub(crate) ids: Vec<MessageIdData>,
    /// The same as everything up to one message, where that is the same.
    pub(crate) up_to: Option<MessageIdData>,
}

/// How a segment can be acknowledged on now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Not at all.
    Away,
    /// One by one.
    Shared,
    /// Cumulatively too: this consumer has it alone.
    Alone,
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Tells the transaction's coordinator of the subscription on this segment; tells [`TxnAcks::enlisted`].
    Enlist { ticket: u64, txn: TxnId, topic: String },
    /// Sends ACK in the transaction; tells [`TxnAcks::answered`].
    Acknowledge { ticket: u64, txn: TxnId, segment: u64, ids: Vec<MessageIdData>, cumulative: bool },
    /// A group has its result.
    Settle { group: u64, result: Result<(), Error> },
    /// Tells once how the transaction ended.
    Follow(TxnId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The coordinator is being told.
    Enlisting,
    /// To be sent when the segment is attached, and not before this time.
    Waiting(Millis),
    Asked,
}

#[derive(Debug)]
struct Pending {
    group: u64,
    txn: TxnId,
    ack: TxnAck,
    stage: Stage,
}

#[derive(Debug)]
struct Group {
    left: usize,
    failed: Option<Error>,
    deadline: Millis,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TxnAcks {
    /// How long a group may take.
    limit: Millis,
    backoff: Backoff,
    pending: BTreeMap<u64, Pending>,
    groups: BTreeMap<u64, Group>,
    followed: BTreeSet<TxnId>,
    next: u64,
}

impl TxnAcks {
    pub(crate) fn new(limit: Millis, backoff: Backoff) -> Self {
        TxnAcks {
            limit,
            backoff,
            pending: BTreeMap::new(),
            groups: BTreeMap::new(),
            followed: BTreeSet::new(),
            next: 0,
        }
    }

    /// Begins a group; each acknowledgement comes with the topic of its segment.
    pub(crate) fn begin(
        &mut self,
        group: u64,
        txn: TxnId,
        acks: Vec<(String, TxnAck)>,
        now: Millis,
        mut effect: impl FnMut(Effect),
    ) {
        if self.followed.insert(txn) {
            effect(Effect::Follow(txn));
        }
        if acks.is_empty() {
            return effect(Effect::Settle { group, result: Ok(()) });
        }
        let deadline = now + self.limit;
        self.groups.insert(group, Group { left: acks.len(), failed: None, deadline });
        for (topic, ack) in acks {
            let ticket = self.next;
            self.next += 1;
            self.pending.insert(ticket, Pending { group, txn, ack, stage: Stage::Enlisting });
            effect(Effect::Enlist { ticket, txn, topic });
        }
    }

    /// The coordinator knows of the subscription, or cannot be told.
    pub(crate) fn enlisted(&mut self, ticket: u64, result: Result<(), Error>, effect: impl FnMut(Effect)) {
        match result {
            Ok(()) => {
                let pending = self.pending.get_mut(&ticket).filter(|p| p.stage == Stage::Enlisting);
                pending.into_iter().for_each(|pending| pending.stage = Stage::Waiting(0));
            }
            Err(error) => self.finish(ticket, Err(error), effect),
        }
    }

    /// The broker answered an acknowledgement, or will not.
    pub(crate) fn answered(
        &mut self,
        ticket: u64,
        result: Result<(), Error>,
        now: Millis,
        effect: impl FnMut(Effect),
    ) {
        match result {
            Err(error) if error.is_transient() => {
                let delay = self.backoff.delay();
                let pending = self.pending.get_mut(&ticket);
                pending.into_iter().for_each(|pending| pending.stage = Stage::Waiting(now + delay));
            }
            result => {
                self.backoff.reset();
                self.finish(ticket, result, effect);
            }
        }
    }

    fn finish(&mut self, ticket: u64, result: Result<(), Error>, mut effect: impl FnMut(Effect)) {
        let Some(Pending { group: id, .. }) = self.pending.remove(&ticket) else { return };
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.left -= 1;
        if let Err(error) = result {
            group.failed.get_or_insert(error);
        }
        if group.left == 0
            && let Some(Group { failed, .. }) = self.groups.remove(&id)
        {
            effect(Effect::Settle { group: id, result: failed.map_or(Ok(()), Err) });
        }
    }

    /// Sends what can be sent, and gives up what took too long. `reach` is `None` for a segment that is another consumer's
    /// now.
    pub(crate) fn step(
        &mut self,
        now: Millis,
        reach: impl Fn(u64) -> Option<Reach>,
        mut effect: impl FnMut(Effect),
    ) {
        if self.pending.is_empty() {
            return;
        }
        let late: Vec<u64> =
            self.groups.iter().filter(|(_, g)| g.deadline <= now).map(|(id, _)| *id).collect();
        for group in late {
            self.pending.retain(|_, pending| pending.group != group);
            self.groups.remove(&group);
            let error = Error::timeout("the acknowledgement in the transaction was not answered in time");
            effect(Effect::Settle { group, result: Err(error) });
        }
        let tickets: Vec<u64> = self.pending.keys().copied().collect();
        for ticket in tickets {
            let Some(pending) = self.pending.get_mut(&ticket) else { continue };
            match (pending.stage, reach(pending.ack.segment)) {
                (Stage::Waiting(_), None) => {
                    let error = Error::not_connected("what was to be acknowledged is another consumer's now");
                    self.finish(ticket, Err(error), &mut effect);
                }
                (Stage::Waiting(after), Some(reach)) if reach != Reach::Away && after <= now => {
                    pending.stage = Stage::Asked;
                    let TxnAck { segment, ids, up_to } = pending.ack.clone();
                    let (ids, cumulative) = match up_to.filter(|_| reach == Reach::Alone) {
                        Some(id) => (vec![id], true),
                        None => (ids, false),
                    };
                    effect(Effect::Acknowledge { ticket, txn: pending.txn, segment, ids, cumulative });
                }
                _ => {}
            }
        }
    }

    /// A transaction ended and its end was told.
    pub(crate) fn ended(&mut self, txn: TxnId) {
        self.followed.remove(&txn);
    }

    /// When something is due next. What waits for an attachment is due with it.
    pub(crate) fn next_deadline(&self, attached: impl Fn(u64) -> bool) -> Option<Millis> {
        let waiting = self.pending.values().filter_map(|pending| match pending.stage {
            Stage::Waiting(after) if attached(pending.ack.segment) => Some(after),
            _ => None,
        });
        waiting.chain(self.groups.values().map(|group| group.deadline)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        backoff::{BackoffLimits, Rng},
        error::Category,
    };

    const TXN: TxnId = TxnId { coordinator: 0, number: 1 };

    struct Rig(TxnAcks, Vec<Effect>);

    impl Rig {
        fn new(segments: &[u64]) -> Self {
            let limits = BackoffLimits { initial: 100, max: 1000 };
            let mut rig = Rig(TxnAcks::new(30_000, Backoff::new(limits, Rng::new(1))), Vec::new());
            let acks = segments.iter().map(|segment| (format!("t{segment}"), ack(*segment))).collect();
            rig.0.begin(7, TXN, acks, 0, |effect| rig.1.push(effect));
            rig
        }

        fn step(&mut self, now: Millis, reach: Option<Reach>) -> Vec<Effect> {
            self.0.step(now, |_| reach, |effect| self.1.push(effect));
            std::mem::take(&mut self.1)
        }

        fn enlisted(&mut self, ticket: u64) {
            self.0.enlisted(ticket, Ok(()), |effect| self.1.push(effect));
        }

        fn answered(&mut self, ticket: u64, result: Result<(), Error>) -> Vec<Effect> {
            self.0.answered(ticket, result, 0, |effect| self.1.push(effect));
            std::mem::take(&mut self.1)
        }
    }

    fn id(entry: u64) -> MessageIdData {
        MessageIdData { ledger_id: 7, entry_id: entry, ..Default::default() }
    }

    fn ack(segment: u64) -> TxnAck {
        TxnAck { segment, ids: vec![id(1), id(2)], up_to: Some(id(2)) }
    }

    #[test]
    fn the_coordinator_is_told_first_and_the_result_comes_when_all_are_accepted() {
        let mut rig = Rig::new(&[1, 2]);
        let enlist = |ticket| Effect::Enlist { ticket, txn: TXN, topic: format!("t{}", ticket + 1) };
        assert_eq!(rig.step(0, Some(Reach::Alone)), [Effect::Follow(TXN), enlist(0), enlist(1)]);
        rig.enlisted(1);
        let sent = |ids, cumulative| Effect::Acknowledge { ticket: 1, txn: TXN, segment: 2, ids, cumulative };
        assert_eq!(rig.step(0, Some(Reach::Shared)), [sent(vec![id(1), id(2)], false)]);
        rig.answered(1, Err(Error::not_connected("lost")));
        assert_eq!(
            rig.step(1000, Some(Reach::Alone)),
            [sent(vec![id(2)], true)],
            "it has the segment alone now"
        );
        assert_eq!(rig.answered(1, Ok(())), []);
        rig.enlisted(0);
        assert_eq!(rig.step(0, Some(Reach::Alone)).len(), 1);
        assert_eq!(rig.answered(0, Ok(())), [Effect::Settle { group: 7, result: Ok(()) }]);
        assert_eq!(rig.0.next_deadline(|_| true), None);
    }

    #[test]
    fn a_lost_attachment_is_waited_for_and_a_conflict_is_not() {
        let mut rig = Rig::new(&[1]);
        rig.enlisted(0);
        rig.1.clear();
        assert_eq!(rig.step(0, Some(Reach::Away)), []);
        assert_eq!(rig.step(0, Some(Reach::Alone)).len(), 1);
        assert_eq!(rig.answered(0, Err(Error::not_connected("lost"))), []);
        let due = rig.0.next_deadline(|_| true).unwrap();
        assert_eq!(rig.step(due, Some(Reach::Alone)).len(), 1, "sent again");
        let conflict = Error::new(Category::TransactionConflict, "taken");
        let settled = Effect::Settle { group: 7, result: Err(conflict.clone()) };
        assert_eq!(rig.answered(0, Err(conflict)), [settled]);
    }

    #[test]
    fn it_fails_when_its_time_is_over_or_the_segment_is_another_consumers() {
        for (now, attached, category) in
            [(30_000, Some(Reach::Away), Category::Timeout), (0, None, Category::NotConnected)]
        {
            let mut rig = Rig::new(&[1]);
            rig.enlisted(0);
            rig.1.clear();
            let effects = rig.step(now, attached);
            let [Effect::Settle { result: Err(error), .. }] = &effects[..] else { panic!("{effects:?}") };
            assert_eq!(error.category(), category);
        }
    }
}
