//! The client for code without async: the same operations, each waiting for its end (client-api §1).
//!
//! Everything here stands on the client of the crate's root and shares its semantics, resources and error categories;
//! what configures it are the same builders. A thread of its own runs it.
//!
//! ```no_run
//! use stc_client::{InitialPosition, PulsarClient, StringSchema, blocking};
//!
//! # fn example() -> Result<(), stc_client::Error> {
//! let builder = PulsarClient::builder().service_url("pulsar://localhost:6650");
//! let client = blocking::PulsarClient::new(builder)?;
//! let topic = "topic://public/default/orders";
//! let consumer = client.queue_consumer(StringSchema, |consumer| {
//!     consumer.topic(topic).subscription("billing").initial_position(InitialPosition::Earliest)
//! })?;
//! let producer = client.producer(StringSchema, |producer| producer.topic(topic))?;
//! producer.send(|message| message.key("customer-7").value("paid".to_owned()))?;
//! let message = consumer.receive()?;
//! consumer.acknowledge(message.id())?;
//! client.close()
//! # }
//! ```
//!
//! Do not call it from async code: a call holds up its thread until it ends.

mod consumers;

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use tokio::{
    runtime::{self, Handle},
    sync::{oneshot, watch},
};

pub use consumers::{CheckpointConsumer, QueueConsumer, StreamConsumer};

use crate::{
    CheckpointConsumerBuilder, ClientBuilder, Error, MessageBuilder, MessageId, ProducerBuilder,
    QueueConsumerBuilder, Schema, StreamConsumerBuilder, TransactionState, core::error::Category,
};

/// The thread that runs a client, and the way to it.
struct Engine {
    handle: Handle,
    /// Counts interrupts.
    interrupts: watch::Sender<u64>,
    /// Dropped with the last user: the thread closes the client then and ends.
    _stop: oneshot::Sender<()>,
}

impl Engine {
    fn start(builder: ClientBuilder) -> Result<(Arc<Self>, crate::PulsarClient), Error> {
        let failed = |error: std::io::Error| {
            Error::new(Category::Unknown, format!("the client's thread cannot be started: {error}"))
        };
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let client = {
            let _within = handle.enter();
            builder.build()?
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let running = client.clone();
        let run = move || {
            runtime.block_on(async {
                // Nothing is sent: this ends when the sender is dropped.
                let _ = stopped.await;
                let _ = running.close().await;
            });
        };
        thread::Builder::new().name("pulsar-client".into()).spawn(run).map_err(failed)?;
        let engine = Engine { handle, interrupts: watch::Sender::new(0), _stop: stop };
        Ok((Arc::new(engine), client))
    }

    /// Waits on the calling thread for an operation or an interrupt.
    fn wait<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (done, result) = mpsc::sync_channel(1);
        let mut interrupts = self.interrupts.subscribe();
        self.handle.spawn(async move {
            let operation = pin!(operation);
            let ended = tokio::select! {
                // What has ended is told, so that no message is lost over an interrupt.
                biased;
                ended = operation => ended,
                _ = interrupts.changed() => {
                    Err(Error::new(Category::Interrupted, "the blocking call was interrupted"))
                }
            };
            // Whoever asked waits below.
            let _ = done.send(ended);
        });
        result.recv().unwrap_or_else(|_| Err(Error::closed("client")))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// A client of one cluster whose calls wait (client-api §1, §2). Cheap to clone; may be shared by threads. Make one
/// and keep it.
///
/// When it, its producers and its consumers are all dropped, it closes in the background.
#[derive(Clone)]
pub struct PulsarClient {
    engine: Arc<Engine>,
    client: crate::PulsarClient,
}

impl PulsarClient {
    /// Makes the client that this configures.
    ///
    /// # Errors
    /// As for [`ClientBuilder::build`].
    pub fn new(builder: ClientBuilder) -> Result<Self, Error> {
        let (engine, client) = Engine::start(builder)?;
        Ok(PulsarClient { engine, client })
    }

    /// Creates a producer (client-api §3.1).
    ///
    /// # Errors
    /// As for [`ProducerBuilder::create`], and `Interrupted`.
    pub fn producer<T: Send + 'static>(
        &self,
        schema: impl Schema<T>,
        configure: impl FnOnce(ProducerBuilder<T>) -> ProducerBuilder<T>,
    ) -> Result<Producer<T>, Error> {
        let builder = configure(self.client.producer(schema));
        let producer = self.engine.wait(builder.create())?;
        Ok(Producer { engine: self.engine.clone(), producer })
    }

    /// Subscribes a queue consumer (client-api §4.2).
    ///
    /// # Errors
    /// As for [`QueueConsumerBuilder::subscribe`], and `Interrupted`.
    pub fn queue_consumer<T: Send + 'static>(
        &self,
        schema: impl Schema<T>,
        configure: impl FnOnce(QueueConsumerBuilder<T>) -> QueueConsumerBuilder<T>,
    ) -> Result<QueueConsumer<T>, Error> {
        let builder = configure(self.client.queue_consumer(schema));
        let consumer = self.engine.wait(builder.subscribe())?;
        Ok(QueueConsumer { engine: self.engine.clone(), consumer })
    }

