//! Entries and acknowledgements of transactions.

use super::*;

fn txn(number: u64) -> TxnId {
    TxnId { coordinator: 2, number }
}

impl Rig {
    /// Stores a message in a transaction and ignores the receipt.
    fn store_in(&mut self, txn: TxnId, mut metadata: MessageMetadata) {
        self.store([]);
        self.sequence += 1;
        metadata.sequence_id = self.sequence;
        let command = CommandSend {
            sequence_id: self.sequence,
            txnid_most_bits: Some(txn.coordinator),
            txnid_least_bits: Some(txn.number),
            ..Default::default()
        };
        let entry = Entry::new(metadata, Bytes::from_static(b"payload"));
        let before: Vec<String> = self.effects.drain().map(|effect| line(&effect)).collect();
        assert!(before.is_empty(), "unread: {before:?}");
        self.send_raw(p(999, 0), command, entry.to_bytes());
        let lines: Vec<String> = self.effects.drain().map(|effect| line(&effect)).collect();
        assert!(lines.iter().all(|line| line.starts_with("999 RECEIPT")), "{lines:?}");
    }

    fn ack_in(&mut self, txn: TxnId, key: ConsumerKey, ack_type: AckType, ids: &[MessageIdData]) {
        let command = CommandAck {
            consumer_id: key.id,
            ack_type: ack_type as i32,
            message_id: ids.to_vec(),
            txnid_most_bits: Some(txn.coordinator),
            txnid_least_bits: Some(txn.number),
            request_id: Some(9),
            ..Default::default()
        };
        self.topic.ack(key, &command, self.now, &mut self.effects);
    }

    fn end_entries(&mut self, txn: TxnId, commit: bool) {
        assert!(self.topic.end_entries(txn, commit, self.now, &mut self.effects));
    }

    fn end_acks(&mut self, txn: TxnId, commit: bool) {
        assert!(self.topic.end_acks("s", txn, commit, self.now, &mut self.effects));
    }
}

const OK: &str = "1 ACK_RESPONSE Some(9) None";
const CONFLICT: &str = "1 ACK_RESPONSE Some(9) Some(TransactionConflict)";

#[test]
fn an_open_transaction_holds_back_what_was_stored_after_it_and_nothing_before() {
    for kind in [SubType::Exclusive, SubType::Shared, SubType::KeyShared] {
        let mut rig = Rig::new();
        rig.consumer(c(1, 0), kind, 10);
        rig.store([keyed("a")]);
        rig.expect(&["1 MESSAGE 0 0"]);
        rig.store_in(txn(1), keyed("b"));
        rig.store_in(txn(2), keyed("c"));
        rig.store([keyed("d")]);
        rig.expect(&[]);
        // The second is committed, and waits for the first.
        rig.end_entries(txn(2), true);
        rig.expect(&[]);
        rig.end_entries(txn(1), false);
        rig.expect(&["1 MESSAGE 0 2", "1 MESSAGE 0 3"]);
        rig.ack(c(1, 0), &[0, 2, 3]);
        assert_eq!(rig.backlog("s"), 0, "what was aborted is no backlog");
        assert!(!rig.topic.end_entries(txn(1), true, 0, &mut rig.effects), "a second end finds nothing");
    }
}

#[test]
fn a_sealed_topic_ends_when_its_last_transaction_does() {
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.store_in(txn(1), keyed("a"));
    rig.terminate();
    rig.expect(&["999 CLOSE_PRODUCER 0 -1"]);
    assert!(!rig.topic.drained("s"));
    rig.end_entries(txn(1), false);
    rig.expect(&["1 END 0"]);
    assert!(rig.topic.drained("s"));
}

