//! LOOKUP and PARTITIONED_METADATA.

use sim_broker::core::cluster::{AutoTopicCreation, PartitionedOrNot};
use stc_proto::pulsar::{command_lookup_topic_response::LookupType, *};

use crate::{expect, support::*};

async fn partitions(client: &mut Client, topic: &str) -> CommandPartitionedTopicMetadataResponse {
    let request_id = client.request();
    client
        .send(CommandPartitionedTopicMetadata { topic: topic.into(), request_id, ..Default::default() })
        .await;
    expect!(client, PartitionedMetadataResponse)
}

#[tokio::test(start_paused = true)]
async fn every_broker_names_the_same_owner_for_every_kind_of_name() {
    let cluster = cluster();
    for name in [
        "topic://public/default/a",
        "segment://public/default/a/0000-ffff-0",
        "persistent://public/default/a",
        "persistent://public/default/a-partition-1",
        "a",
    ] {
        let mut owners = Vec::new();
        for broker in 0..3 {
            let answer = Client::to(&cluster, broker).await.lookup(name).await;
            assert_eq!(answer.response(), LookupType::Connect, "{name}");
            assert_eq!((answer.authoritative(), answer.proxy_through_service_url()), (true, false));
            owners.push(answer.broker_service_url.unwrap());
        }
        owners.dedup();
        assert_eq!(owners.len(), 1, "{name}");
        assert!(cluster.broker_urls().contains(&owners[0]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_broker_answers_like_standalone() {
    let cluster = cluster_as("pulsar-5.0.1", |c| c.brokers = 1);
    let answer = Client::to(&cluster, 0).await.lookup("topic://public/default/a").await;
    assert!(answer.proxy_through_service_url());
    assert_eq!(answer.broker_service_url.as_deref(), Some(cluster.service_url().as_str()));
}

#[tokio::test(start_paused = true)]
async fn redirecting_clusters_send_a_client_to_the_owner_who_answers_connect() {
    let cluster = cluster_as("spec-1.0", |c| c.redirect_lookups = true);
    let mut redirected = 0;
    for broker in 0..3 {
        let answer = Client::to(&cluster, broker).await.lookup("topic://public/default/a").await;
        if answer.response() == LookupType::Redirect {
            redirected += 1;
            let mut owner = Client::connect(&cluster, &answer.broker_service_url.unwrap()).await;
            assert_eq!(owner.lookup("topic://public/default/a").await.response(), LookupType::Connect);
        }
    }
    assert_eq!(redirected, 2);
}

#[tokio::test(start_paused = true)]
async fn missing_namespaces_and_bad_names_fail() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    for name in ["topic://public/nope/a", "topic://nope/default/a", "persistent://nope/default/a"] {
        let answer = client.lookup(name).await;
        assert_eq!(answer.response(), LookupType::Failed, "{name}");
        assert_eq!((answer.error(), answer.message()), (ServerError::TopicNotFound, "Namespace not found"));
        assert_eq!(partitions(&mut client, name).await.error(), ServerError::TopicNotFound);
    }
    assert_eq!(client.lookup("topic://a").await.error(), ServerError::InvalidTopicName);
    assert_eq!(partitions(&mut client, "topic://a").await.error(), ServerError::InvalidTopicName);
}

#[tokio::test(start_paused = true)]
async fn partitions_follow_the_policy_of_the_namespace() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    assert_eq!(partitions(&mut client, "segment://public/default/a/0000-ffff-0").await.partitions(), 0);
    assert_eq!(partitions(&mut client, "persistent://public/default/a").await.partitions(), 0);
    let policy = |allowed, kind| AutoTopicCreation { allowed, kind, default_partitions: 3 };
    let set = |policy| {
        cluster.with(|c, now| c.set_auto_topic_creation("public", "default", Some(policy), now)).unwrap();
    };
    set(policy(true, PartitionedOrNot::Partitioned));
    assert_eq!(partitions(&mut client, "persistent://public/default/b").await.partitions(), 3);
    assert_eq!(partitions(&mut client, "persistent://public/default/b-partition-2").await.partitions(), 0);
    set(policy(false, PartitionedOrNot::Partitioned));
    assert_eq!(partitions(&mut client, "persistent://public/default/b").await.partitions(), 3);
    let missing = partitions(&mut client, "persistent://public/default/c").await;
    assert_eq!(missing.error(), ServerError::TopicNotFound);

    // Attaching follows the same policy.
    let mut owner = Client::to_owner(&cluster, "persistent://public/default/c").await;
    owner.send(producer(1, "persistent://public/default/c", "p", 1)).await;
    assert_eq!(expect!(owner, Error).error(), ServerError::TopicNotFound);
    set(AutoTopicCreation::default());
    owner.producer(1, "persistent://public/default/c", "p").await;
    let mut base = Client::to_owner(&cluster, "persistent://public/default/b").await;
    base.send(producer(1, "persistent://public/default/b", "p", 1)).await;
    assert_eq!(expect!(base, Error).error(), ServerError::NotAllowedError);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_does_not_own_a_topic_refuses_to_serve_it() {
    let cluster = cluster();
    let segment = segment_of(&cluster, "topic://public/default/a").await;
    let owner = Client::to(&cluster, 0).await.lookup(&segment).await.broker_service_url.unwrap();
    let mut refused = 0;
    for url in cluster.broker_urls() {
        let mut client = Client::connect(&cluster, &url).await;
        client.send(producer(0, &segment, "p", 1)).await;
        match client.recv().await.command {
            stc_proto::Command::Error(error) => {
                assert_eq!(error.error(), ServerError::ServiceNotReady);
                assert_ne!(url, owner);
                refused += 1;
            }
            stc_proto::Command::ProducerSuccess(_) => assert_eq!(url, owner),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 2);
}
