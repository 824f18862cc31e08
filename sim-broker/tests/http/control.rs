//! The control API over HTTP.

use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use sim_broker::{control::http::openapi, core::journal::Event};
use stc_proto::pulsar::{CommandScalableTopicSubscribe, ScalableConsumerType};

use crate::{
    raw::Client,
    support::{Answer, Site},
};

const TOPIC: &str = "topic://public/default/t";

async fn site() -> Site {
    let site = Site::new("spec-1.0");
    let made = site.call("PUT", "/admin/v2/scalable/public/default/t?numInitialSegments=2").await;
    assert_eq!(made.status, 204);
    site
}

async fn post(site: &Site, path: &str, body: Json) -> Answer {
    site.call_with("POST", &format!("/control/v1{path}"), body.to_string()).await
}

async fn get(site: &Site, path: &str) -> Json {
    let answer = site.call("GET", &format!("/control/v1{path}")).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.json()
}

#[tokio::test]
async fn the_checked_in_document_is_the_one_that_is_served() {
    let served = get(&site().await, "/openapi.json").await;
    assert_eq!(served, openapi());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/control-api.openapi.json");
    let document = serde_json::to_string_pretty(&served).unwrap() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &document).unwrap();
    }
    let checked_in = std::fs::read_to_string(path).unwrap_or_default();
    assert!(checked_in == document, "run this test with UPDATE_DOCS=1 to write {path} anew");
}

