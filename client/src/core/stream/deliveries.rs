//! What one segment delivered and is not acknowledged at its broker, message by message.
//!
//! A message is *open* until the application acknowledges it, *wanted* until that acknowledgement is sent, and under way
//! until the broker has accepted it. Only then it is settled: a drain waits for that, not for the application's call.

pub(crate) mod in_transaction;
mod parts;

use std::collections::BTreeMap;

use stc_proto::pulsar::MessageIdData;

use crate::core::{
    acks::EntryId,
    deviant::{Deviance, Deviant},
    message_id::Position,
    transaction::TxnId,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// With the application, or on the way there; the number counts the deliveries of the consumer.
    Open(u64),
    /// Open, and delivered again: the application got it under this number before. It stays so when the second delivery
    /// is taken back.
    Held(u64),
    /// Acknowledged by the application; the broker is still to be told.
    Wanted(u64),
    /// The broker was told under this ticket.
    Asked { ticket: u64, sequence: u64 },
    /// Acknowledged by the application in a transaction that is open.
    Pending { txn: TxnId, sequence: u64 },
    /// The broker knows.
    Acked,
    /// Taken back before the application could receive it.
    Withdrawn,
}

#[derive(Debug)]
struct Entry {
    members: Vec<State>,
    batch: bool,
    /// Everything before it in the segment was delivered here too, or acknowledged.
    prefix: bool,
}

/// An acknowledgement to send.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ack {
    /// Comes back with the broker's answer.
    pub(crate) ticket: u64,
    pub(crate) ids: Vec<MessageIdData>,
    pub(crate) cumulative: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    entries: BTreeMap<EntryId, Entry>,
    /// By the entry that a large message is complete with: the entries of its other parts.
    parts: BTreeMap<EntryId, Vec<EntryId>>,
}

/// An entry as it arrived.
pub(crate) struct Arrived<'a> {
    pub(crate) id: EntryId,
    pub(crate) count: usize,
    pub(crate) batch: bool,
    /// Whether the segment is this consumer's alone.
    pub(crate) exclusive: bool,
    /// A bit for each message that is not acknowledged; empty means all.
    pub(crate) ack_set: &'a [i64],
}

impl Deliveries {
    /// An entry arrived. `present` are the places of the messages it has for the application. Gives those that the
    /// application gets; `sequence` counts them.
    pub(crate) fn deliver(
        &mut self,
        arrived: &Arrived<'_>,
        present: &[usize],
        before: &mut Deliveries,
        sequence: &mut u64,
    ) -> Vec<(usize, u64)> {
        let known = before.entries.remove(&arrived.id);
        let entry = self.entries.entry(arrived.id).or_insert_with(|| Entry {
            members: Vec::new(),
            batch: arrived.batch,
            prefix: arrived.exclusive,
        });
        let at_broker = |index: usize| arrived.ack_set.is_empty() || bit(arrived.ack_set, index);
        let mut deliver = Vec::new();
        for index in 0..arrived.count {
            let earlier = known.as_ref().and_then(|known| known.members.get(index)).copied();
            let here = entry.members.get(index).copied();
            let state = match (here, earlier) {
                _ if !at_broker(index) || !present.contains(&index) => State::Acked,
                // The same delivery once more.
                (
                    Some(
                        state @ (State::Open(_)
                        | State::Held(_)
                        | State::Wanted(_)
                        | State::Asked { .. }
                        | State::Acked),
                    ),
                    _,
                ) => state,
                (_, Some(State::Wanted(earlier))) => State::Wanted(earlier),
                (_, earlier) => {
                    *sequence += 1;
                    deliver.push((index, *sequence));
                    // An acknowledgement of the first delivery is one of the message.
                    match earlier {
                        Some(
                            State::Open(earlier)
                            | State::Held(earlier)
                            | State::Pending { sequence: earlier, .. },
                        ) => State::Held(earlier),
                        _ => State::Open(*sequence),
                    }
                }
            };
            match entry.members.get_mut(index) {
                Some(member) => *member = state,
                None => entry.members.push(state),
            }
        }
        let gone = entry.members.iter().all(|state| *state == State::Acked);
        if gone && !present.iter().any(|index| at_broker(*index)) {
            // Nothing in it is for the application, so nobody would ever acknowledge it.
            entry.members.iter_mut().for_each(|state| *state = State::Wanted(0));
        }
        self.forget_settled();
        deliver
    }

