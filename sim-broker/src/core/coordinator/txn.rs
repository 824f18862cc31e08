//! One transaction as its coordinator keeps it.

use std::{collections::BTreeSet, fmt};

use stc_proto::TopicName;

use super::Waiting;
use crate::core::ids::Millis;

/// What a transaction touched: a topic that it wrote to, or a subscription that it acknowledged on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The stored topic: a segment, a partition or a classic topic.
    pub topic: TopicName,
    /// The subscription, if it is one.
    pub subscription: Option<String>,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subscription {
            Some(subscription) => write!(f, "{subscription} on {}", self.topic),
            None => write!(f, "{}", self.topic),
        }
    }
}

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxnState {
    /// It takes messages and acknowledgements.
    Open,
    /// Its commit is decided.
    Committing,
    /// Its abort is decided.
    Aborting,
    /// Its commit is carried out everywhere.
    Committed,
    /// Its abort is carried out everywhere.
    Aborted,
    /// It was aborted because its time was over.
    TimedOut,
}

impl TxnState {
    /// Whether nothing more happens to it.
    pub fn has_ended(self) -> bool {
        matches!(self, TxnState::Committed | TxnState::Aborted | TxnState::TimedOut)
    }

    /// Its name, as Pulsar's messages have it.
    pub fn as_str(self) -> &'static str {
        match self {
            TxnState::Open => "OPEN",
            TxnState::Committing => "COMMITTING",
            TxnState::Aborting => "ABORTING",
            TxnState::Committed => "COMMITTED",
            TxnState::Aborted => "ABORTED",
            TxnState::TimedOut => "TIME_OUT",
        }
    }
}

impl fmt::Display for TxnState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug)]
pub(super) struct Txn {
    pub(super) state: TxnState,
    pub(super) timed_out: bool,
    pub(super) deadline: Option<Millis>,
    /// What has to be told about its end.
    pub(super) parts: BTreeSet<Part>,
    pub(super) waiting: Vec<Waiting>,
}

impl Txn {
    pub(super) fn new(deadline: Option<Millis>) -> Self {
        Txn { state: TxnState::Open, timed_out: false, deadline, parts: BTreeSet::new(), waiting: Vec::new() }
    }
}
