//! The cluster: brokers, connections, and everything that commands can reach.
//!
//! [`Cluster`] is one state machine for all brokers. A frame comes in through [`Cluster::receive`], passes the
//! faults, changes the state, and what follows leaves through the faults again into the journal and
//! [`Cluster::take_output`]. Nothing here reads a clock; every call gets the time.
//!
//! | Module | Owns |
//! |---|---|
//! | `flow` | the way of a frame: faults, journal, output; delayed work |
//! | `access` | who may connect, and do what |
//! | `conn` | one connection's state; handshake and keep-alive |
//! | [`about`] | what a frame is about, and which error answers it |
//! | `serve` | which handler serves which command |
//! | `attach` | producers and consumers: commands to the stored topic they belong to |
//! | `lookup` | LOOKUP and PARTITIONED_METADATA |
//! | `watch` | DAG watches and layout pushes |
//! | `scalable` | scalable topics and the changes of their layouts |
//! | `ownership` | which broker owns what; kill, revive, move |
//! | `namespaces` | tenants, namespaces and their policies |
//! | `catalogue` | stored topics: creation, deletion, lists and watches of lists |
//! | `topic_sets` | namespace watches: the scalable topics of a namespace |
//! | `controllers` | registrations of ordered consumers, assignments, drained parents |
//! | `load` | load reports of segments, which push layouts |
//! | `coordinators` | transaction coordinators: who leads them, and who is told |
//! | `transactions` | commands of transactions, and carrying out their ends |
//! | [`admin`] | what the admin REST offers |
//! | [`control`] | what the control API offers |

pub mod about;
pub mod access;
pub mod admin;
mod attach;
mod catalogue;
mod conn;
pub mod control;
mod controllers;
mod coordinators;
mod flow;
mod load;
mod lookup;
mod namespaces;
mod ownership;
mod scalable;
mod serve;
mod topic_sets;
mod transactions;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use stc_proto::{Frame, TopicName};

pub use self::controllers::Registered;
pub use self::namespaces::{AutoTopicCreation, Namespace, PartitionedOrNot};
use self::{conn::Conn, flow::Agenda, scalable::Scalable, watch::HeldPush};
use super::{
    config::ClusterConfig,
    coordinator::Coordinator,
    effects::Effects,
    fault::Faults,
    ids::{BrokerId, ConnId, Millis, ProducerNames},
    journal::{Direction, Event, Journal},
    topic::{SharedSchemas, Topic},
};

/// One broker of the cluster.
#[derive(Debug, Clone)]
pub struct Broker {
    /// The address that lookups and layouts hand out, such as `pulsar://127.0.0.1:6650`.
    pub service_url: String,
    /// The same for TLS, such as `pulsar+ssl://127.0.0.1:6651`, if it listens for that.
    pub service_url_tls: Option<String>,
    /// The address of its admin REST, such as `http://127.0.0.1:8080`.
    pub admin_url: String,
    /// The same for TLS, such as `https://127.0.0.1:8443`, if it listens for that.
    pub admin_url_tls: Option<String>,
    /// Whether it runs.
    pub up: bool,
    /// Counts its deaths, so that a late fail-over does not hit a broker that came back.
    pub(crate) deaths: u64,
    /// Whether it is down for so long that others own what it had, as soon as there are others.
    pub(crate) given_up: bool,
}

/// Where a broker is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Its service URL.
    pub service: String,
    /// Its service URL for TLS.
    pub service_tls: Option<String>,
    /// The URL of its admin REST.
    pub admin: String,
    /// The URL of its admin REST for TLS.
    pub admin_tls: Option<String>,
}

impl Broker {
    fn new(addresses: Addresses) -> Self {
        Broker {
            service_url: addresses.service,
            service_url_tls: addresses.service_tls,
            admin_url: addresses.admin,
            admin_url_tls: addresses.admin_tls,
            up: true,
            deaths: 0,
            given_up: false,
        }
    }

    /// Where it is reached.
    pub fn addresses(&self) -> Addresses {
        Addresses {
            service: self.service_url.clone(),
            service_tls: self.service_url_tls.clone(),
            admin: self.admin_url.clone(),
            admin_tls: self.admin_url_tls.clone(),
        }
    }
}

/// Something for a connection to do.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // nearly all are frames
pub enum Output {
    /// Put this frame on the wire.
    Frame(ConnId, Frame),
    /// Close the connection once everything before is sent. The cluster has forgotten it already.
    Close(ConnId),
}

/// A stored topic and who owns it.
#[derive(Debug)]
struct Stored {
    topic: Topic,
    owner: BrokerId,
    /// When its next tick is due, if one is on the agenda.
    tick_at: Option<Millis>,
}

