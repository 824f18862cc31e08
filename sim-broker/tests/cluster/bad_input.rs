//! Bad input: each kind gets Pulsar's own error or a closed connection with a reason in the journal; the broker, other
//! connections and stored messages are unharmed.

use bytes::{BufMut, BytesMut};
use sim_broker::SimCluster;
use stc_proto::{Frame, pulsar::*};

use crate::{expect, support::*};

const TOPIC: &str = "topic://public/default/t";

/// A cluster with one stored message and a second connection that has to survive.
struct Scene {
    cluster: SimCluster,
    segment: String,
    witness: Client,
}

impl Scene {
    async fn new() -> Self {
        let cluster = cluster();
        let segment = segment_of(&cluster, TOPIC).await;
        let mut witness = Client::to_owner(&cluster, &segment).await;
        witness.producer(0, &segment, "witness").await;
        witness.publish_ok(0, 0, "kept").await;
        Scene { cluster, segment, witness }
    }

    async fn offender(&self) -> Client {
        Client::to_owner(&self.cluster, &self.segment).await
    }

    /// The offender's connection is closed with this reason in the journal; everything else goes on.
    async fn closed(mut self, mut offender: Client, reason: &str) {
        offender.expect_closed().await;
        let found = close_reason(&self.cluster.control());
        assert!(found.contains(reason), "{found:?} does not say {reason:?}");
        self.unharmed().await;
    }

    async fn unharmed(&mut self) {
        self.witness.publish_ok(0, 1, "also kept").await;
        let stored = self.cluster.control().stored(TOPIC).unwrap();
        assert_eq!(stored.len(), 2);
        let mut newcomer = self.offender().await;
        newcomer.subscribe(0, &self.segment, "check").await;
        assert_eq!(newcomer.message().await.0, "kept");
        assert_eq!(newcomer.message().await.0, "also kept");
    }
}

/// A frame around any command bytes.
fn raw_frame(command: &[u8]) -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_u32(4 + command.len() as u32);
    bytes.put_u32(command.len() as u32);
    bytes.put_slice(command);
    bytes
}

#[tokio::test(start_paused = true)]
async fn a_malformed_frame_closes_its_connection() {
    let scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.send_bytes(&raw_frame(&[0xff; 12])).await;
    scene.closed(offender, "malformed command").await;
}

