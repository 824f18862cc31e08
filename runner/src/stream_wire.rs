//! The journal as a stream consumer's story: its registrations, assignments, attachments, deliveries and
//! acknowledgements.

use std::collections::{BTreeMap, BTreeSet};

use sim_broker::core::ids::{BrokerId, ConnId};
use sim_broker::core::journal::{Direction, Event};
use stc_proto::Command;
use stc_proto::pulsar::command_subscribe::SubType;
use stc_proto::pulsar::{
    CommandScalableTopicSubscribe, IntRange, KeySharedMode, ScalableAssignedSegment,
    ScalableConsumerAssignment,
};

use crate::wire::{Wire, WireMessage, WireSubscription, messages, segment_of};

/// A SCALABLE_TOPIC_SUBSCRIBE and what became of it.
#[derive(Debug, Clone)]
pub struct WireRegistration {
    /// Number of the record.
    pub n: u64,
    /// Connection.
    pub conn: ConnId,
    /// The broker that it was sent to.
    pub broker: Option<BrokerId>,
    /// The command.
    pub command: CommandScalableTopicSubscribe,
    /// Assignments that came, with the numbers of their records.
    pub assignments: Vec<(u64, ScalableConsumerAssignment)>,
    /// Number of the record that ended it: a refusal, SCALABLE_TOPIC_UNSUBSCRIBE, or the loss of the connection.
    pub ended: Option<u64>,
    /// Whether the client sent SCALABLE_TOPIC_UNSUBSCRIBE.
    pub left: bool,
}

/// A MESSAGE.
#[derive(Debug, Clone)]
pub struct WireDelivery {
    /// Number of the record.
    pub n: u64,
    /// Number of the SUBSCRIBE record of its consumer.
    pub subscribe: u64,
    /// The segment.
    pub segment: u64,
    /// Ledger and entry.
    pub id: (u64, u64),
    /// Keys and payloads of its messages.
    pub messages: Vec<WireMessage>,
}

/// An ACK.
#[derive(Debug, Clone)]
pub struct WireAck {
    /// Number of the record.
    pub n: u64,
    /// Number of the SUBSCRIBE record of its consumer.
    pub subscribe: u64,
    /// The segment.
    pub segment: u64,
    /// Whether it is cumulative.
    pub cumulative: bool,
    /// Ledgers and entries, with whether the entry is acknowledged in part only.
    pub ids: Vec<((u64, u64), bool)>,
}

/// Every registration of a consumer name with the controller of a topic, in order.
pub fn registrations(wire: &Wire, topic: &str, name: &str) -> Vec<WireRegistration> {
    let mut found = registrations_for(wire, topic);
    found.retain(|r| r.command.consumer_name == name);
    found
}

/// Every registration with the controller of a topic, in order.
pub fn registrations_for(wire: &Wire, topic: &str) -> Vec<WireRegistration> {
    let mut found: Vec<WireRegistration> = Vec::new();
    for record in wire.records() {
        let Some(conn) = record.conn else { continue };
        if matches!(record.event, Event::TcpClose { .. }) {
            let open = found.iter_mut().filter(|r| r.conn == conn && r.ended.is_none());
            open.for_each(|r| r.ended = Some(record.n));
        }
        let Some(frame) = record.frame() else { continue };
        let open = |r: &&mut WireRegistration| r.conn == conn && r.ended.is_none();
        let by_id = |r: &&mut WireRegistration, id: u64| open(r) && r.command.consumer_id == id;
        match (&frame.command, record.direction) {
            (Command::ScalableTopicSubscribe(c), Direction::ToBroker) => found.push(WireRegistration {
                n: record.n,
                conn,
                broker: record.broker,
                command: c.clone(),
                assignments: Vec::new(),
                ended: None,
                left: false,
            }),
            (Command::ScalableTopicSubscribeResponse(c), Direction::ToClient) => {
                let asked = |r: &&mut WireRegistration| open(r) && r.command.request_id == c.request_id;
                if let Some(registration) = found.iter_mut().rev().find(asked) {
                    match &c.assignment {
                        Some(assignment) if c.error.is_none() => {
                            registration.assignments.push((record.n, assignment.clone()));
                        }
                        _ => registration.ended = Some(record.n),
                    }
                }
            }
            (Command::Error(c), Direction::ToClient) => {
                let asked = |r: &&mut WireRegistration| open(r) && r.command.request_id == c.request_id;
                if let Some(registration) = found.iter_mut().rev().find(asked) {
                    registration.ended = Some(record.n);
                }
            }
            (Command::ScalableTopicAssignmentUpdate(c), Direction::ToClient) => {
                if let Some(r) = found.iter_mut().rev().find(|r| by_id(r, c.consumer_id)) {
                    r.assignments.push((record.n, c.assignment.clone()));
                }
            }
            (Command::ScalableTopicUnsubscribe(c), Direction::ToBroker) => {
                if let Some(r) = found.iter_mut().rev().find(|r| by_id(r, c.consumer_id)) {
                    r.ended = Some(record.n);
                    r.left = true;
                }
            }
            _ => {}
        }
    }
    found.retain(|r| r.command.topic == topic);
    found
}

/// The assignment that counts after all that came, in this order: the newest of those with the highest epoch.
pub fn in_force(registrations: &[WireRegistration]) -> Option<&ScalableConsumerAssignment> {
    let all = registrations.iter().flat_map(|r| &r.assignments);
    all.max_by_key(|(n, assignment)| (assignment.layout_epoch, *n)).map(|(_, assignment)| assignment)
}

