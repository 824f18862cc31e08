//! Runs scenarios, several at a time, each in a thread and a runtime of its own.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cucumber::World as _;
use stc_reports::{ClientInfo, Failure, ScenarioResult, Verdict};
use tokio::task::LocalSet;

use crate::client::{Asked, ClientError, ClientUnderTest, Reply};
use crate::driver::{self, Driven, Ending, QuietPanics};
use crate::feature::{Need, Scenario};
use crate::judge::Finding;
use crate::progress::Progress;
use crate::target::{Broker, TargetConfig};
use crate::transcript;
use crate::world::World;

/// How long one step may take in virtual time. Far beyond any time-out of a client: whoever waits that long waits for
/// something that will not come.
const VIRTUAL_LIMIT: Duration = Duration::from_secs(600);

/// How long one step may take in real time, outside the process.
const REAL_LIMIT: Duration = Duration::from_secs(90);

/// How long a scenario may keep its thread. Virtual time stands still while somebody is busy, so a client that spins
/// would spin for ever; this is no bound that a slow machine could reach.
const SPIN_LIMIT: Duration = Duration::from_secs(180);

/// Makes the client under test, once for each scenario.
pub trait ClientFactory: Send + Sync {
    /// Who the client is.
    fn info(&self) -> ClientInfo;
    /// What the scenario is about and the client says that it does not offer; the scenario is not run then.
    fn missing(&self, scenario: &Scenario) -> Option<String> {
        let _ = scenario;
        None
    }
    /// Starts a client that can reach `broker`.
    fn start<'a>(&'a self, broker: &'a Broker, opening: Opening<'a>) -> Reply<'a, Rc<dyn ClientUnderTest>>;
}

/// What a client is started for.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// Id of the scenario.
    pub scenario: &'a str,
    /// Its seed.
    pub seed: u64,
    /// Where a client in another process notes what it is asked.
    pub asked: &'a Asked,
}

/// What all scenarios of a run share; nothing in it changes.
pub struct Environment {
    /// The broker side.
    pub target: TargetConfig,
    /// Profile that simulated clusters follow.
    pub profile: String,
    /// The client.
    pub client: Arc<dyn ClientFactory>,
    /// How long one step may take in real time, where that is not the usual.
    pub step_limit: Option<Duration>,
}

impl Environment {
    /// An environment with the usual limits.
    pub fn new(target: TargetConfig, profile: &str, client: Arc<dyn ClientFactory>) -> Environment {
        Environment { target, profile: profile.to_owned(), client, step_limit: None }
    }

    /// How long one operation may take that has a time-out of its own in the client: a little less than its step.
    pub fn operation_limit(&self) -> Duration {
        if self.target.is_memory() { VIRTUAL_LIMIT / 2 } else { self.step_limit() * 5 / 6 }
    }

    /// How long one step may take, in the time of the target.
    pub fn step_limit(&self) -> Duration {
        if self.target.is_memory() { VIRTUAL_LIMIT } else { self.step_limit.unwrap_or(REAL_LIMIT) }
    }
}

/// Whose wire transcripts the results keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// Those of scenarios that did not pass.
    Failed,
    /// All.
    All,
}

/// How to run.
#[derive(Clone)]
pub struct RunConfig {
    /// What the scenarios run against.
    pub environment: Arc<Environment>,
    /// Seed of the run; each scenario derives its own from it and its id.
    pub seed: u64,
    /// How many scenarios run at a time, at least 1.
    pub jobs: usize,
    /// Whose transcripts to keep.
    pub trace: Trace,
    /// The command that runs one scenario again, without ` --scenario ID`.
    pub replay: String,
}

/// A result, and what the step that failed asserts of that which the scenario cites; the result itself names only
/// the first of them.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) result: ScenarioResult,
    pub(crate) asserted: Vec<String>,
}

/// Who watches a run, and what ends it early.
pub struct Watch {
    /// Told of each scenario that has ended.
    pub progress: Progress,
    /// Whether no scenario begins any more once one has failed.
    pub fail_fast: bool,
}

