//! `frames`: commands 70 to 82 as bytes and as fields.

use bytes::{BufMut, BytesMut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stc_proto::{
    Command, Decoder, Frame,
    fields::{self, command_from_json},
};

use crate::{Document, GenerateError, document::About};

/// One frame.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The command's name in `BaseCommand.Type`.
    pub command: String,
    /// Its number: the value of the type, and the number of the body's field in `BaseCommand`.
    #[schemars(range(min = 70, max = 82))]
    pub number: u32,
    /// What the case shows.
    pub note: String,
    /// The whole frame in lower-case hex: total size, command size, command.
    pub frame: String,
    /// The body's fields: names as in the protocol, enums as the names of their values, absent fields absent.
    pub fields: Map<String, Value>,
    /// Whether the frame also holds fields that this version of the protocol does not know. A reader skips them.
    /// Otherwise the frame is the one that an encoder makes which writes fields in ascending order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown_fields: bool,
}

const NAME: &str = "frames";
const TOPIC: &str = "topic://public/default/orders";
const BROKER: &str = "pulsar://127.0.0.1:6650";
const BROKER_TLS: &str = "pulsar+ssl://127.0.0.1:6651";

fn segment(topic: &str, range: &str, id: u64) -> String {
    format!("segment://public/default/{topic}/{range}-{id}")
}

/// Command, what the case shows, fields.
type Sample = (&'static str, &'static str, Value);

