//! What drives and observes a cluster from outside, in process.

pub mod http;
mod security;

use std::collections::BTreeMap;

use stc_proto::pulsar::{ScalableConsumerAssignment, ScalableTopicDag};

use crate::{
    core::{
        BrokerId,
        cluster::Registered,
        fault::{Fault, FaultStatus, Held},
        journal::Record,
    },
    net::SimCluster,
};

pub use crate::core::cluster::control::{ControlError, DropSelector, StoredView};

/// The control API of a cluster. Clones are handles to the same cluster.
#[derive(Debug, Clone)]
pub struct Control {
    cluster: SimCluster,
}

impl Control {
    pub(crate) fn new(cluster: SimCluster) -> Self {
        Control { cluster }
    }

    /// The cluster.
    pub fn cluster(&self) -> &SimCluster {
        &self.cluster
    }

    /// Arms a fault; returns its id.
    pub fn arm(&self, fault: Fault) -> Result<u64, ControlError> {
        self.cluster.with(|c, _| c.arm(fault))
    }

    /// Disarms a fault. Frames that it holds stay held.
    pub fn disarm(&self, id: u64) -> Result<(), ControlError> {
        self.cluster.with(|c, _| c.disarm(id))
    }

    /// The armed faults, and what they did so far.
    pub fn faults(&self) -> Vec<FaultStatus> {
        self.cluster.read(|c| c.faults())
    }

    /// The frames that faults hold, oldest first.
    pub fn held(&self) -> Vec<Held> {
        self.cluster.read(|c| c.held())
    }

