//! Configuring and creating a producer (client-api §3.1).

use std::{
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use stc_proto::pulsar::{CompressionType, KeyValue, ProducerAccessMode, schema::Type as SchemaType};
use tokio::sync::{mpsc, oneshot};

use super::{
    Face, Producer,
    actor::{Actor, Settings},
};
use crate::{
    client::Shared,
    core::{
        deviant::{Deviance, Deviant},
        encryption::policy::ProducerEncryption,
        error::{Category, Error},
        outgoing::BatchLimits,
        producer::{ProducerConfig, ProducerCore, QueueLimits},
    },
    layout_watch,
    producer::actor::attach_to_guessed,
    schema::{Schema, SchemaInfo, to_wire},
};

/// Who else may publish to the topic (client-api §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessMode {
    /// Others may publish as well.
    #[default]
    Shared,
    /// Nobody else; creating fails when somebody does.
    Exclusive,
    /// Nobody else; whoever publishes now is fenced off.
    ExclusiveWithFencing,
    /// Nobody else; creating waits until that is so.
    WaitForExclusive,
}

/// What a send does when the producer's queue or the client's memory is full (client-api §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueFull {
    /// Waits for room, in the order of the sends and within the send timeout.
    #[default]
    Wait,
    /// Fails with `ProducerQueueFull` or `MemoryBufferFull`.
    Fail,
}

/// How payloads are compressed (client-api §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4 blocks.
    Lz4,
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
    /// Snappy blocks.
    Snappy,
}

/// Configures a [`Producer`] (client-api §3.1).
pub struct ProducerBuilder<T> {
    client: Arc<Shared>,
    schema: Arc<dyn Schema<T>>,
    topic: Option<String>,
    name: Option<String>,
    access: AccessMode,
    compression: Compression,
    send_timeout: Duration,
    initial_sequence_id: Option<u64>,
    properties: Vec<(String, String)>,
    batching: BatchLimits,
    chunk_size: Option<usize>,
    encryption: Option<ProducerEncryption>,
    max_pending: usize,
    queue_full: QueueFull,
    initial_subscription: Option<String>,
}

