//! From the results of a run to the report model.

use stc_reports::summary::telling;
use stc_reports::{RequirementResult, RequirementStatus, ScenarioResult};

use crate::catalogue::{Catalogue, Requirement, checklist};
use crate::feature::Scenario;

/// What the run says about every requirement of the catalogue. `suite` holds all scenarios, also those that were not
/// selected; an entry that repeats another one has that one's scenarios and status.
pub fn requirements(
    catalogue: &Catalogue,
    suite: &[Scenario],
    results: &[ScenarioResult],
) -> Vec<RequirementResult> {
    let items = checklist();
    let one = |entry: &Requirement| {
        let standing_for = entry.same_as().and_then(|id| catalogue.get(id)).unwrap_or(entry);
        let cited_by: Vec<String> = suite
            .iter()
            .filter(|s| s.requirements.contains(&standing_for.id))
            .map(|s| s.id.clone())
            .collect();
        let result = |id: &String| results.iter().find(|r| r.id == *id);
        let judged = telling(&standing_for.checklist, &items, cited_by.clone(), result);
        let unproven = catalogue.reason(standing_for);
        RequirementResult {
            id: entry.id.clone(),
            level: entry.level.into(),
            checklist: entry.checklist.clone(),
            binds: entry.binds.clone(),
            section: format!("{} §{}", entry.document, entry.section),
            summary: entry.summary.clone(),
            status: RequirementStatus::derive(&standing_for.id, &judged, results, unproven.as_deref()),
            scenarios: cited_by,
        }
    };
    catalogue.requirements.iter().map(one).collect()
}
