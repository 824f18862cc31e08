//! Steps about schemas: their names in tables, values as text, what is told to the brokers.

use std::collections::BTreeSet;

use cucumber::{gherkin, given, then};
use serde_json::json;
use stc_proto::Command;
use stc_proto::pulsar::Schema as WireSchema;

use super::journal::belongs;
use super::params::{Topic, number, options};
use crate::client::{SchemaKind, Value};
use crate::judge::{Step, Trouble};
use crate::world::World;

/// Gives a record a name for the tables of later steps. Each row is a field: its name and its Avro type; `optional` in
/// front of the type makes it one that records may leave out.
#[given(expr = "the record {string} with the fields")]
fn record(world: &mut World, name: String, step: &gherkin::Step) -> Step {
    let fields: Vec<serde_json::Value> = options(step)?
        .into_iter()
        .map(|(field, kind)| match kind.strip_prefix("optional ") {
            Some(kind) => json!({"name": field, "type": ["null", kind], "default": null}),
            None => json!({"name": field, "type": kind}),
        })
        .collect();
    // All definitions have one name: they are versions of one record.
    let definition = json!({"type": "record", "name": "Record", "fields": fields}).to_string();
    world.records.insert(name, definition);
    Ok(())
}

/// The schema that a table names: `string`, `int32`…, `json NAME` and `avro NAME` of a record, `auto`,
/// `key/value of K and V, inline` or `…, separated`.
pub(crate) fn schema(world: &World, name: &str) -> Result<SchemaKind, Trouble> {
    let definition = |record: &str| {
        let known = world.records.get(record).cloned();
        known.ok_or_else(|| Trouble(format!("no step described a record {record:?}")))
    };
    if let Some(record) = name.strip_prefix("json ") {
        return Ok(SchemaKind::Json { definition: definition(record)? });
    }
    if let Some(record) = name.strip_prefix("avro ") {
        return Ok(SchemaKind::Avro { definition: definition(record)? });
    }
    if let Some(pair) = name.strip_prefix("key/value of ") {
        let parts = pair.split_once(" and ").and_then(|(key, rest)| {
            let (value, encoding) = rest.rsplit_once(", ")?;
            Some((key, value, encoding))
        });
        let (key, value, encoding) =
            parts.ok_or_else(|| Trouble(format!("{name:?} is not `key/value of K and V, inline`")))?;
        let (key, value) = (schema(world, key)?.into(), schema(world, value)?.into());
        return match encoding {
            "inline" => Ok(SchemaKind::KeyValue { key, value, separated: false }),
            "separated" => Ok(SchemaKind::KeyValue { key, value, separated: true }),
            other => Err(Trouble(format!("pairs are inline or separated, not {other:?}"))),
        };
    }
    Ok(match name {
        "bytes" => SchemaKind::Bytes,
        "string" => SchemaKind::Text,
        "boolean" => SchemaKind::Bool,
        "int8" => SchemaKind::Int8,
        "int16" => SchemaKind::Int16,
        "int32" => SchemaKind::Int32,
        "int64" => SchemaKind::Int64,
        "float" => SchemaKind::Float,
        "double" => SchemaKind::Double,
        "auto" => SchemaKind::Auto,
        other => return Err(Trouble(format!("steps know no schema {other:?}"))),
    })
}

/// A value of a schema as a table writes it: bytes in hex, records in JSON, pairs as `K = V`.
pub(crate) fn value(kind: &SchemaKind, text: &str) -> Result<Value, Trouble> {
    Ok(match kind {
        SchemaKind::Text => Value::Text(text.to_owned()),
        SchemaKind::Bytes => {
            let bytes = stc_proto::fields::unhex(text);
            Value::Bytes(bytes.ok_or_else(|| Trouble(format!("{text:?} is not hex")))?)
        }
        SchemaKind::Bool => Value::Bool(text == "true"),
        SchemaKind::Int8 | SchemaKind::Int16 | SchemaKind::Int32 | SchemaKind::Int64 => {
            Value::Int64(number("value", text)?)
        }
        SchemaKind::Float | SchemaKind::Double => Value::Double(number("value", text)?),
        SchemaKind::Json { .. } | SchemaKind::Avro { .. } => Value::Record(serde_json::from_str(text)?),
        SchemaKind::KeyValue { key, value: of_value, .. } => {
            let halves = text.split_once(" = ");
            let (first, second) = halves.ok_or_else(|| Trouble(format!("{text:?} is no pair `K = V`")))?;
            Value::Pair(value(key, first)?.into(), value(of_value, second)?.into())
        }
        SchemaKind::Auto => return Err(Trouble::new("a value has a schema of its own")),
    })
}

/// A value as [`value`] reads it.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Bytes(bytes) => stc_proto::fields::hex(bytes),
        Value::Bool(value) => value.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Record(record) => record.to_string(),
        Value::Pair(key, value) => format!("{} = {}", text(key), text(value)),
    }
}

/// Whether a value is the one that a table writes so. The order of a record's fields does not count.
pub(crate) fn is(value: &Value, expected: &str) -> bool {
    match value {
        Value::Record(record) => {
            serde_json::from_str(expected).is_ok_and(|e: serde_json::Value| e == *record)
        }
        other => text(other) == expected,
    }
}

/// Every PRODUCER and SUBSCRIBE of the topic carries a schema of this type, everywhere the same.
#[then(expr = "every attachment to {topic} tells the schema {word}")]
async fn told(world: &mut World, topic: Topic, kind: String) -> Step {
    world.observe().await;
    let full = world.topic(&topic.0)?;
    let wire = world.wire()?;
    let mut topics = BTreeSet::new();
    let mut first: Option<WireSchema> = None;
    for (_, _, command) in wire.from_clients() {
        let (at, schema) = match command {
            Command::Producer(c) if belongs(&c.topic, &full) => (&c.topic, &c.schema),
            Command::Subscribe(c) if belongs(&c.topic, &full) => (&c.topic, &c.schema),
            _ => continue,
        };
        let requirements = ["DATA-6.2", "WIRE-10.3"];
        let Some(schema) = schema else {
            world.broken(&requirements, format!("{} for {at} carries no schema", command.name()));
        };
        let told = schema.r#type().as_str_name();
        world.judge(&requirements, told == kind, || {
            format!("{} for {at} carries a schema of type {told} instead of {kind}", command.name())
        });
        let first = first.get_or_insert_with(|| schema.clone());
        world.judge(&requirements, first == schema, || {
            format!("{} for {at} carries another schema than elsewhere", command.name())
        });
        topics.insert(at.clone());
    }
    if topics.len() > 1 { Ok(()) } else { Err(Trouble::new("there were no attachments to several segments")) }
}
