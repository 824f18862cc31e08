//! The command line of a conformance run, shared by every program that offers one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};

use crate::run::{ClientFactory, Environment, RunConfig, Trace};
use crate::select::Selection;
use crate::target::TargetConfig;

mod client;
mod judge;
mod rounds;

pub use client::{ClientArgs, DeviantArg, adapter_words};
use judge::Problem;
pub use judge::conformance;

/// Runs the scenarios and judges the client.
#[derive(Debug, Clone, Args)]
pub struct ConformanceArgs {
    /// Which client.
    #[command(flatten)]
    pub client: ClientArgs,
    /// The simulated cluster to run against: in this process under virtual time, or over TCP [default: memory; tcp for
    /// a client in another process]
    #[arg(long, value_enum, conflicts_with = "service_url")]
    pub target: Option<TargetArg>,
    /// Run against a broker elsewhere, pulsar://host:port; scenarios that need faults or the journal are left out
    #[arg(long, value_name = "URL", requires = "admin_url", value_parser = |url: &str| with_scheme(url, ["pulsar", "pulsar+ssl"]))]
    pub service_url: Option<String>,
    /// Admin REST of that broker, http://host:port
    #[arg(long, value_name = "URL", requires = "service_url", value_parser = |url: &str| with_scheme(url, ["http", "https"]))]
    pub admin_url: Option<String>,
    /// Stand between client and broker: a proxy of each scenario's own gives the journal, and loses, holds, delays and
    /// answers frames and breaks connections
    #[arg(long, requires = "service_url")]
    pub proxy: bool,
    /// Only scenarios whose tags match, such as '@C2 and not @needs-control'
    #[arg(long, value_name = "EXPRESSION")]
    pub tags: Option<String>,
    /// Only this scenario, or all rows of this outline; may be given several times
    #[arg(long = "scenario", value_name = "ID")]
    pub scenarios: Vec<String>,
    /// Not this scenario, or no row of this outline; may be given several times
    #[arg(long = "skip", value_name = "ID")]
    pub skip: Vec<String>,
    /// Failures that are known: scenario, reason and how the message begins, as YAML [default: that of an adapter in
    /// adapters/]
    #[arg(long, value_name = "FILE")]
    pub known_failures: Option<PathBuf>,
    /// Rewrite the list of known failures so that it fits this run; new entries wait for a reason, and excuse nothing before
    #[arg(long, conflicts_with_all = ["tags", "scenarios", "skip", "fail_fast", "repeat", "list"])]
    pub fix: bool,
    /// Begin no further scenario once one has failed
    #[arg(long)]
    pub fail_fast: bool,
    /// Run everything this often, with another seed each time, and tell which verdicts differ
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: Option<u16>,
    /// List the scenarios instead of running them
    #[arg(long)]
    pub list: bool,
    /// How many scenarios run at a time; the results do not depend on it [default: one for each core, more over TCP]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Seed of all randomness [default: another one each time; the report names it]
    #[arg(long)]
    pub seed: Option<u64>,
    /// What the simulated brokers follow: the specification, or a released broker with its departures
    #[arg(long, default_value = "spec-1.0")]
    pub profile: String,
    /// Whose wire transcripts the reports keep
    #[arg(long, value_enum, default_value = "failed")]
    pub trace: TraceArg,
    /// Folder for the reports
    #[arg(long, value_name = "DIR", default_value = "target/stc-reports")]
    pub reports: PathBuf,
    /// How long one step may take, in seconds; in memory it is virtual time and not changed by this [default: 90]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: Option<u64>,
}

/// Another kind of URL would end in verdicts on the client.
fn with_scheme(url: &str, schemes: [&str; 2]) -> Result<String, String> {
    match url.split_once("://") {
        Some((scheme, host)) if schemes.contains(&scheme) && !host.is_empty() => Ok(url.to_owned()),
        _ => Err(format!("it has to look like {}://host:port", schemes[0])),
    }
}

/// `--target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TargetArg {
    /// In this process, under virtual time.
    Memory,
    /// Over TCP.
    Tcp,
}

/// `--trace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceArg {
    /// Of all scenarios.
    All,
    /// Of those that did not pass.
    Failed,
}

