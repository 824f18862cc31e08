//! Nonsense on the admin REST: refused with a reason, and nothing changes.

use axum::{body::Body, http::Request};

use crate::support::Site;

/// What there is: every topic, subscription and namespace that the calls below could have touched.
async fn state(site: &Site) -> Vec<String> {
    let mut all = Vec::new();
    for path in [
        "/admin/v2/tenants",
        "/admin/v2/namespaces/public",
        "/admin/v2/namespaces/public/default",
        "/admin/v2/scalable/public/default",
        "/admin/v2/scalable/public/default/t",
        "/admin/v2/scalable/public/default/t/stats",
        "/admin/v2/scalable/public/default/t/autoScalePolicy",
        "/admin/v2/persistent/public/default",
        "/admin/v2/persistent/public/default/c/subscriptions",
    ] {
        let answer = site.call("GET", path).await;
        assert_eq!(answer.status, 200, "{path}");
        all.push(answer.body);
    }
    all
}

async fn site() -> Site {
    let site = Site::new("spec-1.0");
    for path in
        ["/admin/v2/scalable/public/default/t?numInitialSegments=2", "/admin/v2/persistent/public/default/c"]
    {
        assert_eq!(site.call("PUT", path).await.status, 204);
    }
    site
}

#[tokio::test]
async fn nonsense_is_refused_with_a_reason_and_changes_nothing() {
    let site = site().await;
    let before = state(&site).await;
    let t = "/admin/v2/scalable/public/default/t";
    let ns = "/admin/v2/namespaces/public";
    let huge = format!(r#"{{"a":"{}"}}"#, "x".repeat(9 * 1024 * 1024));
    for (status, method, path, body) in [
        (404, "POST", format!("{t}/split/abc"), ""),
        (404, "POST", format!("{t}/split/99999999999999999999"), ""),
        (500, "POST", format!("{t}/split/-1"), ""),
        (404, "POST", format!("{t}/split/18446744073709551615"), ""),
        (500, "POST", format!("{t}/split/9223372036854775807"), ""),
        (500, "POST", format!("{t}/merge/0/0"), ""),
        (404, "POST", format!("{t}/merge/0"), ""),
        (412, "POST", format!("{t}/rebucket/0"), ""),
        (412, "POST", format!("{t}/rebucket/0?bucketCount=-2147483648"), ""),
        (404, "POST", format!("{t}/rebucket/0?bucketCount=2147483648"), ""),
        (404, "POST", format!("{t}/rebucket/0?bucketCount=%F0%9F%A6%80"), ""),
        (412, "PUT", "/admin/v2/scalable/public/default/u?numInitialSegments=0".into(), ""),
        (412, "PUT", "/admin/v2/scalable/public/default/u?numInitialSegments=-2147483648".into(), ""),
        (412, "PUT", "/admin/v2/scalable/public/default/u?numInitialSegments=2147483647".into(), ""),
        (404, "PUT", "/admin/v2/scalable/public/default/u?numInitialSegments=1e3".into(), ""),
        (400, "PUT", "/admin/v2/scalable/public/default/%ff".into(), ""),
        (400, "PUT", "/admin/v2/scalable/public/default/%f".into(), ""),
        (400, "PUT", "/admin/v2/scalable/public/default/a%0Ab".into(), ""),
        (412, "PUT", "/admin/v2/scalable/public/default/%20".into(), ""),
        (412, "PUT", "/admin/v2/scalable/pub%20lic/default/u".into(), ""),
        (412, "PUT", "/admin/v2/scalable/public/%2e%2e%2f/u".into(), ""),
        (400, "PUT", "/admin/v2/scalable/public/default/u".into(), "{"),
        (400, "PUT", "/admin/v2/scalable/public/default/u".into(), "[1]"),
        (400, "PUT", "/admin/v2/scalable/public/default/u".into(), r#"{"a":[]}"#),
        (413, "PUT", "/admin/v2/scalable/public/default/u".into(), &huge),
        (412, "GET", "/admin/v2/scalable/public/default?property=nonsense".into(), ""),
        (405, "PATCH", t.into(), ""),
        (405, "POST", t.into(), "{}"),
        (405, "GET", format!("{t}/split/0"), ""),
        (404, "GET", format!("{t}/nonsense"), ""),
        (404, "GET", "/admin/v3/scalable/public/default".into(), ""),
        (404, "PUT", format!("{t}/subscriptions/s?type=stream"), ""),
        (412, "PUT", format!("{t}/subscriptions/a%2Fb"), ""),
        (404, "POST", format!("{t}/subscriptions/s/seek?timestamp=yesterday"), ""),
        (400, "POST", format!("{t}/autoScalePolicy"), r#"{"maxSegments":"many"}"#),
        (412, "POST", format!("{t}/autoScalePolicy"), r#"{"minSegments":0}"#),
        (400, "POST", format!("{ns}/default/deduplication"), "maybe"),
        (400, "POST", format!("{ns}/default/deduplication"), "7"),
        (400, "POST", format!("{ns}/default/deduplication"), ""),
        (
            412,
            "POST",
            format!("{ns}/default/autoTopicCreation"),
            r#"{"allowAutoTopicCreation":true,"topicType":"x"}"#,
        ),
        (400, "POST", format!("{ns}/default/autoTopicCreation"), r#"{"allowAutoTopicCreation":"x"}"#),
        (412, "PUT", format!("{ns}/a%20b"), ""),
        (400, "PUT", format!("{ns}/n"), "[]"),
        (
            412,
            "PUT",
            format!("{ns}/n"),
            r#"{"autoTopicCreationOverride":{"allowAutoTopicCreation":true,"topicType":"x"}}"#,
        ),
        (412, "PUT", "/admin/v2/tenants/t".into(), r#"{"allowedClusters":["elsewhere"]}"#),
        (406, "PUT", "/admin/v2/persistent/public/default/p/partitions".into(), "0"),
        (406, "PUT", "/admin/v2/persistent/public/default/p/partitions".into(), "-3"),
        (406, "PUT", "/admin/v2/persistent/public/default/p/partitions".into(), "9223372036854775807"),
        (400, "PUT", "/admin/v2/persistent/public/default/p/partitions".into(), "1e300"),
        (400, "PUT", "/admin/v2/persistent/public/default/p/partitions".into(), "{}"),
        (400, "PUT", "/admin/v2/persistent/public/default/p/partitions".into(), ""),
        (412, "PUT", "/admin/v2/persistent/public/default/p-partition-7".into(), ""),
        (404, "POST", "/admin/v2/persistent/public/default/c/subscription/s/resetcursor/soon".into(), ""),
        (404, "PUT", "/admin/v2/persistent/no/where/p".into(), ""),
    ] {
        let answer = match body {
            "" => site.call(method, &path).await,
            body => site.call_with(method, &path, body.to_owned()).await,
        };
        let shown: String = body.chars().take(80).collect();
        assert_eq!(answer.status, status, "{method} {path} {shown}: {}", answer.body);
        assert!(!answer.reason().trim().is_empty(), "{method} {path} {shown}");
        assert_eq!(state(&site).await, before, "{method} {path} {shown} changed something");
    }
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_refused() {
    let site = site().await;
    let answer =
        site.call_with("PUT", "/admin/v2/scalable/public/default/u", vec![b'{', b'"', 0xff, b'"']).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert!(answer.reason().contains("not JSON"), "{}", answer.body);
}

#[tokio::test]
async fn another_content_type_is_refused_and_none_is_fine() {
    let site = site().await;
    let put = |kind: Option<&str>, name: &str| {
        let request =
            Request::builder().method("PUT").uri(format!("/admin/v2/scalable/public/default/{name}"));
        let request = kind.into_iter().fold(request, |r, kind| r.header("content-type", kind));
        request.body(Body::from(r#"{"a":"b"}"#)).unwrap()
    };
    assert_eq!(site.send(put(Some("text/plain"), "u")).await.status, 415);
    assert_eq!(site.send(put(Some("application/x-www-form-urlencoded"), "u")).await.status, 415);
    assert_eq!(site.send(put(Some("application/json; charset=utf-8"), "u")).await.status, 204);
    assert_eq!(site.send(put(None, "v")).await.status, 204);
}

#[tokio::test]
async fn a_wrong_method_is_told_which_ones_there_are() {
    let site = site().await;
    let answer = site.call("PATCH", "/admin/v2/scalable/public/default/t").await;
    let allowed = answer.headers["allow"].to_str().unwrap();
    for method in ["GET", "PUT", "DELETE"] {
        assert!(allowed.contains(method), "{allowed}");
    }
}

#[tokio::test]
async fn calls_are_journaled_with_their_answers() {
    let site = site().await;
    let t = "/admin/v2/scalable/public/default/t";
    site.call_with("POST", &format!("{t}/autoScalePolicy"), r#"{"enabled":false}"#).await;
    site.call("PUT", &format!("{t}?numInitialSegments=2")).await;
    let records = site.admin_records();
    for wanted in [
        format!("PUT {t}?numInitialSegments=2 -> 204"),
        format!(r#"POST {t}/autoScalePolicy body={{"enabled":false}} -> 204"#),
        format!(
            r#"PUT {t}?numInitialSegments=2 -> 409 {{"reason":"Scalable topic already exists: topic://public/default/t"}}"#
        ),
    ] {
        assert!(records.contains(&wanted), "{wanted}\nin {records:#?}");
    }
}
