//! Which broker owns what: topics, segments, controllers and coordinators; and how that changes.

use stc_proto::{KeyHash, SegmentName, TopicName, name::Domain};

use super::{Broker, Cluster, flow::Due};
use crate::core::{
    ids::{BrokerId, ConnId, Millis},
    topic::Assigned,
};

impl Cluster {
    /// A broker by its index.
    pub(super) fn broker(&self, id: BrokerId) -> Option<&Broker> {
        self.brokers.get(usize::try_from(id.0).ok()?)
    }

    /// Whether a broker exists and runs.
    pub fn is_up(&self, id: BrokerId) -> bool {
        self.broker(id).is_some_and(|b| b.up)
    }

    /// The running broker that number `n` falls to, with the seed's rotation.
    pub(super) fn nth_broker(&self, n: u64) -> Option<BrokerId> {
        let up: Vec<BrokerId> =
            (0u32..).zip(&self.brokers).filter(|(_, b)| b.up).map(|(i, _)| BrokerId(i)).collect();
        let count = u64::try_from(up.len()).unwrap_or(u64::MAX);
        let index = n.wrapping_add(self.config.seed).checked_rem(count)?;
        up.get(usize::try_from(index).ok()?).copied()
    }

    /// The running broker that a topic without an owner falls to. The segments of a topic and the partitions of a
    /// topic go round the brokers.
    pub(super) fn place(&self, topic: &TopicName) -> Option<BrokerId> {
        let (family, member) = match topic.domain() {
            Domain::Segment => match SegmentName::of(topic) {
                // One further than the controller, so that one broker does not have everything.
                Ok(segment) => (segment.topic, segment.id.wrapping_add(1)),
                Err(_) => (topic.clone(), 0),
            },
            _ => (topic.partitioned(), topic.partition_index().map_or(0, u64::from)),
        };
        self.nth_broker(u64::from(KeyHash::of(family.as_str()).0).wrapping_add(member))
    }

    /// The broker that serves a topic now, or would if there were one. `None` while its owner is dead and nobody has
    /// taken over.
    pub fn owner(&self, topic: &TopicName) -> Option<BrokerId> {
        let owner = match topic.domain() {
            Domain::Topic => self.scalable.get(topic).and_then(|s| s.controller),
            _ => self.stored.get(topic).map(|s| s.owner),
        };
        match owner {
            Some(owner) => self.is_up(owner).then_some(owner),
            None => self.place(topic),
        }
    }

    /// The broker that lookups and layouts name for a topic: its owner, or who was that until it died.
    pub(super) fn named_owner(&self, topic: &TopicName) -> Option<BrokerId> {
        let dead = || match topic.domain() {
            Domain::Topic => self.scalable.get(topic).and_then(|s| s.controller),
            _ => self.stored.get(topic).map(|s| s.owner),
        };
        self.owner(topic).or_else(|| dead().filter(|_| self.config.profile.names_dead_owners))
    }

    /// A broker dies: its connections drop, and what it owns is not served until others take over.
    pub(super) fn kill(&mut self, id: BrokerId, now: Millis) -> bool {
        let Some(broker) = usize::try_from(id.0).ok().and_then(|i| self.brokers.get_mut(i)) else {
            return false;
        };
        if !broker.up {
            return false;
        }
        broker.up = false;
        broker.deaths += 1;
        let death = broker.deaths;
        let conns: Vec<ConnId> =
            self.conns.iter().filter(|(_, c)| c.broker == id).map(|(id, _)| *id).collect();
        for conn in conns {
            self.lose(conn, "broker", "the broker was killed", now);
        }
        self.stored.values_mut().filter(|s| s.owner == id).for_each(|s| s.topic.reopen());
        let lost = self.led_by(id).into_iter().map(|coordinator| (coordinator, None)).collect();
        self.lead_coordinators(lost, now);
        self.agenda.add(now + self.config.failover_ms, Due::Failover(id, death));
        true
    }

    /// A broker comes back, empty-handed where others took over.
    pub(super) fn revive(&mut self, id: BrokerId, now: Millis) -> bool {
        let Some(broker) = usize::try_from(id.0).ok().and_then(|i| self.brokers.get_mut(i)) else {
            return false;
        };
        if broker.up {
            return false;
        }
        broker.up = true;
        broker.given_up = false;
        // Its sessions are gone, also with the controllers that it leads still.
        let led: Vec<TopicName> = self
            .scalable
            .iter()
            .filter(|(_, s)| s.controller == Some(id))
            .map(|(name, _)| name.clone())
            .collect();
        led.iter().for_each(|topic| self.lead(topic, id, now));
        // What it still owns it serves again, and it takes what nobody else could.
        self.take_over(now);
        true
    }

