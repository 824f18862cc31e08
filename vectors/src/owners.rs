//! `bucket-owners`: which consumer of a shared segment owns which entry bucket, and what moves when one joins or
//! leaves.
//!
//! Written from the description of the hand-over (consumers in the order of name and id; consumer j of k owns the
//! buckets from ⌊j·N/k⌋ to before ⌊(j+1)·N/k⌋), not from the simulated broker, which is checked against it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Document, GenerateError, SEED, corpus::Random, document::About};

/// One membership and one change of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The number N of the segment's buckets.
    pub buckets: u32,
    /// Who is connected, in the order in which they subscribed.
    pub consumers: Vec<Consumer>,
    /// Who comes or goes.
    pub change: Change,
    /// The slices before the change, in the order of name and id.
    pub before: Vec<Slice>,
    /// The slices after the change.
    pub after: Vec<Slice>,
    /// The buckets that have another owner after it, ascending.
    pub moved: Vec<Move>,
}

/// A consumer of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Consumer {
    /// The name it subscribed with. Names are compared by their UTF-16 code units.
    pub name: String,
    /// Its id on its connection; decides between equal names.
    pub consumer_id: u64,
}

/// A change of the membership.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// A consumer subscribes.
    Join(Consumer),
    /// A consumer goes.
    Leave(Consumer),
}

/// A consumer's buckets.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// The consumer.
    pub consumer: Consumer,
    /// The first bucket.
    pub from: u32,
    /// The bucket after the last one; `from` when there is none.
    pub to: u32,
}

/// A bucket with a new owner.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The bucket, counted from 0.
    pub bucket: u32,
    /// Who had it; null when nobody was connected.
    pub from: Option<Consumer>,
    /// Who has it now; null when nobody is connected.
    pub to: Option<Consumer>,
}

fn slices(buckets: u32, members: &[Consumer]) -> Vec<Slice> {
    let mut sorted = members.to_vec();
    sorted.sort_by(|a, b| {
        a.name.encode_utf16().cmp(b.name.encode_utf16()).then(a.consumer_id.cmp(&b.consumer_id))
    });
    let k = sorted.len() as u32;
    let start = |j: u32| (j * buckets).checked_div(k).unwrap_or(0);
    sorted
        .into_iter()
        .zip(0..)
        .map(|(consumer, j)| Slice { consumer, from: start(j), to: start(j + 1) })
        .collect()
}

fn owner(slices: &[Slice], bucket: u32) -> Option<&Consumer> {
    slices.iter().find(|slice| (slice.from..slice.to).contains(&bucket)).map(|slice| &slice.consumer)
}

fn case(buckets: u32, consumers: Vec<Consumer>, change: Change) -> Case {
    let mut members = consumers.clone();
    match &change {
        Change::Join(consumer) => members.push(consumer.clone()),
        Change::Leave(consumer) => members.retain(|member| member != consumer),
    }
    let (before, after) = (slices(buckets, &consumers), slices(buckets, &members));
    let moved = (0..buckets)
        .map(|bucket| Move {
            bucket,
            from: owner(&before, bucket).cloned(),
            to: owner(&after, bucket).cloned(),
        })
        .filter(|moved| moved.from != moved.to)
        .collect();
    Case { buckets, consumers, change, before, after, moved }
}

fn named(name: impl Into<String>, consumer_id: u64) -> Consumer {
    Consumer { name: name.into(), consumer_id }
}

pub(crate) fn document() -> Result<Document, GenerateError> {
    let about = About {
        name: "bucket-owners",
        title: "Owners of entry buckets",
        description: "How a broker spreads the N buckets of a shared segment over the connected consumers, and which \
                      buckets move when one joins or leaves; a moved bucket is withheld until its former owner \
                      acknowledged what it holds. Consumer j of k, in the order of (name, id), owns the buckets from \
                      floor(j*N/k) to before floor((j+1)*N/k). Clients compute none of this.",
        specification: "key-shared §4",
        seed: Some(SEED),
    };
    let mut cases = Vec::new();
    // Every N and k up to a point: a consumer joins in front, in the middle and behind, then each one leaves.
    for buckets in [1, 2, 3, 4, 5, 8, 16] {
        for k in 0..=6_u64 {
            let members: Vec<Consumer> = (0..k).map(|i| named(format!("c{}", 2 * i + 1), i)).collect();
            for place in [0, 2 * (k / 2), 2 * k] {
                let join = case(buckets, members.clone(), Change::Join(named(format!("c{place}"), 9)));
                cases.push(join);
            }
        }
        for k in 1..=5_u64 {
            let members: Vec<Consumer> = (0..k).map(|i| named(format!("c{i}"), i)).collect();
            for leaver in &members {
                cases.push(case(buckets, members.clone(), Change::Leave(leaver.clone())));
            }
        }
    }
    cases.extend([
        // The order of subscribing does not count; the id decides between equal names, as a number.
        case(4, vec![named("b", 0), named("a", 1)], Change::Join(named("aa", 0))),
        case(4, vec![named("same", 10), named("same", 2)], Change::Join(named("same", 1))),
        case(6, vec![named("same", 2), named("same", 10)], Change::Leave(named("same", 2))),
        case(4, vec![named("c10", 0), named("c9", 0)], Change::Join(named("c1", 0))),
        case(4, vec![named("", 0), named("a", 0)], Change::Join(named("A", 0))),
        // By code point or by byte the first of these would come last.
        case(4, vec![named("\u{1f511}", 0), named("\u{ffff}", 0)], Change::Join(named("\u{e000}", 0))),
        case(3, vec![named("e\u{301}", 0), named("\u{e9}", 0)], Change::Join(named("z", 0))),
        case(64, vec![named("a", 0), named("b", 0), named("c", 0)], Change::Join(named("d", 0))),
    ]);
    let mut random = Random::new(SEED);
    for _ in 0..40 {
        let buckets = 1 + random.below(24) as u32;
        let mut members: Vec<Consumer> = Vec::new();
        for _ in 0..1 + random.below(8) {
            let member = named(format!("m{}", random.below(40)), random.below(3));
            if !members.contains(&member) {
                members.push(member);
            }
        }
        let pick = members.get(random.below(members.len() as u64) as usize).cloned();
        let change = match pick.filter(|_| random.below(2) == 0) {
            Some(member) => Change::Leave(member),
            None => Change::Join(named(format!("n{}", random.below(40)), random.below(3))),
        };
        cases.push(case(buckets, members, change));
    }
    Document::new(&about, &cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_tile_the_buckets() {
        for buckets in 1..40 {
            for k in 1..12_u64 {
                let members: Vec<Consumer> = (0..k).map(|i| named(format!("c{i}"), 0)).collect();
                let slices = slices(buckets, &members);
                assert_eq!((slices[0].from, slices[slices.len() - 1].to), (0, buckets));
                assert!(slices.windows(2).all(|pair| pair[0].to == pair[1].from));
                // No two differ by more than one bucket.
                let sizes = slices.iter().map(|s| s.to - s.from);
                assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1, "{buckets} {k}");
            }
        }
    }

    #[test]
    fn what_did_not_move_has_its_owner() {
        let moved = case(4, vec![named("a", 0)], Change::Join(named("b", 0))).moved;
        assert_eq!(moved.iter().map(|m| m.bucket).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(moved[0].to, Some(named("b", 0)));
    }
}
