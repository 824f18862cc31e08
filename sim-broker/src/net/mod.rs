//! tokio around the core: connections, listeners, timers and the clock.
//!
//! | Module | Owns |
//! |---|---|
//! | [`clock`] | the cluster's clock: tokio's time, so that paused time works, plus an offset |
//! | `link` | one connection over any byte stream |
//! | [`tcp`] | listeners |
//! | [`tls`] | certificates and handshakes |

pub mod clock;
mod link;
pub mod tcp;
pub mod tls;

use std::{
    collections::HashMap,
    future::Future,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    sync::{Notify, watch},
    task::JoinSet,
};

use self::{
    clock::Clock,
    link::{Incoming, Link},
};
pub use self::{
    tcp::{TcpOptions, TlsOptions},
    tls::{Tls, TlsError},
};
use crate::{
    admin,
    control::{self, Control},
    core::{BrokerId, Cluster, ClusterConfig, ConnId, Millis, Output, cluster::Addresses},
};

/// How many bytes an in-memory link buffers each way, as a socket does.
const LINK_BUFFER: usize = 64 * 1024;

/// How long a control call waits for ports to open or close; somebody else may have taken one.
const SETTLE: Duration = Duration::from_secs(5);

/// Where the clock of a cluster in memory starts: one date for every run, so that runs are the same byte for byte.
const MEMORY_EPOCH_MS: Millis = 1_767_225_600_000;

/// A running cluster. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub struct SimCluster {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The certificate, if the brokers speak TLS.
    tls: Option<Tls>,
    /// Wakes the timer when something became due earlier.
    earlier: Notify,
    /// The number of the next journal record.
    journal: watch::Sender<u64>,
    /// Which brokers run.
    up: watch::Sender<Vec<bool>>,
    /// Which listeners for clients there are, by broker and whether it is for TLS, and whether their ports are open.
    ports: watch::Sender<HashMap<(BrokerId, bool), bool>>,
    shutdown: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct State {
    cluster: Cluster,
    clock: Clock,
    links: HashMap<ConnId, Link>,
    planned: Option<Millis>,
}

impl SimCluster {
    /// A cluster in memory. Broker i is at `pulsar://broker-i:6650`; [`SimCluster::connect`] opens links to it. Must be
    /// called within a tokio runtime.
    pub fn in_memory(config: ClusterConfig) -> Self {
        let addresses = memory_addresses(&config, false);
        SimCluster::start(config, None, addresses, Clock::starting_at(MEMORY_EPOCH_MS))
    }

    /// A cluster in memory that speaks TLS too: broker i is also at `pulsar+ssl://broker-i:6651`. A link to there
    /// carries real TLS; the client's side of the handshake is the caller's.
    pub fn in_memory_with_tls(config: ClusterConfig, tls: Tls) -> Self {
        let addresses = memory_addresses(&config, true);
        SimCluster::start(config, Some(tls), addresses, Clock::starting_at(MEMORY_EPOCH_MS))
    }

    fn start(config: ClusterConfig, tls: Option<Tls>, addresses: Vec<Addresses>, clock: Clock) -> Self {
        let up = vec![true; addresses.len()];
        let cluster = Cluster::new(config, addresses);
        let state = State { cluster, clock, links: HashMap::new(), planned: None };
        let shared = Shared {
            state: Mutex::new(state),
            tls,
            earlier: Notify::new(),
            journal: watch::Sender::new(1),
            up: watch::Sender::new(up),
            ports: watch::Sender::new(HashMap::new()),
            shutdown: watch::Sender::new(false),
            tasks: Mutex::new(JoinSet::new()),
        };
        let cluster = SimCluster { shared: Arc::new(shared) };
        let timer = cluster.clone();
        cluster.spawn(async move { timer.run_timer().await });
        cluster
    }

