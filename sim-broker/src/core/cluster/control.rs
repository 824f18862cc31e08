//! What the control API offers: faults, brokers, moves, pushes, the journal's notes, what is stored.

use std::collections::BTreeMap;

use bytes::Bytes;
use stc_proto::{
    Entry, SegmentName, TopicName,
    name::Domain,
    pulsar::{MessageMetadata, ScalableConsumerAssignment, ScalableTopicDag},
};
use thiserror::Error;

use super::{Broker, Cluster, Registered};
use crate::core::{
    effects::Effects,
    fault::{Fault, FaultError, FaultStatus, Held},
    ids::{BrokerId, ConnId, Millis},
    journal::{Direction, Event},
    topic::Position,
};

/// Why a control call was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The fault is not one.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The name does not parse, or is of the wrong kind.
    #[error("{0}")]
    Name(String),
    /// There is no such topic, segment, broker, fault or held frame.
    #[error("there is no {0}")]
    NotFound(String),
    /// The broker is down, or is up already.
    #[error("{0}")]
    State(String),
}

/// A stored entry, with where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredView {
    /// The stored topic: a segment, a partition or a classic topic.
    pub topic: TopicName,
    /// The segment's id, for a segment.
    pub segment: Option<u64>,
    /// Where it is.
    pub position: Position,
    /// When it was stored.
    pub stored_at: Millis,
    /// Its metadata; `None` when the bytes are no entry.
    pub metadata: Option<MessageMetadata>,
    /// The entry's bytes, as they were sent.
    pub bytes: Bytes,
    /// Whether consumers may see it: not when its transaction was aborted, nor from the first entry of an open one on.
    pub visible: bool,
}

/// Which connections to drop: those that match every part that is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropSelector {
    /// This connection only.
    pub conn: Option<ConnId>,
    /// Connections to this broker only.
    pub broker: Option<BrokerId>,
}

impl Cluster {
    /// Arms a fault; returns its id.
    pub fn arm(&mut self, fault: Fault) -> Result<u64, ControlError> {
        // It would never fire.
        if let Some(broker) = fault.when.broker {
            self.existing(BrokerId(broker))?;
        }
        Ok(self.faults.arm(fault)?)
    }

    /// Disarms a fault. Frames that it holds stay held.
    pub fn disarm(&mut self, id: u64) -> Result<(), ControlError> {
        if self.faults.disarm(id) { Ok(()) } else { Err(ControlError::NotFound(format!("fault {id}"))) }
    }

    /// The armed faults, and what they did so far.
    pub fn faults(&self) -> Vec<FaultStatus> {
        self.faults.status().cloned().collect()
    }

    /// The frames that faults hold, oldest first.
    pub fn held(&self) -> Vec<Held> {
        self.faults.held().cloned().collect()
    }

    /// Lets a held frame go on.
    pub fn release(&mut self, id: u64, now: Millis) -> Result<(), ControlError> {
        let held =
            self.faults.release(id).ok_or_else(|| ControlError::NotFound(format!("held frame {id}")))?;
        match held.direction {
            Direction::ToBroker => self.serve(held.conn, held.frame, now),
            _ => self.emit(held.conn, held.frame, now),
        }
        self.settle(now);
        Ok(())
    }

    /// Holds layout pushes of a topic from now on; what a lookup asks for is answered all the same.
    pub fn hold_pushes(&mut self, topic: &str) -> Result<(), ControlError> {
        let topic = scalable_name(topic)?;
        // A classic topic is pushed when it is migrated.
        let classic = self.stored_names(&topic.with_domain(Domain::Persistent));
        if !classic.iter().any(|name| self.stored.contains_key(name)) {
            self.there(&topic)?;
        }
        self.held_pushes.entry(topic).or_default();
        Ok(())
    }

    /// Sends the pushes that were held, in their order, and holds no more. Returns how many there were.
    pub fn release_pushes(&mut self, topic: &str, now: Millis) -> Result<usize, ControlError> {
        let topic = scalable_name(topic)?;
        let held = self.held_pushes.remove(&topic);
        if held.is_none() {
            self.there(&topic)?;
        }
        let held = held.unwrap_or_default();
        let count = held.len();
        for push in held {
            self.effects.send(push.conn, push.update);
        }
        self.settle(now);
        Ok(count)
    }

