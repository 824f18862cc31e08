//! Exclusive and Failover subscriptions, readers, acknowledgement, seek.

use super::*;

const LATEST: u64 = i64::MAX as u64;

fn three() -> [MessageMetadata; 3] {
    [keyed("a"), keyed("b"), keyed("c")]
}

#[test]
fn permits_bound_what_is_sent() {
    let mut rig = Rig::new();
    rig.store(three());
    rig.consumer(c(1, 0), SubType::Exclusive, 2);
    rig.expect(&["1 MESSAGE 0 0", "1 MESSAGE 0 1"]);
    rig.flow(c(1, 0), 5);
    rig.store([keyed("d")]);
    rig.expect(&["1 MESSAGE 0 2", "1 MESSAGE 0 3"]);
}

#[test]
fn a_batch_takes_a_permit_for_each_message() {
    let mut rig = Rig::new();
    rig.store([batch(5), batch(5), batch(5)]);
    rig.consumer(c(1, 0), SubType::Exclusive, 6);
    rig.expect(&["1 MESSAGE 0 0", "1 MESSAGE 0 1"]);
    // 6 - 10 = -4 permits: 4 more bring it to 0, the fifth lets a batch through.
    rig.flow(c(1, 0), 4);
    rig.expect(&[]);
    rig.flow(c(1, 0), 1);
    rig.expect(&["1 MESSAGE 0 2"]);
}

#[test]
fn the_initial_position_counts_for_a_new_subscription_only() {
    let mut rig = Rig::new();
    rig.store(three());
    let latest = |command: &mut CommandSubscribe| command.initial_position = None;
    rig.subscribe(c(1, 0), SubType::Exclusive, latest).unwrap();
    rig.flow(c(1, 0), 10);
    rig.store([keyed("d")]);
    rig.expect(&["1 SUCCESS 2", "1 MESSAGE 0 3"]);
    rig.disconnect(1);
    rig.store([keyed("e")]);
    rig.subscribe(c(2, 0), SubType::Exclusive, latest).unwrap();
    rig.flow(c(2, 0), 10);
    rig.expect(&["2 SUCCESS 3", "2 MESSAGE 0 3", "2 MESSAGE 0 4"]);
}

#[test]
fn a_second_exclusive_consumer_and_other_types_are_busy() {
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::Exclusive, 0);
    let second = rig.subscribe(c(2, 0), SubType::Exclusive, |_| {});
    refused(second, ServerError::ConsumerBusy, "Exclusive consumer is already connected");
    let other = rig.subscribe(c(2, 0), SubType::KeyShared, |_| {});
    refused(
        other,
        ServerError::ConsumerBusy,
        "Subscription is of different type. Active subscription type of 'Exclusive' is different than the connecting \
         consumer's type 'Key_Shared'.",
    );
    rig.subscribe(c(1, 0), SubType::Exclusive, |_| {}).unwrap();
    rig.expect(&["1 SUCCESS 4"]);
    rig.close_consumer(c(1, 0));
    rig.subscribe(c(2, 0), SubType::KeyShared, |_| {}).unwrap();
}

#[test]
fn cumulative_and_individual_acks_move_one_cursor() {
    let mut rig = Rig::new();
    rig.store((0..6).map(|_| keyed("k")));
    rig.consumer(c(1, 0), SubType::Exclusive, 10);
    rig.ack(c(1, 0), &[1, 3]);
    assert_eq!(rig.backlog("s"), 4);
    rig.ack_cumulative(c(1, 0), id(2));
    assert_eq!(rig.backlog("s"), 2);
    // Ids that are not stored, or of another ledger, change nothing.
    rig.ack(c(1, 0), &[99]);
    rig.ack_with(c(1, 0), AckType::Individual, &[MessageIdData { ledger_id: 1, ..id(4) }]);
    rig.ack_cumulative(c(1, 0), id(99));
    rig.disconnect(1);
    rig.quiet();
    rig.consumer(c(2, 0), SubType::Exclusive, 10);
    rig.expect(&["2 MESSAGE 0 4", "2 MESSAGE 0 5"]);
}

