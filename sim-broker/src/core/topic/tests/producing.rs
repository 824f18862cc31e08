//! Producers, access modes, SEND and deduplication.

use super::*;

fn mode(mode: ProducerAccessMode, name: &str) -> impl FnOnce(&mut CommandProducer) + use<> {
    let name = name.to_owned();
    move |command| {
        command.producer_access_mode = Some(mode as i32);
        command.producer_name = Some(name);
    }
}

#[test]
fn names_are_generated_and_unique() {
    let mut rig = Rig::new();
    rig.producer(p(1, 0), |_| {}).unwrap();
    rig.producer(p(1, 1), |_| {}).unwrap();
    rig.producer(p(2, 0), |command| command.producer_name = Some("mine".into())).unwrap();
    rig.expect(&[
        "1 PRODUCER_SUCCESS 1 standalone-0-0 last=-1",
        "1 PRODUCER_SUCCESS 2 standalone-0-1 last=-1",
        "2 PRODUCER_SUCCESS 3 mine last=-1",
    ]);
    let again = rig.producer(p(3, 0), |command| command.producer_name = Some("mine".into()));
    refused(again, ServerError::ProducerBusy, "'mine' is already connected");
}

#[test]
fn a_producer_comes_back_after_a_lost_connection() {
    let mut rig = Rig::new();
    rig.producer(p(1, 0), |command| command.producer_name = Some("mine".into())).unwrap();
    rig.disconnect(1);
    rig.producer(p(2, 0), |command| {
        command.producer_name = Some("mine".into());
        command.epoch = Some(1);
    })
    .unwrap();
    // The same command once more changes nothing; a newer attempt of the same client takes over.
    rig.producer(p(2, 0), |command| command.epoch = Some(1)).unwrap();
    rig.producer(p(2, 0), |command| {
        command.producer_name = Some("mine".into());
        command.epoch = Some(2);
    })
    .unwrap();
    rig.expect(&[
        "1 PRODUCER_SUCCESS 1 mine last=-1",
        "2 PRODUCER_SUCCESS 2 mine last=-1",
        "2 PRODUCER_SUCCESS 3 mine last=-1",
        "2 PRODUCER_SUCCESS 4 mine last=-1",
    ]);
    assert_eq!(rig.topic.stats().producers.len(), 1);
}

