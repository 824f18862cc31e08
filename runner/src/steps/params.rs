//! Parameters of the steps, as cucumber expressions name them.

use std::convert::Infallible;
use std::num::ParseIntError;
use std::str::FromStr;

use cucumber::gherkin;

use crate::client::InitialPosition;
use crate::judge::Trouble;
use crate::world::THE;

fn alias(text: &str) -> String {
    match text.split('"').nth(1) {
        Some(name) => name.to_owned(),
        None => THE.to_owned(),
    }
}

macro_rules! actors {
    ($($(#[$doc:meta])* $type:ident $name:literal $regex:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, cucumber::Parameter)]
        #[param(name = $name, regex = $regex)]
        pub struct $type(pub String);

        impl FromStr for $type {
            type Err = Infallible;
            fn from_str(text: &str) -> Result<Self, Infallible> {
                Ok($type(alias(text)))
            }
        }
    )* };
}

actors! {
    /// `the topic`, `topic "orders"`.
    Topic "topic" r#"the topic|topic "[^"]+""#;
    /// `a producer`, `the producer`, `producer "a"`.
    ProducerName "producer" r#"a producer|the producer|producer "[^"]+""#;
    /// `a queue consumer`, `the queue consumer`, `queue consumer "a"`.
    ConsumerName "consumer" r#"a queue consumer|the queue consumer|queue consumer "[^"]+""#;
    /// `a checkpoint consumer`, `the checkpoint consumer`, `checkpoint consumer "a"`.
    ReaderName "reader" r#"a checkpoint consumer|the checkpoint consumer|checkpoint consumer "[^"]+""#;
    /// `a stream consumer`, `the stream consumer`, `stream consumer "a"`.
    StreamName "stream" r#"a stream consumer|the stream consumer|stream consumer "[^"]+""#;
    /// `a transaction`, `the transaction`, `transaction "a"`.
    TxnName "txn" r#"a transaction|the transaction|transaction "[^"]+""#;
    /// `the client`, `client "a"`.
    ClientName "client" r#"the client|client "[^"]+""#;
}

/// A 16-bit hash, `0x3b28`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, cucumber::Parameter)]
#[param(name = "hash", regex = "0x[0-9a-f]{4}")]
pub struct Hash(pub u16);

impl FromStr for Hash {
    type Err = ParseIntError;
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u16::from_str_radix(text.trim_start_matches("0x"), 16).map(Hash)
    }
}

/// The rows of a step's table that has two columns, name and value.
///
/// # Errors
/// When the step has no table, or one with other columns.
pub fn options(step: &gherkin::Step) -> Result<Vec<(String, String)>, Trouble> {
    let table = step.table.as_ref().ok_or_else(|| Trouble::new("the step needs a table"))?;
    table
        .rows
        .iter()
        .map(|row| match row.as_slice() {
            [name, value] => Ok((name.clone(), value.clone())),
            _ => Err(Trouble::new("the step's table has two columns: name and value")),
        })
        .collect()
}

/// The first column of a step's table.
///
/// # Errors
/// When the step has no table.
pub fn column(step: &gherkin::Step) -> Result<Vec<String>, Trouble> {
    let table = step.table.as_ref().ok_or_else(|| Trouble::new("the step needs a table"))?;
    Ok(table.rows.iter().filter_map(|row| row.first().cloned()).collect())
}

/// A number in a table.
///
/// # Errors
/// When it is none.
pub fn number<T: FromStr>(name: &str, value: &str) -> Result<T, Trouble> {
    value.trim().parse().map_err(|_| Trouble(format!("{name} is a number, not {value:?}")))
}

/// Where a subscription begins, in a table: `earliest` or `latest`.
///
/// # Errors
/// When it is neither.
pub fn initial_position(value: &str) -> Result<InitialPosition, Trouble> {
    match value {
        "earliest" => Ok(InitialPosition::Earliest),
        "latest" => Ok(InitialPosition::Latest),
        other => Err(Trouble(format!("no such initial position: {other}"))),
    }
}

/// The keys `key-0` to `key-(n-1)` in turn, `count` of them.
pub fn cycled_keys(count: usize, keys: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |i| format!("key-{}", i % keys.max(1)))
}
