//! What calls take and what they answer, in JSON.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use stc_proto::{fields, pulsar::ScalableTopicDag};

use crate::{
    control::StoredView,
    core::{fault::Held, journal::Record},
};

/// A fault that is armed now.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Armed {
    /// Its id.
    pub(super) id: u64,
}

/// A frame that a fault holds.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HeldFrame {
    /// Its id.
    id: u64,
    /// The fault that holds it.
    fault: u64,
    /// Its connection.
    conn: u64,
    /// `C->B` or `B->C`.
    dir: &'static str,
    /// The command's name.
    r#type: &'static str,
    /// The command's fields.
    fields: Json,
}

impl From<&Held> for HeldFrame {
    fn from(held: &Held) -> Self {
        HeldFrame {
            id: held.id,
            fault: held.fault,
            conn: held.conn.0,
            dir: held.direction.as_str(),
            r#type: held.frame.command.name(),
            fields: held.frame.command.fields(),
        }
    }
}

/// A broker of the cluster.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BrokerStatus {
    /// Its index.
    pub(super) id: u32,
    /// Whether it runs.
    pub(super) up: bool,
    /// The address that lookups hand out.
    pub(super) service_url: String,
    /// The address of its admin REST.
    pub(super) admin_url: String,
    /// The address that lookups hand out for TLS, if it listens for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_url_tls: Option<String>,
    /// The address of its admin REST for TLS, if it listens for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) admin_url_tls: Option<String>,
}

/// A segment that another broker shall own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveSegment {
    /// The scalable topic.
    pub(super) topic: String,
    /// The segment's id.
    pub(super) segment: u64,
    /// The new owner's index.
    pub(super) broker: u32,
}

/// A classic topic or a partition that another broker shall own; also a controller that another broker shall run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveTopic {
    /// The topic.
    pub(super) topic: String,
    /// The new broker's index.
    pub(super) broker: u32,
}

/// A scalable topic and the properties that it shall have.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TopicProperties {
    /// The topic.
    pub(super) topic: String,
    /// All its properties.
    pub(super) properties: BTreeMap<String, String>,
}

/// A topic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfTopic {
    /// Its full name, such as `topic://public/default/orders`.
    pub(super) topic: String,
}

/// A layout to push to the topic's watches as it is, right or wrong.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Inject {
    /// The scalable topic.
    pub(super) topic: String,
    /// A `ScalableTopicDAG` in the journal's form: `epoch`, `segments`, `segment_brokers`, …
    pub(super) layout: Map<String, Json>,
}

/// How many pushes went out.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Pushed {
    /// How many.
    pub(super) pushes: usize,
}

/// A transaction coordinator.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CoordinatorStatus {
    /// Its number, the most significant half of its transactions' ids.
    pub(super) id: u64,
    /// The index of the broker that leads it; `null` during an election.
    pub(super) broker: Option<u32>,
}

/// Who shall lead a transaction coordinator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Elect {
    /// The index of the broker; the seed chooses when absent.
    #[serde(default)]
    pub(super) broker: Option<u32>,
}

/// A registered consumer.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Registration {
    /// The subscription or checkpoint group.
    pub(super) subscription: String,
    /// Whether it is a checkpoint group.
    pub(super) checkpoint: bool,
    /// The consumer's name.
    pub(super) consumer: String,
    /// Whether it has a session; without one it is in its grace period.
    pub(super) connected: bool,
    /// The ids of the segments that it is to read, in the order of their ranges.
    pub(super) segments: Vec<u64>,
}

/// An assignment to send to a registered consumer as it is, right or wrong.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InjectAssignment {
    /// The scalable topic.
    pub(super) topic: String,
    /// The subscription or checkpoint group.
    pub(super) subscription: String,
    /// The consumer's name.
    pub(super) consumer: String,
    /// A `ScalableConsumerAssignment` in the journal's form: `layout_epoch`, `segments`.
    pub(super) assignment: Map<String, Json>,
}

/// A stored entry.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Stored {
    /// The stored topic: a segment, a partition or a classic topic.
    topic: String,
    /// The segment's id, for a segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<u64>,
    /// The ledger's id in message ids.
    ledger: u64,
    /// The entry's number in its ledger, from 0.
    entry: u64,
    /// When it was stored, in milliseconds since 1970.
    stored_at_ms: u64,
    /// Its `MessageMetadata`; absent when the bytes are no entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Json>,
    /// The entry's bytes as they were sent, in hex: checksum, metadata, payload.
    bytes_hex: String,
    /// `true` for an entry that consumers do not see: its transaction was aborted, or it stands behind the first entry of an
    /// open one. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
}

impl From<StoredView> for Stored {
    fn from(view: StoredView) -> Self {
        Stored {
            topic: view.topic.to_string(),
            segment: view.segment,
            ledger: view.position.ledger,
            entry: view.position.entry,
            stored_at_ms: view.stored_at,
            metadata: view.metadata.map(|metadata| fields::to_json("MessageMetadata", &metadata)),
            bytes_hex: fields::hex(&view.bytes),
            hidden: !view.visible,
        }
    }
}

/// A `ScalableTopicDAG` in the journal's form.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Layout(Map<String, Json>);

impl From<&ScalableTopicDag> for Layout {
    fn from(dag: &ScalableTopicDag) -> Self {
        match fields::to_json("ScalableTopicDAG", dag) {
            Json::Object(layout) => Layout(layout),
            _ => Layout(Map::new()),
        }
    }
}

/// How many segments went.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Pruned {
    /// How many.
    pub(super) segments: usize,
}

