//! Publishes a few messages in each of the ways that there are:
//!
//! ```text
//! cargo run -p stc-client --example producer -- pulsar://127.0.0.1:6650
//! ```

// An example shows what it does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::time::Duration;

use anyhow::Context;
use stc_client::{AccessMode, Category, Compression, PulsarClient, QueueFull, StringSchema};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let service = std::env::args().nth(1).context("usage: producer SERVICE_URL")?;
    // One client for the life of the application.
    let client = PulsarClient::builder().service_url(service).build()?;
    let producer = client
        .producer(StringSchema)
        .topic("topic://public/default/orders")
        .compression(Compression::Zstd)
        .send_timeout(Duration::from_secs(10))
        .max_pending(1000)
        .queue_full(QueueFull::Wait)
        .create()
        .await?;

    // Waiting for each: simple, and as fast as the broker answers.
    let id = producer.message().key("customer-7").value("created".to_owned()).send().await?;
    println!("published as {id}");

    // All at once: messages of one key stay in the order of the calls.
    let tickets: Vec<_> = (0..100)
        .map(|n| {
            let message = producer.message().key("customer-7").property("step", n.to_string());
            message.value(format!("step {n}")).send_async()
        })
        .collect();
    for ticket in tickets {
        // A failure concerns one message; the producer stays as it is.
        if let Err(error) = ticket.await {
            eprintln!("not published: {error}");
        }
    }

    // Later, for consumers that honour delays.
    producer.message().deliver_after(Duration::from_secs(5)).value("reminder".to_owned()).send().await?;
    producer.flush().await?;
    println!("the last sequence id is {:?}", producer.last_sequence_id());

    // Exclusive access is had at once or not at all.
    let exclusive = client.producer(StringSchema).topic(producer.topic()).access_mode(AccessMode::Exclusive);
    match exclusive.create().await {
        Err(error) if error.category() == Category::ProducerBusy => println!("as expected: {error}"),
        Err(error) => return Err(error.into()),
        Ok(_) => anyhow::bail!("two producers, and one of them exclusive"),
    }
    client.close().await?;
    Ok(())
}