    /// The application acknowledged everything up to this place that was delivered no later than `sequence`.
    pub(crate) fn want(&mut self, upto: &Position, sequence: Option<u64>) {
        for (id, entry) in self.entries.range_mut(..=(upto.ledger, upto.entry)) {
            let last = *id == (upto.ledger, upto.entry);
            for (state, index) in entry.members.iter_mut().zip(0i32..) {
                let within = !last || upto.batch_index < 0 || index <= upto.batch_index;
                if let State::Open(at) | State::Held(at) = *state
                    && within
                    && sequence.is_none_or(|sequence| at <= sequence)
                {
                    *state = State::Wanted(at);
                }
            }
        }
        self.want_parts();
    }

    /// The application acknowledged a message that nothing is known of. With `prefix` everything before it as well.
    pub(crate) fn want_unknown(&mut self, at: &Position, prefix: bool) {
        let count = usize::try_from(at.batch_size).unwrap_or_default();
        let index = usize::try_from(at.batch_index).unwrap_or_default();
        let entry = self.entries.entry((at.ledger, at.entry)).or_insert_with(|| Entry {
            members: vec![State::Withdrawn; count.max(index + 1)],
            batch: at.batch_index >= 0,
            prefix,
        });
        let wanted = entry.members.iter_mut().zip(0usize..);
        for (state, _) in wanted.filter(|(_, i)| if prefix { *i <= index } else { *i == index }) {
            if matches!(state, State::Withdrawn | State::Open(_) | State::Held(_)) {
                *state = State::Wanted(0);
            }
        }
        self.want_parts();
    }

    pub(crate) fn knows(&self, at: &Position) -> bool {
        self.entries.contains_key(&(at.ledger, at.entry))
    }

    /// Messages were taken back before the application could receive them.
    pub(crate) fn withdraw(&mut self, places: &[Position]) {
        for at in places {
            let index = usize::try_from(at.batch_index).unwrap_or_default();
            let entry = self.entries.get_mut(&(at.ledger, at.entry));
            match entry.and_then(|entry| entry.members.get_mut(index)) {
                Some(state @ State::Open(_)) => *state = State::Withdrawn,
                // The second delivery; the first one may be taken back next.
                Some(state @ State::Held(_)) => {
                    if let State::Held(earlier) = *state {
                        *state = State::Open(earlier);
                    }
                }
                _ => {}
            }
        }
        self.forget_settled();
    }

    /// Whether nothing that the application got is without the broker's acceptance.
    pub(crate) fn is_settled(&self, deviance: Deviance) -> bool {
        let too_early = deviance.is(Deviant::DrainCountsOpenTransactions);
        self.entries.values().flat_map(|entry| &entry.members).all(|state| match state {
            State::Acked | State::Withdrawn => true,
            State::Pending { .. } => too_early,
            State::Asked { .. } | State::Open(_) | State::Held(_) | State::Wanted(_) => false,
        })
    }

    pub(crate) fn has_wanted(&self) -> bool {
        self.entries.values().any(Entry::has_wanted)
    }

