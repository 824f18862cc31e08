//! The client's copy of a topic's layout (wire-protocol §2).
//!
//! Not the validated layout of `stc-proto`, on purpose: that one describes what a broker may publish, while a client
//! has to live with what it gets. A layout that leaves hashes uncovered is taken (client-behavior §2 says what
//! happens to their messages); one on which routing would be ambiguous is refused.

use std::collections::BTreeMap;

use stc_proto::{
    HashRange, KeyHash, SegmentName, TopicName,
    layout::BucketSplits,
    name::Domain,
    pulsar::{ScalableTopicDag, SegmentInfoProto, SegmentState},
};

use super::deviant::{Deviance, Deviant};

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) id: u64,
    pub(crate) range: HashRange,
    pub(crate) active: bool,
    /// The classic topic that it wraps (compatibility §1).
    pub(crate) legacy: Option<String>,
    pub(crate) buckets: BucketSplits,
}

/// Why a pushed layout is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LayoutError {
    #[error("segment {segment}: {reason}")]
    Field { segment: u64, reason: &'static str },
    #[error("two different segments have the id {0}")]
    Conflict(u64),
    #[error("the active segments {0} and {1} overlap")]
    Overlap(u64, u64),
    #[error("it has no active segment")]
    NoActive,
}

/// A layout that routing can work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) epoch: u64,
    segments: BTreeMap<u64, Segment>,
}

impl Layout {
    /// Reads the wire form. A segment that is listed twice in the same words counts once.
    pub(crate) fn from_dag(dag: &ScalableTopicDag) -> Result<Self, LayoutError> {
        let mut segments: BTreeMap<u64, Segment> = BTreeMap::new();
        for info in &dag.segments {
            let segment = Segment::from_proto(info)?;
            if let Some(known) = segments.get(&segment.id) {
                if *known != segment {
                    return Err(LayoutError::Conflict(segment.id));
                }
            } else {
                segments.insert(segment.id, segment);
            }
        }
        let layout = Layout { epoch: dag.epoch, segments };
        if layout.active().next().is_none() {
            return Err(LayoutError::NoActive);
        }
        // Ranges mean nothing to the mod-N routing of an all-legacy layout.
        if !layout.is_legacy() {
            let mut active: Vec<&Segment> = layout.active().collect();
            active.sort_by_key(|s| s.range);
            for (a, b) in active.iter().zip(active.iter().skip(1)) {
                if b.range.start() <= a.range.end() {
                    return Err(LayoutError::Overlap(a.id, b.id));
                }
            }
        }
        Ok(layout)
    }

    /// Whether a segment has another range here than there, which no two layouts of one topic have.
    pub(crate) fn contradicts(&self, other: &Layout) -> bool {
        let differs = |one: &Segment| other.segment(one.id).is_some_and(|there| there.range != one.range);
        !self.is_legacy() && !other.is_legacy() && self.segments().any(differs)
    }

    /// All segments in the order of their ids.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.values()
    }

    /// The segments that take writes, in the order of their ids.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Segment> {
        self.segments().filter(|s| s.active)
    }

    pub(crate) fn segment(&self, id: u64) -> Option<&Segment> {
        self.segments.get(&id)
    }

    /// Whether every active segment wraps a classic topic: keys go mod N then.
    pub(crate) fn is_legacy(&self) -> bool {
        self.active().all(|s| s.legacy.is_some())
    }

    /// Whether some segment carries entry buckets: the broker knows them (key-shared §9).
    pub(crate) fn has_buckets(&self) -> bool {
        self.segments().any(|s| s.buckets.count() > 1)
    }

    /// How much of the ring no active segment covers, in hashes. Not 0 means that the broker made a mistake.
    pub(crate) fn uncovered(&self) -> u32 {
        if self.is_legacy() {
            0
        } else {
            65536u32.saturating_sub(self.active().map(|s| s.range.width()).sum())
        }
    }

    /// The active segment whose range holds a hash.
    pub(crate) fn covering(&self, hash: u16) -> Option<&Segment> {
        self.active().find(|s| s.range.contains(hash))
    }
}

impl Segment {
    fn from_proto(info: &SegmentInfoProto) -> Result<Self, LayoutError> {
        let error = |reason| LayoutError::Field { segment: info.segment_id, reason };
        let hash = |value: u32| u16::try_from(value).map_err(|_| error("a hash is beyond 65535"));
        Ok(Segment {
            id: info.segment_id,
            range: HashRange::new(hash(info.hash_start)?, hash(info.hash_end)?)
                .ok_or_else(|| error("its range ends before it starts"))?,
            active: match SegmentState::try_from(info.state) {
                Ok(SegmentState::Active) => true,
                Ok(SegmentState::Sealed) => false,
                Err(_) => return Err(error("its state is not known")),
            },
            legacy: info.legacy_topic_name.clone(),
            buckets: info.entry_bucket_splits.clone().try_into().map_err(error)?,
        })
    }

