//! The broker side of a scenario: a simulated cluster of its own, or a broker elsewhere.

use sim_broker::SimCluster;
use sim_broker::core::config::ClusterConfig;
use sim_broker::core::fault::FaultStatus;
use sim_broker::core::ids::BrokerId;
use sim_broker::core::journal::Record;
use sim_broker::core::profile::{Feature, Profile};
use sim_broker::core::security::Security;
use sim_broker::net::{TcpOptions, Tls, TlsOptions};
use stc_reports::TargetKind;

use crate::feature::Need;
use crate::judge::Trouble;
use crate::proxy::Proxy;
use admin::Admin;
use faults::Faults;

pub mod admin;
pub mod faults;
pub mod layout;

/// What a run is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetConfig {
    /// A simulated cluster in this process for each scenario, under virtual time.
    Memory,
    /// A simulated cluster over TCP for each scenario.
    Tcp,
    /// A broker elsewhere, shared by all scenarios.
    Url {
        /// Binary service URL, `pulsar://host:port`.
        service_url: String,
        /// Admin URL, `http://host:port`.
        admin_url: String,
    },
    /// The same, through a proxy of each scenario's own that gives the journal and strikes frames.
    Proxied {
        /// Binary service URL, `pulsar://host:port`.
        service_url: String,
        /// Admin URL, `http://host:port`.
        admin_url: String,
    },
}

impl TargetConfig {
    /// Whether time is virtual.
    pub fn is_memory(&self) -> bool {
        *self == TargetConfig::Memory
    }

    /// The kind as reports name it.
    pub fn kind(&self) -> TargetKind {
        match self {
            TargetConfig::Memory => TargetKind::Memory,
            TargetConfig::Tcp => TargetKind::Tcp,
            TargetConfig::Url { .. } | TargetConfig::Proxied { .. } => TargetKind::Url,
        }
    }

    /// What scenarios can have on it.
    pub fn offers(&self) -> &'static [Need] {
        match self {
            TargetConfig::Memory => &Need::ALL,
            TargetConfig::Tcp => &[Need::Control, Need::Faults, Need::Journal],
            TargetConfig::Proxied { .. } => &[Need::Faults, Need::Journal],
            TargetConfig::Url { .. } => &[],
        }
    }

    /// Service and admin URL of a broker elsewhere.
    pub fn elsewhere(&self) -> Option<(&str, &str)> {
        match self {
            TargetConfig::Memory | TargetConfig::Tcp => None,
            TargetConfig::Url { service_url, admin_url }
            | TargetConfig::Proxied { service_url, admin_url } => Some((service_url, admin_url)),
        }
    }
}

/// How a simulated cluster is set up for a scenario. A broker elsewhere is as it is: scenarios that change anything
/// here are tagged `@needs-control`.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Name of the profile.
    pub profile: String,
    /// How many brokers.
    pub brokers: u32,
    /// Feature flags that CONNECTED leaves out although the profile has them.
    pub without: Vec<Feature>,
    /// How many transaction coordinators.
    pub coordinators: u32,
    /// Whether the coordinators are spread over the brokers. Else the first broker leads them all until a scenario says
    /// otherwise: only those about finding coordinators depend on whether a client can.
    pub coordinators_spread: bool,
    /// Whether segments have entry buckets.
    pub entry_buckets: bool,
    /// Whether every command of the brokers has fields that no release knows.
    pub unknown_fields: bool,
    /// Who may connect, and do what. The suite's own calls are those of [`SUITE`], which has to be a superuser.
    pub security: Option<Security>,
    /// Whether the brokers also speak TLS, with a certificate of their own.
    pub tls: bool,
    /// Seed of the cluster.
    pub seed: u64,
}

impl Setup {
    /// Three brokers that follow the profile.
    pub fn new(profile: &str, seed: u64) -> Setup {
        Setup {
            profile: profile.to_owned(),
            brokers: 3,
            coordinators: 16,
            coordinators_spread: false,
            without: Vec::new(),
            entry_buckets: true,
            unknown_fields: false,
            security: None,
            tls: false,
            seed,
        }
    }

    fn cluster(&self) -> Result<ClusterConfig, Trouble> {
        let mut profile = Profile::built_in(&self.profile)?;
        profile.features.retain(|f| !self.without.contains(f));
        if !self.entry_buckets {
            profile.entry_bucket_budget = 0;
        }
        let mut config = ClusterConfig::new(profile);
        config.brokers = self.brokers;
        config.coordinators = self.coordinators;
        config.coordinators_at = (!self.coordinators_spread).then_some(BrokerId(0));
        config.unknown_fields = self.unknown_fields;
        config.security = self.security.clone();
        config.seed = self.seed;
        Ok(config)
    }

    fn certificate(&self) -> Result<Option<Tls>, Trouble> {
        Ok(if self.tls { Some(Tls::self_signed(self.brokers, None)?) } else { None })
    }

    /// What the suite's own calls show.
    fn token(&self) -> Option<String> {
        self.security.as_ref().map(|_| token(SUITE))
    }
}

/// Who the suite is to a cluster that asks.
pub const SUITE: &str = "suite";

/// The token of a principal at first.
pub fn token(principal: &str) -> String {
    format!("{principal}-token")
}

/// How a broker is reached by TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerTls {
    /// `pulsar+ssl://host:port`.
    pub service_url: String,
    /// The certificates that a client trusts, as PEM text.
    pub trust_pem: String,
}

