//! Whether data written with one Avro record schema can be read with another one.
//!
//! This is Avro's own resolution: fields meet by name or alias, a field that only the reader has needs a default,
//! numbers widen, strings and bytes read each other, and a union reads what one of its branches reads. JSON and
//! Protobuf schemas in Pulsar are described the same way.

use std::collections::HashMap;

use serde_json::Value;

const PRIMITIVES: [&str; 8] = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];

/// How deep types may nest, and how many comparisons of types are made: a client must not keep the broker busy.
const MAX_DEPTH: usize = 200;
const MAX_STEPS: usize = 100_000;

/// A schema and the named types that it defines.
pub(super) struct Definition {
    root: Value,
    named: HashMap<String, Value>,
}

impl Definition {
    pub(super) fn parse(data: &[u8]) -> Result<Self, String> {
        let root: Value = serde_json::from_slice(data).map_err(|e| format!("the schema is not JSON: {e}"))?;
        let mut named = HashMap::new();
        collect(&root, &mut named);
        Ok(Definition { root, named })
    }

    /// Follows a name to the type that it stands for.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema.as_str() {
            Some(name) if !PRIMITIVES.contains(&name) => self.named.get(short(name)).unwrap_or(schema),
            _ => schema,
        }
    }
}

fn collect(schema: &Value, named: &mut HashMap<String, Value>) {
    match schema {
        Value::Array(branches) => branches.iter().for_each(|branch| collect(branch, named)),
        Value::Object(object) => {
            if let Some(name) = object.get("name").and_then(Value::as_str)
                && matches!(kind(schema), "record" | "enum" | "fixed" | "error")
            {
                named.insert(short(name).to_owned(), schema.clone());
            }
            for part in ["type", "items", "values"] {
                object.get(part).into_iter().for_each(|inner| collect(inner, named));
            }
            for field in fields(schema) {
                field.get("type").into_iter().for_each(|inner| collect(inner, named));
            }
        }
        _ => {}
    }
}

/// The name of a schema's type: a primitive, a named type's name, `union`, or what its `type` says.
fn kind(schema: &Value) -> &str {
    match schema {
        Value::String(name) => name,
        Value::Array(_) => "union",
        _ => match schema.get("type") {
            Some(Value::String(name)) => name,
            Some(inner) => kind(inner),
            None => "",
        },
    }
}

fn fields(record: &Value) -> &[Value] {
    record.get("fields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name(schema: &Value) -> &str {
    schema.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn strings<'a>(schema: &'a Value, field: &str) -> Vec<&'a str> {
    let list = schema.get(field).and_then(Value::as_array);
    list.map_or(Vec::new(), |values| values.iter().filter_map(Value::as_str).collect())
}

/// Whether `reader` reads what `writer` writes; the reason if not.
pub(super) fn can_read(reader: &Definition, writer: &Definition) -> Result<(), String> {
    Comparison { reader, writer, records: HashMap::new(), steps: 0 }.reads(&reader.root, &writer.root, 0)
}

struct Comparison<'a> {
    reader: &'a Definition,
    writer: &'a Definition,
    /// Pairs of records that were compared, or are being compared: types may contain themselves.
    records: HashMap<(&'a str, &'a str), Result<(), String>>,
    steps: usize,
}

