//! `stc tap`: watch a client and a broker talk, and keep what they said.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use sim_broker::core::journal::Record;
use stc_reports::ExitCode;
use tokio::sync::mpsc;

use crate::output::{complain, say};
use crate::tap;
use crate::transcript;

/// The `tap` command line.
#[derive(Debug, Args)]
pub(super) struct Tap {
    /// The broker to stand in front of, pulsar://host:port
    #[arg(long, value_name = "URL", default_value = "pulsar://127.0.0.1:6650")]
    broker: String,
    /// Where the client connects instead
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6640")]
    listen: SocketAddr,
    /// Keep the records in this file, one JSON object a line, in the form of the simulated cluster's journal
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// End after this many records
    #[arg(long, value_name = "N")]
    records: Option<u64>,
}

pub(super) fn run(args: &Tap) -> ExitCode {
    let Some(upstream) = args.broker.strip_prefix("pulsar://").filter(|address| !address.is_empty()) else {
        complain(
            "error: --broker: it has to look like pulsar://host:port; what goes over TLS cannot be read",
        );
        return ExitCode::Usage;
    };
    match watch(args, upstream) {
        Ok(()) => ExitCode::Conforms,
        Err(e) => {
            complain(format_args!("error: {e}"));
            ExitCode::Harness
        }
    }
}

fn watch(args: &Tap, upstream: &str) -> std::io::Result<()> {
    let mut file = args.journal.as_ref().map(File::create).transpose()?.map(BufWriter::new);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (sink, mut records) = mpsc::unbounded_channel();
        let (_tap, address) = tap::Tap::start(upstream, args.listen, sink)?;
        complain(format_args!("connect the client to pulsar://{address}; Ctrl-C ends it"));
        while let Some(record) = records.recv().await {
            say(transcript::record(&record).line());
            if let Some(file) = &mut file {
                keep(file, &record)?;
            }
            if args.records.is_some_and(|limit| record.n >= limit) {
                break;
            }
        }
        Ok(())
    })
}

/// Each line is whole on disk before the next frame goes by, as Ctrl-C ends the program.
fn keep(file: &mut BufWriter<File>, record: &Record) -> std::io::Result<()> {
    writeln!(file, "{}", record.to_json())?;
    file.flush()
}
