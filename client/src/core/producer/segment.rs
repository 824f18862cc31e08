//! One per-segment producer: its messages, and how far its attachment is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use stc_proto::pulsar::CompressionType;

use super::super::{
    Millis, Now,
    deviant::{Deviance, Deviant},
    encryption::seal::Sealer,
    error::Error,
    layout::Segment,
    outgoing::{BatchLimits, Grouping, Outgoing, Sender, encode},
    place::Place,
    transaction::TxnId,
};

/// An entry that was sent and has no receipt yet.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) sequence_id: u64,
    pub(crate) highest: u64,
    pub(crate) size: i32,
    pub(crate) txn: Option<TxnId>,
    /// What this is a part of, where it is.
    pub(crate) chunk: Option<Chunk>,
    /// The messages that are published with this one's receipt: none with that of a chunk before the last.
    pub(crate) messages: Vec<Outgoing>,
    pub(crate) bytes: Bytes,
}

/// A part of a large message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The place of the message in the order of sends.
    pub(crate) order: u64,
    pub(crate) last: bool,
}

/// What the broker said when the segment producer was attached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attached {
    pub(crate) name: String,
    /// The URL of the broker.
    pub(crate) at: String,
    /// -1 when nothing was deduplicated under this name before.
    pub(crate) last_sequence_id: i64,
    pub(crate) schema_version: Option<Bytes>,
    pub(crate) topic_epoch: Option<u64>,
    /// The largest entry the broker takes, in bytes.
    pub(crate) max_size: usize,
}

/// What all per-segment producers of a producer have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common {
    pub(crate) limits: BatchLimits,
    pub(crate) compression: CompressionType,
    /// The largest payload of a chunk, in bytes, 0 for what the broker takes; `None` when large messages are refused.
    pub(crate) chunk_size: Option<usize>,
    pub(crate) buckets_observed: bool,
    pub(crate) deviance: Deviance,
}

#[derive(Debug)]
pub(crate) struct SegmentProducer {
    pub(crate) segment: Segment,
    pub(crate) topic: String,
    pub(crate) place: Place,
    /// Sealed, or no longer in the layout: takes nothing new.
    pub(crate) retired: bool,
    /// Stays attached without messages: it was opened before, or the access mode is exclusive.
    pub(crate) keep: bool,
    pub(crate) was_attached: bool,
    /// How often PRODUCER was sent; goes along as its epoch, so that the broker tells a reconnect from a rival.
    pub(crate) epoch: u64,
    pub(crate) attached: Option<Attached>,
    pub(crate) queue: VecDeque<Outgoing>,
    pub(crate) in_flight: VecDeque<Flight>,
    /// When the messages in the queue have waited long enough for company.
    pub(crate) due: Option<Millis>,
    /// The transactions of waiting messages that the coordinator was told about, or is being (`false`).
    pub(crate) enlisted: BTreeMap<TxnId, bool>,
    /// How often in a row the segment was gone.
    pub(crate) gone: u32,
}

impl SegmentProducer {
    pub(crate) fn new(segment: Segment, topic: String, place: Place) -> Self {
        SegmentProducer {
            segment,
            topic,
            place,
            retired: false,
            keep: false,
            was_attached: false,
            epoch: 0,
            attached: None,
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            due: None,
            enlisted: BTreeMap::new(),
            gone: 0,
        }
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.queue.is_empty() || !self.in_flight.is_empty()
    }

    /// Whether it should be attached.
    pub(crate) fn wanted(&self) -> bool {
        !self.retired && (self.keep || self.has_pending())
    }

