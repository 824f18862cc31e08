//! Namespace watches: which scalable topics a namespace has, and how that set changes (wire-protocol §7).

use std::collections::BTreeMap;

use stc_proto::{TopicName, hash::topic_set_hash, pulsar::*};

use super::{Cluster, flow::Due};
use crate::core::{
    ids::{ConnId, Millis},
    profile::{MissingNamespace, TopicSetDiffs},
};

/// A watch of the scalable topics of a namespace.
#[derive(Debug)]
pub(super) struct TopicSetWatch {
    namespace: String,
    /// Each has to be among a topic's properties.
    filters: Vec<(String, String)>,
    /// The topics that the client was told of, each with what tells its lives apart.
    told: BTreeMap<TopicName, u64>,
    /// Tells this watch from others that had its id.
    stamp: u64,
    /// Whether the next diff is on the agenda.
    due: bool,
    /// What happened last to each topic since the client was told: whether it is in the set now.
    last: BTreeMap<TopicName, bool>,
}

impl TopicSetWatch {
    fn wants(&self, properties: &BTreeMap<String, String>) -> bool {
        self.filters.iter().all(|(key, value)| properties.get(key) == Some(value))
    }
}

impl Cluster {
    /// WATCH_SCALABLE_TOPICS. A watch id that is in use is established anew.
    pub(super) fn watch_topic_set(&mut self, conn: ConnId, command: CommandWatchScalableTopics) {
        let CommandWatchScalableTopics { watch_id, namespace, property_filters, current_hash } =
            command.clone();
        if !self.namespaces.contains_key(&namespace)
            && self.config.profile.missing_namespace == MissingNamespace::Error
        {
            let message = format!("Namespace not found: {namespace}");
            return self.refuse(conn, &command.into(), ServerError::TopicNotFound, &message);
        }
        self.next_topic_set += 1;
        let filters = property_filters.into_iter().map(|filter| (filter.key, filter.value)).collect();
        let mut watch = TopicSetWatch {
            namespace,
            filters,
            told: BTreeMap::new(),
            stamp: self.next_topic_set,
            due: false,
            last: BTreeMap::new(),
        };
        watch.told = self.topic_set(&watch);
        let topics: Vec<String> = watch.told.keys().map(ToString::to_string).collect();
        if let Some(c) = self.conns.get_mut(&conn) {
            c.topic_sets.insert(watch_id, watch);
        }
        if current_hash.as_ref() == Some(&topic_set_hash(&topics)) {
            return;
        }
        self.effects.send(
            conn,
            CommandWatchScalableTopicsUpdate {
                watch_id,
                event: Some(command_watch_scalable_topics_update::Event::Snapshot(ScalableTopicsSnapshot {
                    topics,
                })),
                ..Default::default()
            },
        );
    }

    /// WATCH_SCALABLE_TOPICS_CLOSE.
    pub(super) fn close_topic_set(&mut self, conn: ConnId, command: &CommandWatchScalableTopicsClose) {
        if let Some(c) = self.conns.get_mut(&conn) {
            c.topic_sets.remove(&command.watch_id);
        }
    }

    /// A scalable topic came, went or has other properties: the watches of its namespace hear of it with whatever else
    /// happens in the profile's time.
    pub(super) fn topic_set_changed(&mut self, topic: &TopicName, now: Millis) {
        let at = now + self.config.profile.topic_set_delay_ms;
        let properties = self.scalable.get(topic).map(|scalable| &scalable.properties);
        for (conn, c) in &mut self.conns {
            for (watch_id, watch) in &mut c.topic_sets {
                if watch.namespace != topic.namespace() {
                    continue;
                }
                let is_in = properties.is_some_and(|properties| watch.wants(properties));
                if is_in || watch.told.contains_key(topic) || watch.last.contains_key(topic) {
                    watch.last.insert(topic.clone(), is_in);
                }
                if !watch.due {
                    watch.due = true;
                    self.agenda.add(at, Due::TopicSet(*conn, *watch_id, watch.stamp));
                }
            }
        }
    }

    /// Tells a watch what changed since it was told last.
    pub(super) fn tell_topic_set(&mut self, conn: ConnId, watch_id: u64, stamp: u64) {
        let watch = self.conns.get(&conn).and_then(|c| c.topic_sets.get(&watch_id));
        let Some(watch) = watch.filter(|watch| watch.stamp == stamp) else { return };
        let now = self.topic_set(watch);
        let diff = match self.config.profile.topic_set_diffs {
            TopicSetDiffs::Net => net(&watch.told, &now),
            TopicSetDiffs::LastEvent => last_events(&watch.last),
        };
        if let Some(watch) = self.conns.get_mut(&conn).and_then(|c| c.topic_sets.get_mut(&watch_id)) {
            watch.told = now;
            watch.last.clear();
            watch.due = false;
        }
        if diff != ScalableTopicsDiff::default() {
            let event = Some(command_watch_scalable_topics_update::Event::Diff(diff));
            let update = CommandWatchScalableTopicsUpdate { watch_id, event, ..Default::default() };
            self.effects.send(conn, update);
        }
    }

    /// The topics that a watch is about, as they are now.
    fn topic_set(&self, watch: &TopicSetWatch) -> BTreeMap<TopicName, u64> {
        self.scalable
            .iter()
            .filter(|(topic, _)| topic.namespace() == watch.namespace)
            .filter(|(_, s)| watch.wants(&s.properties))
            .map(|(topic, s)| (topic.clone(), s.life))
            .collect()
    }
}

/// What a client has to do to get from one set to another. A topic that was made again leaves and comes.
fn net(told: &BTreeMap<TopicName, u64>, now: &BTreeMap<TopicName, u64>) -> ScalableTopicsDiff {
    let missing = |from: &BTreeMap<TopicName, u64>, of: &BTreeMap<TopicName, u64>| -> Vec<String> {
        let gone = of.iter().filter(|(topic, life)| from.get(*topic) != Some(life));
        gone.map(|(topic, _)| topic.to_string()).collect()
    };
    ScalableTopicsDiff { added: missing(told, now), removed: missing(now, told) }
}

/// What happened last to each topic, whatever the client knows of it.
fn last_events(last: &BTreeMap<TopicName, bool>) -> ScalableTopicsDiff {
    let those = |is_in: bool| {
        last.iter().filter(|(_, now)| **now == is_in).map(|(topic, _)| topic.to_string()).collect()
    };
    ScalableTopicsDiff { added: those(true), removed: those(false) }
}
