//! Steps that judge what queue consumers gave: how often, with which values and attributes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use cucumber::{gherkin, then};

use super::ids::compare;
use super::params::{ConsumerName, Topic, column, options};
use super::schema;
use super::sends::await_sends;
use crate::client::Received;
use crate::judge::{Step, Trouble};
use crate::world::World;

/// The received messages have these values, in any order.
#[then("the received messages have the values")]
fn have_values(world: &mut World, step: &gherkin::Step) -> Step {
    let mut left: Vec<_> = world.deliveries.iter().map(|d| d.message.value.clone()).collect();
    let requirements = ["DATA-6.1", "DATA-6.3", "DATA-3.1"];
    for expected in column(step)? {
        let at = left.iter().position(|value| schema::is(value, &expected));
        let Some(at) = at else {
            let seen: Vec<String> = left.iter().map(schema::text).collect();
            world.broken(&requirements, format!("{expected} was sent; {} came", seen.join(" and ")));
        };
        left.remove(at);
    }
    world.judge(&requirements, left.is_empty(), || format!("{} messages too many came", left.len()));
    Ok(())
}

/// Every message whose send succeeded came to one of the consumers, once.
#[then("every message was received exactly once")]
async fn exactly_once(world: &mut World) -> Step {
    await_sends(world).await;
    let mut came: BTreeMap<String, usize> = BTreeMap::new();
    for delivery in &world.deliveries {
        *came.entry(delivery.message.text()).or_default() += 1;
    }
    for (value, _) in world.sent_texts() {
        let times = came.remove(value).unwrap_or(0);
        let requirements = [
            "CONF-3.9",
            "CONF-3.10",
            "API-4.2.1",
            "IMPL-5.7",
            "IMPL-5.3",
            "IMPL-5.2",
            "IMPL-5.1",
            "API-4.2.6",
            "API-2.8",
            "API-2.7",
            "STAB-4.1.1",
        ];
        world.judge(&requirements, times == 1, || {
            world.rests_on_delivery_of(value.as_bytes());
            format!("{value:?} was sent once and received {times} times")
        });
    }
    let strange: Vec<String> = came.into_keys().collect();
    world.judge(&["CONF-3.10", "CONF-3.9", "API-3.2.1", "DATA-3.1"], strange.is_empty(), || {
        format!("received and never sent: {}", strange.join(", "))
    });
    Ok(())
}

/// The consumer reports the canonical name of its topic.
#[then(expr = "{consumer} names {topic} as its topic")]
async fn consumer_names_topic(world: &mut World, name: ConsumerName, topic: Topic) -> Step {
    let consumer = world.consumer(&name.0)?;
    let expected = world.topic(&topic.0)?;
    let described = world.client().await.describe_consumer(consumer.id).await;
    let described = world.expect(&["DATA-1.3"], described, "asking the consumer for its topic");
    world.judge(&["DATA-1.3"], described.topic == expected, || {
        format!("the consumer's topic is {:?} instead of {expected:?}", described.topic)
    });
    Ok(())
}

/// No message came to two consumers, or to one twice.
#[then("no message was received twice")]
fn none_twice(world: &mut World) -> Step {
    let mut came = BTreeSet::new();
    for delivery in &world.deliveries {
        let value = delivery.message.text();
        world.judge(&["API-4.2.1"], came.insert(value.clone()), || {
            world.rests_on_delivery_of(value.as_bytes());
            format!("{value:?} was received twice")
        });
    }
    Ok(())
}

/// The consumers together got messages from all; none got the same.
#[then("each consumer received a part of the messages")]
fn shared(world: &mut World) -> Step {
    let parts: BTreeSet<&str> = world.deliveries.iter().map(|d| d.consumer.as_str()).collect();
    if parts.len() == world.consumers.len() {
        Ok(())
    } else {
        Err(Trouble::new("one of the consumers received nothing, so nothing was shared"))
    }
}

/// The last message that a consumer gave carries this redelivery count.
#[then(expr = "the last message has redelivery count {int}")]
fn redelivery_count(world: &mut World, count: u32) -> Step {
    let message = last(world)?;
    world.judge(&["ERR-5.2", "DATA-3.11"], message.redelivery_count == count, || {
        format!("the redelivery count is {} instead of {count}", message.redelivery_count)
    });
    Ok(())
}

/// The last message that a consumer gave is one that came before.
#[then(expr = "the last message is message number {int} of those {consumer} received")]
fn is_message(world: &mut World, number: usize, name: ConsumerName) -> Step {
    let handle_text = world
        .deliveries
        .iter()
        .filter(|d| d.consumer == name.0)
        .nth(number.saturating_sub(1))
        .map(|d| d.message.text())
        .ok_or_else(|| Trouble(format!("the consumer gave fewer than {number} messages")))?;
    let message = last(world)?;
    let requirements = ["ERR-5.3", "CONF-3.8", "API-4.2.5", "IMPL-5.6", "API-4.2.4", "CONF-3.10"];
    world.judge(&requirements, message.text() == handle_text, || {
        format!("{:?} came again instead of {handle_text:?}", message.text())
    });
    Ok(())
}

