//! One table of operations builds both the router and the OpenAPI document, so they cannot drift apart: an operation
//! carries its handler, and the handler's types are what the document describes.

use std::future::Future;

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, OriginalUri, RawPathParams, State},
    http::{Method, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json, json};

use crate::control::{Control, ControlError};

/// Where the control API lives.
pub(super) const BASE: &str = "/control/v1";

/// The largest request body, in bytes. A layout of 65,536 segments fits.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// Why a call was refused. Nothing was changed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Refusal")]
pub(super) struct Reason {
    /// What is wrong, for people.
    reason: String,
}

/// A refusal with its status.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

impl Refusal {
    /// 400: the request is malformed or asks for what cannot be.
    pub(super) fn bad_request(reason: impl ToString) -> Self {
        Refusal(StatusCode::BAD_REQUEST, reason.to_string())
    }

    /// 404: there is no such thing.
    pub(super) fn not_found(reason: impl ToString) -> Self {
        Refusal(StatusCode::NOT_FOUND, reason.to_string())
    }
}

impl From<ControlError> for Refusal {
    fn from(error: ControlError) -> Self {
        let status = match &error {
            ControlError::Fault(_) | ControlError::Name(_) => StatusCode::BAD_REQUEST,
            ControlError::NotFound(_) => StatusCode::NOT_FOUND,
            ControlError::State(_) => StatusCode::CONFLICT,
        };
        Refusal(status, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, axum::Json(Reason { reason: self.1 })).into_response()
    }
}

/// What a call asks for: the number in its path (0 when it has none), its query, its body.
pub(super) struct Call<Q, B> {
    pub(super) id: u64,
    pub(super) query: Q,
    pub(super) body: B,
}

/// The query or the body of a call.
pub(super) trait Part: Sized + Send {
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema>;
    fn from_query(uri: &Uri) -> Result<Self, Refusal>;
    fn from_body(body: &[u8]) -> Result<Self, Refusal>;
}

/// Nothing is expected there.
impl Part for () {
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    fn from_query(uri: &Uri) -> Result<Self, Refusal> {
        match uri.query().unwrap_or_default() {
            "" => Ok(()),
            query => Err(Refusal::bad_request(format!("this call takes no parameters, got {query:?}"))),
        }
    }
    fn from_body(body: &[u8]) -> Result<Self, Refusal> {
        match body.trim_ascii() {
            b"" | b"{}" => Ok(()),
            _ => Err(Refusal::bad_request("this call takes no body")),
        }
    }
}

/// A value of this type is expected there.
pub(super) struct Given<T>(pub(super) T);

impl<T: DeserializeOwned + JsonSchema + Send> Part for Given<T> {
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }
    fn from_query(uri: &Uri) -> Result<Self, Refusal> {
        axum::extract::Query::try_from_uri(uri)
            .map(|axum::extract::Query(value)| Given(value))
            .map_err(Refusal::bad_request_text)
    }
    fn from_body(body: &[u8]) -> Result<Self, Refusal> {
        if body.trim_ascii().is_empty() {
            return Err(Refusal::bad_request("this call needs a JSON body"));
        }
        serde_json::from_slice(body).map(Given).map_err(Refusal::bad_request)
    }
}

impl Refusal {
    fn bad_request_text(rejection: axum::extract::rejection::QueryRejection) -> Self {
        Refusal::bad_request(rejection.body_text())
    }
}

/// What a call answers.
pub(super) trait Told: Send {
    const STATUS: u16;
    const MEDIA: &'static str = "application/json";
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema>;
    fn into_response(self) -> Response;
}