    /// The topic that holds the segment: its `segment://` name (wire-protocol §3), or the wrapped classic topic.
    pub(crate) fn topic(&self, topic: &TopicName, deviance: Deviance) -> String {
        if let Some(legacy) = &self.legacy {
            return legacy.clone();
        }
        let topic = topic.with_domain(Domain::Topic);
        if deviance.is(Deviant::DecimalDescriptor) {
            let base = topic.with_domain(Domain::Segment);
            return format!("{base}/{}-{}-{}", self.range.start(), self.range.end(), self.id);
        }
        SegmentName { topic, range: self.range, id: self.id }.to_string()
    }

    /// Whether both could hold messages of one key.
    pub(crate) fn shares_keys(&self, other: &Segment) -> bool {
        let overlap = self.range.start() <= other.range.end() && other.range.start() <= self.range.end();
        overlap || self.legacy.is_some() || other.legacy.is_some()
    }

    /// The bucket of a bucket hash, counted from 0 (key-shared §2).
    pub(crate) fn bucket(&self, hash: u16, deviance: Deviance) -> usize {
        if deviance.is(Deviant::EvenBuckets) {
            return BucketSplits::equal(self.buckets.count()).index_of(hash);
        }
        if deviance.is(Deviant::BoundaryBelow) {
            return self.buckets.index_of(hash.saturating_sub(1));
        }
        self.buckets.index_of(hash)
    }
}

/// The bucket hash of a key: the half that does not route segments.
pub(crate) fn bucket_hash(hash: KeyHash, deviance: Deviance) -> u16 {
    if deviance.is(Deviant::BucketFromHighHalf) { hash.segment() } else { hash.bucket() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A layout in the notation of the tests: `(id, start, end, active)`.
    pub(crate) fn dag(epoch: u64, segments: &[(u64, u32, u32, bool)]) -> ScalableTopicDag {
        ScalableTopicDag {
            epoch,
            segments: segments
                .iter()
                .map(|&(segment_id, hash_start, hash_end, active)| SegmentInfoProto {
                    segment_id,
                    hash_start,
                    hash_end,
                    state: if active { SegmentState::Active } else { SegmentState::Sealed } as i32,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        }
    }

    pub(crate) fn layout(epoch: u64, segments: &[(u64, u32, u32, bool)]) -> Layout {
        Layout::from_dag(&dag(epoch, segments)).unwrap()
    }

    #[test]
    fn a_segment_listed_twice_counts_once_unless_the_two_differ() {
        let twice = dag(1, &[(0, 0, 65535, true), (0, 0, 65535, true)]);
        assert_eq!(Layout::from_dag(&twice).unwrap().segments().count(), 1);
        let differ = dag(1, &[(0, 0, 65535, true), (0, 0, 65535, false)]);
        assert_eq!(Layout::from_dag(&differ), Err(LayoutError::Conflict(0)));
    }

    #[test]
    fn ambiguous_and_empty_layouts_are_refused_and_gaps_are_not() {
        let overlap = dag(1, &[(0, 0, 40000, true), (1, 32768, 65535, true)]);
        assert_eq!(Layout::from_dag(&overlap), Err(LayoutError::Overlap(0, 1)));
        assert_eq!(Layout::from_dag(&dag(1, &[(0, 0, 65535, false)])), Err(LayoutError::NoActive));
        let gap = layout(1, &[(0, 0, 0x7fff, true)]);
        assert_eq!(gap.uncovered(), 0x8000);
        assert!(gap.covering(0x8000).is_none());
        assert!(Layout::from_dag(&dag(1, &[(0, 5, 4, true)])).is_err());
        assert!(Layout::from_dag(&dag(1, &[(0, 0, 65536, true)])).is_err());
    }

    #[test]
    fn segment_topics_are_named_from_the_canonical_name() {
        let topic = TopicName::parse("topic://tenant/ns/my-topic").unwrap();
        let layout = layout(1, &[(0, 0, 0x7fff, true), (1, 0x8000, 65535, true)]);
        let names: Vec<_> = layout.segments().map(|s| s.topic(&topic, Deviance::default())).collect();
        assert_eq!(
            names,
            ["segment://tenant/ns/my-topic/0000-7fff-0", "segment://tenant/ns/my-topic/8000-ffff-1"]
        );
    }
}
