//! The topic as a whole: terminate, close, copy, schemas.

use super::*;
use crate::core::topic::{Assigned, Start};

#[test]
fn a_terminated_topic_takes_nothing_more() {
    let mut rig = Rig::new();
    rig.producer(p(1, 0), |_| {}).unwrap();
    rig.send_seq(p(1, 0), 0, keyed("k"));
    rig.quiet();
    rig.terminate();
    // What was on its way is answered; the second call is silent.
    rig.send_seq(p(1, 0), 1, keyed("k"));
    rig.terminate();
    rig.expect(&["1 CLOSE_PRODUCER 0 -1", "1 SEND_ERROR 0 1 TopicTerminatedError"]);
    refused(rig.producer(p(1, 0), |_| {}), ServerError::TopicTerminatedError, "Topic was already terminated");
    assert_eq!(rig.topic.stored().count(), 1);
}

#[test]
fn waiting_producers_learn_of_the_termination() {
    let mut rig = Rig::new();
    let wait = |command: &mut CommandProducer| {
        command.producer_access_mode = Some(ProducerAccessMode::WaitForExclusive as i32);
    };
    rig.producer(p(1, 0), wait).unwrap();
    rig.producer(p(2, 0), wait).unwrap();
    rig.quiet();
    rig.terminate();
    rig.expect(&["2 ERROR 2 TopicTerminatedError", "1 CLOSE_PRODUCER 0 -1"]);
}

#[test]
fn the_end_is_told_once_everything_is_acknowledged() {
    let mut rig = Rig::new();
    rig.store([keyed("a"), keyed("b")]);
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.consumer(c(2, 0), SubType::Shared, 10);
    rig.quiet();
    rig.terminate();
    rig.ack(c(1, 0), &[0]);
    assert!(!rig.topic.drained("s"));
    rig.quiet();
    rig.ack(c(1, 0), &[1]);
    rig.expect(&["1 END 0", "2 END 0"]);
    assert!(rig.topic.drained("s"));
    // A late consumer learns it when it asks for messages.
    rig.consumer(c(3, 0), SubType::Shared, 10);
    rig.flow(c(3, 0), 10);
    rig.expect(&["3 END 0"]);
}

#[test]
fn the_end_is_told_at_termination_to_those_who_are_done() {
    let mut rig = Rig::new();
    rig.store([keyed("a")]);
    rig.consumer(c(1, 0), SubType::Exclusive, 10);
    rig.ack_cumulative(c(1, 0), id(0));
    rig.reader(c(2, 0), id(u64::MAX));
    rig.quiet();
    rig.terminate();
    rig.expect(&["999 CLOSE_PRODUCER 0 -1", "1 END 0"]);
    assert!(!rig.topic.drained("missing"));
}

#[test]
fn closing_names_the_new_broker_and_keeps_what_is_durable() {
    let mut rig = Rig::new();
    rig.store([keyed("a"), keyed("b")]);
    rig.consumer(c(1, 0), SubType::Shared, 1);
    rig.ack(c(1, 0), &[0]);
    rig.reader(c(1, 1), id(0));
    let other = Assigned { url: "pulsar://other:6650".into(), url_tls: None };
    rig.topic.close_all(Some(&other), &mut rig.effects);
    rig.expect(&[
        "999 CLOSE_PRODUCER 0 -1 -> pulsar://other:6650",
        "1 CLOSE_CONSUMER 1 -1 -> pulsar://other:6650",
        "1 CLOSE_CONSUMER 0 -1 -> pulsar://other:6650",
    ]);
    assert!(!rig.topic.in_use() && !rig.topic.has_subscription("reader"));
    // Frames that were on their way change nothing.
    rig.send(p(999, 0), keyed("c"));
    rig.ack(c(1, 0), &[1]);
    rig.flow(c(1, 0), 10);
    rig.expect(&[]);
    rig.consumer(c(2, 0), SubType::Shared, 10);
    rig.expect(&["2 MESSAGE 0 1"]);
}

