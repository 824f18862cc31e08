//! The stream consumer (client-api §4.1, §4.4): its public handle, what its task does differently from that of others, and
//! how many of them make the consumer of a namespace.

mod builder;
mod kind;
mod namespace;
mod open;

use std::{sync::Arc, time::Duration};

pub use builder::StreamConsumerBuilder;

use self::{
    kind::{Request, Stream},
    namespace::NamespaceHandle,
};
use crate::{
    consumer::Handle,
    core::{consumer::Delivery, error::Error, message_id::MessageId, stream::StreamDelivery},
    message::Message,
    receive_queue::{Outlet, Queued, Received},
    schema::Schema,
    transaction::Transaction,
};

impl Queued for StreamDelivery {
    type Passed = ();

    fn delivery(&mut self) -> &mut Delivery {
        &mut self.delivery
    }
}

/// Receives the messages of a topic, or of all scalable topics of a namespace (client-api §4.4), so that those of one
/// key come in the order in which they were published, sharing the keys with the other stream consumers of its
/// subscription (client-api §4.1). Stays valid until it is closed, whatever happens to connections and layout.
///
/// A message that was received and not acknowledged comes again after a reconnect, and to another consumer once this
/// one closes. While consumers join or leave, the keys that change hands wait until everything that was received of
/// them is acknowledged; so acknowledge what you have received even when no more comes.
///
/// A namespace's topics come and go by themselves. What was received of one that goes and is not acknowledged comes again
/// when the topic comes back; an acknowledgement that covers it passes it over.
///
/// Cheap to clone; all clones are one consumer. When the last clone is dropped the consumer closes by itself.
pub struct StreamConsumer<T> {
    source: Source,
    subscription: Arc<str>,
    schema: Arc<dyn Schema<T>>,
}

/// Where messages come from.
#[derive(Clone)]
enum Source {
    Topic(Handle<Stream>),
    Namespace(NamespaceHandle),
}

impl<T> Clone for StreamConsumer<T> {
    fn clone(&self) -> Self {
        StreamConsumer {
            source: self.source.clone(),
            subscription: self.subscription.clone(),
            schema: self.schema.clone(),
        }
    }
}

impl<T> std::fmt::Debug for StreamConsumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamConsumer")
            .field("source", &self.source.name())
            .field("subscription", &self.subscription)
            .finish()
    }
}

impl Source {
    /// The topic, or the namespace.
    fn name(&self) -> &str {
        match self {
            Source::Topic(handle) => &handle.face.topic,
            Source::Namespace(handle) => &handle.namespace,
        }
    }

    fn outlet(&self) -> &Outlet<StreamDelivery> {
        match self {
            Source::Topic(handle) => &handle.outlet,
            Source::Namespace(handle) => &handle.outlet,
        }
    }
}

impl<T: 'static> StreamConsumer<T> {
    /// The canonical name of the topic; `None` when the consumer has a namespace. Each message tells its topic.
    pub fn topic(&self) -> Option<&str> {
        match &self.source {
            Source::Topic(handle) => Some(&handle.face.topic),
            Source::Namespace(_) => None,
        }
    }

    /// The namespace as `tenant/namespace`; `None` when the consumer has a topic.
    pub fn namespace(&self) -> Option<&str> {
        match &self.source {
            Source::Topic(_) => None,
            Source::Namespace(handle) => Some(&handle.namespace),
        }
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
        self.received(self.source.outlet().receive().await?)
    }

    /// Waits for a message, but not longer than this (client-api §4); `None` when the time is over.
    ///
    /// # Errors
    /// As for [`StreamConsumer::receive`].
    pub async fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        let received = self.source.outlet().receive_timeout(limit).await?;
        received.map(|received| self.received(received)).transpose()
    }

    /// Receives up to `max` messages (client-api §4); returns earlier, with fewer or none, when `limit` is over, and
    /// with fewer when as many as the receive queue may hold are there.
    ///
    /// # Errors
    /// As for [`StreamConsumer::receive`].
    pub async fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let taken = self.source.outlet().receive_multi(max, limit).await?;
        taken.into_iter().map(|received| self.received(received)).collect()
    }

    /// Acknowledges a message and everything that this consumer had received before it, of all keys (client-api
    /// §4.1): none of it will be delivered again. Of a namespace that is everything of all its topics. The identifier
    /// may be one that was stored as bytes, of an earlier life of the application too.
    ///
    /// Completes when the acknowledgement is on its way; it is sent again until the broker has accepted it, for as long
    /// as the messages are this consumer's.
    ///
    /// # Errors
    /// `AlreadyClosed`, or `InvalidConfiguration` for an identifier that is no message's.
    pub async fn acknowledge_cumulative(&self, id: &MessageId) -> Result<(), Error> {
        match &self.source {
            Source::Topic(handle) => handle.ask(|done| Request::Acknowledge(id.clone(), done)).await,
            Source::Namespace(handle) => handle.acknowledge(id).await,
        }
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
        match &self.source {
            Source::Topic(handle) => {
                let ask = |operation, done| Request::AcknowledgeIn(id.clone(), operation, done);
                handle.ask_in(transaction, ask).await
            }
            Source::Namespace(handle) => handle.acknowledge_in(id, transaction).await,
        }
    }

    /// Leaves the subscription, so that the others take over at once, and releases everything (client-behavior §8,
    /// §10); acknowledges nothing. Closing again waits for the same and succeeds.
    ///
    /// # Errors
    /// None today; closing is best effort.
    pub async fn close(&self) -> Result<(), Error> {
        match &self.source {
            Source::Topic(handle) => handle.close().await,
            Source::Namespace(handle) => handle.close().await,
        }
    }

    fn received(&self, Received { lane, delivery }: Received<StreamDelivery>) -> Result<Message<T>, Error> {
        let StreamDelivery { generation, delivery } = delivery;
        let segment = delivery.segment;
        match &self.source {
            Source::Topic(handle) => handle.tell(Request::Consumed { segment, generation }),
            Source::Namespace(handle) => handle.consumed(&lane.topic, lane.number, segment, generation),
        }
        Message::new(delivery, lane.topic.clone(), self.schema.clone())
    }
}