/// What the last received message is like: value, key, `no key`, property NAME, properties (a count), event time,
/// sequence id, producer name, redelivery count, size.
#[then("the last message has")]
fn has(world: &mut World, step: &gherkin::Step) -> Step {
    let message = last(world)?;
    for (name, expected) in options(step)? {
        let (requirements, seen): (&[&str], String) = match name.as_str() {
            "value" if schema::is(&message.value, &expected) => continue,
            "value" => (&["API-3.2.1", "DATA-3.1", "DATA-6.1", "DATA-6.3"], schema::text(&message.value)),
            "payload" => {
                (&["DATA-3.2", "API-3.2.1", "DATA-6.3", "DATA-6.1"], stc_proto::fields::hex(&message.payload))
            }
            "key" => (&["DATA-3.4", "API-3.2.2"], message.key.clone().unwrap_or_else(|| "absent".to_owned())),
            "properties" => (&["DATA-3.5", "API-3.2.3"], message.properties.len().to_string()),
            "event time" => (
                &["DATA-3.7", "API-3.2.4"],
                message.event_time_ms.map_or_else(|| "absent".to_owned(), |t| t.to_string()),
            ),
            "sequence id" => (&["DATA-3.8", "API-3.2.5"], message.sequence_id.to_string()),
            "producer name" => {
                (&["DATA-3.9"], message.producer_name.clone().unwrap_or_else(|| "absent".to_owned()))
            }
            "replicated from" => {
                (&["DATA-3.13"], message.replicated_from.clone().unwrap_or_else(|| "absent".to_owned()))
            }
            "redelivery count" => (&["DATA-3.11"], message.redelivery_count.to_string()),
            "size" => (&["DATA-3.12"], message.size.to_string()),
            other => match other.strip_prefix("property ") {
                Some(property) => (
                    &["DATA-3.5", "API-3.2.3"],
                    message
                        .properties
                        .iter()
                        .find(|(k, _)| k == property)
                        .map_or_else(|| "absent".to_owned(), |(_, v)| v.clone()),
                ),
                None => return Err(Trouble(format!("a received message has no {other:?}"))),
            },
        };
        world.judge(requirements, seen == expected, || {
            format!("the message's {name} is {seen:?} instead of {expected:?}")
        });
    }
    Ok(())
}

/// The received messages carry this many different sequence ids.
#[then(expr = "the received messages have {int} different sequence identifiers")]
fn sequence_ids(world: &mut World, count: usize) -> Step {
    let ids: BTreeSet<u64> = world.deliveries.iter().map(|d| d.message.sequence_id).collect();
    world.judge(&["DATA-3.8"], ids.len() == count, || {
        format!("the sequence identifiers are {ids:?}, {count} messages have {count} of them")
    });
    Ok(())
}

/// The name may go on after this: segment producers are called after the producer and the segment.
#[then(expr = "the last message's producer name begins with {string}")]
fn producer_name(world: &mut World, beginning: String) -> Step {
    let name = last(world)?.producer_name;
    world.judge(&["DATA-3.9"], name.as_ref().is_some_and(|n| n.starts_with(&beginning)), || {
        format!("the producer's name is {name:?} and begins otherwise than {beginning:?}")
    });
    Ok(())
}

/// Publish times are there, and go up with the order of sends.
#[then("the received messages have publish times that do not decrease")]
fn publish_times(world: &mut World) -> Step {
    let mut before = 1;
    for delivery in &world.deliveries {
        let time = delivery.message.publish_time_ms;
        world.judge(&["DATA-3.6"], time >= before, || {
            format!("publish time {time} ms comes after {before} ms")
        });
        before = time;
    }
    if world.deliveries.is_empty() { Err(Trouble::new("nothing was received")) } else { Ok(()) }
}

/// The last message reports the canonical name of the topic.
#[then(expr = "the last message names {topic} as its topic")]
fn names_topic(world: &mut World, topic: Topic) -> Step {
    let expected = world.topic(&topic.0)?;
    let message = last(world)?;
    world.judge(&["DATA-1.3"], message.topic == expected, || {
        format!("the message's topic is {:?} instead of {expected:?}", message.topic)
    });
    Ok(())
}

/// The identifier that send returned is the one that the consumer reports for the message.
#[then("every received message has the identifier that its send returned")]
async fn same_id(world: &mut World) -> Step {
    await_sends(world).await;
    for delivery in world.deliveries.clone() {
        let value = delivery.message.text();
        let sent = world.sent.iter().find(|s| s.message.value == crate::client::Value::Text(value.clone()));
        let Some(Ok(id)) = sent.and_then(|s| s.outcome.clone()) else { continue };
        // Two forms in bytes may name one message: the SDK says whether they do.
        let order = compare(world, &id, &delivery.message.id).await;
        world.judge(&["API-3.2.10", "DATA-3.3", "CONF-3.10"], order == Ordering::Equal, || {
            format!("{value:?}: send returned another identifier than the consumer reports ({order:?})")
        });
    }
    Ok(())
}

fn last(world: &World) -> Result<Received, Trouble> {
    world.deliveries.last().map(|d| d.message.clone()).ok_or_else(|| Trouble::new("nothing was received"))
}
