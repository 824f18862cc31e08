//! The comparison, and which differences are explained.

use stc_runner::output::say;

use super::{facts::Facts, scenario::Scenario};

/// A difference that `docs/divergences.md` explains.
struct Explained {
    /// The entry.
    entry: &'static str,
    /// In which scenarios: those whose name contains this.
    scenario: &'static str,
    /// The line that may differ.
    fact: &'static str,
    /// What the simulator shows there.
    simulator: &'static str,
    /// What the released broker may show there: any of these, as what it meets is chance.
    released: &'static [&'static str],
}

const EXPLAINED: [Explained; 2] = [
    Explained {
        entry: "B41",
        scenario: "drained",
        fact: "refusals",
        simulator: "none",
        released: &["ACK: UnknownError", "SEND: PersistenceError", "LOOKUP: MetadataError"],
    },
    Explained {
        entry: "B41",
        scenario: "drained",
        fact: "errors in layout updates",
        simulator: "none",
        released: &["TopicNotFound"],
    },
];

impl Explained {
    fn fits(&self, scenario: &str, fact: &str, simulator: &str, released: &str) -> bool {
        scenario.contains(self.scenario)
            && self.fact == fact
            && self.simulator == simulator
            && released.split(", ").all(|part| self.released.contains(&part))
    }
}

/// Prints what one side shows.
pub fn show(scenarios: &[&Scenario], facts: &[Facts]) {
    for (scenario, facts) in scenarios.iter().zip(facts) {
        say(format_args!("{}", scenario.name));
        for (name, value) in facts {
            say(format_args!("  {name:34} {value}"));
        }
    }
}

/// Prints both, and counts the differences that are not explained.
pub fn print(scenarios: &[&Scenario], simulated: &[Facts], released: &[Facts]) -> usize {
    let (mut alike, mut explained, mut unexplained) = (0, 0, 0);
    for ((scenario, simulated), released) in scenarios.iter().zip(simulated).zip(released) {
        say(format_args!("{}", scenario.name));
        for ((name, simulator), (_, broker)) in simulated.iter().zip(released) {
            if simulator == broker {
                alike += 1;
                say(format_args!("  both       {name}: {simulator}"));
                continue;
            }
            let entry = explanation(scenario.name, name, simulator, broker);
            match entry {
                Some(_) => explained += 1,
                None => unexplained += 1,
            }
            say(format_args!("  {:10} {name}", entry.unwrap_or("DIFFERENT")));
            say(format_args!("    simulator     {simulator}"));
            say(format_args!("    Pulsar 5.0.1  {broker}"));
        }
    }
    say(format_args!(
        "{} scenarios: {alike} lines alike, {explained} differences explained, {unexplained} not",
        scenarios.len()
    ));
    unexplained
}

fn explanation(scenario: &str, fact: &str, simulator: &str, released: &str) -> Option<&'static str> {
    EXPLAINED.iter().find(|known| known.fits(scenario, fact, simulator, released)).map(|known| known.entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_down_is_explained() {
        let of = |scenario, released| explanation(scenario, "refusals", "none", released);
        assert_eq!(of("owner-drained", "SEND: PersistenceError"), Some("B41"));
        assert_eq!(of("owner-drained", "ACK: UnknownError, SEND: PersistenceError"), Some("B41"));
        assert_eq!(of("owner-drained", "ACK: UnknownError, SEND: ChecksumError"), None);
        assert_eq!(of("owner-killed", "SEND: PersistenceError"), None);
        assert_eq!(explanation("owner-drained", "lost by the stream consumer", "none", "1"), None);
    }
}
