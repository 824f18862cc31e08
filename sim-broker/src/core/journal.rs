//! The journal: what went over every connection, and what happened to the cluster, in order.
//!
//! Records hold frames, not text: [`Record::to_json`] renders the form of the recordings when somebody reads.

use std::collections::VecDeque;

use serde_json::{Map, Value as Json, json};
use stc_proto::{Entry, Frame, batch, fields};

use super::{
    config::JournalConfig,
    ids::{BrokerId, ConnId, Millis, TxnId},
};

/// How many bytes of a payload are rendered.
const PAYLOAD_SHOWN: usize = 300;

/// Which way something went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Client to broker.
    ToBroker,
    /// Broker to client.
    ToClient,
    /// Neither: it happened to the cluster.
    Internal,
}

impl Direction {
    /// `C->B`, `B->C` or `-`, as in the recordings.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::ToBroker => "C->B",
            Direction::ToClient => "B->C",
            Direction::Internal => "-",
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // nearly all are frames
pub enum Event {
    /// A frame that arrived (even if a fault then ate it) or that was put on the wire.
    Frame(Frame),
    /// Bytes that are not a frame. The connection closes.
    BadFrame {
        /// What is wrong with them.
        reason: String,
    },
    /// A connection opened.
    TcpOpen {
        /// The client's address, or `memory`.
        peer: String,
        /// Whether the client speaks TLS.
        tls: bool,
    },
    /// A connection closed.
    TcpClose {
        /// Who closed it: `client` or `broker`.
        side: &'static str,
        /// Why.
        reason: String,
    },
    /// A connection attempt at a broker that is down.
    TcpRefused,
    /// A fault struck.
    Fault {
        /// The fault's id.
        id: u64,
        /// What it did.
        effect: String,
        /// The frame that it struck.
        command: &'static str,
        /// The frame's held id, when it is held.
        held: Option<u64>,
    },
    /// An admin or control call changed something.
    Admin {
        /// What was asked for.
        text: String,
    },
    /// A note from whoever drives the cluster.
    Mark {
        /// The note.
        text: String,
    },
    /// A scalable topic has a new layout.
    Layout {
        /// The topic.
        topic: String,
        /// The layout's epoch.
        epoch: u64,
        /// Why it changed: `create`, `split`, `merge`, `rebucket`, `prune`, `migrate` or `delete`.
        change: &'static str,
        /// Ids of the active segments.
        active: Vec<u64>,
        /// Ids of the sealed segments.
        sealed: Vec<u64>,
    },
    /// A transaction coordinator has another leader, which the record names as its broker, or none.
    Coordinator {
        /// The coordinator.
        id: u64,
        /// `lead` (a broker leads from now on) or `elect` (an election began).
        change: &'static str,
    },
    /// Something happened to a transaction.
    Txn {
        /// The transaction.
        txn: TxnId,
        /// At its coordinator: `open`, `add` (a topic or subscription), `committing` or `aborting` (decided), `timeout`,
        /// `committed`, `aborted` or `timed-out` (carried out). On a topic or subscription: `commit`, `abort`, or `forget`
        /// (it had something that the coordinator was never told about).
        change: &'static str,
        /// The topic, or `SUBSCRIPTION on TOPIC`; empty where it is about none.
        detail: String,
    },
    /// The controller of a scalable topic did something by itself.
    Controller {
        /// The topic.
        topic: String,
        /// What: `lead` (a broker leads from now on), `expire` (a grace period is over) or `drained` (a group has read
        /// segments to the end).
        change: &'static str,
        /// Who leads, whose grace period, which segments.
        detail: String,
    },
}

impl Event {
    /// The record's `type`: the command's name for a frame.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Frame(frame) => frame.command.name(),
            Event::BadFrame { .. } => "BAD_FRAME",
            Event::TcpOpen { .. } => "TCP_OPEN",
            Event::TcpClose { .. } => "TCP_CLOSE",
            Event::TcpRefused => "TCP_REFUSED",
            Event::Fault { .. } => "FAULT",
            Event::Admin { .. } => "ADMIN",
            Event::Mark { .. } => "MARK",
            Event::Layout { .. } => "LAYOUT",
            Event::Controller { .. } => "CONTROLLER",
            Event::Coordinator { .. } => "COORDINATOR",
            Event::Txn { .. } => "TXN",
        }
    }
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The record's number, counted from 1.
    pub n: u64,
    /// Milliseconds since the cluster started (or was reset), on its clock.
    pub t_ms: u64,
    /// The broker, if it is about one.
    pub broker: Option<BrokerId>,
    /// The connection, if it is about one.
    pub conn: Option<ConnId>,
    /// Which way it went.
    pub direction: Direction,
    /// What happened.
    pub event: Event,
}

impl Record {
    /// The frame, if the record is one.
    pub fn frame(&self) -> Option<&Frame> {
        match &self.event {
            Event::Frame(frame) => Some(frame),
            _ => None,
        }
    }

    /// The entry behind a SEND or MESSAGE, if the journal keeps payloads and it can be parsed.
    pub fn entry(&self) -> Option<Entry> {
        self.frame()?.payload.clone().and_then(|payload| Entry::parse(payload).ok())
    }

    /// The record as JSON, in the form of the recordings, with the broker beside the connection.
    pub fn to_json(&self) -> Json {
        let mut line = Map::new();
        line.insert("n".into(), self.n.into());
        line.insert("t_ms".into(), self.t_ms.into());
        if let Some(broker) = self.broker {
            line.insert("broker".into(), broker.0.into());
        }
        line.insert("conn".into(), self.conn.map_or(0, |c| c.0).into());
        line.insert("dir".into(), self.direction.as_str().into());
        line.insert("type".into(), self.event.name().into());
        match &self.event {
            Event::Frame(frame) => frame_json(frame, &mut line),
            other => {
                line.insert("fields".into(), event_fields(other));
                line.insert("payload_len".into(), 0.into());
            }
        }
        Json::Object(line)
    }
}

