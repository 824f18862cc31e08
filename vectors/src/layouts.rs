//! Layouts with the field names of the wire, and the histories that the other files take their layouts from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::{
    Layout, Segment, TopicName,
    layout::{ChangeError, LayoutError},
};

use crate::{SEED, corpus::Random};

/// A `ScalableTopicDAG` without broker addresses. Fields that are absent on the wire are absent here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dag {
    /// The version of the layout.
    pub epoch: u64,
    /// The segments, in any order.
    pub segments: Vec<SegmentInfo>,
}

/// A `SegmentInfoProto`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct SegmentInfo {
    pub segment_id: u64,
    /// First hash of the inclusive range.
    pub hash_start: u16,
    /// Last hash of the inclusive range.
    pub hash_end: u16,
    pub state: State,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parent_ids: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_ids: Vec<u64>,
    pub created_at_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_at_epoch: Option<u64>,
    /// Milliseconds since 1970.
    pub created_at_ms: u64,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_at_ms: Option<u64>,
    /// The classic topic that a legacy segment wraps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legacy_topic_name: Option<String>,
    /// The start hashes of buckets 1 to N-1; absent for one bucket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entry_bucket_splits: Vec<u16>,
}

/// A segment's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum State {
    Active,
    Sealed,
}

impl From<&Layout> for Dag {
    fn from(layout: &Layout) -> Self {
        Dag { epoch: layout.epoch(), segments: layout.segments().map(SegmentInfo::from).collect() }
    }
}

impl From<&Segment> for SegmentInfo {
    fn from(segment: &Segment) -> Self {
        SegmentInfo {
            segment_id: segment.id,
            hash_start: segment.range.start(),
            hash_end: segment.range.end(),
            state: if segment.is_active() { State::Active } else { State::Sealed },
            parent_ids: segment.parents.clone(),
            child_ids: segment.children.clone(),
            created_at_epoch: segment.created_at_epoch,
            sealed_at_epoch: segment.sealed_at_epoch,
            created_at_ms: segment.created_at_ms,
            sealed_at_ms: segment.sealed_at_ms,
            legacy_topic_name: segment.legacy_topic.clone(),
            entry_bucket_splits: segment.buckets.starts().to_vec(),
        }
    }
}

/// What happens to a layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// A new topic: active segments of nominally equal width, which share a budget of entry buckets.
    Create {
        /// How many segments.
        segments: u32,
        /// How many buckets in all; every segment gets the floor of its share, at least one.
        bucket_budget: u32,
    },
    /// The layout of a classic topic that is addressed as a scalable one.
    Synthetic {
        /// The topic, or its partitions in order.
        topics: Vec<String>,
    },
    /// The first layout of a topic that was migrated from classic topics.
    Migrate {
        /// The topic, or its partitions in order.
        topics: Vec<String>,
        /// As for a new topic.
        bucket_budget: u32,
    },
    /// Splits a segment at the middle of its range.
    Split {
        /// The segment.
        segment_id: u64,
    },
    /// Merges two adjacent segments, given in either order.
    Merge {
        /// One segment.
        segment_id: u64,
        /// The other.
        with: u64,
    },
    /// Replaces a segment by one of the same range with other entry buckets.
    Rebucket {
        /// The segment.
        segment_id: u64,
        /// How many buckets of equal width.
        buckets: u64,
    },
    /// Takes a drained sealed segment out.
    Prune {
        /// The segment.
        segment_id: u64,
    },
}

/// One step of a history: the layout before it (none before the first step), what happens, and what comes of it.
pub(crate) struct Step {
    pub(crate) history: String,
    pub(crate) at_ms: u64,
    pub(crate) before: Option<Layout>,
    pub(crate) change: Change,
    pub(crate) result: Result<Layout, ChangeError>,
}

/// A first layout and what happens to it.
pub(crate) struct History {
    pub(crate) name: String,
    first: Change,
    changes: Vec<Change>,
}

