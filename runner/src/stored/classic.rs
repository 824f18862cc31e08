//! A client of classic topics, of the suite's own: it knows nothing of scalable topics. It is beside the client under
//! test while a topic is migrated.

use stc_proto::pulsar::{CommandProducer, CommandSend, MessageMetadata, ServerError};
use stc_proto::{Command, Entry, Frame, TopicName};

use super::brokers::Brokers;
use super::link::unexpected;
use crate::judge::Trouble;
use crate::target::Broker;

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
        let request_id = link.request_id();
        let topic = topic.to_string();
        link.send(CommandProducer { topic, producer_id, request_id, ..Default::default() }).await?;
        match link.next().await?.command {
            Command::ProducerSuccess(_) => Ok(Ok(producer_id)),
            Command::Error(error) => Ok(Err(error.error())),
            other => Err(unexpected("PRODUCER", &other)),
        }
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
        let entry = Entry::new(metadata, message.payload.into()).to_bytes();
        link.send(Frame::with_payload(CommandSend { producer_id, ..Default::default() }, entry)).await?;
        match link.next().await?.command {
            Command::SendReceipt(_) => Ok(()),
            other => Err(unexpected("SEND", &other)),
        }
    }
}
