//! DAG watches: how they begin, what they are pushed, how they fail.

use std::collections::BTreeMap;

use sim_broker::core::cluster::AutoTopicCreation;
use stc_proto::pulsar::*;

use crate::{expect, support::*};

fn forbid_creation(cluster: &sim_broker::SimCluster) {
    let policy = AutoTopicCreation { allowed: false, ..Default::default() };
    cluster.with(|c, now| c.set_auto_topic_creation("public", "default", Some(policy), now)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missing_topic_is_created_by_policy_only() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 1).await;
    let lookup = |session_id, topic: &str, create| CommandScalableTopicLookup {
        session_id,
        topic: topic.into(),
        create_if_missing: create,
    };
    client.send(lookup(1, "topic://public/default/a", Some(false))).await;
    let refused = expect!(client, ScalableTopicUpdate);
    assert_eq!(refused.error(), ServerError::TopicNotFound);
    assert_eq!(refused.message(), "Scalable topic not found: topic://public/default/a");
    assert_eq!((refused.session_id, refused.dag, refused.resolved_topic_name), (1, None, None));
    assert_eq!(client.watch(1, "topic://public/default/a").await.error, None);
    forbid_creation(&cluster);
    assert_eq!(client.watch(2, "topic://public/default/b").await.error(), ServerError::TopicNotFound);
    assert_eq!(client.watch(3, "topic://public/default/a").await.error, None);
    for name in ["topic://public/nope/a", "persistent://public/nope/a"] {
        assert_eq!(client.watch(4, name).await.error(), ServerError::TopicNotFound, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_layout_shares_four_buckets_and_names_owners_and_controller() {
    let cluster = cluster();
    create(&cluster, "topic://public/default/a", 2);
    let mut client = Client::to(&cluster, 0).await;
    let dag = client.watch(1, "topic://public/default/a").await.dag.unwrap();
    let segments: Vec<_> = dag
        .segments
        .iter()
        .map(|s| (s.segment_id, s.hash_start, s.hash_end, &s.entry_bucket_splits[..]))
        .collect();
    assert_eq!(segments, [(0, 0, 0x7fff, &[0x8000][..]), (1, 0x8000, 0xffff, &[0x8000][..])]);
    let owners: Vec<&str> = dag.segment_brokers.iter().map(|b| b.broker_url.as_str()).collect();
    assert_eq!(owners.len(), 2);
    assert_ne!(owners[0], owners[1], "segments go round the brokers");
    assert!(cluster.broker_urls().contains(dag.controller_broker_url.as_ref().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn classic_names_get_the_synthetic_layout_even_without_a_topic() {
    let cluster = cluster();
    forbid_creation(&cluster);
    let parts = topic("persistent://public/default/parts");
    cluster.with(|c, now| c.create_partitioned_topic(&parts, 3, now)).unwrap();
    let mut client = Client::to(&cluster, 0).await;
    for (name, resolved, legacy) in [
        ("persistent://public/default/a", "topic://public/default/a", vec!["persistent://public/default/a"]),
        ("b", "topic://public/default/b", vec!["persistent://public/default/b"]),
        (
            "parts",
            "topic://public/default/parts",
            vec![
                "persistent://public/default/parts-partition-0",
                "persistent://public/default/parts-partition-1",
                "persistent://public/default/parts-partition-2",
            ],
        ),
    ] {
        let update = client.watch(1, name).await;
        assert_eq!(update.resolved_topic_name(), resolved);
        let dag = update.dag.unwrap();
        assert_eq!((dag.epoch, &dag.segment_brokers[..], &dag.controller_broker_url), (0, &[][..], &None));
        assert_eq!(dag.segments.iter().map(|s| s.legacy_topic_name()).collect::<Vec<_>>(), legacy);
    }
    assert!(cluster.control().stored("persistent://public/default/a").is_err());
}

#[tokio::test(start_paused = true)]
async fn a_classic_name_finds_the_scalable_topic_and_a_segment_name_its_parent() {
    let cluster = cluster();
    create(&cluster, "topic://public/default/a", 1);
    let mut client = Client::to(&cluster, 0).await;
    for name in ["a", "persistent://public/default/a", "segment://public/default/a/0000-ffff-0"] {
        let update = client.watch(1, name).await;
        assert_eq!(update.resolved_topic_name(), "topic://public/default/a", "{name}");
        assert_eq!(update.dag.unwrap().segment_brokers.len(), 1, "{name}");
    }
    let missing = client.watch(2, "segment://public/default/b/0000-ffff-0").await;
    assert_eq!(missing.error(), ServerError::TopicNotFound);
}

#[tokio::test(start_paused = true)]
async fn non_persistent_is_not_allowed_and_a_bad_name_closes_the_connection() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    let refused = client.watch(1, "non-persistent://public/default/a").await;
    assert_eq!(refused.error(), ServerError::NotAllowedError);
    client
        .send(CommandScalableTopicLookup {
            session_id: 2,
            topic: "topic://a/b".into(),
            create_if_missing: None,
        })
        .await;
    client.expect_closed().await;
    assert!(close_reason(&cluster.control()).contains("topic://a/b"));
}

#[tokio::test(start_paused = true)]
async fn every_watch_hears_of_a_change_until_it_is_closed() {
    let cluster = cluster();
    create(&cluster, "topic://public/default/a", 1);
    let mut one = Client::to(&cluster, 0).await;
    let mut two = Client::to(&cluster, 1).await;
    one.watch(1, "topic://public/default/a").await;
    one.watch(2, "a").await;
    two.watch(1, "topic://public/default/a").await;
    two.watch(2, "topic://public/default/other").await;
    split(&cluster, "topic://public/default/a", 0);
    for session in [1, 2] {
        let update = expect!(one, ScalableTopicUpdate);
        assert_eq!((update.session_id, update.dag.unwrap().epoch), (session, 1));
    }
    assert_eq!(expect!(two, ScalableTopicUpdate).dag.unwrap().epoch, 1);
    one.send(CommandScalableTopicClose { session_id: 1 }).await;
    one.expect_nothing().await;
    split(&cluster, "topic://public/default/a", 1);
    assert_eq!(expect!(one, ScalableTopicUpdate).session_id, 2);
    one.expect_nothing().await;
    assert_eq!(expect!(two, ScalableTopicUpdate).session_id, 1);
    two.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_is_established_again_with_the_same_id() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    client.watch(7, "topic://public/default/a").await;
    drop(client);
    split(&cluster, "topic://public/default/a", 0);
    let mut client = Client::to(&cluster, 0).await;
    assert_eq!(client.watch(7, "topic://public/default/a").await.dag.unwrap().epoch, 1);
    // On one connection it replaces the watch that has the id: one push, not two.
    client.watch(7, "topic://public/default/b").await;
    split(&cluster, "topic://public/default/a", 1);
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn pulsar_5_0_1_repeats_epochs() {
    let cluster = cluster_as("pulsar-5.0.1", |_| ());
    let mut client = Client::to(&cluster, 0).await;
    let first = client.watch(1, "topic://public/default/a").await;
    assert_eq!(first.dag.as_ref().unwrap().controller_broker_url, None);
    assert_eq!(
        expect!(client, ScalableTopicUpdate),
        first,
        "the first layout of a created topic comes twice"
    );
    split(&cluster, "topic://public/default/a", 0);
    let elected = expect!(client, ScalableTopicUpdate).dag.unwrap();
    assert_eq!(elected.epoch, 0);
    assert!(elected.controller_broker_url.is_some());
    assert_eq!(expect!(client, ScalableTopicUpdate).dag.unwrap().epoch, 1);
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_topic_is_silent_and_its_successor_starts_at_epoch_0_on_the_live_watch() {
    let cluster = cluster();
    let name = topic("topic://public/default/a");
    let mut client = Client::to(&cluster, 0).await;
    client.watch(1, name.as_str()).await;
    split(&cluster, name.as_str(), 0);
    assert_eq!(expect!(client, ScalableTopicUpdate).dag.unwrap().epoch, 1);
    cluster.with(|c, now| c.delete_scalable_topic(&name, true, now)).unwrap();
    client.expect_nothing().await;
    cluster.with(|c, now| c.create_scalable_topic(&name, 2, BTreeMap::new(), now)).unwrap();
    let dag = expect!(client, ScalableTopicUpdate).dag.unwrap();
    assert_eq!((dag.epoch, dag.segments.len()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn held_pushes_come_in_order_when_released_and_lookups_are_answered_meanwhile() {
    let cluster = cluster();
    let name = "topic://public/default/a";
    let control = cluster.control();
    let mut client = Client::to(&cluster, 0).await;
    client.watch(1, name).await;
    control.hold_pushes(name).unwrap();
    split(&cluster, name, 0);
    split(&cluster, name, 1);
    client.expect_nothing().await;
    assert_eq!(client.watch(2, name).await.dag.unwrap().epoch, 2);
    assert_eq!(control.release_pushes(name).unwrap(), 2);
    for epoch in [1, 2] {
        let update = expect!(client, ScalableTopicUpdate);
        assert_eq!((update.session_id, update.dag.unwrap().epoch), (1, epoch));
    }
    split(&cluster, name, 2);
    assert_eq!(expect!(client, ScalableTopicUpdate).dag.unwrap().epoch, 3);
}

#[tokio::test(start_paused = true)]
async fn any_dag_can_be_pushed() {
    let cluster = cluster();
    let name = "topic://public/default/a";
    let mut client = Client::to(&cluster, 0).await;
    let first = client.watch(1, name).await.dag.unwrap();
    let control = cluster.control();
    let mut twice = control.current_dag(name).unwrap();
    assert_eq!(twice, first);
    twice.segments.push(twice.segments[0].clone());
    assert_eq!(control.push_layout(name, &twice).unwrap(), 1);
    assert_eq!(expect!(client, ScalableTopicUpdate).dag.unwrap(), twice);
    assert_eq!(control.current_dag(name).unwrap(), first, "the topic itself did not change");
    assert!(control.push_layout("segment://public/default/a/0000-ffff-0", &twice).is_err());
}
