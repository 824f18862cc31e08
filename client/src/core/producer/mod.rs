//! The producer as a state machine: routing, one per-segment producer for each active segment, the order of each key
//! across splits and merges, and the retry when a segment is gone (client-behavior §2 to §4).
//!
//! Every message has its place in the order of the send calls. A segment's queue is kept in that order, so messages
//! that come over from a sealed segment stand before those that were routed to the successor directly. A successor
//! sends nothing while a sealed segment that can hold messages of its keys still has some: those may be stored already,
//! which only their receipts or the end of the old segment producer tell.
//!
//! Sequence ids count up through the whole producer and are given out when an entry is made. Ids of one segment are in
//! the order of its entries then, whatever moved, and batches by bucket do not interleave.

mod segment;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use stc_proto::pulsar::{CompressionType, ProducerAccessMode};

pub(crate) use segment::Attached;
use segment::{Common, Flight, SegmentProducer};

use super::{
    Link, Millis, Now,
    backoff::{Backoff, BackoffLimits, Rng, SEGMENT_GONE_ATTEMPTS, segment_gone_delay},
    deviant::{Deviance, Deviant},
    error::{Category, Error},
    message_id::{MessageId, Position},
    outgoing::{BatchLimits, Outgoing},
    routing::Router,
    tracker::View,
};

/// What an application can set on a producer, as far as the state machine needs it.
#[derive(Debug, Clone)]
pub(crate) struct ProducerConfig {
    pub(crate) name: Option<String>,
    pub(crate) access: ProducerAccessMode,
    pub(crate) limits: BatchLimits,
    pub(crate) compression: CompressionType,
    /// `None` waits without an end.
    pub(crate) send_timeout: Option<Millis>,
    pub(crate) initial_sequence_id: Option<u64>,
    pub(crate) backoff: BackoffLimits,
    pub(crate) deviance: Deviance,
}

/// Sends PRODUCER for a segment. The answer goes to [`ProducerCore::attached`] or [`ProducerCore::attach_failed`]
/// with the same generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attach {
    pub(crate) segment: u64,
    pub(crate) generation: u64,
    pub(crate) topic: String,
    /// Whether the topic is a wrapped classic one.
    pub(crate) legacy: bool,
    /// The broker to try; `None` asks for the owner.
    pub(crate) address: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) named_by_application: bool,
    pub(crate) epoch: u64,
    pub(crate) topic_epoch: Option<u64>,
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Attach(Attach),
    /// Sends one entry on the segment's attachment.
    Transmit {
        segment: u64,
        sequence_id: u64,
        highest: u64,
        messages: i32,
        bytes: Bytes,
    },
    /// Sends CLOSE_PRODUCER; its answer goes to [`ProducerCore::detached`].
    Detach {
        segment: u64,
    },
    /// Lets go of the segment's attachment without waiting for anything.
    Forget {
        segment: u64,
    },
    /// A send has its result.
    Settle {
        order: u64,
        result: Result<MessageId, Error>,
    },
    /// Every active segment is attached under exclusive access, or cannot be.
    Opened(Result<(), Error>),
    /// The producer is closed: nothing pending, nothing attached.
    Closed,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ProducerCore {
    config: ProducerConfig,
    view: View,
    router: Router,
    rng: Rng,
    segments: BTreeMap<u64, SegmentProducer>,
    /// Messages whose hash no active segment covers, and when their next attempt is due.
    unrouted: Vec<Outgoing>,
    unrouted_until: Millis,
    /// All sends without a result, by their place in the order.
    pending: BTreeSet<u64>,
    deadlines: BTreeSet<(Millis, u64)>,
    next_order: u64,
    next_sequence_id: u64,
    last_published: Option<u64>,
    /// Whether the layout watch is up: after a lost connection the layout comes first (wire-protocol §4).
    synced: bool,
    buckets_observed: bool,
    /// Messages before this place were flushed: they wait for no company.
    flushed: u64,
    opening: bool,
    closing: bool,
    closed: bool,
    failed_once: bool,
    effects: Vec<Effect>,
}

