//! Which consumer of a Key_Shared subscription owns a key hash.

use stc_proto::{
    HashRange, KeyHash,
    pulsar::{IntRange, KeySharedMeta, KeySharedMode, ServerError},
};

use super::entry_bucket::EntryBuckets;
use crate::core::{
    ids::ConsumerKey,
    topic::{consumer::Consumer, error::TopicError, ledger::Stored},
};

/// Places that one consumer has on the ring.
const POINTS: u32 = 100;

#[derive(Debug)]
pub(super) enum Selector {
    /// Consistent hashing: a newcomer takes some hashes from each of the others, and leaves them again.
    AutoSplit(Vec<(u16, ConsumerKey)>),
    /// Each consumer names its ranges.
    Sticky(Vec<(HashRange, ConsumerKey)>),
    /// All name the same buckets, and share them.
    EntryBucket(EntryBuckets),
}

impl Selector {
    /// What the first consumer asks for.
    pub(super) fn new(meta: Option<&KeySharedMeta>) -> Self {
        if meta.is_some_and(KeySharedMeta::entry_bucket_dispatch) {
            return Selector::EntryBucket(EntryBuckets::default());
        }
        match meta.map_or(KeySharedMode::AutoSplit, KeySharedMeta::key_shared_mode) {
            KeySharedMode::AutoSplit => Selector::AutoSplit(Vec::new()),
            KeySharedMode::Sticky => Selector::Sticky(Vec::new()),
        }
    }

    /// The hash that an entry is dispatched by: entries of one such hash stay together and in order.
    pub(super) fn hash(&self, entry: &Stored) -> u16 {
        match self {
            Selector::AutoSplit(_) | Selector::Sticky(_) => entry.key_hash,
            Selector::EntryBucket(buckets) => buckets.canonical(entry),
        }
    }

    /// Takes in a consumer. Fails with ConsumerAssignError when its ranges are not in order or belong to another one.
    pub(super) fn join(&mut self, new: &Consumer, others: &[Consumer]) -> Result<(), TopicError> {
        match self {
            Selector::AutoSplit(ring) => {
                let point = |i| KeyHash::of(&format!("{} {} {i}", new.name, new.key)).segment();
                ring.extend((0..POINTS).map(|i| (point(i), new.key)));
                ring.sort();
            }
            Selector::Sticky(ranges) => {
                let added = declared_ranges(new.key_shared.as_ref())?;
                let taken = |range: &HashRange| ranges.iter().find(|(other, _)| overlap(*range, *other));
                if let Some((_, owner)) = added.iter().find_map(taken) {
                    let name = others.iter().find(|c| c.key == *owner).map_or("", |c| c.name.as_str());
                    return Err(assign_error(format!("Range conflict with consumer {name}")));
                }
                ranges.extend(added.into_iter().map(|range| (range, new.key)));
                ranges.sort();
            }
            Selector::EntryBucket(buckets) => buckets.join(new)?,
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, key: ConsumerKey) {
        match self {
            Selector::AutoSplit(ring) => ring.retain(|(_, owner)| *owner != key),
            Selector::Sticky(ranges) => ranges.retain(|(_, owner)| *owner != key),
            Selector::EntryBucket(buckets) => buckets.leave(key),
        }
    }

    /// Who owns a hash; nobody in a gap between the ranges of sticky consumers.
    pub(super) fn owner(&self, hash: u16) -> Option<ConsumerKey> {
        match self {
            Selector::AutoSplit(ring) => {
                let next = ring.partition_point(|(point, _)| *point < hash);
                ring.get(next).or(ring.first()).map(|(_, owner)| *owner)
            }
            Selector::Sticky(ranges) => {
                let next = ranges.partition_point(|(range, _)| range.end() < hash);
                ranges.get(next).filter(|(range, _)| range.contains(hash)).map(|(_, owner)| *owner)
            }
            Selector::EntryBucket(buckets) => buckets.owner(hash),
        }
    }
}

fn declared_ranges(meta: Option<&KeySharedMeta>) -> Result<Vec<HashRange>, TopicError> {
    let Some(meta) = meta else {
        return Err(assign_error("Must specify key shared meta for consumer."));
    };
    if meta.hash_ranges.is_empty() {
        return Err(assign_error("Ranges for KeyShared policy must not be empty."));
    }
    let mut ranges = hash_ranges(&meta.hash_ranges)?;
    ranges.sort();
    if let Some((a, b)) = ranges.iter().zip(ranges.iter().skip(1)).find(|(a, b)| overlap(**a, **b)) {
        let (a, b) = ((a.start(), a.end()), (b.start(), b.end()));
        return Err(assign_error(format!(
            "Consumer's own ranges conflict: [{},{}] overlaps with [{},{}]",
            a.0, a.1, b.0, b.1
        )));
    }
    Ok(ranges)
}

/// The ranges of a SUBSCRIBE, in its order.
pub(super) fn hash_ranges(declared: &[IntRange]) -> Result<Vec<HashRange>, TopicError> {
    let range = |IntRange { start, end }: &IntRange| {
        let valid = match (u16::try_from(*start), u16::try_from(*end)) {
            (Ok(start), Ok(end)) => HashRange::new(start, end),
            _ => None,
        };
        valid.ok_or_else(|| {
            assign_error(match start > end {
                true => format!("Fixed hash range start > end for range: [{start},{end}]"),
                false => format!("Fixed hash range is not within [0,65535]: [{start},{end}]"),
            })
        })
    };
    declared.iter().map(range).collect()
}

fn overlap(a: HashRange, b: HashRange) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}

pub(super) fn assign_error(message: impl Into<String>) -> TopicError {
    TopicError::new(ServerError::ConsumerAssignError, message)
}
