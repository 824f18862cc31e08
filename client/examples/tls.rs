//! Connects over TLS, with a token:
//!
//! ```text
//! cargo run -p stc-client --example tls -- pulsar+ssl://localhost:6651 trusted.pem [token-file]
//! ```

// An example shows what it does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{fs, path::PathBuf};

use anyhow::Context;
use stc_client::{Category, Error, PulsarClient, StringSchema, TlsOptions, TokenAuthentication};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: tls SERVICE_URL TRUSTED_PEM [TOKEN_FILE]";
    let (service, trusted) = (args.next().context(usage)?, args.next().context(usage)?);
    let mut builder = PulsarClient::builder()
        .service_url(service)
        .tls(TlsOptions::trust_pem(&fs::read_to_string(trusted)?)?);
    if let Some(file) = args.next().map(PathBuf::from) {
        // Read anew whenever a broker asks, so that whoever renews tokens only has to replace the file.
        builder =
            builder.authentication(TokenAuthentication::supplied(move || match fs::read_to_string(&file) {
                Ok(token) => Ok(token.trim().to_owned()),
                Err(error) => {
                    Err(Error::new(Category::Authentication, format!("{}: {error}", file.display())))
                }
            }));
    }
    let client = builder.build()?;
    let producer = client.producer(StringSchema).topic("topic://public/default/orders").create().await?;
    match producer.message().value("over TLS".to_owned()).send().await {
        Ok(id) => println!("published as {id}"),
        Err(error) if error.category() == Category::Authorization => println!("not allowed: {error}"),
        Err(error) => return Err(error.into()),
    }
    client.close().await?;
    Ok(())
}
