//! What the admin REST offers, as calls on the cluster: same rules, no HTTP.
//!
//! | Module | Owns |
//! |---|---|
//! | `namespaces` | tenants, namespaces, their policies |
//! | `classic` | classic and partitioned topics |
//! | `scalable` | scalable topics: creation, layout changes, statistics |
//! | `migration` | classic topics that become scalable |
//! | `subscriptions` | subscriptions of scalable and of classic topics |

mod classic;
mod migration;
mod namespaces;
mod scalable;
mod subscriptions;

use thiserror::Error;

use super::Cluster;
use crate::core::{
    ids::{BrokerId, Millis},
    journal::{Direction, Event},
};

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

impl Cluster {
    /// Writes into the journal which call a broker's admin REST took and how it answered.
    pub fn journal_admin(&mut self, broker: BrokerId, text: String, now: Millis) {
        self.journal.append(now, Some(broker), None, Direction::Internal, Event::Admin { text });
    }
}
