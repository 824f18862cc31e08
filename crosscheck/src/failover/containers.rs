//! A cluster of two released brokers in containers: one with ZooKeeper and a bookie, which owns the network and
//! publishes all ports on loopback, and one for each broker.
//!
//! Nothing is left running: [`Containers::remove`], the handler of signals, and, after a run that was cut off, the sweep
//! at the beginning of the next find the containers by their label, whose value is the process that made them.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use stc_runner::target::admin::{Admin, AdminError, Answer, Method};
use xtask::{
    containers::{self, Engine},
    real_broker::image,
};

use super::cluster::{End, MISSED_AFTER_MS};
use crate::{
    ports::Ports,
    signals::{Armed, Caught},
};

const LABEL: &str = "stc.crosscheck.failover";

/// How long a cluster, or one broker, may take until it serves.
const PATIENCE: Duration = Duration::from_secs(120);

/// Held while the engine makes or removes a container, so that a signal's sweep misses none.
static ENGINE: Mutex<()> = Mutex::new(());

fn exclusively() -> MutexGuard<'static, ()> {
    ENGINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The containers of a cluster.
#[derive(Debug, Clone)]
pub struct Containers {
    engine: Engine,
    ports: [Ports; 2],
    brokers: [String; 2],
}

impl Containers {
    /// Makes the image where it is not there, starts the cluster, and waits until both brokers serve.
    ///
    /// # Errors
    /// [`xtask::containers::NoEngine`] where none runs; anything else when a container does not come up.
    pub async fn start() -> anyhow::Result<Self> {
        let containers = tokio::task::spawn_blocking(|| {
            let started = start();
            if started.is_err()
                && let Ok(engine) = Engine::find()
            {
                sweep(engine, |pid| pid == std::process::id());
            }
            started
        })
        .await??;
        let ready = async {
            containers.ready().await?;
            containers.deal().await
        };
        if let Err(error) = ready.await {
            let logs = containers.brokers.clone().map(|broker| containers.tail(&broker));
            containers.remove()?;
            return Err(error.context(logs.join("\n")));
        }
        Ok(containers)
    }

    /// The ports of each broker.
    #[must_use]
    pub fn ports(&self) -> [Ports; 2] {
        self.ports
    }

