//! Our hashing, names and layouts against the answers of Pulsar's own classes (`data/README.md`).
// A helper of a test may fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{collections::BTreeMap, fs, sync::LazyLock};

use serde_json::{Value, json};
use stc_proto::{
    HashRange, KeyHash, Layout, Segment, SegmentName, TopicName,
    fields::hex,
    hash::topic_set_hash,
    layout::{BucketSplits, ChangeError, MAX_BUCKETS},
};

mod support;

static VECTORS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(&fs::read_to_string(support::path("data/pulsar-vectors.json")).unwrap()).unwrap()
});

/// The vectors of one kind: at least as many as there were when this test was written.
fn vectors(kind: &str, at_least: usize) -> &'static [Value] {
    let vectors = VECTORS[kind].as_array().expect(kind);
    assert!(vectors.len() >= at_least, "only {} {kind}", vectors.len());
    vectors
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn number<T: TryFrom<u64>>(value: &Value) -> T {
    value.as_u64().and_then(|n| n.try_into().ok()).unwrap_or_else(|| panic!("a number: {value}"))
}

#[test]
fn hashing() {
    for vector in vectors("hashing", 300) {
        let key = text(&vector["key"]);
        let hash = KeyHash::of(key);
        assert_eq!(hex(key.as_bytes()), vector["utf8"]);
        assert_eq!(hash.0, number::<u32>(&vector["raw"]), "{key:?}");
        assert_eq!(hash.segment(), number::<u16>(&vector["segment_hash"]), "{key:?}");
        assert_eq!(hash.bucket(), number::<u16>(&vector["entry_bucket_hash"]), "{key:?}");
        assert_eq!(hash.0 & 0x7FFF_FFFF, number::<u32>(&vector["masked"]), "{key:?}");
        for (n, choice) in vector["legacy_choice"].as_object().unwrap() {
            assert_eq!(hash.legacy(n.parse().unwrap()), number::<u32>(choice), "{key:?} of {n}");
        }
    }
}

