//! Configuring and creating a checkpoint consumer.

use std::sync::Arc;

use stc_proto::{name::Domain, pulsar::ScalableConsumerType};

use super::{CheckpointConsumer, kind::Checkpointing};
use crate::{
    client::Shared,
    consumer::{Beginning, Handle, check_receiver_queue, life},
    core::{
        checkpoint::{
            CheckpointConfig, CheckpointCore,
            position::{Checkpoint, Start},
        },
        consumer::Core as _,
        deviant::Deviant,
        encryption::policy::ConsumerEncryption,
        error::{Category, Error},
    },
    layout_watch,
    registration::Registrant,
    schema::{Schema, to_wire},
};

/// Configures a [`CheckpointConsumer`] (client-api §4.3).
pub struct CheckpointConsumerBuilder<T> {
    client: Arc<Shared>,
    schema: Arc<dyn Schema<T>>,
    topic: Option<String>,
    start: Checkpoint,
    group: Option<String>,
    name: Option<String>,
    receiver_queue: u32,
    encryption: Option<ConsumerEncryption>,
}

impl<T: 'static> CheckpointConsumerBuilder<T> {
    pub(crate) fn new(client: Arc<Shared>, schema: Arc<dyn Schema<T>>) -> Self {
        CheckpointConsumerBuilder {
            client,
            schema,
            topic: None,
            start: Checkpoint::latest(),
            group: None,
            name: None,
            receiver_queue: 1000,
            encryption: None,
        }
    }

    /// The topic: `topic://tenant/namespace/name`, or without a group a classic topic as `persistent://…` or in a short
    /// form. Required.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// Where to start; [`Checkpoint::latest`] by default.
    pub fn start(mut self, position: Checkpoint) -> Self {
        self.start = position;
        self
    }

    /// The name of a group whose members share the topic. Without one the consumer reads all of it.
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.group = Some(name.into());
        self
    }

    /// The consumer's name; made up when it is left out.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How many messages may be under way or wait to be received, for each of the topic's parts; 1000 by default.
    pub fn receiver_queue_size(mut self, messages: u32) -> Self {
        self.receiver_queue = messages;
        self
    }

    /// Decrypts messages with these keys (client-api §4); without them, encrypted messages fail.
    pub fn encryption(mut self, encryption: ConsumerEncryption) -> Self {
        self.encryption = Some(encryption);
        self
    }

    /// Creates the consumer (client-api §4.3). [`Checkpoint::latest`] means the end of the topic during this call.
    ///
    /// # Errors
    /// `InvalidConfiguration`, `NotFound` for a topic that is absent and not created, `NotSupported` when the broker
    /// does not know scalable topics, `NotConnected` when no broker is reached in the client's operation timeout, and
    /// what else the broker answers.
    pub async fn create(self) -> Result<CheckpointConsumer<T>, Error> {
        let deviance = self.client.deviance;
        self.attach().await.map_err(|error| deviance.report(error))
    }

    async fn attach(self) -> Result<CheckpointConsumer<T>, Error> {
        let client = self.client;
        let alive = client.enter()?;
        if client.deviance.is(Deviant::NoCheckpointConsumer) {
            return Err(Error::new(Category::NotSupported, "there is no checkpoint consumer"));
        }
        let invented = client.deviance.is(Deviant::CheckpointInventsTopic);
        let topic = self.topic.as_deref().or(invented.then_some("topic://public/default/invented"));
        let topic = layout_watch::parse_topic(topic, client.deviance)?;
        if client.deviance.is(Deviant::RefusesCanonicalName) && topic.domain() == Domain::Topic {
            return Err(Error::new(Category::InvalidConfiguration, "the topic is no classic one"));
        }
        if self.group.as_ref().is_some_and(String::is_empty) {
            return Err(Error::new(Category::InvalidConfiguration, "the group has no name"));
        }
        check_receiver_queue(self.receiver_queue)?;
        let mut rng = client.rng();
        let name = self
            .name
            .filter(|_| !client.deviance.is(Deviant::DropCheckpointNames))
            .unwrap_or_else(|| format!("checkpoint-{:010x}", rng.next() >> 24));
        let watch = layout_watch::open(&client, topic, true).await?;
        let config = CheckpointConfig {
            start: match self.start.0 {
                Start::Latest if client.deviance.is(Deviant::LatestCheckpointIsEarliest) => Start::Earliest,
                start => start,
            },
            grouped: self.group.is_some(),
            receiver_queue: self.receiver_queue,
            life: life(&client, self.encryption),
        };
        let view = watch.state.borrow().view.clone();
        let core = CheckpointCore::new(config, view, client.rng(), client.clocks.now());
        let registers = self.group.is_some() || client.deviance.is(Deviant::CheckpointRegisters);
        let registrant = registers.then(|| {
            let kind = match client.deviance.is(Deviant::GroupAsStream) {
                true => ScalableConsumerType::Stream,
                false => ScalableConsumerType::Checkpoint,
            };
            let group = self.group.unwrap_or_else(|| name.clone());
            Registrant { topic: core.topic().to_owned(), group, name: name.clone(), kind }
        });
        let kind = Checkpointing { name, schema: self.schema.info().map(to_wire) };
        let receiver_queue = self.receiver_queue;
        let beginning = Beginning {
            kind,
            core,
            watch,
            registrant,
            receiver_queue,
            lane: None,
            wants_writer: self.schema.wants_writer(),
        };
        let handle = Handle::open(client, alive, beginning).await?;
        Ok(CheckpointConsumer { handle, schema: self.schema })
    }
}
