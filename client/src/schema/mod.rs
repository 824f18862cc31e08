//! Schemas (data-model §6): how values become payloads and back, and what the broker is told about it.
//!
//! A topic has one schema, however it is laid out: the same description goes along wherever the client attaches.
//!
//! | Module | Schemas |
//! |---|---|
//! | `primitive` | bytes, text, numbers |
//! | `time` | dates and times |
//! | `key_value` | pairs, in the payload or with one half as the message's key |
//! | `record` | JSON and Avro records |
//! | `definition` | describes records |
//! | `auto` | whatever the topic has |
//! | `writers` | asks the broker for the schemas that messages were written with |

mod auto;
mod definition;
mod key_value;
mod primitive;
mod record;
mod time;
mod writers;

use std::sync::Arc;

use bytes::Bytes;
use stc_proto::pulsar::Schema as WireSchema;

pub use auto::{AutoConsumeSchema, GenericValue};
pub use definition::{FieldType, RecordDefinition};
pub use key_value::{KeyValueEncoding, KeyValueSchema};
pub use primitive::{
    BoolSchema, BytesSchema, DoubleSchema, FloatSchema, Int8Schema, Int16Schema, Int32Schema, Int64Schema,
    StringSchema,
};
pub use record::{AvroSchema, JsonSchema};
pub use time::{
    DateSchema, InstantSchema, LocalDate, LocalDateSchema, LocalDateTimeSchema, LocalTime, LocalTimeSchema,
    TimeSchema, TimestampSchema,
};
pub(crate) use writers::Writers;

use crate::core::error::{Category, Error};
pub use crate::core::schema_info::SchemaInfo;

/// Turns values into payloads and back (data-model §6).
pub trait Schema<T>: Send + Sync + 'static {
    /// What the broker is told; `None` for plain bytes, which every topic takes.
    fn info(&self) -> Option<SchemaInfo>;

    /// A value's payload.
    ///
    /// # Errors
    /// Whatever the schema finds wrong with the value; the send fails with it.
    fn encode(&self, value: &T) -> Result<Bytes, Error>;

    /// The value of a payload.
    ///
    /// # Errors
    /// When the payload is not of this schema.
    fn decode(&self, payload: &Bytes) -> Result<T, Error>;

    /// The part of a value that is published as the message's key, for schemas that have one. `None` leaves the key to
    /// the application.
    ///
    /// # Errors
    /// As for [`Schema::encode`].
    fn encode_key(&self, _value: &T) -> Result<Option<Bytes>, Error> {
        Ok(None)
    }

    /// The value of a message, for schemas to which the payload alone does not say enough.
    ///
    /// # Errors
    /// When the message is not of this schema.
    fn decode_message(&self, encoded: &Encoded<'_>) -> Result<T, Error> {
        self.decode(encoded.payload)
    }

    /// Whether [`Schema::decode_message`] wants to know the schema that a message was written with. A consumer then
    /// asks the broker for it, once for each version.
    fn wants_writer(&self) -> bool {
        false
    }
}

/// A message's encoded value and what belongs to it (data-model §6).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Encoded<'a> {
    /// The payload, uncompressed.
    pub payload: &'a Bytes,
    /// The message's key as bytes.
    pub key: Option<&'a [u8]>,
    /// The schema that it was written with, if the reading schema wants to know and the broker knows.
    pub writer: Option<&'a SchemaInfo>,
}

impl<'a> Encoded<'a> {
    /// A payload by itself.
    pub fn new(payload: &'a Bytes) -> Self {
        Encoded { payload, key: None, writer: None }
    }
}

impl<T, S: Schema<T> + ?Sized> Schema<T> for Arc<S> {
    fn info(&self) -> Option<SchemaInfo> {
        (**self).info()
    }

    fn encode(&self, value: &T) -> Result<Bytes, Error> {
        (**self).encode(value)
    }

    fn decode(&self, payload: &Bytes) -> Result<T, Error> {
        (**self).decode(payload)
    }

    fn encode_key(&self, value: &T) -> Result<Option<Bytes>, Error> {
        (**self).encode_key(value)
    }

    fn decode_message(&self, encoded: &Encoded<'_>) -> Result<T, Error> {
        (**self).decode_message(encoded)
    }

    fn wants_writer(&self) -> bool {
        (**self).wants_writer()
    }
}

pub(crate) fn to_wire(info: SchemaInfo) -> WireSchema {
    info.into_wire()
}

fn mismatch(kind: &str, len: usize) -> Error {
    Error::new(Category::IncompatibleSchema, format!("a payload of {len} bytes is no {kind}"))
}

fn incompatible(why: impl Into<String>) -> Error {
    Error::new(Category::IncompatibleSchema, why)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    pub(super) fn round_trip<T: PartialEq + Debug>(schema: impl Schema<T>, value: T, bytes: &[u8]) {
        assert_eq!(schema.encode(&value).unwrap(), bytes);
        assert_eq!(schema.decode(&Bytes::copy_from_slice(bytes)).unwrap(), value);
    }

    pub(super) fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }
}
