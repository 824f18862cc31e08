//! `assignments`: which segments the controller hands to which registered consumer.
//!
//! The rule of Pulsar 5.0.1, written from its description, not from the simulated broker, which is checked against
//! it:
//!
//! 1. Assignable segments, in the order of (range start, range end, id). A checkpoint group is handed every segment of
//!    the layout. A stream subscription is handed a segment when it is active or not drained, and all its ancestors
//!    that are still in the layout are drained.
//! 2. Consumers in the order of their names.
//! 3. With no more consumers than segments, and for a checkpoint group always, segment i goes to consumer i modulo
//!    the number of consumers.
//! 4. With more consumers than segments, each segment starts with one owner. The surplus goes round the segments, one
//!    owner at a time, to those with fewer owners than buckets, until it is used up or nobody takes more. Consumers
//!    are handed out in order, and who is left over gets nothing. A segment with several owners is shared: each is
//!    told its whole boundary list.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::{Layout, Segment, SegmentName, TopicName};

use crate::{
    Document, GenerateError, SEED,
    corpus::Random,
    document::About,
    layouts::{self, Dag},
};

/// One subscription.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What the case shows.
    pub name: String,
    /// The scalable topic.
    pub topic: String,
    /// What kind of consumers the subscription has.
    pub consumer_type: ConsumerType,
    /// The layout.
    pub layout: Dag,
    /// The sealed segments that the subscription has drained.
    pub drained: Vec<u64>,
    /// The names of the consumers, in the order in which they registered.
    pub consumers: Vec<String>,
    /// The ids of the segments that can be handed out, in order.
    pub assignable: Vec<u64>,
    /// Consumer → the segments of its assignment, in order.
    pub assignments: BTreeMap<String, Vec<AssignedSegment>>,
    /// Where the real broker of Pulsar 5.0.1 made this assignment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
}

/// The consumer types that register, as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum ConsumerType {
    Stream,
    Checkpoint,
}

/// A `ScalableAssignedSegment`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct AssignedSegment {
    pub segment_id: u64,
    pub hash_start: u16,
    pub hash_end: u16,
    /// The topic to attach to: `segment://…`, or the classic topic that a legacy segment wraps.
    pub segment_topic: String,
    /// Empty for the only owner; else the whole boundary list.
    pub bucket_ranges: Vec<IntRange>,
}

/// An inclusive range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct IntRange {
    pub start: u16,
    pub end: u16,
}

fn assignable<'a>(layout: &'a Layout, kind: ConsumerType, drained: &BTreeSet<u64>) -> Vec<&'a Segment> {
    let ready = |segment: &&Segment| {
        let wanted = segment.is_active() || !drained.contains(&segment.id);
        wanted && ancestors(layout, segment).is_subset(drained)
    };
    let mut found: Vec<&Segment> =
        layout.segments().filter(|segment| kind == ConsumerType::Checkpoint || ready(segment)).collect();
    found.sort_by_key(|segment| (segment.range.start(), segment.range.end(), segment.id));
    found
}

/// The ids of all ancestors that are still in the layout.
fn ancestors(layout: &Layout, segment: &Segment) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut left = segment.parents.clone();
    while let Some(id) = left.pop() {
        if let Some(parent) = layout.segment(id).filter(|_| found.insert(id)) {
            left.extend(&parent.parents);
        }
    }
    found
}

/// How many owners each segment gets: its share of `consumers`.
fn owners(segments: &[&Segment], consumers: usize) -> Vec<usize> {
    let mut owners = vec![1; segments.len()];
    let mut surplus = consumers.saturating_sub(segments.len());
    loop {
        let before = surplus;
        for (count, segment) in owners.iter_mut().zip(segments) {
            if surplus > 0 && *count < segment.buckets.count() as usize {
                *count += 1;
                surplus -= 1;
            }
        }
        if surplus == before {
            return owners;
        }
    }
}

