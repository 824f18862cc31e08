//! Which wire record a judgement rests on, so that a report can point at it.
//!
//! A step names the record where a single one shows what it found: the SEND of a message that went astray, the
//! SUBSCRIBE of the wrong type. Where something is missing, or only several records together show it, none is named.
//! Steps call these as they fail, in the closure that words the message.

use sim_broker::core::journal::{Direction, Record};
use stc_proto::Command;

use crate::target::Broker;
use crate::wire;
use crate::world::World;

impl World {
    /// Rests the judgement on the newest record that `is_it` accepts, on none if there is no such record. It asks for
    /// no journal: a scenario that does without one is judged without one.
    pub fn rests_on_newest(&self, is_it: impl Fn(&Record) -> bool) {
        let records = self.started_broker().and_then(Broker::journal).unwrap_or_default();
        self.rests_on(records.iter().rev().find(|r| is_it(r)).map(|r| r.n));
    }

    /// The same for the newest frame of this name that the client sent.
    pub fn rests_on_sent(&self, command: &str) {
        self.rests_on_newest(|r| {
            r.direction == Direction::ToBroker && r.frame().is_some_and(|f| f.command.name() == command)
        });
    }

    /// The same for the newest SEND that carries a message with this payload.
    pub fn rests_on_send_of(&self, payload: &[u8]) {
        self.rests_on_newest(|r| matches!(command(r), Some(Command::Send(_))) && carries(r, payload));
    }

    /// The same for the newest MESSAGE that carries a message with this payload.
    pub fn rests_on_delivery_of(&self, payload: &[u8]) {
        self.rests_on_newest(|r| matches!(command(r), Some(Command::Message(_))) && carries(r, payload));
    }
}

fn command(record: &Record) -> Option<&Command> {
    record.frame().map(|frame| &frame.command)
}

fn carries(record: &Record, payload: &[u8]) -> bool {
    record.entry().is_some_and(|entry| wire::messages(&entry).iter().any(|m| m.payload == payload))
}
