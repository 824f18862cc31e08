//! The checkpoint consumer as a state machine (client-api §4.3, client-behavior §5, §7): one reader for each segment of
//! the topic, or of the group's share in it, and one stream of messages out of all of them. The position is the
//! application's: nothing is acknowledged.
//!
//! The reader of a segment starts when the application has received everything of its parents, so that the messages of
//! a key come in order through splits and merges. A group's controller hands out a child when the group has read its
//! parents; where it does not, a member still reads those parents first that it has itself.
//!
//! | Module | Owns |
//! |---|---|
//! | [`position`] | checkpoints and their bytes |
//! | [`reader`] | one segment and its reader |
//! | `step` | which segments are read, from where, and when |
//! | `brokers` | what segments' brokers say |

mod brokers;
pub(crate) mod position;
pub(crate) mod reader;
mod step;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    position::{Mark, Marks, Start},
    reader::{Asking, From, Reader},
};
use super::{
    Link, Millis, Now,
    assignment::Assignment,
    backoff::{BackoffLimits, Rng},
    consumer::Delivery,
    deviant::{Deviance, Deviant},
    error::Error,
    session::{Register, Session},
    tracker::View,
};

/// What an application can set on a checkpoint consumer, as far as the state machine needs it.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointConfig {
    pub(crate) start: Start,
    /// Whether the topic is shared with a group.
    pub(crate) grouped: bool,
    /// Messages of one segment that may be under way or wait to be received.
    pub(crate) receiver_queue: u32,
    pub(crate) open_limit: Millis,
    pub(crate) backoff: BackoffLimits,
    pub(crate) deviance: Deviance,
}

/// Sends SUBSCRIBE for the reader of a segment. The answer goes to [`CheckpointCore::attached`] or
/// [`CheckpointCore::attach_failed`] with the same generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscribe {
    pub(crate) segment: u64,
    pub(crate) generation: u64,
    pub(crate) topic: String,
    pub(crate) from: From,
    /// The broker to try; `None` asks for the owner.
    pub(crate) address: Option<String>,
    pub(crate) fresh: bool,
    /// Makes the name of the reader's subscription unique.
    pub(crate) number: u64,
}

/// A message for the application, and the reader that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointDelivery {
    pub(crate) generation: u64,
    pub(crate) mark: Mark,
    pub(crate) delivery: Delivery,
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Register(Register),
    /// Looks the topic up anew.
    Lookup,
    /// Sends SCALABLE_TOPIC_UNSUBSCRIBE; its end goes to [`CheckpointCore::left`].
    Leave,
    Subscribe(Subscribe),
    Flow {
        segment: u64,
        permits: u32,
    },
    /// Sends GET_LAST_MESSAGE_ID; the answer goes to [`CheckpointCore::last_message`].
    Ask {
        segment: u64,
        generation: u64,
    },
    /// Sends CLOSE_CONSUMER; its answer goes to [`CheckpointCore::detached`].
    Detach {
        segment: u64,
    },
    /// Lets go of the segment's reader without waiting for anything.
    Forget {
        segment: u64,
    },
    /// Puts a message into the receive queue.
    Deliver(CheckpointDelivery),
    /// Takes a segment's messages out of the receive queue; what was received of it goes to
    /// [`CheckpointCore::withdrawn`].
    Withdraw {
        segment: u64,
    },
    /// Takes a position into checkpoints for which nothing was received yet.
    Mark {
        segment: u64,
        mark: Mark,
    },
    /// Takes the position of a segment that is pruned out of checkpoints.
    Unmark {
        segment: u64,
    },
    /// Everything that can be read now is attached, or cannot be.
    Opened(Result<(), Error>),
    /// Nothing is attached any more.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Not,
    Leaving,
    Detaching,
    Closed,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct CheckpointCore {
    config: CheckpointConfig,
    view: View,
    rng: Rng,
    session: Session,
    /// The segments of a group's member.
    assignment: Option<Assignment>,
    readers: BTreeMap<u64, Reader>,
    /// Where segments go on that have no reader: as restored, or as they were left.
    resume: Marks,
    /// The segments that a start at latest is about; what comes later is read from its beginning.
    at_create: BTreeSet<u64>,
    next_generation: u64,
    synced: bool,
    opening: Option<Millis>,
    last_error: Option<Error>,
    ending: Ending,
    effects: Vec<Effect>,
}