    /// Opens an in-memory link to the broker at this address (`pulsar://host:port`, `pulsar+ssl://host:port`, or
    /// `host:port` of either). The link carries the same bytes as TCP, so the caller shakes hands on one for TLS. An
    /// unknown address or a broker that is down refuses the connection.
    pub fn connect(&self, url: &str) -> io::Result<DuplexStream> {
        let refused = |why: &str| io::Error::new(io::ErrorKind::ConnectionRefused, format!("{url}: {why}"));
        let wanted = url.trim_end_matches('/');
        let is = |known: &str| known == wanted || known.split_once("://").is_some_and(|(_, h)| h == wanted);
        let found = self.read(|cluster| {
            (0..).zip(cluster.brokers()).find_map(|(i, b)| {
                let tls = b.service_url_tls.as_deref().is_some_and(is);
                (tls || is(&b.service_url)).then_some((BrokerId(i), tls))
            })
        });
        let (broker, tls) = found.ok_or_else(|| refused("no such broker"))?;
        let (client, server) = tokio::io::duplex(LINK_BUFFER);
        let accepted = match tls {
            true => self.accept_tls(broker, server, "memory"),
            false => self.accept(broker, server, "memory"),
        };
        accepted.map(|_| client).ok_or_else(|| refused("the broker is down"))
    }