impl Told for () {
    const STATUS: u16 = 204;
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl<T: Serialize + JsonSchema + Send> Told for Given<T> {
    const STATUS: u16 = 200;
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

/// A stream of JSON values, one a line, each a `T`.
pub(super) struct Lines<T>(pub(super) Body, pub(super) std::marker::PhantomData<fn() -> T>);

impl<T: JsonSchema> Told for Lines<T> {
    const STATUS: u16 = 200;
    const MEDIA: &'static str = "application/x-ndjson";
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }
    fn into_response(self) -> Response {
        ([(axum::http::header::CONTENT_TYPE, Self::MEDIA)], self.0).into_response()
    }
}

type SchemaOf = fn(&mut SchemaGenerator) -> Option<Schema>;

/// One operation of the API.
pub(super) struct Operation {
    method: Method,
    path: &'static str,
    id: &'static str,
    about: &'static str,
    query: SchemaOf,
    body: SchemaOf,
    reply: SchemaOf,
    status: u16,
    media: &'static str,
    route: MethodRouter<Control>,
}

/// An operation with its handler. `path` follows [`BASE`] and has at most one parameter, a number.
pub(super) fn operation<Q, B, R, F>(
    method: Method,
    path: &'static str,
    id: &'static str,
    about: &'static str,
    handler: fn(Control, Call<Q, B>) -> F,
) -> Operation
where
    Q: Part + 'static,
    B: Part + 'static,
    R: Told + 'static,
    F: Future<Output = Result<R, Refusal>> + Send + 'static,
{
    let filter = match method {
        Method::POST => MethodFilter::POST,
        Method::DELETE => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    let route = on(
        filter,
        move |State(control): State<Control>, path: RawPathParams, uri: Uri, body: Bytes| async move {
            let call = async {
                let id = path_id(&path)?;
                let call = Call { id, query: Q::from_query(&uri)?, body: B::from_body(&body)? };
                handler(control, call).await
            };
            call.await.map_or_else(Refusal::into_response, R::into_response)
        },
    );
    Operation {
        method,
        path,
        id,
        about,
        query: Q::schema,
        body: B::schema,
        reply: R::schema,
        status: R::STATUS,
        media: R::MEDIA,
        route,
    }
}

fn path_id(params: &RawPathParams) -> Result<u64, Refusal> {
    match params.iter().next() {
        None => Ok(0),
        Some((name, text)) => {
            text.parse().map_err(|_| Refusal::bad_request(format!("{name} is not a number: {text:?}")))
        }
    }
}

/// The router of these operations, below [`BASE`].
pub(super) fn router(operations: Vec<Operation>) -> Router<Control> {
    let document = openapi(&operations);
    let describe = move || async move { axum::Json(document) };
    let router = operations
        .into_iter()
        .fold(Router::new(), |router, operation| router.route(operation.path, operation.route))
        .route("/openapi.json", axum::routing::get(describe))
        .method_not_allowed_fallback(async |method: Method, OriginalUri(uri): OriginalUri| {
            Refusal(StatusCode::METHOD_NOT_ALLOWED, format!("{} does not take {method}", uri.path()))
        })
        .fallback(async |OriginalUri(uri): OriginalUri| {
            Refusal::not_found(format!("there is nothing at {}; see {BASE}/openapi.json", uri.path()))
        })
        .layer(DefaultBodyLimit::max(BODY_LIMIT));
    Router::new().nest(BASE, router)
}

/// The OpenAPI 3.1 document of these operations.
pub(super) fn openapi(operations: &[Operation]) -> Json {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let refusal = generator.subschema_for::<Reason>();
    let mut paths = Map::new();
    for operation in operations {
        let entry = paths.entry(format!("{BASE}{}", operation.path)).or_insert_with(|| json!({}));
        if let Json::Object(methods) = entry {
            methods.insert(
                operation.method.as_str().to_ascii_lowercase(),
                operation.describe(&mut generator, &refusal),
            );
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Control API of the simulated cluster",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Faults, deaths, moves, pushes, the clock and the journal of a simulated Pulsar cluster. \
                Refusals change nothing.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": generator.take_definitions(true) },
    })
}

impl Operation {
    fn describe(&self, generator: &mut SchemaGenerator, refusal: &Schema) -> Json {
        let content = |media: &str, schema: Schema| json!({ media: { "schema": schema } });
        let mut reply = Map::new();
        reply.insert("description".into(), if self.status == 204 { "Done." } else { "The answer." }.into());
        if let Some(schema) = (self.reply)(generator) {
            reply.insert("content".into(), content(self.media, schema));
        }
        let refused =
            json!({ "description": "Refused.", "content": content("application/json", refusal.clone()) });
        let mut document = Map::new();
        document.insert("operationId".into(), self.id.into());
        document.insert("summary".into(), self.about.into());
        let parameters: Vec<Json> =
            self.path_parameter().into_iter().chain(self.query_parameters(generator)).collect();
        if !parameters.is_empty() {
            document.insert("parameters".into(), parameters.into());
        }
        if let Some(schema) = (self.body)(generator) {
            let body = json!({ "required": true, "content": content("application/json", schema) });
            document.insert("requestBody".into(), body);
        }
        document.insert("responses".into(), json!({ self.status.to_string(): reply, "4XX": refused }));
        Json::Object(document)
    }

    fn path_parameter(&self) -> Option<Json> {
        let (_, rest) = self.path.split_once('{')?;
        let (name, _) = rest.split_once('}')?;
        let schema = json!({ "type": "integer", "format": "uint64", "minimum": 0 });
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    }

    /// The fields of the query's type, one parameter each.
    fn query_parameters(&self, generator: &mut SchemaGenerator) -> Vec<Json> {
        // A generator of its own: the struct itself is no schema of the document.
        let mut own = generator.settings().clone().into_generator();
        let Some(reference) = (self.query)(&mut own) else { return Vec::new() };
        let definitions = own.take_definitions(true);
        let name = reference.get("$ref").and_then(Json::as_str).and_then(|r| r.rsplit('/').next());
        let schema =
            name.and_then(|name| definitions.get(name)).cloned().unwrap_or_else(|| reference.to_value());
        let list = |key: &str| schema.get(key).and_then(Json::as_array).cloned().unwrap_or_default();
        let required = list("required");
        let fields = schema.get("properties").and_then(Json::as_object).into_iter().flatten();
        let parameters = fields.map(|(name, schema)| {
            let mut schema = schema.clone();
            let about = schema.as_object_mut().and_then(|s| s.remove("description")).unwrap_or_default();
            let required = required.iter().any(|r| r == name);
            json!({ "name": name, "in": "query", "description": about, "required": required, "schema": schema })
        });
        parameters.collect()
    }
}
