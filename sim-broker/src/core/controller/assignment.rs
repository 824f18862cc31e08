//! Which consumer of a group reads which segment: a pure function (as Pulsar 5.0.1 decides it).
//!
//! Every controller that sees the same layout and the same consumers decides the same, in whatever order they came.

use std::collections::{BTreeMap, BTreeSet};

use stc_proto::{HashRange, Layout, layout::BucketSplits};

/// What a group reads for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// The consumers of a durable subscription.
    Stream,
    /// The members of a checkpoint group, who keep their positions themselves.
    Checkpoint,
}

/// A segment that can be handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignable {
    /// The segment's id.
    pub id: u64,
    /// The segment hashes that it owns, inclusive.
    pub range: HashRange,
    /// Its entry buckets; several consumers can share it up to their number.
    pub buckets: BucketSplits,
}

/// A segment in the hands of one consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The segment's id.
    pub segment: u64,
    /// Empty for a sole owner. On a shared segment all of its buckets, the same for every sharer: which of them a
    /// consumer gets is the segment's broker's choice (key-shared §4).
    pub bucket_ranges: Vec<HashRange>,
}

/// The segments of a layout that a group can be handed, in the order of their ranges and ids.
///
/// With `gate`, that is everything but the sealed segments in `drained`, and without the segments that have an
/// ancestor left in the layout which is not in `drained`: what a key got in the parent is read before what it got in
/// the child. Without `gate` it is every segment.
pub fn assignable(layout: &Layout, drained: &BTreeSet<u64>, gate: bool) -> Vec<Assignable> {
    let mut segments: Vec<Assignable> = layout
        .segments()
        .filter(|s| !gate || s.is_active() || !drained.contains(&s.id))
        .filter(|s| !gate || ancestors(layout, s.id).is_subset(drained))
        .map(|s| Assignable { id: s.id, range: s.range, buckets: s.buckets.clone() })
        .collect();
    segments.sort_by_key(|s| (s.range, s.id));
    segments
}

/// The segments that one comes from, over all generations that are still in the layout.
fn ancestors(layout: &Layout, id: u64) -> BTreeSet<u64> {
    let parents = |id| layout.segment(id).map_or(&[][..], |s| s.parents.as_slice());
    let mut found = BTreeSet::new();
    let mut open: Vec<u64> = parents(id).to_vec();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(parents(next));
        }
    }
    found
}

/// Hands segments out to consumers, in any order of either. Every consumer has an entry in the answer, an empty one if
/// it gets nothing; a name that comes twice is one consumer.
///
/// As long as there are no more consumers than segments, and always in a checkpoint group, the segments go round the
/// consumers. More stream consumers share: going round the segments, each gets one more owner while it has fewer
/// owners than buckets and consumers are left; then the consumers, by name, fill the segments one after another. Who
/// is left over gets nothing.
pub fn assign(segments: &[Assignable], consumers: &[&str], kind: GroupKind) -> BTreeMap<String, Vec<Share>> {
    let mut segments: Vec<&Assignable> = segments.iter().collect();
    segments.sort_by_key(|s| (s.range, s.id));
    let mut names: Vec<&str> = consumers.to_vec();
    // Java's order of names: by UTF-16 code units, not by bytes.
    names.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    names.dedup();
    let mut shares: BTreeMap<String, Vec<Share>> =
        names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
    let mut give = |name: &str, share: Share| shares.entry(name.to_owned()).or_default().push(share);
    if names.len() <= segments.len() || kind == GroupKind::Checkpoint {
        for (segment, name) in segments.iter().zip(names.iter().cycle()) {
            give(name, Share { segment: segment.id, bucket_ranges: Vec::new() });
        }
        return shares;
    }
    let mut names = names.iter();
    for (segment, owners) in segments.iter().zip(owners(&segments, names.len())) {
        let bucket_ranges = if owners > 1 { segment.buckets.ranges() } else { Vec::new() };
        for name in names.by_ref().take(owners) {
            give(name, Share { segment: segment.id, bucket_ranges: bucket_ranges.clone() });
        }
    }
    shares
}