fn assigned(topic: &TopicName, segment: &Segment, shared: bool) -> Result<AssignedSegment, GenerateError> {
    let name = || SegmentName::new(topic.clone(), segment.range, segment.id).map(|name| name.to_string());
    let segment_topic = match &segment.legacy_topic {
        Some(topic) => topic.clone(),
        None => name().map_err(|e| GenerateError::new(NAME, e))?,
    };
    let buckets = if shared { segment.buckets.ranges() } else { Vec::new() };
    Ok(AssignedSegment {
        segment_id: segment.id,
        hash_start: segment.range.start(),
        hash_end: segment.range.end(),
        segment_topic,
        bucket_ranges: buckets.into_iter().map(|r| IntRange { start: r.start(), end: r.end() }).collect(),
    })
}

/// What a case asks.
struct Question {
    name: String,
    kind: ConsumerType,
    layout: Layout,
    drained: Vec<u64>,
    consumers: Vec<String>,
    recorded: Option<&'static str>,
}

impl Question {
    fn stream(name: impl Into<String>, layout: &Layout, consumers: Vec<String>) -> Self {
        let (name, layout) = (name.into(), layout.clone());
        Question { name, kind: ConsumerType::Stream, layout, drained: Vec::new(), consumers, recorded: None }
    }

    fn answer(self) -> Result<Case, GenerateError> {
        let topic = TopicName::parse(TOPIC).map_err(|e| GenerateError::new(NAME, e))?;
        let segments = assignable(&self.layout, self.kind, &self.drained.iter().copied().collect());
        let mut sorted = self.consumers.clone();
        sorted.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
        let mut assignments: BTreeMap<String, Vec<AssignedSegment>> =
            sorted.iter().map(|consumer| (consumer.clone(), Vec::new())).collect();
        let mut give = |consumer: &String, segment: &Segment, shared| -> Result<(), GenerateError> {
            let assigned = assigned(&topic, segment, shared)?;
            assignments.entry(consumer.clone()).or_default().push(assigned);
            Ok(())
        };
        if sorted.len() <= segments.len() || self.kind == ConsumerType::Checkpoint {
            for (segment, consumer) in segments.iter().zip(sorted.iter().cycle()) {
                give(consumer, segment, false)?;
            }
        } else {
            let mut next = sorted.iter();
            for (segment, count) in segments.iter().zip(owners(&segments, sorted.len())) {
                for consumer in next.by_ref().take(count) {
                    give(consumer, segment, count > 1)?;
                }
            }
        }
        Ok(Case {
            name: self.name,
            topic: TOPIC.to_owned(),
            consumer_type: self.kind,
            layout: Dag::from(&self.layout),
            drained: self.drained,
            consumers: self.consumers,
            assignable: segments.iter().map(|segment| segment.id).collect(),
            assignments,
            recorded: self.recorded.map(str::to_owned),
        })
    }
}

const NAME: &str = "assignments";
const TOPIC: &str = "topic://public/default/orders";

/// `n` names that are registered in another order than that of the names.
fn names(n: usize) -> Vec<String> {
    (0..n).rev().map(|i| format!("c{i}")).collect()
}

fn fault(error: impl std::fmt::Display) -> GenerateError {
    GenerateError::new(NAME, error)
}

pub(crate) fn document() -> Result<Document, GenerateError> {
    let about = About {
        name: NAME,
        title: "Assignments of segments to consumers",
        description: "What the controller of Pulsar 5.0.1 hands to each consumer of a subscription. The specification \
                      leaves the rule to brokers; a client attaches to what it is assigned, Exclusive when \
                      bucket_ranges is empty, Key_Shared STICKY with the whole list when it is not.",
        specification: "wire-protocol §6.2, client-behavior §8, key-shared §4",
        seed: Some(SEED),
    };
    let mut questions = recorded().map_err(fault)?;
    questions.extend(grid().map_err(fault)?);
    questions.extend(orders().map_err(fault)?);
    questions.extend(drains().map_err(fault)?);
    questions.extend(seeded().map_err(fault)?);
    let cases = questions.into_iter().map(Question::answer).collect::<Result<Vec<_>, _>>()?;
    Document::new(&about, &cases)
}

