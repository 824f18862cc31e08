//! Describes records for JSON and Avro schemas without writing their definition as text.

use serde_json::{Value, json};

/// The type of a record's field (data-model §6).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FieldType {
    /// True or false.
    Boolean,
    /// 32 bits, signed.
    Int,
    /// 64 bits, signed.
    Long,
    /// IEEE 754, 32 bits.
    Float,
    /// IEEE 754, 64 bits.
    Double,
    /// Bytes.
    Bytes,
    /// Text.
    String,
    /// A list.
    Array(Box<FieldType>),
    /// Values by text.
    Map(Box<FieldType>),
    /// One of some names.
    Enum {
        /// The type's name.
        name: String,
        /// The names.
        symbols: Vec<String>,
    },
    /// A record.
    Record(RecordDefinition),
    /// The value or nothing.
    Optional(Box<FieldType>),
}

impl FieldType {
    fn to_json(&self) -> Value {
        match self {
            FieldType::Boolean => json!("boolean"),
            FieldType::Int => json!("int"),
            FieldType::Long => json!("long"),
            FieldType::Float => json!("float"),
            FieldType::Double => json!("double"),
            FieldType::Bytes => json!("bytes"),
            FieldType::String => json!("string"),
            FieldType::Array(items) => json!({"type": "array", "items": items.to_json()}),
            FieldType::Map(values) => json!({"type": "map", "values": values.to_json()}),
            FieldType::Enum { name, symbols } => json!({"type": "enum", "name": name, "symbols": symbols}),
            FieldType::Record(record) => record.to_value(),
            FieldType::Optional(inner) => json!(["null", inner.to_json()]),
        }
    }
}

/// A record's definition in the form that Pulsar keeps: an Avro record (data-model §6).
///
/// ```
/// use stc_client::{FieldType, RecordDefinition};
///
/// let user = RecordDefinition::new("User").field("name", FieldType::String).optional("age", FieldType::Int);
/// assert!(user.to_json().contains(r#""name":"age""#));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RecordDefinition {
    name: String,
    namespace: Option<String>,
    fields: Vec<(String, FieldType)>,
}

impl RecordDefinition {
    /// A record without fields.
    pub fn new(name: impl Into<String>) -> Self {
        RecordDefinition { name: name.into(), namespace: None, fields: Vec::new() }
    }

    /// The namespace of the record's name.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Adds a field that every record has.
    pub fn field(mut self, name: impl Into<String>, kind: FieldType) -> Self {
        self.fields.push((name.into(), kind));
        self
    }

    /// Adds a field that a record may leave out. Schemas stay compatible when fields like this come and go.
    pub fn optional(self, name: impl Into<String>, kind: FieldType) -> Self {
        self.field(name, FieldType::Optional(Box::new(kind)))
    }

    /// The definition as JSON.
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    fn to_value(&self) -> Value {
        let fields = self.fields.iter().map(|(name, kind)| match kind {
            FieldType::Optional(_) => json!({"name": name, "type": kind.to_json(), "default": null}),
            _ => json!({"name": name, "type": kind.to_json()}),
        });
        let mut record =
            json!({"type": "record", "name": self.name, "fields": fields.collect::<Vec<Value>>()});
        if let (Some(namespace), Some(object)) = (&self.namespace, record.as_object_mut()) {
            object.insert("namespace".into(), json!(namespace));
        }
        record
    }
}

impl From<RecordDefinition> for String {
    fn from(definition: RecordDefinition) -> Self {
        definition.to_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_may_be_null_and_are_by_default() {
        let inner = RecordDefinition::new("Inner").field("x", FieldType::Long);
        let record = RecordDefinition::new("R")
            .namespace("n")
            .field("list", FieldType::Array(Box::new(FieldType::Record(inner))))
            .optional("color", FieldType::Enum { name: "Color".into(), symbols: vec!["RED".into()] });
        let json: Value = serde_json::from_str(&record.to_json()).unwrap();
        assert_eq!(
            json,
            json!({"type": "record", "name": "R", "namespace": "n", "fields": [
                {"name": "list", "type": {"type": "array", "items":
                    {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "long"}]}}},
                {"name": "color", "type": ["null", {"type": "enum", "name": "Color", "symbols": ["RED"]}],
                    "default": null}
            ]})
        );
    }
}