    /// The acknowledgements to send: cumulative where this consumer has the segment alone, one by one otherwise.
    pub(crate) fn acks(&mut self, exclusive: bool, next_ticket: &mut u64, deviance: Deviance) -> Vec<Ack> {
        let mut acks = Vec::new();
        let cumulative = (exclusive || deviance.is(Deviant::CumulativeOnShared))
            && !deviance.is(Deviant::IndividualOnExclusive);
        if cumulative {
            acks.extend(self.cumulative(next_ticket, deviance));
        }
        let ticket = *next_ticket;
        let mut ids = Vec::new();
        for (id, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.has_wanted()) {
            entry.ask(ticket, usize::MAX);
            ids.push(entry.describe(id));
        }
        if !ids.is_empty() {
            *next_ticket += 1;
            acks.push(Ack { ticket, ids, cumulative: false });
        }
        acks
    }

    /// One acknowledgement for everything before the first message that is still open, as far as that is known to be
    /// everything.
    fn cumulative(&mut self, next_ticket: &mut u64, deviance: Deviance) -> Option<Ack> {
        let any = deviance.is(Deviant::CumulativeOnShared);
        let mut top = None;
        'entries: for (id, entry) in &self.entries {
            for (index, state) in entry.members.iter().enumerate() {
                match state {
                    State::Open(_) | State::Held(_) | State::Pending { .. } | State::Withdrawn if any => {}
                    State::Open(_) | State::Held(_) | State::Pending { .. } | State::Withdrawn => {
                        break 'entries;
                    }
                    State::Wanted(_) if entry.prefix || any => top = Some((*id, index)),
                    State::Wanted(_) | State::Asked { .. } | State::Acked => {}
                }
            }
        }
        let (top, index) = top?;
        let ticket = *next_ticket;
        *next_ticket += 1;
        for (id, entry) in self.entries.range_mut(..=top) {
            if entry.prefix || any {
                entry.ask(ticket, if *id == top { index } else { usize::MAX });
            }
        }
        let described = self.entries.get(&top).map(|entry| entry.describe(&top))?;
        Some(Ack { ticket, ids: vec![described], cumulative: true })
    }

    /// The broker answered an acknowledgement. One that it did not accept is wanted again.
    pub(crate) fn answered(&mut self, ticket: u64, accepted: bool) {
        for state in self.entries.values_mut().flat_map(|entry| &mut entry.members) {
            match *state {
                State::Asked { ticket: of, sequence } if of == ticket => {
                    *state = if accepted { State::Acked } else { State::Wanted(sequence) };
                }
                _ => {}
            }
        }
        self.forget_settled();
    }

    /// The attachment is gone. What the application got and the broker may not know as acknowledged is kept, for
    /// acknowledgements that come late.
    pub(crate) fn outlive(self, into: &mut Deliveries) {
        for (id, mut entry) in self.entries {
            for state in &mut entry.members {
                if let State::Asked { sequence, .. } = *state {
                    *state = State::Wanted(sequence);
                }
            }
            into.entries.insert(id, entry);
        }
        into.parts.extend(self.parts);
        into.forget_settled();
    }

    /// Takes over what was acknowledged late.
    pub(crate) fn adopt_wanted(&mut self, late: &mut Deliveries) {
        let wanted: Vec<EntryId> =
            late.entries.iter().filter(|(_, entry)| entry.has_wanted()).map(|(id, _)| *id).collect();
        for id in wanted {
            let Some(theirs) = late.entries.get_mut(&id) else { continue };
            let ours = self.entries.entry(id).or_insert_with(|| Entry {
                members: vec![State::Withdrawn; theirs.members.len()],
                batch: theirs.batch,
                prefix: theirs.prefix,
            });
            for (ours, theirs) in ours.members.iter_mut().zip(&mut theirs.members) {
                match theirs {
                    State::Wanted(_) => *ours = std::mem::replace(theirs, State::Acked),
                    State::Acked => *ours = State::Acked,
                    _ => {}
                }
            }
        }
        late.forget_settled();
    }

    fn forget_settled(&mut self) {
        self.entries.retain(|_, entry| entry.members.iter().any(|state| *state != State::Acked));
        self.parts.retain(|id, _| self.entries.contains_key(id));
    }
}

impl Entry {
    fn has_wanted(&self) -> bool {
        self.members.iter().any(|state| matches!(state, State::Wanted(_)))
    }

