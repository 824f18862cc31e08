//! All or nothing, read from the journal alone (client-api §6): it knows neither what the client reported nor what the
//! cluster thinks of a transaction, only the frames.
//!
//! A transaction *was committed* or *aborted* when a coordinator answered such an END_TXN with success. Without such an
//! answer its outcome is open: it may show as a whole or not at all. Every subscription that exists from the beginning and is
//! read to the end counts as a reader, so whoever asks has to see to that.

use std::collections::{BTreeMap, BTreeSet};

use sim_broker::core::ids::ConnId;
use sim_broker::core::journal::{Direction, Record};
use stc_proto::pulsar::{TxnAction, command_ack::AckType};
use stc_proto::{Command, Entry};

/// Coordinator and number.
type TxnKey = (u64, u64);

/// Topic, ledger, entry.
type EntryKey = (String, u64, u64);

/// An acknowledged entry, and the subscription.
type AckKey = (EntryKey, String);

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// How many transactions the journal shows.
    pub transactions: usize,
    /// What contradicts all or nothing, in words.
    pub violations: Vec<String>,
}

#[derive(Debug, Default)]
struct Txn {
    /// Stored entries, by receipt.
    entries: BTreeSet<EntryKey>,
    /// Accepted acknowledgements.
    acks: BTreeSet<AckKey>,
    /// When a commit was first asked for.
    commit_asked: Option<u64>,
    committed: Option<u64>,
    aborted: Option<u64>,
}

/// A MESSAGE.
#[derive(Debug)]
struct Delivery {
    n: u64,
    entry: EntryKey,
    subscription: String,
    txn: Option<TxnKey>,
}

#[derive(Debug, Default)]
struct Reading {
    txns: BTreeMap<TxnKey, Txn>,
    deliveries: Vec<Delivery>,
    /// Topic of each producer.
    producers: BTreeMap<(ConnId, u64), String>,
    /// Topic and subscription of each consumer.
    consumers: BTreeMap<(ConnId, u64), (String, String)>,
    /// SENDs without a receipt.
    sends: BTreeMap<(ConnId, u64, u64), TxnKey>,
    /// ACKs without an answer.
    acks: BTreeMap<(ConnId, u64), (TxnKey, Vec<AckKey>)>,
    /// END_TXNs without an answer.
    ends: BTreeMap<(ConnId, u64), (TxnKey, bool)>,
    /// Plain acknowledgements.
    plain: BTreeSet<AckKey>,
    /// Cumulative acknowledgements of all kinds, each with its transaction.
    cumulative: Vec<(AckKey, Option<TxnKey>)>,
    /// The topics that each subscription reads, by their names without segments.
    subscriptions: BTreeMap<String, BTreeSet<String>>,
}

/// Everything in these records that contradicts all or nothing.
pub fn violations(records: &[Record]) -> Found {
    let mut reading = Reading::default();
    for record in records {
        if let (Some(conn), Some(frame)) = (record.conn, record.frame()) {
            match record.direction {
                Direction::ToBroker => reading.client_says(record, conn, &frame.command),
                Direction::ToClient => reading.broker_says(record, conn, &frame.command),
                Direction::Internal => {}
            }
        }
    }
    reading.judge()
}

/// A segment's topic without the segment; any other topic as it is.
fn parent(topic: &str) -> String {
    stc_proto::SegmentName::parse(topic).map_or_else(|_| topic.to_owned(), |name| name.topic.to_string())
}

fn key(most: Option<u64>, least: Option<u64>) -> Option<TxnKey> {
    Some((most?, least?))
}

impl Reading {
    fn client_says(&mut self, record: &Record, conn: ConnId, command: &Command) {
        match command {
            Command::Producer(c) => {
                self.producers.insert((conn, c.producer_id), c.topic.clone());
            }
            Command::Subscribe(c) => {
                self.consumers.insert((conn, c.consumer_id), (c.topic.clone(), c.subscription.clone()));
                self.subscriptions.entry(c.subscription.clone()).or_default().insert(parent(&c.topic));
            }
            Command::Send(c) => {
                if let Some(txn) = key(c.txnid_most_bits, c.txnid_least_bits) {
                    self.txns.entry(txn).or_default();
                    self.sends.insert((conn, c.producer_id, c.sequence_id), txn);
                }
            }
            Command::Ack(c) => {
                let Some((topic, subscription)) = self.consumers.get(&(conn, c.consumer_id)) else { return };
                let whole = c.message_id.iter().filter(|id| id.ack_set.is_empty());
                let entry = |id: &stc_proto::pulsar::MessageIdData| {
                    ((topic.clone(), id.ledger_id, id.entry_id), subscription.clone())
                };
                let entries: Vec<_> = whole.map(entry).collect();
                let txn = key(c.txnid_most_bits, c.txnid_least_bits);
                if c.ack_type() == AckType::Cumulative {
                    self.cumulative.extend(entries.iter().map(|ack| (ack.clone(), txn)));
                }
                match (txn, c.request_id) {
                    (Some(txn), Some(request)) => {
                        self.txns.entry(txn).or_default();
                        self.acks.insert((conn, request), (txn, entries));
                    }
                    _ => self.plain.extend(entries),
                }
            }
            Command::EndTxn(c) => {
                if let Some(txn) = key(c.txnid_most_bits, c.txnid_least_bits) {
                    let commit = c.txn_action() == TxnAction::Commit;
                    if commit {
                        self.txns.entry(txn).or_default().commit_asked.get_or_insert(record.n);
                    }
                    self.ends.insert((conn, c.request_id), (txn, commit));
                }
            }
            _ => {}
        }
    }

