//! A scalable topic's layout: the DAG of its segments (terminology, wire-protocol §2).
//!
//! A [`Layout`] is always valid: its active segments tile the ring (or all wrap classic topics), and its lineage is
//! a DAG that both ends agree on. Split, merge, rebucket and prune are pure functions that return the next layout,
//! one epoch later.

mod buckets;
mod change;
mod dag;
mod range;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

pub use buckets::{BucketSplits, MAX_BUCKETS};
pub use change::ChangeError;
pub use range::HashRange;

use crate::KeyHash;

/// Whether a segment takes writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentState {
    /// Takes the writes of its range.
    Active,
    /// Closed by a layout change; readable until drained.
    Sealed,
}

/// One segment of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Unique within the topic, ascending in order of creation.
    pub id: u64,
    /// The inclusive range of segment hashes that it owns.
    pub range: HashRange,
    /// Whether it takes writes.
    pub state: SegmentState,
    /// The segments that it came from, as far as they are still in the layout.
    pub parents: Vec<u64>,
    /// The segments that came from it.
    pub children: Vec<u64>,
    /// The epoch of the layout that it first appeared in.
    pub created_at_epoch: u64,
    /// The epoch of the layout that sealed it.
    pub sealed_at_epoch: Option<u64>,
    /// Wall clock of its creation, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Wall clock of its sealing, in milliseconds since 1970.
    pub sealed_at_ms: Option<u64>,
    /// The classic topic that it wraps, in a synthetic layout (compatibility §1).
    pub legacy_topic: Option<String>,
    /// Its entry buckets.
    pub buckets: BucketSplits,
}

impl Segment {
    /// Whether it takes writes.
    pub fn is_active(&self) -> bool {
        self.state == SegmentState::Active
    }

    /// Whether it wraps a classic topic.
    pub fn is_legacy(&self) -> bool {
        self.legacy_topic.is_some()
    }
}

/// Why a set of segments is not a layout.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// There is no classic topic to wrap, or more than the ring has hashes.
    #[error("{0} classic topics cannot be one scalable topic")]
    Topics(usize),
    /// There is no active segment.
    #[error("no active segment")]
    NoActive,
    /// Two segments have one id.
    #[error("segment {0} is listed twice")]
    Duplicate(u64),
    /// Some hash has no active segment, or two.
    #[error(
        "the active segments do not tile the ring: {expected:04x} should start segment {segment}, which starts at {found:04x}"
    )]
    NotTiled {
        /// The first hash that is wrong.
        expected: u32,
        /// The segment that starts somewhere else.
        segment: u64,
        /// Where it starts.
        found: u16,
    },
    /// The ring ends before 0xFFFF.
    #[error("the active segments end at {0:04x} instead of ffff")]
    Short(u16),
    /// A parent or child link that the other end does not have.
    #[error("segment {segment} names {other} as its {relation}, which does not agree")]
    Lineage {
        /// The segment with the link.
        segment: u64,
        /// The other end.
        other: u64,
        /// `parent` or `child`.
        relation: &'static str,
    },
    /// The lineage has a cycle.
    #[error("the lineage of segment {0} has a cycle")]
    Cycle(u64),
    /// A field of the wire form is out of its range.
    #[error("segment {segment}: {reason}")]
    Field {
        /// The segment.
        segment: u64,
        /// What is wrong.
        reason: &'static str,
    },
}

/// A valid layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    epoch: u64,
    next_segment_id: u64,
    segments: BTreeMap<u64, Segment>,
}

impl Layout {
    /// The first layout of a topic, epoch 0: `n` active segments that tile the ring, with `buckets` entry buckets
    /// in all, at least one each. `n` is clamped to `1..=65536`.
    pub fn initial(n: u32, buckets: u32, now_ms: u64) -> Self {
        let ranges = HashRange::tiles(n);
        let each = BucketSplits::equal(buckets / ranges.len() as u32);
        let segments = ranges
            .into_iter()
            .zip(0..)
            .map(|(range, id)| (id, Segment::new(id, range, 0, now_ms, each.clone())))
            .collect::<BTreeMap<_, _>>();
        Layout { epoch: 0, next_segment_id: segments.len() as u64, segments }
    }

    /// A synthetic layout, epoch 0, over classic topics: one for a plain topic, one for each partition of a
    /// partitioned one, in order (compatibility §1). It is made anew for each lookup, so `now_ms` is the lookup's.
    pub fn synthetic(topics: impl IntoIterator<Item = String>, now_ms: u64) -> Result<Self, LayoutError> {
        let topics: Vec<String> = topics.into_iter().collect();
        let segments =
            ranges_for(&topics)?.into_iter().zip(topics).zip(0..).map(|((range, topic), id)| Segment {
                legacy_topic: Some(topic),
                ..Segment::new(id, range, 0, now_ms, BucketSplits::default())
            });
        Layout::new(0, segments)
    }

