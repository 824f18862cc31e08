//! A message as a consumer gets it (data-model §3).

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
use bytes::Bytes;

use crate::{
    core::{
        consumer::Delivery,
        deviant::Deviant,
        encryption::policy::EncryptionContext,
        error::Error,
        incoming::Incoming,
        message_id::{MessageId, Position},
    },
    schema::{Encoded, Schema},
};

/// A received message (data-model §3). It does not change any more.
pub struct Message<T> {
    id: MessageId,
    topic: Arc<str>,
    redelivery_count: u32,
    content: Incoming,
    schema: Arc<dyn Schema<T>>,
}

impl<T: 'static> Message<T> {
    /// The message of a delivery, or why the application does not get it.
    pub(crate) fn new(
        delivery: Delivery,
        topic: Arc<str>,
        schema: Arc<dyn Schema<T>>,
    ) -> Result<Self, Error> {
        let Delivery { mut id, redelivery_count, message: mut content, .. } = delivery;
        if let Some(failure) = content.failure.take() {
            return Err(content.deviance.report(failure));
        }
        if content.deviance.is(Deviant::ReceivedIdOff)
            && let Some(position) = id.position()
        {
            id = Position { entry: position.entry + 1, ..position }.into();
        }
        Ok(Message { id, topic, redelivery_count, content, schema })
    }

    /// The value, decoded by the consumer's schema.
    ///
    /// # Errors
    /// When the payload is not of that schema.
    pub fn value(&self) -> Result<T, Error> {
        let key = self.key_bytes();
        let cut = usize::from(self.content.deviance.is(Deviant::ValueCut)).min(self.content.payload.len());
        self.schema.decode_message(&Encoded {
            payload: &self.content.payload.slice(cut..),
            key: key.as_deref(),
            writer: self.content.writer.as_deref(),
        })
    }

    /// The payload before decoding.
    pub fn payload(&self) -> &Bytes {
        static NOTHING: Bytes = Bytes::new();
        if self.content.deviance.is(Deviant::NoPayload) { &NOTHING } else { &self.content.payload }
    }

    /// What the payload is encrypted with, when it could not be decrypted and the consumer wants it all the same; `None` for
    /// every other message.
    pub fn encryption(&self) -> Option<&EncryptionContext> {
        self.content.encryption.as_ref()
    }

    /// The message's identifier.
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// The key; `None` when it has none. The empty string is a key. A key of bytes, which schemas of separated pairs
    /// make, is base64 here; see [`Message::key_bytes`].
    pub fn key(&self) -> Option<&str> {
        self.content.key.as_deref()
    }

    /// The key's bytes; `None` when it has none.
    pub fn key_bytes(&self) -> Option<Vec<u8>> {
        let key = self.content.key.as_deref()?;
        let decoded = self.content.key_is_base64.then(|| BASE64.decode(key).ok()).flatten();
        Some(decoded.unwrap_or_else(|| key.as_bytes().to_vec()))
    }

    /// The version of the topic's schema that the message was written with, as the broker counts them; `None` without
    /// a schema.
    pub fn schema_version(&self) -> Option<&Bytes> {
        self.content.schema_version.as_ref()
    }

    /// The application's properties, in the order in which they were set.
    pub fn properties(&self) -> &[(String, String)] {
        &self.content.properties
    }

    /// The value of a property.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties().iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// When the message was published.
    pub fn publish_time(&self) -> SystemTime {
        let known = !self.content.deviance.is(Deviant::NoPublishTime);
        UNIX_EPOCH + Duration::from_millis(if known { self.content.publish_time } else { 0 })
    }

    /// The application's own time for the message, if it set one.
    pub fn event_time(&self) -> Option<SystemTime> {
        self.content.event_time.map(|ms| UNIX_EPOCH + Duration::from_millis(ms))
    }

    /// The sequence id that the producer gave it.
    pub fn sequence_id(&self) -> u64 {
        self.content.sequence_id
    }

    /// The name of the producer, as the entry has it.
    pub fn producer_name(&self) -> Option<&str> {
        Some(self.content.producer_name.as_str()).filter(|name| !name.is_empty())
    }

    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// How often the message was delivered before; 0 at first.
    pub fn redelivery_count(&self) -> u32 {
        self.redelivery_count
    }

    /// The size of the payload in bytes, uncompressed.
    pub fn size(&self) -> usize {
        self.content.size
    }

    /// The cluster that the message was replicated from, if it was.
    pub fn replicated_from(&self) -> Option<&str> {
        let told = !self.content.deviance.is(Deviant::NoReplicatedFrom);
        self.content.replicated_from.as_deref().filter(|_| told)
    }
}

impl<T> fmt::Debug for Message<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("id", &self.id)
            .field("topic", &self.topic)
            .field("key", &self.content.key)
            .field("size", &self.content.size)
            .field("redelivery_count", &self.redelivery_count)
            .finish_non_exhaustive()
    }
}