#[test]
fn new_subscriptions_and_readers_never_see_what_was_aborted() {
    let mut rig = Rig::new();
    rig.store([keyed("a")]);
    rig.store_in(txn(1), keyed("b"));
    rig.end_entries(txn(1), false);
    rig.store([keyed("c")]);
    rig.store_in(txn(2), keyed("d"));
    rig.reader(c(1, 0), MessageIdData { ledger_id: u64::MAX, entry_id: u64::MAX, ..Default::default() });
    rig.flow(c(1, 0), 10);
    rig.expect(&["1 MESSAGE 0 0", "1 MESSAGE 0 2"]);
    rig.last_message_id(c(1, 0)).unwrap();
    rig.expect(&["1 LAST 2/-1 deleted=-1"]);
    rig.end_entries(txn(2), false);
    rig.last_message_id(c(1, 0)).unwrap();
    rig.expect(&["1 LAST 2/-1 deleted=-1"]);
}

#[test]
fn an_aborted_acknowledgement_comes_again_and_counts_as_a_redelivery() {
    for kind in [SubType::Shared, SubType::KeyShared] {
        let mut rig = Rig::new();
        rig.store([keyed("a"), keyed("a")]);
        rig.consumer(c(1, 0), kind, 10);
        rig.quiet();
        rig.ack_in(txn(1), c(1, 0), AckType::Individual, &[id(0)]);
        rig.expect(&[OK]);
        assert_eq!(rig.backlog("s"), 2);
        // Nobody gets it while the transaction is open: not when asked for again, nor when the consumer goes.
        rig.redeliver(c(1, 0), &[0], None);
        rig.expect(&[]);
        rig.end_acks(txn(1), false);
        rig.expect(&["1 MESSAGE 0 0 again=1"]);
        rig.ack_in(txn(2), c(1, 0), AckType::Individual, &[id(0)]);
        rig.disconnect(1);
        rig.quiet();
        rig.consumer(c(2, 0), kind, 10);
        rig.expect(&["2 MESSAGE 0 1"]);
        rig.end_acks(txn(2), true);
        rig.expect(&[]);
        assert_eq!(rig.backlog("s"), 1);
    }
}

#[test]
fn a_consumer_that_goes_leaves_its_pending_acknowledgements_to_their_transactions() {
    for (kind, commit) in [
        (SubType::Shared, true),
        (SubType::Shared, false),
        (SubType::KeyShared, true),
        (SubType::KeyShared, false),
    ] {
        let mut rig = Rig::new();
        rig.store([keyed("a")]);
        rig.consumer(c(1, 0), kind, 10);
        rig.quiet();
        rig.ack_in(txn(1), c(1, 0), AckType::Individual, &[id(0)]);
        rig.consumer(c(2, 0), kind, 10);
        rig.quiet();
        rig.close_consumer(c(1, 0));
        rig.quiet();
        rig.flow(c(2, 0), 1);
        rig.expect(&[]);
        rig.end_acks(txn(1), commit);
        rig.expect(if commit { &[] } else { &["2 MESSAGE 0 0 again=1"] });
        assert_eq!(rig.backlog("s"), u64::from(!commit));
    }
}

#[test]
fn a_key_waits_for_the_end_of_the_transaction_that_acknowledged_it() {
    let mut rig = Rig::new();
    rig.store([keyed("a")]);
    rig.consumer(c(1, 0), SubType::KeyShared, 10);
    rig.quiet();
    rig.ack_in(txn(1), c(1, 0), AckType::Individual, &[id(0)]);
    // Enough others that somebody else owns the key.
    for n in 2..12 {
        rig.consumer(c(n, n), SubType::KeyShared, 10);
    }
    rig.store([keyed("a")]);
    let lines: Vec<String> = rig.effects.drain().map(|effect| line(&effect)).collect();
    let moved = !lines.iter().any(|line| line.starts_with("1 MESSAGE"));
    assert!(moved, "the key stayed with its consumer, so that the test shows nothing: {lines:?}");
    assert!(!lines.iter().any(|line| line.contains("MESSAGE")), "{lines:?}");
    rig.end_acks(txn(1), true);
    let lines: Vec<String> = rig.effects.drain().map(|effect| line(&effect)).collect();
    assert!(lines.iter().any(|line| line.ends_with(" 1")), "{lines:?}");
}