/// Runs the scenarios and returns their results in the same order, whatever `jobs` is.
pub fn run(scenarios: &[&Scenario], config: &RunConfig) -> Vec<ScenarioResult> {
    results_of(run_judged(scenarios, config))
}

/// As [`run`]; what did not begin because of [`Watch::fail_fast`] has no result.
pub fn run_watched(scenarios: &[&Scenario], config: &RunConfig, watch: &Watch) -> Vec<ScenarioResult> {
    results_of(judge_all(scenarios, config, watch))
}

/// [`run`], with all that failing steps assert.
pub(crate) fn run_judged(scenarios: &[&Scenario], config: &RunConfig) -> Vec<Judged> {
    judge_all(scenarios, config, &Watch { progress: Progress::silent(), fail_fast: false })
}

fn results_of(judged: Vec<Judged>) -> Vec<ScenarioResult> {
    judged.into_iter().map(|judged| judged.result).collect()
}

fn judge_all(scenarios: &[&Scenario], config: &RunConfig, watch: &Watch) -> Vec<Judged> {
    let _quiet = QuietPanics::install();
    let workers =
        Workers { scenarios, config, watch, next: 0.into(), working: 1.into(), results: Mutex::default() };
    thread::scope(|scope| workers.work(scope));
    watch.progress.finish();
    workers.results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// Threads that take one scenario after another. Each scenario brings one more, once its client has opened a client object
/// or it has ended, until there are as many as the run may have: clients that begin slowly, such as a JVM, would keep each
/// other from answering in time, and those that hang later would keep the others waiting.
struct Workers<'a> {
    scenarios: &'a [&'a Scenario],
    config: &'a RunConfig,
    watch: &'a Watch,
    /// The index of the scenario that is next.
    next: AtomicUsize,
    working: AtomicUsize,
    results: Mutex<BTreeMap<usize, Judged>>,
}

