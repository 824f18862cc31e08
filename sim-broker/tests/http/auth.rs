//! Who may call the admin REST, and permissions on namespaces.

use axum::{body::Body, http::Request};
use serde_json::{Value as Json, json};
use sim_broker::core::{Action, Security};

use crate::support::{Answer, Site};

const PERMISSIONS: &str = "/admin/v2/namespaces/public/default/permissions";

/// admin is a superuser, alice produces, bob consumes; tokens are `<name>-token`.
fn site() -> Site {
    let security = Security::with_tokens(
        ["admin", "alice", "bob", "nobody"].map(|name| (format!("{name}-token"), name)),
    )
    .superuser("admin")
    .grant("public/default", "alice", [Action::Produce])
    .grant("public/default", "bob", [Action::Consume]);
    Site::with("spec-1.0", |c| c.security = Some(security))
}

async fn call_as(site: &Site, user: &str, method: &str, path: &str, body: Option<Json>) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {user}-token"));
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    site.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn without_a_valid_token_every_admin_call_is_401_and_journaled_and_changes_nothing() {
    let site = site();
    let path = "/admin/v2/scalable/public/default/t";
    for header in
        ["", "Bearer", "Bearer wrong-token", "Basic admin-token", "admin-token", "bearer admin-token"]
    {
        let mut request = Request::builder().method("PUT").uri(path);
        if !header.is_empty() {
            request = request.header("authorization", header);
        }
        let answer = site.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.reason().as_str()), (401, "Authentication required"));
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    for path in
        ["/admin/v2/clusters", "/admin/v2/nothing/here", "/lookup/v2/topic/persistent/public/default/t"]
    {
        assert_eq!(site.call("GET", path).await.status, 401, "{path}");
    }
    assert_eq!(call_as(&site, "admin", "GET", path, None).await.status, 404);
    let refused = site.admin_records().iter().filter(|text| text.contains("-> 401")).count();
    assert_eq!(refused, 9);
    // The test's own API needs no token.
    assert_eq!(site.call("GET", "/control/v1/brokers").await.status, 200);
}

/// Statuses as the broker 5.0.1 gives them, for admin, alice (produces), bob (consumes) and nobody.
#[tokio::test]
async fn calls_are_for_those_who_have_the_permission() {
    let site = site();
    assert_eq!(call_as(&site, "admin", "PUT", "/admin/v2/scalable/public/default/s", None).await.status, 204);
    assert_eq!(
        call_as(&site, "admin", "PUT", "/admin/v2/persistent/public/default/t", None).await.status,
        204
    );
    for (method, path, statuses) in [
        ("GET", "/admin/v2/clusters", [200, 401, 401, 401]),
        ("GET", "/admin/v2/tenants", [200, 401, 401, 401]),
        ("GET", "/admin/v2/namespaces/public/default", [200, 403, 403, 403]),
        ("GET", "/admin/v2/namespaces/public/default/topics", [200, 200, 200, 403]),
        ("GET", PERMISSIONS, [200, 403, 403, 403]),
        ("GET", "/admin/v2/persistent/public/default", [200, 200, 200, 403]),
        ("GET", "/admin/v2/persistent/public/default/t/stats", [200, 200, 200, 401]),
        ("GET", "/admin/v2/persistent/public/default/t/subscriptions", [200, 401, 200, 401]),
        ("PUT", "/admin/v2/persistent/public/default/t/subscription/z", [204, 401, 409, 401]),
        ("GET", "/admin/v2/scalable/public/default/s", [200, 200, 200, 401]),
        ("PUT", "/admin/v2/scalable/public/default/s/subscriptions/z?type=QUEUE", [204, 401, 204, 401]),
        ("POST", "/admin/v2/scalable/public/default/s/split/0", [204, 403, 403, 403]),
        ("PUT", "/admin/v2/scalable/public/default/s", [409, 403, 403, 403]),
        ("GET", "/lookup/v2/topic/persistent/public/default/t", [200, 200, 200, 401]),
    ] {
        for (user, status) in ["admin", "alice", "bob", "nobody"].iter().zip(statuses) {
            let answer = call_as(&site, user, method, path, None).await;
            assert_eq!(answer.status.as_u16(), status, "{user}: {method} {path}: {}", answer.body);
        }
    }
    let refused = call_as(&site, "nobody", "GET", "/admin/v2/clusters", None).await;
    assert_eq!(refused.reason(), "nobody is not authorized to GET /admin/v2/clusters");
}

