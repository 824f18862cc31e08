//! A client of classic topics, of the suite's own: it knows nothing of scalable topics. It is beside the client under
//! test while a topic is migrated.

use axum::http::Method;
use serde::Deserialize;
use stc_proto::pulsar::{MessageMetadata, ServerError};
use stc_proto::{KeyHash, TopicName};

use super::brokers::Brokers;
use crate::judge::Trouble;
use crate::target::Broker;
use crate::target::admin::Admin;

/// The classic topics behind a name, as the admin REST tells: its partitions, or itself.
///
/// # Errors
/// When the broker does not tell.
pub async fn partitions(admin: &Admin, name: &TopicName) -> Result<Vec<TopicName>, Trouble> {
    #[derive(Deserialize)]
    struct Metadata {
        partitions: u32,
    }
    let path = format!("/admin/v2/persistent/{}/{}/partitions", name.namespace(), name.local());
    let body = admin.must(Method::GET, &path, None).await?;
    let metadata: Metadata = serde_json::from_str(&body).map_err(|e| Trouble(format!("GET {path}: {e}")))?;
    Ok(match metadata.partitions {
        0 => vec![name.clone()],
        count => (0..count).map(|index| name.partition(index)).collect(),
    })
}

/// The partition, of `count`, that classic routing gives a key.
pub fn partition_of(key: &str, count: u32) -> u32 {
    (KeyHash::of(key).0 & 0x7fff_ffff) % count.max(1)
}

/// What it sends.
#[derive(Debug, Clone)]
pub struct ClassicMessage {
    /// The topic or partition to send it to.
    pub topic: TopicName,
    /// Its key.
    pub key: String,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// The client. Dropping it closes its connections.
pub struct ClassicClient {
    brokers: Brokers,
    /// Producer and sequence ids that are used up.
    ids: u64,
}

impl ClassicClient {
    /// A client of a scenario's brokers.
    ///
    /// # Errors
    /// When their service URL cannot be read.
    pub fn new(broker: &Broker) -> Result<Self, Trouble> {
        Ok(ClassicClient { brokers: Brokers::of(broker)?, ids: 0 })
    }

    /// Opens a producer. Gives its id, or the error that the broker refuses it with.
    ///
    /// # Errors
    /// When the broker cannot be reached or does not speak the protocol.
    pub async fn produce_to(&mut self, topic: &TopicName) -> Result<Result<u64, ServerError>, Trouble> {
        self.ids += 1;
        let producer_id = self.ids;
        let link = self.brokers.serving(topic).await?;
        let opened = link.open_producer(topic.to_string(), producer_id).await?;
        Ok(opened.map(|()| producer_id).map_err(|error| error.error()))
    }

    /// Publishes a message by a producer of its own, and waits for the receipt.
    ///
    /// # Errors
    /// When the broker refuses it, or as for [`ClassicClient::produce_to`].
    pub async fn publish(&mut self, message: ClassicMessage, publish_time: u64) -> Result<(), Trouble> {
        let opened = self.produce_to(&message.topic).await?;
        let producer_id = opened.map_err(|e| Trouble(format!("PRODUCER was answered with {e:?}")))?;
        let link = self.brokers.serving(&message.topic).await?;
        let metadata = MessageMetadata {
            producer_name: format!("classic-{producer_id}"),
            publish_time,
            partition_key: Some(message.key),
            ..Default::default()
        };
        link.publish(producer_id, metadata, message.payload.into()).await
    }
}
