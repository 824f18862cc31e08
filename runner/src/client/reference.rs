//! The reference client, in this process, as a client under test.

mod positions;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt as _;
use futures_util::future::{LocalBoxFuture, Shared};
use sim_broker::SimCluster;
use stc_adapter_protocol::CATEGORIES;
use stc_client::{
    BoxFuture, BrokerAddress, Clock, Error, Link, Message, MessageBuilder, Producer, PulsarClient,
    StreamConsumerBuilder, TlsOptions, TokenAuthentication, Transaction, Transport,
};
use stc_reports::ClientInfo;

use super::{
    ApiError, Boundary, Checkpoint, CheckpointOptions, ClientError, ClientId, ClientOptions, ClientUnderTest,
    ConsumerId, Described, MessageId, NamespaceOptions, Order, Outgoing, ProducerId, ProducerOptions,
    QueueOptions, Received, Reply, Signalled, StreamOptions, TicketId, TransactionId, TransactionState,
    Value,
};
use crate::run::{ClientFactory, Opening};
use crate::target::Broker;

mod encryption;
mod producer;
mod queue;
mod schema;
mod stream;

use schema::schema;

#[cfg(feature = "deviants")]
pub use stc_client::Deviant;

/// Without the feature `deviants` nothing can be broken: no value of this type exists.
#[cfg(not(feature = "deviants"))]
#[derive(Debug, Clone, Copy)]
pub enum Deviant {}

/// Makes reference clients, each broken in the same one way or in none.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReferenceFactory {
    /// The behaviour that is broken on purpose.
    pub deviant: Option<Deviant>,
}

impl ClientFactory for ReferenceFactory {
    fn info(&self) -> ClientInfo {
        let name = match self.deviant {
            None => "reference client".to_owned(),
            Some(deviant) => format!("reference client, deviant {deviant:?}"),
        };
        ClientInfo { name, version: env!("CARGO_PKG_VERSION").to_owned() }
    }

    fn start<'a>(&'a self, broker: &'a Broker, opening: Opening<'a>) -> Reply<'a, Rc<dyn ClientUnderTest>> {
        let cluster = broker.cluster.clone().filter(|_| broker.in_memory);
        let client = self.make(opening.seed, cluster);
        Box::pin(async move { Ok(client) })
    }
}

impl ReferenceFactory {
    /// A client that reaches its brokers by TCP.
    pub fn outside(&self, seed: u64) -> Rc<dyn ClientUnderTest> {
        self.make(seed, None)
    }

    fn make(&self, seed: u64, cluster: Option<SimCluster>) -> Rc<dyn ClientUnderTest> {
        Rc::new(ReferenceClient { deviant: self.deviant, seed, cluster, ..ReferenceClient::default() })
    }
}

/// Opens links into a simulated cluster in memory.
struct InMemory(SimCluster);

impl Transport for InMemory {
    fn connect<'a>(&'a self, address: &'a BrokerAddress) -> BoxFuture<'a, io::Result<Box<dyn Link>>> {
        let link = self.0.connect(&format!("{}:{}", address.host, address.port));
        Box::pin(async move { Ok(Box::new(link?) as Box<dyn Link>) })
    }
}

/// The cluster's own clock: in memory both sides live in the same time.
struct ClusterClock(SimCluster);

impl Clock for ClusterClock {
    fn now_ms(&self) -> u64 {
        self.0.now()
    }
}

#[derive(Default)]
struct ReferenceClient {
    deviant: Option<Deviant>,
    seed: u64,
    cluster: Option<SimCluster>,
    next: Cell<u64>,
    clients: RefCell<BTreeMap<ClientId, PulsarClient>>,
    tokens: RefCell<BTreeMap<ClientId, Token>>,
    producers: RefCell<BTreeMap<ProducerId, Producer<Value>>>,
    consumers: RefCell<BTreeMap<ConsumerId, Consumer>>,
    transactions: RefCell<BTreeMap<TransactionId, Transaction>>,
    tickets: RefCell<BTreeMap<TicketId, Outcome>>,
}

/// The outcome of a send, for whoever asks and as often as they ask.
type Outcome = Shared<LocalBoxFuture<'static, Result<MessageId, ClientError>>>;

/// What a client's brokers are shown, as it is now.
type Token = Arc<Mutex<String>>;

