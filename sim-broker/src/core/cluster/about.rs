//! What a frame is about, and which error answers it: tables over the commands. A proxy that strikes frames on their way
//! uses them too.

use stc_proto::{
    Command, Frame, TopicName,
    pulsar::{command_lookup_topic_response, command_partitioned_topic_metadata_response, *},
};

use super::conn::Conn;
use crate::core::fault::{Faults, Strike, Subject};
use crate::core::ids::{BrokerId, ConnId};
use crate::core::journal::Direction;

/// What a frame is about, as far as it and its connection tell.
#[derive(Debug, Default)]
pub struct About {
    /// The topic.
    pub topic: Option<String>,
    /// The producer's id on its connection.
    pub producer: Option<u64>,
    /// The consumer's id on its connection.
    pub consumer: Option<u64>,
}

/// What is known of a connection: the topics that its numbers stand for.
pub trait Known {
    /// Of a layout watch, by its session id.
    fn watch(&self, session: u64) -> Option<String>;
    /// Of a registration with a controller, by its consumer id.
    fn registration(&self, consumer: u64) -> Option<String>;
    /// Of a producer, by its id.
    fn producer(&self, id: u64) -> Option<String>;
    /// Of a consumer, by its id.
    fn consumer(&self, id: u64) -> Option<String>;
    /// Of a request that has no answer yet, by its id.
    fn request(&self, id: u64) -> Option<String>;
}

impl Known for Conn {
    fn watch(&self, session: u64) -> Option<String> {
        self.watches.get(&session).map(ToString::to_string)
    }

    fn registration(&self, consumer: u64) -> Option<String> {
        self.registrations.get(&consumer).map(|r| r.topic.to_string())
    }

    fn producer(&self, id: u64) -> Option<String> {
        self.producers.get(&id).or_else(|| self.closed_producers.get(&id)).map(ToString::to_string)
    }

    fn consumer(&self, id: u64) -> Option<String> {
        self.consumers.get(&id).map(ToString::to_string)
    }

    fn request(&self, id: u64) -> Option<String> {
        self.requests.get(&id).cloned()
    }
}

/// What an armed fault does to a frame on its way over a connection with a broker.
pub fn strike(
    faults: &mut Faults,
    frame: &Frame,
    direction: Direction,
    broker: BrokerId,
    conn: ConnId,
    known: &impl Known,
) -> Option<Strike> {
    let about = subject(&frame.command, known);
    let topic = about.topic.and_then(|text| TopicName::parse(&text).ok());
    faults.strike(&Subject {
        frame,
        direction,
        broker,
        conn,
        topic: topic.as_ref(),
        producer: about.producer,
        consumer: about.consumer,
    })
}

/// What a frame on this connection is about.
pub fn subject(command: &Command, conn: &impl Known) -> About {
    use Command as C;
    let producer = match command {
        C::Producer(c) => Some(c.producer_id),
        C::Send(c) => Some(c.producer_id),
        C::SendReceipt(c) => Some(c.producer_id),
        C::SendError(c) => Some(c.producer_id),
        C::CloseProducer(c) => Some(c.producer_id),
        _ => None,
    };
    let consumer = match command {
        C::Subscribe(c) => Some(c.consumer_id),
        C::Message(c) => Some(c.consumer_id),
        C::Ack(c) => Some(c.consumer_id),
        C::AckResponse(c) => Some(c.consumer_id),
        C::Flow(c) => Some(c.consumer_id),
        C::Unsubscribe(c) => Some(c.consumer_id),
        C::CloseConsumer(c) => Some(c.consumer_id),
        C::RedeliverUnacknowledgedMessages(c) => Some(c.consumer_id),
        C::ConsumerStats(c) => Some(c.consumer_id),
        C::ReachedEndOfTopic(c) => Some(c.consumer_id),
        C::Seek(c) => Some(c.consumer_id),
        C::GetLastMessageId(c) => Some(c.consumer_id),
        C::ActiveConsumerChange(c) => Some(c.consumer_id),
        C::ScalableTopicSubscribe(c) => Some(c.consumer_id),
        C::ScalableTopicAssignmentUpdate(c) => Some(c.consumer_id),
        C::ScalableTopicUnsubscribe(c) => Some(c.consumer_id),
        _ => None,
    };
    let topic = match command {
        C::Producer(c) => Some(c.topic.clone()),
        C::Subscribe(c) => Some(c.topic.clone()),
        C::Lookup(c) => Some(c.topic.clone()),
        C::PartitionedMetadata(c) => Some(c.topic.clone()),
        C::GetSchema(c) => Some(c.topic.clone()),
        C::GetOrCreateSchema(c) => Some(c.topic.clone()),
        C::ScalableTopicLookup(c) => Some(c.topic.clone()),
        C::ScalableTopicSubscribe(c) => Some(c.topic.clone()),
        C::ScalableTopicUpdate(c) => c.resolved_topic_name.clone().or_else(|| conn.watch(c.session_id)),
        C::ScalableTopicAssignmentUpdate(CommandScalableTopicAssignmentUpdate { consumer_id, .. })
        | C::ScalableTopicUnsubscribe(CommandScalableTopicUnsubscribe { consumer_id, .. }) => {
            conn.registration(*consumer_id)
        }
        C::ScalableTopicClose(c) => conn.watch(c.session_id),
        _ => None,
    };
    let topic = topic
        .or_else(|| conn.producer(producer?))
        .or_else(|| conn.consumer(consumer?))
        .or_else(|| conn.request(request_id(command)?));
    About { topic, producer, consumer }
}