    /// Kills a broker: its connections drop; others own its topics `failover_ms` later.
    pub fn kill_broker(&mut self, broker: BrokerId, now: Millis) -> Result<(), ControlError> {
        self.existing(broker)?;
        self.note(now, format!("kill {broker}"));
        if !self.kill(broker, now) {
            return Err(ControlError::State(format!("{broker} is down already")));
        }
        self.settle(now);
        Ok(())
    }

    /// Brings a killed broker back. What nobody took over is its own again.
    pub fn revive_broker(&mut self, broker: BrokerId, now: Millis) -> Result<(), ControlError> {
        self.existing(broker)?;
        self.note(now, format!("revive {broker}"));
        if !self.revive(broker, now) {
            return Err(ControlError::State(format!("{broker} is up already")));
        }
        self.settle(now);
        Ok(())
    }

    /// Gives everything that a running broker owns to the others, as before a restart. It stays up.
    pub fn unload_broker(&mut self, broker: BrokerId, now: Millis) -> Result<(), ControlError> {
        self.running(broker)?;
        self.note(now, format!("unload {broker}"));
        if !self.unload(broker, now) {
            return Err(ControlError::State(format!("{broker} is the only one that runs")));
        }
        self.settle(now);
        Ok(())
    }

    /// The registered consumers of a scalable topic by group and name, and what each is to read.
    pub fn registrations(&self, topic: &str) -> Result<Vec<Registered>, ControlError> {
        let topic = scalable_name(topic)?;
        if !self.scalable.contains_key(&topic) {
            return Err(ControlError::NotFound(topic.to_string()));
        }
        Ok(self.registered(&topic))
    }

    /// Sends any assignment to a registered consumer; the registration itself does not change.
    pub fn push_assignment(
        &mut self,
        topic: &str,
        subscription: &str,
        consumer: &str,
        assignment: &ScalableConsumerAssignment,
        now: Millis,
    ) -> Result<(), ControlError> {
        let topic = scalable_name(topic)?;
        self.note(now, format!("push an assignment of epoch {} to {consumer}", assignment.layout_epoch));
        if !self.send_raw_assignment(&topic, subscription, consumer, assignment) {
            return Err(ControlError::NotFound(format!("session of {consumer}")));
        }
        self.settle(now);
        Ok(())
    }

    /// Gives a segment of a scalable topic to another broker: its producers and consumers are closed and told where
    /// it is, and the layout is pushed with the new address at its epoch.
    pub fn move_segment(
        &mut self,
        topic: &str,
        segment: u64,
        to: BrokerId,
        now: Millis,
    ) -> Result<(), ControlError> {
        self.running(to)?;
        let topic = scalable_name(topic)?;
        let scalable = self.scalable.get(&topic).ok_or_else(|| ControlError::NotFound(topic.to_string()))?;
        let segment = scalable
            .layout
            .segment(segment)
            .ok_or_else(|| ControlError::NotFound(format!("segment {segment} of {topic}")))?;
        let name = scalable.stored_name(segment);
        self.note(now, format!("move {name} to {to}"));
        self.move_stored(&name, to);
        self.push_if_addresses_changed(&topic, now);
        self.settle(now);
        Ok(())
    }

    /// Gives a classic topic or a partition to another broker: its producers and consumers are closed and told where
    /// it is.
    pub fn move_topic(&mut self, topic: &str, to: BrokerId, now: Millis) -> Result<(), ControlError> {
        self.running(to)?;
        let name = TopicName::parse(topic).map_err(|e| ControlError::Name(e.to_string()))?;
        if !self.stored.contains_key(&name) {
            return Err(ControlError::NotFound(name.to_string()));
        }
        self.note(now, format!("move {name} to {to}"));
        self.move_stored(&name, to);
        self.settle(now);
        Ok(())
    }

