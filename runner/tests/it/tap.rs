//! The tap: a client behind it meets the same brokers, and nothing goes past it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::http::Method;
use sim_broker::core::journal::{Direction, Event, Record};
use sim_broker::net::{TcpOptions, Tls, TlsOptions};
use stc_client::{PulsarClient, StringSchema};
use stc_runner::feature::Scenario;
use stc_runner::suite::Suite;
use stc_runner::tap::{Options, Tap, TapError, Trust};
use stc_runner::target::admin::Admin;
use stc_runner::transcript;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::elsewhere::{all_pass, cluster, cluster_at};

fn free() -> Options {
    Options::new("127.0.0.1:0".parse::<SocketAddr>().unwrap())
}

fn tap(runtime: &tokio::runtime::Runtime, url: &str, options: Options) -> (Tap, UnboundedReceiver<Record>) {
    let (sink, tapped) = mpsc::unbounded_channel();
    let _in_runtime = runtime.enter();
    (Tap::start(url, options, sink).unwrap(), tapped)
}

fn all(mut tapped: UnboundedReceiver<Record>) -> Vec<Record> {
    std::iter::from_fn(|| tapped.try_recv().ok()).collect()
}

fn opened(records: &[Record]) -> Vec<bool> {
    let tls = records.iter().filter_map(|r| match r.event {
        Event::TcpOpen { tls, .. } => Some(tls),
        _ => None,
    });
    tls.collect()
}

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
    let (tap, tapped) = tap(&runtime, &cluster.service_url(), free());
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    let portable = |s: &&Scenario| s.needs.is_empty() && s.checklist.iter().any(|c| c == "C2" || c == "C4");
    let scenarios: Vec<&Scenario> = suite.scenarios.iter().filter(portable).collect();
    assert!(scenarios.len() > 10);
    all_pass(&scenarios, tap.service_url().to_owned(), cluster.admin_urls().remove(0));
    runtime.block_on(cluster.shutdown());
    let said = cluster.control().journal();
    let seen = all(tapped);
    let sends =
        |records: &[Record]| frames(records, Direction::ToBroker).iter().filter(|n| **n == "SEND").count();
    assert!(sends(&seen) > 100, "only {} SEND", sends(&seen));
    assert_eq!(sends(&seen), sends(&said), "a SEND went past the tap");
    assert_eq!(opened(&seen).len(), opened(&said).len(), "a connection went past the tap");
    let brokers: BTreeSet<_> = seen.iter().filter_map(|r| r.broker).collect();
    assert_eq!(brokers.len(), 3, "lookups and layouts lead to all brokers");
    // The journal's form survives a file.
    for record in &seen {
        let text = record.to_json().to_string();
        assert_eq!(transcript::row(serde_json::from_str(&text).unwrap()), transcript::record(record));
    }
}

/// A client that trusts `trust` sends to a topic of four segments and receives what it sent.
async fn works(url: &str, trust: Option<&str>) {
    let mut client = PulsarClient::builder().service_url(url);
    if let Some(pem) = trust {
        client = client.tls(stc_client::TlsOptions::trust_pem(pem).unwrap());
    }
    let client = client.build().unwrap();
    let consumer = client
        .queue_consumer(StringSchema)
        .topic("topic://public/default/tapped")
        .subscription("s")
        .subscribe()
        .await
        .unwrap();
    let producer =
        client.producer(StringSchema).topic("topic://public/default/tapped").create().await.unwrap();
    for n in 0..40 {
        producer.message().key(format!("k{n}")).value(n.to_string()).send_async();
    }
    producer.close().await.unwrap();
    let mut received = BTreeSet::new();
    while received.len() < 40 {
        for message in consumer.receive_multi(40, Duration::from_secs(60)).await.unwrap() {
            consumer.acknowledge(message.id()).await.unwrap();
            received.insert(message.value().unwrap().clone());
        }
    }
    client.close().await.unwrap();
}

