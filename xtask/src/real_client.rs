//! The `real-client` command: a real SDK against the simulated cluster over TCP, judged by what the cluster stored.
//!
//! The adapters check what their client saw; the order in which messages were stored only the broker side knows.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;
use sim_broker::{core::ClusterConfig, core::profile::Profile, net::SimCluster, net::TcpOptions};
use stc_runner::stored;

use crate::adapters::Adapter;
use crate::exit;
use crate::soak;
use stc_runner::output::say;

/// The `real-client` command line.
#[derive(Debug, Args)]
pub struct RealClient {
    /// Which one: java-load, java-soak or python-classic
    adapter: Adapter,
    /// Brokers of the simulated cluster
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    brokers: u32,
    /// What the simulated brokers follow
    #[arg(long, default_value = "spec-1.0")]
    profile: String,
    /// Decides which broker owns what, and what the adapter does where it chooses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A broker elsewhere instead of the simulated cluster, pulsar://host:port; java-soak only, and no broker dies then
    #[arg(long, requires = "admin_url")]
    service_url: Option<String>,
    /// Its admin REST, http://host:port
    #[arg(long, requires = "service_url")]
    admin_url: Option<String>,
}

/// What the Java adapter prints, as far as the stored order needs it.
#[derive(Debug, Deserialize)]
struct Summary {
    topic: String,
    sent: u64,
    received: u64,
    /// By a second consumer of the subscription, which must find only what was sent after the first had closed.
    received_again: u64,
    sent_by_key: BTreeMap<String, Vec<String>>,
}

/// Starts a cluster, runs the adapter against it, and compares what was stored with what was sent.
///
/// # Errors
/// When the cluster or the adapter cannot start, or the adapter prints no summary.
pub fn run(args: &RealClient) -> anyhow::Result<ExitCode> {
    if args.adapter == Adapter::JavaSoak {
        return match args.service_url.as_deref().zip(args.admin_url.as_deref()) {
            Some((service, admin)) => soak::at(service, admin),
            None => {
                soak::run(&soak::Options { brokers: args.brokers, profile: &args.profile, seed: args.seed })
            }
        };
    }
    if args.service_url.is_some() {
        let reason =
            "only java-soak is judged on a broker elsewhere; `cargo xtask adapter` runs the others there";
        return Err(exit::UsageError(reason.to_owned()).into());
    }
    let profile = Profile::built_in(&args.profile).map_err(|error| exit::UsageError(error.to_string()))?;
    let runtime = tokio::runtime::Runtime::new().context("no threads for the simulated cluster")?;
    let config = ClusterConfig { brokers: args.brokers, seed: args.seed, ..ClusterConfig::new(profile) };
    let cluster = runtime
        .block_on(SimCluster::tcp(config, TcpOptions::default()))
        .context("the simulated cluster cannot listen")?;
    let outcome = judge(args, &cluster);
    runtime.block_on(cluster.shutdown());
    outcome
}

fn judge(args: &RealClient, cluster: &SimCluster) -> anyhow::Result<ExitCode> {
    let mut command = args.adapter.command()?;
    command.args(["--service-url", &cluster.service_url()]);
    command.args(["--admin-url", cluster.admin_urls().first().map_or("", String::as_str)]);
    if args.adapter != Adapter::JavaLoad {
        let status = command.status().context("the adapter does not start")?;
        return Ok(ExitCode::from(if status.success() { 0 } else { exit::FAILED }));
    }
    command.args(["--seed", &args.seed.to_string()]);
    let summary = summary(&mut command)?;
    let messages = stored::in_cluster(&cluster.control(), &summary.topic)
        .map_err(|trouble| anyhow::anyhow!("cannot read what {} stores: {trouble}", summary.topic))?;
    let mut stored: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in &messages {
        let Some(key) = &message.key else {
            bail!("a message without a key is stored at {}", message.place())
        };
        stored.entry(key.clone()).or_default().push(message.text());
    }
    let layouts = messages.iter().filter_map(|m| m.segment).collect::<std::collections::BTreeSet<_>>().len();
    say(format_args!(
        "java-load: {} sent, {} received and {} by the next consumer, {} stored in {layouts} segments, {} keys",
        summary.sent,
        summary.received,
        summary.received_again,
        messages.len(),
        stored.len()
    ));
    let wrong: Vec<&String> = summary
        .sent_by_key
        .iter()
        .filter(|(key, sent)| stored.get(*key) != Some(*sent))
        .map(|(k, _)| k)
        .collect();
    if wrong.is_empty() && stored.len() == summary.sent_by_key.len() {
        say(format_args!("the stored order of every key is its send order"));
        return Ok(ExitCode::SUCCESS);
    }
    for key in &wrong {
        say(format_args!("key {key:?}: sent   {:?}", summary.sent_by_key.get(*key)));
        say(format_args!("key {key:?}: stored {:?}", stored.get(*key)));
    }
    say(format_args!(
        "{} of {} keys are not stored as they were sent",
        wrong.len(),
        summary.sent_by_key.len()
    ));
    Ok(ExitCode::from(exit::FAILED))
}

/// Runs the adapter; a failed check of its own is an error that shows what it printed.
fn summary(command: &mut Command) -> anyhow::Result<Summary> {
    let output = command.stderr(Stdio::inherit()).output().context("the adapter does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("the adapter ended with {}: {}", output.status, text.trim_end());
    }
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("the adapter printed no summary: {line:?}"))
}
