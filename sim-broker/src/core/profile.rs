//! Profiles: which broker the cluster plays. A profile is data (`profiles/*.yaml`), never code.

use serde::Deserialize;
use stc_proto::{Command, pulsar::FeatureFlags};
use thiserror::Error;

/// The profiles that come with the simulator, by name.
const BUILT_IN: [(&str, &str); 3] = [
    ("spec-1.0", include_str!("../../profiles/spec-1.0.yaml")),
    ("pulsar-5.0.1", include_str!("../../profiles/pulsar-5.0.1.yaml")),
    ("pulsar-5.0.0-M1", include_str!("../../profiles/pulsar-5.0.0-M1.yaml")),
];

/// Which broker the cluster plays.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The profile's name.
    pub name: String,
    /// `server_version` in CONNECTED.
    pub server_version: String,
    /// `protocol_version` in CONNECTED.
    pub protocol_version: i32,
    /// `max_message_size` in CONNECTED, in bytes; also the largest entry that a topic takes.
    pub max_message_size: u32,
    /// The feature flags in CONNECTED that are set, by their names on the wire.
    pub features: Vec<Feature>,
    /// Commands that this broker does not know, by their names on the wire; one of them closes its connection.
    pub absent_commands: Vec<String>,
    /// How many entry buckets the initial segments of a topic share; 0 for a broker without entry buckets.
    pub entry_bucket_budget: u32,
    /// When a topic's controller is elected.
    pub controller: ControllerElection,
    /// Whether the first layout of a topic that a DAG lookup created is sent twice.
    pub initial_pushes_repeat: bool,
    /// Which subscriptions a split or merge gives to the children.
    pub copied_subscriptions: CopiedSubscriptions,
    /// Whether a subscription that a client makes on one segment begins on all segments of the topic at once.
    pub subscriptions_span_segments: bool,
    /// Whether a checkpoint group is handed a segment only once it has read that segment's ancestors to the end, as a
    /// subscription is.
    pub checkpoint_gate: bool,
    /// Whether a sealed segment that was read to the end is handed out again when its subscription is moved back.
    pub seek_reopens_segments: bool,
    /// Whether, on a sealed segment, only the first read of a shared subscription that finds nothing more tells its consumers
    /// that nothing will come; who attaches later is not told until something is acknowledged.
    pub end_is_read_once: bool,
    /// Whether the layout is pushed again when a consumer registers or leaves, or the auto-scale policy is set.
    pub registrations_push_layout: bool,
    /// Whether a consumer that registers is sent its assignment as an update too, before the response.
    pub updates_before_response: bool,
    /// Whether a broker that led a topic, and leads it no longer though it runs, closes the connections of the consumers
    /// that are registered with it.
    pub deposed_leader_closes: bool,
    /// Whether a dead broker is still named in lookups and layouts until others take over; else the lookup is refused and
    /// the layout leaves its segments without an address.
    pub names_dead_owners: bool,
    /// Whether layouts are pushed when others take over from a broker that died or was unloaded.
    pub takeovers_push_layout: bool,
    /// Whether a broker that closes producers and consumers of a topic it gives up says where that is served now.
    pub closes_name_owner: bool,
    /// How often the loads of segments are reported, in ms, which pushes the layout again for every new segment; 0 for a
    /// broker that does not.
    pub load_report_interval_ms: u64,
    /// How often a controller looks for drained sealed segments to prune, in ms.
    pub prune_interval_ms: u64,
    /// What answers a watch of a namespace that does not exist.
    pub missing_namespace: MissingNamespace,
    /// For how long changes of a namespace's topics are collected before its watches are told, in ms.
    pub topic_set_delay_ms: u64,
    /// What they are told then.
    pub topic_set_diffs: TopicSetDiffs,
}

/// A feature flag of CONNECTED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // each is the field of the same name
pub enum Feature {
    SupportsAuthRefresh,
    SupportsBrokerEntryMetadata,
    SupportsPartialProducer,
    SupportsTopicWatchers,
    SupportsGetPartitionedMetadataWithoutAutoCreation,
    SupportsReplDedupByLidAndEid,
    SupportsTopicWatcherReconcile,
    SupportsScalableTopics,
    SupportsTcMetadataDiscovery,
}

