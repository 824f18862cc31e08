//! Avro's binary form, between bytes and JSON values.
//!
//! Written here rather than taken from a crate: what a client needs is the plain binary form of one datum, without
//! files, compression or fingerprints. JSON values are the middle, so records resolve as serde does: by the names of
//! their fields. Logical types stand for the types beneath them.
//!
//! A value of type bytes or fixed is an array of numbers in JSON, as serde_json writes and reads bytes.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

/// How deep values may nest: types can contain themselves, and the data comes from the network.
const MAX_DEPTH: usize = 64;

/// Why a schema cannot be used, or does not fit a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AvroError {
    #[error("the schema is not JSON: {0}")]
    NotJson(String),
    #[error("the schema is not Avro: {0}")]
    Schema(String),
    #[error("{0}")]
    Value(String),
    #[error("the data ends early")]
    Short,
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    #[error("the data is damaged: {0}")]
    Damaged(&'static str),
}

/// An Avro schema.
#[derive(Debug, Clone)]
pub(crate) struct Avro {
    root: Type,
    named: BTreeMap<String, Type>,
}

#[derive(Debug, Clone)]
enum Type {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    Array(Box<Type>),
    Map(Box<Type>),
    Union(Vec<Type>),
    Record(Vec<Field>),
    /// A type that is defined by its full name.
    Named(String),
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    kind: Type,
    default: Option<Value>,
}

impl Avro {
    /// Reads a schema's definition.
    pub(crate) fn parse(definition: &[u8]) -> Result<Self, AvroError> {
        let json = serde_json::from_slice(definition).map_err(|e| AvroError::NotJson(e.to_string()))?;
        let mut avro = Avro { root: Type::Null, named: BTreeMap::new() };
        avro.root = avro.read_type(&json, "", 0)?;
        Ok(avro)
    }

    /// Whether it describes a record, as Pulsar's JSON and Avro schemas do.
    pub(crate) fn is_record(&self) -> bool {
        matches!(self.resolve(&self.root), Ok(Type::Record(_)))
    }

    fn read_type(&mut self, json: &Value, space: &str, depth: usize) -> Result<Type, AvroError> {
        let bad = |why: &str| AvroError::Schema(why.to_owned());
        if depth > MAX_DEPTH {
            return Err(bad("it nests too deep"));
        }
        match json {
            Value::String(name) => Ok(primitive(name).unwrap_or_else(|| Type::Named(full(name, space)))),
            Value::Array(branches) => {
                let branches = branches.iter().map(|branch| self.read_type(branch, space, depth + 1));
                Ok(Type::Union(branches.collect::<Result<_, _>>()?))
            }
            Value::Object(object) => {
                let inner = |what: &str| object.get(what).ok_or_else(|| bad(&format!("{what} is missing")));
                match inner("type")? {
                    Value::String(kind) => match kind.as_str() {
                        "array" => {
                            Ok(Type::Array(Box::new(self.read_type(inner("items")?, space, depth + 1)?)))
                        }
                        "map" => {
                            Ok(Type::Map(Box::new(self.read_type(inner("values")?, space, depth + 1)?)))
                        }
                        "record" | "error" | "enum" | "fixed" => {
                            self.read_named(kind, object, space, depth + 1)
                        }
                        name => Ok(primitive(name).unwrap_or_else(|| Type::Named(full(name, space)))),
                    },
                    nested => self.read_type(nested, space, depth + 1),
                }
            }
            _ => Err(bad("a type is neither a name, a list nor an object")),
        }
    }

