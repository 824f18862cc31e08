//! The `sim-broker` command: a simulated Pulsar cluster over TCP. It is part of the library, so that another program can
//! have it as a command of its own.

mod arguments;

use std::{
    io::{IsTerminal, Write},
    net::IpAddr,
    path::PathBuf,
    process::ExitCode,
};

use crate::{
    SimCluster, TcpOptions,
    core::{ClusterConfig, JournalConfig, Profile},
    net::TlsOptions,
};
use anyhow::Context;
use arguments::{SecurityOptions, TlsArguments, ports_exist};
use clap::{Parser, value_parser};
use serde_json::json;
use tracing_subscriber::EnvFilter;

/// A simulated Apache Pulsar cluster with Scalable Topics, for testing clients.
///
/// It speaks Pulsar's binary protocol and admin REST, keeps everything in memory, and starts empty, with the namespace
/// public/default. Point any Pulsar client at the service URL that it prints. Every frame goes into a journal, and
/// faults can be armed, over the control API below /control/v1 on the admin ports.
#[derive(Debug, Parser)]
#[command(name = "sim-broker", version, after_help = EXAMPLES)]
pub struct Options {
    /// Port of the first broker; broker i listens on PORT+i. 0 picks free ports
    #[arg(long, value_name = "PORT", default_value_t = 6650)]
    port: u16,

    /// Admin port of the first broker; broker i listens on PORT+i. 0 picks free ports
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    admin_port: u16,

    /// Address to listen at, which lookups hand out too
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,

    /// Host that lookups hand out instead, where clients reach it under another one, such as from outside a container
    #[arg(long, value_name = "HOST", value_parser = host)]
    advertise: Option<String>,

    /// How many brokers the cluster has
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=64))]
    brokers: u32,

    /// Which broker to play: spec-1.0, pulsar-5.0.1, pulsar-5.0.0-M1, or a file in YAML
    #[arg(long, value_name = "NAME|FILE", default_value = "spec-1.0")]
    profile: String,

    /// Decides which broker owns which topic
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// How long the topics of a killed broker stay unavailable, in ms
    #[arg(long, value_name = "MS", default_value_t = 1_000)]
    failover: u64,

    /// How many transaction coordinators the cluster has
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(1..=1024))]
    coordinators: u32,

    /// Answer lookups at a broker that does not own the topic with a redirect
    #[arg(long)]
    redirect_lookups: bool,

    /// Put optional fields that no client knows into every command, as a later release may
    #[arg(long)]
    unknown_fields: bool,

    /// How many records the journal keeps
    #[arg(long, value_name = "N", default_value_t = JournalConfig::default().capacity)]
    journal: usize,

    /// Keep message payloads out of the journal, to save memory
    #[arg(long)]
    no_journal_payloads: bool,

    /// Print the URLs as one JSON line
    #[arg(long)]
    json: bool,

    /// End when standard input closes, as it does when the parent process dies
    #[arg(long)]
    exit_with_parent: bool,

    #[command(flatten)]
    security: SecurityOptions,

    #[command(flatten)]
    tls: TlsArguments,
}

const EXAMPLES: &str = "\
Examples:
  sim-broker                               three brokers at pulsar://127.0.0.1:6650, :6651 and :6652
  sim-broker --port 0 --admin-port 0 --json --exit-with-parent
                                           for a test: free ports, URLs as JSON, gone with the test
  sim-broker --token admin=s3cret --superuser admin --token alice=t0ken --grant alice=public/default:produce
                                           alice's client uses the token t0ken, and may produce but not consume
  sim-broker --tls --tls-trust ca.pem      also pulsar+ssl://127.0.0.1:6750; clients trust ca.pem
  curl localhost:8080/control/v1/journal   what went over the wire

Ends on SIGINT or SIGTERM. RUST_LOG=debug shows more.";

/// Parses the command line and serves as it says.
pub fn main() -> ExitCode {
    serve(&Options::parse())
}

impl Options {
    /// The host that lookups hand out.
    fn host(&self) -> String {
        self.advertise.clone().unwrap_or_else(|| self.bind.to_string())
    }
}

/// A host without scheme and port; an address of IPv6 has no brackets.
fn host(text: &str) -> Result<String, String> {
    let name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let fits = text.parse::<IpAddr>().is_ok() || !text.is_empty() && text.chars().all(name);
    fits.then(|| text.to_owned())
        .ok_or_else(|| "it has to be a host's name or address, without a port".to_owned())
}

/// Serves until it is told to end. Exit codes: 0 ended as asked, 2 the configuration cannot be used, 3 the environment
/// failed.
pub fn serve(options: &Options) -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn")))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let configured = configure(options)
        .and_then(|config| Ok((config, options.tls.read(options.brokers, &options.host())?)));
    let (config, tls) = match configured {
        Ok(configured) => configured,
        Err(error) => return fail(&error, 2),
    };
    let run = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(run(options, config, tls)));
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, 3),
    }
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    // Standard error may be closed; there is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "sim-broker: {error:#}");
    ExitCode::from(code)
}

