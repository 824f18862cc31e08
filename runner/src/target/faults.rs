//! What strikes frames and connections: a simulated cluster itself, or a proxy in front of brokers elsewhere.

use sim_broker::Control;
use sim_broker::control::DropSelector;
use sim_broker::core::fault::{Fault, FaultStatus};
use sim_broker::core::journal::Record;

use crate::judge::Trouble;
use crate::proxy::Proxy;

/// Whoever strikes.
#[derive(Clone)]
pub enum Faults {
    /// A simulated cluster.
    Cluster(Control),
    /// A proxy.
    Proxy(Proxy),
}

impl Faults {
    /// Arms a fault; returns its id.
    ///
    /// # Errors
    /// When it can strike nothing.
    pub fn arm(&self, fault: Fault) -> Result<u64, Trouble> {
        Ok(match self {
            Faults::Cluster(control) => control.arm(fault)?,
            Faults::Proxy(proxy) => proxy.arm(fault)?,
        })
    }

    /// Takes a fault back.
    ///
    /// # Errors
    /// When there is no such fault.
    pub fn disarm(&self, id: u64) -> Result<(), Trouble> {
        match self {
            Faults::Cluster(control) => Ok(control.disarm(id)?),
            Faults::Proxy(proxy) if proxy.disarm(id) => Ok(()),
            Faults::Proxy(_) => Err(Trouble(format!("there is no fault {id}"))),
        }
    }

    /// The faults that were armed, and what they did.
    pub fn status(&self) -> Vec<FaultStatus> {
        match self {
            Faults::Cluster(control) => control.faults(),
            Faults::Proxy(proxy) => proxy.faults(),
        }
    }

    /// How many frames are held.
    pub fn held(&self) -> usize {
        match self {
            Faults::Cluster(control) => control.held().len(),
            Faults::Proxy(proxy) => proxy.held(),
        }
    }

    /// Lets all held frames go on; how many there were.
    pub fn release_all(&self) -> usize {
        match self {
            Faults::Cluster(control) => control.release_all(),
            Faults::Proxy(proxy) => proxy.release_all(),
        }
    }

    /// Closes connections, as a broker does; how many there were.
    pub fn drop_connections(&self, which: DropSelector) -> usize {
        match self {
            Faults::Cluster(control) => control.drop_connections(which),
            Faults::Proxy(proxy) => proxy.drop_connections(&which),
        }
    }

    /// The journal so far.
    pub fn journal(&self) -> Vec<Record> {
        match self {
            Faults::Cluster(control) => control.journal(),
            Faults::Proxy(proxy) => proxy.journal(),
        }
    }

    /// Waits for a record from number `n` on that `wanted` accepts. Never resolves when none comes.
    pub async fn wait_for_from(&self, n: u64, wanted: impl FnMut(&Record) -> bool) -> Record {
        match self {
            Faults::Cluster(control) => control.wait_for_from(n, wanted).await,
            Faults::Proxy(proxy) => proxy.wait_for_from(n, wanted).await,
        }
    }
}
