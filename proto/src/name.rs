//! Topic names and segment names (data-model §1, wire-protocol §3, compatibility §1).
//!
//! What is a name, and what its canonical form is, follows Pulsar's own classes (`tests/vectors.rs`).

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::layout::HashRange;

/// The scheme of a topic name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Domain {
    /// `persistent://`: a classic topic.
    Persistent,
    /// `non-persistent://`: a classic topic that stores nothing.
    NonPersistent,
    /// `topic://`: a scalable topic.
    Topic,
    /// `segment://`: one segment of a scalable topic.
    Segment,
}

impl Domain {
    /// The scheme without `://`.
    pub fn as_str(self) -> &'static str {
        match self {
            Domain::Persistent => "persistent",
            Domain::NonPersistent => "non-persistent",
            Domain::Topic => "topic",
            Domain::Segment => "segment",
        }
    }

    /// Pulsar takes a scheme in any case.
    fn parse(scheme: &str) -> Option<Self> {
        [Domain::Persistent, Domain::NonPersistent, Domain::Topic, Domain::Segment]
            .into_iter()
            .find(|d| d.as_str().eq_ignore_ascii_case(scheme))
    }

    fn is_classic(self) -> bool {
        matches!(self, Domain::Persistent | Domain::NonPersistent)
    }
}

/// Why a text is not a topic name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid topic name {name:?}: {reason}")]
pub struct NameError {
    /// The text as given.
    pub name: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// A topic name in canonical form: `<domain>://<tenant>/<namespace>/<local name>`.
///
/// The text is the identity of a topic. As in Pulsar, a scheme in upper case stays as it was written, so that name
/// is another topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicName {
    domain: Domain,
    /// Canonical text; the parts are slices of it.
    text: String,
    tenant_end: usize,
    namespace_end: usize,
}

const PARTITION: &str = "-partition-";

impl TopicName {
    /// Puts a name together from its parts. In the `segment://` domain the local name has to end in a segment's
    /// descriptor, which is brought to its one canonical spelling.
    pub fn new(domain: Domain, tenant: &str, namespace: &str, local: &str) -> Result<Self, NameError> {
        TopicName::with_scheme(domain.as_str(), domain, tenant, namespace, local)
    }

    fn with_scheme(
        scheme: &str,
        domain: Domain,
        tenant: &str,
        namespace: &str,
        local: &str,
    ) -> Result<Self, NameError> {
        let mut text = format!("{scheme}://{tenant}/{namespace}/{local}");
        let error = |reason| NameError { name: text.clone(), reason };
        if !is_named_entity(tenant) {
            return Err(error("the tenant has a character other than letters, digits and -=:._"));
        }
        if !is_named_entity(namespace) {
            return Err(error("the namespace has a character other than letters, digits and -=:._"));
        }
        if local.trim().is_empty() {
            return Err(error("the local name is empty"));
        }
        if domain.is_classic() && local.contains('/') {
            return Err(error("a classic topic name has no cluster and no slash in its local name"));
        }
        if domain == Domain::Segment {
            let (topic, range, id) = parse_segment(local).map_err(error)?;
            text = format!("{scheme}://{tenant}/{namespace}/{topic}/{}", descriptor(range, id));
        }
        let tenant_end = domain.as_str().len() + 3 + tenant.len();
        let namespace_end = tenant_end + 1 + namespace.len();
        Ok(TopicName { domain, text, tenant_end, namespace_end })
    }