/// How many owners each segment gets of more consumers than segments.
fn owners(segments: &[&Assignable], consumers: usize) -> Vec<usize> {
    let mut owners = vec![1; segments.len()];
    let mut surplus = consumers.saturating_sub(segments.len());
    loop {
        let before = surplus;
        for (segment, owners) in segments.iter().zip(&mut owners) {
            if surplus > 0 && (*owners as u64) < u64::from(segment.buckets.count()) {
                *owners += 1;
                surplus -= 1;
            }
        }
        if surplus == before {
            return owners;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segments(layout: &Layout) -> Vec<Assignable> {
        assignable(layout, &BTreeSet::new(), false)
    }

    /// `consumer: segment segment!buckets`, one consumer a line.
    fn show(shares: &BTreeMap<String, Vec<Share>>) -> Vec<String> {
        let share = |share: &Share| match share.bucket_ranges.len() {
            0 => format!(" {}", share.segment),
            n => format!(" {}!{n}", share.segment),
        };
        shares
            .iter()
            .map(|(name, list)| list.iter().map(share).fold(format!("{name}:"), |a, b| a + &b))
            .collect()
    }

    fn stream(layout: &Layout, drained: &[u64], consumers: &[&str]) -> Vec<String> {
        let drained = drained.iter().copied().collect();
        show(&assign(&assignable(layout, &drained, true), consumers, GroupKind::Stream))
    }

    /// What the broker 5.0.1 gave in the recording c_stream.
    #[test]
    fn as_recorded_for_two_segments_and_up_to_three_consumers() {
        let layout = Layout::initial(2, 4, 0);
        assert_eq!(stream(&layout, &[], &["sc1"]), ["sc1: 0 1"]);
        assert_eq!(stream(&layout, &[], &["sc1", "sc2"]), ["sc1: 0", "sc2: 1"]);
        let three = ["sc1", "sc2", "v5-stream-Z0iVANYL"];
        assert_eq!(stream(&layout, &[], &three), ["sc1: 0!2", "sc2: 0!2", "v5-stream-Z0iVANYL: 1"]);
        let split = layout.split(0, 0).unwrap();
        assert_eq!(stream(&split, &[], &["sc1", "sc2"]), ["sc1: 0", "sc2: 1"]);
        assert_eq!(stream(&split, &[0], &["sc1", "sc2"]), ["sc1: 2 1", "sc2: 3"]);
        assert_eq!(stream(&split, &[0], &["sc1"]), ["sc1: 2 3 1"]);
    }

    /// What the broker 5.0.1 gave in the recording c2_stream_drain.
    #[test]
    fn as_recorded_across_a_split_and_a_merge() {
        let two = ["aa", "bb"];
        let first = Layout::initial(1, 4, 0);
        assert_eq!(stream(&first, &[], &two), ["aa: 0!4", "bb: 0!4"]);
        let split = first.split(0, 0).unwrap();
        assert_eq!(stream(&split, &[], &two), ["aa: 0!4", "bb: 0!4"]);
        assert_eq!(stream(&split, &[0], &two), ["aa: 1", "bb: 2"]);
        let merged = split.merge(1, 2, 0).unwrap();
        assert_eq!(stream(&merged, &[0], &two), ["aa: 1", "bb: 2"]);
        assert_eq!(stream(&merged, &[0, 1, 2], &two), ["aa: 3!4", "bb: 3!4"]);
        // A new subscription replays the generations one after another, also once the first is pruned.
        assert_eq!(stream(&merged, &[], &["cc"]), ["cc: 0"]);
        assert_eq!(stream(&merged, &[0], &["cc"]), ["cc: 1 2"]);
        let pruned = merged.prune(0).unwrap();
        assert_eq!(stream(&pruned, &[], &["cc"]), ["cc: 1 2"]);
        assert_eq!(stream(&pruned, &[1, 2], &["cc"]), ["cc: 3"]);
    }

    /// What the broker 5.0.1 gave in the recording e_checkpoint: parents and children at once.
    #[test]
    fn as_recorded_for_a_checkpoint_group() {
        let split = Layout::initial(2, 4, 0).split(0, 0).unwrap();
        let group = |names: &[&str]| show(&assign(&segments(&split), names, GroupKind::Checkpoint));
        assert_eq!(group(&["g1"]), ["g1: 2 0 3 1"]);
        assert_eq!(group(&["g1", "g2"]), ["g1: 2 3", "g2: 0 1"]);
        assert_eq!(group(&["a", "b", "c", "d", "e"]), ["a: 2", "b: 0", "c: 3", "d: 1", "e:"]);
    }

    #[test]
    fn a_grandchild_waits_for_its_grandparent() {
        let layout = Layout::initial(1, 4, 0).split(0, 0).unwrap().split(1, 0).unwrap();
        // The parent was drained (perhaps it was empty), the grandparent was not.
        assert_eq!(stream(&layout, &[1], &["a"]), ["a: 0"]);
        assert_eq!(stream(&layout, &[0], &["a"]), ["a: 1 2"]);
        assert_eq!(stream(&layout, &[0, 1], &["a"]), ["a: 3 4 2"]);
    }

    #[test]
    fn a_rebucket_waits_for_its_predecessor_too() {
        let layout = Layout::initial(1, 2, 0).rebucket(0, 3, 0).unwrap();
        assert_eq!(stream(&layout, &[], &["a", "b", "c"]), ["a: 0!2", "b: 0!2", "c:"]);
        assert_eq!(stream(&layout, &[0], &["a", "b", "c"]), ["a: 1!3", "b: 1!3", "c: 1!3"]);
    }

    #[test]
    fn surplus_consumers_go_round_the_segments() {
        // Two buckets each; the middle one can take five.
        let layout = Layout::initial(3, 6, 0).rebucket(1, 5, 0).unwrap();
        let names: Vec<String> = (0..10).map(|i| format!("c{i}")).collect();
        let owners = |n: usize| {
            let names: Vec<&str> = names.iter().take(n).map(String::as_str).collect();
            let shares = assign(&assignable(&layout, &[1].into(), true), &names, GroupKind::Stream);
            let of = |id| shares.values().flatten().filter(|share| share.segment == id).count();
            [of(0), of(3), of(2)]
        };
        assert_eq!(owners(4), [2, 1, 1]);
        assert_eq!(owners(6), [2, 2, 2]);
        assert_eq!(owners(7), [2, 3, 2]);
        assert_eq!(owners(10), [2, 5, 2]);
    }

    #[test]
    fn nothing_to_hand_out_and_nobody_to_take_it() {
        let layout = Layout::initial(2, 4, 0);
        assert_eq!(show(&assign(&[], &["a", "b"], GroupKind::Stream)), ["a:", "b:"]);
        assert!(assign(&segments(&layout), &[], GroupKind::Stream).is_empty());
    }

    /// A layout after some changes, each of one active segment.
    fn layouts() -> impl Strategy<Value = Layout> {
        let change = (any::<prop::sample::Index>(), 0u8..3, 1u64..8);
        (1u32..5, 0u32..12, prop::collection::vec(change, 0..6)).prop_map(|(n, buckets, changes)| {
            changes.into_iter().fold(Layout::initial(n, buckets, 0), |layout, (which, kind, count)| {
                let mut active: Vec<_> = layout.active().map(|s| (s.range, s.id)).collect();
                active.sort();
                let at = which.index(active.len());
                let next = match (kind, active.get(at + 1)) {
                    (0, Some(neighbour)) => layout.merge(active[at].1, neighbour.1, 0),
                    (1, _) => layout.rebucket(active[at].1, count, 0),
                    _ => layout.split(active[at].1, 0),
                };
                next.unwrap_or(layout)
            })
        })
    }

    proptest! {
        #[test]
        fn every_segment_is_covered_and_the_order_of_coming_does_not_matter(
            (layout, count, seed) in (layouts(), 1usize..12, any::<u64>()),
            checkpoint in any::<bool>(),
        ) {
            let kind = if checkpoint { GroupKind::Checkpoint } else { GroupKind::Stream };
            let names: Vec<String> = (0..count).map(|i| format!("c{i}")).collect();
            let mut order: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut list = segments(&layout);
            let shares = assign(&list, &order, kind);
            order.rotate_left((seed % count as u64) as usize);
            order.reverse();
            list.reverse();
            prop_assert_eq!(&assign(&list, &order, kind), &shares);

            prop_assert_eq!(shares.len(), count);
            for segment in &list {
                let owners: Vec<&Share> =
                    shares.values().flatten().filter(|share| share.segment == segment.id).collect();
                prop_assert!(!owners.is_empty(), "nobody reads segment {}", segment.id);
                prop_assert!(owners.len() as u32 <= segment.buckets.count().max(1));
                for owner in &owners {
                    let expected =
                        if owners.len() == 1 { vec![] } else { segment.buckets.ranges() };
                    prop_assert_eq!(&owner.bucket_ranges, &expected);
                }
                prop_assert!(kind == GroupKind::Stream || owners.len() == 1);
            }
            if kind == GroupKind::Stream && count >= list.len() {
                prop_assert!(shares.values().all(|shares| shares.len() <= 1));
            }
        }

        #[test]
        fn no_segment_is_handed_out_before_its_ancestors_are_drained(
            layout in layouts(), drained in prop::collection::btree_set(0u64..20, 0..10),
        ) {
            let sealed = |id: &u64| layout.segment(*id).is_some_and(|s| !s.is_active());
            let drained: BTreeSet<u64> = drained.into_iter().filter(sealed).collect();
            let out = assignable(&layout, &drained, true);
            prop_assert!(!out.is_empty(), "there is always something to read");
            for segment in &out {
                prop_assert!(!drained.contains(&segment.id));
                for parent in &layout.segment(segment.id).unwrap().parents {
                    prop_assert!(drained.contains(parent));
                    prop_assert!(ancestors(&layout, *parent).is_subset(&drained));
                }
            }
        }
    }
}
