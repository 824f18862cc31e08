//! Which consumer owns which entry bucket of a segment that several share (key-shared §4).
//!
//! The boundary list comes with the first consumer's SUBSCRIBE and stays; only who is there changes. Consumers are
//! ordered by name and id, and consumer j of k owns the buckets `j·N/k .. (j+1)·N/k` of N, so that everybody who knows
//! the members knows the owners. Each bucket stands for one hash, its *canonical* one: entries are normalised to it,
//! and what Key_Shared does for a key's hash (one holder at a time, in order) it then does for the bucket.

use stc_proto::{
    HashRange,
    layout::BucketSplits,
    pulsar::{IntRange, KeySharedMeta},
};

use super::selector::{assign_error, hash_ranges};
use crate::core::{
    ids::ConsumerKey,
    topic::{consumer::Consumer, error::TopicError, ledger::Stored},
};

/// The buckets of a segment, and the consumers that share them.
#[derive(Debug, Default)]
pub(super) struct EntryBuckets {
    buckets: BucketSplits,
    /// Name, id and identity of each consumer, in that order.
    members: Vec<(String, u64, ConsumerKey)>,
}

impl EntryBuckets {
    /// Takes in a consumer. Fails with ConsumerAssignError when its boundary list is none, or not that of the others:
    /// it then comes from another layout.
    pub(super) fn join(&mut self, new: &Consumer) -> Result<(), TopicError> {
        let buckets = boundaries(new.key_shared.as_ref())?;
        if self.members.is_empty() {
            self.buckets = buckets;
        } else if self.buckets != buckets {
            return Err(assign_error(format!(
                "Entry bucket boundaries {} are not those of the subscription, {}",
                list(&buckets.ranges()),
                list(&self.buckets.ranges())
            )));
        }
        self.members.push((new.name.clone(), new.key.id, new.key));
        // Java's order of names: by UTF-16 code units, not by bytes.
        self.members.sort_by(|a, b| {
            a.0.encode_utf16().cmp(b.0.encode_utf16()).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
        });
        Ok(())
    }

    pub(super) fn leave(&mut self, key: ConsumerKey) {
        self.members.retain(|(_, _, member)| *member != key);
    }

    /// The hash that stands for an entry's bucket. A stamped entry belongs to the bucket of its stamp's lower end, any
    /// other to that of its key.
    pub(super) fn canonical(&self, entry: &Stored) -> u16 {
        self.start(self.buckets.index_of(entry.hash_min.unwrap_or(entry.key_hash)))
    }

    /// A bucket's canonical hash: its start, and 1 for the first one, because 0 means "no hash" to Key_Shared.
    fn start(&self, bucket: usize) -> u16 {
        let start = bucket.checked_sub(1).and_then(|i| self.buckets.starts().get(i)).copied();
        start.unwrap_or(0).max(1)
    }

    /// Who owns the bucket of a hash.
    pub(super) fn owner(&self, hash: u16) -> Option<ConsumerKey> {
        let (bucket, buckets) = (self.buckets.index_of(hash), self.buckets.count() as usize);
        let members = self.members.len();
        let first = |member: usize| member * buckets / members;
        let owns = |member: &usize| (first(*member)..first(member + 1)).contains(&bucket);
        let owner = (0..members).find(owns)?;
        self.members.get(owner).map(|(_, _, key)| *key)
    }
}

/// The boundary list of a SUBSCRIBE, which has to be ascending and to tile the hash space without a gap.
fn boundaries(meta: Option<&KeySharedMeta>) -> Result<BucketSplits, TopicError> {
    let declared: &[IntRange] = meta.map_or(&[], |meta| &meta.hash_ranges);
    let ranges = hash_ranges(declared)?;
    let refused = |reason: &str| {
        let text = list(&ranges);
        Err(assign_error(format!("Entry bucket boundaries have to {reason}: {text}")))
    };
    if ranges.is_empty() {
        return refused("name at least one range");
    }
    if ranges.first().map(|first| first.start()) != Some(0) {
        return refused("begin at 0");
    }
    if ranges.last().map(|last| last.end()) != Some(u16::MAX) {
        return refused("end at 65535");
    }
    // Bucket 0 stands for the hash 1, which cannot be another bucket's.
    if ranges.first().map(|first| first.end()) == Some(0) {
        return refused("give the first bucket the hashes 0 and 1");
    }
    let next = |(a, b): (&HashRange, &HashRange)| u32::from(a.end()) + 1 == u32::from(b.start());
    if !ranges.iter().zip(ranges.iter().skip(1)).all(next) {
        return refused("be ascending and contiguous");
    }
    let starts: Vec<u32> = ranges.iter().skip(1).map(|range| range.start().into()).collect();
    BucketSplits::try_from(starts).map_err(assign_error)
}