/// A consumer of any kind.
#[derive(Clone)]
enum Consumer {
    Queue(Rc<queue::Queue>),
    Stream(Rc<stream::Stream>),
    Checkpoint(Rc<positions::Reader>),
}

fn failed(error: Error) -> ClientError {
    failed_as(error, Signalled::ByFuture)
}

fn failed_as(error: Error, how: Signalled) -> ClientError {
    let category = error.category().as_str();
    let category = if CATEGORIES.contains(&category) { category } else { "Other" };
    ClientError::Failed(ApiError { category: category.to_owned(), message: error.message().to_owned(), how })
}

fn unknown(what: &str) -> ClientError {
    ClientError::Gone(format!("the client has no such {what}"))
}

fn id(id: &stc_client::MessageId) -> MessageId {
    MessageId { bytes: id.to_bytes() }
}

fn since_1970_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Boxes an operation.
fn reply<'a, T>(operation: impl Future<Output = Result<T, ClientError>> + 'a) -> Reply<'a, T> {
    Box::pin(operation)
}

impl ReferenceClient {
    fn number(&self) -> u64 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    // Handles are cloned out of the maps, so that no borrow is held across an await.
    fn client(&self, id: ClientId) -> Result<PulsarClient, ClientError> {
        self.clients.borrow().get(&id).cloned().ok_or_else(|| unknown("client"))
    }

    fn producer(&self, id: ProducerId) -> Result<Producer<Value>, ClientError> {
        self.producers.borrow().get(&id).cloned().ok_or_else(|| unknown("producer"))
    }

    fn transaction(&self, id: TransactionId) -> Result<Transaction, ClientError> {
        self.transactions.borrow().get(&id).cloned().ok_or_else(|| unknown("transaction"))
    }

    fn within(&self, id: Option<TransactionId>) -> Result<Option<Transaction>, ClientError> {
        id.map(|id| self.transaction(id)).transpose()
    }

    fn consumer(&self, id: ConsumerId) -> Result<Consumer, ClientError> {
        self.consumers.borrow().get(&id).cloned().ok_or_else(|| unknown("consumer"))
    }

    /// How asynchronous calls tell of failures: by their futures, all of them.
    fn signalled(&self) -> Signalled {
        #[cfg(feature = "deviants")]
        if self.deviant == Some(Deviant::ThrowsAtCall) {
            return Signalled::Synchronously;
        }
        Signalled::ByFuture
    }

    fn keep(&self, consumer: Consumer) -> ConsumerId {
        let id = ConsumerId(self.number());
        self.consumers.borrow_mut().insert(id, consumer);
        id
    }

    fn build(&self, options: &ClientOptions, token: Option<Token>) -> Result<PulsarClient, Error> {
        // Clients that run beside each other make up different names.
        let seed = self.seed.wrapping_add(self.clients.borrow().len() as u64);
        let mut builder = PulsarClient::builder().service_url(&options.service_url).seed(seed);
        if let Some(cluster) = &self.cluster {
            builder =
                builder.transport(Arc::new(InMemory(cluster.clone()))).clock(ClusterClock(cluster.clone()));
        }
        if let Some(timeout) = options.operation_timeout_ms {
            builder = builder.operation_timeout(Duration::from_millis(timeout));
        }
        if let Some(token) = token {
            let now = move || Ok(token.lock().unwrap_or_else(PoisonError::into_inner).clone());
            builder = builder.authentication(TokenAuthentication::supplied(now));
        }
        if let Some(pem) = &options.tls_trust_pem {
            builder = builder.tls(TlsOptions::trust_pem(pem)?);
        }
        if let Some(limit) = options.memory_limit {
            builder = builder.memory_limit(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        #[cfg(feature = "deviants")]
        if let Some(deviant) = self.deviant {
            builder = builder.deviant(deviant);
        }
        builder.build()
    }
}

fn message<'p>(
    producer: &'p Producer<Value>,
    message: Outgoing,
    transaction: Option<Transaction>,
) -> MessageBuilder<'p, Value> {
    let mut builder = producer.message().value(message.value).properties(message.properties);
    if let Some(key) = message.key {
        builder = builder.key(key);
    }
    if let Some(time) = message.event_time_ms {
        builder = builder.event_time_ms(time);
    }
    if let Some(sequence_id) = message.sequence_id {
        builder = builder.sequence_id(sequence_id);
    }
    if let Some(delay) = message.deliver_after_ms {
        builder = builder.deliver_after(Duration::from_millis(delay));
    }
    if let Some(time) = message.deliver_at_ms {
        builder = builder.deliver_at(UNIX_EPOCH + Duration::from_millis(time));
    }
    if !message.replicate_to.is_empty() {
        builder = builder.replicate_to(message.replicate_to);
    }
    if let Some(transaction) = transaction {
        builder = builder.transaction(transaction);
    }
    builder
}

