//! The Java program as a child process: commands go to its standard input, events come from its standard output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::log::{Event, Group, Log};
use super::steps::PATIENCE;

/// The program, running. Dropping it ends it.
pub struct Driver {
    child: Child,
    input: ChildStdin,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    log: Mutex<Log>,
    grew: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver {
    /// Starts the program and waits until it takes commands.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(mut command: Command) -> anyhow::Result<Driver> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("the Java program does not start")?;
        let input = child.stdin.take().context("the Java program has no input")?;
        let output = child.stdout.take().context("the Java program has no output")?;
        let shared = Arc::new(Shared::default());
        let reader = Arc::clone(&shared);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|error| Event::Failed {
                    what: format!("the line {line:?}"),
                    error: error.to_string(),
                });
                reader.lock().add(event);
                reader.grew.notify_all();
            }
            reader.lock().fail("the Java program ended".to_owned());
            reader.grew.notify_all();
        });
        let driver = Driver { child, input, shared };
        driver.wait("the Java program takes commands", Log::is_ready)?;
        Ok(driver)
    }

    /// Gives a command. What it brings about comes as events.
    ///
    /// # Errors
    /// When the program is gone.
    pub fn tell(&mut self, command: &str) -> anyhow::Result<()> {
        writeln!(self.input, "{command}")
            .with_context(|| format!("the Java program does not take {command:?}"))
    }

    /// Says which group a consumer is in; before it is opened.
    pub fn enrol(&self, consumer: &str, group: Group) {
        self.shared.lock().enrol(consumer, group);
    }

    /// Looks at what was told so far.
    pub fn look<R>(&self, look: impl FnOnce(&Log) -> R) -> R {
        look(&self.shared.lock())
    }

    /// Waits until what was told satisfies a condition.
    ///
    /// # Errors
    /// When it does not within [`PATIENCE`], when a call of the program failed, or when it ended.
    pub fn wait(&self, what: &str, holds: impl Fn(&Log) -> bool) -> anyhow::Result<()> {
        let end = Instant::now() + PATIENCE;
        let mut log = self.shared.lock();
        loop {
            if holds(&log) {
                return Ok(());
            }
            if let Some(trouble) = log.trouble() {
                bail!("waiting until {what}: {trouble}");
            }
            let left = end.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                let counts: Vec<String> = Group::ALL
                    .iter()
                    .map(|g| {
                        format!("{g:?} received {}, acknowledged {}", log.received(*g), log.acknowledged(*g))
                    })
                    .collect();
                bail!("not within {PATIENCE:?}: {what}; {} sent, {}", log.sending(), counts.join("; "));
            }
            log = self.shared.grew.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may be gone already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
