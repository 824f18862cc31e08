//! Transactions: the commands for coordinators, the time-outs, and carrying out what was decided (wire-protocol §8.2).

use stc_proto::{Command, TopicName, pulsar::*};

use super::{Cluster, flow::Due};
use crate::core::{
    coordinator::{Part, TxnError, TxnState, Waiting},
    ids::{ConnId, Millis, TxnId},
    journal::{Direction, Event},
};

impl Cluster {
    /// NEW_TXN. A time to live of 0 means none.
    pub(super) fn new_txn(&mut self, conn: ConnId, command: CommandNewTxn, now: Millis) {
        let id = command.tc_id();
        let deadline =
            Some(command.txn_ttl_millis()).filter(|ttl| *ttl > 0).map(|ttl| now.saturating_add(ttl));
        let Some(coordinator) = self.led_coordinator(conn, id) else {
            return self.refuse_not_leader(conn, &command.into(), id);
        };
        let txn = coordinator.open(deadline);
        if let Some(at) = deadline {
            self.agenda.add(at, Due::TxnTimeout(id));
        }
        self.log_txn(txn, "open", String::new(), now);
        self.effects.send(
            conn,
            CommandNewTxnResponse {
                request_id: command.request_id,
                txnid_least_bits: Some(txn.number),
                txnid_most_bits: Some(txn.coordinator),
                ..Default::default()
            },
        );
    }

    /// ADD_PARTITION_TO_TXN.
    pub(super) fn add_partitions(&mut self, conn: ConnId, command: CommandAddPartitionToTxn, now: Millis) {
        let txn = TxnId { coordinator: command.txnid_most_bits(), number: command.txnid_least_bits() };
        let part = |name: &String| Ok(Part { topic: parse(name)?, subscription: None });
        let parts = command.partitions.iter().map(part).collect();
        let answer = CommandAddPartitionToTxnResponse {
            request_id: command.request_id,
            txnid_least_bits: command.txnid_least_bits,
            txnid_most_bits: command.txnid_most_bits,
            ..Default::default()
        };
        self.add_parts(conn, txn, parts, command.into(), answer.into(), now);
    }

    /// ADD_SUBSCRIPTION_TO_TXN.
    pub(super) fn add_subscriptions(
        &mut self,
        conn: ConnId,
        command: CommandAddSubscriptionToTxn,
        now: Millis,
    ) {
        let txn = TxnId { coordinator: command.txnid_most_bits(), number: command.txnid_least_bits() };
        let part = |s: &Subscription| {
            Ok(Part { topic: parse(&s.topic)?, subscription: Some(s.subscription.clone()) })
        };
        let parts = command.subscription.iter().map(part).collect();
        let answer = CommandAddSubscriptionToTxnResponse {
            request_id: command.request_id,
            txnid_least_bits: command.txnid_least_bits,
            txnid_most_bits: command.txnid_most_bits,
            ..Default::default()
        };
        self.add_parts(conn, txn, parts, command.into(), answer.into(), now);
    }

    fn add_parts(
        &mut self,
        conn: ConnId,
        txn: TxnId,
        parts: Result<Vec<Part>, String>,
        command: Command,
        answer: Command,
        now: Millis,
    ) {
        let parts = match parts {
            Ok(parts) => parts,
            Err(message) => return self.refuse(conn, &command, ServerError::InvalidTopicName, &message),
        };
        let Some(coordinator) = self.led_coordinator(conn, txn.coordinator) else {
            return self.refuse_not_leader(conn, &command, txn.coordinator);
        };
        match coordinator.add(txn, parts.clone()) {
            Ok(()) => {
                for part in parts {
                    self.log_txn(txn, "add", part.to_string(), now);
                }
                self.effects.send(conn, answer);
            }
            Err(error) => self.refuse(conn, &command, code(&error), &error.to_string()),
        }
    }

