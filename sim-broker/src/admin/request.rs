//! A request as handlers see it, and the one way in: read it, act, journal it, answer.

use axum::{
    body::to_bytes,
    extract::{FromRequestParts, RawPathParams, Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use stc_proto::{TopicName, name::Domain};

use super::{
    Site,
    params::{self, Params},
    reply::{Answer, Refusal, Reply},
};

/// The largest request body, in bytes. Pulsar takes the six million bytes that were tried.
pub(super) const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// How many characters of a body the journal shows.
const SHOWN: usize = 2000;

/// A request.
#[derive(Debug)]
pub(super) struct Call {
    /// The broker that was asked.
    pub(super) site: Site,
    /// The parameters in the path, in order.
    path: Vec<String>,
    /// The parameters in the query.
    pub(super) params: Params,
    /// The body; empty when there is none.
    pub(super) body: Bytes,
}

/// What serves a route.
pub(super) type Handler = fn(&Call) -> Answer;

impl Call {
    /// The n-th parameter in the path, counted from 0.
    pub(super) fn part(&self, n: usize) -> &str {
        self.path.get(n).map_or("", String::as_str)
    }

    /// The topic that the first three parameters in the path name.
    pub(super) fn topic(&self, domain: Domain) -> Result<TopicName, Refusal> {
        params::topic(domain, self.part(0), self.part(1), self.part(2))
    }
}

/// Serves one request.
pub(super) async fn serve(State(site): State<Site>, handler: Handler, request: Request) -> Response {
    let line = format!("{} {}", request.method(), request.uri());
    let (call, shown) = match read(site.clone(), request).await {
        Ok(call) => {
            let shown = show(&call.body);
            (Ok(call), shown)
        }
        Err(refusal) => (Err(refusal), String::new()),
    };
    let answer = call.and_then(|call| handler(&call));
    let body = if shown.is_empty() { shown } else { format!(" body={shown}") };
    let (status, reply) = match &answer {
        Ok(Reply::Done) => (StatusCode::NO_CONTENT, String::new()),
        Ok(Reply::Unset) => (StatusCode::OK, String::new()),
        Ok(Reply::Json(text) | Reply::Text(text)) => (StatusCode::OK, format!(" {}", show(text.as_bytes()))),
        Err(refusal) => (refusal.status, format!(" {}", show(refusal.body().as_bytes()))),
    };
    site.journal(format!("{line}{body} -> {}{reply}", status.as_u16()));
    answer.into_response()
}

async fn read(site: Site, request: Request) -> Result<Call, Refusal> {
    let (mut parts, body) = request.into_parts();
    params::check_escapes(parts.uri.path())?;
    let path = RawPathParams::from_request_parts(&mut parts, &())
        .await
        // Names that are not UTF-8.
        .map_err(|rejection| Refusal::bad_request(rejection.body_text()))?
        .iter()
        .map(|(_, text)| text.to_owned())
        .collect();
    let params = Params::of(&parts.uri)?;
    // Only these resources say what they consume; the others take any type.
    let typed = parts.uri.path().starts_with("/admin/v2/scalable");
    let json = parts.headers.get(header::CONTENT_TYPE).is_none_or(|value| {
        value
            .to_str()
            .is_ok_and(|text| text.trim_start().to_ascii_lowercase().starts_with("application/json"))
    });
    if typed && !json {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type is not application/json"));
    }
    // A client that sends no body and no Content-Length gets here with an empty one.
    let body = to_bytes(body, BODY_LIMIT).await.map_err(|_| {
        let reason = format!("the body broke off, or is larger than {BODY_LIMIT} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
    })?;
    Ok(Call { site, path, params, body })
}

fn show(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(SHOWN).collect()
}
