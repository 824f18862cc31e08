//! The queue consumer (client-api §4.2): its public handle, and what its task does differently from that of others.

mod builder;
mod dead_letter;
mod kind;

use std::{sync::Arc, time::Duration};

pub use builder::{InitialPosition, QueueConsumerBuilder};
pub use dead_letter::DeadLetterPolicy;

use self::kind::{Queue, Request};
use crate::{
    consumer::Handle,
    core::{consumer::Delivery, deviant::Deviant, error::Error, message_id::MessageId, queue::position},
    message::Message,
    schema::Schema,
    transaction::Transaction,
};

/// Receives the messages of a topic in no particular order, sharing them with the other queue consumers of its
/// subscription (client-api §4.2). Stays valid until it is closed, whatever happens to connections and layout.
///
/// Cheap to clone; all clones are one consumer. When the last clone is dropped the consumer closes by itself.
pub struct QueueConsumer<T> {
    handle: Handle<Queue>,
    subscription: Arc<str>,
    schema: Arc<dyn Schema<T>>,
}

impl<T> Clone for QueueConsumer<T> {
    fn clone(&self) -> Self {
        QueueConsumer {
            handle: self.handle.clone(),
            subscription: self.subscription.clone(),
            schema: self.schema.clone(),
        }
    }
}

impl<T> std::fmt::Debug for QueueConsumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueConsumer")
            .field("topic", &self.handle.face.topic)
            .field("subscription", &self.subscription)
            .finish()
    }
}

impl<T: 'static> QueueConsumer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        &self.handle.face.topic
    }

    /// The subscription's name.
    pub fn subscription(&self) -> &str {
        &self.subscription
    }

    /// Waits for a message (client-api §4).
    ///
    /// # Errors
    /// `AlreadyClosed` once the consumer is closed; `Crypto` in the place of a message that cannot be decrypted, which stays
    /// unacknowledged.
    pub async fn receive(&self) -> Result<Message<T>, Error> {
        if self.handle.face.deviance.is(Deviant::ReceiveDoesNotWait) {
            let message = self.receive_timeout(Duration::ZERO).await?;
            return message.ok_or_else(|| Error::timeout("no message is there"));
        }
        self.received(self.handle.receive().await?)
    }

    /// Waits for a message, but not longer than this (client-api §4); `None` when the time is over.
    ///
    /// # Errors
    /// As for [`QueueConsumer::receive`].
    pub async fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        self.handle.receive_timeout(limit).await?.map(|delivery| self.received(delivery)).transpose()
    }

    /// Receives up to `max` messages (client-api §4); returns earlier, with fewer or none, when `limit` is over, and
    /// with fewer when as many as the receive queue may hold are there. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// As for [`QueueConsumer::receive`].
    pub async fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let taken = self.handle.receive_multi(max, limit).await?;
        taken.into_iter().map(|delivery| self.received(delivery)).collect()
    }

    /// Acknowledges one message (client-api §4.2): it will not be delivered again. Others, of the same batch too,
    /// stay as they are.
    ///
    /// Completes when the acknowledgement is taken: it goes out in the order of the calls, together with those that follow
    /// at once, and before a close. One that a failing connection swallows has the message delivered again.
    ///
    /// # Errors
    /// `AlreadyClosed`, or `InvalidConfiguration` for an identifier that is no message's.
    pub async fn acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        self.handle.check_open()?;
        self.handle.tell(Request::Acknowledge(position(id)?));
        Ok(())
    }

    /// Acknowledges one message within a transaction of the same client (client-api §4.2, §6): it counts from the commit
    /// on, and after an abort the message is delivered again. Completes when the broker has taken it.
    ///
    /// # Errors
    /// `TransactionConflict` when the transaction is not open, or the message is acknowledged already or in another open
    /// transaction; `Timeout`; and as for [`QueueConsumer::acknowledge`]. A failure makes the commit fail, which aborts.
    pub async fn acknowledge_in(&self, id: &MessageId, transaction: &Transaction) -> Result<(), Error> {
        self.handle
            .ask_in(transaction, |operation, done| Request::AcknowledgeIn(id.clone(), operation, done))
            .await
    }

    /// Has one message delivered again, after the redelivery delay (client-api §4.2).
    ///
    /// # Errors
    /// As for [`QueueConsumer::acknowledge`].
    pub async fn negative_acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        self.handle.ask(|done| Request::Reject(id.clone(), done)).await
    }

    /// Releases everything (client-behavior §10); acknowledges nothing. Closing again waits for the same and succeeds.
    ///
    /// # Errors
    /// None today; closing is best effort.
    pub async fn close(&self) -> Result<(), Error> {
        self.handle.close().await
    }

    fn received(&self, delivery: Delivery) -> Result<Message<T>, Error> {
        self.handle.tell(Request::Consumed(delivery.segment));
        let topic = if self.handle.face.deviance.is(Deviant::ReportSegmentTopic) {
            format!("{}/{}", self.handle.face.topic.replace("topic://", "segment://"), delivery.segment)
                .into()
        } else {
            self.handle.face.topic.clone()
        };
        let message = Message::new(delivery, topic, self.schema.clone())?;
        if self.handle.face.deviance.is(Deviant::BrokenAfterReceive) && message.value().is_err() {
            self.handle.face.queue.close();
        }
        Ok(message)
    }
}