/// A running broker side.
#[derive(Clone)]
pub struct Broker {
    /// Where clients connect: every broker of a simulated cluster, since any of them may die.
    pub service_url: String,
    /// Where the suite itself connects to brokers elsewhere, which leaves no trace in the journal.
    pub own_url: String,
    /// Where clients connect for TLS, and what they have to trust, on clusters that speak it.
    pub tls: Option<BrokerTls>,
    /// Admin REST of the first broker.
    pub admin: Admin,
    /// The simulated cluster, if it is one.
    pub cluster: Option<SimCluster>,
    /// What stands in front of brokers elsewhere, if it does.
    pub proxy: Option<Proxy>,
    /// Whether clients in this process open in-memory links to [`Broker::cluster`].
    pub in_memory: bool,
}

/// One service URL that names all brokers of a cluster.
fn every_broker(cluster: &SimCluster) -> String {
    cluster.broker_urls().join(",").replace(",pulsar://", ",")
}

impl Broker {
    /// Starts the broker side of one scenario.
    ///
    /// # Errors
    /// When the profile is unknown or no port is free.
    pub async fn start(target: &TargetConfig, setup: &Setup) -> Result<Broker, Trouble> {
        match target {
            TargetConfig::Url { service_url, admin_url } => Ok(Broker::elsewhere(service_url, admin_url)),
            TargetConfig::Proxied { service_url, admin_url } => {
                let proxy = Proxy::start(service_url)?;
                Ok(Broker {
                    service_url: proxy.service_url(),
                    proxy: Some(proxy),
                    ..Broker::elsewhere(service_url, admin_url)
                })
            }
            TargetConfig::Memory => {
                let cluster = match setup.certificate()? {
                    Some(tls) => SimCluster::in_memory_with_tls(setup.cluster()?, tls),
                    None => SimCluster::in_memory(setup.cluster()?),
                };
                let router = sim_broker::admin::router(cluster.clone(), BrokerId(0));
                Ok(Broker::simulated(cluster, Admin::in_process(router, setup.token()), true))
            }
            TargetConfig::Tcp => {
                let tls = setup.certificate()?.map(TlsOptions::new);
                let options = TcpOptions { tls, ..TcpOptions::default() };
                let cluster = SimCluster::tcp(setup.cluster()?, options).await?;
                let admin = cluster.admin_urls().into_iter().next();
                let admin = admin.ok_or_else(|| Trouble::new("the cluster has no admin URL"))?;
                Ok(Broker::simulated(cluster, Admin::http(admin, setup.token()), false))
            }
        }
    }

    /// The first address of the service URL alone: in a simulated cluster the first broker, where the coordinators are
    /// unless a scenario says otherwise.
    pub fn first_address(&self) -> String {
        self.service_url.split_once(',').map_or(&*self.service_url, |(first, _)| first).to_owned()
    }

    /// A simulated cluster. `in_memory` says whether clients in this process open in-memory links to it.
    pub fn simulated(cluster: SimCluster, admin: Admin, in_memory: bool) -> Broker {
        Broker {
            service_url: every_broker(&cluster),
            own_url: every_broker(&cluster),
            tls: by_tls(&cluster),
            admin,
            cluster: Some(cluster),
            proxy: None,
            in_memory,
        }
    }

    /// A broker elsewhere.
    pub fn elsewhere(service_url: &str, admin_url: &str) -> Broker {
        Broker {
            service_url: service_url.to_owned(),
            own_url: service_url.to_owned(),
            tls: None,
            admin: Admin::http(admin_url.to_owned(), None),
            cluster: None,
            proxy: None,
            in_memory: false,
        }
    }

    /// What strikes frames and connections; `None` where nothing does.
    pub fn faults(&self) -> Option<Faults> {
        let cluster = self.cluster.as_ref().map(|cluster| Faults::Cluster(cluster.control()));
        cluster.or_else(|| self.proxy.clone().map(Faults::Proxy))
    }

    /// The URLs of the brokers by their numbers in the journal.
    pub fn broker_urls(&self) -> Vec<String> {
        let cluster = self.cluster.as_ref().map(SimCluster::broker_urls);
        cluster.or_else(|| self.proxy.as_ref().map(Proxy::broker_urls)).unwrap_or_default()
    }

    /// The journal so far; `None` where there is none.
    pub fn journal(&self) -> Option<Vec<Record>> {
        self.faults().map(|faults| faults.journal())
    }

    /// Writes a note into the journal, where there is one.
    pub fn mark(&self, note: impl FnOnce() -> String) {
        if let Some(cluster) = &self.cluster {
            cluster.control().mark(&note());
        } else if let Some(proxy) = &self.proxy {
            proxy.mark(&note());
        }
    }

    /// Number of the newest journal record, 0 when there is none yet; `None` where there is no journal.
    pub fn last_record(&self) -> Option<u64> {
        let cluster = self.cluster.as_ref().map(|c| c.control().last_record());
        cluster.or_else(|| self.proxy.as_ref().map(Proxy::last_record))
    }

    /// Armed faults that have not struck as often as they were to, in words.
    pub fn unfired_faults(&self) -> Vec<String> {
        let unfired = |s: &FaultStatus| s.fired < s.fault.count;
        let describe = |s: FaultStatus| {
            let command = s.fault.when.command.unwrap_or_else(|| "any command".to_owned());
            format!("{:?} on {command}, {} of {} times", s.fault.effect, s.fired, s.fault.count)
        };
        let faults = self.faults().map(|faults| faults.status()).unwrap_or_default();
        faults.into_iter().filter(unfired).map(describe).collect()
    }

    /// Ends a simulated cluster.
    pub async fn shutdown(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.shutdown().await;
        }
    }
}

fn by_tls(cluster: &SimCluster) -> Option<BrokerTls> {
    let trust_pem = cluster.tls()?.trust_pem().to_owned();
    Some(BrokerTls { service_url: cluster.broker_urls_tls().into_iter().next()?, trust_pem })
}
