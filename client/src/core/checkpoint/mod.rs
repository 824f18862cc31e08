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
    reader::{From, Reader},
};
use super::{
    Now,
    backoff::Rng,
    consumer::{self, Core as _, Delivery, Life, LifeConfig},
    deviant::{Deviance, Deviant},
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
    pub(crate) life: LifeConfig,
}

/// How the reader of a segment subscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) from: From,
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

/// What only a checkpoint consumer asks of the shell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Own {
    /// Sends GET_LAST_MESSAGE_ID; the answer goes to [`CheckpointCore::last_message`].
    Ask { segment: u64, generation: u64 },
    /// Takes a segment's messages out of the receive queue; what was received of it goes to
    /// [`CheckpointCore::withdrawn`].
    Withdraw { segment: u64 },
    /// Takes a position into checkpoints for which nothing was received yet.
    Mark { segment: u64, mark: Mark },
    /// Takes the position of a segment that is pruned out of checkpoints.
    Unmark { segment: u64 },
}

pub(crate) type Effect = consumer::Effect<Reading, CheckpointDelivery, Own>;

/// See the module.
#[derive(Debug)]
pub(crate) struct CheckpointCore {
    config: CheckpointConfig,
    life: Life<Reading, CheckpointDelivery, Own>,
    readers: BTreeMap<u64, Reader>,
    /// Where segments go on that have no reader: as restored, or as they were left.
    resume: Marks,
    /// The segments that a start at latest is about; what comes later is read from its beginning.
    at_create: BTreeSet<u64>,
}

impl CheckpointCore {
    /// A consumer on a topic that is resolved. It attaches what can be read now and then says [`Effect::Opened`].
    pub(crate) fn new(config: CheckpointConfig, view: View, rng: Rng, now: Now) -> Self {
        let deviance = config.life.deviance;
        let resume = match &config.start {
            Start::Behind(marks) if !deviance.is(Deviant::RestoreIgnoresPosition) => marks.clone(),
            _ => Marks::new(),
        };
        let registers = config.grouped || deviance.is(Deviant::CheckpointRegisters);
        let mut core = CheckpointCore {
            life: Life::new(&config.life, view.clone(), rng, registers, now),
            config,
            at_create: view.layout.segments().map(|segment| segment.id).collect(),
            readers: BTreeMap::new(),
            resume,
        };
        core.apply_layout(view, now);
        core
    }

    fn deviance(&self) -> Deviance {
        self.life.deviance
    }

    fn own(&mut self, own: Own) {
        self.life.effects.push(Effect::Own(own));
    }

    /// The application took a message out of the receive queue.
    pub(crate) fn consumed(&mut self, segment: u64, generation: u64, now: Now) {
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        if generation >= reader.since && !reader.withdrawn {
            reader.waiting = reader.waiting.saturating_sub(1);
        }
        if reader.place.generation == generation {
            self.permit(segment, 1);
        }
        self.advance(now);
    }

    fn permit(&mut self, segment: u64, count: u32) {
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        reader.consumed = reader.consumed.saturating_add(count);
        let enough = reader.consumed >= (self.config.receiver_queue / 2).max(1);
        if enough && reader.granted && reader.place.is_attached() {
            let permits = std::mem::take(&mut reader.consumed);
            self.life.effects.push(Effect::Flow { segment, permits });
        }
    }

    /// For the deviant that asks the broker when a checkpoint is taken.
    pub(crate) fn ask_again(&mut self, now: Now) {
        for (segment, reader) in self.readers.iter().filter(|(_, reader)| reader.place.is_attached()) {
            let ask = Own::Ask { segment: *segment, generation: reader.place.generation };
            self.life.effects.push(Effect::Own(ask));
        }
        self.advance(now);
    }
}