fn environment(args: &ConformanceArgs, client: Arc<dyn ClientFactory>) -> Result<Environment, Problem> {
    let target = target(args).map_err(Problem::Usage)?;
    let mut environment = Environment::new(target, &args.profile, client);
    environment.step_limit = args.timeout.map(Duration::from_secs);
    if args.client.attach.is_some() {
        // Somebody may be looking at it in a debugger.
        environment.step_limit.get_or_insert(Duration::from_secs(86_400));
    }
    Ok(environment)
}

fn config(args: &ConformanceArgs, program: &str, environment: &Arc<Environment>, seed: u64) -> RunConfig {
    RunConfig {
        environment: Arc::clone(environment),
        seed,
        jobs: args.jobs.map_or_else(|| jobs(args, &environment.target), usize::from),
        trace: match args.trace {
            TraceArg::All => Trace::All,
            TraceArg::Failed => Trace::Failed,
        },
        replay: replay(args, program, &environment.target, seed),
    }
}

fn target(args: &ConformanceArgs) -> Result<TargetConfig, String> {
    if let (Some(service_url), Some(admin_url)) = (&args.service_url, &args.admin_url) {
        let (service_url, admin_url) = (service_url.clone(), admin_url.clone());
        return Ok(match args.proxy {
            true if !service_url.starts_with("pulsar://") => {
                return Err(
                    "--proxy: it speaks no TLS; the service URL has to be pulsar://host:port".to_owned()
                );
            }
            true => TargetConfig::Proxied { service_url, admin_url },
            false => TargetConfig::Url { service_url, admin_url },
        });
    }
    match (args.target, args.client.is_outside()) {
        (Some(TargetArg::Memory), true) => {
            Err("--target memory: a client in another process cannot reach it; leave it out".to_owned())
        }
        (Some(TargetArg::Memory), false) | (None, false) => Ok(TargetConfig::Memory),
        (Some(TargetArg::Tcp), _) | (None, true) => Ok(TargetConfig::Tcp),
    }
}

/// How many scenarios at a time, where nobody says.
fn jobs(args: &ConformanceArgs, target: &TargetConfig) -> usize {
    if args.client.attach.is_some() {
        return 1;
    }
    match target {
        // Over TCP a scenario waits most of the time, in memory it never does.
        TargetConfig::Tcp => 8 * default_jobs(),
        // A broker elsewhere is not to be stressed.
        TargetConfig::Memory | TargetConfig::Url { .. } | TargetConfig::Proxied { .. } => default_jobs(),
    }
}

/// The command that repeats a run, but for the selection.
fn replay(args: &ConformanceArgs, program: &str, target: &TargetConfig, seed: u64) -> String {
    let mut command = format!("{program}{}", args.client.replay());
    match target.elsewhere() {
        Some((service_url, admin_url)) => {
            command.push_str(&format!(
                " --service-url {} --admin-url {}",
                quoted(service_url),
                quoted(admin_url)
            ));
        }
        None => command.push_str(&format!(" --target {}", target.kind().as_str())),
    }
    if matches!(target, TargetConfig::Proxied { .. }) {
        command.push_str(" --proxy");
    }
    command.push_str(&format!(" --seed {seed}"));
    if args.profile != "spec-1.0" {
        command.push_str(&format!(" --profile {}", quoted(&args.profile)));
    }
    if let Some(timeout) = args.timeout {
        command.push_str(&format!(" --timeout {timeout}"));
    }
    command
}

fn with_selection(replay: &str, selection: &Selection) -> String {
    let mut command = replay.to_owned();
    if let Some(tags) = &selection.tags {
        command.push_str(&format!(" --tags {}", quoted(tags)));
    }
    for (option, names) in [("--scenario", &selection.scenarios), ("--skip", &selection.skip)] {
        for name in names {
            command.push_str(&format!(" {option} {}", quoted(name)));
        }
    }
    command
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// As many scenarios at a time as there are cores.
pub(crate) fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A seed that differs from run to run. Small enough to type.
pub(crate) fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell_where_they_need_it() {
        assert_eq!(quoted("C2-keyed/nai-ve"), "C2-keyed/nai-ve");
        assert_eq!(quoted("@C2 and not @C3"), "'@C2 and not @C3'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
