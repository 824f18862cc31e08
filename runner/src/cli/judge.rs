//! One command: what to run, what is excused, what to print, how to exit.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sim_broker::core::profile::Profile;
use stc_reports::{ExitCode, Report, terminal};

use super::rounds::{self, Rounds};
use super::{ConformanceArgs, config, environment, fresh_seed, target, with_selection};
use crate::client::paired::PairedFactory;
use crate::known::{KnownError, KnownFailures};
use crate::output::{complain, say};
use crate::run::ClientFactory;
use crate::select::{Selection, SelectionError};
use crate::suite::{Suite, Watching};

/// Runs as the arguments say, prints the outcome, writes the reports. `program` is how the command is called, for the
/// commands to paste.
pub fn conformance(args: &ConformanceArgs, suite: &Suite, program: &str) -> ExitCode {
    let selection = Selection {
        tags: args.tags.clone(),
        scenarios: args.scenarios.clone(),
        skip: args.skip.clone(),
        paired: args.client.peer.is_some(),
    };
    let known = Profile::built_in(&args.profile).map_err(|e| Problem::Usage(format!("--profile: {e}")));
    let outcome = known.and_then(|_| match args.list {
        true => Ok(list(suite, &selection)),
        false => judge(args, suite, program, &selection),
    });
    outcome.unwrap_or_else(|problem| {
        complain(format_args!("error: {problem}"));
        problem.code()
    })
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    /// The command line or a file that it names is wrong.
    #[error("{0}")]
    Usage(String),
    /// The client does not start, or a file cannot be written.
    #[error("{0}")]
    Environment(String),
}

impl Problem {
    fn code(&self) -> ExitCode {
        match self {
            Problem::Usage(_) => ExitCode::Usage,
            Problem::Environment(_) => ExitCode::Harness,
        }
    }
}

impl From<SelectionError> for Problem {
    fn from(error: SelectionError) -> Problem {
        Problem::Usage(error.to_string())
    }
}

impl From<KnownError> for Problem {
    fn from(error: KnownError) -> Problem {
        Problem::Usage(error.to_string())
    }
}

fn judge(
    args: &ConformanceArgs,
    suite: &Suite,
    program: &str,
    selection: &Selection,
) -> Result<ExitCode, Problem> {
    // What can be wrong without a client is found before one is started.
    selection.select(&suite.scenarios)?;
    target(args).map_err(Problem::Usage)?;
    let list = known_failures(args)?;
    let client = args.client.factory()?;
    let Some(peer) = args.client.peer()? else {
        return rounds(args, suite, program, selection, client, list.as_ref(), &args.reports);
    };
    let mut worst = ExitCode::Conforms;
    for (producing, consuming, folder) in [(&client, &peer, "produces"), (&peer, &client, "consumes")] {
        let pair = PairedFactory { producing: Arc::clone(producing), consuming: Arc::clone(consuming) };
        let reports = args.reports.join(folder);
        let code = rounds(args, suite, program, selection, Arc::new(pair), None, &reports)?;
        worst = rounds::worse(worst, code);
    }
    Ok(worst)
}

/// Runs one client as often as is asked for.
fn rounds(
    args: &ConformanceArgs,
    suite: &Suite,
    program: &str,
    selection: &Selection,
    client: Arc<dyn ClientFactory>,
    list: Option<&(PathBuf, KnownFailures)>,
    reports: &Path,
) -> Result<ExitCode, Problem> {
    let environment = Arc::new(environment(args, client)?);
    let first_seed = args.seed.unwrap_or_else(fresh_seed);
    let watching = Watching { progress: !environment.target.is_memory(), fail_fast: args.fail_fast };
    let mut rounds = Rounds::default();
    let mut rewritten = None;
    for round in 0..u64::from(args.repeat.unwrap_or(1)) {
        let config = config(args, program, &environment, first_seed.wrapping_add(round));
        let command = with_selection(&config.replay, selection);
        let mut report = suite.run(selection, &config, command, watching)?;
        if let Some((path, known)) = list {
            let fixed = args.fix.then(|| fix(path, known, &report)).transpose()?;
            suite.excuse(&mut report, fixed.as_ref().unwrap_or(known));
            rewritten = fixed.map(|fixed| told(path, &fixed));
        }
        rounds.ended(report);
    }
    let Some((report, code)) = rounds.outcome() else { return Ok(ExitCode::Usage) };
    let printed = finish(&report, reports);
    rounds.tell();
    if let Some(rewritten) = rewritten {
        complain(rewritten);
    }
    Ok(if printed == ExitCode::Harness { printed } else { code })
}

/// The list and where it is.
fn known_failures(args: &ConformanceArgs) -> Result<Option<(PathBuf, KnownFailures)>, Problem> {
    if args.client.peer.is_some() {
        // What a client is known to fail says nothing about two of them.
        return Ok(None);
    }
    let beside =
        || args.client.folder().map(|folder| folder.join("known-failures.yaml")).filter(|f| f.is_file());
    let path = match args.known_failures.clone().or_else(beside) {
        Some(path) => path,
        None if args.fix => return Err(Problem::Usage("--fix needs --known-failures".to_owned())),
        None => return Ok(None),
    };
    let known = match args.fix {
        // A list that is to be made.
        true if !path.exists() => KnownFailures::default(),
        true => KnownFailures::load_unexplained(&path)?,
        false => KnownFailures::load(&path)?,
    };
    Ok(Some((path, known)))
}

fn fix(path: &Path, known: &KnownFailures, report: &Report) -> Result<KnownFailures, Problem> {
    let fixed = known.fixed(report);
    if fixed.save(path).map_err(|e| Problem::Environment(e.to_string()))? {
        complain(format_args!("{}: written anew, its comments are gone", path.display()));
    }
    Ok(fixed)
}

/// What a list that was rewritten still lacks.
fn told(path: &Path, list: &KnownFailures) -> String {
    let waiting = list.entries.iter().filter(|e| e.waits_for_a_reason()).count();
    let entries = match list.entries.len() {
        1 => "1 entry".to_owned(),
        n => format!("{n} entries"),
    };
    let told = match waiting {
        0 => format!("{entries}, each with a reason"),
        n => {
            let wait = if n == 1 { "waits" } else { "wait" };
            format!(
                "{n} of {entries} {wait} for a reason; write down why the client fails, no run takes the list before"
            )
        }
    };
    format!("{}: {told}", path.display())
}

/// Prints a report and writes it into `dir`.
fn finish(report: &Report, dir: &Path) -> ExitCode {
    let written = stc_reports::write_all(report, dir);
    let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let options = terminal::Options {
        color,
        reports: written.as_ref().cloned().unwrap_or_default(),
        ..terminal::Options::default()
    };
    say(terminal::render(report, &options).trim_end());
    match written {
        Ok(_) => report.exit_code(),
        Err(e) => {
            complain(format_args!("error: the reports were not written: {e}"));
            ExitCode::Harness
        }
    }
}

fn list(suite: &Suite, selection: &Selection) -> ExitCode {
    match selection.select(&suite.scenarios) {
        Ok(selected) => {
            for scenario in selected {
                say(format_args!(
                    "{:<44} {} [{}]",
                    scenario.id,
                    scenario.name,
                    scenario.requirements.join(" ")
                ));
            }
            ExitCode::Conforms
        }
        Err(e) => {
            complain(format_args!("error: {e}"));
            ExitCode::Usage
        }
    }
}
