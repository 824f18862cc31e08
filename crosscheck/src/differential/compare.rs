//! The comparison of two traces, and the differences that are explained: each is a typed rule with its reason and its
//! number in `docs/divergences.md`.

use std::fmt;

use serde_json::Value as Json;

use super::equivalences;
use super::op::Op;
use super::trace::{Place, Seen, Step, Trace};

/// How much of a value is shown.
const SHOWN: usize = 400;

/// One value that is not the same on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// What it is about.
    pub place: Place,
    /// The simulator's; `None` when it has none there.
    pub simulated: Option<Json>,
    /// The real broker's.
    pub real: Option<Json>,
}

/// The first step in which a sequence diverges, with all that differs there.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// Which step.
    pub step: usize,
    /// What differs.
    pub differences: Vec<Difference>,
}

impl Divergence {
    /// Whether something of the same kind differs in both.
    #[must_use]
    pub fn is_like(&self, other: &Divergence) -> bool {
        let like = |a: &Difference| other.differences.iter().any(|b| a.place.is_like(&b.place));
        self.differences.iter().any(like) || (self.differences.is_empty() && other.differences.is_empty())
    }
}

/// Compares what both sides saw of a sequence.
#[must_use]
pub fn divergence(ops: &[Op], simulated: &Trace, real: &Trace) -> Option<Divergence> {
    simulated.iter().zip(real).find(|(simulated, real)| unexplained(ops, simulated, real)).map(
        |(simulated, real)| {
            let mut differences = differences(&simulated.seen, &real.seen);
            differences.retain(|d| equivalences::explanation(ops, simulated.number, d).is_none());
            Divergence { step: simulated.number, differences }
        },
    )
}

/// How many values of a trace are compared.
#[must_use]
pub fn compared(trace: &Trace) -> usize {
    trace.iter().map(|step| step.seen.len()).sum()
}

/// Whether a step differs in a way that nothing explains.
#[must_use]
pub fn unexplained(ops: &[Op], simulated: &Step, real: &Step) -> bool {
    let explained = |d: &Difference| equivalences::explanation(ops, simulated.number, d).is_some();
    simulated.skipped != real.skipped || !differences(&simulated.seen, &real.seen).iter().all(explained)
}

/// Every explanation that was needed: the number of its entry in `docs/divergences.md`.
#[must_use]
pub fn explained(ops: &[Op], simulated: &Trace, real: &Trace) -> Vec<&'static str> {
    let mut numbers = Vec::new();
    for (simulated, real) in simulated.iter().zip(real) {
        numbers.extend(simulated.avoided);
        let differences = differences(&simulated.seen, &real.seen);
        let explain = |d: &Difference| equivalences::explanation(ops, simulated.number, d);
        numbers.extend(differences.iter().filter_map(explain).map(|explanation| explanation.number));
    }
    numbers
}

/// Whether what a call brought at once differs already.
#[must_use]
pub fn differs_at_once(ops: &[Op], due: &Step, done: &Seen) -> bool {
    let of_call = differences(&due.seen, done).into_iter().filter(|d| done.contains_key(&d.place));
    of_call.filter(|d| equivalences::explanation(ops, due.number, d).is_none()).count() > 0
}

fn differences(simulated: &Seen, real: &Seen) -> Vec<Difference> {
    let mut places: Vec<&Place> = simulated.keys().chain(real.keys()).collect();
    places.sort_unstable();
    places.dedup();
    let differing = places.into_iter().filter(|place| simulated.get(place) != real.get(place));
    differing
        .map(|place| Difference {
            place: place.clone(),
            simulated: simulated.get(place).cloned(),
            real: real.get(place).cloned(),
        })
        .collect()
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Json>| -> String {
            let text = value.as_ref().map_or("nothing".to_owned(), Json::to_string);
            text.chars().take(SHOWN).collect()
        };
        for Difference { place, simulated, real } in &self.differences {
            writeln!(f, "  {place}: simulator {}, real broker {}", shown(simulated), shown(real))?;
        }
        Ok(())
    }
}
