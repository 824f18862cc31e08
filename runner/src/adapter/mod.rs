//! A client under test in another process: the host of adapters, and the server that turns any [`ClientUnderTest`] into
//! an adapter. The messages are those of `stc-adapter-protocol`.
//!
//! | Module | What it owns |
//! |---|---|
//! | `lines` | lines of bounded length |
//! | `connection` | requests under way on one pair of streams, and what becomes of them |
//! | `process` | a child process: its standard error, its end |
//! | `session` | an adapter that has introduced itself |
//! | [`factory`] | sessions for the scenarios of a run: kept, replaced when broken |
//! | `host` | a session as [`ClientUnderTest`] |
//! | `notes` | what is asked and answered, between the frames of the journal |
//! | [`server`] | the other side |
//! | [`reference`](mod@reference) | the reference client as an adapter |
//! | [`check`] | whether an adapter keeps to the protocol |
//! | [`command`] | what `--client` means |
//!
//! A session serves one scenario at a time, so an adapter that crashes, hangs or babbles costs that scenario only.
//!
//! [`ClientUnderTest`]: crate::client::ClientUnderTest

pub mod check;
pub mod command;
mod connection;
pub mod factory;
mod host;
mod lines;
pub(crate) mod notes;
mod process;
pub mod reference;
pub mod server;
mod session;

pub use session::AdapterError;