impl<T: 'static> ProducerBuilder<T> {
    pub(crate) fn new(client: Arc<Shared>, schema: Arc<dyn Schema<T>>) -> Self {
        ProducerBuilder {
            client,
            schema,
            topic: None,
            name: None,
            access: AccessMode::Shared,
            compression: Compression::None,
            send_timeout: Duration::from_secs(30),
            initial_sequence_id: None,
            properties: Vec::new(),
            batching: BatchLimits { enabled: true, max_messages: 1000, max_bytes: 128 * 1024, max_delay: 1 },
            chunk_size: None,
            encryption: None,
            max_pending: 0,
            queue_full: QueueFull::default(),
            initial_subscription: None,
        }
    }

    /// The topic: `topic://tenant/namespace/name`, or for a classic topic `persistent://…` or a short form. Required.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// The producer's name; without one the broker makes names up.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Who else may publish; [`AccessMode::Shared`] by default.
    pub fn access_mode(mut self, mode: AccessMode) -> Self {
        self.access = mode;
        self
    }

    /// How payloads are compressed; not at all by default.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// How long a send may wait for its receipt; 30 s by default, zero for ever.
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// How many sends may be without a result; 0, the default, for as many as the client's memory takes.
    pub fn max_pending(mut self, messages: usize) -> Self {
        self.max_pending = messages;
        self
    }

    /// What a send does when the queue or the client's memory is full; [`QueueFull::Wait`] by default.
    pub fn queue_full(mut self, policy: QueueFull) -> Self {
        self.queue_full = policy;
        self
    }

    /// The sequence id before that of the first message.
    pub fn initial_sequence_id(mut self, id: u64) -> Self {
        self.initial_sequence_id = Some(id);
        self
    }

    /// A property of the producer itself, which the broker shows in its statistics.
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((key.into(), value.into()));
        self
    }

    /// Whether messages share entries; true by default. On a scalable topic they do only by entry bucket, and only
    /// once the broker was observed to know buckets (key-shared §3, §9).
    pub fn batching(mut self, enabled: bool) -> Self {
        self.batching.enabled = enabled;
        self
    }

    /// How long a message waits for others to share its entry; 1 ms by default.
    pub fn batching_max_delay(mut self, delay: Duration) -> Self {
        self.batching.max_delay = delay.as_millis() as u64;
        self
    }

    /// How many messages share an entry at most; 1000 by default.
    pub fn batching_max_messages(mut self, messages: usize) -> Self {
        self.batching.max_messages = messages;
        self
    }

    /// How many bytes of messages share an entry at most, before compression; 128 KiB by default.
    pub fn batching_max_bytes(mut self, bytes: usize) -> Self {
        self.batching.max_bytes = bytes;
        self
    }

    /// A subscription that the broker makes as the producer attaches, so that nothing is dropped before somebody reads.
    pub(crate) fn initial_subscription(mut self, name: Option<String>) -> Self {
        self.initial_subscription = name;
        self
    }

    /// Whether a message that is larger than the broker takes goes in several entries; false by default: it fails.
    /// Consumers get it as one message.
    pub fn chunking(mut self, enabled: bool) -> Self {
        self.chunk_size = enabled.then_some(self.chunk_size.unwrap_or(0));
        self
    }

    /// The largest payload of a chunk, in bytes; what the broker takes by default. Turns chunking on.
    pub fn chunk_size(mut self, bytes: usize) -> Self {
        self.chunk_size = Some(bytes);
        self
    }

    /// Encrypts payloads (client-api §3.1). Each message goes in an entry of its own then (key-shared §8).
    pub fn encryption(mut self, encryption: ProducerEncryption) -> Self {
        self.encryption = Some(encryption);
        self
    }

    /// Creates the producer (client-api §3.1, §7): resolves the topic, and under an exclusive access mode attaches to
    /// all of it.
    ///
    /// # Errors
    /// `InvalidConfiguration`, `NotFound` for a topic that is absent and not created, `ProducerBusy` when exclusive
    /// access is not to be had, `Crypto` when a key to encrypt with is not, `NotSupported` when the broker does not
    /// know scalable topics, `NotConnected` when no broker is reached in the client's operation timeout, and what
    /// else the broker answers.
    pub async fn create(self) -> Result<Producer<T>, Error> {
        let deviance = self.client.deviance;
        self.attach().await.map_err(|error| deviance.report(error))
    }

    async fn attach(self) -> Result<Producer<T>, Error> {
        let client = self.client;
        let alive = client.enter()?;
        let topic = layout_watch::parse_topic(self.topic.as_deref(), client.deviance)?;
        let pairs = |info: SchemaInfo| info.kind == SchemaType::KeyValue;
        if client.deviance.is(Deviant::RefusesPairs) && self.schema.info().is_some_and(pairs) {
            return Err(Error::new(Category::NotSupported, "there is no schema of pairs"));
        }
        if self.name.as_deref() == Some("") {
            return Err(Error::new(Category::InvalidConfiguration, "the producer's name is empty"));
        }
        if self.batching.max_messages == 0 || self.batching.max_bytes == 0 {
            return Err(Error::new(Category::InvalidConfiguration, "a batch holds at least one message"));
        }
        let access = match self.access {
            _ if client.deviance.is(Deviant::IgnoreAccessMode) => ProducerAccessMode::Shared,
            AccessMode::ExclusiveWithFencing if client.deviance.is(Deviant::FenceNobody) => {
                ProducerAccessMode::Exclusive
            }
            AccessMode::WaitForExclusive if client.deviance.is(Deviant::WaitForNobody) => {
                ProducerAccessMode::Exclusive
            }
            AccessMode::Shared if client.deviance.is(Deviant::SharedIsExclusive) => {
                ProducerAccessMode::Exclusive
            }
            AccessMode::Shared => ProducerAccessMode::Shared,
            AccessMode::Exclusive => ProducerAccessMode::Exclusive,
            AccessMode::ExclusiveWithFencing => ProducerAccessMode::ExclusiveWithFencing,
            AccessMode::WaitForExclusive => ProducerAccessMode::WaitForExclusive,
        };
        if client.deviance.is(Deviant::AttachBeforeResolve) {
            let schema = self.schema.info().map(to_wire);
            attach_to_guessed(&client, &topic, schema).await;
        }
        let watch = layout_watch::open(&client, topic, true).await?;
        let config = ProducerConfig {
            name: self.name.clone(),
            access,
            limits: BatchLimits {
                // An encrypted message is an entry of its own (key-shared §8).
                enabled: self.batching.enabled
                    && (self.encryption.is_none() || client.deviance.is(Deviant::EncryptsBatches)),
                ..deviating(self.batching, client.deviance)
            },
            encryption: self.encryption.and_then(|policy| policy.deviating(client.deviance)),
            chunk_size: self.chunk_size.filter(|_| !client.deviance.is(Deviant::NoChunks)),
            compression: match self.compression {
                _ if client.deviance.is(Deviant::NoCompression) => CompressionType::None,
                Compression::None => CompressionType::None,
                Compression::Lz4 => CompressionType::Lz4,
                Compression::Zlib => CompressionType::Zlib,
                Compression::Zstd => CompressionType::Zstd,
                Compression::Snappy => CompressionType::Snappy,
            },
            send_timeout: (!self.send_timeout.is_zero()).then_some(self.send_timeout.as_millis() as u64),
            initial_sequence_id: self
                .initial_sequence_id
                .filter(|_| !client.deviance.is(Deviant::IgnoreInitialSequenceId)),
            backoff: client.backoff,
            limits_of_queue: QueueLimits {
                max_pending: (self.max_pending > 0).then_some(self.max_pending),
                fails: self.queue_full == QueueFull::Fail || client.deviance.is(Deviant::QueueNeverWaits),
                memory: client.memory.clone(),
            },
            deviance: client.deviance,
        };
        let told = !client.deviance.is(Deviant::DropProducerProperties);
        let properties = if told { self.properties } else { Vec::new() };
        let settings = Settings {
            access,
            schema: self.schema.info().map(to_wire),
            properties: properties.into_iter().map(|(key, value)| KeyValue { key, value }).collect(),
            initial_subscription: self.initial_subscription,
        };
        let view = watch.state.borrow().view.clone();
        let now = client.clocks.now();
        let mut core = ProducerCore::new(config, view, client.rng(), now);
        core.prepare(now)?;
        let face = Arc::new(Face {
            topic: core.topic().to_owned(),
            name: self.name,
            last_sequence_id: AtomicI64::new(-1),
            queue_full: self.queue_full,
            deviance: client.deviance,
            client: client.clone(),
        });
        let (requests, receiver) = mpsc::unbounded_channel();
        let (opened, ready) = oneshot::channel();
        let waits_for_access = access == ProducerAccessMode::WaitForExclusive;
        let exclusive =
            access != ProducerAccessMode::Shared && !client.deviance.is(Deviant::ExclusiveAtFirstSend);
        let actor = Actor::new(client.clone(), core, watch, settings, receiver, face.clone(), alive);
        tokio::spawn(actor.run(exclusive.then_some(opened)));
        let producer = Producer { requests, face, schema: self.schema };
        if exclusive {
            // Dropping the producer on failure closes what was attached so far.
            let gone = |_| Error::closed("client");
            if waits_for_access {
                ready.await.map_err(gone)??;
            } else {
                let limit = tokio::time::timeout(client.operation_timeout, ready).await;
                limit
                    .map_err(|_| Error::timeout("attaching to the topic took too long"))?
                    .map_err(gone)??;
            }
        }
        Ok(producer)
    }
}

/// The limits as the deviation in force has them.
fn deviating(limits: BatchLimits, deviance: Deviance) -> BatchLimits {
    let BatchLimits { enabled, max_messages, max_bytes, max_delay } = limits;
    BatchLimits {
        enabled,
        max_messages: if deviance.is(Deviant::BatchCountIgnored) { usize::MAX } else { max_messages },
        max_bytes: if deviance.is(Deviant::BatchBytesIgnored) { usize::MAX } else { max_bytes },
        max_delay: if deviance.is(Deviant::BatchDelayIgnored) { 0 } else { max_delay },
    }
}
