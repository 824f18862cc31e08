//! One journal record as one line for people: time, broker, connection, direction, command, fields that are set.

use serde_json::Value as Json;
use sim_broker::core::journal::{Direction, Record};

/// Fields that say nothing about what a client did.
const DULL: [&str; 6] = [
    "feature_flags",
    "auth_data",
    "auth_method_name",
    "protocol_version",
    "schema_data",
    "advertised_listener_name",
];

/// The line, such as `0.012 b1 c3 > SEND producer_id=0 sequence_id=4 | partition_key=a payload=3`.
pub fn line(record: &Record) -> String {
    let mut line = format!("{}.{:03}", record.t_ms / 1000, record.t_ms % 1000);
    if let Some(broker) = record.broker {
        line.push_str(&format!(" b{}", broker.0));
    }
    if let Some(conn) = record.conn {
        line.push_str(&format!(" c{}", conn.0));
    }
    line.push_str(match record.direction {
        Direction::ToBroker => " >",
        Direction::ToClient => " <",
        Direction::Internal => " -",
    });
    line.push(' ');
    line.push_str(record.event.name());
    let row = record.to_json();
    if let Some(fields) = row.get("fields") {
        flat(fields, &mut line);
    }
    if let Some(metadata) = row.get("metadata") {
        line.push_str(" |");
        flat(metadata, &mut line);
        line.push_str(&format!(" payload={}", row.get("payload_len").and_then(Json::as_u64).unwrap_or(0)));
    }
    line
}

fn flat(fields: &Json, line: &mut String) {
    for (name, value) in fields.as_object().into_iter().flatten() {
        if !DULL.contains(&name.as_str()) {
            line.push_str(&format!(" {name}={}", short(value)));
        }
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
fn segment(fields: &serde_json::Map<String, Json>) -> Option<String> {
    let number = |name: &str| fields.get(name).and_then(Json::as_u64);
    let (id, start, end) = (number("segment_id")?, number("hash_start")?, number("hash_end")?);
    let sealed = fields.get("state").and_then(Json::as_str) == Some("SEALED");
    Some(format!("{id}:{start:04x}-{end:04x}{}", if sealed { "(sealed)" } else { "" }))
}
