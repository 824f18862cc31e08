//! `topic-names` and `segment-names`: what is a name, what its parts are, and what is none.
//!
//! The answers are written down here; the generator refuses to write a case on which `stc-proto` disagrees.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::{HashRange, SegmentName, TopicName, name::Domain};

use crate::{Document, GenerateError, document::About};

/// A text that may be a topic's name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopicCase {
    /// The text.
    pub input: String,
    /// The name's parts; absent when it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Parts>,
    /// Why it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
}

/// The parts of a topic's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// The name in full.
    pub canonical: String,
    /// `topic`, `persistent` or `non-persistent`.
    pub domain: String,
    /// The tenant.
    pub tenant: String,
    /// The namespace without its tenant.
    pub namespace: String,
    /// What follows the namespace.
    pub local: String,
}

/// A segment, its name, or a text that may be one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SegmentCase {
    /// A segment and its one name.
    Build {
        /// The segment.
        segment: SegmentParts,
        /// Its name.
        name: String,
    },
    /// A text and the segment that it names.
    Parse {
        /// The text.
        input: String,
        /// The segment; absent when it names none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        segment: Option<SegmentParts>,
        /// Whether the text is another spelling of the segment's one name. Pulsar accepts it; a client may refuse it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lenient: bool,
        /// Why it names none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<Refusal>,
    },
}

/// What a segment's name says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SegmentParts {
    /// The scalable topic.
    pub topic: String,
    /// First hash of the inclusive range.
    pub hash_start: u16,
    /// Last hash of the inclusive range.
    pub hash_end: u16,
    /// The id: at most 2^63-1.
    pub segment_id: u64,
}

/// Why a text is no name. The first of these that applies, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// There is nothing, or white space only.
    Empty,
    /// In front of `://` stands another domain than the ones expected.
    Domain,
    /// Tenant, namespace and local name are not all there, or a short name has two or more than three parts.
    Parts,
    /// The tenant is empty or has a character other than ASCII letters, digits and `-=:._`.
    Tenant,
    /// The same for the namespace.
    Namespace,
    /// The local name is empty or white space only, or a classic one has a slash.
    Local,
    /// The end is not `/<start>-<end>-<id>`, or there is no topic in front of it.
    Descriptor,
    /// A hash is no hexadecimal number or has more than 16 bits.
    Hash,
    /// The range ends before it starts.
    Range,
    /// The id is no decimal number or has more than 63 bits.
    Id,
}

/// input, canonical form or "" for the same text, domain, tenant, namespace, local name
type Good = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

const TOPICS: &[Good] = &[
    ("topic://public/default/orders", "", "topic", "public", "default", "orders"),
    ("topic://t/n/o", "", "topic", "t", "n", "o"),
    ("topic://t-1/n=2:3._/o", "", "topic", "t-1", "n=2:3._", "o"),
    ("topic://public/default/a-b_c.d=e:f", "", "topic", "public", "default", "a-b_c.d=e:f"),
    ("topic://public/default/orders-partition-3", "", "topic", "public", "default", "orders-partition-3"),
    ("topic://public/default/with/slash", "", "topic", "public", "default", "with/slash"),
    ("topic://public/default/orders/", "", "topic", "public", "default", "orders/"),
    ("topic://public/default/with space", "", "topic", "public", "default", "with space"),
    ("topic://public/default/%2F", "", "topic", "public", "default", "%2F"),
    ("topic://public/default/ключ", "", "topic", "public", "default", "ключ"),
    ("topic://public/default/caf\u{e9}", "", "topic", "public", "default", "caf\u{e9}"),
    ("topic://public/default/cafe\u{301}", "", "topic", "public", "default", "cafe\u{301}"),
    ("topic://public/default/🔑", "", "topic", "public", "default", "🔑"),
    ("topic://public/default/مفتاح", "", "topic", "public", "default", "مفتاح"),
    ("topic://public/default/a\u{200b}b", "", "topic", "public", "default", "a\u{200b}b"),
    ("topic://public/default/topic://x", "", "topic", "public", "default", "topic://x"),
    ("topic://public/default/0000-ffff-0", "", "topic", "public", "default", "0000-ffff-0"),
    ("persistent://public/default/orders", "", "persistent", "public", "default", "orders"),
    (
        "persistent://public/default/orders-partition-0",
        "",
        "persistent",
        "public",
        "default",
        "orders-partition-0",
    ),
    ("non-persistent://public/default/orders", "", "non-persistent", "public", "default", "orders"),
    ("orders", "persistent://public/default/orders", "persistent", "public", "default", "orders"),
    ("a:b", "persistent://public/default/a:b", "persistent", "public", "default", "a:b"),
    (
        "my-tenant/my-ns/orders",
        "persistent://my-tenant/my-ns/orders",
        "persistent",
        "my-tenant",
        "my-ns",
        "orders",
    ),
];

