//! Faults: what goes wrong on purpose, as data.
//!
//! A fault waits for frames that its selector matches, strikes `count` of them, and says how often it did. One that
//! never struck is visible as such, so that a scenario cannot pass because nothing happened.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::{Command, Frame, SegmentName, TopicName, name::Domain, pulsar::ServerError};
use thiserror::Error;

use super::{
    ids::{BrokerId, ConnId},
    journal::Direction,
};

/// A fault to arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which frames it strikes.
    pub when: Selector,
    /// What it does to them.
    pub effect: FaultEffect,
    /// How many frames it strikes, at least 1.
    #[serde(default = "one")]
    pub count: u32,
    /// How many matching frames it lets pass first.
    #[serde(default)]
    pub skip: u32,
    /// Whether it strikes before or after the broker acted on the frame.
    #[serde(default)]
    pub at: At,
}

fn one() -> u32 {
    1
}

impl Fault {
    /// A fault that strikes the first matching frame.
    pub fn new(when: Selector, effect: FaultEffect) -> Self {
        Fault { when, effect, count: 1, skip: 0, at: At::Before }
    }
}

/// The commands to a broker that can be answered with an error (ACK only when it asks for an answer).
pub(crate) const ANSWERED: [&str; 29] = [
    "PRODUCER",
    "SEND",
    "CLOSE_PRODUCER",
    "SUBSCRIBE",
    "ACK",
    "UNSUBSCRIBE",
    "CLOSE_CONSUMER",
    "SEEK",
    "GET_LAST_MESSAGE_ID",
    "CONSUMER_STATS",
    "LOOKUP",
    "PARTITIONED_METADATA",
    "GET_TOPICS_OF_NAMESPACE",
    "GET_SCHEMA",
    "GET_OR_CREATE_SCHEMA",
    "WATCH_TOPIC_LIST",
    "WATCH_TOPIC_LIST_CLOSE",
    "SCALABLE_TOPIC_LOOKUP",
    "SCALABLE_TOPIC_SUBSCRIBE",
    "SCALABLE_TOPIC_UNSUBSCRIBE",
    "WATCH_SCALABLE_TOPICS",
    "WATCH_TC_ASSIGNMENTS",
    "TC_CLIENT_CONNECT_REQUEST",
    "NEW_TXN",
    "ADD_PARTITION_TO_TXN",
    "ADD_SUBSCRIPTION_TO_TXN",
    "END_TXN",
    "END_TXN_ON_PARTITION",
    "END_TXN_ON_SUBSCRIPTION",
];

/// Which frames a fault strikes: those that match every part that is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Selector {
    /// The command's name, such as `SEND`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Which way the frame goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Side>,
    /// The broker's index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker: Option<u32>,
    /// The topic that the frame is about; a scalable or partitioned topic stands for its segments or partitions too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The connection's number in the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conn: Option<u64>,
    /// The producer's id on its connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer_id: Option<u64>,
    /// The consumer's id on its connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_id: Option<u64>,
}

impl Selector {
    /// Frames of one command.
    pub fn command(name: &str) -> Self {
        Selector { command: Some(name.to_owned()), ..Default::default() }
    }

    /// Only those about this topic.
    pub fn on_topic(self, topic: &str) -> Self {
        Selector { topic: Some(topic.to_owned()), ..self }
    }
}

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// From a client to a broker.
    ToBroker,
    /// From a broker to a client.
    ToClient,
}

/// What a fault does to a frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultEffect {
    /// It never arrives.
    Drop,
    /// It arrives later; frames behind it overtake it.
    Delay {
        /// By how much, in ms of the cluster's clock.
        ms: u64,
    },
    /// Its connection closes.
    Close,
    /// It is answered with an error (to the broker only).
    Error {
        /// Pulsar's name for the error, such as `ServiceNotReady`.
        code: ErrorCode,
        /// The text for the client.
        #[serde(default)]
        message: String,
    },
    /// It arrives twice.
    Duplicate,
    /// The next frame on its connection that goes the same way overtakes it.
    Reorder,
    /// It waits until it is released. While a SEND waits, what its producer sends later waits behind it, and so does its
    /// CLOSE_PRODUCER, as a broker takes a producer's messages in the order in which they came and closes it when they
    /// are stored. These count as frames that the fault holds, not as frames that it struck.
    Hold,
}

/// A `ServerError` by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ErrorCode(pub ServerError);

