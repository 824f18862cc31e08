//! The changes of a layout, as Pulsar 5.0.1 makes them: each gives the next layout, one epoch later.

use thiserror::Error;

use super::{BucketSplits, HashRange, Layout, MAX_BUCKETS, Segment, SegmentState};

/// Why a layout cannot change in this way.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// The layout has no such segment.
    #[error("segment {0} does not exist")]
    Unknown(u64),
    /// The segment is sealed.
    #[error("segment {0} is not active")]
    NotActive(u64),
    /// The segment owns a single hash.
    #[error("segment {0} owns a single hash and cannot be split")]
    TooNarrow(u64),
    /// The ranges of two segments do not touch, or they are one segment.
    #[error("segments {0} and {1} are not adjacent")]
    NotAdjacent(u64, u64),
    /// The segment already has these buckets.
    #[error("segment {0} already has these entry buckets")]
    SameBuckets(u64),
    /// The bucket count is out of range.
    #[error("bucket count {0} is not in 1..=1024")]
    BucketCount(u64),
    /// A segment is still needed: it is active.
    #[error("segment {0} is active and cannot be pruned")]
    Active(u64),
    /// The segment wraps a classic topic, and is replaced by migration only.
    #[error("segment {0} wraps a classic topic")]
    Legacy(u64),
    /// The topic has used up its segment ids or epochs.
    #[error("no segment id or no epoch is left")]
    Exhausted,
}

impl Layout {
    /// Splits an active segment at the middle of its range; the children get the next two ids, the lower half
    /// first, and half of its entry buckets each, at least one.
    pub fn split(&self, id: u64, now_ms: u64) -> Result<Layout, ChangeError> {
        let parent = self.active_segment(id)?;
        let (low, high) = parent.range.halves().ok_or(ChangeError::TooNarrow(id))?;
        let buckets = BucketSplits::equal(parent.buckets.count() / 2);
        self.replace(&[id], &[(low, buckets.clone()), (high, buckets)], now_ms)
    }

    /// Merges two adjacent active segments, in either order; the child gets the next id and the sum of their
    /// entry buckets, at most [`MAX_BUCKETS`].
    pub fn merge(&self, a: u64, b: u64, now_ms: u64) -> Result<Layout, ChangeError> {
        for id in [a, b] {
            self.segment(id).ok_or(ChangeError::Unknown(id))?;
        }
        let (first, second) = (self.active_segment(a)?, self.active_segment(b)?);
        let range = first.range.join(second.range).ok_or(ChangeError::NotAdjacent(a, b))?;
        let buckets = BucketSplits::equal(
            first.buckets.count().saturating_add(second.buckets.count()).min(MAX_BUCKETS),
        );
        self.replace(&[a, b], &[(range, buckets)], now_ms)
    }

    /// Rolls an active segment over to a successor of the same range with `count` entry buckets of equal width
    /// (key-shared §5).
    pub fn rebucket(&self, id: u64, count: u64, now_ms: u64) -> Result<Layout, ChangeError> {
        let n = u32::try_from(count).ok().filter(|n| (1..=MAX_BUCKETS).contains(n));
        let buckets = BucketSplits::equal(n.ok_or(ChangeError::BucketCount(count))?);
        let segment = self.active_segment(id)?;
        if buckets == segment.buckets {
            return Err(ChangeError::SameBuckets(id));
        }
        self.replace(&[id], &[(segment.range, buckets)], now_ms)
    }

    /// Takes a sealed segment out, and its id out of its children's parents and its parents' children.
    pub fn prune(&self, id: u64) -> Result<Layout, ChangeError> {
        if self.segment(id).ok_or(ChangeError::Unknown(id))?.is_active() {
            return Err(ChangeError::Active(id));
        }
        let mut next = self.clone();
        next.epoch = next.epoch.checked_add(1).ok_or(ChangeError::Exhausted)?;
        next.segments.remove(&id);
        for segment in next.segments.values_mut() {
            segment.parents.retain(|p| *p != id);
            segment.children.retain(|c| *c != id);
        }
        Ok(next)
    }

    fn active_segment(&self, id: u64) -> Result<&Segment, ChangeError> {
        let segment = self.segment(id).ok_or(ChangeError::Unknown(id))?;
        match segment {
            _ if !segment.is_active() => Err(ChangeError::NotActive(id)),
            // Its range means nothing, so successors of parts of it would not tile the ring.
            _ if segment.is_legacy() => Err(ChangeError::Legacy(id)),
            _ => Ok(segment),
        }
    }