const BAD_TOPICS: &[(&str, Refusal)] = &[
    ("", Refusal::Empty),
    (" ", Refusal::Empty),
    ("http://public/default/orders", Refusal::Domain),
    ("topics://public/default/orders", Refusal::Domain),
    ("://public/default/orders", Refusal::Domain),
    (" topic://public/default/orders", Refusal::Domain),
    ("non_persistent://public/default/orders", Refusal::Domain),
    ("topic://", Refusal::Parts),
    ("topic://public", Refusal::Parts),
    ("topic://public/default", Refusal::Parts),
    ("persistent://public/default", Refusal::Parts),
    ("default/orders", Refusal::Parts),
    ("a/b/c/d", Refusal::Parts),
    ("topic:///default/orders", Refusal::Tenant),
    ("topic://pub lic/default/orders", Refusal::Tenant),
    ("topic://пуб/default/orders", Refusal::Tenant),
    ("topic://pub%6Cic/default/orders", Refusal::Tenant),
    ("topic://public//orders", Refusal::Namespace),
    ("topic://public/def ault/orders", Refusal::Namespace),
    ("topic://public/default\u{200b}/orders", Refusal::Namespace),
    ("topic://public/default/", Refusal::Local),
    ("topic://public/default/ ", Refusal::Local),
    ("persistent://public/default/with/slash", Refusal::Local),
    ("persistent://public/cluster/default/orders", Refusal::Local),
];

/// topic, range, id, name
const SEGMENTS: &[(&str, u16, u16, u64, &str)] = &[
    ("topic://public/default/orders", 0, 65_535, 0, "segment://public/default/orders/0000-ffff-0"),
    ("topic://public/default/orders", 0, 32_767, 1, "segment://public/default/orders/0000-7fff-1"),
    ("topic://public/default/orders", 32_768, 65_535, 2, "segment://public/default/orders/8000-ffff-2"),
    ("topic://public/default/orders", 21_845, 43_689, 10, "segment://public/default/orders/5555-aaa9-10"),
    (
        "topic://public/default/orders",
        10,
        10,
        4_294_967_296,
        "segment://public/default/orders/000a-000a-4294967296",
    ),
    ("topic://public/default/orders", 0, 0, 17, "segment://public/default/orders/0000-0000-17"),
    ("topic://public/default/orders", 65_535, 65_535, 18, "segment://public/default/orders/ffff-ffff-18"),
    (
        "topic://t/n/a-b-c",
        16_384,
        32_767,
        i64::MAX as u64,
        "segment://t/n/a-b-c/4000-7fff-9223372036854775807",
    ),
    ("topic://t/n/orders-partition-3", 0, 65_535, 7, "segment://t/n/orders-partition-3/0000-ffff-7"),
    ("topic://t/n/with/slash", 0, 65_535, 0, "segment://t/n/with/slash/0000-ffff-0"),
    ("topic://t/n/0000-ffff-0", 0, 65_535, 0, "segment://t/n/0000-ffff-0/0000-ffff-0"),
    ("topic://t/n/ключ 🔑", 255, 4_095, 12, "segment://t/n/ключ 🔑/00ff-0fff-12"),
    ("topic://t/n/caf\u{e9}", 0, 65_535, 0, "segment://t/n/caf\u{e9}/0000-ffff-0"),
    ("topic://t/n/cafe\u{301}", 0, 65_535, 0, "segment://t/n/cafe\u{301}/0000-ffff-0"),
];