    /// Subscribes a stream consumer (client-api §4.1).
    ///
    /// # Errors
    /// As for [`StreamConsumerBuilder::subscribe`], and `Interrupted`.
    pub fn stream_consumer<T: Send + 'static>(
        &self,
        schema: impl Schema<T>,
        configure: impl FnOnce(StreamConsumerBuilder<T>) -> StreamConsumerBuilder<T>,
    ) -> Result<StreamConsumer<T>, Error> {
        let builder = configure(self.client.stream_consumer(schema));
        let consumer = self.engine.wait(builder.subscribe())?;
        Ok(StreamConsumer { engine: self.engine.clone(), consumer })
    }

    /// Creates a checkpoint consumer (client-api §4.3).
    ///
    /// # Errors
    /// As for [`CheckpointConsumerBuilder::create`], and `Interrupted`.
    pub fn checkpoint_consumer<T: Send + 'static>(
        &self,
        schema: impl Schema<T>,
        configure: impl FnOnce(CheckpointConsumerBuilder<T>) -> CheckpointConsumerBuilder<T>,
    ) -> Result<CheckpointConsumer<T>, Error> {
        let builder = configure(self.client.checkpoint_consumer(schema));
        let consumer = self.engine.wait(builder.create())?;
        Ok(CheckpointConsumer { engine: self.engine.clone(), consumer })
    }

    /// Opens a transaction (client-api §6, *NewTransaction*).
    ///
    /// # Errors
    /// As for [`crate::PulsarClient::new_transaction`], and `Interrupted`.
    pub fn new_transaction(&self, timeout: Duration) -> Result<Transaction, Error> {
        let client = self.client.clone();
        let transaction = self.engine.wait(async move { client.new_transaction(timeout).await })?;
        Ok(Transaction { engine: self.engine.clone(), transaction })
    }

    /// Ends every call on this client that waits at this moment, on whatever thread, with `Interrupted` (error-model
    /// §2). Calls that come later wait as usual. Nothing else changes: producers and consumers stay valid, a send that
    /// was interrupted may still be published, and a receive that was interrupted has taken no message.
    pub fn interrupt(&self) {
        self.engine.interrupts.send_modify(|count| *count += 1);
    }

    /// Closes all producers and consumers, which completes what is pending, and then the connections (client-api §2).
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn close(&self) -> Result<(), Error> {
        let client = self.client.clone();
        self.engine.wait(async move { client.close().await })
    }
}

impl std::fmt::Debug for PulsarClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("blocking::PulsarClient").finish_non_exhaustive()
    }
}

