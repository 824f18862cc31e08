//! Where each transaction coordinator is led: elections, the watch that tells (wire-protocol §8.1), the connects, and the
//! topic whose partitions stand for the coordinators in the classic lookup.

use stc_proto::{Command, TopicName, pulsar::*};

use super::Cluster;
use crate::core::{
    coordinator::Coordinator,
    ids::{BrokerId, ConnId, Millis},
    journal::{Direction, Event},
};

/// The topic whose partition i is looked up for coordinator i by clients that do not use the watch.
const ASSIGN: &str = "persistent://pulsar/system/transaction_coordinator_assign";

/// What a name means to clients that look for coordinators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssignTopic {
    /// All of them: the partitioned topic.
    All,
    /// One of them, by its number: a partition.
    One(u64),
}

impl AssignTopic {
    /// Whether the name is that topic or a partition of it.
    pub(super) fn of(name: &TopicName) -> Option<Self> {
        if name.partitioned().as_str() != ASSIGN {
            return None;
        }
        Some(name.partition_index().map_or(AssignTopic::All, |index| AssignTopic::One(index.into())))
    }
}

impl Cluster {
    /// The coordinators, by number.
    pub fn coordinators(&self) -> &[Coordinator] {
        &self.coordinators
    }

    /// A coordinator, by its number.
    pub(super) fn coordinator(&self, id: u64) -> Option<&Coordinator> {
        self.coordinators.get(usize::try_from(id).ok()?)
    }

    pub(super) fn coordinator_mut(&mut self, id: u64) -> Option<&mut Coordinator> {
        self.coordinators.get_mut(usize::try_from(id).ok()?)
    }

    /// The broker that leads a coordinator now.
    pub(super) fn coordinator_leader(&self, id: u64) -> Option<BrokerId> {
        self.coordinator(id)?.leader
    }

    // ---- Elections ----

    /// Gives coordinators other leaders, or none, and tells every watch. What was decided and not carried out goes on
    /// with the new leaders.
    pub(super) fn lead_coordinators(&mut self, leaders: Vec<(u64, Option<BrokerId>)>, now: Millis) {
        let mut changed = false;
        for (id, leader) in leaders {
            let Some(coordinator) = self.coordinator_mut(id).filter(|c| c.leader != leader) else { continue };
            coordinator.leader = leader;
            changed = true;
            let change = if leader.is_some() { "lead" } else { "elect" };
            let event = Event::Coordinator { id, change };
            self.journal.append(now, leader, None, Direction::Internal, event);
        }
        if changed {
            self.push_coordinators();
            self.resume_transactions(now);
        }
    }

    /// The coordinators that a broker leads.
    pub(super) fn led_by(&self, broker: BrokerId) -> Vec<u64> {
        self.coordinators.iter().filter(|c| c.leader == Some(broker)).map(Coordinator::id).collect()
    }

    /// Elects a leader for each coordinator without one, unless its election is held.
    pub(super) fn elect_coordinators(&mut self, now: Millis) {
        let headless = self.coordinators.iter().filter(|c| c.leader.is_none() && !c.held);
        let leaders = headless.map(|c| (c.id(), self.nth_broker(c.id()))).collect();
        self.lead_coordinators(leaders, now);
    }

    // ---- Clients ----

    /// WATCH_TC_ASSIGNMENTS.
    pub(super) fn watch_coordinators(&mut self, conn: ConnId, command: &CommandWatchTcAssignments) {
        if let Some(c) = self.conns.get_mut(&conn) {
            c.coordinator_watches.insert(command.watch_id);
        }
        let update = self.coordinator_update(command.watch_id);
        self.effects.send(conn, update);
    }

    /// WATCH_TC_ASSIGNMENTS_CLOSE.
    pub(super) fn close_coordinator_watch(&mut self, conn: ConnId, command: &CommandWatchTcAssignmentsClose) {
        if let Some(c) = self.conns.get_mut(&conn) {
            c.coordinator_watches.remove(&command.watch_id);
        }
    }

    /// TC_CLIENT_CONNECT_REQUEST: success at the coordinator's leader only.
    pub(super) fn coordinator_connect(&mut self, conn: ConnId, command: CommandTcClientConnectRequest) {
        if self.leads(conn, command.tc_id) {
            let request_id = command.request_id;
            let answer = CommandTcClientConnectResponse { request_id, error: None, message: None };
            self.effects.send(conn, answer);
        } else {
            let id = command.tc_id;
            self.refuse_not_leader(conn, &command.into(), id);
        }
    }

    /// The coordinator, where a connection leads to its leader.
    pub(super) fn led_coordinator(&mut self, conn: ConnId, id: u64) -> Option<&mut Coordinator> {
        if self.leads(conn, id) { self.coordinator_mut(id) } else { None }
    }

    /// Refuses what only the leader of a coordinator serves.
    pub(super) fn refuse_not_leader(&mut self, conn: ConnId, command: &Command, id: u64) {
        let message = format!("This broker does not lead transaction coordinator {id}");
        self.refuse(conn, command, ServerError::TransactionCoordinatorNotFound, &message);
    }

    /// Whether a connection leads to the leader of a coordinator.
    fn leads(&self, conn: ConnId, coordinator: u64) -> bool {
        let leader = self.coordinator_leader(coordinator);
        leader.is_some() && leader == self.conns.get(&conn).map(|c| c.broker)
    }

    /// Tells every watch where the coordinators are now.
    fn push_coordinators(&mut self) {
        let watches: Vec<(ConnId, u64)> = self
            .conns
            .iter()
            .flat_map(|(conn, c)| c.coordinator_watches.iter().map(|watch| (*conn, *watch)))
            .collect();
        for (conn, watch) in watches {
            let update = self.coordinator_update(watch);
            self.effects.send(conn, update);
        }
    }

    /// The whole map; a coordinator without a leader is left out.
    fn coordinator_update(&self, watch_id: u64) -> CommandWatchTcAssignmentsUpdate {
        let assignment = |coordinator: &Coordinator| {
            let leader = self.broker(coordinator.leader?)?;
            Some(TcAssignment {
                tc_id: coordinator.id(),
                broker_service_url: Some(leader.service_url.clone()),
                broker_service_url_tls: leader.service_url_tls.clone(),
            })
        };
        let assignments = self.coordinators.iter().filter_map(assignment).collect();
        CommandWatchTcAssignmentsUpdate {
            watch_id,
            snapshot: Some(TcAssignmentsSnapshot { parallelism: self.parallelism(), assignments }),
            ..Default::default()
        }
    }

    /// How many coordinators there are.
    pub(super) fn parallelism(&self) -> u32 {
        self.coordinators.len().try_into().unwrap_or(u32::MAX)
    }
}
