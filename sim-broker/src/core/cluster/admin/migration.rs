//! Migration: a classic topic becomes a scalable one of the same name (compatibility §1).

use std::collections::BTreeMap;

use stc_proto::{Layout, TopicName, name::Domain, pulsar::KeyValue};

use super::AdminError;
use crate::core::{cluster::Cluster, ids::Millis};

/// The property of a producer's or consumer's metadata by which clients of scalable topics show themselves.
const MANAGED: (&str, &str) = ("__pulsar.v5.managed", "true");

impl Cluster {
    /// Turns a classic topic into a scalable one of the same name: its partitions become sealed segments, and new
    /// segments take the writes. `topic` is in the `persistent://` domain. 404 when there is none, 409 when it is
    /// scalable already, or when clients are attached that do not know scalable topics and `force` is not set, 500 for a
    /// single partition, 503 while a partition is not served.
    pub fn migrate_topic(&mut self, topic: &TopicName, force: bool, now: Millis) -> Result<(), AdminError> {
        let scalable = topic.with_domain(Domain::Topic);
        if self.scalable.contains_key(&scalable) {
            return Err(AdminError::new(409, format!("Topic is already scalable: {scalable}")));
        }
        let legacy = self.stored_names(topic);
        if !legacy.iter().all(|name| self.stored.contains_key(name)) {
            return Err(AdminError::new(404, format!("Topic does not exist: {topic}")));
        }
        let attached: usize = legacy.iter().map(|name| self.legacy_clients(name)).sum();
        if attached > 0 && !force {
            let reason = format!(
                "{attached} legacy v4 client connection(s) still attached to {topic}; disconnect them (or all \
                 clients are V5) before migrating, or retry with force=true"
            );
            return Err(AdminError::new(409, reason));
        }
        if topic.partition_index().is_some() {
            return Err(AdminError::new(
                500,
                format!("{topic} is a partition: its topic is migrated as a whole"),
            ));
        }
        if legacy.iter().any(|name| self.owner(name).is_none()) {
            return Err(AdminError::new(503, "a partition is not served at the moment"));
        }
        self.note(now, format!("migrate {topic}, force={force}"));
        let names = legacy.iter().map(ToString::to_string);
        let layout = Layout::migrated(names, self.config.profile.entry_bucket_budget, now)
            .map_err(|e| AdminError::new(500, e.to_string()))?;
        // Every new segment takes keys from every partition.
        let copied = self.copied_subscriptions(&scalable, &legacy);
        // As 5.0.1 does, watches hear of the new layout before the partitions are closed. Nothing leaves until all of
        // this settles.
        self.adopt_layout(&scalable, layout, BTreeMap::new(), "migrate", now);
        for name in self.stored_names(&scalable).into_iter().filter(|name| name.domain() == Domain::Segment) {
            self.make_subscriptions(&name, &copied);
        }
        for name in &legacy {
            self.on_topic(name, |topic, effects| topic.terminate(now, effects));
        }
        self.settle(now);
        Ok(())
    }

    /// How many producers and consumers on a stored topic do not know scalable topics.
    fn legacy_clients(&self, name: &TopicName) -> usize {
        let Some(stored) = self.stored.get(name) else { return 0 };
        let stats = stored.topic.stats();
        let managed =
            |metadata: &[KeyValue]| metadata.iter().any(|kv| (kv.key.as_str(), kv.value.as_str()) == MANAGED);
        let producers = stats.producers.iter().filter(|p| !managed(&p.metadata)).count();
        let consumers = stats.subscriptions.iter().flat_map(|s| &s.consumers);
        producers + consumers.filter(|c| !managed(&c.metadata)).count()
    }
}
