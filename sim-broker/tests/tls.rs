//! TLS, over TCP and in memory: the broker ports, the admin ports, the addresses that are handed out.

// Helpers are no tests to clippy; a panic is how they fail one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use bytes::BytesMut;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use sim_broker::{
    SimCluster, TcpOptions,
    core::{BrokerId, ClusterConfig, Profile, Security, journal::Event},
    net::{Tls, TlsError, TlsOptions},
};
use stc_proto::{Command, Decoder, Frame, TopicName, pulsar::*};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

const TOPIC: &str = "topic://public/default/t";

fn config() -> ClusterConfig {
    ClusterConfig::new(Profile::built_in("spec-1.0").unwrap())
}

/// A client's side that trusts these authorities.
fn connector(trust_pem: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trust_pem.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// The host, and host and port, of a URL.
fn place(url: &str) -> (ServerName<'static>, String) {
    let (_, address) = url.split_once("://").unwrap();
    let (host, _) = address.rsplit_once(':').unwrap();
    (ServerName::try_from(host.to_owned()).unwrap(), address.to_owned())
}

async fn dial(url: &str, trust_pem: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let (name, address) = place(url);
    connector(trust_pem).connect(name, TcpStream::connect(address).await?).await
}

async fn tcp(config: ClusterConfig) -> SimCluster {
    let certificate = Tls::self_signed(config.brokers, None).unwrap();
    let tls = Some(TlsOptions::new(certificate));
    SimCluster::tcp(config, TcpOptions { tls, ..Default::default() }).await.unwrap()
}

/// Frames over any stream.
struct Client<S> {
    stream: S,
    buffer: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    async fn connect(stream: S, token: Option<&str>) -> (Self, Command) {
        let mut client = Client { stream, buffer: BytesMut::new() };
        let connect = CommandConnect {
            client_version: "test".into(),
            auth_method_name: token.map(|_| "token".into()),
            auth_data: token.map(|t| t.as_bytes().to_vec().into()),
            ..Default::default()
        };
        let answer = client.ask(connect).await;
        (client, answer)
    }

    async fn ask(&mut self, command: impl Into<Frame>) -> Command {
        self.stream.write_all(&command.into().to_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
        self.receive().await
    }

    async fn receive(&mut self) -> Command {
        loop {
            if let Some(frame) = Decoder::default().decode(&mut self.buffer).unwrap() {
                return frame.command;
            }
            assert_ne!(self.stream.read_buf(&mut self.buffer).await.unwrap(), 0, "the broker closed");
        }
    }
}

#[tokio::test]
async fn a_client_with_a_token_works_over_tls() {
    let security = Security::with_tokens([("secret", "alice")]);
    let cluster = tcp(ClusterConfig { security: Some(security), ..config() }).await;
    let trust = cluster.tls().unwrap().trust_pem().to_owned();
    let urls = cluster.broker_urls_tls();
    assert_eq!(urls.len(), 3);

    let (_, answer) = Client::connect(dial(&urls[0], &trust).await.unwrap(), Some("wrong")).await;
    assert!(matches!(answer, Command::Error(e) if e.error() == ServerError::AuthenticationError));

    let (mut client, answer) = Client::connect(dial(&urls[0], &trust).await.unwrap(), Some("secret")).await;
    assert!(matches!(answer, Command::Connected(_)));
    let lookup = CommandLookupTopic { topic: TOPIC.into(), request_id: 1, ..Default::default() };
    let Command::LookupResponse(found) = client.ask(lookup).await else { panic!("no answer to LOOKUP") };
    let (plain, tls) = (found.broker_service_url.unwrap(), found.broker_service_url_tls.unwrap());
    let owner = cluster.broker_urls().iter().position(|url| *url == plain).unwrap();
    assert_eq!(tls, urls[owner]);
    assert!(tls.starts_with("pulsar+ssl://127.0.0.1:"), "{tls}");
    let (_, answer) = Client::connect(dial(&tls, &trust).await.unwrap(), Some("secret")).await;
    assert!(matches!(answer, Command::Connected(_)));

    let opened = |tls| {
        let is = |e: &Event| matches!(e, Event::TcpOpen { tls: t, .. } if *t == tls);
        cluster.control().journal().iter().filter(|r| is(&r.event)).count()
    };
    assert_eq!((opened(true), opened(false)), (3, 0));
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_killed_broker_refuses_tls_too_and_comes_back() {
    let cluster = tcp(config()).await;
    let trust = cluster.tls().unwrap().trust_pem().to_owned();
    let url = cluster.broker_urls_tls().swap_remove(1);
    let (mut client, _) = Client::connect(dial(&url, &trust).await.unwrap(), None).await;
    let control = cluster.control();
    control.kill_broker(BrokerId(1)).unwrap();
    assert_eq!(client.stream.read(&mut [0; 16]).await.unwrap_or(0), 0, "the connection ended");
    let refused = |e: std::io::Error| e.kind() == std::io::ErrorKind::ConnectionRefused;
    while !dial(&url, &trust).await.err().is_some_and(refused) {
        tokio::task::yield_now().await;
    }
    control.revive_broker(BrokerId(1)).unwrap();
    while dial(&url, &trust).await.is_err() {
        tokio::task::yield_now().await;
    }
    cluster.shutdown().await;
}

#[tokio::test]
async fn who_does_not_trust_or_does_not_speak_tls_is_closed_and_others_go_on() {
    let cluster = tcp(config()).await;
    let url = cluster.broker_urls_tls().swap_remove(0);
    let stranger = Tls::self_signed(1, None).unwrap();
    let error = dial(&url, stranger.trust_pem()).await.unwrap_err();
    assert!(error.to_string().starts_with("invalid peer certificate"), "{error}");

    let mut plain = TcpStream::connect(place(&url).1).await.unwrap();
    plain.write_all(&Frame::from(CommandConnect::default()).to_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // An alert, then the end; or a reset.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(answer.len() < 16, "{answer:?}");

    let control = cluster.control();
    for _ in 0..2 {
        let failed = |e: &Event| matches!(e, Event::TcpClose { reason, .. } if reason.contains("handshake"));
        let first = control.wait_for(|r| failed(&r.event)).await;
        control.wait_for_from(first.n + 1, |r| failed(&r.event)).await;
    }
    let trust = cluster.tls().unwrap().trust_pem();
    let (_, answer) = Client::connect(dial(&url, trust).await.unwrap(), None).await;
    assert!(matches!(answer, Command::Connected(_)));
    cluster.shutdown().await;
}

#[tokio::test]
async fn the_admin_rest_is_served_over_tls_and_a_stuck_handshake_holds_up_nobody() {
    let cluster = tcp(config()).await;
    let trust = cluster.tls().unwrap().trust_pem().to_owned();
    let url = cluster.admin_urls_tls().swap_remove(0);
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let stuck = TcpStream::connect(place(&url).1).await.unwrap();
    let mut stream = dial(&url, &trust).await.unwrap();
    let request = "GET /admin/v2/brokers/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text).await;
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("ok"), "{text}");
    drop(stuck);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn in_memory_layouts_closes_and_coordinators_carry_tls_addresses() {
    let cluster = SimCluster::in_memory_with_tls(config(), Tls::self_signed(3, None).unwrap());
    let trust = cluster.tls().unwrap().trust_pem().to_owned();
    let topic = TopicName::parse(TOPIC).unwrap();
    cluster.with(|c, now| c.create_scalable_topic(&topic, 2, Default::default(), now)).unwrap();
    let dial = async |url: &str| {
        let stream = connector(&trust).connect(place(url).0, cluster.connect(url).unwrap()).await.unwrap();
        Client::connect(stream, None).await.0
    };
    let url = cluster.broker_urls_tls().swap_remove(0);
    assert_eq!(url, "pulsar+ssl://broker-0:6651");
    let mut client = dial(&url).await;

    let watch = CommandScalableTopicLookup { session_id: 1, topic: TOPIC.into(), create_if_missing: None };
    let Command::ScalableTopicUpdate(update) = client.ask(watch).await else { panic!("no layout") };
    let dag = update.dag.unwrap();
    let tls_of = |plain: &str| plain.replace("pulsar://", "pulsar+ssl://").replace(":6650", ":6651");
    assert_eq!(dag.segment_brokers.len(), 2);
    for broker in &dag.segment_brokers {
        assert_eq!(broker.broker_url_tls(), tls_of(&broker.broker_url));
    }
    assert_eq!(dag.controller_broker_url_tls(), tls_of(dag.controller_broker_url()));

    let Command::WatchTcAssignmentsUpdate(update) =
        client.ask(CommandWatchTcAssignments { watch_id: 1 }).await
    else {
        panic!("no coordinators")
    };
    for assignment in update.snapshot.unwrap().assignments {
        assert_eq!(assignment.broker_service_url_tls(), tls_of(assignment.broker_service_url()));
    }

    // A segment moves: its producer and its consumer hear of the new address, for TLS too.
    let segment = &dag.segment_brokers[0];
    let mut client = dial(segment.broker_url_tls()).await;
    let name = "segment://public/default/t/0000-7fff-0";
    let produce = CommandProducer { topic: name.into(), producer_id: 1, request_id: 1, ..Default::default() };
    assert!(matches!(client.ask(produce).await, Command::ProducerSuccess(_)));
    let subscribe = CommandSubscribe {
        topic: name.into(),
        subscription: "s".into(),
        sub_type: command_subscribe::SubType::Shared as i32,
        consumer_id: 1,
        request_id: 2,
        ..Default::default()
    };
    assert!(matches!(client.ask(subscribe).await, Command::Success(_)));
    let urls = cluster.broker_urls();
    let to = (0..3u32).find(|i| urls[*i as usize] != segment.broker_url).unwrap();
    cluster.control().move_segment(TOPIC, 0, BrokerId(to)).unwrap();
    let Command::CloseProducer(close) = client.receive().await else { panic!("no CLOSE_PRODUCER") };
    assert_eq!(close.assigned_broker_service_url(), urls[to as usize]);
    assert_eq!(close.assigned_broker_service_url_tls(), tls_of(&urls[to as usize]));
    let Command::CloseConsumer(close) = client.receive().await else { panic!("no CLOSE_CONSUMER") };
    assert_eq!(close.assigned_broker_service_url_tls(), tls_of(&urls[to as usize]));
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_handshake_that_never_comes_ends_after_30_s_and_shutdown_ends_others() {
    let cluster = SimCluster::in_memory_with_tls(config(), Tls::self_signed(3, None).unwrap());
    let mut link = cluster.connect("pulsar+ssl://broker-1:6651").unwrap();
    let start = tokio::time::Instant::now();
    assert_eq!(link.read(&mut [0; 16]).await.unwrap(), 0);
    assert_eq!(start.elapsed().as_secs(), 30);
    let mut link = cluster.connect("broker-1:6651").unwrap();
    cluster.shutdown().await;
    assert_eq!(link.read(&mut [0; 16]).await.unwrap(), 0);
}

#[test]
fn certificates_that_cannot_be_used_are_told_apart() {
    let pem = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    for (certificate, key, wanted) in
        [("", "", "certificates"), ("nonsense", "", "certificates"), (pem, "", "")]
    {
        let error = Tls::from_pem(certificate, key).unwrap_err();
        assert!(matches!(&error, TlsError::Pem { .. }) && error.to_string().contains(wanted), "{error}");
    }
    let trust = Tls::self_signed(1, None).unwrap().trust_pem().to_owned();
    let error = Tls::from_pem(&trust, "").unwrap_err();
    assert!(error.to_string().contains("private key"), "{error}");
}

/// The command, running, with what it printed when it was ready.
fn start(arguments: &[&str]) -> (std::process::Child, serde_json::Value) {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_sim-broker"))
        .args(["--port", "0", "--admin-port", "0", "--json", "--exit-with-parent"])
        .args(["--tls", "--tls-port", "0", "--tls-admin-port", "0"])
        .args(arguments)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

fn end(mut child: std::process::Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn the_command_serves_tls_and_tokens_and_tells_what_to_trust() {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/sim-broker-trust.pem");
    let (child, ready) = start(&["--tls-trust", file, "--token", "alice=se=cret"]);
    let trust = std::fs::read_to_string(file).unwrap();
    assert_eq!(ready["tls_trust"].as_str().unwrap(), trust);
    assert_eq!(ready["broker_urls_tls"].as_array().unwrap().len(), 3);
    assert!(ready["admin_url_tls"].as_str().unwrap().starts_with("https://"));
    let url = ready["service_url_tls"].as_str().unwrap();
    for (token, accepted) in [("se=cret", true), ("secret", false)] {
        let (_, answer) = Client::connect(dial(url, &trust).await.unwrap(), Some(token)).await;
        assert_eq!(matches!(answer, Command::Connected(_)), accepted, "{answer:?}");
    }
    end(child);
}

#[tokio::test]
async fn the_command_takes_a_certificate_from_files() {
    let (cert, key) =
        (concat!(env!("CARGO_TARGET_TMPDIR"), "/cert.pem"), concat!(env!("CARGO_TARGET_TMPDIR"), "/key.pem"));
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(cert, made.cert.pem()).unwrap();
    std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
    let (child, ready) = start(&["--tls-cert", cert, "--tls-key", key]);
    let url = ready["service_url_tls"].as_str().unwrap();
    let (_, answer) = Client::connect(dial(url, &made.cert.pem()).await.unwrap(), None).await;
    assert!(matches!(answer, Command::Connected(_)));
    end(child);
}

#[test]
fn options_that_make_no_sense_are_refused_with_a_reason() {
    for (arguments, wanted) in [
        (&["--token", "alice"][..], "alice=secret"),
        (&["--token", "=secret"], "alice=secret"),
        (&["--token", "alice=s", "--token", "bob=s"], "share a token"),
        (&["--superuser", "admin"], "--token"),
        (&["--token", "alice=s", "--superuser", "admin"], "admin has no --token"),
        (&["--token", "a=s", "--grant", "a=public:produce"], "public/default:produce,consume"),
        (&["--token", "a=s", "--grant", "a=public/default:fly"], "neither produce nor consume"),
        (&["--token", "a=s", "--grant", "b=public/default:produce"], "b has no --token"),
        (&["--tls-port", "1"], "--tls"),
        (&["--tls", "--tls-cert", "missing.pem"], "--tls-key"),
        (&["--tls", "--tls-cert", "missing.pem", "--tls-key", "missing.pem"], "cannot read missing.pem"),
        (&["--tls", "--tls-cert", "Cargo.toml", "--tls-key", "Cargo.toml"], "PEM"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_sim-broker"))
            .args(arguments)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(wanted), "{arguments:?}: {text}");
    }
}
