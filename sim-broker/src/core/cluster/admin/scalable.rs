//! Admin calls on scalable topics. Names are in the `topic://` domain.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use stc_proto::{
    Layout, Segment, TopicName,
    layout::{ChangeError, MAX_BUCKETS},
};

use super::AdminError;
use crate::core::{
    cluster::{Cluster, Registered, scalable::LayoutChangeError},
    controller::assignment::GroupKind,
    ids::{BrokerId, Millis},
    topic::TopicStats,
};

/// The most segments that a topic may begin with, so that one call cannot take all memory.
const MAX_INITIAL_SEGMENTS: u32 = 1024;

/// What there is of a scalable topic.
#[derive(Debug, Clone, Copy)]
pub struct ScalableTopic<'a> {
    /// Its layout.
    pub layout: &'a Layout,
    /// Its properties.
    pub properties: &'a BTreeMap<String, String>,
    /// Its auto-scale policy, if one was set.
    pub auto_scale_policy: Option<&'a Json>,
    /// The broker of its controller, if one is elected.
    pub controller: Option<BrokerId>,
}

/// The statistics of a scalable topic.
#[derive(Debug, Clone)]
pub struct ScalableStats {
    /// The layout's epoch.
    pub epoch: u64,
    /// The broker of its controller, if one is elected and runs.
    pub controller: Option<BrokerId>,
    /// Its segments in the order of their ids.
    pub segments: Vec<SegmentStats>,
    /// Subscriptions over all segments, by name: messages that are not acknowledged.
    pub backlogs: BTreeMap<String, u64>,
    /// The consumers that are registered with its controller, by group and name.
    pub registered: Vec<Registered>,
    /// The subscriptions that admin calls made, and whether each was for queue consumers.
    pub made: BTreeMap<String, bool>,
    /// The segments that registered stream consumers are not handed yet, since they come after others.
    pub blocked: BTreeMap<String, BTreeSet<u64>>,
}

/// The statistics of a segment.
#[derive(Debug, Clone)]
pub struct SegmentStats {
    /// The segment.
    pub segment: Segment,
    /// The name of the stored topic behind it.
    pub name: TopicName,
    /// The broker that serves it, if any does.
    pub owner: Option<BrokerId>,
    /// What is stored, and who is attached.
    pub topic: TopicStats,
}

impl Cluster {
    /// Makes a scalable topic. 409 when it exists, 412 when `segments` is below 1 or above 1024. A live DAG watch of
    /// the name is pushed the new layout.
    pub fn create_scalable_topic(
        &mut self,
        topic: &TopicName,
        segments: i64,
        properties: BTreeMap<String, String>,
        now: Millis,
    ) -> Result<(), AdminError> {
        let segments = u32::try_from(segments).ok().filter(|n| *n >= 1);
        let segments = segments.ok_or_else(|| AdminError::new(412, "numInitialSegments must be >= 1"))?;
        if segments > MAX_INITIAL_SEGMENTS {
            let reason = format!("numInitialSegments must be <= {MAX_INITIAL_SEGMENTS}");
            return Err(AdminError::new(412, reason));
        }
        if self.scalable.contains_key(topic) {
            return Err(AdminError::new(409, format!("Scalable topic already exists: {topic}")));
        }
        self.note(now, format!("create {topic} with {segments} segments"));
        self.create_scalable_entry(topic, segments, properties, now);
        self.settle(now);
        Ok(())
    }

    /// The scalable topics of a namespace that have all these properties, sorted.
    pub fn scalable_topics(
        &self,
        tenant: &str,
        namespace: &str,
        properties: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let name = format!("{tenant}/{namespace}");
        self.scalable
            .iter()
            .filter(|(topic, _)| topic.namespace() == name)
            .filter(|(_, s)| properties.iter().all(|(k, v)| s.properties.get(k) == Some(v)))
            .map(|(topic, _)| topic.to_string())
            .collect()
    }

