//! A simulated cluster in memory and clients on it, under paused time.

use std::{future::Future, io, sync::Arc, time::Duration};

use sim_broker::{
    Control, SimCluster,
    core::{Cluster, ClusterConfig, Profile},
};
use stc_client::{
    BoxFuture, BrokerAddress, ClientBuilder, Clock, InitialPosition, Link, Message, PulsarClient,
    QueueConsumer, StreamConsumer, StringSchema, Transport,
};
use stc_proto::TopicName;

pub(crate) const TOPIC: &str = "topic://public/default/t";

/// The seed of clusters and clients; printed, so that a failure can be run again.
const SEED: u64 = 42;

pub(crate) struct Bench {
    pub(crate) cluster: SimCluster,
    pub(crate) control: Control,
}

/// Opens links in memory.
struct InMemory(SimCluster);

impl Transport for InMemory {
    fn connect<'a>(&'a self, address: &'a BrokerAddress) -> BoxFuture<'a, io::Result<Box<dyn Link>>> {
        let link = self.0.connect(&address.to_string());
        Box::pin(async move { Ok(Box::new(link?) as Box<dyn Link>) })
    }
}

/// The cluster's clock.
struct ClusterClock(SimCluster);

impl Clock for ClusterClock {
    fn now_ms(&self) -> u64 {
        self.0.now()
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ClusterConfig)) -> Self {
        println!("seed {SEED}");
        let mut config = ClusterConfig::new(Profile::built_in("spec-1.0").unwrap());
        config.seed = SEED;
        change(&mut config);
        let cluster = SimCluster::in_memory(config);
        let control = cluster.control();
        Bench { cluster, control }
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let builder = PulsarClient::builder()
            .service_url(self.cluster.service_url())
            .transport(Arc::new(InMemory(self.cluster.clone())))
            .clock(ClusterClock(self.cluster.clone()))
            .seed(SEED);
        deviate(builder)
    }

    pub(crate) fn client(&self) -> PulsarClient {
        self.builder().build().unwrap()
    }

    pub(crate) fn create(&self, segments: i64) {
        self.admin(|cluster, now| {
            cluster.create_scalable_topic(&name(TOPIC), segments, Default::default(), now)
        });
    }

    pub(crate) fn split(&self, segment: u64) {
        self.admin(|cluster, now| cluster.split_segment(&name(TOPIC), segment, now));
    }

    pub(crate) fn merge(&self, a: u64, b: u64) {
        self.admin(|cluster, now| cluster.merge_segments(&name(TOPIC), a, b, now));
    }

    pub(crate) fn admin<E: std::fmt::Debug>(&self, call: impl FnOnce(&mut Cluster, u64) -> Result<(), E>) {
        self.cluster.with(call).unwrap();
    }

    /// How many frames with this name the journal has, in either direction.
    pub(crate) fn count(&self, command: &str) -> usize {
        self.frames(command).len()
    }

    /// The fields of all frames with this name, in order.
    pub(crate) fn frames(&self, command: &str) -> Vec<serde_json::Value> {
        let journal = self.control.journal();
        let frames = journal.iter().filter_map(|record| record.frame());
        frames.filter(|frame| frame.command.name() == command).map(|frame| frame.command.fields()).collect()
    }

    /// What the topic stores: the segment, the key and the value of each message, in stored order.
    pub(crate) fn stored(&self, topic: &str) -> Vec<(Option<u64>, Option<String>, String)> {
        let mut stored = Vec::new();
        for view in self.control.stored(topic).unwrap() {
            let entry = stc_proto::Entry::parse(view.bytes).unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            match entry.metadata.num_messages_in_batch {
                Some(count) => {
                    for (single, payload) in stc_proto::batch::read(entry.payload, count as usize).unwrap() {
                        stored.push((view.segment, single.partition_key, text(&payload)));
                    }
                }
                None => stored.push((view.segment, entry.metadata.partition_key, text(&entry.payload))),
            }
        }
        stored
    }

    pub(crate) async fn consumer(&self, client: &PulsarClient, topic: &str) -> QueueConsumer<String> {
        client
            .queue_consumer(StringSchema)
            .topic(topic)
            .subscription("s")
            .name("c")
            .initial_position(InitialPosition::Earliest)
            .subscribe()
            .await
            .unwrap()
    }
}

/// With the feature `deviants`, STC_DEVIANT names a behaviour to break: the tests should notice.
#[cfg(feature = "deviants")]
fn deviate(builder: ClientBuilder) -> ClientBuilder {
    match std::env::var("STC_DEVIANT") {
        Ok(name) => builder.deviant(stc_client::Deviant::by_name(&name).expect("the name of a deviant")),
        Err(_) => builder,
    }
}

#[cfg(not(feature = "deviants"))]
fn deviate(builder: ClientBuilder) -> ClientBuilder {
    builder
}

pub(crate) fn name(topic: &str) -> TopicName {
    TopicName::parse(topic).unwrap()
}

/// Receives until nothing comes any more, and acknowledges. In paused time waiting costs nothing.
pub(crate) async fn drain(consumer: &QueueConsumer<String>) -> Vec<Message<String>> {
    let mut messages = Vec::new();
    while let Some(message) = consumer.receive_timeout(Duration::from_secs(120)).await.unwrap() {
        consumer.acknowledge(message.id()).await.unwrap();
        messages.push(message);
    }
    messages
}

/// Receives until nothing comes for a second.
pub(crate) async fn receive(consumer: &StreamConsumer<String>) -> Vec<Message<String>> {
    let mut messages = Vec::new();
    while let Some(message) = consumer.receive_timeout(Duration::from_secs(1)).await.unwrap() {
        messages.push(message);
    }
    messages
}

pub(crate) fn values(messages: &[Message<String>]) -> Vec<String> {
    messages.iter().map(|message| message.value().unwrap()).collect()
}

/// The same, sorted as numbers.
pub(crate) fn numbers(messages: &[Message<String>]) -> Vec<u64> {
    let mut numbers: Vec<u64> = values(messages).iter().map(|value| value.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// Fails when something takes an hour of paused time: it would wait for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3600), future).await.expect("it never happens")
}
