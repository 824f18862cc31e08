//! Lists of a namespace's topics, and watches of them; schemas by command.

use stc_proto::pulsar::{command_get_topics_of_namespace::Mode, *};

use crate::{expect, support::*};

async fn list(
    client: &mut Client,
    pattern: Option<&str>,
    hash: Option<String>,
) -> CommandGetTopicsOfNamespaceResponse {
    let request_id = client.request();
    client
        .send(CommandGetTopicsOfNamespace {
            request_id,
            namespace: "public/default".into(),
            mode: Some(Mode::Persistent as i32),
            topics_pattern: pattern.map(Into::into),
            topics_hash: hash,
            ..Default::default()
        })
        .await;
    expect!(client, GetTopicsOfNamespaceResponse)
}

#[tokio::test(start_paused = true)]
async fn a_list_has_classic_topics_only_and_is_skipped_when_its_hash_is_known() {
    let cluster = cluster();
    cluster.with(|c, now| {
        c.create_topic(&topic("b"), now).unwrap();
        c.create_partitioned_topic(&topic("a"), 2, now).unwrap();
    });
    create(&cluster, "topic://public/default/scalable", 1);
    let mut client = Client::to(&cluster, 0).await;
    let all = list(&mut client, None, None).await;
    assert_eq!(
        all.topics,
        [
            "persistent://public/default/a-partition-0",
            "persistent://public/default/a-partition-1",
            "persistent://public/default/b",
        ]
    );
    assert_eq!((all.filtered(), all.changed()), (false, true));
    let same = list(&mut client, None, all.topics_hash).await;
    assert_eq!((same.changed(), same.topics.len()), (false, 0));
    let some = list(&mut client, Some("persistent://public/default/a.*"), None).await;
    assert_eq!((some.filtered(), some.topics.len()), (true, 2));
    client
        .send(CommandGetTopicsOfNamespace {
            request_id: 99,
            namespace: "public/default".into(),
            topics_pattern: Some("(".into()),
            ..Default::default()
        })
        .await;
    assert_eq!(expect!(client, Error).request_id, 99);
}

#[tokio::test(start_paused = true)]
async fn a_watch_hears_of_topics_that_come_and_go() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    client
        .send(CommandWatchTopicList {
            request_id: 1,
            watcher_id: 4,
            namespace: "public/default".into(),
            topics_pattern: "persistent://public/default/a.*".into(),
            topics_hash: None,
        })
        .await;
    let first = expect!(client, WatchTopicListSuccess);
    assert_eq!((first.watcher_id, first.topic.len()), (4, 0));
    cluster.with(|c, now| {
        c.create_topic(&topic("b"), now).unwrap();
        c.create_topic(&topic("a1"), now).unwrap();
    });
    let update = expect!(client, WatchTopicUpdate);
    assert_eq!(
        (update.new_topics, update.deleted_topics),
        (vec!["persistent://public/default/a1".into()], vec![])
    );
    assert_ne!(update.topics_hash, first.topics_hash);
    cluster.with(|c, now| c.delete_topic(&topic("a1"), false, now)).unwrap();
    let update = expect!(client, WatchTopicUpdate);
    assert_eq!(update.deleted_topics, ["persistent://public/default/a1"]);
    assert_eq!(update.topics_hash, first.topics_hash);
    client.send(CommandWatchTopicListClose { request_id: 2, watcher_id: 4 }).await;
    expect!(client, Success);
    cluster.with(|c, now| c.create_topic(&topic("a2"), now)).unwrap();
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_schema_is_registered_and_read_back() {
    let cluster = cluster();
    let name = "persistent://public/default/s";
    let mut client = Client::to_owner(&cluster, name).await;
    client.send(CommandGetSchema { request_id: 1, topic: name.into(), schema_version: None }).await;
    assert_eq!(expect!(client, GetSchemaResponse).error_code(), ServerError::TopicNotFound);
    let schema = Schema {
        name: "String".into(),
        schema_data: vec![].into(),
        r#type: schema::Type::String as i32,
        properties: vec![],
    };
    client
        .send(CommandGetOrCreateSchema {
            request_id: 2,
            topic: name.into(),
            schema: schema.clone(),
            producer_name: None,
        })
        .await;
    assert_eq!(expect!(client, GetOrCreateSchemaResponse).error_code, None);
    client.send(CommandGetSchema { request_id: 3, topic: name.into(), schema_version: None }).await;
    assert_eq!(expect!(client, GetSchemaResponse).schema.unwrap().r#type, schema.r#type);
}