impl ProducerCore {
    /// A producer on a topic that is resolved. Under an exclusive access mode it attaches to every active segment and
    /// then says [`Effect::Opened`].
    pub(crate) fn new(config: ProducerConfig, view: View, rng: Rng, now: Now) -> Self {
        let mut core = ProducerCore {
            router: Router::new(config.deviance),
            rng,
            segments: BTreeMap::new(),
            unrouted: Vec::new(),
            unrouted_until: 0,
            pending: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            next_order: 0,
            next_sequence_id: config.initial_sequence_id.map_or(0, |id| id.saturating_add(1)),
            last_published: None,
            synced: true,
            buckets_observed: false,
            flushed: 0,
            opening: config.access != ProducerAccessMode::Shared,
            closing: false,
            closed: false,
            failed_once: false,
            effects: Vec::new(),
            view: view.clone(),
            config,
        };
        core.apply_layout(view, now);
        core
    }

    /// Takes what the shell has to do, in order.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The highest sequence id that was published.
    pub(crate) fn last_published(&self) -> Option<u64> {
        if self.deviance().is(Deviant::WrongLastSequenceId) {
            return self.next_sequence_id.checked_sub(1);
        }
        self.last_published
    }

    /// The canonical name of the topic.
    pub(crate) fn topic(&self) -> &str {
        self.view.topic.as_str()
    }

    /// Some layout or assignment showed that the broker knows entry buckets.
    pub(crate) fn observe_buckets(&mut self) {
        self.buckets_observed = true;
    }

    /// Whether every send before this place has its result.
    pub(crate) fn settled_before(&self, order: u64) -> bool {
        self.pending.first().is_none_or(|first| *first >= order)
    }

    // ---- events from the application ----

    /// Takes a message; the caller has left `order` and `deadline` open. Gives its place in the order of sends.
    pub(crate) fn send(&mut self, mut message: Outgoing, now: Now) -> u64 {
        message.order = self.next_order;
        self.next_order += 1;
        let order = message.order;
        self.pending.insert(order);
        let broken = self.failed_once && self.deviance().is(Deviant::BrokenAfterError);
        if (self.closing && !self.deviance().is(Deviant::SendAfterClose)) || broken {
            self.settle(&message, Err(Error::closed("producer")));
            return order;
        }
        if let Some(timeout) = self.config.send_timeout
            && !self.deviance().is(Deviant::IgnoreSendTimeout)
        {
            message.deadline = Some(now.mono + timeout);
            self.deadlines.insert((now.mono + timeout, order));
        }
        self.place(message, now, now.mono + self.config.limits.max_delay);
        self.advance(now);
        order
    }

    /// Sends what waits for company. Gives the place before which a flush has to wait.
    pub(crate) fn flush(&mut self, now: Now) -> u64 {
        self.flushed = self.next_order;
        for producer in self.segments.values_mut().filter(|p| !p.queue.is_empty()) {
            producer.due = Some(now.mono);
        }
        self.advance(now);
        self.flushed
    }

    /// Completes what is pending, then detaches everything and says [`Effect::Closed`].
    pub(crate) fn close(&mut self, now: Now) {
        self.closing = true;
        self.opening = false;
        if self.deviance().is(Deviant::CloseDropsPending) {
            self.fail_all(&Error::closed("producer"));
        }
        self.flush(now);
    }

    /// Gives up what is pending and lets go of everything.
    pub(crate) fn abort(&mut self, error: &Error) {
        self.closing = true;
        self.fail_all(error);
        for segment in std::mem::take(&mut self.segments).into_keys() {
            self.effects.push(Effect::Forget { segment });
        }
        self.say_closed();
    }

    // ---- events from the layout watch ----