    fn read_named(
        &mut self,
        kind: &str,
        object: &Map<String, Value>,
        space: &str,
        depth: usize,
    ) -> Result<Type, AvroError> {
        let bad = |why: &str| AvroError::Schema(why.to_owned());
        let text = |what: &str| object.get(what).and_then(Value::as_str);
        let name = text("name").ok_or_else(|| bad("a named type has no name"))?;
        let name = full(name, text("namespace").unwrap_or(space));
        let space = name.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
        let kind = match kind {
            "enum" => {
                let symbols = object.get("symbols").and_then(Value::as_array);
                let symbols = symbols.ok_or_else(|| bad("an enum has no symbols"))?;
                let symbols = symbols.iter().map(|symbol| symbol.as_str().map(str::to_owned));
                Type::Enum(symbols.collect::<Option<_>>().ok_or_else(|| bad("a symbol is not a text"))?)
            }
            "fixed" => {
                let size = object.get("size").and_then(Value::as_u64);
                let size = size.and_then(|size| usize::try_from(size).ok());
                Type::Fixed(size.ok_or_else(|| bad("a fixed has no size"))?)
            }
            _ => {
                let fields = object.get("fields").and_then(Value::as_array);
                let fields = fields.ok_or_else(|| bad("a record has no fields"))?;
                let read = fields.iter().map(|field| {
                    let name = field.get("name").and_then(Value::as_str);
                    Ok(Field {
                        name: name.ok_or_else(|| bad("a field has no name"))?.to_owned(),
                        kind: self.read_type(
                            field.get("type").ok_or_else(|| bad("a field has no type"))?,
                            &space,
                            depth,
                        )?,
                        default: field.get("default").cloned(),
                    })
                });
                Type::Record(read.collect::<Result<_, AvroError>>()?)
            }
        };
        self.named.insert(name.clone(), kind);
        Ok(Type::Named(name))
    }

    fn resolve<'a>(&'a self, kind: &'a Type) -> Result<&'a Type, AvroError> {
        match kind {
            Type::Named(name) => {
                let defined = self.named.get(name);
                defined.ok_or_else(|| AvroError::Schema(format!("the type {name} is not defined")))
            }
            other => Ok(other),
        }
    }

    /// A value's binary form.
    pub(crate) fn encode(&self, value: &Value) -> Result<Vec<u8>, AvroError> {
        let mut out = Vec::new();
        self.write(&self.root, value, &mut out, 0)?;
        Ok(out)
    }

    fn write(&self, kind: &Type, value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), AvroError> {
        let wrong = |what: &str| AvroError::Value(format!("{} is no {what}", brief(value)));
        if depth > MAX_DEPTH {
            return Err(AvroError::Value("the value nests too deep".into()));
        }
        match self.resolve(kind)? {
            Type::Null => value.is_null().then_some(()).ok_or_else(|| wrong("null"))?,
            Type::Boolean => out.push(value.as_bool().ok_or_else(|| wrong("boolean"))?.into()),
            Type::Int => {
                let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
                write_long(number.ok_or_else(|| wrong("int"))?.into(), out);
            }
            Type::Long => write_long(value.as_i64().ok_or_else(|| wrong("long"))?, out),
            Type::Float => {
                let number = value.as_f64().ok_or_else(|| wrong("float"))?;
                out.extend_from_slice(&(number as f32).to_le_bytes());
            }
            Type::Double => {
                out.extend_from_slice(&value.as_f64().ok_or_else(|| wrong("double"))?.to_le_bytes())
            }
            Type::String => write_bytes(value.as_str().ok_or_else(|| wrong("string"))?.as_bytes(), out),
            Type::Bytes => write_bytes(&octets(value).ok_or_else(|| wrong("list of bytes"))?, out),
            Type::Fixed(size) => {
                let bytes = octets(value).filter(|bytes| bytes.len() == *size);
                out.extend_from_slice(&bytes.ok_or_else(|| wrong(&format!("list of {size} bytes")))?);
            }
            Type::Enum(symbols) => {
                let symbol = value.as_str().ok_or_else(|| wrong("symbol"))?;
                let index = symbols.iter().position(|known| known == symbol);
                write_long(index.ok_or_else(|| wrong("symbol of the enum"))? as i64, out);
            }
            Type::Array(items) => {
                let list = value.as_array().ok_or_else(|| wrong("array"))?;
                write_block(list.len(), out);
                list.iter().try_for_each(|item| self.write(items, item, out, depth + 1))?;
                end_blocks(list.len(), out);
            }
            Type::Map(values) => {
                let map = value.as_object().ok_or_else(|| wrong("map"))?;
                write_block(map.len(), out);
                for (key, value) in map {
                    write_bytes(key.as_bytes(), out);
                    self.write(values, value, out, depth + 1)?;
                }
                end_blocks(map.len(), out);
            }
            Type::Union(branches) => {
                let start = out.len();
                for (branch, index) in branches.iter().zip(0..) {
                    write_long(index, out);
                    if self.write(branch, value, out, depth + 1).is_ok() {
                        return Ok(());
                    }
                    out.truncate(start);
                }
                return Err(wrong("branch of the union"));
            }
            Type::Record(fields) => {
                let object = value.as_object().ok_or_else(|| wrong("record"))?;
                for field in fields {
                    let value = object.get(&field.name).or(field.default.as_ref()).unwrap_or(&Value::Null);
                    self.write(&field.kind, value, out, depth + 1)
                        .map_err(|error| AvroError::Value(format!("field {}: {error}", field.name)))?;
                }
            }
            Type::Named(name) => return Err(AvroError::Schema(format!("{name} stands for a name"))),
        }
        Ok(())
    }

