//! Admin calls on classic and partitioned topics. Names are in the `persistent://` domain.

use stc_proto::TopicName;

use super::AdminError;
use crate::core::{
    cluster::Cluster,
    ids::Millis,
    topic::{Position, TopicStats},
};

/// So that one call cannot take all memory. Pulsar has no limit unless it is configured.
const MAX_PARTITIONS: u32 = 10_000;

impl Cluster {
    /// Makes a classic topic. 404 when there is no such namespace, 409 when the topic exists, 412 for the name of a
    /// partition that its partitioned topic does not have.
    pub fn create_topic(&mut self, topic: &TopicName, now: Millis) -> Result<(), AdminError> {
        self.creatable(topic)?;
        if let Some(index) = topic.partition_index()
            && self.partitioned.get(&topic.partitioned()).is_none_or(|n| index >= *n)
        {
            let reason = format!(
                "Can't create topic {} with \"-partition-\" followed by numeric value if there isn't a partitioned \
                 topic {} created.",
                topic.local(),
                topic.partitioned().local()
            );
            return Err(AdminError::new(412, reason));
        }
        if self.stored.contains_key(topic) || self.partitioned.contains_key(topic) {
            return Err(AdminError::new(409, "This topic already exists"));
        }
        self.create_stored(topic, now);
        self.note(now, format!("create {topic}"));
        self.settle(now);
        Ok(())
    }

    /// Makes a partitioned topic. 404 when there is no such namespace, 409 when the topic exists, 406 for a bad number of partitions.
    pub fn create_partitioned_topic(
        &mut self,
        topic: &TopicName,
        partitions: u32,
        now: Millis,
    ) -> Result<(), AdminError> {
        check_partitions(partitions)?;
        self.creatable(topic)?;
        if self.stored.contains_key(topic) || self.partitioned.contains_key(topic) {
            return Err(AdminError::new(409, "This topic already exists"));
        }
        self.create_partitions(topic, partitions, now);
        self.note(now, format!("create {topic} with {partitions} partitions"));
        self.settle(now);
        Ok(())
    }

    /// Gives a partitioned topic more partitions. 409 when there is none, 406 for a bad number, 422 for fewer.
    pub fn update_partitions(
        &mut self,
        topic: &TopicName,
        partitions: u32,
        now: Millis,
    ) -> Result<(), AdminError> {
        check_partitions(partitions)?;
        let current = self.partitioned.get(topic).copied();
        let current = current
            .ok_or_else(|| AdminError::new(409, format!("Topic {topic} is not the partitioned topic.")))?;
        if partitions < current {
            let reason = format!(
                "Desired partitions {partitions} can't be less than the current partitions {current}."
            );
            return Err(AdminError::new(422, reason));
        }
        self.create_partitions(topic, partitions, now);
        self.note(now, format!("give {topic} {partitions} partitions"));
        self.settle(now);
        Ok(())
    }

    /// How many partitions a topic has: 0 for one that is not partitioned. 404 when there is none.
    pub fn partitions(&self, topic: &TopicName) -> Result<u32, AdminError> {
        match self.partitioned.get(topic) {
            Some(n) => Ok(*n),
            None if self.stored.contains_key(topic) => Ok(0),
            None => Err(not_found(topic)),
        }
    }

    /// Deletes a classic topic. 404 when there is none, 409 when it is partitioned, 412 when it is in use and `force` is not set.
    pub fn delete_topic(&mut self, topic: &TopicName, force: bool, now: Millis) -> Result<(), AdminError> {
        if self.partitioned.contains_key(topic) {
            let reason = format!(
                "{topic} is a partitioned topic, instead of calling delete topic, please call \
                 delete-partitioned-topic."
            );
            return Err(AdminError::new(409, reason));
        }
        if !self.stored.contains_key(topic) {
            return Err(not_found(topic));
        }
        self.delete_all(topic, std::slice::from_ref(topic), force, now)
    }

