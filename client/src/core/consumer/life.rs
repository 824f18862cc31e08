//! The state that all consumers have: the topic as it is known, the registration, and how far opening and closing are.

use super::{Effect, Subscribe};
use crate::core::{
    Millis, Now,
    assignment::Assignment,
    backoff::{Backoff, BackoffLimits, Rng},
    deviant::{Deviance, Deviant},
    encryption::policy::ConsumerEncryption,
    error::Error,
    incoming::Opener,
    place::Place,
    session::Session,
    tracker::View,
    transaction::{
        TxnId,
        acks::{TxnAck, TxnAcks},
    },
};

/// How far the end of a consumer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Not,
    /// The controller is being told.
    Leaving,
    /// The segments are being let go.
    Detaching,
    Closed,
}

/// What a life is begun with.
#[derive(Debug, Clone)]
pub(crate) struct LifeConfig {
    /// How long opening may take.
    pub(crate) open_limit: Millis,
    pub(crate) backoff: BackoffLimits,
    /// `None` opens no encrypted message.
    pub(crate) encryption: Option<ConsumerEncryption>,
    pub(crate) deviance: Deviance,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Life<H, D, O> {
    pub(crate) deviance: Deviance,
    pub(crate) view: View,
    /// Whether the layout watch is up.
    pub(crate) synced: bool,
    /// What the controller assigned last.
    pub(crate) assignment: Option<Assignment>,
    pub(crate) effects: Vec<Effect<H, D, O>>,
    pub(crate) rng: Rng,
    pub(crate) opener: Opener,
    pub(crate) txn_acks: TxnAcks,
    backoff: BackoffLimits,
    /// `None` for a consumer that no controller knows.
    session: Option<Session>,
    /// Counts the attempts to attach.
    generation: u64,
    /// Until when opening may take; `None` once it is over.
    opening: Option<Millis>,
    /// Why opening is not over yet.
    last_error: Option<Error>,
    ending: Ending,
    /// The current layout was doubted already.
    doubted: bool,
}

impl<H, D, O> Life<H, D, O> {
    pub(crate) fn new(config: &LifeConfig, view: View, mut rng: Rng, registers: bool, now: Now) -> Self {
        let deviance = config.deviance;
        Life {
            deviance,
            view,
            synced: true,
            assignment: None,
            effects: Vec::new(),
            session: registers.then(|| Session::new(config.backoff, rng.fork(), deviance)),
            txn_acks: TxnAcks::new(config.open_limit, Backoff::new(config.backoff, rng.fork())),
            rng,
            opener: Opener::new(config.encryption.clone(), deviance),
            backoff: config.backoff,
            generation: 0,
            opening: Some(now.mono + config.open_limit),
            last_error: None,
            ending: Ending::Not,
            doubted: false,
        }
    }

    // ---- the topic ----

    /// Works by this layout from now on. True when it is another topic's, and nothing that was known counts any more.
    pub(crate) fn adopt(&mut self, view: View) -> bool {
        let another = self.view.life != view.life;
        self.view = view;
        self.doubted = false;
        if another {
            self.assignment = None;
            self.session.iter_mut().for_each(Session::forget_topic);
        }
        another
    }

    /// A segment was not found, or its broker let go of it without a word of where it is. Where the layout says that it
    /// is there and takes writes, the topic may be gone and another one of its name have come: it is looked up anew, and
    /// registered with.
    pub(crate) fn missing(&mut self, segment: u64) {
        let there = self.view.layout.segment(segment).is_some_and(|segment| segment.active);
        if there && !self.doubted && self.may_attach() && !self.deviance.is(Deviant::NeverDoubts) {
            self.doubted = true;
            self.synced = false;
            self.session.iter_mut().for_each(Session::restart);
            self.effects.push(Effect::Doubt);
        }
    }

    /// The place of a segment that is new here.
    pub(crate) fn place(&mut self) -> Place {
        Place::new(self.new_backoff())
    }

    /// The delays of something that is tried again.
    pub(crate) fn new_backoff(&mut self) -> Backoff {
        Backoff::new(self.backoff, self.rng.fork())
    }

    /// The generation that comes next.
    pub(crate) fn next_generation(&self) -> u64 {
        self.generation + 1
    }

    /// Attaches a segment.
    pub(crate) fn attach(&mut self, segment: u64, topic: &str, place: &mut Place, how: H) {
        self.generation += 1;
        let attempt = place.begin(self.generation);
        self.effects.push(Effect::Subscribe(Subscribe { segment, topic: topic.to_owned(), attempt, how }));
    }

    // ---- transactions ----

    /// Begins acknowledgements in a transaction, each with the topic of its segment.
    pub(crate) fn acknowledge_in(&mut self, group: u64, txn: TxnId, acks: Vec<(String, TxnAck)>, now: Now) {
        let effects = &mut self.effects;
        self.txn_acks.begin(group, txn, acks, now.mono, |effect| effects.push(Effect::Transaction(effect)));
    }

