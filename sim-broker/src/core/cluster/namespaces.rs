//! Tenants, namespaces and their policies.

use super::Cluster;

/// A namespace and its policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    /// Which topics come into being when a client names them.
    pub auto_topic_creation: AutoTopicCreation,
    /// Whether messages that repeat a producer's sequence ids are dropped.
    pub deduplication: bool,
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

impl Cluster {
    pub(super) fn create_namespace_entry(&mut self, tenant: &str, namespace: &str) {
        self.tenants.insert(tenant.to_owned());
        self.namespaces.entry(format!("{tenant}/{namespace}")).or_default();
    }

    /// Whether a client may create topics in a namespace (`tenant/namespace`) by naming them.
    pub(super) fn may_auto_create(&self, namespace: &str) -> bool {
        self.namespaces.get(namespace).is_some_and(|n| n.auto_topic_creation.allowed)
    }
}
