//! The connections of a client, one for each broker, and the classic lookup that finds the broker of a topic.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use stc_proto::{
    Command,
    pulsar::{CommandLookupTopic, command_lookup_topic_response::LookupType},
};
use tokio::time::timeout;

use crate::{
    address::BrokerAddress,
    connection::{Connection, ConnectionSettings},
    core::{
        deviant::Deviant,
        error::{Category, Error},
    },
    tls::TlsOptions,
    transport::{Link, Transport},
};

/// A broker, and where to connect for it: elsewhere when a proxy or the service address stands before it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Endpoint {
    broker: BrokerAddress,
    through: BrokerAddress,
}

impl From<BrokerAddress> for Endpoint {
    fn from(broker: BrokerAddress) -> Self {
        Endpoint { through: broker.clone(), broker }
    }
}

/// Locked while a connection is being made, so that all who need it wait for one attempt.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

pub(crate) struct Pool {
    transport: Arc<dyn Transport>,
    settings: ConnectionSettings,
    /// For each request, and for a lookup with all its redirects together.
    operation_timeout: Duration,
    service: Vec<BrokerAddress>,
    tls: Option<TlsOptions>,
    /// Which of the service addresses is tried first.
    next_service: AtomicUsize,
    slots: Mutex<BTreeMap<Endpoint, Slot>>,
    next_connection: AtomicU64,
    next_request: AtomicU64,
    closed: AtomicBool,
}

/// How many brokers a lookup follows before it is taken for a loop.
const MAX_REDIRECTS: usize = 20;