    /// Works by this layout from now on.
    pub(crate) fn apply_layout(&mut self, view: View, now: Now) {
        let moved: BTreeMap<u64, String> = view
            .brokers
            .iter()
            .filter(|(id, url)| self.view.brokers.get(id).is_some_and(|old| old != *url))
            .map(|(id, url)| (*id, url.clone()))
            .collect();
        self.view = view;
        self.buckets_observed |= self.view.layout.has_buckets();
        let exclusive = self.config.access != ProducerAccessMode::Shared;
        let eager = exclusive || self.deviance().is(Deviant::EagerProducers);
        let layout = self.view.layout.clone();
        for segment in layout.segments() {
            let sealed_too = self.deviance().is(Deviant::SealedProducer);
            if (eager && segment.active) || (sealed_too && !self.segments.contains_key(&segment.id)) {
                let id = segment.id;
                self.producer(id);
                if let Some(producer) = self.segments.get_mut(&id) {
                    producer.keep = true;
                }
            }
        }
        for (id, producer) in &mut self.segments {
            producer.gone = 0;
            match layout.segment(*id) {
                Some(segment) if segment.active || sealed_on_purpose(&self.config, producer) => {
                    producer.segment = segment.clone();
                    producer.topic = segment.topic(&self.view.topic, self.config.deviance);
                    producer.address = self.view.brokers.get(id).cloned();
                    if moved.contains_key(id) && !self.config.deviance.is(Deviant::IgnoreMovedSegment) {
                        producer.lookup = false;
                        let at = producer.attached.as_ref().map(|attached| &attached.at);
                        if producer.link == Link::Attached && at != moved.get(id) {
                            producer.link = Link::Detaching;
                            self.effects.push(Effect::Detach { segment: *id });
                        }
                    }
                }
                _ => producer.retired = true,
            }
        }
        self.unrouted_until = 0;
        self.advance(now);
    }

    /// Whether the layout watch is up. While it is not, nothing is attached anew.
    pub(crate) fn set_synced(&mut self, synced: bool, now: Now) {
        self.synced = synced || self.deviance().is(Deviant::ResumeBeforeLayout);
        self.advance(now);
    }

    // ---- events from brokers ----

    /// PRODUCER succeeded. False when nobody waits for it any more: the shell has to close it.
    pub(crate) fn attached(&mut self, segment: u64, generation: u64, attached: Attached, now: Now) -> bool {
        let Some(producer) = self.segments.get_mut(&segment) else { return false };
        if producer.generation != generation || producer.link != Link::Attaching {
            return false;
        }
        producer.link = Link::Attached;
        producer.keep = true;
        producer.was_attached = true;
        producer.redirect = None;
        producer.lookup = false;
        producer.epoch += 1;
        producer.backoff.reset();
        if let Ok(last) = u64::try_from(attached.last_sequence_id) {
            if self.config.initial_sequence_id.is_none() {
                self.next_sequence_id = self.next_sequence_id.max(last.saturating_add(1));
            }
            self.last_published = self.last_published.max(Some(last));
        }
        producer.attached = Some(attached);
        if !producer.retired {
            for flight in &producer.in_flight {
                self.effects.push(transmit(segment, flight));
            }
        }
        self.advance(now);
        true
    }

    /// PRODUCER failed, or no connection could be made for it.
    pub(crate) fn attach_failed(&mut self, segment: u64, generation: u64, error: Error, now: Now) {
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        if producer.generation != generation || producer.link != Link::Attaching {
            return;
        }
        // A broker that has not noticed the loss of a connection yet still has this producer on it.
        let own_shadow =
            error.category() == Category::ProducerBusy && !error.is_fenced() && producer.was_attached;
        if error.is_segment_gone() {
            self.gone(segment, error, now);
        } else if error.is_transient() || own_shadow {
            producer.lookup = !producer.lookup;
            producer.redirect = None;
            producer.link = Link::Waiting(now.mono + producer.backoff.delay());
        } else {
            producer.link = Link::Idle;
            producer.keep = false;
            let failed = producer.take_pending();
            self.settle_all(&failed, &error);
            self.open_failed(error);
        }
        self.advance(now);
    }

    /// SEND_RECEIPT.
    pub(crate) fn receipt(&mut self, segment: u64, sequence_id: u64, ledger: u64, entry: u64, now: Now) {
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        let Some(at) = producer.in_flight.iter().position(|f| f.sequence_id == sequence_id) else { return };
        let Some(flight) = producer.in_flight.remove(at) else { return };
        producer.gone = 0;
        self.last_published = self.last_published.max(Some(flight.highest));
        let entry = if self.deviance().is(Deviant::WrongMessageId) { entry + 1 } else { entry };
        let batch = flight.size > 1;
        for (message, index) in flight.messages.iter().zip(0..) {
            let (batch_index, batch_size) = if batch { (index, flight.size) } else { (-1, 0) };
            let id = Position { segment, ledger, entry, batch_index, batch_size };
            self.settle(message, Ok(id.into()));
        }
        self.once_per_send(segment);
        self.advance(now);
    }