    /// A broker was down for the fail-over time: others own what it had. One that came back in time keeps its own.
    pub(super) fn fail_over(&mut self, id: BrokerId, death: u64, now: Millis) {
        let Some(broker) = usize::try_from(id.0).ok().and_then(|i| self.brokers.get_mut(i)) else { return };
        if !broker.up && broker.deaths == death {
            broker.given_up = true;
            self.take_over(now);
        }
    }

    /// Gives what belonged to brokers that were given up to running ones, and coordinators without a leader too.
    fn take_over(&mut self, now: Millis) {
        let lost = |id: BrokerId| self.broker(id).is_none_or(|b| b.given_up);
        let orphans: Vec<TopicName> =
            self.stored.iter().filter(|(_, s)| lost(s.owner)).map(|(name, _)| name.clone()).collect();
        let headless: Vec<TopicName> = self
            .scalable
            .iter()
            .filter(|(_, s)| s.controller.is_some_and(lost))
            .map(|(name, _)| name.clone())
            .collect();
        for name in orphans {
            if let Some(owner) = self.place(&name)
                && let Some(stored) = self.stored.get_mut(&name)
            {
                stored.owner = owner;
            }
        }
        for name in headless {
            if let Some(leader) = self.place(&name) {
                self.give_up_lead(&name, leader, now);
            }
        }
        self.elect_coordinators(now);
        self.resume_transactions(now);
        self.push_taken_over(now);
    }

    fn push_taken_over(&mut self, now: Millis) {
        if !self.config.profile.takeovers_push_layout {
            return;
        }
        let topics: Vec<TopicName> = self.scalable.keys().cloned().collect();
        for topic in topics {
            self.push_if_addresses_changed(&topic, now);
        }
    }

    /// Gives everything that a running broker owns to the others, as before a restart: its clients are told where
    /// things are, layouts and coordinators are pushed. Returns `false` when it is not running or the only one.
    pub(super) fn unload(&mut self, id: BrokerId, now: Millis) -> bool {
        let Some(broker) = usize::try_from(id.0).ok().and_then(|i| self.brokers.get_mut(i)) else {
            return false;
        };
        if !std::mem::take(&mut broker.up) {
            return false;
        }
        // Places are chosen among the others while it counts as down.
        let places = |cluster: &Self, names: Vec<TopicName>| -> Vec<(TopicName, BrokerId)> {
            names
                .into_iter()
                .filter_map(|name| Some((cluster.place(&name)?, name)))
                .map(|(b, n)| (n, b))
                .collect()
        };
        let stored =
            self.stored.iter().filter(|(_, s)| s.owner == id).map(|(name, _)| name.clone()).collect();
        let led =
            self.scalable.iter().filter(|(_, s)| s.controller == Some(id)).map(|(n, _)| n.clone()).collect();
        let (stored, led) = (places(self, stored), places(self, led));
        let coordinators = self.led_by(id).into_iter().map(|n| (n, self.nth_broker(n))).collect();
        let alone = self.nth_broker(0).is_none();
        if let Some(broker) = usize::try_from(id.0).ok().and_then(|i| self.brokers.get_mut(i)) {
            broker.up = true;
        }
        if alone {
            return false;
        }
        for (name, to) in &stored {
            self.move_stored(name, *to);
        }
        // On the wire before a leader that gives up closes connections.
        self.settle(now);
        for (name, to) in &led {
            self.give_up_lead(name, *to, now);
        }
        self.lead_coordinators(coordinators, now);
        self.push_taken_over(now);
        true
    }

    /// Gives a stored topic to another broker: its producers and consumers are told where it is now.
    pub(super) fn move_stored(&mut self, name: &TopicName, to: BrokerId) -> bool {
        let Some(broker) = self.broker(to).filter(|b| b.up) else { return false };
        let assigned = Assigned { url: broker.service_url.clone(), url_tls: broker.service_url_tls.clone() };
        let Some(stored) = self.stored.get_mut(name) else { return false };
        stored.owner = to;
        let told = Some(&assigned).filter(|_| self.config.profile.closes_name_owner);
        self.on_topic(name, |topic, effects| topic.close_all(told, effects));
        true
    }
}
