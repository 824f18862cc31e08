//! One subscription: its cursor, its consumers, and the dispatcher between them.

use stc_proto::pulsar::{
    CommandAck, CommandReachedEndOfTopic, CommandRedeliverUnacknowledgedMessages, KeySharedMeta,
    KeySharedMode, MessageIdData, ServerError, command_ack::AckType, command_subscribe::SubType,
};

use super::{
    consumer::Consumer,
    cursor::Cursor,
    dispatch::{Dispatcher, Redeliveries, Scope},
    error::TopicError,
    ledger::Ledger,
    stats::{Reader, SubscriptionStats},
    waiting::WaitingRead,
};
use crate::core::ids::{ConsumerKey, Millis, TxnId};

#[derive(Debug)]
pub(super) struct Subscription {
    name: String,
    pub(super) durable: bool,
    pub(super) cursor: Cursor,
    /// Entries below this one a reader had seen before it came.
    pub(super) seen: u64,
    /// Whether anything was acknowledged since it was made.
    acknowledges: bool,
    /// In the order in which they came.
    consumers: Vec<Consumer>,
    /// There while there are consumers.
    dispatcher: Option<Dispatcher>,
    redeliveries: Redeliveries,
    waiting: WaitingRead,
}

impl Subscription {
    pub(super) fn new(name: &str, durable: bool, first: u64, ledger: &Ledger) -> Self {
        Subscription {
            name: name.to_owned(),
            durable,
            cursor: Cursor::new(first, ledger),
            seen: 0,
            acknowledges: false,
            consumers: Vec::new(),
            dispatcher: None,
            redeliveries: Redeliveries::new(),
            waiting: WaitingRead::None,
        }
    }

    pub(super) fn consumers(&self) -> &[Consumer] {
        &self.consumers
    }

    pub(super) fn consumer(&self, key: ConsumerKey) -> Option<&Consumer> {
        self.consumers.iter().find(|consumer| consumer.key == key)
    }

    fn consumer_mut(&mut self, key: ConsumerKey) -> Option<&mut Consumer> {
        self.consumers.iter_mut().find(|consumer| consumer.key == key)
    }

    // ---- Consumers come and go ----

    /// Takes in a consumer. [`Subscription::joined`] is to follow once the client was answered.
    pub(super) fn join(&mut self, consumer: Consumer) -> Result<(), TopicError> {
        if let Some(first) = self.consumers.first() {
            check_same_kind(first, &consumer)?;
        }
        let dispatcher = self.dispatcher.get_or_insert_with(|| Dispatcher::new(&consumer, &self.cursor));
        if let Err(error) = dispatcher.join(&consumer, &self.consumers) {
            if self.consumers.is_empty() {
                self.dispatcher = None;
            }
            return Err(error);
        }
        self.consumers.push(consumer);
        Ok(())
    }

    /// Completes [`Subscription::join`].
    pub(super) fn joined(&mut self, scope: &mut Scope<'_>) {
        self.elect(true, scope);
        self.dispatch(scope);
    }

