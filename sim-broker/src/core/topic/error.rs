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

    /// A refusal whose text begins with the exception that Pulsar's broker puts there.
    pub(super) fn exception(code: ServerError, class: &str, message: impl std::fmt::Display) -> Self {
        let message = format!("org.apache.pulsar.broker.service.BrokerServiceException${class}: {message}");
        TopicError { code, message }
    }

    pub(super) fn terminated() -> Self {
        TopicError::exception(
            ServerError::TopicTerminatedError,
            "TopicTerminatedException",
            "Topic was already terminated",
        )
    }

    /// What a producer gets whose topic moves away while it waits.
    pub(super) fn unavailable() -> Self {
        TopicError::exception(
            ServerError::ServiceNotReady,
            "TopicFencedException",
            "Topic is temporarily unavailable",
        )
    }

    pub(super) fn not_allowed(message: impl Into<String>) -> Self {
        TopicError::new(ServerError::NotAllowedError, message)
    }

    pub(super) fn consumer_busy(message: impl Into<String>) -> Self {
        TopicError::new(ServerError::ConsumerBusy, message)
    }

    pub(super) fn consumer_not_found() -> Self {
        TopicError::new(ServerError::MetadataError, "Consumer not found")
    }
}
