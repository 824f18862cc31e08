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

mod broker;
#[cfg(test)]
mod model;
mod segment;
#[cfg(test)]
mod tests;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use stc_proto::pulsar::{CompressionType, ProducerAccessMode};

pub(crate) use segment::Attached;
use segment::{Common, Flight, SegmentProducer};

use super::{
    Link, Millis, Now,
    backoff::{Backoff, BackoffLimits, Rng, SEGMENT_GONE_ATTEMPTS, segment_gone_delay},
    deviant::{Deviance, Deviant},
    encryption::{policy::ProducerEncryption, seal::Sealer},
    error::{Category, Error},
    layout::{Layout, Segment},
    memory::Memory,
    message_id::{MessageId, Position},
    outgoing::{BatchLimits, Outgoing},
    place::Place,
    routing::Router,
    tracker::View,
    transaction::TxnId,
};

/// What an application can set on a producer, as far as the state machine needs it.
#[derive(Debug, Clone)]
pub(crate) struct ProducerConfig {
    pub(crate) name: Option<String>,
    pub(crate) access: ProducerAccessMode,
    pub(crate) limits: BatchLimits,
    pub(crate) compression: CompressionType,
    pub(crate) encryption: Option<ProducerEncryption>,
    /// The largest payload of a chunk, in bytes, 0 for what the broker takes; `None` when large messages are refused.
    pub(crate) chunk_size: Option<usize>,
    /// `None` waits without an end.
    pub(crate) send_timeout: Option<Millis>,
    pub(crate) initial_sequence_id: Option<u64>,
    pub(crate) backoff: BackoffLimits,
    pub(crate) limits_of_queue: QueueLimits,
    pub(crate) deviance: Deviance,
}

/// What a producer holds at most.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueLimits {
    /// How many sends without a result; `None` for as many as the memory takes.
    pub(crate) max_pending: Option<usize>,
    /// Fails a send above the limit; otherwise it waits.
    pub(crate) fails: bool,
    /// The client's; `None` without a limit.
    pub(crate) memory: Option<Arc<Memory>>,
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
        txn: Option<TxnId>,
        /// Whether it is one of several entries of a message.
        chunk: bool,
        bytes: Bytes,
    },
    /// Tells a transaction's coordinator that the segment is written to; the answer goes to
    /// [`ProducerCore::enlisted`].
    Enlist {
        segment: u64,
        topic: String,
        txn: TxnId,
    },
    /// Sends CLOSE_PRODUCER; its answer goes to [`ProducerCore::detached`].
    Detach {
        segment: u64,
    },
    /// Looks the topic up anew, and takes the layout that it has, whatever its epoch.
    Doubt,
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
    /// Present when payloads are encrypted.
    sealer: Option<Sealer>,
    segments: BTreeMap<u64, SegmentProducer>,
    /// Messages whose hash no active segment covers, and when their next attempt is due.
    unrouted: Vec<Outgoing>,
    unrouted_until: Millis,
    /// All sends without a result, by their place in the order.
    pending: BTreeSet<u64>,
    /// Sends above the limits of the queue, which wait for room.
    line: VecDeque<Outgoing>,
    deadlines: BTreeSet<(Millis, u64)>,
    next_order: u64,
    next_sequence_id: u64,
    last_published: Option<u64>,
    /// Whether the layout watch is up: after a lost connection the layout comes first (wire-protocol §4).
    synced: bool,
    /// The current layout was doubted already.
    doubted: bool,
    buckets_observed: bool,
    /// Messages before this place were flushed: they wait for no company.
    flushed: u64,
    opening: bool,
    closing: bool,
    closed: bool,
    failed_once: bool,
    /// When the last send was taken, if nothing was done for it yet but to let it in.
    sent: Option<Now>,
    effects: Vec<Effect>,
}

impl ProducerCore {
    /// A producer on a topic that is resolved. Under an exclusive access mode it attaches to every active segment and
    /// then says [`Effect::Opened`].
    pub(crate) fn new(config: ProducerConfig, view: View, rng: Rng, now: Now) -> Self {
        let mut core = ProducerCore {
            router: Router::new(config.deviance),
            rng,
            sealer: config.encryption.clone().map(Sealer::new),
            segments: BTreeMap::new(),
            unrouted: Vec::new(),
            unrouted_until: 0,
            pending: BTreeSet::new(),
            line: VecDeque::new(),
            deadlines: BTreeSet::new(),
            next_order: 0,
            next_sequence_id: config.initial_sequence_id.map_or(0, |id| id.saturating_add(1)),
            last_published: None,
            synced: true,
            doubted: false,
            buckets_observed: false,
            flushed: 0,
            opening: config.access != ProducerAccessMode::Shared,
            closing: false,
            closed: false,
            failed_once: false,
            sent: None,
            effects: Vec::new(),
            view: view.clone(),
            config,
        };
        core.apply_layout(view, now);
        core
    }

