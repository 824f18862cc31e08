//! Where the messages of a queue consumer go that came too often (client-api §4.2): the policy as the application sets
//! it, and the producer that writes them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
use bytes::Bytes;
use stc_proto::{TopicName, name::Domain};
use tokio::sync::Mutex;

use crate::{
    client::Shared,
    core::{
        consumer::Delivery,
        deviant::{Deviance, Deviant},
        error::{Category, Error},
        incoming::Incoming,
        message_id::MessageId,
    },
    layout_watch::parse_topic,
    producer::{Producer, ProducerBuilder},
    schema::{Schema, SchemaInfo},
};

/// The properties by which Pulsar's clients tell where a dead letter is from.
const REAL_TOPIC: &str = "REAL_TOPIC";
const REAL_SUBSCRIPTION: &str = "REAL_SUBSCRIPTION";
const ORIGIN_MESSAGE_ID: &str = "ORIGIN_MESSAGE_ID";

/// Routes messages that come again too often to a topic of their own (client-api §4.2).
///
/// A message that came again `max_redeliveries` times and is to come once more is published there instead: with its
/// payload, key, properties and event time, and with the properties `REAL_TOPIC`, `REAL_SUBSCRIPTION` and
/// `ORIGIN_MESSAGE_ID`, which say where it is from. It is acknowledged once that topic has it; until then it stays
/// on the subscription, and comes again when the topic cannot be written. How often it came is what the broker says.
///
/// The dead-letter topic is told the consumer's schema, so that others can read it with that; one that has another
/// schema takes the payloads without. What cannot be decrypted is never a dead letter: nobody could read it there.
///
/// ```
/// use stc_client::DeadLetterPolicy;
///
/// let policy = DeadLetterPolicy::new(3).topic("topic://public/default/undeliverable");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterPolicy {
    max_redeliveries: u32,
    topic: Option<String>,
    initial_subscription: Option<String>,
}

impl DeadLetterPolicy {
    /// How often a message may come again; with 0 the first negative acknowledgement is the last one.
    pub fn new(max_redeliveries: u32) -> Self {
        DeadLetterPolicy { max_redeliveries, topic: None, initial_subscription: None }
    }

    /// The dead-letter topic, named as any topic; by default the consumer's with `-DLQ` behind its name. It is made when
    /// the first message goes there, where the namespace permits that.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// A subscription that is made on the dead-letter topic before the first message goes there, so that retention
    /// does not drop what nobody has read.
    pub fn initial_subscription(mut self, name: impl Into<String>) -> Self {
        self.initial_subscription = Some(name.into());
        self
    }

    pub(super) fn max_redeliveries(&self) -> u32 {
        self.max_redeliveries
    }

    /// # Errors
    /// `InvalidConfiguration` for a topic that is none.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.topic.as_deref().map_or(Ok(()), |topic| parse_topic(Some(topic), Deviance::default()).map(drop))
    }
}

/// Writes the dead letters of one consumer.
pub(crate) struct DeadLetters {
    client: Arc<Shared>,
    topic: String,
    initial_subscription: Option<String>,
    real_topic: String,
    real_subscription: String,
    /// The consumer's.
    schema: Option<SchemaInfo>,
    /// The dead-letter topic has another schema.
    untold: AtomicBool,
    /// Opened for the first letter, and anew after one that failed.
    producer: Mutex<Option<Producer<Incoming>>>,
}

impl DeadLetters {
    pub(super) fn new(
        client: Arc<Shared>,
        policy: DeadLetterPolicy,
        (topic, subscription): (&TopicName, &str),
        schema: Option<SchemaInfo>,
    ) -> Self {
        let of_consumer = topic.with_domain(Domain::Topic);
        let by_default = match client.deviance.is(Deviant::DeadLetterBackToTopic) {
            true => of_consumer.to_string(),
            false => format!("{of_consumer}-DLQ"),
        };
        let named = policy.topic.filter(|_| !client.deviance.is(Deviant::DeadLetterElsewhere));
        DeadLetters {
            topic: named.unwrap_or(by_default),
            initial_subscription: policy.initial_subscription,
            real_topic: topic.to_string(),
            real_subscription: subscription.to_owned(),
            schema,
            untold: AtomicBool::new(false),
            client,
            producer: Mutex::new(None),
        }
    }

