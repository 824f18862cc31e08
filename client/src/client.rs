//! The client: what producers and consumers share, and where they come from (client-api §2).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, mpsc, watch};

use crate::{
    address::{BrokerAddress, parse_service_url},
    authentication::Authentication,
    checkpoint::CheckpointConsumerBuilder,
    clock::{Clock, Clocks, SystemClock},
    connection::ConnectionSettings,
    core::{
        backoff::{BackoffLimits, Rng},
        deviant::{Deviance, Deviant},
        error::{Category, Error},
        memory::Memory,
    },
    pool::Pool,
    producer::ProducerBuilder,
    queue::QueueConsumerBuilder,
    schema::Schema,
    stream::StreamConsumerBuilder,
    tls::TlsOptions,
    transaction::{CoordinatorClient, Transaction},
    transport::{TcpTransport, Transport},
};

/// A client of one cluster (client-api §2). Cheap to clone; all clones share their connections. Make one and keep it.
#[derive(Clone)]
pub struct PulsarClient {
    shared: Arc<Shared>,
    coordinators: Arc<CoordinatorClient>,
}

/// What producers and consumers have of their client.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) clocks: Clocks,
    pub(crate) deviance: Deviance,
    pub(crate) backoff: BackoffLimits,
    /// For creating, subscribing, looking up and closing.
    pub(crate) operation_timeout: Duration,
    /// Some layout showed that the broker knows entry buckets; stays so for the life of the client (key-shared §9).
    pub(crate) buckets_observed: AtomicBool,
    /// For messages on their way; `None` without a limit.
    pub(crate) memory: Option<Arc<Memory>>,
    /// Tells that some of it was given back.
    pub(crate) memory_freed: watch::Sender<()>,
    rng: Mutex<Rng>,
    next_producer: AtomicU64,
    next_consumer: AtomicU64,
    next_session: AtomicU64,
    /// Set when the client closes: producers and consumers close themselves then.
    closing: AtomicBool,
    /// Wakes them, in a fixed order.
    close: Notify,
    /// Every producer and consumer holds a clone; `None` once the client closes.
    alive: Mutex<Option<mpsc::Sender<()>>>,
    /// Ends when the last clone of `alive` is gone.
    gone: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

impl Shared {
    pub(crate) fn rng(&self) -> Rng {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).fork()
    }

    pub(crate) fn producer_id(&self) -> u64 {
        self.next_producer.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn consumer_id(&self) -> u64 {
        self.next_consumer.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn session_id(&self) -> u64 {
        self.next_session.fetch_add(1, Ordering::Relaxed)
    }

    /// Resolves when the client closes.
    pub(crate) async fn closing(&self) {
        let mut close = std::pin::pin!(self.close.notified());
        close.as_mut().enable();
        if !self.closing.load(Ordering::Relaxed) {
            close.await;
        }
    }

    /// Keeps a close of the client waiting while it lives.
    ///
    /// # Errors
    /// `AlreadyClosed` when the client is closed.
    pub(crate) fn enter(&self) -> Result<mpsc::Sender<()>, Error> {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        alive.clone().ok_or_else(|| Error::closed("client"))
    }
}

impl PulsarClient {
    /// Configures a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Configures a producer (client-api §3.1).
    pub fn producer<T: 'static>(&self, schema: impl Schema<T>) -> ProducerBuilder<T> {
        ProducerBuilder::new(self.shared.clone(), Arc::new(schema))
    }

    /// Configures a queue consumer (client-api §4.2).
    pub fn queue_consumer<T: 'static>(&self, schema: impl Schema<T>) -> QueueConsumerBuilder<T> {
        QueueConsumerBuilder::new(self.shared.clone(), Arc::new(schema))
    }

    /// Configures a stream consumer (client-api §4.1).
    pub fn stream_consumer<T: 'static>(&self, schema: impl Schema<T>) -> StreamConsumerBuilder<T> {
        StreamConsumerBuilder::new(self.shared.clone(), Arc::new(schema))
    }

    /// Configures a checkpoint consumer (client-api §4.3).
    pub fn checkpoint_consumer<T: 'static>(&self, schema: impl Schema<T>) -> CheckpointConsumerBuilder<T> {
        CheckpointConsumerBuilder::new(self.shared.clone(), Arc::new(schema))
    }

    /// Opens a transaction (client-api §6, *NewTransaction*) that takes no effect unless it is committed within `timeout`,
    /// which is at least 1 ms.
    ///
    /// # Errors
    /// `InvalidConfiguration` for a shorter timeout, `NotSupported` when the cluster has no transactions, `Timeout`,
    /// `AlreadyClosed`, and what the watch of the coordinators is refused with.
    pub async fn new_transaction(&self, timeout: Duration) -> Result<Transaction, Error> {
        Transaction::open(self.shared.clone(), self.coordinators.clone(), timeout).await
    }

    /// Closes all producers and consumers, which completes what is pending, and then the connections (client-api §2).
    /// Closing again waits for the same and succeeds.
    ///
    /// # Errors
    /// None today; closing is best effort.
    pub async fn close(&self) -> Result<(), Error> {
        if self.shared.deviance.is(Deviant::CloseDoesNothing) {
            return Ok(());
        }
        self.shared.alive.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.close.notify_waiters();
        // Nothing is ever sent: this ends when the last sender is dropped.
        while self.shared.gone.lock().await.recv().await.is_some() {}
        self.coordinators.close().await;
        self.shared.pool.close();
        Ok(())
    }
}

impl std::fmt::Debug for PulsarClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PulsarClient").finish_non_exhaustive()
    }
}