    /// What there is of a scalable topic. 404 when there is none.
    pub fn scalable_topic(&self, topic: &TopicName) -> Result<ScalableTopic<'_>, AdminError> {
        let scalable = self.scalable.get(topic).ok_or_else(|| not_found(topic))?;
        Ok(ScalableTopic {
            layout: &scalable.layout,
            properties: &scalable.properties,
            auto_scale_policy: scalable.auto_scale_policy.as_ref(),
            controller: scalable.controller,
        })
    }

    /// Deletes a scalable topic. 404 when there is none. With `force` whoever is attached is closed; without it, the
    /// segments in use live on for those who are attached, as 5.0.1 does. DAG watches are not told.
    pub fn delete_scalable_topic(
        &mut self,
        topic: &TopicName,
        force: bool,
        now: Millis,
    ) -> Result<(), AdminError> {
        if !self.scalable.contains_key(topic) {
            return Err(not_found(topic));
        }
        self.note(now, format!("delete {topic}, force={force}"));
        self.push_as_deleted(topic);
        for name in self.stored_names(topic) {
            if force || self.stored.get(&name).is_some_and(|s| !s.topic.in_use()) {
                self.delete_stored(&name);
            }
        }
        self.forget_schemas(topic);
        self.log_layout(topic, "delete", now);
        self.scalable.remove(topic);
        self.topic_set_changed(topic, now);
        self.settle(now);
        Ok(())
    }

    /// Splits a segment at the middle. 500 when there is no such topic, or when the segment is not active or owns a
    /// single hash, 503 while the controller or the segment is not served.
    pub fn split_segment(&mut self, topic: &TopicName, segment: u64, now: Millis) -> Result<(), AdminError> {
        self.note(now, format!("split {topic} {segment}"));
        let changed = self.change_layout(topic, "split", now, |layout| layout.split(segment, now));
        self.settle(now);
        changed.map_err(|e| refusal(topic, e, Change::Split))
    }

    /// Merges two adjacent segments. 500 when there is no such topic, or when they are not active or not adjacent, 503 while the controller or one of them is not served.
    pub fn merge_segments(
        &mut self,
        topic: &TopicName,
        a: u64,
        b: u64,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.note(now, format!("merge {topic} {a} {b}"));
        let changed = self.change_layout(topic, "merge", now, |layout| layout.merge(a, b, now));
        self.settle(now);
        if let Err(LayoutChangeError::Change(ChangeError::NotAdjacent(..))) = changed {
            let layout = self.scalable_topic(topic)?.layout;
            let range =
                |id| layout.segment(id).map(|s| format!("[{:04x}, {:04x}]", s.range.start(), s.range.end()));
            let ranges = format!("{} and {}", range(a).unwrap_or_default(), range(b).unwrap_or_default());
            return Err(AdminError::new(500, format!("Segments are not adjacent: {ranges}")));
        }
        changed.map_err(|e| refusal(topic, e, Change::Merge))
    }

    /// Rolls a segment over to one with another number of entry buckets. 500 when there is no such topic, 412 when
    /// the segment is not active, when it has these buckets, or when the count is missing or not in 1..=1024, 503
    /// while the controller or the segment is not served.
    pub fn rebucket_segment(
        &mut self,
        topic: &TopicName,
        segment: u64,
        buckets: Option<i64>,
        now: Millis,
    ) -> Result<(), AdminError> {
        let buckets = buckets.unwrap_or(0).cast_unsigned();
        self.note(now, format!("rebucket {topic} {segment} to {buckets}"));
        let changed =
            self.change_layout(topic, "rebucket", now, |layout| layout.rebucket(segment, buckets, now));
        self.settle(now);
        changed.map_err(|e| refusal(topic, e, Change::Rebucket))
    }

    /// The statistics of a scalable topic. 500 when there is none, as 5.0.1 answers.
    pub fn scalable_stats(&self, topic: &TopicName) -> Result<ScalableStats, AdminError> {
        let scalable = self.scalable.get(topic).ok_or_else(|| no_controller(topic))?;
        let mut backlogs: BTreeMap<String, u64> = BTreeMap::new();
        let mut segments = Vec::new();
        for segment in scalable.layout.segments() {
            let name = scalable.stored_name(segment);
            let topic = self.stored.get(&name).map(|s| s.topic.stats()).unwrap_or_default();
            for subscription in &topic.subscriptions {
                *backlogs.entry(subscription.name.clone()).or_default() += subscription.backlog;
            }
            segments.push(SegmentStats { segment: segment.clone(), owner: self.owner(&name), name, topic });
        }
        let controller = scalable.controller.filter(|id| self.is_up(*id));
        let registered = self.registered(topic);
        let groups = &scalable.groups;
        let streams = groups.keys().filter(|key| key.kind == GroupKind::Stream);
        let blocked =
            streams.map(|key| (key.subscription.clone(), groups.blocked(key, &scalable.layout))).collect();
        let (epoch, made) = (scalable.layout.epoch(), scalable.made.clone());
        Ok(ScalableStats { epoch, controller, segments, backlogs, registered, made, blocked })
    }

    /// The auto-scale policy of a topic, if one was set. 404 when there is no such topic. The simulator never scales
    /// by itself: a policy is stored and given back.
    pub fn auto_scale_policy(&self, topic: &TopicName) -> Result<Option<&Json>, AdminError> {
        Ok(self.scalable.get(topic).ok_or_else(|| not_found(topic))?.auto_scale_policy.as_ref())
    }

    /// Sets or, with `None`, removes the auto-scale policy of a topic. 404 when there is no such topic.
    pub fn set_auto_scale_policy(
        &mut self,
        topic: &TopicName,
        policy: Option<Json>,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.scalable.get_mut(topic).ok_or_else(|| not_found(topic))?.auto_scale_policy = policy;
        self.note(now, format!("set the auto-scale policy of {topic}"));
        self.push_stored_beside(topic);
        self.settle(now);
        Ok(())
    }
}

