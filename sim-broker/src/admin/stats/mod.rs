//! Statistics as the admin REST prints them. Fields are Pulsar's, in its order, as far as the simulator knows them:
//! it measures no rates (they are 0.0, as on a broker at rest) and no addresses of peers.

mod stored;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;
use stc_proto::Segment;

pub(super) use self::stored::{ClassicTopicStats, SegmentTopicStats};
use super::{layout::state_name, policy::Policy, time::instant};
use crate::core::{
    BrokerId,
    cluster::{
        Broker, Registered,
        admin::{ScalableStats, SegmentStats},
    },
    controller::assignment::GroupKind,
    topic::{ConsumerStats, ProducerStats},
};

/// `host:port` of a URL, which is how Pulsar names a broker.
pub(super) fn host_and_port(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/')
}

/// How Pulsar names a broker.
fn broker_name(id: Option<BrokerId>, brokers: &[Broker]) -> Option<&str> {
    let index = usize::try_from(id?.0).ok()?;
    Some(host_and_port(&brokers.get(index)?.admin_url))
}

/// `GET …/scalable/{tenant}/{namespace}/{topic}/stats`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScalableTopicStats<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_broker: Option<&'a str>,
    auto_scale: AutoScale,
    layout: LayoutStats<'a>,
    #[serde(flatten)]
    rates: Rates,
    average_msg_size: f64,
    storage_size: u64,
    producers: Vec<Producer<'a>>,
    subscriptions: BTreeMap<&'a str, Subscription<'a>>,
}

#[derive(Debug, Serialize)]
struct AutoScale {
    policy: Policy,
}

#[derive(Debug, Serialize)]
struct LayoutStats<'a> {
    epoch: u64,
    segments: BTreeMap<u64, SegmentSummary<'a>>,
}

/// Rates are not measured.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rates {
    msg_rate_in: f64,
    byte_rate_in: f64,
    msg_rate_out: f64,
    byte_rate_out: f64,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct RatesIn {
    msg_rate_in: f64,
    byte_rate_in: f64,
    average_msg_size: f64,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct RatesOut {
    msg_rate_out: f64,
    byte_rate_out: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SegmentSummary<'a> {
    name: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    parent_ids: &'a [u64],
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    child_ids: &'a [u64],
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed_at: Option<String>,
    terminated: bool,
    entry_buckets: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_broker: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Producer<'a> {
    producer_name: &'a str,
    #[serde(flatten)]
    rates: RatesIn,
    access_mode: &'static str,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Subscription<'a> {
    r#type: &'static str,
    msg_backlog: u64,
    unacked_messages: u64,
    #[serde(flatten)]
    rates: RatesOut,
    msg_rate_redeliver: f64,
    message_ack_rate: f64,
    uncovered_segment_ids: Vec<u64>,
    segments: BTreeMap<u64, SegmentSubscription>,
    consumers: Vec<Consumer<'a>>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct SegmentSubscription {
    msg_backlog: u64,
    unacked_messages: u64,
    #[serde(flatten)]
    rates: RatesOut,
    /// Not handed to a stream consumer yet.
    blocked: bool,
    consumer_count: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Consumer<'a> {
    consumer_name: &'a str,
    connected: bool,
    segment_ids: Vec<u64>,
    #[serde(flatten)]
    rates: RatesOut,
    unacked_messages: u64,
    available_permits: i64,
}

impl<'a> ScalableTopicStats<'a> {
    pub(super) fn new(stats: &'a ScalableStats, policy: Option<&Json>, brokers: &'a [Broker]) -> Self {
        let segments =
            stats.segments.iter().map(|s| (s.segment.id, SegmentSummary::new(s, brokers))).collect();
        ScalableTopicStats {
            controller_broker: broker_name(stats.controller, brokers),
            auto_scale: AutoScale { policy: Policy::with(policy) },
            layout: LayoutStats { epoch: stats.epoch, segments },
            rates: Rates::default(),
            average_msg_size: 0.0,
            storage_size: stats.segments.iter().map(|s| s.topic.bytes).sum(),
            producers: producers(stats),
            subscriptions: subscriptions(stats),
        }
    }
}

impl<'a> SegmentSummary<'a> {
    fn new(stats: &'a SegmentStats, brokers: &'a [Broker]) -> Self {
        let segment = &stats.segment;
        SegmentSummary {
            name: stats.name.as_str(),
            state: state_name(segment),
            parent_ids: &segment.parents,
            child_ids: &segment.children,
            created_at: instant(segment.created_at_ms),
            sealed_at: segment.sealed_at_ms.map(instant),
            terminated: stats.topic.terminated,
            entry_buckets: segment.buckets.count(),
            owner_broker: broker_name(stats.owner, brokers),
        }
    }
}

/// The name of a producer or consumer without the `-seg-<id>` that its client added for this segment.
fn base_name<'a>(name: &'a str, segment: &Segment) -> &'a str {
    name.strip_suffix(&format!("-seg-{}", segment.id)).unwrap_or(name)
}