    /// The value of a binary form.
    pub(crate) fn decode(&self, data: &[u8]) -> Result<Value, AvroError> {
        // Items can be empty (null, a record without fields): their number is not bounded by the data.
        let mut input = Input { rest: data, items: data.len().saturating_add(1024) };
        let value = self.read(&self.root, &mut input, 0)?;
        match input.rest.len() {
            0 => Ok(value),
            more => Err(AvroError::Trailing(more)),
        }
    }

    fn read(&self, kind: &Type, input: &mut Input<'_>, depth: usize) -> Result<Value, AvroError> {
        if depth > MAX_DEPTH {
            return Err(AvroError::Damaged("it nests too deep"));
        }
        Ok(match self.resolve(kind)? {
            Type::Null => Value::Null,
            Type::Boolean => match input.chunk::<1>()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return Err(AvroError::Damaged("a boolean is neither 0 nor 1")),
            },
            Type::Int => {
                let number = i32::try_from(input.long()?);
                number.map_err(|_| AvroError::Damaged("an int has more than 32 bits"))?.into()
            }
            Type::Long => input.long()?.into(),
            Type::Float => float(f32::from_le_bytes(input.chunk()?).into()),
            Type::Double => float(f64::from_le_bytes(input.chunk()?)),
            Type::Bytes => input.sized()?.to_vec().into(),
            Type::Fixed(size) => input.take(*size)?.to_vec().into(),
            Type::String => Value::String(input.text()?),
            Type::Enum(symbols) => {
                let symbol = usize::try_from(input.long()?).ok().and_then(|index| symbols.get(index));
                symbol.ok_or(AvroError::Damaged("a symbol is not in the enum"))?.clone().into()
            }
            Type::Array(items) => {
                let mut list = Vec::new();
                while let Some(count) = input.block()? {
                    for _ in 0..count {
                        list.push(self.read(items, input, depth + 1)?);
                    }
                }
                list.into()
            }
            Type::Map(values) => {
                let mut map = Map::new();
                while let Some(count) = input.block()? {
                    for _ in 0..count {
                        let key = input.text()?;
                        map.insert(key, self.read(values, input, depth + 1)?);
                    }
                }
                map.into()
            }
            Type::Union(branches) => {
                let branch = usize::try_from(input.long()?).ok().and_then(|index| branches.get(index));
                self.read(branch.ok_or(AvroError::Damaged("no such branch of a union"))?, input, depth + 1)?
            }
            Type::Record(fields) => {
                let mut record = Map::new();
                for field in fields {
                    record.insert(field.name.clone(), self.read(&field.kind, input, depth + 1)?);
                }
                record.into()
            }
            Type::Named(name) => return Err(AvroError::Schema(format!("{name} stands for a name"))),
        })
    }
}

