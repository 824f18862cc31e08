//! The differences that are explained: typed rules, each with its number in `docs/divergences.md` and its reason.

use serde_json::Value as Json;

use super::compare::Difference;
use super::op::Op;
use super::trace::{About, Place};

/// A difference that is known, and why it is none of the simulator's.
pub struct Equivalence {
    /// The entry in `docs/divergences.md`.
    pub number: &'static str,
    /// Why the real broker differs.
    pub reason: &'static str,
    /// Whether it explains this difference.
    holds: fn(&Case<'_>) -> bool,
}

/// A difference with the steps before it.
struct Case<'a> {
    /// The steps up to this one, included.
    ops: &'a [Op],
    difference: &'a Difference,
}

const EQUIVALENCES: &[Equivalence] = &[Equivalence {
    number: "B22",
    reason: "what is acknowledged after its segment was sealed can be taken off the count twice",
    holds: |case| {
        let Difference { place, simulated, real } = case.difference;
        let below_zero = real.as_ref().and_then(Json::as_i64).is_some_and(|count| count < 0);
        let sealed = |op: &Op| matches!(op, Op::Split { .. } | Op::Merge { .. } | Op::Rebucket { .. });
        matches!(place, Place::Subscription { about: About::Unacknowledged(_), .. })
            && simulated.as_ref().and_then(Json::as_u64) == Some(0)
            && below_zero
            && case.ops.iter().any(sealed)
    },
}];

/// What explains a difference in this step.
#[must_use]
pub fn explanation(ops: &[Op], step: usize, difference: &Difference) -> Option<&'static Equivalence> {
    let case = Case { ops: ops.get(..=step).unwrap_or(ops), difference };
    EQUIVALENCES.iter().find(|equivalence| (equivalence.holds)(&case))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::op::Pick;
    use super::*;

    fn explained(place: Place, simulated: u64, real: i64, ops: &[Op]) -> Option<&'static str> {
        let difference = Difference { place, simulated: Some(json!(simulated)), real: Some(json!(real)) };
        explanation(ops, ops.len() - 1, &difference).map(|equivalence| equivalence.number)
    }

    #[test]
    fn a_count_below_zero_is_explained_where_a_segment_was_sealed_and_nowhere_else() {
        let about = |about| Place::Subscription { topic: 0, name: "s0".to_owned(), about };
        let sealed = [Op::Split { topic: 0, segment: Pick::Active(0) }, Op::Receive];
        let count = || about(About::Unacknowledged(0));
        assert_eq!(explained(count(), 0, -2, &sealed), Some("B22"));
        assert_eq!(explained(count(), 0, 2, &sealed), None, "more than there are");
        assert_eq!(explained(count(), 1, -2, &sealed), None, "one is left");
        assert_eq!(explained(count(), 0, -2, &[Op::Receive]), None, "nothing was sealed");
        assert_eq!(explained(about(About::Backlog), 0, -2, &sealed), None, "another count");
    }
}
