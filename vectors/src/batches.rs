//! `bucket-batches`: how messages of one segment go into single-bucket batches, and what each is stamped with.
//!
//! Written from key-shared §3, not from the reference client, which is checked against it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::{KeyHash, layout::BucketSplits};

use crate::{
    Document, GenerateError, SEED,
    corpus::{Atlas, Corpus, Random},
    document::About,
    routing,
};

/// The messages of one segment.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The segment's boundary list.
    pub entry_bucket_splits: Vec<u16>,
    /// The keys of the messages in the order in which they are sent; null for a message without a key.
    pub keys: Vec<Option<String>>,
    /// The batches, when every message of a bucket goes into one. Ordered by bucket. Smaller batches are allowed; each
    /// is then stamped with what it holds.
    pub batches: Vec<Batch>,
    /// The messages without a key, counted from 0. They may go into any batch, whose stamp does not change by it, or
    /// into entries of their own, which are stamped 0 and 0 or not at all.
    pub keyless: Vec<usize>,
    /// What each message is stamped with when it is an entry of its own: both values are its bucket hash. Null for a
    /// message without a key.
    pub unbatched: Vec<Option<u16>>,
}

/// One stored entry.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The bucket, counted from 0.
    pub bucket: usize,
    /// The messages in it, counted from 0, in the order in which they are sent.
    pub messages: Vec<usize>,
    /// The smallest bucket hash among them.
    pub entry_hash_min: u16,
    /// The largest bucket hash among them.
    pub entry_hash_max: u16,
}

/// The bucket of a hash: how many buckets start at or before it, beside the first.
fn bucket(splits: &[u16], hash: u16) -> usize {
    splits.iter().filter(|start| **start <= hash).count()
}

fn case(splits: &[u16], keys: Vec<Option<String>>) -> Case {
    let hashes: Vec<Option<u16>> =
        keys.iter().map(|key| key.as_deref().map(|key| KeyHash::of(key).bucket())).collect();
    let mut batches = BTreeMap::<usize, Batch>::new();
    for (message, hash) in hashes.iter().enumerate() {
        let Some(hash) = *hash else { continue };
        let bucket = bucket(splits, hash);
        let batch = batches.entry(bucket).or_insert_with(|| Batch {
            bucket,
            messages: Vec::new(),
            entry_hash_min: hash,
            entry_hash_max: hash,
        });
        batch.messages.push(message);
        batch.entry_hash_min = batch.entry_hash_min.min(hash);
        batch.entry_hash_max = batch.entry_hash_max.max(hash);
    }
    let keyless = (0..).zip(&hashes).filter(|(_, hash)| hash.is_none()).map(|(message, _)| message).collect();
    Case {
        entry_bucket_splits: splits.to_vec(),
        keys,
        batches: batches.into_values().collect(),
        keyless,
        unbatched: hashes,
    }
}

pub(crate) fn document(keys: &Corpus, atlas: &Atlas) -> Result<Document, GenerateError> {
    let about = About {
        name: "bucket-batches",
        title: "Batches by entry bucket and their stamps",
        description: "Messages of one segment in sending order, and the entries that a producer with entry-bucketing \
                      makes of them: one bucket an entry, stamped with the smallest and the largest bucket hash that \
                      is really in it, with one bucket too.",
        specification: "key-shared §3",
        seed: Some(SEED),
    };
    let some = |keys: &[&str]| keys.iter().map(|key| Some((*key).to_owned())).collect::<Vec<_>>();
    let few = some(&["key-0", "key-1", "key-2", "key-3", "key-0", "key-4", "key-1"]);
    let with_keyless: Vec<Option<String>> =
        [Some("key-0"), None, Some("key-1"), None, Some("")].map(|key| key.map(str::to_owned)).into();
    let mut cases = Vec::new();
    for splits in [&[][..], &[32_768], &[16_384, 32_768, 49_152], &[1], &[65_535]] {
        cases.push(case(splits, few.clone()));
        cases.push(case(splits, with_keyless.clone()));
        cases.push(case(splits, vec![None, None]));
        cases.push(case(splits, some(&[""])));
        cases.push(case(splits, some(&["same", "same", "same"])));
    }
    let mut random = Random::new(SEED);
    for (number, list) in routing::boundary_lists().into_iter().enumerate() {
        let list = BucketSplits::try_from(list).map_err(|e| GenerateError::new(about.name, e))?;
        // Both sides of a boundary, among others: they are not one batch however close they are.
        let mut chosen: Vec<Option<String>> = list
            .starts()
            .iter()
            .take(4)
            .flat_map(|start| [start - 1, *start])
            .filter_map(|hash| atlas.bucket(hash))
            .map(Some)
            .collect();
        chosen.extend(keys.sample(number, 150, 32).map(|key| Some(key.to_owned())));
        for i in (1..chosen.len()).rev() {
            chosen.swap(i, random.below(i as u64 + 1) as usize);
        }
        cases.push(case(list.starts(), chosen));
    }
    Document::new(&about, &cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_what_is_in_the_entry() {
        // key-0, key-1, key-2: f8bf, 15a0, 550c.
        let keys = ["key-0", "key-1", "key-2"].map(|key| Some(key.to_owned()));
        let stamps = |splits: &[u16]| -> Vec<_> {
            let case = case(splits, keys.to_vec());
            case.batches.iter().map(|b| (b.bucket, b.entry_hash_min, b.entry_hash_max)).collect()
        };
        assert_eq!(stamps(&[]), [(0, 0x15A0, 0xF8BF)]);
        assert_eq!(stamps(&[0x8000]), [(0, 0x15A0, 0x550C), (1, 0xF8BF, 0xF8BF)]);
        assert_eq!(stamps(&[0x15A0, 0x15A1]), [(1, 0x15A0, 0x15A0), (2, 0x550C, 0xF8BF)]);
    }
}
