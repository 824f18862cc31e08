//! The checked-in JSON Schema and the table of the guide are what the Rust types say, and messages keep to the schema.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use stc_adapter_protocol::operation::{OpenClient, Receive, SendAsync};
use stc_adapter_protocol::rpc::{self, Request, Response, RpcError};
use stc_adapter_protocol::{
    ApiError, CATEGORIES, ClientError, ClientOptions, ConsumerId, MessageId, Operation, Outgoing, ProducerId,
    Received, Signalled, Value, reference, schema,
};

/// Set to anything, this variable makes the tests write the files instead of comparing them.
const UPDATE: &str = "STC_UPDATE";

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn compare(path: &Path, fresh: &str) {
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(path, fresh).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == fresh, "{} is out of date: run the tests once with {UPDATE}=1", path.display());
}

#[test]
fn the_schema_is_checked_in() {
    let fresh = serde_json::to_string_pretty(&schema::schema()).unwrap() + "\n";
    compare(&file("schema/protocol.schema.json"), &fresh);
}

#[test]
fn the_table_of_the_guide_is_the_table_of_operations() {
    let path = file("../docs/adapter-protocol.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (start, end) = ("<!-- operations -->\n", "<!-- end of operations -->");
    let (before, rest) = text.split_once(start).expect("the guide has a place for the table");
    let (_, after) = rest.split_once(end).expect("the place for the table ends");
    compare(&path, &format!("{before}{start}\n{}\n{end}{after}", reference::markdown()));
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&schema::schema()).unwrap()
}

fn received() -> Received {
    Received {
        handle: 4,
        id: MessageId { bytes: vec![8, 1] },
        value: Value::Bytes(vec![0, 255]),
        payload: vec![0, 255],
        key: Some("k".to_owned()),
        properties: vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())],
        publish_time_ms: 1,
        event_time_ms: None,
        sequence_id: 0,
        producer_name: None,
        topic: "topic://public/default/t".to_owned(),
        redelivery_count: 0,
        size: 2,
        replicated_from: None,
    }
}

#[test]
fn requests_keep_to_the_schema_and_survive() {
    let validator = validator();
    let checked = |line: String| {
        let json: Json = serde_json::from_str(&line).unwrap();
        assert!(validator.is_valid(&json), "{line}");
        Request::parse(&line).unwrap()
    };
    let outgoing = Outgoing {
        value: Value::Int64(i64::MIN),
        properties: vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())],
        ..Outgoing::default()
    };
    let send = SendAsync { producer: ProducerId(3), messages: vec![outgoing, Outgoing::default()] };
    let request = checked(rpc::request(7, &send).unwrap());
    assert_eq!((request.id, request.method.as_str()), (7, "sendAsync"));
    assert_eq!(serde_json::from_value::<SendAsync>(request.params).unwrap(), send);
    let open = OpenClient {
        options: ClientOptions { service_url: "pulsar://h:1".to_owned(), ..Default::default() },
    };
    assert_eq!(checked(rpc::request(8, &open).unwrap()).params["options"]["serviceUrl"], "pulsar://h:1");
    let receive = Receive { consumer: ConsumerId(1), wait_ms: None };
    checked(rpc::request(9, &receive).unwrap());
    for wrong in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "closeClient", "params": { "client": 1, "more": 2 } }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "noSuchMethod", "params": {} }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "flush", "params": {} }),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn answers_keep_to_the_schema_and_survive() {
    let validator = validator();
    let parsed = |outcome: Result<Json, RpcError>| {
        let line = rpc::response(5, outcome);
        let json: Json = serde_json::from_str(&line).unwrap();
        assert!(validator.is_valid(&json), "{line}");
        let Response { id, outcome } = Response::parse(&line).unwrap();
        assert_eq!(id, 5);
        outcome
    };
    let message = serde_json::to_value(Some(received())).unwrap();
    let back: Option<Received> = serde_json::from_value(parsed(Ok(message)).unwrap()).unwrap();
    assert_eq!(back, Some(received()));
    assert_eq!(parsed(Ok(Json::Null)), Ok(Json::Null));
    for error in [
        ClientError::Failed(ApiError {
            category: "NotFound".to_owned(),
            message: "no such topic".to_owned(),
            how: Signalled::Synchronously,
        }),
        ClientError::Unsupported("transactions".to_owned()),
    ] {
        let back = parsed(Err(error.clone().into())).unwrap_err().into_client_error("send");
        assert_eq!(back, error);
    }
    let failure = |category: &str| {
        let data = json!({ "category": category, "message": "", "how": "byFuture" });
        json!({ "jsonrpc": "2.0", "id": 5, "error": { "code": rpc::FAILED, "message": "", "data": data } })
    };
    for category in CATEGORIES {
        assert!(validator.is_valid(&failure(category)), "{category}");
    }
    assert!(!validator.is_valid(&failure("NoSuchTopic")), "the schema has no list of categories");
}

#[test]
fn results_keep_to_their_schema() {
    let mut root = schema::schema();
    root["oneOf"] = json!([{ "$ref": format!("#/$defs/{}.result", Receive::METHOD) }]);
    let validator = jsonschema::validator_for(&root).unwrap();
    let mut message = serde_json::to_value(received()).unwrap();
    assert!(validator.is_valid(&message) && validator.is_valid(&Json::Null));
    message["surprise"] = json!(1);
    assert!(!validator.is_valid(&message));
    assert!(serde_json::from_value::<Received>(message).is_err());
}

#[test]
fn what_is_no_answer_is_told_from_one() {
    for (line, named) in [
        ("hello", "no JSON"),
        ("[]", "no object"),
        (r#"{"id":1,"result":1}"#, "jsonrpc"),
        (r#"{"jsonrpc":"2.0","result":1}"#, "id"),
        (r#"{"jsonrpc":"2.0","id":-1,"result":1}"#, "id"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "neither"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#, "both"),
        (r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, "error"),
    ] {
        let problem = Response::parse(line).unwrap_err().to_string();
        assert!(problem.contains(named), "{line}: {problem}");
    }
    // Written by libraries that have no other way.
    assert!(Response::parse(r#"{"jsonrpc":"2.0","id":1,"result":3,"error":null}"#).unwrap().outcome.is_ok());
    let error = r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-32601,"message":"?"}}"#;
    let error = Response::parse(error).unwrap().outcome.unwrap_err();
    assert_eq!(error.into_client_error("flush"), ClientError::Unsupported("the operation flush".to_owned()));
}

#[test]
fn capabilities_have_the_names_that_they_are_written_with() {
    use stc_adapter_protocol::Capability;
    for capability in Capability::ALL {
        assert_eq!(serde_json::to_value(capability).unwrap(), capability.as_str());
    }
}
