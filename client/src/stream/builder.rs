//! Configuring and subscribing a stream consumer.

use std::{sync::Arc, time::Duration};

use stc_proto::{
    TopicName,
    name::Domain,
    pulsar::{KeyValue, command_subscribe},
};

use super::{
    Source, StreamConsumer, namespace,
    open::{self, Settings},
};
use crate::{
    client::Shared,
    consumer::{check_receiver_queue, check_subscription},
    core::{
        deviant::{Deviance, Deviant},
        encryption::policy::ConsumerEncryption,
        error::{Category, Error},
    },
    layout_watch,
    namespace_watch::Watched,
    queue::InitialPosition,
    schema::{Schema, to_wire},
};

/// Configures a [`StreamConsumer`] (client-api §4.1).
pub struct StreamConsumerBuilder<T> {
    client: Arc<Shared>,
    schema: Arc<dyn Schema<T>>,
    topic: Option<String>,
    namespace: Option<String>,
    filters: Vec<(String, String)>,
    subscription: Option<String>,
    name: Option<String>,
    initial_position: InitialPosition,
    properties: Vec<(String, String)>,
    receiver_queue: u32,
    encryption: Option<ConsumerEncryption>,
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
            namespace: None,
            filters: Vec::new(),
            subscription: None,
            name: None,
            initial_position: InitialPosition::default(),
            properties: Vec::new(),
            receiver_queue: 1000,
            encryption: None,
            group_time: Duration::ZERO,
            read_compacted: false,
            replicate_state: false,
        }
    }

    /// The topic: `topic://tenant/namespace/name`. Required, unless a namespace is given.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// All scalable topics of a namespace (`tenant/namespace`) instead of one topic: those that are there, and those that
    /// come while the consumer lives (client-api §4.4). [`StreamConsumerBuilder::topic_property`] narrows them down.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Of a namespace only topics that have this property, and every other that is asked for.
    pub fn topic_property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.filters.push((key.into(), value.into()));
        self
    }

    /// The subscription's name. Required.
    pub fn subscription(mut self, name: impl Into<String>) -> Self {
        self.subscription = Some(name.into());
        self
    }

    /// The consumer's name; made up when it is left out. In a namespace it is a part of the name that the consumer has with
    /// each topic. A consumer that comes back under the name of one that was lost
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

    /// Decrypts messages with these keys (client-api §4); without them, encrypted messages fail.
    pub fn encryption(mut self, encryption: ConsumerEncryption) -> Self {
        self.encryption = Some(encryption);
        self
    }

    /// Subscribes (client-api §4.1, wire-protocol §6.2): joins the subscription's consumers and attaches to what is
    /// assigned to this one, which can be nothing. Waits for the consumers that have it so far, until they have
    /// acknowledged what they received. Of a namespace it does so with each topic that is there.
    ///
    /// # Errors
    /// `InvalidConfiguration`, which is also what both a topic and a namespace or neither of them gives; `NotFound` for a
    /// topic that is absent and not created or an absent namespace, `Authorization` where the client may not read,
    /// `ConsumerBusy` when what is assigned is still another consumer's after the client's operation timeout,
    /// `NotSupported` when the broker does not know scalable topics, `NotConnected` when no broker is reached in that
    /// time, and what else the broker answers.
    pub async fn subscribe(self) -> Result<StreamConsumer<T>, Error> {
        let deviance = self.client.deviance;
        self.attach().await.map_err(|error| deviance.report(error))
    }

    async fn attach(self) -> Result<StreamConsumer<T>, Error> {
        let client = self.client;
        let deviance = client.deviance;
        let alive = client.enter()?;
        let invented = deviance.is(Deviant::InventsSubscription).then(|| "invented".to_owned());
        let subscription =
            check_subscription(self.subscription.filter(|name| !name.is_empty()).or(invented))?;
        check_receiver_queue(self.receiver_queue)?;
        let latest = self.initial_position == InitialPosition::Latest || deviance.is(Deviant::ResumeAtLatest);
        let drops = deviance.is(Deviant::DropStreamOptions);
        let properties = self.properties.into_iter().filter(|_| !drops);
        let settings = Settings {
            subscription: subscription.clone(),
            initial_position: match latest {
                true => command_subscribe::InitialPosition::Latest,
                false => command_subscribe::InitialPosition::Earliest,
            },
            schema: self.schema.info().map(to_wire),
            properties: properties.map(|(key, value)| KeyValue { key, value }).collect(),
            receiver_queue: self.receiver_queue,
            group_time: self.group_time,
            read_compacted: self.read_compacted && !drops,
            replicate_state: self.replicate_state && !drops,
            wants_writer: self.schema.wants_writer(),
            encryption: self.encryption,
        };
        let invented = deviance.is(Deviant::InventsStreamTopic);
        let topic = self.topic.or(invented.then(|| "topic://public/default/invented".to_owned()));
        let what = select(topic, self.namespace, self.filters, deviance.is(Deviant::TopicBeatsNamespace))?;
        let made_up = client.rng().next() >> 24;
        let name = self.name.unwrap_or_else(|| format!("stream-{made_up:010x}"));
        let source = match what {
            Selected::Topic(topic) => {
                let handle = open::open(&client, alive, settings, topic, name, None).await?;
                Source::Topic(handle)
            }
            Selected::Namespace { namespace, filters } => {
                let watched = Watched { id: client.session_id(), namespace, filters };
                let handle = namespace::open(client, alive, settings, name, watched).await?;
                Source::Namespace(handle)
            }
        };
        Ok(StreamConsumer { source, subscription: subscription.into(), schema: self.schema })
    }
}

/// What a consumer reads.
enum Selected {
    Topic(TopicName),
    Namespace { namespace: String, filters: Vec<(String, String)> },
}

/// Exactly one of a topic and a namespace.
fn select(
    topic: Option<String>,
    namespace: Option<String>,
    filters: Vec<(String, String)>,
    topic_wins: bool,
) -> Result<Selected, Error> {
    let invalid = |why: &str| Error::new(Category::InvalidConfiguration, why);
    match (topic, namespace) {
        (Some(_), Some(_)) if !topic_wins => Err(invalid("both a topic and a namespace are set")),
        (None, Some(namespace)) => {
            // Names are as in a topic's.
            let named = namespace
                .split_once('/')
                .is_some_and(|(tenant, local)| TopicName::new(Domain::Topic, tenant, local, "any").is_ok());
            match named {
                true => Ok(Selected::Namespace { namespace, filters }),
                false => Err(invalid(&format!("{namespace}: tenant/namespace is needed"))),
            }
        }
        (_, None) if !filters.is_empty() => Err(invalid("only the topics of a namespace can be filtered")),
        (None, None) => Err(invalid("neither a topic nor a namespace is set")),
        (Some(topic), _) => {
            // No deviant is about the names that stream consumers are given.
            Ok(Selected::Topic(layout_watch::parse_topic(Some(&topic), Deviance::default())?))
        }
    }
}
