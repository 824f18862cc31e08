//! What the work directory of a running broker records, so that a later call can find and stop it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::process;

/// How long a broker may take to shut down by itself; a clean stop takes about 1.3 s.
const GRACE: Duration = Duration::from_secs(15);
const FILE: &str = "broker.json";

/// A broker that was started and answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Running {
    /// Where clients connect, like `pulsar://127.0.0.1:20650`.
    pub service_url: String,
    /// Where the admin REST is, like `http://127.0.0.1:20651`.
    pub admin_url: String,
    /// The broker's process.
    pub pid: u32,
    /// The broker's log file.
    pub log: PathBuf,
    /// The work directory, which holds data, log and this record.
    pub workdir: PathBuf,
    /// Milliseconds from the start of the process until it was ready.
    pub ready_ms: u64,
}

impl Running {
    /// The broker that runs in a work directory. A record whose process is gone, or is another program by now, counts
    /// as none.
    ///
    /// # Errors
    /// The record exists and cannot be read.
    pub fn find(workdir: &Path) -> anyhow::Result<Option<Self>> {
        let file = workdir.join(FILE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        };
        let running: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a broker's record", file.display()))?;
        Ok(running.is_alive().then_some(running))
    }

    /// Whether its process still runs and is still a broker in this work directory.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        process::command_line(self.pid).is_some_and(|line| line.contains(&*self.workdir.to_string_lossy()))
    }

    pub(super) fn record(&self) -> anyhow::Result<()> {
        let file = self.workdir.join(FILE);
        fs::write(&file, serde_json::to_string(self)?)
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Stops the broker of a work directory and removes its data; the log stays. False when none was running.
///
/// # Errors
/// The process survives, or the files cannot be removed.
pub fn stop(workdir: &Path) -> anyhow::Result<bool> {
    let workdir = fs::canonicalize(workdir).unwrap_or_else(|_| workdir.to_path_buf());
    let running = Running::find(&workdir)?;
    if let Some(running) = &running {
        process::end(running.pid, GRACE)?;
    }
    clear(&workdir)?;
    Ok(running.is_some())
}

/// Removes the record and the data that an earlier broker left.
pub(super) fn clear(workdir: &Path) -> anyhow::Result<()> {
    let ignore_missing = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    ignore_missing(fs::remove_file(workdir.join(FILE)))
        .and_then(|()| ignore_missing(fs::remove_dir_all(workdir.join("data"))))
        .with_context(|| format!("cannot clear {}", workdir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(pid: u32, workdir: &Path) -> Running {
        Running {
            service_url: "pulsar://127.0.0.1:1".to_owned(),
            admin_url: "http://127.0.0.1:2".to_owned(),
            pid,
            log: workdir.join("broker.log"),
            workdir: workdir.to_path_buf(),
            ready_ms: 1,
        }
    }

    #[test]
    fn a_process_that_is_no_broker_of_this_directory_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        record_of(std::process::id(), dir.path()).record().unwrap();
        assert!(Running::find(dir.path()).unwrap().is_none());
        assert!(!stop(dir.path()).unwrap());
        assert!(!dir.path().join("data").exists() && !dir.path().join(FILE).exists());
    }

    #[test]
    fn nothing_runs_where_nothing_was_started() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!stop(dir.path()).unwrap());
        assert!(!stop(&dir.path().join("missing")).unwrap());
    }

    #[test]
    fn a_damaged_record_is_an_error_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(stop(dir.path()).unwrap_err().to_string().contains("not a broker's record"));
        assert!(dir.path().join(FILE).exists());
    }

    #[test]
    fn ends_a_process_whose_command_line_names_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let workdir = fs::canonicalize(dir.path()).unwrap();
        // `sh -c … NAME` keeps NAME in its command line, as the broker keeps its work directory.
        let mut child = std::process::Command::new("sh")
            .arg("-c")
            .arg("echo up; read line")
            .arg(&workdir)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Until it prints, the process may still have the command line of this one.
        let mut up = [0; 3];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
        record_of(child.id(), &workdir).record().unwrap();
        // `wait` closes the child's input, at whose end it would leave by itself.
        let input = child.stdin.take();
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        assert!(stop(&workdir).unwrap());
        assert!(!reaper.join().unwrap().success());
        drop(input);
    }
}
