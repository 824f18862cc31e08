//! Which MUST-level requirements are proven: a deviant that breaks them is caught at them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::catalogue::{Catalogue, Requirement};
use crate::suite::Suite;

use super::bench::Outcome;

/// The MUST-level entries of the catalogue: of the required core, and of the optional capabilities.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proof {
    core: Share,
    optional: Share,
}

/// Some entries, by what stands for them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Share {
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
        let share = |entries: &mut dyn Iterator<Item = &Requirement>| {
            let mut share = Share::default();
            for entry in entries.filter(|e| e.level.is_absolute()) {
                share.add(entry.same_as().and_then(|id| catalogue.get(id)).unwrap_or(entry), caught);
            }
            share
        };
        Proof { core: share(&mut catalogue.core()), optional: share(&mut catalogue.optional()) }
    }

    /// Whether every entry is proven or says why it has no scenario.
    pub(super) fn is_complete(&self) -> bool {
        self.core.unproven.is_empty() && self.optional.unproven.is_empty()
    }

    /// The counts, and what is unproven.
    pub(super) fn text(&self) -> String {
        self.core.text("the core") + &self.optional.text("the optional capabilities")
    }
}

impl Share {
    fn add(&mut self, entry: &Requirement, caught: &BTreeSet<&str>) {
        match &entry.unproven {
            Some(reason) => *self.reasons.entry(reason.clone()).or_default() += 1,
            None if caught.contains(entry.id.as_str()) => self.proven += 1,
            None => self.unproven.push(entry.id.clone()),
        }
    }

    fn text(&self, of: &str) -> String {
        let reasoned: usize = self.reasons.values().sum();
        let reasons: Vec<String> = self.reasons.iter().map(|(key, n)| format!("{key} {n}")).collect();
        let mut text = format!(
            "{} of {} MUST-level requirements of {of} are proven; {reasoned} say why they have no scenario ({})\n",
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
    fn entries_are_proven_reasoned_or_listed() {
        let catalogue = Catalogue::parse(CATALOGUE).unwrap();
        let some = Proof::of(&catalogue, &BTreeSet::from(["IMPL-1.1"]));
        assert_eq!((some.core.proven, some.core.reasons["why"]), (2, 1));
        assert_eq!(some.core.unproven, ["IMPL-1.2"]);
        assert_eq!(some.optional.unproven, ["IMPL-1.6"]);
        assert!(!some.is_complete());
        let text = some.text();
        assert!(text.starts_with("2 of 4 "), "{text}");
        assert!(text.contains("UNPROVEN  IMPL-1.2"), "{text}");
        assert!(text.contains("0 of 1 MUST-level requirements of the optional capabilities"), "{text}");
        let core = Proof::of(&catalogue, &BTreeSet::from(["IMPL-1.1", "IMPL-1.2"]));
        assert_eq!((core.core.proven, core.is_complete()), (3, false));
        let all = Proof::of(&catalogue, &BTreeSet::from(["IMPL-1.1", "IMPL-1.2", "IMPL-1.6"]));
        assert_eq!((all.optional.proven, all.is_complete()), (1, true));
    }
}
