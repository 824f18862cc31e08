//! A recording proxy in front of any broker: it forwards every frame, and tells what went by as journal records.
//!
//! | Module | What it owns |
//! |---|---|
//! | `relay` | one connection, both ways |
//! | `rewrite` | the URLs of other brokers in what a broker says |
//!
//! Brokers name each other to clients, so each address that goes by gets a port of the tap of its own, and the client
//! is told that one. What is recorded is what the broker said. Frames are forwarded as they came, unless they name a
//! broker; a command that this program does not know goes by unrecorded.

mod relay;
mod rewrite;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sim_broker::core::ids::{BrokerId, ConnId};
use sim_broker::core::journal::{Direction, Event, Record};
use tokio::sync::mpsc::UnboundedSender;

/// A tap. It ends with the runtime that it was started in.
#[derive(Clone)]
pub struct Tap {
    bind: IpAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Where each broker, by host and port, is tapped, and which number it has.
    brokers: BTreeMap<String, (SocketAddr, BrokerId)>,
    connections: u64,
    records: u64,
    started: Instant,
    sink: UnboundedSender<Record>,
}

impl Tap {
    /// Listens at `listen` for clients of the broker at `upstream`, `host:port`. Records go to `sink`.
    ///
    /// # Errors
    /// When the address is taken.
    pub fn start(
        upstream: &str,
        listen: SocketAddr,
        sink: UnboundedSender<Record>,
    ) -> io::Result<(Tap, SocketAddr)> {
        let state =
            State { brokers: BTreeMap::new(), connections: 0, records: 0, started: Instant::now(), sink };
        let tap = Tap { bind: listen.ip(), state: Arc::new(Mutex::new(state)) };
        let address = tap.listen(upstream, listen)?;
        Ok((tap, address))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, upstream: &str, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let broker = {
            let mut state = self.lock();
            let broker = BrokerId(u32::try_from(state.brokers.len()).unwrap_or(u32::MAX));
            state.brokers.insert(upstream.to_owned(), (address, broker));
            broker
        };
        let (tap, upstream) = (self.clone(), upstream.to_owned());
        tokio::spawn(async move {
            while let Ok((client, peer)) = listener.accept().await {
                let conn = tap.next_connection();
                tokio::spawn(relay::run(tap.clone(), client, peer, upstream.clone(), broker, conn));
            }
        });
        Ok(address)
    }

    fn next_connection(&self) -> ConnId {
        let mut state = self.lock();
        state.connections += 1;
        ConnId(state.connections)
    }

    /// The tap's own URL for a broker's; another scheme than `pulsar://` is left as it is.
    fn local_url(&self, url: &str) -> Option<String> {
        let upstream = url.strip_prefix("pulsar://")?.trim_end_matches('/');
        let known = self.lock().brokers.get(upstream).map(|(address, _)| *address);
        let address = match known {
            Some(address) => address,
            None => self.listen(upstream, SocketAddr::new(self.bind, 0)).ok()?,
        };
        Some(format!("pulsar://{address}"))
    }

    fn record(&self, broker: BrokerId, conn: ConnId, direction: Direction, event: Event) {
        let mut state = self.lock();
        state.records += 1;
        let t_ms = u64::try_from(state.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record =
            Record { n: state.records, t_ms, broker: Some(broker), conn: Some(conn), direction, event };
        // Nobody listens any more when the program ends.
        let _ = state.sink.send(record);
    }
}
