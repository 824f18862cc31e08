//! Scalable topics and the changes of their layouts, in the order that Pulsar gives them: children with their
//! parents' subscriptions, then the parents' end, then the new epoch, then the push.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use stc_proto::{Layout, Segment, SegmentName, TopicName, layout::ChangeError, pulsar::SegmentBrokerAddress};

use super::{Cluster, flow::Due};
use crate::core::{
    controller::groups::Groups,
    ids::{BrokerId, Millis},
    journal::{Direction, Event},
    profile::{ControllerElection, CopiedSubscriptions},
    topic::{Start, Topic},
};

/// A scalable topic.
#[derive(Debug)]
pub(super) struct Scalable {
    pub(super) name: TopicName,
    pub(super) layout: Layout,
    pub(super) properties: BTreeMap<String, String>,
    /// The broker of its controller, once one is elected.
    pub(super) controller: Option<BrokerId>,
    pub(super) auto_scale_policy: Option<Json>,
    /// Counts who led.
    pub(super) term: u64,
    /// The registered consumers.
    pub(super) groups: Groups,
    /// Tells lives of a name apart.
    pub(super) life: u64,
    /// The addresses of the latest push.
    pub(super) pushed_addresses: Option<(Vec<SegmentBrokerAddress>, Option<String>)>,
    /// The segments whose load was reported.
    pub(super) reported: BTreeSet<u64>,
    /// The subscriptions that admin calls made, and whether each was for queue consumers.
    pub(super) made: BTreeMap<String, bool>,
}

impl Scalable {
    /// The stored topic behind a segment.
    pub(super) fn stored_name(&self, segment: &Segment) -> TopicName {
        // A legacy name was built from a topic name, so it parses.
        let legacy = segment.legacy_topic.as_deref().and_then(|name| TopicName::parse(name).ok());
        legacy.unwrap_or_else(|| {
            SegmentName { topic: self.name.clone(), range: segment.range, id: segment.id }.to_topic_name()
        })
    }

    /// The subscriptions and groups that its controller has a record of.
    fn recorded_subscriptions(&self) -> BTreeSet<String> {
        let registered = self.groups.keys().map(|key| key.subscription.clone());
        self.made.keys().cloned().chain(registered).collect()
    }
}

impl Cluster {
    /// Makes a scalable topic with `segments` initial segments, and pushes its layout to watches of the name.
    pub(super) fn create_scalable_entry(
        &mut self,
        topic: &TopicName,
        segments: u32,
        properties: BTreeMap<String, String>,
        now: Millis,
    ) {
        let layout = Layout::initial(segments, self.config.profile.entry_bucket_budget, now);
        self.adopt_layout(topic, layout, properties, "create", now);
    }

    /// Makes a scalable topic of a layout: stores its segments, and pushes it.
    pub(super) fn adopt_layout(
        &mut self,
        topic: &TopicName,
        layout: Layout,
        properties: BTreeMap<String, String>,
        change: &'static str,
        now: Millis,
    ) {
        // A ledger number is as good as any for telling lives apart, and is used once.
        let life = self.next_ledger;
        self.next_ledger += 1;
        let scalable = Scalable {
            name: topic.clone(),
            layout,
            properties,
            controller: None,
            auto_scale_policy: None,
            term: 0,
            groups: Groups::new(self.config.profile.checkpoint_gate),
            life,
            pushed_addresses: None,
            reported: BTreeSet::new(),
            made: BTreeMap::new(),
        };
        let managed: Vec<TopicName> = scalable
            .layout
            .segments()
            .filter(|s| !s.is_legacy())
            .map(|segment| scalable.stored_name(segment))
            .collect();
        for name in managed {
            // A segment of an earlier life that a delete left in use is taken as it is, as 5.0.1 does.
            if !self.stored.contains_key(&name) {
                self.create_stored(&name, now);
            }
        }
        self.scalable.insert(topic.clone(), scalable);
        self.start_load_reports(topic, life, now);
        if let (ControllerElection::Eager, Some(leader)) = (self.config.profile.controller, self.place(topic))
        {
            self.lead(topic, leader, now);
        }
        self.log_layout(topic, change, now);
        self.push(topic);
        self.topic_set_changed(topic, now);
    }

    /// Changes a layout.
    pub(super) fn change_layout(
        &mut self,
        topic: &TopicName,
        change: &'static str,
        now: Millis,
        next: impl FnOnce(&Layout) -> Result<Layout, ChangeError>,
    ) -> Result<(), LayoutChangeError> {
        let scalable = self.scalable.get(topic).ok_or(LayoutChangeError::NoTopic)?;
        let next = next(&scalable.layout)?;
        let children: Vec<Segment> =
            next.segments().filter(|s| scalable.layout.segment(s.id).is_none()).cloned().collect();
        let parents: Vec<TopicName> = next
            .segments()
            .filter(|s| !s.is_active() && scalable.layout.segment(s.id).is_some_and(Segment::is_active))
            .map(|s| scalable.stored_name(s))
            .collect();
        let children: Vec<TopicName> = children.iter().map(|s| scalable.stored_name(s)).collect();
        let copied = self.copied_subscriptions(topic, &parents);
        if !self.need_controller(topic, None, now)
            || parents.iter().any(|parent| self.owner(parent).is_none())
        {
            return Err(LayoutChangeError::Unavailable);
        }
        for child in &children {
            self.create_stored(child, now);
            self.make_subscriptions(child, &copied);
        }
        for parent in &parents {
            self.on_topic(parent, |topic, effects| topic.terminate(now, effects));
        }
        if let Some(scalable) = self.scalable.get_mut(topic) {
            scalable.layout = next;
        }
        self.log_layout(topic, change, now);
        self.push(topic);
        self.rebalance_all(topic, now);
        Ok(())
    }