    /// Lets a held frame go on.
    pub fn release(&self, id: u64) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.release(id, now))
    }

    /// Lets every held frame go on, oldest first. Returns how many there were.
    pub fn release_all(&self) -> usize {
        self.cluster.with(|c, now| {
            let ids: Vec<u64> = c.held().iter().map(|held| held.id).collect();
            ids.into_iter().filter(|id| c.release(*id, now).is_ok()).count()
        })
    }

    /// Holds layout pushes of a topic from now on; what a lookup asks for is answered all the same.
    pub fn hold_pushes(&self, topic: &str) -> Result<(), ControlError> {
        self.cluster.with(|c, _| c.hold_pushes(topic))
    }

    /// Sends the pushes that were held, in their order, and holds no more. Returns how many there were.
    pub fn release_pushes(&self, topic: &str) -> Result<usize, ControlError> {
        self.cluster.with(|c, now| c.release_pushes(topic, now))
    }

    /// Kills a broker: its connections drop and new ones are refused; others own its topics `failover_ms` later.
    pub fn kill_broker(&self, broker: BrokerId) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.kill_broker(broker, now))
    }

    /// Brings a killed broker back. What nobody took over is its own again.
    pub fn revive_broker(&self, broker: BrokerId) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.revive_broker(broker, now))
    }

    /// Gives a segment to another broker: its producers and consumers are closed and told where it is, and the layout
    /// is pushed with the new address at its epoch.
    pub fn move_segment(&self, topic: &str, segment: u64, to: BrokerId) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.move_segment(topic, segment, to, now))
    }

    /// Gives a classic topic or a partition to another broker.
    pub fn move_topic(&self, topic: &str, to: BrokerId) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.move_topic(topic, to, now))
    }

    /// Moves a topic's controller to another broker; the layout is pushed with its address at its epoch.
    pub fn move_controller(&self, topic: &str, to: BrokerId) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.move_controller(topic, to, now))
    }

    /// The transaction coordinators by number, and who leads each one.
    pub fn coordinators(&self) -> Vec<(u64, Option<BrokerId>)> {
        self.cluster.read(|c| c.coordinators().iter().map(|c| (c.id(), c.leader)).collect())
    }

    /// Begins an election of a transaction coordinator, which lasts until [`Control::elect_coordinator`].
    pub fn depose_coordinator(&self, id: u64) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.depose_coordinator(id, now))
    }

    /// Gives a transaction coordinator a leader: the broker that is named, else the one that its number and the seed say.
    pub fn elect_coordinator(&self, id: u64, to: Option<BrokerId>) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.elect_coordinator(id, to, now))
    }

    /// From now on the ends of transactions are decided and not carried out: nobody is told, END_TXN is not answered.
    pub fn hold_ends(&self) {
        self.cluster.with(|c, now| c.hold_ends(now));
    }

    /// Carries out the ends that were held, and holds no more.
    pub fn release_ends(&self) {
        self.cluster.with(|c, now| c.release_ends(now));
    }

    /// Gives everything that a running broker owns to the others, as before a restart. It stays up.
    pub fn unload_broker(&self, broker: BrokerId) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.unload_broker(broker, now))
    }

    /// The registered consumers of a scalable topic by group and name, and what each is to read.
    pub fn registered(&self, topic: &str) -> Result<Vec<Registered>, ControlError> {
        self.cluster.read(|c| c.registrations(topic))
    }

    /// Sends any assignment to a registered consumer; the registration itself does not change. A stale epoch, for one.
    pub fn push_assignment(
        &self,
        topic: &str,
        subscription: &str,
        consumer: &str,
        assignment: &ScalableConsumerAssignment,
    ) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.push_assignment(topic, subscription, consumer, assignment, now))
    }

    /// Pushes any DAG to every watch of a topic; the topic itself does not change. Returns how many watches got it.
    pub fn push_layout(&self, topic: &str, dag: &ScalableTopicDag) -> Result<usize, ControlError> {
        self.cluster.with(|c, now| c.push_layout(topic, dag, now))
    }

    /// The layout of a topic as the wire has it, with the addresses of now: what a test changes and pushes.
    pub fn current_dag(&self, topic: &str) -> Result<ScalableTopicDag, ControlError> {
        self.cluster.read(|c| c.current_dag(topic))
    }

    /// Gives a scalable topic other properties, which can take it into or out of what a namespace watch is about.
    pub fn set_topic_properties(
        &self,
        topic: &str,
        properties: BTreeMap<String, String>,
    ) -> Result<(), ControlError> {
        self.cluster.with(|c, now| c.set_topic_properties(topic, properties, now))
    }

    /// Prunes the drained sealed segments of a topic now. Returns how many went.
    pub fn prune(&self, topic: &str) -> Result<usize, ControlError> {
        self.cluster.with(|c, now| c.prune_now(topic, now))
    }

    /// Drops connections, as a broken network does. Returns how many.
    pub fn drop_connections(&self, which: DropSelector) -> usize {
        self.cluster.with(|c, now| c.drop_connections(which, now))
    }

    /// Moves the cluster's clock forward; what becomes due happens at once.
    pub fn advance_clock(&self, ms: u64) {
        self.cluster.advance_clock(ms);
    }

    /// Writes a note into the journal.
    pub fn mark(&self, text: &str) {
        self.cluster.with(|c, now| c.mark(text, now));
    }

    /// Everything that a topic stores, in stored order; of a scalable topic segment by segment, of a partitioned one
    /// partition by partition.
    pub fn stored(&self, topic: &str) -> Result<Vec<StoredView>, ControlError> {
        self.cluster.read(|c| c.stored(topic))
    }

    /// Empties the cluster: connections drop, topics, namespaces, faults and the journal go, every broker is up.
    pub fn reset(&self) {
        self.cluster.with(|c, now| c.reset(now));
    }

    /// The kept records of the journal, oldest first.
    pub fn journal(&self) -> Vec<Record> {
        self.journal_from(0)
    }

    /// The kept records of the journal from number `n` on, oldest first.
    pub fn journal_from(&self, n: u64) -> Vec<Record> {
        self.cluster.read(|c| c.journal().from(n).cloned().collect())
    }

    /// Number of the newest record; 0 when there is none yet.
    pub fn last_record(&self) -> u64 {
        self.cluster.read(|c| c.journal().next_number() - 1)
    }

    /// Waits for a record that `wanted` accepts, and returns it; looks at the kept records first. Never resolves when
    /// none comes, so give it a time-out.
    pub async fn wait_for(&self, wanted: impl FnMut(&Record) -> bool) -> Record {
        self.wait_for_from(0, wanted).await
    }

    /// The same, from record number `n` on.
    pub async fn wait_for_from(&self, mut n: u64, mut wanted: impl FnMut(&Record) -> bool) -> Record {
        let mut grows = self.cluster.watch_journal();
        loop {
            grows.borrow_and_update();
            let (found, next) = self.cluster.read(|c| {
                let journal = c.journal();
                (journal.from(n).find(|record| wanted(record)).cloned(), journal.next_number())
            });
            if let Some(record) = found {
                return record;
            }
            n = next;
            if grows.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
