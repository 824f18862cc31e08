//! `hashing`: the raw hash of a key and its halves. `legacy-routing`: the choice among N legacy segments.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::{KeyHash, fields};

use crate::{
    Document, GenerateError, SEED,
    corpus::{Corpus, Kind},
    document::About,
};

/// The hash of one key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What makes the key worth testing.
    pub kind: Kind,
    /// The key.
    pub key: String,
    /// The key's UTF-8 bytes in lower-case hex.
    pub utf8: String,
    /// Murmur3, 32 bits, seed 0, of those bytes, as an unsigned number.
    pub raw: u32,
    /// The high 16 bits: the key's place on the segment ring.
    pub segment_hash: u16,
    /// The low 16 bits: the key's entry-bucket hash.
    pub bucket_hash: u16,
}

/// The choices of one key among legacy segments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LegacyCase {
    /// The key.
    pub key: String,
    /// The raw hash.
    pub raw: u32,
    /// The raw hash without its top bit.
    pub masked: u32,
    /// For a number N of legacy segments (in decimal) the chosen one, counted from 0 in the order of segment ids.
    pub choices: BTreeMap<u32, u32>,
}

/// All N up to 32, and others around powers of two, primes and round numbers.
fn moduli() -> impl Iterator<Item = u32> {
    (1..=32).chain([33, 48, 50, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 1000, 1024, 10_007, 65_536])
}

pub(crate) fn document(keys: &Corpus) -> Result<Document, GenerateError> {
    let about = About {
        name: "hashing",
        title: "Key hashes",
        description: "One key a case: Murmur3_32 with seed 0 over the key's UTF-8 bytes, and its two halves. The high \
                      half routes to a segment, the low half to an entry bucket.",
        specification: "client-behavior §2, wire-protocol §5, key-shared §2",
        seed: Some(SEED),
    };
    let cases: Vec<Case> = keys
        .iter()
        .map(|(kind, key)| {
            let hash = KeyHash::of(key);
            Case {
                kind,
                key: key.to_owned(),
                utf8: fields::hex(key.as_bytes()),
                raw: hash.0,
                segment_hash: hash.segment(),
                bucket_hash: hash.bucket(),
            }
        })
        .collect();
    Document::new(&about, &cases)
}

pub(crate) fn legacy_document(keys: &Corpus) -> Result<Document, GenerateError> {
    let about = About {
        name: "legacy-routing",
        title: "Keys on layouts of legacy segments only",
        description: "One key a case: the hash masked to 31 bits, modulo the number N of legacy segments, for many N. \
                      It is the routing of classic partitioned topics.",
        specification: "client-behavior §2, wire-protocol §5, compatibility §1",
        seed: Some(SEED),
    };
    let cases: Vec<LegacyCase> = keys
        .sample(0, 7, 64)
        .map(|key| {
            let hash = KeyHash::of(key);
            LegacyCase {
                key: key.to_owned(),
                raw: hash.0,
                masked: hash.0 & 0x7FFF_FFFF,
                choices: moduli().map(|n| (n, hash.legacy(n))).collect(),
            }
        })
        .collect();
    Document::new(&about, &cases)
}
