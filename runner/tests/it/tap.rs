//! The tap: a client behind it meets the same brokers, and nothing goes past it.

use std::net::SocketAddr;
use std::path::Path;

use sim_broker::core::journal::{Direction, Event, Record};
use stc_runner::feature::Scenario;
use stc_runner::suite::Suite;
use stc_runner::tap::Tap;
use stc_runner::transcript;
use tokio::sync::mpsc;

use crate::elsewhere::{all_pass, cluster};

fn frames(records: &[Record], direction: Direction) -> Vec<&'static str> {
    let mut names: Vec<&str> = records
        .iter()
        .filter(|r| r.direction == direction)
        .filter_map(|r| r.frame().map(|f| f.command.name()))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_client_behind_the_tap_meets_the_same_brokers_and_every_frame_is_recorded() {
    let (runtime, cluster) = cluster();
    let (sink, mut tapped) = mpsc::unbounded_channel();
    let upstream = cluster.service_url().strip_prefix("pulsar://").unwrap().to_owned();
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let (_tap, address) = {
        let _in_runtime = runtime.enter();
        Tap::start(&upstream, free, sink).unwrap()
    };
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    let portable = |s: &&Scenario| s.needs.is_empty() && s.checklist.iter().any(|c| c == "C2" || c == "C4");
    let scenarios: Vec<&Scenario> = suite.scenarios.iter().filter(portable).collect();
    assert!(scenarios.len() > 10);
    all_pass(&scenarios, format!("pulsar://{address}"), cluster.admin_urls().remove(0));
    runtime.block_on(cluster.shutdown());
    let said = cluster.control().journal();
    let mut seen = Vec::new();
    while let Ok(record) = tapped.try_recv() {
        seen.push(record);
    }
    let sends =
        |records: &[Record]| frames(records, Direction::ToBroker).iter().filter(|n| **n == "SEND").count();
    assert!(sends(&seen) > 100, "only {} SEND", sends(&seen));
    assert_eq!(sends(&seen), sends(&said), "a SEND went past the tap");
    let connections =
        |records: &[Record]| records.iter().filter(|r| matches!(r.event, Event::TcpOpen { .. })).count();
    assert_eq!(connections(&seen), connections(&said), "a connection went past the tap");
    let brokers: std::collections::BTreeSet<_> = seen.iter().filter_map(|r| r.broker).collect();
    assert_eq!(brokers.len(), 3, "lookups and layouts lead to all brokers");
    // The journal's form survives a file.
    for record in &seen {
        let text = record.to_json().to_string();
        assert_eq!(transcript::row(serde_json::from_str(&text).unwrap()), transcript::record(record));
    }
}
