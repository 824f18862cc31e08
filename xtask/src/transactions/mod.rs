//! Transactions under seeded schedules: a thousand small worlds in which applications open, fill and end transactions
//! while brokers die, coordinators lose their leaders, layouts change and connections break. Whatever happens, a
//! transaction shows whole or not at all.
//!
//! - [`applications`]: what uses transactions, and what it was told
//! - [`disturbances`]: what goes wrong meanwhile
//! - [`schedule`]: one world from its beginning to its verdict
//!
//! Two readers judge. One has the journal and nothing else ([`stc_runner::atomicity`]); the other compares what the
//! applications were told with what arrived.

pub mod applications;
pub mod disturbances;
pub mod schedule;

use std::ops::AddAssign;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Args;
use stc_runner::client::reference::Deviant;
use stc_runner::output::say;

use crate::exit;

/// The `transactions` command line.
#[derive(Debug, Args)]
pub struct Transactions {
    /// How many schedules
    #[arg(long, value_name = "N", default_value_t = 1000)]
    schedules: u64,
    /// Seed of the first schedule; the next ones have the next numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Break this behaviour of the reference client, to see that it is noticed
    #[arg(long, value_name = "NAME")]
    deviant: Option<String>,
}

/// What schedules were about, in numbers: a run in which something never happened proves nothing of it.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // the names say it
pub struct Figures {
    pub committed: u64,
    pub aborted: u64,
    /// Transactions of which the application does not know what became.
    pub unknown: u64,
    pub conflicts: u64,
    pub messages: u64,
    pub acknowledgements: u64,
    /// Messages that came to the readers.
    pub received: u64,
    pub deaths: u64,
    pub depositions: u64,
    pub splits: u64,
    pub merges: u64,
    pub breaks: u64,
    pub faults: u64,
}

impl Figures {
    fn all(&self) -> [(&'static str, u64); 13] {
        [
            ("transactions committed", self.committed),
            ("aborted", self.aborted),
            ("of unknown end", self.unknown),
            ("conflicts", self.conflicts),
            ("messages sent in them", self.messages),
            ("acknowledgements made in them", self.acknowledgements),
            ("messages received", self.received),
            ("brokers died", self.deaths),
            ("coordinators deposed", self.depositions),
            ("splits", self.splits),
            ("merges", self.merges),
            ("broken connections", self.breaks),
            ("faults struck", self.faults),
        ]
    }
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.unknown += other.unknown;
        self.conflicts += other.conflicts;
        self.messages += other.messages;
        self.acknowledgements += other.acknowledgements;
        self.received += other.received;
        self.deaths += other.deaths;
        self.depositions += other.depositions;
        self.splits += other.splits;
        self.merges += other.merges;
        self.breaks += other.breaks;
        self.faults += other.faults;
    }
}

/// What came of some schedules.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What happened in all of them.
    pub figures: Figures,
    /// What contradicts all or nothing, each with the seed of its schedule.
    pub violations: Vec<(u64, String)>,
}

impl Outcome {
    /// What never happened.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        self.figures.all().into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect()
    }
}

/// Runs schedules, on all cores.
///
/// # Errors
/// When a world cannot be set up.
pub fn explore(seeds: std::ops::Range<u64>, deviant: Option<Deviant>) -> anyhow::Result<Outcome> {
    let next = AtomicU64::new(seeds.start);
    let work = || -> anyhow::Result<Outcome> {
        let mut outcome = Outcome::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return Ok(outcome);
            }
            let (figures, violations) = schedule::run(seed, deviant)?;
            outcome.figures += figures;
            outcome.violations.extend(violations.into_iter().map(|violation| (seed, violation)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<_> = std::thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        working.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut whole = Outcome::default();
    for part in parts {
        let part = part.map_err(|_| anyhow::anyhow!("a schedule panicked"))??;
        whole.figures += part.figures;
        whole.violations.extend(part.violations);
    }
    whole.violations.sort();
    Ok(whole)
}

/// Runs the command. Exit code 0 when every transaction was whole or not at all, 1 when one was not or something never
/// happened, 2 usage, 3 when a world cannot be set up.
///
/// # Errors
/// When there is no such deviant, or a world cannot be set up.
pub fn run(args: &Transactions) -> anyhow::Result<ExitCode> {
    let deviant = match &args.deviant {
        None => None,
        Some(name) => Some(
            Deviant::by_name(name)
                .ok_or_else(|| exit::UsageError(format!("--deviant: there is no deviant {name:?}")))?,
        ),
    };
    let began = Instant::now();
    let outcome = explore(args.seed..args.seed.saturating_add(args.schedules), deviant)?;
    let figures: Vec<String> = outcome.figures.all().iter().map(|(name, n)| format!("{n} {name}")).collect();
    say(format_args!(
        "{} schedules from seed {} in {:.1} s: {}",
        args.schedules,
        args.seed,
        began.elapsed().as_secs_f64(),
        figures.join(", ")
    ));
    for (seed, violation) in &outcome.violations {
        say(format_args!("seed {seed}: {violation}"));
    }
    // A few schedules do not have everything.
    let missing = if args.schedules < 100 { Vec::new() } else { outcome.missing() };
    for what in &missing {
        say(format_args!("never happened: {what}"));
    }
    if outcome.violations.is_empty() && missing.is_empty() {
        say("every transaction was whole or not at all");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(exit::FAILED))
}
