//! End-to-end encryption: the keys that producers and consumers are given, and what happens where one is missing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One half of a key pair, by its name. The SDK's key provider knows these and no others, and fails when it is asked for
/// another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Key {
    /// The name that producers write beside what they encrypt.
    pub name: String,
    /// PEM text: `PUBLIC KEY` for producers; `PRIVATE KEY`, or what came before it for the algorithm, for consumers.
    pub pem: String,
}

/// How a producer encrypts (client-api §3.1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProducerEncryption {
    /// The names of the keys that messages are encrypted for. One of them may be among none of `keys`.
    pub recipients: Vec<String>,
    /// The public keys that can be had.
    pub keys: Vec<Key>,
    /// What happens to messages that cannot be encrypted.
    pub on_failure: ProducerCryptoFailure,
}

/// What happens to messages that cannot be encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProducerCryptoFailure {
    /// They fail.
    #[default]
    Fail,
    /// They are sent as they are.
    SendUnencrypted,
}

/// How a consumer decrypts (client-api §4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConsumerEncryption {
    /// The private keys that can be had.
    pub keys: Vec<Key>,
    /// What happens to messages that cannot be decrypted.
    pub on_failure: ConsumerCryptoFailure,
}

/// What happens to messages that cannot be decrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConsumerCryptoFailure {
    /// The application learns of it, and the message stays unacknowledged.
    #[default]
    Fail,
    /// They are acknowledged and not delivered.
    Discard,
    /// They are delivered as they are.
    Consume,
}
