//! Tenants, namespaces and their policies.

use super::Cluster;
use crate::core::security::Permissions;

/// A namespace and its policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    /// Which topics come into being when a client names them, if the namespace has a rule of its own.
    pub auto_topic_creation: Option<AutoTopicCreation>,
    /// Whether messages that repeat a producer's sequence ids are dropped, if the namespace has a rule of its own.
    pub deduplication: Option<bool>,
    /// What each principal may do; counts only in a cluster with authorization.
    pub permissions: Permissions,
}

/// Which topics come into being when a client names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoTopicCreation {
    /// Whether any do.
    pub allowed: bool,
    /// What a classic topic becomes.
    pub kind: PartitionedOrNot,
    /// How many partitions a partitioned one gets, at least 1.
    pub default_partitions: u32,
}

/// Whether a classic topic is partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionedOrNot {
    /// It has partitions.
    Partitioned,
    /// It is one topic.
    NonPartitioned,
}

impl Default for AutoTopicCreation {
    fn default() -> Self {
        AutoTopicCreation { allowed: true, kind: PartitionedOrNot::NonPartitioned, default_partitions: 1 }
    }
}

impl Namespace {
    /// Which topics come into being when a client names them.
    pub fn auto_topic_creation(&self) -> AutoTopicCreation {
        self.auto_topic_creation.clone().unwrap_or_default()
    }

    /// Whether messages that repeat a producer's sequence ids are dropped.
    pub fn deduplication(&self) -> bool {
        self.deduplication.unwrap_or(false)
    }
}

impl Cluster {
    pub(super) fn create_namespace_entry(&mut self, tenant: &str, namespace: &str) {
        self.tenants.insert(tenant.to_owned());
        let name = format!("{tenant}/{namespace}");
        let granted = self.config.security.iter().flat_map(|s| &s.authorization);
        let permissions = granted.flat_map(|a| a.grants.get(&name)).next().cloned().unwrap_or_default();
        self.namespaces.entry(name).or_insert_with(|| Namespace { permissions, ..Namespace::default() });
    }

    /// Whether a client may create topics in a namespace (`tenant/namespace`) by naming them.
    pub(super) fn may_auto_create(&self, namespace: &str) -> bool {
        self.namespaces.get(namespace).is_some_and(|n| n.auto_topic_creation().allowed)
    }
}
