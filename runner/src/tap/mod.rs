//! A recording proxy in front of any cluster: it forwards every frame, and tells what went by as journal records.
//!
//! | Module | What it owns |
//! |---|---|
//! | `address` | where brokers are, by what clients and brokers call them |
//! | `relay` | one connection, both ways |
//! | `rewrite` | the URLs of brokers in what a broker says |
//! | `tls` | TLS on either side |
//!
//! Brokers name each other to clients, so each broker that is named gets a port of the tap of its own, and the client is
//! told that one. What is recorded is what the broker said. Frames are forwarded as they came, unless they name a
//! broker; a command that this program does not know goes by unrecorded.

mod address;
pub(crate) mod relay;
pub(crate) mod rewrite;
mod tls;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sim_broker::core::ids::{BrokerId, ConnId};
use sim_broker::core::journal::{Direction, Event, Record};
use sim_broker::net::Tls;
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;

use address::{Address, service};
use rewrite::Urls;
pub use tls::{Trust, TrustError};

/// How long a listener waits after a failure before it accepts again.
const RETRY: Duration = Duration::from_millis(100);

/// Why there is no tap.
#[derive(Debug, Error)]
pub enum TapError {
    /// The service URL of the cluster is none.
    #[error("{0}")]
    ServiceUrl(String),
    /// The service URL asks for TLS, and nobody is trusted.
    #[error("{0:?}: the certificates to trust are not given")]
    Untrusted(String),
    /// The port to listen at cannot be had.
    #[error("cannot listen at {at}: {source}")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// How a tap is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where clients connect to the first broker of the service URL. Every other broker gets a free port of the same
    /// address.
    pub listen: SocketAddr,
    /// What clients call this machine, where that is not the address of `listen`.
    pub advertise: Option<String>,
    /// The certificate that clients are shown. With one they have to speak TLS, without one they must not.
    pub certificate: Option<Tls>,
    /// Who is trusted behind `pulsar+ssl://`.
    pub trust: Option<Trust>,
    /// Where brokers are reached that name themselves otherwise: `host:port` that they tell, `host:port` to connect to.
    pub reach: BTreeMap<String, String>,
}

impl Options {
    /// Plain on both sides, brokers where they say.
    pub fn new(listen: SocketAddr) -> Options {
        Options { listen, advertise: None, certificate: None, trust: None, reach: BTreeMap::new() }
    }
}

/// A tap. It ends with the runtime that it was started in; clones are the same tap.
#[derive(Clone)]
pub struct Tap {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    service_url: String,
    state: Mutex<State>,
}

struct State {
    brokers: Vec<Tapped>,
    connections: u64,
    records: u64,
    started: Instant,
    sink: UnboundedSender<Record>,
}

/// A broker behind the tap; its place in the list is its number.
struct Tapped {
    upstream: Address,
    /// Where the tap listens for it.
    local: SocketAddr,
}

impl Tap {
    /// Listens for clients of the cluster at `service_url`: `pulsar://host:port`, or `pulsar+ssl://`, of one or several
    /// brokers with commas between them. Records go to `sink`, in the order in which they happened. It has to be called
    /// in a runtime.
    ///
    /// # Errors
    /// [`TapError`].
    pub fn start(
        service_url: &str,
        options: Options,
        sink: UnboundedSender<Record>,
    ) -> Result<Tap, TapError> {
        let named = service(service_url).map_err(TapError::ServiceUrl)?;
        if named.iter().any(|a| a.tls) && options.trust.is_none() {
            return Err(TapError::Untrusted(service_url.to_owned()));
        }
        let mut listeners = Vec::new();
        for upstream in named {
            let upstream = upstream.reached(&options.reach);
            let port = if listeners.is_empty() { options.listen.port() } else { 0 };
            let at = SocketAddr::new(options.listen.ip(), port);
            let (listener, local) = bind(at).map_err(|source| TapError::Listen { at, source })?;
            listeners.push((listener, Tapped { upstream, local }));
        }
        let shown: Vec<String> = listeners.iter().map(|(_, t)| options.shown(t.local)).collect();
        let scheme = scheme(options.certificate.is_some());
        let state = State { brokers: Vec::new(), connections: 0, records: 0, started: Instant::now(), sink };
        let service_url = format!("{scheme}{}", shown.join(","));
        let tap = Tap { shared: Arc::new(Shared { options, service_url, state: Mutex::new(state) }) };
        for (listener, tapped) in listeners {
            tap.serve(&mut tap.lock(), listener, tapped);
        }
        Ok(tap)
    }

