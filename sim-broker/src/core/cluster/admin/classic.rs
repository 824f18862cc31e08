//! Admin calls on classic and partitioned topics. Names are in the `persistent://` domain.

use stc_proto::TopicName;

use super::AdminError;
use crate::core::{cluster::Cluster, ids::Millis, topic::TopicStats};

/// As Pulsar's default limit.
const MAX_PARTITIONS: u32 = 10_000;

impl Cluster {
    /// Makes a classic topic. 409 when it exists.
    pub fn create_topic(&mut self, topic: &TopicName, now: Millis) -> Result<(), AdminError> {
        if self.stored.contains_key(topic) || self.partitioned.contains_key(topic) {
            return Err(AdminError::new(409, "This topic already exists"));
        }
        self.create_stored(topic, now);
        self.note(now, format!("create {topic}"));
        self.settle(now);
        Ok(())
    }

    /// Makes a partitioned topic. 409 when it exists, 406 for a bad number of partitions.
    pub fn create_partitioned_topic(
        &mut self,
        topic: &TopicName,
        partitions: u32,
        now: Millis,
    ) -> Result<(), AdminError> {
        check_partitions(partitions)?;
        if self.stored.contains_key(topic) || self.partitioned.contains_key(topic) {
            return Err(AdminError::new(409, "This topic already exists"));
        }
        self.create_partitions(topic, partitions, now);
        self.note(now, format!("create {topic} with {partitions} partitions"));
        self.settle(now);
        Ok(())
    }

    /// Gives a partitioned topic more partitions. 404 when there is none, 406 for a bad number, 412 for fewer.
    pub fn update_partitions(
        &mut self,
        topic: &TopicName,
        partitions: u32,
        now: Millis,
    ) -> Result<(), AdminError> {
        check_partitions(partitions)?;
        let current = self.partitioned.get(topic).copied();
        let current = current.ok_or_else(|| AdminError::new(404, "Partitioned Topic not found"))?;
        if partitions < current {
            return Err(AdminError::new(412, "Number of partitions must not be less than before"));
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

    /// Deletes a classic topic. 404 when there is none, 412 when it is in use and `force` is not set.
    pub fn delete_topic(&mut self, topic: &TopicName, force: bool, now: Millis) -> Result<(), AdminError> {
        if !self.stored.contains_key(topic) {
            return Err(not_found(topic));
        }
        self.delete_all(topic, std::slice::from_ref(topic), force, now)
    }

    /// Deletes a partitioned topic. 404 when there is none, 412 when it is in use and `force` is not set.
    pub fn delete_partitioned_topic(
        &mut self,
        topic: &TopicName,
        force: bool,
        now: Millis,
    ) -> Result<(), AdminError> {
        let n = *self.partitioned.get(topic).ok_or_else(|| not_found(topic))?;
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
    let reason = format!("Number of partitions should be greater than 0 and at most {MAX_PARTITIONS}");
    Err(AdminError::new(406, reason))
}

fn not_found(topic: &TopicName) -> AdminError {
    AdminError::new(404, format!("Topic {topic} not found"))
}
