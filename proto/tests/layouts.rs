//! Layouts stay valid through any history, and no DAG from a peer can harm them.
// A helper of a test may fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use stc_proto::{
    HashRange, KeyHash, Layout,
    layout::{BucketSplits, ChangeError, LayoutError, MAX_BUCKETS},
    pulsar::{ScalableTopicDag, SegmentInfoProto},
};

mod support;

#[derive(Debug, Clone)]
enum Change {
    Split(u64),
    Merge(u64, u64),
    Rebucket(u64, u64),
    Prune(u64),
}

impl Change {
    fn apply(&self, layout: &Layout) -> Result<Layout, ChangeError> {
        match *self {
            Change::Split(id) => layout.split(id, 7),
            Change::Merge(a, b) => layout.merge(a, b, 7),
            Change::Rebucket(id, count) => layout.rebucket(id, count, 7),
            Change::Prune(id) => layout.prune(id),
        }
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    // Few ids, so that most changes are possible.
    let id = || 0u64..24;
    let near = (id(), -2i64..3).prop_map(|(a, by)| Change::Merge(a, a.saturating_add_signed(by)));
    let buckets = (id(), prop_oneof![0u64..8, 1020u64..1030]).prop_map(|(a, n)| Change::Rebucket(a, n));
    prop_oneof![id().prop_map(Change::Split), near, buckets, id().prop_map(Change::Prune)]
}

fn any_layout() -> impl Strategy<Value = Layout> {
    (1u32..6, 0u32..40, prop::collection::vec(any_change(), 0..30)).prop_map(|(n, buckets, changes)| {
        changes
            .iter()
            .fold(Layout::initial(n, buckets, 7), |layout, change| change.apply(&layout).unwrap_or(layout))
    })
}

fn ids(layout: &Layout) -> BTreeSet<u64> {
    layout.segments().map(|s| s.id).collect()
}

/// What makes a layout valid, said in another way than the crate does it.
fn assert_valid(layout: &Layout) {
    for hash in [0u16, 1, 0x5554, 0x5555, 0x7FFF, 0x8000, 0xAAA9, 0xFFFE, 0xFFFF] {
        let owners = layout.active().filter(|s| s.range.contains(hash)).count();
        assert_eq!(owners, 1, "{hash:04x} in {layout:?}");
    }
    assert_eq!(layout.active().map(|s| s.range.width()).sum::<u32>(), 65536);
    for segment in layout.segments() {
        assert!(segment.id < layout.next_segment_id());
        assert!(segment.created_at_epoch <= layout.epoch());
        assert!((1..=MAX_BUCKETS).contains(&segment.buckets.count()));
        assert_eq!(segment.is_active(), segment.sealed_at_epoch.is_none());
        assert!(!segment.is_active() || segment.children.is_empty());
        for parent in &segment.parents {
            let parent = layout.segment(*parent).unwrap();
            assert!(parent.id < segment.id && !parent.is_active() && parent.children.contains(&segment.id));
        }
        for child in &segment.children {
            assert!(layout.segment(*child).unwrap().parents.contains(&segment.id));
        }
    }
}

fn any_info() -> impl Strategy<Value = SegmentInfoProto> {
    let id = || prop_oneof![0u64..6, Just(u64::MAX), Just(u64::MAX - 1)];
    let ids = || prop::collection::vec(prop_oneof![0u64..6, Just(u64::MAX)], 0..3);
    let hash = || prop::sample::select(vec![0u32, 0x7FFF, 0x8000, 0xFFFF, 0x10000, u32::MAX]);
    let splits = prop::collection::vec(prop::sample::select(vec![0u32, 1, 5, 0xFFFF, 0x10000]), 0..4);
    (id(), hash(), hash(), -1i32..3, ids(), ids(), any::<Option<bool>>(), splits).prop_map(
        |(segment_id, hash_start, hash_end, state, parent_ids, child_ids, legacy, entry_bucket_splits)| {
            SegmentInfoProto {
                segment_id,
                hash_start,
                hash_end,
                state,
                parent_ids,
                child_ids,
                created_at_epoch: segment_id,
                legacy_topic_name: legacy.map(|name| name.to_string()),
                entry_bucket_splits,
                ..Default::default()
            }
        },
    )
}

/// Accepting a DAG from a peer means that every change of it works, and gives what is accepted again.
fn assert_harmless(dag: &ScalableTopicDag) {
    let Ok(layout) = Layout::from_dag(dag) else { return };
    assert_eq!(Layout::from_dag(&layout.to_dag()).as_ref(), Ok(&layout));
    assert!(layout.route(KeyHash::of("key-0")).is_some());
    let ids = ids(&layout);
    for &a in &ids {
        let changes = [layout.split(a, 0), layout.rebucket(a, 3, 0), layout.prune(a)];
        let merges = ids.iter().map(|b| layout.merge(a, *b, 0));
        for next in changes.into_iter().chain(merges).flatten() {
            assert!(Layout::from_dag(&next.to_dag()).is_ok(), "{layout:?} became {next:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_history_keeps_a_layout_valid(
        (n, buckets) in (1u32..6, 0u32..40),
        changes in prop::collection::vec(any_change(), 0..40),
    ) {
        let mut layout = Layout::initial(n, buckets, 7);
        assert_valid(&layout);
        for change in changes {
            let Ok(next) = change.apply(&layout) else { continue };
            assert_valid(&next);
            prop_assert_eq!(next.epoch(), layout.epoch() + 1);
            let new: Vec<u64> = ids(&next).difference(&ids(&layout)).copied().collect();
            let expected = layout.next_segment_id()..next.next_segment_id();
            prop_assert_eq!(new, expected.collect::<Vec<_>>());
            let gone: Vec<u64> = ids(&layout).difference(&ids(&next)).copied().collect();
            prop_assert_eq!(gone.is_empty(), !matches!(change, Change::Prune(_)), "{:?}", gone);
            layout = next;
        }
    }

    #[test]
    fn a_layout_survives_the_wire_in_any_order_and_with_repeats(layout in any_layout(), turn in any::<usize>()) {
        let mut dag = layout.to_dag();
        let n = dag.segments.len();
        dag.segments.rotate_left(turn % n);
        dag.segments.reverse();
        dag.segments.push(dag.segments[turn % n].clone());
        prop_assert_eq!(Layout::from_dag(&dag), Ok(layout));
    }

    #[test]
    fn a_key_goes_to_the_owner_of_its_high_half(layout in any_layout(), hash in any::<u32>()) {
        let segment = layout.route(KeyHash(hash)).unwrap();
        prop_assert!(segment.is_active() && segment.range.contains((hash >> 16) as u16));
        let bucket = segment.buckets.ranges()[segment.buckets.index_of(hash as u16)];
        prop_assert!(bucket.contains(hash as u16));
    }

    #[test]
    fn an_invented_dag_is_harmless(
        segments in prop::collection::vec(any_info(), 0..6),
        epoch in prop_oneof![0u64..3, Just(u64::MAX)],
    ) {
        assert_harmless(&ScalableTopicDag { epoch, segments, ..Default::default() });
    }

    #[test]
    fn a_damaged_dag_is_harmless(
        layout in any_layout(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0u8..5, any_info()), 0..3),
        epoch in prop_oneof![0u64..3, Just(u64::MAX)],
    ) {
        let mut dag = ScalableTopicDag { epoch, ..layout.to_dag() };
        for (at, kind, info) in damage {
            let at = at.index(dag.segments.len());
            let segment = &mut dag.segments[at];
            match kind {
                0 => *segment = info,
                1 => segment.segment_id = info.segment_id,
                2 => segment.parent_ids = info.parent_ids,
                3 => segment.state = info.state,
                _ => segment.legacy_topic_name = info.legacy_topic_name,
            }
        }
        assert_harmless(&dag);
    }

    #[test]
    fn equal_buckets_tile_the_space(n in 1u32..=MAX_BUCKETS, hash in any::<u16>()) {
        let buckets = BucketSplits::equal(n);
        let ranges = buckets.ranges();
        prop_assert_eq!(ranges.len(), n as usize);
        prop_assert_eq!(ranges.iter().map(|r| r.width()).sum::<u32>(), 65536);
        prop_assert!(ranges[buckets.index_of(hash)].contains(hash));
        let again = BucketSplits::try_from(Vec::<u32>::from(buckets.clone()));
        prop_assert_eq!(again, Ok(buckets));
    }

    #[test]
    fn tiles_cover_the_ring(n in 1u32..3000) {
        let tiles = HashRange::tiles(n);
        prop_assert_eq!(tiles.len(), n as usize);
        prop_assert!(tiles.windows(2).all(|w| w[0].join(w[1]).is_some()));
        prop_assert_eq!((tiles[0].start(), tiles[tiles.len() - 1].end()), (0, 0xFFFF));
    }
}

/// The error of two active halves of the ring after a change of their DAG.
fn error_after(change: impl FnOnce(&mut Vec<SegmentInfoProto>)) -> LayoutError {
    let mut dag = Layout::initial(2, 1, 0).to_dag();
    change(&mut dag.segments);
    Layout::from_dag(&dag).unwrap_err()
}

#[test]
fn each_fault_of_a_dag_has_its_error() {
    assert_eq!(error_after(Vec::clear), LayoutError::NoActive);
    let gap = LayoutError::NotTiled { expected: 0x8000, segment: 1, found: 0x8001 };
    assert_eq!(error_after(|s| s[1].hash_start += 1), gap);
    let overlap = LayoutError::NotTiled { expected: 0x8000, segment: 1, found: 0x7FFF };
    assert_eq!(error_after(|s| s[1].hash_start -= 1), overlap);
    assert_eq!(error_after(|s| s[1].hash_end -= 1), LayoutError::Short(0xFFFE));
    assert_eq!(error_after(|s| s[1].segment_id = 0), LayoutError::Duplicate(0));
    let lineage = |relation| LayoutError::Lineage { segment: 0, other: 1, relation };
    assert_eq!(error_after(|s| s[0].parent_ids.push(1)), lineage("parent"));
    assert_eq!(error_after(|s| s[0].child_ids.push(1)), lineage("child"));
    for change in [
        |s: &mut SegmentInfoProto| s.state = 2,
        |s: &mut SegmentInfoProto| s.hash_end = 0x10000,
        |s: &mut SegmentInfoProto| s.hash_end = s.hash_start - 1,
        |s: &mut SegmentInfoProto| s.entry_bucket_splits = vec![0],
        |s: &mut SegmentInfoProto| s.entry_bucket_splits = vec![5, 5],
    ] {
        assert!(matches!(error_after(|s| change(&mut s[1])), LayoutError::Field { segment: 1, .. }));
    }
}

#[test]
fn segments_that_wrap_classic_topics_cannot_change() {
    let topics = ["a", "b", "c"].map(String::from);
    let layout = Layout::synthetic(topics.clone(), 5).unwrap();
    assert!(layout.is_legacy());
    assert_eq!(layout.split(0, 6), Err(ChangeError::Legacy(0)));
    assert_eq!(layout.merge(0, 1, 6), Err(ChangeError::Legacy(0)));
    assert_eq!(layout.rebucket(2, 7, 6), Err(ChangeError::Legacy(2)));
    // 0x63373f8b modulo 3
    assert_eq!(layout.route(KeyHash(0xE337_F8BF)).map(|s| s.id), Some(2));
    assert_eq!(Layout::synthetic([], 5), Err(LayoutError::Topics(0)));
    assert_eq!(Layout::migrated([], 4, 5), Err(LayoutError::Topics(0)));
    // Once migrated they are sealed, and can be pruned.
    let migrated = Layout::migrated(topics, 4, 5).unwrap();
    assert!(!migrated.is_legacy());
    assert_eq!(migrated.split(0, 6), Err(ChangeError::NotActive(0)));
    assert!(migrated.prune(0).is_ok());
}

#[test]
fn a_cycle_is_found() {
    let mut dag = Layout::initial(1, 1, 0).split(0, 0).unwrap().split(1, 0).unwrap().to_dag();
    // 0 -> 1 -> 0
    dag.segments[0].parent_ids.push(1);
    dag.segments[1].child_ids.push(0);
    assert_eq!(Layout::from_dag(&dag), Err(LayoutError::Cycle(0)));
}

#[test]
fn a_long_lineage_is_checked_in_reasonable_time() {
    // A chain of 50,000 segments whose ids run against it: quadratic work would take minutes.
    let n = 50_000u64;
    let mut segments: Vec<SegmentInfoProto> = (0..n)
        .map(|i| SegmentInfoProto {
            segment_id: n - 1 - i,
            hash_end: 0xFFFF,
            state: i32::from(i + 1 < n),
            parent_ids: if i == 0 { vec![] } else { vec![n - i] },
            child_ids: if i + 1 == n { vec![] } else { vec![n - 2 - i] },
            ..Default::default()
        })
        .collect();
    let dag = ScalableTopicDag { segments: segments.clone(), ..Default::default() };
    assert_eq!(Layout::from_dag(&dag).map(|layout| layout.segments().count()), Ok(50_000));
    segments[0].parent_ids.push(0);
    let dag = ScalableTopicDag { segments, ..Default::default() };
    assert!(matches!(Layout::from_dag(&dag), Err(LayoutError::Lineage { .. })));
}
