//! Verdicts, the counts over them, and the exit code of a run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Report, ScenarioResult};
use crate::requirement::RequirementResult;

/// The judgement on one scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The client did what the scenario asserts.
    Pass,
    /// It did not. This includes a crash or a hang of the client under test.
    Fail,
    /// It failed just as the known-failures list says that it would, or the list says that it fails by chance.
    KnownFailure,
    /// The client says that it does not offer the capability.
    Unsupported,
    /// The environment did not let the scenario start.
    CouldNotRun,
    /// The suite itself went wrong, so the scenario says nothing about the client.
    HarnessError,
}

impl Verdict {
    /// All verdicts, in the order in which counts are shown.
    pub const ALL: [Verdict; 6] = [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::KnownFailure,
        Verdict::Unsupported,
        Verdict::CouldNotRun,
        Verdict::HarnessError,
    ];

    /// The verdict in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::KnownFailure => "known failure",
            Verdict::Unsupported => "unsupported",
            Verdict::CouldNotRun => "could not run",
            Verdict::HarnessError => "harness error",
        }
    }

    /// How much of a reader's attention it deserves; a group of scenarios shows its gravest verdict.
    pub(crate) fn gravity(self) -> u8 {
        match self {
            Verdict::Pass => 0,
            Verdict::Unsupported => 1,
            Verdict::KnownFailure => 2,
            Verdict::CouldNotRun => 3,
            Verdict::HarnessError => 4,
            Verdict::Fail => 5,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What came of a scenario that fails by chance, as the list of known failures says, in one run. Its verdict is a known
/// failure either way: a race that was won once is not gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Chance {
    /// It failed just as the list says.
    Failed,
    /// It passed.
    Passed,
}

impl Chance {
    /// What came of it, in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Chance::Failed => "failed",
            Chance::Passed => "passed",
        }
    }
}

/// How many scenarios got each verdict. Each scenario is in exactly one of them, so they add up to `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Scenarios in all.
    pub total: usize,
    /// Scenarios that passed.
    pub pass: usize,
    /// Scenarios that failed.
    pub fail: usize,
    /// Scenarios that failed as the known-failures list says, or that fail by chance as it says.
    pub known_failure: usize,
    /// How many of `known_failure` fail by chance, whatever came of them in this run. No verdict of its own.
    #[serde(default)]
    pub by_chance: usize,
    /// Scenarios whose capability the client does not offer.
    pub unsupported: usize,
    /// Scenarios that the environment did not let start.
    pub could_not_run: usize,
    /// Scenarios in which the suite itself went wrong.
    pub harness_error: usize,
}

impl Counts {
    /// Counts the verdicts.
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Counts {
        let mut counts = Counts::default();
        for verdict in verdicts {
            counts.total += 1;
            *counts.slot(verdict) += 1;
        }
        counts
    }

    /// How many scenarios got `verdict`.
    pub fn get(mut self, verdict: Verdict) -> usize {
        *self.slot(verdict)
    }

    fn slot(&mut self, verdict: Verdict) -> &mut usize {
        match verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Fail => &mut self.fail,
            Verdict::KnownFailure => &mut self.known_failure,
            Verdict::Unsupported => &mut self.unsupported,
            Verdict::CouldNotRun => &mut self.could_not_run,
            Verdict::HarnessError => &mut self.harness_error,
        }
    }
}

/// Exit codes of the command line. They are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// The client conforms, as far as it was asked.
    Conforms = 0,
    /// It does not, or the known-failures list is stale.
    DoesNotConform = 1,
    /// Usage, configuration, or an empty selection.
    Usage = 2,
    /// The harness or the environment failed, so there is no judgement.
    Harness = 3,
}

impl ExitCode {
    /// The number that the process exits with.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code.code())
    }
}

impl Report {
    /// Counts over all scenarios of the run.
    pub fn counts(&self) -> Counts {
        let by_chance = self.scenarios.iter().filter(|s| s.by_chance.is_some()).count();
        Counts { by_chance, ..Counts::of(self.scenarios.iter().map(|s| s.verdict)) }
    }

    /// Whether less than all scenarios were to run.
    pub fn is_partial(&self) -> bool {
        self.filtered || !self.left_out.is_empty()
    }

    /// Whether this scenario alone shows that the client does not conform: it failed on something that is
    /// not merely a SHOULD, or the client calls a part of the required core unsupported.
    ///
    /// A scenario belongs to the required core unless one of its checklist items is optional: a scenario on dead
    /// letters of a queue consumer is about both, and only needs to hold where both are offered. An item that
    /// [`Report::checklist`] does not list counts as required, so that a typing error cannot excuse a client.
    pub fn counts_against(&self, scenario: &ScenarioResult) -> bool {
        match scenario.verdict {
            // What only a SHOULD asks for is reported; a client that breaks it still conforms (conformance §1).
            Verdict::Fail => self.blamed(scenario).is_none_or(|requirement| requirement.level.is_absolute()),
            Verdict::Unsupported => !scenario
                .checklist
                .iter()
                .any(|id| self.checklist.iter().any(|item| item.id == *id && !item.required)),
            Verdict::Pass | Verdict::KnownFailure | Verdict::CouldNotRun | Verdict::HarnessError => false,
        }
    }

    /// The requirement that a failed scenario says was broken.
    pub(crate) fn blamed(&self, scenario: &ScenarioResult) -> Option<&RequirementResult> {
        let id = scenario.failure.as_ref()?.requirement.as_ref()?;
        self.requirements.iter().find(|requirement| requirement.id == *id)
    }

    /// The exit code of the run, from the first of these that holds:
    ///
    /// 1. No scenario ran: [`ExitCode::Usage`]. An empty selection is an error found before a run; a report of one
    ///    must not look like success.
    /// 2. A scenario failed (other than on a SHOULD), a part of the required core is unsupported, or the known-failures list is stale:
    ///    [`ExitCode::DoesNotConform`]. This goes before harness errors, because what one scenario showed stays true
    ///    whatever the others would have shown.
    /// 3. A scenario ended in a harness error or could not run: [`ExitCode::Harness`]. Something was not judged, so
    ///    "conforms" would be a guess.
    /// 4. Otherwise [`ExitCode::Conforms`]: everything passed, is a known failure, or is an optional capability that
    ///    the client does not offer.
    pub fn exit_code(&self) -> ExitCode {
        let counts = self.counts();
        if counts.total == 0 {
            ExitCode::Usage
        } else if !self.stale_known_failures.is_empty()
            || self.scenarios.iter().any(|s| self.counts_against(s))
        {
            ExitCode::DoesNotConform
        } else if counts.harness_error + counts.could_not_run > 0 {
            ExitCode::Harness
        } else {
            ExitCode::Conforms
        }
    }
}
