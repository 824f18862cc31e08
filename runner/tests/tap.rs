//! `stc tap` as a process: it ends when it is asked to, and what it kept is drawn.
// Helpers of tests may panic as tests may; clippy exempts test functions only.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sim_broker::core::{ClusterConfig, Profile};
use sim_broker::{SimCluster, TcpOptions};
use stc_client::{PulsarClient, StringSchema};

const STC: &str = env!("CARGO_BIN_EXE_stc");

/// Starts a tap, and waits until it says where clients connect.
fn tap(broker: &str, journal: &Path, report: &Path) -> (Child, String) {
    let mut command = Command::new(STC);
    command.args(["tap", "--broker", broker, "--listen", "127.0.0.1:0", "--journal"]).arg(journal);
    command.arg("--report").arg(report).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.strip_prefix("connect the client to ").unwrap().split(';').next().unwrap().to_owned();
    (child, url)
}

/// The JSON of the page's first exchange, which has no tags in it.
fn exchange(page: &str) -> &str {
    let (_, rest) = page.split_once("id=\"w-0-0\"").unwrap();
    rest.split_once('>').unwrap().1.split_once('<').unwrap().0
}

#[test]
fn it_draws_what_it_kept_when_it_is_asked_to_end() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let config = ClusterConfig::new(Profile::built_in("spec-1.0").unwrap());
    let cluster = runtime.block_on(SimCluster::tcp(config, TcpOptions::default())).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (journal, report) = (dir.path().join("journal.jsonl"), dir.path().join("page.html"));
    let (mut child, url) = tap(&cluster.service_url(), &journal, &report);
    runtime.block_on(async {
        let client = PulsarClient::builder().service_url(url).build().unwrap();
        let topic = client.producer(StringSchema).topic("topic://public/default/tapped");
        let producer = topic.create().await.unwrap();
        producer.message().key("order-17").value("hello".to_owned()).send().await.unwrap();
        client.close().await.unwrap();
        cluster.shutdown().await;
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let drawn = std::fs::read_to_string(&report).unwrap();
    for what in
        ["\"name\":\"SEND\"", "\"name\":\"SEND_RECEIPT\"", "order-17", "clients meet it at 127.0.0.1:"]
    {
        assert!(exchange(&drawn).contains(what), "{what}");
    }
    // The journal alone makes the same diagram.
    let again = dir.path().join("again.html");
    let status = Command::new(STC).args(["report", "--html"]).args([&again, &journal]).status().unwrap();
    assert!(status.success());
    assert_eq!(exchange(&std::fs::read_to_string(again).unwrap()), exchange(&drawn));
}
