//! Sends, receives and takes the time, as directed line by line on standard input:
//!
//! ```text
//! cargo run --release -p stc-client --example load -- pulsar://127.0.0.1:6650
//! ```
//!
//! | Direction | What it does | Answer, one line of JSON |
//! |---|---|---|
//! | `ready` | nothing | `{}` |
//! | `first TOPIC` | waits until the broker listens, tries to send a message until one is acknowledged | `{}`, at once |
//! | `latency TOPIC WARM-UP COUNT` | unbatched sends of 100 bytes, one after the other | `{"nanos":[…]}`, without the warm-up |
//! | `produce TOPIC SECONDS` | batched sends of 100 bytes, `WINDOW` of them under way | `{"messages":…,"seconds":…}` |
//! | `consume TOPIC COUNT SECONDS` | receives and acknowledges at most so many, from the earliest | `{"messages":…,"seconds":…}` |
//!
//! `cargo xtask crosscheck figures` drives it, and the same program on Pulsar's Java client (`stc.load.Timed`).

// An example shows what it does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    collections::VecDeque,
    io::Write,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use stc_client::{BytesSchema, InitialPosition, Producer, PulsarClient};
use tokio::net::TcpStream;

/// How many messages are under way at most.
const WINDOW: usize = 20_000;
const KEYS: usize = 100;
const VALUE: [u8; 100] = [0; 100];
/// How long a try of the first message, or one receive, may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a broker may take until it is there.
const START: Duration = Duration::from_secs(120);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let service = std::env::args().nth(1).context("usage: load SERVICE_URL")?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words.as_slice() {
            ["ready"] => "{}".to_owned(),
            ["first", topic] => {
                let first = tokio::time::timeout(START, first(&service, topic)).await;
                first.context("the broker does not come up")??
            }
            ["latency", topic, warm_up, count] => {
                latency(&service, topic, warm_up.parse()?, count.parse()?).await?
            }
            ["produce", topic, seconds] => produce(&service, topic, seconds.parse()?).await?,
            ["consume", topic, count, seconds] => {
                consume(&service, topic, count.parse()?, seconds.parse()?).await?
            }
            _ => bail!("no such direction: {line}"),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn client(service: &str) -> anyhow::Result<PulsarClient> {
    Ok(PulsarClient::builder().service_url(service).operation_timeout(PATIENCE).build()?)
}

async fn producer(client: &PulsarClient, topic: &str, batching: bool) -> anyhow::Result<Producer<Bytes>> {
    Ok(client.producer(BytesSchema).topic(topic).batching(batching).create().await?)
}

/// A broker that just started refuses connections and then, for a while, topics.
async fn first(service: &str, topic: &str) -> anyhow::Result<String> {
    let host = service.strip_prefix("pulsar://").context("the service URL starts with pulsar://")?;
    loop {
        match TcpStream::connect(host).await {
            Ok(_) => match send_one(service, topic).await {
                Ok(()) => return Ok("{}".to_owned()),
                Err(error) => eprintln!("not yet: {error:#}"),
            },
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

async fn send_one(service: &str, topic: &str) -> anyhow::Result<()> {
    let client = client(service)?;
    let producer = producer(&client, topic, false).await?;
    producer.message().key("key").value(Bytes::from_static(&VALUE)).send().await?;
    Ok(())
}

async fn latency(service: &str, topic: &str, warm_up: usize, count: usize) -> anyhow::Result<String> {
    let client = client(service)?;
    let producer = producer(&client, topic, false).await?;
    let mut nanos = Vec::with_capacity(count);
    for n in 0..warm_up + count {
        let message = producer.message().key(key(n)).value(Bytes::from_static(&VALUE));
        let before = Instant::now();
        message.send().await?;
        if n >= warm_up {
            nanos.push(before.elapsed().as_nanos());
        }
    }
    client.close().await?;
    Ok(format!("{{\"nanos\":{nanos:?}}}"))
}

async fn produce(service: &str, topic: &str, seconds: f64) -> anyhow::Result<String> {
    let client = client(service)?;
    let producer = producer(&client, topic, true).await?;
    let before = Instant::now();
    let mut tickets = VecDeque::with_capacity(WINDOW);
    let mut messages = 0;
    while before.elapsed().as_secs_f64() < seconds {
        if tickets.len() == WINDOW
            && let Some(ticket) = tickets.pop_front()
        {
            ticket.await?;
        }
        tickets
            .push_back(producer.message().key(key(messages)).value(Bytes::from_static(&VALUE)).send_async());
        messages += 1;
    }
    for ticket in tickets {
        ticket.await?;
    }
    let answer = rate(messages, before);
    client.close().await?;
    Ok(answer)
}

async fn consume(service: &str, topic: &str, count: usize, seconds: f64) -> anyhow::Result<String> {
    let client = client(service)?;
    let before = Instant::now();
    let consumer = client
        .queue_consumer(BytesSchema)
        .topic(topic)
        .subscription("load")
        .initial_position(InitialPosition::Earliest)
        .subscribe()
        .await?;
    let mut messages = 0;
    while messages < count && before.elapsed().as_secs_f64() < seconds {
        let message = consumer.receive_timeout(PATIENCE).await?;
        let message = message.with_context(|| format!("{messages} of {count} messages came"))?;
        consumer.acknowledge(message.id()).await?;
        messages += 1;
    }
    let answer = rate(messages, before);
    client.close().await?;
    Ok(answer)
}

fn rate(messages: usize, since: Instant) -> String {
    format!("{{\"messages\":{messages},\"seconds\":{}}}", since.elapsed().as_secs_f64())
}

fn key(n: usize) -> String {
    format!("key-{}", n % KEYS)
}
