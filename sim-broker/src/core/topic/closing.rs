//! What the broker closes by itself, and how it says so.

use stc_proto::pulsar::{CommandCloseConsumer, CommandCloseProducer};

use super::{Topic, UNSOLICITED};
use crate::core::{
    effects::Effects,
    ids::{ConsumerKey, Millis, ProducerKey},
};

/// The broker that has a topic now, as clients of the old one are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// Its service URL.
    pub url: String,
    /// Its service URL for TLS, if it listens for that.
    pub url_tls: Option<String>,
}

/// An unsolicited CLOSE_PRODUCER.
pub(super) fn close_producer(producer_id: u64, assigned: Option<&Assigned>) -> CommandCloseProducer {
    CommandCloseProducer {
        producer_id,
        request_id: UNSOLICITED,
        assigned_broker_service_url: assigned.map(|a| a.url.clone()),
        assigned_broker_service_url_tls: assigned.and_then(|a| a.url_tls.clone()),
    }
}

/// An unsolicited CLOSE_CONSUMER.
pub(super) fn close_consumer(consumer_id: u64, assigned: Option<&Assigned>) -> CommandCloseConsumer {
    CommandCloseConsumer {
        consumer_id,
        request_id: UNSOLICITED,
        assigned_broker_service_url: assigned.map(|a| a.url.clone()),
        assigned_broker_service_url_tls: assigned.and_then(|a| a.url_tls.clone()),
    }
}

impl Topic {
    /// Closes one producer (unsolicited). What it sent before it knew is refused without harm.
    pub fn close_producer(&mut self, key: ProducerKey, effects: &mut Effects) {
        if self.producers.close(key) {
            effects.send(key.conn, close_producer(key.id, None));
            self.promote_waiting(effects);
        }
    }

    /// Closes one consumer (unsolicited); what it did not acknowledge goes to others.
    pub fn close_consumer(&mut self, key: ConsumerKey, now: Millis, effects: &mut Effects) {
        if let Some(name) = self.consumers.remove(&key) {
            effects.send(key.conn, close_consumer(key.id, None));
            self.leave(&name, |consumer| consumer == key, now, effects);
        }
    }
}
