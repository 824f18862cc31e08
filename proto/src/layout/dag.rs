//! A layout on the wire: `ScalableTopicDAG`. Broker addresses are no part of a layout; they travel beside it.

use std::collections::{BTreeMap, btree_map::Entry};

use super::{HashRange, Layout, LayoutError, Segment, SegmentState};
use crate::pulsar::{self, ScalableTopicDag, SegmentInfoProto};

impl Layout {
    /// Reads the segments of a DAG. They may come in any order, and one that is listed twice counts once; two
    /// different segments of one id are an error.
    pub fn from_dag(dag: &ScalableTopicDag) -> Result<Self, LayoutError> {
        let mut segments = BTreeMap::<u64, Segment>::new();
        for info in &dag.segments {
            let segment = Segment::from_proto(info)?;
            match segments.entry(segment.id) {
                Entry::Vacant(place) => drop(place.insert(segment)),
                Entry::Occupied(first) if *first.get() == segment => {}
                Entry::Occupied(_) => return Err(LayoutError::Duplicate(segment.id)),
            }
        }
        Layout::new(dag.epoch, segments.into_values())
    }

    /// The DAG on the wire, without any broker address.
    pub fn to_dag(&self) -> ScalableTopicDag {
        ScalableTopicDag {
            epoch: self.epoch(),
            segments: self.segments().map(Segment::to_proto).collect(),
            ..Default::default()
        }
    }
}

impl Segment {
    fn from_proto(info: &SegmentInfoProto) -> Result<Self, LayoutError> {
        let error = |reason| LayoutError::Field { segment: info.segment_id, reason };
        let hash = |value: u32| u16::try_from(value).map_err(|_| error("a hash is beyond 65535"));
        let range = HashRange::new(hash(info.hash_start)?, hash(info.hash_end)?)
            .ok_or_else(|| error("its range ends before it starts"))?;
        let state = match pulsar::SegmentState::try_from(info.state) {
            Ok(pulsar::SegmentState::Active) => SegmentState::Active,
            Ok(pulsar::SegmentState::Sealed) => SegmentState::Sealed,
            Err(_) => return Err(error("unknown state")),
        };
        Ok(Segment {
            id: info.segment_id,
            range,
            state,
            parents: info.parent_ids.clone(),
            children: info.child_ids.clone(),
            created_at_epoch: info.created_at_epoch,
            sealed_at_epoch: info.sealed_at_epoch,
            created_at_ms: info.created_at_ms,
            sealed_at_ms: info.sealed_at_ms,
            legacy_topic: info.legacy_topic_name.clone(),
            buckets: info.entry_bucket_splits.clone().try_into().map_err(error)?,
        })
    }

    fn to_proto(&self) -> SegmentInfoProto {
        SegmentInfoProto {
            segment_id: self.id,
            hash_start: self.range.start().into(),
            hash_end: self.range.end().into(),
            state: match self.state {
                SegmentState::Active => pulsar::SegmentState::Active,
                SegmentState::Sealed => pulsar::SegmentState::Sealed,
            } as i32,
            parent_ids: self.parents.clone(),
            child_ids: self.children.clone(),
            created_at_epoch: self.created_at_epoch,
            sealed_at_epoch: self.sealed_at_epoch,
            created_at_ms: self.created_at_ms,
            sealed_at_ms: self.sealed_at_ms,
            legacy_topic_name: self.legacy_topic.clone(),
            entry_bucket_splits: self.buckets.clone().into(),
        }
    }
}
