//! Pairs: both halves in the payload, or one of them as the message's key.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use stc_proto::pulsar::schema::Type;

use super::{Encoded, Schema, SchemaInfo, incompatible, mismatch};
use crate::core::error::{Category, Error};

/// Where the first half of a pair goes (data-model §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyValueEncoding {
    /// Into the payload, before the second half. The message's key is left to the application.
    #[default]
    Inline,
    /// Into the message's key: messages are routed and ordered by it.
    Separated,
}

impl KeyValueEncoding {
    fn as_str(self) -> &'static str {
        match self {
            KeyValueEncoding::Inline => "INLINE",
            KeyValueEncoding::Separated => "SEPARATED",
        }
    }
}

/// Pairs `(K, V)` as Pulsar's KEY_VALUE schema writes them (data-model §6).
pub struct KeyValueSchema<K, V> {
    key: Arc<dyn Schema<K>>,
    value: Arc<dyn Schema<V>>,
    encoding: KeyValueEncoding,
}

impl<K, V> KeyValueSchema<K, V> {
    /// A schema of pairs of these two.
    pub fn new(key: impl Schema<K>, value: impl Schema<V>, encoding: KeyValueEncoding) -> Self {
        KeyValueSchema { key: Arc::new(key), value: Arc::new(value), encoding }
    }
}

/// The description of plain bytes, which otherwise go without one.
fn bytes() -> SchemaInfo {
    SchemaInfo::plain("Bytes", Type::None)
}

/// A type's name as Pulsar writes it in properties.
fn type_name(kind: Type) -> String {
    match kind {
        Type::None => "BYTES".into(),
        Type::Bool => "BOOLEAN".into(),
        // From the names of the protocol, which are written together.
        other => {
            let mut name = String::new();
            for letter in other.as_str_name().chars() {
                if letter.is_ascii_uppercase() && !name.is_empty() {
                    name.push('_');
                }
                name.push(letter.to_ascii_uppercase());
            }
            name
        }
    }
}

fn type_of(name: &str) -> Option<Type> {
    (0..=Type::External as i32)
        .filter_map(|number| Type::try_from(number).ok())
        .find(|kind| type_name(*kind) == name)
}

fn push_half(buf: &mut BytesMut, half: &[u8]) -> Result<(), Error> {
    let len = i32::try_from(half.len())
        .map_err(|_| Error::new(Category::InvalidConfiguration, "half of a pair is above 2 GiB"))?;
    buf.put_i32(len);
    buf.extend_from_slice(half);
    Ok(())
}

fn join(key: &[u8], value: &[u8]) -> Result<Bytes, Error> {
    let mut buf = BytesMut::with_capacity(8 + key.len() + value.len());
    push_half(&mut buf, key)?;
    push_half(&mut buf, value)?;
    Ok(buf.freeze())
}

/// Takes a joined pair apart. A half that is null, of length -1, is an error: Rust values are not null.
fn split(joined: &Bytes) -> Result<(Bytes, Bytes), Error> {
    let wrong = || mismatch("pair", joined.len());
    let mut rest = joined.clone();
    let mut half = || {
        let (len, _) = rest.split_first_chunk().ok_or_else(wrong)?;
        let len = usize::try_from(i32::from_be_bytes(*len)).map_err(|_| wrong())?;
        let end = len.checked_add(4).filter(|end| *end <= rest.len()).ok_or_else(wrong)?;
        Ok(rest.split_to(end).slice(4..))
    };
    let (key, value) = (half()?, half()?);
    if rest.is_empty() { Ok((key, value)) } else { Err(wrong()) }
}

/// The description of a schema of pairs.
fn describe(key: SchemaInfo, value: SchemaInfo, encoding: KeyValueEncoding) -> Result<SchemaInfo, Error> {
    let mut properties = Vec::new();
    for (half, info) in [("key", &key), ("value", &value)] {
        let own: serde_json::Map<String, serde_json::Value> =
            info.properties.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
        properties.push((format!("{half}.schema.name"), info.name.clone()));
        properties.push((format!("{half}.schema.type"), type_name(info.kind)));
        properties.push((format!("{half}.schema.properties"), serde_json::Value::Object(own).to_string()));
    }
    properties.push(("kv.encoding.type".into(), encoding.as_str().into()));
    let data = join(&key.data, &value.data)?;
    Ok(SchemaInfo { name: "KeyValue".into(), kind: Type::KeyValue, data, properties })
}

/// The descriptions of both halves, from that of the pair.
pub(super) fn halves(pair: &SchemaInfo) -> Result<(SchemaInfo, SchemaInfo, KeyValueEncoding), Error> {
    let (key, value) = split(&pair.data)?;
    let half = |half: &str, data: Bytes| {
        let kind = pair.property(&format!("{half}.schema.type")).and_then(type_of);
        let kind = kind.ok_or_else(|| incompatible(format!("a schema of pairs whose {half} has no type")))?;
        let name = pair.property(&format!("{half}.schema.name")).unwrap_or_default().to_owned();
        let own = pair.property(&format!("{half}.schema.properties")).unwrap_or("{}");
        let own: std::collections::BTreeMap<String, String> = serde_json::from_str(own).unwrap_or_default();
        Ok(SchemaInfo { name, kind, data, properties: own.into_iter().collect() })
    };
    let encoding = match pair.property("kv.encoding.type") {
        Some("SEPARATED") => KeyValueEncoding::Separated,
        _ => KeyValueEncoding::Inline,
    };
    Ok((half("key", key)?, half("value", value)?, encoding))
}

