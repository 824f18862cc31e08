//! The `test` command: every check of the project, in the order in which a failure costs least to find.
//!
//! Each check is a program that prints for itself; this module starts them, stops at nothing, and ends with one line
//! for each. Where its output is not a terminal the last lines of every check that failed come again behind that, as the
//! keepers of logs cut off the beginning. A check whose tools are missing on this machine is left out by name; under
//! `--strict` that is a failure.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;

use crate::browser::Chromium;
use crate::containers::Engine;
use crate::exit;
use crate::java::{Jdk, Maven};
use crate::tail;
use stc_runner::output::say;

/// The `test` command line.
#[derive(Debug, Args)]
pub struct Test {
    /// Fail where a JDK 21+, Maven, Python, Go, Chromium or a container engine is missing, instead of leaving out what
    /// needs it
    #[arg(long)]
    strict: bool,
    /// Run only the checks whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Print the names of the checks and end
    #[arg(long)]
    list: bool,
}

/// What a check needs beyond Rust.
#[derive(Debug, Clone, Copy)]
enum Needs {
    Rust,
    Java,
    Python,
    Go,
    Browser,
    Engine,
    EngineAndJava,
}

impl Needs {
    /// Why a check with these needs cannot run here.
    fn missing(self) -> Option<String> {
        match self {
            Needs::Rust => None,
            Needs::Go => {
                let found =
                    Command::new("go").arg("version").output().is_ok_and(|output| output.status.success());
                (!found).then(|| "no Go (Debian: apt-get install golang-go)".to_owned())
            }
            Needs::Java => match Jdk::find() {
                Err(error) => Some(error.to_string()),
                Ok(jdk) => Maven::find(&jdk).err().map(|error| error.to_string()),
            },
            Needs::Engine => Engine::find().err().map(|error| error.to_string()),
            Needs::EngineAndJava => Needs::Engine.missing().or_else(|| Needs::Java.missing()),
            Needs::Browser => Chromium::find().err().map(|error| error.to_string()),
            Needs::Python => {
                let venv = Command::new("python3").args(["-c", "import venv, ensurepip"]).output();
                let found = venv.is_ok_and(|output| output.status.success());
                (!found).then(|| "no Python 3 with venv (Debian: apt-get install python3-venv)".to_owned())
            }
        }
    }
}

