//! Records as JSON or in Avro's binary form, from and to any serde type.

use std::marker::PhantomData;

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use stc_proto::pulsar::schema::Type;

use super::{Encoded, Schema, SchemaInfo, incompatible, mismatch};
use crate::core::{
    avro::Avro,
    error::{Category, Error},
};

/// Reads a definition and checks that it describes a record.
fn definition(text: impl Into<String>) -> Result<(Bytes, Avro), Error> {
    let invalid = |why: String| Error::new(Category::InvalidConfiguration, why);
    let data = Bytes::from(text.into());
    let avro = Avro::parse(&data).map_err(|error| invalid(error.to_string()))?;
    if !avro.is_record() {
        return Err(invalid("the schema does not describe a record".into()));
    }
    Ok((data, avro))
}

/// Records as JSON text (data-model §6). The definition is what the broker compares; serde writes and reads the
/// records.
pub struct JsonSchema<T> {
    definition: Bytes,
    values: PhantomData<fn(T) -> T>,
}

impl<T> JsonSchema<T> {
    /// A schema with this definition: an Avro record as JSON, or a [`RecordDefinition`](super::RecordDefinition).
    ///
    /// # Errors
    /// `InvalidConfiguration` when the definition is none.
    pub fn new(definition: impl Into<String>) -> Result<Self, Error> {
        let (definition, _) = self::definition(definition)?;
        Ok(JsonSchema { definition, values: PhantomData })
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Schema<T> for JsonSchema<T> {
    fn info(&self) -> Option<SchemaInfo> {
        Some(SchemaInfo { data: self.definition.clone(), ..SchemaInfo::plain("", Type::Json) })
    }

    fn encode(&self, value: &T) -> Result<Bytes, Error> {
        let text = serde_json::to_vec(value);
        text.map(Bytes::from).map_err(|error| incompatible(format!("the value is no JSON: {error}")))
    }

    fn decode(&self, payload: &Bytes) -> Result<T, Error> {
        serde_json::from_slice(payload).map_err(|error| incompatible(format!("not a JSON record: {error}")))
    }
}

/// Records in Avro's binary form (data-model §6).
///
/// A record is read with the definition that it was written with, and its fields find those of `T` by name: mark
/// fields with `#[serde(default)]` that older records lack. Fields of type bytes are anything that serde_json writes
/// as a list of numbers, such as `Vec<u8>`. Infinite numbers are not supported.
pub struct AvroSchema<T> {
    definition: Bytes,
    avro: Avro,
    values: PhantomData<fn(T) -> T>,
}

impl<T> AvroSchema<T> {
    /// A schema with this definition: an Avro record as JSON, or a [`RecordDefinition`](super::RecordDefinition).
    ///
    /// # Errors
    /// `InvalidConfiguration` when the definition is none.
    pub fn new(definition: impl Into<String>) -> Result<Self, Error> {
        let (definition, avro) = self::definition(definition)?;
        Ok(AvroSchema { definition, avro, values: PhantomData })
    }
}

impl<T: DeserializeOwned> AvroSchema<T> {
    fn read(avro: &Avro, payload: &Bytes) -> Result<T, Error> {
        let value = avro.decode(payload);
        let value = value.map_err(|error| {
            incompatible(format!("{}: {error}", mismatch("Avro record", payload.len()).message()))
        })?;
        serde_json::from_value(value).map_err(|error| incompatible(format!("the Avro record: {error}")))
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Schema<T> for AvroSchema<T> {
    fn info(&self) -> Option<SchemaInfo> {
        Some(SchemaInfo { data: self.definition.clone(), ..SchemaInfo::plain("", Type::Avro) })
    }

    fn encode(&self, value: &T) -> Result<Bytes, Error> {
        let value = serde_json::to_value(value);
        let value = value.map_err(|error| incompatible(format!("the value is no record: {error}")))?;
        self.avro.encode(&value).map(Bytes::from).map_err(|error| incompatible(error.to_string()))
    }

    fn decode(&self, payload: &Bytes) -> Result<T, Error> {
        Self::read(&self.avro, payload)
    }

    fn decode_message(&self, encoded: &Encoded<'_>) -> Result<T, Error> {
        match encoded.writer.filter(|writer| writer.kind == Type::Avro && writer.data != self.definition) {
            Some(writer) => {
                let avro = Avro::parse(&writer.data).map_err(|error| incompatible(error.to_string()))?;
                Self::read(&avro, encoded.payload)
            }
            None => self.decode(encoded.payload),
        }
    }

    fn wants_writer(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{
        super::{FieldType, RecordDefinition, tests::round_trip},
        *,
    };

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct User {
        name: String,
        #[serde(default)]
        age: Option<i32>,
    }

    fn old() -> RecordDefinition {
        RecordDefinition::new("User").field("name", FieldType::String)
    }

    fn new() -> RecordDefinition {
        old().optional("age", FieldType::Int)
    }

    fn user() -> User {
        User { name: "Ada".into(), age: Some(36) }
    }

    #[test]
    fn json_records_are_text() {
        let schema = JsonSchema::<User>::new(new()).unwrap();
        round_trip(schema, user(), br#"{"name":"Ada","age":36}"#);
    }

    #[test]
    fn avro_records_are_binary() {
        let schema = AvroSchema::<User>::new(new()).unwrap();
        assert_eq!(schema.info().unwrap().kind, Type::Avro);
        round_trip(schema, user(), b"\x06Ada\x02\x48");
    }

    #[test]
    fn an_avro_record_is_read_as_it_was_written() {
        let schema = AvroSchema::<User>::new(new()).unwrap();
        let (written, payload) = (AvroSchema::<User>::new(old()).unwrap(), Bytes::from_static(b"\x06Ada"));
        assert_eq!(schema.decode(&payload).unwrap_err().category(), Category::IncompatibleSchema);
        let writer = written.info().unwrap();
        let encoded = Encoded { writer: Some(&writer), ..Encoded::new(&payload) };
        assert_eq!(schema.decode_message(&encoded).unwrap(), User { name: "Ada".into(), age: None });
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for definition in ["", "{", r#""string""#, r#"{"type":"record","name":"R"}"#] {
            let error = JsonSchema::<User>::new(definition).err().unwrap();
            assert_eq!(error.category(), Category::InvalidConfiguration, "{definition}");
            assert!(AvroSchema::<User>::new(definition).is_err());
        }
        let schema = JsonSchema::<User>::new(new()).unwrap();
        let error = schema.decode(&Bytes::from_static(b"[]")).unwrap_err();
        assert_eq!(error.category(), Category::IncompatibleSchema);
    }
}