    /// Puts a message at its place in the order of the send calls. Moved messages are older than what waits here.
    pub(crate) fn insert(&mut self, message: Outgoing, due: Millis) {
        let at = self.queue.partition_point(|other| other.order < message.order);
        self.queue.insert(at, message);
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    /// All messages that are not published yet, those that were sent first.
    pub(crate) fn take_pending(&mut self) -> Vec<Outgoing> {
        let sent = std::mem::take(&mut self.in_flight).into_iter().flat_map(|flight| flight.messages);
        let mut all: Vec<Outgoing> = sent.collect();
        all.extend(std::mem::take(&mut self.queue));
        self.due = None;
        all
    }

    pub(crate) fn pending_mut(&mut self) -> impl Iterator<Item = &mut Outgoing> {
        self.in_flight.iter_mut().flat_map(|flight| flight.messages.iter_mut()).chain(self.queue.iter_mut())
    }

    /// Takes the messages out for which `condition` holds. A batch is one entry: its members leave together, and so do the
    /// chunks of a message.
    pub(crate) fn remove(&mut self, condition: impl Fn(&Outgoing) -> bool) -> Vec<Outgoing> {
        let mut removed = Vec::new();
        let of_message =
            |flight: &Flight| flight.messages.iter().any(&condition).then_some(flight.chunk).flatten();
        let chunked: BTreeSet<u64> =
            self.in_flight.iter().filter_map(of_message).map(|chunk| chunk.order).collect();
        for flight in std::mem::take(&mut self.in_flight) {
            let part = flight.chunk.is_some_and(|chunk| chunked.contains(&chunk.order));
            if part || flight.messages.iter().any(&condition) {
                removed.extend(flight.messages);
            } else {
                self.in_flight.push_back(flight);
            }
        }
        for message in std::mem::take(&mut self.queue) {
            if condition(&message) {
                removed.push(message);
            } else {
                self.queue.push_back(message);
            }
        }
        removed
    }

    /// How many of the waiting messages may go: those before the first one whose transaction does not know this segment
    /// yet.
    fn ready(&self) -> usize {
        self.queue.iter().position(|message| self.waits(message)).unwrap_or(self.queue.len())
    }

    /// Whether the segment's broker may not get the message yet.
    fn waits(&self, message: &Outgoing) -> bool {
        message.txn.is_some_and(|txn| self.enlisted.get(&txn).is_none_or(|enlisted| !enlisted))
    }

    /// The transactions that have to be told of this segment, and forgets those that have nothing here any more.
    pub(crate) fn enlist(&mut self) -> Vec<TxnId> {
        if self.enlisted.is_empty() && self.queue.iter().all(|message| message.txn.is_none()) {
            return Vec::new();
        }
        let pending: BTreeSet<TxnId> = self.pending_mut().filter_map(|message| message.txn).collect();
        self.enlisted.retain(|txn, _| pending.contains(txn));
        let waiting: BTreeSet<TxnId> = self.queue.iter().filter_map(|message| message.txn).collect();
        let new: Vec<TxnId> = waiting.into_iter().filter(|txn| !self.enlisted.contains_key(txn)).collect();
        self.enlisted.extend(new.iter().map(|txn| (*txn, false)));
        new
    }

    /// Whether the waiting messages should become entries now.
    pub(crate) fn is_due(&self, now: Millis, common: Common) -> bool {
        let waited = self.due.is_none_or(|due| due <= now);
        let ready = self.ready();
        ready > 0 && (waited || !self.grouping(common).may_wait(self.queue.iter().take(ready)))
    }

    /// Whether a message waits that may go.
    pub(crate) fn has_ready(&self) -> bool {
        self.queue.front().is_some_and(|message| !self.waits(message))
    }

    /// Turns the waiting messages into entries. `next` is the next sequence id of the producer. Gives the entries, and
    /// the messages that could not be encoded with the reason.
    pub(crate) fn pack(
        &mut self,
        common: Common,
        next: &mut u64,
        mut sealer: Option<&mut Sealer>,
        now: Now,
    ) -> (Vec<Flight>, Vec<(Outgoing, Error)>) {
        let waiting = self.queue.split_off(self.ready());
        let queue = std::mem::replace(&mut self.queue, waiting);
        if self.queue.is_empty() {
            self.due = None;
        }
        let grouping = self.grouping(common);
        let attached = self.attached.clone().unwrap_or_default();
        let (mut flights, mut failed) = (Vec::new(), Vec::new());
        for messages in grouping.pack(queue.into_iter()) {
            let own = messages.first().and_then(|message| message.sequence_id);
            let first = own.unwrap_or(*next);
            let last = first.saturating_add(messages.len() as u64 - 1);
            // Ids go on above one that the application chose, as a producer's ids increase.
            *next = (*next).max(last.saturating_add(1));
            let ids = if common.deviance.is(Deviant::SequenceNotMonotonic) { (0, 0) } else { (first, last) };
            let mut sender = Sender {
                name: &attached.name,
                schema_version: attached.schema_version.as_ref(),
                compression: common.compression,
                max_size: attached.max_size,
                now,
                sealer: sealer.as_deref_mut(),
                chunk_size: common.chunk_size,
            };
            match encode(&messages, ids, &mut sender, &grouping) {
                Ok(entries) => flights.extend(in_flight(ids, messages, entries)),
                Err(error) => failed.extend(messages.into_iter().map(|m| (m, error.clone()))),
            }
        }
        (flights, failed)
    }

    fn grouping(&self, common: Common) -> Grouping<'_> {
        Grouping {
            segment: &self.segment,
            limits: common.limits,
            buckets_observed: common.buckets_observed,
            deviance: common.deviance,
        }
    }
}

/// What is sent of messages that go together: one entry, or the chunks of one message.
fn in_flight(ids: (u64, u64), messages: Vec<Outgoing>, entries: Vec<Bytes>) -> impl Iterator<Item = Flight> {
    let (size, last) = (messages.len() as i32, entries.len().saturating_sub(1));
    let first = messages.first().map_or((0, None), |message| (message.order, message.txn));
    let mut messages = Some(messages);
    entries.into_iter().enumerate().map(move |(at, bytes)| Flight {
        sequence_id: ids.0,
        highest: ids.1,
        size,
        txn: first.1,
        chunk: (last > 0).then_some(Chunk { order: first.0, last: at == last }),
        messages: messages.take_if(|_| at == last).unwrap_or_default(),
        bytes,
    })
}
