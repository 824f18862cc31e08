//! Admin calls on subscriptions: of scalable topics (names in the `topic://` domain), of classic and partitioned ones
//! (`persistent://`).

use std::collections::BTreeSet;

use stc_proto::TopicName;

use super::{AdminError, scalable::no_controller};
use crate::core::{cluster::Cluster, effects::Effects, ids::Millis, topic::Start, topic::Topic};

impl Cluster {
    /// Makes a subscription for stream or for queue consumers on every active segment, at the first message; one that
    /// exists stays as it is. 500 when there is no such topic.
    pub fn create_scalable_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        queue: bool,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.note(now, format!("create subscription {subscription} on {topic}"));
        let scalable = self.scalable.get_mut(topic).ok_or_else(|| no_controller(topic))?;
        scalable.made.entry(subscription.to_owned()).or_insert(queue);
        let active = scalable.layout.segments().filter(|segment| segment.is_active());
        let active: Vec<TopicName> = active.map(|segment| scalable.stored_name(segment)).collect();
        for segment in active {
            self.on_topic(&segment, |t, _| _ = t.create_subscription(subscription, Start::Earliest));
        }
        self.settle(now);
        Ok(())
    }

    /// Deletes a subscription where no consumer is attached to it, and forgets the consumers that are registered for it,
    /// without a word to them; one that does not exist is deleted already. 500 when there is no such topic.
    pub fn delete_scalable_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        now: Millis,
    ) -> Result<(), AdminError> {
        let scalable = self.scalable.get_mut(topic).ok_or_else(|| no_controller(topic))?;
        scalable.made.remove(subscription);
        scalable.groups.forget(subscription);
        self.note(now, format!("delete subscription {subscription} on {topic}"));
        self.on_segments(topic, now, |t, effects| {
            if !t.has_consumers(subscription) {
                t.delete_subscription(subscription, effects);
            }
        });
        Ok(())
    }

    /// Moves a subscription to the first message published at or after a time, on every segment. Where the segment was
    /// sealed before, that is behind all of its messages: they are acknowledged, and its consumers stay. 500 when there is
    /// no such topic; a subscription that does not exist stays where it is.
    pub fn seek_scalable_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        time: Millis,
        now: Millis,
    ) -> Result<(), AdminError> {
        let scalable = self.scalable.get(topic).ok_or_else(|| no_controller(topic))?;
        let sealed = scalable.layout.segments().filter(|s| s.sealed_at_ms.is_some_and(|at| at <= time));
        let sealed: BTreeSet<TopicName> = sealed.map(|segment| scalable.stored_name(segment)).collect();
        self.note(now, format!("seek subscription {subscription} on {topic} to {time}"));
        self.on_segments(topic, now, |t, effects| {
            if sealed.contains(t.name()) {
                t.skip_all(subscription, now, effects);
            } else {
                t.reset_subscription(subscription, time, effects);
            }
        });
        self.subscription_moved(topic, subscription, now);
        self.settle(now);
        Ok(())
    }

    /// Acknowledges everything that is stored, on every segment. 500 when there is no such topic.
    pub fn skip_all_scalable_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        now: Millis,
    ) -> Result<(), AdminError> {
        if !self.scalable.contains_key(topic) {
            return Err(no_controller(topic));
        }
        self.note(now, format!("skip all of subscription {subscription} on {topic}"));
        self.on_segments(topic, now, |t, effects| {
            t.skip_all(subscription, now, effects);
        });
        Ok(())
    }

    /// The subscriptions of a classic or partitioned topic, sorted. 404 when there is no such topic.
    pub fn subscriptions(&self, topic: &TopicName) -> Result<Vec<String>, AdminError> {
        self.partitions(topic)?;
        Ok(self.subscription_names(topic).into_iter().collect())
    }

    /// Makes a subscription on a classic topic or on every partition. A topic that does not exist comes into being
    /// where the namespace's policy says so, else 404; 409 when the subscription exists.
    pub fn create_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        start: Start,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.namespace(topic.tenant(), topic.namespace_local())
            .map_err(|_| AdminError::new(404, "Namespace not found"))?;
        if let Err(missing) = self.partitions(topic) {
            if !self.may_auto_create(topic.namespace()) {
                return Err(missing);
            }
            self.create_topic(topic, now)?;
        }
        if self.subscription_names(topic).contains(subscription) {
            return Err(AdminError::new(409, "Subscription already exists for topic"));
        }
        self.note(now, format!("create subscription {subscription} on {topic}"));
        self.on_segments(topic, now, |t, _| {
            t.create_subscription(subscription, start);
        });
        Ok(())
    }

    /// Deletes a subscription of a classic or partitioned topic. 404 when there is none.
    pub fn delete_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.existing_subscription(topic, subscription)?;
        self.note(now, format!("delete subscription {subscription} on {topic}"));
        self.on_segments(topic, now, |t, effects| {
            t.delete_subscription(subscription, effects);
        });
        Ok(())
    }

    /// Moves a subscription of a classic or partitioned topic to the first message published at or after a time. 404
    /// when there is none.
    pub fn seek_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        time: Millis,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.existing_subscription(topic, subscription)?;
        self.note(now, format!("seek subscription {subscription} on {topic} to {time}"));
        self.on_segments(topic, now, |t, effects| {
            t.reset_subscription(subscription, time, effects);
        });
        Ok(())
    }

    /// Acknowledges everything that a classic or partitioned topic stores. 404 when there is no such subscription.
    pub fn skip_all_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.existing_subscription(topic, subscription)?;
        self.note(now, format!("skip all of subscription {subscription} on {topic}"));
        self.on_segments(topic, now, |t, effects| {
            t.skip_all(subscription, now, effects);
        });
        Ok(())
    }

    fn existing_subscription(&self, topic: &TopicName, subscription: &str) -> Result<(), AdminError> {
        if self.subscriptions(topic)?.iter().any(|name| name == subscription) {
            return Ok(());
        }
        Err(AdminError::new(404, format!("Subscription {subscription} not found for topic {topic}")))
    }

    fn on_segments(&mut self, topic: &TopicName, now: Millis, act: impl Fn(&mut Topic, &mut Effects)) {
        for name in self.stored_names(topic) {
            self.on_topic(&name, &act);
        }
        self.settle(now);
    }
}
