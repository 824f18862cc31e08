//! The scenarios: which broker goes, and how.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use stc_runner::output::complain;

use super::{
    application::Application,
    cluster::{Cluster, End},
    facts::{self, Facts, Layout, Registered},
    wire::{Seen, Wire},
};

/// One broker of two goes while messages flow, and comes back when all is over.
#[derive(Debug)]
pub struct Scenario {
    /// Its name on the command line and in the report.
    pub name: &'static str,
    /// Whether the broker is the one with the topic's controller, beside its segments.
    controller: bool,
    end: End,
}

/// All of them.
pub const SCENARIOS: [Scenario; 4] = [
    Scenario { name: "owner-killed", controller: false, end: End::Killed },
    Scenario { name: "owner-drained", controller: false, end: End::Drained },
    Scenario { name: "controller-killed", controller: true, end: End::Killed },
    Scenario { name: "controller-drained", controller: true, end: End::Drained },
];

const SEGMENTS: u32 = 4;
/// How many topics are tried until one is spread over both brokers and its layout comes from the controller's; one in
/// two or so is not.
const TRIES: usize = 12;
/// Messages before, and after, the broker goes.
const MESSAGES: usize = 200;
/// How long a registration may take once all messages went through.
const PATIENCE: Duration = Duration::from_secs(20);

impl Scenario {
    /// Runs it; the cluster is whole again afterwards. With `show_wire` what the connections carried goes to standard error.
    ///
    /// # Errors
    /// When the topic, the producer or a consumer cannot be opened, no topic is spread over both brokers, or the broker
    /// does not go or come back.
    pub async fn run(&self, cluster: &Cluster, show_wire: bool) -> anyhow::Result<Facts> {
        let (mut application, wire, layout) = self.spread(cluster).await?;
        let controller = layout.controller.context("the layout names no controller")?;
        let ports = cluster.ports();
        let broker = ports.iter().position(|port| (*port == controller) == self.controller);
        let broker = broker.context("the controller is at none of the brokers")?;
        let victim = ports.get(broker).copied().unwrap_or_default();
        if !layout.owners.values().any(|owner| *owner == victim) {
            bail!("the broker that is about to go owns no segment");
        }
        application.send(MESSAGES).await;
        let mark = wire.mark();
        complain(format_args!("{}: {} on the {}", self.name, victim, cluster.name()));
        // A real broker takes seconds to go; messages flow meanwhile.
        let mut going = std::pin::pin!(cluster.end(broker, self.end));
        loop {
            tokio::select! {
                gone = &mut going => break gone?,
                () = application.send(1) => {}
            }
        }
        application.send(MESSAGES).await;
        application.settle().await?;
        let seen = self.settled(&wire, mark, victim).await;
        // Before the consumers leave, which may push it once more.
        let last = facts::layout(&wire.since(0)).unwrap_or_default();
        if show_wire {
            seen.iter().filter_map(Seen::line).for_each(complain);
        }
        let mut facts = facts::of_application(&application.close().await);
        facts.extend(facts::of_wire(wire.since(0).get(..mark).unwrap_or_default(), &seen, &last, victim));
        cluster.revive(broker).await?;
        Ok(facts)
    }

    /// An application on a topic whose segments both brokers own.
    async fn spread(&self, cluster: &Cluster) -> anyhow::Result<(Application, Wire, Layout)> {
        for n in 0..TRIES {
            let name = format!("{}-{n}", self.name);
            cluster.create(&name, SEGMENTS).await?;
            let wire = Wire::default();
            let topic = format!("topic://public/default/{name}");
            let mut application = Application::open(&cluster.service_url(), &topic, &wire).await?;
            // Once messages went through, every segment is attached and its owner known.
            application.send(MESSAGES / 2).await;
            application.settle().await?;
            // The controller's broker is also the one that pushes layouts to everybody, so that losing either broker means
            // the same on all clusters.
            let seen = wire.since(0);
            if let Some(layout) = facts::layout(&seen)
                && facts::watched_at(&seen).iter().copied().eq(layout.controller)
                && cluster.ports().iter().all(|port| layout.owners.values().any(|owner| owner == port))
            {
                return Ok((application, wire, layout));
            }
            application.close().await;
        }
        bail!("none of {TRIES} topics is spread over both brokers with its watch at the controller")
    }

    /// What was seen once the stream consumer is registered again, if it lost its controller or asked, or patience ends.
    async fn settled(&self, wire: &Wire, mark: usize, victim: u16) -> Vec<Seen> {
        let begun = Instant::now();
        loop {
            let seen = wire.since(mark);
            let done = match facts::registered(&seen, victim) {
                Registered::NotAsked => !self.controller,
                Registered::Unanswered => false,
                Registered::Answered => true,
            };
            if done || begun.elapsed() > PATIENCE {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