/// A whole Pulsar cluster.
#[derive(Debug)]
pub struct Cluster {
    config: ClusterConfig,
    brokers: Vec<Broker>,
    conns: BTreeMap<ConnId, Conn>,
    /// The principal that each valid token stands for.
    tokens: BTreeMap<String, String>,
    next_conn: u64,
    stored: BTreeMap<TopicName, Stored>,
    /// The schemas of each topic; its segments or partitions share them.
    schemas: BTreeMap<String, SharedSchemas>,
    next_ledger: u64,
    partitioned: BTreeMap<TopicName, u32>,
    scalable: BTreeMap<TopicName, Scalable>,
    tenants: BTreeSet<String>,
    namespaces: BTreeMap<String, Namespace>,
    coordinators: Vec<Coordinator>,
    /// Whether ends of transactions are decided but not carried out.
    ends_held: bool,
    names: ProducerNames,
    held_pushes: BTreeMap<TopicName, Vec<HeldPush>>,
    /// Counts namespace watches.
    next_topic_set: u64,
    agenda: Agenda,
    faults: Faults,
    journal: Journal,
    effects: Effects,
    output: Vec<Output>,
}

impl Cluster {
    /// An empty cluster: the tenant `public` with the namespace `default`, the namespaces that permissions are granted in,
    /// no topics. Broker i listens at the i-th of
    /// `addresses`.
    pub fn new(config: ClusterConfig, addresses: Vec<Addresses>) -> Self {
        let mut cluster = Cluster {
            brokers: addresses.into_iter().map(Broker::new).collect(),
            tokens: config.security.iter().flat_map(|s| s.tokens.clone()).collect(),
            conns: BTreeMap::new(),
            next_conn: 0,
            stored: BTreeMap::new(),
            schemas: BTreeMap::new(),
            next_ledger: 0,
            partitioned: BTreeMap::new(),
            scalable: BTreeMap::new(),
            tenants: BTreeSet::new(),
            namespaces: BTreeMap::new(),
            coordinators: Vec::new(),
            ends_held: false,
            names: ProducerNames::new("sim-0"),
            held_pushes: BTreeMap::new(),
            next_topic_set: 0,
            agenda: Agenda::default(),
            faults: Faults::default(),
            journal: Journal::new(config.journal.clone()),
            effects: Effects::new(),
            output: Vec::new(),
            config,
        };
        cluster.populate();
        cluster
    }

    /// What every new cluster has.
    fn populate(&mut self) {
        self.create_namespace_entry("public", "default");
        let granted =
            self.config.security.iter().flat_map(|s| &s.authorization).flat_map(|a| a.grants.keys());
        let named: Vec<String> = granted.cloned().collect();
        for (tenant, namespace) in named.iter().filter_map(|name| name.split_once('/')) {
            self.create_namespace_entry(tenant, namespace);
        }
        let coordinators = 0..u64::from(self.config.coordinators);
        let all_at = self.config.coordinators_at.filter(|broker| self.is_up(*broker));
        let leader = |id| all_at.or_else(|| self.nth_broker(id));
        self.coordinators = coordinators.map(|id| Coordinator::new(id, leader(id))).collect();
    }

    /// How the cluster was set up.
    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// The brokers, by index.
    pub fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Opens a connection to a broker, over TLS or not; `None` when the broker is down.
    pub fn open(&mut self, broker: BrokerId, peer: &str, tls: bool, now: Millis) -> Option<ConnId> {
        if !self.is_up(broker) {
            self.journal.append(now, Some(broker), None, Direction::Internal, Event::TcpRefused);
            return None;
        }
        self.next_conn += 1;
        let id = ConnId(self.next_conn);
        self.conns.insert(id, Conn::new(broker));
        self.log(id, Direction::ToBroker, Event::TcpOpen { peer: peer.to_owned(), tls }, now);
        self.start_keep_alive(id, now);
        Some(id)
    }

    /// A client closed its connection, or it broke.
    pub fn closed(&mut self, conn: ConnId, reason: &str, now: Millis) {
        self.lose(conn, "client", reason, now);
        self.settle(now);
    }

    /// The broker's side closes a connection, for a reason that the caller found (such as a reader that is too slow).
    pub fn close(&mut self, conn: ConnId, reason: &str, now: Millis) {
        self.lose(conn, "broker", reason, now);
        self.settle(now);
    }

    /// Takes what the connections have to do, oldest first.
    pub fn take_output(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.output)
    }

    /// Whether a connection is open.
    pub fn is_open(&self, conn: ConnId) -> bool {
        self.conns.contains_key(&conn)
    }

    fn log(&mut self, conn: ConnId, direction: Direction, event: Event, now: Millis) {
        let broker = self.conns.get(&conn).map(|c| c.broker);
        self.journal.append(now, broker, Some(conn), direction, event);
    }
}
