//! The command: many sequences, several at once; a divergence runs again, is shrunk and printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use clap::Args;
use proptest::strategy::ValueTree;
use sim_broker::core::config::ClusterConfig;
use sim_broker::core::controller::groups::Pace;
use sim_broker::core::profile::Profile;
use stc_runner::output::say;
use xtask::exit::{self, UsageError};

use super::bench::{Bench, Checked, Other};
use super::broker::Broker;
use super::compare::Divergence;
use super::generate;
use super::op::{self, Op};
use super::report;
use super::shrink;

/// How long the real broker may take to get where the simulated one is; only a divergence takes that long.
const PATIENCE: Duration = Duration::from_secs(20);
/// The same while a divergence is shrunk, where waiting is the rule.
const SHRINKING: Duration = Duration::from_secs(6);

/// How many sequences a broker is warmed up with, which count for nothing.
const WARMING: u64 = 3;
/// How often a sequence that diverged runs by itself before that is put down to the moment.
const AGAIN: usize = 2;
/// Longer than any sequence.
const NEVER: u64 = 1 << 40;

/// The command line.
#[derive(Debug, Args)]
pub struct Options {
    /// How many sequences
    #[arg(long, default_value_t = 500)]
    sequences: u64,
    /// Decides the sequences; a fresh one by default
    #[arg(long)]
    seed: Option<u64>,
    /// Run one sequence again: SEED:NUMBER, or a file that an earlier run wrote
    #[arg(long, value_name = "FILE|SEED:NUMBER")]
    replay: Option<String>,
    /// How often, `--jobs` at once; what is chance shows then
    #[arg(long, requires = "replay", default_value_t = 1)]
    times: usize,
    /// How many sequences run at once on the real broker
    #[arg(long, default_value_t = 12)]
    jobs: usize,
    /// A broker that runs already, pulsar://host:port; without one the command starts its own
    #[arg(long, requires = "admin_url")]
    service_url: Option<String>,
    /// Its admin REST, http://host:port
    #[arg(long, requires = "service_url")]
    admin_url: Option<String>,
    /// How many sequences are tried to shrink a divergence
    #[arg(long, default_value_t = 60)]
    tries: usize,
    /// Stop after so many divergences
    #[arg(long, default_value_t = 5)]
    give_up_after: usize,
    /// How long divergences are looked into, all together: run again by themselves, and shrunk
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    look_into_for: u64,
}

/// A sequence and where it comes from.
#[derive(Clone)]
pub(super) struct Case {
    /// What `--replay` takes.
    pub(super) name: String,
    /// The steps.
    pub(super) ops: Vec<Op>,
}

/// Runs the sequences; the exit code is 1 when one diverges and nothing explains it.
///
/// # Errors
/// When the real broker does not start or cannot be reached, or the replay is none.
pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let profile = Profile::built_in("pulsar-5.0.1")?;
    let cases = cases(options)?;
    let broker = match options.service_url.as_deref().zip(options.admin_url.as_deref()) {
        Some((service_url, admin_url)) => Broker::at(service_url, admin_url),
        None => Broker::start(&place().join("broker"))?,
    };
    // The real controller prunes a minute after it began, where a sequence is over; here a step alone takes seconds.
    let profile = Profile { prune_interval_ms: NEVER, ..profile };
    let config = ClusterConfig::new(profile);
    // Every rest is longer than all of its polls, which slow down less here: the real side waits for the last.
    let pace = Pace { drain_poll_max_ms: 2_000, ..config.pace };
    let config = ClusterConfig { brokers: 1, pace, ..config };
    let other = Other::Broker(broker.service_url.clone(), broker.admin_url.clone());
    judge(options, &Bench::new(config, other), &cases)
}

fn place() -> PathBuf {
    xtask::workspace_root().join("target").join("differential")
}

fn cases(options: &Options) -> anyhow::Result<Vec<Case>> {
    let generated = |seed, number| {
        let tree = generate::sequence(seed, number).map_err(|reason| anyhow!(reason))?;
        Ok(Case { name: format!("{seed}:{number}"), ops: tree.current() })
    };
    let Some(replay) = &options.replay else {
        let fresh = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() % 1_000_000;
        let seed = options.seed.unwrap_or(fresh);
        say(format_args!("differential runs: {} sequences of seed {seed}", options.sequences));
        return (0..options.sequences).map(|number| generated(seed, number)).collect();
    };
    let numbers = replay.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    if let Some((seed, number)) = numbers {
        let case = generated(seed, number)?;
        say(format_args!("sequence {}:\n{}", case.name, op::script(&case.ops)));
        return Ok(vec![case; options.times]);
    }
    let text = fs::read_to_string(replay)
        .map_err(|error| UsageError(format!("{replay} is neither SEED:NUMBER nor a file ({error})")))?;
    let ops = serde_json::from_str(&text)
        .map_err(|error| UsageError(format!("{replay} does not hold a sequence: {error}")))?;
    Ok(vec![Case { name: replay.clone(), ops }; options.times])
}