/// Both halves of a message, encoded.
pub(super) fn encoded_halves(
    encoded: &Encoded<'_>,
    encoding: KeyValueEncoding,
) -> Result<(Bytes, Bytes), Error> {
    match encoding {
        KeyValueEncoding::Inline => split(encoded.payload),
        KeyValueEncoding::Separated => {
            let key = encoded.key.ok_or_else(|| incompatible("a separated pair came without its key"))?;
            Ok((Bytes::copy_from_slice(key), encoded.payload.clone()))
        }
    }
}

impl<K: 'static, V: 'static> Schema<(K, V)> for KeyValueSchema<K, V> {
    fn info(&self) -> Option<SchemaInfo> {
        let key = self.key.info().unwrap_or_else(bytes);
        let value = self.value.info().unwrap_or_else(bytes);
        // Definitions of more than 2 GiB are none.
        describe(key, value, self.encoding).ok()
    }

    fn encode(&self, (key, value): &(K, V)) -> Result<Bytes, Error> {
        let value = self.value.encode(value)?;
        match self.encoding {
            KeyValueEncoding::Inline => join(&self.key.encode(key)?, &value),
            KeyValueEncoding::Separated => Ok(value),
        }
    }

    fn decode(&self, payload: &Bytes) -> Result<(K, V), Error> {
        self.decode_message(&Encoded::new(payload))
    }

    fn encode_key(&self, (key, _): &(K, V)) -> Result<Option<Bytes>, Error> {
        match self.encoding {
            KeyValueEncoding::Inline => Ok(None),
            KeyValueEncoding::Separated => self.key.encode(key).map(Some),
        }
    }

    fn decode_message(&self, encoded: &Encoded<'_>) -> Result<(K, V), Error> {
        let (key, value) = encoded_halves(encoded, self.encoding)?;
        let writers =
            encoded.writer.filter(|writer| writer.kind == Type::KeyValue).map(halves).transpose()?;
        let (of_key, of_value) = match &writers {
            Some((key, value, _)) => (Some(key), Some(value)),
            None => (None, None),
        };
        let key = self.key.decode_message(&Encoded { writer: of_key, ..Encoded::new(&key) })?;
        let value = self.value.decode_message(&Encoded { writer: of_value, ..Encoded::new(&value) })?;
        Ok((key, value))
    }

    fn wants_writer(&self) -> bool {
        self.key.wants_writer() || self.value.wants_writer()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            AvroSchema, BytesSchema, FieldType, Int32Schema, RecordDefinition, StringSchema,
            tests::{bytes, round_trip},
        },
        *,
    };

    fn pairs(encoding: KeyValueEncoding) -> KeyValueSchema<String, i32> {
        KeyValueSchema::new(StringSchema, Int32Schema, encoding)
    }

    /// What Pulsar's own Java client 5.0.1 makes of the same schema and value.
    #[test]
    fn inline_pairs_are_those_of_the_java_client() {
        round_trip(pairs(KeyValueEncoding::Inline), ("k".into(), 7), &bytes("000000016b0000000400000007"));
        let info = pairs(KeyValueEncoding::Inline).info().unwrap();
        assert_eq!((&info.name[..], info.kind, &info.data[..]), ("KeyValue", Type::KeyValue, &[0; 8][..]));
        let mut properties = info.properties;
        properties.sort();
        let expected = [
            ("key.schema.name", "String"),
            ("key.schema.properties", "{}"),
            ("key.schema.type", "STRING"),
            ("kv.encoding.type", "INLINE"),
            ("value.schema.name", "INT32"),
            ("value.schema.properties", "{}"),
            ("value.schema.type", "INT32"),
        ];
        assert_eq!(properties, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn separated_pairs_have_their_key_beside_the_payload() {
        let schema = pairs(KeyValueEncoding::Separated);
        let pair = ("k".to_owned(), 7);
        let payload = schema.encode(&pair).unwrap();
        assert_eq!(&payload[..], [0, 0, 0, 7]);
        assert_eq!(schema.encode_key(&pair).unwrap().unwrap(), "k");
        let encoded = Encoded { key: Some(b"k"), ..Encoded::new(&payload) };
        assert_eq!(schema.decode_message(&encoded).unwrap(), pair);
        assert!(schema.decode(&payload).is_err(), "the key is missing");
    }

    #[test]
    fn both_halves_are_found_in_the_description() {
        let record = RecordDefinition::new("R").field("x", FieldType::Int);
        let avro = AvroSchema::<serde_json::Value>::new(record).unwrap();
        let expected = avro.info().unwrap();
        let schema = KeyValueSchema::new(BytesSchema, avro, KeyValueEncoding::Separated);
        assert!(Schema::<(Bytes, serde_json::Value)>::wants_writer(&schema));
        let (key, value, encoding) = halves(&schema.info().unwrap()).unwrap();
        assert_eq!((key, value, encoding), (super::bytes(), expected, KeyValueEncoding::Separated));
    }

    #[test]
    fn every_type_has_a_name_of_its_own() {
        for (kind, name) in [
            (Type::None, "BYTES"),
            (Type::Bool, "BOOLEAN"),
            (Type::Int64, "INT64"),
            (Type::LocalDateTime, "LOCAL_DATE_TIME"),
            (Type::KeyValue, "KEY_VALUE"),
        ] {
            assert_eq!((type_name(kind).as_str(), type_of(name)), (name, Some(kind)));
        }
        assert_eq!(type_of("NO_SUCH"), None);
    }

    #[test]
    fn damaged_pairs_are_refused() {
        let schema = pairs(KeyValueEncoding::Inline);
        for hex in ["", "000000", "000000026b", "ffffffff0000000400000007", "000000016b000000040000000700"] {
            let error = schema.decode(&bytes(hex).into()).unwrap_err();
            assert_eq!(error.category(), Category::IncompatibleSchema, "{hex}");
        }
    }
}
