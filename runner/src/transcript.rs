//! One journal record as one record of the report: who sent it to whom, with decoded fields.

use serde_json::{Map, Value as Json};
use sim_broker::core::journal::{Direction, Event, Record};
use stc_reports::{WireKind, WireRecord};

/// Commands by which a client talks to the controller of a topic, whichever broker leads it.
const OF_THE_CONTROLLER: [&str; 4] = [
    "SCALABLE_TOPIC_SUBSCRIBE",
    "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
    "SCALABLE_TOPIC_ASSIGNMENT_UPDATE",
    "SCALABLE_TOPIC_UNSUBSCRIBE",
];

/// The record as reports keep it.
pub fn record(record: &Record) -> WireRecord {
    let name = record.event.name();
    let broker = record.broker.map(|b| b.0);
    let place = match (&record.event, broker) {
        (Event::Controller { .. }, _) => "controller".to_owned(),
        (Event::Frame(_), _) if OF_THE_CONTROLLER.contains(&name) => "controller".to_owned(),
        (_, Some(broker)) => format!("broker {broker}"),
        (_, None) => "cluster".to_owned(),
    };
    let client = || "client".to_owned();
    let (from, to) = match record.direction {
        Direction::ToBroker => (client(), place),
        Direction::ToClient => (place, client()),
        Direction::Internal => (place.clone(), place),
    };
    let kind = match record.event {
        Event::Frame(_) => WireKind::Frame,
        Event::BadFrame { .. } | Event::TcpOpen { .. } | Event::TcpClose { .. } | Event::TcpRefused => {
            WireKind::Connection
        }
        Event::Fault { .. } => WireKind::Fault,
        Event::Admin { .. }
        | Event::Mark { .. }
        | Event::Layout { .. }
        | Event::Controller { .. }
        | Event::Coordinator { .. }
        | Event::Txn { .. } => WireKind::Cluster,
    };
    let mut row = match record.to_json() {
        Json::Object(row) => row,
        _ => Map::new(),
    };
    let fields = match row.remove("fields") {
        Some(Json::Object(fields)) => fields,
        _ => Map::new(),
    };
    let carries = record.frame().is_some_and(|frame| frame.payload.is_some());
    // What is left of the row then is about the entry.
    ["n", "t_ms", "broker", "conn", "dir", "type"].iter().for_each(|key| drop(row.remove(*key)));
    WireRecord {
        n: record.n,
        t_ms: record.t_ms,
        kind,
        name: name.to_owned(),
        from,
        to,
        broker,
        conn: record.conn.map(|c| c.0),
        fields,
        entry: carries.then_some(row),
    }
}
