//! The stream consumer as a state machine (client-behavior §5, §6, §8; key-shared §4): a registration with the topic's
//! controller, one subscription for each assigned segment, one stream of messages out of all of them, and cumulative
//! acknowledgements that advance every segment.
//!
//! | Module | Owns |
//! |---|---|
//! | [`deliveries`] | what an attachment delivered and how far its acknowledgement is |
//! | [`segment`] | one segment and its attachment, generation by generation |
//! | `brokers` | what segments' brokers say |
//! | `acking` | from the application's acknowledgements to the broker's |
//! | `step` | what follows from the assignment and the state: attaching, draining, detaching |

mod acking;
mod brokers;
pub(crate) mod deliveries;
#[cfg(test)]
mod model;
pub(crate) mod segment;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use stc_proto::pulsar::{MessageIdData, command_ack::ValidationError};

use self::{
    deliveries::Ack,
    segment::{Phase, StreamSegment},
};
use super::{
    Millis, Now,
    assignment::{Assignment, Mode},
    backoff::{BackoffLimits, Rng},
    consumer::Delivery,
    deviant::{Deviance, Deviant},
    error::Error,
    message_id::Slice,
    session::{Register, Session},
    tracker::View,
};

/// What an application can set on a stream consumer, as far as the state machine needs it.
#[derive(Debug, Clone)]
pub(crate) struct StreamConfig {
    /// Tells the deliveries of this consumer from those of others in the process.
    pub(crate) consumer: u64,
    /// Messages of one segment that may be under way or wait to be received.
    pub(crate) receiver_queue: u32,
    /// How long acknowledgements are collected before they are sent; 0 sends each at once.
    pub(crate) group_time: Millis,
    /// How long opening may take.
    pub(crate) open_limit: Millis,
    pub(crate) backoff: BackoffLimits,
    pub(crate) deviance: Deviance,
}

/// Sends SUBSCRIBE for a segment. The answer goes to [`StreamCore::attached`] or [`StreamCore::attach_failed`] with the
/// same generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscribe {
    pub(crate) segment: u64,
    pub(crate) generation: u64,
    pub(crate) topic: String,
    pub(crate) mode: Mode,
    /// The broker to try; `None` asks for the owner.
    pub(crate) address: Option<String>,
    /// Whether it is a new consumer, with an id of its own.
    pub(crate) fresh: bool,
}

/// A message for the application, and the attachment that it came on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamDelivery {
    pub(crate) generation: u64,
    pub(crate) delivery: Delivery,
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Register(Register),
    /// Looks the topic up anew.
    Lookup,
    /// Sends SCALABLE_TOPIC_UNSUBSCRIBE; its end goes to [`StreamCore::left`].
    Leave,
    Subscribe(Subscribe),
    Flow {
        segment: u64,
        permits: u32,
    },
    /// Sends ACK; the answer goes to [`StreamCore::ack_answered`].
    Ack {
        segment: u64,
        generation: u64,
        ack: Ack,
    },
    /// Tells the broker that an entry cannot be read.
    Invalid {
        segment: u64,
        id: MessageIdData,
        reason: ValidationError,
    },
    /// Sends CLOSE_CONSUMER; its answer goes to [`StreamCore::detached`].
    Detach {
        segment: u64,
    },
    /// Lets go of the segment's attachment without waiting for anything.
    Forget {
        segment: u64,
    },
    /// Puts a message into the receive queue.
    Deliver(StreamDelivery),
    /// Takes the messages of an attachment out of the receive queue; what was taken out goes to
    /// [`StreamCore::withdrawn`].
    Withdraw {
        segment: u64,
        generation: u64,
    },
    /// Everything that was assigned is attached, or cannot be.
    Opened(Result<(), Error>),
    /// Nothing is attached any more.
    Closed,
}

/// How far the end of the consumer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Not,
    /// The controller is being told.
    Leaving,
    /// The segments are being let go.
    Detaching,
    Closed,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct StreamCore {
    config: StreamConfig,
    view: View,
    rng: Rng,
    session: Session,
    assignment: Option<Assignment>,
    segments: BTreeMap<u64, StreamSegment>,
    /// The last delivered message of each segment.
    positions: BTreeMap<u64, Slice>,
    /// The attachments that those came on.
    generations: BTreeMap<u64, u64>,
    /// Counts deliveries.
    sequence: u64,
    next_generation: u64,
    next_ticket: u64,
    /// When collected acknowledgements are sent.
    acks_due: Option<Millis>,
    synced: bool,
    /// Until when opening may take; `None` once it is over.
    opening: Option<Millis>,
    /// Why opening is not over yet.
    last_error: Option<Error>,
    ending: Ending,
    effects: Vec<Effect>,
}

