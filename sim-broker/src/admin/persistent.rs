//! `/admin/v2/persistent`: classic and partitioned topics.

use axum::routing::MethodFilter;
use serde::Serialize;
use serde_json::Value as Json;
use stc_proto::{TopicName, name::Domain};

use super::{
    Route,
    params::{self, check_namespace, path_int},
    reply::{Answer, Refusal, Reply},
    request::Call,
    stats::ClassicTopicStats,
};
use crate::core::topic::{Position, Start};

const GET: MethodFilter = MethodFilter::GET;
const PUT: MethodFilter = MethodFilter::PUT;
const POST: MethodFilter = MethodFilter::POST;
const DELETE: MethodFilter = MethodFilter::DELETE;

pub(super) const ROUTES: &[Route] = &[
    (GET, "/admin/v2/persistent/{tenant}/{namespace}", list),
    (GET, "/admin/v2/persistent/{tenant}/{namespace}/partitioned", list_partitioned),
    (PUT, "/admin/v2/persistent/{tenant}/{namespace}/{topic}", create),
    (DELETE, "/admin/v2/persistent/{tenant}/{namespace}/{topic}", delete),
    (PUT, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/partitions", create_partitioned),
    (POST, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/partitions", update_partitions),
    (GET, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/partitions", partitions),
    (DELETE, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/partitions", delete_partitioned),
    (GET, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/stats", stats),
    (GET, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/lastMessageId", last_message_id),
    (POST, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/terminate", terminate),
    (GET, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscriptions", subscriptions),
    (PUT, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}", subscribe),
    (DELETE, "/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}", unsubscribe),
    (
        POST,
        "/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}/skip_all",
        skip_all,
    ),
    (
        POST,
        "/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}/resetcursor/{time}",
        reset,
    ),
];

fn topic(call: &Call) -> Result<TopicName, Refusal> {
    call.topic(Domain::Persistent)
}

fn list(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    Reply::json(&call.site.call(|cluster, _| cluster.topics(call.part(0), call.part(1)))?)
}

fn list_partitioned(call: &Call) -> Answer {
    check_namespace(call.part(0), call.part(1))?;
    Reply::json(&call.site.call(|cluster, _| cluster.partitioned_topics(call.part(0), call.part(1)))?)
}

fn create(call: &Call) -> Answer {
    let name = topic(call)?;
    // Properties of classic topics are accepted and not kept.
    params::properties(&call.body)?;
    call.site.call(|cluster, now| cluster.create_topic(&name, now))?;
    Ok(Reply::Done)
}

fn delete(call: &Call) -> Answer {
    let (name, force) = (topic(call)?, call.params.flag("force"));
    call.site.call(|cluster, now| cluster.delete_topic(&name, force, now))?;
    Ok(Reply::Done)
}

fn create_partitioned(call: &Call) -> Answer {
    let (name, partitions) = (topic(call)?, params::integer(&call.body)?);
    call.site.call(|cluster, now| cluster.create_partitioned_topic(&name, count(partitions), now))?;
    Ok(Reply::Done)
}

fn update_partitions(call: &Call) -> Answer {
    let (name, partitions) = (topic(call)?, params::integer(&call.body)?);
    call.site.call(|cluster, now| cluster.update_partitions(&name, count(partitions), now))?;
    Ok(Reply::Done)
}

/// A number of partitions; what fits no topic is as wrong as 0 or as far too many.
fn count(partitions: i64) -> u32 {
    u32::try_from(partitions).unwrap_or(if partitions < 0 { 0 } else { u32::MAX })
}

#[derive(Serialize)]
struct Partitions {
    partitions: u32,
    deleted: bool,
}

fn partitions(call: &Call) -> Answer {
    let name = topic(call)?;
    let partitions = call.site.call(|cluster, _| cluster.partitions(&name))?;
    Reply::json(&Partitions { partitions, deleted: false })
}

fn delete_partitioned(call: &Call) -> Answer {
    let (name, force) = (topic(call)?, call.params.flag("force"));
    call.site.call(|cluster, now| cluster.delete_partitioned_topic(&name, force, now))?;
    Ok(Reply::Done)
}

fn stats(call: &Call) -> Answer {
    let name = topic(call)?;
    call.site.call(|cluster, _| {
        let stats = cluster.topic_stats(&name).map_err(Refusal::from)?;
        Reply::json(&ClassicTopicStats::new(&stats, cluster.owner(&name), cluster.brokers()))
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageId {
    ledger_id: i64,
    entry_id: i64,
    partition_index: i64,
}

/// The id of an entry; -1 for none.
fn message_id(topic: &TopicName, position: Option<Position>) -> Answer {
    let number = |n: Option<u64>| n.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
    Reply::json(&MessageId {
        ledger_id: number(position.map(|p| p.ledger)),
        entry_id: number(position.map(|p| p.entry)),
        partition_index: topic.partition_index().map_or(-1, i64::from),
    })
}

fn last_message_id(call: &Call) -> Answer {
    let name = topic(call)?;
    message_id(&name, call.site.call(|cluster, _| cluster.last_position(&name))?)
}

fn terminate(call: &Call) -> Answer {
    let name = topic(call)?;
    message_id(&name, call.site.call(|cluster, now| cluster.terminate_topic(&name, now))?)
}

fn subscriptions(call: &Call) -> Answer {
    let name = topic(call)?;
    Reply::json(&call.site.call(|cluster, _| cluster.subscriptions(&name))?)
}

fn subscribe(call: &Call) -> Answer {
    let name = topic(call)?;
    // Any start but the earliest is the latest: positions in the body are not looked at.
    let body = params::json(&call.body)?;
    let is = |key: &str| body.as_ref().and_then(|b| b.get(key)).and_then(Json::as_i64) == Some(-1);
    let start = if is("ledgerId") && is("entryId") { Start::Earliest } else { Start::Latest };
    call.site.call(|cluster, now| cluster.create_subscription(&name, call.part(3), start, now))?;
    Ok(Reply::Done)
}

fn unsubscribe(call: &Call) -> Answer {
    let name = topic(call)?;
    call.site.call(|cluster, now| cluster.delete_subscription(&name, call.part(3), now))?;
    Ok(Reply::Done)
}

fn skip_all(call: &Call) -> Answer {
    let name = topic(call)?;
    call.site.call(|cluster, now| cluster.skip_all_subscription(&name, call.part(3), now))?;
    Ok(Reply::Done)
}

fn reset(call: &Call) -> Answer {
    let (name, time) = (topic(call)?, path_int("timestamp", call.part(4))?);
    let time = u64::try_from(time).unwrap_or(0);
    call.site.call(|cluster, now| cluster.seek_subscription(&name, call.part(3), time, now))?;
    Ok(Reply::Done)
}
