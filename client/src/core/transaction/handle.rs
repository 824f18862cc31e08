//! One transaction: its state, the operations that it waits for, and which steps it allows (client-api §6).

use super::{TransactionState, TxnId};
use crate::core::{
    Millis,
    deviant::{Deviance, Deviant},
    error::{Category, Error},
};

/// What is to be asked of the coordinator once every operation has its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Everything is to take effect.
    Commit,
    /// Nothing is. With the reason when a commit was wanted and an operation had failed.
    Abort(Option<Error>),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TxnCore {
    id: TxnId,
    state: TransactionState,
    /// From then on it takes nothing more.
    deadline: Millis,
    /// Operations without a result.
    pending: usize,
    /// The first operation that failed.
    failed: Option<Error>,
    deviance: Deviance,
}

impl TxnCore {
    pub(crate) fn new(id: TxnId, deadline: Millis, deviance: Deviance) -> Self {
        TxnCore { id, state: TransactionState::Open, deadline, pending: 0, failed: None, deviance }
    }

    pub(crate) fn deadline(&self) -> Millis {
        self.deadline
    }

    /// How far it is. An open transaction whose time is over times out by being looked at.
    pub(crate) fn state(&mut self, now: Millis) -> TransactionState {
        if self.state == TransactionState::Open && now >= self.deadline {
            self.state = TransactionState::TimedOut;
        }
        if self.deviance.is(Deviant::StateStaysOpen) {
            return TransactionState::Open;
        }
        self.state
    }

    fn refuse(&self, step: &str) -> Error {
        let why = format!("{step} transaction {}: it is {}", self.id, self.state);
        self.deviance.report(Error::new(Category::TransactionConflict, why))
    }

    /// Begins a send or an acknowledgement; it ends with [`TxnCore::done`].
    ///
    /// # Errors
    /// `TransactionConflict` when the transaction is not open.
    pub(crate) fn begin(&mut self, now: Millis) -> Result<(), Error> {
        self.state(now);
        if self.state != TransactionState::Open {
            return Err(self.refuse("nothing can be done in"));
        }
        self.pending += 1;
        Ok(())
    }

    /// A send or an acknowledgement has its result.
    pub(crate) fn done(&mut self, result: Result<(), Error>) {
        self.pending = self.pending.saturating_sub(1);
        if let (Err(error), None) = (result, &self.failed) {
            self.failed = Some(error);
        }
    }

    /// Whether every operation has its result.
    pub(crate) fn is_quiet(&self) -> bool {
        self.pending == 0 || self.deviance.is(Deviant::CommitWaitsForNothing)
    }

    /// Wants the end. A commit or abort whose outcome is not known may be asked for again.
    ///
    /// # Errors
    /// `TransactionConflict` when the transaction has ended, timed out or failed, or is about to end the other way.
    pub(crate) fn end(&mut self, commit: bool, now: Millis) -> Result<(), Error> {
        self.state(now);
        let ending = if commit { TransactionState::Committing } else { TransactionState::Aborting };
        if self.state != TransactionState::Open
            && self.state != ending
            && !self.deviance.is(Deviant::EndsInAnyState)
        {
            return Err(self.refuse(if commit { "cannot commit" } else { "cannot abort" }));
        }
        self.state = ending;
        Ok(())
    }

    /// What to ask of the coordinator, now that every operation has its result.
    pub(crate) fn decide(&mut self, commit: bool) -> Decision {
        let commit =
            commit != self.deviance.is(if commit { Deviant::CommitAborts } else { Deviant::AbortCommits });
        let failed = self.failed.clone().filter(|_| !self.deviance.is(Deviant::CommitsDespiteFailure));
        match (commit, failed) {
            (false, _) => Decision::Abort(None),
            (true, None) => Decision::Commit,
            (true, Some(error)) => {
                self.state = TransactionState::Aborting;
                let why = format!("an operation of transaction {} failed: {error}", self.id);
                Decision::Abort(Some(Error::new(Category::TransactionConflict, why)))
            }
        }
    }