#[test]
fn acknowledged_members_of_a_batch_do_not_come_back() {
    let mut rig = Rig::new();
    rig.store([batch(3), batch(3)]);
    rig.consumer(c(1, 0), SubType::Exclusive, 10);
    rig.ack_cumulative(c(1, 0), part(1, 0b110));
    rig.disconnect(1);
    rig.quiet();
    rig.consumer(c(2, 0), SubType::Exclusive, 2);
    rig.expect(&["2 MESSAGE 0 1 ack_set=[6]"]);
    // Two of the batch were left, and two permits were there.
    assert_eq!(rig.topic.stats().subscriptions[0].consumers[0].permits, 0);
    assert_eq!(rig.topic.stats().subscriptions[0].backlog_messages, 2);
    rig.ack_with(c(2, 0), AckType::Individual, &[part(1, 0b001)]);
    assert_eq!(rig.backlog("s"), 0);
}

#[test]
fn acks_are_answered_when_asked() {
    let mut rig = Rig::new();
    rig.store(three());
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.quiet();
    let command = CommandAck { message_id: vec![id(0)], request_id: Some(9), ..Default::default() };
    rig.topic.ack(c(1, 0), &command, 0, &mut rig.effects);
    rig.expect(&["1 ACK_RESPONSE Some(9) None"]);
    assert_eq!(rig.backlog("s"), 2);
}

#[test]
fn redelivery_rewinds_an_exclusive_consumer() {
    let mut rig = Rig::new();
    rig.store(three());
    rig.subscribe(c(1, 0), SubType::Exclusive, |command| command.consumer_epoch = Some(0)).unwrap();
    rig.flow(c(1, 0), 10);
    rig.ack(c(1, 0), &[1]);
    rig.quiet();
    // The ids do not matter, and the count stays 0.
    rig.redeliver(c(1, 0), &[2], Some(1));
    rig.expect(&["1 MESSAGE 0 0 epoch=1", "1 MESSAGE 0 2 epoch=1"]);
    // One that was asked for before is over.
    rig.redeliver(c(1, 0), &[], Some(0));
    rig.expect(&[]);
}

#[test]
fn failover_prefers_priority_then_name() {
    let mut rig = Rig::new();
    rig.store(three());
    let with = |name: &str, priority| {
        let name = name.to_owned();
        move |command: &mut CommandSubscribe| {
            command.consumer_name = Some(name);
            command.priority_level = Some(priority);
        }
    };
    rig.subscribe(c(1, 1), SubType::Failover, with("b", 1)).unwrap();
    rig.subscribe(c(1, 2), SubType::Failover, with("z", 1)).unwrap();
    rig.expect(&["1 SUCCESS 2", "1 ACTIVE 1 yes", "1 SUCCESS 3", "1 ACTIVE 2 no"]);
    rig.flow(c(1, 1), 10);
    rig.flow(c(1, 2), 10);
    rig.expect(&["1 MESSAGE 1 0", "1 MESSAGE 1 1", "1 MESSAGE 1 2"]);
    rig.ack_cumulative(c(1, 1), id(0));
    // A better priority wins over a name; it begins at the cursor.
    rig.subscribe(c(2, 3), SubType::Failover, with("y", 0)).unwrap();
    rig.expect(&["2 SUCCESS 4", "1 ACTIVE 1 no", "1 ACTIVE 2 no", "2 ACTIVE 3 yes"]);
    rig.flow(c(2, 3), 10);
    rig.expect(&["2 MESSAGE 3 1", "2 MESSAGE 3 2"]);
    rig.disconnect(2);
    rig.expect(&["1 ACTIVE 1 yes", "1 ACTIVE 2 no", "1 MESSAGE 1 1", "1 MESSAGE 1 2"]);
}

#[test]
fn partitions_take_turns_among_failover_consumers() {
    let mut rig = Rig::named("persistent://public/default/t-partition-1");
    rig.store(three());
    rig.consumer(c(1, 1), SubType::Failover, 0);
    rig.subscribe(c(1, 2), SubType::Failover, |_| {}).unwrap();
    rig.expect(&["1 SUCCESS 3", "1 ACTIVE 1 no", "1 ACTIVE 2 yes"]);
    rig.flow(c(1, 2), 1);
    let Effect::Send(_, frame) = rig.effects.drain().next().unwrap() else { panic!("no frame") };
    let Command::Message(message) = frame.command else { panic!("no message") };
    assert_eq!(message.message_id.partition, Some(1));
}