    // ---- opening ----

    pub(crate) fn is_opening(&self) -> bool {
        self.opening.is_some()
    }

    pub(crate) fn opened(&mut self, result: Result<(), Error>) {
        if self.opening.take().is_some() {
            self.effects.push(Effect::Opened(result));
        }
    }

    /// Something could not be had. It fails the opening unless it may come about yet.
    pub(crate) fn attempt_failed(&mut self, error: Error, may_come: bool) {
        if may_come {
            self.last_error = Some(error);
        } else {
            self.opened(Err(error));
        }
    }

    /// Gives the opening up when its time is over.
    pub(crate) fn expire(&mut self, now: Now) {
        if self.opening.is_some_and(|until| until <= now.mono) {
            let late = Error::timeout("subscribing to the topic took too long");
            let error = self.last_error.take().unwrap_or(late);
            self.opened(Err(error));
        }
    }

    // ---- the registration ----

    /// Registers where the controller is now, if that has to be done.
    pub(crate) fn register(&mut self, now: Now) {
        if self.may_attach()
            && let Some(session) = &mut self.session
        {
            let register = session.step(self.view.controller.as_ref(), now);
            self.effects.extend(register.map(Effect::Register));
        }
    }

    /// The controller took the registration. True when its assignment is to be looked at.
    pub(crate) fn registered(&mut self, generation: u64, at: &str) -> bool {
        let expected = self.session.as_mut().is_some_and(|session| session.registered(generation, at));
        if expected && self.ending != Ending::Not {
            // It came about after all: the close takes it back.
            self.effects.push(Effect::Leave);
        }
        expected && self.ending == Ending::Not
    }

    /// Whether an assignment that was pushed on a registration is to be looked at.
    pub(crate) fn takes_update(&self, generation: u64) -> bool {
        let ignored = self.assignment.is_some() && self.deviance.is(Deviant::IgnoreAssignmentUpdates);
        let current = self.session.as_ref().is_some_and(|session| session.is_current(generation));
        current && self.ending == Ending::Not && !ignored
    }

    /// Takes an assignment. True when it counts.
    pub(crate) fn assign(&mut self, assignment: Assignment) -> bool {
        let counts = self.session.as_mut().is_none_or(|session| session.accepts(&assignment));
        if counts {
            self.assignment = Some(assignment);
        }
        counts
    }

    /// There is no registration. True when it was the current one.
    pub(crate) fn unregistered(&mut self, generation: u64, error: Error, now: Now) -> bool {
        let current = self.session.as_mut().is_some_and(|session| session.lost(generation, now));
        if current {
            tracing::debug!(%error, "the registration is lost");
            let fails = self.is_opening() && !error.is_transient();
            self.attempt_failed(error, !fails);
            if !fails && self.synced && !self.deviance.is(Deviant::NoLookupOnLoss) {
                // The controller may be elsewhere.
                self.synced = false;
                self.effects.push(Effect::Lookup);
            }
        }
        current
    }

    #[cfg(test)]
    pub(crate) fn is_registered(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_registered)
    }

    // ---- closing ----

    /// Nobody has closed it.
    pub(crate) fn is_open(&self) -> bool {
        self.ending == Ending::Not
    }

    /// Segments are to be let go.
    pub(crate) fn is_detaching(&self) -> bool {
        self.ending == Ending::Detaching
    }

    /// Whether it registers and attaches now.
    pub(crate) fn may_attach(&self) -> bool {
        self.synced && self.is_open()
    }

    /// False when it is closing already.
    pub(crate) fn begin_close(&mut self) -> bool {
        self.opening = None;
        self.is_open()
    }

    /// Tells the controller, if it knows of this consumer; otherwise the segments are next.
    pub(crate) fn leave(&mut self) {
        let registered = self.session.as_ref().is_some_and(Session::is_registered);
        if registered && !self.deviance.is(Deviant::NoUnsubscribeOnClose) {
            self.ending = Ending::Leaving;
            self.effects.push(Effect::Leave);
        } else {
            self.ending = Ending::Detaching;
        }
    }

    pub(crate) fn left(&mut self) {
        if self.ending == Ending::Leaving {
            self.ending = Ending::Detaching;
        }
    }

    pub(crate) fn closed(&mut self) {
        if self.ending != Ending::Closed {
            self.ending = Ending::Closed;
            self.effects.push(Effect::Closed);
        }
    }

    /// When something is due next.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let registering =
            self.session.as_ref().filter(|_| self.may_attach()).and_then(Session::next_deadline);
        registering.into_iter().chain(self.opening).chain(self.opener.next_deadline()).min()
    }
}
