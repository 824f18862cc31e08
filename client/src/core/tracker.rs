//! Which pushed layouts count (client-behavior §1, wire-protocol §11; `docs/readings.md`, "Layouts and epochs").
//!
//! An older epoch never counts. An equal one does: brokers push the same epoch again with addresses in it. A layout
//! with managed segments that follows an all-legacy one begins a new life of the topic, so its epoch is not compared.
//! A layout that cannot be worked with is reported and the current one stays.
//!
//! A topic that is deleted and created again begins a new life, at epoch 0. Where that is the epoch of the current layout
//! too, a segment with another range tells it: within one topic ranges never change. Otherwise a push alone cannot tell it
//! from an old layout. That the segments of the current layout are not there any more can: then the topic is looked
//! up anew, and what that lookup brings counts whatever its epoch ([`Tracker::doubt`]).

use std::{collections::BTreeMap, sync::Arc};

use stc_proto::{TopicName, pulsar::ScalableTopicDag};

use super::{
    deviant::{Deviance, Deviant},
    layout::{Layout, LayoutError},
};

/// What producers and consumers work by: the last applied layout and where its segments are.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The canonical name of the topic.
    pub(crate) topic: TopicName,
    pub(crate) layout: Arc<Layout>,
    /// Broker URLs by segment id, as far as the broker gave them.
    pub(crate) brokers: Arc<BTreeMap<u64, String>>,
    /// The URL of the controller, once the broker gave it.
    pub(crate) controller: Option<String>,
    /// Counts the topics that were met under this name: what is known of segments of an earlier one means nothing.
    pub(crate) life: u64,
}

/// What became of a pushed layout.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// It is the current layout now.
    Yes,
    /// Its epoch is below the current one's.
    Stale { current: u64 },
    /// It cannot be worked with.
    Refused(LayoutError),
}

/// The layouts of one topic in the order they arrive.
#[derive(Debug)]
pub(crate) struct Tracker {
    deviance: Deviance,
    current: Option<View>,
    /// The next layout counts whatever its epoch.
    doubted: bool,
    /// The next layout comes from a lookup, not from a push.
    looked_up: bool,
}

impl Tracker {
    pub(crate) fn new(deviance: Deviance) -> Self {
        Tracker { deviance, current: None, doubted: false, looked_up: false }
    }

    pub(crate) fn current(&self) -> Option<&View> {
        self.current.as_ref()
    }

    /// The current layout is not to be trusted: the next one comes from a lookup that was made because of that.
    pub(crate) fn doubt(&mut self) {
        self.doubted = true;
    }

    /// The next layout is the answer to a new lookup. A controller that it does not name is not there any more: its broker
    /// may be gone, and the next is elected only when a consumer registers at the service URL (client-behavior §8).
    pub(crate) fn look_up(&mut self) {
        self.looked_up = true;
    }

    /// Takes a pushed layout. `topic` is the canonical name that came with it, if one did.
    pub(crate) fn apply(&mut self, dag: &ScalableTopicDag, topic: TopicName) -> Applied {
        let looked_up = std::mem::take(&mut self.looked_up);
        let layout = match Layout::from_dag(dag) {
            Ok(layout) => layout,
            Err(error) => return Applied::Refused(error),
        };
        let mut life = 0;
        if let Some(View { layout: current, life: current_life, .. }) = &self.current {
            let migrated = current.is_legacy() && !layout.is_legacy();
            if migrated && layout.epoch == current.epoch && self.deviance.is(Deviant::IgnoresMigration) {
                return Applied::Stale { current: current.epoch };
            }
            let older = layout.epoch < current.epoch && !migrated;
            let again = older && std::mem::take(&mut self.doubted);
            let stale = older && !again;
            let replaced = layout.epoch == current.epoch && layout.contradicts(current);
            life = current_life + u64::from(again || replaced);
            if (stale && !self.deviance.is(Deviant::ApplyStaleEpoch))
                || self.deviance.is(Deviant::IgnoreLayoutUpdates)
            {
                return Applied::Stale { current: current.epoch };
            }
        }
        self.doubted = false;
        let current = self.current.as_ref().filter(|current| current.life == life);
        // An equal epoch may come without addresses (a controller elsewhere does not know them yet): what is known
        // of segments that are still there stays.
        let mut brokers: BTreeMap<u64, String> = BTreeMap::new();
        if let Some(current) = current {
            let kept = current.brokers.iter().filter(|(id, _)| layout.segment(**id).is_some());
            brokers.extend(kept.map(|(id, url)| (*id, url.clone())));
        }
        brokers.extend(dag.segment_brokers.iter().map(|b| (b.segment_id, b.broker_url.clone())));
        let known = current.filter(|_| !looked_up).and_then(|current| current.controller.clone());
        let controller = dag.controller_broker_url.clone().filter(|url| !url.is_empty()).or(known);
        let (layout, brokers) = (Arc::new(layout), Arc::new(brokers));
        self.current = Some(View { topic, layout, brokers, controller, life });
        Applied::Yes
    }
}

#[cfg(test)]
mod tests {
    use stc_proto::pulsar::{SegmentBrokerAddress, SegmentInfoProto};

    use super::{super::layout::tests::dag, *};

    fn topic() -> TopicName {
        TopicName::parse("topic://public/default/t").unwrap()
    }

