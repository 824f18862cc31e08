//! What goes wrong while the applications work, and how everything is well again.

use std::time::Duration;

use sim_broker::control::{Control, DropSelector};
use sim_broker::core::BrokerId;
use sim_broker::core::fault::{At, ErrorCode, Fault, FaultEffect, Selector};
use stc_runner::target::admin::{Admin, Method};
use stc_vectors::corpus::Random;
use tokio::time::sleep;

use super::Figures;
use super::schedule::{BROKERS, COORDINATORS, TOPICS};

/// Commands on whose way something may go wrong. Each is asked again or answered for by its sender.
const COMMANDS: [&str; 12] = [
    "NEW_TXN",
    "NEW_TXN_RESPONSE",
    "ADD_PARTITION_TO_TXN",
    "ADD_PARTITION_TO_TXN_RESPONSE",
    "ADD_SUBSCRIPTION_TO_TXN",
    "END_TXN",
    "END_TXN_RESPONSE",
    "SEND",
    "SEND_RECEIPT",
    "ACK",
    "ACK_RESPONSE",
    "TC_CLIENT_CONNECT_REQUEST",
];

/// Those of them that a broker may refuse for now.
const REFUSABLE: [&str; 4] = ["NEW_TXN", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN"];

/// Lets things go wrong, one after another.
pub struct Disturber {
    /// Of the cluster.
    pub control: Control,
    /// Of the cluster.
    pub admin: Admin,
    /// Decides everything.
    pub random: Random,
    /// What happened.
    pub figures: Figures,
    /// Brokers that are dead.
    pub dead: Vec<BrokerId>,
}

impl Disturber {
    /// Does its work, and ends with the cluster as well as it is.
    pub async fn run(mut self) -> Figures {
        for _ in 0..3 + self.random.below(6) {
            sleep(Duration::from_millis(self.random.below(700))).await;
            match self.random.below(8) {
                0 => self.death(),
                1 => self.deposition(),
                2 => self.split().await,
                3 => self.merge().await,
                4 => self.broken_connections(),
                5 => {
                    // Coordinators answer, and segments do not know yet.
                    self.control.hold_ends();
                    sleep(Duration::from_millis(self.random.below(1_500))).await;
                    self.control.release_ends();
                }
                _ => self.fault(),
            }
            if self.random.below(3) == 0 {
                self.revive();
            }
        }
        self.heal();
        self.figures
    }

    fn death(&mut self) {
        let broker = BrokerId(self.random.below(u64::from(BROKERS)) as u32);
        // The last one stays.
        let may = self.dead.len() + 1 < BROKERS as usize && !self.dead.contains(&broker);
        if may && self.control.kill_broker(broker).is_ok() {
            self.dead.push(broker);
            self.figures.deaths += 1;
        }
    }

    fn revive(&mut self) {
        for broker in self.dead.drain(..) {
            // It fails for one that lives, and none of these does.
            let _ = self.control.revive_broker(broker);
        }
    }

    fn deposition(&mut self) {
        let coordinator = self.random.below(u64::from(COORDINATORS));
        if self.control.depose_coordinator(coordinator).is_ok() {
            self.figures.depositions += 1;
        }
    }

    /// Splits a segment, if chance finds one that is active.
    async fn split(&mut self) {
        let (topic, segment) = (self.topic(), self.random.below(6));
        let path = format!("/admin/v2/scalable/{topic}/split/{segment}");
        self.figures.splits += u64::from(self.admin.must(Method::POST, &path, None).await.is_ok());
    }

    /// Merges two segments, if chance finds two that are active and adjacent.
    async fn merge(&mut self) {
        let topic = self.topic();
        for _ in 0..4 {
            let one = self.random.below(6);
            let path = format!("/admin/v2/scalable/{topic}/merge/{one}/{}", one + 1);
            if self.admin.must(Method::POST, &path, None).await.is_ok() {
                self.figures.merges += 1;
                return;
            }
        }
    }

    fn topic(&mut self) -> &'static str {
        TOPICS.get(self.random.below(TOPICS.len() as u64) as usize).copied().unwrap_or_default()
    }

    fn broken_connections(&mut self) {
        let broker = BrokerId(self.random.below(u64::from(BROKERS)) as u32);
        let which = DropSelector { broker: Some(broker), ..DropSelector::default() };
        self.figures.breaks += self.control.drop_connections(which) as u64;
    }

    fn fault(&mut self) {
        let refused = self.random.below(4) == 0;
        let commands: &[&str] = if refused { &REFUSABLE } else { &COMMANDS };
        let command =
            commands.get(self.random.below(commands.len() as u64) as usize).copied().unwrap_or("END_TXN");
        let effect = match ErrorCode::try_from("ServiceNotReady".to_owned()) {
            Ok(code) if refused => FaultEffect::Error { code, message: String::new() },
            // Brokers answer about a transaction in any order; what is about messages does not overtake itself.
            _ if command.contains("TXN") && self.random.below(3) == 0 => {
                FaultEffect::Delay { ms: self.random.below(2_000) }
            }
            _ => FaultEffect::Close,
        };
        let late = !refused && !command.ends_with("RESPONSE") && command != "SEND_RECEIPT";
        let at = if late && self.random.below(2) == 0 { At::After } else { At::Before };
        let fault =
            Fault { skip: self.random.below(3) as u32, at, ..Fault::new(Selector::command(command), effect) };
        // Not every effect goes with every moment.
        let _ = self.control.arm(fault);
    }

    /// Everything that can be well again is.
    fn heal(&mut self) {
        for status in self.control.faults() {
            self.figures.faults += u64::from(status.fired);
            let _ = self.control.disarm(status.id);
        }
        self.control.release_ends();
        self.control.release_all();
        self.revive();
        for (id, leader) in self.control.coordinators() {
            if leader.is_none() {
                let _ = self.control.elect_coordinator(id, None);
            }
        }
    }
}
