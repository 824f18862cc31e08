//! What the task of a checkpoint consumer does differently from that of others.

use std::collections::BTreeMap;

use stc_proto::{
    Command,
    pulsar::{
        CommandAck, CommandGetLastMessageId, CommandGetLastMessageIdResponse, CommandSubscribe,
        MessageIdData, Schema as WireSchema, command_ack::AckType, command_subscribe,
    },
};

use crate::{
    client::Shared,
    consumer::{Actor, Face, Kind},
    core::{
        checkpoint::{CheckpointCore, CheckpointDelivery, Own, Reading, position::Mark, reader::From},
        consumer::Subscribe,
        deviant::Deviant,
        error::Error,
    },
};

/// What every SUBSCRIBE of a consumer carries.
#[derive(Clone)]
pub(crate) struct Checkpointing {
    pub(crate) name: String,
    pub(crate) schema: Option<WireSchema>,
}

pub(crate) enum Request {
    /// A message was taken out of the receive queue.
    Consumed { segment: u64, generation: u64 },
    /// For the deviant that asks the broker when a checkpoint is taken.
    AskAgain,
    /// For the deviant that acknowledges when a checkpoint is taken.
    Acknowledge(BTreeMap<u64, Mark>),
}

/// The answer to GET_LAST_MESSAGE_ID.
pub(crate) struct Last {
    segment: u64,
    generation: u64,
    answer: Result<CommandGetLastMessageIdResponse, Error>,
}

impl Kind for Checkpointing {
    type Core = CheckpointCore;
    type Request = Request;
    type Answer = Last;

    fn request(actor: &mut Actor<Self>, request: Request) {
        let now = actor.client.clocks.now();
        match request {
            Request::Consumed { segment, generation } => actor.core.consumed(segment, generation, now),
            Request::AskAgain => actor.core.ask_again(now),
            Request::Acknowledge(marks) => {
                marks.into_iter().for_each(|(segment, mark)| acknowledge(actor, segment, mark));
            }
        }
    }

    fn carry_out(actor: &mut Actor<Self>, own: Own) {
        let queue = &actor.face.queue;
        match own {
            Own::Ask { segment, generation } => ask(actor, segment, generation),
            Own::Withdraw { segment } => {
                queue.purge(|queued| queued.delivery.segment == segment);
                let received = queue.passed(|marks| marks.get(&segment).copied());
                actor.core.withdrawn(segment, received);
            }
            Own::Unmark { segment } => {
                queue.passed(|marks| marks.remove(&segment));
            }
            Own::Mark { segment, mark } => {
                queue.passed(|marks| marks.insert(segment, mark));
            }
        }
    }

    fn arrives(face: &Face<CheckpointDelivery>, delivery: &CheckpointDelivery) {
        if face.deviance.is(Deviant::CheckpointNotAtomic) {
            face.queue.passed(|marks| marks.insert(delivery.delivery.segment, delivery.mark));
        }
    }

    fn answered(actor: &mut Actor<Self>, Last { segment, generation, answer }: Last) {
        let now = actor.client.clocks.now();
        actor.core.last_message(segment, generation, answer, now);
    }

    fn subscribe(&self, client: &Shared, subscribe: &Subscribe<Reading>) -> CommandSubscribe {
        let Reading { from, number } = subscribe.how;
        let durable = client.deviance.is(Deviant::CheckpointDurable);
        CommandSubscribe {
            // Its own, so that no two readers are ever in each other's way.
            subscription: format!("reader-{:010x}", number >> 24),
            sub_type: command_subscribe::SubType::Exclusive as i32,
            consumer_name: Some(format!("{}-seg-{}", self.name, subscribe.segment)),
            durable: Some(durable),
            start_message_id: Some(start_message_id(from)),
            initial_position: durable.then_some(command_subscribe::InitialPosition::Earliest as i32),
            read_compacted: Some(false),
            schema: self.schema.clone(),
            ..Default::default()
        }
    }
}

fn ask(actor: &mut Actor<Checkpointing>, segment: u64, generation: u64) {
    let answer = actor
        .attachments
        .begin(segment, |consumer_id, request_id| CommandGetLastMessageId { consumer_id, request_id });
    let limit = actor.client.operation_timeout;
    actor.wait_for(async move {
        let answer = match answer {
            Ok(answer) => answer.wait(Some(limit)).await,
            Err(error) => Err(error),
        };
        let answer = answer.and_then(|command| match command {
            Command::GetLastMessageIdResponse(answer) => Ok(answer),
            other => Err(Error::not_connected(format!("{} answered GET_LAST_MESSAGE_ID", other.name()))),
        });
        Last { segment, generation, answer }
    });
}

/// For the deviant that acknowledges.
fn acknowledge(actor: &mut Actor<Checkpointing>, segment: u64, mark: Mark) {
    let id = MessageIdData { ledger_id: mark.ledger, entry_id: mark.entry, ..Default::default() };
    actor.attachments.send(segment, |consumer_id| {
        CommandAck {
            consumer_id,
            ack_type: AckType::Cumulative as i32,
            message_id: vec![id],
            ..Default::default()
        }
        .into()
    });
}

/// The last message that a reader has seen, as brokers take it: they begin with that entry.
fn start_message_id(from: From) -> MessageIdData {
    let (ledger_id, entry_id, batch_index) = match from {
        // -1:-1 and the largest numbers stand for the oldest and the next message.
        From::Behind(None) => (u64::MAX, u64::MAX, -1),
        From::Latest => (i64::MAX as u64, i64::MAX as u64, -1),
        From::Behind(Some(mark)) => (mark.ledger, mark.entry, mark.batch_index),
    };
    MessageIdData { ledger_id, entry_id, batch_index: Some(batch_index), ..Default::default() }
}
