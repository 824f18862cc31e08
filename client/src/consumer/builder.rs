//! Configuring and subscribing a queue consumer.

use std::{sync::Arc, time::Duration};

use stc_proto::pulsar::{KeyValue, command_subscribe};
use tokio::sync::{mpsc, oneshot};

use super::{
    Face, QueueConsumer,
    actor::{Actor, Settings},
};
use crate::{
    client::Shared,
    core::{
        consumer::{ConsumerConfig, ConsumerCore},
        error::{Category, Error},
    },
    layout_watch,
    receive_queue::ReceiveQueue,
    schema::{Schema, Writers, to_wire},
};

/// Where a subscription starts that does not exist yet (client-api §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialPosition {
    /// At the oldest message.
    Earliest,
    /// At the next message to be published.
    #[default]
    Latest,
}

/// Configures a [`QueueConsumer`] (client-api §4.2).
pub struct QueueConsumerBuilder<T> {
    client: Arc<Shared>,
    schema: Arc<dyn Schema<T>>,
    topic: Option<String>,
    subscription: Option<String>,
    name: Option<String>,
    initial_position: InitialPosition,
    properties: Vec<(String, String)>,
    receiver_queue: u32,
    redelivery_delay: Duration,
}

impl<T: 'static> QueueConsumerBuilder<T> {
    pub(crate) fn new(client: Arc<Shared>, schema: Arc<dyn Schema<T>>) -> Self {
        QueueConsumerBuilder {
            client,
            schema,
            topic: None,
            subscription: None,
            name: None,
            initial_position: InitialPosition::default(),
            properties: Vec::new(),
            receiver_queue: 1000,
            redelivery_delay: Duration::from_millis(100),
        }
    }

    /// The topic: `topic://tenant/namespace/name`, or for a classic topic `persistent://…` or a short form. Required.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// The subscription's name. Required.
    pub fn subscription(mut self, name: impl Into<String>) -> Self {
        self.subscription = Some(name.into());
        self
    }

    /// The consumer's name; made up when it is left out.
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

    /// How long a negatively acknowledged message stays away; 100 ms by default.
    pub fn redelivery_delay(mut self, delay: Duration) -> Self {
        self.redelivery_delay = delay;
        self
    }

    /// Subscribes (client-api §4.2, wire-protocol §6.1).
    ///
    /// # Errors
    /// `InvalidConfiguration`, `NotFound` for a topic that is absent and not created, `ConsumerBusy` when the
    /// subscription is of another kind, `NotSupported` when the broker does not know scalable topics, `NotConnected`
    /// when no broker is reached in the client's operation timeout, and what else the broker answers.
    pub async fn subscribe(self) -> Result<QueueConsumer<T>, Error> {
        let deviance = self.client.deviance;
        self.attach().await.map_err(|error| deviance.report(error))
    }

    async fn attach(self) -> Result<QueueConsumer<T>, Error> {
        let client = self.client;
        let alive = client.enter()?;
        let invalid = |why: &str| Error::new(Category::InvalidConfiguration, why);
        let topic = layout_watch::parse_topic(self.topic.as_deref())?;
        let subscription = self
            .subscription
            .filter(|name| !name.is_empty())
            .ok_or_else(|| invalid("no subscription is set"))?;
        if self.receiver_queue == 0 {
            return Err(invalid("the receiver queue holds at least one message"));
        }
        let mut rng = client.rng();
        let named = self.name.is_some();
        let name = self.name.unwrap_or_else(|| format!("queue-{:010x}", rng.next() >> 24));
        let watch = layout_watch::open(&client, topic).await?;
        let config = ConsumerConfig {
            receiver_queue: self.receiver_queue,
            redelivery_delay: self.redelivery_delay.as_millis() as u64,
            backoff: client.backoff,
            deviance: client.deviance,
        };
        let settings = Settings {
            subscription: subscription.clone(),
            name,
            named,
            initial_position: match self.initial_position {
                InitialPosition::Earliest => command_subscribe::InitialPosition::Earliest,
                InitialPosition::Latest => command_subscribe::InitialPosition::Latest,
            },
            schema: self.schema.info().map(to_wire),
            properties: self.properties.into_iter().map(|(key, value)| KeyValue { key, value }).collect(),
        };
        let view = watch.state.borrow().view.clone();
        let core = ConsumerCore::new(config, view, client.rng(), client.clocks.now());
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
        let limit = client.operation_timeout;
        let actor = Actor::new(client, core, watch, settings, receiver, face.clone(), alive);
        tokio::spawn(actor.run(opened));
        // Dropped on failure, the consumer closes what is attached so far.
        let consumer = QueueConsumer { requests, face, schema: self.schema };
        match tokio::time::timeout(limit, ready).await {
            Ok(Ok(opened)) => opened.map(|()| consumer),
            Ok(Err(_)) => Err(Error::closed("client")),
            Err(_) => Err(Error::timeout("subscribing to the topic took too long")),
        }
    }
}
