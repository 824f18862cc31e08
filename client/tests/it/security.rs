//! TLS and credentials: what is trusted, which addresses are used, who is let in and what they may do.

use std::sync::{Arc, Mutex};

use sim_broker::{
    SimCluster,
    core::{
        Action, BrokerId, ClusterConfig, Profile, Security, cluster::control::DropSelector, journal::Event,
    },
    net::Tls,
};
use stc_client::{
    AccessMode, Category, ClientBuilder, Error, PulsarClient, StringSchema, TlsOptions, TokenAuthentication,
};

use crate::support::{Bench, TOPIC, drain, soon, values};

const NAMESPACE: &str = "public/default";

/// A cluster in memory that speaks TLS too.
fn with_tls() -> (Bench, String) {
    let mut config = ClusterConfig::new(Profile::built_in("spec-1.0").unwrap());
    config.seed = 42;
    let tls = Tls::self_signed(config.brokers, None).unwrap();
    let trust = tls.trust_pem().to_owned();
    let cluster = SimCluster::in_memory_with_tls(config, tls);
    let control = cluster.control();
    (Bench { cluster, control }, trust)
}

fn over_tls(bench: &Bench, trust: &str) -> ClientBuilder {
    let url = bench.cluster.broker_urls_tls().remove(0);
    bench.builder().service_url(url).tls(TlsOptions::trust_pem(trust).unwrap())
}

/// A cluster with a token for each name: alice produces, bob consumes, nobody may do nothing.
fn secured() -> Bench {
    let names = ["admin", "alice", "bob", "nobody"];
    let security = Security::with_tokens(names.map(|name| (format!("{name}-token"), name)))
        .superuser("admin")
        .grant(NAMESPACE, "alice", [Action::Produce])
        .grant(NAMESPACE, "bob", [Action::Consume]);
    Bench::with(|config| config.security = Some(security))
}

fn as_user(bench: &Bench, name: &str) -> PulsarClient {
    let token = TokenAuthentication::new(format!("{name}-token"));
    bench.builder().authentication(token).build().unwrap()
}

async fn producing(client: &PulsarClient) -> Result<(), Error> {
    let producer = client.producer(StringSchema).topic(TOPIC).create().await?;
    producer.message().value("a".to_owned()).send().await.map(drop)
}