    /// The first layout of a topic that was migrated from these classic topics, epoch 0: each of them as a sealed
    /// segment, and as many active segments with `buckets` entry buckets in all, each a child of every sealed one
    /// (compatibility §1).
    pub fn migrated(
        topics: impl IntoIterator<Item = String>,
        buckets: u32,
        now_ms: u64,
    ) -> Result<Self, LayoutError> {
        let topics: Vec<String> = topics.into_iter().collect();
        let ranges = ranges_for(&topics)?;
        let n = topics.len() as u64;
        let each = BucketSplits::equal(buckets / ranges.len() as u32);
        let sealed = (0..).zip(topics).map(|(id, topic)| Segment {
            state: SegmentState::Sealed,
            children: (n..2 * n).collect(),
            sealed_at_epoch: Some(0),
            sealed_at_ms: Some(now_ms),
            legacy_topic: Some(topic),
            // A classic topic holds keys of every hash.
            ..Segment::new(id, HashRange::FULL, 0, now_ms, BucketSplits::default())
        });
        let active = (n..).zip(ranges).map(|(id, range)| Segment {
            parents: (0..n).collect(),
            ..Segment::new(id, range, 0, now_ms, each.clone())
        });
        Layout::new(0, sealed.chain(active))
    }

    /// A layout of these segments, if they are valid together.
    pub fn new(epoch: u64, segments: impl IntoIterator<Item = Segment>) -> Result<Self, LayoutError> {
        let mut by_id = BTreeMap::new();
        for segment in segments {
            let id = segment.id;
            if by_id.insert(id, segment).is_some() {
                return Err(LayoutError::Duplicate(id));
            }
        }
        let next_segment_id = by_id.keys().next_back().map_or(0, |id| id.saturating_add(1));
        let layout = Layout { epoch, next_segment_id, segments: by_id };
        layout.validate()?;
        Ok(layout)
    }

    /// The version of the layout.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The id that the next segment gets.
    pub fn next_segment_id(&self) -> u64 {
        self.next_segment_id
    }

    /// All segments in the order of their ids.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.values()
    }

    /// The active segments in the order of their ids.
    pub fn active(&self) -> impl Iterator<Item = &Segment> {
        self.segments().filter(|s| s.is_active())
    }

    /// The segment with this id.
    pub fn segment(&self, id: u64) -> Option<&Segment> {
        self.segments.get(&id)
    }

    /// Whether every active segment wraps a classic topic: then keys go by mod-N (client-behavior §2).
    pub fn is_legacy(&self) -> bool {
        self.active().all(Segment::is_legacy)
    }

    /// The active segment of a key (client-behavior §2, rules 1 and 3).
    pub fn route(&self, key: KeyHash) -> Option<&Segment> {
        if self.is_legacy() {
            let n = self.active().count() as u32;
            return self.active().nth(key.legacy(n) as usize);
        }
        self.active().find(|s| s.range.contains(key.segment()))
    }

    fn validate(&self) -> Result<(), LayoutError> {
        let mut active: Vec<&Segment> = self.active().collect();
        active.sort_by_key(|s| s.range);
        let last = active.last().ok_or(LayoutError::NoActive)?;
        // Ranges mean nothing to the mod-N routing of an all-legacy layout.
        if !self.is_legacy() {
            let mut expected = 0u32;
            for segment in &active {
                let found = segment.range.start();
                if u32::from(found) != expected {
                    return Err(LayoutError::NotTiled { expected, segment: segment.id, found });
                }
                expected = u32::from(segment.range.end()) + 1;
            }
            if last.range.end() != u16::MAX {
                return Err(LayoutError::Short(last.range.end()));
            }
        }
        self.validate_lineage()
    }

    fn validate_lineage(&self) -> Result<(), LayoutError> {
        // Links as (parent, child), as the children see them and as the parents do.
        let above: BTreeSet<_> =
            self.segments().flat_map(|s| s.parents.iter().map(|parent| (*parent, s.id))).collect();
        let below: BTreeSet<_> =
            self.segments().flat_map(|s| s.children.iter().map(|child| (s.id, *child))).collect();
        if let Some(&(parent, child)) = above.difference(&below).next() {
            return Err(LayoutError::Lineage { segment: child, other: parent, relation: "parent" });
        }
        if let Some(&(parent, child)) = below.difference(&above).next() {
            return Err(LayoutError::Lineage { segment: parent, other: child, relation: "child" });
        }
        // Take away segments whose parents are all gone; what is left is in a cycle or below one.
        let mut parents_left = BTreeMap::<u64, usize>::new();
        for (_, child) in &above {
            *parents_left.entry(*child).or_default() += 1;
        }
        let mut gone: Vec<u64> =
            self.segments.keys().filter(|id| !parents_left.contains_key(id)).copied().collect();
        while let Some(id) = gone.pop() {
            for (_, child) in above.range((id, 0)..=(id, u64::MAX)) {
                if let Some(left) = parents_left.get_mut(child) {
                    *left -= 1;
                    if *left == 0 {
                        parents_left.remove(child);
                        gone.push(*child);
                    }
                }
            }
        }
        parents_left.keys().next().map_or(Ok(()), |stuck| Err(LayoutError::Cycle(*stuck)))
    }
}

/// The ranges of as many segments as there are topics.
fn ranges_for(topics: &[String]) -> Result<Vec<HashRange>, LayoutError> {
    match u32::try_from(topics.len()) {
        Ok(n @ 1..=65536) => Ok(HashRange::tiles(n)),
        _ => Err(LayoutError::Topics(topics.len())),
    }
}

impl Segment {
    fn new(id: u64, range: HashRange, epoch: u64, now_ms: u64, buckets: BucketSplits) -> Self {
        Segment {
            id,
            range,
            state: SegmentState::Active,
            parents: Vec::new(),
            children: Vec::new(),
            created_at_epoch: epoch,
            sealed_at_epoch: None,
            created_at_ms: now_ms,
            sealed_at_ms: None,
            legacy_topic: None,
            buckets,
        }
    }
}
