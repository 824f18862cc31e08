//! A client of raw frames, so that a test reads as a script.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use sim_broker::{
    Control, SimCluster,
    core::{ClusterConfig, Profile, journal::Record},
};
use stc_proto::{Command, Decoder, Entry, Frame, TopicName, pulsar::*};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Virtual time after which a missing frame fails a test.
const PATIENCE: Duration = Duration::from_secs(5);

/// A cluster of three brokers that plays `spec-1.0`.
pub(crate) fn cluster() -> SimCluster {
    cluster_as("spec-1.0", |_| ())
}

/// A cluster that plays a profile, with changes to its set-up.
pub(crate) fn cluster_as(profile: &str, change: impl FnOnce(&mut ClusterConfig)) -> SimCluster {
    let mut config = ClusterConfig::new(Profile::built_in(profile).unwrap());
    change(&mut config);
    SimCluster::in_memory(config)
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName::parse(name).unwrap()
}

/// One connection.
pub(crate) struct Client {
    stream: DuplexStream,
    buffer: BytesMut,
    next_request: u64,
    show_pings: bool,
}

/// Takes the next frame, which has to be this command, and gives its body.
#[macro_export]
macro_rules! expect {
    ($client:expr, $variant:ident) => {{
        let frame = $client.recv().await;
        match frame.command {
            stc_proto::Command::$variant(body) => body,
            other => panic!("expected {}, got {other:?}", stringify!($variant)),
        }
    }};
}

impl Client {
    /// Opens a connection and sends nothing.
    pub(crate) fn open(cluster: &SimCluster, url: &str) -> Self {
        Client {
            stream: cluster.connect(url).unwrap(),
            buffer: BytesMut::new(),
            next_request: 1,
            show_pings: false,
        }
    }

    /// Opens a connection and shakes hands.
    pub(crate) async fn connect(cluster: &SimCluster, url: &str) -> Self {
        let mut client = Client::open(cluster, url);
        client.send(connect()).await;
        expect!(client, Connected);
        client
    }

    /// Opens a connection to broker `i` and shakes hands.
    pub(crate) async fn to(cluster: &SimCluster, i: usize) -> Self {
        Client::connect(cluster, &cluster.broker_urls()[i]).await
    }

    /// Opens a connection to whoever serves a topic, found by LOOKUP at the first broker.
    pub(crate) async fn to_owner(cluster: &SimCluster, topic: &str) -> Self {
        let mut client = Client::to(cluster, 0).await;
        let answer = client.lookup(topic).await;
        Client::connect(cluster, &answer.broker_service_url.expect("an owner")).await
    }

    /// From now on shows PINGs instead of answering them.
    pub(crate) fn raw(&mut self) -> &mut Self {
        self.show_pings = true;
        self
    }

    pub(crate) fn request(&mut self) -> u64 {
        self.next_request += 1;
        self.next_request
    }

    pub(crate) async fn send(&mut self, command: impl Into<Command>) {
        self.send_frame(Frame::from(command)).await;
    }

