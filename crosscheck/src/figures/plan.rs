//! What is measured, in which order.

use std::collections::BTreeMap;

use stc_runner::output::complain;

use super::{
    broker::{Broker, Target},
    client::Kind,
};
use crate::ports::Ports;

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// From the start of the broker's process to the first acknowledged message, in ms; its topic is made on the way.
    Start,
    /// Resident memory after that, in MiB.
    Memory,
    /// Batched messages of 100 bytes sent a second.
    Produced,
    /// The same received and acknowledged a second.
    Consumed,
    /// The median of unbatched sends of 100 bytes that each wait for the one before, in ms.
    LatencyMedian,
    /// Their 99th percentile, in ms.
    LatencyTail,
}

/// One measurement each repetition, by line, client and target.
pub type Measured = BTreeMap<(Figure, Kind, Target), Vec<f64>>;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How often.
    pub repetitions: u32,
    /// Unbatched sends.
    pub sends: u32,
    /// How long batched messages are sent, and received, in seconds.
    pub seconds: f64,
    /// Whether with the Java client too.
    pub java: bool,
}

impl Plan {
    /// Measures all of it. Targets and clients take turns, so that what else the machine does hits all of them.
    ///
    /// # Errors
    /// When a broker or a client does not do its part.
    pub fn carry_out(&self) -> anyhow::Result<Measured> {
        let mut measured = Measured::new();
        let clients: &[Kind] = if self.java { &[Kind::Reference, Kind::Java] } else { &[Kind::Reference] };
        for repetition in 1..=self.repetitions {
            for kind in clients {
                for target in [Target::Simulator, Target::Released] {
                    let figures = self.measure(*kind, target)?;
                    for (figure, value) in figures {
                        measured.entry((figure, *kind, target)).or_default().push(value);
                    }
                }
                complain(format_args!("repetition {repetition} of {}: {}", self.repetitions, kind.name()));
            }
        }
        Ok(measured)
    }

    /// All lines for one client and a broker that is started for it.
    fn measure(&self, kind: Kind, target: Target) -> anyhow::Result<Vec<(Figure, f64)>> {
        let ports = Ports::free()?;
        let mut client = kind.start(&ports.service_url())?;
        client.begin_first(&topic("first"))?;
        let mut broker = Broker::start(target, ports)?;
        client.first_acknowledged()?;
        let acknowledged = std::time::Instant::now();
        let start = acknowledged.saturating_duration_since(broker.started()?).as_secs_f64() * 1e3;
        let memory = broker.memory()?;

        let latency = client.latency(&topic("latency"), self.sends)?;
        let mut figures = vec![
            (Figure::Start, start),
            (Figure::Memory, memory),
            (Figure::LatencyMedian, percentile(&latency, 50)),
            (Figure::LatencyTail, percentile(&latency, 99)),
        ];
        // Both sides have done the same before: neither is measured while it still compiles its code.
        for (name, measured) in [("warm-up", false), ("load", true)] {
            let seconds = if measured { self.seconds } else { self.seconds / 2.0 };
            let topic = topic(name);
            let produced = client.produce(&topic, seconds)?;
            let consumed = client.consume(&topic, produced.messages, seconds)?;
            if measured {
                figures.push((Figure::Produced, produced.a_second));
                figures.push((Figure::Consumed, consumed.a_second));
            }
        }
        Ok(figures)
    }
}

fn topic(name: &str) -> String {
    format!("topic://public/default/figures-{name}")
}

/// Of values that rise; 0 of none.
fn percentile(values: &[f64], percent: usize) -> f64 {
    let rank = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(rank).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 50), 100.0);
        assert_eq!(percentile(&values, 99), 198.0);
        assert_eq!(percentile(&[7.0], 99), 7.0);
        assert_eq!(percentile(&[], 50), 0.0);
    }
}
