//! Producing and consuming, at the brokers that own the segments.

use stc_proto::{name::Domain, pulsar::*};

use crate::{expect, support::*};

#[tokio::test(start_paused = true)]
async fn a_message_goes_from_a_producer_to_a_consumer_of_the_segment() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    let update = client.watch(1, "topic://public/default/t").await;
    let dag = update.dag.unwrap();
    assert_eq!(update.resolved_topic_name.as_deref(), Some("topic://public/default/t"));
    assert_eq!((dag.epoch, dag.segments.len(), dag.segment_brokers.len()), (0, 1, 1));
    let segment = "segment://public/default/t/0000-ffff-0";
    assert_eq!(client.lookup(segment).await.broker_service_url.unwrap(), dag.segment_brokers[0].broker_url);

    let mut owner = Client::connect(&cluster, &dag.segment_brokers[0].broker_url).await;
    let success = owner.producer(0, segment, "p-seg-0").await;
    assert_eq!((success.producer_name.as_str(), success.last_sequence_id()), ("p-seg-0", -1));
    let first = owner.publish_ok(0, 0, "one").await;
    owner.subscribe(0, segment, "s").await;
    assert_eq!(owner.message().await, ("one".into(), MessageIdData { partition: Some(-1), ..first.clone() }));
    owner
        .send(CommandAck {
            consumer_id: 0,
            ack_type: command_ack::AckType::Individual as i32,
            message_id: vec![first],
            request_id: Some(9),
            ..Default::default()
        })
        .await;
    assert_eq!(expect!(owner, AckResponse).error, None);
    let stored = cluster.control().stored("topic://public/default/t").unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].segment, stored[0].topic.domain()), (Some(0), Domain::Segment));
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_segments_of_a_topic_have_their_schemas_in_common() {
    let cluster = cluster();
    let name = "topic://public/default/t";
    create(&cluster, name, 2);
    let schema = |kind: schema::Type, text: &'static str| Schema {
        name: "s".into(),
        r#type: kind as i32,
        schema_data: text.into(),
        properties: vec![],
    };
    let lower = "segment://public/default/t/0000-7fff-0";
    let mut client = Client::to_owner(&cluster, lower).await;
    let with = |topic: &str, schema: Schema| CommandProducer {
        schema: Some(schema),
        producer_name: None,
        ..producer(0, topic, "", 1)
    };
    client.send(with(lower, schema(schema::Type::String, ""))).await;
    let version = expect!(client, ProducerSuccess).schema_version;

    let upper = "segment://public/default/t/8000-ffff-1";
    let mut client = Client::to_owner(&cluster, upper).await;
    let record = r#"{"type":"record","name":"r","fields":[]}"#;
    client.send(with(upper, schema(schema::Type::Json, record))).await;
    assert_eq!(expect!(client, Error).error(), ServerError::IncompatibleSchema);

    split(&cluster, name, 1);
    let child = "segment://public/default/t/8000-bfff-2";
    let mut client = Client::to_owner(&cluster, child).await;
    client.send(CommandGetSchema { request_id: 2, topic: child.into(), schema_version: None }).await;
    assert_eq!(expect!(client, GetSchemaResponse).schema_version, version);
    cluster.shutdown().await;
}
