//! A cluster and calls on its routers.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use serde_json::Value as Json;
use sim_broker::{
    SimCluster,
    core::{BrokerId, ClusterConfig, Profile},
};
use tower::ServiceExt;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", self.body))
    }

    /// The text of `reason`.
    pub(crate) fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap_or_else(|| panic!("no reason: {:?}", self.body)).to_owned()
    }
}

/// A cluster with the routers of its first broker.
pub(crate) struct Site {
    pub(crate) cluster: SimCluster,
    router: Router,
}

impl Site {
    pub(crate) fn new(profile: &str) -> Self {
        Site::with_brokers(profile, 3)
    }

    pub(crate) fn with_brokers(profile: &str, brokers: u32) -> Self {
        Site::with(profile, |config| config.brokers = brokers)
    }

    pub(crate) fn with(profile: &str, change: impl FnOnce(&mut ClusterConfig)) -> Self {
        let mut config = ClusterConfig::new(Profile::built_in(profile).unwrap());
        change(&mut config);
        let cluster = SimCluster::in_memory(config);
        let router = cluster.admin_router(BrokerId(0)).merge(cluster.control_router());
        Site { cluster, router }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// A call without a body.
    pub(crate) async fn call(&self, method: &str, path: &str) -> Answer {
        self.send(Request::builder().method(method).uri(path).body(Body::empty()).unwrap()).await
    }

    /// A call with a JSON body, or what passes for one.
    pub(crate) async fn call_with(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        self.send(request.body(body.into()).unwrap()).await
    }

    /// The texts of the journal's ADMIN records.
    pub(crate) fn admin_records(&self) -> Vec<String> {
        let records = self.cluster.control().journal();
        let admin = records.iter().map(|r| r.to_json()).filter(|r| r["type"] == "ADMIN");
        admin.map(|r| r["fields"]["text"].as_str().unwrap().to_owned()).collect()
    }
}
