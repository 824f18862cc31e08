//! Stored topics: creation, deletion, lists of names and watches of such lists.

use std::collections::BTreeSet;

use regex::Regex;
use stc_proto::{
    SegmentName, TopicName,
    hash::topic_set_hash,
    name::Domain,
    pulsar::{command_get_topics_of_namespace::Mode, *},
};

use super::{Cluster, Namespace, Stored};
use crate::core::{
    ids::{BrokerId, ConnId, Millis},
    topic::{SharedSchemas, Topic, TopicConfig},
};

/// A watch of the names in a namespace.
#[derive(Debug)]
pub(super) struct ListWatch {
    namespace: String,
    pattern: Pattern,
}

/// What a stored topic's schemas are filed under: the topic that it is a segment or a partition of, as in Pulsar
/// without its domain.
fn schema_name(name: &TopicName) -> String {
    let topic = SegmentName::of(name).map_or_else(|_| name.partitioned(), |segment| segment.topic);
    format!("{}/{}", topic.namespace(), topic.local())
}

impl Cluster {
    /// Makes a stored topic, owned by the broker that its name falls to.
    pub(super) fn create_stored(&mut self, name: &TopicName, _now: Millis) {
        let config = TopicConfig {
            deduplication: self.namespaces.get(name.namespace()).is_some_and(Namespace::deduplication),
            max_message_size: self.config.profile.max_message_size.try_into().unwrap_or(usize::MAX),
            entry_buckets: self.config.profile.entry_bucket_budget > 0,
            end_is_read_once: self.config.profile.end_is_read_once,
            ..TopicConfig::default()
        };
        let ledger = self.next_ledger;
        self.next_ledger += 1;
        let schemas = self.schemas.entry(schema_name(name)).or_default().clone();
        let topic = Topic::new(name.clone(), config, ledger, schemas);
        let owner = self.place(name).unwrap_or(BrokerId(0));
        self.stored.insert(name.clone(), Stored { topic, owner, tick_at: None });
        self.tell_list_watches(name, true);
    }

    /// Deletes a stored topic; whoever is attached is closed.
    pub(super) fn delete_stored(&mut self, name: &TopicName) -> bool {
        if self.on_topic(name, |topic, effects| topic.close_all(None, effects)).is_none() {
            return false;
        }
        self.stored.remove(name);
        let schemas = schema_name(name);
        if self.schemas.get(&schemas).is_some_and(SharedSchemas::is_unused) {
            self.schemas.remove(&schemas);
        }
        self.tell_list_watches(name, false);
        true
    }

    /// Forgets the schemas of a topic, whether stored topics have them still or not.
    pub(super) fn forget_schemas(&mut self, topic: &TopicName) {
        if let Some(schemas) = self.schemas.get(&schema_name(topic)) {
            schemas.clear();
        }
    }

    /// Makes a partitioned topic, or gives one more partitions.
    pub(super) fn create_partitions(&mut self, name: &TopicName, partitions: u32, now: Millis) {
        self.partitioned.insert(name.clone(), partitions);
        for index in 0..partitions {
            let partition = name.partition(index);
            if !self.stored.contains_key(&partition) {
                self.create_stored(&partition, now);
            }
        }
    }

    /// The names of the classic topics of a namespace, partitions one by one, sorted.
    pub(super) fn classic_topics(&self, namespace: &str) -> Vec<String> {
        self.stored
            .keys()
            .filter(|name| name.domain() == Domain::Persistent && name.namespace() == namespace)
            .map(ToString::to_string)
            .collect()
    }

    /// GET_TOPICS_OF_NAMESPACE.
    pub(super) fn topics_of_namespace(&mut self, conn: ConnId, command: &CommandGetTopicsOfNamespace) {
        let pattern = match command.topics_pattern.as_deref().map(Pattern::new).transpose() {
            Ok(pattern) => pattern,
            Err(message) => {
                let command = command.clone().into();
                return self.refuse(conn, &command, ServerError::NotAllowedError, &message);
            }
        };
        let mut topics = match command.mode() {
            Mode::NonPersistent => Vec::new(),
            Mode::Persistent | Mode::All => self.classic_topics(&command.namespace),
        };
        if let Some(pattern) = &pattern {
            topics.retain(|name| pattern.matches(name));
        }
        let hash = topic_set_hash(&topics);
        let changed = command.topics_hash.as_ref() != Some(&hash);
        if !changed {
            topics.clear();
        }
        self.effects.send(
            conn,
            CommandGetTopicsOfNamespaceResponse {
                request_id: command.request_id,
                topics,
                filtered: Some(pattern.is_some()),
                topics_hash: Some(hash),
                changed: Some(changed),
            },
        );
    }

    /// WATCH_TOPIC_LIST.
    pub(super) fn watch_topic_list(&mut self, conn: ConnId, command: CommandWatchTopicList) {
        let pattern = match Pattern::new(&command.topics_pattern) {
            Ok(pattern) => pattern,
            Err(message) => {
                return self.refuse(conn, &command.into(), ServerError::NotAllowedError, &message);
            }
        };
        let mut topic = self.classic_topics(&command.namespace);
        topic.retain(|name| pattern.matches(name));
        let topics_hash = topic_set_hash(&topic);
        if command.topics_hash.as_ref() == Some(&topics_hash) {
            topic.clear();
        }
        if let Some(c) = self.conns.get_mut(&conn) {
            let watch = ListWatch { namespace: command.namespace, pattern };
            c.list_watches.insert(command.watcher_id, watch);
        }
        let CommandWatchTopicList { request_id, watcher_id, .. } = command;
        self.effects.send(conn, CommandWatchTopicListSuccess { request_id, watcher_id, topic, topics_hash });
    }

    /// WATCH_TOPIC_LIST_CLOSE.
    pub(super) fn close_topic_list(&mut self, conn: ConnId, command: &CommandWatchTopicListClose) {
        if let Some(c) = self.conns.get_mut(&conn) {
            c.list_watches.remove(&command.watcher_id);
        }
        self.effects.send(conn, CommandSuccess { request_id: command.request_id, schema: None });
    }

    /// Tells the watches of a list that a name came or went.
    fn tell_list_watches(&mut self, name: &TopicName, added: bool) {
        let watched = self.conns.values().any(|c| !c.list_watches.is_empty());
        if name.domain() != Domain::Persistent || !watched {
            return;
        }
        let all: BTreeSet<String> = self.classic_topics(name.namespace()).into_iter().collect();
        for (conn, c) in &self.conns {
            for (watcher_id, watch) in &c.list_watches {
                if watch.namespace != name.namespace() || !watch.pattern.matches(name.as_str()) {
                    continue;
                }
                let listed: Vec<String> =
                    all.iter().filter(|name| watch.pattern.matches(name)).cloned().collect();
                let change = vec![name.to_string()];
                let (new_topics, deleted_topics) = if added { (change, vec![]) } else { (vec![], change) };
                self.effects.send(
                    *conn,
                    CommandWatchTopicUpdate {
                        watcher_id: *watcher_id,
                        new_topics,
                        deleted_topics,
                        topics_hash: topic_set_hash(&listed),
                    },
                );
            }
        }
    }
}

/// A pattern over names without their scheme.
#[derive(Debug)]
struct Pattern(Regex);

impl Pattern {
    fn new(text: &str) -> Result<Self, String> {
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        Regex::new(&format!("^(?:{text})$")).map(Pattern).map_err(|e| e.to_string())
    }

    fn matches(&self, name: &str) -> bool {
        self.0.is_match(name.split_once("://").map_or(name, |(_, rest)| rest))
    }
}
