//! LOOKUP and PARTITIONED_METADATA: where a topic is served, and how many partitions it has. The coordinators' topic, which
//! clients look up that do not use the watch, stands for the coordinators.

use stc_proto::{
    TopicName,
    name::Domain,
    pulsar::{
        command_lookup_topic_response::LookupType as Answer,
        command_partitioned_topic_metadata_response::LookupType as MetadataAnswer, *,
    },
};

use super::{Cluster, coordinators::AssignTopic, namespaces::PartitionedOrNot};
use crate::core::ids::{ConnId, Millis};

impl Cluster {
    /// LOOKUP. Any broker answers with the owner; `proxy_through_service_url` is set by a cluster of one broker only,
    /// as Pulsar's standalone does: with several brokers the service URL may lead to the wrong one.
    pub(super) fn lookup(&mut self, conn: ConnId, command: CommandLookupTopic, _now: Millis) {
        let Some(asked) = self.conns.get(&conn).map(|c| c.broker) else { return };
        let topic = match TopicName::parse(&command.topic) {
            Ok(topic) => topic,
            Err(error) => {
                let message = error.to_string();
                return self.refuse(conn, &command.into(), ServerError::InvalidTopicName, &message);
            }
        };
        let owner = match AssignTopic::of(&topic) {
            Some(AssignTopic::One(coordinator)) => self.coordinator_leader(coordinator),
            _ if !self.namespaces.contains_key(topic.namespace()) => {
                return self.refuse(conn, &command.into(), ServerError::TopicNotFound, "Namespace not found");
            }
            _ => self.named_owner(&topic),
        };
        let owner = owner.and_then(|owner| Some((owner, self.broker(owner)?.addresses())));
        let Some((owner, addresses)) = owner else {
            let message = format!("No broker serves {topic} at the moment");
            return self.refuse(conn, &command.into(), ServerError::ServiceNotReady, &message);
        };
        let redirect = self.config.redirect_lookups && owner != asked && !command.authoritative();
        let answer = if redirect { Answer::Redirect } else { Answer::Connect };
        self.effects.send(
            conn,
            CommandLookupTopicResponse {
                broker_service_url: Some(addresses.service),
                broker_service_url_tls: addresses.service_tls,
                response: Some(answer as i32),
                request_id: command.request_id,
                authoritative: Some(true),
                proxy_through_service_url: Some(self.brokers.len() == 1),
                ..Default::default()
            },
        );
    }

    /// PARTITIONED_METADATA. Creates a partitioned topic where the namespace's policy says so.
    pub(super) fn partitioned_metadata(
        &mut self,
        conn: ConnId,
        command: CommandPartitionedTopicMetadata,
        now: Millis,
    ) {
        match self.partitions_of(&command, now) {
            Ok(partitions) => self.effects.send(
                conn,
                CommandPartitionedTopicMetadataResponse {
                    partitions: Some(partitions),
                    request_id: command.request_id,
                    response: Some(MetadataAnswer::Success as i32),
                    ..Default::default()
                },
            ),
            Err((error, message)) => self.refuse(conn, &command.into(), error, &message),
        }
    }

    fn partitions_of(
        &mut self,
        command: &CommandPartitionedTopicMetadata,
        now: Millis,
    ) -> Result<u32, (ServerError, String)> {
        let topic = TopicName::parse(&command.topic)
            .map_err(|error| (ServerError::InvalidTopicName, error.to_string()))?;
        match AssignTopic::of(&topic) {
            Some(AssignTopic::All) => return Ok(self.parallelism()),
            Some(AssignTopic::One(_)) => return Ok(0),
            None => {}
        }
        let Some(namespace) = self.namespaces.get(topic.namespace()) else {
            return Err((ServerError::TopicNotFound, "Namespace not found".to_owned()));
        };
        if topic.domain() != Domain::Persistent {
            return Ok(0);
        }
        if let Some(partitions) = self.partitioned.get(&topic) {
            return Ok(*partitions);
        }
        if self.stored.contains_key(&topic) || topic.partition_index().is_some() {
            return Ok(0);
        }
        let policy = namespace.auto_topic_creation();
        if !policy.allowed {
            return Err((ServerError::TopicNotFound, format!("Topic does not exist: {topic}")));
        }
        match policy.kind {
            PartitionedOrNot::Partitioned if command.metadata_auto_creation_enabled() => {
                let partitions = policy.default_partitions;
                self.create_partitions(&topic, partitions, now);
                Ok(partitions)
            }
            _ => Ok(0),
        }
    }
}
