//! Messages, their values and their identifiers.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::encoding::{Base64, Pairs};
use crate::handle::TransactionId;

/// A message identifier. `bytes` is its serialized form, which is opaque; two ids of one message are equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MessageId {
    /// The SDK's own serialized form.
    #[serde(with = "Base64")]
    pub bytes: Vec<u8>,
}

/// A captured position of a checkpoint consumer, in the SDK's own serialized form, which is opaque.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Checkpoint {
    /// The serialized form.
    #[serde(with = "Base64")]
    pub bytes: Vec<u8>,
}

/// How an SDK orders two identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// The first is before the second.
    Before,
    /// They are the same place.
    Same,
    /// The first is after the second.
    After,
}

impl From<Ordering> for Order {
    fn from(ordering: Ordering) -> Order {
        match ordering {
            Ordering::Less => Order::Before,
            Ordering::Equal => Order::Same,
            Ordering::Greater => Order::After,
        }
    }
}

impl From<Order> for Ordering {
    fn from(order: Order) -> Ordering {
        match order {
            Order::Before => Ordering::Less,
            Order::Same => Ordering::Equal,
            Order::After => Ordering::Greater,
        }
    }
}

/// Schemas that steps use (data-model §6).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum SchemaKind {
    /// Bytes as they are.
    Bytes,
    /// UTF-8 text.
    #[default]
    Text,
    /// True or false.
    Bool,
    /// 8-bit integers.
    Int8,
    /// 16-bit integers.
    Int16,
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// 32-bit floating point.
    Float,
    /// 64-bit floating point.
    Double,
    /// Records as JSON text.
    Json {
        /// The record's definition, in Avro's JSON form.
        definition: String,
    },
    /// Records in Avro's binary form.
    Avro {
        /// The record's definition, in Avro's JSON form.
        definition: String,
    },
    /// Pairs.
    KeyValue {
        /// Of the first half.
        key: Box<SchemaKind>,
        /// Of the second half.
        value: Box<SchemaKind>,
        /// Whether the first half is the message's key; both are in the payload otherwise.
        separated: bool,
    },
    /// Whatever each message was written with. For consumers.
    Auto,
}

/// A value of one of the schemas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Value {
    /// Of [`SchemaKind::Bytes`].
    Bytes(#[serde(with = "Base64")] Vec<u8>),
    /// Of [`SchemaKind::Text`].
    Text(String),
    /// Of [`SchemaKind::Bool`].
    Bool(bool),
    /// A whole number, of any of the integer schemas.
    Int64(i64),
    /// Of [`SchemaKind::Float`] and [`SchemaKind::Double`].
    Double(f64),
    /// A record, of [`SchemaKind::Json`] and [`SchemaKind::Avro`].
    Record(serde_json::Value),
    /// Of [`SchemaKind::KeyValue`].
    Pair(Box<Value>, Box<Value>),
}

impl Default for Value {
    fn default() -> Self {
        Value::Text(String::new())
    }
}

/// A message to send (client-api §3.2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)] // the names are the specification's
pub struct Outgoing {
    pub value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "Pairs")]
    pub properties: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_time_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicate_to: Vec<String>,
    /// The transaction that it is published in; only clients with transactions are asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<TransactionId>,
}

/// How far a transaction is (client-api §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // the names say it
pub enum TransactionState {
    Open,
    Committing,
    Aborting,
    Committed,
    Aborted,
    Error,
    TimedOut,
}

/// A received message (data-model §3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)] // the names are the specification's
pub struct Received {
    /// Names the message when it is acknowledged; unique for the consumer.
    pub handle: u64,
    pub id: MessageId,
    pub value: Value,
    #[serde(with = "Base64")]
    pub payload: Vec<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "Pairs")]
    pub properties: Vec<(String, String)>,
    pub publish_time_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_time_ms: Option<u64>,
    pub sequence_id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer_name: Option<String>,
    pub topic: String,
    pub redelivery_count: u32,
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicated_from: Option<String>,
}

impl Received {
    /// The payload as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }
}
