//! Which MUST-level requirements of the required core are proven: a deviant that breaks them is caught at them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::catalogue::{Catalogue, Requirement};
use crate::suite::Suite;

use super::bench::Outcome;

/// The MUST-level entries of the core, by what stands for them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proof {
    /// Entries that a deviant was caught at, or whose like was.
    proven: usize,
    /// Entries without a scenario, by the key of their reason in the catalogue.
    reasons: BTreeMap<String, usize>,
    /// Entries that have a scenario which no client was seen to fail.
    unproven: Vec<String>,
}

impl Proof {
    pub(super) fn new<'a>(suite: &Suite, outcomes: impl Iterator<Item = &'a Outcome>) -> Proof {
        let catches = outcomes.filter_map(|o| match o {
            Outcome::Caught(catches) => Some(catches),
            _ => None,
        });
        let caught = catches.flatten().map(|c| c.requirement.as_str()).collect();
        Proof::of(&suite.catalogue, &caught)
    }

    fn of(catalogue: &Catalogue, caught: &BTreeSet<&str>) -> Proof {
        let mut proof = Proof { proven: 0, reasons: BTreeMap::new(), unproven: Vec::new() };
        for entry in catalogue.core().filter(|e| e.level.is_absolute()) {
            let stands_for = entry.same_as().and_then(|id| catalogue.get(id)).unwrap_or(entry);
            proof.add(stands_for, caught);
        }
        proof
    }

    fn add(&mut self, entry: &Requirement, caught: &BTreeSet<&str>) {
        match &entry.unproven {
            Some(reason) => *self.reasons.entry(reason.clone()).or_default() += 1,
            None if caught.contains(entry.id.as_str()) => self.proven += 1,
            None => self.unproven.push(entry.id.clone()),
        }
    }

    /// Whether every entry is proven or says why it has no scenario.
    pub(super) fn is_complete(&self) -> bool {
        self.unproven.is_empty()
    }

    /// The counts, and what is unproven.
    pub(super) fn text(&self) -> String {
        let reasoned: usize = self.reasons.values().sum();
        let reasons: Vec<String> = self.reasons.iter().map(|(key, n)| format!("{key} {n}")).collect();
        let mut text = format!(
            "{} of {} MUST-level requirements of the core are proven; {reasoned} say why they have no scenario ({})\n",
            self.proven,
            self.proven + reasoned + self.unproven.len(),
            reasons.join(", ")
        );
        let unproven: BTreeSet<&String> = self.unproven.iter().collect();
        for id in unproven {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "UNPROVEN  {id}: no deviant was caught at it");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOGUE: &str = "
version: 0.0.1
specification: '1.0'
reasons: { why: Because. }
requirements:
  - { id: IMPL-1.1, level: MUST, checklist: C1, binds: client, document: d, section: '1', summary: a }
  - { id: IMPL-1.2, level: MUST NOT, checklist: '-', binds: client, document: d, section: '1', summary: b }
  - { id: IMPL-1.3, level: MUST, checklist: C2, binds: client, document: d, section: '1', summary: c, unproven: why }
  - { id: IMPL-1.4, level: MUST, checklist: C2, binds: client, document: d, section: '1', summary: d, unproven: same-as IMPL-1.1 }
  - { id: IMPL-1.5, level: SHOULD, checklist: C1, binds: client, document: d, section: '1', summary: e }
  - { id: IMPL-1.6, level: MUST, checklist: encryption, binds: client, document: d, section: '1', summary: f }
";

    #[test]
    fn entries_of_the_core_are_proven_reasoned_or_listed() {
        let catalogue = Catalogue::parse(CATALOGUE).unwrap();
        let some = Proof::of(&catalogue, &BTreeSet::from(["IMPL-1.1"]));
        assert_eq!((some.proven, some.reasons["why"]), (2, 1));
        assert_eq!(some.unproven, ["IMPL-1.2"]);
        assert!(!some.is_complete());
        assert!(some.text().starts_with("2 of 4 "), "{}", some.text());
        assert!(some.text().contains("UNPROVEN  IMPL-1.2"), "{}", some.text());
        let all = Proof::of(&catalogue, &BTreeSet::from(["IMPL-1.1", "IMPL-1.2"]));
        assert_eq!((all.proven, all.is_complete()), (3, true));
    }
}