/// A message as the steps see it. `handle` names it when it is acknowledged.
fn received(handle: u64, message: &Message<Value>) -> Result<Received, ClientError> {
    Ok(Received {
        handle,
        id: id(message.id()),
        value: message.value().map_err(failed)?,
        payload: message.payload().to_vec(),
        key: message.key().map(str::to_owned),
        properties: message.properties().to_vec(),
        publish_time_ms: since_1970_ms(message.publish_time()),
        event_time_ms: message.event_time().map(since_1970_ms),
        sequence_id: message.sequence_id(),
        producer_name: message.producer_name().map(str::to_owned),
        topic: message.topic().to_owned(),
        redelivery_count: message.redelivery_count(),
        size: message.size() as u64,
        replicated_from: message.replicated_from().map(str::to_owned),
    })
}

/// What a kind of consumer has no call for.
fn not_offered<T>(what: &str) -> Result<T, ClientError> {
    Err(ClientError::Unsupported(what.to_owned()))
}

impl Consumer {
    async fn receive(&self, wait_ms: Option<u64>) -> Result<Option<Received>, ClientError> {
        match self {
            Consumer::Queue(consumer) => consumer.receive(wait_ms).await,
            Consumer::Stream(consumer) => consumer.receive(wait_ms).await,
            Consumer::Checkpoint(consumer) => consumer.receive(wait_ms).await,
        }
    }

    async fn close(&self) -> Result<(), ClientError> {
        match self {
            Consumer::Queue(consumer) => consumer.close().await,
            Consumer::Stream(consumer) => consumer.close().await,
            Consumer::Checkpoint(consumer) => consumer.close().await,
        }
    }

    fn queue(self, what: &str) -> Result<Rc<queue::Queue>, ClientError> {
        match self {
            Consumer::Queue(consumer) => Ok(consumer),
            Consumer::Stream(_) | Consumer::Checkpoint(_) => not_offered(what),
        }
    }
}

impl ClientUnderTest for ReferenceClient {
    fn info(&self) -> ClientInfo {
        ReferenceFactory { deviant: self.deviant }.info()
    }

