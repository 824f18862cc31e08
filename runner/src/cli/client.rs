//! Which client a run is about: the reference client, an adapter by its command, or one that is started by hand.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::{Problem, quoted};
use crate::adapter::command::{CommandError, words};
use crate::adapter::factory::AdapterFactory;
use crate::client::reference::{Deviant, ReferenceFactory};
use crate::output::complain;
use crate::run::ClientFactory;

/// Names the client.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    /// The client's adapter: a command line, or the name of a folder in adapters/ [default: the reference client, in
    /// this process]
    #[arg(long, value_name = "COMMAND")]
    pub client: Option<String>,
    /// Wait at this address for an adapter that is started by hand, for example under a debugger
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "client")]
    pub attach: Option<SocketAddr>,
    /// A second client, which consumes what the first one produces, and then the other way round: an adapter as for
    /// --client, or `reference`
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["attach", "known_failures", "fix"])]
    pub peer: Option<String>,
    /// Which deviant of the reference client.
    #[command(flatten)]
    pub deviant: DeviantArg,
}

/// Which behaviour of the reference client is broken; none without the feature `deviants`.
#[derive(Debug, Clone, Args)]
pub struct DeviantArg {
    /// Break one behaviour of the reference client on purpose, to watch the suite catch it
    #[cfg(feature = "deviants")]
    #[arg(long, value_name = "NAME")]
    pub deviant: Option<String>,
}

impl DeviantArg {
    /// The deviant of this name.
    ///
    /// # Errors
    /// When there is none, in words.
    #[cfg(feature = "deviants")]
    pub fn find(&self) -> Result<Option<Deviant>, String> {
        let find = |name: &String| {
            Deviant::by_name(name).ok_or_else(|| {
                format!("--deviant: there is no {name:?}; `cargo xtask deviants --list` names them all")
            })
        };
        self.deviant.as_ref().map(find).transpose()
    }

    /// None: nothing can be broken in this build.
    ///
    /// # Errors
    /// Never.
    #[cfg(not(feature = "deviants"))]
    pub fn find(&self) -> Result<Option<Deviant>, String> {
        Ok(None)
    }

    fn replay(&self) -> String {
        #[cfg(feature = "deviants")]
        if let Some(deviant) = &self.deviant {
            return format!(" --deviant {}", quoted(deviant));
        }
        String::new()
    }
}

impl ClientArgs {
    /// Whether the client is in another process, out of the reach of virtual time.
    pub(super) fn is_outside(&self) -> bool {
        self.client.is_some() || self.attach.is_some() || self.peer.is_some()
    }

    /// The folder of an adapter that `--client` names.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        folder(self.client.as_deref()?)
    }

    pub(super) fn factory(&self) -> Result<Arc<dyn ClientFactory>, Problem> {
        let failed = |e: crate::adapter::AdapterError| Problem::Environment(e.to_string());
        if let Some(address) = self.attach {
            let tell = |address: SocketAddr| {
                complain(format_args!("waiting for the adapter: start it with STC_CONNECT={address}"));
            };
            return Ok(Arc::new(AdapterFactory::attach(address, tell).map_err(failed)?));
        }
        if let Some(line) = &self.client {
            return adapter("--client", line);
        }
        let deviant = self.deviant.find().map_err(Problem::Usage)?;
        Ok(Arc::new(ReferenceFactory { deviant }))
    }

    /// The second client.
    pub(super) fn peer(&self) -> Result<Option<Arc<dyn ClientFactory>>, Problem> {
        Ok(match self.peer.as_deref() {
            None => None,
            Some("reference") => Some(Arc::new(ReferenceFactory::default())),
            Some(line) => Some(adapter("--peer", line)?),
        })
    }

    /// The arguments, to be pasted.
    pub(super) fn replay(&self) -> String {
        let client = self.client.as_ref().map(|line| format!(" --client {}", quoted(line)));
        let attach = self.attach.map(|address| format!(" --attach {address}"));
        let peer = self.peer.as_ref().map(|line| format!(" --peer {}", quoted(line)));
        [client, attach, peer, Some(self.deviant.replay())].into_iter().flatten().collect()
    }
}

/// What an adapter's folder has to start it with.
fn program(folder: &Path) -> PathBuf {
    folder.join("adapter")
}

fn adapter(option: &str, line: &str) -> Result<Arc<dyn ClientFactory>, Problem> {
    let words = adapter_words(line).map_err(|e| Problem::Usage(format!("{option} {line:?}: {e}")))?;
    let factory = AdapterFactory::command(words).map_err(|e| Problem::Environment(e.to_string()))?;
    Ok(Arc::new(factory))
}

/// A folder with an adapter: the one at this path, or that of this name in `adapters/`, here or in the sources of this
/// program.
fn folder(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if name.contains('/') && program(path).is_file() {
        return Some(path.to_path_buf());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.chars().all(plain) {
        return None;
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let roots = [PathBuf::from("."), own];
    roots.map(|root| root.join("adapters").join(name)).into_iter().find(|f| program(f).is_file())
}

/// The words that start an adapter: those of a command line, or the program of a folder with one.
///
/// # Errors
/// [`CommandError`]: it is no command line.
pub fn adapter_words(line: &str) -> Result<Vec<String>, CommandError> {
    match folder(line) {
        Some(folder) => Ok(vec![program(&folder).to_string_lossy().into_owned()]),
        None => words(line),
    }
}