impl Workers<'_> {
    fn work<'s>(&'s self, scope: &'s thread::Scope<'s, '_>) {
        while let Some((index, scenario)) = self.take() {
            let brought = Cell::new(false);
            let bring = || {
                if !brought.replace(true) && self.is_short_of_one() {
                    scope.spawn(|| self.work(scope));
                }
            };
            let judged = supervised(scenario, self.config, bring);
            self.watch.progress.ended(&judged.result);
            let failed = matches!(judged.result.verdict, Verdict::Fail | Verdict::HarnessError);
            if self.watch.fail_fast && failed {
                self.next.store(self.scenarios.len(), Ordering::Relaxed);
            }
            self.results.lock().unwrap_or_else(PoisonError::into_inner).insert(index, judged);
            bring();
        }
    }

    fn take(&self) -> Option<(usize, &Scenario)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        self.scenarios.get(index).map(|scenario| (index, *scenario))
    }

    /// Counts one more in where there is room.
    fn is_short_of_one(&self) -> bool {
        let more = |working: usize| (working < self.config.jobs).then_some(working + 1);
        self.working.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// The seed of one scenario: the same whichever other scenarios are selected.
pub fn scenario_seed(run: u64, id: &str) -> u64 {
    // FNV-1a over the id, started from the run's seed, then one round of a mixer so that all bits depend on all.
    let hash =
        id.bytes().fold(0xcbf2_9ce4_8422_2325 ^ run, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mixed = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// [`SPIN_LIMIT`], or more where steps may take longer.
fn spin_limit(config: &RunConfig) -> Duration {
    let step = config.environment.step_limit.unwrap_or_default();
    SPIN_LIMIT.max(step.saturating_mul(2).saturating_add(Duration::from_secs(60)))
}

/// What the thread of a scenario tells.
enum Told {
    /// Its client has opened a client object.
    Opened,
    Ended(Box<Judged>),
}

/// Runs one scenario in a thread of its own, so that one that never ends takes nothing else with it. Calls `opened` when
/// its client has opened a client object.
fn supervised(scenario: &Scenario, config: &RunConfig, opened: impl Fn()) -> Judged {
    let (sender, receiver) = mpsc::channel();
    let started = Instant::now();
    let (owned, own_config) = (scenario.clone(), config.clone());
    let spawned = thread::Builder::new().name(scenario.id.clone()).spawn(move || {
        QuietPanics::this_thread();
        // The receiver is gone only when this scenario was given up.
        let telling = sender.clone();
        let tell = move || drop(telling.send(Told::Opened));
        let _ = sender.send(Told::Ended(Box::new(in_runtime(&owned, &own_config, Box::new(tell)))));
    });
    let limit = spin_limit(config);
    let ended = || loop {
        match receiver.recv_timeout(limit.saturating_sub(started.elapsed())) {
            Ok(Told::Opened) => opened(),
            Ok(Told::Ended(judged)) => return Ok(*judged),
            Err(e) => return Err(e),
        }
    };
    let mut judged = match spawned {
        Err(e) => bare(scenario, config, Verdict::CouldNotRun, format!("no thread: {e}")),
        Ok(handle) => match ended() {
            Ok(judged) => judged,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                bare(scenario, config, Verdict::Fail, "the client is busy without end".to_owned())
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let text = handle.join().err().map_or_else(
                    || "the scenario's thread ended".to_owned(),
                    |payload| driver::panic_text(payload.as_ref()),
                );
                bare(scenario, config, Verdict::HarnessError, text)
            }
        },
    };
    judged.result.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    judged
}

fn in_runtime(scenario: &Scenario, config: &RunConfig, opened: Box<dyn Fn()>) -> Judged {
    let in_memory = config.environment.target.is_memory();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(in_memory).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => return bare(scenario, config, Verdict::CouldNotRun, format!("no runtime: {e}")),
    };
    let limit = config.environment.step_limit();
    let judged = LocalSet::new().block_on(&runtime, one(scenario, config, limit, opened));
    // A blocking admin call may still be under way; its answer interests nobody.
    runtime.shutdown_background();
    judged
}

async fn one(scenario: &Scenario, config: &RunConfig, limit: Duration, opened: Box<dyn Fn()>) -> Judged {
    if let Some(capability) = config.environment.client.missing(scenario) {
        return bare(
            scenario,
            config,
            Verdict::Unsupported,
            format!("the client does not offer {capability}"),
        );
    }
    let seed = scenario_seed(config.seed, &scenario.id);
    let mut world = World::new(scenario, Arc::clone(&config.environment), seed, opened);
    let mut driven = driver::drive(scenario, &mut world, &World::collection(), limit).await;
    if matches!(driven.ending, Ending::Held) {
        driven.ending = after(scenario, &world);
    }
    let mut judged = bare(scenario, config, Verdict::Pass, String::new());
    judge(&mut judged, driven, scenario, world.rested_on());
    let result = &mut judged.result;
    let stderr = match world.started_client() {
        Some(client) => finish(result, &*client, limit).await,
        None => Vec::new(),
    };
    if let Some(broker) = world.started_broker() {
        if result.verdict != Verdict::Pass || config.trace == Trace::All {
            result.transcript = broker.journal().iter().flatten().map(transcript::record).collect();
            result.stderr_tail = stderr;
        }
        broker.shutdown().await;
    }
    judged
}

/// What must hold after the last step of any scenario: a fault that never struck means that the scenario did not
/// show what it is about.
fn after(scenario: &Scenario, world: &World) -> Ending {
    let unfired = world.started_broker().map(Broker::unfired_faults).unwrap_or_default();
    let last = scenario.steps.len().saturating_sub(1);
    match unfired.first() {
        None => misfiled(scenario, world).map_or(Ending::Held, |message| Ending::Trouble(last, message)),
        Some(fault) => Ending::Found(
            last,
            Finding::Broken {
                requirements: Vec::new(),
                message: format!("a fault was armed and never struck: {fault}"),
            },
        ),
    }
}

/// What is wrong with the `@needs-` tags of a scenario whose steps have all run. One too few, and the scenario cannot run
/// where the tags say that it can; one too many, and it is left out where it could run.
fn misfiled(scenario: &Scenario, world: &World) -> Option<String> {
    let used = world.used();
    let lacks = used.iter().find(|need| !scenario.needs.contains(need));
    // That something never happens is shown by virtual time as well, and no step says so.
    let idle = |need: &&Need| **need != Need::VirtualTime && !used.contains(need);
    let excess = scenario.needs.iter().find(idle);
    lacks
        .map(|need| format!("a step needs what @{} asks for, and the scenario lacks the tag", need.tag()))
        .or_else(|| excess.map(|need| format!("no step needs what @{} asks for: drop the tag", need.tag())))
}

/// Ends the client. One that passed its scenario and cannot be closed has not passed.
async fn finish(result: &mut ScenarioResult, client: &dyn ClientUnderTest, limit: Duration) -> Vec<String> {
    let problem = match tokio::time::timeout(limit, client.stop()).await {
        Ok(Ok(()) | Err(ClientError::Unsupported(_))) => None,
        Ok(Err(e)) => Some(format!("closing the client failed: {e}")),
        Err(_) => Some("closing the client does not end".to_owned()),
    };
    if let (Verdict::Pass, Some(message)) = (result.verdict, problem) {
        result.verdict = Verdict::Fail;
        result.failure = Some(Failure {
            step: "after the last step".to_owned(),
            message,
            requirement: None,
            location: format!("{}:{}", result.feature, result.line),
            record: None,
        });
    }
    client.stderr_tail()
}

/// Writes down how the steps went. `record` is the wire record that the last judgement rested on.
fn judge(judged: &mut Judged, driven: Driven, scenario: &Scenario, record: Option<u64>) {
    let result = &mut judged.result;
    result.steps = driven.steps;
    let (index, verdict, message) = match driven.ending {
        Ending::Held => return,
        Ending::Found(index, Finding::Broken { requirements, message }) => {
            judged.asserted = requirements;
            (index, Verdict::Fail, message)
        }
        Ending::Found(index, Finding::Unsupported { capability }) => {
            (index, Verdict::Unsupported, format!("the client does not offer {capability}"))
        }
        Ending::Found(index, Finding::CouldNotRun { reason }) => (index, Verdict::CouldNotRun, reason),
        Ending::Hung(index, message) => (index, Verdict::Fail, message),
        Ending::Trouble(index, message) => (index, Verdict::HarnessError, message),
    };
    result.verdict = verdict;
    match verdict {
        Verdict::Unsupported | Verdict::CouldNotRun => result.reason = Some(message),
        _ => {
            let step = scenario.steps.get(index);
            result.failure = Some(Failure {
                step: step.map(|s| format!("{}{}", s.keyword, s.value)).unwrap_or_default(),
                message,
                requirement: judged.asserted.first().cloned(),
                location: format!("{}:{}", scenario.feature, step.map_or(scenario.line, |s| s.position.line)),
                record: record.filter(|_| verdict == Verdict::Fail),
            });
        }
    }
}

/// A result without steps: of a scenario that did not get as far, or to be filled in.
fn bare(scenario: &Scenario, config: &RunConfig, verdict: Verdict, message: String) -> Judged {
    let failure = matches!(verdict, Verdict::Fail | Verdict::HarnessError).then(|| Failure {
        step: String::new(),
        message: message.clone(),
        requirement: None,
        location: format!("{}:{}", scenario.feature, scenario.line),
        record: None,
    });
    let result = ScenarioResult {
        id: scenario.id.clone(),
        name: scenario.name.clone(),
        feature: scenario.feature.clone(),
        line: scenario.line,
        tags: scenario.tags.iter().map(|t| format!("@{t}")).collect(),
        checklist: scenario.checklist.clone(),
        requirements: scenario.requirements.clone(),
        verdict,
        reason: matches!(verdict, Verdict::CouldNotRun | Verdict::Unsupported).then_some(message),
        by_chance: None,
        duration_ms: 0,
        steps: Vec::new(),
        failure,
        transcript: Vec::new(),
        stderr_tail: Vec::new(),
        replay: format!("{} --scenario {}", config.replay, scenario.id),
    };
    Judged { result, asserted: Vec::new() }
}
