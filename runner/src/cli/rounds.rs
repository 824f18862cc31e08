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
}

impl Rounds {
    pub(super) fn ended(&mut self, report: Report) {
        self.count += 1;
        for scenario in &report.scenarios {
            let verdicts = self.verdicts.entry(scenario.id.clone()).or_default();
            verdicts.entry(scenario.verdict.as_str()).or_insert((0, report.seed)).0 += 1;
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
        for (id, verdicts) in differing {
            let told: Vec<String> = verdicts
                .iter()
                .map(|(verdict, (n, seed))| format!("{n} {verdict} (first with seed {seed})"))
                .collect();
            say(format_args!("            {id}: {}", told.join(", ")));
        }
    }
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
