//! Running scenarios against the simulated cluster in memory, with the reference client.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use stc_adapter_protocol::*;
use stc_reports::{ClientInfo, ScenarioResult, StepStatus, Verdict, WireRecord};
use stc_runner::client::reference::ReferenceFactory;
use stc_runner::client::{ClientError, ClientUnderTest, Reply};
use stc_runner::feature::{Scenario, parse};
use stc_runner::run::{ClientFactory, Environment, Opening, RunConfig, Trace, run, scenario_seed};
use stc_runner::suite::Suite;
use stc_runner::target::{Broker, TargetConfig};

const SEED: u64 = 7;

fn config(jobs: usize) -> RunConfig {
    config_with(Arc::new(ReferenceFactory::default()), jobs)
}

fn config_with(client: Arc<dyn ClientFactory>, jobs: usize) -> RunConfig {
    RunConfig {
        environment: Arc::new(Environment::new(TargetConfig::Memory, "spec-1.0", client)),
        seed: SEED,
        jobs,
        trace: Trace::All,
        replay: format!("replay --seed {SEED}"),
    }
}

/// Runs one scenario with these steps.
fn one(steps: &str) -> ScenarioResult {
    let text = format!("Feature: f\n  @id:C1-test @C1 @IMPL-1.3 @IMPL-2.6\n  Scenario: s\n{steps}");
    let scenarios = parse("f.feature", &text).expect("the text is a feature");
    let refs: Vec<&Scenario> = scenarios.iter().collect();
    run(&refs, &config(1)).pop().expect("one scenario has one result")
}

/// What the same seed gives again. Data keys and nonces come from the system, so of what is encrypted only the exchange is.
fn journal(result: &ScenarioResult) -> Vec<WireRecord> {
    let encrypts = |record: &WireRecord| {
        record.entry.as_ref().is_some_and(|entry| format!("{entry:?}").contains("encryption_keys"))
    };
    let encrypted = result.transcript.iter().any(encrypts);
    let records = result.transcript.iter().cloned();
    records
        .map(|record| match encrypted {
            true => WireRecord { fields: Default::default(), entry: None, ..record },
            false => record,
        })
        .collect()
}

#[test]
fn the_reference_client_passes_and_neither_jobs_nor_order_change_anything() {
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    let forward: Vec<&Scenario> = suite.scenarios.iter().collect();
    let backward: Vec<&Scenario> = suite.scenarios.iter().rev().collect();
    let alone = run(&forward, &config(1));
    let mut beside = run(&backward, &config(4));
    beside.reverse();
    for (one, other) in alone.iter().zip(&beside) {
        assert_eq!(one.verdict, Verdict::Pass, "{} (seed {SEED}): {:?}", one.id, one.failure);
        assert_eq!(one.id, other.id);
        assert_eq!(other.verdict, Verdict::Pass, "{} (seed {SEED}): {:?}", other.id, other.failure);
        assert_eq!(journal(one), journal(other), "{}: the same seed gave another journal", one.id);
        // These operations fail before they reach a broker, as they should.
        let needs_none =
            ["C7-to-nothing", "C9-no-topic", "C13-no-topic", "C13-service-url"].contains(&one.id.as_str());
        assert!(!one.transcript.is_empty() || needs_none, "{} left no trace", one.id);
    }
    assert_eq!(alone.len(), suite.scenarios.len());
}

#[test]
fn seeds_depend_on_the_run_and_on_the_scenario() {
    assert_eq!(scenario_seed(1, "a"), scenario_seed(1, "a"));
    assert_ne!(scenario_seed(1, "a"), scenario_seed(2, "a"));
    assert_ne!(scenario_seed(1, "a"), scenario_seed(1, "b"));
}

