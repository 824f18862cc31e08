//! Transaction coordinators: where each one is led, the watch that tells (wire-protocol §8.1), and the connects.
//! Transactions themselves are refused.

use stc_proto::pulsar::*;

use super::Cluster;
use crate::core::ids::ConnId;

impl Cluster {
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
        let Some(broker) = self.conns.get(&conn).map(|c| c.broker) else { return };
        let leader = usize::try_from(command.tc_id).ok().and_then(|id| self.coordinators.get(id).copied());
        match leader {
            Some(Some(leader)) if leader == broker => {
                let request_id = command.request_id;
                let answer = CommandTcClientConnectResponse { request_id, error: None, message: None };
                self.effects.send(conn, answer);
            }
            _ => {
                let message = format!("This broker does not lead transaction coordinator {}", command.tc_id);
                let error = ServerError::TransactionCoordinatorNotFound;
                self.refuse(conn, &command.into(), error, &message);
            }
        }
    }

    /// Tells every watch where the coordinators are now.
    pub(super) fn push_coordinators(&mut self) {
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
        let assignments = self
            .coordinators
            .iter()
            .zip(0u64..)
            .filter_map(|(leader, tc_id)| {
                let leader = self.broker(*leader.as_ref()?)?;
                Some(TcAssignment {
                    tc_id,
                    broker_service_url: Some(leader.service_url.clone()),
                    broker_service_url_tls: leader.service_url_tls.clone(),
                })
            })
            .collect();
        let parallelism = self.coordinators.len().try_into().unwrap_or(u32::MAX);
        CommandWatchTcAssignmentsUpdate {
            watch_id,
            snapshot: Some(TcAssignmentsSnapshot { parallelism, assignments }),
            ..Default::default()
        }
    }
}
