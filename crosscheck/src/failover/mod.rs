//! `failover`: one broker of two goes, under a producer, a stream and a queue consumer, on a real cluster and on the
//! simulated one; what the application and the wire see is compared line by line.
//!
//! - [`cluster`]: two brokers of either kind
//! - [`containers`]: the real ones
//! - [`application`]: producer and consumers, and what they see
//! - [`wire`]: what the client's connections carry
//! - [`facts`]: both as lines that can be compared
//! - [`scenario`]: the scenarios
//! - [`comparison`]: the comparison, and which differences are explained

pub mod application;
pub mod cluster;
pub mod comparison;
pub mod containers;
pub mod facts;
pub mod scenario;
pub mod wire;

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use self::{
    cluster::Cluster,
    containers::Containers,
    facts::Facts,
    scenario::{SCENARIOS, Scenario},
};

/// The `failover` command line.
#[derive(Debug, Clone, Args)]
pub struct Failover {
    /// Only scenarios whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Decides which simulated broker owns what
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print what the simulator shows and start no container
    #[arg(long)]
    simulator_only: bool,
    /// Print what went over the wire too, messages left out, to standard error
    #[arg(long)]
    wire: bool,
}

/// Runs the scenarios on both and prints the comparison. The exit code is 1 when a difference is not explained.
///
/// # Errors
/// [`xtask::exit::UsageError`] when no scenario is left; else when a cluster does not come up, or an application cannot
/// be opened on it.
pub fn run(failover: &Failover) -> anyhow::Result<ExitCode> {
    let wanted =
        |scenario: &&Scenario| failover.only.as_ref().is_none_or(|only| scenario.name.contains(only));
    let scenarios: Vec<&Scenario> = SCENARIOS.iter().filter(wanted).collect();
    if scenarios.is_empty() {
        let known: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        return Err(xtask::exit::UsageError(format!("there are the scenarios {}", known.join(", "))).into());
    }
    let _armed = containers::remove_on_signals()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no threads")?;
    let code = runtime.block_on(async {
        let simulated = measure(Cluster::simulated(failover.seed).await?, &scenarios, failover.wire).await?;
        if failover.simulator_only {
            comparison::show(&scenarios, &simulated);
            return anyhow::Ok(0);
        }
        let released =
            measure(Cluster::Released(Containers::start().await?), &scenarios, failover.wire).await?;
        let unexplained = comparison::print(&scenarios, &simulated, &released);
        Ok(if unexplained == 0 { 0 } else { xtask::exit::FAILED })
    })?;
    Ok(ExitCode::from(code))
}

/// Runs all scenarios on one cluster, and ends it.
async fn measure(cluster: Cluster, scenarios: &[&Scenario], wire: bool) -> anyhow::Result<Vec<Facts>> {
    let mut all = Vec::new();
    let mut failure = None;
    for scenario in scenarios {
        match scenario.run(&cluster, wire).await {
            Ok(facts) => all.push(facts),
            Err(error) => {
                failure = Some(error.context(format!("{} on the {}", scenario.name, cluster.name())));
                break;
            }
        }
    }
    cluster.close().await?;
    failure.map_or(Ok(all), Err)
}
