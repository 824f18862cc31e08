//! Namespace watches: the set of scalable topics that a client is told of, and how it changes.

use std::collections::BTreeMap;

use sim_broker::SimCluster;
use stc_proto::{hash::topic_set_hash, pulsar::*};

use crate::{expect, support::*};

fn name(local: &str) -> String {
    format!("topic://public/default/{local}")
}

fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn create_with(cluster: &SimCluster, local: &str, pairs: &[(&str, &str)]) {
    let pairs = properties(pairs);
    cluster.with(|c, now| c.create_scalable_topic(&topic(&name(local)), 1, pairs, now)).unwrap();
}

fn delete(cluster: &SimCluster, local: &str) {
    cluster.with(|c, now| c.delete_scalable_topic(&topic(&name(local)), true, now)).unwrap();
}

fn watch(id: u64, filters: &[(&str, &str)], hash: Option<String>) -> CommandWatchScalableTopics {
    let filter = |(key, value): &(&str, &str)| KeyValue { key: (*key).into(), value: (*value).into() };
    CommandWatchScalableTopics {
        watch_id: id,
        namespace: "public/default".into(),
        property_filters: filters.iter().map(filter).collect(),
        current_hash: hash,
    }
}

/// Takes an update: its watch, and what it says in words.
async fn update(client: &mut Client) -> (u64, String) {
    use command_watch_scalable_topics_update::Event;
    let update = expect!(client, WatchScalableTopicsUpdate);
    let locals = |names: &[String]| {
        names.iter().map(|n| n.replace("topic://public/default/", "")).collect::<Vec<_>>().join(",")
    };
    let text = match (&update.event, update.error) {
        (Some(Event::Snapshot(all)), None) => format!("={}", locals(&all.topics)),
        (Some(Event::Diff(diff)), None) => format!("-{} +{}", locals(&diff.removed), locals(&diff.added)),
        _ => format!("{:?}: {}", update.error(), update.message()),
    };
    (update.watch_id, text)
}

