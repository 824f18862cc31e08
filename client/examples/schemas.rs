//! Publishes Avro records of two versions of a schema and reads them twice: into a struct, and without knowing it:
//!
//! ```text
//! cargo run -p stc-client --example schemas -- pulsar://127.0.0.1:6650
//! ```

// An example shows what it does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use stc_client::{
    AutoConsumeSchema, AvroSchema, FieldType, GenericValue, InitialPosition, PulsarClient, RecordDefinition,
};

#[derive(Debug, Serialize, Deserialize)]
struct User {
    name: String,
    /// Records of the first version have none.
    #[serde(default)]
    age: Option<i32>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let service = std::env::args().nth(1).context("usage: schemas SERVICE_URL")?;
    let topic = format!("topic://public/default/users-{}", std::process::id());
    let client = PulsarClient::builder().service_url(service).build()?;

    let first = RecordDefinition::new("User").field("name", FieldType::String);
    let second = first.clone().optional("age", FieldType::Int);
    for (definition, age) in [(first, None), (second.clone(), Some(36))] {
        let producer = client.producer(AvroSchema::new(definition)?).topic(&topic).create().await?;
        producer.message().value(User { name: "Ada".into(), age }).send().await?;
        producer.close().await?;
    }

    let typed = client
        .queue_consumer(AvroSchema::<User>::new(second)?)
        .topic(&topic)
        .subscription("typed")
        .initial_position(InitialPosition::Earliest)
        .subscribe()
        .await?;
    for message in typed.receive_multi(2, Duration::from_secs(10)).await? {
        println!("{:?}", message.value()?);
    }

    let any = client
        .queue_consumer(AutoConsumeSchema)
        .topic(&topic)
        .subscription("any")
        .initial_position(InitialPosition::Earliest)
        .subscribe()
        .await?;
    for message in any.receive_multi(2, Duration::from_secs(10)).await? {
        match message.value()? {
            GenericValue::Record(record) => println!("{record}"),
            other => println!("no record: {other:?}"),
        }
    }
    client.close().await?;
    Ok(())
}
