//! Statistics as the admin REST prints them. Fields are Pulsar's, in its order, as far as the simulator knows them:
//! it measures no rates (they are 0.0, as on a broker at rest) and no addresses of peers.

mod stored;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;
use stc_proto::{Segment, pulsar::command_subscribe::SubType};

pub(super) use self::stored::{ClassicTopicStats, SegmentTopicStats};
use super::{layout::state_name, policy::Policy, time::instant};
use crate::core::{
    BrokerId,
    cluster::{
        Broker, Registered,
        admin::{ScalableStats, SegmentStats},
    },
    controller::assignment::GroupKind,
    topic::{ConsumerStats, ProducerStats, SubscriptionStats},
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

#[derive(Debug, Serialize)]
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

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SegmentSubscription {
    msg_backlog: u64,
    unacked_messages: u64,
    #[serde(flatten)]
    rates: RatesOut,
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

fn subscriptions(stats: &ScalableStats) -> BTreeMap<&str, Subscription<'_>> {
    let mut all: BTreeMap<&str, Subscription<'_>> = BTreeMap::new();
    for SegmentStats { segment, topic, .. } in &stats.segments {
        for here in &topic.subscriptions {
            let one = all.entry(&here.name).or_insert_with(|| Subscription {
                r#type: scalable_type(here),
                msg_backlog: 0,
                unacked_messages: 0,
                rates: RatesOut::default(),
                msg_rate_redeliver: 0.0,
                message_ack_rate: 0.0,
                uncovered_segment_ids: Vec::new(),
                segments: BTreeMap::new(),
                consumers: Vec::new(),
            });
            one.msg_backlog += here.backlog;
            one.unacked_messages += here.unacked;
            one.segments.insert(
                segment.id,
                SegmentSubscription {
                    msg_backlog: here.backlog,
                    unacked_messages: here.unacked,
                    rates: RatesOut::default(),
                    consumer_count: here.consumers.len(),
                },
            );
            here.consumers.iter().for_each(|consumer| one.add(consumer, segment));
        }
    }
    for registered in stats.registered.iter().filter(|r| r.group.kind == GroupKind::Stream) {
        if let Some(one) = all.get_mut(registered.group.subscription.as_str()) {
            one.register(registered);
        }
    }
    for one in all.values_mut() {
        let uncovered =
            stats.segments.iter().map(|s| s.segment.id).filter(|id| !one.segments.contains_key(id));
        one.uncovered_segment_ids = uncovered.collect();
    }
    all
}

impl<'a> Subscription<'a> {
    /// A registered consumer's segments are those that its controller gave it, attached or not.
    fn register(&mut self, registered: &'a Registered) {
        let segment_ids = registered.shares.iter().map(|share| share.segment).collect();
        let connected = registered.session.is_some();
        match self.consumers.iter_mut().find(|line| line.consumer_name == registered.consumer) {
            Some(line) => (line.segment_ids, line.connected) = (segment_ids, connected),
            None => self.consumers.push(Consumer {
                consumer_name: &registered.consumer,
                connected,
                segment_ids,
                rates: RatesOut::default(),
                unacked_messages: 0,
                available_permits: 0,
            }),
        }
    }

    /// Adds a segment's consumer: to the line of the same consumer on another segment, if there is one.
    fn add(&mut self, consumer: &'a ConsumerStats, segment: &Segment) {
        let name = base_name(&consumer.name, segment);
        match self.consumers.iter_mut().find(|line| line.consumer_name == name) {
            Some(line) => {
                line.segment_ids.push(segment.id);
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

/// What kind of consumer a subscription of a scalable topic is for; one that nobody used yet is for stream consumers.
fn scalable_type(subscription: &SubscriptionStats) -> &'static str {
    match subscription.kind {
        Some(SubType::Shared) => "QUEUE",
        // A checkpoint consumer's, which 5.0.1 shows in this way.
        Some(_) if !subscription.durable => "QUEUE",
        _ => "STREAM",
    }
}
