//! How an adapter introduces itself, and where scenarios begin and end.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::Operation;

/// Version of the protocol. It changes only when an adapter written for the one before could not go on.
pub const PROTOCOL_VERSION: u32 = 1;

/// Parameters of `initialize`, the first request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Initialize {
    /// Version of the protocol that the suite speaks.
    pub protocol_version: u32,
    /// Who asks.
    pub suite: Suite,
}

/// The suite, as it introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suite {
    /// Always `stc`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What `initialize` gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Initialized {
    /// Version of the protocol that the adapter speaks.
    pub protocol_version: u32,
    /// The SDK under test.
    pub sdk: Sdk,
    /// What the SDK offers. What is not in the list is not asked for, and its scenarios are *unsupported*.
    pub capabilities: Vec<Capability>,
}

/// The SDK under test, as reports name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sdk {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What not every SDK offers, or not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Calls that wait: `send`.
    Sync,
    /// Calls that give a future: `sendAsync`.
    Async,
    /// Queue consumers (required core).
    QueueConsumer,
    /// Stream consumers (required core).
    StreamConsumer,
    /// Checkpoint consumers (required core).
    CheckpointConsumer,
    /// Transactions.
    Transactions,
    /// Subscriptions to namespaces.
    Namespace,
    /// Entry buckets of a producer.
    EntryBucketing,
    /// Dead letters.
    DeadLetter,
    /// End-to-end encryption.
    Encryption,
    /// Chunks, compression, batching policies.
    ChunkingCompressionBatching,
    /// The migration bridge.
    Migration,
}

impl Capability {
    /// All of them.
    pub const ALL: [Capability; 12] = [
        Capability::Sync,
        Capability::Async,
        Capability::QueueConsumer,
        Capability::StreamConsumer,
        Capability::CheckpointConsumer,
        Capability::Transactions,
        Capability::Namespace,
        Capability::EntryBucketing,
        Capability::DeadLetter,
        Capability::Encryption,
        Capability::ChunkingCompressionBatching,
        Capability::Migration,
    ];

    /// The name in JSON. Optional capabilities have the name of their item in the report's checklist.
    pub fn as_str(self) -> &'static str {
        match self {
            Capability::Sync => "sync",
            Capability::Async => "async",
            Capability::QueueConsumer => "queue-consumer",
            Capability::StreamConsumer => "stream-consumer",
            Capability::CheckpointConsumer => "checkpoint-consumer",
            Capability::Transactions => "transactions",
            Capability::Namespace => "namespace",
            Capability::EntryBucketing => "entry-bucketing",
            Capability::DeadLetter => "dead-letter",
            Capability::Encryption => "encryption",
            Capability::ChunkingCompressionBatching => "chunking-compression-batching",
            Capability::Migration => "migration",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parameters of `startScenario`: what the adapter made before is gone, and a new cluster waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartScenario {
    /// Id of the scenario, for logs.
    pub scenario: String,
    /// Seed for whatever the adapter decides by chance.
    pub seed: u64,
}

/// Parameters of `endScenario`: close whatever is still open, and forget it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndScenario {}

impl Operation for Initialize {
    const METHOD: &'static str = "initialize";
    const ABOUT: &'static [&'static str] = &[
        " The first request. Both sides say who they are and which protocol they speak; the adapter says what its SDK",
        " offers. Connects to nothing.",
    ];
    const NEEDS: Option<Capability> = None;
    type Result = Initialized;
}

impl Operation for StartScenario {
    const METHOD: &'static str = "startScenario";
    const ABOUT: &'static [&'static str] = &[" A scenario begins. Nothing of the one before is used again."];
    const NEEDS: Option<Capability> = None;
    type Result = ();
}

impl Operation for EndScenario {
    const METHOD: &'static str = "endScenario";
    const ABOUT: &'static [&'static str] = &[
        " A scenario is over: close whatever is still open, gracefully, and forget it. Requests that are still under way",
        " may be answered or not.",
    ];
    const NEEDS: Option<Capability> = None;
    type Result = ();
}