fn configure(options: &Options) -> anyhow::Result<ClusterConfig> {
    let profile = profile(&options.profile)?;
    for (name, first) in [("--port", options.port), ("--admin-port", options.admin_port)] {
        ports_exist(name, first, options.brokers)?;
    }
    Ok(ClusterConfig {
        brokers: options.brokers,
        seed: options.seed,
        failover_ms: options.failover,
        coordinators: options.coordinators,
        redirect_lookups: options.redirect_lookups,
        unknown_fields: options.unknown_fields,
        security: options.security.security()?,
        journal: JournalConfig { capacity: options.journal.max(1), payloads: !options.no_journal_payloads },
        ..ClusterConfig::new(profile)
    })
}

/// A built-in profile, or the one in a file.
fn profile(given: &str) -> anyhow::Result<Profile> {
    let file = PathBuf::from(given);
    match Profile::built_in(given) {
        // What looks like a file is one, so that the message is about the file that is not there.
        Err(_) if file.exists() || file.extension().is_some_and(|e| e == "yaml" || e == "yml") => {
            let text =
                std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            Profile::parse(&text).with_context(|| file.display().to_string())
        }
        Err(error) => Err(error).context("no file of that name either"),
        Ok(profile) => Ok(profile),
    }
}

async fn run(options: &Options, config: ClusterConfig, tls: Option<TlsOptions>) -> anyhow::Result<()> {
    let profile = config.profile.name.clone();
    let (port, admin_port) = (options.port, options.admin_port);
    let tcp = TcpOptions { bind: options.bind, advertise: options.advertise.clone(), port, admin_port, tls };
    // Whoever reads that it is ready may end it at once.
    let mut signals = Signals::listen()?;
    let cluster = SimCluster::tcp(config, tcp).await?;
    if let Some(certificate) = cluster.tls() {
        options.tls.write_trust(certificate)?;
    }
    announce(options, &cluster, &profile).context("cannot print the URLs")?;
    let end = async {
        if options.exit_with_parent {
            stdin_closed().await;
        } else {
            std::future::pending().await
        }
    };
    tokio::select! {
        result = signals.asked_to_end() => result?,
        () = end => {}
    }
    cluster.shutdown().await;
    Ok(())
}

/// Tells that the cluster accepts connections, and where. One write, as the reader may go away after the first line.
fn announce(options: &Options, cluster: &SimCluster, profile: &str) -> std::io::Result<()> {
    let (brokers, admins) = (cluster.broker_urls(), cluster.admin_urls());
    let (brokers_tls, admins_tls) = (cluster.broker_urls_tls(), cluster.admin_urls_tls());
    let control = admins.first().map(|url| format!("{url}/control/v1"));
    let text = if options.json {
        let line = json!({
            "service_url": cluster.service_url(),
            "admin_url": admins.first(),
            "broker_urls": brokers,
            "admin_urls": admins,
            "service_url_tls": brokers_tls.first(),
            "admin_url_tls": admins_tls.first(),
            "broker_urls_tls": brokers_tls,
            "admin_urls_tls": admins_tls,
            "tls_trust": cluster.tls().map(|tls| tls.trust_pem()),
            "control_url": control,
            "profile": profile,
            "seed": options.seed,
            "pid": std::process::id(),
        });
        format!("{line}\n")
    } else {
        let lines: String = (0..)
            .zip(brokers.iter().zip(&admins))
            .map(|(i, (broker, admin))| format!("  broker {i}  {broker}  admin {admin}\n"))
            .chain(
                (0..)
                    .zip(brokers_tls.iter().zip(&admins_tls))
                    .map(|(i, (broker, admin))| format!("  broker {i}  {broker}  admin {admin}\n")),
            )
            .collect();
        let control = control.unwrap_or_default();
        let seed = options.seed;
        format!(
            "sim-broker plays {profile}, seed {seed}\n{lines}  control   {control}\nready; Ctrl-C ends it\n"
        )
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Resolves when standard input ends, or cannot be read.
async fn stdin_closed() {
    let (sender, closed) = tokio::sync::oneshot::channel();
    // A thread, as reading standard input cannot be cancelled; it ends with the process.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = sender.send(());
    });
    let _ = closed.await;
}

/// SIGINT and SIGTERM; elsewhere Ctrl-C.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// From now on, a signal is noted instead of killing the process.
    fn listen() -> anyhow::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
            let terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
            Ok(Signals { interrupt, terminate })
        }
        #[cfg(not(unix))]
        Ok(Signals {})
    }

    /// Resolves when the process is asked to end.
    async fn asked_to_end(&mut self) -> anyhow::Result<()> {
        #[cfg(unix)]
        {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
            Ok(())
        }
        #[cfg(not(unix))]
        tokio::signal::ctrl_c().await.context("cannot listen for Ctrl-C")
    }
}