impl TryFrom<String> for ErrorCode {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        ServerError::from_str_name(&name).map(ErrorCode).ok_or_else(|| format!("unknown error code {name:?}"))
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> Self {
        code.0.as_str_name().to_owned()
    }
}

/// When a fault strikes a frame that goes to the broker. A frame that goes to the client comes after the state change
/// in any case; `after` then means that it is sent before the connection closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// Before the broker acts: it does not, or acts later.
    #[default]
    Before,
    /// After the broker acted: the fault strikes the answers on that connection.
    After,
}

/// Why a fault cannot be armed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FaultError {
    /// The protocol has no such command.
    #[error("unknown command {0:?}")]
    Command(String),
    /// The topic's name does not parse.
    #[error("{0}")]
    Topic(String),
    /// It would strike nothing.
    #[error("a fault strikes at least one frame: count is 0")]
    Count,
    /// The effect cannot strike then, or not that way.
    #[error("{0}")]
    Effect(&'static str),
}

/// An armed fault and what it did.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FaultStatus {
    /// Its id.
    pub id: u64,
    /// The fault.
    pub fault: Fault,
    /// How many frames matched.
    pub matched: u32,
    /// How many it struck.
    pub fired: u32,
}

/// A frame that a fault holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// Its id.
    pub id: u64,
    /// The fault that holds it.
    pub fault: u64,
    /// The connection that it is on.
    pub conn: ConnId,
    /// Which way it goes.
    pub direction: Direction,
    /// The frame.
    pub frame: Frame,
}

/// What a frame is about, as selectors see it.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The frame.
    pub frame: &'a Frame,
    /// Which way it goes.
    pub direction: Direction,
    /// The broker that sends or gets it.
    pub broker: BrokerId,
    /// Its connection.
    pub conn: ConnId,
    /// The topic that it is about.
    pub topic: Option<&'a TopicName>,
    /// The producer's id on its connection.
    pub producer: Option<u64>,
    /// The consumer's id on its connection.
    pub consumer: Option<u64>,
}

/// A fault that struck.
#[derive(Debug, Clone)]
pub struct Strike {
    /// Its id.
    pub id: u64,
    /// What it does.
    pub effect: FaultEffect,
    /// When.
    pub at: At,
}

/// Armed faults and held frames.
#[derive(Debug, Default)]
pub struct Faults {
    armed: BTreeMap<u64, FaultStatus>,
    next_fault: u64,
    held: BTreeMap<u64, Held>,
    next_held: u64,
}

impl Faults {
    /// Arms a fault; returns its id.
    ///
    /// # Errors
    /// [`FaultError`].
    pub fn arm(&mut self, mut fault: Fault) -> Result<u64, FaultError> {
        fault.check()?;
        if let Some(topic) = &mut fault.when.topic {
            *topic = TopicName::parse(topic).map_err(|e| FaultError::Topic(e.to_string()))?.to_string();
        }
        self.next_fault += 1;
        let id = self.next_fault;
        self.armed.insert(id, FaultStatus { id, fault, matched: 0, fired: 0 });
        Ok(id)
    }

    /// Takes a fault back; whether it was there.
    pub fn disarm(&mut self, id: u64) -> bool {
        self.armed.remove(&id).is_some()
    }

    /// The faults and what they did, by id.
    pub fn status(&self) -> impl Iterator<Item = &FaultStatus> {
        self.armed.values()
    }

    /// The first armed fault, by id, that strikes this frame, else the one that makes it wait behind a frame that it holds.
    pub fn strike(&mut self, subject: &Subject<'_>) -> Option<Strike> {
        for status in self.armed.values_mut() {
            if status.fired >= status.fault.count || !status.fault.when.matches(subject) {
                continue;
            }
            // An answer can be struck in both directions; these cannot.
            if subject.direction == Direction::ToClient
                && matches!(status.fault.effect, FaultEffect::Error { .. })
            {
                continue;
            }
            status.matched += 1;
            if status.matched <= status.fault.skip {
                continue;
            }
            status.fired += 1;
            return Some(Strike { id: status.id, effect: status.fault.effect.clone(), at: status.fault.at });
        }
        let id = self.waits_behind(subject)?;
        Some(Strike { id, effect: FaultEffect::Hold, at: At::Before })
    }

