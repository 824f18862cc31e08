//! Signals and identity of a process that an earlier call started, so that it is no child of this one.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

/// The command line of a running process; none when it is gone or a zombie.
pub(super) fn command_line(pid: u32) -> Option<String> {
    let proc = Path::new("/proc");
    let line = if proc.join("self").exists() {
        let bytes = fs::read(proc.join(pid.to_string()).join("cmdline")).ok()?;
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    } else {
        let output = Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()]).output().ok()?;
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    (!line.trim().is_empty()).then_some(line)
}

/// Asks a process to end, and kills it when it has not ended within `grace`.
pub(super) fn end(pid: u32, grace: Duration) -> anyhow::Result<()> {
    for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, Duration::from_secs(5))] {
        send(pid, signal)?;
        let asked = Instant::now();
        while asked.elapsed() < patience {
            if command_line(pid).is_none() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    bail!("process {pid} does not end")
}

fn send(pid: u32, signal: Signal) -> anyhow::Result<()> {
    let id =
        i32::try_from(pid).ok().and_then(Pid::from_raw).with_context(|| format!("{pid} is no process id"))?;
    match kill_process(id, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot signal process {pid}")),
    }
}
