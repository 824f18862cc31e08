//! The JSON Schema of every message. `schema/protocol.schema.json` is this, checked in.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value as Json, json};

use crate::error::ApiError;
use crate::operation::{Operation, Visitor, visit_all};
use crate::rpc::{FAILED, UNSUPPORTED, Unsupported};

/// The schema: a line of the protocol is a request or an answer. `$defs` has parameters and result of each method as
/// `METHOD.params` and `METHOD.result`.
pub fn schema() -> Json {
    let mut collected = Collected {
        generator: SchemaSettings::draft2020_12().into_generator(),
        requests: Vec::new(),
        own: Map::new(),
    };
    visit_all(&mut collected);
    let failed = collected.generator.subschema_for::<ApiError>();
    let unsupported = collected.generator.subschema_for::<Unsupported>();
    let error = json!({
        "type": "object",
        "properties": { "code": { "type": "integer" }, "message": { "type": "string" }, "data": true },
        "required": ["code", "message"],
        "additionalProperties": false,
        "allOf": [carries(FAILED, &failed), carries(UNSUPPORTED, &unsupported)],
    });
    let Collected { mut generator, requests, own } = collected;
    let mut defs = generator.take_definitions(true);
    defs.extend(own);
    defs.insert("Request".to_owned(), json!({ "oneOf": requests }));
    defs.insert("Error".to_owned(), error);
    defs.insert("Response".to_owned(), response());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Adapter protocol of the Scalable Topics conformance suite",
        "description": "A line on the adapter's standard input is a Request, one on its standard output a Response.",
        "oneOf": [{ "$ref": "#/$defs/Request" }, { "$ref": "#/$defs/Response" }],
        "$defs": defs,
    })
}

/// An error of this code carries this data.
fn carries(code: i64, data: &Schema) -> Json {
    json!({
        "if": { "properties": { "code": { "const": code } } },
        "then": { "properties": { "data": data }, "required": ["data"] },
    })
}

fn response() -> Json {
    let id = json!({ "type": "integer", "minimum": 0 });
    let version = json!({ "const": "2.0" });
    let one = |member: &str, schema: Json| {
        json!({
            "type": "object",
            "properties": { "jsonrpc": version, "id": id, member: schema },
            "required": ["jsonrpc", "id", member],
            "additionalProperties": false,
        })
    };
    json!({ "oneOf": [one("result", json!(true)), one("error", json!({ "$ref": "#/$defs/Error" }))] })
}

struct Collected {
    generator: SchemaGenerator,
    requests: Vec<Json>,
    own: Map<String, Json>,
}

impl Collected {
    fn keep<T: JsonSchema>(&mut self, name: String) -> Json {
        let schema = self.generator.subschema_for::<T>();
        let reference = json!({ "$ref": format!("#/$defs/{name}") });
        self.own.insert(name, schema.to_value());
        reference
    }
}

impl Visitor for Collected {
    fn visit<O: Operation>(&mut self) {
        let params = self.keep::<O>(format!("{}.params", O::METHOD));
        self.keep::<O::Result>(format!("{}.result", O::METHOD));
        self.requests.push(json!({
            "type": "object",
            "properties": {
                "jsonrpc": { "const": "2.0" },
                "id": { "type": "integer", "minimum": 0 },
                "method": { "const": O::METHOD },
                "params": params,
            },
            "required": ["jsonrpc", "id", "method", "params"],
            "additionalProperties": false,
        }));
    }
}
