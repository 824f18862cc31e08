//! What the admin REST offers, as calls on the cluster: same rules, no HTTP.
//!
//! | Module | Owns |
//! |---|---|
//! | `namespaces` | tenants, namespaces, their policies |
//! | `classic` | classic and partitioned topics |
//! | `scalable` | scalable topics: creation, layout changes, migration, statistics |
//! | `subscriptions` | subscriptions of scalable topics |

mod classic;
mod namespaces;
mod scalable;
mod subscriptions;

use thiserror::Error;

pub use self::scalable::{ScalableStats, ScalableTopic, SegmentStats};

/// An admin call that was refused: the HTTP status and the `reason` of the body, as Pulsar answers it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{status}: {reason}")]
pub struct AdminError {
    /// The HTTP status.
    pub status: u16,
    /// The text of the body's `reason`.
    pub reason: String,
}

impl AdminError {
    /// An error with this status and reason.
    pub fn new(status: u16, reason: impl Into<String>) -> Self {
        AdminError { status, reason: reason.into() }
    }
}