#[test]
fn two_transactions_cannot_acknowledge_one_message() {
    let mut rig = Rig::new();
    rig.store([keyed("a"), batch(3), keyed("b")]);
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.ack(c(1, 0), &[2]);
    rig.quiet();
    rig.ack_in(txn(1), c(1, 0), AckType::Individual, &[id(0)]);
    rig.ack_in(txn(1), c(1, 0), AckType::Individual, &[part(1, 0b110)]);
    rig.ack_in(txn(1), c(1, 0), AckType::Individual, &[id(0)]);
    rig.ack_in(txn(2), c(1, 0), AckType::Individual, &[part(1, 0b101)]);
    rig.expect(&[OK, OK, OK, OK]);
    rig.ack_in(txn(2), c(1, 0), AckType::Individual, &[id(0)]);
    rig.ack_in(txn(2), c(1, 0), AckType::Individual, &[part(1, 0b010)]);
    rig.ack_in(txn(2), c(1, 0), AckType::Individual, &[id(2)]);
    rig.expect(&[CONFLICT, CONFLICT, CONFLICT]);
    rig.end_acks(txn(1), true);
    // Committed: nobody can acknowledge it any more.
    rig.ack_in(txn(2), c(1, 0), AckType::Individual, &[id(0)]);
    rig.ack_in(txn(2), c(1, 0), AckType::Individual, &[part(1, 0b010)]);
    rig.expect(&[CONFLICT, CONFLICT]);
    rig.end_acks(txn(2), true);
    rig.disconnect(1);
    rig.quiet();
    rig.consumer(c(2, 0), SubType::Shared, 10);
    rig.expect(&["2 MESSAGE 0 1 ack_set=[4]"]);
}

#[test]
fn a_cumulative_acknowledgement_counts_from_the_commit_on() {
    let mut rig = Rig::new();
    rig.store((0..4).map(|_| keyed("a")));
    rig.consumer(c(1, 0), SubType::Exclusive, 10);
    rig.quiet();
    rig.ack_in(txn(1), c(1, 0), AckType::Cumulative, &[id(1)]);
    rig.ack_in(txn(2), c(1, 0), AckType::Cumulative, &[id(2)]);
    rig.expect(&[OK, CONFLICT]);
    assert_eq!(rig.backlog("s"), 4);
    rig.end_acks(txn(1), false);
    rig.expect(&["1 MESSAGE 0 0", "1 MESSAGE 0 1", "1 MESSAGE 0 2", "1 MESSAGE 0 3"]);
    rig.ack_in(txn(2), c(1, 0), AckType::Cumulative, &[id(2)]);
    rig.disconnect(1);
    rig.quiet();
    // The next consumer is not given what an open transaction acknowledged.
    rig.consumer(c(2, 0), SubType::Exclusive, 10);
    rig.expect(&["2 MESSAGE 0 3"]);
    rig.end_acks(txn(2), true);
    rig.expect(&[]);
    assert_eq!(rig.backlog("s"), 1);
    rig.ack_in(txn(3), c(2, 0), AckType::Cumulative, &[id(1)]);
    rig.expect(&["2 ACK_RESPONSE Some(9) Some(TransactionConflict)"]);
}

#[test]
fn what_the_coordinator_was_never_told_about_is_dropped() {
    let mut rig = Rig::new();
    rig.store([keyed("a")]);
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.quiet();
    rig.ack_in(txn(1), c(1, 0), AckType::Individual, &[id(0)]);
    rig.quiet();
    rig.store_in(txn(1), keyed("b"));
    assert!(rig.topic.has_txn(txn(1)));
    assert!(rig.topic.forget_txn(txn(1), 0, &mut rig.effects));
    assert!(!rig.topic.has_txn(txn(1)));
    rig.expect(&["1 MESSAGE 0 0 again=1"]);
    rig.ack(c(1, 0), &[0]);
    assert_eq!(rig.backlog("s"), 0);
}
