//! Steps about producers: creating, flushing and closing them.

use std::rc::Rc;

use cucumber::{gherkin, given, then, when};

use super::encryption::producer_option;
use super::packing::{batching, chunking, compression};
use super::params::{ClientName, ProducerName, Topic, number, options};
use super::schema::schema;
use crate::client::{AccessMode, ClientOptions, ProducerOptions};
use crate::judge::{Step, Trouble};
use crate::world::{Producer, Started, THE, World};

/// What a failed create can break.
const CREATE: [&str; 13] = [
    "COMPAT-1.3",
    "API-3.1.6",
    "API-3.1.7",
    "CONF-3.9",
    "CONF-3.10",
    "DATA-6.3",
    "DATA-6.1",
    "API-7.2",
    "API-3.1.14",
    "DATA-1.1",
    "API-3.1.10",
    "API-3.1.15",
    "API-2.7",
];

/// A producer with the SDK's defaults.
#[given(expr = "{producer} on {topic}")]
#[when(expr = "the application creates {producer} on {topic}")]
async fn producer(world: &mut World, name: ProducerName, topic: Topic) -> Step {
    create(world, THE, &name.0, &topic.0, ProducerOptions::default()).await
}

/// A producer with options: name, access, schema, initial sequence id, batching (`off` or `N messages, M ms`), compression, chunking
/// (`off`, `on`, `N bytes`), encryption (names of keys), encryption failure, send timeout (ms), max pending, block if queue full, property NAME.
#[given(expr = "{producer} on {topic} with")]
#[when(expr = "the application creates {producer} on {topic} with")]
async fn producer_with(world: &mut World, name: ProducerName, topic: Topic, step: &gherkin::Step) -> Step {
    let options = producer_options(world, step)?;
    create(world, THE, &name.0, &topic.0, options).await
}

/// A producer of a second client object.
#[given(expr = "{producer} of {client} on {topic}")]
async fn producer_of(world: &mut World, name: ProducerName, client: ClientName, topic: Topic) -> Step {
    create(world, &client.0, &name.0, &topic.0, ProducerOptions::default()).await
}

pub(crate) async fn create(
    world: &mut World,
    client: &str,
    alias: &str,
    topic: &str,
    options: ProducerOptions,
) -> Step {
    let full = world.topic(topic)?;
    let object = world.client_object(client).await;
    let options = ProducerOptions { topic: Some(full), ..options };
    let (name, schema) = (options.name.clone(), options.schema.clone());
    let client = world.client().await;
    let created = world.within(client.create_producer(object, options)).await;
    let id = world.expect(&CREATE, created, "creating the producer");
    world.producers.insert(alias.to_owned(), Producer { id, topic: topic.to_owned(), name, schema });
    Ok(())
}

/// Creating a producer, under way while the scenario goes on.
#[when(expr = "the application starts to create {producer} on {topic}")]
async fn start_to_create(world: &mut World, name: ProducerName, topic: Topic) -> Step {
    start_create(world, name.0, topic.0, ProducerOptions::default()).await
}

pub(crate) async fn start_create(
    world: &mut World,
    alias: String,
    topic: String,
    options: ProducerOptions,
) -> Step {
    let options = ProducerOptions { topic: Some(world.topic(&topic)?), ..options };
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let task = tokio::task::spawn_local(async move {
        let (name, schema) = (options.name.clone(), options.schema.clone());
        let id = client.create_producer(object, options).await?;
        Ok(Started::Producer(alias, Producer { id, topic, name, schema }))
    });
    world.started.insert("create".to_owned(), task);
    world.settle().await;
    Ok(())
}

/// Creating a producer in the hope of a failure, which a later step judges.
#[when(expr = "the application tries to create {producer} on {topic}")]
async fn try_to_create(world: &mut World, name: ProducerName, topic: Topic) -> Step {
    try_create(world, &name.0, &topic.0, ProducerOptions::default()).await
}

/// The same with options.
#[when(expr = "the application tries to create {producer} on {topic} with")]
async fn try_to_create_with(
    world: &mut World,
    name: ProducerName,
    topic: Topic,
    step: &gherkin::Step,
) -> Step {
    let options = producer_options(world, step)?;
    try_create(world, &name.0, &topic.0, options).await
}

async fn try_create(world: &mut World, alias: &str, topic: &str, options: ProducerOptions) -> Step {
    let options = ProducerOptions { topic: Some(world.topic(topic)?), ..options };
    let object = world.client_object(THE).await;
    let (name, schema) = (options.name.clone(), options.schema.clone());
    let client = world.client().await;
    let created = world.within(client.create_producer(object, options)).await;
    let outcome = created.map(|id| {
        world.producers.insert(alias.to_owned(), Producer { id, topic: topic.to_owned(), name, schema });
    });
    world.tried(outcome);
    Ok(())
}

/// A producer whose topic was forgotten.
#[when("the application tries to create a producer without a topic")]
async fn try_without_topic(world: &mut World) -> Step {
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let created = world.within(client.create_producer(object, ProducerOptions::default())).await;
    world.tried(created.map(|_| ()));
    Ok(())
}

