//! Several runs of the same scenarios: which report to show, and which verdicts differ.

use std::collections::BTreeMap;

use stc_reports::{ExitCode, Report};

use crate::output::say;

/// The rounds so far.
#[derive(Default)]
pub(super) struct Rounds {
    shown: Option<(Report, ExitCode)>,
    count: usize,
    /// Verdicts of each scenario, with the first seed that gave each.
    verdicts: BTreeMap<String, BTreeMap<&'static str, (usize, u64)>>,
    /// The same of scenarios that fail by chance, by what came of them.
    chances: BTreeMap<String, BTreeMap<&'static str, (usize, u64)>>,
}

impl Rounds {
    pub(super) fn ended(&mut self, report: Report) {
        self.count += 1;
        for scenario in &report.scenarios {
            count(&mut self.verdicts, &scenario.id, scenario.verdict.as_str(), report.seed);
            if let Some(chance) = scenario.by_chance {
                count(&mut self.chances, &scenario.id, chance.as_str(), report.seed);
            }
        }
        let code = report.exit_code();
        // The first of the worst is what somebody has to look at.
        if self.shown.as_ref().is_none_or(|(_, worst)| gravity(code) > gravity(*worst)) {
            self.shown = Some((report, code));
        }
    }

    /// The report to show, and the exit code of all rounds together.
    pub(super) fn outcome(&mut self) -> Option<(Report, ExitCode)> {
        self.shown.take()
    }

    /// Tells which verdicts differ, after more than one round.
    pub(super) fn tell(&self) {
        if self.count < 2 {
            return;
        }
        let differing: Vec<_> = self.verdicts.iter().filter(|(_, verdicts)| verdicts.len() > 1).collect();
        say(format_args!(
            "Rounds      {}, {} scenarios with differing verdicts",
            self.count,
            differing.len()
        ));
        let tell = |(id, outcomes): (&String, &BTreeMap<&str, (usize, u64)>)| {
            let told: Vec<String> = outcomes
                .iter()
                .map(|(outcome, (n, seed))| format!("{n} {outcome} (first with seed {seed})"))
                .collect();
            say(format_args!("            {id}: {}", told.join(", ")));
        };
        differing.into_iter().for_each(tell);
        if !self.chances.is_empty() {
            say(format_args!("By chance   {} of the known failures:", self.chances.len()));
            self.chances.iter().for_each(tell);
        }
    }
}

fn count(
    outcomes: &mut BTreeMap<String, BTreeMap<&'static str, (usize, u64)>>,
    id: &str,
    outcome: &'static str,
    seed: u64,
) {
    outcomes.entry(id.to_owned()).or_default().entry(outcome).or_insert((0, seed)).0 += 1;
}

/// The code of two runs together.
pub(super) fn worse(one: ExitCode, other: ExitCode) -> ExitCode {
    if gravity(other) > gravity(one) { other } else { one }
}

/// What one run found counts more than what another could not judge.
fn gravity(code: ExitCode) -> u8 {
    match code {
        ExitCode::Conforms => 0,
        ExitCode::Usage => 1,
        ExitCode::Harness => 2,
        ExitCode::DoesNotConform => 3,
    }
}
