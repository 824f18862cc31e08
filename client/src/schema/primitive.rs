//! Bytes, text and numbers.

use bytes::Bytes;
use stc_proto::pulsar::schema::Type;

use super::{Schema, SchemaInfo, mismatch};
use crate::core::error::Error;

/// Payloads as they are (data-model §6).
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

/// UTF-8 text (data-model §6).
#[derive(Debug, Clone, Copy, Default)]
pub struct StringSchema;

impl Schema<String> for StringSchema {
    fn info(&self) -> Option<SchemaInfo> {
        Some(SchemaInfo::plain("String", Type::String))
    }

    fn encode(&self, value: &String) -> Result<Bytes, Error> {
        Ok(Bytes::copy_from_slice(value.as_bytes()))
    }

    fn decode(&self, payload: &Bytes) -> Result<String, Error> {
        String::from_utf8(payload.to_vec()).map_err(|_| mismatch("UTF-8 text", payload.len()))
    }
}

/// One byte, 0 or 1 (data-model §6).
#[derive(Debug, Clone, Copy, Default)]
pub struct BoolSchema;

impl Schema<bool> for BoolSchema {
    fn info(&self) -> Option<SchemaInfo> {
        Some(SchemaInfo::plain("Boolean", Type::Bool))
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

macro_rules! numbers {
    ($($(#[$doc:meta])* $schema:ident $type:ty, $name:literal $kind:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $schema;

        impl Schema<$type> for $schema {
            fn info(&self) -> Option<SchemaInfo> {
                Some(SchemaInfo::plain($name, Type::$kind))
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
    use super::{super::tests::round_trip, *};
    use crate::core::error::Category;

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