impl History {
    fn new(name: impl Into<String>, segments: u32, bucket_budget: u32) -> Self {
        History { name: name.into(), first: Change::Create { segments, bucket_budget }, changes: Vec::new() }
    }

    fn split(mut self, segment_id: u64) -> Self {
        self.changes.push(Change::Split { segment_id });
        self
    }

    fn merge(mut self, segment_id: u64, with: u64) -> Self {
        self.changes.push(Change::Merge { segment_id, with });
        self
    }

    fn rebucket(mut self, segment_id: u64, buckets: u64) -> Self {
        self.changes.push(Change::Rebucket { segment_id, buckets });
        self
    }

    fn prune(mut self, segment_id: u64) -> Self {
        self.changes.push(Change::Prune { segment_id });
        self
    }

    /// Plays the history. The topic is created at 1000 ms, each change comes 1000 ms later; a refused change leaves
    /// the layout as it was.
    pub(crate) fn play(&self) -> Result<Vec<Step>, LayoutError> {
        let first = match &self.first {
            Change::Synthetic { topics } => Layout::synthetic(topics.iter().cloned(), 1000)?,
            Change::Migrate { topics, bucket_budget } => {
                Layout::migrated(topics.iter().cloned(), *bucket_budget, 1000)?
            }
            Change::Create { segments, bucket_budget } => Layout::initial(*segments, *bucket_budget, 1000),
            _ => Layout::initial(1, 1, 1000),
        };
        let step = |at_ms, before, change: &Change, result| Step {
            history: self.name.clone(),
            at_ms,
            before,
            change: change.clone(),
            result,
        };
        let mut layout = first.clone();
        let mut steps = vec![step(1000, None, &self.first, Ok(first))];
        for (change, at_ms) in self.changes.iter().zip((2000..).step_by(1000)) {
            let result = apply(&layout, change, at_ms);
            let next = result.as_ref().ok().cloned();
            steps.push(step(at_ms, Some(layout.clone()), change, result));
            layout = next.unwrap_or(layout);
        }
        Ok(steps)
    }

    /// The layout at the end.
    pub(crate) fn last(&self) -> Result<Option<Layout>, LayoutError> {
        Ok(self.play()?.into_iter().rev().find_map(|step| step.result.ok()))
    }
}

fn apply(layout: &Layout, change: &Change, at_ms: u64) -> Result<Layout, ChangeError> {
    match *change {
        Change::Split { segment_id } => layout.split(segment_id, at_ms),
        Change::Merge { segment_id, with } => layout.merge(segment_id, with, at_ms),
        Change::Rebucket { segment_id, buckets } => layout.rebucket(segment_id, buckets, at_ms),
        Change::Prune { segment_id } => layout.prune(segment_id),
        // No history has these behind its first step.
        Change::Create { .. } | Change::Synthetic { .. } | Change::Migrate { .. } => Ok(layout.clone()),
    }
}

/// `n` partitions of the classic topic, or the topic itself for `n` = 0.
fn partitions(topic: &str, n: u32) -> Vec<String> {
    match TopicName::parse(topic) {
        Ok(name) if n > 0 => (0..n).map(|i| name.partition(i).to_string()).collect(),
        _ => vec![topic.to_owned()],
    }
}

