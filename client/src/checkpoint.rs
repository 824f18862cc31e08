//! The checkpoint consumer (client-api §4.3): its public handle, and what its task does differently from that of others.

mod builder;
mod kind;

use std::{sync::Arc, time::Duration};

pub use builder::CheckpointConsumerBuilder;

use self::kind::{Checkpointing, Request};
use crate::{
    consumer::Handle,
    core::{
        checkpoint::{
            CheckpointDelivery,
            position::{Checkpoint, Marks, Start},
        },
        consumer::Delivery,
        deviant::Deviant,
        error::Error,
    },
    message::Message,
    receive_queue::Queued,
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

/// Receives the messages of a topic so that those of one key come in the order in which they were published, from a
/// position that the application keeps (client-api §4.3). Stays valid until it is closed, whatever happens to
/// connections and layout.
///
/// Cheap to clone; all clones are one consumer. When the last clone is dropped the consumer closes by itself.
pub struct CheckpointConsumer<T> {
    handle: Handle<Checkpointing>,
    schema: Arc<dyn Schema<T>>,
}

impl<T> Clone for CheckpointConsumer<T> {
    fn clone(&self) -> Self {
        CheckpointConsumer { handle: self.handle.clone(), schema: self.schema.clone() }
    }
}

impl<T> std::fmt::Debug for CheckpointConsumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckpointConsumer").field("topic", &self.handle.face.topic).finish_non_exhaustive()
    }
}

impl<T: 'static> CheckpointConsumer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        &self.handle.face.topic
    }

    /// Waits for a message (client-api §4).
    ///
    /// # Errors
    /// `AlreadyClosed` once the consumer is closed; `Crypto` in the place of a message that cannot be decrypted, which stays
    /// unacknowledged.
    pub async fn receive(&self) -> Result<Message<T>, Error> {
        self.received(self.handle.receive().await?)
    }

    /// Waits for a message, but not longer than this (client-api §4); `None` when the time is over.
    ///
    /// # Errors
    /// As for [`CheckpointConsumer::receive`].
    pub async fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        self.handle.receive_timeout(limit).await?.map(|delivery| self.received(delivery)).transpose()
    }

    /// Receives up to `max` messages (client-api §4); returns earlier, with fewer or none, when `limit` is over, and
    /// with fewer when as many as the receive queue may hold are there.
    ///
    /// # Errors
    /// As for [`CheckpointConsumer::receive`].
    pub async fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let taken = self.handle.receive_multi(max, limit).await?;
        taken.into_iter().map(|delivery| self.received(delivery)).collect()
    }

    /// Captures the position (client-api §4.3): everything that was received up to now, in every part of the topic
    /// that this consumer reads. Asks no broker and waits for nothing. A consumer that starts at it reads on exactly
    /// there.
    pub fn checkpoint(&self) -> Checkpoint {
        let mut marks = self.handle.face.queue.passed(|marks| marks.clone());
        if self.handle.face.deviance.is(Deviant::RestoreForgetsSegment) && marks.len() > 1 {
            marks.pop_last();
        }
        if self.handle.face.deviance.is(Deviant::CheckpointAsksBroker) {
            self.handle.tell(Request::AskAgain);
        }
        if self.handle.face.deviance.is(Deviant::CheckpointAcks) {
            self.handle.tell(Request::Acknowledge(marks.clone()));
        }
        Checkpoint(Start::Behind(marks))
    }

    /// Leaves the group, if there is one, and releases everything (client-behavior §8, §10). Closing again waits for
    /// the same and succeeds.
    ///
    /// # Errors
    /// None today; closing is best effort.
    pub async fn close(&self) -> Result<(), Error> {
        self.handle.close().await
    }

    fn received(
        &self,
        CheckpointDelivery { generation, delivery, .. }: CheckpointDelivery,
    ) -> Result<Message<T>, Error> {
        self.handle.tell(Request::Consumed { segment: delivery.segment, generation });
        Message::new(delivery, self.handle.face.topic.clone(), self.schema.clone())
    }
}
