//! `/admin/v2/tenants` and `/admin/v2/namespaces`: tenants, namespaces and the policies that matter to clients.

use axum::routing::MethodFilter;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{
    Route,
    params::{self, check_namespace, check_tenant, kind},
    reply::{Answer, Refusal, Reply},
    request::Call,
};
use crate::core::cluster::{AutoTopicCreation, PartitionedOrNot};

const GET: MethodFilter = MethodFilter::GET;
const PUT: MethodFilter = MethodFilter::PUT;
const POST: MethodFilter = MethodFilter::POST;
const DELETE: MethodFilter = MethodFilter::DELETE;

pub(super) const ROUTES: &[Route] = &[
    (GET, "/admin/v2/tenants", tenants),
    (GET, "/admin/v2/tenants/{tenant}", tenant),
    (PUT, "/admin/v2/tenants/{tenant}", create_tenant),
    (DELETE, "/admin/v2/tenants/{tenant}", delete_tenant),
    (GET, "/admin/v2/namespaces/{tenant}", namespaces),
    (GET, "/admin/v2/namespaces/{tenant}/{namespace}", namespace),
    (PUT, "/admin/v2/namespaces/{tenant}/{namespace}", create),
    (DELETE, "/admin/v2/namespaces/{tenant}/{namespace}", delete),
    (GET, "/admin/v2/namespaces/{tenant}/{namespace}/topics", topics),
    (GET, "/admin/v2/namespaces/{tenant}/{namespace}/deduplication", deduplication),
    (POST, "/admin/v2/namespaces/{tenant}/{namespace}/deduplication", set_deduplication),
    (DELETE, "/admin/v2/namespaces/{tenant}/{namespace}/deduplication", remove_deduplication),
    (GET, "/admin/v2/namespaces/{tenant}/{namespace}/autoTopicCreation", auto_creation),
    (POST, "/admin/v2/namespaces/{tenant}/{namespace}/autoTopicCreation", set_auto_creation),
    (DELETE, "/admin/v2/namespaces/{tenant}/{namespace}/autoTopicCreation", remove_auto_creation),
];