/// The request id that pairs a command with its answer.
pub fn request_id(command: &Command) -> Option<u64> {
    use Command as C;
    Some(match command {
        C::Subscribe(c) => c.request_id,
        C::Producer(c) => c.request_id,
        C::Unsubscribe(c) => c.request_id,
        C::Success(c) => c.request_id,
        C::Error(c) => c.request_id,
        C::CloseProducer(c) => c.request_id,
        C::CloseConsumer(c) => c.request_id,
        // A producer that waits for its turn is answered twice.
        C::ProducerSuccess(c) if c.producer_ready() => c.request_id,
        C::PartitionedMetadata(c) => c.request_id,
        C::PartitionedMetadataResponse(c) => c.request_id,
        C::Lookup(c) => c.request_id,
        C::LookupResponse(c) => c.request_id,
        C::ConsumerStats(c) => c.request_id,
        C::ConsumerStatsResponse(c) => c.request_id,
        C::Seek(c) => c.request_id,
        C::GetLastMessageId(c) => c.request_id,
        C::GetLastMessageIdResponse(c) => c.request_id,
        C::GetSchema(c) => c.request_id,
        C::GetSchemaResponse(c) => c.request_id,
        C::GetOrCreateSchema(c) => c.request_id,
        C::GetOrCreateSchemaResponse(c) => c.request_id,
        C::ScalableTopicSubscribe(c) => c.request_id,
        C::ScalableTopicSubscribeResponse(c) => c.request_id,
        C::ScalableTopicUnsubscribe(c) => c.request_id,
        _ => return None,
    })
}

/// The answer to a command that fails with this error; `None` for a command that has no error answer.
pub fn error_answer(command: &Command, error: ServerError, message: &str) -> Option<Command> {
    use Command as C;
    let code = Some(error as i32);
    let text = Some(message.to_owned());
    Some(match command {
        C::Send(c) => CommandSendError {
            producer_id: c.producer_id,
            sequence_id: c.sequence_id,
            error: error as i32,
            message: message.to_owned(),
        }
        .into(),
        C::Lookup(c) => CommandLookupTopicResponse {
            request_id: c.request_id,
            response: Some(command_lookup_topic_response::LookupType::Failed as i32),
            error: code,
            message: text,
            ..Default::default()
        }
        .into(),
        C::PartitionedMetadata(c) => CommandPartitionedTopicMetadataResponse {
            request_id: c.request_id,
            response: Some(command_partitioned_topic_metadata_response::LookupType::Failed as i32),
            error: code,
            message: text,
            ..Default::default()
        }
        .into(),
        C::ScalableTopicLookup(c) => CommandScalableTopicUpdate {
            session_id: c.session_id,
            error: code,
            message: text,
            ..Default::default()
        }
        .into(),
        C::ScalableTopicSubscribe(c) => CommandScalableTopicSubscribeResponse {
            request_id: c.request_id,
            error: code,
            message: text,
            ..Default::default()
        }
        .into(),
        C::WatchScalableTopics(c) => CommandWatchScalableTopicsUpdate {
            watch_id: c.watch_id,
            error: code,
            message: text,
            ..Default::default()
        }
        .into(),
        C::WatchTcAssignments(c) => CommandWatchTcAssignmentsUpdate {
            watch_id: c.watch_id,
            error: code,
            message: text,
            ..Default::default()
        }
        .into(),
        C::Ack(c) if c.request_id.is_some() => CommandAckResponse {
            consumer_id: c.consumer_id,
            request_id: c.request_id,
            txnid_least_bits: c.txnid_least_bits,
            txnid_most_bits: c.txnid_most_bits,
            error: code,
            message: text,
        }
        .into(),
        C::ConsumerStats(c) => CommandConsumerStatsResponse {
            request_id: c.request_id,
            error_code: code,
            error_message: text,
            ..Default::default()
        }
        .into(),
        C::GetSchema(c) => CommandGetSchemaResponse {
            request_id: c.request_id,
            error_code: code,
            error_message: text,
            ..Default::default()
        }
        .into(),
        C::GetOrCreateSchema(c) => CommandGetOrCreateSchemaResponse {
            request_id: c.request_id,
            error_code: code,
            error_message: text,
            ..Default::default()
        }
        .into(),
        C::TcClientConnectRequest(c) => {
            CommandTcClientConnectResponse { request_id: c.request_id, error: code, message: text }.into()
        }
        C::NewTxn(c) => CommandNewTxnResponse {
            request_id: c.request_id,
            error: code,
            message: text,
            ..Default::default()
        }
        .into(),
        C::AddPartitionToTxn(c) => CommandAddPartitionToTxnResponse {
            request_id: c.request_id,
            txnid_least_bits: c.txnid_least_bits,
            txnid_most_bits: c.txnid_most_bits,
            error: code,
            message: text,
        }
        .into(),
        C::AddSubscriptionToTxn(c) => CommandAddSubscriptionToTxnResponse {
            request_id: c.request_id,
            txnid_least_bits: c.txnid_least_bits,
            txnid_most_bits: c.txnid_most_bits,
            error: code,
            message: text,
        }
        .into(),
        C::EndTxn(c) => CommandEndTxnResponse {
            request_id: c.request_id,
            txnid_least_bits: c.txnid_least_bits,
            txnid_most_bits: c.txnid_most_bits,
            error: code,
            message: text,
        }
        .into(),
        C::EndTxnOnPartition(c) => CommandEndTxnOnPartitionResponse {
            request_id: c.request_id,
            txnid_least_bits: c.txnid_least_bits,
            txnid_most_bits: c.txnid_most_bits,
            error: code,
            message: text,
        }
        .into(),
        C::EndTxnOnSubscription(c) => CommandEndTxnOnSubscriptionResponse {
            request_id: c.request_id,
            txnid_least_bits: c.txnid_least_bits,
            txnid_most_bits: c.txnid_most_bits,
            error: code,
            message: text,
        }
        .into(),
        C::GetTopicsOfNamespace(c) => error_for(c.request_id, error, message),
        C::WatchTopicList(c) => error_for(c.request_id, error, message),
        C::WatchTopicListClose(c) => error_for(c.request_id, error, message),
        C::ScalableTopicUnsubscribe(c) => error_for(c.request_id, error, message),
        C::Producer(_)
        | C::Subscribe(_)
        | C::Unsubscribe(_)
        | C::CloseProducer(_)
        | C::CloseConsumer(_)
        | C::Seek(_)
        | C::GetLastMessageId(_) => error_for(request_id(command)?, error, message),
        _ => return None,
    })
}

