//! The checkpoint consumer (client-api §4.3): its public handle, and the task that carries out what the state machine
//! asks for.

mod actor;
mod builder;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

pub use builder::CheckpointConsumerBuilder;

use crate::{
    core::{
        checkpoint::{
            CheckpointDelivery,
            position::{Checkpoint, Mark, Marks, Start},
        },
        consumer::Delivery,
        deviant::{Deviance, Deviant},
        error::Error,
    },
    message::Message,
    receive_queue::{Queued, ReceiveQueue},
    schema::Schema,
};

impl Queued for CheckpointDelivery {
    type Passed = Marks;

    /// Taking a message out and moving the position are one step, so that a checkpoint never stands between them.
    fn pass(&self, marks: &mut Marks) {
        marks.insert(self.delivery.segment, self.mark);
    }

    fn delivery(&mut self) -> &mut Delivery {
        &mut self.delivery
    }
}

/// What a handle asks of the consumer's task.
pub(crate) enum Request {
    /// A message was taken out of the receive queue.
    Consumed {
        segment: u64,
        generation: u64,
        mark: Mark,
    },
    /// For the deviant that asks the broker when a checkpoint is taken.
    AskAgain,
    Close(oneshot::Sender<Result<(), Error>>),
}

/// What handles and the task share.
pub(crate) struct Face {
    pub(crate) topic: Arc<str>,
    pub(crate) queue: ReceiveQueue<CheckpointDelivery>,
    pub(crate) deviance: Deviance,
    /// How many messages are enough to wait for.
    pub(crate) receiver_queue: usize,
}

/// Receives the messages of a topic so that those of one key come in the order in which they were published, from a
/// position that the application keeps (client-api §4.3). Stays valid until it is closed, whatever happens to
/// connections and layout.
///
/// Cheap to clone; all clones are one consumer. When the last clone is dropped the consumer closes by itself.
pub struct CheckpointConsumer<T> {
    requests: mpsc::UnboundedSender<Request>,
    face: Arc<Face>,
    schema: Arc<dyn Schema<T>>,
}

impl<T> Clone for CheckpointConsumer<T> {
    fn clone(&self) -> Self {
        CheckpointConsumer {
            requests: self.requests.clone(),
            face: self.face.clone(),
            schema: self.schema.clone(),
        }
    }
}

impl<T> std::fmt::Debug for CheckpointConsumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckpointConsumer").field("topic", &self.face.topic).finish_non_exhaustive()
    }
}

impl<T: 'static> CheckpointConsumer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        &self.face.topic
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
    /// As for [`CheckpointConsumer::receive`].
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
    /// As for [`CheckpointConsumer::receive`].
    pub async fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let until = Instant::now() + limit;
        let taken = self.face.queue.pop_many(max, self.face.receiver_queue, until).await?;
        Ok(taken.into_iter().map(|delivery| self.received(delivery)).collect())
    }

    /// Captures the position (client-api §4.3): everything that was received up to now, in every part of the topic
    /// that this consumer reads. Asks no broker and waits for nothing. A consumer that starts at it reads on exactly
    /// there.
    pub fn checkpoint(&self) -> Checkpoint {
        let mut marks = self.face.queue.passed(|marks| marks.clone());
        if self.face.deviance.is(Deviant::RestoreForgetsSegment) && marks.len() > 1 {
            marks.pop_last();
        }
        if self.face.deviance.is(Deviant::CheckpointAsksBroker) {
            let _ = self.requests.send(Request::AskAgain);
        }
        Checkpoint(Start::Behind(marks))
    }

    /// Leaves the group, if there is one, and releases everything (client-behavior §8, §10). Closing again waits for
    /// the same and succeeds.
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

    fn received(&self, CheckpointDelivery { generation, mark, delivery }: CheckpointDelivery) -> Message<T> {
        // On a closed consumer nobody waits for permits.
        let _ = self.requests.send(Request::Consumed { segment: delivery.segment, generation, mark });
        Message::new(delivery, self.face.topic.clone(), self.schema.clone())
    }
}
