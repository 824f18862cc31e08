//! Where one segment is attached, and how far that is: the state machine that the segments of producers and consumers
//! share (client-behavior §9). It knows which broker to try next, tells the answer to an abandoned attempt from the
//! current one's, and when the next attempt may be made.

use super::{
    Millis, Now,
    backoff::Backoff,
    deviant::{Deviance, Deviant},
    error::{Category, Error},
};

/// How far the attachment of a segment to its broker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Not attached, and nothing is under way.
    Idle,
    /// PRODUCER or SUBSCRIBE is under way.
    Attaching,
    /// Entries can be exchanged.
    Attached,
    /// CLOSE_PRODUCER or CLOSE_CONSUMER is under way. A broker answers the former behind the receipts of everything it
    /// stored, so what is still without a receipt by then was not stored.
    Detaching,
    /// Not attached; may try again at this time.
    Waiting(Millis),
}

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
    /// The last attempt; 0 before the first.
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
        if deviance.is(Deviant::StaysAtFirstBroker) && self.named.is_some() {
            return false;
        }
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

    /// Whether this is the attempt whose answer is waited for.
    pub(crate) fn expects(&self, generation: u64) -> bool {
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
    pub(crate) fn failed(&mut self, generation: u64, error: &Error, now: Now, deviance: Deviance) -> bool {
        let expected = self.expects(generation);
        if expected {
            // One that is busy is the owner: a former consumer may still drain the segment.
            self.lookup ^= error.category() != Category::ConsumerBusy;
            self.lookup &= !deviance.is(Deviant::StaysAtFirstBroker);
            self.redirect = None;
            self.pause(now);
            if error.category() == Category::NotConnected && deviance.is(Deviant::GivesUpAttaching) {
                self.link = Link::Waiting(Millis::MAX);
            }
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

    /// The next attempt asks for the owner, and not before this time.
    pub(crate) fn postpone(&mut self, until: Millis) {
        self.lookup = true;
        self.link = Link::Waiting(until);
    }

    fn pause(&mut self, now: Now) {
        self.link = Link::Waiting(now.mono + self.delay());
    }

    /// The next delay of those that get longer until an attempt succeeds.
    pub(crate) fn delay(&mut self) -> Millis {
        self.backoff.delay()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::backoff::{BackoffLimits, Rng},
        *,
    };

    fn place() -> Place {
        let mut place = Place::new(Backoff::new(BackoffLimits { initial: 100, max: 1000 }, Rng::new(1)));
        assert!(!place.locate(Some(&"pulsar://a:1".to_owned()), Deviance::default()));
        place
    }

    fn at(mono: Millis) -> Now {
        Now { mono, wall: 0 }
    }

    fn lost() -> Error {
        Error::not_connected("lost")
    }

    fn address(place: &mut Place, generation: u64) -> Option<String> {
        place.begin(generation).address
    }

    #[test]
    fn the_broker_that_the_layout_names_and_the_owner_are_tried_in_turn() {
        let mut place = place();
        let mut tried = Vec::new();
        for generation in 1..5 {
            tried.push(address(&mut place, generation));
            assert!(place.failed(generation, &lost(), at(0), Deviance::default()));
        }
        let named = Some("pulsar://a:1".to_owned());
        assert_eq!(tried, [named.clone(), None, named, None]);
    }

    #[test]
    fn one_that_is_busy_is_asked_again() {
        let mut place = place();
        let busy = Error::new(Category::ConsumerBusy, "draining");
        for generation in 1..4 {
            assert_eq!(address(&mut place, generation).as_deref(), Some("pulsar://a:1"));
            assert!(place.failed(generation, &busy, at(0), Deviance::default()));
        }
    }

    #[test]
    fn the_answer_to_an_abandoned_attempt_does_not_count() {
        let mut place = place();
        place.begin(1);
        place.closed_by_broker(None, at(0));
        place.begin(2);
        assert!(!place.attached(1, "pulsar://a:1".into()));
        assert!(!place.failed(1, &lost(), at(0), Deviance::default()));
        assert!(place.attached(2, "pulsar://a:1".into()));
        assert!(!place.attached(2, "pulsar://a:1".into()), "once");
    }

    #[test]
    fn a_pause_gets_longer_and_an_attachment_makes_it_short_again() {
        let mut place = place();
        let mut pauses = Vec::new();
        for generation in 1..6 {
            place.begin(generation);
            place.failed(generation, &lost(), at(0), Deviance::default());
            pauses.push(place.retry_at().unwrap());
        }
        assert!(pauses.is_sorted() && pauses[4] > 800, "{pauses:?}");
        place.wake(at(pauses[4] - 1));
        assert!(place.retry_at().is_some());
        place.wake(at(pauses[4]));
        assert_eq!(place.link, Link::Idle);
        place.begin(6);
        assert!(place.attached(6, "pulsar://a:1".into()) && place.disconnected(at(0)));
        assert!(place.retry_at().unwrap() <= 100);
        assert!(!place.disconnected(at(0)), "nothing stands any more");
    }

    #[test]
    fn only_an_attachment_elsewhere_is_closed_when_the_segment_moves() {
        let mut place = place();
        let (a, b, c) = ("pulsar://a:1".to_owned(), "pulsar://b:1".to_owned(), "pulsar://c:1".to_owned());
        place.begin(1);
        assert!(!place.locate(Some(&b), Deviance::default()), "nothing stands yet");
        assert!(place.attached(1, b.clone()));
        assert!(!place.locate(None, Deviance::default()), "an address that went missing moves nothing");
        assert!(!place.locate(Some(&a), Deviance::default()), "nor does one that is new");
        assert!(place.locate(Some(&c), Deviance::default()));
        assert_eq!(place.link, Link::Detaching);
        assert!(place.detached(at(5)) && !place.detached(at(5)));
        assert_eq!(place.retry_at(), Some(5), "at once");
        let attempt = place.begin(2);
        assert_eq!((attempt.address, attempt.fresh), (Some(c), true));
    }

    #[test]
    fn where_the_former_broker_points_to_is_tried_once() {
        let mut place = place();
        place.begin(1);
        place.attached(1, "pulsar://a:1".into());
        place.closed_by_broker(Some("pulsar://b:1".into()), at(7));
        assert_eq!(place.retry_at(), Some(7), "at once");
        assert_eq!(address(&mut place, 2).as_deref(), Some("pulsar://b:1"));
        place.failed(2, &lost(), at(7), Deviance::default());
        assert_eq!(address(&mut place, 3), None, "then the owner is asked for");
    }
}