    fn open(&self, options: ClientOptions) -> Reply<'_, ClientId> {
        reply(async move {
            let token = options.token.clone().map(|token| Arc::new(Mutex::new(token)));
            let client = self.build(&options, token.clone()).map_err(failed)?;
            let id = ClientId(self.number());
            self.tokens.borrow_mut().extend(token.map(|token| (id, token)));
            self.clients.borrow_mut().insert(id, client);
            Ok(id)
        })
    }

    fn renew_token(&self, client: ClientId, token: String) -> Reply<'_, ()> {
        reply(async move {
            let tokens = self.tokens.borrow();
            let current = tokens.get(&client);
            let current = current.ok_or_else(|| {
                ClientError::Unsupported("another token for a client that was made without one".to_owned())
            })?;
            *current.lock().unwrap_or_else(PoisonError::into_inner) = token;
            Ok(())
        })
    }

    fn close(&self, client: ClientId) -> Reply<'_, ()> {
        reply(async move { self.client(client)?.close().await.map_err(failed) })
    }

    fn create_producer(&self, client: ClientId, options: ProducerOptions) -> Reply<'_, ProducerId> {
        reply(async move {
            let schema = schema(&options.schema).map_err(failed)?;
            let builder = producer::configured(self.client(client)?.producer(schema), options);
            let producer = builder.create().await.map_err(failed)?;
            let id = ProducerId(self.number());
            self.producers.borrow_mut().insert(id, producer);
            Ok(id)
        })
    }

    fn describe_producer(&self, producer: ProducerId) -> Reply<'_, Described> {
        reply(async move {
            let producer = self.producer(producer)?;
            Ok(Described { topic: producer.topic().to_owned(), name: producer.name().map(str::to_owned) })
        })
    }

    fn send(&self, producer: ProducerId, outgoing: Outgoing) -> Reply<'_, MessageId> {
        reply(async move {
            let producer = self.producer(producer)?;
            let transaction = self.within(outgoing.transaction)?;
            let sent = message(&producer, outgoing, transaction).send().await.map_err(failed)?;
            Ok(id(&sent))
        })
    }

    fn send_async(&self, producer: ProducerId, messages: Vec<Outgoing>) -> Reply<'_, Vec<TicketId>> {
        reply(async move {
            let producer = self.producer(producer)?;
            let mut tickets = Vec::with_capacity(messages.len());
            for outgoing in messages {
                let ticket = TicketId(self.number());
                let transaction = self.within(outgoing.transaction)?;
                let sending = message(&producer, outgoing, transaction).send_async();
                let how = self.signalled();
                let outcome =
                    async move { sending.await.map(|sent| id(&sent)).map_err(|error| failed_as(error, how)) };
                self.tickets.borrow_mut().insert(ticket, outcome.boxed_local().shared());
                tickets.push(ticket);
            }
            Ok(tickets)
        })
    }

    fn outcome(&self, ticket: TicketId) -> Reply<'_, MessageId> {
        let outcome = self.tickets.borrow().get(&ticket).cloned();
        reply(async move { outcome.ok_or_else(|| unknown("ticket"))?.await })
    }

    fn flush(&self, producer: ProducerId) -> Reply<'_, ()> {
        reply(async move { self.producer(producer)?.flush().await.map_err(failed) })
    }

    fn last_sequence_id(&self, producer: ProducerId) -> Reply<'_, Option<u64>> {
        reply(async move { Ok(self.producer(producer)?.last_sequence_id()) })
    }

    fn close_producer(&self, producer: ProducerId) -> Reply<'_, ()> {
        reply(async move { self.producer(producer)?.close().await.map_err(failed) })
    }

    fn subscribe_queue(&self, client: ClientId, options: QueueOptions) -> Reply<'_, ConsumerId> {
        reply(self.open_queue(client, options))
    }

    fn subscribe_stream(&self, client: ClientId, options: StreamOptions) -> Reply<'_, ConsumerId> {
        reply(async move { self.open_stream(client, options, |builder| builder).await })
    }

    fn subscribe_namespace(&self, client: ClientId, options: NamespaceOptions) -> Reply<'_, ConsumerId> {
        let NamespaceOptions { namespace, topic_properties, stream } = options;
        reply(async move {
            let all = |builder: StreamConsumerBuilder<Value>| {
                let builder = builder.namespace(namespace);
                let filter = |b: StreamConsumerBuilder<Value>, (k, v)| b.topic_property(k, v);
                topic_properties.into_iter().fold(builder, filter)
            };
            self.open_stream(client, stream, all).await
        })
    }

    fn create_checkpoint_consumer(
        &self,
        client: ClientId,
        options: CheckpointOptions,
    ) -> Reply<'_, ConsumerId> {
        reply(self.create_reader(client, options))
    }

    fn describe_consumer(&self, consumer: ConsumerId) -> Reply<'_, Described> {
        reply(async move { Ok(self.consumer(consumer)?.queue("a description of this consumer")?.describe()) })
    }

    fn receive(&self, consumer: ConsumerId, wait_ms: Option<u64>) -> Reply<'_, Option<Received>> {
        reply(async move { self.consumer(consumer)?.receive(wait_ms).await })
    }

    fn receive_many(&self, consumer: ConsumerId, max: u32, wait_ms: u64) -> Reply<'_, Vec<Received>> {
        reply(async move {
            self.consumer(consumer)?.queue("receiveMulti of this consumer")?.receive_many(max, wait_ms).await
        })
    }

    fn acknowledge(&self, consumer: ConsumerId, handle: u64) -> Reply<'_, ()> {
        reply(async move {
            let consumer = self.consumer(consumer)?.queue("acknowledge of this consumer")?;
            consumer.acknowledge(&consumer.given(handle)?).await
        })
    }

    fn acknowledge_id(&self, consumer: ConsumerId, id: MessageId) -> Reply<'_, ()> {
        reply(async move {
            let consumer = self.consumer(consumer)?.queue("acknowledge of this consumer")?;
            consumer.acknowledge(&self.restored(&id.bytes)?).await
        })
    }

    fn acknowledge_cumulative(&self, consumer: ConsumerId, handle: u64) -> Reply<'_, ()> {
        reply(async move {
            match self.consumer(consumer)? {
                Consumer::Stream(consumer) => consumer.acknowledge(handle).await,
                Consumer::Queue(_) | Consumer::Checkpoint(_) => {
                    not_offered("acknowledgeCumulative of this consumer")
                }
            }
        })
    }

    fn negative_acknowledge(&self, consumer: ConsumerId, handle: u64) -> Reply<'_, ()> {
        reply(async move {
            let consumer = self.consumer(consumer)?.queue("negativeAcknowledge of this consumer")?;
            consumer.negative_acknowledge(handle).await
        })
    }

    fn checkpoint(&self, consumer: ConsumerId) -> Reply<'_, Checkpoint> {
        reply(async move {
            match self.consumer(consumer)? {
                Consumer::Checkpoint(reader) => Ok(self.serialized(&reader.checkpoint())),
                Consumer::Queue(_) | Consumer::Stream(_) => not_offered("checkpoints of this consumer"),
            }
        })
    }

    fn close_consumer(&self, consumer: ConsumerId) -> Reply<'_, ()> {
        reply(async move { self.consumer(consumer)?.close().await })
    }

    fn new_transaction(&self, client: ClientId, timeout_ms: u64) -> Reply<'_, TransactionId> {
        reply(async move {
            let timeout = Duration::from_millis(timeout_ms);
            let transaction = self.client(client)?.new_transaction(timeout).await.map_err(failed)?;
            let id = TransactionId(self.number());
            self.transactions.borrow_mut().insert(id, transaction);
            Ok(id)
        })
    }

    fn transaction_state(&self, transaction: TransactionId) -> Reply<'_, TransactionState> {
        reply(async move {
            Ok(match self.transaction(transaction)?.state() {
                stc_client::TransactionState::Open => TransactionState::Open,
                stc_client::TransactionState::Committing => TransactionState::Committing,
                stc_client::TransactionState::Aborting => TransactionState::Aborting,
                stc_client::TransactionState::Committed => TransactionState::Committed,
                stc_client::TransactionState::Aborted => TransactionState::Aborted,
                stc_client::TransactionState::TimedOut => TransactionState::TimedOut,
                _ => TransactionState::Error,
            })
        })
    }

    fn commit(&self, transaction: TransactionId) -> Reply<'_, ()> {
        reply(async move { self.transaction(transaction)?.commit().await.map_err(failed) })
    }

    fn abort(&self, transaction: TransactionId) -> Reply<'_, ()> {
        reply(async move { self.transaction(transaction)?.abort().await.map_err(failed) })
    }

    fn acknowledge_in(&self, consumer: ConsumerId, handle: u64, transaction: TransactionId) -> Reply<'_, ()> {
        reply(async move {
            let consumer = self.consumer(consumer)?.queue("acknowledge of this consumer")?;
            consumer.acknowledge_in(handle, &self.transaction(transaction)?).await
        })
    }

    fn acknowledge_cumulative_in(
        &self,
        consumer: ConsumerId,
        handle: u64,
        transaction: TransactionId,
    ) -> Reply<'_, ()> {
        reply(async move {
            match self.consumer(consumer)? {
                Consumer::Stream(consumer) => {
                    consumer.acknowledge_in(handle, &self.transaction(transaction)?).await
                }
                Consumer::Queue(_) | Consumer::Checkpoint(_) => {
                    not_offered("acknowledgeCumulative of this consumer")
                }
            }
        })
    }

    fn boundary_id(&self, boundary: Boundary) -> Reply<'_, MessageId> {
        reply(async move { Ok(self.boundary(boundary)) })
    }

    fn restore_id(&self, id: MessageId) -> Reply<'_, MessageId> {
        reply(async move { Ok(self::id(&self.restored(&id.bytes)?)) })
    }

    fn compare_ids(&self, one: MessageId, other: MessageId) -> Reply<'_, Order> {
        reply(async move { self.compared(&one, &other) })
    }

    fn stop(&self) -> Reply<'_, ()> {
        reply(async move {
            let clients: Vec<PulsarClient> = self.clients.borrow().values().cloned().collect();
            for client in clients {
                client.close().await.map_err(failed)?;
            }
            Ok(())
        })
    }
}