pub(super) fn not_found(topic: &TopicName) -> AdminError {
    AdminError::new(404, format!("Scalable topic not found: {topic}"))
}

/// What 5.0.1 answers where a topic's controller would have to act and there is no such topic.
pub(super) fn no_controller(topic: &TopicName) -> AdminError {
    AdminError::new(500, format!("Failed to initialize controller for {topic}"))
}

/// Which layout change was asked for; 5.0.1 words its refusals by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Split,
    Merge,
    Rebucket,
}

fn refusal(topic: &TopicName, error: LayoutChangeError, asked: Change) -> AdminError {
    let change = match error {
        LayoutChangeError::NoTopic => return no_controller(topic),
        LayoutChangeError::Unavailable => return AdminError::new(503, error.to_string()),
        LayoutChangeError::Change(change) => change,
    };
    let reason = match (change, asked) {
        (ChangeError::Unknown(_), Change::Merge) => "Segment not found".to_owned(),
        (ChangeError::Unknown(id), _) => format!("Segment not found: {}", signed(id)),
        (ChangeError::NotActive(_), Change::Merge) => "Both segments must be active".to_owned(),
        (ChangeError::NotActive(id), Change::Split) => format!("Cannot split non-active segment: {id}"),
        (ChangeError::NotActive(id), Change::Rebucket) => format!("Cannot rebucket non-active segment: {id}"),
        (ChangeError::SameBuckets(id), _) => {
            format!("Segment {id} already has the requested entry-bucket splits")
        }
        (ChangeError::BucketCount(count), _) => {
            format!("bucketCount must be in [1, {MAX_BUCKETS}]: {}", signed(count))
        }
        (other, _) => other.to_string(),
    };
    AdminError::new(if asked == Change::Rebucket { 412 } else { 500 }, reason)
}

/// An unsigned number as Java's signed type shows it.
fn signed(value: u64) -> i64 {
    value.cast_signed()
}