    /// Deletes a partitioned topic. 404 when there is none, 409 when it is not partitioned, 412 when it is in use and `force` is not set.
    pub fn delete_partitioned_topic(
        &mut self,
        topic: &TopicName,
        force: bool,
        now: Millis,
    ) -> Result<(), AdminError> {
        let missing = |_| AdminError::new(404, format!("Topic {topic} not found."));
        let n = match self.partitions(topic).map_err(missing)? {
            0 => {
                let reason = format!(
                    "{topic} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete."
                );
                return Err(AdminError::new(409, reason));
            }
            n => n,
        };
        let partitions: Vec<TopicName> = (0..n).map(|i| topic.partition(i)).collect();
        self.delete_all(topic, &partitions, force, now)?;
        self.partitioned.remove(topic);
        Ok(())
    }

    /// The classic topics of a namespace, partitions one by one, sorted. 404 when there is no such namespace.
    pub fn topics(&self, tenant: &str, namespace: &str) -> Result<Vec<String>, AdminError> {
        self.namespace(tenant, namespace)?;
        Ok(self.classic_topics(&format!("{tenant}/{namespace}")))
    }

    /// The partitioned topics of a namespace, sorted. 404 when there is no such namespace.
    pub fn partitioned_topics(&self, tenant: &str, namespace: &str) -> Result<Vec<String>, AdminError> {
        self.namespace(tenant, namespace)?;
        let name = format!("{tenant}/{namespace}");
        Ok(self.partitioned.keys().filter(|t| t.namespace() == name).map(ToString::to_string).collect())
    }

    /// The statistics of a stored topic: a classic topic, a partition or a segment. 404 when there is none.
    pub fn topic_stats(&self, topic: &TopicName) -> Result<TopicStats, AdminError> {
        Ok(self.stored.get(topic).ok_or_else(|| not_found(topic))?.topic.stats())
    }

    /// Where the last entry of a classic topic is, `None` for an empty one. 404 when there is no such topic.
    pub fn last_position(&self, topic: &TopicName) -> Result<Option<Position>, AdminError> {
        let stored = self.stored.get(topic).ok_or_else(|| not_found(topic))?;
        Ok(stored.topic.stored().last().map(|entry| entry.position))
    }

    /// Seals a classic topic; returns where its last entry is, `None` for an empty one. 404 when there is no such topic.
    pub fn terminate_topic(
        &mut self,
        topic: &TopicName,
        now: Millis,
    ) -> Result<Option<Position>, AdminError> {
        let last = self.on_topic(topic, |t, effects| t.terminate(now, effects));
        let last = last.ok_or_else(|| not_found(topic))?;
        self.note(now, format!("terminate {topic}"));
        self.settle(now);
        Ok(last)
    }

    fn creatable(&self, topic: &TopicName) -> Result<(), AdminError> {
        self.namespace(topic.tenant(), topic.namespace_local())
            .map(|_| ())
            .map_err(|_| AdminError::new(404, "Namespace not found"))
    }

    fn delete_all(
        &mut self,
        topic: &TopicName,
        stored: &[TopicName],
        force: bool,
        now: Millis,
    ) -> Result<(), AdminError> {
        let in_use = |name: &TopicName| self.stored.get(name).is_some_and(|s| s.topic.in_use());
        if !force && stored.iter().any(in_use) {
            return Err(AdminError::new(412, "Topic has active producers/subscriptions"));
        }
        for name in stored {
            self.delete_stored(name);
        }
        self.note(now, format!("delete {topic}"));
        self.settle(now);
        Ok(())
    }
}

fn check_partitions(partitions: u32) -> Result<(), AdminError> {
    if (1..=MAX_PARTITIONS).contains(&partitions) {
        return Ok(());
    }
    let reason = match partitions {
        0 => "Number of partitions should be more than 0".to_owned(),
        _ => format!("Number of partitions should be less than or equal to {MAX_PARTITIONS}"),
    };
    Err(AdminError::new(406, reason))
}

fn not_found(topic: &TopicName) -> AdminError {
    AdminError::new(404, format!("Topic {topic} not found"))
}