    /// END_TXN. Answered once everything that the transaction touched was told; a repeat gets the same answer.
    pub(super) fn end_txn(&mut self, conn: ConnId, command: CommandEndTxn, now: Millis) {
        let txn = TxnId { coordinator: command.txnid_most_bits(), number: command.txnid_least_bits() };
        let commit = command.txn_action() == TxnAction::Commit;
        let waiting = Waiting { conn, request_id: command.request_id };
        let Some(coordinator) = self.led_coordinator(conn, txn.coordinator) else {
            return self.refuse_not_leader(conn, &command.into(), txn.coordinator);
        };
        match coordinator.end(txn, commit, waiting) {
            Ok(true) => self.answer_end(txn, waiting),
            Ok(false) => {
                self.log_txn(txn, if commit { "committing" } else { "aborting" }, String::new(), now);
                self.carry_out(txn, now);
            }
            Err(error) => self.refuse(conn, &command.into(), code(&error), &error.to_string()),
        }
    }

    fn answer_end(&mut self, txn: TxnId, waiting: Waiting) {
        self.effects.send(
            waiting.conn,
            CommandEndTxnResponse {
                request_id: waiting.request_id,
                txnid_least_bits: Some(txn.number),
                txnid_most_bits: Some(txn.coordinator),
                ..Default::default()
            },
        );
    }

    /// END_TXN_ON_PARTITION, which brokers send each other: ends what one topic has of a transaction.
    pub(super) fn end_on_partition(&mut self, conn: ConnId, command: CommandEndTxnOnPartition, now: Millis) {
        let txn = TxnId { coordinator: command.txnid_most_bits(), number: command.txnid_least_bits() };
        let commit = command.txn_action() == TxnAction::Commit;
        let part = parse(command.topic()).map(|topic| Part { topic, subscription: None });
        let answer = CommandEndTxnOnPartitionResponse {
            request_id: command.request_id,
            txnid_least_bits: command.txnid_least_bits,
            txnid_most_bits: command.txnid_most_bits,
            ..Default::default()
        };
        self.end_part_for(conn, txn, commit, part, command.into(), answer.into(), now);
    }

