//! One protocol command with its body.
//!
//! `BaseCommand` has one optional field for each command type; as a struct that is several kilobytes of mostly
//! absent fields. [`Command`] holds only the body that is there. The number of a command is both its
//! `BaseCommand.Type` and the field number of its body.

use bytes::{Buf, BufMut};
use prost::{DecodeError, Message, encoding};

use crate::pulsar::*;

macro_rules! commands {
    ($($number:literal $variant:ident $body:ident $name:literal,)*) => {
        /// A command and its body, named as in `BaseCommand.Type`.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)]
        pub enum Command { $($variant($body),)* }

        $(impl From<$body> for Command {
            fn from(body: $body) -> Self { Command::$variant(body) }
        })*

        impl Command {
            /// The command's `BaseCommand.Type`, which is also the field number of its body.
            pub fn number(&self) -> u32 {
                match self { $(Command::$variant(_) => $number,)* }
            }

            /// The command's name on the wire, such as `SCALABLE_TOPIC_LOOKUP`.
            pub fn name(&self) -> &'static str {
                match self { $(Command::$variant(_) => $name,)* }
            }

            /// The name that belongs to a `BaseCommand.Type`, if the protocol has it.
            pub fn name_of(number: u32) -> Option<&'static str> {
                match number { $($number => Some($name),)* _ => None }
            }

            /// The `BaseCommand.Type` that belongs to a name on the wire.
            pub fn number_of(name: &str) -> Option<u32> {
                match name { $($name => Some($number),)* _ => None }
            }

            /// The command as the JSON of its body's fields, as the journal shows it (see [`crate::fields`]).
            pub fn fields(&self) -> serde_json::Value {
                match self { $(Command::$variant(body) => crate::fields::to_json(stringify!($body), body),)* }
            }

            /// Decodes the body of the command with this number; `None` for a number that is not in the protocol.
            pub(crate) fn decode_body(number: u32, body: impl Buf) -> Option<Result<Self, DecodeError>> {
                Some(match number {
                    $($number => <$body>::decode(body).map(Command::$variant),)*
                    _ => return None,
                })
            }

            /// The message type of a command's body.
            pub(crate) fn body_type(number: u32) -> Option<&'static str> {
                match number { $($number => Some(stringify!($body)),)* _ => None }
            }

            fn body_len(&self) -> usize {
                match self { $(Command::$variant(body) => body.encoded_len(),)* }
            }

            fn encode_body(&self, buf: &mut impl BufMut) {
                match self { $(Command::$variant(body) => body.encode_raw(buf),)* }
            }
        }
    };
}