/// A topic's owner.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Owner {
    /// The stored topic: a segment, a partition or a classic topic.
    pub(super) topic: String,
    /// The index of the broker that serves it; `null` while none does.
    pub(super) broker: Option<u32>,
}

/// How far to move the clock.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Advance {
    /// By how much, in milliseconds.
    pub(super) ms: u64,
}

/// The cluster's clock.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Clock {
    /// Now, in milliseconds since 1970.
    pub(super) now_ms: u64,
}

/// A note for the journal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Mark {
    /// The note.
    pub(super) text: String,
}

/// Which connections to close.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Drop {
    /// Only those to the broker of this index.
    #[serde(default)]
    pub(super) broker: Option<u32>,
    /// Only this one.
    #[serde(default)]
    pub(super) conn: Option<u64>,
}

/// How many connections were closed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Dropped {
    /// How many.
    pub(super) connections: usize,
}

/// Which part of the journal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// The first record's number; the first there is when absent.
    #[serde(default)]
    pub(super) from: u64,
    /// How many records at most, 1 to 10,000.
    #[serde(default = "thousand")]
    pub(super) limit: usize,
}

fn thousand() -> usize {
    1000
}

/// Where to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Since {
    /// The first record's number; the first there is when absent.
    #[serde(default)]
    pub(super) from: u64,
}

/// A part of the journal.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Page {
    /// The records, oldest first.
    pub(super) records: Vec<Line>,
    /// Where the next part starts.
    pub(super) next: u64,
    /// How many of the oldest records are gone because the journal was full.
    pub(super) dropped: u64,
}

/// What to wait for: the first record, from number `from` on, that has everything that is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    /// The first record's number that counts; records from before the call count too.
    #[serde(default)]
    pub(super) from: u64,
    /// The record's type: a command's name, or TCP_OPEN, TCP_CLOSE, FAULT, ADMIN, MARK, LAYOUT, CONTROLLER, COORDINATOR,
    /// TXN.
    #[serde(default)]
    r#type: Option<String>,
    /// `C->B`, `B->C` or `-`.
    #[serde(default)]
    dir: Option<String>,
    /// The broker's index.
    #[serde(default)]
    broker: Option<u32>,
    /// The connection's number.
    #[serde(default)]
    conn: Option<u64>,
    /// Fields that the record has with these values; objects may be given in part, arrays in whole.
    #[serde(default)]
    fields: Map<String, Json>,
    /// How long to wait at most, in milliseconds of real time, up to 600,000.
    #[serde(default = "half_a_minute")]
    pub(super) timeout_ms: u64,
}

fn half_a_minute() -> u64 {
    30_000
}

impl Wait {
    /// The record types that exist besides commands.
    const EVENTS: [&str; 11] = [
        "BAD_FRAME",
        "TCP_OPEN",
        "TCP_CLOSE",
        "TCP_REFUSED",
        "FAULT",
        "ADMIN",
        "MARK",
        "LAYOUT",
        "CONTROLLER",
        "COORDINATOR",
        "TXN",
    ];

    /// Why nothing can ever match; a wait for a misspelt command would only time out.
    pub(super) fn nonsense(&self) -> Option<String> {
        if let Some(name) = &self.r#type
            && stc_proto::Command::number_of(name).is_none()
            && !Self::EVENTS.contains(&name.as_str())
        {
            return Some(format!("type: there are no records of type {name:?}"));
        }
        match self.dir.as_deref() {
            None | Some("C->B" | "B->C" | "-") => {}
            Some(other) => return Some(format!("dir: {other:?} is not C->B, B->C or -")),
        }
        (self.timeout_ms > 600_000).then(|| format!("timeout_ms: {} is more than 600000", self.timeout_ms))
    }

    pub(super) fn matches(&self, record: &Record) -> bool {
        self.r#type.as_deref().is_none_or(|name| name == record.event.name())
            && self.dir.as_deref().is_none_or(|dir| dir == record.direction.as_str())
            && self.broker.is_none_or(|broker| record.broker.is_some_and(|b| b.0 == broker))
            && self.conn.is_none_or(|conn| record.conn.is_some_and(|c| c.0 == conn))
            && (self.fields.is_empty()
                || record
                    .to_json()
                    .get("fields")
                    .and_then(Json::as_object)
                    .is_some_and(|fields| holds(fields, &self.fields)))
    }
}

/// Whether `all` has everything that `part` has.
fn holds(all: &Map<String, Json>, part: &Map<String, Json>) -> bool {
    part.iter().all(|(key, wanted)| match (all.get(key), wanted) {
        (Some(Json::Object(all)), Json::Object(part)) => holds(all, part),
        (value, wanted) => value == Some(wanted),
    })
}

/// A journal record.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Line(pub(super) Json);

impl From<&Record> for Line {
    fn from(record: &Record) -> Self {
        Line(record.to_json())
    }
}

impl JsonSchema for Line {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Record".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let number = json_schema!({ "type": "integer", "minimum": 0 });
        json_schema!({
            "description": "A journal record. A frame has `metadata`, `payload_hex` and `batch` when it carries an \
                entry; `payload_hex` shows the first 300 bytes.",
            "type": "object",
            "required": ["n", "t_ms", "conn", "dir", "type", "fields", "payload_len"],
            "properties": {
                "n": number,
                "t_ms": number,
                "broker": number,
                "conn": number,
                "dir": { "enum": ["C->B", "B->C", "-"] },
                "type": { "type": "string" },
                "fields": { "type": "object" },
                "metadata": { "type": "object" },
                "payload_len": number,
                "payload_hex": { "type": "string" },
                "crc32c": { "type": "string" },
                "batch": { "type": "array", "items": { "type": "object" } },
            },
        })
    }
}