fn list(ranges: &[HashRange]) -> String {
    let ranges: Vec<String> = ranges.iter().map(|r| format!("[{},{}]", r.start(), r.end())).collect();
    ranges.join(" ")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use stc_proto::pulsar::CommandSubscribe;

    use super::*;
    use crate::core::ids::ConnId;

    fn meta(ranges: &[(i32, i32)]) -> Option<KeySharedMeta> {
        let hash_ranges = ranges.iter().map(|(start, end)| IntRange { start: *start, end: *end }).collect();
        Some(KeySharedMeta { hash_ranges, ..Default::default() })
    }

    fn consumer(name: &str, conn: u64, id: u64, ranges: &[(i32, i32)]) -> Consumer {
        let command = CommandSubscribe {
            consumer_name: Some(name.into()),
            key_shared_meta: meta(ranges),
            ..Default::default()
        };
        Consumer::new(ConsumerKey { conn: ConnId(conn), id }, &command)
    }

    const FOUR: [(i32, i32); 4] = [(0, 0x3fff), (0x4000, 0x7fff), (0x8000, 0xbfff), (0xc000, 0xffff)];

    /// The id of each bucket's owner.
    fn owners(buckets: &EntryBuckets) -> Vec<u64> {
        let starts = (0..buckets.buckets.count() as usize).map(|bucket| buckets.start(bucket));
        starts.map(|hash| buckets.owner(hash).unwrap().id).collect()
    }

    #[test]
    fn members_own_slices_in_the_order_of_their_names() {
        let mut buckets = EntryBuckets::default();
        assert_eq!(buckets.owner(1), None);
        buckets.join(&consumer("b", 1, 1, &FOUR)).unwrap();
        assert_eq!(owners(&buckets), [1, 1, 1, 1]);
        buckets.join(&consumer("a", 2, 2, &FOUR)).unwrap();
        assert_eq!(owners(&buckets), [2, 2, 1, 1]);
        buckets.join(&consumer("c", 1, 3, &FOUR)).unwrap();
        assert_eq!(owners(&buckets), [2, 1, 3, 3]);
        // The same name: the lower id comes first.
        buckets.join(&consumer("b", 3, 0, &FOUR)).unwrap();
        assert_eq!(owners(&buckets), [2, 0, 1, 3]);
        buckets.join(&consumer("d", 1, 9, &FOUR)).unwrap();
        assert_eq!(owners(&buckets), [0, 1, 3, 9], "the fifth of five is not idle: the first is");
        buckets.leave(ConsumerKey { conn: ConnId(3), id: 0 });
        assert_eq!(owners(&buckets), [2, 1, 3, 9]);
    }

    #[test]
    fn a_bucket_stands_for_its_start_and_the_first_for_1() {
        let mut buckets = EntryBuckets::default();
        buckets.join(&consumer("a", 1, 1, &FOUR)).unwrap();
        let stored = |hash_min, key_hash| Stored {
            bytes: Bytes::new(),
            stored_at: 0,
            publish_time: 0,
            deliver_at: 0,
            messages_before: 0,
            messages: 1,
            key_hash,
            hash_min,
            batch: false,
            chunk: None,
        };
        let canonical = |hash_min, key_hash| buckets.canonical(&stored(hash_min, key_hash));
        assert_eq!(canonical(None, 0), 1);
        assert_eq!(canonical(None, 0x3fff), 1);
        assert_eq!(canonical(None, 0x4000), 0x4000);
        assert_eq!(canonical(None, 0xffff), 0xc000);
        assert_eq!(canonical(Some(0), 0xffff), 1, "the stamp counts, not the key");
        assert_eq!(canonical(Some(0xbfff), 0), 0x8000);
    }

    #[test]
    fn a_list_that_does_not_tile_the_space_in_order_is_refused() {
        let fails = |ranges: &[(i32, i32)], text: &str| {
            let error = boundaries(meta(ranges).as_ref()).unwrap_err();
            assert!(error.message.contains(text), "{error}");
        };
        fails(&[], "at least one range");
        fails(&[(1, 0xffff)], "begin at 0");
        fails(&[(0, 0xfffe)], "end at 65535");
        fails(&[(0, 10), (12, 0xffff)], "contiguous");
        fails(&[(0, 10), (10, 0xffff)], "contiguous");
        fails(&[(0, 10), (0x8000, 0xffff), (11, 0x7fff), (0x8000, 0xffff)], "ascending");
        fails(&[(11, 0xffff), (0, 10)], "begin at 0");
        fails(&[(0, 0x10000)], "not within");
        fails(&[(-1, 0xffff)], "not within");
        fails(&[(5, 4)], "start > end");
        assert!(boundaries(None).is_err());
        assert_eq!(boundaries(meta(&[(0, 0xffff)]).as_ref()).unwrap().count(), 1);
    }

    #[test]
    fn a_joiner_with_other_boundaries_is_refused() {
        let mut buckets = EntryBuckets::default();
        buckets.join(&consumer("a", 1, 1, &FOUR)).unwrap();
        let error = buckets.join(&consumer("b", 1, 2, &[(0, 0x7fff), (0x8000, 0xffff)])).unwrap_err();
        assert_eq!(error.code, stc_proto::pulsar::ServerError::ConsumerAssignError);
        assert_eq!(owners(&buckets), [1, 1, 1, 1]);
    }

    /// The cases of a file of golden vectors, which another implementation makes.
    fn vectors(text: &str) -> Vec<serde_json::Value> {
        let file: serde_json::Value = serde_json::from_str(text).unwrap();
        file["cases"].as_array().unwrap().clone()
    }

    #[test]
    fn owners_agree_with_the_vectors() {
        for case in vectors(include_str!("../../../../../vectors/v1/bucket-owners.json")) {
            let splits = BucketSplits::equal(case["buckets"].as_u64().unwrap() as u32);
            let ranges: Vec<(i32, i32)> =
                splits.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect();
            let identity = |c: &serde_json::Value| {
                (c["name"].as_str().unwrap().to_owned(), c["consumer_id"].as_u64().unwrap())
            };
            let mut buckets = EntryBuckets::default();
            let mut connected = Vec::new();
            // A connection for each: two consumers may have the same id.
            let join = |buckets: &mut EntryBuckets, connected: &mut Vec<_>, (name, id): (String, u64)| {
                let consumer = consumer(&name, connected.len() as u64, id, &ranges);
                buckets.join(&consumer).unwrap();
                connected.push((consumer.key, (name, id)));
            };
            for member in case["consumers"].as_array().unwrap() {
                join(&mut buckets, &mut connected, identity(member));
            }
            let check = |buckets: &EntryBuckets,
                         connected: &[(ConsumerKey, (String, u64))],
                         slices: &serde_json::Value| {
                for slice in slices.as_array().unwrap() {
                    for bucket in slice["from"].as_u64().unwrap()..slice["to"].as_u64().unwrap() {
                        let owner = buckets.owner(buckets.start(bucket as usize)).unwrap();
                        let owner = connected.iter().find(|(key, _)| *key == owner).unwrap();
                        assert_eq!(owner.1, identity(&slice["consumer"]), "bucket {bucket} of {case}");
                    }
                }
            };
            check(&buckets, &connected, &case["before"]);
            match case["change"].get("join") {
                Some(member) => join(&mut buckets, &mut connected, identity(member)),
                None => {
                    let leaver = identity(&case["change"]["leave"]);
                    buckets.leave(connected.iter().find(|(_, who)| *who == leaver).unwrap().0);
                }
            }
            check(&buckets, &connected, &case["after"]);
        }
    }

    #[test]
    fn boundary_lists_agree_with_the_vectors() {
        for case in vectors(include_str!("../../../../../vectors/v1/bucket-boundaries.json")) {
            if case["kind"] != "declared" {
                continue;
            }
            let ranges: Vec<(i32, i32)> = serde_json::from_value(case["ranges"].clone()).unwrap();
            let ours = boundaries(meta(&ranges).as_ref()).ok();
            let refused = case.get("refused").is_some() || case.get("refused_by_pulsar").is_some();
            assert_eq!(ours.is_none(), refused, "{case}");
            if let Some(ours) = ours {
                assert_eq!(serde_json::json!(ours.starts()), case["entry_bucket_splits"], "{case}");
            }
        }
    }

    proptest! {
        #[test]
        fn slices_cover_every_bucket_once_and_differ_by_one_at_most(count in 1u32..40, members in 1u64..50) {
            let ranges: Vec<(i32, i32)> = BucketSplits::equal(count)
                .ranges()
                .iter()
                .map(|range| (range.start().into(), range.end().into()))
                .collect();
            let mut buckets = EntryBuckets::default();
            for id in 0..members {
                buckets.join(&consumer(&format!("c{id:02}"), 1, id, &ranges)).unwrap();
            }
            let owners = owners(&buckets);
            prop_assert!(owners.is_sorted(), "slices are contiguous");
            let sizes: Vec<usize> =
                (0..members).map(|id| owners.iter().filter(|owner| **owner == id).count()).collect();
            prop_assert_eq!(sizes.iter().sum::<usize>(), count as usize);
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