impl Pool {
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        settings: ConnectionSettings,
        operation_timeout: Duration,
        service: Vec<BrokerAddress>,
        tls: Option<TlsOptions>,
    ) -> Self {
        Pool {
            transport,
            settings,
            operation_timeout,
            service,
            tls,
            next_service: AtomicUsize::new(0),
            slots: Mutex::default(),
            next_connection: AtomicU64::new(0),
            next_request: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// An id for a request; ids are not used again within a client.
    pub(crate) fn request_id(&self) -> u64 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives up all connections and makes no new ones. They end when their last user lets go.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The connection for a topic: at the broker that is named, or at the one that a lookup finds.
    ///
    /// # Errors
    /// `NotSupported` when the broker does not advertise scalable topics and the topic is none of the classic ones
    /// (compatibility §3); what connecting and looking up fail with.
    pub(crate) async fn connect(&self, topic: &str, named: Option<&str>) -> Result<Arc<Connection>, Error> {
        let connection = match named {
            _ if self.settings.deviance.is(Deviant::IgnoreSegmentBroker) => self.service().await?,
            Some(url) => self.broker(url).await?,
            None => return self.lookup(topic).await,
        };
        self.check_support(&connection, topic)?;
        Ok(connection)
    }

    /// The connection to a topic's controller: at the broker that the layout names, else at the service URL.
    ///
    /// # Errors
    /// As for [`Pool::connect`].
    pub(crate) async fn controller(
        &self,
        topic: &str,
        named: Option<&str>,
    ) -> Result<Arc<Connection>, Error> {
        let connection = match named {
            Some(url) if !self.settings.deviance.is(Deviant::RegistersAtServiceUrl) => {
                self.broker(url).await?
            }
            _ => self.service().await?,
        };
        self.check_support(&connection, topic)?;
        Ok(connection)
    }

    /// The connection to a broker.
    ///
    /// # Errors
    /// `InvalidServiceUrl`, and what connecting fails with.
    pub(crate) async fn broker(&self, url: &str) -> Result<Arc<Connection>, Error> {
        self.get(BrokerAddress::parse(url)?.into()).await
    }

    /// Finds the broker that serves a topic.
    pub(crate) async fn lookup(&self, topic: &str) -> Result<Arc<Connection>, Error> {
        let found = timeout(self.operation_timeout, self.follow(topic));
        found.await.map_err(|_| Error::timeout(format!("the lookup of {topic} took too long")))?
    }

    async fn follow(&self, topic: &str) -> Result<Arc<Connection>, Error> {
        let mut connection = self.service().await?;
        let service = connection.address().clone();
        let mut authoritative = false;
        for _ in 0..MAX_REDIRECTS {
            self.check_support(&connection, topic)?;
            let request_id = self.request_id();
            let lookup = CommandLookupTopic {
                topic: topic.to_owned(),
                request_id,
                authoritative: Some(authoritative),
                ..Default::default()
            };
            let answer = connection.request(request_id, lookup, Some(self.operation_timeout)).await?;
            let Command::LookupResponse(answer) = answer else {
                return Err(Error::not_connected(format!("{} answered LOOKUP", answer.name())));
            };
            let kind = answer.response.and_then(|kind| LookupType::try_from(kind).ok());
            if let None | Some(LookupType::Failed) = kind {
                let message = answer.message.unwrap_or_default();
                return Err(Error::server(answer.error.unwrap_or_default(), &message));
            }
            let url = answer
                .broker_service_url
                .as_deref()
                .ok_or_else(|| Error::not_connected("the answer to LOOKUP names no broker"))?;
            let broker = BrokerAddress::parse(url)?;
            let through = if answer.proxy_through_service_url() { service.clone() } else { broker.clone() };
            connection = self.get(Endpoint { broker, through }).await?;
            if kind == Some(LookupType::Connect) {
                self.check_support(&connection, topic)?;
                return Ok(connection);
            }
            authoritative = answer.authoritative.unwrap_or(false);
        }
        Err(Error::new(
            Category::Unknown,
            format!("the lookup of {topic} went through {MAX_REDIRECTS} brokers"),
        ))
    }

    /// A broker that does not know scalable topics gets none of their names: it could only close the connection.
    fn check_support(&self, connection: &Connection, topic: &str) -> Result<(), Error> {
        let classic = topic.starts_with("persistent://");
        if classic
            || connection.supports_scalable_topics()
            || self.settings.deviance.is(Deviant::IgnoreFeatureFlags)
        {
            return Ok(());
        }
        let why =
            format!("the broker {} does not advertise support for scalable topics", connection.address());
        Err(Error::new(Category::NotSupported, why))
    }

    /// A connection to one of the brokers of the service URL.
    pub(crate) async fn service(&self) -> Result<Arc<Connection>, Error> {
        let mut last = Error::new(Category::InvalidServiceUrl, "the service URL names no broker");
        for _ in 0..self.service.len() {
            let index = self.next_service.load(Ordering::Relaxed) % self.service.len();
            let Some(address) = self.service.get(index) else { break };
            match self.get(address.clone().into()).await {
                Ok(connection) => return Ok(connection),
                Err(error) if error.is_transient() => last = error,
                // The same credentials are as wrong at the next broker.
                Err(error) => return Err(error),
            }
            self.next_service.store(index + 1, Ordering::Relaxed);
        }
        Err(last)
    }

    /// Shakes hands on a link to an address with TLS.
    async fn secure(&self, address: &BrokerAddress, link: Box<dyn Link>) -> Result<Box<dyn Link>, Error> {
        match (&self.tls, address.tls) {
            (_, false) => Ok(link),
            (Some(tls), true) => tls.secure(address, link).await,
            (None, true) => {
                let why = format!("{address}: no trusted certificates are configured for TLS");
                Err(Error::new(Category::InvalidConfiguration, why))
            }
        }
    }

    async fn get(&self, endpoint: Endpoint) -> Result<Arc<Connection>, Error> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry(endpoint.clone()).or_default().clone()
        };
        if self.settings.deviance.is(Deviant::FailsBesideAnother) && slot.try_lock().is_err() {
            return Err(Error::new(Category::Unknown, "the client is busy"));
        }
        let own = self.settings.deviance.is(Deviant::ConnectionForEach);
        let slot = if own { Slot::default() } else { slot };
        let mut slot = slot.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| connection.is_open()) {
            return Ok(connection.clone());
        }
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::closed("client"));
        }
        let id = self.next_connection.fetch_add(1, Ordering::Relaxed);
        let opening = async {
            let link = self.transport.connect(&endpoint.through).await;
            let link =
                link.map_err(|error| Error::not_connected(format!("{}: {error}", endpoint.through)))?;
            let link = self.secure(&endpoint.through, link).await?;
            let through_proxy = endpoint.broker != endpoint.through;
            Connection::open(id, &endpoint.broker, through_proxy, link, &self.settings).await
        };
        let opened = timeout(self.settings.timeout, opening).await;
        let connection = opened
            .map_err(|_| Error::not_connected(format!("{}: connecting took too long", endpoint.through)))??;
        *slot = Some(connection.clone());
        Ok(connection)
    }
}
