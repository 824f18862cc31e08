//! Produces to a scalable topic and consumes from it with a queue consumer while the topic is split and merged:
//!
//! ```text
//! cargo run -p stc-client --example produce_consume -- pulsar://127.0.0.1:6650 http://127.0.0.1:8080
//! ```
//!
//! Fails when a message is lost, comes twice, or a send shows anything of the layout changes. Without the admin URL the
//! layout stays as it is.

// An example shows what it does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use stc_client::{InitialPosition, PulsarClient, StringSchema};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const MESSAGES: usize = 2000;
const KEYS: usize = 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let mut args = std::env::args().skip(1);
    let service = args.next().context("usage: produce_consume SERVICE_URL [ADMIN_URL]")?;
    let admin = args.next();
    let name = format!("example-{}", std::process::id());
    let topic = format!("topic://public/default/{name}");

    let client = PulsarClient::builder().service_url(service).build()?;
    let consumer = client
        .queue_consumer(StringSchema)
        .topic(&topic)
        .subscription("example")
        .name("c")
        .initial_position(InitialPosition::Earliest)
        .subscribe()
        .await?;
    let producer = client.producer(StringSchema).topic(&topic).name("p").create().await?;
    println!("producing {MESSAGES} messages to {}", producer.topic());

    let produce = async {
        let mut tickets = Vec::new();
        for n in 0..MESSAGES {
            let key = format!("key-{}", n % KEYS);
            tickets.push(producer.message().key(key).value(n.to_string()).send_async());
            if n % 20 == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let mut ids = BTreeSet::new();
        for ticket in tickets {
            ids.insert(ticket.await?);
        }
        anyhow::Ok(ids)
    };
    let consume = async {
        let mut received = BTreeMap::new();
        while received.len() < MESSAGES {
            let message =
                consumer.receive_timeout(Duration::from_secs(20)).await?.context("a message did not come")?;
            let n: usize = message.value()?.parse()?;
            ensure!(received.insert(n, message.id().clone()).is_none(), "message {n} came twice");
            consumer.acknowledge(message.id()).await?;
        }
        anyhow::Ok(received)
    };
    let change = async {
        let Some(admin) = admin else { return Ok(()) };
        for change in ["split/0", "split/1", "merge/3/4", "merge/5/2"] {
            tokio::time::sleep(Duration::from_millis(400)).await;
            post(&admin, &format!("/admin/v2/scalable/public/default/{name}/{change}")).await?;
            println!("{change}");
        }
        anyhow::Ok(())
    };
    let (sent, received, ()) = tokio::try_join!(produce, consume, change)?;
    let received: BTreeSet<_> = received.into_values().collect();
    ensure!(sent == received, "the identifiers of sends and receives differ");
    if let Some(extra) = consumer.receive_timeout(Duration::from_secs(1)).await? {
        bail!("message {} came twice", extra.value()?);
    }
    println!(
        "sent and received {} messages once each, last sequence id {:?}",
        sent.len(),
        producer.last_sequence_id()
    );
    client.close().await?;
    Ok(())
}

/// The smallest HTTP client that will do.
async fn post(admin: &str, path: &str) -> anyhow::Result<()> {
    let host = admin.strip_prefix("http://").context("the admin URL starts with http://")?;
    let mut stream = TcpStream::connect(host).await?;
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.lines().next().unwrap_or_default();
    ensure!(status.contains(" 204"), "{path}: {answer}");
    Ok(())
}
