//! Which consumer gets which entry, for each type of subscription.
//!
//! A dispatcher exists while a subscription has consumers. What it holds is derived (what is read, what waits to be
//! delivered again): when the last consumer leaves it is dropped, and the next one begins at the cursor.

mod entry_bucket;
mod key_shared;
mod selector;
mod shared;
mod single;

use std::collections::HashMap;

use stc_proto::{
    Frame,
    pulsar::{CommandMessage, MessageIdData, command_subscribe::SubType},
};

pub(super) use self::{key_shared::KeyShared, shared::Shared, single::Single};
use super::{
    consumer::Consumer,
    cursor::Cursor,
    error::TopicError,
    ledger::{Ledger, Stored},
};
use crate::core::{
    effects::Effects,
    ids::{ConsumerKey, Millis},
};

/// What a call on a subscription works with.
pub(super) struct Scope<'a> {
    pub(super) ledger: &'a Ledger,
    /// The partition that message ids name; -1 on a topic that is no partition.
    pub(super) partition: i32,
    /// As in the topic's configuration.
    pub(super) end_is_read_once: bool,
    pub(super) now: Millis,
    pub(super) effects: &'a mut Effects,
}

/// How often entries were given back by a consumer, if they were.
pub(super) type Redeliveries = HashMap<u64, u32>;

#[derive(Debug)]
pub(super) enum Dispatcher {
    Single(Single),
    Shared(Shared),
    KeyShared(KeyShared),
}

impl Dispatcher {
    /// The dispatcher that the first consumer of a subscription asks for.
    pub(super) fn new(first: &Consumer, cursor: &Cursor) -> Self {
        let read = cursor.first_unacked();
        match first.kind {
            SubType::Exclusive => Dispatcher::Single(Single::new(false, read)),
            SubType::Failover => Dispatcher::Single(Single::new(true, read)),
            SubType::Shared => Dispatcher::Shared(Shared::new(read)),
            SubType::KeyShared => Dispatcher::KeyShared(KeyShared::new(first.key_shared.as_ref(), read)),
        }
    }

    /// Takes in a consumer, which is not in `others` yet.
    pub(super) fn join(&mut self, new: &Consumer, others: &[Consumer]) -> Result<(), TopicError> {
        match self {
            Dispatcher::Single(single) => single.check(others),
            Dispatcher::Shared(_) => Ok(()),
            Dispatcher::KeyShared(key_shared) => key_shared.join(new, others),
        }
    }

    /// Forgets a consumer. Its entries were settled and are waiting again.
    pub(super) fn leave(&mut self, key: ConsumerKey) {
        if let Dispatcher::KeyShared(key_shared) = self {
            key_shared.leave(key);
        }
    }

    /// A delivered entry is no longer with its consumer: acknowledged, or given back.
    pub(super) fn settled(&mut self, entry: u64, owner: ConsumerKey, ledger: &Ledger) {
        if let (Dispatcher::KeyShared(key_shared), Some(stored)) = (self, ledger.get(entry)) {
            key_shared.settled(stored, owner);
        }
    }

    /// An entry is to be delivered again.
    pub(super) fn again(&mut self, entry: u64, ledger: &Ledger) {
        match self {
            Dispatcher::Single(_) => {}
            Dispatcher::Shared(shared) => shared.again(entry),
            Dispatcher::KeyShared(key_shared) => {
                if let Some(stored) = ledger.get(entry) {
                    key_shared.queue(entry, stored);
                }
            }
        }
    }

    /// An entry that waits for delivery was acknowledged.
    pub(super) fn forget(&mut self, entry: u64, ledger: &Ledger) {
        let Some(stored) = ledger.get(entry) else { return };
        match self {
            Dispatcher::Single(_) => {}
            Dispatcher::Shared(shared) => shared.forget(entry, stored),
            Dispatcher::KeyShared(key_shared) => key_shared.forget(entry, stored),
        }
    }

    /// Everything below `read` was acknowledged: nothing waits, and nothing is with a consumer.
    pub(super) fn clear(&mut self, read: u64) {
        match self {
            Dispatcher::Single(_) => {}
            Dispatcher::Shared(shared) => shared.clear(read),
            Dispatcher::KeyShared(key_shared) => key_shared.clear(read),
        }
    }

    /// Delivers what can be delivered.
    pub(super) fn dispatch(
        &mut self,
        consumers: &mut [Consumer],
        cursor: &Cursor,
        redeliveries: &Redeliveries,
        scope: &mut Scope<'_>,
    ) {
        match self {
            Dispatcher::Single(single) => single.dispatch(consumers, cursor, scope),
            Dispatcher::Shared(shared) => shared.dispatch(consumers, cursor, redeliveries, scope),
            Dispatcher::KeyShared(key_shared) => key_shared.dispatch(consumers, cursor, redeliveries, scope),
        }
    }

    /// When the next delayed entry becomes due.
    pub(super) fn next_deadline(&self) -> Option<Millis> {
        match self {
            Dispatcher::Single(_) => None,
            Dispatcher::Shared(shared) => shared.next_deadline(),
            Dispatcher::KeyShared(key_shared) => key_shared.next_deadline(),
        }
    }
}

/// Sends one entry and takes the permits for it: one for each message that is not acknowledged. Returns how many.
fn deliver(
    scope: &mut Scope<'_>,
    cursor: &Cursor,
    consumer: &mut Consumer,
    entry: u64,
    stored: &Stored,
    redeliveries: u32,
) -> u32 {
    let partial = cursor.partial(entry, stored.messages);
    let messages = partial.as_ref().map_or(stored.messages, |set| set.unacked());
    consumer.permits -= i64::from(messages);
    let single = matches!(consumer.kind, SubType::Exclusive | SubType::Failover);
    let command = CommandMessage {
        consumer_id: consumer.key.id,
        message_id: MessageIdData {
            ledger_id: scope.ledger.id(),
            entry_id: entry,
            partition: Some(scope.partition),
            ..Default::default()
        },
        redelivery_count: (redeliveries > 0).then_some(redeliveries),
        ack_set: partial.map_or(Vec::new(), |set| set.to_wire()),
        consumer_epoch: consumer.epoch.filter(|_| single),
    };
    scope.effects.send(consumer.key.conn, Frame::with_payload(command, stored.bytes.clone()));
    messages
}