fn layout_watch() -> Vec<Sample> {
    let first = json!({
        "epoch": 0,
        "segments": [
            {"segment_id": 0, "hash_start": 0, "hash_end": 32767, "state": "ACTIVE", "created_at_epoch": 0,
             "created_at_ms": 1_796_030_193_132_u64, "entry_bucket_splits": [32768]},
            {"segment_id": 1, "hash_start": 32768, "hash_end": 65535, "state": "ACTIVE", "created_at_epoch": 0,
             "created_at_ms": 1_796_030_193_132_u64, "entry_bucket_splits": [32768]},
        ],
        "segment_brokers": [
            {"segment_id": 1, "broker_url": BROKER}, {"segment_id": 0, "broker_url": BROKER},
        ],
    });
    let split = json!({
        "epoch": 1,
        "segments": [
            {"segment_id": 0, "hash_start": 0, "hash_end": 65535, "state": "SEALED", "child_ids": [1, 2],
             "created_at_epoch": 0, "sealed_at_epoch": 1, "created_at_ms": 1000, "sealed_at_ms": 2000,
             "entry_bucket_splits": [16384, 32768, 49152]},
            {"segment_id": 1, "hash_start": 0, "hash_end": 32767, "state": "ACTIVE", "parent_ids": [0],
             "created_at_epoch": 1, "created_at_ms": 2000, "entry_bucket_splits": [32768]},
            {"segment_id": 2, "hash_start": 32768, "hash_end": 65535, "state": "ACTIVE", "parent_ids": [0],
             "created_at_epoch": 1, "created_at_ms": 2000, "entry_bucket_splits": [32768]},
        ],
        "segment_brokers": [
            {"segment_id": 1, "broker_url": BROKER, "broker_url_tls": BROKER_TLS},
            {"segment_id": 2, "broker_url": BROKER, "broker_url_tls": BROKER_TLS},
        ],
        "controller_broker_url": BROKER,
        "controller_broker_url_tls": BROKER_TLS,
    });
    let merged = json!({
        "epoch": 7,
        "segments": [
            {"segment_id": 5, "hash_start": 0, "hash_end": 65535, "state": "ACTIVE", "parent_ids": [3, 4],
             "created_at_epoch": 6, "created_at_ms": 0},
        ],
        "segment_brokers": [{"segment_id": 5, "broker_url": BROKER}],
        "controller_broker_url": BROKER,
    });
    let legacy = json!({
        "epoch": 0,
        "segments": [
            {"segment_id": 0, "hash_start": 0, "hash_end": 32767, "state": "ACTIVE", "created_at_epoch": 0,
             "created_at_ms": 1000, "legacy_topic_name": "persistent://public/default/orders-partition-0"},
            {"segment_id": 1, "hash_start": 32768, "hash_end": 65535, "state": "ACTIVE", "created_at_epoch": 0,
             "created_at_ms": 1000, "legacy_topic_name": "persistent://public/default/orders-partition-1"},
        ],
    });
    let largest = json!({
        "epoch": u64::MAX,
        "segments": [
            {"segment_id": i64::MAX as u64, "hash_start": 65535, "hash_end": 65535, "state": "SEALED",
             "parent_ids": [0, 127, 128, 16383, 16384, u64::MAX], "created_at_epoch": u64::MAX,
             "created_at_ms": u64::MAX, "entry_bucket_splits": [0, 127, 128, 65535]},
        ],
    });
    vec![
        (
            "SCALABLE_TOPIC_LOOKUP",
            "as clients of Pulsar 5.0.1 send it",
            json!({"session_id": 1, "topic": TOPIC, "create_if_missing": true}),
        ),
        (
            "SCALABLE_TOPIC_LOOKUP",
            "the optional field left out: true is meant",
            json!({"session_id": 2, "topic": TOPIC}),
        ),
        (
            "SCALABLE_TOPIC_LOOKUP",
            "no creation",
            json!({"session_id": 3, "topic": TOPIC, "create_if_missing": false}),
        ),
        (
            "SCALABLE_TOPIC_LOOKUP",
            "session 0, classic name",
            json!({"session_id": 0, "topic": "persistent://public/default/orders"}),
        ),
        (
            "SCALABLE_TOPIC_LOOKUP",
            "largest session, name beyond ASCII",
            json!({"session_id": u64::MAX, "topic": "topic://public/default/\u{43a}\u{43b}\u{44e}\u{447}-\u{1f511}"}),
        ),
        (
            "SCALABLE_TOPIC_UPDATE",
            "first layout, no controller yet",
            json!({"session_id": 1, "dag": first, "resolved_topic_name": TOPIC}),
        ),
        (
            "SCALABLE_TOPIC_UPDATE",
            "after a split, with TLS addresses and the controller",
            json!({"session_id": 1, "dag": split}),
        ),
        (
            "SCALABLE_TOPIC_UPDATE",
            "after a merge and pruning: parents that the layout lists no longer",
            json!({"session_id": 300, "dag": merged, "resolved_topic_name": TOPIC}),
        ),
        (
            "SCALABLE_TOPIC_UPDATE",
            "the synthetic layout of a classic topic",
            json!({"session_id": 4, "dag": legacy, "resolved_topic_name": TOPIC}),
        ),
        ("SCALABLE_TOPIC_UPDATE", "the largest numbers", json!({"session_id": u64::MAX, "dag": largest})),
        ("SCALABLE_TOPIC_UPDATE", "a layout without anything", json!({"session_id": 1, "dag": {"epoch": 0}})),
        (
            "SCALABLE_TOPIC_UPDATE",
            "refused: not found",
            json!({"session_id": 2, "error": "TopicNotFound", "message": "Topic does not exist"}),
        ),
        (
            "SCALABLE_TOPIC_UPDATE",
            "refused: not authorized",
            json!({"session_id": 3, "error": "AuthorizationError", "message": "denied"}),
        ),
        (
            "SCALABLE_TOPIC_UPDATE",
            "refused with the error whose number is 0, and an empty message",
            json!({"session_id": 5, "error": "UnknownError", "message": ""}),
        ),
        ("SCALABLE_TOPIC_UPDATE", "neither layout nor error", json!({"session_id": 6})),
        ("SCALABLE_TOPIC_CLOSE", "", json!({"session_id": 1})),
        ("SCALABLE_TOPIC_CLOSE", "session 0", json!({"session_id": 0})),
        ("SCALABLE_TOPIC_CLOSE", "a session of two bytes", json!({"session_id": 128})),
        ("SCALABLE_TOPIC_CLOSE", "largest session", json!({"session_id": u64::MAX})),
    ]
}

