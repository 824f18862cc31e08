//! One sequence on both sides: the simulated one in virtual time, then the real one, which waits for the same.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use sim_broker::core::config::ClusterConfig;
use tokio::runtime::Builder;

use super::compare::{self, Divergence};
use super::op::{self, Op};
use super::side::{self, Side};
use super::trace::Trace;
use super::world::{self, Plan};

/// What is compared with what.
pub struct Bench {
    /// The simulated side.
    pub config: ClusterConfig,
    /// The other side, for each sequence anew.
    pub other: Other,
    /// Makes the names of one run differ from those of any other on the same broker.
    unique: u64,
    /// How many sequences were run.
    runs: AtomicU64,
}

/// The side that the simulator is measured by.
pub enum Other {
    /// A broker at a service URL, with its admin URL.
    Broker(String, String),
    /// Another simulated cluster, in virtual time, for tests of the comparison itself.
    Simulated(Box<ClusterConfig>),
}

/// How a sequence went.
#[derive(Debug)]
pub struct Checked {
    /// Steps that both sides did.
    pub steps: usize,
    /// Values that were compared.
    pub compared: usize,
    /// How often each explanation was needed, by number.
    pub explained: Vec<&'static str>,
    /// Where they differ.
    pub divergence: Option<Divergence>,
}

impl Bench {
    /// Ready to run sequences.
    #[must_use]
    pub fn new(config: ClusterConfig, other: Other) -> Bench {
        Bench { config, other, unique: side::system_ms(), runs: AtomicU64::new(0) }
    }

    /// Runs a sequence, and what ends every sequence, on both sides.
    ///
    /// # Errors
    /// When a side cannot be reached.
    pub fn check(&self, ops: &[Op], patience: Duration) -> anyhow::Result<Checked> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("d{:x}-{run}", self.unique);
        let ops: Vec<Op> = ops.iter().cloned().chain(op::ending(ops)).collect();
        let simulated = self.simulate(&Plan { prefix: &prefix, ops: &ops, patience, due: None })?;
        let plan = Plan { prefix: &prefix, ops: &ops, patience, due: Some(&simulated) };
        let paused = matches!(self.other, Other::Simulated(_));
        let runtime = Builder::new_current_thread().enable_all().start_paused(paused).build();
        let runtime = runtime.context("no runtime")?;
        let real = runtime.block_on(async {
            let (side, cluster) = match &self.other {
                Other::Broker(service_url, admin_url) => (Side::at(service_url, admin_url), None),
                Other::Simulated(config) => {
                    let side = Side::simulated((**config).clone());
                    let cluster = side.cluster().cloned();
                    (side, cluster)
                }
            };
            let trace = world::run(&side, &plan).await;
            if let Some(cluster) = cluster {
                cluster.shutdown().await;
            }
            trace
        });
        // Calls that never ended are not waited for.
        runtime.shutdown_background();
        let real = real.map_err(|broken| anyhow!(broken.0))?;
        Ok(Checked {
            steps: real.iter().filter(|step| !step.skipped).count(),
            compared: compare::compared(&real),
            explained: compare::explained(&ops, &simulated, &real),
            divergence: compare::divergence(&ops, &simulated, &real),
        })
    }

    /// The simulated side alone.
    ///
    /// # Errors
    /// When a client or an admin call cannot be made at all.
    pub fn simulate(&self, plan: &Plan<'_>) -> anyhow::Result<Trace> {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        let trace = runtime.context("no runtime")?.block_on(async {
            let side = Side::simulated(self.config.clone());
            let trace = world::run(&side, plan).await;
            if let Some(cluster) = side.cluster() {
                cluster.shutdown().await;
            }
            trace
        });
        trace.map_err(|broken| anyhow!(broken.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;
    use sim_broker::core::profile::{CopiedSubscriptions, Profile};

    use super::super::op::{Kind, Pick};
    use super::super::{generate, shrink, trace::Place};
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn config(change: impl FnOnce(&mut Profile)) -> ClusterConfig {
        let mut profile = Profile::built_in("pulsar-5.0.1").unwrap();
        profile.prune_interval_ms = 1 << 40;
        change(&mut profile);
        ClusterConfig { brokers: 1, ..ClusterConfig::new(profile) }
    }

    /// The simulator as it is, against one that departs from it.
    fn bench(change: impl FnOnce(&mut Profile)) -> Bench {
        Bench::new(config(|_| ()), Other::Simulated(Box::new(config(change))))
    }

    fn generated(number: u64) -> Vec<Op> {
        generate::sequence(7, number).unwrap().current()
    }

    fn shrunk(bench: &Bench, ops: &[Op]) -> shrink::Shrunk {
        let found = bench.check(ops, PATIENCE).unwrap().divergence.expect("a divergence");
        shrink::shrink(ops, found.clone(), 200, |ops| {
            let divergence = bench.check(ops, PATIENCE).unwrap().divergence;
            divergence.filter(|divergence| divergence.is_like(&found))
        })
    }

    #[test]
    fn a_simulator_is_like_itself() {
        let bench = bench(|_| ());
        let mut compared = 0;
        for number in 0..12 {
            let checked = bench.check(&generated(number), PATIENCE).unwrap();
            let divergence = checked.divergence.map(|divergence| divergence.to_string());
            assert_eq!(divergence, None, "sequence 7:{number}\n{}", op::script(&generated(number)));
            compared += checked.compared;
        }
        assert!(compared > 500, "only {compared} values");
    }

    #[test]
    fn another_number_of_buckets_is_seen_and_shrunk_to_the_topic_that_shows_it() {
        let bench = bench(|profile| profile.entry_bucket_budget = 6);
        let ops: Vec<Op> = [vec![Op::Create { topic: 0, segments: 2 }], generated(1)].concat();
        let shrunk = shrunk(&bench, &ops);
        assert_eq!(shrunk.ops, [Op::Create { topic: 0, segments: 1 }]);
        assert!(shrunk.divergence.differences.iter().any(|d| matches!(d.place, Place::Segment(0, _))));
    }

    #[test]
    fn a_subscription_that_is_copied_by_another_rule_is_found_among_other_steps() {
        let bench = bench(|profile| profile.copied_subscriptions = CopiedSubscriptions::Durable);
        let subscribe = Op::Subscribe {
            consumer: 0,
            client: 0,
            topic: 0,
            kind: Kind::Queue,
            subscription: 0,
            earliest: true,
        };
        let (close, split) =
            (Op::CloseConsumer { consumer: 0 }, Op::Split { topic: 0, segment: Pick::Active(0) });
        let noise = |number| {
            let unrelated = |op: &Op| matches!(op, Op::Receive | Op::Nonsense { .. } | Op::Produce { .. });
            generated(number).into_iter().filter(unrelated).collect::<Vec<_>>()
        };
        let ops = [
            vec![Op::Create { topic: 0, segments: 1 }],
            noise(1),
            vec![subscribe.clone()],
            noise(2),
            vec![close.clone(), split.clone()],
            noise(3),
        ];
        let shrunk = shrunk(&bench, &ops.concat());
        assert_eq!(shrunk.ops, [subscribe, close, split], "{}", shrunk.divergence);
    }
}