    /// The fault that holds an earlier SEND of the producer that this frame is from.
    fn waits_behind(&self, subject: &Subject<'_>) -> Option<u64> {
        let producer = match &subject.frame.command {
            Command::Send(send) => send.producer_id,
            Command::CloseProducer(close) => close.producer_id,
            _ => return None,
        };
        let earlier = |held: &&Held| {
            held.conn == subject.conn
                && held.direction == subject.direction
                && matches!(&held.frame.command, Command::Send(first) if first.producer_id == producer)
        };
        self.held.values().find(earlier).map(|held| held.fault)
    }

    /// Keeps a frame; returns its held id.
    pub fn hold(&mut self, fault: u64, conn: ConnId, direction: Direction, frame: Frame) -> u64 {
        self.next_held += 1;
        let id = self.next_held;
        self.held.insert(id, Held { id, fault, conn, direction, frame });
        id
    }

    /// The frames that are held, by id.
    pub fn held(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }

    /// Takes a held frame.
    pub fn release(&mut self, id: u64) -> Option<Held> {
        self.held.remove(&id)
    }

    /// Forgets the held frames of a connection that is gone.
    pub fn forget(&mut self, conn: ConnId) {
        self.held.retain(|_, held| held.conn != conn);
    }
}

impl Strike {
    /// What it does, as the journal says it.
    #[must_use]
    pub fn describe(&self) -> String {
        let what = match &self.effect {
            FaultEffect::Drop => "drop".to_owned(),
            FaultEffect::Delay { ms } => format!("delay {ms} ms"),
            FaultEffect::Close => "close".to_owned(),
            FaultEffect::Error { code, .. } => format!("error {}", code.0.as_str_name()),
            FaultEffect::Duplicate => "duplicate".to_owned(),
            FaultEffect::Reorder => "reorder".to_owned(),
            FaultEffect::Hold => "hold".to_owned(),
        };
        if self.at == At::After { format!("{what} after") } else { what }
    }
}

impl Fault {
    fn check(&self) -> Result<(), FaultError> {
        if self.count == 0 {
            return Err(FaultError::Count);
        }
        if let Some(name) = &self.when.command
            && Command::number_of(name).is_none()
        {
            return Err(FaultError::Command(name.clone()));
        }
        let to_client = self.when.direction == Some(Side::ToClient);
        match (&self.effect, self.at) {
            (FaultEffect::Error { .. }, _) if to_client => {
                Err(FaultError::Effect("only a frame to the broker can be answered with an error"))
            }
            (FaultEffect::Error { .. }, _)
                if self.when.command.as_deref().is_none_or(|name| !ANSWERED.contains(&name)) =>
            {
                Err(FaultError::Effect("an error needs a command that has an error answer"))
            }
            (FaultEffect::Reorder, At::After) => {
                Err(FaultError::Effect("a frame cannot be overtaken after the broker acted on it"))
            }
            (effect, At::After) if to_client && *effect != FaultEffect::Close => {
                Err(FaultError::Effect("after a frame was sent, only its connection can still be closed"))
            }
            _ => Ok(()),
        }
    }
}

impl Selector {
    fn matches(&self, subject: &Subject<'_>) -> bool {
        let side = match subject.direction {
            Direction::ToBroker => Some(Side::ToBroker),
            Direction::ToClient => Some(Side::ToClient),
            Direction::Internal => None,
        };
        self.command.as_ref().is_none_or(|name| name == subject.frame.command.name())
            && (self.direction.is_none() || self.direction == side)
            && self.broker.is_none_or(|broker| broker == subject.broker.0)
            && self.conn.is_none_or(|conn| conn == subject.conn.0)
            && (self.producer_id.is_none() || self.producer_id == subject.producer)
            && (self.consumer_id.is_none() || self.consumer_id == subject.consumer)
            && self.topic.as_ref().is_none_or(|text| subject.topic.is_some_and(|topic| is_about(topic, text)))
    }
}

