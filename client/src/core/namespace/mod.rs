//! The consumer of a namespace as a state machine (client-api §4.4, wire-protocol §7): which topics it has, and a
//! consumer for each of them that is opened when the topic comes and closed when it goes.
//!
//! Topics are opened and closed one step after the other, each on its own: what comes back while it is being closed is
//! opened when that is done.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use stc_proto::hash::topic_set_hash;

use super::{
    Millis, Now,
    backoff::{Backoff, BackoffLimits, Rng},
    deviant::{Deviance, Deviant},
    error::{Category, Error},
};

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Opens a consumer of a topic; what came of it goes to [`Namespace::opened`].
    Open { topic: String, stay: u64 },
    /// Closes it, without an acknowledgement; then comes [`Namespace::closed`].
    Close { topic: String },
    /// Every topic that was there at first is open, or one cannot be.
    Subscribed(Result<(), Error>),
}

/// How far the consumer of a topic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Opening,
    Open,
    Closing,
    /// It could not be opened; the next attempt is at this time.
    Waiting(Millis),
}

#[derive(Debug)]
struct Member {
    state: State,
    /// Whether the topic is in the set.
    wanted: bool,
    /// The topic left and came back while it was being opened: what opens is not what it is now.
    stale: bool,
    backoff: Backoff,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Namespace {
    deviance: Deviance,
    limits: BackoffLimits,
    rng: Rng,
    /// The set as the broker told it.
    topics: BTreeSet<String>,
    members: BTreeMap<String, Member>,
    /// The topics that the subscribe waits for; `None` before the first snapshot and once it is over.
    awaited: Option<BTreeSet<String>>,
    /// Counts the stays of topics.
    stays: u64,
    /// For a deviant: what left.
    gone: BTreeSet<String>,
    effects: Vec<Effect>,
}

impl Namespace {
    /// A consumer that was told of these topics at first.
    pub(crate) fn new(topics: Vec<String>, limits: BackoffLimits, rng: Rng, deviance: Deviance) -> Self {
        let mut namespace = Namespace {
            deviance,
            limits,
            rng,
            topics: BTreeSet::new(),
            members: BTreeMap::new(),
            awaited: Some(topics.iter().cloned().collect()),
            stays: 0,
            gone: BTreeSet::new(),
            effects: Vec::new(),
        };
        for topic in topics {
            namespace.add(topic);
        }
        namespace.check_awaited();
        namespace
    }

    /// The hash of the set, for a watch that is opened again.
    pub(crate) fn hash(&self) -> String {
        topic_set_hash(&self.topics)
    }

    /// Takes what the shell has to do, in order.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    // ---- what the broker tells ----

    /// The whole set; it replaces what was known.
    pub(crate) fn snapshot(&mut self, topics: Vec<String>) {
        let new: BTreeSet<String> = topics.into_iter().collect();
        let removed: Vec<String> = self.topics.difference(&new).cloned().collect();
        let added: Vec<String> = new.difference(&self.topics).cloned().collect();
        if !self.deviance.is(Deviant::SnapshotAddsOnly) {
            removed.into_iter().for_each(|topic| self.remove(&topic));
        }
        added.into_iter().for_each(|topic| self.add(topic));
        self.check_awaited();
    }

    /// What changed: first what left, then what came, which can be one topic.
    pub(crate) fn diff(&mut self, removed: Vec<String>, added: Vec<String>) {
        let removed = if self.deviance.is(Deviant::IgnoreRemovedTopics) { Vec::new() } else { removed };
        let added = if self.deviance.is(Deviant::IgnoreAddedTopics) { Vec::new() } else { added };
        if self.deviance.is(Deviant::DiffAddsFirst) {
            added.into_iter().for_each(|topic| self.add(topic));
            removed.into_iter().for_each(|topic| self.remove(&topic));
        } else {
            removed.into_iter().for_each(|topic| self.remove(&topic));
            added.into_iter().for_each(|topic| self.add(topic));
        }
        self.check_awaited();
    }