/// When a topic's controller is elected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerElection {
    /// With the topic: every layout names it.
    Eager,
    /// When something needs it first; the layout is pushed again at the same epoch then.
    Lazy,
}

/// Which subscriptions a split or merge gives to the children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopiedSubscriptions {
    /// Every durable one.
    Durable,
    /// Those that the controller has a record of: made by an admin call, or with a registered consumer. Queue consumers
    /// register nowhere.
    Recorded,
}

/// What answers a watch of a namespace that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingNamespace {
    /// An error, which ends the watch.
    Error,
    /// The set of its topics, which is empty.
    Empty,
}

/// What the watches of a namespace are told of changes that came close together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopicSetDiffs {
    /// The difference: what came and went is not told, and a topic that was made again leaves and comes.
    Net,
    /// What happened last to each topic: one that was made again comes, though the client has it; one that came and went
    /// leaves, though the client never had it.
    LastEvent,
}

/// Why a profile cannot be used.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// There is no built-in profile of that name.
    #[error("unknown profile {0:?}; there are {names}", names = Profile::names().join(", "))]
    Unknown(String),
    /// The text is not a profile.
    #[error("profile does not parse: {0}")]
    Syntax(String),
    /// It names a command that the protocol does not have.
    #[error("profile {profile} names an unknown command {command:?}")]
    Command {
        /// The profile.
        profile: String,
        /// The name.
        command: String,
    },
}

impl Profile {
    /// The names of the built-in profiles.
    pub fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// The built-in profile of this name.
    pub fn built_in(name: &str) -> Result<Self, ProfileError> {
        let (_, text) = BUILT_IN
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| ProfileError::Unknown(name.to_owned()))?;
        Profile::parse(text)
    }

    /// Reads a profile from YAML.
    pub fn parse(yaml: &str) -> Result<Self, ProfileError> {
        let profile: Profile =
            serde_saphyr::from_str(yaml).map_err(|e| ProfileError::Syntax(e.to_string()))?;
        match profile.absent_commands.iter().find(|name| Command::number_of(name).is_none()) {
            Some(command) => {
                Err(ProfileError::Command { profile: profile.name.clone(), command: command.clone() })
            }
            None => Ok(profile),
        }
    }

    /// The feature flags of CONNECTED.
    pub fn feature_flags(&self) -> FeatureFlags {
        let flag = |feature| self.features.contains(&feature).then_some(true);
        FeatureFlags {
            supports_auth_refresh: flag(Feature::SupportsAuthRefresh),
            supports_broker_entry_metadata: flag(Feature::SupportsBrokerEntryMetadata),
            supports_partial_producer: flag(Feature::SupportsPartialProducer),
            supports_topic_watchers: flag(Feature::SupportsTopicWatchers),
            supports_get_partitioned_metadata_without_auto_creation: flag(
                Feature::SupportsGetPartitionedMetadataWithoutAutoCreation,
            ),
            supports_repl_dedup_by_lid_and_eid: flag(Feature::SupportsReplDedupByLidAndEid),
            supports_topic_watcher_reconcile: flag(Feature::SupportsTopicWatcherReconcile),
            supports_scalable_topics: flag(Feature::SupportsScalableTopics),
            supports_tc_metadata_discovery: flag(Feature::SupportsTcMetadataDiscovery),
        }
    }

    /// Whether this broker knows a command.
    pub fn knows(&self, command: &Command) -> bool {
        !self.absent_commands.iter().any(|name| name == command.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_parses_and_is_called_by_its_name() {
        for name in Profile::names() {
            assert_eq!(Profile::built_in(name).unwrap().name, name);
        }
    }

    #[test]
    fn unknown_names_and_fields_are_refused() {
        let error = Profile::built_in("spec-2.0").unwrap_err().to_string();
        assert!(error.contains("spec-1.0"), "{error}");
        let (_, text) = BUILT_IN[0];
        assert!(matches!(Profile::parse(&format!("{text}\ntypo: 1\n")), Err(ProfileError::Syntax(_))));
        let text = text.replace("absent_commands: []", "absent_commands: [NO_SUCH]");
        assert!(matches!(Profile::parse(&text), Err(ProfileError::Command { .. })));
    }
}
