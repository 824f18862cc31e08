//! The score for people: how far the client is, beside the verdict, which knows no "nearly".

use std::fmt;

use crate::model::{Report, ScenarioResult};
use crate::requirement::RequirementStatus;
use crate::summary;
use crate::text::plural;
use crate::verdict::Verdict;

/// How much of what a run asked for the client has.
///
/// A run asks for an item or a requirement when a scenario of it was selected and the target could host it. So a whole
/// run counts everything that has a scenario, and a run of one tag counts what the tag is about; requirements that
/// passing would not prove are in no count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Score {
    /// Items of the required core.
    pub core: Part,
    /// Optional capabilities that the client offers; one that it does not offer counts nowhere.
    pub optional: Part,
    /// Requirements, without those of optional capabilities that the client does not offer.
    pub requirements: Part,
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// Fulfilled.
    pub held: usize,
    /// Asked for.
    pub asked: usize,
}

impl Part {
    fn add(&mut self, held: bool) {
        self.held += usize::from(held);
        self.asked += 1;
    }
}

impl Score {
    /// The score of a run.
    ///
    /// An item is fulfilled when each of its scenarios passed, or broke a mere SHOULD. A known failure fulfils nothing:
    /// the list excuses it, and it is a failure all the same.
    pub fn of(report: &Report) -> Score {
        let mut score = Score::default();
        for item in &report.checklist {
            let scenarios = summary::scenarios_of(report, &item.id);
            let offered = scenarios.iter().any(|s| s.verdict != Verdict::Unsupported);
            let part = if item.required { &mut score.core } else { &mut score.optional };
            if !scenarios.is_empty() && (item.required || offered) {
                part.add(scenarios.iter().all(|s| holds(report, s)));
            }
        }
        for requirement in &report.requirements {
            let cited = || report.scenarios.iter().filter(|s| requirement.scenarios.contains(&s.id));
            let optional = report.checklist.iter().any(|i| i.id == requirement.checklist && !i.required);
            let held = match requirement.status {
                RequirementStatus::Unproven { .. } => continue,
                RequirementStatus::Unsupported if optional => continue,
                // Of one that was partly run, the scenarios that were selected count.
                RequirementStatus::Proven | RequirementStatus::PartlyRun { .. } => true,
                RequirementStatus::Broken
                | RequirementStatus::Known
                | RequirementStatus::Unsupported
                | RequirementStatus::NotRun => false,
            };
            if cited().next().is_some() {
                score.requirements.add(held);
            }
        }
        score
    }
}

fn holds(report: &Report, scenario: &ScenarioResult) -> bool {
    match scenario.verdict {
        Verdict::Pass => true,
        Verdict::Fail => !report.counts_against(scenario),
        _ => false,
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |part: Part, noun: &str| format!("{} of {}", part.held, plural(part.asked, noun));
        write!(f, "{}, {}", of(self.core, "checklist item"), of(self.requirements, "requirement"))?;
        if self.optional.asked > 0 {
            let noun = if self.optional.asked == 1 { "capability" } else { "capabilities" };
            write!(f, ", {} of {} optional {noun}", self.optional.held, self.optional.asked)?;
        }
        Ok(())
    }
}
