//! Pulsar's admin REST as the steps use it, over HTTP or straight into the simulated cluster's router.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
pub use axum::http::Method;
use axum::http::request::Builder;
use axum::http::{Request, header};
use serde_json::Value as Json;
use thiserror::Error;
use tower::ServiceExt as _;

/// Longest answer that is read, in bytes.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// How long a call over HTTP may take. A broker that starts its metadata store answers its first calls slowly.
const HTTP_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a call gave no answer, or not the expected one.
#[derive(Debug, Error)]
pub enum AdminError {
    /// There was no answer.
    #[error("{method} {path}: {message}")]
    NoAnswer {
        /// The method.
        method: Method,
        /// The path.
        path: String,
        /// Why.
        message: String,
    },
    /// The answer says that the call failed.
    #[error("{method} {path}: {status} {body}")]
    Refused {
        /// The method.
        method: Method,
        /// The path.
        path: String,
        /// HTTP status.
        status: u16,
        /// What the broker says.
        body: String,
    },
    /// The answer cannot be read.
    #[error("GET {path}: {message}")]
    Answer {
        /// The path.
        path: String,
        /// What is wrong with it.
        message: String,
    },
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

/// Access to the admin REST of one broker.
#[derive(Clone)]
pub struct Admin {
    way: Way,
    /// Shown with every call.
    token: Option<String>,
}

#[derive(Clone)]
enum Way {
    InProcess(Router),
    Http(String),
}

impl Admin {
    /// Through a router in this process.
    pub fn in_process(router: Router, token: Option<String>) -> Admin {
        Admin { way: Way::InProcess(router), token }
    }

    /// At a base URL, `http://host:port`.
    pub fn http(base: String, token: Option<String>) -> Admin {
        Admin { way: Way::Http(base), token }
    }

    /// One call. The answer may be a refusal.
    ///
    /// # Errors
    /// [`AdminError::NoAnswer`].
    pub async fn call(&self, method: Method, path: &str, body: Option<Json>) -> Result<Answer, AdminError> {
        let no_answer =
            |message: String| AdminError::NoAnswer { method: method.clone(), path: path.to_owned(), message };
        let request = |url: &str| request(method.clone(), url, self.token.as_deref());
        match &self.way {
            Way::InProcess(router) => in_process(router.clone(), request(path), body).await,
            Way::Http(base) => {
                let request = request(&format!("{}{path}", base.trim_end_matches('/')));
                tokio::task::spawn_blocking(move || over_http(request, body))
                    .await
                    .unwrap_or_else(|e| Err(e.to_string()))
            }
        }
        .map_err(no_answer)
    }

    /// One call that must succeed.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn must(&self, method: Method, path: &str, body: Option<Json>) -> Result<String, AdminError> {
        let answer = self.call(method.clone(), path, body).await?;
        if (200..300).contains(&answer.status) {
            Ok(answer.body)
        } else {
            Err(AdminError::Refused {
                method,
                path: path.to_owned(),
                status: answer.status,
                body: answer.body,
            })
        }
    }
}

fn request(method: Method, url: &str, token: Option<&str>) -> Builder {
    let builder = Request::builder().method(method).uri(url);
    match token {
        Some(token) => builder.header(header::AUTHORIZATION, format!("Bearer {token}")),
        None => builder,
    }
}

async fn in_process(router: Router, builder: Builder, body: Option<Json>) -> Result<Answer, String> {
    let request = match body {
        Some(json) => {
            builder.header(header::CONTENT_TYPE, "application/json").body(Body::from(json.to_string()))
        }
        None => builder.body(Body::empty()),
    }
    .map_err(|e| e.to_string())?;
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), MAX_ANSWER).await.map_err(|e| e.to_string())?;
    Ok(Answer { status, body: String::from_utf8_lossy(&bytes).into_owned() })
}

fn over_http(builder: Builder, body: Option<Json>) -> Result<Answer, String> {
    let builder = builder.header(header::CONTENT_TYPE, "application/json");
    let request = builder.body(body.map(|b| b.to_string()).unwrap_or_default()).map_err(|e| e.to_string())?;
    let mut config =
        ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(HTTP_TIMEOUT));
    if request.method() != Method::GET {
        // ureq repeats nothing that may have a body elsewhere: the redirect is the answer.
        config = config.max_redirects(0);
    }
    let agent = ureq::Agent::new_with_config(config.build());
    let mut response = agent.run(request).map_err(|e| e.to_string())?;
    let status = response.status().as_u16();
    let body = response
        .body_mut()
        .with_config()
        .limit(MAX_ANSWER as u64)
        .read_to_string()
        .map_err(|e| e.to_string())?;
    Ok(Answer { status, body })
}
