//! A proxy between the client of one scenario and brokers elsewhere: it keeps the journal that they do not give, and
//! strikes frames and connections on their way, as the faults of a simulated cluster do.
//!
//! | Module | What it owns |
//! |---|---|
//! | `link` | one connection: its sockets, its tasks |
//! | `names` | which topics the numbers on a connection stand for |
//! | `awaited` | the answers that a fault waits for which strikes after the broker acted |
//! | `flow` | the way of a frame: faults, journal, output |
//!
//! Brokers name each other to clients, so each gets a port of the proxy, and the client is told that one. The journal
//! keeps what the broker said. A proxy cannot make a broker say anything, know what it stores, or kill it.

mod awaited;
mod flow;
mod link;
mod names;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sim_broker::control::DropSelector;
use sim_broker::core::fault::{Fault, FaultError, FaultStatus, Faults};
use sim_broker::core::ids::{BrokerId, ConnId};
use sim_broker::core::journal::{Direction, Event, Record};
use tokio::sync::watch;

use link::Link;

/// A proxy. It ends with the runtime that it was started in; clones are the same proxy.
#[derive(Clone)]
pub struct Proxy {
    state: Arc<Mutex<State>>,
    /// Number of the newest record.
    grows: Arc<watch::Sender<u64>>,
}

struct State {
    /// Where each broker is, `host:port`, and where the proxy listens for it; the place in the list is its number.
    brokers: Vec<(String, SocketAddr)>,
    links: BTreeMap<ConnId, Link>,
    connections: u64,
    journal: Vec<Record>,
    faults: Faults,
    started: Instant,
}

impl Proxy {
    /// Listens on loopback for clients of the broker at `service_url`, `pulsar://host:port`.
    ///
    /// # Errors
    /// When the URL is another kind, or no port is free.
    pub fn start(service_url: &str) -> io::Result<Proxy> {
        let state = State {
            brokers: Vec::new(),
            links: BTreeMap::new(),
            connections: 0,
            journal: Vec::new(),
            faults: Faults::default(),
            started: Instant::now(),
        };
        let proxy = Proxy { state: Arc::new(Mutex::new(state)), grows: Arc::new(watch::Sender::new(0)) };
        let local = proxy.local(&mut proxy.lock(), service_url);
        match local {
            Some(_) => Ok(proxy),
            None => Err(io::Error::other(format!("cannot stand in front of {service_url}"))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where clients connect.
    pub fn service_url(&self) -> String {
        let first = self.lock().brokers.first().map(|(_, local)| *local);
        first.map_or_else(String::new, |local| format!("pulsar://{local}"))
    }

    /// The URLs of the brokers that clients were told of, as the brokers say them, in the order of their numbers.
    pub fn broker_urls(&self) -> Vec<String> {
        self.lock().brokers.iter().map(|(broker, _)| format!("pulsar://{broker}")).collect()
    }

    /// The proxy's own URL for a broker's; `None` for one that it cannot stand in front of.
    fn local(&self, state: &mut State, url: &str) -> Option<String> {
        let broker = url.strip_prefix("pulsar://")?.trim_end_matches('/');
        if let Some((_, local)) = state.brokers.iter().find(|(known, _)| known == broker) {
            return Some(format!("pulsar://{local}"));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        listener.set_nonblocking(true).ok()?;
        let local = listener.local_addr().ok()?;
        let listener = tokio::net::TcpListener::from_std(listener).ok()?;
        let number = BrokerId(u32::try_from(state.brokers.len()).ok()?);
        state.brokers.push((broker.to_owned(), local));
        tokio::spawn(link::accept(self.clone(), listener, number, broker.to_owned()));
        Some(format!("pulsar://{local}"))
    }

    /// The records so far.
    pub fn journal(&self) -> Vec<Record> {
        self.lock().journal.clone()
    }

    /// Number of the newest record, 0 before the first.
    pub fn last_record(&self) -> u64 {
        *self.grows.borrow()
    }

    /// Waits for a record from number `n` on that `wanted` accepts. Never resolves when none comes.
    pub async fn wait_for_from(&self, n: u64, mut wanted: impl FnMut(&Record) -> bool) -> Record {
        let mut grows = self.grows.subscribe();
        let mut next = n;
        loop {
            grows.borrow_and_update();
            let found = {
                let state = self.lock();
                let from = state.journal.partition_point(|record| record.n < next);
                let found = state.journal.iter().skip(from).find(|record| wanted(record)).cloned();
                next = state.journal.last().map_or(next, |record| next.max(record.n + 1));
                found
            };
            match found {
                Some(record) => return record,
                // This proxy holds the sender, so it does not go away.
                None if grows.changed().await.is_err() => return std::future::pending().await,
                None => {}
            }
        }
    }

    /// Arms a fault; returns its id.
    ///
    /// # Errors
    /// [`FaultError`].
    pub fn arm(&self, fault: Fault) -> Result<u64, FaultError> {
        self.lock().faults.arm(fault)
    }

    /// Takes a fault back; whether it was there.
    pub fn disarm(&self, id: u64) -> bool {
        self.lock().faults.disarm(id)
    }

    /// The faults and what they did.
    pub fn faults(&self) -> Vec<FaultStatus> {
        self.lock().faults.status().cloned().collect()
    }

    /// How many frames are held.
    pub fn held(&self) -> usize {
        self.lock().faults.held().count()
    }

    /// Lets all held frames go on, in their order; how many there were.
    pub fn release_all(&self) -> usize {
        let mut state = self.lock();
        let ids: Vec<u64> = state.faults.held().map(|held| held.id).collect();
        for id in &ids {
            if let Some(held) = state.faults.release(*id) {
                self.forward(&mut state, held.conn, held.direction, held.frame);
            }
        }
        ids.len()
    }

    /// Closes connections, as a broker does; how many there were.
    pub fn drop_connections(&self, which: &DropSelector) -> usize {
        let mut state = self.lock();
        let fits = |(id, link): (&ConnId, &Link)| {
            let chosen = which.conn.is_none_or(|conn| conn == *id)
                && which.broker.is_none_or(|broker| broker == link.broker);
            chosen.then_some(*id)
        };
        let chosen: Vec<ConnId> = state.links.iter().filter_map(fits).collect();
        for conn in &chosen {
            self.lose(&mut state, *conn, "broker", "dropped by a control call");
        }
        chosen.len()
    }

    /// Notes something in the journal.
    pub fn mark(&self, text: &str) {
        let event = Event::Mark { text: text.to_owned() };
        self.note(&mut self.lock(), None, Direction::Internal, event);
    }

    fn record(&self, state: &mut State, conn: ConnId, broker: BrokerId, direction: Direction, event: Event) {
        self.note(state, Some((conn, broker)), direction, event);
    }

    fn note(&self, state: &mut State, at: Option<(ConnId, BrokerId)>, direction: Direction, event: Event) {
        let (conn, broker) = at.unzip();
        let n = state.journal.last().map_or(1, |record| record.n + 1);
        let t_ms = u64::try_from(state.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        state.journal.push(Record { n, t_ms, broker, conn, direction, event });
        self.grows.send_replace(n);
    }
}
