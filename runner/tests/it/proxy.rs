//! The proxy in front of a broker elsewhere: the journal that it keeps and the frames that it strikes are as good as the
//! simulated cluster's own, and clients fail behind it as they do without it. The broker is a simulated cluster of three,
//! so that clients have to be led from broker to broker.

use std::path::Path;
use std::sync::Arc;

use stc_reports::{ScenarioResult, Verdict};
use stc_runner::client::reference::{Deviant, ReferenceFactory};
use stc_runner::feature::{self, Need, Scenario};
use stc_runner::run::{Environment, RunConfig, Trace, run};
use stc_runner::suite::Suite;
use stc_runner::target::TargetConfig;

use crate::elsewhere::cluster;

const SEED: u64 = 11;

fn suite() -> Suite {
    Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap()
}

/// Runs scenarios behind proxies in front of a new cluster.
fn behind_proxies(scenarios: &[&Scenario], deviant: Option<Deviant>) -> Vec<ScenarioResult> {
    let (runtime, cluster) = cluster();
    let (service_url, admin_url) = (cluster.service_url(), cluster.admin_urls().remove(0));
    let target = TargetConfig::Proxied { service_url, admin_url };
    let client = Arc::new(ReferenceFactory { deviant });
    let config = RunConfig {
        environment: Arc::new(Environment::new(target, "spec-1.0", client)),
        seed: SEED,
        jobs: 8,
        trace: Trace::Failed,
        replay: String::new(),
    };
    let results = run(scenarios, &config);
    runtime.block_on(cluster.shutdown());
    results
}

#[test]
fn scenarios_with_journal_and_faults_pass_behind_the_proxy() {
    let suite = suite();
    let offered = [Need::Faults, Need::Journal];
    let runs = |s: &&Scenario| !s.needs.is_empty() && s.needs.iter().all(|need| offered.contains(need));
    let items = ["C1", "C4", "C5", "C7", "C13", "C14"];
    let filed = |s: &&Scenario| s.checklist.iter().any(|item| items.contains(&item.as_str()));
    let scenarios: Vec<&Scenario> = suite.scenarios.iter().filter(runs).filter(filed).collect();
    assert!(scenarios.len() > 100, "{}", scenarios.len());
    for result in behind_proxies(&scenarios, None) {
        assert_eq!(result.verdict, Verdict::Pass, "{} (seed {SEED}): {:?}", result.id, result.failure);
    }
}

#[cfg(feature = "deviants")]
#[test]
fn a_broken_client_fails_behind_the_proxy_as_it_does_without() {
    let suite = suite();
    let scenarios: Vec<&Scenario> =
        suite.scenarios.iter().filter(|s| s.is_called("C5-lost-receipt")).collect();
    assert!(scenarios.iter().any(|s| s.needs.contains(&Need::Faults)));
    for result in behind_proxies(&scenarios, Deviant::by_name("renumber-resends")) {
        let blamed = result.failure.as_ref().and_then(|failure| failure.requirement.as_deref());
        assert_eq!((result.verdict, blamed), (Verdict::Fail, Some("API-3.2.15")), "{}", result.id);
        assert!(!result.transcript.is_empty(), "{} shows no exchange", result.id);
    }
}

#[test]
fn a_fault_that_never_strikes_fails_its_scenario() {
    let text = "@C1\nFeature: f\n\n  @id:X-idle @IMPL-1.1 @needs-faults\n  Scenario: nothing is struck\n    \
                Given a scalable topic with 1 segment\n    And the connection breaks at the next SEEK\n    \
                And a producer on the topic\n    When the producer sends 1 message without keys\n";
    let scenarios = feature::parse("x.feature", text).unwrap();
    let results = behind_proxies(&scenarios.iter().collect::<Vec<_>>(), None);
    let failure = results[0].failure.as_ref().expect("it fails");
    assert!(failure.message.contains("never struck"), "{}", failure.message);
}
