//! The same cluster over TCP, and the `sim-broker` command.

// Helpers are no tests to clippy; a panic is how they fail one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command as Process, Stdio},
};

use bytes::BytesMut;
use sim_broker::{
    SimCluster, TcpOptions,
    core::{BrokerId, ClusterConfig, Profile},
};
use stc_proto::{Command, Decoder, Frame, pulsar::*};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

fn config() -> ClusterConfig {
    ClusterConfig::new(Profile::built_in("spec-1.0").unwrap())
}

async fn handshake(url: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(url.strip_prefix("pulsar://").unwrap()).await?;
    let connect = CommandConnect { client_version: "test".into(), ..Default::default() };
    stream.write_all(&Frame::from(connect).to_bytes()).await?;
    let mut buffer = BytesMut::new();
    let frame = loop {
        match Decoder::default().decode(&mut buffer).unwrap() {
            Some(frame) => break frame,
            None if stream.read_buf(&mut buffer).await? == 0 => {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            None => {}
        }
    };
    assert!(matches!(frame.command, Command::Connected(_)));
    Ok(stream)
}

#[tokio::test]
async fn every_broker_listens_and_a_killed_one_refuses_until_it_is_back() {
    let cluster = SimCluster::tcp(config(), TcpOptions::default()).await.unwrap();
    for url in cluster.broker_urls() {
        handshake(&url).await.unwrap();
    }
    let url = cluster.broker_urls().swap_remove(1);
    let mut attached = handshake(&url).await.unwrap();
    let control = cluster.control();
    control.kill_broker(BrokerId(1)).unwrap();
    assert_eq!(attached.read(&mut [0; 16]).await.unwrap_or(0), 0, "the connection ended");
    // The port closes a moment after the call; connections in between are dropped.
    while handshake(&url).await.err().is_none_or(|e| e.kind() != std::io::ErrorKind::ConnectionRefused) {
        tokio::task::yield_now().await;
    }
    control.revive_broker(BrokerId(1)).unwrap();
    while handshake(&url).await.is_err() {
        tokio::task::yield_now().await;
    }
    cluster.shutdown().await;
    assert!(handshake(&url).await.is_err());
}

#[tokio::test]
async fn a_client_that_closed_its_own_half_gets_the_answers_to_what_it_sent() {
    let cluster = SimCluster::tcp(config(), TcpOptions::default()).await.unwrap();
    for _ in 0..20 {
        let mut stream = handshake(&cluster.broker_urls()[0]).await.unwrap();
        let pings: Vec<u8> = (0..20).flat_map(|_| Frame::from(CommandPing {}).to_bytes()).collect();
        stream.write_all(&pings).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).await.unwrap();
        let pong = Frame::from(CommandPong {}).to_bytes();
        assert_eq!(answers.len(), 20 * pong.len());
    }
    cluster.shutdown().await;
}

#[tokio::test]
async fn ports_count_up_and_a_port_in_use_is_an_error() {
    // Ask the system for a port; its neighbours may be taken, so try some.
    for _ in 0..50 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = TcpOptions { port: free, ..Default::default() };
        let Ok(cluster) = SimCluster::tcp(config(), options.clone()).await else { continue };
        let urls: Vec<String> = (0..3).map(|i| format!("pulsar://127.0.0.1:{}", free + i)).collect();
        assert_eq!(cluster.broker_urls(), urls);
        let error = SimCluster::tcp(config(), options).await.unwrap_err();
        assert!(error.to_string().contains(&free.to_string()), "{error}");
        cluster.shutdown().await;
        return;
    }
    panic!("no three free ports in a row");
}

#[tokio::test]
async fn urls_name_the_host_that_is_advertised() {
    for (host, start) in
        [("broker.test", "broker.test"), ("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "[2001:db8::7]")]
    {
        let options = TcpOptions { advertise: Some(host.to_owned()), ..Default::default() };
        let cluster = SimCluster::tcp(config(), options).await.unwrap();
        for url in cluster.broker_urls() {
            assert!(url.starts_with(&format!("pulsar://{start}:")), "{url}");
        }
        for url in cluster.admin_urls() {
            assert!(url.starts_with(&format!("http://{start}:")), "{url}");
        }
        cluster.shutdown().await;
    }
}

#[tokio::test]
async fn ports_beyond_65535_are_an_error() {
    let error =
        SimCluster::tcp(config(), TcpOptions { port: 65535, ..Default::default() }).await.unwrap_err();
    assert!(error.to_string().contains("65535") || error.kind() == std::io::ErrorKind::AddrInUse, "{error}");
}

/// The command, running, with its first line.
fn start(arguments: &[&str]) -> (Child, String) {
    let mut child = Process::new(env!("CARGO_BIN_EXE_sim-broker"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

const FREE: [&str; 4] = ["--port", "0", "--admin-port", "0"];

#[tokio::test]
async fn the_command_prints_its_urls_when_it_accepts_and_ends_with_its_parent() {
    let (mut child, line) = start(&[&FREE[..], &["--json", "--exit-with-parent", "--brokers", "2"]].concat());
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let urls = ready["broker_urls"].as_array().unwrap();
    assert_eq!((urls.len(), &urls[0]), (2, &ready["service_url"]));
    let mut stream = handshake(ready["service_url"].as_str().unwrap()).await.unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
}

#[cfg(unix)]
#[test]
fn signals_end_the_command_cleanly() {
    for signal in ["-TERM", "-INT"] {
        let (mut child, line) = start(&FREE);
        assert!(line.contains("spec-1.0"), "{line}");
        assert!(Process::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert!(child.wait().unwrap().success(), "{signal}");
    }
}

#[test]
fn wrong_arguments_are_2_and_a_failing_environment_is_3() {
    let code = |arguments: &[&str]| {
        let output = Process::new(env!("CARGO_BIN_EXE_sim-broker"))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!output.stderr.is_empty());
        output.status.code().unwrap()
    };
    assert_eq!(code(&["--profile", "spec-2.0"]), 2);
    assert_eq!(code(&["--profile", "missing.yaml"]), 2);
    assert_eq!(code(&["--brokers", "0"]), 2);
    assert_eq!(code(&["--port", "99999"]), 2);
    assert_eq!(code(&["--port", "65534", "--admin-port", "0"]), 2, "there is no port for the third broker");
    assert_eq!(code(&["--port", "0", "--admin-port", "65535"]), 2);
    assert_eq!(code(&["--profile", "Cargo.toml"]), 2, "a file, but no profile");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert_eq!(code(&["--port", &port, "--admin-port", "0"]), 3);
}

#[test]
fn a_profile_may_come_from_a_file_of_any_name() {
    let text = std::fs::read_to_string("profiles/spec-1.0.yaml").unwrap();
    let file = std::env::temp_dir().join(format!("sim-broker-profile-{}", std::process::id()));
    std::fs::write(&file, text.replace("name: spec-1.0", "name: mine")).unwrap();
    let mut arguments = FREE.to_vec();
    arguments.extend(["--profile", file.to_str().unwrap()]);
    let (mut child, line) = start(&arguments);
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(line.contains("plays mine"), "{line}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_admin_connection_takes_little_memory() {
    let (mut child, line) = start(&[&FREE[..], &["--json", "--exit-with-parent", "--brokers", "1"]].concat());
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = ready["admin_url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let kib = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
    };
    let before = kib();
    let mut open = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Its answer shows that the connection is set up.
        stream.write_all(b"GET /admin/v2/brokers/health HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
        open.push(stream);
    }
    let each = kib().saturating_sub(before) / 200;
    assert!(each < 200, "{each} KiB each");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