async fn subscribing(client: &PulsarClient) -> Result<(), Error> {
    client.queue_consumer(StringSchema).topic(TOPIC).subscription("s").subscribe().await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn everything_goes_over_tls_when_the_service_url_says_so() {
    let (bench, trust) = with_tls();
    bench.create(4);
    let client = over_tls(&bench, &trust).build().unwrap();
    let consumer = bench.consumer(&client, TOPIC).await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    let send = async |from: u32| {
        for n in from..from + 20 {
            soon(producer.message().key(format!("key-{n}")).value(n.to_string()).send()).await.unwrap();
        }
    };
    send(0).await;
    bench.split(0);
    send(20).await;
    assert!(bench.control.drop_connections(DropSelector::default()) > 0);
    send(40).await;
    // The broker names where its segments went.
    for segment in bench.control.current_dag(TOPIC).unwrap().segments {
        for broker in 0..2 {
            bench.control.move_segment(TOPIC, segment.segment_id, BrokerId(broker)).unwrap();
        }
    }
    let closes = bench.frames("CLOSE_PRODUCER");
    assert!(closes.iter().any(|close| close["assignedBrokerServiceUrlTls"].is_string()), "{closes:?}");
    send(60).await;
    let mut received = values(&drain(&consumer).await);
    received.sort_by_key(|value| value.parse::<u32>().unwrap());
    assert_eq!(received, (0..80).map(|n| n.to_string()).collect::<Vec<_>>());
    let journal = bench.control.journal();
    let opened: Vec<_> = journal
        .iter()
        .filter_map(|record| match record.event {
            Event::TcpOpen { tls, .. } => Some(tls),
            _ => None,
        })
        .collect();
    assert!(opened.len() > 2 && opened.iter().all(|tls| *tls), "{opened:?}");
    client.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_not_trusted_is_not_talked_to() {
    let (bench, _) = with_tls();
    bench.create(1);
    let other = Tls::self_signed(2, None).unwrap();
    let client = over_tls(&bench, other.trust_pem()).build().unwrap();
    let before = bench.cluster.now();
    let error = soon(producing(&client)).await.unwrap_err();
    assert_eq!(error.category(), Category::NotConnected);
    assert!(error.message().contains("not trusted"), "{error}");
    assert!(bench.cluster.now() - before < 1_000, "trying again cannot help");
    assert_eq!(bench.count("CONNECT"), 0);
}

#[test]
fn tls_without_anything_to_trust_is_a_configuration_error() {
    let error = PulsarClient::builder().service_url("pulsar+ssl://a").build().unwrap_err();
    assert_eq!(error.category(), Category::InvalidConfiguration);
    for pem in ["", "no pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        assert_eq!(TlsOptions::trust_pem(pem).unwrap_err().category(), Category::InvalidConfiguration);
    }
    let own = Tls::self_signed(1, None).unwrap();
    let options = TlsOptions::trust_pem(own.trust_pem()).unwrap();
    assert!(options.identity_pem(own.trust_pem(), "no key").is_err());
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_wrong_or_missing_are_an_authentication_error() {
    let bench = secured();
    let wrong = bench.builder().authentication(TokenAuthentication::new("wrong")).build().unwrap();
    let fails = TokenAuthentication::supplied(|| TlsOptions::trust_pem("").map(|_| String::new()));
    let broken = bench.builder().authentication(fails).build().unwrap();
    for (client, category) in [
        (wrong, Category::Authentication),
        (bench.client(), Category::Authentication),
        (broken, Category::InvalidConfiguration),
    ] {
        let before = bench.cluster.now();
        assert_eq!(soon(producing(&client)).await.unwrap_err().category(), category);
        assert_eq!(soon(subscribing(&client)).await.unwrap_err().category(), category);
        assert!(bench.cluster.now() - before < 1_000, "trying again cannot help");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_allowed_is_an_authorization_error() {
    let bench = secured();
    bench.create(2);
    for (name, may_produce, may_consume) in
        [("admin", true, true), ("alice", true, false), ("bob", false, true), ("nobody", false, false)]
    {
        let client = as_user(&bench, name);
        let expected = |may| if may { Ok(()) } else { Err(Category::Authorization) };
        let produced = soon(producing(&client)).await.map_err(|error| error.category());
        assert_eq!(produced, expected(may_produce), "{name}");
        let subscribed = soon(subscribing(&client)).await.map_err(|error| error.category());
        assert_eq!(subscribed, expected(may_consume), "{name}");
        if !may_produce {
            let exclusive = client.producer(StringSchema).topic(TOPIC).access_mode(AccessMode::Exclusive);
            let refused = soon(exclusive.create()).await.unwrap_err();
            assert_eq!(refused.category(), Category::Authorization, "{name}");
        }
        client.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_asks_gets_fresh_credentials() {
    let bench = secured();
    bench.create(1);
    let token = Arc::new(Mutex::new("alice-token".to_owned()));
    let current = token.clone();
    let supplier = TokenAuthentication::supplied(move || Ok(current.lock().unwrap().clone()));
    let client = bench.builder().authentication(supplier).build().unwrap();
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().value("1".to_owned()).send().await.unwrap();
    bench.control.allow_token("alice-new", "alice");
    *token.lock().unwrap() = "alice-new".to_owned();
    assert!(bench.control.expire_token("alice-token"));
    producer.message().value("2".to_owned()).send().await.unwrap();
    // Far longer than the broker waits for the answer.
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    producer.message().value("3".to_owned()).send().await.unwrap();
    assert!(bench.count("AUTH_CHALLENGE") > 0);
    assert_eq!(bench.count("AUTH_CHALLENGE"), bench.count("AUTH_RESPONSE"));
    let journal = bench.control.journal();
    let closed = journal.iter().filter(|record| matches!(record.event, Event::TcpClose { .. })).count();
    assert_eq!(closed, 0, "no connection was lost over it");
    client.close().await.unwrap();
}

#[test]
fn secrets_are_not_shown() {
    let token = TokenAuthentication::new("secret");
    assert!(!format!("{token:?}").contains("secret"));
}
