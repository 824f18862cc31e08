//! The brokers' processes. Nothing is left running: the simulator ends with the pipe to it, the released broker with
//! its guard or by the signal handler.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context;
use xtask::real_broker::{self, Options, Running};

use crate::{
    ports::Ports,
    signals::{Armed, Caught},
};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// `sim-broker`, one broker.
    Simulator,
    /// The released standalone broker.
    Released,
}

/// The released broker, if one runs or is about to. One at a time.
static RELEASED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Ends the released broker and then this process when somebody asks for it.
///
/// # Errors
/// When signals cannot be caught.
pub fn end_on_signals() -> anyhow::Result<Armed> {
    Ok(Caught::new()?.before_the_end(|| {
        // A broker that is coming up has no record until it is ready.
        let released = RELEASED.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..600 {
            match &*released {
                Some(workdir) if !real_broker::stop(workdir).unwrap_or(false) => {
                    thread::sleep(Duration::from_millis(100));
                }
                _ => break,
            }
        }
        // Kept locked: no other broker starts any more.
        std::mem::forget(released);
    }))
}

/// A broker that starts. Dropping it ends it.
#[derive(Debug)]
pub enum Broker {
    /// The simulator, since when it starts.
    Simulator(Child, Instant),
    /// The released broker.
    Released(Released),
}

/// The released broker: a thread waits until it is ready.
#[derive(Debug)]
pub struct Released {
    workdir: PathBuf,
    starting: Option<JoinHandle<anyhow::Result<(Running, Instant)>>>,
    running: Option<(Running, Instant)>,
}

impl Broker {
    /// Starts a broker without waiting for it.
    ///
    /// # Errors
    /// When the process does not start.
    pub fn start(target: Target, ports: Ports) -> anyhow::Result<Self> {
        match target {
            Target::Simulator => simulator(ports),
            Target::Released => released(ports),
        }
    }

    /// When its process started. Waits for the released broker to be ready.
    ///
    /// # Errors
    /// When the broker does not come up.
    pub fn started(&mut self) -> anyhow::Result<Instant> {
        match self {
            Broker::Simulator(_, started) => Ok(*started),
            Broker::Released(released) => released.ready().map(|(_, started)| *started),
        }
    }

    /// The memory that its process holds, in MiB. Waits for the released broker to be ready.
    ///
    /// # Errors
    /// When the broker does not come up, or where there is no `/proc`.
    pub fn memory(&mut self) -> anyhow::Result<f64> {
        let pid = match self {
            Broker::Simulator(child, _) => child.id(),
            Broker::Released(released) => released.ready()?.0.pid,
        };
        let file = format!("/proc/{pid}/status");
        let status = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        resident(&status).with_context(|| format!("{file} has no VmRSS"))
    }
}

/// The resident memory that a `/proc/PID/status` states, in MiB.
fn resident(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

fn simulator(ports: Ports) -> anyhow::Result<Broker> {
    let mut command = Command::new(xtask::workspace_root().join("target/release/sim-broker"));
    command.args(["--brokers", "1", "--profile", "pulsar-5.0.1", "--exit-with-parent", "--json"]);
    command.args(["--port", &ports.service.to_string(), "--admin-port", &ports.admin.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let started = Instant::now();
    let child = command.spawn().context("the simulator does not start")?;
    Ok(Broker::Simulator(child, started))
}

fn released(ports: Ports) -> anyhow::Result<Broker> {
    let cache = xtask::workspace_root().join("target/real-broker");
    let options = Options {
        port: ports.service,
        admin_port: ports.admin,
        workdir: cache.join("figures"),
        cache,
        patience: Duration::from_secs(120),
    };
    let workdir = options.workdir.clone();
    *RELEASED.lock().unwrap_or_else(PoisonError::into_inner) = Some(workdir.clone());
    let starting = thread::spawn(move || {
        let running = real_broker::start(&options)?;
        let now = Instant::now();
        let started = now.checked_sub(Duration::from_millis(running.ready_ms)).unwrap_or(now);
        Ok((running, started))
    });
    Ok(Broker::Released(Released { workdir, starting: Some(starting), running: None }))
}

impl Released {
    fn ready(&mut self) -> anyhow::Result<&(Running, Instant)> {
        if let Some(starting) = self.starting.take() {
            let result = starting.join().map_err(|_| anyhow::anyhow!("the broker's start panicked"))?;
            self.running = Some(result?);
        }
        self.running.as_ref().context("the released broker did not come up")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        match self {
            Broker::Simulator(child, _) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Broker::Released(released) => {
                // One that is coming up has no record yet by which it could be ended.
                let _ = released.ready();
                let mut current = RELEASED.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = real_broker::stop(&released.workdir) {
                    stc_runner::output::complain(format_args!(
                        "the released broker is still there: {error:#}"
                    ));
                }
                *current = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_resident_memory() {
        let status = "Name:\tx\nVmPeak:\t  9000 kB\nVmRSS:\t   15360 kB\nThreads:\t3\n";
        assert_eq!(resident(status), Some(15.0));
        assert_eq!(resident("Name:\tx\n"), None);
        assert_eq!(resident("VmRSS:\tmuch\n"), None);
    }
}
