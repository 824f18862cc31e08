//! The applications of a world: they take messages from one topic and publish on another, each in one transaction after
//! another, and write down what they were told.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use stc_runner::client::{
    ClientError, ClientId, ClientUnderTest, ConsumerId, Outgoing, ProducerId, Received, TransactionId,
    TransactionState, Value,
};
use stc_vectors::corpus::Random;
use tokio::time::sleep;

/// What an application was told of a transaction's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its commit succeeded.
    Committed,
    /// Its abort succeeded, or its commit failed and it was aborted.
    Aborted,
    /// Neither: it was left to its timeout, or the answer got lost.
    Unknown,
}

/// A transaction, as its application knows it.
#[derive(Debug)]
pub struct Told {
    /// The texts of the messages of which it was told that they are stored.
    pub stored: BTreeSet<String>,
    /// The texts of all that it tried to send.
    pub tried: BTreeSet<String>,
    /// The texts of the work that it acknowledged.
    pub done: Vec<String>,
    /// How it ended.
    pub end: End,
}

/// What all applications of a world know.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The transactions.
    pub transactions: Vec<Told>,
    /// Texts that were published outside of transactions.
    pub plain: BTreeSet<String>,
    /// How often each text came to the reader or, for work, to the applications.
    pub received: BTreeMap<String, u32>,
    /// Operations that met a conflict.
    pub conflicts: u64,
}

impl Ledger {
    /// A message came.
    pub fn came(&mut self, message: &Received) -> String {
        let text = match &message.value {
            Value::Text(text) => text.clone(),
            other => format!("{other:?}"),
        };
        *self.received.entry(text.clone()).or_default() += 1;
        text
    }
}

/// What an application works with.
pub struct Application {
    /// The client under test.
    pub client: Rc<dyn ClientUnderTest>,
    /// Its client object.
    pub object: ClientId,
    /// Publishes results.
    pub producer: ProducerId,
    /// Gives work.
    pub worker: Worker,
    /// What it was told.
    pub ledger: Rc<RefCell<Ledger>>,
}

/// The consumer of the work.
#[derive(Debug, Clone, Copy)]
pub struct Worker {
    /// The consumer.
    pub consumer: ConsumerId,
    /// Whether it acknowledges cumulatively.
    pub stream: bool,
}

impl Application {
    /// Runs some transactions one after another, and publishes between them.
    pub async fn run(self, number: u64, mut random: Random) {
        for round in 0..1 + random.below(3) {
            let name = format!("{number}.{round}");
            if random.below(2) == 0 {
                let text = format!("{name} plain");
                if self.send(&text, None, &mut random).await {
                    self.ledger.borrow_mut().plain.insert(text);
                }
            }
            self.transaction(&name, &mut random).await;
        }
    }

    async fn transaction(&self, name: &str, random: &mut Random) {
        let timeout = if random.below(5) == 0 { 500 + random.below(2_000) } else { 30_000 };
        let Ok(transaction) = self.client.new_transaction(self.object, timeout).await else { return };
        let mut told =
            Told { stored: BTreeSet::new(), tried: BTreeSet::new(), done: Vec::new(), end: End::Unknown };
        let mut tickets = Vec::new();
        for step in 0..1 + random.below(6) {
            match random.below(4) {
                0 => told.done.extend(self.work(transaction).await),
                1 => {
                    let text = format!("{name} message {step}");
                    told.tried.insert(text.clone());
                    if self.send(&text, Some(transaction), random).await {
                        told.stored.insert(text);
                    }
                }
                _ => {
                    let texts: Vec<String> =
                        (0..1 + random.below(3)).map(|n| format!("{name} message {step}.{n}")).collect();
                    told.tried.extend(texts.iter().cloned());
                    let messages =
                        texts.iter().map(|text| message(text, Some(transaction), random)).collect();
                    if let Ok(under_way) = self.client.send_async(self.producer, messages).await {
                        tickets.extend(texts.into_iter().zip(under_way));
                    }
                }
            }
            if random.below(2) == 0 {
                sleep(Duration::from_millis(random.below(400))).await;
            }
        }
        told.end = self.end(transaction, random).await;
        for (text, ticket) in tickets {
            if self.client.outcome(ticket).await.is_ok() {
                told.stored.insert(text);
            }
        }
        self.ledger.borrow_mut().transactions.push(told);
    }

    async fn send(&self, text: &str, transaction: Option<TransactionId>, random: &mut Random) -> bool {
        self.client.send(self.producer, message(text, transaction, random)).await.is_ok()
    }

    /// Takes some work and acknowledges it; the work's text, when that was accepted.
    async fn work(&self, transaction: TransactionId) -> Option<String> {
        let (client, Worker { consumer, stream }) = (&self.client, self.worker);
        let work = client.receive(consumer, Some(500)).await.ok()??;
        let text = self.ledger.borrow_mut().came(&work);
        let done = if stream {
            client.acknowledge_cumulative_in(consumer, work.handle, transaction).await
        } else {
            client.acknowledge_in(consumer, work.handle, transaction).await
        };
        if let Err(error) = &done {
            self.ledger.borrow_mut().conflicts += u64::from(is_conflict(error));
        }
        done.is_ok().then_some(text)
    }

    /// Commits most transactions, aborts some, leaves some to their timeouts.
    async fn end(&self, transaction: TransactionId, random: &mut Random) -> End {
        match random.below(8) {
            0 => End::Unknown,
            1 | 2 => match self.client.abort(transaction).await {
                Ok(()) => End::Aborted,
                Err(_) => End::Unknown,
            },
            _ => match self.client.commit(transaction).await {
                Ok(()) => End::Committed,
                Err(error) => {
                    self.ledger.borrow_mut().conflicts += u64::from(is_conflict(&error));
                    match self.client.transaction_state(transaction).await {
                        Ok(TransactionState::Aborted | TransactionState::TimedOut) => End::Aborted,
                        _ => End::Unknown,
                    }
                }
            },
        }
    }
}

fn is_conflict(error: &ClientError) -> bool {
    matches!(error, ClientError::Failed(error) if error.category == "TransactionConflict")
}

/// A message under one of a few keys.
pub fn message(text: &str, transaction: Option<TransactionId>, random: &mut Random) -> Outgoing {
    Outgoing {
        key: Some(format!("key-{}", random.below(8))),
        value: Value::Text(text.to_owned()),
        transaction,
        ..Outgoing::default()
    }
}