/// What the recordings of the real broker show, with names of our own for topic and times.
fn recorded() -> Result<Vec<Question>, stc_proto::layout::ChangeError> {
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let two = Layout::initial(2, 4, 1000);
    let c_split = two.split(0, 2000)?;
    let one = Layout::initial(1, 4, 1000);
    let split = one.split(0, 2000)?;
    let merged = split.merge(1, 2, 3000)?;
    let pruned = merged.prune(0)?;
    let case = |layout: &Layout, drained: &[u64], consumers: &[&str], frame| Question {
        drained: drained.to_vec(),
        recorded: Some(frame),
        ..Question::stream("recorded", layout, text(consumers))
    };
    let third = ["sc1", "sc2", "v5-stream-Z0iVANYL"];
    let mut found = vec![
        case(&two, &[], &third[..1], "c_stream, frame 122"),
        case(&two, &[], &third[..2], "c_stream, frames 164 and 165"),
        case(&two, &[], &third, "c_stream, frames 236 to 238"),
        case(&c_split, &[], &third[..2], "c_stream, frames 313 and 314"),
        case(&c_split, &[0], &third[..2], "c_stream, frames 371 and 372"),
        case(&one, &[], &["aa", "bb"], "c2_stream_drain, frames 128 and 129"),
        case(&split, &[], &["aa", "bb"], "c2_stream_drain, frames 175 and 176"),
        case(&split, &[0], &["aa", "bb"], "c2_stream_drain, frames 212 and 213"),
        case(&merged, &[0], &["aa", "bb"], "c2_stream_drain, frames 257 and 258"),
        case(&merged, &[0, 1, 2], &["aa", "bb"], "c2_stream_drain, frames 296 and 297"),
        case(&merged, &[], &["cc"], "c2_stream_drain, frame 344"),
        case(&merged, &[0], &["cc"], "c2_stream_drain, frame 371"),
        case(&pruned, &[1, 2], &["cc"], "c2_stream_drain, frame 427"),
    ];
    for (consumers, frame) in
        [(&["g1"][..], "e_checkpoint, frame 384"), (&["g1", "g2"], "e_checkpoint, frames 456 and 457")]
    {
        found.push(Question { kind: ConsumerType::Checkpoint, ..case(&c_split, &[], consumers, frame) });
    }
    Ok(found)
}

/// Segments × consumers × buckets.
fn grid() -> Result<Vec<Question>, stc_proto::layout::ChangeError> {
    let mut found = Vec::new();
    for segments in [1, 2, 3, 5] {
        for buckets in [1, 2, 4] {
            let layout = Layout::initial(segments, segments * buckets, 1000);
            for consumers in [1, 2, 3, 4, 5, 7, 9, 12, 21] {
                let name = format!("{segments} segments of {buckets} buckets, {consumers} consumers");
                found.push(Question::stream(name, &layout, names(consumers)));
            }
        }
        for consumers in [1, 2, 3, 4, 6, 9] {
            let name = format!("{segments} segments, a checkpoint group of {consumers}");
            let layout = Layout::initial(segments, segments * 4, 1000);
            found.push(Question {
                kind: ConsumerType::Checkpoint,
                ..Question::stream(name, &layout, names(consumers))
            });
        }
    }
    // Uneven buckets: who is full is passed over while others still take more.
    let layout = Layout::initial(3, 3, 1000).rebucket(0, 5, 2000)?.rebucket(2, 2, 3000)?;
    for consumers in 1..=11 {
        let name = format!("segments of 5, 1 and 2 buckets, {consumers} consumers");
        found.push(Question { drained: vec![0, 2], ..Question::stream(name, &layout, names(consumers)) });
    }
    Ok(found)
}