#[test]
fn one_that_the_broker_closes_makes_room_for_the_next() {
    let mut rig = Rig::new();
    rig.producer(p(1, 0), |c| c.set_producer_access_mode(ProducerAccessMode::Exclusive)).unwrap();
    rig.producer(p(2, 0), |c| c.set_producer_access_mode(ProducerAccessMode::WaitForExclusive)).unwrap();
    rig.consumer(c(1, 0), SubType::Exclusive, 10);
    rig.quiet();
    rig.send(p(1, 0), keyed("a"));
    rig.expect(&["1 RECEIPT 0 1 at 0", "1 MESSAGE 0 0"]);

    rig.topic.close_producer(p(1, 0), &mut rig.effects);
    rig.expect(&["1 CLOSE_PRODUCER 0 -1", "2 PRODUCER_SUCCESS 2 standalone-0-1 last=-1 epoch=1"]);
    rig.topic.close_consumer(c(1, 0), 0, &mut rig.effects);
    rig.expect(&["1 CLOSE_CONSUMER 0 -1"]);
    // What was on its way from the closed ones changes nothing; neither does a second close.
    rig.send(p(1, 0), keyed("b"));
    rig.ack(c(1, 0), &[0]);
    rig.topic.close_producer(p(1, 0), &mut rig.effects);
    rig.topic.close_consumer(c(1, 0), 0, &mut rig.effects);
    rig.expect(&[]);
    rig.consumer(c(3, 0), SubType::Exclusive, 10);
    rig.expect(&["3 MESSAGE 0 0"]);
}

#[test]
fn durable_subscriptions_are_those_that_stay() {
    let mut rig = Rig::new();
    rig.consumer(c(1, 0), SubType::Shared, 0);
    rig.subscribe(c(2, 0), SubType::Shared, |command| command.subscription = "left".into()).unwrap();
    rig.disconnect(2);
    rig.reader(c(1, 1), id(0));
    assert!(rig.topic.create_subscription("admin", Start::Latest));
    assert!(!rig.topic.create_subscription("admin", Start::Latest));
    assert_eq!(rig.topic.durable_subscriptions().collect::<Vec<_>>(), ["admin", "left", "s"]);
}

#[test]
fn admin_calls_move_and_delete_subscriptions_under_consumers() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        rig.store([keyed("k")]);
        rig.now += 1000;
    }
    rig.consumer(c(1, 0), SubType::Exclusive, 10);
    rig.ack_cumulative(c(1, 0), id(2));
    rig.quiet();
    assert!(rig.topic.reset_subscription("s", 2000, &mut rig.effects));
    rig.expect(&["1 CLOSE_CONSUMER 0 -1"]);
    assert_eq!(rig.backlog("s"), 2);
    rig.consumer(c(1, 0), SubType::Exclusive, 10);
    rig.expect(&["1 MESSAGE 0 1", "1 MESSAGE 0 2"]);
    assert!(rig.topic.delete_subscription("s", &mut rig.effects));
    rig.expect(&["1 CLOSE_CONSUMER 0 -1"]);
    assert!(!rig.topic.has_consumer(c(1, 0)));
    assert!(!rig.topic.delete_subscription("s", &mut rig.effects));
    assert!(!rig.topic.reset_subscription("s", 0, &mut rig.effects));
}

