//! The layout that the admin REST reports, as a [`Layout`].

use std::collections::BTreeMap;

use serde::Deserialize;
use stc_proto::layout::{BucketSplits, SegmentState};
use stc_proto::{HashRange, Layout, Segment};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    epoch: u64,
    segments: BTreeMap<String, Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    segment_id: u64,
    hash_range: Range,
    state: String,
    parent_ids: Vec<u64>,
    child_ids: Vec<u64>,
    created_at_epoch: u64,
    sealed_at_epoch: i64,
    #[serde(default)]
    created_at_ms: u64,
    #[serde(default)]
    sealed_at_ms: i64,
    #[serde(default)]
    legacy_topic_name: Option<String>,
    #[serde(default)]
    entry_bucket_splits: Option<Vec<u32>>,
}

#[derive(Deserialize)]
struct Range {
    start: u16,
    end: u16,
}

/// Reads the answer of `GET /admin/v2/scalable/{tenant}/{namespace}/{topic}`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(body: &str) -> Result<Layout, String> {
    let document: Document = serde_json::from_str(body).map_err(|e| e.to_string())?;
    let segments = document.segments.into_values().map(Row::segment).collect::<Result<Vec<_>, _>>()?;
    Layout::new(document.epoch, segments).map_err(|e| e.to_string())
}

impl Row {
    fn segment(self) -> Result<Segment, String> {
        let wrong = |what: &str| format!("segment {}: {what}", self.segment_id);
        let buckets = self.entry_bucket_splits.clone().unwrap_or_default();
        Ok(Segment {
            id: self.segment_id,
            range: HashRange::new(self.hash_range.start, self.hash_range.end)
                .ok_or_else(|| wrong("its range ends before it starts"))?,
            state: match self.state.as_str() {
                "ACTIVE" => SegmentState::Active,
                "SEALED" => SegmentState::Sealed,
                _ => return Err(wrong("unknown state")),
            },
            buckets: BucketSplits::try_from(buckets).map_err(wrong)?,
            parents: self.parent_ids,
            children: self.child_ids,
            created_at_epoch: self.created_at_epoch,
            sealed_at_epoch: u64::try_from(self.sealed_at_epoch).ok(),
            created_at_ms: self.created_at_ms,
            sealed_at_ms: u64::try_from(self.sealed_at_ms).ok(),
            legacy_topic: self.legacy_topic_name,
        })
    }
}