/// Names whose order depends on how one compares.
fn orders() -> Result<Vec<Question>, stc_proto::layout::ChangeError> {
    let layout = Layout::initial(4, 4, 1000);
    let sets: [(&str, &[&str]); 7] = [
        ("names are compared as text, not as numbers", &["c10", "c9", "c1", "c2"]),
        ("upper case comes first", &["b", "B", "a", "A"]),
        ("a prefix comes first", &["c-1", "c", "c1", "c-"]),
        ("names beyond ASCII", &["ключ", "钥匙", "é", "e\u{301}"]),
        ("UTF-16 code units decide, not code points", &["\u{ffff}", "\u{1f511}", "\u{e000}", "\u{d7ff}"]),
        ("an empty name", &["a", "", "\0", " "]),
        ("surplus consumers in that order too", &["\u{ffff}", "\u{1f511}", "z", "Z", "\u{fb01}", "é"]),
    ];
    Ok(sets
        .into_iter()
        .map(|(name, names)| Question::stream(name, &layout, names.iter().map(|n| (*n).to_owned()).collect()))
        .collect())
}

/// Splits and merges at every stage of draining.
fn drains() -> Result<Vec<Question>, stc_proto::layout::ChangeError> {
    let split = Layout::initial(1, 4, 1000).split(0, 2000)?;
    let twice = split.split(1, 3000)?;
    let merged = twice.merge(3, 4, 4000)?;
    let rolled = Layout::initial(1, 4, 1000).rebucket(0, 8, 2000)?;
    let unequal = Layout::initial(1, 4, 1000).split(0, 2000)?.split(2, 3000)?.merge(1, 3, 4000)?;
    let pruned = twice.prune(0)?;
    let stages: [(&str, &Layout, &[u64]); 17] = [
        ("a split, nothing drained", &split, &[]),
        ("a split, parent drained", &split, &[0]),
        ("two splits, nothing drained", &twice, &[]),
        ("two splits, the root drained", &twice, &[0]),
        ("two splits, the parent drained before the root", &twice, &[1]),
        ("two splits, both drained", &twice, &[0, 1]),
        ("splits and a merge, nothing drained", &merged, &[]),
        ("splits and a merge, one parent drained", &merged, &[0, 1, 3]),
        ("splits and a merge, all but the root drained", &merged, &[1, 3, 4]),
        ("splits and a merge, all drained", &merged, &[0, 1, 3, 4]),
        ("a rebucket, nothing drained", &rolled, &[]),
        ("a rebucket, drained", &rolled, &[0]),
        ("a merge of unequal ages, the root drained", &unequal, &[0]),
        ("a merge of unequal ages, one parent left", &unequal, &[0, 2, 3]),
        ("a merge of unequal ages, all drained", &unequal, &[0, 1, 2, 3]),
        ("a pruned root, nothing else drained", &pruned, &[]),
        ("a pruned root, parent drained", &pruned, &[1]),
    ];
    let mut found = Vec::new();
    for (name, layout, drained) in stages {
        for consumers in [1, 2, 3, 6] {
            let question =
                Question::stream(format!("{name}, {consumers} consumers"), layout, names(consumers));
            found.push(Question { drained: drained.to_vec(), ..question });
        }
        let question = Question::stream(format!("{name}, a checkpoint group"), layout, names(2));
        found.push(Question { kind: ConsumerType::Checkpoint, drained: drained.to_vec(), ..question });
    }
    Ok(found)
}

/// The layouts of the seeded and migrated histories, with some of the sealed segments drained.
fn seeded() -> Result<Vec<Question>, stc_proto::layout::LayoutError> {
    let mut random = Random::new(SEED);
    let mut found = Vec::new();
    for history in layouts::histories() {
        if !history.name.starts_with("seeded") && !history.name.starts_with("migrated") {
            continue;
        }
        let Some(layout) = history.last()? else { continue };
        for part in 0..3 {
            let drained =
                layout.segments().filter(|s| !s.is_active() && (part == 2 || random.below(2) < part));
            let drained = drained.map(|segment| segment.id).collect();
            let consumers = names(1 + random.below(9) as usize);
            let question = Question::stream(format!("{}, part {part}", history.name), &layout, consumers);
            found.push(Question { drained, ..question });
        }
    }
    Ok(found)
}
