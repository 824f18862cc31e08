//! Admin calls on the subscriptions of scalable topics. Names are in the `topic://` domain.

use stc_proto::TopicName;

use super::{AdminError, scalable::not_found};
use crate::core::{cluster::Cluster, effects::Effects, ids::Millis, topic::Start, topic::Topic};

impl Cluster {
    /// Makes a subscription on every segment, at the first message. 404 when there is no such topic, 409 when the
    /// subscription exists.
    pub fn create_scalable_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.existing_topic(topic)?;
        if self.subscription_names(topic).contains(subscription) {
            return Err(AdminError::new(409, "Subscription already exists for topic"));
        }
        self.note(now, format!("create subscription {subscription} on {topic}"));
        self.on_segments(topic, now, |t, _| {
            t.create_subscription(subscription, Start::Earliest);
        });
        Ok(())
    }

    /// Deletes a subscription; one that does not exist is deleted already. 404 when there is no such topic.
    pub fn delete_scalable_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.existing_topic(topic)?;
        self.note(now, format!("delete subscription {subscription} on {topic}"));
        self.on_segments(topic, now, |t, effects| {
            t.delete_subscription(subscription, effects);
        });
        Ok(())
    }

    /// Moves a subscription to the first message published at or after a time, on every segment. 404 when there is no
    /// such topic; a subscription that does not exist stays where it is.
    pub fn seek_scalable_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        time: Millis,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.existing_topic(topic)?;
        self.note(now, format!("seek subscription {subscription} on {topic} to {time}"));
        self.on_segments(topic, now, |t, effects| {
            t.reset_subscription(subscription, time, effects);
        });
        self.subscription_moved(topic, subscription, now);
        self.settle(now);
        Ok(())
    }

    /// Acknowledges everything that is stored, on every segment. 404 when there is no such topic.
    pub fn skip_all_scalable_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        now: Millis,
    ) -> Result<(), AdminError> {
        self.existing_topic(topic)?;
        self.note(now, format!("skip all of subscription {subscription} on {topic}"));
        self.on_segments(topic, now, |t, effects| {
            t.skip_all(subscription, now, effects);
        });
        Ok(())
    }

    fn existing_topic(&self, topic: &TopicName) -> Result<(), AdminError> {
        if self.scalable.contains_key(topic) { Ok(()) } else { Err(not_found(topic)) }
    }

    fn on_segments(&mut self, topic: &TopicName, now: Millis, act: impl Fn(&mut Topic, &mut Effects)) {
        for name in self.stored_names(topic) {
            self.on_topic(&name, &act);
        }
        self.settle(now);
    }
}
