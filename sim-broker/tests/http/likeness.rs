//! Calls that were put to the released broker, put to the simulated one: same statuses, same JSON.
//!
//! `data/admin-5.0.1.jsonl` has one call a line with the answer of Pulsar 5.0.1 (stack traces cut off, HTML pages left
//! out), in the order in which they were made on one broker.

use axum::{body::Body, http::Request};
use serde_json::Value as Json;
use sim_broker::core::BrokerId;

use crate::support::Site;

/// Where the simulator answers otherwise, and why: the call with its body.
const DIFFERENT: &[(&str, &str)] = &[
    ("PUT /admin/v2/scalable/public/default/n65537?numInitialSegments=65537", MEMORY),
    ("PUT /admin/v2/scalable/public/default/n70000?numInitialSegments=70000", MEMORY),
    ("GET /admin/v2/scalable/public/default", "a topic of 65,536 segments was half created there"),
    ("GET /admin/v2/scalable/public/default?property=", "the same topic"),
    (
        "GET /admin/v2/scalable/public/default/a%20b",
        "names are decoded here in every call, there only in some",
    ),
    ("GET /admin/v2/scalable/public/default/a%2Fb", SLASH),
    ("PUT /admin/v2/scalable/public/default/a%2Fb", SLASH),
    ("PUT /admin/v2/scalable/public/default/p2/subscriptions/a%2Fb", SLASH),
    ("GET /admin/v2/scalable/public/default/%E2%82%AC", "the reason shows the name, not its escape"),
    ("PUT /admin/v2/scalable/public/default/%20", ACCIDENT),
    ("PUT /admin/v2/scalable/public/default/x-partition-0", ACCIDENT),
    ("PUT /admin/v2/scalable/public/default/", "a path that does not exist is 404 here for every method"),
    ("OPTIONS /admin/v2/scalable/public/default/p1", "OPTIONS is not offered"),
    ("GET /admin/v2/tenants", "the system tenant does not exist here"),
    ("PUT /admin/v2/persistent/public/default/k3/partitions", ACCIDENT),
    ("PUT /admin/v2/persistent/public/default/k3/partitions 99999", MEMORY),
    ("GET /admin/v2/persistent/public/default/partitioned", "the topic of the call before"),
    ("GET /admin/v2/persistent/public/default/k1/lastMessageId", "no ledger is named before it has an entry"),
    ("POST /admin/v2/persistent/public/default/k1/terminate", "no ledger is named before it has an entry"),
    (
        "GET /admin/v2/persistent/public/default/k1/internalStats",
        "not offered: there are no ledgers to look into",
    ),
    ("GET /lookup/v2/topic/nope/public/default/x", ACCIDENT),
    ("GET /lookup/v2/topic/persistent/public/default/k1/bundle", "not offered: there are no bundles"),
];
const MEMORY: &str = "one call cannot take all memory: 412 or 406 beyond a limit";
const SLASH: &str = "a slash in a name is refused with 412; there some calls kept what they refused";
const ACCIDENT: &str = "there an exception that nobody caught, here a refusal or what was asked for";

/// Whether only the fields that the simulator prints are compared: it keeps fewer statistics and policies.
fn in_part(path: &str) -> bool {
    path.ends_with("/stats")
        || path.starts_with("/admin/v2/namespaces/t1/n")
        || path.starts_with("/admin/v2/clusters/")
}

#[tokio::test]
async fn the_simulated_broker_answers_as_the_released_one() {
    let site = Site::with_brokers("pulsar-5.0.1", 1);
    let mut wrong = Vec::new();
    let mut excused = Vec::new();
    let rows = include_str!("../data/admin-5.0.1.jsonl");
    for (line, row) in rows.lines().enumerate() {
        // The recorded broker's addresses are the simulated one's.
        let row = row.replace("127.0.0.1:28180", "broker-0:8080").replace("127.0.0.1:26750", "broker-0:6650");
        let row: Json = serde_json::from_str(&row).unwrap();
        let (method, path) = (row["method"].as_str().unwrap(), row["path"].as_str().unwrap());
        let answer = call(&site, method, path, &row).await;
        let recorded = row["reply"].as_str().unwrap();
        let same_body = match row["type"].as_str() {
            Some("application/json") => {
                same(recorded, &answer.body, in_part(path))
                    || answer.body.contains("reason") && answer.reason() == recorded
            }
            // Pages and parser messages for people: a reason will do.
            Some(_) => method == "HEAD" || method == "OPTIONS" || !answer.reason().is_empty(),
            None => true,
        };
        if u64::from(answer.status.as_u16()) == row["status"].as_u64().unwrap() && same_body {
            continue;
        }
        let body = row["body"].as_str().map(|body| format!(" {body}")).unwrap_or_default();
        let name = format!("{method} {path}{body}");
        match DIFFERENT.iter().position(|(known, _)| *known == name) {
            Some(known) => excused.push(known),
            None => wrong.push(format!(
                "{}: {name}\n  5.0.1: {} {recorded}\n  here:  {} {}",
                line + 1,
                row["status"],
                answer.status,
                answer.body
            )),
        }
    }
    assert!(wrong.is_empty(), "{} calls are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
    let unused = DIFFERENT.iter().enumerate().filter(|(i, _)| !excused.contains(i));
    let unused: Vec<&str> = unused.map(|(_, (name, _))| *name).collect();
    assert!(unused.is_empty(), "answered the same by now: {unused:?}");
}

async fn call(site: &Site, method: &str, path: &str, row: &Json) -> crate::support::Answer {
    let request = Request::builder().method(method).uri(path);
    match row["body"].as_str() {
        Some(body) => {
            let kind = row["content_type"].as_str().unwrap_or("application/json");
            // Bytes beyond ASCII were recorded one character each.
            let bytes: Vec<u8> = body.chars().map(|c| c as u8).collect();
            site.send(request.header("content-type", kind).body(Body::from(bytes)).unwrap()).await
        }
        None => site.send(request.body(Body::empty()).unwrap()).await,
    }
}

/// Whether two answers are the same but for times and addresses.
fn same(recorded: &str, here: &str, in_part: bool) -> bool {
    if recorded == here {
        return true;
    }
    match (serde_json::from_str(recorded), serde_json::from_str(here)) {
        (Ok(recorded), Ok(here)) => like(&recorded, &here, in_part),
        _ => false,
    }
}

fn like(recorded: &Json, here: &Json, in_part: bool) -> bool {
    match (recorded, here) {
        (Json::Object(a), Json::Object(b)) => {
            (in_part || a.len() == b.len())
                && b.iter().all(|(key, b)| {
                    let varies = (key.ends_with("AtMs") || key.ends_with("At")) && b != -1;
                    a.get(key).is_some_and(|a| varies && a != -1 || like(a, b, in_part))
                })
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| like(a, b, in_part))
        }
        _ => recorded == here,
    }
}

#[tokio::test]
async fn a_broker_tells_its_version_and_its_health() {
    for (profile, version) in [
        ("pulsar-5.0.1", "5.0.1"),
        ("pulsar-5.0.0-M1", "5.0.0-M1"),
        // Of no release of Pulsar: the simulator's own.
        ("spec-1.0", env!("CARGO_PKG_VERSION")),
    ] {
        let site = Site::new(profile);
        assert_eq!(site.call("GET", "/admin/v2/brokers/version").await.body, version);
        assert_eq!(site.call("GET", "/admin/v2/brokers/health").await.body, "ok");
        site.cluster.control().kill_broker(BrokerId(0)).unwrap();
        assert_eq!(site.call("GET", "/admin/v2/brokers/health").await.status, 503);
    }
}
