//! The operations that sequences are made of, as data: they print as a script, and are written to a file for a replay.
//!
//! Everything is named by small numbers: topics `t0`…, producers `P0`…, consumers `K0`…, clients `C0`…. An operation on
//! something that is not there (a producer that was never opened) is left out on both sides.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One step of a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Op {
    /// Creates a topic by the admin REST.
    Create {
        /// Which.
        topic: u8,
        /// How many segments it begins with; below 1 is nonsense.
        segments: i32,
    },
    /// Deletes a topic by the admin REST.
    Delete {
        /// Which.
        topic: u8,
        /// Whether clients that are attached are no obstacle.
        force: bool,
    },
    /// Splits a segment.
    Split {
        /// Of which topic.
        topic: u8,
        /// Which segment.
        segment: Pick,
    },
    /// Merges two segments.
    Merge {
        /// Of which topic.
        topic: u8,
        /// One.
        a: Pick,
        /// The other.
        b: Pick,
    },
    /// Rolls a segment over to one with other entry buckets.
    Rebucket {
        /// Of which topic.
        topic: u8,
        /// Which segment.
        segment: Pick,
        /// How many buckets; left out, 0 and more than 1024 are nonsense.
        buckets: Option<i32>,
    },
    /// Calls that cannot succeed, whatever was done before.
    Nonsense {
        /// Which.
        call: Nonsense,
    },
    /// Makes a subscription by the admin REST.
    MakeSubscription {
        /// On which topic.
        topic: u8,
        /// Its number.
        subscription: u8,
        /// Whether it is for queue consumers.
        queue: bool,
    },
    /// Deletes one.
    DeleteSubscription {
        /// Of which topic.
        topic: u8,
        /// Its number.
        subscription: u8,
    },
    /// Moves one to where it was before a `Produce` step.
    Seek {
        /// Of which topic.
        topic: u8,
        /// Its number.
        subscription: u8,
        /// The n-th `Produce` step so far, counted round.
        produce: u8,
    },
    /// Acknowledges everything for one.
    SkipAll {
        /// Of which topic.
        topic: u8,
        /// Its number.
        subscription: u8,
    },
    /// Opens a producer.
    OpenProducer {
        /// Its number.
        producer: u8,
        /// By which client.
        client: u8,
        /// Of which topic.
        topic: u8,
        /// Whether nobody else may publish.
        exclusive: bool,
        /// Whether what one step sends goes out in batches.
        batching: bool,
        /// A name of its own, which others may have too.
        name: Option<u8>,
    },
    /// Sends messages and waits for every receipt.
    Produce {
        /// By which producer.
        producer: u8,
        /// The key of each message.
        keys: Vec<Option<u8>>,
    },
    /// Closes a producer.
    CloseProducer {
        /// Which.
        producer: u8,
    },
    /// Opens a consumer.
    Subscribe {
        /// Its number.
        consumer: u8,
        /// By which client.
        client: u8,
        /// Of which topic.
        topic: u8,
        /// What kind.
        kind: Kind,
        /// The number of the subscription or group.
        subscription: u8,
        /// Whether a new subscription starts at the oldest message.
        earliest: bool,
    },
    /// Every consumer receives all that comes.
    Receive,
    /// Acknowledges one message that a queue consumer of the consumer's subscription received.
    Ack {
        /// Which consumer.
        consumer: u8,
        /// The n-th of what is not acknowledged, in the order of sending, counted round.
        nth: u8,
    },
    /// The same for everything that was received: one by one, or to the last at once.
    AckAll {
        /// Which consumer.
        consumer: u8,
    },
    /// Acknowledges to where an earlier `Receive` ended, with all stream consumers of a subscription.
    Cumulative {
        /// Which consumer.
        consumer: u8,
        /// The n-th `Receive` that brought something, counted round.
        receive: u8,
    },
    /// Acknowledges at one consumer what another has received.
    AckForeign {
        /// Who acknowledges.
        consumer: u8,
        /// Who received.
        of: u8,
        /// The n-th of that.
        nth: u8,
    },
    /// Has one message delivered again, counted as for `Ack`.
    Nack {
        /// Which consumer.
        consumer: u8,
        /// Which message.
        nth: u8,
    },
    /// Keeps the position of a checkpoint consumer for later.
    SaveCheckpoint {
        /// Which consumer.
        consumer: u8,
    },
    /// Closes a consumer.
    CloseConsumer {
        /// Which.
        consumer: u8,
    },
    /// Cuts all connections of a client.
    Cut {
        /// Which.
        client: u8,
    },
}

/// Which segment is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The n-th active one by range, counted round.
    Active(u8),
    /// This one, whether it is active, sealed or absent.
    Id(i64),
}

/// The kinds of consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A stream consumer.
    Stream,
    /// A queue consumer.
    Queue,
    /// A checkpoint consumer that reads everything.
    Checkpoint,
    /// A checkpoint consumer that starts at the position of the last `SaveCheckpoint` of its topic.
    Resumed,
}

impl Kind {
    /// Whether the order of a key's messages is kept (client-api §4).
    #[must_use]
    pub fn is_ordered(self) -> bool {
        self != Kind::Queue
    }
}

