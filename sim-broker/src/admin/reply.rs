//! What an admin call answers: Pulsar's statuses, and errors as `{"reason": …}`.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::core::cluster::admin::AdminError;

/// A good answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// 204.
    Done,
    /// 200 with no body: how Pulsar answers for a policy that is not set.
    Unset,
    /// 200 with JSON, rendered: keys in Pulsar's order.
    Json(String),
    /// 200 with plain text, which Pulsar labels as JSON all the same.
    Text(String),
}

impl Reply {
    /// 200 with this value.
    pub(crate) fn json(value: &impl Serialize) -> Answer {
        serde_json::to_string(value).map(Reply::Json).map_err(|e| Refusal::internal(&e.to_string()))
    }

    /// 200 with this value, or empty when there is none.
    pub(crate) fn maybe(value: Option<impl Serialize>) -> Answer {
        value.map_or(Ok(Reply::Unset), |value| Reply::json(&value))
    }
}

/// A refusal: nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status.
    pub(crate) status: StatusCode,
    /// Why, for people.
    pub(crate) reason: String,
}

/// What a handler gives.
pub(crate) type Answer = Result<Reply, Refusal>;

impl Refusal {
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Refusal { status, reason: reason.into() }
    }

    /// The body of the answer.
    pub(crate) fn body(&self) -> String {
        // A struct of one text always serialises.
        serde_json::to_string(&Reason { reason: &self.reason }).unwrap_or_default()
    }

    /// 400: the request itself is malformed.
    pub(crate) fn bad_request(reason: impl Into<String>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, reason)
    }

    /// 404.
    pub(crate) fn not_found(reason: impl Into<String>) -> Self {
        Refusal::new(StatusCode::NOT_FOUND, reason)
    }

    /// 412: Pulsar's status for a value that makes no sense.
    pub(crate) fn precondition(reason: impl Into<String>) -> Self {
        Refusal::new(StatusCode::PRECONDITION_FAILED, reason)
    }

    /// 503: it would work with another broker, or later.
    pub(crate) fn unavailable(reason: impl Into<String>) -> Self {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }

    /// 500, the way Pulsar wraps what it did not expect. There is no stack trace here to follow the message.
    pub(crate) fn internal(message: &str) -> Self {
        Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("\n --- An unexpected error occurred in the server ---\n\nMessage: {message}"),
        )
    }
}

impl From<AdminError> for Refusal {
    fn from(error: AdminError) -> Self {
        match StatusCode::from_u16(error.status) {
            // What Pulsar did not expect it wraps.
            Ok(StatusCode::INTERNAL_SERVER_ERROR) | Err(_) => Refusal::internal(&error.reason),
            Ok(status) => Refusal::new(status, error.reason),
        }
    }
}

#[derive(Serialize)]
struct Reason<'a> {
    reason: &'a str,
}

const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        match self {
            Reply::Done => StatusCode::NO_CONTENT.into_response(),
            Reply::Unset => StatusCode::OK.into_response(),
            Reply::Json(text) | Reply::Text(text) => (JSON, text).into_response(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, JSON, self.body()).into_response()
    }
}
