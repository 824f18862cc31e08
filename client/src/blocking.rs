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
    time::Instant,
};

use crate::{
    ClientBuilder, Error, Message, MessageBuilder, MessageId, ProducerBuilder, QueueConsumerBuilder, Schema,
    core::error::Category,
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
        let mut interrupts = self.interrupts.subscribe();
        self.complete(async move {
            let operation = pin!(operation);
            tokio::select! {
                // What has ended is told, so that no message is lost over an interrupt.
                biased;
                ended = operation => ended,
                _ = interrupts.changed() => Err(interrupted()),
            }
        })
    }

    /// Waits on the calling thread for an operation that looks for interrupts by itself.
    fn complete<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (done, result) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // Whoever asked waits below.
            let _ = done.send(operation.await);
        });
        result.recv().unwrap_or_else(|_| Err(Error::closed("client")))
    }
}

fn interrupted() -> Error {
    Error::new(Category::Interrupted, "the blocking call was interrupted")
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

/// Receives the messages of a topic (client-api §4.2); the blocking form of [`crate::QueueConsumer`].
#[derive(Debug)]
pub struct QueueConsumer<T> {
    engine: Arc<Engine>,
    consumer: crate::QueueConsumer<T>,
}

impl<T> Clone for QueueConsumer<T> {
    fn clone(&self) -> Self {
        QueueConsumer { engine: self.engine.clone(), consumer: self.consumer.clone() }
    }
}

impl<T: Send + 'static> QueueConsumer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        self.consumer.topic()
    }

    /// The subscription's name.
    pub fn subscription(&self) -> &str {
        self.consumer.subscription()
    }

    /// Waits for a message (client-api §4).
    ///
    /// # Errors
    /// As for [`crate::QueueConsumer::receive`], and `Interrupted`.
    pub fn receive(&self) -> Result<Message<T>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive().await })
    }

    /// Waits for a message, but not longer than this; `None` when the time is over.
    ///
    /// # Errors
    /// As for [`QueueConsumer::receive`].
    pub fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive_timeout(limit).await })
    }

    /// Receives up to `max` messages; returns earlier, with fewer or none, when `limit` is over, and with those that it
    /// has when it is interrupted.
    ///
    /// # Errors
    /// As for [`QueueConsumer::receive`], unless messages were received already.
    pub fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let consumer = self.consumer.clone();
        let mut interrupts = self.engine.interrupts.subscribe();
        self.engine.complete(async move {
            let until = Instant::now() + limit;
            let mut messages = Vec::new();
            while messages.len() < max {
                let left = until.saturating_duration_since(Instant::now());
                let received = tokio::select! {
                    biased;
                    received = consumer.receive_timeout(left) => received,
                    _ = interrupts.changed() => Err(interrupted()),
                };
                match received {
                    Ok(Some(message)) => messages.push(message),
                    Err(error) if messages.is_empty() => return Err(error),
                    Ok(None) | Err(_) => break,
                }
            }
            Ok(messages)
        })
    }

    /// Acknowledges one message (client-api §4.2).
    ///
    /// # Errors
    /// As for [`crate::QueueConsumer::acknowledge`], and `Interrupted`.
    pub fn acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        let (consumer, id) = (self.consumer.clone(), id.clone());
        self.engine.wait(async move { consumer.acknowledge(&id).await })
    }

    /// Has one message delivered again, after the redelivery delay (client-api §4.2).
    ///
    /// # Errors
    /// As for [`QueueConsumer::acknowledge`].
    pub fn negative_acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        let (consumer, id) = (self.consumer.clone(), id.clone());
        self.engine.wait(async move { consumer.negative_acknowledge(&id).await })
    }

    /// Releases everything; acknowledges nothing (client-api §4.2). Closing again succeeds.
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn close(&self) -> Result<(), Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.close().await })
    }
}
