//! Which topics the numbers on a connection stand for, as the client's own commands say.

use std::collections::BTreeMap;

use sim_broker::core::cluster::about::{self, Known};
use stc_proto::Command;

/// What a client said on one connection. Nothing is forgotten before the connection is: a number that is used again
/// stands for the newest topic.
#[derive(Debug, Default)]
pub(super) struct Names {
    watches: BTreeMap<u64, String>,
    registrations: BTreeMap<u64, String>,
    producers: BTreeMap<u64, String>,
    consumers: BTreeMap<u64, String>,
    requests: BTreeMap<u64, String>,
}

impl Names {
    /// Learns from a command of the client.
    pub(super) fn learn(&mut self, command: &Command) {
        match command {
            Command::Producer(c) => drop(self.producers.insert(c.producer_id, c.topic.clone())),
            Command::Subscribe(c) => drop(self.consumers.insert(c.consumer_id, c.topic.clone())),
            Command::ScalableTopicLookup(c) => drop(self.watches.insert(c.session_id, c.topic.clone())),
            Command::ScalableTopicSubscribe(c) => {
                self.registrations.insert(c.consumer_id, c.topic.clone());
            }
            _ => {}
        }
        if let Some(request) = about::request_id(command)
            && let Some(topic) = about::subject(command, self).topic
        {
            self.requests.insert(request, topic);
        }
    }
}

impl Known for Names {
    fn watch(&self, session: u64) -> Option<String> {
        self.watches.get(&session).cloned()
    }

    fn registration(&self, consumer: u64) -> Option<String> {
        self.registrations.get(&consumer).cloned()
    }

    fn producer(&self, id: u64) -> Option<String> {
        self.producers.get(&id).cloned()
    }

    fn consumer(&self, id: u64) -> Option<String> {
        self.consumers.get(&id).cloned()
    }

    fn request(&self, id: u64) -> Option<String> {
        self.requests.get(&id).cloned()
    }
}
