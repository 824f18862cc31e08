//! What the state machines of all consumers share (client-behavior §5, §8, §9): segments are attached to their brokers,
//! an ordered consumer is registered with the controller, opening is over when all that is wanted is attached, and a
//! close leaves first and lets go of the segments then.
//!
//! [`Core`] is a consumer's state machine: what it has to say itself are its required methods, what happens to all of
//! them alike are its provided ones. [`Life`] is the state that those work on.

mod life;

use std::collections::BTreeMap;

use bytes::Bytes;
use stc_proto::pulsar::CommandMessage;

pub(crate) use self::life::{Life, LifeConfig};
use super::{
    Millis, Now,
    assignment::Assignment,
    deviant::Deviant,
    error::{Category, Error},
    incoming::Incoming,
    message_id::MessageId,
    place::{Attempt, Place},
    session::Register,
    tracker::View,
    transaction::{
        TxnId,
        acks::{self, Reach},
    },
};

/// A message for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) segment: u64,
    pub(crate) id: MessageId,
    pub(crate) redelivery_count: u32,
    pub(crate) message: Incoming,
}

/// Sends SUBSCRIBE for a segment. The answer goes to [`Core::attached`] or [`Core::attach_failed`] with the same
/// generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscribe<H> {
    pub(crate) segment: u64,
    pub(crate) topic: String,
    pub(crate) attempt: Attempt,
    /// What the kind of consumer adds.
    pub(crate) how: H,
}

/// What the shell has to do. `H` is how segments are subscribed, `D` what goes into the receive queue and `O` what only
/// this kind of consumer asks for.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // nearly all are deliveries
pub(crate) enum Effect<H, D, O> {
    /// Sends SCALABLE_TOPIC_SUBSCRIBE.
    Register(Register),
    /// Looks the topic up anew.
    Lookup,
    /// Looks the topic up anew, and takes the layout that it has, whatever its epoch.
    Doubt,
    /// Sends SCALABLE_TOPIC_UNSUBSCRIBE; its end goes to [`Core::left`].
    Leave,
    Subscribe(Subscribe<H>),
    Flow {
        segment: u64,
        permits: u32,
    },
    /// Sends CLOSE_CONSUMER; its answer goes to [`Core::detached`].
    Detach {
        segment: u64,
    },
    /// Lets go of the segment's attachment without waiting for anything.
    Forget {
        segment: u64,
    },
    /// Puts a message into the receive queue.
    Deliver(D),
    /// Everything that is wanted is attached, or cannot be.
    Opened(Result<(), Error>),
    /// Nothing is attached any more.
    Closed,
    /// Carries an acknowledgement in a transaction on.
    Transaction(acks::Effect),
    Own(O),
}

/// A segment of a consumer.
pub(crate) trait Segment {
    fn place(&mut self) -> &mut Place;

    /// How it can be acknowledged on now.
    fn reach(&self) -> Reach;

    /// When it may be attached, if it waits for that and this consumer is to read it.
    fn retry_at(&self) -> Option<Millis>;
}

/// The life of a consumer of this kind.
pub(crate) type LifeOf<C> = Life<<C as Core>::How, <C as Core>::Delivery, <C as Core>::Own>;

/// What the shell has to do for a consumer of this kind.
pub(crate) type EffectOf<C> = Effect<<C as Core>::How, <C as Core>::Delivery, <C as Core>::Own>;

/// The state machine of a consumer. See the module.
pub(crate) trait Core {
    type How;
    type Delivery;
    type Own;
    type Segment: Segment;

    // ---- what each kind has to say ----

    fn life(&self) -> &LifeOf<Self>;

    fn segments(&self) -> &BTreeMap<u64, Self::Segment>;

    fn parts(&mut self) -> (&mut LifeOf<Self>, &mut BTreeMap<u64, Self::Segment>);

    /// The topic is another one of the same name, and its segments are about to be let go: forgets what is known of them.
    fn on_another_topic(&mut self) {}

    /// Takes over from layout and assignment which segments are wanted.
    fn choose(&mut self);

    /// Attaches or detaches one segment, as the state of things asks for.
    fn step(&mut self, id: u64, now: Now);

    /// Whether all that is wanted is attached.
    fn is_ready(&self) -> bool;

    /// A segment is attached now.
    fn on_attached(&mut self, id: u64, now: Now);

    /// A segment's attachment is over; `broken` when its connection was lost.
    fn on_lost(&mut self, id: u64, broken: bool);

    /// Whether a segment that could not be attached does not fail the opening.
    fn forgives(&self, segment: &Self::Segment, error: &Error) -> bool;

