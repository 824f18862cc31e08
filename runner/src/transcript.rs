//! One journal record as one record of the report: who sent it to whom, with decoded fields.

use serde_json::{Map, Value as Json};
use sim_broker::core::journal::{Direction, Record};
use stc_reports::{WireKind, WireRecord};

use crate::adapter::notes::{ANSWERED, ASKED};

/// Commands by which a client talks to the controller of a topic, whichever broker leads it.
const OF_THE_CONTROLLER: [&str; 4] = [
    "SCALABLE_TOPIC_SUBSCRIBE",
    "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
    "SCALABLE_TOPIC_ASSIGNMENT_UPDATE",
    "SCALABLE_TOPIC_UNSUBSCRIBE",
];

/// The record as reports keep it.
pub fn record(record: &Record) -> WireRecord {
    row(record.to_json())
}

/// The JSON form of a record, as journals and their files have it, as reports keep it. What a row lacks is empty.
pub fn row(row: Json) -> WireRecord {
    let mut row = match row {
        Json::Object(row) => row,
        _ => Map::new(),
    };
    let number = |name: &str| row.get(name).and_then(Json::as_u64);
    let text = |name: &str| row.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    let (n, t_ms) = (number("n").unwrap_or(0), number("t_ms").unwrap_or(0));
    let broker = number("broker").and_then(|b| u32::try_from(b).ok());
    let conn = number("conn").filter(|conn| *conn > 0);
    let (mut name, dir) = (text("type"), text("dir"));
    let kind = kind(&name);
    let mut fields = match row.remove("fields") {
        Some(Json::Object(fields)) => fields,
        _ => Map::new(),
    };
    let of_the_client = note(&name, &fields);
    let place = match (name.as_str(), broker) {
        ("CONTROLLER", _) => "controller".to_owned(),
        (name, _) if OF_THE_CONTROLLER.contains(&name) => "controller".to_owned(),
        (_, Some(broker)) => format!("broker {broker}"),
        (_, None) => "cluster".to_owned(),
    };
    let client = || "client".to_owned();
    let (from, to) = if let Some((what, said)) = of_the_client {
        what.clone_into(&mut name);
        fields.insert("text".to_owned(), said.into());
        (client(), client())
    } else if dir == Direction::ToBroker.as_str() {
        (client(), place)
    } else if dir == Direction::ToClient.as_str() {
        (place, client())
    } else {
        (place.clone(), place)
    };
    let carries = row.contains_key("metadata") || row.contains_key("payload_hex");
    // What is left of the row then is about the entry.
    ["n", "t_ms", "broker", "conn", "dir", "type"].iter().for_each(|key| drop(row.remove(*key)));
    WireRecord { n, t_ms, kind, name, from, to, broker, conn, fields, entry: carries.then_some(row) }
}

/// A note about what the client was asked to do or what it answered: what of the two, and the rest of the text.
fn note(name: &str, fields: &Map<String, Json>) -> Option<(&'static str, String)> {
    let text = fields.get("text").filter(|_| name == "MARK")?.as_str()?;
    let rest = |what, prefix| text.strip_prefix(prefix).map(|rest| (what, rest.to_owned()));
    rest("ASKED", ASKED).or_else(|| rest("ANSWERED", ANSWERED))
}

fn kind(name: &str) -> WireKind {
    match name {
        "BAD_FRAME" | "TCP_OPEN" | "TCP_CLOSE" | "TCP_REFUSED" => WireKind::Connection,
        "FAULT" => WireKind::Fault,
        "ADMIN" | "MARK" | "LAYOUT" | "CONTROLLER" | "COORDINATOR" | "TXN" => WireKind::Cluster,
        _ => WireKind::Frame,
    }
}
