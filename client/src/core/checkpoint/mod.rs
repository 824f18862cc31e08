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

pub(crate) mod position;
pub(crate) mod reader;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use stc_proto::{
    HashRange,
    pulsar::{CommandGetLastMessageIdResponse, CommandMessage},
};

use self::{
    position::{Mark, Marks, Start},
    reader::{Asking, From, Reader},
};
use super::{
    Link, Millis, Now,
    assignment::Assignment,
    backoff::{Backoff, BackoffLimits, Rng},
    consumer::Delivery,
    deviant::{Deviance, Deviant},
    error::{Category, Error},
    incoming::{self, Unreadable},
    message_id::{MessageId, Position},
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

    /// SCALABLE_TOPIC_SUBSCRIBE succeeded.
    pub(crate) fn registered(&mut self, generation: u64, assignment: Assignment, now: Now) {
        if !self.session.registered(generation) {
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

    /// Takes over from layout and assignment which segments are read.
    fn choose(&mut self) {
        let deviance = self.config.deviance;
        let layout = self.view.layout.clone();
        let active_only = deviance.is(Deviant::CheckpointActiveOnly);
        let segments = layout.segments().filter(|segment| segment.active || !active_only);
        let mut wanted: BTreeMap<u64, (String, Option<HashRange>)> =
            segments.map(|s| (s.id, (s.topic(&self.view.topic, deviance), Some(s.range)))).collect();
        if self.config.grouped && !deviance.is(Deviant::GroupReadsAll) {
            let assigned = self.assignment.iter().flat_map(|assignment| &assignment.segments);
            wanted = assigned.map(|(id, assigned)| (*id, (assigned.topic.clone(), assigned.range))).collect();
        }
        for (id, (topic, range)) in &wanted {
            if !self.readers.contains_key(id) {
                let from = self.origin(*id);
                let (limits, rng) = (self.config.backoff, &mut self.rng);
                let since = self.next_generation;
                let mut reader = Reader::new(topic.clone(), from, since, Backoff::new(limits, rng.fork()));
                reader.range = *range;
                if let From::Behind(Some(mark)) = from {
                    reader.skip = u32::from(deviance.is(Deviant::RestoreSkipsOne));
                    self.effects.push(Effect::Mark { segment: *id, mark });
                }
                self.readers.insert(*id, reader);
            }
        }
        for (id, reader) in &mut self.readers {
            reader.address = self.view.brokers.get(id).cloned();
            if let Some(segment) = layout.segment(*id) {
                reader.active = segment.active;
                reader.range = Some(segment.range);
            } else if !self.config.grouped {
                reader.active = false;
            }
            reader.wanted = wanted.contains_key(id);
        }
    }

    /// Where the first reader of a segment starts.
    fn origin(&self, id: u64) -> From {
        let latest =
            self.config.start == Start::Latest && !self.deviance().is(Deviant::CheckpointStartsEarliest);
        let gained = self.config.grouped && self.opening.is_none();
        match self.resume.get(&id) {
            None if gained && self.deviance().is(Deviant::GroupGainsAtLatest) => From::Latest,
            Some(mark) => From::Behind(Some(*mark)),
            None if latest && self.at_create.contains(&id) => From::Latest,
            None => From::Behind(None),
        }
    }

    // ---- events from segments' brokers ----

    /// SUBSCRIBE succeeded. False when nobody waits for it any more: the shell has to close it.
    pub(crate) fn attached(&mut self, segment: u64, generation: u64, at: String, now: Now) -> bool {
        let Some(reader) = self.readers.get_mut(&segment) else { return false };
        if reader.generation != generation || reader.link != Link::Attaching {
            return false;
        }
        reader.link = Link::Attached;
        reader.at = Some(at);
        reader.lookup = false;
        reader.redirect = None;
        reader.fresh = false;
        reader.backoff.reset();
        self.advance(now);
        true
    }

    /// SUBSCRIBE failed, or no connection could be made for it.
    pub(crate) fn attach_failed(&mut self, segment: u64, generation: u64, error: Error, now: Now) {
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        if reader.generation != generation || reader.link != Link::Attaching {
            return;
        }
        reader.lookup = !reader.lookup;
        reader.redirect = None;
        reader.link = Link::Waiting(now.mono + reader.backoff.delay());
        let gone = error.category() == Category::NotFound && !reader.active;
        if self.opening.is_some() && !error.is_transient() && !gone {
            self.opening = None;
            self.effects.push(Effect::Opened(Err(error)));
        } else {
            tracing::debug!(segment, %error, "attaching a reader failed, trying again");
            self.last_error = Some(error);
        }
        self.advance(now);
    }

    /// The broker told the last message of a segment, or did not.
    pub(crate) fn last_message(
        &mut self,
        segment: u64,
        generation: u64,
        answer: Result<CommandGetLastMessageIdResponse, Error>,
        now: Now,
    ) {
        let Some(reader) = self.readers.get_mut(&segment).filter(|reader| reader.generation == generation)
        else {
            return;
        };
        match answer {
            Ok(answer) => {
                let last = answer.last_message_id;
                // Entry -1 is the place before the first one.
                let mark = (last.entry_id < i64::MAX as u64).then(|| Mark {
                    ledger: last.ledger_id,
                    entry: last.entry_id,
                    batch_index: last.batch_index.unwrap_or(-1),
                });
                // One that was sealed after the question may have got more.
                if reader.asking == (Asking::UnderWay { sealed: true }) {
                    reader.end = Some(mark);
                }
                reader.asking = Asking::No;
                if reader.from == From::Latest {
                    reader.from = From::Behind(mark);
                    self.effects.extend(mark.map(|mark| Effect::Mark { segment, mark }));
                }
            }
            Err(error) => {
                tracing::debug!(segment, %error, "the last message of a segment is not known yet");
                reader.asking = Asking::Later(now.mono + reader.backoff.delay());
            }
        }
        self.advance(now);
    }

    /// MESSAGE.
    pub(crate) fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, now: Now) {
        let deviance = self.deviance();
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        if reader.link != Link::Attached || reader.withdrawn {
            return;
        }
        let (ledger, entry) = (command.message_id.ledger_id, command.message_id.entry_id);
        let From::Behind(seen) = reader.from else { return };
        let (opened, last) = match incoming::open(payload, deviance) {
            Ok(opened) => {
                let last = if opened.batch { opened.count as i32 - 1 } else { -1 };
                (Some(opened), last)
            }
            Err(Unreadable::Corrupt(_, why)) => {
                tracing::warn!(segment, ledger, entry, why, "dropping a corrupt entry");
                (None, -1)
            }
            Err(Unreadable::Unsupported(why)) => {
                tracing::warn!(segment, ledger, entry, why, "passing over an entry");
                (None, -1)
            }
        };
        let (count, batch) = opened.as_ref().map_or((1, false), |opened| (opened.count as u32, opened.batch));
        let batch_size = if batch { count as i32 } else { 0 };
        let mut handed_on = 0;
        for message in opened.into_iter().flat_map(|opened| opened.messages) {
            let mark = Mark { ledger, entry, batch_index: message.batch_index };
            let repeats = deviance.is(Deviant::RestoreRepeatsOne) && seen == Some(mark);
            // A broker delivers the entry at the start position once more.
            if seen.is_some_and(|seen| mark <= seen) && !repeats {
                continue;
            }
            if reader.skip > 0 {
                reader.skip -= 1;
                continue;
            }
            let at = Position { segment, ledger, entry, batch_index: message.batch_index, batch_size };
            let redelivery_count = command.redelivery_count.unwrap_or_default();
            let delivery = Delivery { segment, id: MessageId::from(at), redelivery_count, message };
            let generation = reader.generation;
            self.effects.push(Effect::Deliver(CheckpointDelivery { generation, mark, delivery }));
            handed_on += 1;
        }
        reader.waiting += handed_on;
        let through = Mark { ledger, entry, batch_index: last };
        reader.from = From::Behind(seen.max(Some(through)));
        // What the application does not get is not waited for.
        self.permit(segment, count.saturating_sub(handed_on));
        self.advance(now);
    }

    /// CLOSE_CONSUMER from the broker; with an address the segment has moved there.
    pub(crate) fn closed_by_broker(&mut self, segment: u64, assigned: Option<String>, now: Now) {
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        let delay = if assigned.is_some() { 0 } else { reader.backoff.delay() };
        reader.lookup = assigned.is_none();
        reader.redirect = assigned;
        reader.lost(now.mono + delay);
        self.advance(now);
    }

    /// The connection that the reader was attached on is lost.
    pub(crate) fn disconnected(&mut self, segment: u64, now: Now) {
        if let Some(reader) = self.readers.get_mut(&segment)
            && matches!(reader.link, Link::Attached | Link::Detaching)
        {
            let until = now.mono + reader.backoff.delay();
            reader.lost(until);
        }
        self.advance(now);
    }

    /// The broker answered our CLOSE_CONSUMER, or the wait for the answer is over.
    pub(crate) fn detached(&mut self, segment: u64, now: Now) {
        if let Some(reader) = self.readers.get_mut(&segment)
            && reader.link == Link::Detaching
        {
            reader.lost(now.mono);
            reader.fresh = true;
        }
        self.advance(now);
    }

    /// A segment's messages were taken back; this is what the application had received of it.
    /// It stays in checkpoints: the segment may come back, to this consumer or to one that is restored.
    pub(crate) fn withdrawn(&mut self, segment: u64, received: Option<Mark>) {
        self.resume.extend(received.map(|mark| (segment, mark)));
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

    // ---- inside ----

    fn advance(&mut self, now: Now) {
        if self.ending == Ending::Not && self.synced && self.registers() {
            let controller = self.view.controller.as_ref();
            self.effects.extend(self.session.step(controller, now).map(Effect::Register));
        }
        let ids: Vec<u64> = self.readers.keys().copied().collect();
        for id in ids {
            self.step(id, now);
        }
        let assigned = self.assignment.is_some() || !self.config.grouped;
        let ready = |(id, reader): (&u64, &Reader)| {
            let starts = reader.wanted && (reader.from == From::Latest || self.may_start(*id));
            !starts || (reader.link == Link::Attached && reader.from != From::Latest)
        };
        if self.opening.is_some() && assigned && self.readers.iter().all(ready) {
            self.opening = None;
            self.effects.push(Effect::Opened(Ok(())));
        }
        if self.ending == Ending::Detaching && self.readers.is_empty() {
            self.say_closed();
        }
    }

    /// Whether everything that came before a segment is read.
    fn may_start(&self, id: u64) -> bool {
        if self.deviance().is(Deviant::ChildBeforeParent) {
            return true;
        }
        let Some(reader) = self.readers.get(&id) else { return true };
        // An ancestor that is not read here is pruned, or another member's, and the controller has seen to it.
        let mut read_here = self.readers.iter().filter(|(_, other)| !other.withdrawn);
        read_here.all(|(other_id, other)| other.is_finished() || !reader.comes_after(id, *other_id, other))
    }

    /// Attaches or detaches one reader, as layout, assignment and its parents ask for.
    fn step(&mut self, id: u64, now: Now) {
        let may_start = self.may_start(id);
        let receiver_queue = self.config.receiver_queue;
        let Some(reader) = self.readers.get_mut(&id) else { return };
        if let Link::Waiting(until) = reader.link
            && until <= now.mono
        {
            reader.link = Link::Idle;
        }
        // Another member reads it from now on.
        if self.config.grouped && !reader.wanted && !reader.withdrawn && self.ending == Ending::Not {
            reader.withdrawn = true;
            self.effects.push(Effect::Withdraw { segment: id });
        }
        // Without a group nobody else reads it: what is still there of one that the layout lost is read to its end.
        let drains = !self.config.grouped
            && (reader.waiting > 0 || (reader.link == Link::Attached && !reader.is_finished()));
        let leaves = self.ending == Ending::Detaching || reader.withdrawn || (!reader.wanted && !drains);
        match reader.link {
            Link::Attached if leaves => {
                reader.link = Link::Detaching;
                self.effects.push(Effect::Detach { segment: id });
            }
            Link::Attached => {
                let again = match reader.asking {
                    Asking::No => true,
                    Asking::UnderWay { .. } => false,
                    Asking::Later(until) => until <= now.mono,
                };
                if reader.has_question() && again {
                    reader.asking = Asking::UnderWay { sealed: !reader.active };
                    let generation = reader.generation;
                    self.effects.push(Effect::Ask { segment: id, generation });
                }
                if reader.from != From::Latest && may_start && !reader.granted {
                    reader.granted = true;
                    reader.consumed = 0;
                    self.effects.push(Effect::Flow { segment: id, permits: receiver_queue });
                }
            }
            Link::Attaching | Link::Detaching => {}
            Link::Idle | Link::Waiting(_) if leaves => {
                let back = reader.withdrawn && reader.wanted && self.ending == Ending::Not;
                if self.view.layout.segment(id).is_none() && self.ending == Ending::Not {
                    self.resume.remove(&id);
                    self.effects.push(Effect::Unmark { segment: id });
                }
                self.readers.remove(&id);
                self.effects.push(Effect::Forget { segment: id });
                if back {
                    self.choose();
                    self.step(id, now);
                }
            }
            Link::Idle if self.ending == Ending::Not && self.synced => {
                if may_start || reader.from == From::Latest {
                    self.attach(id);
                }
            }
            Link::Idle | Link::Waiting(_) => {}
        }
    }

    fn attach(&mut self, id: u64) {
        let Some(reader) = self.readers.get_mut(&id) else { return };
        reader.link = Link::Attaching;
        reader.generation = self.next_generation;
        self.next_generation += 1;
        let address = match (&reader.redirect, &reader.address, reader.lookup) {
            (Some(redirect), _, _) => Some(redirect.clone()),
            (None, Some(address), false) => Some(address.clone()),
            _ => None,
        };
        self.effects.push(Effect::Subscribe(Subscribe {
            segment: id,
            generation: reader.generation,
            topic: reader.topic.clone(),
            from: reader.from,
            address,
            fresh: reader.fresh,
            number: self.rng.next(),
        }));
    }

    fn say_closed(&mut self) {
        if self.ending != Ending::Closed {
            self.ending = Ending::Closed;
            self.effects.push(Effect::Closed);
        }
    }
}

impl Reader {
    /// The attachment is over. What is in the receive queue stays there: the next reader goes on behind it.
    fn lost(&mut self, until: Millis) {
        self.link = Link::Waiting(until);
        self.at = None;
        self.granted = false;
        self.asking = Asking::No;
    }
}
