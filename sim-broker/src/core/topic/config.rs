//! A topic's settings, and the choices that its callers make.

/// Settings of a topic.
#[derive(Debug, Clone)]
pub struct TopicConfig {
    /// Whether messages that repeat a producer's sequence ids are dropped.
    pub deduplication: bool,
    /// The largest payload of an entry that is taken, in bytes (`max_message_size` in CONNECTED).
    pub max_message_size: usize,
    /// Which schemas may follow which.
    pub compatibility: SchemaCompatibility,
    /// Whether producers without a schema are refused once the topic has one.
    pub schema_validation_enforced: bool,
    /// Whether Key_Shared consumers can ask for dispatch by entry bucket. A broker that cannot do it does not see the
    /// flag.
    pub entry_buckets: bool,
    /// Whether, on a sealed topic, only the first read of a shared subscription that finds nothing more tells its consumers
    /// that nothing will come (REACHED_END_OF_TOPIC): who attaches later is not told until something is acknowledged.
    pub end_is_read_once: bool,
}

impl Default for TopicConfig {
    fn default() -> Self {
        TopicConfig {
            deduplication: false,
            max_message_size: stc_proto::frame::DEFAULT_MAX_MESSAGE_SIZE,
            compatibility: SchemaCompatibility::Full,
            schema_validation_enforced: false,
            entry_buckets: true,
            end_is_read_once: false,
        }
    }
}

/// Which schemas may follow the latest one of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchemaCompatibility {
    /// Any schema.
    AlwaysCompatible,
    /// None.
    AlwaysIncompatible,
    /// The new schema reads what the latest one wrote.
    Backward,
    /// The latest schema reads what the new one writes.
    Forward,
    /// Both.
    #[default]
    Full,
}

/// Where a subscription made by an admin call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the first entry.
    Earliest,
    /// Behind the last entry.
    Latest,
}
