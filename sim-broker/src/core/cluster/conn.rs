//! One connection: what the broker knows of its client; handshake and keep-alive.

use std::collections::{BTreeMap, BTreeSet};

use stc_proto::{Frame, TopicName, pulsar::*};

use super::{
    Cluster, access::Identity, catalogue::ListWatch, controllers::Registration, flow::Due,
    topic_sets::TopicSetWatch,
};
use crate::core::{
    config::KEEP_ALIVE_MS,
    ids::{BrokerId, ConnId, Millis},
};

/// What a broker knows of a connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) broker: BrokerId,
    /// Whether the handshake is done.
    pub(super) connected: bool,
    /// Who the client is, in a cluster with authentication.
    pub(super) identity: Option<Identity>,
    /// Whether anything arrived since the last PING.
    heard: bool,
    /// The topic of each producer, by the client's id.
    pub(super) producers: BTreeMap<u64, TopicName>,
    /// Producers that the broker closed: what the client sent before it knew is not its fault.
    pub(super) closed_producers: BTreeMap<u64, TopicName>,
    /// The topic of each consumer, by the client's id.
    pub(super) consumers: BTreeMap<u64, TopicName>,
    /// The scalable topic of each DAG watch, by session id.
    pub(super) watches: BTreeMap<u64, TopicName>,
    /// Registrations with controllers on this broker, by consumer id.
    pub(super) registrations: BTreeMap<u64, Registration>,
    /// Watches of the transaction coordinators, by watch id.
    pub(super) coordinator_watches: BTreeSet<u64>,
    /// Watches of topic lists, by watcher id.
    pub(super) list_watches: BTreeMap<u64, ListWatch>,
    /// Watches of the scalable topics of namespaces, by watch id.
    pub(super) topic_sets: BTreeMap<u64, TopicSetWatch>,
    /// The topic of each request without an answer, for faults that strike answers.
    pub(super) requests: BTreeMap<u64, String>,
    /// A frame to the broker, and one to the client, that the next one overtakes.
    pub(super) overtaken: [Option<Frame>; 2],
}

impl Conn {
    pub(super) fn new(broker: BrokerId) -> Self {
        Conn {
            broker,
            connected: false,
            identity: None,
            heard: true,
            producers: BTreeMap::new(),
            closed_producers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            watches: BTreeMap::new(),
            registrations: BTreeMap::new(),
            coordinator_watches: BTreeSet::new(),
            list_watches: BTreeMap::new(),
            topic_sets: BTreeMap::new(),
            requests: BTreeMap::new(),
            overtaken: [None, None],
        }
    }
}

impl Cluster {
    /// CONNECT.
    pub(super) fn connect(&mut self, conn: ConnId, command: &CommandConnect) {
        let Ok(identity) = self.authenticate(command) else { return self.fail_authentication(conn) };
        let profile = &self.config.profile;
        let answer = CommandConnected {
            server_version: profile.server_version.clone(),
            protocol_version: Some(profile.protocol_version),
            max_message_size: Some(profile.max_message_size.try_into().unwrap_or(i32::MAX)),
            feature_flags: Some(profile.feature_flags()),
        };
        if let Some(c) = self.conns.get_mut(&conn) {
            c.connected = true;
            c.identity = identity;
        }
        self.effects.send(conn, answer);
    }

    pub(super) fn start_keep_alive(&mut self, conn: ConnId, now: Millis) {
        self.agenda.add(now + KEEP_ALIVE_MS, Due::KeepAlive(conn));
    }

    /// Anything that arrives shows that the client lives.
    pub(super) fn heard(&mut self, conn: ConnId) {
        if let Some(c) = self.conns.get_mut(&conn) {
            c.heard = true;
        }
    }

    /// Pings a connection, or closes it: one that is still shaking hands, or was silent since the last PING.
    pub(super) fn keep_alive(&mut self, conn: ConnId, now: Millis) {
        let Some(c) = self.conns.get_mut(&conn) else { return };
        if !c.connected {
            return self.effects.close(conn, "the handshake was not completed in 30 s");
        }
        if !c.heard {
            return self.effects.close(conn, "nothing was heard for 60 s, a PING went unanswered");
        }
        c.heard = false;
        self.effects.send(conn, CommandPing {});
        self.start_keep_alive(conn, now);
    }
}