#[tokio::test]
async fn every_reference_in_the_document_leads_somewhere() {
    let document = openapi();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

fn collect(json: &Json, references: &mut Vec<String>) {
    match json {
        Json::Object(map) => {
            references.extend(map.get("$ref").and_then(Json::as_str).map(str::to_owned));
            map.values().for_each(|value| collect(value, references));
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[tokio::test]
async fn every_operation_of_the_document_is_served() {
    let site = site().await;
    let document = openapi();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.replace("{fault}", "77").replace("{held}", "77").replace("{broker}", "77");
        for method in methods.as_object().unwrap().keys() {
            // A following reader never comes to an end.
            if path.ends_with("/follow") {
                continue;
            }
            let answer = site.call_with(&method.to_uppercase(), &path, "nonsense").await;
            assert_ne!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            let nowhere = answer.status == 404 && answer.reason().contains("there is nothing at");
            assert!(!nowhere, "{method} {path}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_fault_is_armed_shown_and_disarmed() {
    let site = site().await;
    let fault = json!({ "when": { "command": "SEND", "topic": TOPIC }, "effect": { "delay": { "ms": 50 } }, "count": 3 });
    let armed = post(&site, "/faults", fault.clone()).await.json();
    let id = armed["id"].as_u64().unwrap();
    let listed = get(&site, "/faults").await;
    assert_eq!(listed[0]["id"], id);
    assert_eq!(listed[0]["fired"], 0);
    assert_eq!(listed[0]["fault"]["effect"], fault["effect"]);
    let path = format!("/control/v1/faults/{id}");
    assert_eq!(site.call("DELETE", &path).await.status, 204);
    assert_eq!(site.call("DELETE", &path).await.status, 404);
    assert_eq!(get(&site, "/faults").await, json!([]));
}

#[tokio::test]
async fn nonsense_is_refused_and_the_field_is_named() {
    let site = site().await;
    for (status, path, body, named) in [
        (400, "/faults", json!({ "when": { "comand": "SEND" }, "effect": "drop" }), "comand"),
        (400, "/faults", json!({ "when": {}, "effect": "drop", "often": 2 }), "often"),
        (400, "/faults", json!({ "when": { "command": "SENT" }, "effect": "drop" }), "SENT"),
        (400, "/faults", json!({ "when": {}, "effect": { "error": { "code": "Oops" } } }), "Oops"),
        (400, "/faults", json!({ "when": {} }), "effect"),
        (400, "/clock/advance", json!({ "ms": -1 }), "-1"),
        (400, "/clock/advance", json!({ "ms": u64::MAX }), "ms"),
        (400, "/clock/advance", json!({ "seconds": 1 }), "seconds"),
        (400, "/marks", json!({ "txt": "x" }), "txt"),
        (400, "/segments/move", json!({ "topic": TOPIC, "segment": 0 }), "broker"),
        (404, "/segments/move", json!({ "topic": TOPIC, "segment": 9, "broker": 0 }), "segment 9"),
        (404, "/segments/move", json!({ "topic": TOPIC, "segment": 0, "broker": 9 }), "broker 9"),
        (400, "/segments/move", json!({ "topic": "topic://x", "segment": 0, "broker": 0 }), "topic://x"),
        (404, "/controllers/move", json!({ "topic": "topic://a/b/c", "broker": 0 }), "topic://a/b/c"),
        (400, "/pushes/hold", json!({ "topic": "segment://a/b/c" }), "segment://a/b/c"),
        (404, "/pushes/hold", json!({ "topic": "topic://a/b/c" }), "topic://a/b/c"),
        (404, "/pushes/release", json!({ "topic": "topic://a/b/c" }), "topic://a/b/c"),
        (404, "/prune", json!({ "topic": "topic://a/b/c" }), "topic://a/b/c"),
        (400, "/pushes/inject", json!({ "topic": TOPIC, "layout": { "epok": 1 } }), "epok"),
        (400, "/connections/drop", json!({ "brokers": 1 }), "brokers"),
        (404, "/connections/drop", json!({ "broker": 9 }), "there is no broker 9"),
        (404, "/faults", json!({ "when": { "broker": 9 }, "effect": "drop" }), "there is no broker 9"),
        (400, "/journal/wait", json!({ "type": "SENT" }), "SENT"),
        (400, "/journal/wait", json!({ "dir": "up" }), "up"),
        (400, "/journal/wait", json!({ "timeout_ms": 600_001 }), "timeout_ms"),
        (404, "/brokers/77/kill", json!({}), "broker 77"),
        (400, "/reset", json!({ "really": true }), "no body"),
    ] {
        let answer = post(&site, path, body.clone()).await;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.body);
        assert!(answer.reason().contains(named), "{path} {body}: {}", answer.body);
    }
    for (status, method, path) in [
        (400, "GET", "/journal?form=1"),
        (400, "GET", "/journal?from=x"),
        (400, "GET", "/journal?limit=0"),
        (400, "GET", "/journal?limit=10001"),
        (400, "GET", "/stored"),
        (404, "GET", "/stored?topic=topic://a/b/c"),
        (400, "POST", "/faults"),
        (400, "POST", "/brokers/first/kill"),
        (404, "POST", "/brokers/4294967296/kill"),
        (405, "PUT", "/faults"),
        (404, "GET", "/fault"),
        (404, "POST", "/held/1/release"),
    ] {
        let answer = site.call(method, &format!("/control/v1{path}")).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        assert!(!answer.reason().is_empty(), "{method} {path}");
    }
    assert_eq!(get(&site, "/faults").await, json!([]));
}

#[tokio::test]
async fn brokers_die_and_come_back() {
    let site = site().await;
    assert_eq!(post(&site, "/brokers/1/kill", json!({})).await.status, 204);
    assert_eq!(post(&site, "/brokers/1/kill", json!({})).await.status, 409);
    let up = |brokers: Json| brokers.as_array().unwrap().iter().map(|b| b["up"] == true).collect::<Vec<_>>();
    assert_eq!(up(get(&site, "/brokers").await), [true, false, true]);
    assert_eq!(post(&site, "/brokers/1/revive", json!({})).await.status, 204);
    assert_eq!(up(get(&site, "/brokers").await), [true, true, true]);
}

#[tokio::test]
async fn a_segment_and_a_controller_move() {
    let site = site().await;
    for broker in 0..3 {
        let call = json!({ "topic": TOPIC, "segment": 1, "broker": broker });
        assert_eq!(post(&site, "/segments/move", call).await.status, 204);
        let call = json!({ "topic": TOPIC, "broker": broker });
        assert_eq!(post(&site, "/controllers/move", call).await.status, 204);
        let owners = get(&site, "/owners").await;
        let segment = owners
            .as_array()
            .unwrap()
            .iter()
            .find(|o| o["topic"] == "segment://public/default/t/8000-ffff-1");
        assert_eq!(segment.unwrap()["broker"], broker);
        let layout = get(&site, &format!("/layout?topic={TOPIC}")).await;
        assert_eq!(layout["controller_broker_url"], format!("pulsar://broker-{broker}:6650"));
    }
}

#[tokio::test]
async fn a_layout_can_be_read_changed_and_injected() {
    let site = site().await;
    let layout = get(&site, &format!("/layout?topic={TOPIC}")).await;
    assert_eq!(layout["segments"].as_array().unwrap().len(), 2);
    let mut stale = layout.clone();
    stale["epoch"] = 7.into();
    let pushed = post(&site, "/pushes/inject", json!({ "topic": TOPIC, "layout": stale })).await;
    assert_eq!(pushed.json(), json!({ "pushes": 0 }), "nobody watches");
    assert_eq!(
        get(&site, &format!("/layout?topic={TOPIC}")).await,
        layout,
        "the topic itself does not change"
    );
}

#[tokio::test(start_paused = true)]
async fn the_clock_moves_ahead() {
    let site = site().await;
    let before = get(&site, "/clock").await["now_ms"].as_u64().unwrap();
    let after = post(&site, "/clock/advance", json!({ "ms": 60_000 })).await.json();
    assert_eq!(after["now_ms"], before + 60_000);
}

#[tokio::test]
async fn the_journal_is_read_in_parts() {
    let site = site().await;
    for i in 0..5 {
        assert_eq!(post(&site, "/marks", json!({ "text": format!("mark {i}") })).await.status, 204);
    }
    let mut texts = Vec::new();
    let mut from = 1;
    loop {
        let part = get(&site, &format!("/journal?from={from}&limit=2")).await;
        let records = part["records"].as_array().unwrap();
        if records.is_empty() {
            break;
        }
        assert!(records.len() <= 2);
        assert_eq!(records[0]["n"], from);
        from = part["next"].as_u64().unwrap();
        texts.extend(records.iter().filter(|r| r["type"] == "MARK").map(|r| r["fields"]["text"].clone()));
    }
    assert_eq!(texts, ["mark 0", "mark 1", "mark 2", "mark 3", "mark 4"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_sees_what_is_there_and_what_comes() {
    let site = site().await;
    post(&site, "/marks", json!({ "text": "before" })).await;
    let there =
        post(&site, "/journal/wait", json!({ "type": "MARK", "fields": { "text": "before" } })).await.json();
    let from = there["n"].as_u64().unwrap() + 1;
    let wanted = json!({ "type": "MARK", "from": from, "fields": { "text": "after" } });
    let (waited, _) = tokio::join!(post(&site, "/journal/wait", wanted), async {
        post(&site, "/marks", json!({ "text": "other" })).await;
        post(&site, "/marks", json!({ "text": "after" })).await;
    });
    assert_eq!(waited.json()["fields"]["text"], "after");
    // Nobody can write another record now, so virtual time runs out at once.
    let late =
        post(&site, "/journal/wait", json!({ "type": "MARK", "from": from + 2, "timeout_ms": 5_000 })).await;
    assert_eq!(late.status, StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test]
async fn a_reset_leaves_an_empty_cluster() {
    let site = site().await;
    post(&site, "/faults", json!({ "when": {}, "effect": "drop" })).await;
    assert_eq!(site.call("POST", "/control/v1/reset").await.status, 204);
    assert_eq!(get(&site, "/faults").await, json!([]));
    assert_eq!(site.call("GET", "/admin/v2/scalable/public/default/t").await.status, 404);
    let records = site.cluster.control().journal();
    let layouts = records.iter().filter(|r| matches!(r.event, Event::Layout { .. }));
    assert_eq!(layouts.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn registrations_are_listed_and_get_any_assignment() {
    let site = site().await;
    let leader = get(&site, &format!("/layout?topic={TOPIC}")).await["controller_broker_url"].clone();
    let mut client = Client::connect(&site.cluster, leader.as_str().unwrap()).await;
    client
        .send(CommandScalableTopicSubscribe {
            request_id: 1,
            topic: TOPIC.into(),
            subscription: "s".into(),
            consumer_name: "a".into(),
            consumer_id: 4,
            consumer_type: ScalableConsumerType::Stream as i32,
        })
        .await;
    crate::expect!(client, ScalableTopicSubscribeResponse);
    let expected = json!([
        { "subscription": "s", "checkpoint": false, "consumer": "a", "connected": true, "segments": [0, 1] }
    ]);
    assert_eq!(get(&site, &format!("/registrations?topic={TOPIC}")).await, expected);

    let mut body = json!({
        "topic": TOPIC, "subscription": "s", "consumer": "a",
        "assignment": { "layout_epoch": 7, "segments": [] },
    });
    assert_eq!(post(&site, "/assignments/inject", body.clone()).await.status, 204);
    let update = crate::expect!(client, ScalableTopicAssignmentUpdate);
    assert_eq!((update.consumer_id, update.assignment.layout_epoch), (4, 7));
    body["assignment"]["layout_epoch"] = "seven".into();
    assert_eq!(post(&site, "/assignments/inject", body.clone()).await.status, 400);
    body["assignment"] = json!({ "layout_epoch": 7 });
    body["consumer"] = "b".into();
    assert_eq!(post(&site, "/assignments/inject", body).await.status, 404);
    let none = site.call("GET", "/control/v1/registrations?topic=topic://public/default/none").await;
    assert_eq!(none.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_broker_is_unloaded() {
    let site = site().await;
    let owned = async || {
        let owners = get(&site, "/owners").await;
        owners.as_array().unwrap().iter().filter(|o| o["broker"] == 1).count()
    };
    for segment in [0, 1] {
        post(&site, "/segments/move", json!({ "topic": TOPIC, "segment": segment, "broker": 1 })).await;
    }
    assert_eq!(owned().await, 2);
    assert_eq!(site.call("POST", "/control/v1/brokers/1/unload").await.status, 204);
    assert_eq!(owned().await, 0);
    assert_eq!(get(&site, "/brokers").await[1]["up"], true);
    assert_eq!(site.call("POST", "/control/v1/brokers/9/unload").await.status, 404);
}
