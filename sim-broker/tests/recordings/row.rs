//! One row of a recording (`proto/tests/recordings/README.md`).

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value as Json;
use stc_proto::{
    Entry, Frame,
    fields::{self, unhex},
    pulsar::MessageMetadata,
};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Row {
    pub(crate) n: u64,
    pub(crate) t_ms: u64,
    pub(crate) conn: u64,
    pub(crate) dir: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) fields: Json,
    payload_len: usize,
    pub(crate) metadata: Option<Json>,
    pub(crate) payload_hex: Option<String>,
}

impl Row {
    /// Whether the broker sent it, and of its own accord or as an answer: keep-alive pings are the transport's.
    pub(crate) fn is_answer(&self) -> bool {
        self.dir == "B->C" && is_compared(&self.kind)
    }

    /// Whether it is a frame of the client's that goes in.
    pub(crate) fn is_request(&self) -> bool {
        self.dir == "C->B" && is_compared(&self.kind) && !self.kind.starts_with("TCP_")
    }

    /// The admin call that it tells of: method, path, body and status.
    pub(crate) fn admin(&self) -> Option<Admin> {
        let call = self.fields["text"].as_str()?.strip_prefix("ADMIN ")?;
        let (asked, answered) = call.split_once(" -> ")?;
        let (method, rest) = asked.split_once(' ')?;
        let (path, body) = rest.split_once(" body=").unwrap_or((rest, ""));
        let status = answered.get(..3)?.parse().ok()?;
        Some(Admin { method: method.to_owned(), path: path.to_owned(), body: body.to_owned(), status })
    }

    /// The frame, with these fields and this metadata in place of the recorded ones.
    pub(crate) fn frame(&self, fields: &Json, metadata: Option<&Json>) -> Frame {
        let command = fields::command_from_json(&self.kind, fields).unwrap();
        let Some(metadata) = metadata else { return Frame::from(command) };
        let metadata: MessageMetadata = fields::from_json("MessageMetadata", metadata).unwrap();
        let mut payload = unhex(self.payload_hex.as_ref().unwrap().trim_end_matches("...")).unwrap();
        // The recorder cut off long ones, which are zeros from there on.
        payload.resize(self.payload_len, 0);
        Frame::with_payload(command, Entry::new(metadata, Bytes::from(payload)).to_bytes())
    }
}

/// Both sides ping each other when nothing else is said, which is not what the recordings are about.
pub(crate) fn is_compared(kind: &str) -> bool {
    !matches!(kind, "PING" | "PONG") && !kind.starts_with("TCP_")
}

/// An admin call and its status.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
    pub(crate) status: u16,
}

/// A recording, in the order in which it happened. The recorder noted an admin call when it returned; its row is moved
/// up in front of the first frame by which the broker told of it.
pub(crate) fn read(name: &str) -> Vec<Row> {
    let file = format!("{}/../proto/tests/recordings/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap();
    let mut rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for at in 0..rows.len() {
        if rows[at].admin().is_none_or(|call| call.method == "GET" || call.status >= 300) {
            continue;
        }
        let during = (0..at)
            .rev()
            .take_while(|i| rows[*i].admin().is_none() && rows[*i].t_ms + ADMIN_TAKES_MS > rows[at].t_ms);
        let effects: Vec<(Effect, usize)> = during.filter_map(|i| Some((effect(&rows, i)?, i))).collect();
        // What ends a segment tells best when: the controller may be elected long before.
        if let Some((_, first)) = effects.into_iter().min() {
            let call = rows.remove(at);
            rows.insert(first, Row { t_ms: rows[first].t_ms, ..call });
        }
    }
    rows
}

/// How long an admin call takes at most.
const ADMIN_TAKES_MS: u64 = 400;

/// How the broker tells of an admin call, what comes surely after it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// Producers and consumers are closed, sends fail.
    Ends,
    /// A layout, assignment or list of topics that is new.
    News,
}

fn effect(rows: &[Row], at: usize) -> Option<Effect> {
    let row = &rows[at];
    if row.dir != "B->C" {
        return None;
    }
    match row.kind.as_str() {
        "CLOSE_PRODUCER" | "CLOSE_CONSUMER" | "SEND_ERROR" => Some(Effect::Ends),
        "SCALABLE_TOPIC_UPDATE" => {
            let before = before(rows, at, "session_id")?;
            let (old, new) = (&before.fields["dag"], &row.fields["dag"]);
            (old["epoch"] != new["epoch"] || old["segments"] != new["segments"]).then_some(Effect::News)
        }
        "WATCH_SCALABLE_TOPICS_UPDATE" => before(rows, at, "watch_id").map(|_| Effect::News),
        _ => None,
    }
}

/// The frame of the same kind before this one that belongs to the same.
fn before<'a>(rows: &'a [Row], at: usize, owner: &str) -> Option<&'a Row> {
    let row = &rows[at];
    let same = |other: &&Row| {
        (other.conn, &other.kind, &other.fields[owner]) == (row.conn, &row.kind, &row.fields[owner])
    };
    rows[..at].iter().rev().find(same)
}