/// A client object with a service URL of its own.
#[when(expr = "the application tries to build a client for the service URL {string}")]
async fn try_service_url(world: &mut World, service_url: String) -> Step {
    let client = world.client().await;
    let options = ClientOptions { service_url, ..ClientOptions::default() };
    let opened = world.within(client.open(options)).await;
    world.tried(opened.map(|_| ()));
    Ok(())
}

pub(crate) fn producer_options(world: &World, step: &gherkin::Step) -> Result<ProducerOptions, Trouble> {
    let mut made = ProducerOptions::default();
    for (name, value) in options(step)? {
        match name.as_str() {
            "name" => made.name = Some(value),
            "access" => {
                made.access = match value.as_str() {
                    "shared" => AccessMode::Shared,
                    "exclusive" => AccessMode::Exclusive,
                    "exclusive-with-fencing" => AccessMode::ExclusiveWithFencing,
                    "wait-for-exclusive" => AccessMode::WaitForExclusive,
                    other => return Err(Trouble(format!("no such access mode: {other}"))),
                }
            }
            "schema" => made.schema = schema(world, &value)?,
            "initial sequence id" => made.initial_sequence_id = Some(number(&name, &value)?),
            "batching" => made.batching = Some(batching(&value)?),
            "compression" => made.compression = Some(compression(&value)?),
            "chunking" => made.chunking = Some(chunking(&value)?),
            "send timeout" => made.send_timeout_ms = Some(number(&name, value.trim_end_matches("ms"))?),
            "max pending" => made.max_pending = Some(number(&name, &value)?),
            "block if queue full" => made.block_if_queue_full = Some(value == "yes"),
            other if producer_option(&mut made.encryption, other, &value)? => {}
            other => match other.strip_prefix("property ") {
                Some(property) => made.properties.push((property.to_owned(), value)),
                None => return Err(Trouble(format!("a producer has no option {other:?}"))),
            },
        }
    }
    Ok(made)
}

/// The producer reports the canonical name of its topic.
#[then(expr = "{producer} names {topic} as its topic")]
async fn names_topic(world: &mut World, name: ProducerName, topic: Topic) -> Step {
    let producer = world.producer(&name.0)?;
    let expected = world.topic(&topic.0)?;
    let described = world.client().await.describe_producer(producer.id).await;
    let described = world.expect(&["DATA-1.3"], described, "asking the producer for its topic");
    world.judge(&["DATA-1.3"], described.topic == expected, || {
        format!("the producer's topic is {:?} instead of {expected:?}", described.topic)
    });
    Ok(())
}

// ---- flush and close ----

/// Flush, waited for.
#[when(expr = "the application flushes {producer}")]
async fn flush(world: &mut World, name: ProducerName) -> Step {
    let producer = world.producer(&name.0)?;
    let client = world.client().await;
    let flushed = world.within(client.flush(producer.id)).await;
    world.expect(&["API-3.3.1"], flushed, "flush");
    Ok(())
}

/// Flush, under way while the scenario goes on.
#[when(expr = "the application starts to flush {producer}")]
async fn start_flush(world: &mut World, name: ProducerName) -> Step {
    let producer = world.producer(&name.0)?.id;
    let client = world.client().await;
    let task = tokio::task::spawn_local(async move { client.flush(producer).await.map(|()| Started::Done) });
    world.started.insert("flush".to_owned(), task);
    world.settle().await;
    Ok(())
}

/// Close of a producer, waited for.
#[when(expr = "the application closes {producer}")]
async fn close(world: &mut World, name: ProducerName) -> Step {
    let producer = world.producer(&name.0)?;
    let client = world.client().await;
    let closed = world.within(client.close_producer(producer.id)).await;
    world.expect(&["API-3.3.5", "API-3.3.4", "API-3.3.3"], closed, "closing the producer");
    Ok(())
}

/// Close of a producer, under way while the scenario goes on.
#[when(expr = "the application starts to close {producer}")]
async fn start_close(world: &mut World, name: ProducerName) -> Step {
    let producer = world.producer(&name.0)?.id;
    let client = world.client().await;
    let task =
        tokio::task::spawn_local(
            async move { client.close_producer(producer).await.map(|()| Started::Done) },
        );
    world.started.insert("close".to_owned(), task);
    world.settle().await;
    Ok(())
}

/// Close of a client object, waited for.
#[when(expr = "the application closes {client}")]
async fn close_client(world: &mut World, name: ClientName) -> Step {
    let object = world.client_object(&name.0).await;
    let client = world.client().await;
    let closed = world.within(client.close(object)).await;
    world.expect(&["API-2.3"], closed, "closing the client");
    Ok(())
}

/// Close of a client object, under way while the scenario goes on.
#[when(expr = "the application starts to close {client}")]
async fn start_close_client(world: &mut World, name: ClientName) -> Step {
    let object = world.client_object(&name.0).await;
    let client: Rc<_> = world.client().await;
    let task = tokio::task::spawn_local(async move { client.close(object).await.map(|()| Started::Done) });
    world.started.insert("close".to_owned(), task);
    world.settle().await;
    Ok(())
}
