//! The clients' programs, directed line by line.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, bail};
use serde::Deserialize;

/// Who sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The reference client.
    Reference,
    /// Pulsar's V5 Java client.
    Java,
}

impl Kind {
    /// As the table calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Reference => "reference client",
            Kind::Java => "Java client",
        }
    }

    /// Starts its program, which waits for directions.
    ///
    /// # Errors
    /// When the Java program does not build, or the program does not start.
    pub fn start(self, service_url: &str) -> anyhow::Result<Program> {
        let mut command = match self {
            Kind::Reference => Command::new(xtask::workspace_root().join("target/release/examples/load")),
            Kind::Java => xtask::adapters::timed_java()?,
        };
        command.arg(service_url).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("the {} does not start", self.name()))?;
        let (directions, answers) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let mut program = Program { kind: self, child, directions, answers };
        // A Java program takes its time until it can listen at all, which is nobody's start-up.
        program.ask("ready")?;
        Ok(program)
    }
}

/// A client's program. Dropping it ends it.
#[derive(Debug)]
pub struct Program {
    kind: Kind,
    child: Child,
    directions: Option<ChildStdin>,
    answers: Option<BufReader<ChildStdout>>,
}

/// What a program may answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    #[serde(default)]
    nanos: Vec<u64>,
    #[serde(default)]
    messages: u32,
    #[serde(default)]
    seconds: f64,
}

impl Program {
    /// Gives a direction.
    fn direct(&mut self, direction: &str) -> anyhow::Result<()> {
        let input = self.directions.as_mut().context("the program has no standard input")?;
        writeln!(input, "{direction}")
            .and_then(|()| input.flush())
            .with_context(|| format!("the {} ended before \"{direction}\"", self.kind.name()))
    }

    fn answer(&mut self) -> anyhow::Result<Reply> {
        let mut line = String::new();
        let answers = self.answers.as_mut().context("the program has no standard output")?;
        if answers.read_line(&mut line).context("the program's answer cannot be read")? == 0 {
            bail!("the {} ended without an answer", self.kind.name());
        }
        serde_json::from_str(&line).with_context(|| format!("the {} answered {line:?}", self.kind.name()))
    }

    fn ask(&mut self, direction: &str) -> anyhow::Result<Reply> {
        self.direct(direction)?;
        self.answer().with_context(|| format!("\"{direction}\""))
    }

    /// Makes it try to send a message to a broker that is not there yet.
    ///
    /// # Errors
    /// When the program is gone.
    pub fn begin_first(&mut self, topic: &str) -> anyhow::Result<()> {
        self.direct(&format!("first {topic}"))
    }

    /// Returns when that message is acknowledged.
    ///
    /// # Errors
    /// When the program is gone.
    pub fn first_acknowledged(&mut self) -> anyhow::Result<()> {
        self.answer().map(drop)
    }

    /// How long each of `count` unbatched sends took that waited for the one before, in milliseconds, rising.
    ///
    /// # Errors
    /// When the program is gone or a send failed.
    pub fn latency(&mut self, topic: &str, count: u32) -> anyhow::Result<Vec<f64>> {
        let mut nanos = self.ask(&format!("latency {topic} {} {count}", count / 2))?.nanos;
        nanos.sort_unstable();
        Ok(nanos.into_iter().map(|n| n as f64 / 1e6).collect())
    }

    /// Sends batched messages for so many seconds, and waits until all are acknowledged.
    ///
    /// # Errors
    /// When the program is gone or a send failed.
    pub fn produce(&mut self, topic: &str, seconds: f64) -> anyhow::Result<Rate> {
        self.rate(&format!("produce {topic} {seconds}"))
    }

    /// Receives and acknowledges at most so many messages, for at most so many seconds.
    ///
    /// # Errors
    /// When the program is gone or messages did not come.
    pub fn consume(&mut self, topic: &str, count: u32, seconds: f64) -> anyhow::Result<Rate> {
        self.rate(&format!("consume {topic} {count} {seconds}"))
    }

    fn rate(&mut self, direction: &str) -> anyhow::Result<Rate> {
        let Reply { messages, seconds, .. } = self.ask(direction)?;
        if messages == 0 || seconds <= 0.0 {
            bail!("the {} did nothing when told to {direction}", self.kind.name());
        }
        Ok(Rate { messages, a_second: f64::from(messages) / seconds })
    }
}

/// How many messages went through.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// In all.
    pub messages: u32,
    /// In a second.
    pub a_second: f64,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It ends with its input; one that waits for a broker that never came does not.
        drop(self.directions.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
