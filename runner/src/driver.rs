//! Drives one scenario, step by step.
//!
//! cucumber finds the function of a step; running it is ours. cucumber's own runner swaps the process-wide panic hook
//! on every run (which races when scenarios run side by side), cannot tell a hang, and keeps the world to itself.

use std::any::Any;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cucumber::gherkin;
use cucumber::step::Collection;
use futures_util::FutureExt as _;
use stc_reports::{StepResult, StepStatus};

use crate::feature::Scenario;
use crate::judge::Finding;
use crate::target::Broker;
use crate::world::{PATIENCE, World};

/// How one scenario's steps went.
#[derive(Debug)]
pub(crate) struct Driven {
    pub(crate) steps: Vec<StepResult>,
    pub(crate) ending: Ending,
}

/// How a scenario ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Every step held.
    Held,
    /// A step found something. The index is the step's.
    Found(usize, Finding),
    /// A step did not come to an end.
    Hung(usize, String),
    /// The suite went wrong.
    Trouble(usize, String),
}

/// Runs the steps until one does not hold. `limit` bounds each of them, in the time of the runtime.
pub(crate) async fn drive(
    scenario: &Scenario,
    world: &mut World,
    functions: &Collection<World>,
    limit: Duration,
) -> Driven {
    let mut steps: Vec<StepResult> = scenario.steps.iter().map(skipped).collect();
    for (index, (step, result)) in scenario.steps.iter().zip(&mut steps).enumerate() {
        let ending = match functions.find(step) {
            Ok(Some((function, _, _, context))) => {
                world.asked().step(&format!("{}{}", step.keyword, step.value));
                let begun = Instant::now();
                loop {
                    world.rests_on(None);
                    world.observed();
                    let running = AssertUnwindSafe(function(world, context.clone())).catch_unwind();
                    match tokio::time::timeout(limit, running).await {
                        Ok(Ok(())) => break None,
                        Ok(Err(_)) if world.observed() && begun.elapsed() < PATIENCE.min(limit) => {}
                        Ok(Err(payload)) => break Some(ending(index, payload)),
                        Err(_) => break Some(hung(index, limit, world)),
                    }
                }
            }
            Ok(None) => {
                Some(Ending::Trouble(index, format!("no step matches \"{}{}\"", step.keyword, step.value)))
            }
            Err(ambiguous) => Some(Ending::Trouble(index, format!("several steps match: {ambiguous}"))),
        };
        result.wire = world.started_broker().and_then(Broker::last_record);
        result.status = if ending.is_none() { StepStatus::Passed } else { StepStatus::Failed };
        if let Some(ending) = ending {
            return Driven { steps, ending };
        }
    }
    Driven { steps, ending: Ending::Held }
}

fn hung(index: usize, limit: Duration, world: &World) -> Ending {
    let message = format!("nothing happens any more: the step did not end within {} s", limit.as_secs());
    Ending::Hung(index, world.asked().complete(message))
}

fn skipped(step: &gherkin::Step) -> StepResult {
    StepResult {
        keyword: step.keyword.trim().to_owned(),
        text: step.value.clone(),
        line: step.position.line,
        status: StepStatus::Skipped,
        wire: None,
    }
}

fn ending(index: usize, payload: Box<dyn Any + Send>) -> Ending {
    match payload.downcast::<Finding>() {
        Ok(finding) => Ending::Found(index, *finding),
        Err(payload) => Ending::Trouble(index, panic_text(payload.as_ref())),
    }
}

/// The text of a panic, with its place where [`QuietPanics`] saw it.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "a panic without a text".to_owned());
    match PLACE.take() {
        Some(place) => format!("{text} ({place})"),
        None => text,
    }
}

thread_local! {
    /// Whether this thread runs a scenario, and where its last panic was.
    static QUIET: RefCell<bool> = const { RefCell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send + 'static>;

/// The runs of this process that are under way; two may be, of two clusters that are compared.
static RUNS: Mutex<usize> = Mutex::new(0);

/// While one lives, panics on threads that run scenarios are kept for the report instead of printed.
pub(crate) struct QuietPanics;

impl QuietPanics {
    pub(crate) fn install() -> QuietPanics {
        let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
        *runs += 1;
        if *runs == 1 {
            let before: Hook = take_hook();
            set_hook(Box::new(move |info| {
                if QUIET.with_borrow(|quiet| *quiet) {
                    PLACE.set(info.location().map(|l| format!("{}:{}", l.file(), l.line())));
                } else {
                    before(info);
                }
            }));
        }
        QuietPanics
    }

    /// Says that the current thread runs a scenario.
    pub(crate) fn this_thread() {
        QUIET.set(true);
    }
}

impl Drop for QuietPanics {
    fn drop(&mut self) {
        let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
        *runs -= 1;
        if *runs == 0 {
            // The standard hook is what was there before, unless the program brought its own.
            let _ = take_hook();
        }
    }
}