/// Other spellings: text, range, id. All are segments of `topic://public/default/orders`.
const LENIENT: &[(&str, u16, u16, u64)] = &[
    ("segment://public/default/orders/0-ffff-1", 0, 65_535, 1),
    ("segment://public/default/orders/00000-0ffff-1", 0, 65_535, 1),
    ("segment://public/default/orders/0000-FFFF-1", 0, 65_535, 1),
    ("segment://public/default/orders/0000-ffff-01", 0, 65_535, 1),
    ("segment://public/default/orders/0000-ffff-+1", 0, 65_535, 1),
    ("segment://public/default/orders/+000-ffff-1", 0, 65_535, 1),
];

const BAD_SEGMENTS: &[(&str, Refusal)] = &[
    ("topic://public/default/orders/0000-ffff-0", Refusal::Domain),
    ("persistent://public/default/orders", Refusal::Domain),
    ("public/default/orders", Refusal::Domain),
    ("", Refusal::Empty),
    ("segment://", Refusal::Parts),
    ("segment://public/default", Refusal::Parts),
    ("segment:///default/orders/0000-ffff-0", Refusal::Tenant),
    ("segment://public/def ault/orders/0000-ffff-0", Refusal::Namespace),
    ("segment://public/default/", Refusal::Local),
    ("segment://public/default/orders", Refusal::Descriptor),
    ("segment://public/default/orders/", Refusal::Descriptor),
    ("segment://public/default/0000-ffff-0", Refusal::Descriptor),
    ("segment://public/default//0000-ffff-0", Refusal::Descriptor),
    ("segment://public/default/orders/0000-ffff", Refusal::Descriptor),
    ("segment://public/default/orders/0000", Refusal::Descriptor),
    ("segment://public/default/orders/0000-fffg-1", Refusal::Hash),
    ("segment://public/default/orders/0000-10000-1", Refusal::Hash),
    ("segment://public/default/orders/-ffff-1", Refusal::Hash),
    ("segment://public/default/orders/0x00-ffff-1", Refusal::Hash),
    ("segment://public/default/orders/ 000-ffff-1", Refusal::Hash),
    ("segment://public/default/orders/ffff-0000-1", Refusal::Range),
    ("segment://public/default/orders/8000-7fff-1", Refusal::Range),
    ("segment://public/default/orders/0000-ffff-", Refusal::Id),
    ("segment://public/default/orders/0000-ffff-x", Refusal::Id),
    ("segment://public/default/orders/0000-ffff--1", Refusal::Id),
    ("segment://public/default/orders/0000-ffff-1-2", Refusal::Id),
    ("segment://public/default/orders/0000-ffff-1.0", Refusal::Id),
    ("segment://public/default/orders/0000-ffff-9223372036854775808", Refusal::Id),
    ("segment://public/default/orders/0000-7fff-18446744073709551615", Refusal::Id),
];

