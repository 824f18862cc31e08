//! The wire exchange of a scenario: one record for each frame, connection, fault or change of the cluster, with its
//! fields, and the line that people read of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Fields that say nothing about what a client did; lines leave them out.
const DULL: [&str; 6] = [
    "feature_flags",
    "auth_data",
    "auth_method_name",
    "protocol_version",
    "schema_data",
    "advertised_listener_name",
];

/// One record of the wire journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WireRecord {
    /// Its number in the journal of the scenario, from 1.
    pub n: u64,
    /// Milliseconds since the cluster started, on its clock.
    pub t_ms: u64,
    /// What kind of thing happened.
    pub kind: WireKind,
    /// Name of the command on the wire, such as `SEND`, or of what happened, such as `TCP_CLOSE`; `ASKED` and `ANSWERED`
    /// are notes on what the suite asked a client to do, and what that reported.
    pub name: String,
    /// Who sent it: `client`, `broker N`, `controller`, or `cluster` for what is about no single broker.
    pub from: String,
    /// Who got it. The same as `from` for what only happened there.
    pub to: String,
    /// Number of the broker, where the record is about one; of a controller the broker that leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<u32>,
    /// Number of the connection, where the record is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conn: Option<u64>,
    /// The decoded fields that were set. Enums are names, bytes are hex.
    pub fields: Map<String, Json>,
    /// What a SEND or MESSAGE carries: `metadata`, `payload_len`, `payload_hex` (its beginning), `crc32c`,
    /// `broker_metadata`, and `batch` with the messages of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Map<String, Json>>,
}

/// Kinds of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireKind {
    /// A frame of the binary protocol.
    Frame,
    /// A connection opened, closed or was refused, or carried bytes that are no frame.
    Connection,
    /// A fault struck.
    Fault,
    /// Something changed in the cluster, or whoever drives it noted something.
    Cluster,
}

impl WireKind {
    /// The kind as the JSON report writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            WireKind::Frame => "frame",
            WireKind::Connection => "connection",
            WireKind::Fault => "fault",
            WireKind::Cluster => "cluster",
        }
    }
}

impl WireRecord {
    /// The record on one line, such as
    /// `0.012 b1 c3 > SEND producer_id=0 sequence_id=4 | partition_key=a payload=3`: seconds, broker, connection, `>`
    /// from the client or `<` to it, name, fields. Text in it is as it came.
    pub fn line(&self) -> String {
        let mut line = format!("{}.{:03}", self.t_ms / 1000, self.t_ms % 1000);
        if let Some(broker) = self.broker {
            line.push_str(&format!(" b{broker}"));
        }
        if let Some(conn) = self.conn {
            line.push_str(&format!(" c{conn}"));
        }
        line.push_str(match (self.from == self.to, self.to.as_str()) {
            (true, _) => " - ",
            (false, "client") => " < ",
            (false, _) => " > ",
        });
        line.push_str(&self.name);
        line.push_str(&self.facts());
        line
    }

    /// The fields and what the entry says, each with a space before it.
    pub(crate) fn facts(&self) -> String {
        let mut facts = String::new();
        flat(&self.fields, &mut facts);
        let Some(entry) = &self.entry else { return facts };
        if let Some(metadata) = entry.get("metadata").and_then(Json::as_object) {
            facts.push_str(" |");
            flat(metadata, &mut facts);
        }
        facts.push_str(&format!(" payload={}", entry.get("payload_len").and_then(Json::as_u64).unwrap_or(0)));
        facts
    }
}

/// The fields, plain values first: what is nested may fill the rest of a line.
fn flat(fields: &Map<String, Json>, line: &mut String) {
    let nested = |value: &Json| value.is_array() || value.is_object();
    let told = || fields.iter().filter(|(name, _)| !DULL.contains(&name.as_str()));
    for (name, value) in told().filter(|(_, v)| !nested(v)).chain(told().filter(|(_, v)| nested(v))) {
        line.push_str(&format!(" {name}={}", short(value)));
    }
}

fn short(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(short).collect();
            format!("[{}]", items.join(" "))
        }
        Json::Object(fields) => segment(fields).unwrap_or_else(|| {
            let fields: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={}", short(v))).collect();
            format!("{{{}}}", fields.join(" "))
        }),
        other => other.to_string(),
    }
}

/// A segment of a layout as `3:8000-ffff` with `(sealed)` where it is; layouts fill screens otherwise.
fn segment(fields: &Map<String, Json>) -> Option<String> {
    let number = |name: &str| fields.get(name).and_then(Json::as_u64);
    let (id, start, end) = (number("segment_id")?, number("hash_start")?, number("hash_end")?);
    let sealed = fields.get("state").and_then(Json::as_str) == Some("SEALED");
    Some(format!("{id}:{start:04x}-{end:04x}{}", if sealed { "(sealed)" } else { "" }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(from: &str, to: &str, fields: Json, entry: Option<Json>) -> WireRecord {
        let map = |json: Json| json.as_object().cloned().unwrap_or_default();
        WireRecord {
            n: 1,
            t_ms: 61_012,
            kind: WireKind::Frame,
            name: "SEND".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            broker: Some(1),
            conn: Some(3),
            fields: map(fields),
            entry: entry.map(map),
        }
    }

    #[test]
    fn a_line_says_when_where_which_way_and_what() {
        let entry =
            json!({ "metadata": { "partition_key": "a" }, "payload_len": 3, "payload_hex": "616263" });
        let fields = json!({ "producer_id": 0, "auth_data": "secret", "flags": ["a", { "b": true }] });
        let send = record("client", "broker 1", fields, Some(entry));
        let expected = "61.012 b1 c3 > SEND producer_id=0 flags=[a {b=true}] | partition_key=a payload=3";
        assert_eq!(send.line(), expected);
        assert_eq!(record("broker 1", "client", json!({}), None).line(), "61.012 b1 c3 < SEND");
        let inside = WireRecord { broker: None, conn: None, ..record("cluster", "cluster", json!({}), None) };
        assert_eq!(inside.line(), "61.012 - SEND");
    }

    #[test]
    fn a_payload_that_is_no_entry_still_has_its_length() {
        let entry = json!({ "payload_len": 7, "payload_hex": "00" });
        assert!(record("client", "broker 1", json!({}), Some(entry)).line().ends_with("SEND payload=7"));
    }

    #[test]
    fn segments_are_short() {
        let segment = json!({ "segment_id": 3, "hash_start": 32768, "hash_end": 65535, "state": "SEALED" });
        let layout = record("broker 1", "client", json!({ "segments": [segment] }), None);
        assert!(layout.line().ends_with("segments=[3:8000-ffff(sealed)]"));
    }
}
