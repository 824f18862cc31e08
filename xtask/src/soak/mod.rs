//! The V5 Java client's consumers through layout changes and failures, judged message by message.
//!
//! A producer goes on sending while the topic is split, merged and rebucketed, consumers join, leave and vanish,
//! controllers move and brokers die. The program in `adapters/java-soak` does what it is told and tells what it sees;
//! everything else is here:
//!
//! - [`driver`]: the program as a child process
//! - [`log`]: what it told
//! - [`steps`]: what happens, in order
//! - [`judge`]: whether a message is lost, out of order, or gone without an acknowledgement

pub mod driver;
pub mod judge;
pub mod log;
pub mod steps;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use sim_broker::core::journal::{Direction, Event, Record};
use sim_broker::core::{ClusterConfig, controller::groups::Pace, profile::Profile};
use sim_broker::net::{SimCluster, TcpOptions};
use stc_runner::output::say;
use stc_runner::stored::{self, StoredMessage};
use stc_runner::target::Broker;
use stc_runner::target::admin::{Admin, Method};

use crate::adapters::Adapter;
use crate::exit;
use driver::Driver;
use judge::ByKey;
use steps::Course;

/// How the simulated cluster is set up.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// How many brokers.
    pub brokers: u32,
    /// What they follow.
    pub profile: &'a str,
    /// Decides which broker owns what.
    pub seed: u64,
}

/// The times of the controllers: short, as nothing here depends on how long they are.
const PACE: Pace = Pace { grace_ms: 2_000, drain_poll_ms: 100, drain_poll_max_ms: 1_000 };

/// The namespace of the topic.
const NAMESPACE: &str = "public/soak";

/// Runs all of it on a simulated cluster over TCP.
///
/// # Errors
/// When the cluster or the Java program cannot start, or something does not happen in time.
pub fn run(options: &Options<'_>) -> anyhow::Result<ExitCode> {
    let profile = Profile::built_in(options.profile).map_err(|error| exit::UsageError(error.to_string()))?;
    if options.brokers < 2 {
        return Err(exit::UsageError("a broker can only die when there are others".to_owned()).into());
    }
    let runtime = tokio::runtime::Runtime::new().context("no threads for the simulated cluster")?;
    let config = ClusterConfig {
        brokers: options.brokers,
        seed: options.seed,
        pace: PACE,
        ..ClusterConfig::new(profile)
    };
    let cluster = runtime
        .block_on(SimCluster::tcp(config, TcpOptions::default()))
        .context("the simulated cluster cannot listen")?;
    let admin = cluster.admin_urls().into_iter().next().context("the cluster has no admin URL")?;
    let broker = Broker::simulated(cluster.clone(), Admin::http(admin, None), false);
    let outcome = judged(&runtime, &broker).and_then(|findings| {
        happened(&cluster.control().journal())?;
        Ok(findings)
    });
    runtime.block_on(cluster.shutdown());
    Ok(verdict(&outcome?))
}

/// Runs what needs no simulated cluster on a broker elsewhere: layout changes, joining and leaving, checkpoints.
///
/// # Errors
/// When the broker does not answer, the Java program cannot start, or something does not happen in time.
pub fn at(service_url: &str, admin_url: &str) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("no threads")?;
    let broker = Broker::elsewhere(service_url, admin_url);
    Ok(verdict(&judged(&runtime, &broker)?))
}

fn verdict(findings: &[String]) -> ExitCode {
    if findings.is_empty() {
        say(format_args!("nothing was lost, reordered, or gone without an acknowledgement"));
        return ExitCode::SUCCESS;
    }
    findings.iter().for_each(|finding| say(format_args!("wrong: {finding}")));
    ExitCode::from(exit::FAILED)
}