impl CheckpointCore {
    /// A consumer on a topic that is resolved. It attaches what can be read now and then says [`Effect::Opened`].
    pub(crate) fn new(config: CheckpointConfig, view: View, mut rng: Rng, now: Now) -> Self {
        let resume = match &config.start {
            Start::Behind(marks) if !config.deviance.is(Deviant::RestoreIgnoresPosition) => marks.clone(),
            _ => Marks::new(),
        };
        let mut core = CheckpointCore {
            session: Session::new(config.backoff, rng.fork(), config.deviance),
            opening: Some(now.mono + config.open_limit),
            config,
            at_create: view.layout.segments().map(|segment| segment.id).collect(),
            view,
            rng,
            assignment: None,
            readers: BTreeMap::new(),
            resume,
            next_generation: 1,
            synced: true,
            last_error: None,
            ending: Ending::Not,
            effects: Vec::new(),
        };
        core.choose();
        core.advance(now);
        core
    }

    /// Takes what the shell has to do, in order.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The canonical name of the topic.
    pub(crate) fn topic(&self) -> &str {
        self.view.topic.as_str()
    }

    fn deviance(&self) -> Deviance {
        self.config.deviance
    }

    /// Whether it registers with the controller.
    fn registers(&self) -> bool {
        self.config.grouped || self.deviance().is(Deviant::CheckpointRegisters)
    }

    // ---- events from the application ----

    /// The application took a message out of the receive queue.
    pub(crate) fn consumed(&mut self, segment: u64, generation: u64, now: Now) {
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        if generation >= reader.since && !reader.withdrawn {
            reader.waiting = reader.waiting.saturating_sub(1);
        }
        if reader.generation == generation {
            self.permit(segment, 1);
        }
        self.advance(now);
    }

    fn permit(&mut self, segment: u64, count: u32) {
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        reader.consumed = reader.consumed.saturating_add(count);
        let enough = reader.consumed >= (self.config.receiver_queue / 2).max(1);
        if enough && reader.granted && reader.link == Link::Attached {
            let permits = std::mem::take(&mut reader.consumed);
            self.effects.push(Effect::Flow { segment, permits });
        }
    }

    /// Leaves the group, detaches everything and says [`Effect::Closed`].
    pub(crate) fn close(&mut self, now: Now) {
        if self.ending != Ending::Not {
            return;
        }
        self.opening = None;
        if self.session.is_registered() && !self.deviance().is(Deviant::NoUnsubscribeOnClose) {
            self.ending = Ending::Leaving;
            self.effects.push(Effect::Leave);
        } else {
            self.ending = Ending::Detaching;
        }
        self.advance(now);
    }

    /// The controller was told, or the attempt failed: it does not matter for the close.
    pub(crate) fn left(&mut self, now: Now) {
        if self.ending == Ending::Leaving {
            self.ending = Ending::Detaching;
        }
        self.advance(now);
    }

    /// Lets go of everything at once.
    pub(crate) fn abort(&mut self) {
        for segment in std::mem::take(&mut self.readers).into_keys() {
            self.effects.push(Effect::Forget { segment });
        }
        self.say_closed();
    }

    /// For the deviant that asks the broker when a checkpoint is taken.
    pub(crate) fn ask_again(&mut self, now: Now) {
        for (segment, reader) in &mut self.readers {
            if reader.link == Link::Attached {
                self.effects.push(Effect::Ask { segment: *segment, generation: reader.generation });
            }
        }
        self.advance(now);
    }

    // ---- events from the layout watch and the controller ----