    fn ask(&mut self, ticket: u64, upto: usize) {
        for state in self.members.iter_mut().take(upto.saturating_add(1)) {
            if let State::Wanted(sequence) = *state {
                *state = State::Asked { ticket, sequence };
            }
        }
    }

    /// The entry as an acknowledgement names it: with the members that are left, if any are.
    fn describe(&self, id: &EntryId) -> MessageIdData {
        let mut data = MessageIdData { ledger_id: id.0, entry_id: id.1, ..Default::default() };
        let left = |state: &State| {
            matches!(
                state,
                State::Open(_) | State::Held(_) | State::Wanted(_) | State::Pending { .. } | State::Withdrawn
            )
        };
        if self.members.iter().any(left) {
            let word = |chunk: &[State]| {
                chunk
                    .iter()
                    .zip(0..)
                    .fold(0, |word, (state, bit)| if left(state) { word | 1 << bit } else { word })
            };
            data.ack_set = self.members.chunks(64).map(word).collect();
            while data.ack_set.last() == Some(&0) {
                data.ack_set.pop();
            }
            data.batch_size = Some(self.members.len() as i32);
        }
        data
    }
}

fn bit(words: &[i64], index: usize) -> bool {
    words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(entry: u64, batch_index: i32, batch_size: i32) -> Position {
        Position { segment: 0, ledger: 7, entry, batch_index, batch_size }
    }

    fn arrive(
        deliveries: &mut Deliveries,
        entry: u64,
        count: usize,
        exclusive: bool,
        sequence: &mut u64,
    ) -> usize {
        let arrived = Arrived { id: (7, entry), count, batch: count > 1, exclusive, ack_set: &[] };
        let present: Vec<usize> = (0..count).collect();
        deliveries.deliver(&arrived, &present, &mut Deliveries::default(), sequence).len()
    }

    /// Whether it is cumulative, and entries with their ack sets.
    type Sent = (bool, Vec<(u64, Vec<i64>)>);

    fn sent(deliveries: &mut Deliveries, exclusive: bool) -> Vec<Sent> {
        let acks = deliveries.acks(exclusive, &mut 0, Deviance::default());
        let id = |id: MessageIdData| (id.entry_id, id.ack_set);
        acks.into_iter().map(|ack| (ack.cumulative, ack.ids.into_iter().map(id).collect())).collect()
    }

    #[test]
    fn alone_one_cumulative_acknowledgement_says_it_all() {
        let mut deliveries = Deliveries::default();
        let mut sequence = 0;
        for entry in 0..3 {
            arrive(&mut deliveries, entry, 1, true, &mut sequence);
        }
        deliveries.want(&at(1, -1, 0), Some(9));
        assert_eq!(sent(&mut deliveries, true), [(true, vec![(1, vec![])])]);
        assert!(!deliveries.is_settled(Deviance::default()));
        deliveries.want(&at(2, -1, 0), Some(9));
        deliveries.answered(0, true);
        assert!(!deliveries.is_settled(Deviance::default()), "entry 2 is not even sent");
    }

    #[test]
    fn a_second_delivery_that_is_taken_back_leaves_the_first() {
        let (mut first, mut second) = (Deliveries::default(), Deliveries::default());
        let (mut late, mut sequence) = (Deliveries::default(), 0);
        arrive(&mut first, 0, 1, true, &mut sequence);
        first.outlive(&mut late);
        let arrived = Arrived { id: (7, 0), count: 1, batch: false, exclusive: true, ack_set: &[] };
        assert_eq!(second.deliver(&arrived, &[0], &mut late, &mut sequence), [(0, 2)]);
        second.withdraw(&[at(0, -1, 0)]);
        assert!(!second.is_settled(Deviance::default()), "the application has it from the first");
        second.want(&at(0, -1, 0), Some(1));
        assert_eq!(sent(&mut second, true), [(true, vec![(0, vec![])])]);
    }

    #[test]
    fn only_the_brokers_acceptance_settles() {
        let mut deliveries = Deliveries::default();
        arrive(&mut deliveries, 0, 1, true, &mut 0);
        deliveries.want(&at(0, -1, 0), None);
        assert_eq!(sent(&mut deliveries, true).len(), 1);
        deliveries.answered(0, false);
        assert!(deliveries.has_wanted() && !deliveries.is_settled(Deviance::default()));
        assert_eq!(sent(&mut deliveries, true).len(), 1, "sent again");
        deliveries.answered(0, true);
        assert!(deliveries.is_settled(Deviance::default()));
    }

    #[test]
    fn shared_messages_are_named_one_by_one_and_only_those_delivered_before() {
        let mut deliveries = Deliveries::default();
        let mut sequence = 0;
        arrive(&mut deliveries, 5, 1, false, &mut sequence);
        arrive(&mut deliveries, 9, 1, false, &mut sequence);
        // A bucket that moved here brings an older entry.
        arrive(&mut deliveries, 3, 1, false, &mut sequence);
        deliveries.want(&at(9, -1, 0), Some(2));
        assert_eq!(sent(&mut deliveries, false), [(false, vec![(5, vec![]), (9, vec![])])]);
    }

    #[test]
    fn a_part_of_a_batch_leaves_the_rest() {
        for exclusive in [true, false] {
            let mut deliveries = Deliveries::default();
            arrive(&mut deliveries, 0, 1, exclusive, &mut 0);
            arrive(&mut deliveries, 1, 3, exclusive, &mut 1);
            deliveries.want(&at(1, 0, 3), None);
            let expected = match exclusive {
                true => vec![(true, vec![(1, vec![0b110])])],
                false => vec![(false, vec![(0, vec![]), (1, vec![0b110])])],
            };
            assert_eq!(sent(&mut deliveries, exclusive), expected);
            deliveries.answered(0, true);
            deliveries.want(&at(1, 2, 3), None);
            assert_eq!(sent(&mut deliveries, exclusive), [(exclusive, vec![(1, vec![])])]);
        }
    }

    #[test]
    fn what_was_withdrawn_holds_no_drain_and_is_not_acknowledged() {
        let mut deliveries = Deliveries::default();
        arrive(&mut deliveries, 1, 3, true, &mut 0);
        deliveries.withdraw(&[at(1, 1, 3), at(1, 2, 3)]);
        deliveries.want(&at(1, 2, 3), None);
        assert_eq!(sent(&mut deliveries, true), [(true, vec![(1, vec![0b110])])]);
        deliveries.answered(0, true);
        assert!(deliveries.is_settled(Deviance::default()));
    }

    #[test]
    fn late_acknowledgements_of_a_shared_time_are_never_cumulative() {
        let (mut old, mut sequence) = (Deliveries::default(), 0);
        arrive(&mut old, 4, 1, false, &mut sequence);
        let mut late = Deliveries::default();
        old.outlive(&mut late);
        late.want(&at(4, -1, 0), Some(1));
        let mut new = Deliveries::default();
        new.adopt_wanted(&mut late);
        assert_eq!(sent(&mut new, true), [(false, vec![(4, vec![])])]);
        assert!(!late.has_wanted());
    }

    #[test]
    fn an_acknowledgement_of_the_first_delivery_counts_for_the_second() {
        let (mut old, mut sequence) = (Deliveries::default(), 0);
        arrive(&mut old, 4, 1, true, &mut sequence);
        let mut late = Deliveries::default();
        old.outlive(&mut late);
        let mut new = Deliveries::default();
        let arrived = Arrived { id: (7, 4), count: 1, batch: false, exclusive: true, ack_set: &[] };
        assert_eq!(new.deliver(&arrived, &[0], &mut late, &mut sequence), [(0, 2)]);
        new.want(&at(4, -1, 0), Some(1));
        assert_eq!(sent(&mut new, true), [(true, vec![(4, vec![])])]);
    }
}
