//! Transaction coordinators: who leads each one, and the transactions that it keeps (wire-protocol §8).
//!
//! A pure state machine: it says what is to be told to which topic, and the cluster tells them.

mod txn;

use std::collections::BTreeMap;

use thiserror::Error;

use self::txn::Txn;
pub use self::txn::{Part, TxnState};
use super::ids::{BrokerId, ConnId, Millis, TxnId};

/// How many ended transactions a coordinator remembers, so that a repeated end gets the same answer.
const REMEMBERED: usize = 10_000;

/// Why a coordinator refused a step.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TxnError {
    /// It has no such transaction.
    #[error("Transaction {0} is not known")]
    NotFound(TxnId),
    /// The transaction has gone on.
    #[error("{txn} with unexpected state: {state}, expect: {expected}")]
    State {
        /// The transaction.
        txn: TxnId,
        /// Its state.
        state: TxnState,
        /// The states in which the step is allowed.
        expected: &'static str,
    },
}

/// What is to be done for a transaction now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The transaction.
    pub txn: TxnId,
    /// Whether it is committed; else it is aborted.
    pub commit: bool,
    /// What has to be told.
    pub parts: Vec<Part>,
}

/// A client that waits for the end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Its connection.
    pub conn: ConnId,
    /// The request id of its END_TXN.
    pub request_id: u64,
}

/// One coordinator.
#[derive(Debug)]
pub struct Coordinator {
    id: u64,
    /// The broker that leads it; `None` during an election.
    pub leader: Option<BrokerId>,
    /// Whether its election does not end by itself.
    pub held: bool,
    next: u64,
    txns: BTreeMap<u64, Txn>,
}

impl Coordinator {
    /// A coordinator without transactions.
    pub fn new(id: u64, leader: Option<BrokerId>) -> Self {
        Coordinator { id, leader, held: false, next: 0, txns: BTreeMap::new() }
    }

    /// Its number, which is the first half of its transactions' ids.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Opens a transaction that times out at `deadline`, if it has one.
    pub fn open(&mut self, deadline: Option<Millis>) -> TxnId {
        let txn = TxnId { coordinator: self.id, number: self.next };
        self.next += 1;
        self.txns.insert(txn.number, Txn::new(deadline));
        self.forget_old();
        txn
    }

    fn forget_old(&mut self) {
        if self.txns.len() > 2 * REMEMBERED {
            let ended: Vec<u64> =
                self.txns.iter().filter(|(_, t)| t.state.has_ended()).map(|(n, _)| *n).collect();
            for number in ended.iter().take(ended.len().saturating_sub(REMEMBERED)) {
                self.txns.remove(number);
            }
        }
    }

    /// The state of a transaction.
    pub fn state(&self, txn: TxnId) -> Option<TxnState> {
        self.txns.get(&txn.number).map(|t| t.state)
    }

    /// The open transactions whose time is over.
    pub fn overdue(&self, now: Millis) -> Vec<TxnId> {
        let overdue = |t: &Txn| t.state == TxnState::Open && t.deadline.is_some_and(|at| at <= now);
        self.numbers(overdue)
    }

    /// The transactions whose end was decided and is not carried out everywhere.
    pub fn unfinished(&self) -> Vec<TxnId> {
        self.numbers(|t| matches!(t.state, TxnState::Committing | TxnState::Aborting))
    }

    fn numbers(&self, wanted: impl Fn(&Txn) -> bool) -> Vec<TxnId> {
        let id = |number: u64| TxnId { coordinator: self.id, number };
        self.txns.iter().filter(|(_, t)| wanted(t)).map(|(number, _)| id(*number)).collect()
    }

    /// Adds topics or subscriptions to an open transaction.
    ///
    /// # Errors
    /// The transaction is unknown or not open.
    pub fn add(&mut self, txn: TxnId, parts: impl IntoIterator<Item = Part>) -> Result<(), TxnError> {
        let found = self.txns.get_mut(&txn.number).ok_or(TxnError::NotFound(txn))?;
        if found.state != TxnState::Open {
            return Err(TxnError::State { txn, state: found.state, expected: "[OPEN]" });
        }
        found.parts.extend(parts);
        Ok(())
    }

    /// Decides the end of a transaction. `true` when it had ended so before: a repeated END_TXN is answered at once.
    ///
    /// # Errors
    /// The transaction is unknown, timed out, or is ending or has ended the other way.
    pub fn end(&mut self, txn: TxnId, commit: bool, waiting: Waiting) -> Result<bool, TxnError> {
        let found = self.txns.get_mut(&txn.number).ok_or(TxnError::NotFound(txn))?;
        let (ending, ended, expected) = match commit {
            true => (TxnState::Committing, TxnState::Committed, "[OPEN, COMMITTING]"),
            false => (TxnState::Aborting, TxnState::Aborted, "[OPEN, ABORTING]"),
        };
        if found.timed_out {
            return Err(TxnError::State { txn, state: TxnState::TimedOut, expected });
        }
        match found.state {
            TxnState::Open => found.state = ending,
            state if state == ending => {}
            state if state == ended => return Ok(true),
            state => return Err(TxnError::State { txn, state, expected }),
        }
        found.waiting.push(waiting);
        Ok(false)
    }