/// Calls that nothing can make good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // each says what is wrong
pub enum Nonsense {
    CreateInMissingNamespace,
    CreateInMissingTenant,
    CreateWithBadName,
    GetInMissingNamespace,
    ListMissingNamespace,
    SegmentIsNoNumber,
    BucketsAreNoNumber,
    SegmentsAreNoNumber,
    SubscriptionOfNoKind,
    SeekToNoTime,
    PolicyIsNoObject,
    SegmentStatsOfNone,
    ListByBadFilter,
}

impl Nonsense {
    /// All of them.
    pub const ALL: [Nonsense; 13] = [
        Nonsense::CreateInMissingNamespace,
        Nonsense::CreateInMissingTenant,
        Nonsense::CreateWithBadName,
        Nonsense::GetInMissingNamespace,
        Nonsense::ListMissingNamespace,
        Nonsense::SegmentIsNoNumber,
        Nonsense::BucketsAreNoNumber,
        Nonsense::SegmentsAreNoNumber,
        Nonsense::SubscriptionOfNoKind,
        Nonsense::SeekToNoTime,
        Nonsense::PolicyIsNoObject,
        Nonsense::SegmentStatsOfNone,
        Nonsense::ListByBadFilter,
    ];
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pick::Active(n) => write!(f, "active[{n}]"),
            Pick::Id(id) => write!(f, "#{id}"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Create { topic, segments } => write!(f, "create t{topic} with {segments} segments"),
            Op::Delete { topic, force } => write!(f, "delete t{topic}, force={force}"),
            Op::Split { topic, segment } => write!(f, "split {segment} of t{topic}"),
            Op::Merge { topic, a, b } => write!(f, "merge {a} and {b} of t{topic}"),
            Op::Rebucket { topic, segment, buckets } => match buckets {
                Some(buckets) => write!(f, "rebucket {segment} of t{topic} to {buckets}"),
                None => write!(f, "rebucket {segment} of t{topic} without a count"),
            },
            Op::Nonsense { call } => write!(f, "nonsense: {call:?}"),
            Op::MakeSubscription { topic, subscription, queue } => {
                let kind = if *queue { "queue" } else { "stream" };
                write!(f, "make {kind} subscription s{subscription} on t{topic}")
            }
            Op::DeleteSubscription { topic, subscription } => {
                write!(f, "delete subscription s{subscription} of t{topic}")
            }
            Op::Seek { topic, subscription, produce } => {
                write!(f, "seek s{subscription} of t{topic} to produce[{produce}]")
            }
            Op::SkipAll { topic, subscription } => write!(f, "skip all of s{subscription} of t{topic}"),
            Op::OpenProducer { producer, client, topic, exclusive, batching, name } => {
                write!(f, "open P{producer} by C{client} on t{topic}")?;
                if *exclusive {
                    f.write_str(", exclusive")?;
                }
                if *batching {
                    f.write_str(", batching")?;
                }
                name.map_or(Ok(()), |name| write!(f, ", named n{name}"))
            }
            Op::Produce { producer, keys } => {
                let keys: Vec<String> =
                    keys.iter().map(|key| key.map_or("-".to_owned(), |key| format!("k{key}"))).collect();
                write!(f, "P{producer} sends [{}]", keys.join(" "))
            }
            Op::CloseProducer { producer } => write!(f, "close P{producer}"),
            Op::Subscribe { consumer, client, topic, kind, subscription, earliest } => {
                let start = if *earliest { "earliest" } else { "latest" };
                write!(
                    f,
                    "open K{consumer} by C{client}: {kind:?} consumer of t{topic}, s{subscription}, {start}"
                )
            }
            Op::Receive => f.write_str("receive"),
            Op::Ack { consumer, nth } => write!(f, "K{consumer} acknowledges [{nth}]"),
            Op::AckAll { consumer } => write!(f, "K{consumer} acknowledges everything"),
            Op::Cumulative { consumer, receive } => {
                write!(f, "K{consumer} acknowledges to the end of receive[{receive}]")
            }
            Op::AckForeign { consumer, of, nth } => {
                write!(f, "K{consumer} acknowledges [{nth}] of K{of}")
            }
            Op::Nack { consumer, nth } => write!(f, "K{consumer} gives back [{nth}]"),
            Op::SaveCheckpoint { consumer } => write!(f, "keep the checkpoint of K{consumer}"),
            Op::CloseConsumer { consumer } => write!(f, "close K{consumer}"),
            Op::Cut { client } => write!(f, "cut C{client}"),
        }
    }
}

/// A sequence as a script, one line for each step.
#[must_use]
pub fn script(ops: &[Op]) -> String {
    ops.iter().enumerate().map(|(n, op)| format!("  {n:>2}. {op}\n")).collect()
}

/// What follows every sequence: a message for every consumer behind all that it had to receive, so that nothing that came
/// too much goes unseen.
#[must_use]
pub fn ending(ops: &[Op]) -> Vec<Op> {
    let read =
        |wanted: u8| ops.iter().any(|op| matches!(op, Op::Subscribe { topic, .. } if *topic == wanted));
    let mut ending = Vec::new();
    for topic in (0..2).filter(|topic| read(*topic)) {
        let producer = 8 + topic;
        ending.push(Op::OpenProducer {
            producer,
            client: 0,
            topic,
            exclusive: false,
            batching: false,
            name: None,
        });
        ending.push(Op::Produce { producer, keys: (0..8).map(Some).collect() });
    }
    if !ending.is_empty() {
        ending.push(Op::Receive);
    }
    ending
}
