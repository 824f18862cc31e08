//! Reading what a request says, the way Pulsar reads it: absent and empty parameters have their default, a number
//! that does not parse is a path that does not exist (404), `true` is the only true boolean.

use std::collections::BTreeMap;

use axum::{extract::Query, http::Uri};
use serde_json::Value as Json;
use stc_proto::{TopicName, name::Domain};

use super::reply::Refusal;

/// The query parameters, in order.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// The parameters of this URI.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Refusal> {
        Query::try_from_uri(uri)
            .map(|Query(pairs)| Params(pairs))
            .map_err(|e| Refusal::bad_request(e.body_text()))
    }

    /// The first value of a parameter, unless it is empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|v| !v.is_empty())
    }

    /// Every value of a parameter that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A boolean; false when absent.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// A number with a default.
    pub(crate) fn int<N: std::str::FromStr>(&self, name: &str, default: N) -> Result<N, Refusal> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| Refusal::not_found(format!("{name} is not a number in range: {text}"))),
        }
    }
}

/// Refuses a path with a `%` that two hex digits do not follow.
pub(crate) fn check_escapes(path: &str) -> Result<(), Refusal> {
    let hex = |text: &str| text.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if path.split('%').skip(1).all(hex) {
        return Ok(());
    }
    Err(Refusal::bad_request("a % in the path is not followed by two hex digits"))
}

/// A number in the path.
pub(crate) fn path_int(name: &str, text: &str) -> Result<i64, Refusal> {
    text.parse().map_err(|_| Refusal::not_found(format!("{name} is not a number in range: {text}")))
}

/// A topic named by parts of the path.
pub(crate) fn topic(
    domain: Domain,
    tenant: &str,
    namespace: &str,
    local: &str,
) -> Result<TopicName, Refusal> {
    check_namespace(tenant, namespace)?;
    if local.contains(char::is_control) {
        return Err(Refusal::bad_request("the topic's name has a control character"));
    }
    // A local name with a slash would read as a segment's name.
    if local.contains('/') {
        return Err(Refusal::precondition("Topic name is not valid"));
    }
    TopicName::new(domain, tenant, namespace, local)
        .map_err(|_| Refusal::precondition("Topic name is not valid"))
}

/// Refuses a namespace whose name Pulsar does not allow.
pub(crate) fn check_namespace(tenant: &str, namespace: &str) -> Result<(), Refusal> {
    // The topic's own name does not matter here.
    TopicName::new(Domain::Topic, tenant, namespace, "x")
        .map(|_| ())
        .map_err(|_| Refusal::precondition("Namespace name is not valid"))
}

/// Refuses a tenant whose name Pulsar does not allow.
pub(crate) fn check_tenant(tenant: &str) -> Result<(), Refusal> {
    check_namespace(tenant, "x").map_err(|_| Refusal::precondition("Tenant name is not valid"))
}

/// A JSON body; `None` when it is empty or `null`, which Pulsar does not tell apart.
pub(crate) fn json(body: &[u8]) -> Result<Option<Json>, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    match serde_json::from_slice(body) {
        Ok(Json::Null) => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(e) => Err(Refusal::bad_request(format!("the body is not JSON: {e}"))),
    }
}

/// A JSON object body.
pub(crate) fn object(body: &[u8]) -> Result<Option<serde_json::Map<String, Json>>, Refusal> {
    match json(body)? {
        None => Ok(None),
        Some(Json::Object(map)) => Ok(Some(map)),
        Some(other) => Err(Refusal::bad_request(format!("the body is not an object but {}", kind(&other)))),
    }
}

/// A body of properties: texts, and other scalars as texts.
pub(crate) fn properties(body: &[u8]) -> Result<BTreeMap<String, String>, Refusal> {
    let map = object(body)?.unwrap_or_default();
    map.into_iter().map(|(key, value)| Ok((key.clone(), scalar_text(&key, value)?))).collect()
}

fn scalar_text(key: &str, value: Json) -> Result<String, Refusal> {
    match value {
        Json::String(text) => Ok(text),
        Json::Number(_) | Json::Bool(_) => Ok(value.to_string()),
        other => Err(Refusal::bad_request(format!("property {key} is not a text but {}", kind(&other)))),
    }
}

/// A body that is one integer. Pulsar takes `2`, `2.5` and `"2"` for 2, and `null` for 0.
pub(crate) fn integer(body: &[u8]) -> Result<i64, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(empty());
    }
    let not = |value: &Json| Refusal::bad_request(format!("the body is not an integer: {value}"));
    match json(body)? {
        None => Ok(0),
        Some(value) => match &value {
            Json::Number(number) => number
                .as_i64()
                .or_else(|| number.as_f64().filter(|f| f.abs() <= f64::from(i32::MAX)).map(|f| f as i64))
                .ok_or_else(|| not(&value)),
            Json::String(text) => text.trim().parse().map_err(|_| not(&value)),
            _ => Err(not(&value)),
        },
    }
}

/// A body that is one boolean, or the text of one.
pub(crate) fn boolean(body: &[u8]) -> Result<bool, Refusal> {
    match json(body)? {
        None => Err(empty()),
        Some(Json::Bool(value)) => Ok(value),
        Some(Json::String(text)) if text == "true" || text == "false" => Ok(text == "true"),
        Some(other) => Err(Refusal::bad_request(format!("the body is not true or false: {other}"))),
    }
}

fn empty() -> Refusal {
    Refusal::bad_request("The request entity cannot be empty.")
}

/// What a JSON value is, for messages.
pub(crate) fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}
