//! Consumes orders and produces invoices, each order exactly once: what is received and what is sent of it belong to one
//! transaction.
//!
//! `cargo run --example transaction [SERVICE_URL]`

#![allow(clippy::print_stdout)]

use std::time::Duration;

use stc_client::{InitialPosition, PulsarClient, StringSchema};

const ORDERS: &str = "topic://public/default/orders";
const INVOICES: &str = "topic://public/default/invoices";

#[tokio::main]
async fn main() -> Result<(), stc_client::Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "pulsar://localhost:6650".to_owned());
    let client = PulsarClient::builder().service_url(url).build()?;
    let orders = client.producer(StringSchema).topic(ORDERS).create().await?;
    for n in 0..3 {
        orders.message().key(format!("customer-{n}")).value(format!("order {n}")).send().await?;
    }
    let invoices = client.producer(StringSchema).topic(INVOICES).create().await?;
    let consumer = client
        .queue_consumer(StringSchema)
        .topic(ORDERS)
        .subscription("invoicing")
        .initial_position(InitialPosition::Earliest)
        .subscribe()
        .await?;
    while let Some(order) = consumer.receive_timeout(Duration::from_secs(2)).await? {
        let transaction = client.new_transaction(Duration::from_secs(60)).await?;
        let invoice = invoices.message().value(format!("invoice for {}", order.value()?));
        invoice.transaction(&transaction).send().await?;
        consumer.acknowledge_in(order.id(), &transaction).await?;
        // Either both take effect or neither: after a failure the order comes again and no invoice was written.
        match transaction.commit().await {
            Ok(()) => println!("{}: {}", order.value()?, transaction.state()),
            Err(error) => println!("{}: {error}", order.value()?),
        }
    }
    client.close().await
}
