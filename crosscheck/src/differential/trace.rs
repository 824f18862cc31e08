//! What was observed while a sequence ran: for each step, named values that can be compared one by one.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::discriminant;

use serde_json::Value as Json;

/// What a value is about. The order is that in which differences are shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The HTTP status of the step's admin call.
    Status,
    /// Why the admin call was refused, in words.
    Reason,
    /// How the client's call ended: `ok`, or category and error code.
    Call,
    /// How the n-th send of the step ended.
    Send(usize),
    /// What a group of consumers received of one key, in order; of messages without a key, sorted; of a queue, what it
    /// received and did not acknowledge so far.
    Received {
        /// The consumers, such as `s0 of t0`.
        group: String,
        /// The key; empty for messages without one and for queues.
        key: String,
    },
    /// The status of GET on the topic.
    LayoutStatus(u8),
    /// The layout's epoch.
    Epoch(u8),
    /// A segment: range, state, lineage, epochs, buckets.
    Segment(u8, u64),
    /// The status of GET on the topic's statistics.
    StatsStatus(u8),
    /// The topic's producers in the statistics.
    Producers(u8),
    /// Something about a subscription in the statistics.
    Subscription {
        /// Of which topic.
        topic: u8,
        /// Its name.
        name: String,
        /// What.
        about: About,
    },
}

/// What the statistics tell about a subscription.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// `STREAM` or `QUEUE`.
    Kind,
    /// How many entries wait.
    Backlog,
    /// How many messages of one segment are delivered and not acknowledged.
    Unacknowledged(u64),
    /// The segments that do not have it.
    Uncovered,
    /// Its consumers and their segments.
    Consumers,
    /// How many entries wait in one segment, how many consumers are attached there, and whether it waits for others.
    Segment(u64),
    /// The names of those consumers.
    Attached(u64),
}

impl Place {
    /// Whether two places differ in topic, segment, name or count only.
    #[must_use]
    pub fn is_like(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Subscription { about: a, .. }, Place::Subscription { about: b, .. }) => {
                discriminant(a) == discriminant(b)
            }
            _ => discriminant(self) == discriminant(other),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Status => f.write_str("HTTP status"),
            Place::Reason => f.write_str("reason"),
            Place::Call => f.write_str("result"),
            Place::Send(n) => write!(f, "send {n}"),
            Place::Received { group, key } if key.is_empty() => write!(f, "received by {group}"),
            Place::Received { group, key } => write!(f, "received by {group} of {key}"),
            Place::LayoutStatus(topic) => write!(f, "status of the layout of t{topic}"),
            Place::Epoch(topic) => write!(f, "epoch of t{topic}"),
            Place::Segment(topic, id) => write!(f, "segment {id} of t{topic}"),
            Place::StatsStatus(topic) => write!(f, "status of the statistics of t{topic}"),
            Place::Producers(topic) => write!(f, "producers of t{topic}"),
            Place::Subscription { topic, name, about } => write!(f, "{name} of t{topic}: {about:?}"),
        }
    }
}

/// The values of one step.
pub type Seen = BTreeMap<Place, Json>;

/// One step as it went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Of which operation of the sequence.
    pub number: usize,
    /// Whether it is the operation, or what came before it so that chance has no part in it.
    pub part: Part,
    /// Nothing was there to do it with, or it was avoided; the same on both sides, as what is there follows from what was
    /// seen.
    pub skipped: bool,
    /// Why it was avoided: the number of an entry in `docs/divergences.md`.
    pub avoided: Option<&'static str>,
    /// What was seen.
    pub seen: Seen,
}

/// What a step does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// The operation of the sequence.
    #[default]
    Operation,
    /// Everything is received.
    Receive,
    /// The subscription of this consumer acknowledges everything.
    Acknowledge(u8),
}

/// A sequence as it went.
pub type Trace = Vec<Step>;