    pub(crate) async fn send_frame(&mut self, frame: Frame) {
        self.send_bytes(&frame.to_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next frame; fails after 5 s of virtual time. A PING is answered and not shown.
    pub(crate) async fn recv(&mut self) -> Frame {
        self.try_recv().await.expect("a frame, but the broker closed the connection")
    }

    /// The next frame, `None` when the broker closes the connection.
    pub(crate) async fn try_recv(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = Decoder::default().decode(&mut self.buffer).unwrap() {
                if !self.show_pings && matches!(frame.command, Command::Ping(_)) {
                    self.send(CommandPong {}).await;
                    continue;
                }
                return Some(frame);
            }
            let read = self.stream.read_buf(&mut self.buffer);
            let read = tokio::time::timeout(PATIENCE, read).await.expect("nothing came for 5 s");
            if read.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Shows that nothing more is on its way: a PING comes back first.
    pub(crate) async fn expect_nothing(&mut self) {
        self.send(CommandPing {}).await;
        expect!(self, Pong);
    }

    /// Shows that the broker closed the connection.
    pub(crate) async fn expect_closed(&mut self) {
        if let Some(frame) = self.try_recv().await {
            panic!("expected the end of the connection, got {frame:?}");
        }
    }

    pub(crate) async fn lookup(&mut self, topic: &str) -> CommandLookupTopicResponse {
        let request_id = self.request();
        self.send(CommandLookupTopic { topic: topic.into(), request_id, ..Default::default() }).await;
        expect!(self, LookupResponse)
    }

    /// Opens a DAG watch and gives the first update.
    pub(crate) async fn watch(&mut self, session_id: u64, topic: &str) -> CommandScalableTopicUpdate {
        self.send(CommandScalableTopicLookup { session_id, topic: topic.into(), create_if_missing: None })
            .await;
        expect!(self, ScalableTopicUpdate)
    }

    /// Opens a producer.
    pub(crate) async fn producer(&mut self, id: u64, topic: &str, name: &str) -> CommandProducerSuccess {
        let request_id = self.request();
        self.send(producer(id, topic, name, request_id)).await;
        expect!(self, ProducerSuccess)
    }

    /// Opens a shared subscription at the first message, with 1000 permits.
    pub(crate) async fn subscribe(&mut self, id: u64, topic: &str, subscription: &str) {
        let request_id = self.request();
        self.send(subscribe(id, topic, subscription, request_id)).await;
        expect!(self, Success);
        self.send(CommandFlow { consumer_id: id, message_permits: 1000 }).await;
    }

    /// Sends a message without waiting for its receipt.
    pub(crate) async fn publish(&mut self, producer_id: u64, sequence_id: u64, payload: &str) {
        self.send_frame(message(producer_id, sequence_id, payload)).await;
    }

    /// Sends a message and takes its receipt.
    pub(crate) async fn publish_ok(
        &mut self,
        producer_id: u64,
        sequence_id: u64,
        payload: &str,
    ) -> MessageIdData {
        self.publish(producer_id, sequence_id, payload).await;
        let receipt = expect!(self, SendReceipt);
        assert_eq!((receipt.producer_id, receipt.sequence_id), (producer_id, sequence_id));
        receipt.message_id.unwrap()
    }

    /// Takes a message and gives its payload and id.
    pub(crate) async fn message(&mut self) -> (String, MessageIdData) {
        let frame = self.recv().await;
        let Command::Message(command) = frame.command else { panic!("expected MESSAGE, got {frame:?}") };
        let entry = Entry::parse(frame.payload.unwrap()).unwrap();
        (String::from_utf8(entry.payload.to_vec()).unwrap(), command.message_id)
    }
}

pub(crate) fn connect() -> CommandConnect {
    CommandConnect { client_version: "test".into(), protocol_version: Some(21), ..Default::default() }
}

pub(crate) fn producer(id: u64, topic: &str, name: &str, request_id: u64) -> CommandProducer {
    CommandProducer {
        topic: topic.into(),
        producer_id: id,
        request_id,
        producer_name: Some(name.into()),
        ..Default::default()
    }
}

pub(crate) fn subscribe(id: u64, topic: &str, subscription: &str, request_id: u64) -> CommandSubscribe {
    CommandSubscribe {
        topic: topic.into(),
        subscription: subscription.into(),
        sub_type: command_subscribe::SubType::Shared as i32,
        consumer_id: id,
        request_id,
        initial_position: Some(command_subscribe::InitialPosition::Earliest as i32),
        ..Default::default()
    }
}

pub(crate) fn message(producer_id: u64, sequence_id: u64, payload: &str) -> Frame {
    let metadata =
        MessageMetadata { producer_name: "p".into(), sequence_id, publish_time: 1, ..Default::default() };
    let entry = Entry::new(metadata, Bytes::copy_from_slice(payload.as_bytes()));
    Frame::with_payload(CommandSend { producer_id, sequence_id, ..Default::default() }, entry.to_bytes())
}

/// Why the broker closed a connection, from the journal.
pub(crate) fn close_reason(control: &Control) -> String {
    let closed = |r: &Record| match &r.event {
        sim_broker::core::journal::Event::TcpClose { side: "broker", reason } => Some(reason.clone()),
        _ => None,
    };
    control.journal().iter().find_map(closed).expect("a connection that the broker closed")
}

/// Makes a scalable topic.
pub(crate) fn create(cluster: &SimCluster, name: &str, segments: i64) {
    cluster.with(|c, now| c.create_scalable_topic(&topic(name), segments, Default::default(), now)).unwrap();
}

/// Splits a segment.
pub(crate) fn split(cluster: &SimCluster, name: &str, segment: u64) {
    cluster.with(|c, now| c.split_segment(&topic(name), segment, now)).unwrap();
}

/// Makes a scalable topic of one segment, if there is none, and gives the name of that segment.
pub(crate) async fn segment_of(cluster: &SimCluster, name: &str) -> String {
    if cluster.control().current_dag(name).is_err() {
        create(cluster, name, 1);
    }
    name.replace("topic://", "segment://") + "/0000-ffff-0"
}