#[test]
fn receipts_come_in_the_order_of_sends() {
    let mut rig = Rig::new();
    let (a, b) = (p(1, 0), p(2, 0));
    rig.producer(a, |_| {}).unwrap();
    rig.producer(b, |_| {}).unwrap();
    rig.quiet();
    rig.send_seq(a, 0, keyed("k"));
    rig.send_seq(b, 0, keyed("k"));
    rig.send_seq(a, 1, batch(3));
    rig.expect(&["1 RECEIPT 0 0 at 0", "2 RECEIPT 0 0 at 1", "1 RECEIPT 0 1 at 2"]);
    let stats = rig.topic.stats();
    assert_eq!((stats.entries, stats.messages), (3, 5));
    assert_eq!(rig.topic.stored().map(|stored| stored.position.entry).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn bad_entries_are_refused_and_harm_nobody() {
    let mut rig = Rig::new();
    let key = rig.any_producer();
    let good = Entry::new(keyed("k"), Bytes::from_static(b"x")).to_bytes();
    let mut flipped = good.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    let send = |sequence_id| CommandSend { sequence_id, ..Default::default() };
    rig.send_raw(key, send(0), flipped.into());
    rig.topic.config_mut().max_message_size = 0;
    rig.send_raw(key, send(1), good.clone());
    rig.topic.config_mut().max_message_size = 1;
    rig.send_raw(key, send(3), good);
    rig.send_raw(key, send(4), Bytes::from_static(b"junk"));
    rig.expect(&[
        "1 SEND_ERROR 0 0 ChecksumError",
        "1 SEND_ERROR 0 1 NotAllowedError",
        "1 RECEIPT 0 3 at 0",
        "1 closed",
    ]);
}

#[test]
fn a_send_without_producer_closes_the_connection() {
    let mut rig = Rig::new();
    rig.send_seq(p(1, 5), 0, keyed("k"));
    rig.expect(&["1 closed"]);
}

#[test]
fn an_exclusive_producer_keeps_others_out() {
    use ProducerAccessMode::*;
    let mut rig = Rig::new();
    rig.producer(p(1, 0), mode(Exclusive, "first")).unwrap();
    rig.expect(&["1 PRODUCER_SUCCESS 1 first last=-1 epoch=0"]);
    let holder = "existing exclusive producer: first";
    refused(rig.producer(p(2, 0), mode(Exclusive, "x")), ServerError::ProducerFenced, holder);
    refused(rig.producer(p(2, 0), mode(Shared, "x")), ServerError::ProducerBusy, holder);
    rig.close_producer(p(1, 0));
    rig.producer(p(2, 0), mode(Shared, "x")).unwrap();
    // The epoch stays with the topic.
    rig.expect(&["1 SUCCESS 4", "2 PRODUCER_SUCCESS 5 x last=-1 epoch=0"]);
    let shared = "Topic has existing shared producers";
    refused(rig.producer(p(3, 0), mode(Exclusive, "y")), ServerError::ProducerFenced, shared);
}

#[test]
fn waiting_producers_get_their_turn_in_order() {
    use ProducerAccessMode::*;
    let mut rig = Rig::new();
    rig.producer(p(1, 0), mode(Exclusive, "a")).unwrap();
    rig.producer(p(2, 0), mode(WaitForExclusive, "b")).unwrap();
    rig.producer(p(3, 0), mode(WaitForExclusive, "c")).unwrap();
    rig.expect(&[
        "1 PRODUCER_SUCCESS 1 a last=-1 epoch=0",
        "2 PRODUCER_SUCCESS 2 b last=-1 waits",
        "3 PRODUCER_SUCCESS 3 c last=-1 waits",
    ]);
    // A producer that waits must not send yet.
    rig.send_seq(p(2, 0), 0, keyed("k"));
    rig.expect(&["2 closed"]);
    rig.close_producer(p(1, 0));
    rig.expect(&["2 PRODUCER_SUCCESS 2 b last=-1 epoch=1", "1 SUCCESS 4"]);
    rig.send_seq(p(2, 0), 0, keyed("k"));
    rig.disconnect(2);
    rig.expect(&["2 RECEIPT 0 0 at 0", "3 PRODUCER_SUCCESS 3 c last=-1 epoch=2"]);
}

#[test]
fn a_fencing_producer_drops_everyone() {
    use ProducerAccessMode::*;
    let mut rig = Rig::new();
    rig.producer(p(1, 0), mode(Exclusive, "a")).unwrap();
    rig.producer(p(2, 0), mode(WaitForExclusive, "b")).unwrap();
    rig.quiet();
    rig.producer(p(3, 0), mode(ExclusiveWithFencing, "c")).unwrap();
    rig.expect(&["2 ERROR 2 ProducerFenced", "3 PRODUCER_SUCCESS 3 c last=-1 epoch=1"]);
    rig.send_seq(p(1, 0), 0, keyed("k"));
    rig.expect(&["1 closed"]);
    // Both come back with the topic epoch that they had; the fenced one must not win.
    rig.disconnect(1);
    rig.disconnect(3);
    let back = |epoch: u64, access: ProducerAccessMode, name: &str| {
        let set = mode(access, name);
        move |command: &mut CommandProducer| {
            set(command);
            command.topic_epoch = Some(epoch);
        }
    };
    let stale = rig.producer(p(4, 0), back(0, Exclusive, "a"));
    refused(stale, ServerError::ProducerFenced, "Current epoch: 1, Producer epoch: 0");
    rig.producer(p(5, 0), back(1, ExclusiveWithFencing, "c")).unwrap();
    rig.expect(&["5 PRODUCER_SUCCESS 5 c last=-1 epoch=1"]);
}

#[test]
fn the_highest_topic_epoch_that_a_client_can_bring_stays() {
    use ProducerAccessMode::*;
    let mut rig = Rig::new();
    let set = mode(Exclusive, "a");
    rig.producer(p(1, 0), |command: &mut CommandProducer| {
        set(command);
        command.topic_epoch = Some(u64::MAX);
    })
    .unwrap();
    rig.disconnect(1);
    rig.producer(p(2, 0), mode(Exclusive, "b")).unwrap();
    let epoch = u64::MAX;
    rig.expect(&[
        &format!("1 PRODUCER_SUCCESS 1 a last=-1 epoch={epoch}"),
        &format!("2 PRODUCER_SUCCESS 2 b last=-1 epoch={epoch}"),
    ]);
}

#[test]
fn duplicates_are_acknowledged_and_not_stored() {
    let mut rig = Rig::new();
    rig.topic.config_mut().deduplication = true;
    let named = |command: &mut CommandProducer| command.producer_name = Some("mine".into());
    rig.producer(p(1, 0), named).unwrap();
    rig.send_seq(p(1, 0), 5, keyed("k"));
    rig.send_seq(p(1, 0), 5, keyed("k"));
    rig.send_seq(p(1, 0), 3, keyed("k"));
    // A batch covers sequence ids 6 to 9.
    let entry = Entry::new(batch(4), Bytes::new()).to_bytes();
    let covering = CommandSend { sequence_id: 6, highest_sequence_id: Some(9), ..Default::default() };
    rig.send_raw(p(1, 0), covering, entry);
    rig.send_seq(p(1, 0), 9, keyed("k"));
    rig.disconnect(1);
    rig.producer(p(2, 0), named).unwrap();
    rig.send_seq(p(2, 0), 10, keyed("k"));
    rig.expect(&[
        "1 PRODUCER_SUCCESS 1 mine last=-1",
        "1 RECEIPT 0 5 at 0",
        "1 RECEIPT 0 5 at -1",
        "1 RECEIPT 0 3 at -1",
        "1 RECEIPT 0 6 at 1",
        "1 RECEIPT 0 9 at -1",
        "2 PRODUCER_SUCCESS 2 mine last=9",
        "2 RECEIPT 0 10 at 2",
    ]);
}

#[test]
fn chunks_of_one_message_are_no_duplicates_of_each_other() {
    let mut rig = Rig::new();
    rig.topic.config_mut().deduplication = true;
    let key = rig.any_producer();
    let chunk = |n| MessageMetadata { chunk_id: Some(n), num_chunks_from_msg: Some(3), ..keyed("k") };
    for n in [0, 1, 2, 2] {
        let command = CommandSend { sequence_id: 0, is_chunk: Some(true), ..Default::default() };
        rig.send_raw(key, command, Entry::new(chunk(n), Bytes::new()).to_bytes());
    }
    rig.expect(&["1 RECEIPT 0 0 at 0", "1 RECEIPT 0 0 at 1", "1 RECEIPT 0 0 at 2", "1 RECEIPT 0 0 at -1"]);
}

#[test]
fn the_initial_subscription_is_made_with_the_producer() {
    let mut rig = Rig::new();
    rig.producer(p(1, 0), |command| command.initial_subscription_name = Some("init".into())).unwrap();
    rig.store([keyed("k")]);
    assert_eq!(rig.backlog("init"), 1);
}