/// Every SUBSCRIBE of a stream consumer's segments, in order. They are called after the consumer.
pub fn attachments(wire: &Wire, topic: &str, subscription: &str, name: &str) -> Vec<WireSubscription> {
    let local = topic.trim_start_matches("topic://");
    let segments = format!("segment://{local}/");
    let prefix = format!("{name}-");
    let called = |s: &WireSubscription| {
        let own = s.command.consumer_name.as_deref().unwrap_or_default();
        own == name || own.starts_with(&prefix)
    };
    let is_own = |s: &WireSubscription| {
        s.command.topic.starts_with(&segments) && s.command.subscription == subscription && called(s)
    };
    wire.subscriptions().into_iter().filter(is_own).collect()
}

/// The segment ids of those that are open now.
pub fn open_segments(attachments: &[WireSubscription]) -> BTreeSet<u64> {
    let open = attachments.iter().filter(|s| s.opened && s.ended.is_none());
    open.filter_map(|s| segment_of(&s.command.topic)).collect()
}

/// What speaks against a SUBSCRIBE's being made in the mode that the assigned segment asks for.
pub fn wrong_mode(subscription: &WireSubscription, assigned: &ScalableAssignedSegment) -> Option<WrongMode> {
    let command = &subscription.command;
    let kind = SubType::try_from(command.sub_type).ok();
    let id = assigned.segment_id;
    if assigned.bucket_ranges.is_empty() {
        let message = format!("segment {id} is the consumer's alone, and subscribed {kind:?}");
        return (kind != Some(SubType::Exclusive)).then_some(WrongMode { shared: false, message });
    }
    let wrong = |message: String| Some(WrongMode { shared: true, message });
    if kind != Some(SubType::KeyShared) {
        return wrong(format!("segment {id} is shared, and subscribed {kind:?} instead of Key_Shared"));
    }
    let Some(meta) = &command.key_shared_meta else {
        return wrong(format!("the SUBSCRIBE of the shared segment {id} has no keySharedMeta"));
    };
    if KeySharedMode::try_from(meta.key_shared_mode).ok() != Some(KeySharedMode::Sticky) {
        return wrong(format!("the shared segment {id} is not subscribed STICKY"));
    }
    if meta.entry_bucket_dispatch != Some(true) {
        return wrong(format!("the SUBSCRIBE of the shared segment {id} lacks entryBucketDispatch"));
    }
    if meta.hash_ranges != assigned.bucket_ranges {
        let list = |ranges: &[IntRange]| {
            let range = |r: &IntRange| format!("{:04x}-{:04x}", r.start, r.end);
            ranges.iter().map(range).collect::<Vec<_>>().join(" ")
        };
        let (declared, given) = (list(&meta.hash_ranges), list(&assigned.bucket_ranges));
        return wrong(format!("segment {id} is shared by the buckets {given}, and {declared} are declared"));
    }
    None
}

/// See [`wrong_mode`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongMode {
    /// Whether the segment is a shared one.
    pub shared: bool,
    /// What is wrong.
    pub message: String,
}

/// Everything that was delivered on these attachments, in order.
pub fn deliveries(wire: &Wire, attachments: &[WireSubscription]) -> Vec<WireDelivery> {
    let delivered = wire.from_brokers().filter_map(|(record, conn, command)| {
        let Command::Message(m) = command else { return None };
        let (subscribe, segment) = at(attachments, conn, m.consumer_id, record.n)?;
        let id = (m.message_id.ledger_id, m.message_id.entry_id);
        let messages = record.entry().map(|entry| messages(&entry)).unwrap_or_default();
        Some(WireDelivery { n: record.n, subscribe, segment, id, messages })
    });
    delivered.collect()
}

/// Everything that was acknowledged on these attachments, in order. Reports of entries that cannot be read are none.
pub fn acks(wire: &Wire, attachments: &[WireSubscription]) -> Vec<WireAck> {
    let acked = wire.from_clients().filter_map(|(record, conn, command)| {
        let Command::Ack(ack) = command else { return None };
        let (subscribe, segment) = at(attachments, conn, ack.consumer_id, record.n)?;
        let id = |id: &stc_proto::pulsar::MessageIdData| {
            let part = id.ack_set.iter().any(|word| *word != 0);
            ((id.ledger_id, id.entry_id), part)
        };
        let ids = ack.message_id.iter().map(id).collect();
        let own = ack.validation_error.is_none();
        own.then_some(WireAck { n: record.n, subscribe, segment, cumulative: ack.ack_type == 1, ids })
    });
    acked.collect()
}

/// The attachment that a frame at this moment is for, and its segment.
fn at(attachments: &[WireSubscription], conn: ConnId, consumer: u64, n: u64) -> Option<(u64, u64)> {
    let attachment =
        attachments.iter().rev().find(|s| s.conn == conn && s.command.consumer_id == consumer && s.n < n)?;
    Some((attachment.n, segment_of(&attachment.command.topic)?))
}

/// Of each segment, the delivered entries that these acknowledgements cover.
pub fn covered(deliveries: &[WireDelivery], acks: &[WireAck]) -> BTreeMap<u64, BTreeSet<(u64, u64)>> {
    let mut covered: BTreeMap<u64, BTreeSet<(u64, u64)>> = BTreeMap::new();
    for delivery in deliveries {
        let names = |ack: &WireAck| {
            ack.ids.iter().any(|(id, part)| {
                let before = ack.cumulative && delivery.id < *id;
                before || (delivery.id == *id && !part)
            })
        };
        if acks.iter().any(|ack| ack.segment == delivery.segment && names(ack)) {
            covered.entry(delivery.segment).or_default().insert(delivery.id);
        }
    }
    covered
}
