//! One connection: its sockets, its tasks.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use sim_broker::core::ids::{BrokerId, ConnId};
use sim_broker::core::journal::{Direction, Event};
use stc_proto::Frame;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::Proxy;
use super::awaited::Awaited;
use super::names::Names;
use crate::tap::relay;

/// What is known of an open connection. When it is dropped, what is on its way is written out and the sockets close.
pub(super) struct Link {
    pub(super) broker: BrokerId,
    pub(super) names: Names,
    pub(super) to_broker: UnboundedSender<Bytes>,
    pub(super) to_client: UnboundedSender<Bytes>,
    pub(super) awaited: Vec<Awaited>,
    /// Of each PING on its way to the broker, whether it is the proxy's own.
    pub(super) pings: VecDeque<bool>,
    /// A frame to the broker, and one to the client, that the next one overtakes.
    pub(super) overtaken: [Option<Frame>; 2],
}

/// Accepts clients of a broker.
pub(super) async fn accept(proxy: Proxy, listener: TcpListener, broker: BrokerId, upstream: String) {
    while let Ok((client, peer)) = listener.accept().await {
        tokio::spawn(run(proxy.clone(), client, peer.to_string(), broker, upstream.clone()));
    }
}

async fn run(proxy: Proxy, client: TcpStream, peer: String, broker: BrokerId, upstream: String) {
    let (to_broker, broker_queue) = mpsc::unbounded_channel();
    let (to_client, client_queue) = mpsc::unbounded_channel();
    let conn = {
        let mut state = proxy.lock();
        state.connections += 1;
        let conn = ConnId(state.connections);
        let link = Link {
            broker,
            names: Names::default(),
            to_broker,
            to_client,
            awaited: Vec::new(),
            pings: VecDeque::new(),
            overtaken: [None, None],
        };
        state.links.insert(conn, link);
        proxy.record(&mut state, conn, broker, Direction::ToBroker, Event::TcpOpen { peer, tls: false });
        conn
    };
    let server = match TcpStream::connect(&upstream).await {
        Ok(server) => server,
        Err(e) => return proxy.lose(&mut proxy.lock(), conn, "broker", &format!("{upstream}: {e}")),
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, client_writer) = client.into_split();
    let (from_broker, broker_writer) = server.into_split();
    // The writers end when the link is dropped, after what waits is written out.
    tokio::spawn(write(broker_queue, broker_writer));
    tokio::spawn(write(client_queue, client_writer));
    let (side, reason) = tokio::select! {
        reason = read(&proxy, conn, Direction::ToBroker, from_client) => ("client", reason),
        reason = read(&proxy, conn, Direction::ToClient, from_broker) => ("broker", reason),
    };
    proxy.lose(&mut proxy.lock(), conn, side, &reason);
}

/// Why it ended.
async fn read(proxy: &Proxy, conn: ConnId, direction: Direction, mut from: impl AsyncRead + Unpin) -> String {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(frame) = relay::take(&mut buffer) {
            match frame {
                Ok(bytes) => proxy.arrived(conn, direction, bytes),
                Err(reason) => return reason,
            }
        }
        match from.read_buf(&mut buffer).await {
            Ok(0) => return "it closed the connection".to_owned(),
            Ok(_) => {}
            Err(e) => return e.to_string(),
        }
    }
}

async fn write(mut queue: UnboundedReceiver<Bytes>, mut to: impl AsyncWrite + Unpin) {
    while let Some(bytes) = queue.recv().await {
        if to.write_all(&bytes).await.is_err() {
            // The reader of this socket finds out, too, and says why.
            return;
        }
    }
    let _ = to.shutdown().await;
}