fn primitive(name: &str) -> Option<Type> {
    Some(match name {
        "null" => Type::Null,
        "boolean" => Type::Boolean,
        "int" => Type::Int,
        "long" => Type::Long,
        "float" => Type::Float,
        "double" => Type::Double,
        "bytes" => Type::Bytes,
        "string" => Type::String,
        _ => return None,
    })
}

fn full(name: &str, space: &str) -> String {
    if space.is_empty() || name.contains('.') { name.to_owned() } else { format!("{space}.{name}") }
}

/// A value's kind for an error; its content may be private.
fn brief(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// JSON has no infinite numbers: they become null.
fn float(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn octets(value: &Value) -> Option<Vec<u8>> {
    value.as_array()?.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect()
}

fn write_long(number: i64, out: &mut Vec<u8>) {
    let mut bits = ((number << 1) ^ (number >> 63)) as u64;
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

fn write_block(items: usize, out: &mut Vec<u8>) {
    write_long(items as i64, out);
}

/// The end of the blocks is an empty one, which an empty collection is already.
fn end_blocks(items: usize, out: &mut Vec<u8>) {
    if items > 0 {
        write_long(0, out);
    }
}

struct Input<'a> {
    rest: &'a [u8],
    /// How many more items of arrays and maps are read.
    items: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8], AvroError> {
        let (taken, rest) = self.rest.split_at_checked(size).ok_or(AvroError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], AvroError> {
        let (chunk, rest) = self.rest.split_first_chunk().ok_or(AvroError::Short)?;
        self.rest = rest;
        Ok(*chunk)
    }

    fn long(&mut self) -> Result<i64, AvroError> {
        let mut bits = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.chunk()?;
            bits |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok((bits >> 1) as i64 ^ -((bits & 1) as i64));
            }
        }
        Err(AvroError::Damaged("a number is too long"))
    }

    fn sized(&mut self) -> Result<&'a [u8], AvroError> {
        let size = usize::try_from(self.long()?).map_err(|_| AvroError::Damaged("a negative length"))?;
        self.take(size)
    }

    fn text(&mut self) -> Result<String, AvroError> {
        let text = String::from_utf8(self.sized()?.to_vec());
        text.map_err(|_| AvroError::Damaged("a string is not UTF-8"))
    }

    /// The number of items in the next block; `None` after the last one.
    fn block(&mut self) -> Result<Option<usize>, AvroError> {
        let count = self.long()?;
        if count < 0 {
            // A block that can be skipped: its size in bytes follows.
            self.long()?;
        }
        let count = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        self.items = self.items.checked_sub(count).ok_or(AvroError::Damaged("too many items"))?;
        Ok((count > 0).then_some(count))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What Pulsar's Java client 5.0.1 derives from a class, without the attributes for Java.
    const JAVA: &str = r#"{"type":"record","name":"P","namespace":"G","fields":[
        {"name":"age","type":"int"},{"name":"b","type":"boolean"},
        {"name":"big","type":["null","long"],"default":null},{"name":"d","type":"double"},
        {"name":"e","type":["null",{"type":"enum","name":"E","symbols":["A","B"]}],"default":null},
        {"name":"m","type":["null",{"type":"map","values":"int"}],"default":null},
        {"name":"name","type":["null","string"],"default":null},
        {"name":"raw","type":["null",{"type":"bytes","java-class":"[B"}],"default":null},
        {"name":"tags","type":["null",{"type":"array","items":"string"}],"default":null}]}"#;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn avro(definition: &str) -> Avro {
        Avro::parse(definition.as_bytes()).unwrap()
    }

    #[test]
    fn bytes_are_those_of_the_java_client() {
        let schema = avro(JAVA);
        assert!(schema.is_record());
        let full = json!({"name": "é", "age": -3, "big": 5, "d": 1.5, "b": true, "raw": [1, 255],
            "tags": ["x", "y"], "m": {"q": 300}, "e": "B"});
        let bytes = schema.encode(&full).unwrap();
        assert_eq!(hex(&bytes), "0501020a000000000000f83f020202020271d804000204c3a9020401ff02040278027900");
        assert_eq!(schema.decode(&bytes).unwrap(), full);
        let bytes = schema.encode(&json!({"age": 0, "b": false, "d": 0.0})).unwrap();
        assert_eq!(hex(&bytes), "00".repeat(16));
        assert_eq!(schema.decode(&bytes).unwrap()["tags"], Value::Null);
    }

    #[test]
    fn numbers_survive_at_their_limits() {
        let schema = avro(r#"{"type":"array","items":"long"}"#);
        let values = json!([i64::MIN, -65, -64, -1, 0, 1, 63, 64, i64::MAX]);
        assert_eq!(schema.decode(&schema.encode(&values).unwrap()).unwrap(), values);
        assert_eq!(hex(&schema.encode(&json!([])).unwrap()), "00");
        assert!(avro(r#""int""#).encode(&json!(1i64 << 31)).is_err());
        assert!(avro(r#""int""#).decode(&[0x80, 0x80, 0x80, 0x80, 0x20]).is_err());
    }

    #[test]
    fn types_may_contain_themselves_to_a_depth() {
        let schema = avro(
            r#"{"type":"record","name":"a.List","fields":[{"name":"next","type":["null","List"],"default":null}]}"#,
        );
        let list = json!({"next": {"next": {"next": null}}});
        assert_eq!(schema.decode(&schema.encode(&list).unwrap()).unwrap(), list);
        assert_eq!(schema.decode(&[2; 1000]), Err(AvroError::Damaged("it nests too deep")));
    }

    #[test]
    fn damaged_data_is_refused() {
        let schema = avro(JAVA);
        let bytes = schema.encode(&json!({"age": 1, "b": true, "d": 2.0, "name": "abc"})).unwrap();
        for end in 0..bytes.len() {
            assert!(schema.decode(&bytes[..end]).is_err(), "{end}");
        }
        assert_eq!(schema.decode(&[&bytes[..], &[0]].concat()), Err(AvroError::Trailing(1)));
        let nulls = avro(r#"{"type":"array","items":"null"}"#);
        let many = [0xfe, 0xff, 0xff, 0xff, 0x0f, 0];
        assert_eq!(nulls.decode(&many), Err(AvroError::Damaged("too many items")));
        assert!(avro(r#""string""#).decode(&[4, 0xff, 0xff]).is_err());
        assert_eq!(avro(r#""bytes""#).decode(&[1]), Err(AvroError::Damaged("a negative length")));
    }

    #[test]
    fn no_bytes_at_all_do_more_than_fail() {
        let (schema, mut rng) = (avro(JAVA), crate::core::backoff::Rng::new(7));
        for _ in 0..20_000 {
            let len = rng.next() % 24;
            let bytes: Vec<u8> = (0..len).map(|_| (rng.next() >> 32) as u8).collect();
            if let Ok(value) = schema.decode(&bytes) {
                assert!(value.is_object(), "seed 7: {bytes:?}");
            }
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for definition in ["", "7", "{}", r#"{"type":"array"}"#, r#"{"type":"record","name":"R"}"#] {
            assert!(Avro::parse(definition.as_bytes()).is_err(), "{definition}");
        }
        assert!(avro(r#""Unknown""#).encode(&json!(1)).is_err());
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(Avro::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn an_error_names_the_field_and_not_the_value() {
        let error = avro(JAVA).encode(&json!({"age": "secret", "b": true, "d": 2.0})).unwrap_err();
        assert_eq!(error.to_string(), "field age: a text is no int");
    }
}
