//! JSON-RPC 2.0, one message a line: how requests and answers are written and read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use thiserror::Error;

use crate::error::{ApiError, ClientError};
use crate::operation::Operation;

/// How long a line may be, in bytes without its end. A message of 5 MiB, twice in base64, fits.
pub const LONGEST_LINE: usize = 64 << 20;

/// The operation failed; `data` is an [`ApiError`].
pub const FAILED: i64 = -32000;
/// The SDK does not offer it; `data` is an [`Unsupported`].
pub const UNSUPPORTED: i64 = -32001;
/// The adapter does not know the method, which is read as *unsupported*.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The adapter does not understand the parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// The adapter itself went wrong.
pub const INTERNAL: i64 = -32603;

/// What an error with the code [`UNSUPPORTED`] carries as `data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unsupported {
    /// What is not offered, in a few words.
    pub capability: String,
}

/// An answer, as read from a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// Which request it answers.
    pub id: u64,
    /// The result, or why there is none.
    pub outcome: Result<Json, RpcError>,
}

/// The member `error` of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RpcError {
    /// What kind of error.
    pub code: i64,
    /// In words.
    pub message: String,
    /// What belongs to the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

/// A request, as read from a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Repeated in the answer.
    pub id: u64,
    /// Name of the method.
    pub method: String,
    /// Its parameters.
    pub params: Json,
}

/// Why a line is no message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Nonsense {
    /// No JSON.
    #[error("it is no JSON: {0}; only answers may go to standard output, no print and no library's log")]
    NoJson(String),
    /// JSON of another form.
    #[error("it is no {0} of JSON-RPC 2.0: {1}")]
    NoMessage(&'static str, &'static str),
}

/// Writes a request, without the line's end.
///
/// # Errors
/// When the parameters do not serialize.
pub fn request<O: Operation>(id: u64, params: &O) -> Result<String, serde_json::Error> {
    let params = serde_json::to_value(params)?;
    Ok(json!({ "jsonrpc": "2.0", "id": id, "method": O::METHOD, "params": params }).to_string())
}

/// Writes an answer, without the line's end.
pub fn response(id: u64, outcome: Result<Json, RpcError>) -> String {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
    .to_string()
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Nonsense`].
    pub fn parse(line: &str) -> Result<Request, Nonsense> {
        let nonsense = |why| Nonsense::NoMessage("request", why);
        let mut object = object(line, "request")?;
        let id = object.get("id").and_then(Json::as_u64).ok_or(nonsense("no numeric \"id\""))?;
        let params = object.remove("params").unwrap_or_else(|| json!({}));
        match object.remove("method") {
            Some(Json::String(method)) => Ok(Request { id, method, params }),
            _ => Err(nonsense("no \"method\"")),
        }
    }
}

impl Response {
    /// Reads an answer.
    ///
    /// # Errors
    /// [`Nonsense`].
    pub fn parse(line: &str) -> Result<Response, Nonsense> {
        let nonsense = |why| Nonsense::NoMessage("response", why);
        let mut object = object(line, "response")?;
        let id = object.get("id").and_then(Json::as_u64).ok_or(nonsense("no numeric \"id\""))?;
        // Some libraries write the member that they have no use for as null.
        let error = object.remove("error").filter(|error| !error.is_null());
        let outcome = match (object.remove("result"), error) {
            (Some(result), None) => Ok(result),
            (None | Some(Json::Null), Some(error)) => Err(serde_json::from_value(error)
                .map_err(|_| nonsense("\"error\" needs a \"code\" and a \"message\""))?),
            (Some(_), Some(_)) => return Err(nonsense("both \"result\" and \"error\"")),
            (None, None) => return Err(nonsense("neither \"result\" nor \"error\"")),
        };
        Ok(Response { id, outcome })
    }
}

fn object(line: &str, kind: &'static str) -> Result<Map<String, Json>, Nonsense> {
    match serde_json::from_str(line) {
        Ok(Json::Object(object)) => match object.get("jsonrpc").and_then(Json::as_str) {
            Some("2.0") => Ok(object),
            _ => Err(Nonsense::NoMessage(kind, "\"jsonrpc\" is not \"2.0\"")),
        },
        Ok(_) => Err(Nonsense::NoMessage(kind, "no object")),
        Err(e) => Err(Nonsense::NoJson(e.to_string())),
    }
}

impl From<ClientError> for RpcError {
    fn from(error: ClientError) -> RpcError {
        let message = error.to_string();
        let (code, data) = match error {
            ClientError::Failed(error) => (FAILED, serde_json::to_value(error).ok()),
            ClientError::Unsupported(capability) => (UNSUPPORTED, Some(json!({ "capability": capability }))),
            ClientError::Hangs(_) | ClientError::Gone(_) | ClientError::Breach(_) | ClientError::Fault(_) => {
                (INTERNAL, None)
            }
        };
        RpcError { code, message, data }
    }
}

impl RpcError {
    /// What the error says about the client that `method` was asked of.
    pub fn into_client_error(self, method: &str) -> ClientError {
        let RpcError { code, message, data } = self;
        match code {
            FAILED => match data.map(serde_json::from_value::<ApiError>) {
                Some(Ok(error)) => ClientError::Failed(error),
                Some(Err(e)) => {
                    ClientError::Breach(format!("{method} failed with data that nobody reads: {e}"))
                }
                None => ClientError::Breach(format!("{method} failed without data: {message}")),
            },
            UNSUPPORTED => {
                let named = data.and_then(|data| serde_json::from_value::<Unsupported>(data).ok());
                ClientError::Unsupported(named.map_or(message, |named| named.capability))
            }
            METHOD_NOT_FOUND => ClientError::Unsupported(format!("the operation {method}")),
            _ => ClientError::Fault(format!("it answered {method} with error {code}: {message}")),
        }
    }
}
