//! `stc tap`: watch a client and a cluster talk, and keep what they said.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use sim_broker::core::journal::Record;
use sim_broker::net::Tls;
use stc_reports::html::{self, Session};
use stc_reports::{ExitCode, WireRecord, files};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::output::{complain, say};
use crate::tap::{self, Options, TapError, Trust};
use crate::transcript;

/// The `tap` command line.
#[derive(Debug, Args)]
pub(super) struct Tap {
    /// The cluster to stand in front of: pulsar://host:port or pulsar+ssl://host:port, of one or several brokers with
    /// commas between them
    #[arg(long, value_name = "URL", default_value = "pulsar://127.0.0.1:6650")]
    broker: String,
    /// Where the client connects instead
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6640")]
    listen: SocketAddr,
    /// What the client calls this machine, where that is not the address of --listen
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
    /// Where a broker is reached that names itself otherwise, such as one in a container; may be given several times
    #[arg(long, value_name = "TOLD=REAL", value_parser = reach)]
    reach: Vec<(String, String)>,
    /// Who is trusted behind pulsar+ssl://, as a PEM file
    #[arg(long, value_name = "FILE")]
    tls_trust_certs: Option<PathBuf>,
    /// Speak TLS to the client, with this certificate (PEM, with what leads to its authority)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Keep the records in this file, one JSON object a line, in the form of the simulated cluster's journal
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Draw the exchange as an HTML page in this file when the program ends
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// End after this many records
    #[arg(long, value_name = "N")]
    records: Option<u64>,
}

fn reach(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((told, real)) if !told.is_empty() && !real.is_empty() => Ok((told.to_owned(), real.to_owned())),
        _ => Err("it has to look like broker-1:6650=127.0.0.1:7000".to_owned()),
    }
}

/// Exit codes: 0 it ended as it was asked to, 2 usage, 3 a port or a file cannot be had.
pub(super) fn run(args: &Tap) -> ExitCode {
    match watch(args) {
        Ok(()) => ExitCode::Conforms,
        Err(Problem::Usage(message)) => {
            complain(format_args!("error: {message}"));
            ExitCode::Usage
        }
        Err(Problem::Environment(message)) => {
            complain(format_args!("error: {message}"));
            ExitCode::Harness
        }
    }
}

enum Problem {
    Usage(String),
    Environment(String),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Problem {
        Problem::Environment(error.to_string())
    }
}

impl From<TapError> for Problem {
    fn from(error: TapError) -> Problem {
        match error {
            TapError::ServiceUrl(_) => Problem::Usage(format!("--broker {error}")),
            TapError::Untrusted(_) => {
                Problem::Usage(format!("--broker {error}; --tls-trust-certs names them"))
            }
            TapError::Listen { .. } => Problem::Environment(error.to_string()),
        }
    }
}

/// A file that the command line names.
fn read(option: &str, path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|e| Problem::Usage(format!("{option} {}: {e}", path.display())))
}

fn options(args: &Tap) -> Result<Options, Problem> {
    let usage = |option: &str, e: &dyn std::fmt::Display| Problem::Usage(format!("{option}: {e}"));
    let trust = match &args.tls_trust_certs {
        None => None,
        Some(path) => {
            let pem = read("--tls-trust-certs", path)?;
            Some(Trust::pem(&pem).map_err(|e| usage("--tls-trust-certs", &e))?)
        }
    };
    let certificate = match (&args.tls_cert, &args.tls_key) {
        (Some(chain), Some(key)) => {
            let (chain, key) = (read("--tls-cert", chain)?, read("--tls-key", key)?);
            Some(Tls::from_pem(&chain, &key).map_err(|e| usage("--tls-cert", &e))?)
        }
        _ => None,
    };
    let reach = args.reach.iter().cloned().collect();
    Ok(Options { listen: args.listen, advertise: args.advertise.clone(), certificate, trust, reach })
}

fn watch(args: &Tap) -> Result<(), Problem> {
    let options = options(args)?;
    let named = |path: &Path, e: std::io::Error| Problem::Environment(format!("{}: {e}", path.display()));
    let file =
        args.journal.as_ref().map(|path| File::create(path).map_err(|e| named(path, e))).transpose()?;
    let drawn = args.report.is_some().then(Vec::new);
    let mut keeping = Keeping { file: file.map(BufWriter::new), drawn };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (sink, mut records) = mpsc::unbounded_channel();
        let tap = tap::Tap::start(&args.broker, options, sink)?;
        complain(format_args!("connect the client to {}; Ctrl-C ends it", tap.service_url()));
        tokio::select! {
            kept = keep(&mut records, args.records, &mut keeping) => kept?,
            () = asked_to_end() => while let Ok(record) = records.try_recv() {
                keeping.take(&record)?;
            },
        }
        Ok::<(), Problem>(())
    })?;
    if let (Some(path), Some(records)) = (&args.report, &keeping.drawn) {
        let page = html::sessions(&[Session { name: &args.broker, records }]);
        files::write(path, &page.map_err(|e| Problem::Environment(e.to_string()))?)?;
        complain(format_args!("the exchange is drawn in {}", path.display()));
    }
    Ok(())
}

/// What is done with records.
struct Keeping {
    file: Option<BufWriter<File>>,
    /// For the page, if there is to be one.
    drawn: Option<Vec<WireRecord>>,
}

impl Keeping {
    fn take(&mut self, record: &Record) -> std::io::Result<()> {
        let drawn = transcript::record(record);
        say(drawn.line());
        // Each line is whole on disk before the next one, so that somebody can follow the file.
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", record.to_json())?;
            file.flush()?;
        }
        if let Some(all) = &mut self.drawn {
            all.push(drawn);
        }
        Ok(())
    }
}

async fn keep(
    records: &mut UnboundedReceiver<Record>,
    limit: Option<u64>,
    keeping: &mut Keeping,
) -> std::io::Result<()> {
    while let Some(record) = records.recv().await {
        keeping.take(&record)?;
        if limit.is_some_and(|limit| record.n >= limit) {
            break;
        }
    }
    Ok(())
}

/// Ctrl-C, or whatever asks a program to end. Where neither can be heard the program ends by itself, without a page.
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let heard = async |kind| match signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = heard(SignalKind::interrupt()) => {}
        () = heard(SignalKind::terminate()) => {}
    }
}
