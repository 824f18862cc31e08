//! What the script of the page reads: the scenarios of all runs, and each wire exchange in an element of its own, so
//! that it is parsed only when somebody looks at it.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{letter, verdict_look};
use crate::model::{Report, ScenarioResult, StepStatus};
use crate::summary;
use crate::text::{cut, visible};
use crate::wire::WireRecord;

/// Characters of a record's line in a diagram; its fields are all there on demand.
const LABEL_WIDTH: usize = 160;

/// Integers above this lose digits in a script.
const EXACT: u64 = 1 << 53;

/// The JSON of a page, ready to stand in a `script` element.
pub(super) struct Data {
    /// Runs and scenarios.
    pub(super) index: String,
    /// The exchanges: id of the element, and its text.
    pub(super) exchanges: Vec<(String, String)>,
}

/// A scenario and its result in each run that has one.
pub(super) struct Merged<'a> {
    pub(super) results: Vec<Option<&'a ScenarioResult>>,
}

impl<'a> Merged<'a> {
    /// The result that names and places are taken from.
    pub(super) fn any(&self) -> Option<&'a ScenarioResult> {
        self.results.iter().flatten().next().copied()
    }
}

/// The scenarios of all runs, those of the first in its order, then what others add.
pub(super) fn scenarios<'a>(reports: &[&'a Report]) -> Vec<Merged<'a>> {
    let mut merged: Vec<Merged<'a>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (run, report) in reports.iter().enumerate() {
        for result in &report.scenarios {
            let place = *places.entry(result.id.as_str()).or_insert_with(|| {
                merged.push(Merged { results: vec![None; reports.len()] });
                merged.len() - 1
            });
            if let Some(slot) = merged.get_mut(place).and_then(|m| m.results.get_mut(run)) {
                *slot = Some(result);
            }
        }
    }
    merged
}

#[derive(Serialize)]
struct Index<'a> {
    runs: Vec<Run>,
    scenarios: Vec<Scenario<'a>>,
}

#[derive(Serialize)]
struct Run {
    letter: String,
    label: String,
}

#[derive(Serialize)]
struct Scenario<'a> {
    id: String,
    name: String,
    place: String,
    checklist: Vec<String>,
    requirements: Vec<String>,
    tags: &'a [String],
    runs: Vec<Option<Outcome>>,
}

#[derive(Serialize)]
struct Outcome {
    verdict: &'static str,
    look: &'static str,
    sign: &'static str,
    headline: String,
    reason: Option<String>,
    ms: u64,
    steps: Vec<Step>,
    failure: Option<Failure>,
    stderr: Vec<String>,
    replay: String,
    wire: usize,
}

#[derive(Serialize)]
struct Step {
    text: String,
    line: usize,
    status: StepStatus,
    wire: Option<u64>,
}

#[derive(Serialize)]
struct Failure {
    step: String,
    message: String,
    requirement: Option<String>,
    place: String,
    record: Option<u64>,
}

/// A record as the diagram shows it.
#[derive(Serialize)]
struct Frame<'a> {
    n: u64,
    t: u64,
    kind: &'static str,
    name: String,
    from: String,
    to: String,
    broker: Option<u32>,
    conn: Option<u64>,
    label: String,
    fields: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
}

