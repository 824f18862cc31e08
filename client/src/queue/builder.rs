//! Configuring and subscribing a queue consumer.

use std::{sync::Arc, time::Duration};

use stc_proto::pulsar::{KeyValue, command_subscribe};

use super::{
    QueueConsumer,
    dead_letter::{DeadLetterPolicy, DeadLetters},
    kind::Queue,
};
use crate::{
    client::Shared,
    consumer::{Beginning, Handle, check_receiver_queue, check_subscription, life},
    core::{
        deviant::Deviant,
        encryption::policy::ConsumerEncryption,
        error::Error,
        queue::{QueueConfig, QueueCore},
    },
    layout_watch,
    registration::register_needlessly,
    schema::{Schema, to_wire},
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
    encryption: Option<ConsumerEncryption>,
    redelivery_delay: Duration,
    dead_letters: Option<DeadLetterPolicy>,
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
            encryption: None,
            redelivery_delay: Duration::from_millis(100),
            dead_letters: None,
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

    /// Where messages go that came too often; without a policy they come for ever.
    pub fn dead_letter_policy(mut self, policy: DeadLetterPolicy) -> Self {
        self.dead_letters = Some(policy);
        self
    }

    /// Decrypts messages with these keys (client-api §4); without them, encrypted messages fail.
    pub fn encryption(mut self, encryption: ConsumerEncryption) -> Self {
        self.encryption = Some(encryption);
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
        let topic = layout_watch::parse_topic(self.topic.as_deref(), client.deviance)?;
        let subscription = check_subscription(self.subscription)?;
        check_receiver_queue(self.receiver_queue)?;
        self.dead_letters.as_ref().map_or(Ok(()), DeadLetterPolicy::check)?;
        let mut rng = client.rng();
        let named = self.name.is_some();
        let name = self.name.unwrap_or_else(|| format!("queue-{:010x}", rng.next() >> 24));
        let watch = layout_watch::open(&client, topic, true).await?;
        if client.deviance.is(Deviant::QueueRegisters) {
            register_needlessly(&client, &watch, &subscription, &name).await;
        }
        let config = QueueConfig {
            receiver_queue: self.receiver_queue,
            redelivery_delay: self.redelivery_delay.as_millis() as u64,
            max_redeliveries: self.dead_letters.as_ref().map(DeadLetterPolicy::max_redeliveries),
            life: life(&client, self.encryption),
        };
        let view = watch.state.borrow().view.clone();
        let from = (&view.topic, subscription.as_str());
        let letters = |policy| DeadLetters::new(client.clone(), policy, from, self.schema.info());
        let kind = Queue {
            letters: self.dead_letters.map(letters).map(Arc::new),
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
        let core = QueueCore::new(config, view, client.rng(), client.clocks.now());
        let receiver_queue = self.receiver_queue;
        let beginning = Beginning {
            kind,
            core,
            watch,
            registrant: None,
            receiver_queue,
            lane: None,
            wants_writer: self.schema.wants_writer(),
        };
        let handle = Handle::open(client, alive, beginning).await?;
        Ok(QueueConsumer { handle, subscription: subscription.into(), schema: self.schema })
    }
}