    /// Publishes a message; done when the dead-letter topic has it.
    ///
    /// # Errors
    /// What creating the producer or the send fails with.
    pub(super) async fn send(&self, delivery: Delivery) -> Result<(), Error> {
        let ticket = {
            // Held until the send has its place, so that letters keep their order.
            let mut open = self.producer.lock().await;
            let producer = match open.take() {
                Some(producer) => producer,
                None => self.create().await?,
            };
            let ticket = self.letter(&producer, delivery).send_async();
            *open = Some(producer);
            ticket
        };
        let result = ticket.await;
        if let Err(error) = &result {
            if error.category() == Category::IncompatibleSchema {
                self.untold.store(true, Ordering::Relaxed);
            }
            // The topic may have been deleted: the next letter looks for it anew. The old producer closes by itself.
            drop(self.producer.lock().await.take());
        }
        result.map(drop)
    }

    /// Closes the producer, if there is one.
    pub(super) async fn close(&self) {
        let producer = self.producer.lock().await.take();
        if let Some(producer) = producer
            && let Err(error) = producer.close().await
        {
            tracing::debug!(%error, "closing the producer of dead letters failed");
        }
    }

    async fn create(&self) -> Result<Producer<Incoming>, Error> {
        let schema = self.schema.clone().filter(|_| !self.untold.load(Ordering::Relaxed));
        ProducerBuilder::new(self.client.clone(), Arc::new(AsItCame { schema }))
            .topic(&self.topic)
            .chunking(true)
            .initial_subscription(self.initial_subscription.clone())
            .create()
            .await
    }

    fn letter<'p>(
        &self,
        producer: &'p Producer<Incoming>,
        delivery: Delivery,
    ) -> crate::producer::MessageBuilder<'p, Incoming> {
        let Delivery { id, segment, message, .. } = delivery;
        let mut letter = producer.message();
        if !self.client.deviance.is(Deviant::DeadLetterBare) {
            if let Some(key) = message.key.clone().filter(|_| key_of_value(&message).is_none()) {
                letter = letter.key(key);
            }
            let origin = [REAL_TOPIC, REAL_SUBSCRIPTION, ORIGIN_MESSAGE_ID];
            let own = message.properties.iter().filter(|(name, _)| !origin.contains(&name.as_str()));
            letter = letter.properties(own.cloned()).event_time_ms(message.event_time.unwrap_or_default());
        }
        let real_topic = match self.client.deviance.is(Deviant::DeadLetterWrongOrigin) {
            true => format!("{}/{segment}", self.real_topic),
            false => self.real_topic.clone(),
        };
        letter
            .property(REAL_TOPIC, real_topic)
            .property(REAL_SUBSCRIPTION, &self.real_subscription)
            .property(ORIGIN_MESSAGE_ID, origin_id(&id))
            .value(message)
    }
}

/// An identifier as Pulsar's clients write it here: ledger, entry, no partition, and the place in a batch.
fn origin_id(id: &MessageId) -> String {
    let Some(at) = id.position() else { return String::new() };
    match at.batch_index {
        ..0 => format!("{}:{}:-1", at.ledger, at.entry),
        index => format!("{}:{}:-1:{index}", at.ledger, at.entry),
    }
}

/// Publishes the payload of a message as it came.
struct AsItCame {
    schema: Option<SchemaInfo>,
}

impl Schema<Incoming> for AsItCame {
    fn info(&self) -> Option<SchemaInfo> {
        self.schema.clone()
    }

    fn encode(&self, message: &Incoming) -> Result<Bytes, Error> {
        Ok(message.payload.clone())
    }

    fn encode_key(&self, message: &Incoming) -> Result<Option<Bytes>, Error> {
        Ok(key_of_value(message))
    }

    /// Nobody receives through it.
    fn decode(&self, _: &Bytes) -> Result<Incoming, Error> {
        Err(Error::new(Category::IncompatibleSchema, "dead letters are only sent through this schema"))
    }
}

/// The key of a message whose schema makes keys of bytes.
fn key_of_value(message: &Incoming) -> Option<Bytes> {
    let key = message.key.as_ref().filter(|_| message.key_is_base64)?;
    BASE64.decode(key).ok().map(Bytes::from)
}
