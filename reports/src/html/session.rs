//! A page of what was only recorded: sessions of a client with brokers, each as a sequence diagram, without verdicts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{SESSION_SCRIPT, SESSION_SCRIPT_HASH, data, page};
use crate::text::{plural, seconds, visible};
use crate::wire::{WireKind, WireRecord};

/// What was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// What the page calls it, such as the name of its file.
    pub name: &'a str,
    /// The records, in order.
    pub records: &'a [WireRecord],
}

/// What the script expects beside the exchanges: runs and their scenarios.
const NOTHING_JUDGED: &str = r#"{"runs":[],"scenarios":[]}"#;

/// Renders the sessions, one after the other.
///
/// # Errors
/// Never for records of this crate: nothing in them has a map key or a number that JSON lacks.
pub fn sessions(sessions: &[Session<'_>]) -> Result<String, serde_json::Error> {
    let mut texts = Vec::with_capacity(sessions.len());
    for session in sessions {
        texts.push(data::exchange(session.records)?);
    }
    Ok(frame(sessions, &texts).into_string())
}

fn frame(sessions: &[Session<'_>], texts: &[String]) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (page::head("Recorded exchange", SESSION_SCRIPT_HASH))
            body data-runs="1" {
                header.top {
                    p.kicker { "Recorded exchange · nothing was judged" }
                }
                main {
                    @for (place, session) in sessions.iter().enumerate() {
                        section.session data-s=(place) {
                            h2 { (visible(session.name)) }
                            p.sub { (facts(session.records)) }
                        }
                    }
                    noscript { p.note { "Scripts are off: the exchanges are not drawn." } }
                }
                script #stc-data type="application/json" { (PreEscaped(NOTHING_JUDGED)) }
                @for (place, text) in texts.iter().enumerate() {
                    script id={ "w-0-" (place) } type="application/json" { (PreEscaped(text)) }
                }
                script { (PreEscaped(SESSION_SCRIPT)) }
            }
        }
    }
}

/// How much there is, and how long it took.
fn facts(records: &[WireRecord]) -> String {
    let connections: std::collections::BTreeSet<u64> = records.iter().filter_map(|r| r.conn).collect();
    let frames = records.iter().filter(|r| r.kind == WireKind::Frame).count();
    let took = records.last().map_or(0, |r| r.t_ms).saturating_sub(records.first().map_or(0, |r| r.t_ms));
    format!(
        "{}, {} over {}, {}",
        plural(records.len(), "record"),
        plural(frames, "frame"),
        plural(connections.len(), "connection"),
        seconds(took)
    )
}
