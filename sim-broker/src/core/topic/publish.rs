//! SEND: checks an entry, stores it, answers, and hands it to the subscriptions.

use bytes::Bytes;
use stc_proto::{
    Entry,
    entry::EntryError,
    pulsar::{CommandSend, CommandSendError, CommandSendReceipt, MessageIdData, ServerError},
};

use super::Topic;
use crate::core::{
    effects::Effects,
    ids::{Millis, ProducerKey, TxnId},
};

impl Topic {
    /// SEND with the entry behind it. Answers SEND_RECEIPT, or SEND_ERROR with ChecksumError, NotAllowedError (too
    /// large) or TopicTerminatedError. In a transaction the entry is stored, and read once that is committed.
    ///
    /// A SEND for a producer that the broker closed a moment ago is ignored (TopicTerminatedError on a terminated
    /// topic); one for a producer that is unknown, was fenced or still waits closes the connection, and so does an
    /// entry that cannot be read.
    pub fn send(
        &mut self,
        key: ProducerKey,
        command: &CommandSend,
        entry: Bytes,
        now: Millis,
        effects: &mut Effects,
    ) {
        let fail = |error: ServerError, message: &str, effects: &mut Effects| {
            effects.send(
                key.conn,
                CommandSendError {
                    producer_id: command.producer_id,
                    sequence_id: command.sequence_id,
                    error: error as i32,
                    message: message.to_owned(),
                },
            );
        };
        let Some(producer) = self.producers.get(key) else {
            if !self.producers.was_closed(key) {
                effects.close(key.conn, format!("SEND for producer {}, which is not open", key.id));
            } else if self.ledger.terminated() {
                let message = "org.apache.bookkeeper.mledger.ManagedLedgerException$ManagedLedgerTerminatedException: \
                               Managed ledger was already terminated";
                fail(ServerError::TopicTerminatedError, message, effects);
            }
            return;
        };
        let parsed = match Entry::parse(entry.clone()) {
            Ok(parsed) => parsed,
            Err(EntryError::Checksum { .. }) => {
                return fail(ServerError::ChecksumError, "Checksum failed on the broker", effects);
            }
            Err(error) => return effects.close(key.conn, format!("SEND of producer {}: {error}", key.id)),
        };
        if parsed.payload.len() > self.config.max_message_size {
            return fail(ServerError::NotAllowedError, "Exceed maximum message size", effects);
        }
        let duplicate = self.config.deduplication
            && self.deduplication.is_duplicate(&producer.name, command, &parsed.metadata);
        let (ledger_id, entry_id) = if duplicate {
            (u64::MAX, u64::MAX)
        } else {
            let entry = self.ledger.append(entry, &parsed, now);
            if let Some(txn) = TxnId::of(command.txnid_most_bits, command.txnid_least_bits) {
                self.ledger.hold(txn, entry);
            }
            (self.ledger.id(), entry)
        };
        effects.send(
            key.conn,
            CommandSendReceipt {
                producer_id: command.producer_id,
                sequence_id: command.sequence_id,
                message_id: Some(MessageIdData { ledger_id, entry_id, ..Default::default() }),
                highest_sequence_id: Some(command.highest_sequence_id.unwrap_or(u64::MAX)),
            },
        );
        if !duplicate {
            self.dispatch_all(now, effects);
        }
    }
}
