//! The container engine, through `docker`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};

/// No container engine that answers; the command ends with [`crate::exit::ENVIRONMENT`].
#[derive(Debug, thiserror::Error)]
#[error(
    "no container engine: {0}. On Debian: `apt-get install --no-install-recommends docker.io iptables`, then start \
     `dockerd`"
)]
pub struct NoEngine(String);

/// A container engine that answers.
#[derive(Debug, Clone, Copy)]
pub struct Engine(());

impl Engine {
    /// Asks the engine for its version.
    ///
    /// # Errors
    /// [`NoEngine`] when `docker` is missing or its engine does not run.
    pub fn find() -> Result<Self, NoEngine> {
        let answer = Command::new("docker")
            .args(["version", "--format", "{{.Server.Version}}"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| NoEngine(format!("`docker` does not start ({error})")))?;
        if !answer.status.success() {
            return Err(NoEngine(String::from_utf8_lossy(&answer.stderr).trim().to_owned()));
        }
        Ok(Self(()))
    }

    /// Whether an image with this tag is there.
    ///
    /// # Errors
    /// When `docker` does not start.
    pub fn has_image(self, tag: &str) -> anyhow::Result<bool> {
        Ok(self.try_run(&["image", "inspect", tag])?.status.success())
    }

    /// Runs a command of `docker` and gives what it printed, without the line's end.
    ///
    /// # Errors
    /// When it fails, with what it said.
    pub fn run(self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.try_run(arguments)?;
        let shown = arguments.first().copied().unwrap_or_default();
        if !output.status.success() {
            bail!("`docker {shown} …` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// The containers with this label, each with the process that made it, which is the label's value.
    ///
    /// # Errors
    /// As for [`Engine::run`].
    pub fn made_by(self, label: &str) -> anyhow::Result<Vec<(String, u32)>> {
        let format = format!("{{{{.ID}}}} {{{{.Label \"{label}\"}}}}");
        let list = self.run(&["ps", "--all", "--filter", &format!("label={label}"), "--format", &format])?;
        Ok(list
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(container, process)| Some((container.to_owned(), process.trim().parse().ok()?)))
            .collect())
    }

    fn try_run(self, arguments: &[&str]) -> anyhow::Result<Output> {
        Command::new("docker")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("`docker` does not start")
    }

    /// Makes an image of one layer of a directory. `changes` are instructions such as `ENV A=b`.
    ///
    /// # Errors
    /// When `tar` or the engine fails.
    pub fn import(self, root: &Path, tag: &str, changes: &[&str]) -> anyhow::Result<()> {
        let mut packer = Command::new("tar")
            .args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--directory"])
            .arg(root)
            .arg(".")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("`tar` does not start")?;
        let archive = packer.stdout.take().context("tar has no output")?;
        let output = Command::new("docker")
            .arg("import")
            .args(changes.iter().flat_map(|change| ["--change", change]))
            .args(["-", tag])
            .stdin(archive)
            .output();
        let packed = packer.wait().context("cannot watch tar")?;
        let output = output.context("`docker` does not start")?;
        if !output.status.success() {
            bail!("`docker import` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        if !packed.success() {
            // The engine may have taken half an archive for a whole one.
            let _ = self.run(&["image", "rm", tag]);
            bail!("tar failed: {packed}");
        }
        Ok(())
    }
}

/// Whether the process that made a container has ended.
#[must_use]
pub fn is_gone(process: u32) -> bool {
    !Path::new("/proc").join(process.to_string()).exists()
}