/// Lets everything happen at a broker, and judges it.
fn judged(runtime: &tokio::runtime::Runtime, broker: &Broker) -> anyhow::Result<Vec<String>> {
    // New in each run: a broker elsewhere may have seen one before.
    let topic = format!("{NAMESPACE}/changes-{}", std::process::id());
    let admin = |method, path: String, body| runtime.block_on(broker.admin.must(method, &path, body));
    if admin(Method::GET, format!("/admin/v2/namespaces/{NAMESPACE}"), None).is_err() {
        admin(Method::PUT, format!("/admin/v2/namespaces/{NAMESPACE}"), None)?;
    }
    // A client sends again what a broken connection left open: each message is stored once all the same.
    let deduplication = format!("/admin/v2/namespaces/{NAMESPACE}/deduplication");
    admin(Method::POST, deduplication, Some(true.into()))?;
    admin(Method::PUT, format!("/admin/v2/scalable/{topic}?numInitialSegments=2"), None)?;
    let mut command = Adapter::JavaSoak.command()?;
    command.arg(&broker.service_url).arg(format!("topic://{topic}"));
    let mut course = Course {
        runtime,
        driver: Driver::start(command)?,
        admin: broker.admin.clone(),
        topic,
        cluster: broker.cluster.as_ref(),
        began: Instant::now(),
    };
    // 5.0.1, which a broker elsewhere is, hands a checkpoint group parents and children together.
    let group_ordered =
        broker.cluster.as_ref().is_some_and(|c| c.read(|c| c.config().profile.checkpoint_gate));
    let ran = course.run();
    if ran.is_err() {
        say(format_args!("{}", course.situation()));
    }
    let stored = by_key(&runtime.block_on(stored::of(broker, &course.name())).map_err(anyhow::Error::msg)?)?;
    course.driver.look(|log| {
        let figures = judge::figures(log);
        say(format_args!(
            "java-soak: {} sent in {} keys, {} receipts, {} of them repeats, {} given back, {} left unacknowledged",
            figures.sent,
            stored.len(),
            figures.receipts,
            figures.repeats,
            figures.given_back,
            figures.left_unacknowledged
        ));
        let findings = judge::findings(log, &stored, group_ordered);
        // What is wrong may be why something did not come.
        if let Err(error) = ran {
            findings.iter().for_each(|finding| say(format_args!("wrong so far: {finding}")));
            return Err(error);
        }
        if figures.given_back == 0 || figures.left_unacknowledged == 0 {
            bail!("no message was given back or left unacknowledged, so that the run proves nothing of them");
        }
        Ok(findings)
    })
}

fn by_key(messages: &[StoredMessage]) -> anyhow::Result<ByKey> {
    let mut stored = ByKey::new();
    for message in messages {
        let Some(key) = &message.key else {
            bail!("a message without a key is stored at {}", message.place())
        };
        stored.entry(key.clone()).or_default().push(message.text());
    }
    Ok(stored)
}

/// Makes sure that what the run is about happened on the wire.
fn happened(journal: &[Record]) -> anyhow::Result<()> {
    let frame = |record: &Record, direction, name: &str, with: &[&str]| {
        let Event::Frame(frame) = &record.event else { return false };
        record.direction == direction && frame.command.name() == name && {
            let json = record.to_json().to_string();
            with.iter().all(|text| json.contains(text))
        }
    };
    let (to_broker, to_client) = (Direction::ToBroker, Direction::ToClient);
    let needed: &[(&str, Direction, &str, &[&str])] = &[
        ("a segment was shared by its buckets", to_broker, "SUBSCRIBE", &["Key_Shared", "hashRanges"]),
        ("a consumer waited for a segment's owner", to_client, "ERROR", &["ConsumerBusy"]),
        ("an assignment changed", to_client, "SCALABLE_TOPIC_ASSIGNMENT_UPDATE", &[]),
        ("a producer met the end of its segment", to_client, "CLOSE_PRODUCER", &[]),
        ("a segment was read to its end", to_client, "REACHED_END_OF_TOPIC", &[]),
        ("a consumer took its leave", to_broker, "SCALABLE_TOPIC_UNSUBSCRIBE", &[]),
        ("a message was given back", to_broker, "REDELIVER_UNACKNOWLEDGED_MESSAGES", &[]),
    ];
    for (what, direction, name, with) in needed {
        if !journal.iter().any(|record| frame(record, *direction, name, with)) {
            bail!("it never happened that {what}, so that the run proves nothing of it");
        }
    }
    Ok(())
}
