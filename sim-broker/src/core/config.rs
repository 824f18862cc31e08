//! How a cluster is set up.

use super::{
    controller::groups::Pace,
    ids::{BrokerId, Millis},
    profile::Profile,
    security::Security,
};

/// How a cluster is set up. Everything that happens follows from this, from the calls and from their times.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// How many brokers there are, at least 1.
    pub brokers: u32,
    /// Which broker the cluster plays.
    pub profile: Profile,
    /// Decides which broker owns what.
    pub seed: u64,
    /// How long the topics, controllers and coordinators of a killed broker stay unavailable before others have them, in
    /// ms.
    pub failover_ms: u64,
    /// How many transaction coordinators there are.
    pub coordinators: u32,
    /// The broker that leads all coordinators at first; `None` spreads them over the brokers.
    pub coordinators_at: Option<BrokerId>,
    /// How the timers of controllers run.
    pub pace: Pace,
    /// Whether a LOOKUP at a broker that does not own the topic is answered Redirect instead of Connect.
    pub redirect_lookups: bool,
    /// Whether every command that the brokers send carries fields that no release knows yet, as a later release's
    /// commands may (stability §4.1).
    pub unknown_fields: bool,
    /// Who may connect, and do what; `None` lets everyone do everything.
    pub security: Option<Security>,
    /// What the journal keeps.
    pub journal: JournalConfig,
    /// How many bytes may wait for a client that reads too slowly before its connection is closed.
    pub outbound_limit: usize,
}

/// What the journal keeps.
#[derive(Debug, Clone)]
pub struct JournalConfig {
    /// How many records are kept; the oldest go first.
    pub capacity: usize,
    /// Whether the entries behind SEND and MESSAGE are kept. Long runs switch it off to save memory.
    pub payloads: bool,
}

impl Default for JournalConfig {
    fn default() -> Self {
        JournalConfig { capacity: 200_000, payloads: true }
    }
}

impl ClusterConfig {
    /// Three brokers with this profile.
    pub fn new(profile: Profile) -> Self {
        ClusterConfig {
            brokers: 3,
            profile,
            seed: 0,
            failover_ms: 1_000,
            coordinators: 16,
            coordinators_at: None,
            pace: Pace { grace_ms: 60_000, drain_poll_ms: 2_000, drain_poll_max_ms: 15 * 60_000 },
            redirect_lookups: false,
            unknown_fields: false,
            security: None,
            journal: JournalConfig::default(),
            outbound_limit: 64 * 1024 * 1024,
        }
    }
}

/// How often a connection is pinged, in ms. One that was silent for two of these is closed; so is one whose
/// handshake takes longer than one.
pub const KEEP_ALIVE_MS: Millis = 30_000;
