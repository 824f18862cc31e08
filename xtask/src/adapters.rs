//! Real clients in `adapters/`: builds or installs one when needed and hands out the command that runs it.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use crate::java::{Jdk, Maven};

/// A real client, or a checker that uses its classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Adapter {
    /// Load through Pulsar's V5 Java client while a topic is split and merged
    JavaLoad,
    /// Consumers of Pulsar's V5 Java client, directed line by line
    JavaSoak,
    /// Pulsar's own classes, for the vectors in vectors/v1 and proto/tests/data
    JavaCheck,
    /// The classic Python client on persistent:// topics
    PythonClassic,
}

/// The `adapter` command line.
#[derive(Debug, Args)]
pub struct Run {
    /// Which one
    adapter: Adapter,
    /// Its own arguments, after `--`; try `-- --help`. `java-check` without any verifies all vectors
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Runs an adapter in the foreground; its exit code is the result.
///
/// # Errors
/// See [`Adapter::command`].
pub fn run(run: &Run) -> anyhow::Result<ExitCode> {
    let mut command = run.adapter.command()?;
    let root = crate::workspace_root();
    if run.adapter == Adapter::JavaCheck && run.arguments.is_empty() {
        let vectors = run.adapter.command()?.arg("vectors").arg(root.join("vectors/v1")).status();
        let code = vectors.context("the adapter does not start")?.code();
        if code != Some(0) {
            return Ok(exit_code(code));
        }
        command.arg("check").arg(root.join("proto/tests/data/pulsar-vectors.json"));
    }
    let status = command.args(&run.arguments).status().context("the adapter does not start")?;
    Ok(exit_code(status.code()))
}

fn exit_code(code: Option<i32>) -> ExitCode {
    // Ended by a signal: the environment, not the check.
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::ENVIRONMENT))
}

impl Adapter {
    /// The command that runs the adapter, to which the caller adds arguments. Builds or installs it first where it is
    /// not up to date, which takes up to a minute on a new machine.
    ///
    /// # Errors
    /// What is missing on this machine (a [`crate::java::JavaError`], or the part of Python), or why the build failed.
    pub fn command(self) -> anyhow::Result<Command> {
        let adapters = crate::workspace_root().join("adapters");
        match self {
            Self::JavaLoad => java(&adapters.join("java-load"), "stc.load.Main"),
            Self::JavaSoak => java(&adapters.join("java-soak"), "stc.soak.Main"),
            Self::JavaCheck => java(&adapters.join("java-check"), "stc.check.Main"),
            Self::PythonClassic => python(&adapters.join("python-classic")),
        }
    }
}

/// The command that runs the timed Java client, to which the caller adds the service URL; builds it where needed.
///
/// # Errors
/// See [`Adapter::command`].
pub fn timed_java() -> anyhow::Result<Command> {
    java(&crate::workspace_root().join("adapters/java-load"), "stc.load.Timed")
}

fn java(project: &Path, main_class: &str) -> anyhow::Result<Command> {
    let jdk = Jdk::find()?;
    let target = project.join("target");
    let (built, class_path) = (target.join("built"), target.join("classpath"));
    let sources = fingerprint(&[project.join("pom.xml"), project.join("src")])?;
    let up_to_date = fs::read_to_string(&built).is_ok_and(|text| text == sources)
        && fs::read_to_string(&class_path)
            .is_ok_and(|jars| env::split_paths(jars.trim()).all(|jar| jar.is_file()));
    if !up_to_date {
        Maven::find(&jdk)?.run(&project.join("pom.xml"), &["compile"])?;
        fs::write(&built, sources).with_context(|| format!("cannot write {}", built.display()))?;
    }
    let jars =
        fs::read_to_string(&class_path).with_context(|| format!("cannot read {}", class_path.display()))?;
    let paths = std::iter::once(target.join("classes")).chain(env::split_paths(jars.trim()));
    let mut command = Command::new(jdk.java());
    command.arg("--enable-native-access=ALL-UNNAMED").arg("-XX:TieredStopAtLevel=1").arg("-cp");
    command.arg(
        env::join_paths(paths)
            .context("a directory of this workspace has a character that paths cannot have")?,
    );
    command.arg(main_class);
    Ok(command)
}

fn python(project: &Path) -> anyhow::Result<Command> {
    let requirements = project.join("requirements.txt");
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let venv = crate::workspace_root().join("target").join("python-classic");
    let (interpreter, installed) = (venv.join("bin/python"), venv.join("installed"));
    if !fs::read_to_string(&installed).is_ok_and(|text| text == wanted) || !interpreter.exists() {
        make_venv(&venv)?;
        let mut pip = Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements);
        step(&mut pip, "pip cannot install the client")?;
        fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    }
    let mut command = Command::new(interpreter);
    // No byte code beside the sources.
    command.arg("-B").arg(project.join("main.py"));
    Ok(command)
}

fn make_venv(venv: &Path) -> anyhow::Result<()> {
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(venv);
    step(&mut create, "no Python with venv and pip (for example `apt-get install python3-venv`)")
}

/// Runs one step quietly; on failure the message carries the end of what it printed.
fn step(command: &mut Command, failure: &'static str) -> anyhow::Result<()> {
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("{failure}: {} is not there", command.get_program().display())
        }
        Err(error) => return Err(error).context(failure),
    };
    if !output.status.success() {
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = text.lines().collect();
        bail!(
            "{failure}: {}",
            lines.iter().skip(lines.len().saturating_sub(5)).copied().collect::<Vec<_>>().join("\n")
        );
    }
    Ok(())
}

/// Names, sizes and times of all files under some paths: differs when one was changed, added or removed.
fn fingerprint(paths: &[PathBuf]) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    let mut left = paths.to_vec();
    while let Some(path) = left.pop() {
        let about = || format!("cannot read {}", path.display());
        let metadata = fs::metadata(&path).with_context(about)?;
        if metadata.is_dir() {
            for entry in fs::read_dir(&path).with_context(about)? {
                left.push(entry.with_context(about)?.path());
            }
        } else {
            let time = metadata.modified().with_context(about)?;
            lines.push(format!("{} {} {time:?}", path.display(), metadata.len()));
        }
    }
    lines.sort();
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_sees_new_and_longer_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/one"), "1").unwrap();
        let paths = [dir.path().to_path_buf()];
        let first = fingerprint(&paths).unwrap();
        assert_eq!(first, fingerprint(&paths).unwrap());
        fs::write(dir.path().join("a/two"), "2").unwrap();
        let second = fingerprint(&paths).unwrap();
        assert_ne!(first, second);
        fs::write(dir.path().join("a/two"), "22").unwrap();
        assert_ne!(second, fingerprint(&paths).unwrap());
        fingerprint(&[dir.path().join("missing")]).unwrap_err();
    }

    #[test]
    fn a_step_that_fails_says_what_it_printed() {
        let error = step(Command::new("sh").args(["-c", "echo broken >&2; exit 1"]), "no luck").unwrap_err();
        assert_eq!(error.to_string(), "no luck: broken");
        let error = step(&mut Command::new("no-such-program-here"), "no luck").unwrap_err();
        assert_eq!(error.to_string(), "no luck: no-such-program-here is not there");
    }
}
