//! A simulated Pulsar cluster.
//!
//! | Module | Owns |
//! |---|---|
//! | [`core`] | the cluster as a pure state machine: no I/O, no clock, no randomness of its own |
//! | [`net`] | tokio around the core: TCP, in-memory links, the clock; [`SimCluster`] is the handle |
//! | [`control`] | what drives and observes a cluster from outside: faults, brokers, journal |
//! | [`admin`] | Pulsar's admin REST |
//! | [`program`] | the `sim-broker` command |
//!
//! One cluster in memory, inside any tokio runtime (paused time works):
//!
//! ```
//! use sim_broker::{SimCluster, core::{ClusterConfig, Profile}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = SimCluster::in_memory(ClusterConfig::new(Profile::built_in("spec-1.0")?));
//! let link = cluster.connect(&cluster.service_url())?; // AsyncRead + AsyncWrite
//! # drop(link);
//! cluster.shutdown().await;
//! # Ok(())
//! # }
//! ```

pub mod admin;
pub mod control;
pub mod core;
pub mod net;
pub mod program;

pub use control::Control;
pub use net::{SimCluster, TcpOptions};