    /// Moves a topic's controller to another broker; the layout is pushed with its address at its epoch. The
    /// registrations stay; who does not come to the new leader within the grace period is dropped. Connections to the
    /// old one stay open.
    pub fn move_controller(&mut self, topic: &str, to: BrokerId, now: Millis) -> Result<(), ControlError> {
        self.running(to)?;
        let topic = scalable_name(topic)?;
        self.there(&topic)?;
        self.note(now, format!("move the controller of {topic} to {to}"));
        if self.scalable.get(&topic).is_some_and(|s| s.controller != Some(to)) {
            self.lead(&topic, to, now);
        }
        self.push_if_addresses_changed(&topic, now);
        self.settle(now);
        Ok(())
    }

    /// Begins an election of a transaction coordinator, which lasts until [`Cluster::elect_coordinator`]. Its leader, if it
    /// had one, stays up, and so do connections to it.
    pub fn depose_coordinator(&mut self, id: u64, now: Millis) -> Result<(), ControlError> {
        let coordinator = self.coordinator_mut(id);
        let coordinator = coordinator.ok_or_else(|| ControlError::NotFound(format!("coordinator {id}")))?;
        coordinator.held = true;
        self.note(now, format!("depose the leader of coordinator {id}"));
        self.lead_coordinators(vec![(id, None)], now);
        self.settle(now);
        Ok(())
    }

    /// Gives a transaction coordinator a leader: the broker that is named, else the one that its number and the seed say.
    pub fn elect_coordinator(
        &mut self,
        id: u64,
        to: Option<BrokerId>,
        now: Millis,
    ) -> Result<(), ControlError> {
        if let Some(to) = to {
            self.running(to)?;
        }
        let leader = to.or_else(|| self.nth_broker(id));
        let coordinator = self.coordinator_mut(id);
        let coordinator = coordinator.ok_or_else(|| ControlError::NotFound(format!("coordinator {id}")))?;
        coordinator.held = false;
        let leader = leader.ok_or_else(|| ControlError::State("no broker runs".to_owned()))?;
        self.note(now, format!("elect {leader} for coordinator {id}"));
        self.lead_coordinators(vec![(id, Some(leader))], now);
        self.settle(now);
        Ok(())
    }

    /// From now on the ends of transactions are decided and not carried out: nobody is told, END_TXN is not answered.
    pub fn hold_ends(&mut self, now: Millis) {
        self.note(now, "hold the ends of transactions".to_owned());
        self.ends_held = true;
    }

    /// Carries out the ends that were held, and holds no more.
    pub fn release_ends(&mut self, now: Millis) {
        self.note(now, "carry out the ends of transactions".to_owned());
        self.ends_held = false;
        self.resume_transactions(now);
        self.settle(now);
    }

    /// Pushes any DAG to every watch of a topic; the topic itself does not change. Returns how many watches got it.
    pub fn push_layout(
        &mut self,
        topic: &str,
        dag: &ScalableTopicDag,
        now: Millis,
    ) -> Result<usize, ControlError> {
        let topic = scalable_name(topic)?;
        self.note(now, format!("push epoch {} to {topic}", dag.epoch));
        let count = self.push_raw(&topic, dag);
        self.settle(now);
        Ok(count)
    }

    /// The layout of a topic as the wire has it, with the addresses of now.
    pub fn current_dag(&self, topic: &str) -> Result<ScalableTopicDag, ControlError> {
        let topic = scalable_name(topic)?;
        self.scalable_dag(&topic).ok_or_else(|| ControlError::NotFound(topic.to_string()))
    }

    /// Gives a scalable topic other properties, which can take it into or out of what a namespace watch is about.
    pub fn set_topic_properties(
        &mut self,
        topic: &str,
        properties: BTreeMap<String, String>,
        now: Millis,
    ) -> Result<(), ControlError> {
        let topic = scalable_name(topic)?;
        self.there(&topic)?;
        self.note(now, format!("set the properties of {topic} to {properties:?}"));
        if let Some(scalable) = self.scalable.get_mut(&topic) {
            scalable.properties = properties;
        }
        self.topic_set_changed(&topic, now);
        self.settle(now);
        Ok(())
    }

    /// Prunes the drained sealed segments of a topic now. Returns how many went.
    pub fn prune_now(&mut self, topic: &str, now: Millis) -> Result<usize, ControlError> {
        let topic = scalable_name(topic)?;
        self.there(&topic)?;
        let count = self.prune(&topic, now);
        self.settle(now);
        Ok(count)
    }

