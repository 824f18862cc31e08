//! Runs the scenarios against a client and a broker, and judges what happened.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`catalogue`] | the requirements and the checklist |
//! | [`feature`] | feature files as a list of scenarios |
//! | [`select`], `nearest` | which of them a run is about; what an unknown name may mean |
//! | [`run`] | running them, several at a time, and their results |
//! | [`world`] | what one scenario has made so far |
//! | [`steps`] | the vocabulary of the scenarios |
//! | [`judge`], `evidence` | how a step says what it found, and which wire record shows it |
//! | [`adapter`] | clients in other processes, through the adapter protocol |
//! | [`client`] | the client under test behind one trait; the reference client |
//! | [`target`] | the broker side: simulated in memory or over TCP, or elsewhere |
//! | [`proxy`] | the journal and the faults of brokers elsewhere |
//! | [`stored`] | what the brokers have stored, message by message |
//! | [`wire`], [`transcript`] | the journal: decoded for steps, one record of the report for each |
//! | [`known`] | the list of known failures |
//! | [`progress`], [`output`] | what a person at a terminal sees |
//! | [`transaction_wire`], [`atomicity`] | transactions in the journal; whether each is all or nothing there |
//! | [`suite`], [`report`] | the suite as a whole, and from results to the report model |
//! | [`cli`], `deviants` | the two commands: judge a client, test the suite itself (feature `deviants`) |
//! | [`compare`] | the command that shows several runs on one page |
//! | [`tap`] | a recording proxy in front of any broker |
//! | [`program`] | the program `stc` |
//!
//! A scenario has its own thread, runtime, cluster, names and seed. Nothing it finds depends on what runs beside it.

// println! panics when the reader is gone; `stc_runner::output` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod adapter;
pub mod atomicity;
pub mod catalogue;
pub mod cli;
pub mod client;
pub mod compare;
#[cfg(feature = "deviants")]
pub mod deviants;
mod driver;
mod evidence;
pub mod feature;
pub mod judge;
pub mod known;
mod nearest;
pub mod output;
pub mod program;
pub mod progress;
pub mod proxy;
pub mod report;
pub mod run;
pub mod select;
pub mod steps;
pub mod stored;
pub mod stream_wire;
pub mod suite;
pub mod tap;
pub mod target;
pub mod transaction_wire;
pub mod transcript;
pub mod wire;
pub mod world;
