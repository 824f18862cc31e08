//! The acknowledgements in transactions that a consumer's task carries out for its state machine.

use std::{collections::BTreeMap, sync::Arc};

use stc_proto::pulsar::{CommandAck, MessageIdData, command_ack::AckType};
use tokio::task::JoinSet;

use super::{Actor, Done, Kind};
use crate::{
    core::{
        consumer::Core,
        deviant::Deviant,
        error::Error,
        transaction::{Part, TxnId, acks::Effect},
    },
    transaction::{Operation, Txn},
};

/// What a transaction's acknowledgement waits for.
#[derive(Debug)]
pub(crate) enum Step {
    Enlisted { ticket: u64, result: Result<(), Error> },
    Answered { ticket: u64, result: Result<(), Error> },
    Ended { txn: TxnId, committed: bool },
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// The calls without a result, by their numbers.
    calls: BTreeMap<u64, (Operation, Done)>,
    next: u64,
    steps: JoinSet<Step>,
}

impl Desk {
    /// Takes a call; gives its number and its transaction.
    pub(crate) fn begin(&mut self, operation: Operation, done: Done) -> u64 {
        let group = self.next;
        self.next += 1;
        self.calls.insert(group, (operation, done));
        group
    }

    /// The transaction of some call that is under way.
    fn txn(&self, id: TxnId) -> Option<Arc<Txn>> {
        let operations = self.calls.values().filter_map(|(operation, _)| operation.txn());
        operations.filter(|txn| txn.id() == id).map(Arc::clone).next()
    }

    /// The next step that is done.
    pub(crate) async fn next(&mut self) -> Option<Step> {
        self.steps.join_next().await.and_then(Result::ok)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn settle(&mut self, group: u64, result: Result<(), Error>) {
        if let Some((operation, done)) = self.calls.remove(&group) {
            operation.done(result.clone());
            let _ = done.send(result);
        }
    }
}

impl<K: Kind> Actor<K> {
    /// A step of a transaction's acknowledgement is done.
    pub(super) fn transaction_step(&mut self, step: Step) {
        let now = self.client.clocks.now();
        match step {
            Step::Enlisted { ticket, result } => self.core.enlisted(ticket, result, now),
            Step::Answered { ticket, result } => self.core.txn_ack_answered(ticket, result, now),
            Step::Ended { txn, committed } => self.core.transaction_ended(txn, committed, now),
        }
    }

    pub(super) fn carry_out_transaction(&mut self, effect: Effect, subscription: &str) {
        match effect {
            Effect::Follow(id) => {
                if let Some(txn) = self.desk.txn(id) {
                    self.desk
                        .steps
                        .spawn(async move { Step::Ended { txn: id, committed: txn.outcome().await } });
                }
            }
            Effect::Enlist { ticket, txn, topic } => {
                let txn = self.desk.txn(txn);
                let part = Part::Subscription { topic, subscription: subscription.to_owned() };
                self.desk.steps.spawn(async move {
                    let result = match txn {
                        Some(txn) => txn.enlist(part).await,
                        None => Err(Error::closed("transaction")),
                    };
                    Step::Enlisted { ticket, result }
                });
            }
            Effect::Acknowledge { ticket, txn, segment, ids, cumulative } => {
                self.acknowledge_in(ticket, txn, segment, ids, cumulative);
            }
            Effect::Settle { group, result } => self.desk.settle(group, result),
        }
    }

    fn acknowledge_in(
        &mut self,
        ticket: u64,
        txn: TxnId,
        segment: u64,
        ids: Vec<MessageIdData>,
        cumulative: bool,
    ) {
        let ack_type = if cumulative { AckType::Cumulative } else { AckType::Individual };
        let deviance = self.client.deviance;
        let command = |within: bool, ids| {
            move |consumer_id, request_id| CommandAck {
                consumer_id,
                ack_type: ack_type as i32,
                message_id: ids,
                txnid_least_bits: within.then_some(txn.number),
                txnid_most_bits: within.then_some(txn.coordinator),
                request_id: Some(request_id),
                ..Default::default()
            }
        };
        let again = ids.clone();
        let within = !deviance.is(Deviant::AcksOutsideTransaction);
        let answer = self.attachments.begin(segment, command(within, ids));
        if deviance.is(Deviant::AcksAtOnce) {
            let _ = self.attachments.begin(segment, command(false, again));
        }
        let limit = self.client.operation_timeout;
        self.desk.steps.spawn(async move {
            let result = match answer {
                Ok(answer) => answer.wait(Some(limit)).await.map(drop),
                Err(error) => Err(error),
            };
            Step::Answered { ticket, result }
        });
    }
}
