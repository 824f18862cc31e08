//! The control API over HTTP, at `/control/v1`: the calls of [`Control`], nothing more. The document
//! at `/control/v1/openapi.json` (in the repository: `docs/control-api.openapi.json`) describes it;
//! `docs/control-api.md` shows it in use.
//!
//! | Module | Owns |
//! |---|---|
//! | `table` | what an operation is; the router and the OpenAPI document of a table of them |
//! | `routes` | the table and its handlers |
//! | `journal` | the handlers that read the journal |
//! | `tokens` | the operations on tokens |
//! | `types` | what calls take and answer |

mod journal;
mod routes;
mod table;
mod tokens;
mod types;

use axum::Router;

use super::Control;

/// The routes of the control API.
pub fn router(control: Control) -> Router {
    table::router(operations()).with_state(control)
}

/// The OpenAPI 3.1 document of the control API.
pub fn openapi() -> serde_json::Value {
    table::openapi(&operations())
}

fn operations() -> Vec<table::Operation> {
    routes::operations().into_iter().chain(tokens::operations()).collect()
}