    /// Seals `parents` and puts active successors in their place.
    fn replace(
        &self,
        parents: &[u64],
        successors: &[(HashRange, BucketSplits)],
        now_ms: u64,
    ) -> Result<Layout, ChangeError> {
        let mut next = self.clone();
        next.epoch = next.epoch.checked_add(1).ok_or(ChangeError::Exhausted)?;
        let mut children = Vec::new();
        for (range, buckets) in successors {
            let id = next.next_segment_id;
            next.next_segment_id = id.checked_add(1).ok_or(ChangeError::Exhausted)?;
            let mut child = Segment::new(id, *range, next.epoch, now_ms, buckets.clone());
            child.parents = parents.to_vec();
            next.segments.insert(id, child);
            children.push(id);
        }
        for id in parents {
            let parent = next.segments.get_mut(id).ok_or(ChangeError::Unknown(*id))?;
            parent.state = SegmentState::Sealed;
            parent.sealed_at_epoch = Some(next.epoch);
            parent.sealed_at_ms = Some(now_ms);
            parent.children.clone_from(&children);
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bucket counts of the active segments.
    fn buckets(layout: &Layout) -> Vec<u32> {
        layout.active().map(|s| s.buckets.count()).collect()
    }

    #[test]
    fn the_bucket_budget_is_shared_halved_and_summed() {
        assert_eq!(buckets(&Layout::initial(1, 4, 0)), [4]);
        assert_eq!(buckets(&Layout::initial(3, 4, 0)), [1, 1, 1]);
        assert_eq!(buckets(&Layout::initial(7, 4, 0)), [1; 7]);
        let split = Layout::initial(1, 7, 0).split(0, 1).unwrap();
        assert_eq!(buckets(&split), [3, 3]);
        assert_eq!(buckets(&split.merge(2, 1, 2).unwrap()), [6]);
        let one = Layout::initial(1, 1, 0).split(0, 1).unwrap();
        assert_eq!(buckets(&one), [1, 1]);
        let many = Layout::initial(2, 4, 0).rebucket(0, 1000, 1).unwrap().rebucket(1, 1000, 1).unwrap();
        assert_eq!(buckets(&many.merge(2, 3, 2).unwrap()), [MAX_BUCKETS]);
    }

    #[test]
    fn a_split_seals_its_parent_one_epoch_later() {
        let layout = Layout::initial(1, 4, 10).split(0, 20).unwrap();
        let parent = layout.segment(0).unwrap();
        assert_eq!(layout.epoch(), 1);
        assert_eq!((parent.sealed_at_epoch, parent.sealed_at_ms), (Some(1), Some(20)));
        assert_eq!(parent.children, [1, 2]);
        let child = layout.segment(2).unwrap();
        assert_eq!((child.created_at_epoch, child.created_at_ms), (1, 20));
        assert_eq!((child.range.start(), child.parents.as_slice()), (0x8000, &[0][..]));
    }

    #[test]
    fn a_pruned_segment_leaves_its_childrens_parents() {
        let layout = Layout::initial(1, 4, 0).split(0, 1).unwrap().prune(0).unwrap();
        assert_eq!((layout.epoch(), layout.next_segment_id()), (2, 3));
        assert!(layout.segments().all(|s| s.parents.is_empty()));
        assert_eq!(layout.prune(1), Err(ChangeError::Active(1)));
        assert_eq!(layout.prune(0), Err(ChangeError::Unknown(0)));
    }

    #[test]
    fn refusals_say_why() {
        let layout = Layout::initial(3, 4, 0);
        assert_eq!(layout.merge(0, 2, 1), Err(ChangeError::NotAdjacent(0, 2)));
        assert_eq!(layout.rebucket(0, 1, 1), Err(ChangeError::SameBuckets(0)));
        assert_eq!(layout.rebucket(0, 0, 1), Err(ChangeError::BucketCount(0)));
        assert_eq!(layout.rebucket(0, 1025, 1), Err(ChangeError::BucketCount(1025)));
        assert_eq!(layout.split(9, 1), Err(ChangeError::Unknown(9)));
        let split = layout.split(0, 1).unwrap();
        assert_eq!(split.split(0, 2), Err(ChangeError::NotActive(0)));
        assert_eq!(split.merge(0, 1, 2), Err(ChangeError::NotActive(0)));
    }
}