#[test]
fn readers_start_where_they_say() {
    let mut rig = Rig::new();
    rig.store(three());
    let at = |ledger_id, entry_id| MessageIdData { ledger_id, entry_id, ..Default::default() };
    // Earliest, latest, and an entry, which is delivered once more.
    for (start, first) in [(at(u64::MAX, u64::MAX), 0), (at(LATEST, LATEST), 3), (at(LEDGER, 1), 1)] {
        rig.reader(c(1, 0), start);
        rig.last_message_id(c(1, 0)).unwrap();
        rig.flow(c(1, 0), 10);
        let mut lines = vec![format!("1 LAST 2/-1 deleted={}", first - 1)];
        lines.extend((first..3).map(|entry| format!("1 MESSAGE 0 {entry}")));
        rig.expect(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        // The subscription goes with its reader.
        rig.disconnect(1);
        assert!(!rig.topic.has_subscription("reader"));
    }
}

#[test]
fn a_reader_can_start_some_time_back() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        rig.store([keyed("k")]);
        rig.now += 10_000;
    }
    rig.subscribe(c(1, 0), SubType::Exclusive, |command| {
        command.durable = Some(false);
        command.start_message_rollback_duration_sec = Some(20);
    })
    .unwrap();
    rig.flow(c(1, 0), 10);
    rig.expect(&["1 SUCCESS 2", "1 MESSAGE 0 1", "1 MESSAGE 0 2"]);
}

#[test]
fn durable_and_other_subscriptions_do_not_share_a_name() {
    let mut rig = Rig::new();
    rig.reader(c(1, 0), id(0));
    let durable =
        rig.subscribe(c(1, 1), SubType::Exclusive, |command| command.subscription = "reader".into());
    refused(
        durable,
        ServerError::NotAllowedError,
        "NonDurable subscription with the same name already exists.",
    );
    rig.consumer(c(1, 2), SubType::Exclusive, 0);
    let reader = rig.subscribe(c(1, 3), SubType::Exclusive, |command| command.durable = Some(false));
    refused(reader, ServerError::NotAllowedError, "Durable subscription with the same name already exists.");
}

#[test]
fn the_last_message_id_of_an_empty_topic_and_of_a_batch() {
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::Exclusive, 0);
    rig.last_message_id(c(1, 0)).unwrap();
    rig.store([keyed("k"), batch(3)]);
    rig.ack_cumulative(c(1, 0), id(0));
    rig.last_message_id(c(1, 0)).unwrap();
    rig.expect(&["1 LAST -1/-1 deleted=-1", "1 LAST 1/2 deleted=0"]);
    refused(rig.last_message_id(c(1, 9)), ServerError::MetadataError, "Consumer not found");
}

#[test]
fn seek_closes_the_consumers_and_moves_the_cursor() {
    let mut rig = Rig::new();
    rig.store(three());
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.consumer(c(2, 0), SubType::Shared, 0);
    rig.ack(c(1, 0), &[0, 1, 2]);
    rig.quiet();
    rig.seek(c(1, 0), Some(id(1)), None).unwrap();
    rig.expect(&["1 CLOSE_CONSUMER 0 -1", "2 CLOSE_CONSUMER 0 -1", "1 SUCCESS 4"]);
    assert!(!rig.topic.has_consumer(c(1, 0)));
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.expect(&["1 MESSAGE 0 1", "1 MESSAGE 0 2"]);
    refused(rig.seek(c(2, 0), Some(id(1)), None), ServerError::MetadataError, "Consumer not found");
}

#[test]
fn seek_finds_batch_members_times_and_the_ends() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        rig.store([batch(3)]);
        rig.now += 1000;
    }
    let mut after = |to: Option<MessageIdData>, time: Option<Millis>, first: &[&str]| {
        rig.consumer(c(1, 0), SubType::Exclusive, 0);
        rig.seek(c(1, 0), to, time).unwrap();
        rig.quiet();
        rig.consumer(c(1, 0), SubType::Exclusive, 1);
        rig.expect(first);
        rig.disconnect(1);
    };
    after(Some(part(1, 0b100)), None, &["1 MESSAGE 0 1 ack_set=[4]"]);
    after(Some(id(1)), None, &["1 MESSAGE 0 1"]);
    after(Some(MessageIdData { ledger_id: u64::MAX, entry_id: u64::MAX, ..id(0) }), None, &["1 MESSAGE 0 0"]);
    after(Some(MessageIdData { ledger_id: LATEST, entry_id: LATEST, ..id(0) }), None, &[]);
    after(None, Some(1001), &["1 MESSAGE 0 1"]);
    after(None, Some(3000), &["1 MESSAGE 0 2"]);
    after(None, Some(3001), &[]);
}