commands! {
    2 Connect CommandConnect "CONNECT",
    3 Connected CommandConnected "CONNECTED",
    4 Subscribe CommandSubscribe "SUBSCRIBE",
    5 Producer CommandProducer "PRODUCER",
    6 Send CommandSend "SEND",
    7 SendReceipt CommandSendReceipt "SEND_RECEIPT",
    8 SendError CommandSendError "SEND_ERROR",
    9 Message CommandMessage "MESSAGE",
    10 Ack CommandAck "ACK",
    11 Flow CommandFlow "FLOW",
    12 Unsubscribe CommandUnsubscribe "UNSUBSCRIBE",
    13 Success CommandSuccess "SUCCESS",
    14 Error CommandError "ERROR",
    15 CloseProducer CommandCloseProducer "CLOSE_PRODUCER",
    16 CloseConsumer CommandCloseConsumer "CLOSE_CONSUMER",
    17 ProducerSuccess CommandProducerSuccess "PRODUCER_SUCCESS",
    18 Ping CommandPing "PING",
    19 Pong CommandPong "PONG",
    20 RedeliverUnacknowledgedMessages CommandRedeliverUnacknowledgedMessages "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    21 PartitionedMetadata CommandPartitionedTopicMetadata "PARTITIONED_METADATA",
    22 PartitionedMetadataResponse CommandPartitionedTopicMetadataResponse "PARTITIONED_METADATA_RESPONSE",
    23 Lookup CommandLookupTopic "LOOKUP",
    24 LookupResponse CommandLookupTopicResponse "LOOKUP_RESPONSE",
    25 ConsumerStats CommandConsumerStats "CONSUMER_STATS",
    26 ConsumerStatsResponse CommandConsumerStatsResponse "CONSUMER_STATS_RESPONSE",
    27 ReachedEndOfTopic CommandReachedEndOfTopic "REACHED_END_OF_TOPIC",
    28 Seek CommandSeek "SEEK",
    29 GetLastMessageId CommandGetLastMessageId "GET_LAST_MESSAGE_ID",
    30 GetLastMessageIdResponse CommandGetLastMessageIdResponse "GET_LAST_MESSAGE_ID_RESPONSE",
    31 ActiveConsumerChange CommandActiveConsumerChange "ACTIVE_CONSUMER_CHANGE",
    32 GetTopicsOfNamespace CommandGetTopicsOfNamespace "GET_TOPICS_OF_NAMESPACE",
    33 GetTopicsOfNamespaceResponse CommandGetTopicsOfNamespaceResponse "GET_TOPICS_OF_NAMESPACE_RESPONSE",
    34 GetSchema CommandGetSchema "GET_SCHEMA",
    35 GetSchemaResponse CommandGetSchemaResponse "GET_SCHEMA_RESPONSE",
    36 AuthChallenge CommandAuthChallenge "AUTH_CHALLENGE",
    37 AuthResponse CommandAuthResponse "AUTH_RESPONSE",
    38 AckResponse CommandAckResponse "ACK_RESPONSE",
    39 GetOrCreateSchema CommandGetOrCreateSchema "GET_OR_CREATE_SCHEMA",
    40 GetOrCreateSchemaResponse CommandGetOrCreateSchemaResponse "GET_OR_CREATE_SCHEMA_RESPONSE",
    50 NewTxn CommandNewTxn "NEW_TXN",
    51 NewTxnResponse CommandNewTxnResponse "NEW_TXN_RESPONSE",
    52 AddPartitionToTxn CommandAddPartitionToTxn "ADD_PARTITION_TO_TXN",
    53 AddPartitionToTxnResponse CommandAddPartitionToTxnResponse "ADD_PARTITION_TO_TXN_RESPONSE",
    54 AddSubscriptionToTxn CommandAddSubscriptionToTxn "ADD_SUBSCRIPTION_TO_TXN",
    55 AddSubscriptionToTxnResponse CommandAddSubscriptionToTxnResponse "ADD_SUBSCRIPTION_TO_TXN_RESPONSE",
    56 EndTxn CommandEndTxn "END_TXN",
    57 EndTxnResponse CommandEndTxnResponse "END_TXN_RESPONSE",
    58 EndTxnOnPartition CommandEndTxnOnPartition "END_TXN_ON_PARTITION",
    59 EndTxnOnPartitionResponse CommandEndTxnOnPartitionResponse "END_TXN_ON_PARTITION_RESPONSE",
    60 EndTxnOnSubscription CommandEndTxnOnSubscription "END_TXN_ON_SUBSCRIPTION",
    61 EndTxnOnSubscriptionResponse CommandEndTxnOnSubscriptionResponse "END_TXN_ON_SUBSCRIPTION_RESPONSE",
    62 TcClientConnectRequest CommandTcClientConnectRequest "TC_CLIENT_CONNECT_REQUEST",
    63 TcClientConnectResponse CommandTcClientConnectResponse "TC_CLIENT_CONNECT_RESPONSE",
    64 WatchTopicList CommandWatchTopicList "WATCH_TOPIC_LIST",
    65 WatchTopicListSuccess CommandWatchTopicListSuccess "WATCH_TOPIC_LIST_SUCCESS",
    66 WatchTopicUpdate CommandWatchTopicUpdate "WATCH_TOPIC_UPDATE",
    67 WatchTopicListClose CommandWatchTopicListClose "WATCH_TOPIC_LIST_CLOSE",
    68 TopicMigrated CommandTopicMigrated "TOPIC_MIGRATED",
    70 ScalableTopicLookup CommandScalableTopicLookup "SCALABLE_TOPIC_LOOKUP",
    71 ScalableTopicUpdate CommandScalableTopicUpdate "SCALABLE_TOPIC_UPDATE",
    72 ScalableTopicClose CommandScalableTopicClose "SCALABLE_TOPIC_CLOSE",
    73 ScalableTopicSubscribe CommandScalableTopicSubscribe "SCALABLE_TOPIC_SUBSCRIBE",
    74 ScalableTopicSubscribeResponse CommandScalableTopicSubscribeResponse "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE",
    75 ScalableTopicAssignmentUpdate CommandScalableTopicAssignmentUpdate "SCALABLE_TOPIC_ASSIGNMENT_UPDATE",
    76 WatchScalableTopics CommandWatchScalableTopics "WATCH_SCALABLE_TOPICS",
    77 WatchScalableTopicsUpdate CommandWatchScalableTopicsUpdate "WATCH_SCALABLE_TOPICS_UPDATE",
    78 WatchScalableTopicsClose CommandWatchScalableTopicsClose "WATCH_SCALABLE_TOPICS_CLOSE",
    79 WatchTcAssignments CommandWatchTcAssignments "WATCH_TC_ASSIGNMENTS",
    80 WatchTcAssignmentsUpdate CommandWatchTcAssignmentsUpdate "WATCH_TC_ASSIGNMENTS_UPDATE",
    81 WatchTcAssignmentsClose CommandWatchTcAssignmentsClose "WATCH_TC_ASSIGNMENTS_CLOSE",
    82 ScalableTopicUnsubscribe CommandScalableTopicUnsubscribe "SCALABLE_TOPIC_UNSUBSCRIBE",
}