#[derive(Default)]
struct Figures {
    sequences: usize,
    steps: usize,
    compared: usize,
    explained: BTreeMap<&'static str, usize>,
    diverged: Vec<(usize, Divergence)>,
    broken: Option<anyhow::Error>,
}

fn judge(options: &Options, bench: &Bench, cases: &[Case]) -> anyhow::Result<ExitCode> {
    warm_up(bench)?;
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let figures = Mutex::new(Figures::default());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, cases.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let number = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                    let Some(case) = cases.get(number) else { return };
                    let checked = bench.check(&case.ops, PATIENCE);
                    let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
                    if figures.add(number, checked, case) >= options.give_up_after {
                        return;
                    }
                }
            });
        }
    });
    let mut figures = figures.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = figures.broken.take() {
        return Err(error);
    }
    figures.diverged.sort_by_key(|(number, _)| *number);
    let diverged = std::mem::take(&mut figures.diverged);
    let took = began.elapsed();
    let until = Instant::now() + Duration::from_secs(options.look_into_for);
    let (mut diverge, mut once) = (Vec::new(), 0);
    for (number, found) in diverged {
        let Some(case) = cases.get(number) else { continue };
        // On a machine that is too busy an operation times out, or a sequence outlives a controller's patience with sealed
        // segments. What differs for such a reason does not when the sequence runs by itself.
        if let Some(again) = recurs(bench, case, &found, until)? {
            diverge.push((case, again));
        } else {
            once += 1;
            report::once(case, &found, AGAIN);
        }
    }
    let mut reports = Vec::new();
    for (case, found) in diverge {
        let shrunk = shrink::shrink(&case.ops, found.clone(), options.tries, |ops| {
            if Instant::now() > until {
                return None;
            }
            let divergence = bench.check(ops, SHRINKING).ok().and_then(|checked| checked.divergence);
            divergence.filter(|divergence| divergence.is_like(&found))
        });
        let file = place().join(format!("{}.json", case.name.replace([':', '/', '.'], "-")));
        write(&file, &shrunk.ops)?;
        reports.push(report::shrunk(case, &shrunk, &file));
    }
    figures.print(took, reports.len(), once);
    // The last lines of a log are those that are kept.
    reports.iter().for_each(say);
    Ok(ExitCode::from(if reports.is_empty() { 0 } else { exit::FAILED }))
}

/// The first clients of a broker that has just started wait for what it loads and compiles.
fn warm_up(bench: &Bench) -> anyhow::Result<()> {
    for number in 0..WARMING {
        let tree = generate::sequence(0, number).map_err(|reason| anyhow!(reason))?;
        bench.check(&tree.current(), PATIENCE)?;
    }
    Ok(())
}

/// Runs a sequence that diverged by itself; where there is no time left, what was found counts.
fn recurs(
    bench: &Bench,
    case: &Case,
    found: &Divergence,
    until: Instant,
) -> anyhow::Result<Option<Divergence>> {
    for _ in 0..AGAIN {
        if Instant::now() > until {
            return Ok(Some(found.clone()));
        }
        let checked = bench.check(&case.ops, PATIENCE)?;
        if checked.divergence.is_some() {
            return Ok(checked.divergence);
        }
    }
    Ok(None)
}

impl Figures {
    /// Adds a sequence; gives the number of divergences so far.
    fn add(&mut self, number: usize, checked: anyhow::Result<Checked>, case: &Case) -> usize {
        match checked {
            Ok(checked) => {
                self.sequences += 1;
                self.steps += checked.steps;
                self.compared += checked.compared;
                for number in checked.explained {
                    *self.explained.entry(number).or_default() += 1;
                }
                if let Some(divergence) = checked.divergence {
                    say(format_args!("sequence {} diverges in step {}", case.name, divergence.step));
                    self.diverged.push((number, divergence));
                }
            }
            Err(error) => {
                self.broken.get_or_insert(error.context(format!("sequence {}", case.name)));
                return usize::MAX;
            }
        }
        self.diverged.len()
    }

    fn print(&self, took: Duration, diverge: usize, once: usize) {
        say(format_args!(
            "differential runs: {} sequences, {} steps, {} observations compared in {} s; {diverge} diverge, {once} did \
             once and not again",
            self.sequences,
            self.steps,
            self.compared,
            took.as_secs(),
        ));
        for (number, times) in &self.explained {
            say(format_args!("  {number}: {times} differences or avoided steps, see docs/divergences.md"));
        }
    }
}

fn write(file: &Path, ops: &[Op]) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(ops)?;
    fs::create_dir_all(place())
        .and_then(|()| fs::write(file, text))
        .with_context(|| format!("cannot write {}", file.display()))
}