    fn add(&mut self, topic: String) {
        if !self.topics.insert(topic.clone())
            || (self.deviance.is(Deviant::ForgetsReturningTopic) && self.gone.contains(&topic))
        {
            return;
        }
        if let Some(member) = self.members.get_mut(&topic) {
            member.stale |= member.state == State::Opening && !member.wanted;
            member.wanted = true;
            return;
        }
        let backoff = Backoff::new(self.limits, self.rng.fork());
        let member = Member { state: State::Opening, wanted: true, stale: false, backoff };
        self.members.insert(topic.clone(), member);
        self.open(topic);
    }

    fn remove(&mut self, topic: &str) {
        self.topics.remove(topic);
        self.gone.insert(topic.to_owned());
        self.awaited.iter_mut().for_each(|awaited| {
            awaited.remove(topic);
        });
        let Some(member) = self.members.get_mut(topic) else { return };
        member.wanted = false;
        match member.state {
            State::Open => {
                member.state = State::Closing;
                self.effects.push(Effect::Close { topic: topic.to_owned() });
            }
            State::Waiting(_) => {
                self.members.remove(topic);
            }
            State::Opening | State::Closing => {}
        }
    }

    fn open(&mut self, topic: String) {
        self.stays += 1;
        self.effects.push(Effect::Open { topic, stay: self.stays });
    }

    // ---- what became of a topic's consumer ----

    /// A topic's consumer is open, or cannot be opened.
    pub(crate) fn opened(&mut self, topic: &str, result: Result<(), Error>, now: Now) {
        let Some(member) = self.members.get_mut(topic) else { return };
        let stale = std::mem::take(&mut member.stale);
        match result {
            Ok(()) if member.wanted && !stale => {
                member.state = State::Open;
                member.backoff.reset();
                self.awaited.iter_mut().for_each(|awaited| {
                    awaited.remove(topic);
                });
            }
            Ok(()) => {
                member.state = State::Closing;
                self.effects.push(Effect::Close { topic: topic.to_owned() });
            }
            Err(_) if !member.wanted => {
                self.members.remove(topic);
            }
            Err(error) => {
                let delay = if stale { 0 } else { member.backoff.delay() };
                member.state = State::Waiting(now.mono + delay);
                tracing::debug!(topic, %error, "a topic of the namespace cannot be consumed yet");
                self.await_no_more(topic, error);
            }
        }
        self.check_awaited();
    }

    /// A topic that was there at first cannot be opened. One that is gone meanwhile does not count; a diff will tell.
    fn await_no_more(&mut self, topic: &str, error: Error) {
        let Some(awaited) = &mut self.awaited else { return };
        if awaited.remove(topic) && error.category() != Category::NotFound {
            self.awaited = None;
            self.effects.push(Effect::Subscribed(Err(error)));
        }
    }

    fn check_awaited(&mut self) {
        if self.awaited.as_ref().is_some_and(BTreeSet::is_empty) {
            self.awaited = None;
            self.effects.push(Effect::Subscribed(Ok(())));
        }
    }

    /// A topic's consumer is closed.
    pub(crate) fn closed(&mut self, topic: &str) {
        let Some(member) = self.members.get_mut(topic) else { return };
        if member.wanted {
            member.state = State::Opening;
            self.open(topic.to_owned());
        } else {
            self.members.remove(topic);
        }
    }

    // ---- time ----

    /// When something is due next, on the clock that never jumps.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let waits = |member: &Member| match member.state {
            State::Waiting(until) => Some(until),
            _ => None,
        };
        self.members.values().filter_map(waits).min()
    }

    /// The time has come that [`Namespace::next_deadline`] gave.
    pub(crate) fn tick(&mut self, now: Now) {
        let mut due = Vec::new();
        for (topic, member) in &mut self.members {
            if matches!(member.state, State::Waiting(until) if until <= now.mono) {
                member.state = State::Opening;
                due.push(topic.clone());
            }
        }
        due.into_iter().for_each(|topic| self.open(topic));
    }
}