fn schema(kind: schema::Type) -> Schema {
    Schema { name: "s".into(), r#type: kind as i32, schema_data: Bytes::new(), properties: vec![] }
}

#[test]
fn schemas_are_registered_and_checked() {
    use schema::Type;
    let mut rig = Rig::new();
    let with = |kind| move |command: &mut CommandProducer| command.schema = Some(schema(kind));
    rig.producer(p(1, 0), with(Type::String)).unwrap();
    rig.producer(p(1, 1), |_| {}).unwrap();
    let versions: Vec<_> = rig
        .effects
        .drain()
        .map(|effect| match effect {
            Effect::Send(_, frame) => match frame.command {
                Command::ProducerSuccess(success) => success.schema_version.unwrap(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(versions, [&[0; 8][..], &[]]);
    refused(rig.producer(p(1, 2), with(Type::Json)), ServerError::IncompatibleSchema, "STRING");
    rig.topic.config_mut().schema_validation_enforced = true;
    refused(rig.producer(p(1, 2), |_| {}), ServerError::IncompatibleSchema, "without a schema");
    let consume = |kind| move |command: &mut CommandSubscribe| command.schema = Some(schema(kind));
    refused(
        rig.subscribe(c(1, 0), SubType::Shared, consume(Type::Json)),
        ServerError::IncompatibleSchema,
        "JSON",
    );
    rig.subscribe(c(1, 0), SubType::Shared, consume(Type::AutoConsume)).unwrap();
    rig.subscribe(c(1, 1), SubType::Shared, consume(Type::String)).unwrap();
}

#[test]
fn a_consumer_brings_the_schema_of_an_idle_topic_only() {
    use schema::Type;
    let consume = |command: &mut CommandSubscribe| command.schema = Some(schema(Type::String));
    let mut idle = Rig::new();
    idle.subscribe(c(1, 0), SubType::Shared, consume).unwrap();
    let command = CommandGetSchema { request_id: 3, ..Default::default() };
    idle.quiet();
    idle.topic.get_schema(ConnId(1), &command, &mut idle.effects);
    let Some(Effect::Send(_, frame)) = idle.effects.drain().next() else { panic!("no answer") };
    assert!(matches!(frame.command, Command::GetSchemaResponse(r) if r.schema == Some(schema(Type::String))));
    let mut used = Rig::new();
    used.store([keyed("k")]);
    let refusal = used.subscribe(c(1, 0), SubType::Shared, consume);
    refused(refusal, ServerError::IncompatibleSchema, "Topic does not have schema to check");
}

#[test]
fn schema_commands_answer_with_versions_or_errors() {
    use schema::Type;
    let mut rig = Rig::new();
    let get = CommandGetSchema { request_id: 1, ..Default::default() };
    rig.topic.get_schema(ConnId(1), &get, &mut rig.effects);
    for kind in [Type::String, Type::Json] {
        let create = CommandGetOrCreateSchema { request_id: 2, schema: schema(kind), ..Default::default() };
        rig.topic.get_or_create_schema(ConnId(1), &create, &mut rig.effects);
    }
    let answers: Vec<_> = rig
        .effects
        .drain()
        .map(|effect| match effect {
            Effect::Send(_, frame) => match frame.command {
                Command::GetSchemaResponse(r) => (r.error_code, r.schema_version),
                Command::GetOrCreateSchemaResponse(r) => (r.error_code, r.schema_version),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    let error = |code: ServerError| (Some(code as i32), None);
    assert_eq!(
        answers,
        [
            error(ServerError::TopicNotFound),
            (None, Some(Bytes::from_static(&[0; 8]))),
            error(ServerError::IncompatibleSchema),
        ]
    );
}

/// A sealed topic of a broker on which the end is read once, with a shared subscription that has acknowledged everything.
fn read_once() -> Rig {
    let mut rig = Rig::new();
    rig.topic.config_mut().end_is_read_once = true;
    rig.store([keyed("a")]);
    rig.terminate();
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.quiet();
    rig.ack(c(1, 0), &[0]);
    rig.expect(&["1 END 0"]);
    rig
}

#[test]
fn where_the_end_is_read_once_a_late_consumer_of_a_queue_is_not_told() {
    let mut rig = read_once();
    // The consumer read up to the end and left: that read stays behind.
    rig.close_consumer(c(1, 0));
    rig.consumer(c(2, 0), SubType::Shared, 10);
    rig.flow(c(2, 0), 10);
    rig.expect(&[]);
    // An acknowledgement, though of nothing new, tells it.
    rig.ack(c(2, 0), &[0]);
    rig.expect(&["2 END 0"]);
}

#[test]
fn where_the_end_is_read_once_moving_the_subscription_does_not_tell_it_again() {
    let mut rig = read_once();
    rig.seek(c(1, 0), None, Some(rig.now + 1)).unwrap();
    rig.consumer(c(1, 1), SubType::Shared, 10);
    rig.expect(&[]);
    // What is there again is delivered, and what is acknowledged last tells of the end.
    rig.seek(c(1, 1), None, Some(0)).unwrap();
    rig.consumer(c(1, 2), SubType::Shared, 10);
    rig.expect(&["1 MESSAGE 2 0"]);
    rig.ack(c(1, 2), &[0]);
    rig.expect(&["1 END 2"]);
}

#[test]
fn a_read_that_waited_when_the_topic_was_sealed_goes_with_the_last_consumer() {
    let mut rig = Rig::new();
    rig.topic.config_mut().end_is_read_once = true;
    rig.consumer(c(1, 0), SubType::Shared, 10);
    rig.consumer(c(2, 0), SubType::Shared, 10);
    rig.terminate();
    rig.expect(&["1 END 0", "2 END 0"]);
    rig.close_consumer(c(1, 0));
    rig.quiet();
    rig.consumer(c(3, 0), SubType::Shared, 10);
    rig.expect(&[]);
    rig.disconnect(2);
    rig.disconnect(3);
    // Nobody has read the end yet, so the first one is told, and the next is not.
    rig.consumer(c(4, 0), SubType::Shared, 10);
    rig.expect(&["4 END 0"]);
    rig.close_consumer(c(4, 0));
    rig.quiet();
    rig.consumer(c(5, 0), SubType::Shared, 10);
    rig.expect(&[]);
}
