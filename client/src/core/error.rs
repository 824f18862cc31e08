//! Typed errors (error-model §2): what an application can tell apart, and what the client retries by itself (§3).

use std::{fmt, sync::Arc};

use stc_proto::pulsar::ServerError;

/// The categories of error-model §2. `NotSupported` and `Unknown` are additions of this client for what the error
/// model has no row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The topic or namespace does not exist and was not created.
    NotFound,
    /// The broker rejected the credentials.
    Authentication,
    /// The broker refuses this operation to this client.
    Authorization,
    /// The operation did not complete in its time.
    Timeout,
    /// The client, producer or consumer is closed.
    AlreadyClosed,
    /// Another producer has exclusive access, or fenced this one ("ProducerBusy / Fenced").
    ProducerBusy,
    /// The subscription does not admit this consumer.
    ConsumerBusy,
    /// The schema is not compatible with the topic's.
    IncompatibleSchema,
    /// The topic was terminated, and stayed so through all attempts.
    TopicTerminated,
    /// No broker could be reached ("Connect / NotConnected").
    NotConnected,
    /// The queue of pending sends is full.
    ProducerQueueFull,
    /// The memory limit of the client is reached.
    MemoryBufferFull,
    /// A transaction's operation conflicts with another.
    TransactionConflict,
    /// Encrypting or decrypting failed.
    Crypto,
    /// What was configured cannot be used.
    InvalidConfiguration,
    /// The service URL is malformed.
    InvalidServiceUrl,
    /// A blocking call was interrupted.
    Interrupted,
    /// The broker does not offer this: it lacks a feature or does not allow the operation.
    NotSupported,
    /// The broker failed in a way that the error model has no category for.
    Unknown,
}

impl Category {
    /// The category's name as error-model §2 writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Category::NotFound => "NotFound",
            Category::Authentication => "Authentication",
            Category::Authorization => "Authorization",
            Category::Timeout => "Timeout",
            Category::AlreadyClosed => "AlreadyClosed",
            Category::ProducerBusy => "ProducerBusy",
            Category::ConsumerBusy => "ConsumerBusy",
            Category::IncompatibleSchema => "IncompatibleSchema",
            Category::TopicTerminated => "TopicTerminated",
            Category::NotConnected => "NotConnected",
            Category::ProducerQueueFull => "ProducerQueueFull",
            Category::MemoryBufferFull => "MemoryBufferFull",
            Category::TransactionConflict => "TransactionConflict",
            Category::Crypto => "Crypto",
            Category::InvalidConfiguration => "InvalidConfiguration",
            Category::InvalidServiceUrl => "InvalidServiceURL",
            Category::Interrupted => "Interrupted",
            Category::NotSupported => "NotSupported",
            Category::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an operation failed (error-model §1). Cheap to clone, since one event can fail many operations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{category}: {message}")]
pub struct Error {
    category: Category,
    message: Arc<str>,
    code: Option<ServerError>,
    transient: bool,
}

impl Error {
    /// What kind of failure it is (error-model §2); applications branch on this.
    pub fn category(&self) -> Category {
        self.category
    }

    /// What happened, for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// An error of an application's own schema or credentials.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Error { category, message: message.into().into(), code: None, transient: false }
    }

    /// The transport failed; the operation may succeed on another connection.
    pub(crate) fn not_connected(message: impl Into<String>) -> Self {
        Error { transient: true, ..Error::new(Category::NotConnected, message) }
    }

    pub(crate) fn closed(what: &str) -> Self {
        Error::new(Category::AlreadyClosed, format!("the {what} is closed"))
    }

    /// A broker did not answer in time; the operation may succeed at another attempt.
    pub(crate) fn unanswered(message: impl Into<String>) -> Self {
        Error { transient: true, ..Error::timeout(message) }
    }

    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Error::new(Category::Timeout, message)
    }

    /// What a broker's error code means, whichever command brought it.
    pub(crate) fn server(code: i32, message: &str) -> Self {
        use ServerError as S;
        let code = ServerError::try_from(code).unwrap_or(ServerError::UnknownError);
        let (category, transient) = match code {
            S::AuthenticationError => (Category::Authentication, false),
            S::AuthorizationError => (Category::Authorization, false),
            S::ConsumerBusy => (Category::ConsumerBusy, false),
            S::TopicNotFound | S::SubscriptionNotFound => (Category::NotFound, false),
            S::TopicTerminatedError => (Category::TopicTerminated, false),
            S::ProducerBusy | S::ProducerFenced => (Category::ProducerBusy, false),
            S::IncompatibleSchema => (Category::IncompatibleSchema, false),
            S::InvalidTopicName => (Category::InvalidConfiguration, false),
            S::UnsupportedVersionError | S::NotAllowedError => (Category::NotSupported, false),
            S::InvalidTxnStatus | S::TransactionConflict | S::TransactionNotFound => {
                (Category::TransactionConflict, false)
            }
            S::ServiceNotReady => (Category::NotConnected, true),
            S::UnknownError
            | S::MetadataError
            | S::PersistenceError
            | S::TooManyRequests
            | S::ProducerBlockedQuotaExceededError
            | S::ProducerBlockedQuotaExceededException
            | S::ChecksumError
            | S::ConsumerNotFound
            | S::ConsumerAssignError
            | S::TransactionCoordinatorNotFound => (Category::Unknown, true),
        };
        Error {
            category,
            message: format!("{} ({message})", code.as_str_name()).into(),
            code: Some(code),
            transient,
        }
    }

    /// Whether trying again without a change can help (error-model §3).
    pub(crate) fn is_transient(&self) -> bool {
        self.transient
    }

    /// The segment behind a per-segment producer is gone: sealed, migrated or deleted.
    pub(crate) fn is_segment_gone(&self) -> bool {
        matches!(self.category, Category::TopicTerminated | Category::NotFound)
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.code == Some(ServerError::ProducerFenced)
    }

    #[cfg(feature = "deviants")]
    pub(crate) fn into_generic(self) -> Self {
        Error { category: Category::Unknown, ..self }
    }
}