    /// Lets consumers go; what they did not acknowledge goes to others, without counting as a redelivery.
    pub(super) fn leave(&mut self, leaves: impl Fn(ConsumerKey) -> bool, scope: &mut Scope<'_>) {
        let (gone, stay): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.consumers).into_iter().partition(|consumer| leaves(consumer.key));
        self.consumers = stay;
        if self.consumers.is_empty() {
            self.dispatcher = None;
            self.redeliveries.clear();
            self.waiting.left();
            return;
        }
        if let Some(dispatcher) = &mut self.dispatcher {
            for consumer in &gone {
                for entry in consumer.pending.keys() {
                    dispatcher.settled(*entry, consumer.key, scope.ledger);
                    if !self.cursor.is_withheld(*entry, scope.ledger) {
                        dispatcher.again(*entry, scope.ledger);
                    }
                }
            }
            gone.iter().for_each(|consumer| dispatcher.leave(consumer.key));
        }
        if !gone.is_empty() {
            self.elect(false, scope);
            self.dispatch(scope);
        }
    }

    /// Takes out all consumers at once.
    pub(super) fn take_consumers(&mut self) -> Vec<Consumer> {
        self.dispatcher = None;
        self.redeliveries.clear();
        self.waiting.left();
        std::mem::take(&mut self.consumers)
    }

    /// Another broker, or a new life of the same one, has the subscription now.
    pub(super) fn reopen(&mut self) {
        self.waiting = WaitingRead::None;
    }

    fn elect(&mut self, joined: bool, scope: &mut Scope<'_>) {
        if let Some(Dispatcher::Single(single)) = &mut self.dispatcher {
            single.elect(&self.consumers, joined, &self.cursor, scope);
        }
    }

    /// Whether UNSUBSCRIBE by this consumer may delete the subscription.
    pub(super) fn is_sole_consumer(&self, key: ConsumerKey) -> bool {
        matches!(self.consumers.as_slice(), [consumer] if consumer.key == key)
    }

    // ---- Delivery ----

    pub(super) fn flow(&mut self, key: ConsumerKey, permits: u32, scope: &mut Scope<'_>) {
        let Some(consumer) = self.consumer_mut(key) else { return };
        consumer.permits += i64::from(permits);
        self.dispatch(scope);
        if !(scope.end_is_read_once && matches!(self.dispatcher, Some(Dispatcher::Shared(_)))) {
            self.check_end(scope);
        }
    }

    pub(super) fn dispatch(&mut self, scope: &mut Scope<'_>) {
        if let Some(dispatcher) = &mut self.dispatcher {
            dispatcher.dispatch(&mut self.consumers, &self.cursor, &self.redeliveries, scope);
        }
        if self.finds_end(scope) {
            self.check_end(scope);
        }
    }

    /// Whether the read of a shared subscription finds the end now, where it does so once.
    fn finds_end(&mut self, scope: &Scope<'_>) -> bool {
        let (true, Some(Dispatcher::Shared(shared))) = (scope.end_is_read_once, &self.dispatcher) else {
            return false;
        };
        let asked = self.consumers.iter().any(|consumer| consumer.permits > 0);
        let at_end = asked && shared.at_end(&self.cursor, scope.ledger);
        self.waiting.looked(at_end, scope.ledger.terminated())
    }

    pub(super) fn next_deadline(&self) -> Option<Millis> {
        self.dispatcher.as_ref()?.next_deadline()
    }

    /// Tells consumers, once each, that nothing will come any more.
    pub(super) fn check_end(&mut self, scope: &mut Scope<'_>) {
        if scope.ledger.terminated() && self.cursor.backlog(scope.ledger) == 0 {
            for consumer in self.consumers.iter_mut().filter(|consumer| !consumer.told_end) {
                consumer.told_end = true;
                let command = CommandReachedEndOfTopic { consumer_id: consumer.key.id };
                scope.effects.send(consumer.key.conn, command);
            }
        }
    }

    // ---- Acknowledgement ----

    /// Takes an acknowledgement. Ids of entries that are not stored are passed over. Shared and Key_Shared ignore
    /// cumulative ones, as Pulsar does.
    pub(super) fn ack(&mut self, key: ConsumerKey, command: &CommandAck, scope: &mut Scope<'_>) {
        let Some(kind) = self.consumer(key).map(|consumer| consumer.kind) else { return };
        self.acknowledges = true;
        match (command.ack_type(), command.message_id.as_slice()) {
            (AckType::Individual, ids) => {
                for id in ids {
                    self.ack_one(key, id, scope.ledger);
                }
            }
            (AckType::Cumulative, [id]) if matches!(kind, SubType::Exclusive | SubType::Failover) => {
                if let Some(entry) = scope.ledger.known(id.ledger_id, id.entry_id) {
                    match id.ack_set.is_empty() {
                        true => self.cursor.ack_below(entry + 1),
                        false => {
                            self.cursor.ack_below(entry);
                            self.ack_one(key, id, scope.ledger);
                        }
                    }
                }
            }
            (AckType::Cumulative, _) => {}
        }
        // An acknowledgement may be what a lane waits for.
        if kind == SubType::KeyShared {
            self.dispatch(scope);
        }
        self.check_end(scope);
    }

    fn ack_one(&mut self, key: ConsumerKey, id: &MessageIdData, ledger: &Ledger) {
        if let Some(entry) = ledger.known(id.ledger_id, id.entry_id) {
            self.ack_entry(Some(key), entry, &id.ack_set, ledger);
        }
    }

    /// Acknowledges an entry, or of a batch what is not `left`. The consumer it comes from most likely has the entry.
    fn ack_entry(&mut self, key: Option<ConsumerKey>, entry: u64, left: &[i64], ledger: &Ledger) {
        if left.is_empty() {
            if self.cursor.ack(entry) {
                self.acked(key, entry, ledger);
            }
            return;
        }
        let messages = ledger.get(entry).map_or(1, |stored| stored.messages);
        let acked = self.cursor.ack_part(entry, messages, left);
        if acked.complete {
            self.acked(key, entry, ledger);
        } else if acked.messages > 0
            && let Some(owner) = holder(&mut self.consumers, key, entry)
        {
            owner.settle_part(entry, acked.messages);
        }
    }

    /// An entry became acknowledged as a whole: whoever has it, or whatever it waits for, is done with it.
    fn acked(&mut self, key: Option<ConsumerKey>, entry: u64, ledger: &Ledger) {
        self.redeliveries.remove(&entry);
        let Some(dispatcher) = &mut self.dispatcher else { return };
        if matches!(dispatcher, Dispatcher::Single(_)) {
            return;
        }
        match holder(&mut self.consumers, key, entry) {
            Some(consumer) => {
                consumer.settle(entry);
                dispatcher.settled(entry, consumer.key, ledger);
            }
            None => dispatcher.forget(entry, ledger),
        }
    }

    // ---- Acknowledgement in transactions ----

    /// Takes an acknowledgement that counts once its transaction is committed. All of it or nothing is taken.
    pub(super) fn ack_in(
        &mut self,
        txn: TxnId,
        key: ConsumerKey,
        command: &CommandAck,
        ledger: &Ledger,
    ) -> Result<(), TopicError> {
        let Some(kind) = self.consumer(key).map(|consumer| consumer.kind) else { return Ok(()) };
        let known = |id: &MessageIdData| Some((ledger.known(id.ledger_id, id.entry_id)?, left(id)));
        let entries: Vec<_> = command.message_id.iter().filter_map(known).collect();
        let messages = |entry: u64| ledger.get(entry).map_or(1, |stored| stored.messages);
        match (command.ack_type(), entries.as_slice()) {
            (AckType::Individual, entries) => {
                for (entry, left) in entries {
                    if self.cursor.has_acked(*entry, messages(*entry), left.as_deref())
                        || self.cursor.pending.conflicts(txn, *entry, messages(*entry), left)
                    {
                        return Err(conflict(txn, *entry));
                    }
                }
                for (entry, left) in entries {
                    self.cursor.pending.add(txn, *entry, left.clone());
                    self.withhold(*entry, ledger);
                }
                Ok(())
            }
            (AckType::Cumulative, [(entry, left)])
                if matches!(kind, SubType::Exclusive | SubType::Failover) =>
            {
                let taken =
                    !self.cursor.is_acked(*entry) && self.cursor.pending.add_up_to(txn, *entry, left.clone());
                if taken { Ok(()) } else { Err(conflict(txn, *entry)) }
            }
            (AckType::Cumulative, _) => {
                Err(TopicError::not_allowed("Cumulative acknowledgement needs one message and one consumer"))
            }
        }
    }

    /// An entry that nobody has is not to be delivered, for now.
    fn withhold(&mut self, entry: u64, ledger: &Ledger) {
        if self.cursor.is_withheld(entry, ledger)
            && !self.consumers.iter().any(|consumer| consumer.pending.contains_key(&entry))
            && let Some(dispatcher) = &mut self.dispatcher
        {
            dispatcher.forget(entry, ledger);
        }
    }

    /// A transaction ended: what it acknowledged is acknowledged now, or comes again. `false` when there was nothing.
    pub(super) fn end_acks(&mut self, txn: TxnId, commit: bool, scope: &mut Scope<'_>) -> bool {
        let Some(ended) = self.cursor.pending.end(txn) else { return false };
        if commit {
            self.acknowledges = true;
            if let Some((entry, left)) = ended.up_to {
                self.cursor.ack_below(if left.is_some() { entry } else { entry + 1 });
                if let Some(left) = left {
                    self.ack_entry(None, entry, &left, scope.ledger);
                }
            }
            for (entry, left) in ended.entries {
                self.ack_entry(None, entry, left.as_deref().unwrap_or_default(), scope.ledger);
            }
        } else if let Some(Dispatcher::Single(single)) = &mut self.dispatcher {
            single.rewind(&self.cursor);
        } else {
            for (entry, _) in ended.entries {
                self.give_back(entry, scope.ledger);
            }
        }
        self.dispatch(scope);
        self.check_end(scope);
        true
    }

    /// An entry whose acknowledgement was aborted comes again, and that counts as a redelivery.
    fn give_back(&mut self, entry: u64, ledger: &Ledger) {
        if self.cursor.is_acked(entry) {
            return;
        }
        *self.redeliveries.entry(entry).or_insert(0) += 1;
        let Some(dispatcher) = &mut self.dispatcher else { return };
        for consumer in &mut self.consumers {
            if consumer.settle(entry) {
                dispatcher.settled(entry, consumer.key, ledger);
            }
        }
        dispatcher.again(entry, ledger);
    }

    /// REDELIVER_UNACKNOWLEDGED_MESSAGES. Exclusive and Failover rewind, whatever ids are named; Shared and Key_Shared
    /// give back those of this consumer, or all of its own when none is named.
    pub(super) fn redeliver(
        &mut self,
        key: ConsumerKey,
        command: &CommandRedeliverUnacknowledgedMessages,
        scope: &mut Scope<'_>,
    ) {
        let Some(consumer) = self.consumers.iter_mut().find(|consumer| consumer.key == key) else { return };
        match &mut self.dispatcher {
            None => return,
            Some(Dispatcher::Single(single)) => {
                // A rewind that was asked for before a later one is over already.
                let stale =
                    command.consumer_epoch.is_some_and(|epoch| consumer.epoch.is_some_and(|e| epoch < e));
                if single.active() != Some(key) || stale {
                    return;
                }
                consumer.epoch = command.consumer_epoch.or(consumer.epoch);
                single.rewind(&self.cursor);
            }
            Some(dispatcher) => {
                let entries: Vec<u64> = match command.message_ids.as_slice() {
                    [] => consumer.pending.keys().copied().collect(),
                    ids => {
                        ids.iter().filter_map(|id| scope.ledger.known(id.ledger_id, id.entry_id)).collect()
                    }
                };
                for entry in entries {
                    if !self.cursor.is_withheld(entry, scope.ledger) && consumer.settle(entry) {
                        *self.redeliveries.entry(entry).or_insert(0) += 1;
                        dispatcher.settled(entry, key, scope.ledger);
                        dispatcher.again(entry, scope.ledger);
                    }
                }
            }
        }
        self.dispatch(scope);
    }

    /// Acknowledges everything that is stored.
    pub(super) fn skip_all(&mut self, scope: &mut Scope<'_>) {
        self.cursor.ack_below(scope.ledger.len());
        self.redeliveries.clear();
        for consumer in &mut self.consumers {
            consumer.pending.clear();
            consumer.unacked = 0;
        }
        if let Some(dispatcher) = &mut self.dispatcher {
            dispatcher.clear(scope.ledger.len());
        }
        self.check_end(scope);
    }

    // ---- What is there ----

    pub(super) fn drained(&self, ledger: &Ledger) -> bool {
        ledger.terminated() && self.cursor.backlog(ledger) == 0
    }

    pub(super) fn readers(&self, ledger: &Ledger) -> impl Iterator<Item = Reader> {
        let done = ledger.terminated() && self.cursor.next_unacked(self.seen) >= ledger.len();
        let read = match &self.dispatcher {
            Some(Dispatcher::Single(single)) => self.cursor.next_unacked(single.read()),
            _ => 0,
        };
        let delivered = ledger.terminated() && !self.acknowledges && read >= ledger.len();
        self.consumers.iter().map(move |c| Reader { key: c.key, name: c.name.clone(), done, delivered })
    }

    pub(super) fn stats(&self, ledger: &Ledger) -> SubscriptionStats {
        let consumers: Vec<_> = self.consumers.iter().map(Consumer::stats).collect();
        SubscriptionStats {
            name: self.name.clone(),
            kind: self.consumers.first().map(|consumer| consumer.kind),
            durable: self.durable,
            backlog: self.cursor.backlog(ledger),
            backlog_messages: self.cursor.unacked_messages(ledger, ledger.len()),
            unacked: consumers.iter().map(|consumer| consumer.unacked).sum(),
            consumers,
        }
    }
}

