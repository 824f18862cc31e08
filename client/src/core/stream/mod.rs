//! The stream consumer as a state machine (client-behavior §5, §6, §8; key-shared §4): a registration with the topic's
//! controller, one subscription for each assigned segment, one stream of messages out of all of them, and cumulative
//! acknowledgements that advance every segment.
//!
//! | Module | Owns |
//! |---|---|
//! | [`deliveries`] | what an attachment delivered and how far its acknowledgement is |
//! | [`segment`] | one segment and its attachment, generation by generation |
//! | `arriving` | from entries to messages for the application |
//! | `acking` | from the application's acknowledgements to the broker's |
//! | `step` | what follows from the assignment and the state: attaching, draining, detaching |

mod acking;
mod arriving;
pub(crate) mod deliveries;
#[cfg(test)]
mod model;
pub(crate) mod segment;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use stc_proto::pulsar::{MessageIdData, command_ack::ValidationError};

use self::{deliveries::Ack, segment::StreamSegment};
use super::{
    Millis, Now,
    assignment::Mode,
    backoff::Rng,
    consumer::{self, Core as _, Delivery, Life, LifeConfig},
    deviant::{Deviance, Deviant},
    message_id::{Position, Slice},
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
    pub(crate) life: LifeConfig,
}

/// A message for the application, and the attachment that it came on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamDelivery {
    pub(crate) generation: u64,
    pub(crate) delivery: Delivery,
}

/// What only a stream consumer asks of the shell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Own {
    /// Sends ACK; the answer goes to [`StreamCore::ack_answered`].
    Ack { segment: u64, generation: u64, ack: Ack },
    /// Tells the broker that an entry cannot be read.
    Invalid { segment: u64, id: MessageIdData, reason: ValidationError },
    /// Takes the messages of an attachment out of the receive queue; what was taken out goes to
    /// [`StreamCore::withdrawn`].
    Withdraw { segment: u64, generation: u64 },
}

pub(crate) type Effect = consumer::Effect<Mode, StreamDelivery, Own>;

/// See the module.
#[derive(Debug)]
pub(crate) struct StreamCore {
    config: StreamConfig,
    life: Life<Mode, StreamDelivery, Own>,
    segments: BTreeMap<u64, StreamSegment>,
    /// The last delivered message of each segment.
    positions: BTreeMap<u64, Slice>,
    /// The attachments that those came on.
    generations: BTreeMap<u64, u64>,
    /// Counts deliveries.
    sequence: u64,
    next_ticket: u64,
    /// When collected acknowledgements are sent.
    acks_due: Option<Millis>,
}

impl StreamCore {
    /// A consumer on a topic that is resolved. It registers, attaches what it is assigned and then says
    /// [`Effect::Opened`].
    pub(crate) fn new(config: StreamConfig, view: View, rng: Rng, now: Now) -> Self {
        let registers = !config.life.deviance.is(Deviant::NeverRegisters);
        let mut core = StreamCore {
            life: Life::new(&config.life, view.clone(), rng, registers, now),
            config,
            segments: BTreeMap::new(),
            positions: BTreeMap::new(),
            generations: BTreeMap::new(),
            sequence: 0,
            next_ticket: 1,
            acks_due: None,
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

    /// The application took messages of an attachment out of the receive queue.
    pub(crate) fn consumed(&mut self, segment: u64, generation: u64, count: u32) {
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        let attached = stream.place.is_attached();
        let Some(attachment) = stream.of(generation) else { return };
        attachment.consumed = attachment.consumed.saturating_add(count);
        let enough = attachment.consumed >= (self.config.receiver_queue / 2).max(1);
        if enough && attached && !attachment.draining {
            let permits = std::mem::take(&mut attachment.consumed);
            self.life.effects.push(Effect::Flow { segment, permits });
        }
    }

    /// Messages of an attachment were taken out of the receive queue before the application could receive them.
    pub(crate) fn withdrawn(&mut self, segment: u64, generation: u64, places: &[Position], now: Now) {
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        match stream.of(generation) {
            Some(attachment) => attachment.deliveries.withdraw(places),
            None => stream.late.withdraw(places),
        }
        self.advance(now);
    }
}
