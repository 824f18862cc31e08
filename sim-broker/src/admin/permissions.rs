//! `/admin/v2/namespaces/{tenant}/{namespace}/permissions`: what principals may do in a namespace.

use std::collections::BTreeSet;

use axum::routing::MethodFilter;
use serde_json::Value as Json;

use super::{
    Route,
    params::check_namespace,
    reply::{Answer, Refusal, Reply},
    request::Call,
};
use crate::core::Action;

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::GET, "/admin/v2/namespaces/{tenant}/{namespace}/permissions", permissions),
    (MethodFilter::POST, "/admin/v2/namespaces/{tenant}/{namespace}/permissions/{role}", grant),
    (MethodFilter::DELETE, "/admin/v2/namespaces/{tenant}/{namespace}/permissions/{role}", revoke),
];

fn permissions(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    call.site.call(|cluster, _| Reply::json(cluster.permissions(call.part(0), call.part(1))?))
}

/// Replaces what a role may do. An action that is none is 400; Pulsar takes it for nothing, which hides a typing error.
fn grant(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    let actions = actions(&call.body)?;
    call.site.call(|cluster, now| cluster.grant(call.part(0), call.part(1), call.part(2), actions, now))?;
    Ok(Reply::Done)
}

fn revoke(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    call.site.call(|cluster, now| cluster.revoke(call.part(0), call.part(1), call.part(2), now))?;
    Ok(Reply::Done)
}

fn actions(body: &[u8]) -> Result<BTreeSet<Action>, Refusal> {
    if body.is_empty() {
        return Err(Refusal::bad_request("Actions should not be null"));
    }
    let names: Vec<Json> = serde_json::from_slice(body)
        .map_err(|e| Refusal::bad_request(format!("the body is not a list of actions: {e}")))?;
    names
        .iter()
        .map(|name| {
            let action = name.as_str().and_then(Action::parse);
            action
                .ok_or_else(|| Refusal::bad_request(format!("{name} is neither \"produce\" nor \"consume\"")))
        })
        .collect()
}
