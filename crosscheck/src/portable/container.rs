//! The released broker in a container, through `testcontainers`.
//!
//! Its ports are the same inside and outside, since the broker hands them out, and are published on loopback only. What
//! an earlier run left behind because it was killed is removed first, by its label.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use testcontainers::core::IntoContainerPort as _;
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};
use tokio::runtime::Runtime;
use xtask::containers::{self, Engine};
use xtask::real_broker::{self, image};

/// The label by which containers of killed runs are found; its value is the process that started them.
const LABEL: &str = "stc.crosscheck";
/// How long a broker may take until it is ready; it takes about 5 s.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often another pair of ports is tried when one was taken in the meantime.
const TRIES: u32 = 5;

/// A broker that runs in a container, until this is dropped.
pub(super) struct Broker {
    runtime: Runtime,
    container: Option<ContainerAsync<GenericImage>>,
    /// `pulsar://127.0.0.1:port`.
    pub(super) service_url: String,
    /// `http://127.0.0.1:port`.
    pub(super) admin_url: String,
}

impl Broker {
    /// Makes the image where it is missing, and starts a broker.
    pub(super) fn start(cache: &Path) -> anyhow::Result<Broker> {
        let engine = Engine::find()?;
        let tag = image::ensure(cache, false)?;
        sweep(engine)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("cannot start a runtime")?;
        let mut failure = None;
        for _ in 0..TRIES {
            let [port, admin_port] = real_broker::free_ports()?;
            match runtime.block_on(run(&tag, port, admin_port)) {
                Ok(container) => {
                    let broker = Broker {
                        runtime,
                        container: Some(container),
                        service_url: format!("pulsar://127.0.0.1:{port}"),
                        admin_url: format!("http://127.0.0.1:{admin_port}"),
                    };
                    broker.wait(admin_port)?;
                    return Ok(broker);
                }
                Err(error) => failure = Some(error),
            }
        }
        let error = failure.map_or_else(|| anyhow::anyhow!("no try was made"), anyhow::Error::from);
        Err(error.context("the container of the real broker does not start"))
    }

    /// The container's id.
    pub(super) fn id(&self) -> String {
        self.container.as_ref().map(|container| container.id().to_owned()).unwrap_or_default()
    }

    /// The namespace that everything uses is created last.
    fn wait(&self, admin_port: u16) -> anyhow::Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if real_broker::is_ready(&format!("127.0.0.1:{admin_port}")) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("the broker in the container was not ready after {} s", PATIENCE.as_secs())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(container) = self.container.take() {
            // Where this fails, the next run sweeps.
            let _ = self.runtime.block_on(container.rm());
        }
    }
}

async fn run(
    tag: &str,
    port: u16,
    admin_port: u16,
) -> testcontainers::core::error::Result<ContainerAsync<GenericImage>> {
    let (name, version) = tag.split_once(':').unwrap_or((tag, "latest"));
    GenericImage::new(name, version)
        .with_env_var("PORT", port.to_string())
        .with_env_var("WEB", admin_port.to_string())
        .with_env_var("HEAP", "512m")
        .with_env_var("DIRECT", "256m")
        .with_label(LABEL, std::process::id().to_string())
        .with_mapped_port(port, port.tcp())
        .with_mapped_port(admin_port, admin_port.tcp())
        .with_host_config_modifier(|host| {
            // By itself testcontainers publishes on every address of the machine.
            let bindings = host.port_bindings.iter_mut().flat_map(|all| all.values_mut());
            for binding in bindings.flatten().flatten() {
                binding.host_ip = Some("127.0.0.1".to_owned());
            }
        })
        .start()
        .await
}

/// Removes containers whose process is gone.
fn sweep(engine: Engine) -> anyhow::Result<()> {
    for (id, process) in engine.made_by(LABEL)? {
        if containers::is_gone(process) {
            engine.run(&["rm", "--force", &id])?;
        }
    }
    Ok(())
}
