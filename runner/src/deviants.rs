//! Tests the suite itself: the reference client with one behaviour broken on purpose must be caught.
//!
//! A deviant is caught when a step that asserts one of the requirements it breaks ends a scenario that cites the
//! requirement with *fail*. A panic, a hang or a fault of the suite does not count. Beside it, scenarios that have
//! nothing to do with the deviation must still pass: a client that is broken altogether would be caught by anything.
//!
//! The other way round, a requirement is proven when a deviant that breaks it is caught at it. What is neither proven nor
//! has a reason in the catalogue fails the command (`proof`), and so does a scenario that every deviant passes.

mod bench;
mod proof;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use clap::Args;
use stc_client::{Deviant, DeviantInfo};
use stc_reports::ExitCode;

use crate::cli;
use crate::output::{complain, say};
use crate::suite::Suite;
use bench::{Bench, Catch, Outcome, message};
use proof::Proof;

/// Runs every deviant of the reference client against the scenarios that are to catch it.
#[derive(Debug, Clone, Args)]
pub struct DeviantsArgs {
    /// Only this deviant; may be given several times
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// List the deviants instead of running them
    #[arg(long)]
    pub list: bool,
    /// How many scenarios run at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Seed of all randomness [default: another one each time]
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Runs as the arguments say and prints the outcome. `program` is how the conformance command is called, for the
/// commands to paste.
pub fn deviants(args: &DeviantsArgs, features: &Path, program: &str) -> ExitCode {
    let (suite, chosen) = match prepare(args, features) {
        Ok(prepared) => prepared,
        Err(message) => {
            complain(format_args!("error: {message}"));
            return ExitCode::Usage;
        }
    };
    if args.list {
        for info in chosen {
            say(format_args!("{:<28} {:<32} {}", info.name, info.requirements.join(" "), info.what));
        }
        return ExitCode::Conforms;
    }
    let started = Instant::now();
    let bench = Bench {
        suite: &suite,
        seed: args.seed.unwrap_or_else(cli::fresh_seed),
        jobs: args.jobs.map_or_else(cli::default_jobs, usize::from),
        program,
    };
    let sound = bench.baseline(&chosen);
    if !sound.is_empty() {
        for result in sound {
            say(format_args!(
                "{}: {} without any deviation: {}",
                result.id,
                result.verdict,
                message(&result)
            ));
        }
        say(format_args!("deviants prove nothing while the reference client itself does not pass"));
        return ExitCode::Harness;
    }
    let mut failed = BTreeSet::new();
    let mut outcomes: Vec<(&DeviantInfo, Outcome)> = Vec::new();
    for info in &chosen {
        let (outcome, seen) = bench.run(info);
        outcomes.push((*info, outcome));
        failed.extend(seen);
    }
    let count = |which: fn(&Outcome) -> bool| outcomes.iter().filter(|(_, o)| which(o)).count();
    let caught = count(|o| matches!(o, Outcome::Caught(_)));
    let waiting = count(|o| matches!(o, Outcome::Waits(_)));
    let survivors = count(|o| !o.is_good());
    say(table(&outcomes, !args.only.is_empty()).trim_end());
    say(format_args!(
        "\n{} deviants: {caught} caught, {survivors} not caught, {waiting} wait for their scenarios; {:.1} s, seed {}",
        outcomes.len(),
        started.elapsed().as_secs_f64(),
        bench.seed
    ));
    // Some deviants alone say nothing about what none of them breaks.
    let proof = args.only.is_empty().then(|| Proof::new(&suite, outcomes.iter().map(|(_, outcome)| outcome)));
    if let Some(proof) = &proof {
        say(proof.text().trim_end());
    }
    let mut good = survivors == 0 && proof.is_none_or(|p| p.is_complete());
    if args.only.is_empty() {
        let all = suite.scenarios.iter().map(|scenario| scenario.id.as_str());
        let unseen = bench.never_fail(all.filter(|id| !failed.contains(*id)).collect(), &chosen);
        for id in &unseen {
            say(format_args!("NEVER FAILS  {id}: every deviant passes it"));
        }
        let count = suite.scenarios.len();
        say(format_args!("{} of {count} scenarios fail for some deviant", count - unseen.len()));
        good &= unseen.is_empty();
    }
    if good { ExitCode::Conforms } else { ExitCode::DoesNotConform }
}

type Prepared = (Suite, Vec<&'static DeviantInfo>);

fn prepare(args: &DeviantsArgs, features: &Path) -> Result<Prepared, String> {
    let suite = Suite::load(features).map_err(|e| e.to_string())?;
    if let Some(unknown) = args.only.iter().find(|name| Deviant::by_name(name).is_none()) {
        return Err(format!("--only: there is no deviant {unknown:?}; --list names them all"));
    }
    let wanted = |info: &&DeviantInfo| args.only.is_empty() || args.only.iter().any(|n| n == info.name);
    Ok((suite, Deviant::all().iter().filter(wanted).collect()))
}

/// One line for each deviant; with `whole`, everything that its scenarios caught.
fn table(outcomes: &[(&DeviantInfo, Outcome)], whole: bool) -> String {
    let width = outcomes.iter().map(|(info, _)| info.name.len()).max().unwrap_or(0);
    let mut table = String::new();
    for (info, outcome) in outcomes {
        let lines = match outcome {
            Outcome::Caught(catches) => {
                let shown = if whole { catches.len() } else { 1 };
                catches.iter().take(shown).map(Catch::line).collect()
            }
            Outcome::Waits(reason) => {
                vec![format!("waits     {}", reason.split('.').next().unwrap_or(reason))]
            }
            Outcome::NoScenario => {
                vec![format!("SURVIVES  no scenario cites {}", info.requirements.join(" or "))]
            }
            Outcome::Survived(findings) => {
                let findings = findings.iter().map(|finding| format!("  {finding}"));
                [format!("SURVIVES  {}", info.what)].into_iter().chain(findings).collect()
            }
            Outcome::Harmful(what) => vec![format!("HARMS     {what}")],
        };
        for line in lines {
            // Writing to a string cannot fail.
            let _ = writeln!(table, "{:<width$}  {line}", info.name);
        }
    }
    table
}