/// Two fields that no message of the protocol has: number 1900, a varint, and 1901, a string.
const UNKNOWN_FIELDS: &[u8] = b"\xe0\x76\x01\xea\x76\x05later";

/// The field number of `BaseCommand.type`.
pub(crate) const TYPE_FIELD: u32 = 1;

impl Command {
    /// The length in bytes of this command as an encoded `BaseCommand`.
    pub fn encoded_len(&self) -> usize {
        self.len_with(&[])
    }

    /// Appends this command as an encoded `BaseCommand`.
    pub fn encode(&self, buf: &mut impl BufMut) {
        self.encode_with(&[], buf);
    }

    /// The length in bytes of what [`Command::encode_with_unknown_fields`] appends.
    pub fn encoded_len_with_unknown_fields(&self) -> usize {
        self.len_with(UNKNOWN_FIELDS)
    }

    /// Appends this command as a later release might send it: with optional fields, in the envelope and in the body,
    /// that this release does not know (stability §4.1).
    pub fn encode_with_unknown_fields(&self, buf: &mut impl BufMut) {
        self.encode_with(UNKNOWN_FIELDS, buf);
    }

    fn len_with(&self, more: &[u8]) -> usize {
        let (number, body) = (u64::from(self.number()), self.body_len() + more.len());
        encoding::key_len(TYPE_FIELD)
            + encoding::encoded_len_varint(number)
            + encoding::key_len(self.number())
            + encoding::encoded_len_varint(body as u64)
            + body
            + more.len()
    }

    /// Encodes with more fields behind those of the body, and the same behind those of the envelope.
    fn encode_with(&self, more: &[u8], buf: &mut impl BufMut) {
        encoding::encode_key(TYPE_FIELD, encoding::WireType::Varint, buf);
        encoding::encode_varint(u64::from(self.number()), buf);
        encoding::encode_key(self.number(), encoding::WireType::LengthDelimited, buf);
        encoding::encode_varint((self.body_len() + more.len()) as u64, buf);
        self.encode_body(buf);
        buf.put_slice(more);
        buf.put_slice(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree_with_the_protocol() {
        let mut count = 0;
        for number in 0..256 {
            let name = base_command::Type::try_from(number as i32).ok().map(|t| t.as_str_name());
            assert_eq!(Command::name_of(number), name);
            assert_eq!(name.and_then(Command::number_of), name.map(|_| number));
            assert_eq!(Command::body_type(number).is_some(), name.is_some());
            count += usize::from(name.is_some());
        }
        assert_eq!(count, 71);
    }

    #[test]
    fn a_command_is_small_enough_to_be_moved() {
        assert!(size_of::<Command>() <= 512, "{} bytes", size_of::<Command>());
    }
}