    /// Drops connections, as a broken network does. Returns how many.
    pub fn drop_connections(&mut self, which: DropSelector, now: Millis) -> usize {
        let conns: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(id, c)| {
                which.conn.is_none_or(|conn| conn == **id) && which.broker.is_none_or(|b| b == c.broker)
            })
            .map(|(id, _)| *id)
            .collect();
        for conn in &conns {
            self.lose(*conn, "broker", "dropped by a control call", now);
        }
        self.settle(now);
        conns.len()
    }

    /// Writes a note into the journal.
    pub fn mark(&mut self, text: &str, now: Millis) {
        self.journal.append(now, None, None, Direction::Internal, Event::Mark { text: text.to_owned() });
    }

    /// Everything that a topic stores, in stored order; of a scalable topic segment by segment, of a partitioned one
    /// partition by partition.
    pub fn stored(&self, topic: &str) -> Result<Vec<StoredView>, ControlError> {
        let topic = TopicName::parse(topic).map_err(|e| ControlError::Name(e.to_string()))?;
        let names = self.stored_names(&topic);
        let mut views = Vec::new();
        for name in names {
            let stored = self.stored.get(&name).ok_or_else(|| ControlError::NotFound(name.to_string()))?;
            let segment = SegmentName::of(&name).ok().map(|s| s.id);
            views.extend(stored.topic.stored().map(|entry| StoredView {
                topic: name.clone(),
                segment,
                position: entry.position,
                stored_at: entry.stored_at,
                metadata: Entry::parse(entry.bytes.clone()).ok().map(|e| e.metadata),
                bytes: entry.bytes.clone(),
                visible: entry.visible,
            }));
        }
        Ok(views)
    }

    /// Who serves what: each stored topic with its owner, `None` while nobody serves it.
    pub fn owners(&self) -> Vec<(TopicName, Option<BrokerId>)> {
        self.stored.keys().map(|name| (name.clone(), self.owner(name))).collect()
    }

    /// Empties the cluster: connections drop, topics, namespaces, faults and the journal go, every broker is up.
    pub fn reset(&mut self, now: Millis) {
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        for conn in conns {
            self.lose(conn, "broker", "the cluster was reset", now);
        }
        let addresses = self.brokers.iter().map(Broker::addresses).collect();
        let fresh = Cluster::new(self.config.clone(), addresses);
        let (next_conn, output) = (self.next_conn, std::mem::take(&mut self.output));
        // Connection numbers go on, as tasks of old connections may still report.
        *self = Cluster { next_conn, output, effects: Effects::new(), ..fresh };
    }

    /// Writes what an admin or control call does into the journal.
    pub(super) fn note(&mut self, now: Millis, text: String) {
        self.journal.append(now, None, None, Direction::Internal, Event::Admin { text });
    }

    pub(crate) fn existing(&self, broker: BrokerId) -> Result<(), ControlError> {
        match self.broker(broker) {
            Some(_) => Ok(()),
            None => Err(ControlError::NotFound(broker.to_string())),
        }
    }

    /// Makes sure that there is a scalable topic of this name.
    fn there(&self, topic: &TopicName) -> Result<(), ControlError> {
        if self.scalable.contains_key(topic) {
            Ok(())
        } else {
            Err(ControlError::NotFound(topic.to_string()))
        }
    }

    fn running(&self, broker: BrokerId) -> Result<(), ControlError> {
        self.existing(broker)?;
        if self.is_up(broker) { Ok(()) } else { Err(ControlError::State(format!("{broker} is down"))) }
    }
}

/// A name as a scalable topic's.
fn scalable_name(text: &str) -> Result<TopicName, ControlError> {
    let name = TopicName::parse(text).map_err(|e| ControlError::Name(e.to_string()))?;
    match name.domain() {
        Domain::Topic => Ok(name),
        Domain::Persistent => Ok(name.with_domain(Domain::Topic)),
        _ => Err(ControlError::Name(format!("{name} is not a scalable topic"))),
    }
}
