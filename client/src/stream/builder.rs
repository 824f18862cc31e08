//! Configuring and subscribing a stream consumer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use stc_proto::pulsar::{KeyValue, ScalableConsumerType, command_subscribe};
use tokio::sync::{mpsc, oneshot};

use super::{
    Face, StreamConsumer,
    actor::{Actor, Settings},
};
use crate::{
    client::Shared,
    consumer::InitialPosition,
    core::{
        deviant::Deviant,
        error::{Category, Error},
        stream::{StreamConfig, StreamCore},
    },
    layout_watch,
    receive_queue::ReceiveQueue,
    registration::{Registrant, Registration},
    schema::{Schema, Writers, to_wire},
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
        let invalid = |why: &str| Error::new(Category::InvalidConfiguration, why);
        let topic = layout_watch::parse_topic(self.topic.as_deref())?;
        let invented = client.deviance.is(Deviant::InventsSubscription).then(|| "invented".to_owned());
        let subscription = self
            .subscription
            .filter(|name| !name.is_empty())
            .or(invented)
            .ok_or_else(|| invalid("no subscription is set"))?;
        if self.receiver_queue == 0 {
            return Err(invalid("the receiver queue holds at least one message"));
        }
        let mut rng = client.rng();
        let name = self.name.unwrap_or_else(|| format!("stream-{:010x}", rng.next() >> 24));
        let watch = layout_watch::open(&client, topic).await?;
        let config = StreamConfig {
            consumer: CONSUMERS.fetch_add(1, Ordering::Relaxed),
            receiver_queue: self.receiver_queue,
            group_time: self.group_time.as_millis() as u64,
            open_limit: client.operation_timeout.as_millis() as u64,
            backoff: client.backoff,
            deviance: client.deviance,
        };
        let latest =
            self.initial_position == InitialPosition::Latest || client.deviance.is(Deviant::ResumeAtLatest);
        let drops = client.deviance.is(Deviant::DropStreamOptions);
        let properties = self.properties.into_iter().filter(|_| !drops);
        let settings = Settings {
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
        let registrant = Registrant {
            topic: core.topic().to_owned(),
            group: subscription.clone(),
            name,
            kind: ScalableConsumerType::Stream,
        };
        let registration = Registration::new(client.clone(), registrant);
        let writers = self.schema.wants_writer().then(|| Writers::new(client.clone(), watch.state.clone()));
        let face = Arc::new(Face {
            topic: core.topic().into(),
            subscription,
            queue: ReceiveQueue::new(writers),
            deviance: client.deviance,
            receiver_queue: self.receiver_queue as usize,
        });
        let (requests, receiver) = mpsc::unbounded_channel();
        let (opened, ready) = oneshot::channel();
        let actor = Actor::new(client, core, watch, settings, registration, receiver, face.clone(), alive);
        tokio::spawn(actor.run(opened));
        // Dropped on failure, the consumer leaves and closes what is attached so far.
        let consumer = StreamConsumer { requests, face, schema: self.schema };
        match ready.await {
            Ok(opened) => opened.map(|()| consumer),
            Err(_) => Err(Error::closed("client")),
        }
    }
}
