//! Why an operation gave nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why an operation gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The client does not offer the operation or an option of it.
    #[error("the client does not offer {0}")]
    Unsupported(String),
    /// The operation failed and the SDK said how.
    #[error("{0}")]
    Failed(ApiError),
    /// The operation did not end within this many seconds, far beyond the client's own time-outs.
    #[error("no end within {0} s")]
    Hangs(u64),
    /// The client answers nothing any more: its adapter ended, for example. How that came, as a sentence.
    #[error("{0}")]
    Gone(String),
    /// The adapter said what the protocol does not have. What it said.
    #[error("the adapter broke the protocol: {0}")]
    Breach(String),
    /// The adapter says that it went wrong itself. How it says so.
    #[error("the adapter went wrong: {0}")]
    Fault(String),
}

/// The categories of error-model §2, and `Other` for what the SDK makes no difference of.
pub const CATEGORIES: [&str; 18] = [
    "NotFound",
    "Authentication",
    "Authorization",
    "Timeout",
    "AlreadyClosed",
    "ProducerBusy",
    "ConsumerBusy",
    "IncompatibleSchema",
    "TopicTerminated",
    "NotConnected",
    "ProducerQueueFull",
    "MemoryBufferFull",
    "TransactionConflict",
    "Crypto",
    "InvalidConfiguration",
    "InvalidServiceURL",
    "Interrupted",
    "Other",
];

/// A failure as the application sees it.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[error("{category}: {message}")]
pub struct ApiError {
    /// Category by the names of error-model §2, such as `NotFound`; `Other` when the SDK has none for it. One of
    /// [`CATEGORIES`]; another name is read and fits nothing that a scenario asks for.
    #[schemars(extend("enum" = CATEGORIES))]
    pub category: String,
    /// The SDK's text.
    pub message: String,
    /// How it was signalled.
    pub how: Signalled,
}

/// How a failure reached the application (error-model §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Signalled {
    /// Thrown by the call itself, which was to return a future.
    Synchronously,
    /// By the future that the call returned.
    ByFuture,
    /// Thrown by a call that waits, as it has to.
    ByBlockingCall,
}