    fn broker_says(&mut self, record: &Record, conn: ConnId, command: &Command) {
        match command {
            Command::SendReceipt(c) => {
                let txn = self.sends.remove(&(conn, c.producer_id, c.sequence_id));
                let topic = self.producers.get(&(conn, c.producer_id));
                if let (Some(txn), Some(topic), Some(id)) = (txn, topic, &c.message_id) {
                    let entry = (topic.clone(), id.ledger_id, id.entry_id);
                    self.txns.entry(txn).or_default().entries.insert(entry);
                }
            }
            Command::AckResponse(c) => {
                let asked = c.request_id.and_then(|request| self.acks.remove(&(conn, request)));
                if let (Some((txn, entries)), None) = (asked, c.error) {
                    self.txns.entry(txn).or_default().acks.extend(entries);
                }
            }
            Command::EndTxnResponse(c) => {
                if let (Some((txn, commit)), None) = (self.ends.remove(&(conn, c.request_id)), c.error) {
                    let txn = self.txns.entry(txn).or_default();
                    let end = if commit { &mut txn.committed } else { &mut txn.aborted };
                    end.get_or_insert(record.n);
                }
            }
            Command::Message(c) => {
                let Some((topic, subscription)) = self.consumers.get(&(conn, c.consumer_id)) else { return };
                let payload = record.frame().and_then(|frame| frame.payload.clone());
                let metadata = payload.and_then(|bytes| Entry::parse(bytes).ok()).map(|entry| entry.metadata);
                self.deliveries.push(Delivery {
                    n: record.n,
                    entry: (topic.clone(), c.message_id.ledger_id, c.message_id.entry_id),
                    subscription: subscription.clone(),
                    txn: metadata.and_then(|m| key(m.txnid_most_bits, m.txnid_least_bits)),
                });
            }
            _ => {}
        }
    }

    fn judge(self) -> Found {
        let mut violations = Vec::new();
        for (key, txn) in &self.txns {
            let name = format!("transaction [{}:{}]", key.0, key.1);
            if let (Some(_), Some(_)) = (txn.committed, txn.aborted) {
                violations.push(format!("{name} was committed and aborted"));
            }
            self.judge_messages(*key, txn, &name, &mut violations);
            for ack in &txn.acks {
                violations.extend(self.judge_ack(*key, txn, ack, &name));
            }
        }
        Found { transactions: self.txns.len(), violations }
    }

    fn judge_messages(&self, key: TxnKey, txn: &Txn, name: &str, violations: &mut Vec<String>) {
        let of = |d: &&Delivery| d.txn == Some(key) || txn.entries.contains(&d.entry);
        let shown: Vec<&Delivery> = self.deliveries.iter().filter(of).collect();
        for delivery in &shown {
            if txn.commit_asked.is_none_or(|asked| delivery.n < asked) {
                violations.push(format!("{:?} of {name} was delivered before a commit", delivery.entry));
            }
        }
        if txn.aborted.is_some() && !shown.is_empty() {
            violations
                .push(format!("{} messages of {name} were delivered though it was aborted", shown.len()));
        }
        for (subscription, topics) in &self.subscriptions {
            let expected: BTreeSet<&EntryKey> =
                txn.entries.iter().filter(|(topic, _, _)| topics.contains(&parent(topic))).collect();
            let given = shown.iter().filter(|d| d.subscription == *subscription).map(|d| &d.entry);
            let seen: BTreeSet<&EntryKey> = given.filter(|entry| expected.contains(entry)).collect();
            if seen.len() < expected.len() && (txn.committed.is_some() || !seen.is_empty()) {
                violations.push(format!(
                    "subscription {subscription:?} was given {} of the {} entries of {name}",
                    seen.len(),
                    expected.len()
                ));
            }
        }
    }

    fn judge_ack(&self, key: TxnKey, txn: &Txn, ack: &AckKey, name: &str) -> Option<String> {
        let (entry, subscription) = ack;
        let came = || self.deliveries.iter().filter(|d| d.entry == *entry && d.subscription == *subscription);
        if txn.committed.is_some_and(|end| came().any(|d| d.n > end)) {
            return Some(format!("{entry:?}, acknowledged in {name}, came after its commit"));
        }
        // Somebody else may have acknowledged it before it could come again.
        let elsewhere = self.txns.iter().any(|(other, txn)| *other != key && txn.acks.contains(ack));
        let behind = |later: &AckKey| later.1 == *subscription && later.0.0 == entry.0 && later.0 >= *entry;
        let within = self.cumulative.iter().any(|(later, other)| *other != Some(key) && behind(later));
        let acknowledged = elsewhere || within || self.plain.contains(ack);
        let lost = txn.aborted.is_some() && !acknowledged && came().count() < 2;
        lost.then(|| format!("{entry:?}, acknowledged in {name}, never came again after its abort"))
    }
}