impl StreamCore {
    /// A consumer on a topic that is resolved. It registers, attaches what it is assigned and then says
    /// [`Effect::Opened`].
    pub(crate) fn new(config: StreamConfig, view: View, mut rng: Rng, now: Now) -> Self {
        let session = Session::new(config.backoff, rng.fork(), config.deviance);
        let mut core = StreamCore {
            opening: Some(now.mono + config.open_limit),
            config,
            view,
            rng,
            session,
            assignment: None,
            segments: BTreeMap::new(),
            positions: BTreeMap::new(),
            generations: BTreeMap::new(),
            sequence: 0,
            next_generation: 1,
            next_ticket: 1,
            acks_due: None,
            synced: true,
            last_error: None,
            ending: Ending::Not,
            effects: Vec::new(),
        };
        if core.deviance().is(Deviant::NeverRegisters) {
            core.assign_everything();
        }
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

    // ---- events from the application ----

    /// The application took messages of an attachment out of the receive queue.
    pub(crate) fn consumed(&mut self, segment: u64, generation: u64, count: u32) {
        let Some(attachment) = self.segments.get_mut(&segment).and_then(|s| s.of(generation)) else { return };
        attachment.consumed = attachment.consumed.saturating_add(count);
        let enough = attachment.consumed >= (self.config.receiver_queue / 2).max(1);
        if enough && attachment.phase == Phase::Attached {
            let permits = std::mem::take(&mut attachment.consumed);
            self.effects.push(Effect::Flow { segment, permits });
        }
    }

    /// Tells the controller, detaches everything, also what is being drained, and says [`Effect::Closed`]. Acknowledges
    /// nothing that the application has not acknowledged.
    pub(crate) fn close(&mut self, now: Now) {
        if self.ending != Ending::Not {
            return;
        }
        self.opening = None;
        if self.deviance().is(Deviant::AcksOnClose) {
            self.want_everything();
        }
        self.acks_due = None;
        self.send_acks(now);
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
        for segment in std::mem::take(&mut self.segments).into_keys() {
            self.effects.push(Effect::Forget { segment });
        }
        self.say_closed();
    }

    // ---- events from the layout watch ----

    /// Works by this layout from now on.
    pub(crate) fn apply_layout(&mut self, view: View, now: Now) {
        let before = std::mem::replace(&mut self.view, view);
        for (id, segment) in &mut self.segments {
            let named_before = before.brokers.get(id);
            segment.address = self.view.brokers.get(id).cloned();
            let moved = named_before.is_some() && named_before != segment.address.as_ref();
            if !moved || self.config.deviance.is(Deviant::IgnoreMovedSegment) {
                continue;
            }
            segment.lookup = false;
            // Its broker gives it up anyway. What is open is with another broker now: nothing to drain here.
            if let Some(attachment) = &mut segment.attachment
                && matches!(attachment.phase, Phase::Attached | Phase::Draining)
                && attachment.at != segment.address
            {
                attachment.phase = Phase::Detaching;
                self.effects.push(Effect::Detach { segment: *id });
            }
        }
        if self.deviance().is(Deviant::NeverRegisters) {
            self.assign_everything();
        }
        if self.deviance().is(Deviant::AttachUnassigned) {
            self.apply_assignment();
        }
        self.advance(now);
    }

    /// Whether the layout watch is up. While it is not, nothing is registered or attached anew.
    pub(crate) fn set_synced(&mut self, synced: bool, now: Now) {
        self.synced = synced;
        self.advance(now);
    }

    // ---- events from the controller ----

    /// SCALABLE_TOPIC_SUBSCRIBE succeeded at the broker with this URL.
    pub(crate) fn registered(&mut self, generation: u64, at: &str, assignment: Assignment, now: Now) {
        if !self.session.registered(generation, at) {
            return;
        }
        match self.ending {
            Ending::Not => self.assigned(assignment, now),
            // It came about after all: the close takes it back.
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
            self.apply_assignment();
        }
        self.advance(now);
    }

    // ---- time ----

    /// The time has come that [`StreamCore::next_deadline`] gave.
    pub(crate) fn tick(&mut self, now: Now) {
        if self.opening.is_some_and(|until| until <= now.mono) {
            self.opening = None;
            let late = Error::timeout("subscribing to the topic took too long");
            self.effects.push(Effect::Opened(Err(self.last_error.take().unwrap_or(late))));
        }
        if self.acks_due.is_some_and(|due| due <= now.mono) {
            self.acks_due = None;
        }
        self.send_acks(now);
        self.advance(now);
    }

    /// When something is due next, on the clock that never jumps.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let open = self.ending == Ending::Not;
        let attaching = self.segments.values().filter_map(|stream| {
            let waits = stream.attachment.is_none() && stream.wanted.is_some();
            (waits && self.synced && open).then_some(stream.not_before)
        });
        let acks = self.segments.values().filter_map(|stream| stream.attachment.as_ref()).filter_map(|a| {
            let sends = matches!(a.phase, Phase::Attached | Phase::Draining) && a.deliveries.has_wanted();
            (sends && self.acks_due.is_none()).then_some(a.acks_after)
        });
        let registering = self.session.next_deadline().filter(|_| self.synced && open);
        attaching.chain(acks).chain(registering).chain(self.opening).chain(self.acks_due).min()
    }

    fn say_closed(&mut self) {
        if self.ending != Ending::Closed {
            self.ending = Ending::Closed;
            self.effects.push(Effect::Closed);
        }
    }
}