fn event_fields(event: &Event) -> Json {
    match event {
        Event::Frame(frame) => frame.command.fields(),
        Event::BadFrame { reason } => json!({ "reason": reason }),
        Event::TcpOpen { peer, tls: false } => json!({ "peer": peer }),
        Event::TcpOpen { peer, tls: true } => json!({ "peer": peer, "tls": true }),
        Event::TcpClose { side, reason } => json!({ "side": side, "reason": reason }),
        Event::TcpRefused => json!({}),
        Event::Fault { id, effect, command, held } => {
            json!({ "id": id, "effect": effect, "command": command, "held": held })
        }
        Event::Admin { text } | Event::Mark { text } => json!({ "text": text }),
        Event::Coordinator { id, change } => json!({ "id": id, "change": change }),
        Event::Txn { txn: TxnId { coordinator, number }, change, detail } => json!({
            "txnid_most_bits": coordinator,
            "txnid_least_bits": number,
            "change": change,
            "detail": detail,
        }),
        Event::Controller { topic, change, detail } => {
            json!({ "topic": topic, "change": change, "detail": detail })
        }
        Event::Layout { topic, epoch, change, active, sealed } => {
            json!({ "topic": topic, "epoch": epoch, "change": change, "active": active, "sealed": sealed })
        }
    }
}

fn frame_json(frame: &Frame, line: &mut Map<String, Json>) {
    line.insert("fields".into(), frame.command.fields());
    let Some(payload) = &frame.payload else {
        line.insert("payload_len".into(), 0.into());
        return;
    };
    let Ok(entry) = Entry::parse(payload.clone()) else {
        line.insert("payload_len".into(), payload.len().into());
        line.insert("payload_hex".into(), shown(payload).into());
        return;
    };
    line.insert("payload_len".into(), entry.payload.len().into());
    if let Some(checksum) = entry.checksum {
        line.insert("crc32c".into(), format!("{checksum:08x}").into());
    }
    if let Some(broker) = &entry.broker {
        line.insert("broker_metadata".into(), fields::to_json("BrokerEntryMetadata", broker));
    }
    line.insert("metadata".into(), fields::to_json("MessageMetadata", &entry.metadata));
    line.insert("payload_hex".into(), shown(&entry.payload).into());
    // Only what is a batch on the wire: a compressed or encrypted one cannot be read here.
    let plain = entry.metadata.compression.unwrap_or(0) == 0 && entry.metadata.encryption_keys.is_empty();
    let count = entry.metadata.num_messages_in_batch.and_then(|n| usize::try_from(n).ok());
    if let (true, Some(count)) = (plain, count)
        && let Ok(messages) = batch::read(entry.payload, count)
    {
        let messages = messages.iter().map(|(metadata, payload)| {
            json!({
                "single_metadata": fields::to_json("SingleMessageMetadata", metadata),
                "payload_hex": shown(payload),
            })
        });
        line.insert("batch".into(), messages.collect());
    }
}

fn shown(payload: &[u8]) -> String {
    fields::hex(payload.get(..PAYLOAD_SHOWN).unwrap_or(payload))
}

/// The records of a cluster, oldest first, at most as many as its capacity.
#[derive(Debug)]
pub struct Journal {
    config: JournalConfig,
    records: VecDeque<Record>,
    next: u64,
    started: Option<Millis>,
}

impl Journal {
    /// An empty journal.
    pub fn new(config: JournalConfig) -> Self {
        Journal { config, records: VecDeque::new(), next: 1, started: None }
    }

    /// Appends a record. The first one is at 0 ms.
    pub fn append(
        &mut self,
        now: Millis,
        broker: Option<BrokerId>,
        conn: Option<ConnId>,
        direction: Direction,
        event: Event,
    ) {
        let started = *self.started.get_or_insert(now);
        let event = match event {
            Event::Frame(frame) if !self.config.payloads => {
                Event::Frame(Frame { command: frame.command, payload: None })
            }
            event => event,
        };
        let t_ms = now.saturating_sub(started);
        if self.records.len() >= self.config.capacity {
            self.records.pop_front();
        }
        self.records.push_back(Record { n: self.next, t_ms, broker, conn, direction, event });
        self.next += 1;
    }

    /// The number that the next record gets.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The kept records from number `n` on, oldest first.
    pub fn from(&self, n: u64) -> impl Iterator<Item = &Record> {
        let first = self.records.front().map_or(self.next, |r| r.n);
        let skip = usize::try_from(n.saturating_sub(first)).unwrap_or(usize::MAX);
        self.records.range(skip.min(self.records.len())..)
    }

    /// How many records were dropped because the journal was full.
    pub fn dropped(&self) -> u64 {
        self.records.front().map_or(self.next, |r| r.n) - 1
    }

    /// Empties the journal; numbers and times start again.
    pub fn clear(&mut self) {
        *self = Journal::new(self.config.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_journal_drops_the_oldest_and_says_so() {
        let mut journal = Journal::new(JournalConfig { capacity: 3, payloads: true });
        for i in 0..5 {
            journal.append(100 + i, None, None, Direction::Internal, Event::Mark { text: i.to_string() });
        }
        assert_eq!(journal.dropped(), 2);
        assert_eq!(journal.from(0).map(|r| r.n).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(journal.from(5).map(|r| r.t_ms).collect::<Vec<_>>(), [4]);
        assert_eq!(journal.from(99).count(), 0);
        journal.clear();
        assert_eq!((journal.next_number(), journal.dropped()), (1, 0));
    }
}
