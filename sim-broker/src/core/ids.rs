//! Identities within a cluster.

use std::fmt;

/// Milliseconds since 1970 on the cluster's clock.
pub type Millis = u64;

/// One connection to any broker of the cluster. Never reused within a cluster's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// A broker, by its index `0..brokers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BrokerId(pub u32);

/// A producer: the id that the client chose, which is unique on its connection only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerKey {
    /// The connection.
    pub conn: ConnId,
    /// `producer_id` on the wire.
    pub id: u64,
}

/// A consumer: the id that the client chose, which is unique on its connection only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerKey {
    /// The connection.
    pub conn: ConnId,
    /// `consumer_id` on the wire.
    pub id: u64,
}

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {}", self.0)
    }
}

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broker {}", self.0)
    }
}

impl fmt::Display for ProducerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "producer {} of {}", self.id, self.conn)
    }
}

impl fmt::Display for ConsumerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "consumer {} of {}", self.id, self.conn)
    }
}

/// A transaction: its coordinator (`txnid_most_bits`) and its number there (`txnid_least_bits`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TxnId {
    /// The coordinator.
    pub coordinator: u64,
    /// The number that the coordinator gave.
    pub number: u64,
}

impl TxnId {
    /// The transaction of a command: none unless both halves are there.
    pub fn of(most: Option<u64>, least: Option<u64>) -> Option<Self> {
        Some(TxnId { coordinator: most?, number: least? })
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}]", self.coordinator, self.number)
    }
}

/// Names for producers that come without one: `<prefix>-<n>`, where n counts up across the whole cluster.
#[derive(Debug, Clone)]
pub struct ProducerNames {
    prefix: String,
    next: u64,
}

impl ProducerNames {
    /// Names that start with `prefix`; Pulsar's standalone broker uses `standalone-0`.
    pub fn new(prefix: impl Into<String>) -> Self {
        ProducerNames { prefix: prefix.into(), next: 0 }
    }

    /// The next name; no two are the same.
    pub fn generate(&mut self) -> String {
        let name = format!("{}-{}", self.prefix, self.next);
        self.next += 1;
        name
    }
}
