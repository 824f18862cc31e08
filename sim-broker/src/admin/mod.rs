//! Pulsar's admin REST, over the cluster's admin calls.

use axum::{Router, routing::get};

use crate::{core::BrokerId, net::SimCluster};

/// The routes of one broker.
pub fn router(_cluster: SimCluster, _broker: BrokerId) -> Router {
    Router::new().route("/admin/v2/brokers/health", get(async || "ok"))
}
