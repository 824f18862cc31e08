//! Steps about queue consumers: subscribing, receiving, acknowledging.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use cucumber::{gherkin, given, then, when};

use super::encryption::consumer_option;
use super::ids::compare;
use super::params::{ClientName, ConsumerName, Topic, column, initial_position, number, options};
use super::produce::await_sends;
use super::schema::{self, schema};
use crate::client::{QueueOptions, Received};
use crate::judge::{Step, Trouble};
use crate::world::{Consumer, Delivery, Started, THE, World};

/// What a failed subscribe can break.
const SUBSCRIBE: [&str; 11] = [
    "COMPAT-1.5",
    "COMPAT-1.3",
    "DATA-6.3",
    "DATA-6.1",
    "API-4.1",
    "API-7.2",
    "API-4.2.1",
    "API-4.2.6",
    "IMPL-5.2",
    "DATA-1.1",
    "API-2.7",
];
/// What a failed or fruitless receive can break.
pub(super) const RECEIVE: [&str; 32] = [
    "ERR-5.3",
    "CONF-3.8",
    "API-4.2.8",
    "COMPAT-1.3",
    "CONF-3.9",
    "CONF-3.10",
    "API-3.1.7",
    "API-4.1",
    "ERR-1.6",
    "API-6.7",
    "API-6.8",
    "API-6.2",
    "API-6.1",
    "API-4.2.7",
    "API-6.6",
    "WIRE-8.2.1",
    "WIRE-8.2.2",
    "IMPL-5.7",
    "IMPL-5.3",
    "API-2.8",
    "API-2.7",
    "IMPL-1.6",
    "IMPL-1.5",
    "API-4.2.5",
    "ERR-5.2",
    "API-4.2.6",
    "IMPL-5.6",
    "IMPL-5.1",
    "IMPL-5.2",
    "COMPAT-1.5",
    "API-4.3",
    "API-4.2.4",
];
/// What a failed receive can break.
const NEXT: [&str; 12] = [
    "ERR-5.3",
    "CONF-3.8",
    "API-4.2.8",
    "API-4.2.5",
    "CONF-3.9",
    "CONF-3.10",
    "API-3.1.7",
    "API-4.4",
    "API-2.7",
    "API-4.3",
    "ERR-1.6",
    "DATA-6.1",
];
/// How long a receive waits for a message that must come. No text says when a negative acknowledgement takes effect, and
/// the V5 Java client waits a minute; the limit of a step is longer.
const PATIENCE_MS: u64 = 80_000;
/// How long nothing comes once nothing is outstanding: longer than a client waits before it attaches again.
const QUIET_MS: u64 = 1_000;

/// How long rejected messages stay away where they come again several times.
const SOON_MS: u64 = 100;

/// A queue consumer on a subscription that begins at the oldest message.
#[given(expr = "{consumer} on {topic} with subscription {string}")]
#[when(expr = "the application subscribes {consumer} on {topic} with subscription {string}")]
async fn consumer(world: &mut World, name: ConsumerName, topic: Topic, subscription: String) -> Step {
    let options = QueueOptions { subscription: Some(subscription), ..Default::default() };
    subscribe(world, THE, &name.0, &topic.0, options).await
}

/// A queue consumer of a second client object.
#[given(expr = "{consumer} of {client} on {topic} with subscription {string}")]
async fn consumer_of(
    world: &mut World,
    name: ConsumerName,
    client: ClientName,
    topic: Topic,
    subscription: String,
) -> Step {
    let options = QueueOptions { subscription: Some(subscription), ..Default::default() };
    subscribe(world, &client.0, &name.0, &topic.0, options).await
}

/// A queue consumer with options: subscription, name, initial position, schema, receiver queue, redelivery
/// delay, max redeliveries, dead-letter topic (its alias), private keys, decryption failure.
#[given(expr = "{consumer} on {topic} with")]
#[when(expr = "the application subscribes {consumer} on {topic} with")]
async fn consumer_with(world: &mut World, name: ConsumerName, topic: Topic, step: &gherkin::Step) -> Step {
    let options = queue_options(world, step)?;
    subscribe(world, THE, &name.0, &topic.0, options).await
}

