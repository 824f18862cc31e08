//! Where the transaction coordinators are, and the requests to them (wire-protocol §8.1).
//!
//! Discovery is by the watch where the broker offers it and by the classic lookup where it does not. There is one handler
//! for each coordinator. Under the watch it points at the leader of the latest snapshot; a coordinator that is absent from
//! it is being elected, and its requests wait for a snapshot that names a leader. Everything that a request can meet on
//! the way (a lost connection, a leader that is none any more) is tried again until the request's own time is over: all
//! requests can be repeated.

use std::collections::BTreeMap;

use super::{Part, TxnId};
use crate::core::{
    Link, Millis,
    backoff::{Backoff, BackoffLimits, Rng},
    deviant::{Deviance, Deviant},
    error::{Category, Error},
};

/// What is asked of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Opens a transaction that lives this long.
    New(Millis),
    /// Adds what a transaction touches.
    Add(TxnId, Part),
    /// Commits (`true`) or aborts.
    End(TxnId, bool),
}

/// How coordinators are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// The watch is open; snapshots follow.
    Watch,
    /// By looking up one of so many partitions.
    Classic(u64),
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Finds out how coordinators are found; tells [`Coordinators::discovered`].
    Discover,
    /// Connects to a coordinator: at the broker that is named, else at the one that a lookup finds. Tells
    /// [`Coordinators::connected`].
    Connect { coordinator: u64, generation: u64, address: Option<String> },
    /// Sends a request on the coordinator's connection; tells [`Coordinators::answered`].
    Send { request: u64, attempt: u64, coordinator: u64, ask: Ask },
    /// A request has its result: the new transaction's id, or nothing.
    Settle { request: u64, result: Result<Option<TxnId>, Error> },
}

#[derive(Debug)]
struct Handler {
    /// The leader that it points at; `None` asks a lookup for it.
    at: Option<String>,
    link: Link,
    /// Counts connects, so that an abandoned one is told apart.
    generation: u64,
    backoff: Backoff,
}

#[derive(Debug)]
struct Request {
    ask: Ask,
    /// `None` until it is known how many coordinators there are.
    coordinator: Option<u64>,
    deadline: Millis,
    /// Counts sendings, so that the answer to an abandoned one is told apart.
    attempt: u64,
    in_flight: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Coordinators {
    deviance: Deviance,
    limits: BackoffLimits,
    rng: Rng,
    discovery: Option<Discovery>,
    /// How far finding out is; `Attached` while a watch is open or the classic way is known.
    link: Link,
    backoff: Backoff,
    /// Whether anything was ever found: from then on a refused watch is opened again and fails nobody.
    found: bool,
    parallelism: u64,
    leaders: BTreeMap<u64, String>,
    handlers: BTreeMap<u64, Handler>,
    requests: BTreeMap<u64, Request>,
    next_request: u64,
    next_coordinator: u64,
    effects: Vec<Effect>,
}

impl Coordinators {
    pub(crate) fn new(limits: BackoffLimits, mut rng: Rng, deviance: Deviance) -> Self {
        Coordinators {
            deviance,
            limits,
            discovery: None,
            link: Link::Idle,
            backoff: Backoff::new(limits, rng.fork()),
            rng,
            found: false,
            parallelism: 0,
            leaders: BTreeMap::new(),
            handlers: BTreeMap::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            next_coordinator: 0,
            effects: Vec::new(),
        }
    }

    /// Takes what the shell has to do, in order.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether the shell is to use the watch, given what the broker advertises.
    pub(crate) fn uses_watch(&self, advertised: bool) -> bool {
        (advertised || self.deviance.is(Deviant::WatchesUnadvertised))
            && !self.deviance.is(Deviant::LooksUpDespiteWatch)
    }

    /// Asks a coordinator: that of the transaction, or for a new one the next in turn. Gives the request's number.
    pub(crate) fn ask(&mut self, ask: Ask, deadline: Millis, now: Millis) -> u64 {
        let id = self.next_request;
        self.next_request += 1;
        let coordinator = match &ask {
            Ask::New(_) => None,
            Ask::Add(txn, _) | Ask::End(txn, _) => Some(txn.coordinator),
        };
        self.requests.insert(id, Request { ask, coordinator, deadline, attempt: 0, in_flight: false });
        self.advance(now);
        id
    }

