//! `segment-routing`: key → segment, on whole layouts. `bucket-routing`: key → entry bucket, on boundary lists.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::{KeyHash, Layout, layout::BucketSplits};

use crate::{
    Document, GenerateError, SEED,
    corpus::{Atlas, Corpus, Random},
    document::About,
    layouts::{self, Dag},
};

/// Where keys go on one layout.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SegmentCase {
    /// The layout's history.
    pub name: String,
    /// The layout. Its segments are not in any order.
    pub layout: Dag,
    /// Key → id of the segment that it goes to.
    pub routes: BTreeMap<String, u64>,
}

/// Where keys go on one boundary list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketCase {
    /// The start hashes of buckets 1 to N-1, as in `entry_bucket_splits`.
    pub entry_bucket_splits: Vec<u16>,
    /// Key → bucket, counted from 0.
    pub buckets: BTreeMap<String, usize>,
}

/// At most this many segments or buckets are visited at both ends.
const VISITED: usize = 24;

pub(crate) fn segments(keys: &Corpus, atlas: &Atlas) -> Result<Document, GenerateError> {
    let about = About {
        name: "segment-routing",
        title: "Keys on layouts",
        description: "One layout a case, as it is after splits, merges, rebuckets, pruning and migration. Each key \
                      goes to the active segment whose inclusive range holds its segment hash; when all active \
                      segments are legacy, to the one that the masked hash modulo their number selects in the order \
                      of segment ids. Keys at-N have hashes on the edges of ranges.",
        specification: "client-behavior §2, wire-protocol §2, wire-protocol §5, compatibility §1",
        seed: Some(SEED),
    };
    let mut random = Random::new(SEED);
    let mut cases = Vec::new();
    for (number, history) in layouts::histories().iter().enumerate() {
        let last = history.last().map_err(|e| GenerateError::new(about.name, e))?;
        let Some(layout) = last else { continue };
        let mut routes = BTreeMap::new();
        let edges = layout.active().take(VISITED).flat_map(|s| [s.range.start(), s.range.end()]);
        let edges: Vec<String> = edges.filter_map(|hash| atlas.segment(hash)).collect();
        for key in edges.iter().map(String::as_str).chain(keys.sample(number, 97, 40)) {
            let segment = route(&layout, key).ok_or_else(|| GenerateError::new(about.name, key))?;
            routes.insert(key.to_owned(), segment);
        }
        let mut dag = Dag::from(&layout);
        shuffle(&mut dag.segments, &mut random);
        cases.push(SegmentCase { name: history.name.clone(), layout: dag, routes });
    }
    Document::new(&about, &cases)
}

fn route(layout: &Layout, key: &str) -> Option<u64> {
    layout.route(KeyHash::of(key)).map(|segment| segment.id)
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.below(i as u64 + 1) as usize);
    }
}

pub(crate) fn buckets(keys: &Corpus, atlas: &Atlas) -> Result<Document, GenerateError> {
    let about = About {
        name: "bucket-routing",
        title: "Keys on boundary lists",
        description: "One boundary list a case, most of them with buckets of uneven width. A key belongs to the \
                      bucket whose inclusive range holds its bucket hash. Keys at-N have hashes on the edges of \
                      buckets.",
        specification: "key-shared §2",
        seed: Some(SEED),
    };
    let mut cases = Vec::new();
    for (number, splits) in boundary_lists().into_iter().enumerate() {
        let list = BucketSplits::try_from(splits).map_err(|e| GenerateError::new(about.name, e))?;
        let edges = list.ranges().into_iter().take(VISITED).flat_map(|r| [r.start(), r.end()]);
        let edges: Vec<String> = edges.chain([0, u16::MAX]).filter_map(|hash| atlas.bucket(hash)).collect();
        let buckets = edges
            .iter()
            .map(String::as_str)
            .chain(keys.sample(number, 61, 40))
            .map(|key| (key.to_owned(), list.index_of(KeyHash::of(key).bucket())))
            .collect();
        cases.push(BucketCase { entry_bucket_splits: list.starts().to_vec(), buckets });
    }
    Document::new(&about, &cases)
}

/// One bucket, equal widths, the narrowest buckets at every place, and lists drawn at random.
pub(crate) fn boundary_lists() -> Vec<Vec<u32>> {
    let mut lists: Vec<Vec<u32>> =
        [1, 2, 3, 4, 5, 7, 8, 16, 31, 64].map(|n| BucketSplits::equal(n).into()).into();
    lists.extend([
        vec![1],
        vec![65_535],
        vec![1, 2],
        vec![1, 2, 3],
        vec![65_533, 65_534, 65_535],
        vec![1, 65_535],
        vec![32_767],
        vec![32_767, 32_768],
        vec![32_767, 32_768, 32_769],
        vec![255, 256, 257],
        vec![100, 200, 40_000],
        vec![60_000],
        vec![6_553, 6_554, 45_000, 65_000],
    ]);
    let mut random = Random::new(SEED);
    for count in [2, 3, 3, 4, 5, 6, 9, 12, 20, 33, 64] {
        let mut list = Vec::new();
        while list.len() < count {
            let start = 1 + random.below(65_535) as u32;
            if !list.contains(&start) {
                list.push(start);
            }
        }
        list.sort_unstable();
        lists.push(list);
    }
    lists
}
