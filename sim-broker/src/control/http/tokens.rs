//! The operations on tokens.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::{Call, Given, Operation, Refusal, operation};
use crate::control::Control;

/// A token and whom it stands for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Token {
    /// The token.
    token: String,
    /// The principal.
    principal: String,
}

/// A token.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfToken {
    /// The token.
    token: String,
}

/// Whether a token was valid.
#[derive(Debug, Serialize, JsonSchema)]
struct Expired {
    /// Whether it was valid until now.
    was_valid: bool,
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        operation(Method::POST, "/tokens/allow", "allowToken", "Makes a token valid.", allow),
        operation(
            Method::POST,
            "/tokens/expire",
            "expireToken",
            "Makes a token invalid; connections that came with it are challenged, or close.",
            expire,
        ),
    ]
}

async fn allow(control: Control, call: Call<(), Given<Token>>) -> Result<(), Refusal> {
    let Given(Token { token, principal }) = call.body;
    control.allow_token(&token, &principal);
    Ok(())
}

async fn expire(control: Control, call: Call<(), Given<OfToken>>) -> Result<Given<Expired>, Refusal> {
    Ok(Given(Expired { was_valid: control.expire_token(&call.body.0.token) }))
}