    /// SEND_ERROR.
    pub(crate) fn send_failed(&mut self, segment: u64, sequence_id: u64, error: Error, now: Now) {
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        if error.is_segment_gone() && !self.config.deviance.is(Deviant::SurfaceTerminated) {
            self.gone(segment, error, now);
        } else if error.is_transient() {
            if producer.link != Link::Attached {
                return;
            }
            producer.gone += 1;
            // The order of what follows in the pipeline is only kept if all of it is sent again behind this.
            let failed: Vec<Outgoing> = self.count_attempt(segment);
            self.settle_all(&failed, &error);
            self.detach(segment);
        } else if let Some(at) = producer.in_flight.iter().position(|f| f.sequence_id == sequence_id)
            && let Some(flight) = producer.in_flight.remove(at)
        {
            self.settle_all(&flight.messages, &error);
        }
        self.advance(now);
    }

    /// CLOSE_PRODUCER from the broker: with an address the segment has moved there, without one it may be gone.
    pub(crate) fn closed_by_broker(&mut self, segment: u64, assigned: Option<String>, now: Now) {
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        if producer.link == Link::Detaching {
            // Our own close is answered behind the last receipts; that is what counts.
            return;
        }
        match assigned {
            Some(address) => {
                producer.redirect = Some(address);
                producer.link = Link::Waiting(now.mono);
            }
            None if producer.retired => producer.link = Link::Idle,
            None => {
                let why = "the broker closed the segment's producer";
                self.gone(segment, Error::new(Category::TopicTerminated, why), now);
            }
        }
        self.advance(now);
    }

    /// The broker answered our CLOSE_PRODUCER, or the wait for the answer is over.
    pub(crate) fn detached(&mut self, segment: u64, now: Now) {
        if let Some(producer) = self.segments.get_mut(&segment)
            && producer.link == Link::Detaching
        {
            // After a failed send the broker gets time to recover.
            producer.link = match producer.gone {
                0 => Link::Idle,
                times => Link::Waiting(now.mono + segment_gone_delay(times)),
            };
        }
        self.advance(now);
    }

    /// The connection that the segment was attached on is lost.
    pub(crate) fn disconnected(&mut self, segment: u64, now: Now) {
        if let Some(producer) = self.segments.get_mut(&segment)
            && matches!(producer.link, Link::Attached | Link::Detaching)
        {
            producer.link = Link::Waiting(now.mono + producer.backoff.delay());
            if self.config.deviance.is(Deviant::SurfaceReconnect) {
                let failed = producer.take_pending();
                self.settle_all(&failed, &Error::not_connected("the connection was lost"));
            }
        }
        self.advance(now);
    }

    /// The time has come that [`ProducerCore::next_deadline`] gave.
    pub(crate) fn tick(&mut self, now: Now) {
        self.expire(now);
        self.advance(now);
    }