    /// Makes the data key that payloads are encrypted with, where they are.
    ///
    /// # Errors
    /// `Crypto` when a key cannot be had and the policy says to fail.
    pub(crate) fn prepare(&mut self, now: Now) -> Result<(), Error> {
        self.sealer.as_mut().map_or(Ok(()), |sealer| sealer.prepare(now.mono))
    }

    /// Takes what the shell has to do, in order. Sends are gone about here, so that what many of them need in common, such
    /// as a look at what waits, is done once.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        if let Some(now) = self.sent {
            self.advance(now);
        }
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

    /// Whether sends wait for memory that others have: the shell ticks when some was given back.
    pub(crate) fn waits_for_memory(&self) -> bool {
        self.config.limits_of_queue.memory.is_some() && !self.line.is_empty()
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
        let changed = self.deviance().is(Deviant::LayoutChangeShows) && std::mem::take(&mut self.failed_once);
        if changed || (order == 0 && self.deviance().is(Deviant::CreateNotReady)) {
            self.settle(&message, Err(Error::new(Category::Unknown, "the producer is not ready")));
            return order;
        }
        let broken = self.failed_once && self.deviance().is(Deviant::BrokenAfterError);
        if self.closing || broken {
            self.settle(&message, Err(Error::closed("producer")));
            return order;
        }
        if let Some(timeout) = self.config.send_timeout
            && !self.deviance().is(Deviant::IgnoreSendTimeout)
        {
            message.deadline = Some(now.mono + timeout);
            self.deadlines.insert((now.mono + timeout, order));
        }
        self.line.push_back(message);
        self.admit(now);
        self.sent = Some(now);
        if self.config.limits_of_queue.fails
            && let Some(message) = self.line.pop_back()
        {
            let full = Error::new(Category::ProducerQueueFull, "the queue of pending sends is full");
            self.settle(&message, Err(full));
        }
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
        if self.deviance().is(Deviant::LayoutChangeShows) {
            self.failed_once |= view.layout.epoch != self.view.layout.epoch;
        }
        self.doubted = false;
        self.view = view;
        self.buckets_observed |= self.view.layout.has_buckets();
        let exclusive = self.config.access != ProducerAccessMode::Shared;
        let eager = exclusive || self.deviance().is(Deviant::EagerProducers);
        let layout = self.view.layout.clone();
        let one_only = self.deviance().is(Deviant::ExclusiveFirstSegmentOnly);
        for segment in layout.segments() {
            let eager = eager && !(one_only && layout.active().any(|other| other.id < segment.id));
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
                    producer.segment = as_known(&layout, segment, self.config.deviance);
                    producer.topic = topic_of(segment, &self.view, self.config.deviance);
                    if producer.place.locate(self.view.brokers.get(id), self.config.deviance) {
                        self.effects.push(Effect::Detach { segment: *id });
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

    // ---- time ----

    /// The time has come that [`ProducerCore::next_deadline`] gave.
    pub(crate) fn tick(&mut self, now: Now) {
        self.expire(now);
        self.advance(now);
    }

    /// When something is due next, on the clock that never jumps.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let timeouts = self.deadlines.first().map(|(at, _)| *at);
        let unrouted = (!self.unrouted.is_empty()).then_some(self.unrouted_until);
        let segments = self.segments.iter().filter_map(|(id, producer)| match producer.place.link {
            Link::Waiting(until) if self.synced && producer.wanted() => Some(until),
            Link::Attached if producer.has_ready() && !self.blocked(*id) => producer.due,
            _ => None,
        });
        segments.chain(timeouts).chain(unrouted).min()
    }

    // ---- what all parts need ----

    fn deviance(&self) -> Deviance {
        self.config.deviance
    }

    fn common(&self) -> Common {
        Common {
            limits: self.config.limits,
            compression: self.config.compression,
            chunk_size: self.config.chunk_size,
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
            let topic = topic_of(segment, view, config.deviance);
            let mut place = Place::new(Backoff::new(config.backoff, backoff.fork()));
            place.locate(view.brokers.get(&id), config.deviance);
            SegmentProducer::new(as_known(&view.layout, segment, config.deviance), topic, place)
        }))
    }
}

/// The topic that a producer of a segment attaches to.
fn topic_of(segment: &Segment, view: &View, deviance: Deviance) -> String {
    let topic = segment.topic(&view.topic, deviance);
    match topic.rsplit_once("-partition-") {
        Some((parent, _)) if segment.legacy.is_some() && deviance.is(Deviant::ProducesToParent) => {
            parent.to_owned()
        }
        _ => topic,
    }
}

/// A segment of a layout; what a deviant takes it for: with the buckets of the oldest segment of its range.
fn as_known(layout: &Layout, segment: &Segment, deviance: Deviance) -> Segment {
    let mut known = segment.clone();
    let older = |other: &&Segment| other.id < segment.id && other.range == segment.range;
    if deviance.is(Deviant::StaleBuckets)
        && let Some(older) = layout.segments().find(older)
    {
        known.buckets = older.buckets.clone();
    }
    known
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
        txn: flight.txn,
        chunk: flight.chunk.is_some(),
        bytes: flight.bytes.clone(),
    }
}
