//! Every scenario that a real broker can run, on the simulated cluster under the broker's profile and on the broker,
//! with the same clients; compared are the verdicts.
//!
//! | Module | Owns |
//! |---|---|
//! | `reach` | which scenarios these are, and what keeps the others away |
//! | `container` | the broker in a container |
//! | `target` | the broker, in a container or as a process, and its end |
//! | `compare` | the two runs, verdict by verdict |

mod compare;
mod container;
mod reach;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::Args;
use stc_reports::Report;
use stc_runner::adapter::factory::AdapterFactory;
use stc_runner::cli::adapter_words;
use stc_runner::client::reference::ReferenceFactory;
use stc_runner::output::say;
use stc_runner::run::{ClientFactory, Environment, RunConfig, Trace};
use stc_runner::select::Selection;
use stc_runner::suite::{Suite, Watching};
use stc_runner::target::TargetConfig;

use compare::{Comparison, Explained};
use reach::OutOfReach;
use target::Real;

/// The broker that both sides play.
const PROFILE: &str = "pulsar-5.0.1";
/// Scenarios that run at a time: over TCP they wait most of the time.
const JOBS: usize = 16;

/// The `crosscheck portable` command line.
#[derive(Debug, Default, Args)]
pub struct Portable {
    /// Start the real broker as a process instead of in a container
    #[arg(long)]
    no_containers: bool,
    /// List all scenarios, the portable ones and the others with what keeps them away, and end
    #[arg(long)]
    list: bool,
    /// Only this client: reference or java-v5
    #[arg(long, value_name = "NAME", value_parser = ["reference", "java-v5"])]
    client: Option<String>,
    /// Only this scenario, or all rows of this outline; may be given several times
    #[arg(long = "scenario", value_name = "ID")]
    scenarios: Vec<String>,
    /// Seed of all randomness [default: another one each time, which is printed]
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs both sides and compares. The exit code is 1 when a verdict differs and nobody explained it, or when what somebody
/// explained does not differ any more.
///
/// # Errors
/// When the broker, a client or a file cannot be had.
pub fn run(portable: &Portable) -> anyhow::Result<ExitCode> {
    let root = xtask::workspace_root();
    let suite = Suite::load(&root.join("features"))?;
    let reach = OutOfReach::load(&root.join("crosscheck/out-of-reach.yaml"))?;
    if portable.list {
        return list(&suite, &reach);
    }
    let explained = compare::explained(&root.join("crosscheck/differences.yaml"))?;
    let wanted = selected(&suite, &reach, portable)?;
    let seed = portable.seed.unwrap_or_else(|| u64::from(std::process::id()));
    let real = Real::start(portable.no_containers)?;
    say(format_args!("{} scenarios, seed {seed}, real broker at {}", wanted.len(), real.service_url()));
    let clients = ["reference", "java-v5"];
    let clients = clients.into_iter().filter(|name| portable.client.as_deref().is_none_or(|c| c == *name));
    let mut unexplained = 0;
    for (client, nth) in clients.zip(0..) {
        // Names of topics follow from the seed, and the real broker still has those of the runs before: each client has
        // a seed for its run and the next one for what runs again.
        let seed = seed.wrapping_add(2 * nth);
        let bench =
            Bench { suite: &suite, real: &real, client, seed, reports: root.join("target/crosscheck") };
        unexplained += bench.compare(&wanted, &explained)?;
    }
    drop(real);
    Ok(ExitCode::from(if unexplained == 0 { 0 } else { xtask::exit::FAILED }))
}

fn list(suite: &Suite, reach: &OutOfReach) -> anyhow::Result<ExitCode> {
    let mut portable = 0;
    for scenario in &suite.scenarios {
        match reach.of(scenario)? {
            None => {
                portable += 1;
                say(format_args!("{:<56} portable", scenario.id));
            }
            Some(why) => say(format_args!("{:<56} {why}", scenario.id)),
        }
    }
    say(format_args!("{portable} of {} scenarios are portable", suite.scenarios.len()));
    Ok(ExitCode::SUCCESS)
}

/// The ids of the scenarios to run.
fn selected(suite: &Suite, reach: &OutOfReach, portable: &Portable) -> anyhow::Result<Vec<String>> {
    let asked = Selection { scenarios: portable.scenarios.clone(), ..Selection::default() };
    let asked = asked.select(&suite.scenarios).map_err(|e| xtask::exit::UsageError(e.to_string()))?;
    let mut wanted = Vec::new();
    for scenario in asked {
        if reach.of(scenario)?.is_none() {
            wanted.push(scenario.id.clone());
        }
    }
    if wanted.is_empty() {
        return Err(xtask::exit::UsageError("no portable scenario is selected".to_owned()).into());
    }
    Ok(wanted)
}

/// One client on both sides.
struct Bench<'a> {
    suite: &'a Suite,
    real: &'a Real,
    client: &'a str,
    seed: u64,
    reports: PathBuf,
}

