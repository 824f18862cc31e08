//! Any protocol message as JSON: the form in which journals, recordings and reports show it.
//!
//! Keys are the names on the wire, enums are value names (the number for a value that the protocol lacks), bytes are lower-case hex, 64-bit integers are numbers, and
//! a field that is absent on the wire is absent here too.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value,
};
use serde_json::{Map, Value as Json};
use thiserror::Error;

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    // The bytes come from our own build script; a pool without types would only make the JSON empty.
    DescriptorPool::decode(include_bytes!(concat!(env!("OUT_DIR"), "/pulsar.bin")).as_slice())
        .unwrap_or_default()
});

pub(crate) fn pool() -> &'static DescriptorPool {
    &POOL
}

fn descriptor(name: &str) -> Option<MessageDescriptor> {
    POOL.get_message_by_name(&format!("pulsar.{name}"))
}

/// A message of the type `name` (such as `MessageMetadata`) as JSON; `null` when the protocol has no such type.
pub fn to_json(name: &str, message: &impl Message) -> Json {
    let Some(descriptor) = descriptor(name) else { return Json::Null };
    match DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()) {
        Ok(dynamic) => message_to_json(&dynamic),
        Err(_) => Json::Null,
    }
}

fn message_to_json(message: &DynamicMessage) -> Json {
    Json::Object(
        message
            .fields()
            .map(|(field, value)| (field.name().to_owned(), value_to_json(&field, value)))
            .collect::<Map<_, _>>(),
    )
}

fn value_to_json(field: &FieldDescriptor, value: &Value) -> Json {
    match value {
        Value::Bool(v) => (*v).into(),
        Value::I32(v) => (*v).into(),
        Value::I64(v) => (*v).into(),
        Value::U32(v) => (*v).into(),
        Value::U64(v) => (*v).into(),
        Value::F32(v) => (*v).into(),
        Value::F64(v) => (*v).into(),
        Value::String(v) => v.as_str().into(),
        Value::Bytes(v) => hex(v).into(),
        Value::EnumNumber(n) => match field.kind() {
            Kind::Enum(e) => e.get_value(*n).map_or_else(|| (*n).into(), |v| v.name().into()),
            _ => (*n).into(),
        },
        Value::Message(m) => message_to_json(m),
        Value::List(items) => items.iter().map(|v| value_to_json(field, v)).collect(),
        Value::Map(_) => Json::Null, // the protocol has no maps
    }
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of a hex string of either case; `None` for anything else.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

/// Why JSON is not a message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FieldsError {
    /// There is no such message type.
    #[error("no message type {0}")]
    NoType(String),
    /// The message has no such field.
    #[error("{message} has no field {field}")]
    NoField {
        /// The message type.
        message: String,
        /// The unknown key.
        field: String,
    },
    /// The value does not fit the field.
    #[error("{field} is not a {expected}: {value}")]
    Value {
        /// The field's name.
        field: String,
        /// What it takes.
        expected: String,
        /// The value in JSON.
        value: String,
    },
    /// The message does not decode.
    #[error("{0}")]
    Decode(String),
}

/// Reads a message of the type `name` from its JSON form, the inverse of [`to_json`].
pub fn from_json<M: Message + Default>(name: &str, json: &Json) -> Result<M, FieldsError> {
    let descriptor = descriptor(name).ok_or_else(|| FieldsError::NoType(name.to_owned()))?;
    let dynamic = message_from_json(descriptor, json)?;
    M::decode(dynamic.encode_to_vec().as_slice()).map_err(|e| FieldsError::Decode(e.to_string()))
}

/// Reads a command from its name on the wire and the JSON of its body.
pub fn command_from_json(name: &str, json: &Json) -> Result<crate::Command, FieldsError> {
    let no_type = || FieldsError::NoType(name.to_owned());
    let number = crate::Command::number_of(name).ok_or_else(no_type)?;
    let descriptor = crate::Command::body_type(number).and_then(descriptor).ok_or_else(no_type)?;
    let bytes = message_from_json(descriptor, json)?.encode_to_vec();
    crate::Command::decode_body(number, bytes.as_slice())
        .ok_or_else(no_type)?
        .map_err(|e| FieldsError::Decode(e.to_string()))
}

