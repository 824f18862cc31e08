//! Building and sending one message (client-api §3.2).

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
use stc_proto::KeyHash;
use tokio::sync::oneshot;

use super::{Producer, QueueFull, Request, SendResult};
use crate::{
    core::{
        deviant::Deviant,
        error::{Category, Error},
        memory::Memory,
        message_id::MessageId,
        outgoing::Outgoing,
    },
    transaction::{Operation, Transaction},
};

/// A message being put together (client-api §3.2).
#[must_use = "a message is published by send or send_async"]
pub struct MessageBuilder<'p, T> {
    producer: &'p Producer<T>,
    value: Option<T>,
    key: Option<String>,
    properties: Vec<(String, String)>,
    event_time: Option<u64>,
    sequence_id: Option<u64>,
    delivery: Option<Delivery>,
    replicate_to: Vec<String>,
    transaction: Option<Transaction>,
}

enum Delivery {
    After(Duration),
    At(SystemTime),
}

/// What Pulsar writes into a message that must not be replicated at all.
const NO_REPLICATION: &str = "__local__";

impl<'p, T: 'static> MessageBuilder<'p, T> {
    pub(crate) fn new(producer: &'p Producer<T>) -> Self {
        MessageBuilder {
            producer,
            value: None,
            key: None,
            properties: Vec::new(),
            event_time: None,
            sequence_id: None,
            delivery: None,
            replicate_to: Vec::new(),
            transaction: None,
        }
    }

    /// The value; required.
    pub fn value(mut self, value: T) -> Self {
        self.value = Some(value);
        self
    }

    /// The key (client-api §3.2, data-model §2): messages of one key stay in order. The empty string is a key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Adds a property.
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((key.into(), value.into()));
        self
    }

    /// Adds properties.
    pub fn properties<K: Into<String>, V: Into<String>>(
        mut self,
        properties: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.properties.extend(properties.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// The application's own time for the message.
    pub fn event_time(self, time: SystemTime) -> Self {
        self.event_time_ms(since_1970(time))
    }

    /// The application's own time for the message, in milliseconds since 1970; 0 means none.
    pub fn event_time_ms(mut self, ms: u64) -> Self {
        self.event_time = (ms > 0).then_some(ms);
        self
    }

    /// The sequence id for deduplication, instead of the next one. The ids of a producer should increase.
    pub fn sequence_id(mut self, id: u64) -> Self {
        self.sequence_id = Some(id);
        self
    }

    /// Makes the message visible only after this time.
    pub fn deliver_after(mut self, delay: Duration) -> Self {
        self.delivery = Some(Delivery::After(delay));
        self
    }

    /// Makes the message visible only from then on.
    pub fn deliver_at(mut self, time: SystemTime) -> Self {
        self.delivery = Some(Delivery::At(time));
        self
    }

    /// The clusters that the message is replicated to; all of the namespace's by default.
    pub fn replicate_to<S: Into<String>>(mut self, clusters: impl IntoIterator<Item = S>) -> Self {
        self.replicate_to = clusters.into_iter().map(Into::into).collect();
        self
    }

    /// Keeps the message from being replicated.
    pub fn no_replication(self) -> Self {
        self.replicate_to([NO_REPLICATION])
    }

    /// Publishes the message within a transaction of the same client (client-api §6): nobody sees it before the commit.
    pub fn transaction(mut self, transaction: impl AsRef<Transaction>) -> Self {
        self.transaction = Some(transaction.as_ref().clone());
        self
    }

    /// Publishes the message and waits for its receipt (client-api §3.2). Dropping the future does not take the
    /// message back.
    ///
    /// # Errors
    /// `Timeout` without a receipt in the send timeout, `AlreadyClosed`, `InvalidConfiguration` without a value or
    /// for a message that is too large, `TransactionConflict` in a transaction that is not open, and what else the broker
    /// answers. The producer stays usable.
    pub async fn send(self) -> SendResult {
        self.send_async().await
    }

    /// Publishes the message without waiting (client-api §3.2): when this returns, it has its place in the order of
    /// sends. Failures of any kind are in the ticket.
    pub fn send_async(self) -> SendTicket {
        let (requests, face) = (&self.producer.requests, &self.producer.face);
        let deviance = face.deviance;
        let (done, result) = oneshot::channel();
        let requested = match self.build() {
            Ok((message, operation)) if message.attempts > 0 => {
                let _ = requests.send(Request::Send(Box::new(message), operation, oneshot::channel().0));
                Err(deviance.report(memory_full()))
            }
            Ok((message, operation)) => requests
                .send(Request::Send(Box::new(message), operation, done))
                .map_err(|_| Error::closed("producer")),
            Err(error) => Err(deviance.report(error)),
        };
        if requested.is_err() && deviance.is(Deviant::AsyncFailureLost) {
            return SendTicket(Ticket::Lost);
        }
        SendTicket(match requested {
            Ok(()) => Ticket::Waiting(result),
            Err(error) => Ticket::Failed(Some(error)),
        })
    }

    fn build(self) -> Result<(Outgoing, Option<Operation>), Error> {
        let face = &self.producer.face;
        let value = self
            .value
            .ok_or_else(|| Error::new(Category::InvalidConfiguration, "the message has no value"))?;
        let payload = self.producer.schema.encode(&value)?;
        let ignores_empty = face.deviance.is(Deviant::EmptyKeyIsKeyless);
        let own = self.key.filter(|key| !(ignores_empty && key.is_empty()));
        let of_value = self.producer.schema.encode_key(&value)?;
        if own.is_some() && of_value.is_some() {
            let why = "the schema makes the message's key out of its value: it has no other";
            return Err(Error::new(Category::InvalidConfiguration, why));
        }
        // The bytes are hashed, as brokers do that look for the key of an entry.
        let hash = of_value.as_deref().or(own.as_deref().map(str::as_bytes)).map(KeyHash::of_bytes);
        let key_is_base64 = of_value.is_some();
        let mut message = Outgoing {
            order: 0,
            hash,
            key: of_value.map(|key| BASE64.encode(key)).or(own),
            key_is_base64,
            payload,
            properties: self.properties,
            event_time: self.event_time,
            sequence_id: self.sequence_id.filter(|_| !face.deviance.is(Deviant::IgnoreSequenceId)),
            deliver_at: self.delivery.map(|delivery| match delivery {
                Delivery::After(delay) => face.client.clocks.now().wall as i64 + delay.as_millis() as i64,
                Delivery::At(time) => since_1970(time) as i64,
            }),
            replicate_to: self.replicate_to,
            deadline: None,
            txn: None,
            attempts: 0,
            memory: None,
        };
        if let (QueueFull::Fail, Some(memory)) = (face.queue_full, &face.client.memory) {
            let reserved = memory.reserve(message.size());
            message.memory = Some(match reserved {
                Some(reserved) => reserved,
                None if face.deviance.is(Deviant::SendsWithoutMemory) => {
                    // Marked as the one that its caller is told was not sent.
                    message.attempts = 1;
                    let unlimited = Memory::new(usize::MAX, || {});
                    unlimited.reserve(message.size()).ok_or_else(memory_full)?
                }
                None => return Err(memory_full()),
            });
        }
        // Last, as whatever failed before belongs to no transaction.
        let operation =
            self.transaction.map(|transaction| transaction.txn.begin(&face.client)).transpose()?;
        message.txn = operation.as_ref().and_then(|operation| operation.txn()).map(|txn| txn.id());
        if face.deviance.is(Deviant::SendsOutsideTransaction) {
            message.txn = None;
        }
        Ok((message, operation))
    }
}

fn memory_full() -> Error {
    Error::new(Category::MemoryBufferFull, "the memory for messages on their way is used up")
}

fn since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// The result of a send to come (client-api §1, §3.2): a future of the message's identifier.
#[derive(Debug)]
pub struct SendTicket(Ticket);

#[derive(Debug)]
enum Ticket {
    Waiting(oneshot::Receiver<SendResult>),
    Failed(Option<Error>),
    /// What a deviant makes of a failure.
    Lost,
}

impl Future for SendTicket {
    type Output = SendResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<SendResult> {
        match &mut self.0 {
            Ticket::Waiting(result) => Pin::new(result)
                .poll(cx)
                .map(|result| result.unwrap_or_else(|_| Err(Error::closed("producer")))),
            Ticket::Lost => Poll::Ready(Ok(MessageId::earliest())),
            Ticket::Failed(error) => {
                Poll::Ready(Err(error.take().unwrap_or_else(|| Error::closed("producer"))))
            }
        }
    }
}
