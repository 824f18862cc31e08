//! What the admin REST tells about a topic, reduced to what can be the same on two brokers: no times, rates, addresses
//! or names that a broker or client made up.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use stc_runner::target::admin::{Admin, AdminError, Method};

use super::trace::{About, Place, Seen};

/// What the subscriptions of checkpoint consumers begin with: one for each segment, under a name that it made up.
const READER: &str = "reader-";

/// Adds layout and statistics of the topic at a path, and gives its active segments by range.
pub(super) async fn topic(
    admin: &Admin,
    topic: u8,
    path: &str,
    seen: &mut Seen,
) -> Result<Vec<u64>, AdminError> {
    let answer = admin.call(Method::GET, path, None).await?;
    seen.insert(Place::LayoutStatus(topic), json!(answer.status));
    let mut active = Vec::new();
    if answer.status == 200 {
        layout(topic, &parse(&answer.body), seen, &mut active);
    }
    let answer = admin.call(Method::GET, &format!("{path}/stats"), None).await?;
    seen.insert(Place::StatsStatus(topic), json!(answer.status));
    if answer.status == 200 {
        statistics(topic, &parse(&answer.body), seen);
        for id in used(topic, seen) {
            let answer = admin.call(Method::GET, &format!("{path}/segments/{id}/stats"), None).await?;
            attached(topic, id, &parse(&answer.body), seen);
        }
    }
    active.sort_unstable();
    Ok(active.into_iter().map(|(_, id)| id).collect())
}

/// The reason in a refusal.
#[must_use]
pub(super) fn reason(body: &str) -> Json {
    let answer = parse(body);
    let text = answer.get("reason").and_then(Json::as_str).unwrap_or(body);
    // Where it fails inside, 5.0.1 adds the stack.
    json!(text.split("\n\nStacktrace").next().unwrap_or_default().trim())
}

fn parse(body: &str) -> Json {
    serde_json::from_str(body).unwrap_or(Json::Null)
}

fn layout(topic: u8, layout: &Json, seen: &mut Seen, active: &mut Vec<(u64, u64)>) {
    seen.insert(Place::Epoch(topic), get(layout, "epoch"));
    for segment in layout.get("segments").and_then(Json::as_object).into_iter().flat_map(Map::values) {
        let Some(id) = segment.get("segmentId").and_then(Json::as_u64) else { continue };
        let range = get(segment, "hashRange");
        if segment.get("state").is_some_and(|state| state == "ACTIVE") {
            active.push((range.get("start").and_then(Json::as_u64).unwrap_or(0), id));
        }
        let kept = ["state", "parentIds", "childIds", "createdAtEpoch", "sealedAtEpoch", "entryBucketSplits"];
        let mut value: Map<String, Json> =
            kept.into_iter().map(|name| (name.to_owned(), get(segment, name))).collect();
        value.insert("hashRange".to_owned(), range);
        seen.insert(Place::Segment(topic, id), Json::Object(value));
    }
}

fn statistics(topic: u8, statistics: &Json, seen: &mut Seen) {
    let producers = statistics.get("producers").and_then(Json::as_array);
    let mut names: Vec<String> = producers.into_iter().flatten().map(producer).collect();
    names.sort_unstable();
    seen.insert(Place::Producers(topic), json!(names));
    let subscriptions = statistics.get("subscriptions").and_then(Json::as_object);
    for (name, subscription) in subscriptions.into_iter().flatten() {
        if name.starts_with(READER) {
            continue;
        }
        let mut add = |about, value| {
            seen.insert(Place::Subscription { topic, name: name.clone(), about }, value);
        };
        add(About::Kind, get(subscription, "type"));
        add(About::Backlog, get(subscription, "msgBacklog"));
        add(About::Uncovered, get(subscription, "uncoveredSegmentIds"));
        let consumers = subscription.get("consumers").and_then(Json::as_array);
        let consumers: BTreeMap<String, Json> =
            consumers.into_iter().flatten().filter_map(consumer).collect();
        add(About::Consumers, json!(consumers));
        for (id, segment) in subscription.get("segments").and_then(Json::as_object).into_iter().flatten() {
            let Ok(id) = id.parse() else { continue };
            let backlog = get(segment, "msgBacklog");
            add(About::Unacknowledged(id), get(segment, "unackedMessages"));
            let (attached, blocked) = (get(segment, "consumerCount"), get(segment, "blocked"));
            add(About::Segment(id), json!({ "backlog": backlog, "attached": attached, "blocked": blocked }));
        }
    }
}

/// The segments that consumers are attached to.
fn used(topic: u8, seen: &Seen) -> BTreeSet<u64> {
    let used = |(place, value): (&Place, &Json)| match place {
        Place::Subscription { topic: of, about: About::Segment(id), .. } if *of == topic => {
            value.get("attached").and_then(Json::as_u64).filter(|n| *n > 0).map(|_| *id)
        }
        _ => None,
    };
    seen.iter().filter_map(used).collect()
}

fn attached(topic: u8, segment: u64, statistics: &Json, seen: &mut Seen) {
    let subscriptions = statistics.get("subscriptions").and_then(Json::as_object);
    for (name, subscription) in subscriptions.into_iter().flatten() {
        let consumers = subscription.get("consumers").and_then(Json::as_array).into_iter().flatten();
        let mut names: Vec<Json> = consumers.map(|consumer| get(consumer, "consumerName")).collect();
        if names.is_empty() || name.starts_with(READER) {
            continue;
        }
        names.sort_by_key(Json::to_string);
        let place = Place::Subscription { topic, name: name.clone(), about: About::Attached(segment) };
        seen.insert(place, json!(names));
    }
}

/// The name of a producer that the sequence named (`n0`); the names of others are the broker's, and empty here.
fn producer(producer: &Json) -> String {
    let name = producer.get("producerName").and_then(Json::as_str).unwrap_or_default();
    let named = name.len() == 2 && name.starts_with('n');
    if named { name.to_owned() } else { String::new() }
}

fn consumer(consumer: &Json) -> Option<(String, Json)> {
    let mut segments: Vec<u64> =
        consumer.get("segmentIds")?.as_array()?.iter().filter_map(Json::as_u64).collect();
    segments.sort_unstable();
    let name = consumer.get("consumerName")?.as_str()?.to_owned();
    Some((name, json!({ "connected": get(consumer, "connected"), "segments": segments })))
}

fn get(of: &Json, name: &str) -> Json {
    of.get(name).cloned().unwrap_or(Json::Null)
}