#[tokio::test(start_paused = true)]
async fn a_watch_brings_the_set_and_then_its_changes() {
    let cluster = cluster();
    cluster.with(|c, now| c.create_topic(&topic("classic"), now)).unwrap();
    create_with(&cluster, "b", &[]);
    create_with(&cluster, "a", &[]);
    let mut client = Client::to(&cluster, 1).await;
    client.send(watch(3, &[], None)).await;
    assert_eq!(update(&mut client).await, (3, "=a,b".into()));
    create_with(&cluster, "c", &[]);
    delete(&cluster, "a");
    assert_eq!(update(&mut client).await, (3, "-a +c".into()), "what comes together is told together");
    client.send(CommandWatchScalableTopicsClose { watch_id: 3 }).await;
    client.expect_nothing().await;
    create_with(&cluster, "d", &[]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_was_made_again_is_named_as_removed_and_as_added() {
    let cluster = cluster();
    create_with(&cluster, "a", &[]);
    let mut client = Client::to(&cluster, 0).await;
    client.send(watch(1, &[], None)).await;
    update(&mut client).await;
    delete(&cluster, "a");
    create_with(&cluster, "a", &[]);
    assert_eq!(update(&mut client).await, (1, "-a +a".into()));
    create_with(&cluster, "b", &[]);
    delete(&cluster, "b");
    create_with(&cluster, "c", &[]);
    assert_eq!(update(&mut client).await, (1, "- +c".into()), "what came and went is not told");
}

/// As a raw client of the real broker was told.
#[tokio::test(start_paused = true)]
async fn the_released_broker_tells_what_happened_last_to_each_topic() {
    let cluster = cluster_as("pulsar-5.0.1", |_| ());
    create_with(&cluster, "a", &[]);
    let mut client = Client::to(&cluster, 0).await;
    client.send(watch(1, &[], None)).await;
    client.send(watch(2, &[("team", "x")], None)).await;
    assert_eq!(update(&mut client).await, (1, "=a".into()));
    assert_eq!(update(&mut client).await, (2, "=".into()));
    delete(&cluster, "a");
    create_with(&cluster, "a", &[]);
    assert_eq!(update(&mut client).await, (1, "- +a".into()));
    create_with(&cluster, "b", &[]);
    delete(&cluster, "b");
    assert_eq!(update(&mut client).await, (1, "-b +".into()));
    create_with(&cluster, "c", &[("team", "x")]);
    assert_eq!(update(&mut client).await, (1, "- +c".into()));
    assert_eq!(update(&mut client).await, (2, "- +c".into()));
}

#[tokio::test(start_paused = true)]
async fn filters_are_joined_by_and_and_follow_the_properties() {
    let cluster = cluster();
    create_with(&cluster, "a", &[("team", "x"), ("tier", "1")]);
    create_with(&cluster, "b", &[("team", "x")]);
    create_with(&cluster, "c", &[("team", "y"), ("tier", "1")]);
    let mut client = Client::to(&cluster, 0).await;
    client.send(watch(1, &[("team", "x"), ("tier", "1")], None)).await;
    assert_eq!(update(&mut client).await, (1, "=a".into()));
    let control = cluster.control();
    control.set_topic_properties(&name("b"), properties(&[("team", "x"), ("tier", "1")])).unwrap();
    assert_eq!(update(&mut client).await, (1, "- +b".into()));
    control.set_topic_properties(&name("a"), BTreeMap::new()).unwrap();
    assert_eq!(update(&mut client).await, (1, "-a +".into()));
    control.set_topic_properties(&name("none"), BTreeMap::new()).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_known_hash_saves_the_snapshot_and_nothing_else() {
    let cluster = cluster();
    create_with(&cluster, "a", &[]);
    create_with(&cluster, "b", &[]);
    let mut client = Client::to(&cluster, 0).await;
    let hash = topic_set_hash([name("b"), name("a")]);
    client.send(watch(1, &[], Some(hash.clone()))).await;
    client.expect_nothing().await;
    delete(&cluster, "b");
    assert_eq!(update(&mut client).await, (1, "-b +".into()));
    client.send(watch(2, &[], Some(hash))).await;
    assert_eq!(update(&mut client).await, (2, "=a".into()));
    delete(&cluster, "a");
    assert_eq!(update(&mut client).await, (1, "-a +".into()));
    assert_eq!(update(&mut client).await, (2, "-a +".into()));
    client.send(watch(3, &[], Some("00000000".into()))).await;
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_an_error_by_the_specification_and_empty_in_the_released_brokers() {
    let missing = || CommandWatchScalableTopics { namespace: "public/none".into(), ..watch(1, &[], None) };
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    client.send(missing()).await;
    let refused = update(&mut client).await;
    assert_eq!(refused, (1, "TopicNotFound: Namespace not found: public/none".into()));
    for profile in ["pulsar-5.0.1", "pulsar-5.0.0-M1"] {
        let cluster = cluster_as(profile, |_| ());
        let mut client = Client::to(&cluster, 0).await;
        client.send(missing()).await;
        assert_eq!(update(&mut client).await, (1, "=".into()), "{profile}");
        cluster.with(|c, now| c.create_namespace("public", "none", now)).unwrap();
        create(&cluster, "topic://public/none/a", 1);
        assert_eq!(update(&mut client).await, (1, "- +topic://public/none/a".into()), "{profile}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_takes_its_topics_out() {
    let cluster = cluster();
    create_with(&cluster, "a", &[]);
    let mut client = Client::to(&cluster, 0).await;
    client.send(watch(1, &[], None)).await;
    update(&mut client).await;
    cluster.with(|c, now| c.delete_namespace("public", "default", true, now)).unwrap();
    assert_eq!(update(&mut client).await, (1, "-a +".into()));
}
