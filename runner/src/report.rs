//! From the results of a run to the report model.

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
        // What needs another capability that the client does not offer says nothing, where something else does.
        let lacking = |id: &&String| {
            results.iter().any(|r| r.id == **id && r.lacks_another(&standing_for.checklist, &items))
        };
        let telling: Vec<String> = cited_by.iter().filter(|id| !lacking(id)).cloned().collect();
        let judged = if telling.is_empty() { &cited_by } else { &telling };
        let unproven = catalogue.reason(standing_for);
        RequirementResult {
            id: entry.id.clone(),
            level: entry.level.into(),
            checklist: entry.checklist.clone(),
            binds: entry.binds.clone(),
            section: format!("{} §{}", entry.document, entry.section),
            summary: entry.summary.clone(),
            status: RequirementStatus::derive(&standing_for.id, judged, results, unproven.as_deref()),
            scenarios: cited_by,
        }
    };
    catalogue.requirements.iter().map(one).collect()
}