pub(super) fn render(reports: &[&Report], scenarios: &[Merged<'_>]) -> Result<Data, serde_json::Error> {
    let mut exchanges = Vec::new();
    let mut listed = Vec::with_capacity(scenarios.len());
    for (place, merged) in scenarios.iter().enumerate() {
        let Some(any) = merged.any() else { continue };
        for (run, result) in merged.results.iter().enumerate() {
            if let Some(result) = result.filter(|r| !r.transcript.is_empty()) {
                exchanges.push((format!("w-{run}-{place}"), exchange(&result.transcript)?));
            }
        }
        let outcome = |(result, report): (&Option<&ScenarioResult>, &&Report)| {
            result.map(|result| outcome(report, result))
        };
        listed.push(Scenario {
            id: shown(&any.id),
            name: shown(&any.name),
            place: shown(&format!("{}:{}", any.feature, any.line)),
            checklist: any.checklist.iter().map(|c| shown(c)).collect(),
            requirements: any.requirements.iter().map(|r| shown(r)).collect(),
            tags: &any.tags,
            runs: merged.results.iter().zip(reports).map(outcome).collect(),
        });
    }
    let label = |r: &Report| shown(&format!("{} {}", r.client.name, r.client.version));
    let runs = reports.iter().enumerate().map(|(n, r)| Run { letter: letter(n), label: label(r) }).collect();
    Ok(Data { index: embeddable(&Index { runs, scenarios: listed })?, exchanges })
}

fn outcome(report: &Report, result: &ScenarioResult) -> Outcome {
    let (look, sign) = verdict_look(result.verdict, report.counts_against(result));
    Outcome {
        verdict: result.verdict.as_str(),
        look,
        sign,
        headline: shown(&summary::headline(report, result)),
        reason: result.reason.as_deref().map(shown),
        ms: result.duration_ms,
        steps: result
            .steps
            .iter()
            .map(|s| Step {
                text: shown(&format!("{} {}", s.keyword, s.text)),
                line: s.line,
                status: s.status,
                wire: s.wire,
            })
            .collect(),
        failure: result.failure.as_ref().map(|f| Failure {
            step: shown(&f.step),
            message: shown(&f.message),
            requirement: f.requirement.as_deref().map(shown),
            place: shown(&f.location),
            record: f.record,
        }),
        stderr: result.stderr_tail.iter().map(|l| shown(l)).collect(),
        replay: shown(&result.replay),
        wire: result.transcript.len(),
    }
}

/// One frame a line, so that the page can be read and compared as text too.
pub(super) fn exchange(records: &[WireRecord]) -> Result<String, serde_json::Error> {
    let mut lines = Vec::with_capacity(records.len());
    for record in records {
        let text = record.entry.as_ref().and_then(payload_text);
        lines.push(embeddable(&Frame {
            n: record.n,
            t: record.t_ms,
            kind: record.kind.as_str(),
            name: shown(&record.name),
            from: shown(&record.from),
            to: shown(&record.to),
            broker: record.broker,
            conn: record.conn,
            label: label(record),
            fields: exact(&Json::Object(record.fields.clone())),
            entry: record.entry.clone().map(|e| exact(&Json::Object(e))),
            payload: text.as_deref(),
        })?);
    }
    Ok(format!("[{}]", lines.join(",\n")))
}

/// What the row of a record says beside its name. A note that is nothing but text needs no name for it, and the
/// namespace that nearly all topics are in would fill the row.
fn label(record: &WireRecord) -> String {
    let facts = match record.fields.get("text").and_then(Json::as_str) {
        Some(text) if record.fields.len() == 1 && record.entry.is_none() => shown(text),
        _ => shown(&record.facts()),
    };
    cut(&facts.trim_start().replace("://public/default/", "://…/"), LABEL_WIDTH).into_owned()
}

/// A payload as text, where it is text.
fn payload_text(entry: &Map<String, Json>) -> Option<String> {
    let hex = entry.get("payload_hex")?.as_str()?;
    let digits: Vec<u8> =
        hex.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks_exact(2).map(|pair| pair.iter().fold(0_u8, |byte, digit| byte << 4 | digit)).collect();
    let text = String::from_utf8(bytes).ok().filter(|t| !t.is_empty())?;
    (!text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'))).then(|| shown(&text))
}

/// The value as a script can show it: hostile characters visible, large integers as text with all their digits.
fn exact(value: &Json) -> Json {
    match value {
        Json::Number(n) if n.as_u64().is_some_and(|n| n > EXACT) => n.to_string().into(),
        Json::Number(n) if n.as_i64().is_some_and(|n| n.unsigned_abs() > EXACT) => n.to_string().into(),
        Json::String(text) => shown(text).into(),
        Json::Array(items) => items.iter().map(exact).collect(),
        Json::Object(fields) => Json::Object(fields.iter().map(|(k, v)| (shown(k), exact(v))).collect()),
        other => other.clone(),
    }
}

fn shown(text: &str) -> String {
    visible(text).into_owned()
}

/// JSON that cannot end the element that it stands in, nor open a comment there. The three characters occur in strings
/// only, where an escape says the same.
fn embeddable(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    Ok(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_keep_all_their_digits() {
        let value = json!({ "a": [u64::MAX, 1], "b": i64::MIN, "c": 1.5 });
        let expected = json!({ "a": ["18446744073709551615", 1], "b": "-9223372036854775808", "c": 1.5 });
        assert_eq!(exact(&value), expected);
    }

    #[test]
    fn a_payload_is_text_only_where_it_is() {
        let payload = |hex: &str| payload_text(json!({ "payload_hex": hex }).as_object().unwrap());
        assert_eq!(payload("6d2d30").as_deref(), Some("m-0"));
        assert_eq!(payload("ff00"), None);
        assert_eq!(payload("00"), None);
        assert_eq!(payload(""), None);
        assert_eq!(payload("zz"), None);
    }

    #[test]
    fn json_cannot_end_its_element() {
        let text = embeddable(&"</script><!--<script>&").unwrap();
        assert!(!text.contains(['<', '>', '&']), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "</script><!--<script>&");
    }
}
