//! The registration of an ordered consumer with its topic's controller (client-behavior §8, wire-protocol §6.2): where
//! to register, when to try again, and which assignments count.
//!
//! The consumer id and name stay the same through all registrations, so that a controller takes a consumer that comes
//! back in time for the same one. After a loss or a refusal the topic is looked up anew first: the controller may be
//! elsewhere.

use super::{
    Millis, Now,
    assignment::Assignment,
    backoff::{Backoff, BackoffLimits, Rng},
    deviant::{Deviance, Deviant},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be registered as soon as the layout is known.
    Idle,
    /// Not before this time.
    Waiting(Millis),
    /// SCALABLE_TOPIC_SUBSCRIBE is under way.
    Registering,
    Registered,
}

/// Sends SCALABLE_TOPIC_SUBSCRIBE. The answer has the same generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Register {
    pub(crate) generation: u64,
    /// The controller's URL; `None` asks the broker of the service URL.
    pub(crate) controller: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    state: State,
    generation: u64,
    /// Where it is registered, or under way to; `None` while it asks the broker of the service URL.
    at: Option<String>,
    /// The epoch of the last assignment that counted.
    epoch: Option<u64>,
    backoff: Backoff,
    deviance: Deviance,
}

impl Session {
    pub(crate) fn new(limits: BackoffLimits, rng: Rng, deviance: Deviance) -> Self {
        let backoff = Backoff::new(limits, rng);
        Session { state: State::Idle, generation: 0, at: None, epoch: None, backoff, deviance }
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.state == State::Registered
    }

    /// Whether this is the registration that counts.
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation == generation && matches!(self.state, State::Registering | State::Registered)
    }

    /// What is to be done, given where the controller is and that the layout is up to date.
    pub(crate) fn step(&mut self, controller: Option<&String>, now: Now) -> Option<Register> {
        match self.state {
            State::Waiting(until) if until > now.mono => return None,
            State::Idle | State::Waiting(_) => {}
            State::Registering | State::Registered => {
                let known = controller.is_some() && self.at.is_some();
                let moved = known && controller != self.at.as_ref();
                if !moved || self.deviance.is(Deviant::StayWithOldController) {
                    return None;
                }
            }
        }
        self.state = State::Registering;
        self.generation += 1;
        if self.at.is_none() || !self.deviance.is(Deviant::StayWithOldController) {
            self.at = controller.cloned();
        }
        Some(Register { generation: self.generation, controller: self.at.clone() })
    }

    /// The controller at this URL answered with an assignment. False when nobody waits for it.
    pub(crate) fn registered(&mut self, generation: u64, at: &str) -> bool {
        let expected = self.is_current(generation);
        if expected {
            self.state = State::Registered;
            // The broker of the service URL leads then. A layout that names it brings no news.
            self.at.get_or_insert_with(|| at.to_owned());
            self.backoff.reset();
        }
        expected
    }

    /// The registration failed or was lost. False when it was not the current one.
    pub(crate) fn lost(&mut self, generation: u64, now: Now) -> bool {
        let current = self.is_current(generation);
        if current {
            self.state = if self.deviance.is(Deviant::NoReregistration) {
                State::Waiting(Millis::MAX)
            } else {
                State::Waiting(now.mono + self.backoff.delay())
            };
        }
        current
    }

    /// Whether an assignment counts: its epoch is not below the last one's. Within one epoch the later one is right,
    /// as a peer that joins or a parent that is drained change the assignment without a new layout.
    pub(crate) fn accepts(&mut self, assignment: &Assignment) -> bool {
        let stale = self.epoch.is_some_and(|epoch| assignment.epoch < epoch);
        let same = self.epoch == Some(assignment.epoch) && self.deviance.is(Deviant::IgnoreEqualAssignment);
        if (stale && !self.deviance.is(Deviant::ApplyStaleAssignment)) || same {
            tracing::debug!(epoch = assignment.epoch, last = ?self.epoch, "ignoring an assignment");
            return false;
        }
        self.epoch = Some(assignment.epoch);
        true
    }

    /// Registers again as soon as the layout is known: the topic may be another one. Its answer takes the place of
    /// whatever registration there is.
    pub(crate) fn restart(&mut self) {
        self.state = State::Idle;
    }

    /// The topic is another one, whose controller knows of nobody and whose epochs are counted anew.
    pub(crate) fn forget_topic(&mut self) {
        self.restart();
        self.epoch = None;
    }

    /// When something is due next, once the layout is up to date.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        match self.state {
            State::Waiting(until) if until < Millis::MAX => Some(until),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Session::new(BackoffLimits { initial: 100, max: 1000 }, Rng::new(1), Deviance::default())
    }

    fn at(mono: Millis) -> Now {
        Now { mono, wall: 0 }
    }

    fn assignment(epoch: u64) -> Assignment {
        Assignment { epoch, segments: Default::default() }
    }

    #[test]
    fn it_registers_once_and_again_where_the_controller_moved_to() {
        let mut session = session();
        let (a, b) = ("pulsar://a:1".to_owned(), "pulsar://b:1".to_owned());
        let first = session.step(Some(&a), at(0)).unwrap();
        assert_eq!((first.generation, first.controller.as_ref()), (1, Some(&a)));
        assert_eq!(session.step(Some(&a), at(0)), None);
        assert!(session.registered(1, &a));
        assert_eq!(session.step(Some(&a), at(9)), None);
        assert_eq!(session.step(None, at(9)), None, "an address that went missing moves nothing");
        let second = session.step(Some(&b), at(9)).unwrap();
        assert_eq!((second.generation, second.controller), (2, Some(b)));
        assert!(!session.registered(1, &a), "an answer from the old controller");
        assert!(!session.lost(1, at(9)), "its connection does not matter any more");
        assert!(session.registered(2, "pulsar://b:1"));
    }

    #[test]
    fn a_controller_that_is_named_later_is_the_one_that_answered() {
        let mut session = session();
        let (a, b) = ("pulsar://a:1".to_owned(), "pulsar://b:1".to_owned());
        assert_eq!(session.step(None, at(0)).unwrap().controller, None);
        assert_eq!(session.step(Some(&a), at(0)), None, "the answer tells");
        assert!(session.registered(1, &a));
        assert_eq!(session.step(Some(&a), at(0)), None);
        assert_eq!(session.step(Some(&b), at(0)).unwrap().controller, Some(b));
    }

    #[test]
    fn a_refusal_is_followed_by_attempts_that_get_rarer() {
        let mut session = session();
        let mut now = 0;
        let mut pauses = Vec::new();
        for generation in 1..6 {
            assert_eq!(session.step(None, at(now)).unwrap().generation, generation);
            assert!(session.lost(generation, at(now)));
            let due = session.next_deadline().unwrap();
            assert_eq!(session.step(None, at(due - 1)), None);
            pauses.push(due - now);
            now = due;
        }
        assert!(pauses.is_sorted() && pauses[0] >= 90 && pauses[4] > 800, "{pauses:?}");
    }

    #[test]
    fn an_older_assignment_never_counts_and_an_equal_one_does() {
        let mut session = session();
        assert!(session.accepts(&assignment(3)));
        assert!(session.accepts(&assignment(3)));
        assert!(!session.accepts(&assignment(2)));
        assert!(session.accepts(&assignment(4)));
        assert!(!session.accepts(&assignment(3)));
    }
}
