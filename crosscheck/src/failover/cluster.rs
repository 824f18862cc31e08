//! A cluster of two brokers of either kind, and what is done to it.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sim_broker::{
    core::{BrokerId, ClusterConfig, Profile},
    net::{SimCluster, TcpOptions},
};

use stc_runner::target::admin::{Admin, Method};

use super::containers::Containers;

/// How soon a dead broker is missed, in ms: the session timeout of the real brokers, the fail-over time of the simulator.
pub const MISSED_AFTER_MS: u64 = 5_000;

/// How long bundles may be on their way.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a broker goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Without a word.
    Killed,
    /// It gives up what it owns first.
    Drained,
}

/// Two brokers.
#[derive(Debug)]
pub enum Cluster {
    /// The simulator under profile `pulsar-5.0.1`, in this process, over TCP.
    Simulated(SimCluster),
    /// Containers of the released broker.
    Released(Containers),
}

impl Cluster {
    /// A simulated one.
    ///
    /// # Errors
    /// When its ports cannot be opened.
    pub async fn simulated(seed: u64) -> anyhow::Result<Self> {
        let profile = Profile::built_in("pulsar-5.0.1")?;
        let config =
            ClusterConfig { brokers: 2, seed, failover_ms: MISSED_AFTER_MS, ..ClusterConfig::new(profile) };
        let cluster = SimCluster::tcp(config, TcpOptions::default()).await;
        Ok(Cluster::Simulated(cluster.context("the simulated cluster cannot listen")?))
    }

    /// As the report calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Cluster::Simulated(_) => "simulator",
            Cluster::Released(_) => "Pulsar 5.0.1",
        }
    }

    /// The port for clients of each broker.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let urls = match self {
            Cluster::Simulated(cluster) => cluster.broker_urls(),
            Cluster::Released(containers) => containers.ports().map(|ports| ports.service_url()).to_vec(),
        };
        urls.iter().filter_map(|url| port_of(url)).collect()
    }

    fn admin_url(&self, broker: usize) -> anyhow::Result<String> {
        let urls = match self {
            Cluster::Simulated(cluster) => cluster.admin_urls(),
            Cluster::Released(containers) => containers.ports().map(|ports| ports.admin_url()).to_vec(),
        };
        urls.get(broker).cloned().with_context(|| format!("there is no broker {broker}"))
    }

    /// Where a client begins: both brokers.
    #[must_use]
    pub fn service_url(&self) -> String {
        let hosts: Vec<String> = self.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("pulsar://{}", hosts.join(","))
    }

    /// Creates a scalable topic of `public/default`. A real broker fails at it while bundles are on their way to another
    /// one, which they are for a moment after they were dealt out; what it has made of the topic by then stays.
    ///
    /// # Errors
    /// When the broker refuses.
    pub async fn create(&self, name: &str, segments: u32) -> anyhow::Result<()> {
        let path = format!("/admin/v2/scalable/public/default/{name}?numInitialSegments={segments}");
        let begun = Instant::now();
        let mut failed = false;
        loop {
            let answer = Admin::http(self.admin_url(0)?, None).call(Method::PUT, &path, None).await?;
            match answer.status {
                204 => return Ok(()),
                409 if failed => return Ok(()),
                500 if begun.elapsed() < PATIENCE => failed = true,
                status => bail!("creating {name} was answered with {status} {}", answer.body),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Ends a broker; returns when it is gone.
    ///
    /// # Errors
    /// When it does not go.
    pub async fn end(&self, broker: usize, end: End) -> anyhow::Result<()> {
        match self {
            Cluster::Simulated(cluster) => {
                let id = BrokerId(u32::try_from(broker)?);
                if end == End::Drained {
                    cluster.control().unload_broker(id)?;
                }
                cluster.control().kill_broker(id)?;
                Ok(())
            }
            Cluster::Released(containers) => {
                let containers = containers.clone();
                tokio::task::spawn_blocking(move || containers.end(broker, end)).await?
            }
        }
    }

    /// Brings an ended broker back; returns when it serves.
    ///
    /// # Errors
    /// When it does not come.
    pub async fn revive(&self, broker: usize) -> anyhow::Result<()> {
        match self {
            Cluster::Simulated(cluster) => {
                Ok(cluster.control().revive_broker(BrokerId(u32::try_from(broker)?))?)
            }
            Cluster::Released(containers) => {
                let starting = containers.clone();
                tokio::task::spawn_blocking(move || starting.revive(broker)).await??;
                containers.ready().await?;
                containers.deal().await
            }
        }
    }

    /// Ends all of it.
    ///
    /// # Errors
    /// When containers cannot be removed.
    pub async fn close(self) -> anyhow::Result<()> {
        match self {
            Cluster::Simulated(cluster) => {
                cluster.shutdown().await;
                Ok(())
            }
            Cluster::Released(containers) => tokio::task::spawn_blocking(move || containers.remove()).await?,
        }
    }
}

/// The port of `pulsar://host:port`.
#[must_use]
pub fn port_of(url: &str) -> Option<u16> {
    url.trim_end_matches('/').rsplit_once(':')?.1.parse().ok()
}
