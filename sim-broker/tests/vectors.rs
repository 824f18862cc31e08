//! The controller's rule against the golden vectors (`vectors/v1/assignments.json`), which are made by another
//! implementation of it and checked against the classes of Pulsar 5.0.1.
// A helper of a test may fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Map, Value, json};
use sim_broker::core::controller::assignment::{GroupKind, assign, assignable};
use stc_proto::{Layout, fields::from_json, pulsar::ScalableTopicDag};

fn cases(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../vectors/v1/{name}.json"));
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    file["cases"].as_array().unwrap().clone()
}

#[test]
fn assignments() {
    let cases = cases("assignments");
    assert!(cases.len() >= 300, "{}", cases.len());
    for case in cases {
        let dag: ScalableTopicDag = from_json("ScalableTopicDAG", &case["layout"]).unwrap();
        let layout = Layout::from_dag(&dag).unwrap();
        let stream = case["consumer_type"] == "STREAM";
        let kind = if stream { GroupKind::Stream } else { GroupKind::Checkpoint };
        let drained: BTreeSet<u64> =
            case["drained"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        let segments = assignable(&layout, &drained, stream);
        let ids: Vec<u64> = segments.iter().map(|segment| segment.id).collect();
        assert_eq!(json!(ids), case["assignable"], "{}", case["name"]);

        let consumers: Vec<&str> =
            case["consumers"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let ours: Map<String, Value> = assign(&segments, &consumers, kind)
            .into_iter()
            .map(|(consumer, shares)| {
                let shares = shares.iter().map(|share| {
                    let ranges = share.bucket_ranges.iter();
                    let ranges = ranges.map(|r| json!({"start": r.start(), "end": r.end()}));
                    json!({"segment_id": share.segment, "bucket_ranges": ranges.collect::<Vec<_>>()})
                });
                (consumer, shares.collect())
            })
            .collect();
        let theirs: Map<String, Value> = case["assignments"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(consumer, list)| {
                let list = list.as_array().unwrap().iter().map(|segment| {
                    json!({"segment_id": segment["segment_id"], "bucket_ranges": segment["bucket_ranges"]})
                });
                (consumer.clone(), list.collect())
            })
            .collect();
        assert_eq!(ours, theirs, "{}", case["name"]);
    }
}
