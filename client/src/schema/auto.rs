//! Reads whatever the topic has: each message by the schema that it was written with.

use std::time::SystemTime;

use bytes::Bytes;
use stc_proto::pulsar::schema::Type;

use super::{
    BoolSchema, DateSchema, DoubleSchema, Encoded, FloatSchema, InstantSchema, Int8Schema, Int16Schema,
    Int32Schema, Int64Schema, LocalDate, LocalDateSchema, LocalDateTimeSchema, LocalTime, LocalTimeSchema,
    Schema, SchemaInfo, StringSchema, TimeSchema, TimestampSchema, incompatible,
    key_value::{encoded_halves, halves},
};
use crate::core::{
    avro::Avro,
    error::{Category, Error},
};

/// A value of a schema that is known at run time only (data-model §6).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum GenericValue {
    /// Written without a schema, or by one that this client does not know.
    Bytes(Bytes),
    /// Text.
    Text(String),
    /// True or false.
    Boolean(bool),
    /// A whole number of any width.
    Integer(i64),
    /// A number with a fraction, of either width.
    Real(f64),
    /// A point in time: a date, time, timestamp or instant.
    Moment(SystemTime),
    /// A day.
    LocalDate(LocalDate),
    /// A time of day.
    LocalTime(LocalTime),
    /// A day and a time of day.
    LocalDateTime(LocalDate, LocalTime),
    /// A record, from JSON or Avro. Avro's bytes are a list of numbers in it.
    Record(serde_json::Value),
    /// A pair.
    KeyValue(Box<GenericValue>, Box<GenericValue>),
}

/// For consumers that take whatever the topic has: asks the broker for the schema of each message (data-model §6).
#[derive(Debug, Clone, Copy, Default)]
pub struct AutoConsumeSchema;

impl Schema<GenericValue> for AutoConsumeSchema {
    /// None: it goes with every schema that the topic can have.
    fn info(&self) -> Option<SchemaInfo> {
        None
    }

    /// Always fails: a producer has to know what it writes.
    fn encode(&self, _: &GenericValue) -> Result<Bytes, Error> {
        Err(Error::new(Category::InvalidConfiguration, "this schema is for consumers only"))
    }

    fn decode(&self, payload: &Bytes) -> Result<GenericValue, Error> {
        Ok(GenericValue::Bytes(payload.clone()))
    }

    fn decode_message(&self, encoded: &Encoded<'_>) -> Result<GenericValue, Error> {
        match encoded.writer {
            Some(writer) => decode(writer, encoded, true),
            None => self.decode(encoded.payload),
        }
    }

    fn wants_writer(&self) -> bool {
        true
    }
}