/// Whether a topic is the one with this canonical name, or a segment or partition of it.
fn is_about(topic: &TopicName, text: &str) -> bool {
    topic.as_str() == text
        || match topic.domain() {
            Domain::Segment => SegmentName::of(topic).is_ok_and(|s| s.topic.as_str() == text),
            Domain::Persistent => topic.partitioned().as_str() == text,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use stc_proto::pulsar::{CommandCloseProducer, CommandPing, CommandSend};

    use super::*;

    fn subject<'a>(frame: &'a Frame, topic: Option<&'a TopicName>) -> Subject<'a> {
        Subject {
            frame,
            direction: Direction::ToBroker,
            broker: BrokerId(0),
            conn: ConnId(1),
            topic,
            producer: None,
            consumer: None,
        }
    }

    #[test]
    fn a_fault_lets_frames_pass_then_strikes_its_count() {
        let mut faults = Faults::default();
        let fault = Fault { skip: 1, count: 2, ..Fault::new(Selector::command("PING"), FaultEffect::Drop) };
        let id = faults.arm(fault).unwrap();
        let ping = Frame::from(CommandPing {});
        let struck: Vec<bool> = (0..5).map(|_| faults.strike(&subject(&ping, None)).is_some()).collect();
        assert_eq!(struck, [false, true, true, false, false]);
        let status = faults.status().next().unwrap();
        assert_eq!((status.id, status.matched, status.fired), (id, 3, 2));
    }

    #[test]
    fn what_a_producer_does_behind_a_held_message_waits_too() {
        let send = |producer_id, sequence_id| {
            Frame::from(CommandSend { producer_id, sequence_id, ..CommandSend::default() })
        };
        let mut faults = Faults::default();
        let id = faults.arm(Fault::new(Selector::command("SEND"), FaultEffect::Hold)).unwrap();
        let strike = |faults: &mut Faults, frame: &Frame| {
            let strike = faults.strike(&subject(frame, None))?;
            Some((strike.id, faults.hold(strike.id, ConnId(1), Direction::ToBroker, frame.clone())))
        };
        assert_eq!(strike(&mut faults, &send(7, 0)), Some((id, 1)));
        assert_eq!(strike(&mut faults, &send(8, 0)), None);
        let close = |producer_id| {
            Frame::from(CommandCloseProducer { producer_id, ..CommandCloseProducer::default() })
        };
        assert_eq!(strike(&mut faults, &close(8)), None);
        assert_eq!(strike(&mut faults, &send(7, 1)), Some((id, 2)));
        assert_eq!(strike(&mut faults, &close(7)), Some((id, 3)));
        assert_eq!(faults.status().map(|s| (s.matched, s.fired)).collect::<Vec<_>>(), [(1, 1)]);
        for held in 1..=3 {
            faults.release(held);
        }
        assert_eq!(strike(&mut faults, &send(7, 2)), None);
    }

    #[test]
    fn a_topic_stands_for_its_segments_and_partitions() {
        let ping = Frame::from(CommandPing {});
        for (selected, topic, expected) in [
            ("topic://a/b/c", "segment://a/b/c/0000-ffff-0", true),
            ("topic://a/b/c", "segment://a/b/d/0000-ffff-0", false),
            ("persistent://a/b/c", "persistent://a/b/c-partition-1", true),
            ("a/b/c", "persistent://a/b/c", true),
        ] {
            let mut faults = Faults::default();
            faults.arm(Fault::new(Selector::default().on_topic(selected), FaultEffect::Drop)).unwrap();
            let topic = TopicName::parse(topic).unwrap();
            assert_eq!(
                faults.strike(&subject(&ping, Some(&topic))).is_some(),
                expected,
                "{selected} {topic}"
            );
        }
    }

    #[test]
    fn faults_are_read_from_json_and_nonsense_is_refused() {
        let parse = serde_json::from_str::<Fault>;
        let fault = parse(
            r#"{"when":{"command":"SEND","direction":"to_broker"},"effect":{"delay":{"ms":5}},"at":"after"}"#,
        )
        .unwrap();
        assert_eq!(fault.effect, FaultEffect::Delay { ms: 5 });
        for bad in [
            r#"{"when":{"comand":"SEND"},"effect":"drop"}"#,
            r#"{"when":{},"effect":"explode"}"#,
            r#"{"when":{},"effect":"drop","often":3}"#,
            r#"{"when":{},"effect":{"error":{"code":"NoSuchError"}}}"#,
            r#"{"when":{},"effect":{"delay":{"ms":5,"s":1}}}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let mut faults = Faults::default();
        for bad in [
            r#"{"when":{"command":"SND"},"effect":"drop"}"#,
            r#"{"when":{},"effect":"drop","count":0}"#,
            r#"{"when":{"topic":"topic://a"},"effect":"drop"}"#,
            r#"{"when":{},"effect":{"error":{"code":"MetadataError"}}}"#,
            r#"{"when":{"command":"FLOW"},"effect":{"error":{"code":"MetadataError"}}}"#,
            r#"{"when":{"direction":"to_client"},"effect":"drop","at":"after"}"#,
            r#"{"when":{},"effect":"reorder","at":"after"}"#,
        ] {
            assert!(faults.arm(parse(bad).unwrap()).is_err(), "{bad}");
        }
    }
}
