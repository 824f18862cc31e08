//! Pulsar's admin REST, at Pulsar's own paths, over the calls of [`crate::core`]: nothing is decided here but how a
//! request is read and how an answer is printed. Paths, statuses and reasons are those of the broker 5.0.1
//! (`tests/data/admin-5.0.1.jsonl`); where they differ, `tests/admin_likeness.rs` says why.
//!
//! | Module | Owns |
//! |---|---|
//! | `request` | the way in: reading, journal, answer |
//! | `params` | how Pulsar reads parameters and bodies |
//! | `reply` | how it answers and refuses |
//! | `auth` | who may call it |
//! | `scalable` | scalable topics and their subscriptions |
//! | `persistent` | classic and partitioned topics |
//! | `namespaces` | tenants, namespaces and their policies |
//! | `permissions` | what principals may do in a namespace |
//! | `brokers` | clusters, brokers, lookups |
//! | `layout` | a layout as JSON |
//! | `policy` | auto-scale policies |
//! | `stats` | statistics as JSON |
//! | `time` | times as text |

mod auth;
mod brokers;
mod layout;
mod namespaces;
mod params;
mod permissions;
mod persistent;
mod policy;
mod reply;
mod request;
mod scalable;
mod stats;
mod time;

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode, Uri},
    routing::{MethodFilter, on},
};

use self::{
    reply::Refusal,
    request::{Handler, serve},
};
use crate::{
    core::{BrokerId, Cluster, Millis},
    net::SimCluster,
};

/// A broker of a cluster, whose admin REST is served.
#[derive(Debug, Clone)]
struct Site {
    cluster: SimCluster,
    broker: BrokerId,
}

impl Site {
    /// Acts on the cluster.
    fn call<T>(&self, act: impl FnOnce(&mut Cluster, Millis) -> T) -> T {
        self.cluster.with(act)
    }

    /// Journals an admin call.
    fn journal(&self, text: String) {
        self.call(|cluster, now| cluster.journal_admin(self.broker, text, now));
    }
}

/// A method, a path and what serves it.
type Route = (MethodFilter, &'static str, Handler);

/// The admin REST of one broker.
pub fn router(cluster: SimCluster, broker: BrokerId) -> Router {
    let routes =
        [scalable::ROUTES, persistent::ROUTES, namespaces::ROUTES, permissions::ROUTES, brokers::ROUTES];
    let site = Site { cluster, broker };
    let router = routes
        .into_iter()
        .flatten()
        .fold(Router::new(), |router, (method, path, handler)| {
            let serve = move |state: State<Site>, request: Request| serve(state, *handler, request);
            router.route(path, on(*method, serve))
        })
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("{} does not take {method}", uri.path()))
        })
        .fallback(async |uri: Uri| Refusal::not_found(format!("there is nothing at {}", uri.path())))
        .with_state(site.clone());
    auth::guard(router, site)
}