    /// What clients use instead of the service URL of the cluster.
    pub fn service_url(&self) -> &str {
        &self.shared.service_url
    }

    /// Notes something in the journal, in its order.
    pub fn mark(&self, text: &str) {
        self.record(None, None, Direction::Internal, Event::Mark { text: text.to_owned() });
    }

    /// Number of the newest record, 0 before the first.
    pub fn last_record(&self) -> u64 {
        self.lock().records
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Accepts clients of a broker from now on.
    fn serve(&self, state: &mut State, listener: tokio::net::TcpListener, tapped: Tapped) {
        let broker = BrokerId(u32::try_from(state.brokers.len()).unwrap_or(u32::MAX));
        let upstream = tapped.upstream.clone();
        let shown = self.options().shown(tapped.local);
        let text = format!("broker {} is {}; clients meet it at {shown}", broker.0, upstream.host_port);
        state.brokers.push(tapped);
        state.record(None, None, Direction::Internal, Event::Mark { text });
        let tap = self.clone();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((client, peer)) => {
                        let conn = tap.next_connection();
                        tokio::spawn(relay::run(tap.clone(), client, peer, upstream.clone(), broker, conn));
                    }
                    // Such as too many open files, or a client that is gone again: others may still come.
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
            }
        });
    }

    fn next_connection(&self) -> ConnId {
        let mut state = self.lock();
        state.connections += 1;
        ConnId(state.connections)
    }

    /// What a client is told instead of the URLs of a broker, of which one may be missing. `tls` says which of them
    /// the tap itself would use. `None` where nothing can be told instead.
    fn told(&self, plain: Option<&str>, tls: Option<&str>, prefer_tls: bool) -> Option<Urls> {
        let url = if prefer_tls { tls.or(plain) } else { plain.or(tls) }?;
        let upstream = Address::parse(url).ok()?.reached(&self.options().reach);
        let resolved = upstream.resolve();
        let mut state = self.lock();
        let known = state.brokers.iter().find(|t| t.upstream.is_same(&upstream, &resolved));
        let local = match known {
            Some(tapped) => tapped.local,
            None => {
                let (listener, local) = bind(SocketAddr::new(self.options().listen.ip(), 0)).ok()?;
                self.serve(&mut state, listener, Tapped { upstream, local });
                local
            }
        };
        let shown = self.options().shown(local);
        let by_tls = self.options().certificate.is_some();
        // Clients expect a plain URL, also those that do not use it.
        Some(Urls {
            plain: format!("pulsar://{shown}"),
            tls: by_tls.then(|| format!("pulsar+ssl://{shown}")),
        })
    }

    fn record(&self, broker: Option<BrokerId>, conn: Option<ConnId>, direction: Direction, event: Event) {
        self.lock().record(broker, conn, direction, event);
    }
}

impl State {
    fn record(&mut self, broker: Option<BrokerId>, conn: Option<ConnId>, direction: Direction, event: Event) {
        self.records += 1;
        let t_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record = Record { n: self.records, t_ms, broker, conn, direction, event };
        // Nobody listens any more when the program ends.
        let _ = self.sink.send(record);
    }
}

impl Options {
    /// What clients call the tap's own address.
    fn shown(&self, local: SocketAddr) -> String {
        match &self.advertise {
            Some(host) => format!("{host}:{}", local.port()),
            None => local.to_string(),
        }
    }
}

fn scheme(tls: bool) -> &'static str {
    if tls { "pulsar+ssl://" } else { "pulsar://" }
}

fn bind(address: SocketAddr) -> io::Result<(tokio::net::TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((tokio::net::TcpListener::from_std(listener)?, address))
}
