//! Opening the consumer of one topic.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use stc_proto::{
    TopicName,
    pulsar::{KeyValue, ScalableConsumerType, Schema as WireSchema, command_subscribe},
};
use tokio::sync::mpsc;

use super::kind::Stream;
use crate::{
    client::Shared,
    consumer::{Beginning, Handle, life},
    core::{
        consumer::Core as _,
        encryption::policy::ConsumerEncryption,
        error::Error,
        stream::{StreamConfig, StreamCore, StreamDelivery},
    },
    layout_watch,
    receive_queue::ReceiveQueue,
    registration::Registrant,
};

/// Tells the deliveries of one consumer from those of every other in the process.
static CONSUMERS: AtomicU64 = AtomicU64::new(0);

/// The number of a consumer that is new in the process.
pub(super) fn consumer_number() -> u64 {
    CONSUMERS.fetch_add(1, Ordering::Relaxed)
}

/// What an application set, for each topic alike.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) subscription: String,
    pub(super) initial_position: command_subscribe::InitialPosition,
    pub(super) schema: Option<WireSchema>,
    pub(super) properties: Vec<KeyValue>,
    pub(super) receiver_queue: u32,
    pub(super) group_time: Duration,
    pub(super) read_compacted: bool,
    pub(super) replicate_state: bool,
    pub(super) wants_writer: bool,
    pub(super) encryption: Option<ConsumerEncryption>,
}

/// The topic's place in the queue of a consumer of many.
pub(super) type Lane = (Arc<ReceiveQueue<StreamDelivery>>, u64);

/// Opens the consumer of a topic under a name. One that is part of a consumer of many topics has a `lane`, and does not
/// create its topic, which may be gone.
pub(super) async fn open(
    client: &Arc<Shared>,
    alive: mpsc::Sender<()>,
    settings: Settings,
    topic: TopicName,
    name: String,
    lane: Option<Lane>,
) -> Result<Handle<Stream>, Error> {
    let watch = layout_watch::open(client, topic, lane.is_none()).await?;
    let config = StreamConfig {
        consumer: consumer_number(),
        receiver_queue: settings.receiver_queue,
        group_time: settings.group_time.as_millis() as u64,
        life: life(client, settings.encryption),
    };
    let kind = Stream {
        subscription: settings.subscription,
        name: name.clone(),
        initial_position: settings.initial_position,
        schema: settings.schema,
        properties: settings.properties,
        read_compacted: settings.read_compacted,
        replicate_state: settings.replicate_state,
    };
    let view = watch.state.borrow().view.clone();
    let core = StreamCore::new(config, view, client.rng(), client.clocks.now());
    let registrant = Some(Registrant {
        topic: core.topic().to_owned(),
        group: kind.subscription.clone(),
        name,
        kind: ScalableConsumerType::Stream,
    });
    let (receiver_queue, wants_writer) = (settings.receiver_queue, settings.wants_writer);
    Handle::open(
        client.clone(),
        alive,
        Beginning { kind, core, watch, registrant, receiver_queue, lane, wants_writer },
    )
    .await
}
