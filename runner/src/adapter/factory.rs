//! Sessions for the scenarios of a run. A scenario has a session to itself; one that went well is used again, one that
//! did not is ended and replaced.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use stc_adapter_protocol::{Capability, ClientError, Initialize, Operation as _, Sdk, StartScenario};
use stc_reports::ClientInfo;

use super::host::Adapter;
use super::notes::Notes;
use super::session::{AdapterError, Session, Source, said};
use crate::client::{ClientUnderTest, Reply};
use crate::feature::Scenario;
use crate::run::{ClientFactory, Opening};
use crate::target::Broker;

/// Adapters of one SDK.
pub struct AdapterFactory {
    pool: Arc<Pool>,
    sdk: Sdk,
    offers: BTreeSet<Capability>,
}

/// Sessions that wait for a scenario.
pub(super) struct Pool {
    source: Source,
    idle: Mutex<Vec<Session>>,
}

impl Pool {
    async fn take(&self) -> Result<Session, AdapterError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(session) = idle() {
            if !session.connection.is_gone() {
                return Ok(session);
            }
        }
        Session::open(&self.source).await
    }

    pub(super) fn give_back(&self, session: Session) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        for session in idle.drain(..) {
            session.end();
        }
    }
}

impl AdapterFactory {
    /// Starts a first adapter and lets it introduce itself.
    ///
    /// # Errors
    /// [`AdapterError`].
    pub fn command(words: Vec<String>) -> Result<AdapterFactory, AdapterError> {
        AdapterFactory::new(Source::Command(words))
    }

    /// Waits at `address` for an adapter that somebody starts by hand, and tells where, each time that one is needed:
    /// first, and whenever the one that was there is gone.
    ///
    /// # Errors
    /// [`AdapterError`].
    pub fn attach(address: SocketAddr, tell: fn(SocketAddr)) -> Result<AdapterFactory, AdapterError> {
        let failed = |source| AdapterError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        AdapterFactory::new(Source::Attach { listener, address, tell })
    }

    fn new(source: Source) -> Result<AdapterFactory, AdapterError> {
        let failed =
            |e: std::io::Error| AdapterError::Initialize { reason: e.to_string(), stderr: Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let first = match source {
            Source::Command(_) => runtime.block_on(Session::open_first(&source))?,
            // Where it is waited for was told.
            Source::Attach { .. } => runtime.block_on(Session::open(&source))?,
        };
        let (sdk, offers) = (first.sdk.clone(), first.offers.clone());
        Ok(AdapterFactory { pool: Arc::new(Pool { source, idle: Mutex::new(vec![first]) }), sdk, offers })
    }

    /// What the SDK offers.
    pub fn offers(&self) -> &BTreeSet<Capability> {
        &self.offers
    }
}

impl ClientFactory for AdapterFactory {
    fn info(&self) -> ClientInfo {
        ClientInfo { name: self.sdk.name.clone(), version: self.sdk.version.clone() }
    }

    fn missing(&self, scenario: &Scenario) -> Option<String> {
        let item = |c: &&Capability| scenario.checklist.iter().any(|item| item == c.as_str());
        Capability::ALL.iter().filter(item).find(|c| !self.offers.contains(c)).map(ToString::to_string)
    }

    fn start<'a>(&'a self, broker: &'a Broker, opening: Opening<'a>) -> Reply<'a, Rc<dyn ClientUnderTest>> {
        Box::pin(async move {
            // Where there is no idle session, a new one introduces itself with its first request.
            opening.asked.asked(1, Initialize::METHOD);
            let session = self.pool.take().await.map_err(|e| ClientError::Gone(e.to_string()))?;
            opening.asked.answered(1, Initialize::METHOD);
            if let Some(process) = &session.process {
                process.tail.clear();
            }
            let start = StartScenario { scenario: opening.scenario.to_owned(), seed: opening.seed };
            let notes = Notes { broker: broker.clone(), open: opening.asked.clone() };
            let adapter = Adapter::new(session, Arc::clone(&self.pool), notes);
            // Without a client, no report has its standard error.
            let lost = |e| ClientError::Gone(format!("{e}{}", said(&adapter.stderr_tail())));
            adapter.call(start).await.map_err(lost)?;
            Ok(Rc::new(adapter) as Rc<dyn ClientUnderTest>)
        })
    }
}