    /// Waits until each broker knows both, and the namespace is there.
    pub(super) async fn ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let missing = loop {
            let mut missing = None;
            for ports in self.ports {
                let brokers = get(ports, "/admin/v2/brokers/standalone").await;
                let known = brokers.is_ok_and(|answer| {
                    self.ports.iter().all(|ports| answer.body.contains(&format!(":{}\"", ports.admin)))
                });
                let namespaces = get(ports, "/admin/v2/namespaces/public").await;
                if !known || !namespaces.is_ok_and(|answer| answer.body.contains("public/default")) {
                    missing = Some(ports.admin_url());
                }
            }
            match missing {
                None => return Ok(()),
                Some(admin) if begun.elapsed() > PATIENCE => break admin,
                Some(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        bail!("the broker at {missing} does not serve after {} s", PATIENCE.as_secs())
    }

    /// Deals the bundles of the namespace out to both brokers. A broker that comes back is given nothing by itself.
    pub(super) async fn deal(&self) -> anyhow::Result<()> {
        let [first, _] = self.ports;
        let namespace = "/admin/v2/namespaces/public/default";
        let body = get(first, &format!("{namespace}/bundles")).await?.body;
        let bundles: serde_json::Value = serde_json::from_str(&body).context(body)?;
        let boundaries =
            bundles.get("boundaries").and_then(|list| list.as_array()).context("no boundaries")?;
        let boundaries: Vec<&str> = boundaries.iter().filter_map(|boundary| boundary.as_str()).collect();
        for (pair, to) in boundaries.windows(2).zip(self.ports.iter().cycle()) {
            let [from, until] = pair else { continue };
            let query = format!("destinationBroker=127.0.0.1:{}", to.admin);
            let path = format!("{namespace}/{from}_{until}/unload?{query}");
            let answer = self.call_owner(Method::PUT, &path).await?;
            if answer.status != 204 {
                bail!("{path} was answered with {} {}", answer.status, answer.body);
            }
        }
        Ok(())
    }

    /// A call that only the owner of a bundle carries out; the other one points to it.
    async fn call_owner(&self, method: Method, path: &str) -> Result<Answer, AdminError> {
        let [first, second] = self.ports.map(|ports| Admin::http(ports.admin_url(), None));
        let answer = first.call(method.clone(), path, None).await?;
        if answer.status == 307 { second.call(method, path, None).await } else { Ok(answer) }
    }

    pub(super) fn end(&self, broker: usize, end: End) -> anyhow::Result<()> {
        let name = self.brokers.get(broker).context("no such broker")?;
        match end {
            End::Killed => self.engine.run(&["kill", name])?,
            End::Drained => self.engine.run(&["stop", "--time", "60", name])?,
        };
        Ok(())
    }

    pub(super) fn revive(&self, broker: usize) -> anyhow::Result<()> {
        let _alone = exclusively();
        self.engine.run(&["start", self.brokers.get(broker).context("no such broker")?])?;
        Ok(())
    }

    /// Removes all containers of this process.
    ///
    /// # Errors
    /// When one is still there.
    pub fn remove(&self) -> anyhow::Result<()> {
        sweep(self.engine, |pid| pid == std::process::id());
        let left = self.engine.made_by(LABEL)?;
        match left.iter().find(|(_, pid)| *pid == std::process::id()) {
            Some((container, _)) => bail!("the container {container} cannot be removed"),
            None => Ok(()),
        }
    }

    fn tail(&self, container: &str) -> String {
        self.engine.run(&["logs", "--tail", "10", container]).unwrap_or_default()
    }
}

async fn get(ports: Ports, path: &str) -> Result<Answer, AdminError> {
    Admin::http(ports.admin_url(), None).call(Method::GET, path, None).await
}

fn start() -> anyhow::Result<Containers> {
    let engine = Engine::find()?;
    sweep(engine, containers::is_gone);
    let image = image::ensure(&xtask::workspace_root().join("target/real-broker"), false)?;
    let label = format!("{LABEL}={}", std::process::id());
    let ports = [Ports::free()?, Ports::free()?];
    let run = |options: &[String], configuration: &[String]| -> anyhow::Result<String> {
        let _alone = exclusively();
        let mut arguments = vec!["run", "--label", &label];
        arguments.extend(options.iter().map(String::as_str));
        arguments.push(&image);
        arguments.extend(configuration.iter().map(String::as_str));
        engine.run(&arguments)
    };
    let words = |text: String| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let [first, second] = ports;
    let published: String = [first.service, first.admin, second.service, second.admin]
        .map(|port| format!("--publish 127.0.0.1:{port}:{port} "))
        .concat();
    let at = |role: &str, ports: Ports| {
        format!("--env ROLE={role} --env PORT={} --env WEB={}", ports.service, ports.admin)
    };
    let meta = run(&words(format!("--detach {published} {}", at("meta", first))), &[])?;
    let network = format!("--network container:{meta}");
    run(&words(format!("--rm {network} {}", at("init", first))), &[])?;
    let broker = |ports: Ports| {
        let session = format!("metadataStoreSessionTimeoutMillis={MISSED_AFTER_MS}");
        run(&words(format!("--detach {network} {}", at("broker", ports))), &[session])
    };
    Ok(Containers { engine, ports, brokers: [broker(first)?, broker(second)?] })
}

/// Removes the containers of some processes. What cannot be removed stays; the next sweep tries again.
fn sweep(engine: Engine, of: impl Fn(u32) -> bool) {
    let _alone = exclusively();
    remove_of(engine, of);
}

fn remove_of(engine: Engine, of: impl Fn(u32) -> bool) {
    for (container, pid) in engine.made_by(LABEL).unwrap_or_default() {
        if of(pid) {
            let _ = engine.run(&["rm", "--force", "--volumes", &container]);
        }
    }
}

/// Removes the containers when somebody asks this process to end.
///
/// # Errors
/// When signals cannot be caught.
pub fn remove_on_signals() -> anyhow::Result<Armed> {
    Ok(Caught::new()?.before_the_end(|| {
        // Held until the end: no container is made any more.
        std::mem::forget(exclusively());
        if let Ok(engine) = Engine::find() {
            remove_of(engine, |pid| pid == std::process::id());
        }
    }))
}