fn assignments() -> Vec<Sample> {
    let quarters: Vec<Value> =
        (0..4).map(|i| json!({"start": i * 16384, "end": (i + 1) * 16384 - 1})).collect();
    let whole = json!({
        "layout_epoch": 0,
        "segments": [
            {"segment_id": 0, "hash_start": 0, "hash_end": 32767, "segment_topic": segment("orders", "0000-7fff", 0)},
            {"segment_id": 1, "hash_start": 32768, "hash_end": 65535, "segment_topic": segment("orders", "8000-ffff", 1)},
        ],
    });
    let shared = json!({
        "layout_epoch": 3,
        "segments": [
            {"segment_id": 3, "hash_start": 0, "hash_end": 65535, "segment_topic": segment("orders", "0000-ffff", 3),
             "bucket_ranges": quarters},
        ],
    });
    let mixed = json!({
        "layout_epoch": 300,
        "segments": [
            {"segment_id": 8, "hash_start": 0, "hash_end": 16383, "segment_topic": segment("orders", "0000-3fff", 8),
             "bucket_ranges": [{"start": 0, "end": 99}, {"start": 100, "end": 65535}]},
            {"segment_id": 9, "hash_start": 16384, "hash_end": 65535, "segment_topic": segment("orders", "4000-ffff", 9)},
        ],
    });
    let nothing = json!({"layout_epoch": 2});
    let legacy = json!({
        "layout_epoch": 0,
        "segments": [
            {"segment_id": 0, "hash_start": 0, "hash_end": 65535,
             "segment_topic": "persistent://public/default/orders-partition-0"},
        ],
    });
    let subscribe = |request_id: u64, consumer: &str, id: u64, kind: &str| {
        json!({"request_id": request_id, "topic": TOPIC, "subscription": "sub", "consumer_name": consumer,
               "consumer_id": id, "consumer_type": kind})
    };
    vec![
        (
            "SCALABLE_TOPIC_SUBSCRIBE",
            "a stream consumer",
            subscribe(4_357_515_487_254_302_694, "sc1", 0, "STREAM"),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE",
            "a checkpoint consumer of a group",
            subscribe(1, "g1", 18, "CHECKPOINT"),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE",
            "largest numbers, name beyond ASCII",
            subscribe(u64::MAX, "caf\u{e9}-\u{1f511}", u64::MAX, "STREAM"),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE",
            "empty names",
            json!({"request_id": 0, "topic": "", "subscription": "",
         "consumer_name": "", "consumer_id": 0, "consumer_type": "STREAM"}),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
            "sole owner of two segments",
            json!({"request_id": 1, "assignment": whole}),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
            "a shared segment with its boundary list",
            json!({"request_id": 2, "assignment": shared}),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
            "nothing to do",
            json!({"request_id": 3, "assignment": nothing}),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
            "a legacy segment",
            json!({"request_id": 4, "assignment": legacy}),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
            "refused: not the leader",
            json!({"request_id": 5, "error": "UnknownError", "message": "not the leader"}),
        ),
        (
            "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
            "refused: no such topic",
            json!({"request_id": 6, "error": "TopicNotFound"}),
        ),
        ("SCALABLE_TOPIC_SUBSCRIBE_RESPONSE", "neither assignment nor error", json!({"request_id": 7})),
        ("SCALABLE_TOPIC_ASSIGNMENT_UPDATE", "another epoch", json!({"consumer_id": 0, "assignment": mixed})),
        (
            "SCALABLE_TOPIC_ASSIGNMENT_UPDATE",
            "a shared segment",
            json!({"consumer_id": 127, "assignment": shared}),
        ),
        (
            "SCALABLE_TOPIC_ASSIGNMENT_UPDATE",
            "everything taken away",
            json!({"consumer_id": u64::MAX, "assignment": nothing}),
        ),
        (
            "SCALABLE_TOPIC_UNSUBSCRIBE",
            "",
            json!({"request_id": 3_254_147_511_840_880_275_u64, "consumer_id": 10}),
        ),
        ("SCALABLE_TOPIC_UNSUBSCRIBE", "both 0", json!({"request_id": 0, "consumer_id": 0})),
        (
            "SCALABLE_TOPIC_UNSUBSCRIBE",
            "largest numbers",
            json!({"request_id": u64::MAX, "consumer_id": u64::MAX}),
        ),
    ]
}