/// One line for each producer, however many segments it writes to.
fn producers(stats: &ScalableStats) -> Vec<Producer<'_>> {
    let mut named = BTreeMap::new();
    for segment in &stats.segments {
        for producer in &segment.topic.producers {
            named.entry(base_name(&producer.name, &segment.segment)).or_insert_with(|| access_mode(producer));
        }
    }
    named
        .into_iter()
        .map(|(producer_name, access_mode)| Producer {
            producer_name,
            rates: RatesIn::default(),
            access_mode,
        })
        .collect()
}

fn access_mode(producer: &ProducerStats) -> &'static str {
    producer.access_mode.as_str_name()
}

/// Every subscription that is on record, has registered consumers, or is on a segment.
fn subscriptions(stats: &ScalableStats) -> BTreeMap<&str, Subscription<'_>> {
    let mut all: BTreeMap<&str, Subscription<'_>> = BTreeMap::new();
    let registered = || stats.registered.iter().filter(|r| r.group.kind == GroupKind::Stream);
    for name in stats.made.keys().map(String::as_str) {
        all.entry(name).or_default();
    }
    for registered in registered() {
        let one = all.entry(&registered.group.subscription).or_default();
        one.consumers.push(Consumer::registered(registered));
    }
    for SegmentStats { segment, topic, .. } in &stats.segments {
        for here in &topic.subscriptions {
            let one = all.entry(&here.name).or_default();
            one.msg_backlog += here.backlog;
            one.unacked_messages += here.unacked;
            one.segments.insert(
                segment.id,
                SegmentSubscription {
                    msg_backlog: here.backlog,
                    unacked_messages: here.unacked,
                    rates: RatesOut::default(),
                    blocked: false,
                    consumer_count: here.consumers.len(),
                },
            );
            here.consumers.iter().for_each(|consumer| one.add(consumer, segment));
        }
    }
    for (name, one) in &mut all {
        let streams = registered().any(|registered| registered.group.subscription == *name);
        // What nobody recorded and nobody registered for is a queue's, whoever it was that left it.
        let queue = stats.made.get(*name).copied().unwrap_or(!streams);
        one.r#type = if queue { "QUEUE" } else { "STREAM" };
        let active = stats.segments.iter().map(|s| &s.segment).filter(|segment| segment.is_active());
        let uncovered = active.map(|segment| segment.id).filter(|id| !one.segments.contains_key(id));
        one.uncovered_segment_ids = uncovered.collect();
        for id in stats.blocked.get(*name).filter(|_| !queue).into_iter().flatten() {
            one.segments.entry(*id).or_default().blocked = true;
        }
    }
    all
}

impl<'a> Subscription<'a> {
    /// Adds a segment's consumer: to the line of the same consumer on another segment or in the registrations, if there
    /// is one.
    fn add(&mut self, consumer: &'a ConsumerStats, segment: &Segment) {
        let name = base_name(&consumer.name, segment);
        match self.consumers.iter_mut().find(|line| line.consumer_name == name) {
            Some(line) => {
                if !line.segment_ids.contains(&segment.id) {
                    line.segment_ids.push(segment.id);
                }
                line.connected = true;
                line.unacked_messages += consumer.unacked;
                line.available_permits += consumer.permits;
            }
            None => self.consumers.push(Consumer {
                consumer_name: name,
                connected: true,
                segment_ids: vec![segment.id],
                rates: RatesOut::default(),
                unacked_messages: consumer.unacked,
                available_permits: consumer.permits,
            }),
        }
    }
}

impl<'a> Consumer<'a> {
    /// A registered consumer has what its controller gave it, attached or not.
    fn registered(registered: &'a Registered) -> Self {
        Consumer {
            consumer_name: &registered.consumer,
            connected: registered.session.is_some(),
            segment_ids: registered.shares.iter().map(|share| share.segment).collect(),
            rates: RatesOut::default(),
            unacked_messages: 0,
            available_permits: 0,
        }
    }
}
