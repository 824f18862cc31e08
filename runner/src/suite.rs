//! The suite as a whole: scenarios and catalogue, loaded from the folder of the features, and one run over them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stc_reports::{LeftOut, Report, ScenarioResult, SuiteInfo, Target, Tool};
use thiserror::Error;

use crate::catalogue::{Catalogue, CatalogueError, checklist};
use crate::feature::{self, FeatureError, Scenario};
use crate::known::KnownFailures;
use crate::progress::Progress;
use crate::report;
use crate::run::{self, RunConfig, Watch};
use crate::select::{Selection, SelectionError, unmet};

include!(concat!(env!("OUT_DIR"), "/features.rs"));

/// What a run does beside running.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watching {
    /// Whether standard error shows how far it is.
    pub progress: bool,
    /// Whether no scenario begins any more once one has failed.
    pub fail_fast: bool,
}

/// Scenarios and requirements.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The requirements.
    pub catalogue: Catalogue,
    /// All scenarios, in the order of the feature files.
    pub scenarios: Vec<Scenario>,
}

/// Why the suite cannot be used.
#[derive(Debug, Error)]
pub enum SuiteError {
    /// The catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A feature file.
    #[error(transparent)]
    Feature(#[from] FeatureError),
}

impl Suite {
    /// Reads `requirements.yaml`, `why.yaml` if there is one, and all feature files under `dir`.
    ///
    /// # Errors
    /// [`SuiteError`].
    pub fn load(dir: &Path) -> Result<Suite, SuiteError> {
        let (catalogue, why) = (Catalogue::load(&dir.join("requirements.yaml"))?, dir.join("why.yaml"));
        let catalogue = if why.exists() { catalogue.explain_from(&why)? } else { catalogue };
        Ok(Suite { catalogue, scenarios: feature::load(dir)? })
    }

    /// The suite that this program carries.
    ///
    /// # Errors
    /// [`SuiteError`]: the files were wrong when the program was built.
    pub fn embedded() -> Result<Suite, SuiteError> {
        Ok(Suite {
            catalogue: Catalogue::parse(CATALOGUE)?.explain(WHY)?,
            scenarios: feature::parse_all(FEATURES.iter().copied())?,
        })
    }

    /// Runs what is selected and reports on it.
    ///
    /// # Errors
    /// [`SelectionError`]: nothing is run.
    pub fn run(
        &self,
        selection: &Selection,
        config: &RunConfig,
        command: String,
        watching: Watching,
    ) -> Result<Report, SelectionError> {
        let selected = selection.select(&self.scenarios)?;
        let target = &config.environment.target;
        let mut runnable = Vec::new();
        let mut left_out = Vec::new();
        for scenario in selected {
            match unmet(scenario, target.offers(), target.kind().as_str()) {
                None => runnable.push(scenario),
                Some(reason) => left_out.push(LeftOut { scenario: scenario.id.clone(), reason }),
            }
        }
        let started_at = rfc3339(SystemTime::now());
        let clock = Instant::now();
        let progress =
            if watching.progress { Progress::on_stderr(runnable.len()) } else { Progress::silent() };
        let watch = Watch { progress, fail_fast: watching.fail_fast };
        let scenarios = run::run_watched(&runnable, config, &watch);
        let ran: BTreeSet<&str> = scenarios.iter().map(|s| s.id.as_str()).collect();
        let stopped = runnable.iter().filter(|s| !ran.contains(s.id.as_str())).map(|s| LeftOut {
            scenario: s.id.clone(),
            reason: "a scenario had failed before, and --fail-fast was given".to_owned(),
        });
        let cut_short = scenarios.len() < runnable.len();
        left_out.extend(stopped);
        let mut report = self.report(
            selection,
            config,
            command,
            Ran { scenarios, left_out, started_at, took: clock.elapsed() },
        );
        report.filtered |= cut_short;
        Ok(report)
    }

    /// Excuses what the list describes, and draws the conclusions for the requirements.
    pub fn excuse(&self, report: &mut Report, known: &KnownFailures) {
        known.apply(report, |id| self.scenarios.iter().any(|s| s.id == id));
        report.requirements = report::requirements(&self.catalogue, &self.scenarios, &report.scenarios);
    }

    fn report(&self, selection: &Selection, config: &RunConfig, command: String, ran: Ran) -> Report {
        let environment = &config.environment;
        let urls = environment.target.elsewhere();
        let (service_url, admin_url) =
            urls.map(|(service, admin)| (service.to_owned(), admin.to_owned())).unzip();
        Report {
            tool: Tool { name: "stc".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            suite: SuiteInfo {
                version: self.catalogue.version.clone(),
                specification: self.catalogue.specification.clone(),
            },
            started_at: ran.started_at,
            seed: config.seed,
            profile: environment.profile.clone(),
            target: Target { kind: environment.target.kind(), service_url, admin_url },
            client: environment.client.info(),
            duration_ms: u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX),
            filtered: selection.is_filtered(),
            command,
            checklist: checklist(),
            requirements: report::requirements(&self.catalogue, &self.scenarios, &ran.scenarios),
            scenarios: ran.scenarios,
            left_out: ran.left_out,
            stale_known_failures: Vec::new(),
        }
    }
}

struct Ran {
    scenarios: Vec<ScenarioResult>,
    left_out: Vec<LeftOut>,
    started_at: String,
    took: Duration,
}

/// A time as RFC 3339 in UTC, to the second.
fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years: the leap day is the last of its year then.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_767_225_600), "2026-01-01T00:00:00Z");
    }
}
