//! The released broker, in a container or as a process, and its end: when the run is over, when it failed, and when
//! somebody interrupts it.

use std::time::Duration;

use stc_runner::output::complain;
use stc_runner::target::TargetConfig;
use xtask::containers::Engine;
use xtask::real_broker::{self, Options, Running};

use super::container::Broker;
use crate::signals::{Armed, Caught};

/// A running broker; it ends when this is dropped.
pub(super) struct Real {
    _signals: Armed,
    kind: Kind,
}

enum Kind {
    Container(Box<Broker>),
    Process(Running),
}

impl Real {
    pub(super) fn start(as_process: bool) -> anyhow::Result<Real> {
        let signals = Caught::new()?;
        let cache = xtask::workspace_root().join("target/real-broker");
        let kind = if as_process {
            let options = Options {
                port: 0,
                admin_port: 0,
                workdir: cache.join("crosscheck"),
                cache,
                patience: Duration::from_secs(120),
            };
            Kind::Process(real_broker::start(&options)?)
        } else {
            Kind::Container(Box::new(Broker::start(&cache)?))
        };
        let end = match &kind {
            Kind::Container(broker) => End::Container(broker.id()),
            Kind::Process(running) => End::Process(running.workdir.clone()),
        };
        // Adapters end with the pipe to this process.
        Ok(Real { _signals: signals.before_the_end(move || end.end()), kind })
    }

    pub(super) fn service_url(&self) -> &str {
        match &self.kind {
            Kind::Container(broker) => &broker.service_url,
            Kind::Process(running) => &running.service_url,
        }
    }

    /// The broker behind a proxy.
    pub(super) fn target(&self) -> TargetConfig {
        let (service_url, admin_url) = match &self.kind {
            Kind::Container(broker) => (&broker.service_url, &broker.admin_url),
            Kind::Process(running) => (&running.service_url, &running.admin_url),
        };
        TargetConfig::Proxied { service_url: service_url.clone(), admin_url: admin_url.clone() }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        if let Kind::Process(running) = &self.kind
            && let Err(error) = real_broker::stop(&running.workdir)
        {
            complain(format_args!("error: the broker was not stopped: {error:#}"));
        }
    }
}

/// How a broker is ended from outside the run.
enum End {
    Container(String),
    Process(std::path::PathBuf),
}

impl End {
    fn end(&self) {
        let ended = match self {
            End::Container(id) => Engine::find()
                .map_err(anyhow::Error::from)
                .and_then(|engine| engine.run(&["rm", "--force", id]).map(|_| ())),
            End::Process(workdir) => real_broker::stop(workdir).map(|_| ()),
        };
        if let Err(error) = ended {
            complain(format_args!("error: the broker was not ended: {error:#}"));
        }
    }
}
