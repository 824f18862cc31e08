//! What the task of a queue consumer does differently from that of others.

use std::sync::Arc;

use stc_proto::pulsar::{
    CommandAck, CommandRedeliverUnacknowledgedMessages, CommandSubscribe, KeySharedMeta, KeyValue,
    Schema as WireSchema, command_ack::AckType, command_subscribe,
};

use super::dead_letter::DeadLetters;
use crate::{
    client::Shared,
    consumer::{Actor, Done, Kind},
    core::{
        consumer::Subscribe,
        deviant::Deviant,
        error::Error,
        message_id::{MessageId, Position},
        queue::{Own, QueueCore},
    },
    producer::without_schema,
    transaction::Operation,
};

/// What every SUBSCRIBE of a consumer carries, and where its dead letters go.
#[derive(Clone)]
pub(crate) struct Queue {
    pub(crate) subscription: String,
    pub(crate) name: String,
    /// Whether the application gave the name.
    pub(crate) named: bool,
    pub(crate) initial_position: command_subscribe::InitialPosition,
    pub(crate) schema: Option<WireSchema>,
    pub(crate) properties: Vec<KeyValue>,
    /// `None` without a dead-letter policy.
    pub(crate) letters: Option<Arc<DeadLetters>>,
}

pub(crate) enum Request {
    Acknowledge(Position),
    AcknowledgeIn(MessageId, Operation, Done),
    Reject(MessageId, Done),
    /// A message of a segment was taken out of the receive queue.
    Consumed(u64),
}

impl Kind for Queue {
    type Core = QueueCore;
    type Request = Request;
    /// How it went to send a message to the dead-letter topic.
    type Answer = (MessageId, Result<(), Error>);

    fn request(actor: &mut Actor<Self>, request: Request) {
        let now = actor.client.clocks.now();
        let refused = actor.is_closing().then(|| Error::closed("consumer"));
        match request {
            Request::Acknowledge(_) if refused.is_some() => {}
            Request::Acknowledge(at) => actor.core.acknowledge(at, now),
            Request::AcknowledgeIn(id, operation, done) => {
                let Some(txn) = operation.txn().map(|txn| txn.id()) else { return };
                let group = actor.desk.begin(operation, done);
                let result = refused.map_or_else(|| actor.core.acknowledge_in(txn, group, &id, now), Err);
                if let Err(error) = result {
                    actor.desk.settle(group, Err(error));
                }
            }
            Request::Reject(id, done) => {
                let result = refused.map_or_else(|| actor.core.reject(&id, now), Err);
                let _ = done.send(result);
            }
            Request::Consumed(segment) => actor.core.consumed(segment, 1),
        }
    }

    fn carry_out(actor: &mut Actor<Self>, own: Own) {
        match own {
            Own::Ack { segment, ids, cumulative, invalid } => {
                actor.attachments.send(segment, |consumer_id| {
                    let ack_type = if cumulative { AckType::Cumulative } else { AckType::Individual };
                    CommandAck {
                        consumer_id,
                        ack_type: ack_type as i32,
                        message_id: ids,
                        validation_error: invalid.map(|reason| reason as i32),
                        ..Default::default()
                    }
                    .into()
                });
            }
            Own::Redeliver { segment, ids } => actor.attachments.send(segment, |consumer_id| {
                let message_ids = ids;
                CommandRedeliverUnacknowledgedMessages { consumer_id, message_ids, consumer_epoch: None }
                    .into()
            }),
            Own::Purge { segment } => {
                actor.face.queue.purge(|delivery| delivery.segment == segment);
            }
            Own::Bury(delivery) => {
                // The state machine has the same policy.
                let Some(letters) = actor.kind.letters.clone() else { return };
                if actor.client.deviance.is(Deviant::DeadLetterRaises) {
                    actor.face.queue.close();
                }
                actor.wait_for(async move {
                    let id = delivery.id.clone();
                    (id, letters.send(*delivery).await)
                });
            }
        }
    }

    fn subscription(&self) -> &str {
        &self.subscription
    }

    fn answered(actor: &mut Actor<Self>, (id, result): Self::Answer) {
        let now = actor.client.clocks.now();
        actor.core.buried(&id, result, now);
    }

    async fn finish(&self) {
        if let Some(letters) = &self.letters {
            letters.close().await;
        }
    }

    fn subscribe(&self, client: &Shared, subscribe: &Subscribe<()>) -> CommandSubscribe {
        let sub_type = if client.deviance.is(Deviant::ExclusiveSubscription) {
            command_subscribe::SubType::Exclusive
        } else if client.deviance.is(Deviant::SubscribeFailover) {
            command_subscribe::SubType::Failover
        } else {
            command_subscribe::SubType::Shared
        };
        let segment = subscribe.segment;
        CommandSubscribe {
            subscription: self.subscription.clone(),
            sub_type: sub_type as i32,
            consumer_name: Some(match self.named {
                true => format!("{}-seg-{segment}", self.name),
                false => self.name.clone(),
            }),
            durable: Some(true),
            schema: self.schema.clone().filter(|_| !without_schema(client, segment)),
            initial_position: Some(self.initial_position as i32),
            subscription_properties: self.properties.clone(),
            key_shared_meta: client.deviance.is(Deviant::QueueDeclaresKeys).then(KeySharedMeta::default),
            ..Default::default()
        }
    }
}