/// ERROR for a request.
pub(super) fn error_for(request_id: u64, error: ServerError, message: &str) -> Command {
    CommandError { request_id, error: error as i32, message: message.to_owned() }.into()
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use stc_proto::Frame;

    use super::*;
    use crate::core::fault::ANSWERED;

    /// Every command with an empty body: missing required fields do not matter here.
    fn all() -> Vec<Command> {
        macro_rules! all {
            ($($body:ident)*) => { vec![$(Command::from($body::default()),)*] };
        }
        all! {
            CommandConnect CommandSubscribe CommandProducer CommandSend CommandAck CommandFlow CommandUnsubscribe
            CommandCloseProducer CommandCloseConsumer CommandPing CommandRedeliverUnacknowledgedMessages
            CommandPartitionedTopicMetadata CommandLookupTopic CommandConsumerStats CommandSeek
            CommandGetLastMessageId CommandGetTopicsOfNamespace CommandGetSchema CommandAuthResponse
            CommandGetOrCreateSchema CommandNewTxn CommandAddPartitionToTxn CommandAddSubscriptionToTxn CommandEndTxn
            CommandEndTxnOnPartition CommandEndTxnOnSubscription CommandTcClientConnectRequest CommandWatchTopicList
            CommandWatchTopicListClose CommandScalableTopicLookup CommandScalableTopicClose
            CommandScalableTopicSubscribe CommandScalableTopicUnsubscribe CommandWatchScalableTopics
            CommandWatchScalableTopicsClose CommandWatchTcAssignments CommandWatchTcAssignmentsClose
        }
    }

    #[test]
    fn the_commands_with_an_error_answer_are_those_that_faults_accept() {
        let mut answered: Vec<&str> = all()
            .into_iter()
            .map(|command| match command {
                Command::Ack(ack) => CommandAck { request_id: Some(1), ..ack }.into(),
                other => other,
            })
            .filter(|command| {
                let answer = error_answer(command, ServerError::MetadataError, "text");
                // What goes on the wire is complete: it decodes.
                if let Some(answer) = &answer {
                    let mut bytes = BytesMut::from(&Frame::from(answer.clone()).to_bytes()[..]);
                    assert!(stc_proto::Decoder::default().decode(&mut bytes).unwrap().is_some());
                }
                answer.is_some()
            })
            .map(|command| command.name())
            .collect();
        let mut expected = ANSWERED.to_vec();
        answered.sort_unstable();
        expected.sort_unstable();
        assert_eq!(answered, expected);
    }
}