    /// Works by this layout from now on.
    pub(crate) fn apply_layout(&mut self, view: View, now: Now) {
        let before = std::mem::replace(&mut self.view, view);
        let pruned: Vec<u64> =
            self.resume.keys().copied().filter(|id| self.view.layout.segment(*id).is_none()).collect();
        for id in pruned {
            self.resume.remove(&id);
            if !self.readers.contains_key(&id) {
                self.effects.push(Effect::Unmark { segment: id });
            }
        }
        self.choose();
        for (id, reader) in &mut self.readers {
            let named_before = before.brokers.get(id);
            let moved = named_before.is_some() && named_before != reader.address.as_ref();
            if !moved || self.config.deviance.is(Deviant::IgnoreMovedSegment) {
                continue;
            }
            reader.lookup = false;
            if reader.link == Link::Attached && reader.at != reader.address {
                reader.link = Link::Detaching;
                self.effects.push(Effect::Detach { segment: *id });
            }
        }
        self.advance(now);
    }

    /// Whether the layout watch is up. While it is not, nothing is registered or attached anew.
    pub(crate) fn set_synced(&mut self, synced: bool, now: Now) {
        self.synced = synced;
        self.advance(now);
    }

    /// SCALABLE_TOPIC_SUBSCRIBE succeeded at the broker with this URL.
    pub(crate) fn registered(&mut self, generation: u64, at: &str, assignment: Assignment, now: Now) {
        if !self.session.registered(generation, at) {
            return;
        }
        match self.ending {
            Ending::Not => self.assigned(assignment, now),
            Ending::Leaving | Ending::Detaching | Ending::Closed => self.effects.push(Effect::Leave),
        }
    }

    /// The registration could not be made, or its connection is lost.
    pub(crate) fn unregistered(&mut self, generation: u64, error: Error, now: Now) {
        if !self.session.lost(generation, now) {
            return;
        }
        if self.opening.is_some() && !error.is_transient() {
            self.opening = None;
            self.effects.push(Effect::Opened(Err(error)));
        } else {
            tracing::debug!(%error, "the registration is lost, looking up the controller");
            self.last_error = Some(error);
            if self.synced && !self.deviance().is(Deviant::NoLookupOnLoss) {
                self.synced = false;
                self.effects.push(Effect::Lookup);
            }
        }
        self.advance(now);
    }

    /// SCALABLE_TOPIC_ASSIGNMENT_UPDATE.
    pub(crate) fn assignment_update(&mut self, generation: u64, assignment: Assignment, now: Now) {
        let ignored = self.assignment.is_some() && self.deviance().is(Deviant::IgnoreAssignmentUpdates);
        if self.session.is_current(generation) && self.ending == Ending::Not && !ignored {
            self.assigned(assignment, now);
        }
    }

    fn assigned(&mut self, assignment: Assignment, now: Now) {
        if self.session.accepts(&assignment) {
            self.assignment = Some(assignment);
            self.choose();
        }
        self.advance(now);
    }

    // ---- time ----

    /// The time has come that [`CheckpointCore::next_deadline`] gave.
    pub(crate) fn tick(&mut self, now: Now) {
        if self.opening.is_some_and(|until| until <= now.mono) {
            self.opening = None;
            let late = Error::timeout("attaching to the topic took too long");
            self.effects.push(Effect::Opened(Err(self.last_error.take().unwrap_or(late))));
        }
        self.advance(now);
    }

    /// When something is due next, on the clock that never jumps.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let running = self.synced && self.ending == Ending::Not;
        let attaching = self.readers.values().filter_map(|reader| match (reader.link, reader.asking) {
            (Link::Waiting(until), _) if running && reader.wanted => Some(until),
            (Link::Attached, Asking::Later(until)) => Some(until),
            _ => None,
        });
        let registering = self.session.next_deadline().filter(|_| running && self.registers());
        attaching.chain(registering).chain(self.opening).min()
    }
}