    /// The time of an open transaction is over: it is aborted.
    pub fn time_out(&mut self, txn: TxnId) {
        if let Some(found) = self.txns.get_mut(&txn.number).filter(|t| t.state == TxnState::Open) {
            found.state = TxnState::Aborting;
            found.timed_out = true;
        }
    }

    /// What is left to be told about the end of a transaction; `None` unless it is ending.
    pub fn step(&self, txn: TxnId) -> Option<Step> {
        let found = self.txns.get(&txn.number)?;
        let commit = match found.state {
            TxnState::Committing => true,
            TxnState::Aborting => false,
            _ => return None,
        };
        Some(Step { txn, commit, parts: found.parts.iter().cloned().collect() })
    }

    /// A part was told.
    pub fn told(&mut self, txn: TxnId, part: &Part) {
        if let Some(found) = self.txns.get_mut(&txn.number) {
            found.parts.remove(part);
        }
    }

    /// Ends a transaction whose parts are all told. Returns its last state and who waits; `None` when something is
    /// left.
    pub fn finish(&mut self, txn: TxnId) -> Option<(TxnState, Vec<Waiting>)> {
        let found = self.txns.get_mut(&txn.number).filter(|t| t.parts.is_empty())?;
        found.state = match found.state {
            TxnState::Committing => TxnState::Committed,
            TxnState::Aborting if found.timed_out => TxnState::TimedOut,
            TxnState::Aborting => TxnState::Aborted,
            _ => return None,
        };
        Some((found.state, std::mem::take(&mut found.waiting)))
    }
}

#[cfg(test)]
mod tests {
    use stc_proto::TopicName;

    use super::*;

    fn part(name: &str) -> Part {
        Part { topic: TopicName::parse(name).unwrap(), subscription: None }
    }

    const WAITING: Waiting = Waiting { conn: ConnId(1), request_id: 2 };

    #[test]
    fn a_commit_is_over_when_every_part_is_told_and_may_be_repeated() {
        let mut coordinator = Coordinator::new(3, None);
        let txn = coordinator.open(None);
        assert_eq!(txn, TxnId { coordinator: 3, number: 0 });
        let (a, b) = (part("persistent://p/d/a"), part("persistent://p/d/b"));
        coordinator.add(txn, [a.clone(), b.clone(), a.clone()]).unwrap();
        assert_eq!(coordinator.end(txn, true, WAITING), Ok(false));
        assert_eq!(coordinator.end(txn, true, WAITING), Ok(false), "while it goes on");
        assert!(coordinator.end(txn, false, WAITING).is_err());
        assert!(coordinator.add(txn, [a.clone()]).is_err());
        assert_eq!(coordinator.step(txn).unwrap().parts, [a.clone(), b.clone()]);
        coordinator.told(txn, &a);
        assert!(coordinator.finish(txn).is_none());
        coordinator.told(txn, &b);
        assert_eq!(coordinator.finish(txn), Some((TxnState::Committed, vec![WAITING, WAITING])));
        assert_eq!(coordinator.end(txn, true, WAITING), Ok(true));
        let error = coordinator.end(txn, false, WAITING).unwrap_err().to_string();
        assert_eq!(error, "[3:0] with unexpected state: COMMITTED, expect: [OPEN, ABORTING]");
    }

    #[test]
    fn a_transaction_whose_time_is_over_can_be_ended_by_nobody() {
        let mut coordinator = Coordinator::new(0, None);
        let (early, late) = (coordinator.open(Some(10)), coordinator.open(Some(11)));
        let forever = coordinator.open(None);
        assert_eq!(coordinator.overdue(10), [early]);
        assert_eq!(coordinator.overdue(u64::MAX), [early, late]);
        coordinator.time_out(early);
        assert!(coordinator.end(early, false, WAITING).is_err());
        assert_eq!(coordinator.finish(early).unwrap().0, TxnState::TimedOut);
        assert!(coordinator.end(early, true, WAITING).is_err());
        coordinator.end(late, true, WAITING).unwrap();
        coordinator.time_out(late);
        assert_eq!(coordinator.state(late), Some(TxnState::Committing), "its end was decided");
        assert_eq!(coordinator.state(forever), Some(TxnState::Open));
        let unknown = TxnId { coordinator: 0, number: 9 };
        assert_eq!(coordinator.end(unknown, true, WAITING), Err(TxnError::NotFound(unknown)));
    }

    #[test]
    fn ended_transactions_are_forgotten_one_day_and_open_ones_never() {
        let mut coordinator = Coordinator::new(0, None);
        let open = coordinator.open(None);
        for _ in 0..2 * REMEMBERED {
            let txn = coordinator.open(None);
            coordinator.end(txn, true, WAITING).unwrap();
            coordinator.finish(txn).unwrap();
        }
        let last = TxnId { coordinator: 0, number: 2 * REMEMBERED as u64 };
        assert_eq!(coordinator.state(last), Some(TxnState::Committed));
        assert_eq!(coordinator.state(TxnId { number: 1, ..last }), None);
        assert_eq!(coordinator.state(open), Some(TxnState::Open));
    }
}
