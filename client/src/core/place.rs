//! Where one segment is attached, and how far that is: the state machine that the segments of all consumers share
//! (client-behavior §9). It knows which broker to try next, tells the answer to an abandoned attempt from the current
//! one's, and when the next attempt may be made.

use super::{
    Link, Millis, Now,
    backoff::Backoff,
    deviant::{Deviance, Deviant},
    error::{Category, Error},
};

/// What the next attempt to attach has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) generation: u64,
    /// The broker to try; `None` asks for the owner.
    pub(crate) address: Option<String>,
    /// Whether it is for a new consumer, with an id of its own, and not for the one that lost its connection.
    pub(crate) fresh: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) link: Link,
    /// The last attempt; unique within the consumer, 0 before the first.
    pub(crate) generation: u64,
    /// The broker's URL while attached.
    at: Option<String>,
    /// The broker that the layout names.
    named: Option<String>,
    /// The broker that the former one named when it closed the attachment.
    redirect: Option<String>,
    /// Ask for the owner instead of trusting the layout.
    lookup: bool,
    fresh: bool,
    backoff: Backoff,
}

impl Place {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Place {
            link: Link::Idle,
            generation: 0,
            at: None,
            named: None,
            redirect: None,
            lookup: false,
            fresh: false,
            backoff,
        }
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.link == Link::Attached
    }

    /// When the next attempt may be made, if there has to be a pause before it.
    pub(crate) fn retry_at(&self) -> Option<Millis> {
        match self.link {
            Link::Waiting(until) => Some(until),
            _ => None,
        }
    }

    /// Ends a pause that is over.
    pub(crate) fn wake(&mut self, now: Now) {
        if self.retry_at().is_some_and(|until| until <= now.mono) {
            self.link = Link::Idle;
        }
    }

    /// Takes over which broker the layout names. True when the segment has moved away from under its attachment, which
    /// is to be closed then: its broker gives it up anyway.
    pub(crate) fn locate(&mut self, named: Option<&String>, deviance: Deviance) -> bool {
        let before = std::mem::replace(&mut self.named, named.cloned());
        let moved = before.is_some() && named.is_some() && before.as_ref() != named;
        if !moved || deviance.is(Deviant::IgnoreMovedSegment) {
            return false;
        }
        self.lookup = false;
        self.is_attached() && self.at.as_ref() != named && self.detach()
    }

    /// An attempt to attach begins.
    pub(crate) fn begin(&mut self, generation: u64) -> Attempt {
        self.link = Link::Attaching;
        self.generation = generation;
        let named = self.named.as_ref().filter(|_| !self.lookup);
        let address = self.redirect.as_ref().or(named).cloned();
        Attempt { generation, address, fresh: self.fresh }
    }

    fn expects(&self, generation: u64) -> bool {
        self.generation == generation && self.link == Link::Attaching
    }

    /// The attempt succeeded at the broker with this URL. False when nobody waits for it any more.
    pub(crate) fn attached(&mut self, generation: u64, at: String) -> bool {
        let expected = self.expects(generation);
        if expected {
            self.link = Link::Attached;
            self.at = Some(at);
            self.lookup = false;
            self.redirect = None;
            self.fresh = false;
            self.backoff.reset();
        }
        expected
    }

    /// The attempt failed. False when nobody waits for it any more.
    pub(crate) fn failed(&mut self, generation: u64, error: &Error, now: Now) -> bool {
        let expected = self.expects(generation);
        if expected {
            // One that is busy is the owner: a former consumer may still drain the segment.
            self.lookup ^= error.category() != Category::ConsumerBusy;
            self.redirect = None;
            self.pause(now);
        }
        expected
    }

    /// An attachment that stands is to be closed. True when there is one.
    pub(crate) fn detach(&mut self) -> bool {
        let stands = self.is_attached();
        if stands {
            self.link = Link::Detaching;
        }
        stands
    }

    /// The broker closed the attachment; with an address the segment has moved there.
    pub(crate) fn closed_by_broker(&mut self, assigned: Option<String>, now: Now) {
        self.lookup = assigned.is_none();
        self.at = None;
        match assigned {
            Some(_) => self.link = Link::Waiting(now.mono),
            None => self.pause(now),
        }
        self.redirect = assigned;
    }

    /// The connection is lost. True when there was an attachment on it.
    pub(crate) fn disconnected(&mut self, now: Now) -> bool {
        let stood = matches!(self.link, Link::Attached | Link::Detaching);
        if stood {
            self.at = None;
            self.pause(now);
        }
        stood
    }

    /// The close that was asked for is over. True when it was still waited for.
    pub(crate) fn detached(&mut self, now: Now) -> bool {
        let expected = self.link == Link::Detaching;
        if expected {
            self.at = None;
            self.fresh = true;
            self.link = Link::Waiting(now.mono);
        }
        expected
    }

    fn pause(&mut self, now: Now) {
        self.link = Link::Waiting(now.mono + self.delay());
    }

    /// The next delay of those that get longer until an attempt succeeds.
    pub(crate) fn delay(&mut self) -> Millis {
        self.backoff.delay()
    }
}
