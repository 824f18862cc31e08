//! Which scenarios a real broker can run behind the proxy, and what keeps the others away.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use regex::Regex;
use serde::Deserialize;
use stc_runner::feature::{Need, Scenario};
use stc_runner::select::unmet;
use stc_runner::target::TargetConfig;

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Entry {
    Step { step: String, why: String },
    Scenario { scenario: String, why: String },
}

/// Reasons by the steps and by the scenarios that they belong to.
pub(super) struct OutOfReach {
    steps: Vec<(Regex, String)>,
    scenarios: BTreeMap<String, String>,
}

impl OutOfReach {
    /// Reads the list.
    pub(super) fn load(path: &Path) -> anyhow::Result<OutOfReach> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let entries: Vec<Entry> =
            serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
        let mut list = OutOfReach { steps: Vec::new(), scenarios: BTreeMap::new() };
        for entry in entries {
            match entry {
                Entry::Step { step, why } => {
                    let regex = Regex::new(&format!("^(?:{step})$"))
                        .with_context(|| format!("{}: {step:?}", path.display()))?;
                    list.steps.push((regex, why));
                }
                Entry::Scenario { scenario, why } => {
                    list.scenarios.insert(scenario, why);
                }
            }
        }
        Ok(list)
    }

    /// What keeps a scenario away; `None` for a portable one.
    ///
    /// # Errors
    /// When it is not portable and no entry says why.
    pub(super) fn of(&self, scenario: &Scenario) -> anyhow::Result<Option<String>> {
        if let Some(why) = self.scenarios.get(&scenario.id) {
            return Ok(Some(why.clone()));
        }
        let offers = proxied().offers();
        if unmet(scenario, offers, "url").is_none() {
            return Ok(None);
        }
        let lacking: Vec<&str> = Need::ALL
            .into_iter()
            .filter(|need| scenario.needs.contains(need) && !offers.contains(need))
            .map(Need::tag)
            .collect();
        let lacking = lacking.join(", ");
        let listed =
            self.steps.iter().find(|(step, _)| scenario.steps.iter().any(|s| step.is_match(&s.value)));
        match listed {
            Some((_, why)) => Ok(Some(format!("{lacking}: {why}"))),
            // That something never happens is shown by idle virtual time, and no single step says so.
            None if lacking == Need::VirtualTime.tag() => Ok(Some(format!(
                "{lacking}: it shows that something does not happen for a long time, or that retries end"
            ))),
            None => bail!("{} is not portable ({lacking}), and nothing says why", scenario.id),
        }
    }
}

fn proxied() -> TargetConfig {
    TargetConfig::Proxied { service_url: String::new(), admin_url: String::new() }
}

#[cfg(test)]
mod tests {
    use stc_runner::suite::Suite;

    use super::*;

    #[test]
    fn every_scenario_that_is_left_out_has_a_reason() {
        let list = OutOfReach::load(&xtask::workspace_root().join("crosscheck/out-of-reach.yaml")).unwrap();
        let suite = Suite::load(&xtask::workspace_root().join("features")).unwrap();
        let mut unexplained = Vec::new();
        let mut portable = 0;
        for scenario in &suite.scenarios {
            match list.of(scenario) {
                Ok(None) => portable += 1,
                Ok(Some(_)) => {}
                Err(error) => unexplained.push(error.to_string()),
            }
        }
        assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
        assert!(portable > 300, "{portable}");
    }

    #[test]
    fn every_reason_belongs_to_a_scenario() {
        let list = OutOfReach::load(&xtask::workspace_root().join("crosscheck/out-of-reach.yaml")).unwrap();
        let suite = Suite::load(&xtask::workspace_root().join("features")).unwrap();
        for id in list.scenarios.keys() {
            assert!(suite.scenarios.iter().any(|scenario| scenario.id == *id), "there is no scenario {id}");
        }
        for (step, _) in &list.steps {
            let steps = suite.scenarios.iter().flat_map(|scenario| &scenario.steps);
            assert!(steps.into_iter().any(|s| step.is_match(&s.value)), "no step matches {step}");
        }
    }
}
