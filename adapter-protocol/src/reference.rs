//! The operations as a table in Markdown, for `docs/adapter-protocol.md`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::operation::{Operation, Visitor, visit_all};

/// The table, one row for each method.
pub fn markdown() -> String {
    let mut rows = Rows("| Method | Parameters | Result | What it does |\n|---|---|---|---|\n".to_owned());
    visit_all(&mut rows);
    rows.0
}

struct Rows(String);

impl Visitor for Rows {
    fn visit<O: Operation>(&mut self) {
        let about: Vec<&str> = O::ABOUT.iter().map(|line| line.trim()).collect();
        let mut about = about.join(" ");
        if let Some(needs) = O::NEEDS {
            about.push_str(&format!(" Asked only of SDKs with `{needs}`."));
        }
        let row = format!(
            "| `{}` | {} | {} | {about} |\n",
            O::METHOD,
            fields(&schema_of::<O>()),
            result::<O::Result>()
        );
        self.0.push_str(&row);
    }
}

fn schema_of<T: JsonSchema>() -> Json {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

fn fields(schema: &Json) -> String {
    let properties = schema.get("properties").and_then(Json::as_object);
    let fields: Vec<String> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| format!("`{name}`: {}", shown(schema)))
        .collect();
    if fields.is_empty() { "–".to_owned() } else { fields.join(", ") }
}

fn result<T: JsonSchema>() -> String {
    shown(&SchemaSettings::draft2020_12().into_generator().subschema_for::<T>().to_value())
}

/// A type in a few letters.
fn shown(schema: &Json) -> String {
    if let Some(name) = schema.get("$ref").and_then(Json::as_str).and_then(|path| path.rsplit('/').next()) {
        return name.to_owned();
    }
    if let Some(options) = schema.get("anyOf").and_then(Json::as_array) {
        return options.iter().map(shown).collect::<Vec<_>>().join(" or ");
    }
    match schema.get("type") {
        Some(Json::String(name)) if name == "array" => {
            format!("list of {}", schema.get("items").map(shown).unwrap_or_default())
        }
        Some(Json::String(name)) => name.clone(),
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" or "),
        _ => "anything".to_owned(),
    }
}
