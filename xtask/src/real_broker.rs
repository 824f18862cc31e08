//! The released Pulsar standalone broker as a process on this machine's loopback.
//!
//! - [`cli`]: the `real-broker` command
//! - [`image`]: the same broker as a container image
//! - `launch`: the Java command line, the wait until it is ready
//! - `ports`: free ports
//! - `process`: signals and identity of a process that another call started
//! - `state`: what a running broker's work directory records

pub mod cli;
pub mod image;
mod launch;
mod ports;
mod process;
mod state;

pub use launch::{Options, start};
pub use state::{Running, stop};

/// Two free ports on loopback, for a broker and its admin REST. No other call in this process gives one of them.
///
/// # Errors
/// When there are none.
pub fn free_ports() -> anyhow::Result<[u16; 2]> {
    ports::pair()
}

/// Whether the broker with its admin REST at `host:port` can be used. The namespace that everything uses is created last.
pub fn is_ready(address: &str) -> bool {
    launch::get(address, "/admin/v2/namespaces/public").is_ok_and(|body| body.contains("public/default"))
}

/// Whether something answers a GET well at `host:port`.
pub fn answers(address: &str, path: &str) -> bool {
    launch::get(address, path).is_ok()
}
