//! The stream consumer (client-api §4.1): its public handle, and the task that carries out what the state machine asks
//! for.

mod actor;
mod builder;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

pub use builder::StreamConsumerBuilder;

use crate::{
    core::{
        consumer::Delivery,
        deviant::{Deviance, Deviant},
        error::Error,
        message_id::MessageId,
        stream::StreamDelivery,
    },
    message::Message,
    receive_queue::{Queued, ReceiveQueue},
    schema::Schema,
};

impl Queued for StreamDelivery {
    type Passed = ();

    fn delivery(&mut self) -> &mut Delivery {
        &mut self.delivery
    }
}

/// What a handle asks of the consumer's task.
pub(crate) enum Request {
    Acknowledge(MessageId, oneshot::Sender<Result<(), Error>>),
    /// A message was taken out of the receive queue.
    Consumed {
        segment: u64,
        generation: u64,
    },
    Close(oneshot::Sender<Result<(), Error>>),
}

/// What handles and the task share.
pub(crate) struct Face {
    pub(crate) topic: Arc<str>,
    pub(crate) subscription: String,
    pub(crate) queue: ReceiveQueue<StreamDelivery>,
    pub(crate) deviance: Deviance,
    /// How many messages are enough to wait for.
    pub(crate) receiver_queue: usize,
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
    requests: mpsc::UnboundedSender<Request>,
    face: Arc<Face>,
    schema: Arc<dyn Schema<T>>,
}

impl<T> Clone for StreamConsumer<T> {
    fn clone(&self) -> Self {
        StreamConsumer {
            requests: self.requests.clone(),
            face: self.face.clone(),
            schema: self.schema.clone(),
        }
    }
}

impl<T> std::fmt::Debug for StreamConsumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamConsumer")
            .field("topic", &self.face.topic)
            .field("subscription", &self.face.subscription)
            .finish()
    }
}

impl<T: 'static> StreamConsumer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        &self.face.topic
    }

    /// The subscription's name.
    pub fn subscription(&self) -> &str {
        &self.face.subscription
    }

    /// Waits for a message (client-api §4).
    ///
    /// # Errors
    /// `AlreadyClosed` once the consumer is closed.
    pub async fn receive(&self) -> Result<Message<T>, Error> {
        let delivery = self.face.queue.pop().await?;
        Ok(self.received(delivery))
    }

    /// Waits for a message, but not longer than this (client-api §4); `None` when the time is over.
    ///
    /// # Errors
    /// As for [`StreamConsumer::receive`].
    pub async fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        match timeout_at(Instant::now() + limit, self.face.queue.pop()).await {
            Ok(delivery) => Ok(Some(self.received(delivery?))),
            Err(_) if self.face.deviance.is(Deviant::ReceiveTimeoutIsError) => {
                Err(Error::timeout("no message came in time"))
            }
            Err(_) => Ok(None),
        }
    }

    /// Receives up to `max` messages (client-api §4); returns earlier, with fewer or none, when `limit` is over, and
    /// with fewer when as many as the receive queue may hold are there.
    ///
    /// # Errors
    /// As for [`StreamConsumer::receive`].
    pub async fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let until = Instant::now() + limit;
        let taken = self.face.queue.pop_many(max, self.face.receiver_queue, until).await?;
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
        let (done, answer) = oneshot::channel();
        let request = Request::Acknowledge(id.clone(), done);
        self.requests.send(request).map_err(|_| Error::closed("consumer"))?;
        answer.await.unwrap_or_else(|_| Err(Error::closed("consumer")))
    }

    /// Leaves the subscription, so that the others take over at once, and releases everything (client-behavior §8,
    /// §10); acknowledges nothing. Closing again waits for the same and succeeds.
    ///
    /// # Errors
    /// None today; closing is best effort.
    pub async fn close(&self) -> Result<(), Error> {
        let (done, closed) = oneshot::channel();
        if self.requests.send(Request::Close(done)).is_err() {
            // Closed before.
            return if self.face.deviance.is(Deviant::CloseNotIdempotent) {
                Err(Error::closed("consumer"))
            } else {
                Ok(())
            };
        }
        // The task can end with the request unread: it is closed then.
        closed.await.unwrap_or(Ok(()))
    }

    fn received(&self, StreamDelivery { generation, delivery }: StreamDelivery) -> Message<T> {
        // On a closed consumer nobody waits for permits.
        let _ = self.requests.send(Request::Consumed { segment: delivery.segment, generation });
        Message::new(delivery, self.face.topic.clone(), self.schema.clone())
    }
}