#[test]
fn a_reader_that_sought_comes_back_to_the_new_place() {
    let mut rig = Rig::new();
    rig.store(three());
    rig.reader(c(1, 0), id(0));
    rig.seek(c(1, 0), Some(id(2)), None).unwrap();
    rig.reader(c(1, 0), id(0));
    rig.flow(c(1, 0), 10);
    rig.expect(&["1 MESSAGE 0 2"]);
}

#[test]
fn unsubscribe_needs_to_be_alone_or_forced() {
    let mut rig = Rig::new();
    rig.store(three());
    rig.consumer(c(1, 0), SubType::Shared, 0);
    rig.consumer(c(2, 0), SubType::Shared, 0);
    refused(
        rig.unsubscribe(c(1, 0), false),
        ServerError::MetadataError,
        "shared consumer attempting to unsubscribe",
    );
    rig.unsubscribe(c(1, 0), true).unwrap();
    rig.expect(&["2 CLOSE_CONSUMER 0 -1", "1 SUCCESS 5"]);
    assert!(!rig.topic.has_subscription("s") && !rig.topic.has_consumer(c(2, 0)));
    rig.consumer(c(1, 0), SubType::Exclusive, 0);
    rig.unsubscribe(c(1, 0), false).unwrap();
    refused(rig.unsubscribe(c(1, 0), false), ServerError::MetadataError, "Consumer not found");
}

#[test]
fn commands_for_unknown_consumers_are_ignored() {
    let mut rig = Rig::new();
    rig.store(three());
    rig.flow(c(1, 0), 10);
    rig.ack(c(1, 0), &[0]);
    rig.redeliver(c(1, 0), &[0], None);
    rig.expect(&[]);
    rig.close_consumer(c(1, 0));
    rig.expect(&["1 SUCCESS 2"]);
}

#[test]
fn what_a_topic_does_not_offer_is_refused() {
    let mut rig = Rig::new();
    let compacted = rig.subscribe(c(1, 0), SubType::Shared, |command| command.read_compacted = Some(true));
    refused(compacted, ServerError::NotAllowedError, "readCompacted");
    let unnamed = rig.subscribe(c(1, 0), SubType::Shared, |command| command.subscription.clear());
    refused(unnamed, ServerError::ProducerBusy, "Empty subscription name");
}

#[test]
fn consumer_stats_tell_permits_and_backlog() {
    let mut rig = Rig::new();
    rig.store(three());
    rig.consumer(c(1, 0), SubType::Shared, 2);
    rig.quiet();
    for consumer in [0, 9] {
        let command = CommandConsumerStats { request_id: 5, consumer_id: consumer };
        rig.topic.consumer_stats(c(1, consumer), &command, &mut rig.effects);
    }
    let answers: Vec<_> = rig.effects.drain().collect();
    let stats = |effect: &Effect| match effect {
        Effect::Send(_, frame) => match &frame.command {
            Command::ConsumerStatsResponse(stats) => stats.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let known = stats(&answers[0]);
    assert_eq!(
        (known.unacked_messages, known.available_permits, known.msg_backlog),
        (Some(2), Some(0), Some(3))
    );
    assert_eq!(known.r#type.as_deref(), Some("Shared"));
    assert_eq!(stats(&answers[1]).error_code, Some(ServerError::ConsumerNotFound as i32));
}

#[test]
fn chunks_of_a_message_go_to_one_consumer() {
    let mut rig = Rig::new();
    let chunk = |uuid: &str, chunk_id| MessageMetadata {
        uuid: Some(uuid.into()),
        chunk_id: Some(chunk_id),
        num_chunks_from_msg: Some(3),
        ..keyed("k")
    };
    rig.consumer(c(1, 0), SubType::Shared, 2);
    rig.consumer(c(2, 0), SubType::Shared, 10);
    rig.store([chunk("a", 0)]);
    rig.store([chunk("b", 0)]);
    rig.store([chunk("a", 1), chunk("b", 1)]);
    // The first consumer has no room for the last chunk: it waits for it, and what is behind it does not.
    rig.store([chunk("a", 2), chunk("b", 2)]);
    rig.expect(&["1 MESSAGE 0 0", "2 MESSAGE 0 1", "1 MESSAGE 0 2", "2 MESSAGE 0 3", "2 MESSAGE 0 5"]);
    rig.flow(c(1, 0), 1);
    rig.expect(&["1 MESSAGE 0 4"]);
}
