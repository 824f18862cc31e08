//! An application with one producer, one stream consumer and one queue consumer, and what it sees.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use stc_client::{InitialPosition, Message, Producer, PulsarClient, SendTicket, StringSchema};
use tokio::task::JoinHandle;

use super::wire::Wire;

const KEYS: u64 = 20;

/// Between two messages.
const PACE: Duration = Duration::from_millis(10);

/// How long a send, or a message on its way to a consumer, may take until it counts as lost. A real broker that is
/// killed is missed after 5 s, and clients back off meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// A key and a number that rises with each message of that key.
type Item = (u64, u64);

/// What one consumer received, in order.
type Received = Arc<Mutex<Vec<Item>>>;

/// The application, which runs until it is closed.
#[derive(Debug)]
pub struct Application {
    client: PulsarClient,
    producer: Producer<String>,
    next: u64,
    tickets: Vec<(Item, SendTicket)>,
    acknowledged: BTreeSet<Item>,
    failures: BTreeMap<String, usize>,
    stream: (Received, JoinHandle<()>),
    queue: (Received, JoinHandle<()>),
}

/// What the application saw.
#[derive(Debug)]
pub struct Saw {
    /// Sends without success, by category of the error.
    pub failures: BTreeMap<String, usize>,
    /// Acknowledged messages that the stream consumer did not get.
    pub lost_by_stream: usize,
    /// The same of the queue consumer.
    pub lost_by_queue: usize,
    /// Keys whose messages first came to the stream consumer in another order than they were sent.
    pub out_of_order: usize,
    /// Messages that came to the stream consumer more than once.
    pub twice: usize,
}

impl Application {
    /// Opens all of it on a topic.
    ///
    /// # Errors
    /// When the producer or a consumer cannot be opened.
    pub async fn open(service_url: &str, topic: &str, wire: &Wire) -> anyhow::Result<Self> {
        let client = PulsarClient::builder()
            .service_url(service_url)
            .transport(Arc::new(wire.clone()))
            .operation_timeout(PATIENCE)
            .build()?;
        let stream = client
            .stream_consumer(StringSchema)
            .topic(topic)
            .subscription("stream")
            .name("consumer")
            .initial_position(InitialPosition::Earliest)
            .subscribe()
            .await
            .context("the stream consumer")?;
        let queue = client
            .queue_consumer(StringSchema)
            .topic(topic)
            .subscription("queue")
            .name("consumer")
            .initial_position(InitialPosition::Earliest)
            .subscribe()
            .await
            .context("the queue consumer")?;
        let producer = client
            .producer(StringSchema)
            .topic(topic)
            .name("producer")
            .send_timeout(PATIENCE)
            .create()
            .await
            .context("the producer")?;
        let (by_stream, by_queue) = (Received::default(), Received::default());
        let list = by_stream.clone();
        let stream = tokio::spawn(async move {
            while let Ok(message) = stream.receive().await {
                note(&list, &message);
                if stream.acknowledge_cumulative(message.id()).await.is_err() {
                    break;
                }
            }
        });
        let list = by_queue.clone();
        let queue = tokio::spawn(async move {
            while let Ok(message) = queue.receive().await {
                note(&list, &message);
                if queue.acknowledge(message.id()).await.is_err() {
                    break;
                }
            }
        });
        Ok(Application {
            client,
            producer,
            next: 0,
            tickets: Vec::new(),
            acknowledged: BTreeSet::new(),
            failures: BTreeMap::new(),
            stream: (by_stream, stream),
            queue: (by_queue, queue),
        })
    }

    /// Sends messages at a steady pace, without waiting for their receipts.
    pub async fn send(&mut self, messages: usize) {
        for _ in 0..messages {
            let item = (self.next % KEYS, self.next / KEYS);
            self.next += 1;
            let message = self
                .producer
                .message()
                .key(format!("key-{}", item.0))
                .value(format!("{}:{}", item.0, item.1));
            self.tickets.push((item, message.send_async()));
            tokio::time::sleep(PACE).await;
        }
    }

    /// Waits until every send has its result and both consumers have what was acknowledged, or patience ends.
    ///
    /// # Errors
    /// When nothing was acknowledged at all.
    pub async fn settle(&mut self) -> anyhow::Result<()> {
        for (item, ticket) in std::mem::take(&mut self.tickets) {
            match ticket.await {
                Ok(_) => {
                    self.acknowledged.insert(item);
                }
                Err(error) => *self.failures.entry(format!("{:?}", error.category())).or_default() += 1,
            }
        }
        if self.acknowledged.is_empty() {
            bail!("no message was acknowledged: {:?}", self.failures);
        }
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE
            && (self.missing(&self.stream.0) > 0 || self.missing(&self.queue.0) > 0)
        {
            tokio::time::sleep(PACE).await;
        }
        Ok(())
    }

    fn missing(&self, received: &Received) -> usize {
        let received: BTreeSet<Item> =
            received.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        self.acknowledged.difference(&received).count()
    }

    /// Closes everything, and tells what was seen.
    pub async fn close(self) -> Saw {
        let (lost_by_stream, lost_by_queue) = (self.missing(&self.stream.0), self.missing(&self.queue.0));
        let received = self.stream.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let saw = Saw {
            failures: self.failures,
            lost_by_stream,
            lost_by_queue,
            out_of_order: out_of_order(&received),
            twice: received.len() - received.iter().collect::<BTreeSet<_>>().len(),
        };
        let _ = self.client.close().await;
        self.stream.1.abort();
        self.queue.1.abort();
        saw
    }
}

fn note(list: &Received, message: &Message<String>) {
    let item = message.value().ok().and_then(|text| {
        let (key, number) = text.split_once(':')?;
        Some((key.parse().ok()?, number.parse().ok()?))
    });
    list.lock().unwrap_or_else(PoisonError::into_inner).extend(item);
}

/// How many keys have a message that came for the first time after a later one.
fn out_of_order(received: &[Item]) -> usize {
    let mut highest: BTreeMap<u64, u64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut wrong = BTreeSet::new();
    for &(key, number) in received {
        if seen.insert((key, number)) && highest.insert(key, number).is_some_and(|before| before > number) {
            wrong.insert(key);
        }
    }
    wrong.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_in_order_and_a_late_first_one_is_not() {
        assert_eq!(out_of_order(&[(1, 0), (1, 1), (2, 0), (1, 0), (1, 1), (1, 2)]), 0);
        assert_eq!(out_of_order(&[(1, 0), (1, 2), (1, 1), (2, 0), (2, 1)]), 1);
    }
}