    fn tracker_at(epoch: u64) -> Tracker {
        let mut tracker = Tracker::new(Deviance::default());
        assert_eq!(tracker.apply(&dag(epoch, &[(0, 0, 65535, true)]), topic()), Applied::Yes);
        tracker
    }

    #[test]
    fn older_epochs_never_count_and_newer_ones_do() {
        let mut tracker = tracker_at(3);
        let other = [(1, 0, 0x7fff, true), (2, 0x8000, 65535, true)];
        assert_eq!(tracker.apply(&dag(2, &other), topic()), Applied::Stale { current: 3 });
        assert_eq!(tracker.apply(&dag(4, &other), topic()), Applied::Yes);
        assert_eq!(tracker.current().unwrap().layout.epoch, 4);
    }

    #[test]
    fn an_equal_epoch_refreshes_addresses() {
        let mut tracker = tracker_at(3);
        let mut again = dag(3, &[(0, 0, 65535, true)]);
        again.segment_brokers = vec![SegmentBrokerAddress {
            segment_id: 0,
            broker_url: "pulsar://b:1".into(),
            broker_url_tls: None,
        }];
        assert_eq!(tracker.apply(&again, topic()), Applied::Yes);
        assert_eq!(tracker.current().unwrap().brokers[&0], "pulsar://b:1");
        again.segment_brokers.clear();
        assert_eq!(tracker.apply(&again, topic()), Applied::Yes);
        assert_eq!(tracker.current().unwrap().brokers[&0], "pulsar://b:1", "known addresses stay");
    }

    #[test]
    fn a_controller_outlives_a_push_without_one_and_no_lookup_without_one() {
        let mut tracker = tracker_at(3);
        let without = dag(3, &[(0, 0, 65535, true)]);
        let mut with = without.clone();
        with.controller_broker_url = Some("pulsar://a:1".into());
        let controller = |tracker: &Tracker| tracker.current().unwrap().controller.clone();
        tracker.apply(&with, topic());
        tracker.apply(&without, topic());
        assert_eq!(controller(&tracker).as_deref(), Some("pulsar://a:1"));
        tracker.look_up();
        tracker.apply(&without, topic());
        assert_eq!(controller(&tracker), None);
        tracker.apply(&with, topic());
        tracker.look_up();
        tracker.apply(&with, topic());
        assert_eq!(controller(&tracker).as_deref(), Some("pulsar://a:1"));
    }

    #[test]
    fn what_a_doubting_lookup_brings_counts_and_is_another_topic_when_it_is_older() {
        let mut tracker = tracker_at(3);
        let mut again = dag(0, &[(0, 0, 65535, true)]);
        again.controller_broker_url = Some("pulsar://a:1".into());
        tracker.apply(&dag(4, &[(0, 0, 65535, true)]), topic());
        assert_eq!(tracker.apply(&again, topic()), Applied::Stale { current: 4 });
        tracker.doubt();
        assert_eq!(tracker.apply(&again, topic()), Applied::Yes);
        assert_eq!((tracker.current().unwrap().layout.epoch, tracker.current().unwrap().life), (0, 1));
        assert_eq!(tracker.apply(&dag(1, &[(0, 0, 65535, true)]), topic()), Applied::Yes);
        assert_eq!(tracker.apply(&again, topic()), Applied::Stale { current: 1 }, "doubt is over");
        tracker.doubt();
        assert_eq!(tracker.apply(&dag(2, &[(0, 0, 65535, true)]), topic()), Applied::Yes);
        assert_eq!(tracker.current().unwrap().life, 1, "a newer layout is of the same topic");
        assert_eq!(tracker.apply(&again, topic()), Applied::Stale { current: 2 });
    }

    #[test]
    fn an_equal_epoch_with_another_range_is_another_topic() {
        let mut tracker = tracker_at(0);
        let halves = [(0, 0, 0x7fff, true), (1, 0x8000, 65535, true)];
        assert_eq!(tracker.apply(&dag(0, &halves), topic()), Applied::Yes);
        assert_eq!(tracker.current().unwrap().life, 1);
        assert_eq!(tracker.apply(&dag(0, &halves), topic()), Applied::Yes);
        assert_eq!(tracker.current().unwrap().life, 1, "the same again");
        assert_eq!(tracker.apply(&dag(0, &[(0, 0, 65535, true)]), topic()), Applied::Yes);
        assert_eq!(tracker.current().unwrap().life, 2, "fewer are others too");
    }

    #[test]
    fn a_layout_that_cannot_be_worked_with_leaves_the_current_one() {
        let mut tracker = tracker_at(3);
        let bad = dag(4, &[(0, 0, 65535, false)]);
        assert_eq!(tracker.apply(&bad, topic()), Applied::Refused(LayoutError::NoActive));
        assert_eq!(tracker.current().unwrap().layout.epoch, 3);
    }

    #[test]
    fn migration_begins_a_new_life() {
        let mut tracker = Tracker::new(Deviance::default());
        let legacy = ScalableTopicDag {
            epoch: 5,
            segments: vec![SegmentInfoProto {
                hash_end: 65535,
                legacy_topic_name: Some("persistent://public/default/t".into()),
                ..Default::default()
            }],
            ..Default::default()
        };
        assert_eq!(tracker.apply(&legacy, topic()), Applied::Yes);
        assert_eq!(tracker.apply(&dag(0, &[(0, 0, 65535, true)]), topic()), Applied::Yes);
        assert_eq!(tracker.apply(&legacy, topic()), Applied::Yes, "epoch 5 is above 0");
    }
}
