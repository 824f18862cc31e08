//! Statistics of one stored topic: a segment, a partition or a classic topic.

use std::collections::BTreeMap;

use serde::Serialize;
use stc_proto::pulsar::KeyValue;

use super::{Producer, Rates, RatesIn, RatesOut, access_mode, broker_name};
use crate::core::{
    BrokerId,
    cluster::{Broker, admin::SegmentStats},
    topic::{SubscriptionStats, TopicStats},
};

/// `GET …/scalable/{tenant}/{namespace}/{topic}/segments/{segment}/stats`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct SegmentTopicStats<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_broker: Option<&'a str>,
    terminated: bool,
    #[serde(flatten)]
    rates: Rates,
    average_msg_size: f64,
    storage_size: u64,
    producers: Vec<Producer<'a>>,
    subscriptions: BTreeMap<&'a str, StoredSubscription<'a, RatesOut>>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClassicRatesOut {
    msg_rate_out: f64,
    msg_throughput_out: f64,
}

/// A subscription of one stored topic. `R` is how its rates are called: `byteRateOut` or `msgThroughputOut`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredSubscription<'a, R> {
    r#type: &'static str,
    #[serde(flatten)]
    rates: R,
    msg_rate_redeliver: f64,
    message_ack_rate: f64,
    msg_backlog: u64,
    unacked_messages: u64,
    consumers: Vec<StoredConsumer<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredConsumer<'a> {
    consumer_name: &'a str,
    available_permits: i64,
    unacked_messages: u64,
    metadata: BTreeMap<&'a str, &'a str>,
}

impl<'a> SegmentTopicStats<'a> {
    pub(in crate::admin) fn new(stats: &'a SegmentStats, brokers: &'a [Broker]) -> Self {
        let producers = stats.topic.producers.iter().map(|producer| Producer {
            producer_name: &producer.name,
            rates: RatesIn::default(),
            access_mode: access_mode(producer),
        });
        SegmentTopicStats {
            owner_broker: broker_name(stats.owner, brokers),
            terminated: stats.topic.terminated,
            rates: Rates::default(),
            average_msg_size: 0.0,
            storage_size: stats.topic.bytes,
            producers: producers.collect(),
            subscriptions: stored_subscriptions(&stats.topic),
        }
    }
}

fn stored_subscriptions<R: Default>(stats: &TopicStats) -> BTreeMap<&str, StoredSubscription<'_, R>> {
    stats.subscriptions.iter().map(|s| (s.name.as_str(), StoredSubscription::new(s))).collect()
}

impl<'a, R: Default> StoredSubscription<'a, R> {
    fn new(stats: &'a SubscriptionStats) -> Self {
        let consumers = stats.consumers.iter().map(|consumer| StoredConsumer {
            consumer_name: &consumer.name,
            available_permits: consumer.permits,
            unacked_messages: consumer.unacked,
            metadata: metadata(&consumer.metadata),
        });
        StoredSubscription {
            r#type: stats.kind.map_or("None", |kind| kind.as_str_name()),
            rates: R::default(),
            msg_rate_redeliver: 0.0,
            message_ack_rate: 0.0,
            msg_backlog: stats.backlog,
            unacked_messages: stats.unacked,
            consumers: consumers.collect(),
        }
    }
}

/// `GET …/persistent/{tenant}/{namespace}/{topic}/stats`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct ClassicTopicStats<'a> {
    msg_rate_in: f64,
    msg_throughput_in: f64,
    msg_rate_out: f64,
    msg_throughput_out: f64,
    bytes_in_counter: u64,
    msg_in_counter: u64,
    average_msg_size: f64,
    storage_size: u64,
    publishers: Vec<Publisher<'a>>,
    subscriptions: BTreeMap<&'a str, StoredSubscription<'a, ClassicRatesOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_broker: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Publisher<'a> {
    access_mode: &'static str,
    producer_id: u64,
    producer_name: &'a str,
    metadata: BTreeMap<&'a str, &'a str>,
}

impl<'a> ClassicTopicStats<'a> {
    pub(in crate::admin) fn new(
        stats: &'a TopicStats,
        owner: Option<BrokerId>,
        brokers: &'a [Broker],
    ) -> Self {
        let publishers = stats.producers.iter().map(|producer| Publisher {
            access_mode: access_mode(producer),
            producer_id: producer.key.id,
            producer_name: &producer.name,
            metadata: metadata(&producer.metadata),
        });
        ClassicTopicStats {
            msg_rate_in: 0.0,
            msg_throughput_in: 0.0,
            msg_rate_out: 0.0,
            msg_throughput_out: 0.0,
            bytes_in_counter: stats.bytes,
            msg_in_counter: stats.messages,
            average_msg_size: 0.0,
            storage_size: stats.bytes,
            publishers: publishers.collect(),
            subscriptions: stored_subscriptions(stats),
            owner_broker: broker_name(owner, brokers),
        }
    }
}

/// What a client says about its producer or consumer.
fn metadata(pairs: &[KeyValue]) -> BTreeMap<&str, &str> {
    pairs.iter().map(|kv| (kv.key.as_str(), kv.value.as_str())).collect()
}
