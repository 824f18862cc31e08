//! Transactions without I/O (client-api §6, wire-protocol §8).
//!
//! | Module | Owns |
//! |---|---|
//! | [`acks`] | acknowledgements in transactions, on their way |
//! | [`coordinators`] | where the coordinators are, and the requests to them |
//! | [`handle`] | one transaction: its state, what it waits for, which steps it allows |

pub(crate) mod acks;
pub(crate) mod coordinators;
pub(crate) mod handle;
#[cfg(test)]
mod tests;

use std::fmt;

/// A transaction: its coordinator (`txnid_most_bits`) and its number there (`txnid_least_bits`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TxnId {
    pub(crate) coordinator: u64,
    pub(crate) number: u64,
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}]", self.coordinator, self.number)
    }
}

/// What a transaction touches, as its coordinator has to know it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A stored topic that is written to.
    Topic(String),
    /// A subscription on a stored topic that is acknowledged on.
    Subscription { topic: String, subscription: String },
}

/// How far a transaction is (client-api §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransactionState {
    /// It takes messages and acknowledgements.
    Open,
    /// Its commit is under way; whether it took effect is not known yet.
    Committing,
    /// Its abort is under way.
    Aborting,
    /// Everything in it took effect.
    Committed,
    /// Nothing in it took effect.
    Aborted,
    /// Its coordinator does not know it, or knows it to have ended another way.
    Error,
    /// Its time was over before it was ended: nothing in it takes effect.
    TimedOut,
}

impl TransactionState {
    /// The state in words.
    pub fn as_str(self) -> &'static str {
        match self {
            TransactionState::Open => "open",
            TransactionState::Committing => "committing",
            TransactionState::Aborting => "aborting",
            TransactionState::Committed => "committed",
            TransactionState::Aborted => "aborted",
            TransactionState::Error => "error",
            TransactionState::TimedOut => "timed out",
        }
    }

    /// Whether the state stays as it is.
    pub fn is_final(self) -> bool {
        !matches!(self, TransactionState::Open | TransactionState::Committing | TransactionState::Aborting)
    }
}

impl fmt::Display for TransactionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