    // ---- discovery ----

    /// It is known how coordinators are found, or it could not be found out.
    pub(crate) fn discovered(&mut self, result: Result<Discovery, Error>, now: Millis) {
        match result {
            Ok(discovery) => {
                self.backoff.reset();
                self.found = true;
                self.link = Link::Attached;
                self.discovery = Some(discovery);
                if let Discovery::Classic(parallelism) = discovery {
                    self.parallelism = parallelism;
                }
            }
            Err(error) if error.is_transient() || self.found => {
                self.link = Link::Waiting(now + self.backoff.delay());
            }
            Err(_) if self.deviance.is(Deviant::IgnoresCoordinatorError) => {
                self.link = Link::Waiting(now + self.backoff.delay());
            }
            Err(error) => {
                self.link = Link::Idle;
                for request in std::mem::take(&mut self.requests).into_keys() {
                    self.effects.push(Effect::Settle { request, result: Err(error.clone()) });
                }
            }
        }
        self.advance(now);
    }

    /// A snapshot of the watch: how many coordinators there are, and the leaders of those that have one.
    pub(crate) fn snapshot(&mut self, parallelism: u64, leaders: BTreeMap<u64, String>, now: Millis) {
        if self.parallelism > 0 && self.deviance.is(Deviant::KeepsFirstLeaders) {
            return self.advance(now);
        }
        self.parallelism = parallelism;
        if self.deviance.is(Deviant::MergesLeaders) {
            self.leaders.extend(leaders);
        } else {
            self.leaders = leaders;
        }
        let moved: Vec<u64> = self
            .handlers
            .iter()
            .filter(|(id, handler)| self.leaders.get(id) != handler.at.as_ref())
            .map(|(id, _)| *id)
            .collect();
        for id in moved {
            let leader = self.leaders.get(&id).cloned();
            if let Some(handler) = self.handlers.get_mut(&id) {
                handler.at = leader;
                handler.link = Link::Idle;
                handler.backoff.reset();
            }
            // What was sent to the old leader may never be answered.
            self.take_back(id);
        }
        self.advance(now);
    }

    /// The watch is lost, or the broker does not keep it.
    pub(crate) fn watch_lost(&mut self, now: Millis) {
        if !self.deviance.is(Deviant::CoordinatorsNotRewatched) {
            self.link = Link::Waiting(now + self.backoff.delay());
        }
        self.advance(now);
    }

    // ---- handlers ----

    /// A coordinator is connected, or could not be.
    pub(crate) fn connected(
        &mut self,
        coordinator: u64,
        generation: u64,
        result: Result<(), Error>,
        now: Millis,
    ) {
        let handler = self.handlers.get_mut(&coordinator);
        let Some(handler) = handler.filter(|h| h.generation == generation && h.link == Link::Attaching)
        else {
            return;
        };
        match result {
            Ok(()) => handler.link = Link::Attached,
            Err(error) if error.is_transient() => {
                handler.link = Link::Waiting(now + handler.backoff.delay());
            }
            Err(error) => {
                handler.link = Link::Idle;
                let of_handler = |request: &Request| request.coordinator == Some(coordinator);
                let failed: Vec<u64> =
                    self.requests.iter().filter(|(_, r)| of_handler(r)).map(|(id, _)| *id).collect();
                failed.into_iter().for_each(|request| self.settle(request, Err(error.clone())));
            }
        }
        self.advance(now);
    }

    /// A coordinator answered a request, or will not.
    pub(crate) fn answered(
        &mut self,
        request: u64,
        attempt: u64,
        result: Result<Option<TxnId>, Error>,
        now: Millis,
    ) {
        let Some(found) = self.requests.get_mut(&request).filter(|r| r.attempt == attempt && r.in_flight)
        else {
            return;
        };
        found.in_flight = false;
        let again = |error: &Error| {
            error.is_transient()
                || (error.category() == Category::TransactionConflict
                    && self.deviance.is(Deviant::RetriesConflicts))
        };
        let handler = found.coordinator.and_then(|id| self.handlers.get_mut(&id));
        match result {
            Err(error) if again(&error) => {
                if let Some(handler) = handler.filter(|h| h.link == Link::Attached) {
                    handler.link = Link::Waiting(now + handler.backoff.delay());
                }
            }
            result => {
                handler.into_iter().for_each(|handler| handler.backoff.reset());
                self.settle(request, result);
            }
        }
        self.advance(now);
    }