#[test]
fn what_does_not_hold_fails_and_blames_the_cited_requirement() {
    let result = one("    Given a scalable topic with 2 segments
    And a producer on the topic
    When the producer sends 4 messages with 1 key
    Then the client has a layout watch of the topic open
    And the messages without a key went round the 2 segments in turn
    And every send succeeds
");
    // Four messages of one key are in one segment, and none is without a key: the step cannot judge.
    assert_eq!(result.verdict, Verdict::HarnessError);
    let statuses: Vec<StepStatus> = result.steps.iter().map(|s| s.status).collect();
    use StepStatus::{Failed, Passed, Skipped};
    assert_eq!(statuses, [Passed, Passed, Passed, Passed, Failed, Skipped]);

    let result = one("    Given a scalable topic with 2 segments
    And a producer on the topic
    When the producer sends 4 messages without keys
    And the application subscribes the queue consumer on the topic with subscription \"s\"
    And the queue consumer receives 3 messages
    Then the messages without a key went round the 3 segments in turn
");
    assert_eq!(result.verdict, Verdict::Fail);
    let failure = result.failure.unwrap();
    assert_eq!(failure.requirement.as_deref(), Some("IMPL-2.6"));
    assert_eq!(failure.location, "f.feature:9");
    assert!(failure.message.contains("3 active segments take turns"), "{}", failure.message);
    assert_eq!(result.replay, format!("replay --seed {SEED} --scenario C1-test"));
}

#[test]
fn faults_of_the_suite_are_told_from_faults_of_the_client() {
    let result = one("    Given the moon is full\n");
    assert_eq!(result.verdict, Verdict::HarnessError);
    assert!(result.failure.unwrap().message.contains("no step matches \"Given the moon is full\""));

    let result = one("    When the producer sends a message\n");
    assert_eq!(result.verdict, Verdict::HarnessError);
    assert!(result.failure.unwrap().message.contains("no step made a producer"));

    let result = one("    Given a scalable topic with 0 segments\n");
    assert_eq!(result.verdict, Verdict::HarnessError);
    assert!(result.failure.unwrap().message.contains("412"));
}

#[test]
fn tags_of_needs_that_do_not_fit_the_steps_are_faults_of_the_suite() {
    let tagged = |tags: &str, steps: &str| {
        let text = format!("Feature: f\n  @id:x @C1 @IMPL-1.3 {tags}\n  Scenario: s\n{steps}");
        let scenarios = parse("f.feature", &text).unwrap();
        let result = run(&[&scenarios[0]], &config(1)).pop().unwrap();
        (result.verdict, result.failure.map(|f| f.message).unwrap_or_default())
    };
    let control = "    Given a cluster of 1 broker\n    And a scalable topic with 1 segment\n";
    let journal = "    Given a scalable topic with 1 segment
    And a producer on the topic
    Then the client has a layout watch of the topic open\n";
    let stored = "    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer sends 2 messages without keys
    Then every message of the topic is stored exactly once\n";
    for (tags, steps, named) in [
        ("", control, "@needs-control"),
        ("", journal, "@needs-journal"),
        ("@needs-control", stored, "@needs-control"),
        ("@needs-journal", stored, "@needs-journal"),
    ] {
        let (verdict, message) = tagged(tags, steps);
        assert_eq!(verdict, Verdict::HarnessError, "{tags} {steps}");
        assert!(message.contains(named), "{message}");
    }
    for (tags, steps) in [("@needs-control", control), ("@needs-journal", journal), ("", stored)] {
        assert_eq!(tagged(tags, steps).0, Verdict::Pass, "{tags} {steps}");
    }
}

#[test]
fn a_fault_that_never_strikes_fails_its_scenario() {
    let result = one("    Given a scalable topic with 1 segment
    And a producer on the topic
    And the next 2 SEND on the topic are held
    When the producer starts to send 1 message with 1 key
    And 1 frame is held
    And the held frames are released
    Then every send succeeds
");
    assert_eq!(result.verdict, Verdict::Fail);
    let message = result.failure.unwrap().message;
    assert!(message.contains("never struck") && message.contains("1 of 2"), "{message}");
}

#[test]
fn what_never_ends_is_found_out_in_virtual_time() {
    let result = one("    Given a scalable topic with 1 segment
    And a queue consumer on the topic with subscription \"s\"
    When the application starts to receive from the queue consumer
    And the receive that was started has ended
");
    assert_eq!(result.verdict, Verdict::Fail);
    let failure = result.failure.unwrap();
    assert_eq!(failure.requirement, None);
    assert!(failure.message.contains("nothing happens any more"), "{}", failure.message);
    assert_eq!(failure.step, "And the receive that was started has ended");
}

#[test]
fn what_the_client_does_not_offer_is_unsupported() {
    let result = one("    Given a scalable topic with 1 segment
    And a producer on the topic
    When the client gets the token \"t\"
");
    assert_eq!(result.verdict, Verdict::Unsupported);
    assert!(result.reason.unwrap().contains("another token for a client that was made without one"));
}

#[test]
fn a_target_that_does_not_start_is_no_fault_of_the_client() {
    let scenarios = parse(
        "f.feature",
        "Feature: f\n  @id:x @C1 @IMPL-1.3\n  Scenario: s\n    Given a scalable topic with 1 segment\n",
    )
    .unwrap();
    let mut config = config(1);
    config.environment = Arc::new(Environment::new(
        TargetConfig::Memory,
        "no-such-profile",
        Arc::new(ReferenceFactory::default()),
    ));
    let result = run(&[&scenarios[0]], &config).pop().unwrap();
    assert_eq!(result.verdict, Verdict::CouldNotRun);
    assert!(result.reason.unwrap().contains("no-such-profile"));
}

#[test]
fn steps_know_which_wire_records_are_theirs() {
    let result = one("    Given a scalable topic with 2 segments\n    And a producer on the topic\n    \
        When the producer sends a message with key \"a\"\n    Then every message of the topic is stored exactly once\n");
    let ends: Vec<u64> =
        result.steps.iter().map(|s| s.wire.expect("the cluster runs from the first step on")).collect();
    assert!(ends.is_sorted(), "{ends:?}");
    let sent = result.transcript.iter().find(|r| r.name == "SEND").expect("a message was sent");
    assert!(
        (ends[1] + 1..=ends[2]).contains(&sent.n),
        "SEND is record {}, the steps end at {ends:?}",
        sent.n
    );
    assert_eq!((sent.from.as_str(), &sent.to), ("client", &format!("broker {}", sent.broker.unwrap())));
    assert_eq!(sent.entry.as_ref().unwrap()["metadata"]["partition_key"], "a");
}

#[cfg(feature = "deviants")]
#[test]
fn a_failure_points_at_the_frame_that_shows_it() {
    use stc_runner::client::reference::Deviant;
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    let cases = [
        ("route-low-half", "C2-keyed-high-half/latin-accent", "SEND"),
        ("checkpoint-durable", "C9-no-subscription", "SUBSCRIBE"),
    ];
    for (deviant, id, name) in cases {
        let mut config = config(1);
        let client = ReferenceFactory { deviant: Some(Deviant::by_name(deviant).unwrap()) };
        config.environment = Arc::new(Environment::new(TargetConfig::Memory, "spec-1.0", Arc::new(client)));
        let scenario = suite.scenarios.iter().find(|s| s.id == id).unwrap();
        let result = run(&[scenario], &config).pop().unwrap();
        assert_eq!(result.verdict, Verdict::Fail, "{deviant}");
        let record = result.failure.unwrap().record.expect("one frame shows it");
        let shown = result.transcript.iter().find(|r| r.n == record).expect("the frame is in the transcript");
        assert_eq!((shown.name.as_str(), shown.from.as_str()), (name, "client"), "{deviant}");
    }
}

/// Clients that never start: the first two fail at once, then three fail together.
struct Together {
    started: AtomicUsize,
    three: Barrier,
}

impl ClientFactory for Together {
    fn info(&self) -> ClientInfo {
        ClientInfo { name: "together".to_owned(), version: String::new() }
    }

    fn start<'a>(&'a self, _: &'a Broker, _: Opening<'a>) -> Reply<'a, Rc<dyn ClientUnderTest>> {
        if self.started.fetch_add(1, Ordering::Relaxed) >= 2 {
            self.three.wait();
        }
        Box::pin(std::future::ready(Err(ClientError::Gone("it never starts".to_owned()))))
    }
}

/// Runs a scenario with a producer so often, three at a time.
fn three_at_a_time(times: usize, client: Arc<dyn ClientFactory>) -> Vec<ScenarioResult> {
    let steps = "    Given a scalable topic with 1 segment\n    And a producer on the topic\n";
    let text = format!("Feature: f\n  @id:C1-test @C1 @IMPL-1.3\n  Scenario: s\n{steps}");
    let scenarios = parse("f.feature", &text).expect("the text is a feature");
    let refs: Vec<&Scenario> = scenarios.iter().cycle().take(times).collect();
    run(&refs, &config_with(client, 3))
}

#[test]
fn scenarios_that_end_let_more_run_at_a_time() {
    let client = Arc::new(Together { started: 0.into(), three: Barrier::new(3) });
    assert_eq!(three_at_a_time(5, client.clone()).len(), 5);
    assert_eq!(client.started.load(Ordering::Relaxed), 5);
}

/// Clients that open a client object, and go on when there are three of them.
struct Patient(Arc<Barrier>);

impl ClientFactory for Patient {
    fn info(&self) -> ClientInfo {
        ClientInfo { name: "patient".to_owned(), version: String::new() }
    }

    fn start<'a>(&'a self, _: &'a Broker, _: Opening<'a>) -> Reply<'a, Rc<dyn ClientUnderTest>> {
        let client: Rc<dyn ClientUnderTest> = Rc::new(Patient(Arc::clone(&self.0)));
        Box::pin(std::future::ready(Ok(client)))
    }
}

macro_rules! wait_or_open {
    ($(
        $(#[doc = $about:literal])*
        $method:literal $function:ident $Name:ident [$($needs:ident)?]
        { $($field:ident: $type:ty),* } -> $result:ty;
    )*) => {$(
        fn $function(&self, $(_: $type),*) -> Reply<'_, $result> {
            if $method != "openClient" {
                self.0.wait();
            }
            let opened = serde_json::from_str("1").map_err(|_| ClientError::Unsupported($method.to_owned()));
            Box::pin(std::future::ready(opened))
        }
    )*};
}

impl ClientUnderTest for Patient {
    fn info(&self) -> ClientInfo {
        ClientFactory::info(self)
    }

    for_each_operation!(wait_or_open);

    fn stop(&self) -> Reply<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
fn a_scenario_that_waits_with_its_client_open_lets_more_run_at_a_time() {
    let results = three_at_a_time(3, Arc::new(Patient(Arc::new(Barrier::new(3)))));
    assert!(results.iter().all(|r| r.verdict == Verdict::Pass), "{results:?}");
}