/// All histories of version 1.
pub(crate) fn histories() -> Vec<History> {
    const CLASSIC: &str = "persistent://public/default/orders";
    let mut all: Vec<History> =
        [1, 2, 3, 4, 5, 6, 7, 16].map(|n| History::new(format!("initial-{n}"), n, 4)).into_iter().collect();
    all.extend([
        History::new("initial-3-budget-16", 3, 16),
        History::new("initial-1-budget-1", 1, 1),
        History::new("initial-2-budget-64", 2, 64),
        History::new("split-and-merge-back", 1, 4).split(0).merge(1, 2),
        History::new("two-splits-one-merge", 1, 4).split(0).split(1).merge(3, 4),
        History::new("split-both-children", 1, 4).split(0).split(1).split(2),
        History::new("merge-in-reverse-order", 2, 4).merge(1, 0),
        History::new("merge-of-unequal-ages", 1, 4).split(0).split(2).merge(1, 3).merge(5, 4),
        History::new("merge-sums-buckets", 2, 8).rebucket(0, 6).merge(2, 1),
        History::new("merge-caps-buckets", 2, 4).rebucket(0, 520).rebucket(1, 510).merge(2, 3),
        History::new("buckets-halve-to-one", 1, 4).split(0).split(1).split(3),
        History::new("odd-buckets-halve", 1, 7).split(0).split(2),
        History::new("rebucket", 1, 4).rebucket(0, 8).rebucket(1, 3).rebucket(2, 1).split(3),
        History::new("rebucket-one-of-three", 3, 12).rebucket(1, 2).rebucket(2, 8),
        History::new("rebucket-then-merge", 2, 8).rebucket(0, 2).merge(1, 2),
        History::new("split-of-a-third", 3, 4).split(1).split(4),
        History::new("prune", 1, 4).split(0).prune(0).split(1).merge(3, 4).prune(1).prune(3).prune(4),
        History::new("prune-a-middle-generation", 1, 4).split(0).merge(1, 2).prune(1).prune(0).prune(2),
        History::new("split-refusals", 1, 4).split(7).split(0).split(0).prune(0).split(0),
        History::new("merge-refusals", 3, 4)
            .merge(0, 2)
            .merge(0, 0)
            .merge(0, 9)
            .split(1)
            .merge(0, 1)
            .merge(1, 0),
        History::new("rebucket-refusals", 1, 4)
            .rebucket(0, 4)
            .rebucket(0, 0)
            .rebucket(0, 1025)
            .rebucket(9, 2)
            .rebucket(0, 1024)
            .split(1)
            .rebucket(0, 2),
        History::new("prune-refusals", 1, 4).prune(0).prune(5).split(0).prune(1).prune(2).prune(0).prune(0),
        // Down to one value on the lower edge: 17 splits, of which the last is refused.
        (0..17).fold(History::new("split-down-to-one-value", 1, 1), |history, depth| {
            history.split(if depth == 0 { 0 } else { 2 * depth - 1 })
        }),
    ]);
    for n in [0, 1, 2, 3, 5, 8] {
        let topics = partitions(CLASSIC, n);
        let first = Change::Synthetic { topics: topics.clone() };
        let changes = vec![Change::Split { segment_id: 0 }];
        all.push(History { name: format!("synthetic-{n}"), first, changes });
        let first = Change::Migrate { topics, bucket_budget: 4 };
        let id = u64::from(n.max(1));
        let changes = vec![Change::Split { segment_id: id }, Change::Prune { segment_id: 0 }];
        all.push(History { name: format!("migrated-{n}"), first, changes });
    }
    let mut random = Random::new(SEED);
    all.extend((0..12).map(|i| seeded(&mut random, i)));
    all
}

/// A history drawn at random; some of its changes are refused.
fn seeded(random: &mut Random, number: u32) -> History {
    let mut history =
        History::new(format!("seeded-{number}"), 1 + random.below(4) as u32, 1 + random.below(12) as u32);
    for _ in 0..7 {
        // Young segments are more often active.
        let last = history.last().ok().flatten().map_or(1, |layout| layout.next_segment_id());
        let mut id = || last.saturating_sub(1 + random.below(4).min(random.below(4)));
        let (a, b) = (id(), id());
        history = match random.below(8) {
            0..=2 => history.split(a),
            3 | 4 => history.merge(a, b),
            5 | 6 => {
                let buckets = 1 + random.below(9);
                history.rebucket(a, buckets)
            }
            _ => {
                let id = random.below(last);
                history.prune(id)
            }
        };
    }
    history
}