async fn subscribe(world: &mut World, client: &str, alias: &str, topic: &str, options: QueueOptions) -> Step {
    let options = QueueOptions { topic: Some(world.topic(topic)?), ..options };
    let subscription = options.subscription.clone().unwrap_or_default();
    let object = world.client_object(client).await;
    let client = world.client().await;
    let subscribed = world.within(client.subscribe_queue(object, options)).await;
    let id = world.expect(&SUBSCRIBE, subscribed, "subscribing the queue consumer");
    world.consumers.insert(alias.to_owned(), Consumer { id, topic: topic.to_owned(), subscription });
    Ok(())
}

/// Subscribing in the hope of a failure, which a later step judges.
#[when(expr = "the application tries to subscribe {consumer} on {topic} with subscription {string}")]
async fn try_subscribe(world: &mut World, name: ConsumerName, topic: Topic, subscription: String) -> Step {
    let options = QueueOptions { subscription: Some(subscription), ..Default::default() };
    try_to_subscribe(world, name.0, topic.0, options).await
}

async fn try_to_subscribe(world: &mut World, alias: String, topic: String, options: QueueOptions) -> Step {
    let options = QueueOptions { topic: Some(world.topic(&topic)?), ..options };
    let subscription = options.subscription.clone().unwrap_or_default();
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let subscribed = world.within(client.subscribe_queue(object, options)).await;
    let outcome = subscribed.map(|id| {
        world.consumers.insert(alias, Consumer { id, topic, subscription });
    });
    world.tried(outcome);
    Ok(())
}

/// The same with options.
#[when(expr = "the application tries to subscribe {consumer} on {topic} with")]
async fn try_subscribe_with(
    world: &mut World,
    name: ConsumerName,
    topic: Topic,
    step: &gherkin::Step,
) -> Step {
    let options = queue_options(world, step)?;
    try_to_subscribe(world, name.0, topic.0, options).await
}

fn queue_options(world: &World, step: &gherkin::Step) -> Result<QueueOptions, Trouble> {
    let mut made = QueueOptions::default();
    for (name, value) in options(step)? {
        match name.as_str() {
            "subscription" => made.subscription = Some(value),
            "name" => made.name = Some(value),
            "initial position" => made.initial_position = initial_position(&value)?,
            "schema" => made.schema = schema(world, &value)?,
            "receiver queue" => made.receiver_queue = Some(number(&name, &value)?),
            "max redeliveries" => {
                made.dead_letters.get_or_insert_default().max_redeliveries = number(&name, &value)?;
                made.redelivery_delay_ms = Some(SOON_MS);
            }
            "redelivery delay" => {
                made.redelivery_delay_ms = Some(number(&name, value.trim_end_matches("ms"))?);
            }
            "dead-letter topic" => {
                made.dead_letters.get_or_insert_default().topic = Some(world.topic(&value)?);
            }
            other if consumer_option(&mut made.encryption, other, &value)? => {}
            other => return Err(Trouble(format!("a queue consumer has no option {other:?}"))),
        }
    }
    Ok(made)
}

// ---- receiving ----

/// Receives this many messages; each must come.
#[when(expr = "{consumer} receives {int} message(s)")]
async fn receives(world: &mut World, name: ConsumerName, count: usize) -> Step {
    for got in 0..count {
        receive(world, &name.0, got, count).await?;
    }
    Ok(())
}

/// Receives the next of `count` messages, `got` of which have come, and gives its handle.
async fn receive(world: &mut World, alias: &str, got: usize, count: usize) -> Result<u64, Trouble> {
    let Some(message) = next(world, alias, PATIENCE_MS).await? else {
        let what = format!("{got} messages came instead of {count}, then none for {} s", PATIENCE_MS / 1000);
        world.broken(&RECEIVE, what);
    };
    let handle = message.handle;
    world.deliveries.push(Delivery { consumer: alias.to_owned(), message });
    Ok(handle)
}

/// Receives and acknowledges this many messages.
#[when(expr = "{consumer} receives and acknowledges {int} message(s)")]
pub(super) async fn receives_and_acknowledges(world: &mut World, name: ConsumerName, count: usize) -> Step {
    for got in 0..count {
        let handle = receive(world, &name.0, got, count).await?;
        acknowledge(world, &name.0, vec![handle]).await?;
    }
    Ok(())
}

/// Receives this many messages, one after another, and negatively acknowledges each before the next.
#[when(expr = "{consumer} receives and negatively acknowledges {int} message(s)")]
async fn receives_and_rejects(world: &mut World, name: ConsumerName, count: usize) -> Step {
    for got in 0..count {
        let handle = receive(world, &name.0, got, count).await?;
        reject(world, &name.0, handle).await?;
    }
    Ok(())
}