fn message_from_json(descriptor: MessageDescriptor, json: &Json) -> Result<DynamicMessage, FieldsError> {
    let mut message = DynamicMessage::new(descriptor.clone());
    let object = json.as_object().ok_or_else(|| FieldsError::Value {
        field: descriptor.name().to_owned(),
        expected: "object".into(),
        value: json.to_string(),
    })?;
    for (key, value) in object {
        let field = descriptor.get_field_by_name(key).ok_or_else(|| FieldsError::NoField {
            message: descriptor.name().to_owned(),
            field: key.clone(),
        })?;
        let value = match (field.cardinality(), value) {
            (Cardinality::Repeated, Json::Array(items)) => {
                Value::List(items.iter().map(|v| value_from_json(&field, v)).collect::<Result<_, _>>()?)
            }
            _ => value_from_json(&field, value)?,
        };
        message.try_set_field(&field, value).map_err(|e| FieldsError::Decode(e.to_string()))?;
    }
    Ok(message)
}

fn value_from_json(field: &FieldDescriptor, json: &Json) -> Result<Value, FieldsError> {
    let value = match field.kind() {
        Kind::Bool => json.as_bool().map(Value::Bool),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            json.as_i64().and_then(|v| v.try_into().ok()).map(Value::I32)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json.as_i64().map(Value::I64),
        Kind::Uint32 | Kind::Fixed32 => json.as_u64().and_then(|v| v.try_into().ok()).map(Value::U32),
        Kind::Uint64 | Kind::Fixed64 => json.as_u64().map(Value::U64),
        Kind::Float => json.as_f64().map(|v| Value::F32(v as f32)),
        Kind::Double => json.as_f64().map(Value::F64),
        Kind::String => json.as_str().map(|v| Value::String(v.to_owned())),
        Kind::Bytes => json.as_str().and_then(unhex).map(|v| Value::Bytes(v.into())),
        Kind::Enum(e) => match json.as_str() {
            Some(name) => e.get_value_by_name(name).map(|v| v.number()),
            None => json.as_i64().and_then(|v| v.try_into().ok()),
        }
        .map(Value::EnumNumber),
        Kind::Message(inner) => return message_from_json(inner, json).map(Value::Message),
    };
    value.ok_or_else(|| FieldsError::Value {
        field: field.name().to_owned(),
        expected: format!("{:?}", field.kind()),
        value: json.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Command, pulsar::CommandAuthResponse};

    #[test]
    fn hex_goes_both_ways() {
        assert_eq!(hex(&[0, 0x0E, 0xFF]), "000eff");
        assert_eq!(unhex("000eFF"), Some(vec![0, 0x0E, 0xFF]));
        for bad in ["0", "0g", "+1", "é"] {
            assert_eq!(unhex(bad), None, "{bad}");
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let read = |json| command_from_json("FLOW", &json);
        assert!(read(json!({"consumer_id": u64::MAX, "messagePermits": 1})).is_ok());
        assert!(matches!(read(json!({"consumer_id": -1})), Err(FieldsError::Value { .. })));
        assert!(matches!(read(json!({"messagePermits": 1u64 << 32})), Err(FieldsError::Value { .. })));
        assert!(matches!(read(json!({"consumer_id": [1]})), Err(FieldsError::Value { .. })));
        assert!(matches!(read(json!({"permits": 1})), Err(FieldsError::NoField { .. })));
        assert!(matches!(read(json!([])), Err(FieldsError::Value { .. })));
        assert!(matches!(command_from_json("FLOWS", &json!({})), Err(FieldsError::NoType(_))));
    }

    #[test]
    fn enums_without_a_name_and_bytes_survive() {
        let json = json!({"request_id": 1, "error": 99, "message": ""});
        assert_eq!(command_from_json("ERROR", &json).unwrap().fields(), json);
        let json = json!({"response": {"auth_method_name": "token", "auth_data": "00ff"}});
        let command = command_from_json("AUTH_RESPONSE", &json).unwrap();
        assert_eq!(command.fields(), json);
        let Command::AuthResponse(CommandAuthResponse { response: Some(data), .. }) = command else {
            panic!("another command");
        };
        assert_eq!(data.auth_data.as_deref(), Some(&[0, 0xFF][..]));
    }
}
