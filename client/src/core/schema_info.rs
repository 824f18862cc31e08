//! What is known about a schema besides how it turns values into bytes (data-model §6).

use bytes::Bytes;
use stc_proto::pulsar::{KeyValue, Schema as WireSchema, schema::Type};

/// What the broker is told about a schema, and tells about the one that a message was written with (data-model §6).
/// The broker checks that all schemas of a topic are compatible.
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

impl SchemaInfo {
    /// A schema that is described by its type alone.
    pub(crate) fn plain(name: &str, kind: Type) -> Self {
        SchemaInfo { name: name.into(), kind, data: Bytes::new(), properties: Vec::new() }
    }

    pub(crate) fn property(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn from_wire(wire: WireSchema) -> Self {
        SchemaInfo {
            kind: wire.r#type(),
            name: wire.name,
            data: wire.schema_data,
            properties: wire.properties.into_iter().map(|pair| (pair.key, pair.value)).collect(),
        }
    }

    pub(crate) fn into_wire(self) -> WireSchema {
        WireSchema {
            name: self.name,
            schema_data: self.data,
            r#type: self.kind as i32,
            properties: self.properties.into_iter().map(|(key, value)| KeyValue { key, value }).collect(),
        }
    }
}