impl Bench<'_> {
    /// Compares, prints, and counts what nobody explained.
    fn compare(&self, wanted: &[String], explained: &[Explained]) -> anyhow::Result<usize> {
        let clock = Instant::now();
        let mut comparison = self.both(wanted, JOBS, self.seed)?;
        let reason = |scenario: &str| {
            explained.iter().find(|e| e.is_of(self.client) && e.scenario == scenario).map(|e| &e.reason)
        };
        let differ = std::mem::take(&mut comparison.differ);
        let (known, new): (Vec<_>, Vec<_>) = differ.into_iter().partition(|d| reason(&d.scenario).is_some());
        comparison.differ = known;
        let again: Vec<String> = new.into_iter().map(|d| d.scenario).collect();
        if !again.is_empty() {
            // Alone, so that a busy machine is no difference between two brokers.
            let seed = self.seed.wrapping_add(1);
            say(format_args!(
                "{}: these differ unexplained and run again, one at a time: {}",
                self.client,
                again.join(", ")
            ));
            let second = self.both(&again, 1, seed)?;
            comparison.differ.extend(second.differ);
            for (verdict, count) in second.alike {
                *comparison.alike.entry(verdict).or_default() += count;
            }
        }
        let mut unexplained = 0;
        for difference in &comparison.differ {
            let reason = reason(&difference.scenario);
            unexplained += usize::from(reason.is_none());
            say(format_args!("{}: {}", self.client, difference.scenario));
            say(format_args!("  simulator    {}", difference.simulator));
            say(format_args!("  real broker  {}", difference.real));
            say(format_args!("  {}", reason.map_or("NOT EXPLAINED", String::as_str)));
        }
        let differs = |e: &&Explained| comparison.differ.iter().any(|d| d.scenario == e.scenario);
        let ran = |e: &&Explained| e.is_of(self.client) && wanted.contains(&e.scenario);
        let stale: Vec<&Explained> =
            explained.iter().filter(ran).filter(|e| !e.by_chance && !differs(e)).collect();
        for entry in &stale {
            say(format_args!("{}: {} is explained and does not differ", self.client, entry.scenario));
        }
        let alike: Vec<String> = comparison.alike.iter().map(|(v, n)| format!("{n} {v}")).collect();
        say(format_args!(
            "{}: {} of {} scenarios end alike ({}), {} differ and are explained, {unexplained} are not explained; {:.0} s",
            self.client,
            comparison.agreed(),
            wanted.len(),
            alike.join(", "),
            comparison.differ.len() - unexplained,
            clock.elapsed().as_secs_f64(),
        ));
        Ok(unexplained + stale.len())
    }

    fn both(&self, wanted: &[String], jobs: usize, seed: u64) -> anyhow::Result<Comparison> {
        // At the same time, as both wait most of it; the real broker, which takes longer, shows how far it is.
        let (simulator, real) = std::thread::scope(|scope| {
            let simulator = scope.spawn(|| self.one(wanted, TargetConfig::Tcp, jobs, seed));
            let real = self.one(wanted, self.real.target(), jobs, seed);
            (simulator.join(), real)
        });
        let simulator = simulator.map_err(|_| anyhow!("the run on the simulator panicked"))?;
        Ok(Comparison::of(&simulator?, &real?))
    }

    fn one(&self, wanted: &[String], target: TargetConfig, jobs: usize, seed: u64) -> anyhow::Result<Report> {
        let real = target.elsewhere().is_some();
        let side = if real { "real" } else { "simulator" };
        let environment = Environment::new(target, PROFILE, self.factory()?);
        let name = format!("cargo xtask crosscheck portable --client {} --seed {seed}", self.client);
        let config = RunConfig {
            environment: Arc::new(environment),
            seed,
            jobs,
            trace: Trace::Failed,
            replay: name.clone(),
        };
        let selection = Selection { scenarios: wanted.to_vec(), ..Selection::default() };
        let watching = Watching { progress: real, fail_fast: false };
        let report = self.suite.run(&selection, &config, name, watching)?;
        let folder = self.reports.join(self.client).join(side);
        stc_reports::write_all(&report, &folder)
            .with_context(|| format!("cannot write the reports to {}", folder.display()))?;
        Ok(report)
    }

    fn factory(&self) -> anyhow::Result<Arc<dyn ClientFactory>> {
        if self.client == "reference" {
            return Ok(Arc::new(ReferenceFactory::default()));
        }
        let words = adapter_words(self.client)?;
        Ok(Arc::new(AdapterFactory::command(words).context("the adapter does not start")?))
    }
}
