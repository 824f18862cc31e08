//! DAG watches: sessions that resolve a topic and hear of every change of its layout (wire-protocol §4).

use stc_proto::{Layout, SegmentName, TopicName, name::Domain, pulsar::*};

use super::{Addresses, Broker, Cluster};
use crate::core::ids::{ConnId, Millis};

/// A push that waits until pushes of its topic are released.
#[derive(Debug, Clone)]
pub(super) struct HeldPush {
    pub(super) conn: ConnId,
    pub(super) update: CommandScalableTopicUpdate,
}

impl Cluster {
    /// SCALABLE_TOPIC_LOOKUP. A session id that is in use is established anew. A name that does not parse closes the
    /// connection, as 5.0.1 does.
    pub(super) fn scalable_lookup(&mut self, conn: ConnId, command: CommandScalableTopicLookup, now: Millis) {
        let name = match TopicName::parse(&command.topic) {
            Ok(name) => name,
            Err(error) => return self.effects.close(conn, error.to_string()),
        };
        let topic = match name.domain() {
            Domain::Topic => name.clone(),
            Domain::Persistent => name.with_domain(Domain::Topic),
            Domain::Segment => match SegmentName::of(&name) {
                Ok(segment) => segment.topic,
                Err(error) => return self.effects.close(conn, error.to_string()),
            },
            Domain::NonPersistent => {
                let message = format!("{name}: non-persistent topics cannot be scalable");
                return self.refuse(conn, &command.into(), ServerError::NotAllowedError, &message);
            }
        };
        let create = command.create_if_missing()
            && name.domain() == Domain::Topic
            && self.may_auto_create(topic.namespace());
        let mut created = false;
        if !self.scalable.contains_key(&topic) && create {
            self.create_scalable_entry(&topic, 1, Default::default(), now);
            created = true;
        }
        let dag = self.scalable_dag(&topic).or_else(|| {
            let classic =
                name.domain() == Domain::Persistent && self.namespaces.contains_key(topic.namespace());
            if classic { self.synthetic_dag(&topic, now) } else { None }
        });
        let Some(dag) = dag else {
            let message = format!("Scalable topic not found: {topic}");
            return self.refuse(conn, &command.into(), ServerError::TopicNotFound, &message);
        };
        let update = success(command.session_id, &topic, dag);
        if let Some(c) = self.conns.get_mut(&conn) {
            c.watches.insert(command.session_id, topic);
        }
        if created && self.config.profile.initial_pushes_repeat {
            self.effects.send(conn, update.clone());
        }
        self.effects.send(conn, update);
    }

    /// SCALABLE_TOPIC_CLOSE.
    pub(super) fn scalable_close(&mut self, conn: ConnId, command: &CommandScalableTopicClose) {
        if let Some(c) = self.conns.get_mut(&conn) {
            c.watches.remove(&command.session_id);
        }
    }

    /// Pushes a topic's layout, as it is now, to every watch of it.
    pub(super) fn push(&mut self, topic: &TopicName) {
        let Some(dag) = self.scalable_dag(topic) else { return };
        self.push_raw(topic, &dag);
        let addresses = self.addresses(topic);
        if let Some(scalable) = self.scalable.get_mut(topic) {
            scalable.pushed_addresses = addresses;
        }
    }

    /// Pushes a topic's layout if it is served elsewhere than the last push said.
    pub(super) fn push_if_addresses_changed(&mut self, topic: &TopicName, _now: Millis) {
        let addresses = self.addresses(topic);
        if self.scalable.get(topic).is_some_and(|s| s.pushed_addresses != addresses) {
            self.push(topic);
        }
    }

    /// Pushes any DAG to every watch of a topic, whatever the cluster thinks of it.
    pub(super) fn push_raw(&mut self, topic: &TopicName, dag: &ScalableTopicDag) -> usize {
        let updates: Vec<(ConnId, CommandScalableTopicUpdate)> = self
            .watches_of(topic)
            .into_iter()
            .map(|(conn, session)| (conn, success(session, topic, dag.clone())))
            .collect();
        let count = updates.len();
        self.deliver(topic, updates);
        count
    }

    pub(super) fn forget_held_pushes(&mut self, conn: ConnId) {
        for held in self.held_pushes.values_mut() {
            held.retain(|push| push.conn != conn);
        }
    }

    fn deliver(&mut self, topic: &TopicName, updates: Vec<(ConnId, CommandScalableTopicUpdate)>) {
        match self.held_pushes.get_mut(topic) {
            Some(held) => held.extend(updates.into_iter().map(|(conn, update)| HeldPush { conn, update })),
            None => {
                for (conn, update) in updates {
                    self.effects.send(conn, update);
                }
            }
        }
    }

    fn watches_of(&self, topic: &TopicName) -> Vec<(ConnId, u64)> {
        self.conns
            .iter()
            .flat_map(|(conn, c)| c.watches.iter().map(move |(session, watched)| (*conn, *session, watched)))
            .filter(|(_, _, watched)| *watched == topic)
            .map(|(conn, session, _)| (conn, session))
            .collect()
    }

    /// The layout of a scalable topic on the wire, with the addresses of now.
    pub(super) fn scalable_dag(&self, topic: &TopicName) -> Option<ScalableTopicDag> {
        let scalable = self.scalable.get(topic)?;
        let dead_too = self.config.profile.names_dead_owners;
        let broker = |id| self.broker(id).filter(|b| b.up || dead_too).map(Broker::addresses);
        let segment_brokers = scalable
            .layout
            .active()
            .filter_map(|segment| {
                let owner = self.stored.get(&scalable.stored_name(segment))?.owner;
                let Addresses { service: broker_url, service_tls: broker_url_tls, .. } = broker(owner)?;
                Some(SegmentBrokerAddress { segment_id: segment.id, broker_url, broker_url_tls })
            })
            .collect();
        let controller = scalable.controller.and_then(broker);
        Some(ScalableTopicDag {
            segment_brokers,
            controller_broker_url_tls: controller.as_ref().and_then(|c| c.service_tls.clone()),
            controller_broker_url: controller.map(|c| c.service),
            ..scalable.layout.to_dag()
        })
    }

    /// The synthetic layout of a classic topic, which need not exist yet. It names no broker.
    fn synthetic_dag(&self, topic: &TopicName, now: Millis) -> Option<ScalableTopicDag> {
        let classic = topic.with_domain(Domain::Persistent);
        let topics: Vec<String> = self.stored_names(&classic).iter().map(ToString::to_string).collect();
        Layout::synthetic(topics, now).ok().map(|layout| layout.to_dag())
    }

    fn addresses(&self, topic: &TopicName) -> Option<(Vec<SegmentBrokerAddress>, Option<String>)> {
        let dag = self.scalable_dag(topic)?;
        Some((dag.segment_brokers, dag.controller_broker_url))
    }
}

fn success(session_id: u64, topic: &TopicName, dag: ScalableTopicDag) -> CommandScalableTopicUpdate {
    CommandScalableTopicUpdate {
        session_id,
        dag: Some(dag),
        resolved_topic_name: Some(topic.to_string()),
        ..Default::default()
    }
}
