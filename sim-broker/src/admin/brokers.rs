//! `/admin/v2/clusters`, `/admin/v2/brokers` and the HTTP lookup.

use axum::routing::MethodFilter;
use serde::Serialize;
use stc_proto::TopicName;

use super::{
    Route, Site,
    params::check_namespace,
    reply::{Answer, Refusal, Reply},
    request::Call,
    stats::host_and_port,
};
use crate::core::{BrokerId, cluster::Broker};

const GET: MethodFilter = MethodFilter::GET;

pub(super) const ROUTES: &[Route] = &[
    (GET, "/admin/v2/clusters", clusters),
    (GET, "/admin/v2/clusters/{cluster}", cluster),
    (GET, "/admin/v2/brokers", brokers),
    (GET, "/admin/v2/brokers/{cluster}", brokers),
    (GET, "/admin/v2/brokers/version", version),
    (GET, "/admin/v2/brokers/health", health),
    (GET, "/admin/v2/brokers/ready", health),
    (GET, "/admin/v2/brokers/leaderBroker", leader),
    (GET, "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}", lookup),
];

fn clusters(call: &Call) -> Answer {
    Reply::json(&call.site.call(|cluster, _| cluster.cluster_names()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterData {
    service_url: String,
    broker_service_url: String,
}

fn cluster(call: &Call) -> Answer {
    call.site.call(|cluster, _| {
        if !cluster.cluster_names().iter().any(|name| name == call.part(0)) {
            return Err(Refusal::not_found("Cluster does not exist"));
        }
        let Broker { admin_url, service_url, .. } = asked(cluster.brokers(), call.site.broker)?;
        Reply::json(&ClusterData { service_url: admin_url.clone(), broker_service_url: service_url.clone() })
    })
}

/// The brokers that run.
fn brokers(call: &Call) -> Answer {
    let running = call.site.call(|cluster, _| {
        let up = cluster.brokers().iter().filter(|b| b.up);
        up.map(|b| host_and_port(&b.admin_url).to_owned()).collect::<Vec<_>>()
    });
    Reply::json(&running)
}

fn version(call: &Call) -> Answer {
    // `server_version` in CONNECTED is a product with or without a version.
    let version = call.site.call(|cluster, _| cluster.config().profile.server_version.clone());
    let number = version.split_once(|c: char| c.is_ascii_digit()).map(|(product, _)| product.len());
    let number = number.and_then(|at| version.get(at..)).unwrap_or(env!("CARGO_PKG_VERSION"));
    Ok(Reply::Text(number.to_owned()))
}

fn health(call: &Call) -> Answer {
    let Site { cluster, broker } = &call.site;
    if cluster.read(|c| c.is_up(*broker)) {
        Ok(Reply::Text("ok".into()))
    } else {
        Err(Refusal::unavailable(format!("{broker} was killed")))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Leader {
    service_url: String,
    broker_id: String,
}

fn leader(call: &Call) -> Answer {
    let leader = call.site.call(|cluster, _| cluster.brokers().iter().find(|b| b.up).cloned());
    let leader = leader.ok_or_else(|| Refusal::not_found("Couldn't find leader broker"))?;
    let broker_id = host_and_port(&leader.admin_url).to_owned();
    Reply::json(&Leader { service_url: leader.admin_url, broker_id })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lookup<'a> {
    broker_id: &'a str,
    broker_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    broker_url_tls: Option<&'a str>,
    http_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_url_tls: Option<&'a str>,
    native_url: &'a str,
    broker_url_ssl: &'a str,
}

/// Where a topic is served. Nothing is created by asking.
fn lookup(call: &Call) -> Answer {
    let (domain, tenant, namespace, local) = (call.part(0), call.part(1), call.part(2), call.part(3));
    check_namespace(tenant, namespace)?;
    let name = TopicName::parse(&format!("{domain}://{tenant}/{namespace}/{local}"))
        .map_err(|e| Refusal::precondition(format!("Topic name is not valid: {}", e.reason)))?;
    call.site.call(|cluster, _| {
        cluster.namespace(tenant, namespace).map_err(|_| Refusal::not_found("Namespace not found"))?;
        let owner = cluster
            .owner(&name)
            .ok_or_else(|| Refusal::unavailable(format!("No broker serves {name} at the moment")))?;
        let Broker { service_url, admin_url, service_url_tls, admin_url_tls, .. } =
            asked(cluster.brokers(), owner)?;
        Reply::json(&Lookup {
            broker_id: host_and_port(admin_url),
            broker_url: service_url,
            broker_url_tls: service_url_tls.as_deref(),
            http_url: admin_url,
            http_url_tls: admin_url_tls.as_deref(),
            native_url: service_url,
            broker_url_ssl: "",
        })
    })
}

fn asked(brokers: &[Broker], id: BrokerId) -> Result<&Broker, Refusal> {
    usize::try_from(id.0)
        .ok()
        .and_then(|i| brokers.get(i))
        .ok_or_else(|| Refusal::not_found(format!("there is no {id}")))
}
