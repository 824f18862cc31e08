//! The same over a real socket: what only a socket shows.

use std::time::Duration;

use sim_broker::{
    SimCluster, TcpOptions,
    core::{ClusterConfig, Profile},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Longer than anything here takes on a slow machine; a test that reaches it has failed.
const LIMIT: Duration = Duration::from_secs(60);

async fn cluster() -> (SimCluster, String) {
    let config = ClusterConfig::new(Profile::built_in("spec-1.0").unwrap());
    let cluster = SimCluster::tcp(config, TcpOptions::default()).await.unwrap();
    let address = cluster.admin_urls()[0].strip_prefix("http://").unwrap().to_owned();
    (cluster, address)
}

/// Sends bytes and reads the answer until it ends in `end` or the connection closes.
async fn exchange(stream: &mut TcpStream, bytes: &[u8], end: &str) -> String {
    stream.write_all(bytes).await.unwrap();
    let mut text = Vec::new();
    let read = async {
        let mut chunk = [0; 4096];
        loop {
            let n = stream.read(&mut chunk).await.unwrap();
            text.extend_from_slice(&chunk[..n]);
            if n == 0 || text.ends_with(end.as_bytes()) {
                return;
            }
        }
    };
    timeout(LIMIT, read).await.unwrap_or_else(|_| panic!("no answer"));
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_topic_is_created_without_a_body_and_without_its_length() {
    let (cluster, address) = cluster().await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let put = "PUT /admin/v2/scalable/public/default/t?numInitialSegments=2 HTTP/1.1\r\nHost: x\r\n\r\n";
    let answer = exchange(&mut stream, put.as_bytes(), "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    // The same connection goes on.
    let again = exchange(&mut stream, put.as_bytes(), "}").await;
    assert!(again.starts_with("HTTP/1.1 409"), "{again}");
    assert!(again.contains("Scalable topic already exists: topic://public/default/t"), "{again}");
    drop(stream);
    timeout(LIMIT, cluster.shutdown()).await.unwrap();
}

#[tokio::test]
async fn bytes_that_are_no_request_end_their_connection_only() {
    let (cluster, address) = cluster().await;
    let mut nonsense = TcpStream::connect(&address).await.unwrap();
    let answer = exchange(&mut nonsense, b"\x00\x01\x02 nonsense\r\n\r\n", "never").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let answer =
        exchange(&mut stream, b"GET /admin/v2/brokers/health HTTP/1.1\r\nHost: x\r\n\r\n", "ok").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(stream);
    timeout(LIMIT, cluster.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_follower_gets_records_as_they_come_and_does_not_hold_up_the_end() {
    let (cluster, address) = cluster().await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let follow = "GET /control/v1/journal/follow HTTP/1.1\r\nHost: x\r\n\r\n";
    cluster.control().mark("first");
    let answer = exchange(&mut stream, follow.as_bytes(), "}\n\r\n").await;
    assert!(answer.contains("application/x-ndjson") && answer.contains(r#""text":"first""#), "{answer}");
    cluster.control().mark("second");
    let answer = exchange(&mut stream, b"", "}\n\r\n").await;
    assert!(answer.contains(r#""text":"second""#), "{answer}");
    timeout(LIMIT, cluster.shutdown()).await.expect("the follower holds up the end");
}

#[tokio::test]
async fn clients_that_never_finish_do_not_hold_up_the_end() {
    let (cluster, address) = cluster().await;
    let mut open = Vec::new();
    let half_a_body = "POST /control/v1/marks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
    let follow = "GET /control/v1/journal/follow HTTP/1.1\r\nHost: x\r\n\r\n";
    for request in ["GET /control/v1/jou", half_a_body, follow] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        open.push(stream);
    }
    // The follower does not read: more than any socket buffers.
    for _ in 0..5 {
        cluster.control().mark(&"x".repeat(4 << 20));
    }
    // It is served after the others, so those are under way.
    let mut last = TcpStream::connect(&address).await.unwrap();
    exchange(&mut last, b"GET /control/v1/clock HTTP/1.1\r\nHost: x\r\n\r\n", "}").await;
    timeout(LIMIT, cluster.shutdown()).await.expect("a client holds up the end");
    for mut stream in open {
        let ended =
            timeout(LIMIT, async { while stream.read(&mut [0; 65536]).await.is_ok_and(|n| n > 0) {} });
        ended.await.expect("the connection is still open");
    }
}

#[tokio::test]
async fn ports_are_as_a_call_left_them_when_it_answers() {
    let (cluster, address) = cluster().await;
    let url = cluster.broker_urls().swap_remove(1);
    let service = url.strip_prefix("pulsar://").unwrap();
    let mut control = TcpStream::connect(&address).await.unwrap();
    for back in ["brokers/1/revive", "reset"].repeat(100) {
        for (call, open) in [("brokers/1/kill", false), (back, true)] {
            let post = format!("POST /control/v1/{call} HTTP/1.1\r\nHost: x\r\n\r\n");
            let answer = exchange(&mut control, post.as_bytes(), "\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
            assert_eq!(TcpStream::connect(service).await.is_ok(), open, "after {call}");
        }
    }
    drop(control);
    timeout(LIMIT, cluster.shutdown()).await.unwrap();
}