fn watches() -> Vec<Sample> {
    let coordinators: Vec<Value> =
        (0..16).map(|id| json!({"tc_id": id, "broker_service_url": BROKER})).collect();
    let topics = json!(["topic://public/ns5jhr/g1", "topic://public/ns5jhr/g2"]);
    vec![
        ("WATCH_SCALABLE_TOPICS", "first opening", json!({"watch_id": 1, "namespace": "public/ns5jhr"})),
        (
            "WATCH_SCALABLE_TOPICS",
            "with a filter and the hash of the known set",
            json!({"watch_id": 2, "namespace": "public/ns5jhr", "property_filters": [{"key": "team", "value": "x"}],
                "current_hash": "36f5910d"}),
        ),
        (
            "WATCH_SCALABLE_TOPICS",
            "two filters, one of them empty",
            json!({"watch_id": 300, "namespace": "public/default",
                "property_filters": [{"key": "a", "value": ""}, {"key": "\u{43a}", "value": "\u{1f511}"}]}),
        ),
        ("WATCH_SCALABLE_TOPICS_UPDATE", "snapshot", json!({"watch_id": 1, "snapshot": {"topics": topics}})),
        ("WATCH_SCALABLE_TOPICS_UPDATE", "empty snapshot", json!({"watch_id": 1, "snapshot": {}})),
        (
            "WATCH_SCALABLE_TOPICS_UPDATE",
            "added",
            json!({"watch_id": 1, "diff": {"added": ["topic://public/ns5jhr/g3"]}}),
        ),
        (
            "WATCH_SCALABLE_TOPICS_UPDATE",
            "removed",
            json!({"watch_id": 1, "diff": {"removed": ["topic://public/ns5jhr/g1"]}}),
        ),
        (
            "WATCH_SCALABLE_TOPICS_UPDATE",
            "one topic in both: removed first, then added",
            json!({"watch_id": 1, "diff": {"added": topics, "removed": ["topic://public/ns5jhr/g1"]}}),
        ),
        ("WATCH_SCALABLE_TOPICS_UPDATE", "empty diff", json!({"watch_id": 1, "diff": {}})),
        (
            "WATCH_SCALABLE_TOPICS_UPDATE",
            "refused",
            json!({"watch_id": 3, "error": "TopicNotFound", "message": "Namespace not found"}),
        ),
        ("WATCH_SCALABLE_TOPICS_UPDATE", "neither event nor error", json!({"watch_id": 4})),
        ("WATCH_SCALABLE_TOPICS_CLOSE", "", json!({"watch_id": 1})),
        ("WATCH_SCALABLE_TOPICS_CLOSE", "watch 0", json!({"watch_id": 0})),
        ("WATCH_TC_ASSIGNMENTS", "", json!({"watch_id": 1})),
        ("WATCH_TC_ASSIGNMENTS", "largest watch", json!({"watch_id": u64::MAX})),
        (
            "WATCH_TC_ASSIGNMENTS_UPDATE",
            "all coordinators",
            json!({"watch_id": 1, "snapshot": {"parallelism": 16, "assignments": coordinators}}),
        ),
        (
            "WATCH_TC_ASSIGNMENTS_UPDATE",
            "one election going on, TLS addresses",
            json!({"watch_id": 1, "snapshot": {"parallelism": 3, "assignments": [
             {"tc_id": 0, "broker_service_url": BROKER, "broker_service_url_tls": BROKER_TLS},
             {"tc_id": 2, "broker_service_url_tls": BROKER_TLS}]}}),
        ),
        (
            "WATCH_TC_ASSIGNMENTS_UPDATE",
            "all elections going on",
            json!({"watch_id": 1, "snapshot": {"parallelism": 16}}),
        ),
        (
            "WATCH_TC_ASSIGNMENTS_UPDATE",
            "refused",
            json!({"watch_id": 2, "error": "TransactionCoordinatorNotFound", "message": "Transactions are not enabled"}),
        ),
        ("WATCH_TC_ASSIGNMENTS_CLOSE", "", json!({"watch_id": 1})),
        ("WATCH_TC_ASSIGNMENTS_CLOSE", "a watch of five bytes", json!({"watch_id": 34_359_738_367_u64})),
    ]
}