#[tokio::test]
async fn permissions_are_granted_replaced_listed_and_revoked() {
    let site = site();
    let list = async || call_as(&site, "admin", "GET", PERMISSIONS, None).await.json();
    assert_eq!(list().await, json!({ "alice": ["produce"], "bob": ["consume"] }));
    let role = format!("{PERMISSIONS}/nobody");
    let topics = "/admin/v2/namespaces/public/default/topics";
    assert_eq!(call_as(&site, "nobody", "GET", topics, None).await.status, 403);
    let both = json!(["consume", "produce", "consume"]);
    assert_eq!(call_as(&site, "admin", "POST", &role, Some(both)).await.status, 204);
    assert_eq!(list().await["nobody"], json!(["produce", "consume"]));
    assert_eq!(call_as(&site, "nobody", "GET", topics, None).await.status, 200);
    assert_eq!(call_as(&site, "admin", "POST", &role, Some(json!([]))).await.status, 204);
    assert_eq!(list().await["nobody"], json!([]));
    assert_eq!(call_as(&site, "nobody", "GET", topics, None).await.status, 403);
    assert_eq!(call_as(&site, "admin", "DELETE", &role, None).await.status, 204);
    assert_eq!(call_as(&site, "admin", "DELETE", &role, None).await.status, 204);
    assert_eq!(list().await, json!({ "alice": ["produce"], "bob": ["consume"] }));
    // Nobody grants himself anything.
    let own = format!("{PERMISSIONS}/alice");
    assert_eq!(call_as(&site, "alice", "POST", &own, Some(json!(["consume"]))).await.status, 403);

    assert_eq!(call_as(&site, "admin", "PUT", &role, Some(json!(["consume"]))).await.status, 405);
    let answer = call_as(&site, "admin", "POST", &role, None).await;
    assert_eq!((answer.status.as_u16(), answer.reason().as_str()), (400, "Actions should not be null"));
    for body in [json!({}), json!("produce"), json!(["fly"]), json!([1]), json!([["produce"]])] {
        assert_eq!(call_as(&site, "admin", "POST", &role, Some(body)).await.status, 400);
    }
    for (method, body) in [("POST", Some(json!(["produce"]))), ("DELETE", None)] {
        let path = "/admin/v2/namespaces/public/nope/permissions/x";
        assert_eq!(call_as(&site, "admin", method, path, body).await.status, 404);
    }
    let answer = call_as(&site, "admin", "GET", "/admin/v2/namespaces/public/nope/permissions", None).await;
    assert_eq!((answer.status.as_u16(), answer.reason().as_str()), (404, "Namespace does not exist"));
}

#[tokio::test]
async fn a_token_comes_and_goes_through_the_control_api() {
    let site = site();
    let clusters = async || call_as(&site, "new", "GET", "/admin/v2/clusters", None).await.status.as_u16();
    assert_eq!(clusters().await, 401);
    let token = r#"{"token":"new-token","principal":"admin"}"#;
    assert_eq!(site.call_with("POST", "/control/v1/tokens/allow", token).await.status, 204);
    assert_eq!(clusters().await, 200);
    for was_valid in [true, false] {
        let answer = site.call_with("POST", "/control/v1/tokens/expire", r#"{"token":"new-token"}"#).await;
        assert_eq!(answer.json(), json!({ "was_valid": was_valid }));
        assert_eq!(clusters().await, 401);
    }
}

#[tokio::test]
async fn a_cluster_without_tokens_asks_for_none_and_keeps_permissions_for_show() {
    let site = Site::new("spec-1.0");
    let role = format!("{PERMISSIONS}/alice");
    assert_eq!(site.call_with("POST", &role, r#"["produce"]"#).await.status, 204);
    assert_eq!(site.call("GET", PERMISSIONS).await.json(), json!({ "alice": ["produce"] }));
}
