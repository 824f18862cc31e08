//! TCP: one listener for each broker, and one for its admin REST.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::net::TcpListener;
use tracing::{debug, warn};

use super::{SimCluster, clock::Clock};
use crate::core::{BrokerId, ClusterConfig};

/// How long a listener waits before it tries its port again, when a broker comes back and the port is taken.
const RETRY: Duration = Duration::from_millis(100);

/// Where a cluster listens.
#[derive(Debug, Clone)]
pub struct TcpOptions {
    /// The address to listen at; also what lookups and layouts hand out.
    pub bind: IpAddr,
    /// The first broker's port; broker i listens i higher. 0 picks free ports.
    pub port: u16,
    /// The first broker's admin port; broker i listens i higher. 0 picks free ports.
    pub admin_port: u16,
}

impl Default for TcpOptions {
    fn default() -> Self {
        TcpOptions { bind: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0, admin_port: 0 }
    }
}

impl SimCluster {
    /// A cluster that listens. It accepts connections when this returns. Its clock shows the system's time. The admin
    /// listeners serve for killed brokers too, as the control API is there.
    pub async fn tcp(config: ClusterConfig, options: TcpOptions) -> io::Result<Self> {
        let mut brokers = Vec::new();
        let mut admins = Vec::new();
        let mut addresses = Vec::new();
        for i in 0..config.brokers.max(1) {
            let broker = bind(&options, options.port, i).await?;
            let admin = bind(&options, options.admin_port, i).await?;
            let service_url = format!("pulsar://{}", broker.local_addr()?);
            let admin_url = format!("http://{}", admin.local_addr()?);
            addresses.push((service_url, admin_url));
            brokers.push((BrokerId(i), broker));
            admins.push((BrokerId(i), admin));
        }
        let cluster = SimCluster::start(config, addresses, Clock::system());
        for (id, listener) in brokers {
            let handle = cluster.clone();
            cluster.spawn(async move { handle.run_listener(id, listener).await });
        }
        for (id, listener) in admins {
            let handle = cluster.clone();
            let router = cluster.admin_router(id).merge(cluster.control_router());
            cluster.spawn(async move {
                let stopped = handle.clone();
                let server = axum::serve(listener, router)
                    .with_graceful_shutdown(async move { stopped.stopped().await });
                if let Err(error) = server.await {
                    warn!(%error, broker = id.0, "admin listener ended");
                }
            });
        }
        Ok(cluster)
    }

    /// Accepts connections to a broker. While the broker is down its port is closed, so that connecting is refused.
    async fn run_listener(&self, id: BrokerId, listener: TcpListener) {
        let Ok(address) = listener.local_addr() else { return };
        let mut open = Some(listener);
        let mut up = self.shared.up.subscribe();
        let index = id.0 as usize;
        loop {
            let runs = up.borrow_and_update().get(index).copied().unwrap_or(false);
            match (&open, runs) {
                (Some(_), false) => open = None,
                (None, true) => match TcpListener::bind(address).await {
                    Ok(listener) => open = Some(listener),
                    Err(error) => {
                        warn!(%error, %address, "cannot listen again yet");
                        tokio::time::sleep(RETRY).await;
                        continue;
                    }
                },
                _ => {}
            }
            tokio::select! {
                accepted = accept(open.as_ref()) => match accepted {
                    Ok((stream, peer)) => {
                        // Small frames are answered at once.
                        let _ = stream.set_nodelay(true);
                        self.accept(id, stream, &peer.to_string());
                    }
                    Err(error) => {
                        // Such as too many open files: it passes.
                        debug!(%error, "accept failed");
                        tokio::time::sleep(RETRY).await;
                    }
                },
                changed = up.changed() => if changed.is_err() { return },
                () = self.stopped() => return,
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(tokio::net::TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

async fn bind(options: &TcpOptions, first: u16, index: u32) -> io::Result<TcpListener> {
    let offset = u16::try_from(index).ok();
    let port = match first {
        0 => Some(0),
        first => offset.and_then(|i| first.checked_add(i)),
    };
    let port = port.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("port {first} + {index} is beyond 65535"))
    })?;
    let address = SocketAddr::new(options.bind, port);
    TcpListener::bind(address)
        .await
        .map_err(|e| io::Error::new(e.kind(), format!("cannot listen at {address}: {e}")))
}
