//! `layout-changes`: what a split, a merge, a rebucket or a pruning makes of a layout.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::{Layout, layout::ChangeError};

use crate::{
    Document, GenerateError, SEED,
    document::About,
    layouts::{self, Change, Dag},
};

/// One change of one layout.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The history that the change is part of. A refused change leaves the layout as it was.
    pub history: String,
    /// The layout before; null when the change makes the first one.
    pub before: Option<Numbered>,
    /// What happens.
    pub change: Change,
    /// When it happens, in milliseconds since 1970.
    pub at_ms: u64,
    /// The layout after it; absent when the change is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Numbered>,
    /// Why it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
}

/// A layout with the id that its next segment gets, which is not on the wire.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Numbered {
    /// The next segment's id.
    pub next_segment_id: u64,
    /// The layout, its segments in the order of their ids.
    pub layout: Dag,
}

/// Why a layout does not change. The first of these that applies, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The layout has no such segment. For a merge, each segment is looked at in turn.
    UnknownSegment,
    /// The segment is sealed.
    NotActive,
    /// The segment wraps a classic topic.
    Legacy,
    /// A range of one hash cannot be split.
    TooNarrow,
    /// The ranges do not touch, or both are one segment.
    NotAdjacent,
    /// Not in 1 to 1024.
    BucketCount,
    /// The segment has these buckets already.
    SameBuckets,
    /// An active segment cannot be pruned.
    Active,
}

fn refusal(error: &ChangeError) -> Option<Refusal> {
    Some(match error {
        ChangeError::Unknown(_) => Refusal::UnknownSegment,
        ChangeError::NotActive(_) => Refusal::NotActive,
        ChangeError::Legacy(_) => Refusal::Legacy,
        ChangeError::TooNarrow(_) => Refusal::TooNarrow,
        ChangeError::NotAdjacent(..) => Refusal::NotAdjacent,
        ChangeError::BucketCount(_) => Refusal::BucketCount,
        ChangeError::SameBuckets(_) => Refusal::SameBuckets,
        ChangeError::Active(_) => Refusal::Active,
        ChangeError::Exhausted => return None,
    })
}

pub(crate) fn document() -> Result<Document, GenerateError> {
    let about = About {
        name: "layout-changes",
        title: "Layout changes",
        description: "One change a case, with the whole layout before and after. The specification leaves to brokers \
                      how ranges are cut, numbered and given buckets: these are the rules of Pulsar 5.0.1. A client \
                      applies whatever layout it is sent.",
        specification: "terminology, wire-protocol §2, key-shared §5, compatibility §1",
        seed: Some(SEED),
    };
    let numbered =
        |layout: &Layout| Numbered { next_segment_id: layout.next_segment_id(), layout: layout.into() };
    let mut cases = Vec::new();
    for history in layouts::histories() {
        for step in history.play().map_err(|e| GenerateError::new(about.name, e))? {
            let refused = match &step.result {
                Ok(_) => None,
                Err(e) => Some(refusal(e).ok_or_else(|| GenerateError::new(about.name, e))?),
            };
            cases.push(Case {
                history: step.history,
                before: step.before.as_ref().map(numbered),
                change: step.change,
                at_ms: step.at_ms,
                after: step.result.ok().as_ref().map(numbered),
                refused,
            });
        }
    }
    Document::new(&about, &cases)
}
