//! Why a topic refused a command.

use stc_proto::pulsar::ServerError;
use thiserror::Error;

/// A refusal. The caller answers it with ERROR and the command's request id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{code:?}: {message}")]
pub struct TopicError {
    /// Pulsar's code for the refusal.
    pub code: ServerError,
    /// The text for the client.
    pub message: String,
}

impl TopicError {
    /// A refusal with this code and text.
    pub fn new(code: ServerError, message: impl Into<String>) -> Self {
        TopicError { code, message: message.into() }
    }
}
