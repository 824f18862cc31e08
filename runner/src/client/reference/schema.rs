//! The schemas of the steps, made of the reference client's own.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value as Json;
use stc_client::{
    AutoConsumeSchema, AvroSchema, BoolSchema, BytesSchema, Category, DoubleSchema, Encoded, Error,
    FloatSchema, GenericValue, Int8Schema, Int16Schema, Int32Schema, Int64Schema, JsonSchema,
    KeyValueEncoding, KeyValueSchema, Schema, SchemaInfo, StringSchema,
};

use crate::client::{SchemaKind, Value};

/// A schema of the steps' values.
pub(super) type StepSchema = Arc<dyn Schema<Value>>;

/// The schema of this kind.
///
/// # Errors
/// `InvalidConfiguration` when a record's definition is none.
pub(super) fn schema(kind: &SchemaKind) -> Result<StepSchema, Error> {
    use Value as V;
    Ok(match kind {
        SchemaKind::Bytes => of(
            BytesSchema,
            |v| match v {
                V::Bytes(bytes) => Some(Bytes::copy_from_slice(bytes)),
                _ => None,
            },
            |bytes| V::Bytes(bytes.to_vec()),
        ),
        SchemaKind::Text => of(
            StringSchema,
            |v| match v {
                V::Text(text) => Some(text.clone()),
                _ => None,
            },
            V::Text,
        ),
        SchemaKind::Bool => of(
            BoolSchema,
            |v| match v {
                V::Bool(value) => Some(*value),
                _ => None,
            },
            V::Bool,
        ),
        SchemaKind::Int8 => of(Int8Schema, |v| whole(v)?.try_into().ok(), |n| V::Int64(n.into())),
        SchemaKind::Int16 => of(Int16Schema, |v| whole(v)?.try_into().ok(), |n| V::Int64(n.into())),
        SchemaKind::Int32 => of(Int32Schema, |v| whole(v)?.try_into().ok(), |n| V::Int64(n.into())),
        SchemaKind::Int64 => of(Int64Schema, whole, V::Int64),
        SchemaKind::Float => of(FloatSchema, |v| real(v).map(|n| n as f32), |n| V::Double(n.into())),
        SchemaKind::Double => of(DoubleSchema, real, V::Double),
        SchemaKind::Json { definition } => of(JsonSchema::<Json>::new(definition)?, record, V::Record),
        SchemaKind::Avro { definition } => of(AvroSchema::<Json>::new(definition)?, record, V::Record),
        SchemaKind::KeyValue { key, value, separated } => {
            let encoding = if *separated { KeyValueEncoding::Separated } else { KeyValueEncoding::Inline };
            of(
                KeyValueSchema::new(schema(key)?, schema(value)?, encoding),
                |v| match v {
                    V::Pair(key, value) => Some(((**key).clone(), (**value).clone())),
                    _ => None,
                },
                |(key, value)| V::Pair(key.into(), value.into()),
            )
        }
        SchemaKind::Auto => of(AutoConsumeSchema, |_| None, generic),
    })
}

fn whole(value: &Value) -> Option<i64> {
    if let Value::Int64(number) = value { Some(*number) } else { None }
}

fn real(value: &Value) -> Option<f64> {
    if let Value::Double(number) = value { Some(*number) } else { None }
}

fn record(value: &Value) -> Option<Json> {
    if let Value::Record(record) = value { Some(record.clone()) } else { None }
}

/// Times and dates are in no schema of the steps.
fn generic(value: GenericValue) -> Value {
    match value {
        GenericValue::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        GenericValue::Text(text) => Value::Text(text),
        GenericValue::Boolean(value) => Value::Bool(value),
        GenericValue::Integer(number) => Value::Int64(number),
        GenericValue::Real(number) => Value::Double(number),
        GenericValue::Record(record) => Value::Record(record),
        GenericValue::KeyValue(key, value) => Value::Pair(generic(*key).into(), generic(*value).into()),
        other => Value::Text(format!("{other:?}")),
    }
}

fn of<S: Schema<T>, T: 'static>(schema: S, to: fn(&Value) -> Option<T>, from: fn(T) -> Value) -> StepSchema {
    Arc::new(Mapped { schema, to, from, values: PhantomData })
}

/// A schema of other values.
struct Mapped<S, T> {
    schema: S,
    to: fn(&Value) -> Option<T>,
    from: fn(T) -> Value,
    values: PhantomData<fn(T) -> T>,
}

impl<S, T> Mapped<S, T> {
    fn own(&self, value: &Value) -> Result<T, Error> {
        (self.to)(value).ok_or_else(|| {
            Error::new(Category::InvalidConfiguration, format!("{value:?} is no value of the schema"))
        })
    }
}

impl<S: Schema<T>, T: 'static> Schema<Value> for Mapped<S, T> {
    fn info(&self) -> Option<SchemaInfo> {
        self.schema.info()
    }

    fn encode(&self, value: &Value) -> Result<Bytes, Error> {
        self.schema.encode(&self.own(value)?)
    }

    fn decode(&self, payload: &Bytes) -> Result<Value, Error> {
        self.schema.decode(payload).map(self.from)
    }

    fn encode_key(&self, value: &Value) -> Result<Option<Bytes>, Error> {
        self.schema.encode_key(&self.own(value)?)
    }

    fn decode_message(&self, encoded: &Encoded<'_>) -> Result<Value, Error> {
        self.schema.decode_message(encoded).map(self.from)
    }

    fn wants_writer(&self) -> bool {
        self.schema.wants_writer()
    }
}
