//! How clients, producers and consumers are made. Absent options are the SDK's defaults.

use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::encoding::Pairs;
use crate::encryption::{ConsumerEncryption, ProducerEncryption};
use crate::message::{Checkpoint, SchemaKind};

/// Options of a client object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientOptions {
    /// `pulsar://host:port`, or `pulsar+ssl://host:port` for TLS. Of a cluster of several brokers it may name all, with
    /// commas between: `pulsar://host:port,host:port`.
    pub service_url: String,
    /// How long an operation (lookup, create, subscribe) may take; the SDK's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_timeout_ms: Option<u64>,
    /// The token that the client shows brokers at first (method `token`); it can be told another one later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The certificates that are trusted for TLS, as PEM text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_trust_pem: Option<String>,
    /// The client is to make transactions, with this timeout unless another one is asked for. Absent where none are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_timeout_ms: Option<u64>,
    /// How many bytes the pending messages of all producers may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
}

/// Access modes (client-api §3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AccessMode {
    /// Many producers.
    #[default]
    Shared,
    /// One producer; others fail.
    Exclusive,
    /// One producer; older ones are fenced.
    ExclusiveWithFencing,
    /// One producer; others wait.
    WaitForExclusive,
}

/// Compression codecs (client-api §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // the names say it
pub enum Compression {
    None,
    Lz4,
    Zlib,
    Zstd,
    Snappy,
}

/// Options of a producer. Absent ones are the SDK's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProducerOptions {
    /// The topic as the application writes it; absent only to see what the client says to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Producer name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Access mode.
    pub access: AccessMode,
    /// The sequence id before that of the first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_sequence_id: Option<u64>,
    /// Schema.
    pub schema: SchemaKind,
    /// Batching on or off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batching: Option<Batching>,
    /// Compression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// What happens to messages that are larger than an entry may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunking: Option<Chunking>,
    /// End-to-end encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<ProducerEncryption>,
    /// Send timeout, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_timeout_ms: Option<u64>,
    /// How many sends may be pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pending: Option<u32>,
    /// Whether a send waits for room in a full queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_if_queue_full: Option<bool>,
    /// Properties of the producer.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "Pairs")]
    pub properties: Vec<(String, String)>,
}

/// Batching of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Batching {
    /// Every message is an entry.
    Off,
    /// Entries of up to `max_messages` and `max_bytes`, closed at the latest `max_delay_ms` after their first message.
    On {
        /// Messages in one entry at most.
        max_messages: u32,
        /// Bytes in one entry at most, before compression; the SDK's default when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_bytes: Option<u32>,
        /// How long the first message waits at most, in ms.
        max_delay_ms: u64,
    },
}

/// Chunking of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Chunking {
    /// Large messages fail.
    Off,
    /// They go in several entries.
    On {
        /// Bytes of the message in one entry at most; as many as the broker takes when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_bytes: Option<u32>,
    },
}

/// Where a new subscription begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InitialPosition {
    /// At the oldest message.
    #[default]
    Earliest,
    /// Behind the newest message.
    Latest,
}

/// Options of a queue consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs)] // the names are the specification's
pub struct QueueOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub initial_position: InitialPosition,
    pub schema: SchemaKind,
    /// How many messages may wait in the client for the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_queue: Option<u32>,
    /// How long a negatively acknowledged message stays away. It saves the suite time: an SDK without such a setting
    /// leaves it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redelivery_delay_ms: Option<u64>,
    /// Asked for only of SDKs with `dead-letter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<DeadLetters>,
    /// End-to-end encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<ConsumerEncryption>,
}

/// The dead-letter policy of a queue consumer (client-api §4.2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeadLetters {
    /// How often a message may come again; what would come once more goes to the dead-letter topic.
    pub max_redeliveries: u32,
    /// The dead-letter topic; absent for the SDK's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
}

/// The ends that every topic has (data-model §4, §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Boundary {
    /// Before everything that is still there.
    Earliest,
    /// Behind everything that is there now.
    Latest,
}

/// Where a checkpoint consumer starts (client-api §4.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StartPosition {
    /// At one of the two checkpoints that every topic has.
    Boundary(Boundary),
    /// At a captured checkpoint, restored from its bytes.
    Checkpoint(Checkpoint),
}

/// Options of a checkpoint consumer. Absent ones are the SDK's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs)] // the names are the specification's
pub struct CheckpointOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<StartPosition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub schema: SchemaKind,
    /// How many messages may wait in the client for the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_queue: Option<u32>,
    /// End-to-end encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<ConsumerEncryption>,
}

/// Options of a stream consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs)] // the names are the specification's
pub struct StreamOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub initial_position: InitialPosition,
    pub schema: SchemaKind,
    /// How many messages may wait in the client for the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_queue: Option<u32>,
    /// End-to-end encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<ConsumerEncryption>,
    /// Properties of the subscription.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "Pairs")]
    pub properties: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Not::not")]
    pub read_compacted: bool,
    #[serde(skip_serializing_if = "Not::not")]
    pub replicate_state: bool,
    /// How long acknowledgements are collected, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_group_time_ms: Option<u64>,
}

/// Options of a stream consumer of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NamespaceOptions {
    /// `tenant/namespace`.
    pub namespace: String,
    /// The properties that a topic has to have, every one of them; without any all topics are consumed.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "Pairs")]
    pub topic_properties: Vec<(String, String)>,
    /// Everything else. A `topic` in it is to be given to the SDK too, which is to refuse the two together.
    pub stream: StreamOptions,
}

/// What a producer or consumer says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Described {
    /// The topic that it reports.
    pub topic: String,
    /// Its name, where it tells one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
