//! Two clients as one: the first produces, the second consumes.

use std::path::Path;
use std::sync::Arc;

use stc_reports::{ScenarioResult, Verdict};
use stc_runner::client::paired::PairedFactory;
use stc_runner::client::reference::ReferenceFactory;
use stc_runner::feature::Scenario;
use stc_runner::run::{Environment, RunConfig, Trace, run};
use stc_runner::suite::Suite;
use stc_runner::target::TargetConfig;

const SEED: u64 = 7;

fn judged(pair: PairedFactory, choose: impl Fn(&Scenario) -> bool) -> Vec<ScenarioResult> {
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    let chosen: Vec<&Scenario> =
        suite.scenarios.iter().filter(|s| PairedFactory::fits(s)).filter(|s| choose(s)).collect();
    let config = RunConfig {
        environment: Arc::new(Environment::new(TargetConfig::Memory, "spec-1.0", Arc::new(pair))),
        seed: SEED,
        jobs: 4,
        trace: Trace::All,
        replay: String::new(),
    };
    run(&chosen, &config)
}

fn reference() -> Arc<ReferenceFactory> {
    Arc::new(ReferenceFactory::default())
}

#[test]
fn a_pair_of_sound_clients_passes_and_no_connection_does_both() {
    let results = judged(PairedFactory { producing: reference(), consuming: reference() }, |_| true);
    assert!(results.len() > 50, "only {} scenarios fit", results.len());
    assert!(
        results.iter().all(|r| r.id != "message-identifier"),
        "an identifier goes from one SDK to the other"
    );
    for result in results {
        assert_eq!(result.verdict, Verdict::Pass, "{} (seed {SEED}): {:?}", result.id, result.failure);
        let doing = |name: &str| -> Vec<(u32, u64)> {
            let frames = result.transcript.iter().filter(|r| r.name == name);
            frames.filter_map(|r| Some((r.broker?, r.conn?))).collect()
        };
        // A consumer with a dead-letter policy sends what came too often.
        if result.checklist.contains(&"dead-letter".to_owned()) {
            continue;
        }
        let producing = doing("SEND");
        let both = doing("FLOW").into_iter().find(|conn| producing.contains(conn));
        assert_eq!(both, None, "{}: one client did both", result.id);
    }
}

#[cfg(feature = "deviants")]
#[test]
fn a_fault_shows_on_the_side_that_has_it() {
    use stc_runner::client::reference::Deviant;
    for (name, sides) in [("drop-properties", (true, false)), ("no-payload", (false, true))] {
        let broken = || Arc::new(ReferenceFactory { deviant: Deviant::by_name(name) });
        let failed = |pair| {
            let results = judged(pair, |s| s.id.starts_with("message-"));
            results.iter().any(|r| r.verdict == Verdict::Fail)
        };
        let found = (
            failed(PairedFactory { producing: broken(), consuming: reference() }),
            failed(PairedFactory { producing: reference(), consuming: broken() }),
        );
        assert_eq!(found, sides, "{name}: producing, consuming");
    }
}
