//! The two sides of a comparison: a simulated cluster in memory, and a real broker. Both are reached by the same client
//! and the same admin calls.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sim_broker::SimCluster;
use sim_broker::core::config::ClusterConfig;
use sim_broker::core::ids::BrokerId;
use stc_client::{BoxFuture, BrokerAddress, Clock, Error, Link, PulsarClient, TcpTransport, Transport};
use stc_runner::target::admin::Admin;
use tokio::task::AbortHandle;

/// How long a client's operation or send may take. Nothing that succeeds comes near it.
const LIMIT: Duration = Duration::from_secs(10);
/// What fits into an in-memory pipe, each way.
const PIPE: usize = 64 * 1024;

/// Where a sequence runs.
#[derive(Clone)]
pub struct Side {
    /// The admin REST.
    pub admin: Admin,
    service_url: String,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Memory(SimCluster),
    Tcp,
}

impl Side {
    /// A simulated cluster in memory; within a runtime whose time is paused.
    #[must_use]
    pub fn simulated(config: ClusterConfig) -> Side {
        let cluster = SimCluster::in_memory(config);
        let router = sim_broker::admin::router(cluster.clone(), BrokerId(0));
        Side {
            admin: Admin::in_process(router, None),
            service_url: cluster.service_url(),
            way: Way::Memory(cluster),
        }
    }

    /// A broker at `pulsar://host:port` whose admin REST is at `http://host:port`.
    #[must_use]
    pub fn at(service_url: &str, admin_url: &str) -> Side {
        let admin = Admin::http(admin_url.to_owned(), None);
        Side { admin, service_url: service_url.to_owned(), way: Way::Tcp }
    }

    /// The simulated cluster, if it is one.
    #[must_use]
    pub fn cluster(&self) -> Option<&SimCluster> {
        match &self.way {
            Way::Memory(cluster) => Some(cluster),
            Way::Tcp => None,
        }
    }

    /// The clock of all clients of a sequence.
    #[must_use]
    pub fn ticks(&self) -> Ticks {
        Ticks { shown: Arc::new(AtomicU64::new(0)), way: self.way.clone() }
    }

    /// A client whose connections can be cut.
    ///
    /// # Errors
    /// When the service URL does not parse.
    pub fn client(&self, seed: u64, clock: Ticks) -> Result<(PulsarClient, Cutter), Error> {
        let cutter = Cutter::default();
        let transport = Cuttable { way: self.way.clone(), cutter: cutter.clone() };
        let client = PulsarClient::builder()
            .service_url(&self.service_url)
            .transport(Arc::new(transport))
            .clock(clock)
            .seed(seed)
            .operation_timeout(LIMIT)
            .build()?;
        Ok((client, cutter))
    }
}

/// How long a send may take.
#[must_use]
pub fn send_timeout() -> Duration {
    LIMIT
}

/// The clock of a sequence's clients: it shows the broker's time, and stands still between two ticks, so that the messages
/// of one step have one publish time, of which `seek` is exact.
#[derive(Clone)]
pub struct Ticks {
    shown: Arc<AtomicU64>,
    way: Way,
}

impl Ticks {
    /// Moves on to the present, past the time that was shown before, and gives it.
    pub async fn tick(&self) -> u64 {
        let before = self.shown.load(Ordering::Relaxed);
        loop {
            let now = match &self.way {
                Way::Memory(cluster) => cluster.now(),
                Way::Tcp => system_ms(),
            };
            if now > before {
                self.shown.store(now, Ordering::Relaxed);
                return now;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Clock for Ticks {
    fn now_ms(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }
}

/// The system's time, in ms since 1970.
#[must_use]
pub fn system_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// Cuts the connections of one client.
#[derive(Clone, Default)]
pub struct Cutter(Arc<Mutex<Vec<AbortHandle>>>);

impl Cutter {
    /// Cuts all that are open, and says whether there was any.
    pub fn cut(&self) -> bool {
        let links = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let open = links.iter().any(|link| !link.is_finished());
        links.iter().for_each(AbortHandle::abort);
        open
    }

    /// Whether a connection is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().any(|link| !link.is_finished())
    }
}

/// Passes every byte on through a task; to end the task is to cut the connection.
struct Cuttable {
    way: Way,
    cutter: Cutter,
}

impl Transport for Cuttable {
    fn connect<'a>(&'a self, address: &'a BrokerAddress) -> BoxFuture<'a, io::Result<Box<dyn Link>>> {
        Box::pin(async move {
            let mut broker: Box<dyn Link> = match &self.way {
                Way::Memory(cluster) => {
                    Box::new(cluster.connect(&format!("{}:{}", address.host, address.port))?)
                }
                Way::Tcp => TcpTransport.connect(address).await?,
            };
            let (client, mut far) = tokio::io::duplex(PIPE);
            let passing = tokio::spawn(async move {
                // However it ends, both ends are dropped, which is all there is to tell.
                let _ = tokio::io::copy_bidirectional(&mut broker, &mut far).await;
            });
            let mut links = self.cutter.0.lock().unwrap_or_else(PoisonError::into_inner);
            links.retain(|link| !link.is_finished());
            links.push(passing.abort_handle());
            Ok(Box::new(client) as Box<dyn Link>)
        })
    }
}
