//! The `real-broker` command: options, what is printed, exit codes.

use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::launch::{self, Options};
use super::state::{self, Running};
use crate::exit;
use stc_runner::output::say;

/// The `real-broker` command line.
#[derive(Debug, Args)]
pub struct RealBroker {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Start the released Pulsar 5.0.1 standalone on loopback and wait until it is ready
    ///
    /// Needs a JDK 21 or newer (JAVA_HOME_PULSAR, JAVA_HOME or installed) and, the first time, Maven. Every start
    /// begins with empty data.
    Start(Start),
    /// Stop the broker of a work directory and remove its data
    Stop(Place),
    /// Say whether a broker runs in a work directory; the exit code is 1 when none does
    Status(Place),
    /// Start a broker of its own, run the scenarios that need neither faults nor the journal on it, and stop it
    Judge(Judge),
    /// Make a container image of the broker without pulling anything, unless it is there, and print its tag
    Image(Image),
}

#[derive(Debug, Args)]
struct Image {
    /// Take the image that the Pulsar project publishes, which is pulled, instead of the jars
    #[arg(long)]
    official: bool,
}

#[derive(Debug, Args)]
struct Judge {
    /// Only scenarios whose tags match, such as '@C2'
    #[arg(long, value_name = "EXPRESSION")]
    tags: Option<String>,
}

#[derive(Debug, Args)]
struct Start {
    /// Port for clients; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Port of the admin REST; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    admin_port: u16,
    /// Seconds until a broker that is not ready is given up
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
    /// Stay, and stop the broker on Ctrl-C or SIGTERM
    #[arg(long)]
    foreground: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Place {
    /// Directory for the broker's data, log and record [default: target/real-broker/run]
    #[arg(long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Place {
    fn workdir(&self) -> PathBuf {
        self.workdir.clone().unwrap_or_else(|| cache().join("run"))
    }
}

fn cache() -> PathBuf {
    crate::workspace_root().join("target").join("real-broker")
}

/// Carries out the command.
///
/// # Errors
/// See [`super::start`] and [`super::stop`].
pub fn run(command: RealBroker) -> anyhow::Result<ExitCode> {
    match command.action {
        Action::Start(start) => self::start(&start),
        Action::Stop(place) => stop(&place),
        Action::Status(place) => status(&place),
        Action::Judge(judge) => self::judge(judge),
        Action::Image(image) => {
            say(format_args!("{}", super::image::ensure(&cache(), image.official)?));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The conformance run is a process of its own, so that it is the command that a user would give.
fn judge(judge: Judge) -> anyhow::Result<ExitCode> {
    let options = Options {
        port: 0,
        admin_port: 0,
        workdir: cache().join("judge"),
        cache: cache(),
        patience: Duration::from_secs(120),
    };
    let running = super::start(&options)?;
    print(&running, false)?;
    let mut conformance = Command::new(env::current_exe().context("cannot find this program")?);
    conformance.args([
        "conformance",
        "--service-url",
        &running.service_url,
        "--admin-url",
        &running.admin_url,
    ]);
    conformance.args(["--reports", "target/stc-reports/real-broker"]);
    if let Some(tags) = &judge.tags {
        conformance.args(["--tags", tags]);
    }
    let status = conformance.current_dir(crate::workspace_root()).status();
    state::stop(&running.workdir)?;
    let code = status.context("the conformance run does not start")?.code();
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::ENVIRONMENT)))
}

fn start(start: &Start) -> anyhow::Result<ExitCode> {
    let options = Options {
        port: start.port,
        admin_port: start.admin_port,
        workdir: start.place.workdir(),
        cache: cache(),
        patience: Duration::from_secs(start.timeout),
    };
    if !start.foreground {
        let running = super::start(&options)?;
        print(&running, start.place.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Signals are held from here on: one that arrives while the broker comes up stops it as soon as it is known.
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for signals")?;
    let (running, child) = launch::launch(&options)?;
    let (sender, signal) = mpsc::channel();
    thread::spawn(move || signals.forever().try_for_each(|signal| sender.send(signal)));
    print(&running, start.place.json)?;
    stay(&running, child, &signal)
}

/// Waits for a signal, or for the broker to end by itself.
fn stay(running: &Running, mut child: Child, signal: &mpsc::Receiver<i32>) -> anyhow::Result<ExitCode> {
    loop {
        match signal.recv_timeout(Duration::from_millis(100)) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => {
                // The child must be reaped while `stop` waits for it to disappear.
                let reaper = thread::spawn(move || child.wait());
                state::stop(&running.workdir)?;
                let _ = reaper.join();
                return Ok(ExitCode::SUCCESS);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = child.try_wait().context("cannot watch the broker's process")? {
                    anyhow::bail!(
                        "the broker ended by itself ({status}); its log is {}",
                        running.log.display()
                    );
                }
            }
        }
    }
}

fn stop(place: &Place) -> anyhow::Result<ExitCode> {
    let stopped = state::stop(&place.workdir())?;
    if place.json {
        say(format_args!("{}", serde_json::json!({ "stopped": stopped })));
    } else if stopped {
        say(format_args!("The broker is stopped."));
    } else {
        say(format_args!("No broker runs in {}.", place.workdir().display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn status(place: &Place) -> anyhow::Result<ExitCode> {
    let Some(running) = Running::find(&place.workdir())? else {
        if place.json {
            say(format_args!("{}", serde_json::json!({ "running": false })));
        } else {
            say(format_args!("No broker runs in {}.", place.workdir().display()));
        }
        return Ok(ExitCode::from(exit::FAILED));
    };
    print(&running, place.json)?;
    Ok(ExitCode::SUCCESS)
}

fn print(running: &Running, json: bool) -> anyhow::Result<()> {
    if json {
        say(format_args!("{}", serde_json::to_string(running)?));
        return Ok(());
    }
    say(format_args!(
        "Pulsar 5.0.1 standalone, ready {:.1} s after its start",
        running.ready_ms as f64 / 1000.0
    ));
    say(format_args!("  service URL  {}", running.service_url));
    say(format_args!("  admin URL    {}", running.admin_url));
    say(format_args!("  process      {}", running.pid));
    say(format_args!("  log          {}", running.log.display()));
    say(format_args!("  to stop it   cargo xtask real-broker stop --workdir {}", running.workdir.display()));
    Ok(())
}