    /// The subscriptions that new segments of a topic begin with, which take keys over from these. The controller of a
    /// topic that is not scalable yet has none on record.
    pub(super) fn copied_subscriptions(&self, topic: &TopicName, from: &[TopicName]) -> BTreeSet<String> {
        match self.config.profile.copied_subscriptions {
            CopiedSubscriptions::Durable => {
                let stored = from.iter().filter_map(|name| self.stored.get(name));
                stored.flat_map(|stored| stored.topic.durable_subscriptions()).map(str::to_owned).collect()
            }
            CopiedSubscriptions::Recorded => {
                self.scalable.get(topic).map(Scalable::recorded_subscriptions).unwrap_or_default()
            }
        }
    }

    /// Makes subscriptions on a new segment, at its beginning.
    pub(super) fn make_subscriptions(&mut self, segment: &TopicName, names: &BTreeSet<String>) {
        for name in names {
            self.on_topic(segment, |topic, _| _ = topic.create_subscription(name, Start::Earliest));
        }
    }

    /// A controller's regular look for segments to prune.
    pub(super) fn prune_due(&mut self, topic: &TopicName, life: u64, term: u64, now: Millis) {
        let Some(scalable) = self.scalable.get(topic) else { return };
        // The next leader looks by itself.
        if (scalable.life, scalable.term) != (life, term)
            || !scalable.controller.is_some_and(|c| self.is_up(c))
        {
            return;
        }
        self.prune(topic, now);
        self.agenda.add(now + self.config.profile.prune_interval_ms, Due::Prune(topic.clone(), life, term));
    }

    /// Takes out the sealed segments that every one of their subscriptions, and every group that has registered
    /// consumers, has drained; one epoch each. A segment
    /// without subscriptions stays: somebody may still come to read it. Returns how many went.
    pub(super) fn prune(&mut self, topic: &TopicName, now: Millis) -> usize {
        let Some(scalable) = self.scalable.get(topic) else { return 0 };
        let drained: Vec<(u64, TopicName)> = scalable
            .layout
            .segments()
            .filter(|s| !s.is_active())
            .map(|s| (s.id, scalable.stored_name(s)))
            .filter(|(id, name)| {
                scalable.groups.need_no_more(*id)
                    && self.stored.get(name).is_some_and(|s| is_drained(&s.topic))
            })
            .collect();
        let mut pruned = 0;
        for (id, name) in drained {
            let Some(scalable) = self.scalable.get_mut(topic) else { break };
            // Were a segment to go before its parents, nothing would tell its children to wait for them.
            if scalable.layout.segment(id).is_none_or(|segment| !segment.parents.is_empty()) {
                continue;
            }
            let Ok(next) = scalable.layout.prune(id) else { continue };
            scalable.layout = next;
            scalable.groups.pruned(id);
            let reported = scalable.reported.remove(&id);
            self.delete_stored(&name);
            self.log_layout(topic, "prune", now);
            self.push(topic);
            if reported {
                // The report goes too, and it is stored beside the layout.
                self.push_stored_beside(topic);
            }
            self.rebalance_all(topic, now);
            pruned += 1;
        }
        pruned
    }

    pub(super) fn log_layout(&mut self, topic: &TopicName, change: &'static str, now: Millis) {
        let Some(scalable) = self.scalable.get(topic) else { return };
        let ids = |active: bool| {
            scalable.layout.segments().filter(|s| s.is_active() == active).map(|s| s.id).collect::<Vec<_>>()
        };
        let event = Event::Layout {
            topic: topic.to_string(),
            epoch: scalable.layout.epoch(),
            change,
            active: ids(true),
            sealed: ids(false),
        };
        self.journal.append(now, scalable.controller, None, Direction::Internal, event);
    }

    /// The stored topics behind a name: the segments of a scalable topic in the order of their ids, the partitions of
    /// a partitioned one, or the topic itself.
    pub(super) fn stored_names(&self, topic: &TopicName) -> Vec<TopicName> {
        if let Some(scalable) = self.scalable.get(topic) {
            return scalable.layout.segments().map(|s| scalable.stored_name(s)).collect();
        }
        if let Some(n) = self.partitioned.get(topic) {
            return (0..*n).map(|i| topic.partition(i)).collect();
        }
        vec![topic.clone()]
    }

    /// Names of every subscription on any segment of a scalable topic.
    pub(super) fn subscription_names(&self, topic: &TopicName) -> BTreeSet<String> {
        self.stored_names(topic)
            .iter()
            .filter_map(|name| self.stored.get(name))
            .flat_map(|s| s.topic.stats().subscriptions.into_iter().map(|sub| sub.name))
            .collect()
    }
}

/// Why a layout did not change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LayoutChangeError {
    #[error("no such topic")]
    NoTopic,
    #[error("the controller or a segment is not served at the moment")]
    Unavailable,
    #[error(transparent)]
    Change(#[from] ChangeError),
}

fn is_drained(topic: &Topic) -> bool {
    let subscriptions = topic.stats().subscriptions;
    let mut durable = subscriptions.iter().filter(|s| s.durable).peekable();
    durable.peek().is_some()
        && durable.all(|s| topic.drained(&s.name))
        && subscriptions.iter().all(|s| s.consumers.is_empty() || s.durable)
}