    /// MESSAGE.
    fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, now: Now);

    /// REACHED_END_OF_TOPIC. For ordered consumers it changes nothing: their controller notices what is drained, and a
    /// reader without a group asks for the end itself.
    fn end_of_topic(&mut self, _segment: u64, _now: Now) {}

    /// A transaction that this consumer acknowledged in ended.
    fn on_transaction_end(&mut self, _txn: TxnId, _committed: bool, _now: Now) {}

    /// What has to be done before the controller is told and everything is let go.
    fn before_close(&mut self, _now: Now) {}

    /// Does what is due.
    fn due(&mut self, _now: Now) {}

    /// When something of its own is due next.
    fn own_deadline(&self) -> Option<Millis> {
        None
    }

    /// The canonical name of the topic.
    fn topic(&self) -> &str {
        self.life().view.topic.as_str()
    }

    // ---- events from the application ----

    /// Tells the controller, detaches everything and says [`Effect::Closed`].
    fn close(&mut self, now: Now) {
        if self.parts().0.begin_close() {
            self.before_close(now);
            self.parts().0.leave();
            self.advance(now);
        }
    }

    /// The controller was told, or the attempt failed: it does not matter for the close.
    fn left(&mut self, now: Now) {
        self.parts().0.left();
        self.advance(now);
    }

    /// Lets go of everything at once.
    fn abort(&mut self) {
        let (life, segments) = self.parts();
        for segment in std::mem::take(segments).into_keys() {
            life.effects.push(Effect::Forget { segment });
        }
        life.closed();
    }

    // ---- events from the layout watch ----

    /// Works by this layout from now on.
    fn apply_layout(&mut self, view: View, now: Now) {
        if self.parts().0.adopt(view) {
            self.on_another_topic();
            let ids: Vec<u64> = self.segments().keys().copied().collect();
            for segment in ids {
                self.on_lost(segment, true);
                let (life, segments) = self.parts();
                segments.remove(&segment);
                life.effects.push(Effect::Forget { segment });
            }
        }
        self.choose();
        self.locate();
        self.advance(now);
    }

    /// Tells the segments where they are.
    fn locate(&mut self) {
        let (life, segments) = self.parts();
        for (id, segment) in segments {
            if segment.place().locate(life.view.brokers.get(id), life.deviance) {
                life.effects.push(Effect::Detach { segment: *id });
            }
        }
    }

    /// Whether the layout watch is up. While it is not, nothing is registered or attached anew.
    fn set_synced(&mut self, synced: bool, now: Now) {
        let (life, _) = self.parts();
        life.synced = synced || life.deviance.is(Deviant::ResumeBeforeLayout);
        self.advance(now);
    }

    // ---- events from the controller ----

    /// SCALABLE_TOPIC_SUBSCRIBE succeeded at the broker with this URL.
    fn registered(&mut self, generation: u64, at: &str, assignment: Assignment, now: Now) {
        if self.parts().0.registered(generation, at) {
            self.assigned(assignment, now);
        }
    }

    /// SCALABLE_TOPIC_ASSIGNMENT_UPDATE.
    fn assignment_update(&mut self, generation: u64, assignment: Assignment, now: Now) {
        if self.life().takes_update(generation) {
            self.assigned(assignment, now);
        }
    }

    fn assigned(&mut self, assignment: Assignment, now: Now) {
        if self.parts().0.assign(assignment) {
            self.choose();
            self.locate();
        }
        self.advance(now);
    }

    /// The registration could not be made, or its connection is lost.
    fn unregistered(&mut self, generation: u64, error: Error, now: Now) {
        if self.parts().0.unregistered(generation, error, now) {
            self.advance(now);
        }
    }

    // ---- events from segments' brokers ----

    /// SUBSCRIBE succeeded. False when nobody waits for it any more: the shell has to close it.
    fn attached(&mut self, segment: u64, generation: u64, at: String, now: Now) -> bool {
        let place = self.parts().1.get_mut(&segment).map(Segment::place);
        let expected = place.is_some_and(|place| place.attached(generation, at));
        if expected {
            self.on_attached(segment, now);
            self.advance(now);
        }
        expected
    }

    /// SUBSCRIBE failed, or no connection could be made for it.
    fn attach_failed(&mut self, segment: u64, generation: u64, error: Error, now: Now) {
        let deviance = self.life().deviance;
        let Some(known) = self.parts().1.get_mut(&segment) else { return };
        if !known.place().failed(generation, &error, now, deviance) {
            return;
        }
        tracing::debug!(segment, %error, "subscribing to a segment failed");
        self.on_lost(segment, false);
        let again = error.is_transient() || self.parts().0.deviance.retries_refusal(&error);
        if error.category() == Category::NotFound && !self.life().is_opening() {
            self.parts().0.missing(segment);
        }
        let forgives = |segment| self.forgives(segment, &error);
        let passes = again || self.segments().get(&segment).is_some_and(forgives);
        self.parts().0.attempt_failed(error, passes);
        self.advance(now);
    }

    /// CLOSE_CONSUMER from the broker; with an address the segment has moved there.
    fn closed_by_broker(&mut self, segment: u64, assigned: Option<String>, now: Now) {
        if assigned.is_none() {
            self.parts().0.missing(segment);
        }
        let Some(known) = self.parts().1.get_mut(&segment) else { return };
        known.place().closed_by_broker(assigned, now);
        self.on_lost(segment, false);
        self.advance(now);
    }

    /// The connection that the segment was attached on is lost.
    fn disconnected(&mut self, segment: u64, now: Now) {
        let place = self.parts().1.get_mut(&segment).map(Segment::place);
        if place.is_some_and(|place| place.disconnected(now)) {
            self.on_lost(segment, true);
        }
        self.advance(now);
    }

    /// The broker answered our CLOSE_CONSUMER, or the wait for the answer is over.
    fn detached(&mut self, segment: u64, now: Now) {
        let place = self.parts().1.get_mut(&segment).map(Segment::place);
        if place.is_some_and(|place| place.detached(now)) {
            self.on_lost(segment, false);
        }
        self.advance(now);
    }

    // ---- events of transactions ----

    /// A transaction's coordinator knows of a subscription, or cannot be told.
    fn enlisted(&mut self, ticket: u64, result: Result<(), Error>, now: Now) {
        let (life, _) = self.parts();
        let effects = &mut life.effects;
        life.txn_acks.enlisted(ticket, result, |effect| effects.push(Effect::Transaction(effect)));
        self.advance(now);
    }

    /// A broker answered an acknowledgement in a transaction, or will not.
    fn txn_ack_answered(&mut self, ticket: u64, result: Result<(), Error>, now: Now) {
        let (life, _) = self.parts();
        let effects = &mut life.effects;
        let effect = |effect| effects.push(Effect::Transaction(effect));
        life.txn_acks.answered(ticket, result, now.mono, effect);
        self.advance(now);
    }

    /// A transaction ended.
    fn transaction_ended(&mut self, txn: TxnId, committed: bool, now: Now) {
        self.parts().0.txn_acks.ended(txn);
        self.on_transaction_end(txn, committed, now);
        self.advance(now);
    }

    // ---- time ----

    /// The time has come that [`Core::next_deadline`] gave.
    fn tick(&mut self, now: Now) {
        self.parts().0.expire(now);
        self.due(now);
        self.advance(now);
    }

    /// When something is due next, on the clock that never jumps.
    fn next_deadline(&self) -> Option<Millis> {
        let retries = self.segments().values().filter_map(Segment::retry_at);
        let attaching = retries.min().filter(|_| self.life().may_attach());
        let attached = |id: u64| self.segments().get(&id).is_some_and(|s| s.reach() != Reach::Away);
        let txn_acks = self.life().txn_acks.next_deadline(attached);
        [attaching, self.own_deadline(), self.life().next_deadline(), txn_acks].into_iter().flatten().min()
    }

    // ---- inside ----

    /// Takes what the shell has to do, in order.
    fn take_effects(&mut self) -> Vec<EffectOf<Self>> {
        std::mem::take(&mut self.parts().0.effects)
    }

    /// Does what the state of things asks for.
    fn advance(&mut self, now: Now) {
        let (life, segments) = self.parts();
        life.register(now);
        segments.values_mut().for_each(|segment| segment.place().wake(now));
        let ids: Vec<u64> = segments.keys().copied().collect();
        for id in ids {
            self.step(id, now);
        }
        if self.life().is_opening() && self.is_ready() {
            self.parts().0.opened(Ok(()));
        }
        let (life, segments) = self.parts();
        let effects = &mut life.effects;
        let reach = |id: u64| segments.get(&id).map(Segment::reach);
        life.txn_acks.step(now.mono, reach, |effect| effects.push(Effect::Transaction(effect)));
        let (life, segments) = self.parts();
        if life.is_detaching() && segments.is_empty() {
            life.closed();
        }
    }

    /// Has a segment closed that is attached.
    fn detach(&mut self, id: u64) {
        let (life, segments) = self.parts();
        if segments.get_mut(&id).is_some_and(|segment| segment.place().detach()) {
            life.effects.push(Effect::Detach { segment: id });
        }
    }
}