    /// When something is due next, on the clock that never jumps.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let timeouts = self.deadlines.first().map(|(at, _)| *at);
        let unrouted = (!self.unrouted.is_empty()).then_some(self.unrouted_until);
        let segments = self.segments.iter().filter_map(|(id, producer)| match producer.link {
            Link::Waiting(until) if self.synced && producer.wanted() => Some(until),
            Link::Attached if !producer.queue.is_empty() && !self.blocked(*id) => producer.due,
            _ => None,
        });
        segments.chain(timeouts).chain(unrouted).min()
    }

    // ---- inside ----

    fn deviance(&self) -> Deviance {
        self.config.deviance
    }

    fn common(&self) -> Common {
        Common {
            limits: self.config.limits,
            compression: self.config.compression,
            buckets_observed: self.buckets_observed,
            deviance: self.config.deviance,
        }
    }

    /// The per-segment producer of a segment of the current layout; made when there is none.
    fn producer(&mut self, id: u64) -> Option<&mut SegmentProducer> {
        let segment = self.view.layout.segment(id)?;
        let backoff = &mut self.rng;
        let (view, config) = (&self.view, &self.config);
        Some(self.segments.entry(id).or_insert_with(|| {
            let topic = segment.topic(&view.topic, config.deviance);
            let mut producer =
                SegmentProducer::new(segment.clone(), topic, Backoff::new(config.backoff, backoff.fork()));
            producer.address = view.brokers.get(&id).cloned();
            producer
        }))
    }

    /// Routes a message by the current layout and puts it into the segment's queue.
    fn place(&mut self, message: Outgoing, now: Now, due: Millis) {
        let Some(id) = self.router.route(&self.view.layout, message.hash) else {
            if self.unrouted.is_empty() {
                self.unrouted_until = now.mono + segment_gone_delay(message.attempts + 1);
            }
            self.unrouted.push(message);
            return;
        };
        let overtake = self.deviance().is(Deviant::AsyncSendsOvertake);
        let swap = self.deviance().is(Deviant::SwapPairs);
        let reverse = self.deviance().is(Deviant::ReorderOnSplit) && message.attempts > 0;
        let Some(producer) = self.producer(id) else { return };
        let waiting = producer.link != Link::Attached;
        producer.insert(message, due);
        if (overtake && waiting) || reverse {
            // The newest first, among those that wait.
            producer.queue.rotate_right(1);
        } else if swap && producer.queue.len() % 2 == 0 {
            let last = producer.queue.len() - 1;
            producer.queue.swap(last - 1, last);
        }
    }

    /// Whether a sealed segment still has messages that belong before those of this one.
    fn blocked(&self, id: u64) -> bool {
        let Some(this) = self.segments.get(&id) else { return false };
        self.segments
            .values()
            .any(|other| other.retired && other.has_pending() && other.segment.shares_keys(&this.segment))
    }

    /// Does everything that can be done now.
    fn advance(&mut self, now: Now) {
        self.move_messages(now);
        self.retry_unrouted(now);
        let ids: Vec<u64> = self.segments.keys().copied().collect();
        for id in ids {
            self.step(id, now);
        }
        if self.opening && self.segments.values().all(|p| !p.wanted() || p.link == Link::Attached) {
            self.opening = false;
            self.effects.push(Effect::Opened(Ok(())));
        }
        if self.closing && self.pending.is_empty() {
            self.close_segments();
        }
    }

    /// Moves the messages of retired segment producers to the successors once it is known what was stored.
    fn move_messages(&mut self, now: Now) {
        let retired: Vec<u64> = self.segments.iter().filter(|(_, p)| p.retired).map(|(id, _)| *id).collect();
        let mut moved: Vec<Outgoing> = Vec::new();
        for id in retired {
            let Some(producer) = self.segments.get_mut(&id) else { continue };
            match producer.link {
                Link::Attached => {
                    if producer.has_pending() || !self.config.deviance.is(Deviant::KeepStaleProducer) {
                        self.detach(id);
                    }
                }
                Link::Detaching => {}
                // An attachment under way is abandoned: nothing was sent on it.
                Link::Idle | Link::Attaching | Link::Waiting(_) => {
                    moved.extend(producer.take_pending());
                    self.segments.remove(&id);
                    self.effects.push(Effect::Forget { segment: id });
                }
            }
        }
        if self.deviance().is(Deviant::DropOnSplit) {
            let id = |order| Position { segment: 0, ledger: 0, entry: order, batch_index: -1, batch_size: 0 };
            for message in std::mem::take(&mut moved) {
                self.settle(&message, Ok(id(message.order).into()));
            }
        }
        if self.deviance().is(Deviant::ReorderOnSplit) {
            moved.iter_mut().for_each(|message| message.attempts += 1);
        }
        moved.sort_by_key(|message| message.order);
        for message in moved {
            self.place(message, now, now.mono);
        }
    }

    fn retry_unrouted(&mut self, now: Now) {
        if self.unrouted.is_empty() || self.unrouted_until > now.mono {
            return;
        }
        let attempt = self.unrouted.iter().map(|message| message.attempts).max().unwrap_or(0) + 1;
        for mut message in std::mem::take(&mut self.unrouted) {
            message.attempts += 1;
            if message.attempts > SEGMENT_GONE_ATTEMPTS {
                let why = "no active segment covers the hash of the message's key";
                self.settle(&message, Err(Error::new(Category::Unknown, why)));
            } else {
                self.place(message, now, now.mono);
            }
        }
        self.unrouted_until = now.mono + segment_gone_delay(attempt + 1);
    }

    /// Attaches or sends, as far as one segment is.
    fn step(&mut self, id: u64, now: Now) {
        let common = self.common();
        let blocked = self.blocked(id) && !self.deviance().is(Deviant::ReorderOnSplit);
        // One at a time and in one order: two producers that wait for exclusive access would otherwise hold half of
        // the segments each, for ever.
        let opening = self.opening && self.segments.values().any(|p| p.link == Link::Attaching);
        let Some(producer) = self.segments.get_mut(&id) else { return };
        if let Link::Waiting(until) = producer.link
            && until <= now.mono
        {
            producer.link = Link::Idle;
        }
        // While closing, only what has something to send is still worth attaching.
        let wanted = producer.wanted() && (!self.closing || producer.has_pending());
        match producer.link {
            Link::Idle if wanted && self.synced && !opening => self.attach(id),
            Link::Attached if !producer.retired && !blocked && producer.is_due(now.mono, common) => {
                let (flights, failed) = producer.pack(common, &mut self.next_sequence_id, now.wall);
                for flight in flights {
                    self.effects.push(transmit(id, &flight));
                    producer.in_flight.push_back(flight);
                }
                for (message, error) in failed {
                    self.settle(&message, Err(error));
                }
            }
            _ => {}
        }
    }

    fn attach(&mut self, id: u64) {
        let (config, many) = (&self.config, self.config.deviance.is(Deviant::ProducerPerSend));
        let Some(producer) = self.segments.get_mut(&id) else { return };
        producer.link = Link::Attaching;
        producer.generation += 1;
        let address = match (&producer.redirect, &producer.address, producer.lookup) {
            (Some(redirect), _, _) => Some(redirect.clone()),
            (None, Some(address), false) => Some(address.clone()),
            _ => None,
        };
        let own_name = config.name.as_ref().filter(|_| !many).map(|name| {
            if config.deviance.is(Deviant::PlainProducerName) {
                name.clone()
            } else {
                format!("{name}-seg-{id}")
            }
        });
        let given_name = producer.attached.as_ref().filter(|_| !many).map(|attached| attached.name.clone());
        self.effects.push(Effect::Attach(Attach {
            segment: id,
            generation: producer.generation,
            topic: producer.topic.clone(),
            legacy: producer.segment.legacy.is_some(),
            address,
            named_by_application: own_name.is_some(),
            name: own_name.or(given_name),
            epoch: producer.epoch,
            topic_epoch: producer.attached.as_ref().and_then(|attached| attached.topic_epoch),
        }));
    }

    fn detach(&mut self, segment: u64) {
        if let Some(producer) = self.segments.get_mut(&segment)
            && producer.link == Link::Attached
        {
            producer.link = Link::Detaching;
            self.effects.push(Effect::Detach { segment });
        }
    }

    /// The segment is gone: its messages wait for the layout that says where to (client-behavior §4).
    fn gone(&mut self, segment: u64, error: Error, now: Now) {
        let deviance = self.deviance();
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        if producer.retired || matches!(producer.link, Link::Waiting(_) | Link::Detaching) {
            // Known already, or our own close is about to tell what was stored.
            if producer.retired && producer.link == Link::Attaching {
                producer.link = Link::Idle;
            }
            return;
        }
        producer.keep = self.config.access != ProducerAccessMode::Shared;
        producer.gone += 1;
        producer.lookup = true;
        let delay =
            if deviance.is(Deviant::RetryWithoutWaiting) { 0 } else { segment_gone_delay(producer.gone) };
        producer.link = Link::Waiting(now.mono + delay);
        let exhausted = producer.gone > SEGMENT_GONE_ATTEMPTS;
        let failed = if deviance.is(Deviant::NoSegmentGoneRetry) {
            producer.take_pending()
        } else {
            self.count_attempt(segment)
        };
        self.settle_all(&failed, &error);
        if exhausted {
            self.open_failed(error);
        }
    }

    /// Counts an attempt for every message of a segment. Gives those that have used up theirs.
    fn count_attempt(&mut self, segment: u64) -> Vec<Outgoing> {
        let for_ever = self.deviance().is(Deviant::RetryForEver);
        let Some(producer) = self.segments.get_mut(&segment) else { return Vec::new() };
        producer.pending_mut().for_each(|message| message.attempts += 1);
        if for_ever {
            return Vec::new();
        }
        producer.remove(|message| message.attempts > SEGMENT_GONE_ATTEMPTS)
    }

    fn open_failed(&mut self, error: Error) {
        if self.opening {
            self.opening = false;
            self.effects.push(Effect::Opened(Err(error)));
        }
    }

    fn once_per_send(&mut self, segment: u64) {
        if self.deviance().is(Deviant::ProducerPerSend)
            && let Some(producer) = self.segments.get_mut(&segment)
            && producer.in_flight.is_empty()
        {
            producer.link = Link::Idle;
            producer.keep = false;
        }
    }

    fn expire(&mut self, now: Now) {
        let mut expired = BTreeSet::new();
        while let Some((at, order)) = self.deadlines.first().copied()
            && at <= now.mono
        {
            self.deadlines.remove(&(at, order));
            expired.insert(order);
        }
        if expired.is_empty() {
            return;
        }
        let due = |message: &Outgoing| expired.contains(&message.order);
        let mut failed: Vec<Outgoing> = Vec::new();
        for (segment, producer) in &mut self.segments {
            if self.config.deviance.is(Deviant::ResendAfterTimeout) && producer.link == Link::Attached {
                let again = producer.in_flight.iter().filter(|f| f.messages.iter().any(due));
                self.effects.extend(again.map(|flight| transmit(*segment, flight)));
            }
            failed.extend(producer.remove(due));
        }
        let (late, still) = std::mem::take(&mut self.unrouted).into_iter().partition(due);
        self.unrouted = still;
        failed.extend::<Vec<Outgoing>>(late);
        self.settle_all(&failed, &Error::timeout("no receipt within the send timeout"));
    }

    fn close_segments(&mut self) {
        let ids: Vec<u64> = self.segments.keys().copied().collect();
        for id in ids {
            let Some(producer) = self.segments.get(&id) else { continue };
            match producer.link {
                Link::Attached if !self.deviance().is(Deviant::CloseLeavesProducers) => self.detach(id),
                Link::Detaching => {}
                _ => {
                    self.segments.remove(&id);
                    if !self.deviance().is(Deviant::CloseLeavesProducers) {
                        self.effects.push(Effect::Forget { segment: id });
                    }
                }
            }
        }
        if self.segments.is_empty() {
            self.say_closed();
        }
    }

    fn say_closed(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.effects.push(Effect::Closed);
        }
    }

    fn fail_all(&mut self, error: &Error) {
        let mut failed = std::mem::take(&mut self.unrouted);
        failed.extend(self.segments.values_mut().flat_map(SegmentProducer::take_pending));
        self.settle_all(&failed, error);
    }

    fn settle_all(&mut self, messages: &[Outgoing], error: &Error) {
        for message in messages {
            self.settle(message, Err(error.clone()));
        }
    }

    fn settle(&mut self, message: &Outgoing, result: Result<MessageId, Error>) {
        self.failed_once |= result.is_err();
        if let Some(deadline) = message.deadline {
            self.deadlines.remove(&(deadline, message.order));
        }
        if self.pending.remove(&message.order) {
            self.effects.push(Effect::Settle { order: message.order, result });
        }
    }
}

fn sealed_on_purpose(config: &ProducerConfig, producer: &SegmentProducer) -> bool {
    config.deviance.is(Deviant::SealedProducer) && !producer.was_attached
}

fn transmit(segment: u64, flight: &Flight) -> Effect {
    Effect::Transmit {
        segment,
        sequence_id: flight.sequence_id,
        highest: flight.highest,
        messages: flight.size,
        bytes: flight.bytes.clone(),
    }
}