#[test]
fn either_side_may_speak_tls_and_nothing_goes_past_the_tap() {
    let (upstream, own) = (Tls::self_signed(3, None).unwrap(), Tls::self_signed(1, None).unwrap());
    for (client_tls, broker_tls) in [(false, true), (true, true), (true, false)] {
        let tls = Some(TlsOptions::new(upstream.clone()));
        let (runtime, cluster) = cluster_at(TcpOptions { tls, ..TcpOptions::default() });
        let url = if broker_tls { cluster.broker_urls_tls() } else { cluster.broker_urls() }.remove(0);
        let (tap, tapped) = tap(
            &runtime,
            &url,
            Options {
                certificate: client_tls.then(|| own.clone()),
                trust: Some(Trust::pem(upstream.trust_pem()).unwrap()),
                ..free()
            },
        );
        assert_eq!(tap.service_url().starts_with("pulsar+ssl://"), client_tls);
        let admin = Admin::http(cluster.admin_urls().remove(0), None);
        runtime.block_on(async {
            let path = "/admin/v2/scalable/public/default/tapped?numInitialSegments=4";
            admin.must(Method::PUT, path, None).await.unwrap();
            works(tap.service_url(), client_tls.then(|| own.trust_pem())).await;
            cluster.shutdown().await;
        });
        let (seen, said) = (all(tapped), cluster.control().journal());
        let way = format!("client by TLS: {client_tls}, broker by TLS: {broker_tls}");
        for direction in [Direction::ToBroker, Direction::ToClient] {
            let [seen, said] = [&seen, &said].map(|records| {
                frames(records, direction).into_iter().filter(|n| *n == "SEND" || *n == "MESSAGE").count()
            });
            assert!(seen > 0, "{way}");
            assert_eq!(seen, said, "{way}: a message went past the tap");
        }
        assert_eq!(opened(&seen).len(), opened(&said).len(), "{way}: a connection went past the tap");
        assert!(opened(&seen).iter().all(|tls| *tls == client_tls), "{way}");
        assert!(opened(&said).iter().all(|tls| *tls == broker_tls), "{way}");
        let brokers: BTreeSet<_> = seen.iter().filter_map(|r| r.broker).collect();
        assert!(brokers.len() > 1, "{way}: only {brokers:?}");
    }
}

#[test]
fn who_is_not_trusted_is_told_in_the_journal() {
    let tls = Some(TlsOptions::new(Tls::self_signed(3, None).unwrap()));
    let (runtime, cluster) = cluster_at(TcpOptions { tls, ..TcpOptions::default() });
    let url = cluster.broker_urls_tls().remove(0);
    let (sink, _records) = mpsc::unbounded_channel();
    let refused = Tap::start(&url, free(), sink).map(drop);
    assert!(matches!(refused, Err(TapError::Untrusted(_))), "{refused:?}");
    let stranger = Tls::self_signed(3, None).unwrap();
    let trust = Some(Trust::pem(stranger.trust_pem()).unwrap());
    let (tap, mut tapped) = tap(&runtime, &url, Options { trust, ..free() });
    runtime.block_on(async {
        let address = tap.service_url().strip_prefix("pulsar://").unwrap().to_owned();
        let _client = tokio::net::TcpStream::connect(address).await.unwrap();
        loop {
            let record = tapped.recv().await.unwrap();
            if let Event::TcpClose { side, reason } = record.event {
                assert_eq!(side, "broker");
                assert!(reason.contains("the TLS handshake failed"), "{reason}");
                break;
            }
        }
        cluster.shutdown().await;
    });
}

#[test]
fn brokers_are_reached_elsewhere_and_told_by_another_name() {
    let (runtime, cluster) = cluster();
    let first = cluster.service_url();
    // The second broker's own name leads nowhere; what it stands for is known.
    let second = cluster.broker_urls().remove(1);
    let real = second.strip_prefix("pulsar://").unwrap().to_owned();
    let reach = BTreeMap::from([("broker.invalid:6650".to_owned(), real.clone())]);
    let url = format!("{first},broker.invalid:6650");
    let options = Options { reach, advertise: Some("localhost".to_owned()), ..free() };
    let (tap, tapped) = tap(&runtime, &url, options);
    let admin = Admin::http(cluster.admin_urls().remove(0), None);
    runtime.block_on(async {
        let path = "/admin/v2/scalable/public/default/tapped?numInitialSegments=4";
        admin.must(Method::PUT, path, None).await.unwrap();
        let (one, two) = tap.service_url().split_once(',').unwrap();
        assert!(one.starts_with("pulsar://localhost:") && two.starts_with("localhost:"), "{one} {two}");
        works(tap.service_url(), None).await;
        works(&format!("pulsar://{two}"), None).await;
        cluster.shutdown().await;
    });
    let notes: Vec<String> = all(tapped)
        .into_iter()
        .filter_map(|r| match r.event {
            Event::Mark { text } => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(notes.len(), 3, "each broker has one port, by whatever name it goes: {notes:?}");
    assert!(notes[1].contains(&format!("broker 1 is {real}; clients meet it at localhost:")), "{notes:?}");
}