/// The golden file is made by code of its own.
#[test]
fn hashes_of_topic_sets() {
    let file = support::path("../../vectors/v1/namespace-hash.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 20, "only {} cases", cases.len());
    for case in cases {
        let topics = case["topics"].as_array().unwrap().iter().map(text);
        assert_eq!(topic_set_hash(topics), case["current_hash"], "{case}");
    }
}

#[test]
fn names() {
    for vector in vectors("names", 84) {
        let input = text(&vector["input"]);
        let name = TopicName::parse(input);
        assert_eq!(json!(name.is_ok()), vector["accepted"], "{input:?}: {name:?}");
        let Ok(name) = name else { continue };
        assert_eq!(name.as_str(), vector["canonical"], "{input:?}");
        assert_eq!(name.domain().as_str(), vector["domain"], "{input:?}");
        assert_eq!(name.tenant(), vector["tenant"], "{input:?}");
        assert_eq!(name.namespace_local(), vector["namespace"], "{input:?}");
        assert_eq!(TopicName::parse(name.as_str()).as_ref(), Ok(&name));
        if let Some(segment) = vector.get("segment") {
            // Pulsar also reads a partition into a segment's name when its topic is called like one. We do not:
            // segments have no partitions.
            same_segment(&SegmentName::of(&name).unwrap(), segment, &vector["local"]);
            continue;
        }
        assert_eq!(name.local(), vector["local"], "{input:?}");
        let partition = name.partition_index().map_or(-1, i64::from);
        assert_eq!(json!(partition), vector["partition"], "{input:?}");
        assert_eq!(name.partitioned().as_str(), vector["partitioned_topic"], "{input:?}");
    }
}

fn same_segment(segment: &SegmentName, vector: &Value, local: &Value) {
    assert_eq!(segment.topic.as_str(), vector["parent"]);
    assert_eq!(segment.topic.local(), *local);
    assert_eq!(segment.range.start(), number::<u16>(&vector["start"]));
    assert_eq!(segment.range.end(), number::<u16>(&vector["end"]));
    assert_eq!(segment.id, number::<u64>(&vector["id"]));
    assert!(segment.to_string().ends_with(&format!("/{}", text(&vector["descriptor"]))));
}

#[test]
fn segment_names() {
    for vector in vectors("segment_names", 11) {
        let parent = TopicName::parse(text(&vector["parent"])).unwrap();
        let range = HashRange::new(number(&vector["start"]), number(&vector["end"])).unwrap();
        let name = SegmentName::new(parent, range, number(&vector["id"])).ok();
        assert_eq!(json!(name.as_ref().map(SegmentName::to_string)), vector["name"]);
        let Some(name) = name else { continue };
        assert_eq!(SegmentName::of(&name.to_topic_name()), Ok(name));
    }
}

#[test]
fn ranges() {
    for vector in vectors("ranges", 32) {
        let bound = |key: &str| vector[key].as_i64().and_then(|n| u16::try_from(n).ok());
        let range = bound("start").zip(bound("end")).and_then(|(start, end)| HashRange::new(start, end));
        assert_eq!(json!(range.is_some()), vector["accepted"], "{vector}");
        let Some(range) = range else { continue };
        assert_eq!(range.to_string(), vector["hex"]);
        assert_eq!(range.width(), number::<u32>(&vector["size"]));
        let halves = range.halves().map(|(low, high)| [low.start(), low.end(), high.start(), high.end()]);
        assert_eq!(json!(halves), vector["split"]);
    }
}

#[test]
fn entry_buckets() {
    for vector in vectors("entry_buckets", 13) {
        let splits = BucketSplits::equal(number(&vector["count"]));
        assert_eq!(json!(splits.starts()), vector["splits"]);
        let ranges: Vec<_> = splits.ranges().iter().map(|r| [r.start(), r.end()]).collect();
        assert_eq!(json!(ranges), vector["ranges"]);
    }
}

#[test]
fn layouts() {
    let mut steps = BTreeMap::<(String, bool), usize>::new();
    for vector in vectors("layouts", 31) {
        let name = text(&vector["name"]);
        let mut layout = initial(&vector["initial"]);
        assert_eq!(admin_json(&layout), vector["layout"], "{name}");
        for (i, step) in vector["steps"].as_array().unwrap().iter().enumerate() {
            let next = change(&layout, step);
            *steps.entry((text(&step["op"]).to_owned(), next.is_ok())).or_default() += 1;
            assert_eq!(json!(next.is_ok()), step["accepted"], "{name} step {i}: {next:?}");
            let Ok(next) = next else { continue };
            assert_eq!(admin_json(&next), step["after"], "{name} step {i}");
            assert_eq!(Layout::from_dag(&next.to_dag()).unwrap().to_dag(), next.to_dag(), "{name} step {i}");
            layout = next;
        }
        for (key, segment) in vector["routes"].as_object().unwrap() {
            assert_eq!(layout.route(KeyHash::of(key)).map(|s| s.id), segment.as_u64(), "{name}: {key:?}");
        }
    }
    // Each operation was accepted and refused somewhere.
    assert_eq!(steps.len(), 8, "{steps:?}");
}

fn initial(vector: &Value) -> Layout {
    let (n, buckets) = (number::<u32>(&vector["segments"]), number(&vector["bucket_budget"]));
    match vector.get("migrated_from").map(text) {
        None => Layout::initial(n, buckets, 1000),
        Some(topic) => {
            let topic = TopicName::parse(topic).unwrap();
            let partitions: Vec<_> = (0..n).map(|i| topic.partition(i).to_string()).collect();
            let topics = if n == 0 { vec![topic.to_string()] } else { partitions };
            Layout::migrated(topics, buckets, 1000).unwrap()
        }
    }
}

fn change(layout: &Layout, step: &Value) -> Result<Layout, ChangeError> {
    let (id, now) = (number(&step["segment"]), number(&step["at_ms"]));
    match text(&step["op"]) {
        "split" => layout.split(id, now),
        "merge" => layout.merge(id, number(&step["with"]), now),
        "rebucket" => layout.rebucket(id, number(&step["buckets"]), now),
        "prune" => layout.prune(id),
        op => panic!("unknown operation {op}"),
    }
}

/// A layout as Pulsar's admin API shows it.
fn admin_json(layout: &Layout) -> Value {
    let segments: serde_json::Map<_, _> =
        layout.segments().map(|segment| (segment.id.to_string(), segment_json(segment))).collect();
    json!({
        "epoch": layout.epoch(), "nextSegmentId": layout.next_segment_id(), "segments": segments,
        "properties": {}, "deleted": false,
    })
}

fn segment_json(segment: &Segment) -> Value {
    let active = segment.is_active();
    let mut json = json!({
        "segmentId": segment.id,
        "hashRange": { "start": segment.range.start(), "end": segment.range.end() },
        "state": if active { "ACTIVE" } else { "SEALED" },
        "parentIds": segment.parents,
        "childIds": segment.children,
        "createdAtEpoch": segment.created_at_epoch,
        "sealedAtEpoch": segment.sealed_at_epoch.map_or(json!(-1), |epoch| json!(epoch)),
        "createdAtMs": segment.created_at_ms,
        "sealedAtMs": segment.sealed_at_ms.map_or(json!(-1), |ms| json!(ms)),
        "entryBucketSplits": segment.buckets.starts(),
        "sealed": !active,
        "active": active,
        "root": segment.parents.is_empty(),
        "leaf": segment.children.is_empty(),
        "legacy": segment.is_legacy(),
    });
    if let Some(topic) = &segment.legacy_topic {
        json["legacyTopicName"] = json!(topic);
    }
    assert!(segment.buckets.count() <= MAX_BUCKETS);
    json
}
