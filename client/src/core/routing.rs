//! Which segment a message goes to (client-behavior §2).

use stc_proto::KeyHash;

use super::{
    deviant::{Deviance, Deviant},
    layout::Layout,
};

/// Routes messages; remembers where the round of keyless messages stands.
#[derive(Debug)]
pub(crate) struct Router {
    deviance: Deviance,
    round: usize,
}

impl Router {
    pub(crate) fn new(deviance: Deviance) -> Self {
        Router { deviance, round: 0 }
    }

    /// The id of the active segment for a message; `None` when no active segment covers its hash.
    pub(crate) fn route(&mut self, layout: &Layout, hash: Option<KeyHash>) -> Option<u64> {
        let segment = match hash {
            Some(hash) if layout.is_legacy() || self.keeps_partitions(layout) => self.legacy(layout, hash),
            Some(hash) => self.keyed(layout, hash),
            None => return self.keyless(layout),
        };
        if segment.is_none() && self.deviance.is(Deviant::RouteGapToFirst) {
            return layout.active().next().map(|s| s.id);
        }
        segment
    }

    /// Rule 1: the high half of the raw hash, on the ring.
    fn keyed(&self, layout: &Layout, hash: KeyHash) -> Option<u64> {
        let place = if self.deviance.is(Deviant::RouteLowHalf) {
            hash.bucket()
        } else if self.deviance.is(Deviant::RouteMaskedHash) {
            hash.segment() & 0x7FFF
        } else {
            hash.segment()
        };
        if self.deviance.is(Deviant::RouteExclusiveEnd) {
            return layout
                .active()
                .find(|s| place >= s.range.start() && (place < s.range.end() || s.range.end() == u16::MAX))
                .or_else(|| layout.covering(place.saturating_add(1)))
                .map(|s| s.id);
        }
        layout.covering(place).map(|s| s.id)
    }

    /// Rule 2: one after the other, in the order of their ids.
    fn keyless(&mut self, layout: &Layout) -> Option<u64> {
        let count = layout.active().count();
        let index = self.round.checked_rem(count)?;
        if !self.deviance.is(Deviant::KeylessFirstSegment) {
            self.round = index + 1;
        }
        layout.active().nth(index).map(|s| s.id)
    }

    fn keeps_partitions(&self, layout: &Layout) -> bool {
        self.deviance.is(Deviant::PartitionsForEver) && layout.segments().any(|s| s.legacy.is_some())
    }

    /// Rule 3: the classic routing over N partitions, in the order of their ids.
    fn legacy(&self, layout: &Layout, hash: KeyHash) -> Option<u64> {
        if self.deviance.is(Deviant::LegacyOnRing) {
            return layout.covering(hash.segment()).map(|s| s.id);
        }
        let count = layout.active().count() as u32;
        let index = if self.deviance.is(Deviant::LegacyUnmasked) {
            hash.0.checked_rem(count)?
        } else {
            hash.legacy(count)
        };
        layout.active().nth(index as usize).map(|s| s.id)
    }
}

#[cfg(test)]
mod tests {
    use stc_proto::pulsar::{ScalableTopicDag, SegmentInfoProto};

    use super::{super::layout::tests::layout, *};

    #[test]
    fn keys_go_by_the_high_half_of_the_raw_hash() {
        let two = layout(0, &[(0, 0, 0x7fff, true), (1, 0x8000, 0xffff, true)]);
        let mut router = Router::new(Deviance::default());
        // From the recordings: key-0 e337f8bf, key-1 98b115a0, key-3 in the lower half.
        for (key, segment) in [("key-0", 1), ("key-1", 1), ("key-2", 1), ("key-3", 0)] {
            assert_eq!(router.route(&two, Some(KeyHash::of(key))), Some(segment), "{key}");
        }
    }

    #[test]
    fn both_ends_of_a_range_belong_to_it_and_gaps_to_nobody() {
        let gap = layout(0, &[(4, 0, 0x7ffe, true), (5, 0x8000, 0xffff, true), (3, 0, 0xffff, false)]);
        let mut router = Router::new(Deviance::default());
        for (hash, segment) in [
            (0, Some(4)),
            (0x7ffe_0000, Some(4)),
            (0x7fff_0000, None),
            (0x8000_0000, Some(5)),
            (u32::MAX, Some(5)),
        ] {
            assert_eq!(router.route(&gap, Some(KeyHash(hash))), segment, "{hash:x}");
        }
    }

    #[test]
    fn keyless_messages_go_round() {
        let three =
            layout(0, &[(1, 0, 99, true), (2, 100, 200, false), (7, 100, 200, true), (9, 201, 65535, true)]);
        let mut router = Router::new(Deviance::default());
        let ids: Vec<_> = (0..6).filter_map(|_| router.route(&three, None)).collect();
        assert_eq!(ids, [1, 7, 9, 1, 7, 9]);
    }

    #[test]
    fn legacy_segments_take_keys_as_partitions_did() {
        let dag = ScalableTopicDag {
            segments: (0..3)
                .map(|i| SegmentInfoProto {
                    segment_id: i,
                    hash_end: 65535,
                    legacy_topic_name: Some(format!("persistent://public/default/t-partition-{i}")),
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let layout = Layout::from_dag(&dag).unwrap();
        let mut router = Router::new(Deviance::default());
        // e337f8bf without its sign bit, modulo 3.
        assert_eq!(router.route(&layout, Some(KeyHash::of("key-0"))), Some(2));
    }
}