fn decode(writer: &SchemaInfo, encoded: &Encoded<'_>, outermost: bool) -> Result<GenericValue, Error> {
    use GenericValue as G;
    let payload = encoded.payload;
    Ok(match writer.kind {
        Type::String => G::Text(StringSchema.decode(payload)?),
        Type::Bool => G::Boolean(BoolSchema.decode(payload)?),
        Type::Int8 => G::Integer(Int8Schema.decode(payload)?.into()),
        Type::Int16 => G::Integer(Int16Schema.decode(payload)?.into()),
        Type::Int32 => G::Integer(Int32Schema.decode(payload)?.into()),
        Type::Int64 => G::Integer(Int64Schema.decode(payload)?),
        Type::Float => G::Real(FloatSchema.decode(payload)?.into()),
        Type::Double => G::Real(DoubleSchema.decode(payload)?),
        Type::Date => G::Moment(DateSchema.decode(payload)?),
        Type::Time => G::Moment(TimeSchema.decode(payload)?),
        Type::Timestamp => G::Moment(TimestampSchema.decode(payload)?),
        Type::Instant => G::Moment(InstantSchema.decode(payload)?),
        Type::LocalDate => G::LocalDate(LocalDateSchema.decode(payload)?),
        Type::LocalTime => G::LocalTime(LocalTimeSchema.decode(payload)?),
        Type::LocalDateTime => {
            let (date, time) = LocalDateTimeSchema.decode(payload)?;
            G::LocalDateTime(date, time)
        }
        Type::Json => {
            let value = serde_json::from_slice(payload);
            G::Record(value.map_err(|error| incompatible(format!("not a JSON record: {error}")))?)
        }
        Type::Avro => {
            let value = Avro::parse(&writer.data).and_then(|avro| avro.decode(payload));
            G::Record(value.map_err(|error| incompatible(format!("not an Avro record: {error}")))?)
        }
        Type::KeyValue if outermost => {
            let (key_writer, value_writer, encoding) = halves(writer)?;
            let (key, value) = encoded_halves(encoded, encoding)?;
            let key = decode(&key_writer, &Encoded::new(&key), false)?;
            let value = decode(&value_writer, &Encoded::new(&value), false)?;
            G::KeyValue(Box::new(key), Box::new(value))
        }
        // Protobuf among them: describing one at run time takes its compiler.
        Type::None
        | Type::KeyValue
        | Type::Protobuf
        | Type::ProtobufNative
        | Type::AutoConsume
        | Type::External => G::Bytes(payload.clone()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{AvroSchema, FieldType, JsonSchema, KeyValueEncoding, KeyValueSchema, RecordDefinition},
        *,
    };

    fn read<T>(schema: impl Schema<T>, value: T) -> GenericValue {
        let (payload, key) = (schema.encode(&value).unwrap(), schema.encode_key(&value).unwrap());
        let writer = schema.info();
        let encoded = Encoded { payload: &payload, key: key.as_deref(), writer: writer.as_ref() };
        AutoConsumeSchema.decode_message(&encoded).unwrap()
    }

    #[test]
    fn each_message_is_read_by_its_own_schema() {
        use GenericValue as G;
        assert_eq!(read(StringSchema, "a".to_owned()), G::Text("a".into()));
        assert_eq!(read(BoolSchema, true), G::Boolean(true));
        assert_eq!(read(Int8Schema, -1), G::Integer(-1));
        assert_eq!(read(FloatSchema, 0.5), G::Real(0.5));
        assert_eq!(read(InstantSchema, SystemTime::UNIX_EPOCH), G::Moment(SystemTime::UNIX_EPOCH));
        let record = RecordDefinition::new("R").field("x", FieldType::Int);
        let value = json!({"x": 3});
        let avro = || AvroSchema::new(record.clone()).unwrap();
        assert_eq!(read(avro(), value.clone()), G::Record(value.clone()));
        assert_eq!(read(JsonSchema::new(record.clone()).unwrap(), value.clone()), G::Record(value.clone()));
        for encoding in [KeyValueEncoding::Inline, KeyValueEncoding::Separated] {
            let pair = G::KeyValue(Box::new(G::Integer(9)), Box::new(G::Record(value.clone())));
            assert_eq!(read(KeyValueSchema::new(Int64Schema, avro(), encoding), (9, value.clone())), pair);
        }
    }

    #[test]
    fn without_a_schema_there_are_bytes() {
        let payload = Bytes::from_static(b"x");
        let value = AutoConsumeSchema.decode_message(&Encoded::new(&payload)).unwrap();
        assert_eq!(value, GenericValue::Bytes(payload.clone()));
        let error = AutoConsumeSchema.encode(&value).unwrap_err();
        assert_eq!(error.category(), Category::InvalidConfiguration);
    }

    #[test]
    fn a_payload_that_is_not_what_its_schema_says_is_an_error() {
        let payload = Bytes::from_static(b"123");
        for kind in [Type::Int32, Type::Avro, Type::KeyValue] {
            let writer = SchemaInfo::plain("", kind);
            let encoded = Encoded { writer: Some(&writer), ..Encoded::new(&payload) };
            let error = AutoConsumeSchema.decode_message(&encoded).unwrap_err();
            assert_eq!(error.category(), Category::IncompatibleSchema, "{kind:?}");
        }
    }
}