    /// END_TXN_ON_SUBSCRIPTION, which brokers send each other: ends what one subscription has of a transaction.
    pub(super) fn end_on_subscription(
        &mut self,
        conn: ConnId,
        command: CommandEndTxnOnSubscription,
        now: Millis,
    ) {
        let txn = TxnId { coordinator: command.txnid_most_bits(), number: command.txnid_least_bits() };
        let commit = command.txn_action() == TxnAction::Commit;
        let subscription = command.subscription.clone().unwrap_or_default();
        let part = parse(&subscription.topic)
            .map(|topic| Part { topic, subscription: Some(subscription.subscription) });
        let answer = CommandEndTxnOnSubscriptionResponse {
            request_id: command.request_id,
            txnid_least_bits: command.txnid_least_bits,
            txnid_most_bits: command.txnid_most_bits,
            ..Default::default()
        };
        self.end_part_for(conn, txn, commit, part, command.into(), answer.into(), now);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "two commands with one way through, each with its own answer"
    )]
    fn end_part_for(
        &mut self,
        conn: ConnId,
        txn: TxnId,
        commit: bool,
        part: Result<Part, String>,
        command: Command,
        answer: Command,
        now: Millis,
    ) {
        let broker = self.conns.get(&conn).map(|c| c.broker);
        let part = match part {
            Ok(part) => part,
            Err(message) => return self.refuse(conn, &command, ServerError::InvalidTopicName, &message),
        };
        if self.owner(&part.topic) != broker {
            let message = format!("{} is not served by this broker", part.topic);
            return self.refuse(conn, &command, ServerError::ServiceNotReady, &message);
        }
        self.end_part(txn, commit, &part, now);
        self.effects.send(conn, answer);
    }

    // ---- Carrying out ----

    /// The time of some transaction of a coordinator is over. Without a leader nobody notices; the next one does.
    pub(super) fn time_out_transactions(&mut self, coordinator: u64, now: Millis) {
        let Some(led) = self.coordinator_mut(coordinator).filter(|c| c.leader.is_some()) else { return };
        let overdue = led.overdue(now);
        overdue.iter().for_each(|txn| led.time_out(*txn));
        for txn in overdue {
            self.log_txn(txn, "timeout", String::new(), now);
            self.carry_out(txn, now);
        }
    }

    /// Goes on with everything that waits: for a leader, or for the owner of a topic.
    pub(super) fn resume_transactions(&mut self, now: Millis) {
        for id in (0..).take(self.coordinators.len()) {
            self.time_out_transactions(id, now);
            let unfinished = self.coordinator(id).map(|c| c.unfinished()).unwrap_or_default();
            for txn in unfinished {
                self.carry_out(txn, now);
            }
        }
    }

    /// Tells every topic and subscription of an ending transaction that is served now, and answers when all were told.
    fn carry_out(&mut self, txn: TxnId, now: Millis) {
        if self.ends_held {
            return;
        }
        let led = self.coordinator(txn.coordinator).filter(|c| c.leader.is_some());
        let Some(step) = led.and_then(|c| c.step(txn)) else { return };
        for part in &step.parts {
            // A topic that was deleted has nothing to be told.
            if self.stored.contains_key(&part.topic) {
                if self.owner(&part.topic).is_none() {
                    continue;
                }
                self.end_part(txn, step.commit, part, now);
            }
            if let Some(coordinator) = self.coordinator_mut(txn.coordinator) {
                coordinator.told(txn, part);
            }
        }
        let finished = self.coordinator_mut(txn.coordinator).and_then(|c| c.finish(txn));
        let Some((state, waiting)) = finished else { return };
        let name = match state {
            TxnState::Committed => "committed",
            TxnState::TimedOut => "timed-out",
            _ => "aborted",
        };
        self.log_txn(txn, name, String::new(), now);
        self.forget_strays(txn, now);
        for waiting in waiting {
            self.answer_end(txn, waiting);
        }
    }

    fn end_part(&mut self, txn: TxnId, commit: bool, part: &Part, now: Millis) {
        let change = if commit { "commit" } else { "abort" };
        self.log_txn(txn, change, part.to_string(), now);
        self.on_topic(&part.topic, |topic, effects| match &part.subscription {
            Some(subscription) => topic.end_acks(subscription, txn, commit, now, effects),
            None => topic.end_entries(txn, commit, now, effects),
        });
    }

    /// What a client never told the coordinator about is dropped, whatever became of the rest.
    fn forget_strays(&mut self, txn: TxnId, now: Millis) {
        let strays: Vec<TopicName> =
            self.stored.iter().filter(|(_, s)| s.topic.has_txn(txn)).map(|(name, _)| name.clone()).collect();
        for name in strays {
            self.log_txn(txn, "forget", name.to_string(), now);
            self.on_topic(&name, |topic, effects| topic.forget_txn(txn, now, effects));
        }
    }

    /// Why nothing may be done in a transaction any more; `None` while it is open.
    pub(super) fn not_open(&self, txn: TxnId) -> Option<TxnError> {
        match self.coordinator(txn.coordinator).and_then(|c| c.state(txn)) {
            Some(TxnState::Open) => None,
            Some(state) => Some(TxnError::State { txn, state, expected: "[OPEN]" }),
            None => Some(TxnError::NotFound(txn)),
        }
    }

    fn log_txn(&mut self, txn: TxnId, change: &'static str, detail: String, now: Millis) {
        let leader = self.coordinator_leader(txn.coordinator);
        self.journal.append(now, leader, None, Direction::Internal, Event::Txn { txn, change, detail });
    }
}

fn parse(name: &str) -> Result<TopicName, String> {
    TopicName::parse(name).map_err(|error| error.to_string())
}

/// The code that a refusal has on the wire.
pub(super) fn code(error: &TxnError) -> ServerError {
    match error {
        TxnError::NotFound(_) => ServerError::TransactionNotFound,
        TxnError::State { .. } => ServerError::InvalidTxnStatus,
    }
}
