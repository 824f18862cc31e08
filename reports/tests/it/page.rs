//! The HTML page.

use std::path::Path;

use ring::digest;
use serde_json::Value;
use stc_reports::{Report, ScenarioResult, Verdict, html};

use crate::sample;

fn page(reports: &[&Report]) -> String {
    html::render(reports).unwrap()
}

/// The page of a failed scenario's exchange alone.
fn session(report: &Report) -> String {
    let failed = report.scenarios.iter().find(|s| !s.transcript.is_empty()).unwrap();
    html::sessions(&[html::Session { name: "a <b> journal", records: &failed.transcript }]).unwrap()
}

/// The text of the element with this id, which must have no elements in it.
fn content<'a>(page: &'a str, id: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("id=\"{id}\""))?;
    let (_, rest) = rest.split_once('>')?;
    rest.split_once('<').map(|(content, _)| content)
}

fn json(page: &str, id: &str) -> Value {
    serde_json::from_str(content(page, id).unwrap()).unwrap()
}

#[test]
fn the_policy_names_the_style_sheet_and_the_script_by_their_hashes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/html/assets");
    let session = session(&sample::full());
    let files = ["report.css.sha256", "script.sha256", "session.sha256"];
    for (name, (text, checked_in)) in files.iter().zip(html::assets()) {
        let hash = digest::digest(&digest::SHA256, text.as_bytes());
        let hash = base64(hash.as_ref()) + "\n";
        if std::env::var_os("STC_UPDATE_SCHEMA").is_some() {
            std::fs::write(dir.join(name), &hash).unwrap();
            continue;
        }
        let stale = hash != checked_in;
        assert!(!stale, "{name} is out of date; STC_UPDATE_SCHEMA=1 cargo test -p stc-reports rewrites it");
        let named = |page: &str| page.contains(&format!("sha256-{}'", hash.trim()));
        assert_eq!(named(&page(&[&sample::full()])), *name != "session.sha256", "{name}");
        assert_eq!(named(&session), *name != "script.sha256", "{name}");
    }
}

/// Base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().chain([0, 0].iter()).take(3).fold(0_u32, |w, b| w << 8 | u32::from(*b));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[test]
fn it_asks_nobody_for_anything() {
    let page = page(&[&sample::full()]);
    assert!(page.contains("default-src 'none'"));
    for reference in
        ["src=", "<link", "<img", "<iframe", "@import", "url(", "http-equiv=\"refresh\"", " style=\""]
    {
        assert!(!page.contains(reference), "{reference}");
    }
    // Links lead to places in the page only.
    assert!(page.match_indices("href=").all(|(at, _)| page[at..].starts_with("href=\"#")), "{page}");
    for call in ["fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon", "import(", "innerHTML", "eval("] {
        assert!(!html::assets()[1].0.contains(call), "{call}");
    }
}

#[test]
fn what_was_only_recorded_is_a_page_without_a_verdict() {
    let report = sample::full();
    let (page, whole) = (session(&report), page(&[&report]));
    assert!(page.contains("<h2>a &lt;b&gt; journal</h2>"), "{page}");
    assert!(!page.contains("class=\"verdict"), "{page}");
    let failed = report.scenarios.iter().find(|s| !s.transcript.is_empty()).unwrap();
    assert!(page.contains(&format!("{} records", failed.transcript.len())), "{page}");
    assert_eq!(json(&page, "stc-data")["runs"], Value::Array(Vec::new()));
    let records = content(&page, "w-0-0").unwrap();
    assert!(!records.is_empty() && whole.contains(records), "the records differ from those of a report");
}

#[test]
fn verdict_and_score_come_first() {
    let page = page(&[&sample::full()]);
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = [
        place("<strong>does not conform (1 failure)</strong>"),
        place("<span class=\"of\">of 5</span> <span class=\"noun\">requirements</span>"),
        place("C2 fails, IMPL-2.1: key &quot;鍵&quot; (hash 0x9a3c) went to segment 1"),
        place("id=\"IMPL-1.1\""),
        place("partly run<small>1/2</small>"),
    ];
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn the_matrix_has_every_requirement_also_those_without_a_scenario() {
    let report = sample::full();
    let page = page(&[&report]);
    for requirement in &report.requirements {
        let row = format!(
            "id=\"{}\" data-level=\"{}\" data-status=\"{}\"",
            requirement.id,
            requirement.level.as_str(),
            requirement.status.as_str()
        );
        assert!(page.contains(&row), "{row}");
        assert!(page.contains(&requirement.summary));
    }
    assert!(page.contains("Not proven: no scenario cites it"));
}

#[test]
fn an_exchange_is_there_once_with_exact_numbers_and_readable_payloads() {
    let page = page(&[&sample::full()]);
    let frames = json(&page, "w-0-2");
    assert_eq!(frames.as_array().unwrap().len(), 3);
    assert_eq!(frames[2]["name"], "SEND");
    assert_eq!((&frames[2]["from"], &frames[2]["to"]), (&"client".into(), &"broker 0".into()));
    assert_eq!(frames[2]["fields"]["sequence_id"], "18446744073709551615");
    assert_eq!(frames[2]["payload"], "m-0");
    let index = json(&page, "stc-data");
    let failing = &index["scenarios"][2]["runs"][0];
    assert_eq!((&failing["failure"]["record"], &failing["wire"]), (&3.into(), &3.into()));
    // Others kept none.
    assert_eq!(content(&page, "w-0-0"), None);
}

#[test]
fn runs_stand_side_by_side_whatever_each_of_them_knows() {
    let first = sample::full();
    let mut second = sample::full();
    second.client.version = "0.2.0".to_owned();
    let extra = ScenarioResult { verdict: Verdict::Pass, ..sample::scenario("C1-extra", Verdict::Pass) };
    second.scenarios.retain(|s| s.id != "C1-moon");
    second.scenarios.push(extra);
    second.requirements.push(sample::requirement(&second, "NEW-1.1", "C1", &["C1-extra"], None));
    let page = page(&[&first, &second]);
    assert!(page.contains("Comparison of 2 runs"));
    let index = json(&page, "stc-data");
    let scenarios = index["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), first.scenarios.len() + 1);
    let find = |id: &str| scenarios.iter().find(|s| s["id"] == id).unwrap();
    assert!(find("C1-extra")["runs"][0].is_null() && find("C1-extra")["runs"][1]["verdict"] == "pass");
    assert!(find("C1-moon")["runs"][1].is_null());
    assert!(page.contains("id=\"NEW-1.1\" data-level=\"MUST\" data-status=\"absent|proven\""));
    assert!(page.contains("data-status=\"broken|broken\""));
    assert!(content(&page, "w-1-2").is_some());
}

#[test]
fn thousands_of_frames_are_data_until_somebody_looks() {
    let mut report = sample::full();
    let failing = report.scenarios.iter_mut().find(|s| s.verdict == Verdict::Fail).unwrap();
    let frame = failing.transcript[2].clone();
    failing.transcript = (1..=5_000).map(|n| stc_reports::WireRecord { n, ..frame.clone() }).collect();
    let page = page(&[&report]);
    let (visible, _) = page.split_once("<script id=\"stc-data\"").unwrap();
    assert!(visible.len() < 100_000, "{} bytes before the data", visible.len());
}
