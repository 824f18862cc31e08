//! `bucket-boundaries`: what is a boundary list, in both forms that the wire has, and what is none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::layout::{BucketSplits, MAX_BUCKETS};

use crate::{Document, GenerateError, SEED, document::About, routing};

/// One question about boundary lists.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Case {
    /// `count` buckets of equal width: bucket i starts at ⌊i·65536/count⌋.
    Equal {
        /// How many buckets.
        count: u32,
        /// The start hashes of buckets 1 to N-1.
        entry_bucket_splits: Vec<u16>,
    },
    /// A list as the layout carries it.
    Splits {
        /// The start hashes of buckets 1 to N-1.
        entry_bucket_splits: Vec<u32>,
        /// The buckets' inclusive ranges, as a SUBSCRIBE declares them; absent when the list is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ranges: Option<Vec<(u16, u16)>>,
        /// For each bucket the one hash that stands for it at the broker: its start, but 1 for bucket 0. Absent where
        /// bucket 1 starts at 1: two buckets cannot share one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        canonical: Option<Vec<u16>>,
        /// Why it is none; absent when it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<Refusal>,
    },
    /// Ranges as a SUBSCRIBE declares them in `KeySharedMeta.hashRanges`.
    Declared {
        /// Start and end, both inclusive.
        ranges: Vec<(i32, i32)>,
        /// The boundary list; absent when the ranges are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry_bucket_splits: Option<Vec<u16>>,
        /// Why they are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<Refusal>,
        /// Whether Pulsar 5.0.1 refuses the list although it is one: there bucket 0 has to hold the hashes 0 and 1.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        refused_by_pulsar: bool,
    },
}

/// The first reason why a list is no boundary list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// There is no range.
    Empty,
    /// A hash is outside of 0 to 65535.
    OutOfRing,
    /// A split at 0, a range that ends before it starts, or an order that is not ascending.
    NotAscending,
    /// The first range does not start at 0, the last does not end at 65535, or two do not touch or overlap.
    NotTiling,
}

type Ranges = &'static [(i32, i32)];

/// Declared ranges that are none, with the reason. For pairs the check is: no range at all; any hash outside of the
/// ring; any range, or any two neighbours, that do not ascend; any gap.
const BAD_RANGES: &[(Ranges, Refusal)] = &[
    (&[], Refusal::Empty),
    (&[(-1, 65_535)], Refusal::OutOfRing),
    (&[(0, 65_536)], Refusal::OutOfRing),
    (&[(0, 32_767), (32_768, 70_000)], Refusal::OutOfRing),
    (&[(65_535, 0)], Refusal::NotAscending),
    (&[(0, 16_383), (32_767, 16_384), (32_768, 65_535)], Refusal::NotAscending),
    (&[(32_768, 65_535), (0, 32_767)], Refusal::NotAscending),
    (&[(0, 65_535), (0, 65_535)], Refusal::NotAscending),
    (&[(0, 32_767), (0, 32_767), (32_768, 65_535)], Refusal::NotAscending),
    (&[(0, 32_767), (32_767, 65_535)], Refusal::NotAscending),
    (&[(0, 40_000), (32_768, 65_535)], Refusal::NotAscending),
    (&[(0, 32_767)], Refusal::NotTiling),
    (&[(32_768, 65_535)], Refusal::NotTiling),
    (&[(1, 65_535)], Refusal::NotTiling),
    (&[(0, 65_534)], Refusal::NotTiling),
    (&[(0, 16_383), (32_768, 65_535)], Refusal::NotTiling),
    (&[(0, 32_766), (32_768, 65_535)], Refusal::NotTiling),
    (&[(0, 16_383), (16_384, 32_767), (49_152, 65_535)], Refusal::NotTiling),
];

const BAD_SPLITS: &[(&[u32], Refusal)] = &[
    (&[0], Refusal::NotAscending),
    (&[0, 32_768], Refusal::NotAscending),
    (&[2, 2], Refusal::NotAscending),
    (&[3, 2], Refusal::NotAscending),
    (&[16_384, 49_152, 32_768], Refusal::NotAscending),
    (&[65_536], Refusal::OutOfRing),
    (&[32_768, 100_000], Refusal::OutOfRing),
];

pub(crate) fn document() -> Result<Document, GenerateError> {
    let about = About {
        name: "bucket-boundaries",
        title: "Boundary lists of entry buckets",
        description: "The boundaries of N equal buckets, the ranges that a list means, and lists that are none: \
                      buckets are ascending, contiguous and tile 0 to 65535. The canonical hash is how the broker \
                      names a bucket in its dispatch; clients do not need it.",
        specification: "key-shared §2, key-shared §4",
        seed: Some(SEED),
    };
    let error = |e| GenerateError::new(about.name, e);
    let counts = (1..=33).chain([63, 64, 65, 100, 255, 256, 1000, MAX_BUCKETS]);
    let mut cases: Vec<Case> = counts
        .map(|count| Case::Equal { count, entry_bucket_splits: BucketSplits::equal(count).starts().to_vec() })
        .collect();
    for list in routing::boundary_lists() {
        let splits = BucketSplits::try_from(list.clone()).map_err(error)?;
        let ranges: Vec<(u16, u16)> = splits.ranges().iter().map(|r| (r.start(), r.end())).collect();
        let narrow = splits.starts().first() == Some(&1);
        let canonical = (!narrow).then(|| ranges.iter().map(|(start, _)| (*start).max(1)).collect());
        cases.push(Case::Declared {
            ranges: ranges.iter().map(|(start, end)| (i32::from(*start), i32::from(*end))).collect(),
            entry_bucket_splits: Some(splits.starts().to_vec()),
            refused: None,
            refused_by_pulsar: narrow,
        });
        cases.push(Case::Splits {
            entry_bucket_splits: list,
            ranges: Some(ranges),
            canonical,
            refused: None,
        });
    }
    for (list, refusal) in BAD_SPLITS {
        if BucketSplits::try_from(list.to_vec()).is_ok() {
            return Err(GenerateError::new(about.name, format!("{list:?} is a boundary list")));
        }
        cases.push(Case::Splits {
            entry_bucket_splits: list.to_vec(),
            ranges: None,
            canonical: None,
            refused: Some(*refusal),
        });
    }
    cases.extend(BAD_RANGES.iter().map(|(ranges, refusal)| Case::Declared {
        ranges: ranges.to_vec(),
        entry_bucket_splits: None,
        refused: Some(*refusal),
        refused_by_pulsar: false,
    }));
    Document::new(&about, &cases)
}