    fn take_back(&mut self, coordinator: u64) {
        for request in self.requests.values_mut().filter(|r| r.coordinator == Some(coordinator)) {
            request.in_flight = false;
        }
    }

    fn settle(&mut self, request: u64, result: Result<Option<TxnId>, Error>) {
        if self.requests.remove(&request).is_some() {
            let result = result.map_err(|error| self.deviance.report(error));
            self.effects.push(Effect::Settle { request, result });
        }
    }

    // ---- time ----

    /// The time has come that [`Coordinators::next_deadline`] gave.
    pub(crate) fn tick(&mut self, now: Millis) {
        let late: Vec<u64> =
            self.requests.iter().filter(|(_, r)| r.deadline <= now).map(|(id, _)| *id).collect();
        for request in late {
            self.settle(request, Err(Error::timeout("the transaction's coordinator did not answer in time")));
        }
        self.advance(now);
    }

    /// When something is due next.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let waits = |link: Link| match link {
            Link::Waiting(until) => Some(until),
            _ => None,
        };
        let needed = |id: &u64| self.requests.values().any(|r| r.coordinator == Some(*id) && !r.in_flight);
        let handlers =
            self.handlers.iter().filter(|(id, _)| needed(id)).filter_map(|(_, handler)| waits(handler.link));
        let discovery = waits(self.link).filter(|_| self.needs_discovery());
        self.requests.values().map(|r| r.deadline).chain(handlers).chain(discovery).min()
    }

    /// A watch that was open stays wanted, also when nobody asks for anything.
    fn needs_discovery(&self) -> bool {
        !self.requests.is_empty() || self.discovery == Some(Discovery::Watch)
    }

    /// Does everything that can be done now.
    fn advance(&mut self, now: Millis) {
        let due = |link: Link| link == Link::Idle || matches!(link, Link::Waiting(until) if until <= now);
        if due(self.link) && self.needs_discovery() {
            self.link = Link::Attaching;
            self.effects.push(Effect::Discover);
        }
        if self.parallelism == 0 {
            return;
        }
        let ids: Vec<u64> = self.requests.keys().copied().collect();
        for id in ids {
            let Some(request) = self.requests.get_mut(&id).filter(|r| !r.in_flight) else { continue };
            let next = &mut self.next_coordinator;
            let coordinator = *request.coordinator.get_or_insert_with(|| {
                *next += 1;
                (*next - 1) % self.parallelism
            });
            let at = self.leaders.get(&coordinator).cloned();
            if at.is_none() && self.discovery == Some(Discovery::Watch) {
                // It is being elected: a snapshot will tell by whom it is led.
                if self.deviance.is(Deviant::FailsDuringElection) {
                    let why = format!("transaction coordinator {coordinator} has no leader");
                    self.settle(id, Err(Error::not_connected(why)));
                }
                continue;
            }
            let (limits, rng) = (self.limits, &mut self.rng);
            let handler = self.handlers.entry(coordinator).or_insert_with(|| Handler {
                at,
                link: Link::Idle,
                generation: 0,
                backoff: Backoff::new(limits, rng.fork()),
            });
            match handler.link {
                link if due(link) => {
                    handler.link = Link::Attaching;
                    handler.generation += 1;
                    self.effects.push(Effect::Connect {
                        coordinator,
                        generation: handler.generation,
                        address: handler.at.clone(),
                    });
                }
                Link::Attached => {
                    request.attempt += 1;
                    request.in_flight = true;
                    let (attempt, ask) = (request.attempt, request.ask.clone());
                    self.effects.push(Effect::Send { request: id, attempt, coordinator, ask });
                }
                _ => {}
            }
        }
    }
}