/// Receives and acknowledges until every message that was sent has come, and no more comes again. A message whose
/// acknowledgement is lost comes again.
#[when(expr = "{consumer} receives and acknowledges everything")]
async fn everything(world: &mut World, name: ConsumerName) -> Step {
    await_sends(world).await;
    let (mut missing, mut idle) = (sent(world), 0);
    while !missing.is_empty() || idle < QUIET_MS {
        let Some(message) = next(world, &name.0, 100).await? else {
            idle += 100;
            if idle > PATIENCE_MS {
                world.broken(&RECEIVE, format!("never received, and nothing else comes: {missing:?}"));
            }
            continue;
        };
        idle = 0;
        missing.remove(&message.text());
        let handle = message.handle;
        world.deliveries.push(Delivery { consumer: name.0.clone(), message });
        acknowledge(world, &name.0, vec![handle]).await?;
    }
    Ok(())
}

/// The values of the messages whose sends succeeded.
fn sent(world: &World) -> BTreeSet<String> {
    world.sent_texts().map(|(value, _)| value.to_owned()).collect()
}

async fn next(world: &mut World, alias: &str, wait_ms: u64) -> Result<Option<Received>, Trouble> {
    let consumer = world.consumer(alias)?;
    let received = world.client().await.receive(consumer.id, Some(wait_ms)).await;
    Ok(world.expect(&NEXT, received, "receive"))
}

/// Receives until everything that was sent has come. What a lost connection left unacknowledged comes again, as it should.
#[then(expr = "{consumer} receives everything, some of it perhaps twice")]
async fn receives_everything(world: &mut World, name: ConsumerName) -> Step {
    await_sends(world).await;
    let mut missing = sent(world);
    world.deliveries.iter().for_each(|d| _ = missing.remove(&d.message.text()));
    while !missing.is_empty() {
        match next(world, &name.0, PATIENCE_MS).await? {
            Some(message) => {
                missing.remove(&message.text());
                world.deliveries.push(Delivery { consumer: name.0.clone(), message });
            }
            None => world.broken(&RECEIVE, format!("{missing:?} never came")),
        }
    }
    Ok(())
}

/// A receive without a limit, under way while the scenario goes on.
#[when(expr = "the application starts to receive from {consumer}")]
async fn start_receive(world: &mut World, name: ConsumerName) -> Step {
    let consumer = world.consumer(&name.0)?.id;
    let client = world.client().await;
    let task = tokio::task::spawn_local(async move {
        let message = client.receive(consumer, None).await?;
        Ok(Started::Message(name.0, message))
    });
    world.started.insert("receive".to_owned(), task);
    world.settle().await;
    Ok(())
}

/// A receive with a limit gives nothing, and no error.
#[then(expr = "a receive from {consumer} gives nothing within {int} ms")]
async fn gives_nothing(world: &mut World, name: ConsumerName, wait_ms: u64) -> Step {
    let got = next(world, &name.0, wait_ms).await?;
    let requirements = [
        "CONF-3.9",
        "CONF-3.10",
        "API-3.2.8",
        "API-6.1",
        "API-6.2",
        "API-6.3",
        "API-6.5",
        "API-6.7",
        "API-6.8",
        "API-4.4",
        "API-4.2.4",
        "API-4.2.1",
        "API-4.2.6",
        "IMPL-5.8",
        "API-3.2.6",
        "API-3.2.7",
        "API-4.2.5",
        "API-2.7",
        "ERR-5.3",
        "CONF-3.8",
        "API-4.2.8",
    ];
    if let Some(message) = got {
        let text = String::from_utf8_lossy(&message.payload).into_owned();
        world.broken(&requirements, format!("{text:?} came although nothing was outstanding"));
    }
    Ok(())
}

