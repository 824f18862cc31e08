//! Split, merge, rebucket and prune: their order on the wire, and what they refuse.

use std::time::Duration;

use sim_broker::core::{cluster::admin::AdminError, journal::Event};
use stc_proto::{Command, pulsar::*};

use crate::{expect, support::*};

const TOPIC: &str = "topic://public/default/t";
const ROOT: &str = "segment://public/default/t/0000-ffff-0";

fn layout_events(cluster: &sim_broker::SimCluster) -> Vec<(&'static str, u64, Vec<u64>, Vec<u64>)> {
    cluster
        .control()
        .journal()
        .into_iter()
        .filter_map(|r| match r.event {
            Event::Layout { change, epoch, active, sealed, .. } => Some((change, epoch, active, sealed)),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_split_closes_producers_then_pushes_and_refuses_what_was_in_flight() {
    // The order of the recording b_split_merge; one connection, so that it shows on the wire.
    let cluster = cluster_as("pulsar-5.0.1", |c| c.brokers = 1);
    let mut client = Client::to(&cluster, 0).await;
    client.watch(1, TOPIC).await;
    expect!(client, ScalableTopicUpdate);
    client.producer(0, ROOT, "p-seg-0").await;
    client.publish_ok(0, 0, "before").await;
    split(&cluster, TOPIC, 0);
    client.publish(0, 1, "in flight").await;
    assert_eq!(expect!(client, ScalableTopicUpdate).dag.unwrap().epoch, 0);
    let close = expect!(client, CloseProducer);
    assert_eq!((close.producer_id, close.request_id, close.assigned_broker_service_url), (0, u64::MAX, None));
    let dag = expect!(client, ScalableTopicUpdate).dag.unwrap();
    let error = expect!(client, SendError);
    assert_eq!((error.sequence_id, error.error()), (1, ServerError::TopicTerminatedError));
    assert_eq!(dag.epoch, 1);
    let states: Vec<_> = dag
        .segments
        .iter()
        .map(|s| {
            (s.segment_id, s.hash_start, s.hash_end, s.state(), s.parent_ids.clone(), s.child_ids.clone())
        })
        .collect();
    use stc_proto::pulsar::SegmentState::{Active, Sealed};
    assert_eq!(
        states,
        [
            (0, 0, 0xffff, Sealed, vec![], vec![1, 2]),
            (1, 0, 0x7fff, Active, vec![0], vec![]),
            (2, 0x8000, 0xffff, Active, vec![0], vec![]),
        ]
    );
    let listed: Vec<u64> = dag.segment_brokers.iter().map(|b| b.segment_id).collect();
    assert_eq!(listed, [1, 2], "addresses of active segments only");
    client.send(producer(5, ROOT, "p-seg-0", 9)).await;
    assert_eq!(expect!(client, Error).error(), ServerError::TopicTerminatedError);
    client.producer(6, "segment://public/default/t/0000-7fff-1", "p-seg-1").await;
    client.publish_ok(6, 0, "after").await;
    assert_eq!(cluster.control().stored(TOPIC).unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn children_have_their_parents_subscriptions_before_anything_is_sent() {
    let cluster = cluster();
    let root = segment_of(&cluster, TOPIC).await;
    let mut consumer = Client::to_owner(&cluster, &root).await;
    consumer.subscribe(0, &root, "s").await;
    split(&cluster, TOPIC, 0);
    assert_eq!(expect!(consumer, ReachedEndOfTopic).consumer_id, 0);
    let child = "segment://public/default/t/8000-ffff-2";
    let mut producing = Client::to_owner(&cluster, child).await;
    producing.producer(0, child, "p").await;
    producing.publish_ok(0, 0, "first").await;
    let mut consumer = Client::to_owner(&cluster, child).await;
    let request_id = consumer.request();
    let latest = CommandSubscribe {
        initial_position: Some(command_subscribe::InitialPosition::Latest as i32),
        ..subscribe(0, child, "s", request_id)
    };
    consumer.send(latest).await;
    expect!(consumer, Success);
    consumer.send(CommandFlow { consumer_id: 0, message_permits: 10 }).await;
    assert_eq!(consumer.message().await.0, "first", "the subscription was there already");
}

#[tokio::test(start_paused = true)]
async fn merge_and_rebucket_make_successors() {
    let cluster = cluster();
    let name = topic(TOPIC);
    create(&cluster, TOPIC, 2);
    cluster.with(|c, now| c.merge_segments(&name, 1, 0, now)).unwrap();
    cluster.with(|c, now| c.rebucket_segment(&name, 2, Some(8), now)).unwrap();
    let dag = cluster.control().current_dag(TOPIC).unwrap();
    let last = dag.segments.last().unwrap();
    assert_eq!((last.segment_id, last.hash_start, last.hash_end), (3, 0, 0xffff));
    assert_eq!(last.entry_bucket_splits.len(), 7);
    assert_eq!(
        layout_events(&cluster),
        [
            ("create", 0, vec![0, 1], vec![]),
            ("merge", 1, vec![2], vec![0, 1]),
            ("rebucket", 2, vec![3], vec![0, 1, 2]),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn impossible_changes_are_refused_with_pulsars_status_and_change_nothing() {
    let cluster = cluster();
    let name = topic(TOPIC);
    let missing = topic("topic://public/default/missing");
    create(&cluster, TOPIC, 4);
    split(&cluster, TOPIC, 0);
    let before = cluster.control().current_dag(TOPIC).unwrap();
    let status = |result: Result<(), AdminError>| result.unwrap_err().status;
    cluster.with(|c, now| {
        assert_eq!(status(c.split_segment(&missing, 0, now)), 500);
        assert_eq!(status(c.split_segment(&name, 0, now)), 500, "sealed");
        assert_eq!(status(c.split_segment(&name, 99, now)), 500, "unknown");
        assert_eq!(status(c.merge_segments(&name, 0, 1, now)), 500, "sealed");
        assert_eq!(status(c.merge_segments(&name, 1, 3, now)), 500, "not adjacent");
        assert_eq!(status(c.merge_segments(&name, 1, 1, now)), 500, "itself");
        for (segment, count) in [
            (0, Some(2)),
            (99, Some(2)),
            (1, Some(1)),
            (1, None),
            (1, Some(0)),
            (1, Some(-1)),
            (1, Some(1025)),
        ] {
            assert_eq!(status(c.rebucket_segment(&name, segment, count, now)), 412, "{segment} {count:?}");
        }
        assert_eq!(status(c.create_scalable_topic(&name, 1, Default::default(), now)), 409);
        for segments in [0, -1, 1025] {
            assert_eq!(status(c.create_scalable_topic(&missing, segments, Default::default(), now)), 412);
        }
        assert_eq!(status(c.delete_scalable_topic(&missing, false, now)), 404);
    });
    assert_eq!(cluster.control().current_dag(TOPIC).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_drained_sealed_segment_is_pruned_one_epoch_later() {
    let cluster = cluster();
    let root = segment_of(&cluster, TOPIC).await;
    let mut client = Client::to_owner(&cluster, &root).await;
    client.producer(0, &root, "p").await;
    client.publish_ok(0, 0, "one").await;
    client.subscribe(0, &root, "s").await;
    let (_, id) = client.message().await;
    split(&cluster, TOPIC, 0);
    expect!(client, CloseProducer);
    let control = cluster.control();
    assert_eq!(control.prune(TOPIC).unwrap(), 0, "not drained yet");
    let mut watching = Client::to(&cluster, 0).await;
    watching.watch(1, TOPIC).await;
    client.send(CommandAck { consumer_id: 0, ack_type: 0, message_id: vec![id], ..Default::default() }).await;
    expect!(client, ReachedEndOfTopic);
    // The controller looks every 60 s; both connections have to answer PINGs meanwhile.
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(29)).await;
        watching.expect_nothing().await;
        client.expect_nothing().await;
    }
    let dag = expect!(watching, ScalableTopicUpdate).dag.unwrap();
    assert_eq!(dag.epoch, 2);
    let left: Vec<_> = dag.segments.iter().map(|s| (s.segment_id, s.parent_ids.len())).collect();
    assert_eq!(left, [(1, 0), (2, 0)]);
    let closed = client.recv().await.command;
    assert!(matches!(&closed, Command::CloseConsumer(c) if c.request_id == u64::MAX), "{closed:?}");
    client.send(subscribe(1, &root, "s", 1)).await;
    assert_eq!(expect!(client, Error).error(), ServerError::TopicNotFound);
}

#[tokio::test(start_paused = true)]
async fn a_sealed_segment_without_subscriptions_stays() {
    let cluster = cluster();
    create(&cluster, TOPIC, 1);
    split(&cluster, TOPIC, 0);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(cluster.control().current_dag(TOPIC).unwrap().segments.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_forced_delete_closes_everyone_and_an_unforced_one_leaves_who_is_attached() {
    let cluster = cluster();
    let name = topic(TOPIC);
    for force in [true, false] {
        let root = segment_of(&cluster, TOPIC).await;
        let mut client = Client::to_owner(&cluster, &root).await;
        client.producer(0, &root, "p").await;
        client.subscribe(0, &root, "s").await;
        client.expect_nothing().await;
        cluster.with(|c, now| c.delete_scalable_topic(&name, force, now)).unwrap();
        if force {
            let mut closes = [client.recv().await.command.name(), client.recv().await.command.name()];
            closes.sort();
            assert_eq!(closes, ["CLOSE_CONSUMER", "CLOSE_PRODUCER"]);
            client.send(producer(1, &root, "p", 1)).await;
            assert_eq!(expect!(client, Error).error(), ServerError::TopicNotFound);
        } else {
            client.publish_ok(0, 0, "still here").await;
        }
    }
}
