//! An adapter that has introduced itself, as a child process or at the other end of a socket.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::time::Duration;

use stc_adapter_protocol::session::PROTOCOL_VERSION;
use stc_adapter_protocol::{Capability, ClientError, Initialize, Initialized, Sdk, Suite};
use thiserror::Error;

use super::connection::Connection;
use super::process::Process;
use crate::output::complain;

/// How long an adapter may take to introduce itself: its start may build it first, on a busy machine.
const TO_INITIALIZE: Duration = Duration::from_secs(300);

/// How long it takes until somebody is told that it is waited for.
const UNTOLD: Duration = Duration::from_secs(5);

/// Why there is no adapter to run scenarios with.
#[derive(Debug, Error)]
pub enum AdapterError {
    /// The command does not start.
    #[error("the adapter does not start: {command}: {source}")]
    Start {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing can listen there.
    #[error("nothing can wait for an adapter at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// It started and did not introduce itself as the protocol says.
    #[error("the adapter does not introduce itself: {reason}{}", said(stderr))]
    Initialize {
        /// Why.
        reason: String,
        /// The end of its standard error.
        stderr: Vec<String>,
    },
}

/// The end of what an adapter wrote to its standard error, below a message.
pub(super) fn said(stderr: &[String]) -> String {
    let last: Vec<String> = stderr.iter().rev().take(10).rev().map(|line| format!("\n  {line}")).collect();
    if last.is_empty() { String::new() } else { format!("; it wrote:{}", last.concat()) }
}

/// Where sessions come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A command, program first.
    Command(Vec<String>),
    /// An adapter that somebody starts by hand and that connects here.
    Attach {
        listener: TcpListener,
        address: SocketAddr,
        /// Called whenever an adapter is waited for.
        tell: fn(SocketAddr),
    },
}

/// An adapter that has introduced itself.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) process: Option<Process>,
    pub(super) sdk: Sdk,
    pub(super) offers: BTreeSet<Capability>,
}

impl Session {
    /// Starts an adapter, or waits for one without limit.
    pub(super) async fn open(source: &Source) -> Result<Session, AdapterError> {
        let (connection, process) = match source {
            Source::Command(words) => {
                let failed = |source| AdapterError::Start { command: words.join(" "), source };
                let (mut process, stdin, stdout) = Process::start(words).map_err(failed)?;
                let ended = process.ending();
                (Connection::new(stdout, stdin, ended).map_err(failed)?, Some(process))
            }
            Source::Attach { listener, address, tell } => {
                tell(*address);
                (accept(listener)?, None)
            }
        };
        let hello = Initialize {
            protocol_version: PROTOCOL_VERSION,
            suite: Suite { name: "stc".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        };
        let stderr = || process.as_ref().map(|p| p.tail.lines()).unwrap_or_default();
        let answer = match source {
            Source::Command(_) => tokio::time::timeout(TO_INITIALIZE, connection.call(&hello, None))
                .await
                .unwrap_or(Err(ClientError::Hangs(TO_INITIALIZE.as_secs()))),
            // It may stand at a breakpoint.
            Source::Attach { .. } => connection.call(&hello, None).await,
        };
        let refused = |reason: String| AdapterError::Initialize { reason, stderr: stderr() };
        let Initialized { protocol_version, sdk, capabilities } =
            answer.map_err(|error| refused(error.to_string()))?;
        if protocol_version != PROTOCOL_VERSION {
            return Err(refused(format!(
                "it speaks version {protocol_version} of the protocol instead of {PROTOCOL_VERSION}"
            )));
        }
        Ok(Session { connection, process, sdk, offers: capabilities.into_iter().collect() })
    }

    /// [`Session::open`] of the first adapter of a program, which tells on standard error when it is slow.
    pub(super) async fn open_first(source: &Source) -> Result<Session, AdapterError> {
        let tell = || {
            let limit = TO_INITIALIZE.as_secs();
            complain(format_args!("waiting for the adapter to introduce itself, for {limit} s at most"));
        };
        told_when_slow(Session::open(source), tell).await
    }

    /// The last lines of its standard error; nothing of one that was attached.
    pub(super) fn stderr(&self) -> Vec<String> {
        self.process.as_ref().map(|p| p.tail.lines()).unwrap_or_default()
    }

    /// Lets the adapter end by itself. Whether it did.
    pub(super) fn end(mut self) -> bool {
        self.connection.close();
        self.process.take().is_none_or(Process::end)
    }
}

/// Calls `tell` once when `waited_for` is not there in [`UNTOLD`].
async fn told_when_slow<T>(waited_for: impl Future<Output = T>, tell: impl FnOnce()) -> T {
    let mut waited_for = pin!(waited_for);
    match tokio::time::timeout(UNTOLD, &mut waited_for).await {
        Ok(there) => there,
        Err(_) => {
            tell();
            waited_for.await
        }
    }
}

fn accept(listener: &TcpListener) -> Result<Connection, AdapterError> {
    let accepted = || {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let writer = stream.try_clone()?;
        Connection::new(stream, writer, || "the adapter closed the connection".to_owned())
    };
    accepted().map_err(|e| AdapterError::Initialize { reason: e.to_string(), stderr: Vec::new() })
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_told_when_an_adapter_is_slow_and_only_then() {
        told_when_slow(std::future::ready(()), || panic!("nothing was waited for")).await;
        // What is waited for comes only once it was told.
        let (sender, receiver) = oneshot::channel();
        assert_eq!(told_when_slow(receiver, || sender.send(7).unwrap()).await, Ok(7));
    }
}
