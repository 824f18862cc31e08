//! A layout as the admin REST prints it: what `GET …/scalable/{tenant}/{namespace}/{topic}` answers.

use std::collections::BTreeMap;

use serde::Serialize;
use stc_proto::{HashRange, Layout, Segment};

/// A scalable topic's metadata. Fields are in the order in which the broker prints them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TopicMetadata<'a> {
    epoch: u64,
    next_segment_id: u64,
    segments: BTreeMap<u64, SegmentMetadata<'a>>,
    properties: &'a BTreeMap<String, String>,
    /// A topic that is on its way out; one that answers at all is not.
    deleted: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SegmentMetadata<'a> {
    segment_id: u64,
    hash_range: Range,
    state: &'static str,
    parent_ids: &'a [u64],
    child_ids: &'a [u64],
    created_at_epoch: u64,
    /// -1 while it is active.
    sealed_at_epoch: i64,
    created_at_ms: u64,
    /// -1 while it is active.
    sealed_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    legacy_topic_name: Option<&'a str>,
    entry_bucket_splits: &'a [u16],
    sealed: bool,
    active: bool,
    root: bool,
    leaf: bool,
    legacy: bool,
}

#[derive(Serialize)]
struct Range {
    start: u16,
    end: u16,
}

impl From<HashRange> for Range {
    fn from(range: HashRange) -> Self {
        Range { start: range.start(), end: range.end() }
    }
}

impl<'a> TopicMetadata<'a> {
    pub(crate) fn new(layout: &'a Layout, properties: &'a BTreeMap<String, String>) -> Self {
        TopicMetadata {
            epoch: layout.epoch(),
            next_segment_id: layout.next_segment_id(),
            segments: layout.segments().map(|segment| (segment.id, SegmentMetadata::new(segment))).collect(),
            properties,
            deleted: false,
        }
    }
}

impl<'a> SegmentMetadata<'a> {
    fn new(segment: &'a Segment) -> Self {
        let active = segment.is_active();
        SegmentMetadata {
            segment_id: segment.id,
            hash_range: segment.range.into(),
            state: state_name(segment),
            parent_ids: &segment.parents,
            child_ids: &segment.children,
            created_at_epoch: segment.created_at_epoch,
            sealed_at_epoch: signed(segment.sealed_at_epoch),
            created_at_ms: segment.created_at_ms,
            sealed_at_ms: signed(segment.sealed_at_ms),
            legacy_topic_name: segment.legacy_topic.as_deref(),
            entry_bucket_splits: segment.buckets.starts(),
            sealed: !active,
            active,
            root: segment.parents.is_empty(),
            leaf: segment.children.is_empty(),
            legacy: segment.is_legacy(),
        }
    }
}

/// `ACTIVE` or `SEALED`.
pub(crate) fn state_name(segment: &Segment) -> &'static str {
    if segment.is_active() { "ACTIVE" } else { "SEALED" }
}

fn signed(value: Option<u64>) -> i64 {
    value.and_then(|v| i64::try_from(v).ok()).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;
    use stc_proto::layout::SegmentState;

    use super::*;

    /// Reads a recorded answer back into a layout, so that printing it again can be compared.
    fn parse(recorded: &Json) -> (Layout, BTreeMap<String, String>) {
        let number = |v: &Json| v.as_u64().unwrap();
        let ids = |v: &Json| v.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect::<Vec<_>>();
        let segments = recorded["segments"].as_object().unwrap().values().map(|s| Segment {
            id: number(&s["segmentId"]),
            range: serde_json::from_value(s["hashRange"].clone()).unwrap(),
            state: if s["state"] == "ACTIVE" { SegmentState::Active } else { SegmentState::Sealed },
            parents: ids(&s["parentIds"]),
            children: ids(&s["childIds"]),
            created_at_epoch: number(&s["createdAtEpoch"]),
            sealed_at_epoch: s["sealedAtEpoch"].as_u64(),
            created_at_ms: number(&s["createdAtMs"]),
            sealed_at_ms: s["sealedAtMs"].as_u64(),
            legacy_topic: s["legacyTopicName"].as_str().map(str::to_owned),
            buckets: serde_json::from_value(s["entryBucketSplits"].clone()).unwrap(),
        });
        let layout = Layout::new(number(&recorded["epoch"]), segments).unwrap();
        (layout, serde_json::from_value(recorded["properties"].clone()).unwrap())
    }

    #[test]
    fn layouts_are_printed_as_the_recorded_broker_printed_them() {
        let rows = include_str!("../../tests/data/admin-5.0.1.jsonl");
        let mut compared = 0;
        for row in rows.lines() {
            let row: Json = serde_json::from_str(row).unwrap();
            let reply = row["reply"].as_str().unwrap();
            if row["method"] != "GET" || !reply.starts_with(r#"{"epoch":"#) {
                continue;
            }
            let (layout, properties) = parse(&serde_json::from_str(reply).unwrap());
            let printed = serde_json::to_string(&TopicMetadata::new(&layout, &properties)).unwrap();
            assert_eq!(printed, reply, "{}", row["path"]);
            compared += 1;
        }
        assert!(compared >= 8, "only {compared} recorded layouts");
    }
}
