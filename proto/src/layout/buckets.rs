//! Entry buckets: the boundary list of a segment (key-shared §2).

use serde::{Deserialize, Serialize};

use super::HashRange;

/// The largest number of entry buckets that the controller of 5.0.1 gives a segment.
pub const MAX_BUCKETS: u32 = 1024;

/// A segment's boundary list: the start hashes of buckets `1..N`, strictly ascending and above 0. Empty means one
/// bucket that spans the whole bucket-hash space.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct BucketSplits(Vec<u16>);

impl TryFrom<Vec<u32>> for BucketSplits {
    type Error = &'static str;
    fn try_from(splits: Vec<u32>) -> Result<Self, Self::Error> {
        let splits: Vec<u16> = splits
            .into_iter()
            .map(|s| u16::try_from(s).map_err(|_| "a bucket starts beyond 65535"))
            .collect::<Result<_, _>>()?;
        let ascending = splits.iter().zip(splits.iter().skip(1)).all(|(a, b)| a < b);
        if splits.first() == Some(&0) || !ascending {
            return Err("bucket starts are not ascending, or bucket 1 starts at 0");
        }
        Ok(BucketSplits(splits))
    }
}

impl From<BucketSplits> for Vec<u32> {
    fn from(splits: BucketSplits) -> Self {
        splits.0.into_iter().map(u32::from).collect()
    }
}

impl BucketSplits {
    /// `n` buckets of equal width: bucket i starts at ⌊i·65536/n⌋. `n` is clamped to `1..=`[`MAX_BUCKETS`].
    pub fn equal(n: u32) -> Self {
        let n = n.clamp(1, MAX_BUCKETS);
        BucketSplits((1..n).map(|i| (i * 65536 / n) as u16).collect())
    }

    /// The start hashes of buckets `1..N`.
    pub fn starts(&self) -> &[u16] {
        &self.0
    }

    /// How many buckets there are, at least 1.
    pub fn count(&self) -> u32 {
        self.0.len() as u32 + 1
    }

    /// Which bucket holds a bucket hash, counted from 0.
    pub fn index_of(&self, hash: u16) -> usize {
        self.0.partition_point(|start| *start <= hash)
    }

    /// The buckets as inclusive ranges that tile the space.
    pub fn ranges(&self) -> Vec<HashRange> {
        let starts = std::iter::once(0).chain(self.0.iter().copied());
        let ends = self.0.iter().map(|start| start - 1).chain(std::iter::once(u16::MAX));
        starts.zip(ends).filter_map(|(start, end)| HashRange::new(start, end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_equal_width() {
        assert_eq!(BucketSplits::equal(3).starts(), [21845, 43690]);
        assert_eq!(BucketSplits::equal(0), BucketSplits::default());
        assert_eq!(BucketSplits::equal(5000).count(), MAX_BUCKETS);
    }

    #[test]
    fn a_hash_belongs_to_the_bucket_that_starts_last() {
        let four = BucketSplits::equal(4);
        let indexes = [0, 16383, 16384, 49151, 49152, 65535].map(|hash| four.index_of(hash));
        assert_eq!(indexes, [0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn only_ascending_starts_are_a_list() {
        assert!(BucketSplits::try_from(vec![1, 65535]).is_ok());
        for bad in [vec![0], vec![2, 2], vec![3, 2], vec![65536]] {
            assert!(BucketSplits::try_from(bad.clone()).is_err(), "{bad:?}");
        }
    }
}
