//! What the task of a stream consumer does differently from that of others.

use stc_proto::pulsar::{
    CommandAck, CommandSubscribe, IntRange, KeySharedMeta, KeySharedMode, KeyValue, Schema as WireSchema,
    command_ack::AckType, command_subscribe,
};

use crate::{
    client::Shared,
    consumer::{Actor, Done, Kind},
    core::{
        assignment::Mode,
        consumer::Subscribe,
        deviant::Deviant,
        error::Error,
        message_id::{MessageId, Position},
        stream::{Own, StreamCore, deliveries::Ack},
    },
    transaction::Operation,
};

/// What every SUBSCRIBE of a consumer carries.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) subscription: String,
    pub(crate) name: String,
    pub(crate) initial_position: command_subscribe::InitialPosition,
    pub(crate) schema: Option<WireSchema>,
    pub(crate) properties: Vec<KeyValue>,
    pub(crate) read_compacted: bool,
    pub(crate) replicate_state: bool,
}

pub(crate) enum Request {
    Acknowledge(MessageId, Done),
    AcknowledgeIn(MessageId, Operation, Done),
    /// A message was taken out of the receive queue.
    Consumed {
        segment: u64,
        generation: u64,
    },
}

/// The answer to an acknowledgement.
pub(crate) struct Acked {
    segment: u64,
    generation: u64,
    ticket: u64,
    result: Result<(), Error>,
}

impl Kind for Stream {
    type Core = StreamCore;
    type Request = Request;
    type Answer = Acked;

    fn request(actor: &mut Actor<Self>, request: Request) {
        let now = actor.client.clocks.now();
        match request {
            Request::Acknowledge(id, done) => {
                let result = match actor.is_closing() {
                    true => Err(Error::closed("consumer")),
                    false => actor.core.acknowledge(&id, now),
                };
                // On the wire before the application is told.
                actor.perform();
                let _ = done.send(result);
            }
            Request::AcknowledgeIn(id, operation, done) => {
                let Some(txn) = operation.txn().map(|txn| txn.id()) else { return };
                let group = actor.desk.begin(operation, done);
                let result = match actor.is_closing() {
                    true => Err(Error::closed("consumer")),
                    false => actor.core.acknowledge_in(txn, group, &id, now),
                };
                if let Err(error) = result {
                    actor.desk.settle(group, Err(error));
                }
            }
            Request::Consumed { segment, generation } => actor.core.consumed(segment, generation, 1),
        }
    }

    fn carry_out(actor: &mut Actor<Self>, own: Own) {
        match own {
            Own::Ack { segment, generation, ack } => acknowledge(actor, segment, generation, ack),
            Own::Invalid { segment, id, reason } => actor.attachments.send(segment, |consumer_id| {
                CommandAck {
                    consumer_id,
                    ack_type: AckType::Individual as i32,
                    message_id: vec![id],
                    validation_error: Some(reason as i32),
                    ..Default::default()
                }
                .into()
            }),
            Own::Withdraw { segment, generation } => {
                let gone = actor.face.queue.purge(|queued| queued.generation == generation);
                let places: Vec<Position> =
                    gone.iter().filter_map(|queued| queued.delivery.id.position()).collect();
                actor.core.withdrawn(segment, generation, &places, actor.client.clocks.now());
            }
        }
    }

    fn subscription(&self) -> &str {
        &self.subscription
    }

    fn answered(actor: &mut Actor<Self>, Acked { segment, generation, ticket, result }: Acked) {
        let now = actor.client.clocks.now();
        actor.core.ack_answered(segment, generation, ticket, result, now);
    }

    fn subscribe(&self, client: &Shared, subscribe: &Subscribe<Mode>) -> CommandSubscribe {
        let (sub_type, key_shared_meta) = match &subscribe.how {
            Mode::Exclusive => (command_subscribe::SubType::Exclusive, None),
            Mode::Shared(ranges) => (command_subscribe::SubType::KeyShared, Some(key_shared(client, ranges))),
        };
        CommandSubscribe {
            subscription: match client.deviance.is(Deviant::SubscriptionByPosition) {
                true => format!("{}-{:?}", self.subscription, self.initial_position),
                false => self.subscription.clone(),
            },
            sub_type: sub_type as i32,
            consumer_name: Some(format!("{}-seg-{}", self.name, subscribe.segment)),
            durable: Some(!client.deviance.is(Deviant::NonDurableStream)),
            // Brokers refuse it on segments with several readers.
            read_compacted: Some(self.read_compacted && !subscribe.how.is_shared()),
            replicate_subscription_state: self.replicate_state.then_some(true),
            schema: self.schema.clone(),
            initial_position: Some(self.initial_position as i32),
            key_shared_meta,
            subscription_properties: self.properties.clone(),
            ..Default::default()
        }
    }
}

/// Sends an acknowledgement that the broker is to answer: a drain waits until it has accepted it.
fn acknowledge(
    actor: &mut Actor<Stream>,
    segment: u64,
    generation: u64,
    Ack { ticket, ids, cumulative }: Ack,
) {
    let ack_type = if cumulative { AckType::Cumulative } else { AckType::Individual };
    let answer = actor.attachments.begin(segment, |consumer_id, request_id| CommandAck {
        consumer_id,
        ack_type: ack_type as i32,
        message_id: ids,
        request_id: Some(request_id),
        ..Default::default()
    });
    let limit = actor.client.operation_timeout;
    actor.wait_for(async move {
        let result = match answer {
            Ok(answer) => answer.wait(Some(limit)).await.map(drop),
            Err(error) => Err(error),
        };
        Acked { segment, generation, ticket, result }
    });
}

/// How a shared segment is subscribed (key-shared §4).
fn key_shared(client: &Shared, ranges: &[(i32, i32)]) -> KeySharedMeta {
    let deviance = client.deviance;
    let mut hash_ranges: Vec<IntRange> =
        ranges.iter().map(|(start, end)| IntRange { start: *start, end: *end }).collect();
    if deviance.is(Deviant::WrongKeySharedRanges) {
        hash_ranges.truncate(1);
    }
    let mode = match deviance.is(Deviant::AutoSplitKeyShared) {
        true => KeySharedMode::AutoSplit,
        false => KeySharedMode::Sticky,
    };
    KeySharedMeta {
        key_shared_mode: mode as i32,
        hash_ranges,
        entry_bucket_dispatch: (!deviance.is(Deviant::NoEntryBucketFlag)).then_some(true),
        ..Default::default()
    }
}
