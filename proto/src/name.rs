//! Topic names and segment names (data-model §1, wire-protocol §3, compatibility §1).

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

    fn parse(scheme: &str) -> Option<Self> {
        [Domain::Persistent, Domain::NonPersistent, Domain::Topic, Domain::Segment]
            .into_iter()
            .find(|d| d.as_str() == scheme)
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
    /// Puts a name together from its parts.
    pub fn new(domain: Domain, tenant: &str, namespace: &str, local: &str) -> Result<Self, NameError> {
        let text = format!("{}://{tenant}/{namespace}/{local}", domain.as_str());
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
        let (domain, rest) = match name.split_once("://") {
            Some((scheme, rest)) => (
                Domain::parse(scheme)
                    .ok_or_else(|| error("the domain is not topic, segment, persistent or non-persistent"))?,
                rest,
            ),
            None => match name.split('/').count() {
                1 => return TopicName::new(Domain::Persistent, "public", "default", name),
                3 => (Domain::Persistent, name),
                _ => return Err(error("a short name is either NAME or TENANT/NAMESPACE/NAME")),
            },
        };
        let mut parts = rest.splitn(3, '/');
        let (Some(tenant), Some(namespace), Some(local)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(error("a full name is DOMAIN://TENANT/NAMESPACE/NAME"));
        };
        TopicName::new(domain, tenant, namespace, local).map_err(|NameError { reason, .. }| error(reason))
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

    /// The same tenant, namespace and local name in another domain.
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

    /// The name of one partition of this classic topic.
    pub fn partition(&self, index: u32) -> Self {
        TopicName { text: format!("{}{PARTITION}{index}", self.text), ..self.clone() }
    }

    /// The index at the end of a partition's name; `None` for any other name.
    pub fn partition_index(&self) -> Option<u32> {
        let (_, index) = self.local().rsplit_once(PARTITION)?;
        // "+1" and "01" are not what `partition` writes.
        let value: u32 = index.parse().ok()?;
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
    /// The segment's id within its topic.
    pub id: u64,
}

impl SegmentName {
    /// Reads a segment name. `name` has to be in the `segment://` domain.
    pub fn of(name: &TopicName) -> Result<Self, NameError> {
        let error = |reason| NameError { name: name.to_string(), reason };
        if name.domain() != Domain::Segment {
            return Err(error("not in the segment:// domain"));
        }
        let bad = || error("a segment name ends in START-END-ID with START and END of four hex digits");
        let (local, descriptor) = name.local().rsplit_once('/').ok_or_else(bad)?;
        let mut parts = descriptor.splitn(3, '-');
        let (Some(start), Some(end), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(bad());
        };
        let hash = |text: &str| u16::from_str_radix(text, 16).map_err(|_| bad());
        let range = HashRange::new(hash(start)?, hash(end)?)
            .ok_or_else(|| error("the range ends before it starts"))?;
        let id: u64 = id.parse().map_err(|_| bad())?;
        // One spelling for each segment, as a name is an identity.
        if descriptor != self::descriptor(range, id) {
            return Err(bad());
        }
        let topic = TopicName::new(Domain::Topic, name.tenant(), name.namespace_local(), local)?;
        Ok(SegmentName { topic, range, id })
    }

    /// Parses the text of a segment name.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        SegmentName::of(&TopicName::parse(name)?)
    }

    /// The name as a topic name in the `segment://` domain.
    pub fn to_topic_name(&self) -> TopicName {
        let base = self.topic.with_domain(Domain::Segment);
        TopicName { text: self.to_string(), ..base }
    }
}

fn descriptor(range: HashRange, id: u64) -> String {
    format!("{:04x}-{:04x}-{id}", range.start(), range.end())
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic.with_domain(Domain::Segment), descriptor(self.range, self.id))
    }
}