    /// The coordinator answered. A failure that says nothing about the outcome leaves the state open for another try.
    pub(crate) fn ended(&mut self, result: &Result<(), Error>) {
        self.state = match (self.state, result) {
            (TransactionState::Committing, Ok(())) => TransactionState::Committed,
            (TransactionState::Aborting, Ok(())) => TransactionState::Aborted,
            (state, Err(error)) if error.category() != Category::TransactionConflict => state,
            (_, Err(_)) => TransactionState::Error,
            (state, Ok(())) => state,
        };
    }
}

#[cfg(test)]
mod tests {
    use TransactionState::{Aborted, Aborting, Committed, Committing, Open, TimedOut};

    use super::*;

    fn txn() -> TxnCore {
        TxnCore::new(TxnId { coordinator: 1, number: 2 }, 1000, Deviance::default())
    }

    fn conflict() -> Error {
        Error::new(Category::TransactionConflict, "taken")
    }

    #[test]
    fn a_commit_waits_for_its_operations_and_then_takes_effect() {
        let mut txn = txn();
        txn.begin(0).unwrap();
        txn.begin(0).unwrap();
        txn.end(true, 1).unwrap();
        assert_eq!(txn.state(1), Committing);
        txn.done(Ok(()));
        assert!(!txn.is_quiet());
        txn.done(Ok(()));
        assert!(txn.is_quiet());
        assert_eq!(txn.decide(true), Decision::Commit);
        txn.ended(&Ok(()));
        assert_eq!(txn.state(5000), Committed);
    }

    #[test]
    fn a_failed_operation_turns_the_commit_into_an_abort_that_says_why() {
        let mut txn = txn();
        txn.begin(0).unwrap();
        txn.done(Err(conflict()));
        txn.end(true, 1).unwrap();
        let Decision::Abort(Some(error)) = txn.decide(true) else { panic!("an abort") };
        assert_eq!(error.category(), Category::TransactionConflict);
        assert!(error.message().contains("taken"), "{error}");
        txn.ended(&Ok(()));
        assert_eq!(txn.state(1), Aborted);
    }

    #[test]
    fn every_state_allows_its_steps_and_no_others() {
        let timeout = || Error::timeout("no answer");
        type Reach = fn(&mut TxnCore);
        let make: [(TransactionState, Reach); 7] = [
            (Open, |_| {}),
            (Committing, |txn| txn.end(true, 0).unwrap()),
            (Aborting, |txn| txn.end(false, 0).unwrap()),
            (Committed, |txn| {
                txn.end(true, 0).unwrap();
                txn.ended(&Ok(()));
            }),
            (Aborted, |txn| {
                txn.end(false, 0).unwrap();
                txn.ended(&Ok(()));
            }),
            (TransactionState::Error, |txn| {
                txn.end(true, 0).unwrap();
                txn.ended(&Err(conflict()));
            }),
            (TimedOut, |txn| {
                txn.state(1000);
            }),
        ];
        for (state, reach) in make {
            let reached = || {
                let mut txn = txn();
                reach(&mut txn);
                assert_eq!(txn.state(0), state);
                txn
            };
            assert_eq!(reached().begin(0).is_ok(), state == Open, "operation when {state}");
            assert_eq!(
                reached().end(true, 0).is_ok(),
                matches!(state, Open | Committing),
                "commit when {state}"
            );
            assert_eq!(
                reached().end(false, 0).is_ok(),
                matches!(state, Open | Aborting),
                "abort when {state}"
            );
            if let Err(error) = reached().end(true, 0) {
                assert_eq!(error.category(), Category::TransactionConflict);
                assert!(error.message().contains(state.as_str()), "{error}");
            }
        }
        let mut txn = txn();
        txn.end(true, 0).unwrap();
        txn.ended(&Err(timeout()));
        assert_eq!(txn.state(9999), Committing, "its outcome is not known");
    }

    #[test]
    fn time_is_over_at_the_deadline_for_open_transactions_only() {
        let mut txn = txn();
        assert!(txn.begin(999).is_ok());
        assert!(txn.begin(1000).is_err());
        assert_eq!(txn.state(0), TimedOut);
    }
}