    /// Serves a client on a byte stream that leads to a broker; `None` when the broker is down.
    pub fn accept<S>(&self, broker: BrokerId, stream: S, peer: &str) -> Option<ConnId>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (conn, incoming) = self.open(broker, peer, false)?;
        let cluster = self.clone();
        self.spawn(async move { link::run(cluster, conn, stream, incoming).await });
        Some(conn)
    }

    /// The same for a stream on which the client speaks TLS; `None` also when the cluster does not.
    pub fn accept_tls<S>(&self, broker: BrokerId, stream: S, peer: &str) -> Option<ConnId>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let acceptor = self.tls()?.acceptor();
        let (conn, incoming) = self.open(broker, peer, true)?;
        let cluster = self.clone();
        self.spawn(async move { tls::run(cluster, conn, stream, acceptor, incoming).await });
        Some(conn)
    }

    fn open(&self, broker: BrokerId, peer: &str, tls: bool) -> Option<(ConnId, Incoming)> {
        let mut state = self.lock();
        let now = state.clock.now();
        let conn = state.cluster.open(broker, peer, tls, now);
        let opened = conn.map(|conn| {
            let (link, incoming) = Link::new();
            state.links.insert(conn, link);
            (conn, incoming)
        });
        self.dispatch(state);
        opened
    }

    /// The certificate of the cluster, if it speaks TLS.
    pub fn tls(&self) -> Option<&Tls> {
        self.shared.tls.as_ref()
    }

    /// The addresses of the brokers, by index, such as `pulsar://127.0.0.1:6650`.
    pub fn broker_urls(&self) -> Vec<String> {
        self.read(|cluster| cluster.brokers().iter().map(|b| b.service_url.clone()).collect())
    }

    /// The addresses of the brokers' admin REST, by index, such as `http://127.0.0.1:8080`.
    pub fn admin_urls(&self) -> Vec<String> {
        self.read(|cluster| cluster.brokers().iter().map(|b| b.admin_url.clone()).collect())
    }

    /// The addresses of the brokers for TLS, by index, such as `pulsar+ssl://127.0.0.1:6750`; empty without TLS.
    pub fn broker_urls_tls(&self) -> Vec<String> {
        self.read(|cluster| cluster.brokers().iter().filter_map(|b| b.service_url_tls.clone()).collect())
    }

    /// The addresses of the brokers' admin REST for TLS, by index; empty without TLS.
    pub fn admin_urls_tls(&self) -> Vec<String> {
        self.read(|cluster| cluster.brokers().iter().filter_map(|b| b.admin_url_tls.clone()).collect())
    }

    /// The address that clients begin with: the first broker's.
    pub fn service_url(&self) -> String {
        self.broker_urls().into_iter().next().unwrap_or_default()
    }

    /// What drives and observes the cluster from outside.
    pub fn control(&self) -> Control {
        Control::new(self.clone())
    }

    /// The admin REST of one broker.
    pub fn admin_router(&self, broker: BrokerId) -> axum::Router {
        admin::router(self.clone(), broker)
    }

    /// The control API over HTTP.
    pub fn control_router(&self) -> axum::Router {
        control::http::router(self.control())
    }

    /// Reads from the cluster.
    pub fn read<R>(&self, look: impl FnOnce(&Cluster) -> R) -> R {
        look(&self.lock().cluster)
    }

    /// Runs a call on the cluster: it gets the time, and what it causes goes out before this returns. Work that was due
    /// before it is done first.
    pub fn with<R>(&self, act: impl FnOnce(&mut Cluster, Millis) -> R) -> R {
        let mut state = self.lock();
        let now = state.clock.now();
        state.cluster.tick(now);
        let result = act(&mut state.cluster, now);
        self.dispatch(state);
        result
    }

    /// The time on the cluster's clock, in ms since 1970.
    pub fn now(&self) -> Millis {
        self.lock().clock.now()
    }

    /// Moves the clock forward; what becomes due happens at once.
    pub fn advance_clock(&self, ms: u64) {
        {
            let mut state = self.lock();
            state.clock.advance(ms);
            // What the timer sleeps for comes earlier now.
            state.planned = None;
        }
        self.with(|_, _| ());
    }

    /// Tells when the journal grows: the number that the next record gets.
    pub fn watch_journal(&self) -> watch::Receiver<u64> {
        self.shared.journal.subscribe()
    }

    /// Closes every connection and listener, and waits until all tasks ended.
    pub async fn shutdown(&self) {
        self.shared.shutdown.send_replace(true);
        let mut tasks =
            std::mem::take(&mut *self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A call that panicked must not take every other connection with it.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {} // forget what ended
        tasks.spawn(task);
    }

    /// Resolves once the ports of the brokers that run are open and those of the others closed, or [`SETTLE`] passed.
    pub(crate) async fn ports_settled(&self) {
        let mut ports = self.shared.ports.subscribe();
        let settled = ports.wait_for(|ports| {
            let up = self.shared.up.borrow();
            ports.iter().all(|((broker, _), open)| up.get(broker.0 as usize) == Some(open))
        });
        let _ = tokio::time::timeout(SETTLE, settled).await;
    }

    /// Resolves once the cluster shuts down.
    pub(crate) async fn stopped(&self) {
        // An error means that the sender is gone, and with it the cluster.
        let _ = self.shared.shutdown.subscribe().wait_for(|stop| *stop).await;
    }

    /// Hands the cluster's output to the connections, and tells the timer and followers of the journal.
    fn dispatch(&self, mut state: MutexGuard<'_, State>) {
        let now = state.clock.now();
        let limit = state.cluster.config().outbound_limit;
        loop {
            let output = state.cluster.take_output();
            if output.is_empty() {
                break;
            }
            let mut slow = Vec::new();
            for one in output {
                match one {
                    Output::Frame(conn, frame) => {
                        if state.links.get(&conn).is_some_and(|link| link.send(frame) > limit) {
                            slow.push(conn);
                        }
                    }
                    Output::Close(conn) => {
                        state.links.remove(&conn);
                    }
                }
            }
            for conn in slow {
                let reason = format!("the client reads too slowly: more than {limit} bytes wait for it");
                state.cluster.close(conn, &reason, now);
            }
        }
        let next = state.cluster.next_deadline();
        if next != state.planned {
            state.planned = next;
            self.shared.earlier.notify_one();
        }
        let brokers = state.cluster.brokers();
        self.shared.up.send_if_modified(|known| {
            let changed = known.iter().zip(brokers).any(|(known, broker)| *known != broker.up);
            if changed {
                *known = brokers.iter().map(|b| b.up).collect();
            }
            changed
        });
        let number = state.cluster.journal().next_number();
        self.shared.journal.send_if_modified(|known| {
            let changed = *known != number;
            *known = number;
            changed
        });
    }

    async fn run_timer(&self) {
        loop {
            let due = {
                let state = self.lock();
                state.planned.map(|at| state.clock.instant(at))
            };
            let sleep = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = sleep => self.with(|_, _| ()),
                () = self.shared.earlier.notified() => {}
                () = self.stopped() => return,
            }
        }
    }
}

/// Where the brokers of a cluster in memory are.
fn memory_addresses(config: &ClusterConfig, tls: bool) -> Vec<Addresses> {
    (0..config.brokers.max(1))
        .map(|i| Addresses {
            service: format!("pulsar://broker-{i}:6650"),
            service_tls: tls.then(|| format!("pulsar+ssl://broker-{i}:6651")),
            admin: format!("http://broker-{i}:8080"),
            admin_tls: tls.then(|| format!("https://broker-{i}:8443")),
        })
        .collect()
}