#[tokio::test(start_paused = true)]
async fn a_command_that_does_not_fit_its_frame_closes_its_connection() {
    let scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.send_bytes(&[0, 0, 0, 8, 0, 0, 0, 99, 1, 2, 3, 4]).await;
    scene.closed(offender, "does not fit").await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_required_field_closes_its_connection() {
    let scene = Scene::new().await;
    let mut offender = scene.offender().await;
    // SEND (type 6) with a producer id and no sequence id.
    offender.send_bytes(&raw_frame(&[0x08, 6, 0x32, 2, 0x08, 0])).await;
    scene.closed(offender, "sequence_id").await;
}

#[tokio::test(start_paused = true)]
async fn an_oversized_frame_closes_its_connection() {
    let scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.send_bytes(&u32::MAX.to_be_bytes()).await;
    scene.closed(offender, "exceeds the limit").await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_command_closes_its_connection() {
    let scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.send_bytes(&raw_frame(&[0x08, 0x7f])).await;
    scene.closed(offender, "unknown command type 127").await;
}

#[tokio::test(start_paused = true)]
async fn a_command_that_only_brokers_send_closes_its_connection() {
    let scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.send(CommandSuccess { request_id: 1, schema: None }).await;
    scene.closed(offender, "SUCCESS is not a command for a broker").await;
}

#[tokio::test(start_paused = true)]
async fn a_command_that_the_profile_lacks_closes_its_connection() {
    let cluster = cluster_as("pulsar-5.0.0-M1", |_| ());
    let mut client = Client::to(&cluster, 0).await;
    client.send(CommandScalableTopicUnsubscribe { request_id: 1, consumer_id: 1 }).await;
    client.expect_closed().await;
    assert!(close_reason(&cluster.control()).contains("unknown to pulsar-5.0.0-M1"));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_checksum_is_refused_and_nothing_is_stored() {
    let mut scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.producer(0, &scene.segment, "offender").await;
    let Frame { command, payload } = message(0, 0, "broken");
    let mut payload = BytesMut::from(payload.unwrap());
    *payload.last_mut().unwrap() ^= 1;
    offender.send_frame(Frame { command, payload: Some(payload.freeze()) }).await;
    let error = expect!(offender, SendError);
    assert_eq!(error.error(), ServerError::ChecksumError);
    scene.unharmed().await;
}

#[tokio::test(start_paused = true)]
async fn a_send_without_an_entry_stores_nothing() {
    let mut scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.producer(0, &scene.segment, "offender").await;
    offender.send(CommandSend { producer_id: 0, sequence_id: 0, ..Default::default() }).await;
    let answer = offender.try_recv().await;
    assert!(!matches!(&answer, Some(f) if f.command.name() == "SEND_RECEIPT"), "{answer:?}");
    scene.unharmed().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_served_before_connect() {
    let scene = Scene::new().await;
    let mut offender = Client::open(&scene.cluster, &scene.cluster.service_url());
    offender.send(CommandLookupTopic { topic: TOPIC.into(), request_id: 1, ..Default::default() }).await;
    scene.closed(offender, "LOOKUP before CONNECT").await;
}

#[tokio::test(start_paused = true)]
async fn a_second_connect_closes_its_connection() {
    let scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.send(connect()).await;
    scene.closed(offender, "second CONNECT").await;
}

#[tokio::test(start_paused = true)]
async fn a_send_for_an_unknown_producer_closes_its_connection() {
    let scene = Scene::new().await;
    let mut offender = scene.offender().await;
    offender.publish(77, 0, "lost").await;
    scene.closed(offender, "unknown producer 77").await;
}

#[tokio::test(start_paused = true)]
async fn unknown_consumers_are_ignored_or_refused_as_pulsar_does() {
    let mut scene = Scene::new().await;
    let mut offender = scene.offender().await;
    let id = MessageIdData { ledger_id: 0, entry_id: 0, ..Default::default() };
    offender.send(CommandFlow { consumer_id: 77, message_permits: 1 }).await;
    offender
        .send(CommandAck { consumer_id: 77, ack_type: 0, message_id: vec![id], ..Default::default() })
        .await;
    let redeliver = CommandRedeliverUnacknowledgedMessages { consumer_id: 77, ..Default::default() };
    offender.send(redeliver).await;
    offender.expect_nothing().await;

    offender.send(CommandSeek { consumer_id: 77, request_id: 1, ..Default::default() }).await;
    assert_eq!(expect!(offender, Error).error(), ServerError::MetadataError);
    offender.send(CommandUnsubscribe { consumer_id: 77, request_id: 2, force: None }).await;
    assert_eq!(expect!(offender, Error).error(), ServerError::MetadataError);
    offender.send(CommandGetLastMessageId { consumer_id: 77, request_id: 3 }).await;
    assert_eq!(expect!(offender, Error).error(), ServerError::MetadataError);
    offender.send(CommandConsumerStats { consumer_id: 77, request_id: 4 }).await;
    assert_eq!(expect!(offender, ConsumerStatsResponse).error_code(), ServerError::ConsumerNotFound);
    // Closing what is closed succeeds.
    offender.send(CommandCloseConsumer { consumer_id: 77, request_id: 5, ..Default::default() }).await;
    assert_eq!(expect!(offender, Success).request_id, 5);
    offender.send(CommandCloseProducer { producer_id: 77, request_id: 6, ..Default::default() }).await;
    assert_eq!(expect!(offender, Success).request_id, 6);
    scene.unharmed().await;
}

#[tokio::test(start_paused = true)]
async fn attaching_to_what_is_not_there_is_refused() {
    let mut scene = Scene::new().await;
    for (name, error) in [
        ("segment://public/default/t/0000-7fff-9", ServerError::TopicNotFound),
        ("segment://public/default/t/nonsense", ServerError::InvalidTopicName),
        ("topic://public/default/t", ServerError::NotAllowedError),
        ("non-persistent://public/default/t", ServerError::NotAllowedError),
        ("persistent://public/nowhere/t", ServerError::TopicNotFound),
        ("://", ServerError::InvalidTopicName),
    ] {
        let owner = scene.cluster.read(|c| c.brokers().len());
        // Whichever broker it would belong to.
        let mut found = Vec::new();
        for broker in 0..owner {
            let mut offender = Client::to(&scene.cluster, broker).await;
            offender.send(producer(1, name, "p", 1)).await;
            let first = expect!(offender, Error).error();
            offender.send(subscribe(1, name, "s", 2)).await;
            assert_eq!(expect!(offender, Error).error(), first, "{name}");
            found.push(first);
        }
        found.retain(|e| *e != ServerError::ServiceNotReady);
        assert!(!found.is_empty() && found.iter().all(|e| *e == error), "{name}: {found:?}");
    }
    scene.unharmed().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_offered_gets_a_typed_error() {
    let cluster = cluster();
    let mut client = Client::to(&cluster, 0).await;
    client.send(CommandNewTxn { request_id: 1, tc_id: Some(99), ..Default::default() }).await;
    assert_eq!(expect!(client, NewTxnResponse).error(), ServerError::TransactionCoordinatorNotFound);
    client.send(CommandEndTxn { request_id: 2, ..Default::default() }).await;
    assert!(matches!(
        expect!(client, EndTxnResponse).error(),
        ServerError::TransactionNotFound | ServerError::TransactionCoordinatorNotFound
    ));
    client.send(CommandScalableTopicUnsubscribe { request_id: 5, consumer_id: 1 }).await;
    assert_eq!(expect!(client, Success).request_id, 5);
}