fn tenants(call: &Call) -> Answer {
    Reply::json(&call.site.call(|cluster, _| cluster.tenants()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TenantInfo {
    admin_roles: [&'static str; 0],
    allowed_clusters: Vec<String>,
}

fn tenant(call: &Call) -> Answer {
    call.site.call(|cluster, _| {
        if !cluster.tenants().iter().any(|name| name == call.part(0)) {
            return Err(Refusal::not_found("Tenant does not exist"));
        }
        Reply::json(&TenantInfo { admin_roles: [], allowed_clusters: cluster.cluster_names() })
    })
}

fn create_tenant(call: &Call) -> Answer {
    check_tenant(call.part(0))?;
    let info = params::object(&call.body)?.ok_or_else(|| Refusal::precondition("TenantInfo is null"))?;
    let allowed = match info.get("allowedClusters") {
        Some(Json::Array(names)) if !names.is_empty() => names,
        _ => return Err(Refusal::precondition("Clusters cannot be null")),
    };
    call.site.call(|cluster, now| {
        let known = cluster.cluster_names();
        if allowed.iter().any(|name| name.as_str().is_none_or(|n| !known.iter().any(|known| known == n))) {
            return Err(Refusal::precondition("Clusters do not exist"));
        }
        Ok(cluster.create_tenant(call.part(0), now)?)
    })?;
    Ok(Reply::Done)
}

fn delete_tenant(call: &Call) -> Answer {
    check_tenant(call.part(0))?;
    call.site.call(|cluster, now| cluster.delete_tenant(call.part(0), now))?;
    Ok(Reply::Done)
}

fn namespaces(call: &Call) -> Answer {
    check_tenant(call.part(0))?;
    Reply::json(&call.site.call(|cluster, _| cluster.namespaces(call.part(0)))?)
}

fn create(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    let policies = params::object(&call.body)?.unwrap_or_default();
    let deduplication = policies.get("deduplicationEnabled").and_then(Json::as_bool);
    let auto =
        policies.get("autoTopicCreationOverride").and_then(Json::as_object).map(override_of).transpose()?;
    call.site.call(|cluster, now| {
        let (tenant, namespace) = (call.part(0), call.part(1));
        cluster.create_namespace(tenant, namespace, now)?;
        if deduplication.is_some() {
            cluster.set_deduplication(tenant, namespace, deduplication, now)?;
        }
        if auto.is_some() {
            cluster.set_auto_topic_creation(tenant, namespace, auto, now)?;
        }
        Ok::<_, Refusal>(Reply::Done)
    })
}

fn delete(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    let force = call.params.flag("force");
    call.site.call(|cluster, now| cluster.delete_namespace(call.part(0), call.part(1), force, now))?;
    Ok(Reply::Done)
}

/// The policies of a namespace, as far as the simulator has them.
#[derive(Serialize)]
struct Policies {
    replication_clusters: Vec<String>,
    #[serde(rename = "deduplicationEnabled", skip_serializing_if = "Option::is_none")]
    deduplication: Option<bool>,
    #[serde(rename = "autoTopicCreationOverride", skip_serializing_if = "Option::is_none")]
    auto_topic_creation: Option<Override>,
    deleted: bool,
}

fn namespace(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    call.site.call(|cluster, _| {
        let namespace = cluster.namespace(call.part(0), call.part(1)).map_err(Refusal::from)?;
        Reply::json(&Policies {
            replication_clusters: cluster.cluster_names(),
            deduplication: namespace.deduplication,
            auto_topic_creation: namespace.auto_topic_creation.as_ref().map(Override::from),
            deleted: false,
        })
    })
}

fn topics(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    Reply::json(&call.site.call(|cluster, _| cluster.topics(call.part(0), call.part(1)))?)
}

fn deduplication(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    Reply::maybe(call.site.call(|cluster, _| {
        cluster.namespace(call.part(0), call.part(1)).map(|namespace| namespace.deduplication)
    })?)
}

fn set_deduplication(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    let enabled = params::boolean(&call.body)?;
    call.site
        .call(|cluster, now| cluster.set_deduplication(call.part(0), call.part(1), Some(enabled), now))?;
    Ok(Reply::Done)
}

fn remove_deduplication(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    call.site.call(|cluster, now| cluster.set_deduplication(call.part(0), call.part(1), None, now))?;
    Ok(Reply::Done)
}

/// An override of which topics come into being by themselves, in Pulsar's form.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Override {
    allow_auto_topic_creation: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_num_partitions: Option<u32>,
}

impl From<&AutoTopicCreation> for Override {
    fn from(policy: &AutoTopicCreation) -> Self {
        let partitioned = policy.allowed && policy.kind == PartitionedOrNot::Partitioned;
        Override {
            allow_auto_topic_creation: policy.allowed,
            topic_type: policy.allowed.then_some(if partitioned { "partitioned" } else { "non-partitioned" }),
            default_num_partitions: partitioned.then_some(policy.default_partitions),
        }
    }
}

fn override_of(given: &Map<String, Json>) -> Result<AutoTopicCreation, Refusal> {
    let invalid = |what: &str| {
        let reason = format!("Invalid configuration for autoTopicCreationOverride. the detail is {what}");
        Err(Refusal::precondition(reason))
    };
    let allowed = match given.get("allowAutoTopicCreation") {
        None | Some(Json::Null) => false,
        Some(Json::Bool(allowed)) => *allowed,
        Some(other) => {
            return Err(Refusal::bad_request(format!(
                "allowAutoTopicCreation cannot be {}: {other}",
                kind(other)
            )));
        }
    };
    if !allowed {
        return Ok(AutoTopicCreation { allowed, ..AutoTopicCreation::default() });
    }
    let kind = match given.get("topicType").and_then(Json::as_str) {
        None | Some("non-partitioned") => PartitionedOrNot::NonPartitioned,
        Some("partitioned") => PartitionedOrNot::Partitioned,
        Some(other) => return invalid(&format!("Unknown topic type [{other}]")),
    };
    let default_partitions = match (kind, given.get("defaultNumPartitions").and_then(Json::as_i64)) {
        (PartitionedOrNot::NonPartitioned, _) => 1,
        (_, None) => return invalid("[defaultNumPartitions] cannot be null when the type is partitioned."),
        (_, Some(n)) => match u32::try_from(n) {
            Ok(n) if n >= 1 => n,
            _ => return invalid("[defaultNumPartitions] cannot be less than 1 for partition type."),
        },
    };
    Ok(AutoTopicCreation { allowed, kind, default_partitions })
}

fn auto_creation(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    call.site.call(|cluster, _| {
        let namespace = cluster.namespace(call.part(0), call.part(1)).map_err(Refusal::from)?;
        Reply::maybe(namespace.auto_topic_creation.as_ref().map(Override::from))
    })
}

fn set_auto_creation(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    // As in Pulsar, no body removes the override.
    let policy = params::object(&call.body)?.map(|given| override_of(&given)).transpose()?;
    call.site
        .call(|cluster, now| cluster.set_auto_topic_creation(call.part(0), call.part(1), policy, now))?;
    Ok(Reply::Done)
}

fn remove_auto_creation(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    call.site.call(|cluster, now| cluster.set_auto_topic_creation(call.part(0), call.part(1), None, now))?;
    Ok(Reply::Done)
}
