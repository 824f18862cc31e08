//! Who may call the admin REST: a layer around its routes. Statuses are those of the broker 5.0.1: 401 without a valid
//! token and, as odd as it is, for calls on clusters, tenants and topics that a principal may not make; 403 for those
//! on namespaces and on the layout of a topic. The control API is not behind it: it is the test's own.

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};

use super::{Site, reply::Refusal};
use crate::core::{Action, cluster::access::AdminNeed, security::Right};

/// The routes, for those who may call them.
pub(super) fn guard(router: Router, site: Site) -> Router {
    router.layer(middleware::from_fn_with_state(site, check))
}

async fn check(State(site): State<Site>, request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let call = format!("{} {}", request.method(), request.uri());
    let allowed = match need(request.method(), request.uri().path()) {
        Some(need) => site.cluster.read(|c| c.check_admin(token, &need, &call)),
        None => Ok(()),
    };
    match allowed {
        Ok(()) => next.run(request).await,
        Err(error) => {
            let refusal = Refusal::from(error);
            site.journal(format!("{call} -> {} {}", refusal.status.as_u16(), refusal.body()));
            let mut response = refusal.into_response();
            if response.status() == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

/// What a call needs; `None` when it is open to everyone.
fn need(method: &Method, path: &str) -> Option<AdminNeed> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let read = method == Method::GET;
    let in_namespace = |tenant: &str, namespace: &str, right, denied| AdminNeed {
        namespace: format!("{tenant}/{namespace}"),
        right,
        denied,
    };
    let superuser = |denied| AdminNeed { namespace: String::new(), right: Right::Superuser, denied };
    Some(match parts.as_slice() {
        ["lookup", _, "topic", _, tenant, namespace, ..] => in_namespace(tenant, namespace, Right::Any, 401),
        ["lookup", ..] => superuser(401),
        ["admin", _, "namespaces", tenant, namespace, "topics"] if read => {
            in_namespace(tenant, namespace, Right::Any, 403)
        }
        ["admin", _, "namespaces", _, _] if !read => superuser(401),
        ["admin", _, "namespaces", _, _, ..] => superuser(403),
        ["admin", _, "clusters" | "brokers" | "tenants" | "namespaces", ..] => superuser(401),
        ["admin", _, _, tenant, namespace] if read => in_namespace(tenant, namespace, Right::Any, 403),
        ["admin", _, _, tenant, namespace, _, what, ..] if what.starts_with("subscription") => {
            in_namespace(tenant, namespace, Right::Act(Action::Consume), 401)
        }
        ["admin", _, _, tenant, namespace, _]
        | ["admin", _, _, tenant, namespace, _, "stats" | "partitions"]
            if read =>
        {
            in_namespace(tenant, namespace, Right::Any, 401)
        }
        ["admin", _, _, _, _, _, "terminate"] => superuser(401),
        ["admin", ..] => superuser(403),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(call: &str) -> Option<(String, Right, u16)> {
        let (method, path) = call.split_once(' ').unwrap();
        need(&method.parse().unwrap(), path).map(|n| (n.namespace, n.right, n.denied))
    }

    /// Statuses as measured with the broker 5.0.1, for a principal that has no permission.
    #[test]
    fn calls_need_what_the_broker_5_0_1_asks_for() {
        let consume = Right::Act(Action::Consume);
        for (call, right, denied) in [
            ("GET /admin/v2/clusters", Right::Superuser, 401),
            ("GET /admin/v2/brokers/health", Right::Superuser, 401),
            ("GET /admin/v2/tenants", Right::Superuser, 401),
            ("PUT /admin/v2/tenants/x", Right::Superuser, 401),
            ("GET /admin/v2/namespaces/t", Right::Superuser, 401),
            ("GET /admin/v2/namespaces/t/n", Right::Superuser, 403),
            ("PUT /admin/v2/namespaces/t/n", Right::Superuser, 401),
            ("GET /admin/v2/namespaces/t/n/permissions", Right::Superuser, 403),
            ("POST /admin/v2/namespaces/t/n/permissions/x", Right::Superuser, 403),
            ("GET /admin/v2/namespaces/t/n/topics", Right::Any, 403),
            ("GET /admin/v2/persistent/t/n", Right::Any, 403),
            ("PUT /admin/v2/persistent/t/n/x", Right::Superuser, 403),
            ("GET /admin/v2/persistent/t/n/x/stats", Right::Any, 401),
            ("GET /admin/v2/persistent/t/n/x/partitions", Right::Any, 401),
            ("GET /admin/v2/persistent/t/n/x/subscriptions", consume, 401),
            ("PUT /admin/v2/persistent/t/n/x/subscription/s", consume, 401),
            ("DELETE /admin/v2/persistent/t/n/x/subscription/s", consume, 401),
            ("POST /admin/v2/persistent/t/n/x/terminate", Right::Superuser, 401),
            ("GET /admin/v2/scalable/t/n", Right::Any, 403),
            ("GET /admin/v2/scalable/t/n/x", Right::Any, 401),
            ("GET /admin/v2/scalable/t/n/x/stats", Right::Any, 401),
            ("PUT /admin/v2/scalable/t/n/x", Right::Superuser, 403),
            ("DELETE /admin/v2/scalable/t/n/x", Right::Superuser, 403),
            ("PUT /admin/v2/scalable/t/n/x/subscriptions/s", consume, 401),
            ("POST /admin/v2/scalable/t/n/x/split/0", Right::Superuser, 403),
            ("GET /lookup/v2/topic/persistent/t/n/x", Right::Any, 401),
        ] {
            let namespace = if right == Right::Superuser { String::new() } else { "t/n".to_owned() };
            assert_eq!(of(call), Some((namespace, right, denied)), "{call}");
        }
    }

    #[test]
    fn what_nobody_thought_of_is_for_superusers_and_the_control_api_is_open() {
        for call in [
            "GET /admin",
            "POST /admin/v2/unheard/of",
            "GET /admin/v2/persistent/t/n/x/backlog",
            "GET /lookup",
        ] {
            assert_eq!(of(call).unwrap().1, Right::Superuser, "{call}");
        }
        for call in ["GET /control/v1/journal", "POST /control/v1/faults", "GET /metrics", "GET /"] {
            assert_eq!(of(call), None, "{call}");
        }
    }
}