pub(crate) fn topics() -> Result<Document, GenerateError> {
    let about = About {
        name: "topic-names",
        title: "Topic names",
        description: "Texts as an application writes them and the parts that they have. A scalable topic is \
                      topic://TENANT/NAMESPACE/NAME, where NAME may have slashes; names without a domain are classic \
                      topics. Names are compared as they are: no case folding, no Unicode normalisation, no percent \
                      decoding.",
        specification: "data-model §1, compatibility §1",
        seed: None,
    };
    let differs =
        |input: &str| GenerateError::new("topic-names", format!("stc-proto disagrees on {input:?}"));
    let mut cases = Vec::new();
    for &(input, canonical, domain, tenant, namespace, local) in TOPICS {
        let canonical = if canonical.is_empty() { input } else { canonical };
        let [canonical, domain, tenant, namespace, local] =
            [canonical, domain, tenant, namespace, local].map(str::to_owned);
        let parts = Parts { canonical, domain, tenant, namespace, local };
        if parts_of(input).as_ref() != Some(&parts) {
            return Err(differs(input));
        }
        cases.push(TopicCase { input: input.to_owned(), name: Some(parts), refused: None });
    }
    for (input, refusal) in BAD_TOPICS {
        if parts_of(input).is_some() {
            return Err(differs(input));
        }
        cases.push(TopicCase { input: (*input).to_owned(), name: None, refused: Some(*refusal) });
    }
    Document::new(&about, &cases)
}

fn parts_of(input: &str) -> Option<Parts> {
    let name = TopicName::parse(input).ok().filter(|name| name.domain() != Domain::Segment)?;
    Some(Parts {
        canonical: name.to_string(),
        domain: name.domain().as_str().to_owned(),
        tenant: name.tenant().to_owned(),
        namespace: name.namespace_local().to_owned(),
        local: name.local().to_owned(),
    })
}

pub(crate) fn segments() -> Result<Document, GenerateError> {
    let about = About {
        name: "segment-names",
        title: "Segment names",
        description: "segment://TENANT/NAMESPACE/NAME/START-END-ID: the inclusive range as four lower-case hex digits \
                      each, the id in decimal. What stands behind the last slash is the descriptor; the topic's own \
                      name may have slashes. Parsing splits the descriptor at its first two hyphens.",
        specification: "wire-protocol §3, terminology",
        seed: None,
    };
    let differs =
        |input: &str| GenerateError::new("segment-names", format!("stc-proto disagrees on {input:?}"));
    let parts = |topic: &str, hash_start, hash_end, segment_id| SegmentParts {
        topic: topic.to_owned(),
        hash_start,
        hash_end,
        segment_id,
    };
    let parse = |input: &str, segment, lenient, refused| SegmentCase::Parse {
        input: input.to_owned(),
        segment,
        lenient,
        refused,
    };
    let mut cases = Vec::new();
    for &(topic, start, end, id, name) in SEGMENTS {
        let segment = parts(topic, start, end, id);
        if build(&segment).as_deref() != Some(name) || segment_of(name).as_ref() != Some(&segment) {
            return Err(differs(name));
        }
        cases.push(SegmentCase::Build { segment: segment.clone(), name: name.to_owned() });
        cases.push(parse(name, Some(segment), false, None));
    }
    for &(input, start, end, id) in LENIENT {
        let segment = parts("topic://public/default/orders", start, end, id);
        if segment_of(input).as_ref() != Some(&segment) {
            return Err(differs(input));
        }
        cases.push(parse(input, Some(segment), true, None));
    }
    for (input, refusal) in BAD_SEGMENTS {
        if segment_of(input).is_some() {
            return Err(differs(input));
        }
        cases.push(parse(input, None, false, Some(*refusal)));
    }
    Document::new(&about, &cases)
}

fn build(segment: &SegmentParts) -> Option<String> {
    let topic = TopicName::parse(&segment.topic).ok()?;
    let range = HashRange::new(segment.hash_start, segment.hash_end)?;
    Some(SegmentName::new(topic, range, segment.segment_id).ok()?.to_string())
}

fn segment_of(input: &str) -> Option<SegmentParts> {
    let name = SegmentName::parse(input).ok()?;
    Some(SegmentParts {
        topic: name.topic.to_string(),
        hash_start: name.range.start(),
        hash_end: name.range.end(),
        segment_id: name.id,
    })
}
