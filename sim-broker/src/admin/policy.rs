//! Auto-scale policies. The simulator never scales by itself; it checks a policy as Pulsar does, keeps it, and shows it.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{params::kind, reply::Refusal};

/// The policy of a topic: Pulsar's defaults, with what the topic's own policy overrides.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Policy {
    enabled: bool,
    max_segments: i64,
    min_segments: i64,
    max_dag_depth: i64,
    split_cooldown_seconds: i64,
    merge_cooldown_seconds: i64,
    split_vs_rebucket_min_msg_rate_in_threshold: f64,
    rebucket_cooldown_seconds: i64,
    merge_window_seconds: i64,
    split_msg_rate_in_threshold: f64,
    split_bytes_rate_in_threshold: i64,
    split_msg_rate_out_threshold: f64,
    split_bytes_rate_out_threshold: i64,
    merge_msg_rate_in_threshold: f64,
    merge_bytes_rate_in_threshold: i64,
    merge_msg_rate_out_threshold: f64,
    merge_bytes_rate_out_threshold: i64,
}

impl Policy {
    /// The policy of a topic with this override.
    pub(super) fn with(overrides: Option<&Json>) -> Self {
        let int = |key: &str, default| overrides.and_then(|o| o[key].as_i64()).unwrap_or(default);
        let float = |key: &str, default| overrides.and_then(|o| o[key].as_f64()).unwrap_or(default);
        Policy {
            enabled: overrides.and_then(|o| o["enabled"].as_bool()).unwrap_or(false),
            max_segments: int("maxSegments", 64),
            min_segments: int("minSegments", 1),
            max_dag_depth: int("maxDagDepth", 10),
            split_cooldown_seconds: int("splitCooldownSeconds", 60),
            merge_cooldown_seconds: int("mergeCooldownSeconds", 300),
            split_vs_rebucket_min_msg_rate_in_threshold: float(
                "splitVsRebucketMinMsgRateInThreshold",
                1000.0,
            ),
            rebucket_cooldown_seconds: int("rebucketCooldownSeconds", 60),
            merge_window_seconds: int("mergeWindowSeconds", 300),
            split_msg_rate_in_threshold: float("splitMsgRateInThreshold", 10_000.0),
            split_bytes_rate_in_threshold: int("splitBytesRateInThreshold", 50_000_000),
            split_msg_rate_out_threshold: float("splitMsgRateOutThreshold", 50_000.0),
            split_bytes_rate_out_threshold: int("splitBytesRateOutThreshold", 250_000_000),
            merge_msg_rate_in_threshold: float("mergeMsgRateInThreshold", 1000.0),
            merge_bytes_rate_in_threshold: int("mergeBytesRateInThreshold", 5_000_000),
            merge_msg_rate_out_threshold: float("mergeMsgRateOutThreshold", 5000.0),
            merge_bytes_rate_out_threshold: int("mergeBytesRateOutThreshold", 25_000_000),
        }
    }
}

/// Keeps what of an override Pulsar knows, and refuses what makes no sense. Unknown keys are dropped, as there.
pub(super) fn check(given: Map<String, Json>) -> Result<Json, Refusal> {
    let known = serde_json::to_value(Policy::with(None)).unwrap_or_default();
    let mut kept = Map::new();
    for (key, value) in given {
        let fits = match known.get(&key) {
            None => continue,
            Some(Json::Bool(_)) => value.is_boolean(),
            Some(default) if default.is_i64() => value.is_i64(),
            Some(_) => value.is_number(),
        };
        if value.is_null() {
            continue;
        }
        if !fits {
            return Err(Refusal::bad_request(format!("{key} cannot be {}: {value}", kind(&value))));
        }
        kept.insert(key, value);
    }
    let kept = Json::Object(kept);
    let policy = Policy::with(Some(&kept));
    let invalid =
        |what: &str| Err(Refusal::precondition(format!("Invalid auto split/merge configuration: {what}")));
    if policy.min_segments < 1 {
        return invalid("minSegments must be >= 1");
    }
    if policy.max_segments < policy.min_segments {
        return invalid("maxSegments must be >= minSegments");
    }
    if policy.split_msg_rate_in_threshold <= policy.merge_msg_rate_in_threshold {
        return invalid("splitMsgRateInThreshold must be > mergeMsgRateInThreshold (hysteresis)");
    }
    Ok(kept)
}
