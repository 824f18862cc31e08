//! A topic's schemas, and which of them may follow which.

mod record;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use stc_proto::pulsar::{Schema, ServerError, schema::Type};

use super::{config::SchemaCompatibility, error::TopicError};

/// The schemas of a topic. A version is an index into the list, on the wire as 8 bytes, big-endian.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    versions: Vec<Schema>,
}

/// The schemas that the segments of a scalable topic, or the partitions of a classic one, have in common (data-model §6).
#[derive(Debug, Clone, Default)]
pub struct SharedSchemas(Arc<Mutex<Schemas>>);

impl SharedSchemas {
    pub(super) fn lock(&self) -> MutexGuard<'_, Schemas> {
        // Nothing that holds the lock can leave the list half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets them, for all that have them.
    pub fn clear(&self) {
        self.lock().versions.clear();
    }

    /// Whether no stored topic has these schemas any more, and this is the last handle.
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// A schema that says something: bytes (`None`) and "whatever the topic has" (`AutoConsume`) are no schema.
pub(super) fn declared(schema: Option<&Schema>) -> Option<&Schema> {
    schema.filter(|schema| !matches!(schema.r#type(), Type::None | Type::AutoConsume))
}

impl Schemas {
    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// The version of this schema, which becomes the latest one when it is new and `rule` allows it.
    pub(super) fn register(
        &mut self,
        schema: &Schema,
        rule: SchemaCompatibility,
    ) -> Result<Bytes, TopicError> {
        if let Some(version) = self.versions.iter().rposition(|known| same(known, schema)) {
            return Ok(encode(version));
        }
        if let Some(latest) = self.versions.last() {
            check(latest, schema, rule)?;
        }
        self.versions.push(schema.clone());
        Ok(encode(self.versions.len() - 1))
    }

    /// Whether a consumer with this schema can read the topic: its schema has to read what the latest one writes.
    pub(super) fn check_consumer(&self, schema: &Schema) -> Result<(), TopicError> {
        if self.versions.iter().any(|known| same(known, schema)) {
            return Ok(());
        }
        match self.versions.last() {
            Some(latest) => check(latest, schema, SchemaCompatibility::Backward),
            None => Err(incompatible("Topic does not have schema to check")),
        }
    }

    /// A schema and its version: the latest one, or the one that a client names.
    pub(super) fn get(&self, version: Option<&[u8]>) -> Option<(&Schema, Bytes)> {
        let index = match version {
            Some(bytes) => usize::try_from(u64::from_be_bytes(bytes.try_into().ok()?)).ok()?,
            None => self.versions.len().checked_sub(1)?,
        };
        Some((self.versions.get(index)?, encode(index)))
    }
}

fn encode(version: usize) -> Bytes {
    Bytes::copy_from_slice(&(version as u64).to_be_bytes())
}

fn same(a: &Schema, b: &Schema) -> bool {
    a.r#type == b.r#type && a.schema_data == b.schema_data
}

fn check(latest: &Schema, new: &Schema, rule: SchemaCompatibility) -> Result<(), TopicError> {
    use SchemaCompatibility::*;
    let (old_type, new_type) = (latest.r#type(), new.r#type());
    if rule == AlwaysCompatible {
        return Ok(());
    }
    if rule == AlwaysIncompatible || old_type != new_type {
        let (old, new) = (upper(old_type), upper(new_type));
        let text = format!("Incompatible schema: exists schema type {old}, new schema type {new}");
        // The cause has the same text.
        return Err(incompatible(format!("{text} caused by {}", incompatible(&*text).message)));
    }
    // Pulsar describes these three as Avro records; the others have no structure that is compared.
    if !matches!(new_type, Type::Json | Type::Avro | Type::Protobuf) {
        return Ok(());
    }
    let result = record::Definition::parse(&latest.schema_data).and_then(|old| {
        let new = record::Definition::parse(&new.schema_data)?;
        if matches!(rule, Backward | Full) {
            record::can_read(&new, &old)?;
        }
        if matches!(rule, Forward | Full) {
            record::can_read(&old, &new)?;
        }
        Ok(())
    });
    result.map_err(|reason| incompatible(format!("Unable to read schema: {reason}")))
}

fn upper(kind: Type) -> String {
    kind.as_str_name().to_uppercase()
}

pub(super) fn incompatible(message: impl Into<String>) -> TopicError {
    let message = message.into();
    let exception = "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException";
    TopicError::new(ServerError::IncompatibleSchema, format!("{exception}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(kind: Type, data: &str) -> Schema {
        Schema {
            name: "s".into(),
            r#type: kind as i32,
            schema_data: data.to_owned().into(),
            properties: vec![],
        }
    }

    fn record(fields: &str) -> Schema {
        schema(Type::Avro, &format!(r#"{{"type":"record","name":"R","fields":[{fields}]}}"#))
    }

    const A: &str = r#"{"name":"a","type":"string"}"#;
    const B: &str = r#"{"name":"b","type":"int"}"#;
    const B_DEFAULT: &str = r#"{"name":"b","type":["null","int"],"default":null}"#;

    #[test]
    fn versions_count_up_and_are_found_again() {
        let mut schemas = Schemas::default();
        let rule = SchemaCompatibility::Full;
        assert_eq!(&schemas.register(&record(A), rule).unwrap()[..], [0; 8]);
        let v1 = schemas.register(&record(&format!("{A},{B_DEFAULT}")), rule).unwrap();
        assert_eq!(&v1[..], [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(&schemas.register(&record(A), rule).unwrap()[..], [0; 8]);
        assert_eq!(schemas.get(None).unwrap().1, v1);
        assert_eq!(schemas.get(Some(&[0; 8])).unwrap().0, &record(A));
        assert!(schemas.get(Some(&[9; 8])).is_none());
        assert!(schemas.get(Some(b"short")).is_none());
    }

    #[test]
    fn types_do_not_mix() {
        let mut schemas = Schemas::default();
        let rule = SchemaCompatibility::Full;
        schemas.register(&schema(Type::String, ""), rule).unwrap();
        let error = schemas.register(&schema(Type::Json, "{}"), rule).unwrap_err();
        assert_eq!(error.code, ServerError::IncompatibleSchema);
        assert!(error.message.ends_with("exists schema type STRING, new schema type JSON"), "{error}");
        assert!(schemas.check_consumer(&schema(Type::Json, "{}")).is_err());
        assert!(schemas.check_consumer(&schema(Type::String, "")).is_ok());
    }

    #[test]
    fn a_field_without_default_goes_one_way_only() {
        use SchemaCompatibility::*;
        let (small, large) = (record(A), record(&format!("{A},{B}")));
        for (rule, ok) in [(Backward, false), (Forward, true), (Full, false), (AlwaysCompatible, true)] {
            let mut schemas = Schemas::default();
            schemas.register(&small, rule).unwrap();
            assert_eq!(schemas.register(&large, rule).is_ok(), ok, "{rule:?}");
        }
        let mut schemas = Schemas::default();
        schemas.register(&large, Full).unwrap();
        // A consumer may read with fewer fields, but not with more.
        assert!(schemas.check_consumer(&small).is_ok());
        assert!(schemas.check_consumer(&record(&format!(r#"{A},{B},{{"name":"c","type":"int"}}"#))).is_err());
    }
}