    /// Parses a full name, or one of the short forms `name` and `tenant/namespace/name`, which mean classic
    /// (`persistent://`) topics.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let error = |reason| NameError { name: name.to_owned(), reason };
        if name.trim().is_empty() {
            return Err(error("it is empty"));
        }
        let (scheme, domain, rest) = match name.split_once("://") {
            Some((scheme, rest)) => (
                scheme,
                Domain::parse(scheme)
                    .ok_or_else(|| error("the domain is not topic, segment, persistent or non-persistent"))?,
                rest,
            ),
            None => match name.split('/').count() {
                1 => return TopicName::new(Domain::Persistent, "public", "default", name),
                3 => (Domain::Persistent.as_str(), Domain::Persistent, name),
                _ => return Err(error("a short name is either NAME or TENANT/NAMESPACE/NAME")),
            },
        };
        let mut parts = rest.splitn(3, '/');
        let (Some(tenant), Some(namespace), Some(local)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(error("a full name is DOMAIN://TENANT/NAMESPACE/NAME"));
        };
        TopicName::with_scheme(scheme, domain, tenant, namespace, local)
            .map_err(|NameError { reason, .. }| error(reason))
    }

    /// The scheme.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The tenant.
    pub fn tenant(&self) -> &str {
        self.text.get(self.domain.as_str().len() + 3..self.tenant_end).unwrap_or_default()
    }

    /// The namespace without its tenant.
    pub fn namespace_local(&self) -> &str {
        self.text.get(self.tenant_end + 1..self.namespace_end).unwrap_or_default()
    }

    /// `tenant/namespace`.
    pub fn namespace(&self) -> &str {
        self.text.get(self.domain.as_str().len() + 3..self.namespace_end).unwrap_or_default()
    }

    /// What follows the namespace: for a partition with its suffix, for a segment with its descriptor.
    pub fn local(&self) -> &str {
        self.text.get(self.namespace_end + 1..).unwrap_or_default()
    }

    /// The same tenant, namespace and local name in another domain. What only that domain asks for is not checked:
    /// a segment's descriptor ([`SegmentName`] makes those names), and no slash in the local name of a classic topic.
    pub fn with_domain(&self, domain: Domain) -> Self {
        let cut = self.domain.as_str().len();
        let shift = |end: usize| end - cut + domain.as_str().len();
        TopicName {
            domain,
            text: format!("{}{}", domain.as_str(), self.text.get(cut..).unwrap_or_default()),
            tenant_end: shift(self.tenant_end),
            namespace_end: shift(self.namespace_end),
        }
    }

    /// The name of one partition of this classic or scalable topic.
    pub fn partition(&self, index: u32) -> Self {
        TopicName { text: format!("{}{PARTITION}{index}", self.text), ..self.clone() }
    }

    /// The index at the end of a partition's name; `None` for any other name.
    pub fn partition_index(&self) -> Option<u32> {
        let (_, index) = self.local().rsplit_once(PARTITION)?;
        // "+1" and "01" are not what `partition` writes; Pulsar's indexes have 31 bits.
        let value: u32 = index.parse().ok().filter(|value| *value <= i32::MAX as u32)?;
        (value.to_string() == index).then_some(value)
    }

    /// The name without a partition suffix.
    pub fn partitioned(&self) -> Self {
        match self.partition_index().and_then(|_| self.text.rsplit_once(PARTITION)) {
            Some((base, _)) => TopicName { text: base.to_owned(), ..self.clone() },
            None => self.clone(),
        }
    }
}

/// The characters that Pulsar allows in tenants and namespaces.
fn is_named_entity(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-=:._".contains(c))
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for TopicName {
    type Err = NameError;
    fn from_str(name: &str) -> Result<Self, NameError> {
        TopicName::parse(name)
    }
}

/// The name of a managed segment:
/// `segment://<tenant>/<namespace>/<topic>/<start>-<end>-<id>`, range in four hex digits each, id in decimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentName {
    /// The scalable topic, in the `topic://` domain.
    pub topic: TopicName,
    /// The inclusive range of the ring that the segment owns.
    pub range: HashRange,
    /// The segment's id within its topic; 63 bits.
    pub id: u64,
}

impl SegmentName {
    /// The name of a segment of `topic`, which has to be in the `topic://` domain. Ids have 63 bits.
    pub fn new(topic: TopicName, range: HashRange, id: u64) -> Result<Self, NameError> {
        let error = |reason| NameError { name: topic.to_string(), reason };
        if topic.domain() != Domain::Topic {
            return Err(error("only a topic:// topic has segments"));
        }
        if i64::try_from(id).is_err() {
            return Err(error("the segment id has more than 63 bits"));
        }
        Ok(SegmentName { topic, range, id })
    }

    /// Reads a segment name. `name` has to be in the `segment://` domain.
    pub fn of(name: &TopicName) -> Result<Self, NameError> {
        let error = |reason| NameError { name: name.to_string(), reason };
        if name.domain() != Domain::Segment {
            return Err(error("not in the segment:// domain"));
        }
        let (local, range, id) = parse_segment(name.local()).map_err(error)?;
        let topic = TopicName::new(Domain::Topic, name.tenant(), name.namespace_local(), local)?;
        SegmentName::new(topic, range, id)
    }

    /// Parses the text of a segment name.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        SegmentName::of(&TopicName::parse(name)?)
    }

    /// The name as a topic name in the `segment://` domain.
    pub fn to_topic_name(&self) -> TopicName {
        TopicName { text: self.to_string(), ..self.topic.with_domain(Domain::Segment) }
    }
}

/// Reads `<topic>/<start>-<end>-<id>`. As in Pulsar, the numbers may have leading zeros, a plus sign and upper-case
/// digits.
fn parse_segment(local: &str) -> Result<(&str, HashRange, u64), &'static str> {
    const FORM: &str = "a segment name ends in TOPIC/START-END-ID with START and END in hex and a 63-bit ID";
    let (topic, descriptor) = local.rsplit_once('/').ok_or(FORM)?;
    if topic.trim().is_empty() {
        return Err(FORM);
    }
    let mut parts = descriptor.splitn(3, '-');
    let (Some(start), Some(end), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(FORM);
    };
    let hash = |text: &str| u16::from_str_radix(text, 16).map_err(|_| FORM);
    let range =
        HashRange::new(hash(start)?, hash(end)?).ok_or("the segment's range ends before it starts")?;
    // A minus sign cannot be part of `id`: it would make a fourth part.
    let id = id.parse::<u64>().ok().filter(|id| i64::try_from(*id).is_ok()).ok_or(FORM)?;
    Ok((topic, range, id))
}

fn descriptor(range: HashRange, id: u64) -> String {
    format!("{range}-{id}")
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic.with_domain(Domain::Segment), descriptor(self.range, self.id))
    }
}
