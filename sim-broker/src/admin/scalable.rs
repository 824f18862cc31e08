//! `/admin/v2/scalable`: scalable topics, their layouts and subscriptions.

use std::collections::BTreeMap;

use axum::routing::MethodFilter;
use stc_proto::{TopicName, name::Domain};

use super::{
    Route,
    layout::TopicMetadata,
    params::{self, check_namespace, path_int},
    policy,
    reply::{Answer, Refusal, Reply},
    request::Call,
    stats::{ScalableTopicStats, SegmentTopicStats},
};

const GET: MethodFilter = MethodFilter::GET;
const PUT: MethodFilter = MethodFilter::PUT;
const POST: MethodFilter = MethodFilter::POST;
const DELETE: MethodFilter = MethodFilter::DELETE;

pub(super) const ROUTES: &[Route] = &[
    (GET, "/admin/v2/scalable/{tenant}/{namespace}", list),
    (GET, "/admin/v2/scalable/{tenant}/{namespace}/{topic}", get),
    (PUT, "/admin/v2/scalable/{tenant}/{namespace}/{topic}", create),
    (DELETE, "/admin/v2/scalable/{tenant}/{namespace}/{topic}", delete),
    (POST, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/split/{segment}", split),
    (POST, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/merge/{segment}/{other}", merge),
    (POST, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/rebucket/{segment}", rebucket),
    (POST, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/migrate", migrate),
    (GET, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/stats", stats),
    (GET, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/segments/{segment}/stats", segment_stats),
    (GET, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/autoScalePolicy", get_policy),
    (POST, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/autoScalePolicy", set_policy),
    (DELETE, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/autoScalePolicy", remove_policy),
    (PUT, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/subscriptions/{subscription}", subscribe),
    (DELETE, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/subscriptions/{subscription}", unsubscribe),
    (POST, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/subscriptions/{subscription}/seek", seek),
    (POST, "/admin/v2/scalable/{tenant}/{namespace}/{topic}/subscriptions/{subscription}/skip-all", skip_all),
];

fn topic(call: &Call) -> Result<TopicName, Refusal> {
    call.topic(Domain::Topic)
}

fn list(call: &Call) -> Answer {
    let (tenant, namespace) = (call.part(0), call.part(1));
    check_namespace(tenant, namespace)?;
    let mut properties = BTreeMap::new();
    for filter in call.params.all("property").filter(|filter| !filter.is_empty()) {
        let (key, value) = filter.split_once('=').ok_or_else(|| {
            Refusal::precondition(format!("property filter must be in the form key=value, got: {filter}"))
        })?;
        properties.insert(key.to_owned(), value.to_owned());
    }
    Reply::json(&call.site.call(|cluster, _| cluster.scalable_topics(tenant, namespace, &properties)))
}

fn get(call: &Call) -> Answer {
    let name = topic(call)?;
    call.site.call(|cluster, _| {
        let topic = cluster.scalable_topic(&name).map_err(Refusal::from)?;
        Reply::json(&TopicMetadata::new(topic.layout, topic.properties))
    })
}

fn create(call: &Call) -> Answer {
    let name = topic(call)?;
    let segments: i32 = call.params.int("numInitialSegments", 1)?;
    let properties = params::properties(&call.body)?;
    call.site.call(|cluster, now| cluster.create_scalable_topic(&name, segments.into(), properties, now))?;
    Ok(Reply::Done)
}

fn delete(call: &Call) -> Answer {
    let (name, force) = (topic(call)?, call.params.flag("force"));
    call.site.call(|cluster, now| cluster.delete_scalable_topic(&name, force, now))?;
    Ok(Reply::Done)
}

/// A segment's id in the path. Pulsar reads it as signed: a negative one names no segment, like any other unknown id.
fn segment(call: &Call, n: usize) -> Result<u64, Refusal> {
    Ok(u64::try_from(path_int("segmentId", call.part(n))?).unwrap_or(u64::MAX))
}

fn split(call: &Call) -> Answer {
    let (name, segment) = (topic(call)?, segment(call, 3)?);
    call.site.call(|cluster, now| cluster.split_segment(&name, segment, now))?;
    Ok(Reply::Done)
}

fn merge(call: &Call) -> Answer {
    let (name, a, b) = (topic(call)?, segment(call, 3)?, segment(call, 4)?);
    call.site.call(|cluster, now| cluster.merge_segments(&name, a, b, now))?;
    Ok(Reply::Done)
}

fn rebucket(call: &Call) -> Answer {
    let (name, segment) = (topic(call)?, segment(call, 3)?);
    let count: i32 = call.params.int("bucketCount", 0)?;
    call.site.call(|cluster, now| cluster.rebucket_segment(&name, segment, Some(count.into()), now))?;
    Ok(Reply::Done)
}

fn migrate(call: &Call) -> Answer {
    let (name, force) = (call.topic(Domain::Persistent)?, call.params.flag("force"));
    call.site.call(|cluster, now| cluster.migrate_topic(&name, force, now))?;
    Ok(Reply::Done)
}

fn stats(call: &Call) -> Answer {
    let name = topic(call)?;
    call.site.call(|cluster, _| {
        let stats = cluster.scalable_stats(&name)?;
        let policy = cluster.auto_scale_policy(&name)?;
        Reply::json(&ScalableTopicStats::new(&stats, policy, cluster.brokers()))
    })
}

fn segment_stats(call: &Call) -> Answer {
    let (name, id) = (topic(call)?, segment(call, 3)?);
    call.site.call(|cluster, _| {
        cluster.scalable_topic(&name)?;
        let stats = cluster.scalable_stats(&name)?;
        let segment = stats.segments.iter().find(|s| s.segment.id == id).ok_or_else(|| {
            Refusal::not_found(format!("Segment {} not found in scalable topic {name}", call.part(3)))
        })?;
        Reply::json(&SegmentTopicStats::new(segment, cluster.brokers()))
    })
}

fn get_policy(call: &Call) -> Answer {
    let name = topic(call)?;
    call.site.call(|cluster, _| Reply::maybe(cluster.auto_scale_policy(&name)?))
}

fn set_policy(call: &Call) -> Answer {
    let name = topic(call)?;
    let policy = params::object(&call.body)?.map(policy::check).transpose()?;
    call.site.call(|cluster, now| cluster.set_auto_scale_policy(&name, policy, now))?;
    Ok(Reply::Done)
}

fn remove_policy(call: &Call) -> Answer {
    let name = topic(call)?;
    call.site.call(|cluster, now| cluster.set_auto_scale_policy(&name, None, now))?;
    Ok(Reply::Done)
}

/// The subscription that the path names.
fn subscription(call: &Call) -> Result<&str, Refusal> {
    match call.part(3) {
        "" => Err(Refusal::precondition("Subscription name is not valid")),
        name if name.contains('/') => Err(Refusal::precondition("Subscription name is not valid")),
        name => Ok(name),
    }
}

fn subscribe(call: &Call) -> Answer {
    let (name, subscription) = (topic(call)?, subscription(call)?);
    // The type is for the statistics: segments take consumers of both kinds.
    let queue = match call.params.text("type") {
        None | Some("STREAM") => false,
        Some("QUEUE") => true,
        Some(other) => return Err(Refusal::not_found(format!("type is not STREAM or QUEUE: {other}"))),
    };
    call.site.call(|cluster, now| cluster.create_scalable_subscription(&name, subscription, queue, now))?;
    Ok(Reply::Done)
}

fn unsubscribe(call: &Call) -> Answer {
    let (name, subscription) = (topic(call)?, subscription(call)?);
    call.site.call(|cluster, now| cluster.delete_scalable_subscription(&name, subscription, now))?;
    Ok(Reply::Done)
}

fn seek(call: &Call) -> Answer {
    let (name, subscription) = (topic(call)?, subscription(call)?);
    let time: i64 = call.params.int("timestamp", 0)?;
    // Before 1970 there is nothing: the same as from the beginning.
    let time = u64::try_from(time).unwrap_or(0);
    call.site.call(|cluster, now| cluster.seek_scalable_subscription(&name, subscription, time, now))?;
    Ok(Reply::Done)
}

fn skip_all(call: &Call) -> Answer {
    let (name, subscription) = (topic(call)?, subscription(call)?);
    call.site.call(|cluster, now| cluster.skip_all_scalable_subscription(&name, subscription, now))?;
    Ok(Reply::Done)
}