/// A receive of several messages gives this many, and never more than it was asked for.
#[then(expr = "a receive from {consumer} gives {int} of up to {int} messages within {int} ms")]
async fn gives_several(
    world: &mut World,
    name: ConsumerName,
    count: usize,
    max: usize,
    wait_ms: u64,
) -> Step {
    let consumer = world.consumer(&name.0)?;
    let client = world.client().await;
    let mut got: Vec<Received> = Vec::new();
    // It may give fewer than are on their way: then the next call gives the others.
    for _ in 0..count {
        let left = max - got.len();
        let asked = u32::try_from(left)?;
        let received = world.within(client.receive_many(consumer.id, asked, wait_ms)).await;
        let received = world.expect(&["API-4.5"], received, "receiving several messages");
        world.judge(&["API-4.5", "API-4.1"], received.len() <= left, || {
            format!("{} messages came, and the application asked for {}", received.len(), left)
        });
        got.extend(received);
        if got.len() >= count {
            break;
        }
    }
    world.judge(&["API-4.5", "API-4.1"], got.len() == count, || {
        format!("{} messages came instead of {count}", got.len())
    });
    world.deliveries.extend(got.into_iter().map(|message| Delivery { consumer: name.0.clone(), message }));
    Ok(())
}

/// A receive in the hope of a failure, which a later step judges.
#[when(expr = "the application tries to receive from {consumer}")]
async fn try_receive(world: &mut World, name: ConsumerName) -> Step {
    let consumer = world.consumer(&name.0)?;
    let client = world.client().await;
    let received = world.within(client.receive(consumer.id, Some(PATIENCE_MS))).await;
    world.tried(received.map(|_| ()));
    Ok(())
}

/// The same with a limit, within which perhaps nothing comes at all.
#[when(expr = "the application tries to receive from {consumer} for {int} ms")]
async fn try_receive_for(world: &mut World, name: ConsumerName, wait_ms: u64) -> Step {
    let consumer = world.consumer(&name.0)?;
    let client = world.client().await;
    let received = world.within(client.receive(consumer.id, Some(wait_ms))).await;
    world.tried(received.map(|_| ()));
    Ok(())
}

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

// ---- acknowledging ----

/// Acknowledges everything that the consumer gave so far.
#[when(expr = "{consumer} acknowledges everything it received")]
async fn acknowledge_all(world: &mut World, name: ConsumerName) -> Step {
    let handles =
        world.deliveries.iter().filter(|d| d.consumer == name.0).map(|d| d.message.handle).collect();
    acknowledge(world, &name.0, handles).await
}

/// Acknowledges one of the messages that the consumer gave, counted from 1 in the order in which they came.
#[when(expr = "{consumer} acknowledges message number {int} of those it received")]
async fn acknowledge_nth(world: &mut World, name: ConsumerName, number: usize) -> Step {
    let handle = nth(world, &name.0, number)?;
    acknowledge(world, &name.0, vec![handle]).await
}

/// Negatively acknowledges one of the messages that the consumer gave.
#[when(expr = "{consumer} negatively acknowledges message number {int} of those it received")]
async fn nack_nth(world: &mut World, name: ConsumerName, number: usize) -> Step {
    let handle = nth(world, &name.0, number)?;
    reject(world, &name.0, handle).await
}

async fn reject(world: &mut World, alias: &str, handle: u64) -> Step {
    let consumer = world.consumer(alias)?;
    let client = world.client().await;
    let done = world.within(client.negative_acknowledge(consumer.id, handle)).await;
    let requirements = ["ERR-5.3", "CONF-3.8", "API-4.2.8", "API-4.2.5", "IMPL-5.6"];
    world.expect(&requirements, done, "negative acknowledgement");
    Ok(())
}

pub(super) fn nth(world: &World, alias: &str, number: usize) -> Result<u64, Trouble> {
    let mut own = world.deliveries.iter().filter(|d| d.consumer == alias);
    own.nth(number.saturating_sub(1))
        .map(|d| d.message.handle)
        .ok_or_else(|| Trouble(format!("the consumer gave fewer than {number} messages")))
}

async fn acknowledge(world: &mut World, alias: &str, handles: Vec<u64>) -> Step {
    let consumer = world.consumer(alias)?;
    for handle in handles {
        let client = world.client().await;
        let done = world.within(client.acknowledge(consumer.id, handle)).await;
        world.expect(&["API-4.2.4", "IMPL-5.5", "API-2.7"], done, "acknowledgement");
    }
    world.settle().await;
    Ok(())
}

/// Closes a consumer.
#[when(expr = "the application closes {consumer}")]
async fn close(world: &mut World, name: ConsumerName) -> Step {
    let consumer = world.consumer(&name.0)?;
    let client = world.client().await;
    let closed = world.within(client.close_consumer(consumer.id)).await;
    world.expect(&["API-4.2.6", "API-2.7"], closed, "closing the consumer");
    Ok(())
}

// ---- judging ----

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
