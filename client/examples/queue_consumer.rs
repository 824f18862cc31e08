//! Works off the messages of a topic, sharing them with every other consumer of the subscription:
//!
//! ```text
//! cargo run -p stc-client --example queue_consumer -- pulsar://127.0.0.1:6650
//! ```
//!
//! Ends when nothing has come for five seconds.

// An example shows what it does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::time::Duration;

use anyhow::Context;
use stc_client::{InitialPosition, Message, PulsarClient, StringSchema};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let service = std::env::args().nth(1).context("usage: queue_consumer SERVICE_URL")?;
    let client = PulsarClient::builder().service_url(service).build()?;
    let consumer = client
        .queue_consumer(StringSchema)
        .topic("topic://public/default/orders")
        .subscription("billing")
        .initial_position(InitialPosition::Earliest)
        .redelivery_delay(Duration::from_secs(1))
        .subscribe()
        .await?;
    while let Some(message) = consumer.receive_timeout(Duration::from_secs(5)).await? {
        match work_off(&message) {
            // Each message by itself, in any order.
            Ok(()) => consumer.acknowledge(message.id()).await?,
            Err(error) => {
                eprintln!("once more, please: {error}");
                consumer.negative_acknowledge(message.id()).await?;
            }
        }
    }
    client.close().await?;
    Ok(())
}

fn work_off(message: &Message<String>) -> anyhow::Result<()> {
    let value = message.value()?;
    anyhow::ensure!(!value.ends_with("13") || message.redelivery_count() > 0, "not at the first attempt");
    println!("{} of {}", value, message.key().unwrap_or("nobody"));
    Ok(())
}
