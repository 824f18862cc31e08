//! The journal's view of transactions: what was asked of their coordinators, and what belongs to each.

use std::collections::BTreeMap;

use sim_broker::core::ids::BrokerId;
use stc_proto::Command;

use crate::wire::Wire;

/// The topic whose partitions stand for the coordinators in the classic lookup.
pub const ASSIGN: &str = "persistent://pulsar/system/transaction_coordinator_assign";

/// A transaction as the wire shows it. Each part comes with the number of its record.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// Coordinator and number.
    pub key: (u64, u64),
    /// Topics that were added to it.
    pub partitions: Vec<(u64, String)>,
    /// Topics of the SENDs in it.
    pub sends: Vec<(u64, String)>,
    /// END_TXN.
    pub ends: Vec<u64>,
}

impl Transaction {
    /// All of them, in the order of their ids.
    pub fn all(wire: &Wire) -> Vec<Transaction> {
        let mut all: BTreeMap<(u64, u64), Transaction> = BTreeMap::new();
        let mut of = |most: Option<u64>, least: Option<u64>, note: &mut dyn FnMut(&mut Transaction)| {
            if let (Some(most), Some(least)) = (most, least) {
                let key = (most, least);
                note(all.entry(key).or_insert_with(|| Transaction { key, ..Transaction::default() }));
            }
        };
        for (record, _, command) in wire.from_clients() {
            let n = record.n;
            match command {
                Command::AddPartitionToTxn(c) => of(c.txnid_most_bits, c.txnid_least_bits, &mut |t| {
                    t.partitions.extend(c.partitions.iter().map(|topic| (n, topic.clone())));
                }),
                Command::EndTxn(c) => of(c.txnid_most_bits, c.txnid_least_bits, &mut |t| t.ends.push(n)),
                _ => {}
            }
        }
        for send in wire.sends() {
            let metadata = &send.metadata;
            of(metadata.txnid_most_bits, metadata.txnid_least_bits, &mut |t| {
                t.sends.push((send.n, send.topic.clone()));
            });
        }
        all.into_values().collect()
    }

    /// Its id in words.
    pub fn id(&self) -> String {
        format!("transaction [{}:{}]", self.key.0, self.key.1)
    }
}

/// A command to a coordinator.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Number of the record.
    pub n: u64,
    /// The broker that got it.
    pub broker: Option<BrokerId>,
    /// The command's name.
    pub command: &'static str,
}

/// What clients asked of a coordinator, connects included.
pub fn asked(wire: &Wire, coordinator: u64) -> Vec<Asked> {
    let of = |command: &Command| match command {
        Command::TcClientConnectRequest(c) => Some(c.tc_id),
        Command::NewTxn(c) => Some(c.tc_id()),
        Command::AddPartitionToTxn(c) => c.txnid_most_bits,
        Command::AddSubscriptionToTxn(c) => c.txnid_most_bits,
        Command::EndTxn(c) => c.txnid_most_bits,
        _ => None,
    };
    wire.from_clients()
        .filter(|(_, _, command)| of(command) == Some(coordinator))
        .map(|(record, _, command)| Asked { n: record.n, broker: record.broker, command: command.name() })
        .collect()
}
