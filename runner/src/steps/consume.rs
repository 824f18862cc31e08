//! Steps about queue consumers: subscribing, receiving, acknowledging.

use std::collections::BTreeSet;

use cucumber::{gherkin, given, then, when};

use super::encryption::consumer_option;
use super::params::{ClientName, ConsumerName, Topic, initial_position, number, options};
use super::schema::schema;
use super::sends::await_sends;
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
const RECEIVE: [&str; 34] = [
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
    "API-6.3",
    "API-6.4",
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
