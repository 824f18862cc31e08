//! Schemas (data-model §6): how values become payloads, and what the broker is told about it.
//!
//! Bytes, strings and the primitive types; key/value and record schemas are not offered yet.

use std::sync::Arc;

use bytes::Bytes;
use stc_proto::pulsar::{KeyValue, Schema as WireSchema, schema::Type};

use crate::core::error::{Category, Error};

/// What the broker is told about a schema; it checks that all schemas of a topic are compatible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaInfo {
    /// The schema's name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Its definition, empty for primitive types.
    pub data: Bytes,
    /// String pairs that belong to it.
    pub properties: Vec<(String, String)>,
}

/// Turns values into payloads and back.
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
}

pub(crate) fn to_wire(info: SchemaInfo) -> WireSchema {
    WireSchema {
        name: info.name,
        schema_data: info.data,
        r#type: info.kind as i32,
        properties: info.properties.into_iter().map(|(key, value)| KeyValue { key, value }).collect(),
    }
}

fn mismatch(kind: &str, len: usize) -> Error {
    Error::new(Category::IncompatibleSchema, format!("a payload of {len} bytes is no {kind}"))
}

/// Payloads as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct BytesSchema;

impl Schema<Bytes> for BytesSchema {
    fn info(&self) -> Option<SchemaInfo> {
        None
    }

    fn encode(&self, value: &Bytes) -> Result<Bytes, Error> {
        Ok(value.clone())
    }

    fn decode(&self, payload: &Bytes) -> Result<Bytes, Error> {
        Ok(payload.clone())
    }
}

/// UTF-8 text.
#[derive(Debug, Clone, Copy, Default)]
pub struct StringSchema;

impl Schema<String> for StringSchema {
    fn info(&self) -> Option<SchemaInfo> {
        Some(primitive("String", Type::String))
    }

    fn encode(&self, value: &String) -> Result<Bytes, Error> {
        Ok(Bytes::copy_from_slice(value.as_bytes()))
    }

    fn decode(&self, payload: &Bytes) -> Result<String, Error> {
        String::from_utf8(payload.to_vec()).map_err(|_| mismatch("UTF-8 text", payload.len()))
    }
}

/// One byte, 0 or 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct BoolSchema;

impl Schema<bool> for BoolSchema {
    fn info(&self) -> Option<SchemaInfo> {
        Some(primitive("Boolean", Type::Bool))
    }

    fn encode(&self, value: &bool) -> Result<Bytes, Error> {
        Ok(Bytes::copy_from_slice(&[u8::from(*value)]))
    }

    fn decode(&self, payload: &Bytes) -> Result<bool, Error> {
        match payload[..] {
            [byte] => Ok(byte != 0),
            _ => Err(mismatch("boolean", payload.len())),
        }
    }
}

fn primitive(name: &str, kind: Type) -> SchemaInfo {
    SchemaInfo { name: name.into(), kind, data: Bytes::new(), properties: Vec::new() }
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $schema:ident $type:ty, $name:literal $kind:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $schema;

        impl Schema<$type> for $schema {
            fn info(&self) -> Option<SchemaInfo> {
                Some(primitive($name, Type::$kind))
            }

            fn encode(&self, value: &$type) -> Result<Bytes, Error> {
                Ok(Bytes::copy_from_slice(&value.to_be_bytes()))
            }

            fn decode(&self, payload: &Bytes) -> Result<$type, Error> {
                let bytes = payload[..].try_into().map_err(|_| mismatch($name, payload.len()))?;
                Ok(<$type>::from_be_bytes(bytes))
            }
        }
    )*};
}

numbers! {
    /// One byte, signed.
    Int8Schema i8, "INT8" Int8;
    /// Two bytes, signed, big-endian.
    Int16Schema i16, "INT16" Int16;
    /// Four bytes, signed, big-endian.
    Int32Schema i32, "INT32" Int32;
    /// Eight bytes, signed, big-endian.
    Int64Schema i64, "INT64" Int64;
    /// Four bytes, IEEE 754, big-endian.
    FloatSchema f32, "Float" Float;
    /// Eight bytes, IEEE 754, big-endian.
    DoubleSchema f64, "Double" Double;
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn round_trip<T: PartialEq + Debug>(schema: impl Schema<T>, value: T, bytes: &[u8]) {
        assert_eq!(schema.encode(&value).unwrap(), bytes);
        assert_eq!(schema.decode(&Bytes::copy_from_slice(bytes)).unwrap(), value);
    }

    #[test]
    fn primitives_are_big_endian() {
        round_trip(Int8Schema, -2, &[0xfe]);
        round_trip(Int16Schema, 258, &[1, 2]);
        round_trip(Int32Schema, -1, &[255; 4]);
        round_trip(Int64Schema, 1, &[0, 0, 0, 0, 0, 0, 0, 1]);
        round_trip(FloatSchema, 1.0, &[0x3f, 0x80, 0, 0]);
        round_trip(DoubleSchema, 1.0, &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
        round_trip(BoolSchema, true, &[1]);
        round_trip(StringSchema, "é".to_owned(), "é".as_bytes());
        round_trip(BytesSchema, Bytes::from_static(b"\0\xff"), b"\0\xff");
    }

    #[test]
    fn a_payload_of_another_schema_is_an_error() {
        let payload = Bytes::from_static(b"\xff\xff\xff");
        for error in [
            Int32Schema.decode(&payload).unwrap_err(),
            StringSchema.decode(&payload).unwrap_err(),
            BoolSchema.decode(&payload).unwrap_err(),
        ] {
            assert_eq!(error.category(), Category::IncompatibleSchema);
        }
    }
}
