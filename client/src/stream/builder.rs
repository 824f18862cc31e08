//! Configuring and subscribing a stream consumer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use stc_proto::pulsar::{KeyValue, ScalableConsumerType, command_subscribe};

use super::{StreamConsumer, kind::Stream};
use crate::{
    client::Shared,
    consumer::{Beginning, Handle, check_receiver_queue, check_subscription, life},
    core::{
        consumer::Core as _,
        deviant::Deviant,
        error::Error,
        stream::{StreamConfig, StreamCore},
    },
    layout_watch,
    queue::InitialPosition,
    registration::Registrant,
    schema::{Schema, to_wire},
};

/// Tells the deliveries of one consumer from those of every other in the process.
static CONSUMERS: AtomicU64 = AtomicU64::new(0);

/// Configures a [`StreamConsumer`] (client-api §4.1).
pub struct StreamConsumerBuilder<T> {
    client: Arc<Shared>,
    schema: Arc<dyn Schema<T>>,
    topic: Option<String>,
    subscription: Option<String>,
    name: Option<String>,
    initial_position: InitialPosition,
    properties: Vec<(String, String)>,
    receiver_queue: u32,
    group_time: Duration,
    read_compacted: bool,
    replicate_state: bool,
}

impl<T: 'static> StreamConsumerBuilder<T> {
    pub(crate) fn new(client: Arc<Shared>, schema: Arc<dyn Schema<T>>) -> Self {
        StreamConsumerBuilder {
            client,
            schema,
            topic: None,
            subscription: None,
            name: None,
            initial_position: InitialPosition::default(),
            properties: Vec::new(),
            receiver_queue: 1000,
            group_time: Duration::ZERO,
            read_compacted: false,
            replicate_state: false,
        }
    }

    /// The topic: `topic://tenant/namespace/name`. Required.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// The subscription's name. Required.
    pub fn subscription(mut self, name: impl Into<String>) -> Self {
        self.subscription = Some(name.into());
        self
    }

    /// The consumer's name; made up when it is left out. A consumer that comes back under the name of one that was lost
    /// less than the controller's grace period ago takes that one's place.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where a new subscription starts; [`InitialPosition::Latest`] by default. One that exists goes on where it is.
    pub fn initial_position(mut self, position: InitialPosition) -> Self {
        self.initial_position = position;
        self
    }

    /// A property of the subscription.
    pub fn subscription_property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((key.into(), value.into()));
        self
    }

    /// How many messages may be under way or wait to be received, for each of the topic's parts; 1000 by default.
    pub fn receiver_queue_size(mut self, messages: u32) -> Self {
        self.receiver_queue = messages;
        self
    }

    /// How long acknowledgements are collected before they are sent; by default each is sent at once.
    pub fn acknowledgment_group_time(mut self, time: Duration) -> Self {
        self.group_time = time;
        self
    }

    /// Whether to read what compaction left: the last message of each key, from the compacted part of the topic. It has
    /// no effect on what is shared with other consumers, where brokers do not offer it.
    pub fn read_compacted(mut self, read_compacted: bool) -> Self {
        self.read_compacted = read_compacted;
        self
    }

    /// Whether clusters that replicate the topic replicate the subscription's position as well.
    pub fn replicate_subscription_state(mut self, replicate: bool) -> Self {
        self.replicate_state = replicate;
        self
    }

    /// Subscribes (client-api §4.1, wire-protocol §6.2): joins the subscription's consumers and attaches to what is
    /// assigned to this one, which can be nothing. Waits for the consumers that have it so far, until they have
    /// acknowledged what they received.
    ///
    /// # Errors
    /// `InvalidConfiguration`, `NotFound` for a topic that is absent and not created, `ConsumerBusy` when what is
    /// assigned is still another consumer's after the client's operation timeout, `NotSupported` when the broker does
    /// not know scalable topics, `NotConnected` when no broker is reached in that time, and what else the broker
    /// answers.
    pub async fn subscribe(self) -> Result<StreamConsumer<T>, Error> {
        let deviance = self.client.deviance;
        self.attach().await.map_err(|error| deviance.report(error))
    }

    async fn attach(self) -> Result<StreamConsumer<T>, Error> {
        let client = self.client;
        let alive = client.enter()?;
        let invented = client.deviance.is(Deviant::InventsStreamTopic);
        let topic = self.topic.as_deref().or(invented.then_some("topic://public/default/invented"));
        let topic = layout_watch::parse_topic(topic)?;
        let invented = client.deviance.is(Deviant::InventsSubscription).then(|| "invented".to_owned());
        let subscription =
            check_subscription(self.subscription.filter(|name| !name.is_empty()).or(invented))?;
        check_receiver_queue(self.receiver_queue)?;
        let mut rng = client.rng();
        let name = self.name.unwrap_or_else(|| format!("stream-{:010x}", rng.next() >> 24));
        let watch = layout_watch::open(&client, topic).await?;
        let config = StreamConfig {
            consumer: CONSUMERS.fetch_add(1, Ordering::Relaxed),
            receiver_queue: self.receiver_queue,
            group_time: self.group_time.as_millis() as u64,
            life: life(&client),
        };
        let latest =
            self.initial_position == InitialPosition::Latest || client.deviance.is(Deviant::ResumeAtLatest);
        let drops = client.deviance.is(Deviant::DropStreamOptions);
        let properties = self.properties.into_iter().filter(|_| !drops);
        let kind = Stream {
            subscription: subscription.clone(),
            name: name.clone(),
            initial_position: match latest {
                true => command_subscribe::InitialPosition::Latest,
                false => command_subscribe::InitialPosition::Earliest,
            },
            schema: self.schema.info().map(to_wire),
            properties: properties.map(|(key, value)| KeyValue { key, value }).collect(),
            read_compacted: self.read_compacted && !drops,
            replicate_state: self.replicate_state && !drops,
        };
        let view = watch.state.borrow().view.clone();
        let core = StreamCore::new(config, view, client.rng(), client.clocks.now());
        let registrant = Some(Registrant {
            topic: core.topic().to_owned(),
            group: subscription.clone(),
            name,
            kind: ScalableConsumerType::Stream,
        });
        let receiver_queue = self.receiver_queue;
        let beginning = Beginning { kind, core, watch, registrant, receiver_queue };
        let handle = Handle::open(client, alive, beginning, &*self.schema).await?;
        Ok(StreamConsumer { handle, subscription: subscription.into(), schema: self.schema })
    }
}