impl<'a> Comparison<'a> {
    fn reads(&mut self, r: &'a Value, w: &'a Value, depth: usize) -> Result<(), String> {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS {
            return Err("the schemas are too large to compare".into());
        }
        let (r, w, depth) = (self.reader.resolve(r), self.writer.resolve(w), depth + 1);
        // {"type": {...}} and {"type": [...]} wrap another schema.
        if let Some(inner @ (Value::Object(_) | Value::Array(_))) = r.get("type") {
            return self.reads(inner, w, depth);
        }
        if let Some(inner @ (Value::Object(_) | Value::Array(_))) = w.get("type") {
            return self.reads(r, inner, depth);
        }
        if let Value::Array(branches) = w {
            return branches.iter().try_for_each(|branch| self.reads(r, branch, depth));
        }
        if let Value::Array(branches) = r {
            return match branches.iter().any(|branch| self.reads(branch, w, depth).is_ok()) {
                true => Ok(()),
                false => Err(format!("no branch of a union reads {}", kind(w))),
            };
        }
        match (kind(r), kind(w)) {
            ("record" | "error", "record" | "error") => {
                let pair = (name(r), name(w));
                if let Some(known) = self.records.get(&pair) {
                    return known.clone();
                }
                self.records.insert(pair, Ok(()));
                let result = fields(r).iter().try_for_each(|field| self.reads_field(field, w, depth));
                self.records.insert(pair, result.clone());
                result
            }
            ("array", "array") => self.reads_part("items", r, w, depth),
            ("map", "map") => self.reads_part("values", r, w, depth),
            ("enum", "enum") => {
                let symbols = strings(r, "symbols");
                match strings(w, "symbols").into_iter().find(|s| !symbols.contains(s)) {
                    Some(symbol) if r.get("default").is_none() => {
                        Err(format!("enum symbol {symbol} is not known"))
                    }
                    _ => Ok(()),
                }
            }
            ("fixed", "fixed") if r.get("size") != w.get("size") => Err("fixed sizes differ".into()),
            ("long", "int")
            | ("float", "int" | "long")
            | ("double", "int" | "long" | "float")
            | ("string", "bytes")
            | ("bytes", "string") => Ok(()),
            (r, w) if r == w => Ok(()),
            (r, w) => Err(format!("{r} does not read {w}")),
        }
    }

    fn reads_field(&mut self, field: &'a Value, record: &'a Value, depth: usize) -> Result<(), String> {
        let aliases = strings(field, "aliases");
        let meets = |other: &&Value| name(other) == name(field) || aliases.contains(&name(other));
        let types = |field: &'a Value| field.get("type").unwrap_or(&Value::Null);
        match fields(record).iter().find(meets) {
            Some(written) => self.reads(types(field), types(written), depth),
            None if field.get("default").is_some() => Ok(()),
            None => Err(format!("field {} is not written and has no default", name(field))),
        }
    }

    fn reads_part(&mut self, part: &str, r: &'a Value, w: &'a Value, depth: usize) -> Result<(), String> {
        match (r.get(part), w.get(part)) {
            (Some(r), Some(w)) => self.reads(r, w, depth),
            _ => Err(format!("{} without its {part}", kind(r))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(reader: &str, writer: &str) -> bool {
        let parse = |text: &str| Definition::parse(text.as_bytes()).unwrap();
        can_read(&parse(reader), &parse(writer)).is_ok()
    }

    #[test]
    fn primitives_widen_and_unions_take_branches() {
        assert!(ok(r#""long""#, r#""int""#));
        assert!(!ok(r#""int""#, r#""long""#));
        assert!(ok(r#"["null","string"]"#, r#""string""#));
        assert!(!ok(r#""string""#, r#"["null","string"]"#));
        assert!(ok(r#"{"type":"string"}"#, r#""bytes""#));
        assert!(ok(r#"{"type":"array","items":"long"}"#, r#"{"type":"array","items":"int"}"#));
        assert!(!ok(r#"{"type":"map","values":"int"}"#, r#"{"type":"map","values":"string"}"#));
    }

    #[test]
    fn enums_need_every_symbol_or_a_default() {
        let with = |symbols: &str, rest: &str| {
            format!(r#"{{"type":"enum","name":"E","symbols":[{symbols}]{rest}}}"#)
        };
        assert!(ok(&with(r#""A","B""#, ""), &with(r#""A""#, "")));
        assert!(!ok(&with(r#""A""#, ""), &with(r#""A","B""#, "")));
        assert!(ok(&with(r#""A""#, r#","default":"A""#), &with(r#""A","B""#, "")));
    }

    #[test]
    fn fields_meet_by_alias_and_recursion_ends() {
        let list = |name: &str, extra: &str| {
            format!(
                r#"{{"type":"record","name":"ns.List","fields":[
                    {{"name":"{name}","type":"int"{extra}}},
                    {{"name":"next","type":["null","List"],"default":null}}]}}"#
            )
        };
        assert!(ok(&list("v", ""), &list("v", "")));
        assert!(!ok(&list("w", ""), &list("v", "")));
        assert!(ok(&list("w", r#","aliases":["v"]"#), &list("v", "")));
    }

    #[test]
    fn nonsense_is_an_error_and_no_panic() {
        assert!(Definition::parse(b"not json").is_err());
        for (a, b) in [("null", "1"), ("{}", "[]"), (r#"{"type":"record"}"#, r#""string""#), ("[[[]]]", "{}")]
        {
            let _ = ok(a, b);
        }
    }
}
