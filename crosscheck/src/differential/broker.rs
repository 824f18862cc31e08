//! The real broker of a run: one that runs already, or one of the run's own, which does not outlive it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use stc_runner::output::complain;
use xtask::real_broker;

use crate::signals::{Armed, Caught};

/// A broker that clients can use.
pub(super) struct Broker {
    /// `pulsar://host:port`
    pub(super) service_url: String,
    /// `http://host:port`
    pub(super) admin_url: String,
    own: Option<(Armed, PathBuf)>,
}

impl Broker {
    /// One that runs already.
    pub(super) fn at(service_url: &str, admin_url: &str) -> Broker {
        Broker { service_url: service_url.to_owned(), admin_url: admin_url.to_owned(), own: None }
    }

    /// Starts one, which is stopped when this is dropped, and when the program is asked to end.
    ///
    /// # Errors
    /// As for [`real_broker::start`].
    pub(super) fn start(workdir: &Path) -> anyhow::Result<Broker> {
        let signals = Caught::new()?;
        let running = real_broker::start(&real_broker::Options {
            port: 0,
            admin_port: 0,
            workdir: workdir.to_owned(),
            cache: xtask::workspace_root().join("target").join("real-broker"),
            patience: Duration::from_secs(120),
        })?;
        let own = running.workdir.clone();
        let armed = signals.before_the_end(move || stop(&own));
        Ok(Broker {
            service_url: running.service_url,
            admin_url: running.admin_url,
            own: Some((armed, running.workdir)),
        })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some((_, workdir)) = &self.own {
            stop(workdir);
        }
    }
}

fn stop(workdir: &Path) {
    if let Err(error) = real_broker::stop(workdir) {
        complain(format_args!("the real broker is not stopped: {error:#}"));
    }
}