struct Check {
    name: &'static str,
    needs: Needs,
    program: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const fn cargo(name: &'static str, arguments: &'static [&'static str]) -> Check {
    Check { name, needs: Needs::Rust, program: "cargo", arguments, environment: &[] }
}

/// A shell command that finds the program `stc` in `target/debug`. It is built together with this crate, so that cargo
/// gives what they share the same features and does not build it again.
macro_rules! with_stc {
    ($name:literal, $needs:expr, $command:literal) => {
        Check {
            name: $name,
            needs: $needs,
            program: "sh",
            arguments: &[
                "-c",
                concat!(
                    "cargo build --quiet --locked --package xtask --package stc-runner --bin stc && ",
                    $command
                ),
            ],
            environment: &[],
        }
    };
}

/// The checks, cheapest first.
const CHECKS: &[Check] = &[
    cargo("format", &["fmt", "--all", "--check"]),
    cargo("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    Check {
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        ..cargo("documentation", &["doc", "--workspace", "--no-deps", "--locked"])
    },
    cargo("tests", &["test", "--workspace", "--locked"]),
    cargo("conformance in memory", &["xtask", "conformance"]),
    cargo("conformance over TCP", &["xtask", "conformance", "--target", "tcp"]),
    // What an SDK author's CI runs, on the reference client behind the protocol: every verdict is the one in process.
    with_stc!(
        "conformance through the adapter protocol",
        Needs::Rust,
        "STC=target/debug/stc sh docs/ci/conformance.sh 'target/debug/stc reference-adapter'"
    ),
    cargo("deviants", &["xtask", "deviants"]),
    cargo("transactions under failures", &["xtask", "transactions"]),
    Check { needs: Needs::Browser, ..cargo("reports in a browser", &["xtask", "browser"]) },
    cargo("vectors", &["xtask", "vectors", "verify"]),
    Check {
        needs: Needs::Python,
        ..cargo("vectors in Python", &["xtask", "vectors", "verify", "--language", "python"])
    },
    Check {
        needs: Needs::Java,
        ..cargo("vectors in Java", &["xtask", "vectors", "verify", "--language", "java"])
    },
    Check {
        needs: Needs::Java,
        ..cargo("vectors against Pulsar's classes", &["xtask", "adapter", "java-check"])
    },
    Check {
        needs: Needs::Java,
        ..cargo("V5 Java client, judged", &["xtask", "conformance", "--client", "java-v5"])
    },
    Check {
        needs: Needs::Java,
        ..cargo(
            "preview of the V5 Java client, judged",
            &["xtask", "conformance", "--client", "java-v5-m1", "--tags", "@C2"],
        )
    },
    Check {
        needs: Needs::Java,
        ..cargo("V5 Java client on the simulator", &["xtask", "real-client", "java-load"])
    },
    Check {
        needs: Needs::Java,
        ..cargo("V5 Java consumers through changes and failures", &["xtask", "real-client", "java-soak"])
    },
    Check {
        needs: Needs::Python,
        ..cargo("classic Python client on the simulator", &["xtask", "real-client", "python-classic"])
    },
    with_stc!("skeleton adapter in Python", Needs::Python, "target/debug/stc adapter-check --client python"),
    with_stc!("skeleton adapter in Go", Needs::Go, "target/debug/stc adapter-check --client go"),
    Check {
        needs: Needs::Engine,
        ..cargo("container image of stc", &["xtask", "image", "--debug", "--tag", "stc:check", "--check"])
    },
    Check {
        needs: Needs::EngineAndJava,
        ..cargo("image of the real broker", &["xtask", "real-broker", "image"])
    },
    Check {
        needs: Needs::EngineAndJava,
        ..cargo(
            "portable scenarios on the simulator and on the real broker",
            // With the Java client too it takes many minutes more.
            &["xtask", "crosscheck", "portable", "--client", "reference"],
        )
    },
    Check {
        needs: Needs::Java,
        ..cargo(
            "random sequences on the simulator and on the real broker",
            &["xtask", "crosscheck", "differential", "--sequences", "40", "--look-into-for", "60"],
        )
    },
];

enum Outcome {
    Passed(Duration),
    /// With the status and the last lines.
    Failed(Duration, String, Vec<String>),
    LeftOut(String),
}

/// Runs the checks; the exit code is 0 when all passed or were left out without `--strict`.
///
/// # Errors
/// When a check's program cannot be started at all.
pub fn run(test: &Test) -> anyhow::Result<ExitCode> {
    let wanted = |check: &&Check| test.only.as_deref().is_none_or(|text| check.name.contains(text));
    let checks: Vec<&Check> = CHECKS.iter().filter(wanted).collect();
    if checks.is_empty() {
        return Err(exit::UsageError(format!(
            "no check has {:?} in its name; `cargo xtask test --list` names them",
            test.only.as_deref().unwrap_or_default()
        ))
        .into());
    }
    if test.list {
        checks.iter().for_each(|check| say(format_args!("{}", check.name)));
        return Ok(ExitCode::SUCCESS);
    }
    let mut results = Vec::new();
    for check in checks {
        say(format_args!("\n=== {} ===", check.name));
        let outcome = match check.needs.missing() {
            Some(reason) => Outcome::LeftOut(reason),
            None => check.run()?,
        };
        results.push((check.name, outcome));
    }
    Ok(summary(&results, test.strict))
}

impl Check {
    fn run(&self) -> anyhow::Result<Outcome> {
        let start = Instant::now();
        let mut command = Command::new(self.program);
        command
            .args(self.arguments)
            .envs(self.environment.iter().copied())
            .current_dir(crate::workspace_root());
        let (status, last) =
            tail::run(&mut command).with_context(|| format!("{} does not start", self.program))?;
        let took = start.elapsed();
        Ok(if status.success() {
            Outcome::Passed(took)
        } else {
            Outcome::Failed(took, status.to_string(), last)
        })
    }
}

fn summary(results: &[(&str, Outcome)], strict: bool) -> ExitCode {
    say(format_args!("\n=== summary ==="));
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    for (name, outcome) in results {
        match outcome {
            Outcome::Passed(took) => {
                passed += 1;
                say(format_args!("passed    {name} ({:.1} s)", took.as_secs_f64()));
            }
            Outcome::Failed(took, status, _) => {
                failed += 1;
                say(format_args!("FAILED    {name} ({:.1} s): {status}", took.as_secs_f64()));
            }
            Outcome::LeftOut(reason) if strict => {
                failed += 1;
                say(format_args!("FAILED    {name}: cannot run here, and --strict was given: {reason}"));
            }
            Outcome::LeftOut(reason) => {
                left_out += 1;
                say(format_args!("left out  {name}: {reason}"));
            }
        }
    }
    for (name, outcome) in results {
        let Outcome::Failed(_, _, last) = outcome else { continue };
        if !last.is_empty() {
            say(format_args!("\n=== the end of: {name} ===\n{}\n", last.join("\n")));
        }
    }
    say(format_args!("checks: {passed} passed, {failed} failed, {left_out} skipped"));
    ExitCode::from(if failed == 0 { 0 } else { exit::FAILED })
}
