//! What the scenarios of a run say about each requirement of the specification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::ScenarioResult;
use crate::verdict::Verdict;

/// One requirement of the catalogue, and what the run says about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequirementResult {
    /// Permanent id, such as `IMPL-2.1`.
    pub id: String,
    /// How strongly it binds.
    pub level: Level,
    /// Checklist item that it belongs to; `-` where the checklist has none.
    pub checklist: String,
    /// Whom it binds, such as `client` or `broker`.
    pub binds: String,
    /// Document and section, such as `client-behavior §2`.
    pub section: String,
    /// What it says, in one line.
    pub summary: String,
    /// Ids of all scenarios that cite it, also of those that were not selected.
    pub scenarios: Vec<String>,
    /// What the run says about it; see [`RequirementStatus::derive`].
    pub status: RequirementStatus,
}

/// How strongly a requirement binds (RFC 2119). Only a broken MUST or MUST NOT breaks conformance in the sense of the
/// specification; the headline of a failure names any other level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Level {
    /// An absolute requirement.
    #[serde(rename = "MUST")]
    Must,
    /// An absolute prohibition.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// There may be reasons to depart from it.
    #[serde(rename = "SHOULD")]
    Should,
    /// There may be reasons to do it all the same.
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// Optional.
    #[serde(rename = "MAY")]
    May,
}

impl Level {
    /// The level as the specification writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Must => "MUST",
            Level::MustNot => "MUST NOT",
            Level::Should => "SHOULD",
            Level::ShouldNot => "SHOULD NOT",
            Level::May => "MAY",
        }
    }

    /// Whether breaking it breaks conformance.
    pub fn is_absolute(self) -> bool {
        matches!(self, Level::Must | Level::MustNot)
    }
}

/// What a run says about a requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RequirementStatus {
    /// Every scenario that cites it ran and passed.
    Proven,
    /// A scenario that cites it failed.
    Broken,
    /// Nothing failed but what the known-failures list names.
    Known,
    /// The client does not offer the capability.
    Unsupported,
    /// Every scenario that cites it and was selected passed; others were not selected, or not for this target.
    PartlyRun {
        /// How many passed.
        passed: usize,
        /// How many cite it.
        of: usize,
    },
    /// No scenario that cites it was selected, or one could not run, or ended before it was judged.
    NotRun,
    /// Passing would prove nothing: no scenario cites it, or a client that breaks it on purpose passes as well.
    Unproven {
        /// Why.
        reason: String,
    },
}

impl RequirementStatus {
    /// Derives the status of requirement `id` from the scenarios that cite it.
    ///
    /// `id` is the id that the scenarios cite: of an entry that another one stands for, the other's.
    /// `cited_by` holds the ids of all scenarios that cite it; those without a result in `results` were not selected.
    /// `unproven` is the catalogue's or the deviants' reason why passing scenarios would not prove it.
    ///
    /// The gravest fact wins: broken, known, unsupported, unproven, not run, partly run, and only then proven. A failure
    /// whose step asserts *another* requirement of the same scenario does not break this one; the scenario ended before
    /// it could judge, which counts as not run.
    pub fn derive(
        id: &str,
        cited_by: &[String],
        results: &[ScenarioResult],
        unproven: Option<&str>,
    ) -> RequirementStatus {
        let mut seen = Seen::default();
        for cited in cited_by {
            if let Some(result) = results.iter().find(|r| r.id == *cited) {
                seen.add(id, result);
            }
        }
        if seen.broken {
            RequirementStatus::Broken
        } else if seen.known {
            RequirementStatus::Known
        } else if seen.unsupported {
            RequirementStatus::Unsupported
        } else if let Some(reason) = unproven {
            RequirementStatus::Unproven { reason: reason.to_owned() }
        } else if cited_by.is_empty() {
            RequirementStatus::Unproven { reason: "no scenario cites it".to_owned() }
        } else if seen.not_run || seen.passed == 0 {
            RequirementStatus::NotRun
        } else if seen.passed < cited_by.len() {
            RequirementStatus::PartlyRun { passed: seen.passed, of: cited_by.len() }
        } else {
            RequirementStatus::Proven
        }
    }

    /// The status in words, without the reason.
    pub fn as_str(&self) -> &'static str {
        match self {
            RequirementStatus::Proven => "proven",
            RequirementStatus::Broken => "broken",
            RequirementStatus::Known => "known failure",
            RequirementStatus::Unsupported => "unsupported",
            RequirementStatus::PartlyRun { .. } => "partly run",
            RequirementStatus::NotRun => "not run",
            RequirementStatus::Unproven { .. } => "unproven",
        }
    }
}

/// The facts that the scenarios of one requirement add up to.
#[derive(Default)]
struct Seen {
    passed: usize,
    broken: bool,
    known: bool,
    unsupported: bool,
    not_run: bool,
}

impl Seen {
    fn add(&mut self, id: &str, result: &ScenarioResult) {
        match result.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Unsupported => self.unsupported = true,
            Verdict::CouldNotRun | Verdict::HarnessError => self.not_run = true,
            Verdict::Fail | Verdict::KnownFailure if blames_another(id, result) => self.not_run = true,
            Verdict::Fail => self.broken = true,
            Verdict::KnownFailure => self.known = true,
        }
    }
}

/// A failure is another requirement's only when the scenario cites that one; an id that it does not cite would leave
/// the failure with nobody, so then it stays with everything that the scenario cites.
fn blames_another(id: &str, result: &ScenarioResult) -> bool {
    let blamed = result.failure.as_ref().and_then(|f| f.requirement.as_deref());
    blamed.is_some_and(|blamed| blamed != id && result.requirements.iter().any(|r| r == blamed))
}