/// The consumer that an entry was delivered to: the one that acknowledges it, as a rule.
fn holder(consumers: &mut [Consumer], likely: Option<ConsumerKey>, entry: u64) -> Option<&mut Consumer> {
    let has = |consumer: &Consumer| consumer.pending.contains_key(&entry);
    let position = consumers.iter().position(|c| Some(c.key) == likely && has(c));
    let position = position.or_else(|| consumers.iter().position(has))?;
    consumers.get_mut(position)
}

/// What an acknowledgement leaves of a batch; `None` when it names the whole entry.
fn left(id: &MessageIdData) -> Option<Vec<i64>> {
    (!id.ack_set.is_empty()).then(|| id.ack_set.clone())
}

fn conflict(txn: TxnId, entry: u64) -> TopicError {
    let message =
        format!("{txn} acknowledges entry {entry}, which is acknowledged already or by another transaction");
    TopicError::new(ServerError::TransactionConflict, message)
}

/// Refuses a consumer whose type, or way of sharing keys, is not that of the ones that are connected.
fn check_same_kind(first: &Consumer, new: &Consumer) -> Result<(), TopicError> {
    let busy =
        |what: String| Err(TopicError::consumer_busy(format!("Subscription is of different type. {what}")));
    if first.kind != new.kind {
        let (active, new) = (first.kind.as_str_name(), new.kind.as_str_name());
        return busy(format!(
            "Active subscription type of '{active}' is different than the connecting consumer's type '{new}'."
        ));
    }
    if first.kind != SubType::KeyShared {
        return Ok(());
    }
    let mode =
        |c: &Consumer| c.key_shared.as_ref().map_or(KeySharedMode::AutoSplit, KeySharedMeta::key_shared_mode);
    if mode(first) != mode(new) {
        let (active, new) = (mode(first).as_str_name(), mode(new).as_str_name());
        return busy(format!(
            "Active subscription key_shared mode of '{active}' is different than the connecting consumer's key_shared \
             mode '{new}'."
        ));
    }
    let buckets = |c: &Consumer| c.key_shared.as_ref().is_some_and(KeySharedMeta::entry_bucket_dispatch);
    if buckets(first) != buckets(new) {
        let (active, new) = (buckets(first), buckets(new));
        return busy(format!(
            "Active subscription entry bucket dispatch '{active}' is different than the connecting consumer's '{new}'."
        ));
    }
    let loose = |c: &Consumer| c.key_shared.as_ref().is_some_and(KeySharedMeta::allow_out_of_order_delivery);
    match (loose(first), loose(new)) {
        (true, false) => busy(
            "Active subscription allows out of order delivery while the connecting consumer does not allow it.".into(),
        ),
        (false, true) => busy(
            "Active subscription does not allow out of order delivery while the connecting consumer allows it.".into(),
        ),
        _ => Ok(()),
    }
}