/// A transaction (client-api §6); the blocking form of [`crate::Transaction`]. Messages go into it with
/// [`MessageBuilder::transaction`].
#[derive(Debug, Clone)]
pub struct Transaction {
    engine: Arc<Engine>,
    transaction: crate::Transaction,
}

impl Transaction {
    /// How far it is (client-api §6).
    pub fn state(&self) -> TransactionState {
        self.transaction.state()
    }

    /// Makes everything in it take effect at once (client-api §6, *Commit*).
    ///
    /// # Errors
    /// As for [`crate::Transaction::commit`], and `Interrupted`.
    pub fn commit(&self) -> Result<(), Error> {
        let transaction = self.transaction.clone();
        self.engine.wait(async move { transaction.commit().await })
    }

    /// Drops everything in it (client-api §6, *Abort*).
    ///
    /// # Errors
    /// As for [`crate::Transaction::abort`], and `Interrupted`.
    pub fn abort(&self) -> Result<(), Error> {
        let transaction = self.transaction.clone();
        self.engine.wait(async move { transaction.abort().await })
    }
}

impl AsRef<crate::Transaction> for Transaction {
    fn as_ref(&self) -> &crate::Transaction {
        &self.transaction
    }
}

/// Publishes messages to one topic (client-api §3); the blocking form of [`crate::Producer`].
#[derive(Debug)]
pub struct Producer<T> {
    engine: Arc<Engine>,
    producer: crate::Producer<T>,
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Self {
        Producer { engine: self.engine.clone(), producer: self.producer.clone() }
    }
}

impl<T: Send + 'static> Producer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        self.producer.topic()
    }

    /// The name that the application gave, if it gave one.
    pub fn name(&self) -> Option<&str> {
        self.producer.name()
    }

    /// The highest sequence id that was published (client-api §3.2); `None` before the first.
    pub fn last_sequence_id(&self) -> Option<u64> {
        self.producer.last_sequence_id()
    }

    /// Publishes a message and waits for its receipt (client-api §3.2).
    ///
    /// # Errors
    /// As for [`MessageBuilder::send`], and `Interrupted`.
    pub fn send(
        &self,
        build: impl for<'p> FnOnce(MessageBuilder<'p, T>) -> MessageBuilder<'p, T>,
    ) -> Result<MessageId, Error> {
        self.send_async(build).wait()
    }

    /// Publishes a message without waiting: when this returns, it has its place in the order of sends.
    pub fn send_async(
        &self,
        build: impl for<'p> FnOnce(MessageBuilder<'p, T>) -> MessageBuilder<'p, T>,
    ) -> SendTicket {
        let ticket = build(self.producer.message()).send_async();
        SendTicket { engine: self.engine.clone(), ticket }
    }

    /// Waits until every send that was issued before has its result (client-api §3.3).
    ///
    /// # Errors
    /// `AlreadyClosed`, `Interrupted`.
    pub fn flush(&self) -> Result<(), Error> {
        let producer = self.producer.clone();
        self.engine.wait(async move { producer.flush().await })
    }

    /// Publishes what is pending and releases everything (client-api §3.3). Closing again succeeds.
    ///
    /// # Errors
    /// As for [`crate::Producer::close`], and `Interrupted`.
    pub fn close(&self) -> Result<(), Error> {
        let producer = self.producer.clone();
        self.engine.wait(async move { producer.close().await })
    }
}

/// The result of a send to come (client-api §3.2).
pub struct SendTicket {
    engine: Arc<Engine>,
    ticket: crate::SendTicket,
}

impl SendTicket {
    /// Waits for the message's identifier.
    ///
    /// # Errors
    /// As for [`MessageBuilder::send`], and `Interrupted`.
    pub fn wait(self) -> Result<MessageId, Error> {
        self.engine.wait(self.ticket)
    }
}

impl std::fmt::Debug for SendTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.ticket.fmt(f)
    }
}
