//! What a controller assigns to an ordered consumer (wire-protocol §6.2, key-shared §4).

use std::collections::BTreeMap;

use stc_proto::{
    HashRange,
    pulsar::{IntRange, ScalableConsumerAssignment},
};

/// How a stream consumer attaches to a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As its sole owner.
    Exclusive,
    /// With others, by entry bucket. The segment's full list of bucket boundaries, inclusive, as the controller gave
    /// it: the broker compares the lists of all sharers.
    Shared(Vec<(i32, i32)>),
}

impl Mode {
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Mode::Shared(_))
    }
}

/// One assigned segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assigned {
    pub(crate) topic: String,
    pub(crate) mode: Mode,
    /// The hashes that it owns, if they make sense.
    pub(crate) range: Option<HashRange>,
}

/// Everything that a consumer is to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The epoch of the layout that it was made for.
    pub(crate) epoch: u64,
    /// By segment id. A segment that is listed twice counts once, as it was listed last.
    pub(crate) segments: BTreeMap<u64, Assigned>,
}

impl Assignment {
    pub(crate) fn from_wire(assignment: &ScalableConsumerAssignment) -> Self {
        let segments = assignment.segments.iter().map(|segment| {
            let ranges = segment.bucket_ranges.iter();
            let mode = match segment.bucket_ranges.is_empty() {
                true => Mode::Exclusive,
                false => Mode::Shared(ranges.map(|IntRange { start, end }| (*start, *end)).collect()),
            };
            let hash = |hash: u32| u16::try_from(hash).ok();
            let ends = hash(segment.hash_start).zip(hash(segment.hash_end));
            let range = ends.and_then(|(start, end)| HashRange::new(start, end));
            (segment.segment_id, Assigned { topic: segment.segment_topic.clone(), mode, range })
        });
        Assignment { epoch: assignment.layout_epoch, segments: segments.collect() }
    }
}
