//! What was recorded against what was sent, under these equivalences: addresses of brokers, names that the broker gave,
//! times of layouts, the order of a layout's brokers and of a namespace's topics, and the ids of ledgers and transactions (which are translated) are
//! free. Everything else has to be the same, in the same
//! order for each request, session, producer and consumer.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Value as Json, json};

use crate::{
    replay::{Answer, Replayed},
    row::Row,
};

/// What came of a recording.
pub(crate) struct Compared {
    /// Frames that were recorded.
    pub(crate) all: usize,
    /// How many of them were sent as well.
    pub(crate) agree: usize,
    /// Frames that were sent and not recorded.
    pub(crate) extra: usize,
    /// What differs, in words.
    pub(crate) differences: Vec<String>,
    /// How often each kind of difference occurs.
    pub(crate) kinds: BTreeMap<String, usize>,
}

/// What orders frames: the connection, the kind and whatever they belong to.
type Line = (u64, String, String);

/// A frame as it is compared, with its row's number if it was recorded.
type Item = (Json, u64);

/// Compares a recording with its replay.
pub(crate) fn compare(rows: &[Row], replayed: &Replayed) -> Compared {
    let mut lines: BTreeMap<Line, (Vec<Item>, Vec<Item>)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_answer()) {
        let (mut fields, mut metadata) = (row.fields.clone(), row.metadata.clone());
        replayed.names.translate(&mut fields);
        metadata.iter_mut().for_each(|metadata| replayed.names.translate(metadata));
        let json = canonical(&row.kind, fields, metadata, row.payload_hex.clone());
        lines.entry(line(row.conn, &row.kind, &row.fields)).or_default().0.push((json, row.n));
    }
    for Answer { conn, kind, json } in &replayed.answers {
        let metadata = json.get("metadata").cloned();
        let payload = json["payload_hex"].as_str().map(str::to_owned);
        let compared = canonical(kind, json["fields"].clone(), metadata, payload);
        lines.entry(line(*conn, kind, &json["fields"])).or_default().1.push((compared, 0));
    }
    let mut compared =
        Compared { all: 0, agree: 0, extra: 0, differences: replayed.admin.clone(), kinds: BTreeMap::new() };
    for ((conn, kind, _), (recorded, sent)) in lines {
        compared.all += recorded.len();
        let (missing, extra) = unmatched(&recorded, &sent);
        compared.agree += recorded.len() - missing.len();
        compared.extra += extra.len().saturating_sub(missing.len());
        for at in 0..missing.len().max(extra.len()) {
            let (what, n) = match (missing.get(at), extra.get(at)) {
                (Some((recorded, n)), Some((sent, _))) => (parts(&kind, recorded, sent), *n),
                (Some((_, n)), None) => (format!("{kind}: recorded, not sent"), *n),
                (None, _) => (format!("{kind}: sent, not recorded"), 0),
            };
            *compared.kinds.entry(what.clone()).or_default() += 1;
            let values = match (missing.get(at), extra.get(at)) {
                (Some((recorded, _)), Some((sent, _))) => values(recorded, sent),
                (Some((only, _)), None) | (None, Some((only, _))) => short(only),
                (None, None) => String::new(),
            };
            compared.differences.push(format!("row {n} c{conn} {what}: {values}"));
        }
    }
    compared
}

/// What a frame belongs to.
fn line(conn: u64, kind: &str, fields: &Json) -> Line {
    let by = match kind {
        "CLOSE_PRODUCER" => ["producer_id"].as_slice(),
        "CLOSE_CONSUMER" => &["consumer_id"],
        _ => &["request_id", "session_id", "producer_id", "consumer_id", "watch_id"],
    };
    let owner = by.iter().find_map(|name| Some(format!("{name}={}", fields.get(*name)?)));
    (conn, kind.to_owned(), owner.unwrap_or_default())
}

/// A frame without what is free to differ.
fn canonical(kind: &str, mut fields: Json, metadata: Option<Json>, payload: Option<String>) -> Json {
    // A name that the broker gave, and a suffix that the client put behind it.
    let given = Regex::new(r"^(standalone|sim-0|sim)-[0-9]+(-[0-9]+)*$").unwrap();
    free(&mut fields, &given);
    json!({ "type": kind, "fields": fields, "metadata": metadata, "payload": payload })
}

