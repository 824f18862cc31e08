//! `namespace-hash`: the hash of a set of topics that a namespace watch sends when it reconnects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Document, GenerateError, SEED, corpus::Random, document::About};

/// The hash of one set of topics.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The topics, in any order.
    pub topics: Vec<String>,
    /// CRC32C of the sorted names with a comma between two, as a number.
    pub crc32c: u32,
    /// The same as text: the four bytes from the lowest to the highest, in lower-case hex.
    pub current_hash: String,
    /// Where the real broker and client of Pulsar 5.0.1 used this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
}

/// The names in the order in which they are hashed: that of their UTF-16 code units, as Java sorts strings.
fn sorted(topics: &[String]) -> Vec<&str> {
    let mut sorted: Vec<&str> = topics.iter().map(String::as_str).collect();
    sorted.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    sorted
}

fn case(topics: Vec<String>, recorded: Option<&str>) -> Case {
    let crc32c = crc32c::crc32c(sorted(&topics).join(",").as_bytes());
    let current_hash = stc_proto::fields::hex(&crc32c.to_le_bytes());
    Case { topics, crc32c, current_hash, recorded: recorded.map(str::to_owned) }
}

fn topics(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("topic://public/default/{name}")).collect()
}

pub(crate) fn document() -> Result<Document, GenerateError> {
    let about = About {
        name: "namespace-hash",
        title: "Hashes of a namespace's topics",
        description: "What a client sends as current_hash when it opens a namespace watch again: CRC32C over the full \
                      names, sorted by their UTF-16 code units and joined by commas without spaces, written in hex \
                      with the lowest byte first. The hash of no topics is 00000000.",
        specification: "wire-protocol §7",
        seed: Some(SEED),
    };
    let recorded = |names: &[&str]| names.iter().map(|n| format!("topic://public/ns5jhr/{n}")).collect();
    let mut cases = vec![
        case(recorded(&["g2", "g3"]), Some("g_namespace, frame 241")),
        case(recorded(&["g3"]), Some("g_namespace, frame 239")),
        case(Vec::new(), None),
    ];
    for names in [
        &["a"][..],
        &["a", "b"],
        &["b", "a"],
        &["a", "b", "c"],
        &["c", "a", "b"],
        &["a,b"],
        &["A", "a", "B", "b"],
        &["a", "a-1", "a1", "a/1", "aa"],
        &["orders-10", "orders-2", "orders-1"],
        &["", "a"],
        &["ключ", "钥匙", "key"],
        &["caf\u{e9}", "cafe\u{301}"],
        &["\u{200b}a", "a"],
        // Sorted by code point or by byte, these two come the other way round.
        &["\u{1f511}", "\u{ffff}"],
        &["\u{e000}", "\u{10000}", "\u{d7ff}"],
        &["x\u{1f600}", "x\u{fb01}", "x\u{e9}", "xz"],
    ] {
        cases.push(case(topics(names), None));
    }
    let mut random = Random::new(SEED);
    for count in [2, 5, 10, 100] {
        let names: Vec<String> = (0..count).map(|_| format!("orders-{}", random.below(100_000))).collect();
        cases.push(case(topics(&names.iter().map(String::as_str).collect::<Vec<_>>()), None));
    }
    Document::new(&about, &cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_hashes_come_out() {
        let hash = |names: &[&str]| {
            let names = names.iter().map(|n| format!("topic://public/ns5jhr/{n}")).collect();
            case(names, None).current_hash
        };
        assert_eq!(hash(&["g3", "g2"]), "9e6e5c50");
        assert_eq!(hash(&["g3"]), "36f5910d");
    }
}
