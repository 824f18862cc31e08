//! The client in a program without async:
//!
//! ```text
//! cargo run -p stc-client --example blocking -- pulsar://127.0.0.1:6650
//! ```

// An example shows what it does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{thread, time::Duration};

use anyhow::Context;
use stc_client::{InitialPosition, PulsarClient, StringSchema, blocking};

fn main() -> anyhow::Result<()> {
    let service = std::env::args().nth(1).context("usage: blocking SERVICE_URL")?;
    let client = blocking::PulsarClient::new(PulsarClient::builder().service_url(service))?;
    let topic = "topic://public/default/orders";
    let consumer = client.queue_consumer(StringSchema, |consumer| {
        consumer.topic(topic).subscription("blocking").initial_position(InitialPosition::Earliest)
    })?;
    let producer = client.producer(StringSchema, |producer| producer.topic(topic))?;
    thread::scope(|scope| {
        for number in 0..4 {
            let producer = &producer;
            scope.spawn(move || {
                let sent = producer.send(|message| message.value(format!("from thread {number}")));
                if let Err(error) = sent {
                    eprintln!("not published: {error}");
                }
            });
        }
    });
    while let Some(message) = consumer.receive_timeout(Duration::from_secs(2))? {
        println!("{}", message.value()?);
        consumer.acknowledge(message.id())?;
    }
    client.close()?;
    Ok(())
}