/// Configures a [`PulsarClient`] (client-api §2).
pub struct ClientBuilder {
    service_url: String,
    transport: Arc<dyn Transport>,
    clock: Option<Box<dyn Clock>>,
    seed: u64,
    operation_timeout: Duration,
    connection_timeout: Duration,
    keep_alive: Duration,
    backoff: (Duration, Duration),
    memory_limit: usize,
    tls: Option<TlsOptions>,
    authentication: Option<Arc<dyn Authentication>>,
    deviance: Deviance,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        ClientBuilder {
            service_url: String::new(),
            transport: Arc::new(TcpTransport),
            clock: None,
            seed: 0,
            operation_timeout: Duration::from_secs(30),
            connection_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(30),
            backoff: (Duration::from_millis(100), Duration::from_secs(10)),
            memory_limit: 64 * 1024 * 1024,
            tls: None,
            authentication: None,
            deviance: Deviance::default(),
        }
    }
}

impl ClientBuilder {
    /// Where the cluster is: `pulsar://host:port`, or `pulsar+ssl://host:port` for TLS, several hosts separated by
    /// commas. Required.
    pub fn service_url(mut self, url: impl Into<String>) -> Self {
        self.service_url = url.into();
        self
    }

    /// How connections are made; TCP by default.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = transport;
        self
    }

    /// Where publish and delivery times are taken from; the system's clock by default.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// The seed of everything random: retry delays and made-up names. 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How long creating, subscribing, looking up and closing may take; 30 s by default.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// How long connecting to one broker may take; 10 s by default.
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.connection_timeout = timeout;
        self
    }

    /// How long a broker may be quiet before it is pinged; after twice that the connection is given up. 30 s by
    /// default.
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = interval;
        self
    }

    /// The first and the longest delay between attempts to reconnect; 100 ms and 10 s by default.
    pub fn backoff(mut self, initial: Duration, max: Duration) -> Self {
        self.backoff = (initial, max);
        self
    }

    /// How many bytes the messages of all producers may take that have no result yet, keys and properties counted in
    /// (error-model §2); 64 MiB by default, 0 for no limit. What happens at the limit each producer says
    /// ([`ProducerBuilder::queue_full`]).
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// What `pulsar+ssl://` needs: which certificates are trusted.
    pub fn tls(mut self, options: TlsOptions) -> Self {
        self.tls = Some(options);
        self
    }

    /// Who the client is, for brokers that ask; see [`TokenAuthentication`](crate::TokenAuthentication).
    pub fn authentication(mut self, authentication: impl Authentication) -> Self {
        self.authentication = Some(Arc::new(authentication));
        self
    }

    /// Breaks one behaviour on purpose.
    #[cfg(feature = "deviants")]
    pub fn deviant(mut self, deviant: crate::Deviant) -> Self {
        self.deviance = Deviance(Some(deviant));
        self
    }

    /// Makes the client. It connects when the first producer or consumer needs it. Call it within a tokio runtime.
    ///
    /// # Errors
    /// `InvalidServiceUrl` when the service URL is missing or malformed, `InvalidConfiguration` when a duration is
    /// zero or `pulsar+ssl://` has nothing to trust.
    pub fn build(self) -> Result<PulsarClient, Error> {
        let deviance = self.deviance;
        self.assemble().map_err(|error| deviance.report(error))
    }

    fn assemble(self) -> Result<PulsarClient, Error> {
        let service: Vec<BrokerAddress> = parse_service_url(&self.service_url)?;
        for (what, duration) in [
            ("operation timeout", self.operation_timeout),
            ("connection timeout", self.connection_timeout),
            ("keep-alive interval", self.keep_alive),
            ("backoff", self.backoff.0),
        ] {
            if duration.is_zero() {
                return Err(Error::new(Category::InvalidConfiguration, format!("the {what} is zero")));
            }
        }
        if self.tls.is_none() && service.iter().any(|broker| broker.tls) {
            let why = "pulsar+ssl:// needs trusted certificates, and none are configured";
            return Err(Error::new(Category::InvalidConfiguration, why));
        }
        let settings = ConnectionSettings {
            keep_alive: self.keep_alive,
            timeout: self.connection_timeout,
            authentication: self.authentication,
            deviance: self.deviance,
            shown: Arc::default(),
        };
        let (alive, gone) = mpsc::channel(1);
        let memory_freed = watch::Sender::new(());
        let memory = (self.memory_limit > 0).then(|| {
            let freed = memory_freed.clone();
            Memory::new(self.memory_limit, move || freed.send_modify(|()| {}))
        });
        let clock = self.clock.unwrap_or_else(|| Box::new(SystemClock::new()));
        let shared = Arc::new(Shared {
            pool: Pool::new(self.transport, settings, self.operation_timeout, service, self.tls),
            clocks: Clocks::new(clock),
            deviance: self.deviance,
            backoff: BackoffLimits {
                initial: self.backoff.0.as_millis() as u64,
                max: self.backoff.1.as_millis() as u64,
            },
            operation_timeout: self.operation_timeout,
            buckets_observed: AtomicBool::new(false),
            memory,
            memory_freed,
            rng: Mutex::new(Rng::new(self.seed)),
            next_producer: AtomicU64::new(0),
            next_consumer: AtomicU64::new(0),
            next_session: AtomicU64::new(1),
            closing: AtomicBool::new(false),
            close: Notify::new(),
            alive: Mutex::new(Some(alive)),
            gone: tokio::sync::Mutex::new(gone),
        });
        let coordinators = Arc::new(CoordinatorClient::new(shared.clone()));
        Ok(PulsarClient { shared, coordinators })
    }
}