fn free(json: &mut Json, given: &Regex) {
    match json {
        Json::Object(object) => {
            // The ledger of a topic that nobody wrote to: no receipt tells which one it is.
            let nowhere = Some(u64::MAX);
            let ledger = object.get("ledgerId").and_then(Json::as_u64);
            if object.get("entryId").and_then(Json::as_u64) == nowhere && ledger != nowhere {
                object.insert("ledgerId".into(), json!("empty"));
            }
            for (key, value) in object {
                if let ("segment_brokers", Some(list)) = (key.as_str(), value.as_array_mut()) {
                    list.sort_by_key(|broker| broker["segment_id"].as_u64());
                }
                if let ("topics", Some(topics)) = (key.as_str(), value.as_array_mut()) {
                    topics.sort_by_key(ToString::to_string);
                }
                match (key.as_str(), value.as_str()) {
                    // 5.0.1 sends the one or the other where the SEND has none, as its pooled objects have it.
                    ("highest_sequence_id", _) if value.as_u64().is_some_and(|n| n == 0 || n == u64::MAX) => {
                        *value = json!("none");
                    }
                    ("created_at_ms" | "sealed_at_ms", _) => *value = json!("a time"),
                    ("producer_name", Some(name)) if given.is_match(name) => *value = json!("a name"),
                    (_, Some(text)) if text.starts_with("pulsar://") => *value = json!("an address"),
                    _ => free(value, given),
                }
            }
        }
        Json::Array(list) => list.iter_mut().for_each(|value| free(value, given)),
        _ => {}
    }
}

/// What is left of two lists beside their longest common subsequence.
fn unmatched(recorded: &[Item], sent: &[Item]) -> (Vec<Item>, Vec<Item>) {
    let (rows, columns) = (recorded.len(), sent.len());
    let mut longest = vec![vec![0usize; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            longest[i][j] = if recorded[i].0 == sent[j].0 {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut missing, mut extra) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while i < rows || j < columns {
        if i < rows && j < columns && recorded[i].0 == sent[j].0 {
            (i, j) = (i + 1, j + 1);
        } else if j == columns || i < rows && longest[i + 1][j] >= longest[i][j + 1] {
            missing.push(recorded[i].clone());
            i += 1;
        } else {
            extra.push(sent[j].clone());
            j += 1;
        }
    }
    (missing, extra)
}

/// Which parts of two frames of a kind differ.
fn parts(kind: &str, recorded: &Json, sent: &Json) -> String {
    let (recorded, sent) = (flat(recorded), flat(sent));
    let names: BTreeSet<&String> = recorded.keys().chain(sent.keys()).collect();
    let differing: Vec<&str> =
        names.into_iter().filter(|name| recorded.get(*name) != sent.get(*name)).map(String::as_str).collect();
    format!("{kind}: other {}", differing.join(", "))
}

fn values(recorded: &Json, sent: &Json) -> String {
    let (recorded, sent) = (flat(recorded), flat(sent));
    let names: BTreeSet<&String> = recorded.keys().chain(sent.keys()).collect();
    let differing = names.into_iter().filter(|name| recorded.get(*name) != sent.get(*name));
    let shown = differing.map(|name| {
        let value = |side: &BTreeMap<String, Json>| side.get(name).map_or("nothing".to_owned(), short);
        format!("{name} {} for {}", value(&sent), value(&recorded))
    });
    shown.collect::<Vec<_>>().join("; ")
}

/// The top-level parts and the fields of a frame, by name.
fn flat(json: &Json) -> BTreeMap<String, Json> {
    let mut flat = BTreeMap::new();
    for (name, value) in json.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("fields", Json::Object(fields)) => flat.extend(fields.clone()),
            _ => _ = flat.insert(name.clone(), value.clone()),
        }
    }
    flat
}

fn short(json: &Json) -> String {
    let text = json.to_string();
    if text.len() > 220 { format!("{}…", text.chars().take(220).collect::<String>()) } else { text }
}