fn case((name, note, fields): Sample) -> Result<Case, GenerateError> {
    let error = |e: &dyn std::fmt::Display| GenerateError::new(NAME, format!("{name}, {note}: {e}"));
    let command = command_from_json(name, &fields).map_err(|e| error(&e))?;
    let frame = Frame::from(command).to_bytes();
    let number = read(&frame, &fields).map_err(|e| error(&e))?;
    Ok(Case {
        command: name.to_owned(),
        number,
        note: note.to_owned(),
        frame: fields::hex(&frame),
        fields: as_map(fields),
        unknown_fields: false,
    })
}

fn as_map(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Reads a frame back, which has to give the fields, and returns the command's number.
fn read(frame: &[u8], fields: &Value) -> Result<u32, String> {
    let read = Decoder::default().decode(&mut BytesMut::from(frame)).map_err(|e| e.to_string())?;
    let command = read.ok_or("the frame is not whole")?.command;
    if command.fields() != *fields {
        return Err(format!("reads back as {}", command.fields()));
    }
    Ok(command.number())
}

/// A frame with fields from the future: one behind those of the body, one behind the body.
fn with_unknown((name, note, fields): Sample) -> Result<Case, GenerateError> {
    let error = |e: &dyn std::fmt::Display| GenerateError::new(NAME, format!("{name}, {note}: {e}"));
    let number = Command::number_of(name).ok_or_else(|| error(&"no such command"))?;
    let known = command_from_json(name, &fields).map_err(|e| error(&e))?;
    let mut whole = BytesMut::new();
    known.encode(&mut whole);
    // The command ends in its body. What stands in front of it: type (2 bytes), the body's key (2) and length (1).
    let head = 5;
    let body = whole.get(head..).unwrap_or_default();
    let future: &[u8] = &[0xBA, 0x3E, 0x03, 0x6E, 0x65, 0x77]; // field 999, the text "new"
    let length = body.len() + future.len();
    if whole.len() > 100 || length > 127 {
        return Err(error(&"too long for lengths of one byte"));
    }
    let mut command = BytesMut::new();
    command.put_slice(whole.get(..head - 1).unwrap_or_default());
    command.put_u8(length as u8);
    command.put_slice(body);
    command.put_slice(future);
    command.put_slice(&[0xC0, 0x3E, 0x01]); // field 1000, the number 1
    let mut frame = BytesMut::new();
    frame.put_u32(command.len() as u32 + 4);
    frame.put_u32(command.len() as u32);
    frame.put_slice(&command);
    read(&frame, &fields).map_err(|e| error(&e))?;
    Ok(Case {
        command: name.to_owned(),
        number,
        note: note.to_owned(),
        frame: fields::hex(&frame),
        fields: as_map(fields),
        unknown_fields: true,
    })
}

pub(crate) fn document() -> Result<Document, GenerateError> {
    let about = About {
        name: NAME,
        title: "Frames of the scalable-topic commands",
        description: "One frame a case, in hex, with the fields of the command's body. A frame is a size of four bytes \
                      (of what follows), a size of the command of four bytes, and a BaseCommand. Absent fields are \
                      absent: a field that is there with its default value stands in the frame.",
        specification: "wire-protocol §1, wire-protocol §4, wire-protocol §6.2, wire-protocol §7, wire-protocol §8.1",
        seed: None,
    };
    let mut cases = Vec::new();
    for sample in layout_watch().into_iter().chain(assignments()).chain(watches()) {
        cases.push(case(sample)?);
    }
    for sample in [
        (
            "SCALABLE_TOPIC_LOOKUP",
            "fields that a later protocol may add",
            json!({"session_id": 1, "topic": TOPIC}),
        ),
        (
            "SCALABLE_TOPIC_UPDATE",
            "fields that a later protocol may add",
            json!({"session_id": 1, "dag": {"epoch": 4}}),
        ),
        (
            "SCALABLE_TOPIC_UNSUBSCRIBE",
            "fields that a later protocol may add",
            json!({"request_id": 9, "consumer_id": 1}),
        ),
        (
            "WATCH_TC_ASSIGNMENTS_UPDATE",
            "fields that a later protocol may add",
            json!({"watch_id": 1, "snapshot": {"parallelism": 16}}),
        ),
    ] {
        cases.push(with_unknown(sample)?);
    }
    Document::new(&about, &cases)
}
