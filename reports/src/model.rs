//! The report of one run as plain data. Everything that can be derived from it (counts, exit code, table) is derived,
//! so that a report cannot contradict itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::requirement::RequirementResult;
use crate::verdict::{Chance, Verdict};
use crate::wire::WireRecord;

/// One run of the suite against one client on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The program that ran the scenarios.
    pub tool: Tool,
    /// The scenarios and requirements that it took them from.
    pub suite: SuiteInfo,
    /// When the run started, RFC 3339 with an offset. Given by the caller; this crate reads no clock.
    pub started_at: String,
    /// Seed of all randomness of the run. The same seed and inputs give the same run.
    pub seed: u64,
    /// Name of the profile that the target followed, such as `spec-1.0`.
    pub profile: String,
    /// The broker side that the client ran against.
    pub target: Target,
    /// The client under test.
    pub client: ClientInfo,
    /// Wall time of the whole run, in milliseconds.
    pub duration_ms: u64,
    /// True when tags, ids or the like selected a part of the scenarios.
    pub filtered: bool,
    /// The exact command line of the run, ready to paste.
    pub command: String,
    /// The checklist (conformance §2 and §3) in the order in which tables show it.
    pub checklist: Vec<ChecklistItem>,
    /// Every scenario that was selected, in the order of the feature files.
    pub scenarios: Vec<ScenarioResult>,
    /// Scenarios that were selected but that this target cannot host. They are no part of the counts.
    pub left_out: Vec<LeftOut>,
    /// Every requirement of the catalogue, in its order.
    pub requirements: Vec<RequirementResult>,
    /// Entries of the known-failures list that this run contradicts. One is enough to fail the run.
    pub stale_known_failures: Vec<StaleKnownFailure>,
}

/// The program that ran the scenarios.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Program name.
    pub name: String,
    /// Program version.
    pub version: String,
}

/// The scenarios and the catalogue of requirements. They have a version apart from the program's: two reports are
/// comparable, verdict by verdict, when it is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteInfo {
    /// Version of the suite.
    pub version: String,
    /// Version of the specification that it checks.
    pub specification: String,
}

/// The client under test, as it introduced itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientInfo {
    /// Client name.
    pub name: String,
    /// Client version.
    pub version: String,
}

/// The broker side of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// What kind of broker it is.
    pub kind: TargetKind,
    /// Binary service URL (`pulsar://…`), where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_url: Option<String>,
    /// Admin REST URL (`http://…`), where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_url: Option<String>,
}

/// Kinds of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// The simulated cluster in the same process, under virtual time.
    Memory,
    /// The simulated cluster over TCP.
    Tcp,
    /// A broker elsewhere, named by its URLs.
    Url,
}

impl TargetKind {
    /// The kind as it is written on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            TargetKind::Memory => "memory",
            TargetKind::Tcp => "tcp",
            TargetKind::Url => "url",
        }
    }
}

/// A row of the checklist: an item of the required core or an optional capability (conformance §2, §3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChecklistItem {
    /// Item, such as `C2`, `KS-4` or the name of a capability.
    pub id: String,
    /// Title in a few words.
    pub title: String,
    /// True when a client must have it to conform.
    pub required: bool,
}

/// What happened to one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioResult {
    /// Permanent id of the scenario, unique in a report.
    pub id: String,
    /// Title of the scenario.
    pub name: String,
    /// Feature file, relative to the folder of the features.
    pub feature: String,
    /// Line of the scenario in the feature file, from 1.
    pub line: usize,
    /// All tags, as in the feature file.
    pub tags: Vec<String>,
    /// Checklist items that it belongs to.
    pub checklist: Vec<String>,
    /// Ids of the requirements that it cites.
    pub requirements: Vec<String>,
    /// The judgement.
    pub verdict: Verdict,
    /// Why the verdict is neither pass nor fail: the entry of the known-failures list, the capability that the client
    /// does not offer, what was missing to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of a known failure that the list says comes by chance: what came of it this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_chance: Option<Chance>,
    /// Wall time, in milliseconds.
    pub duration_ms: u64,
    /// Steps in order, background steps first.
    pub steps: Vec<StepResult>,
    /// What went wrong, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The wire exchange, in order. Empty where the run kept none.
    pub transcript: Vec<WireRecord>,
    /// Last lines that the client under test wrote to its standard error.
    pub stderr_tail: Vec<String>,
    /// A command to paste that runs this scenario again in the same way.
    pub replay: String,
}

/// What happened to one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepResult {
    /// `Given`, `When`, `Then`, `And`, `But`.
    pub keyword: String,
    /// Text after the keyword.
    pub text: String,
    /// Line in the feature file, from 1.
    pub line: usize,
    /// Whether it ran, and how it ended.
    pub status: StepStatus,
    /// Number of the last wire record when the step had ended; the step's own records are those after the number of
    /// the step before. Absent where it did not run, or where there is no journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<u64>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It ran and held.
    Passed,
    /// It ran and did not hold.
    Failed,
    /// It did not run.
    Skipped,
}

/// What went wrong in a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The step, keyword and text.
    pub step: String,
    /// What was expected and what was seen.
    pub message: String,
    /// The requirement that the failing step asserts. `None` when the step asserts none of its own, such as a crash of
    /// the client; then every requirement that the scenario cites is in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement: Option<String>,
    /// `file:line` of the step.
    pub location: String,
    /// Number of the wire record that decided the verdict, where a single one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
}

/// A scenario that was selected but that the target cannot host, such as one that needs faults on a broker without a
/// control API. It says nothing about the client, so it has no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Id of the scenario.
    pub scenario: String,
    /// What the target lacks.
    pub reason: String,
}

/// An entry of the known-failures list that this run contradicts: the scenario passes, fails differently or was
/// skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StaleKnownFailure {
    /// Id of the scenario.
    pub scenario: String,
    /// How the run contradicts the entry.
    pub problem: String,
}
