//! The producer (client-api §3): its public handle, and the task that carries out what the state machine asks for.

mod actor;
mod builder;
mod message;

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use tokio::sync::{mpsc, oneshot};

pub(crate) use actor::{layout_changed, managed, sleep, without_schema};
pub use builder::{AccessMode, Compression, ProducerBuilder, QueueFull};
pub use message::{MessageBuilder, SendTicket};

use crate::{
    core::{
        deviant::{Deviance, Deviant},
        error::Error,
        message_id::MessageId,
        outgoing::Outgoing,
    },
    schema::Schema,
    transaction::Operation,
};

pub(crate) type SendResult = Result<MessageId, Error>;

/// What a handle asks of the producer's task.
pub(crate) enum Request {
    /// A message, and the transaction's operation that it is, if any.
    Send(Box<Outgoing>, Option<Operation>, oneshot::Sender<SendResult>),
    Flush(oneshot::Sender<()>),
    Close(oneshot::Sender<Result<(), Error>>),
}

/// What handles and the task share.
pub(crate) struct Face {
    pub(crate) topic: String,
    pub(crate) name: Option<String>,
    /// -1 while nothing is published.
    pub(crate) last_sequence_id: AtomicI64,
    pub(crate) queue_full: QueueFull,
    pub(crate) deviance: Deviance,
    /// Milliseconds since 1970; for delays.
    pub(crate) client: Arc<crate::client::Shared>,
}

/// Publishes messages to one topic (client-api §3). Stays valid until it is closed, whatever happens to connections
/// and layout.
///
/// Cheap to clone; all clones are one producer. When the last clone is dropped the producer closes by itself, after
/// what is pending has been published.
pub struct Producer<T> {
    requests: mpsc::UnboundedSender<Request>,
    face: Arc<Face>,
    schema: Arc<dyn Schema<T>>,
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Self {
        Producer { requests: self.requests.clone(), face: self.face.clone(), schema: self.schema.clone() }
    }
}

impl<T> std::fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer").field("topic", &self.face.topic).field("name", &self.face.name).finish()
    }
}

impl<T: 'static> Producer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        &self.face.topic
    }

    /// The name that the application gave, if it gave one.
    pub fn name(&self) -> Option<&str> {
        self.face.name.as_deref()
    }

    /// Starts a message (client-api §3.2).
    pub fn message(&self) -> MessageBuilder<'_, T> {
        MessageBuilder::new(self)
    }

    /// The highest sequence id that was published (client-api §3.2); `None` before the first. With a name that
    /// published before, what the broker remembers of it counts once its segment is attached.
    pub fn last_sequence_id(&self) -> Option<u64> {
        u64::try_from(self.face.last_sequence_id.load(Ordering::Relaxed)).ok()
    }

    /// Waits until every send that was issued before has its result (client-api §3.3).
    ///
    /// # Errors
    /// `AlreadyClosed` on a closed producer.
    pub async fn flush(&self) -> Result<(), Error> {
        let (done, flushed) = oneshot::channel();
        self.requests.send(Request::Flush(done)).map_err(|_| Error::closed("producer"))?;
        flushed.await.map_err(|_| Error::closed("producer"))
    }

    /// Publishes what is pending and releases everything (client-api §3.3). Closing again waits for the same and
    /// succeeds.
    ///
    /// # Errors
    /// `Timeout` when what is pending could not be published within the client's operation timeout.
    pub async fn close(&self) -> Result<(), Error> {
        if self.face.deviance.is(Deviant::SendAfterClose) {
            return self.flush().await;
        }
        let (done, closed) = oneshot::channel();
        if self.requests.send(Request::Close(done)).is_err() {
            // Closed before.
            return if self.face.deviance.is(Deviant::CloseNotIdempotent) {
                Err(Error::closed("producer"))
            } else {
                Ok(())
            };
        }
        // The task can end with the request unread: it is closed then.
        closed.await.unwrap_or(Ok(()))
    }
}
