//! The queue consumer (client-api §4.2): its public handle, and the task that carries out what the state machine asks
//! for.

mod actor;
mod builder;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

pub use builder::{InitialPosition, QueueConsumerBuilder};

use crate::{
    core::{
        consumer::Delivery,
        deviant::{Deviance, Deviant},
        error::Error,
        message_id::MessageId,
    },
    message::Message,
    receive_queue::ReceiveQueue,
    schema::Schema,
};

/// What a handle asks of the consumer's task.
pub(crate) enum Request {
    Acknowledge(MessageId, oneshot::Sender<Result<(), Error>>),
    Reject(MessageId, oneshot::Sender<Result<(), Error>>),
    /// Messages of a segment were taken out of the receive queue.
    Consumed(u64),
    Close(oneshot::Sender<Result<(), Error>>),
}

/// What handles and the task share.
pub(crate) struct Face {
    pub(crate) topic: Arc<str>,
    pub(crate) subscription: String,
    pub(crate) queue: ReceiveQueue,
    pub(crate) deviance: Deviance,
    /// How many messages are enough to wait for.
    pub(crate) receiver_queue: usize,
}

/// Receives the messages of a topic in no particular order, sharing them with the other queue consumers of its
/// subscription (client-api §4.2). Stays valid until it is closed, whatever happens to connections and layout.
///
/// Cheap to clone; all clones are one consumer. When the last clone is dropped the consumer closes by itself.
pub struct QueueConsumer<T> {
    requests: mpsc::UnboundedSender<Request>,
    face: Arc<Face>,
    schema: Arc<dyn Schema<T>>,
}

impl<T> Clone for QueueConsumer<T> {
    fn clone(&self) -> Self {
        QueueConsumer {
            requests: self.requests.clone(),
            face: self.face.clone(),
            schema: self.schema.clone(),
        }
    }
}

impl<T> std::fmt::Debug for QueueConsumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueConsumer")
            .field("topic", &self.face.topic)
            .field("subscription", &self.face.subscription)
            .finish()
    }
}

impl<T: 'static> QueueConsumer<T> {
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
    /// As for [`QueueConsumer::receive`].
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
    /// with fewer when as many as the receive queue may hold are there. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// As for [`QueueConsumer::receive`].
    pub async fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let until = Instant::now() + limit;
        let taken = self.face.queue.pop_many(max, self.face.receiver_queue, until).await?;
        Ok(taken.into_iter().map(|delivery| self.received(delivery)).collect())
    }

    /// Acknowledges one message (client-api §4.2): it will not be delivered again. Others, of the same batch too,
    /// stay as they are.
    ///
    /// Completes when the acknowledgement is on its way; one that a failing connection swallows has the message
    /// delivered again.
    ///
    /// # Errors
    /// `AlreadyClosed`, or `InvalidConfiguration` for an identifier that is no message's.
    pub async fn acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        self.ask(|done| Request::Acknowledge(id.clone(), done)).await
    }

    /// Has one message delivered again, after the redelivery delay (client-api §4.2).
    ///
    /// # Errors
    /// As for [`QueueConsumer::acknowledge`].
    pub async fn negative_acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        self.ask(|done| Request::Reject(id.clone(), done)).await
    }

    /// Releases everything (client-behavior §10); acknowledges nothing. Closing again waits for the same and succeeds.
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

    async fn ask(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<(), Error>>) -> Request,
    ) -> Result<(), Error> {
        let (done, answer) = oneshot::channel();
        self.requests.send(request(done)).map_err(|_| Error::closed("consumer"))?;
        answer.await.unwrap_or_else(|_| Err(Error::closed("consumer")))
    }

    fn received(&self, delivery: Delivery) -> Message<T> {
        // On a closed consumer nobody waits for permits.
        let _ = self.requests.send(Request::Consumed(delivery.segment));
        let topic = if self.face.deviance.is(Deviant::ReportSegmentTopic) {
            format!("{}/{}", self.face.topic.replace("topic://", "segment://"), delivery.segment).into()
        } else {
            self.face.topic.clone()
        };
        Message::new(delivery, topic, self.schema.clone())
    }
}
