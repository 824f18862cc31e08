//! The stream consumer (client-api §4.1): its public handle, and what its task does differently from that of others.

mod builder;
mod kind;

use std::{sync::Arc, time::Duration};

pub use builder::StreamConsumerBuilder;

use self::kind::{Request, Stream};
use crate::{
    consumer::Handle,
    core::{consumer::Delivery, error::Error, message_id::MessageId, stream::StreamDelivery},
    message::Message,
    receive_queue::Queued,
    schema::Schema,
    transaction::Transaction,
};

impl Queued for StreamDelivery {
    type Passed = ();

    fn delivery(&mut self) -> &mut Delivery {
        &mut self.delivery
    }
}

/// Receives the messages of a topic so that those of one key come in the order in which they were published, sharing
/// the keys with the other stream consumers of its subscription (client-api §4.1). Stays valid until it is closed,
/// whatever happens to connections and layout.
///
/// A message that was received and not acknowledged comes again after a reconnect, and to another consumer once this
/// one closes. While consumers join or leave, the keys that change hands wait until everything that was received of
/// them is acknowledged; so acknowledge what you have received even when no more comes.
///
/// Cheap to clone; all clones are one consumer. When the last clone is dropped the consumer closes by itself.
pub struct StreamConsumer<T> {
    handle: Handle<Stream>,
    subscription: Arc<str>,
    schema: Arc<dyn Schema<T>>,
}

impl<T> Clone for StreamConsumer<T> {
    fn clone(&self) -> Self {
        StreamConsumer {
            handle: self.handle.clone(),
            subscription: self.subscription.clone(),
            schema: self.schema.clone(),
        }
    }
}

impl<T> std::fmt::Debug for StreamConsumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamConsumer")
            .field("topic", &self.handle.face.topic)
            .field("subscription", &self.subscription)
            .finish()
    }
}

impl<T: 'static> StreamConsumer<T> {
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
    /// `AlreadyClosed` once the consumer is closed.
    pub async fn receive(&self) -> Result<Message<T>, Error> {
        Ok(self.received(self.handle.receive().await?))
    }

    /// Waits for a message, but not longer than this (client-api §4); `None` when the time is over.
    ///
    /// # Errors
    /// As for [`StreamConsumer::receive`].
    pub async fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        Ok(self.handle.receive_timeout(limit).await?.map(|delivery| self.received(delivery)))
    }

    /// Receives up to `max` messages (client-api §4); returns earlier, with fewer or none, when `limit` is over, and
    /// with fewer when as many as the receive queue may hold are there.
    ///
    /// # Errors
    /// As for [`StreamConsumer::receive`].
    pub async fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let taken = self.handle.receive_multi(max, limit).await?;
        Ok(taken.into_iter().map(|delivery| self.received(delivery)).collect())
    }

    /// Acknowledges a message and everything that this consumer had received before it, of all keys (client-api
    /// §4.1): none of it will be delivered again. The identifier may be one that was stored as bytes, of an earlier
    /// life of the application too.
    ///
    /// Completes when the acknowledgement is on its way; it is sent again until the broker has accepted it, for as long
    /// as the messages are this consumer's.
    ///
    /// # Errors
    /// `AlreadyClosed`, or `InvalidConfiguration` for an identifier that is no message's.
    pub async fn acknowledge_cumulative(&self, id: &MessageId) -> Result<(), Error> {
        self.handle.ask(|done| Request::Acknowledge(id.clone(), done)).await
    }

    /// Acknowledges a message and everything that this consumer had received before it within a transaction of the same
    /// client (client-api §4.1, §6): it counts from the commit on, and after an abort the messages are delivered again, with
    /// those behind them. Completes when the brokers have taken it.
    ///
    /// While a transaction is open its acknowledgements hold up keys that are to change hands.
    ///
    /// # Errors
    /// `TransactionConflict` when the transaction is not open, or one of the messages is acknowledged in another open
    /// transaction; `Timeout`; and as for [`StreamConsumer::acknowledge_cumulative`]. A failure makes the commit fail, which
    /// aborts.
    pub async fn acknowledge_cumulative_in(
        &self,
        id: &MessageId,
        transaction: &Transaction,
    ) -> Result<(), Error> {
        self.handle
            .ask_in(transaction, |operation, done| Request::AcknowledgeIn(id.clone(), operation, done))
            .await
    }

    /// Leaves the subscription, so that the others take over at once, and releases everything (client-behavior §8,
    /// §10); acknowledges nothing. Closing again waits for the same and succeeds.
    ///
    /// # Errors
    /// None today; closing is best effort.
    pub async fn close(&self) -> Result<(), Error> {
        self.handle.close().await
    }

    fn received(&self, StreamDelivery { generation, delivery }: StreamDelivery) -> Message<T> {
        self.handle.tell(Request::Consumed { segment: delivery.segment, generation });
        Message::new(delivery, self.handle.face.topic.clone(), self.schema.clone())
    }
}
