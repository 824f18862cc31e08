//! TCP: listeners for each broker and its admin REST, plain and, if wanted, for TLS.

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};
use tracing::{debug, warn};

use super::{SimCluster, Tls, clock::Clock, link::LINGER, tls::TlsListener};
use crate::core::{BrokerId, ClusterConfig, cluster::Addresses};

/// How long a listener waits before it tries its port again, when a broker comes back and the port is taken.
const RETRY: Duration = Duration::from_millis(100);

/// Where a cluster listens.
#[derive(Debug, Clone)]
pub struct TcpOptions {
    /// The address to listen at; also what lookups and layouts hand out, unless `advertise` says otherwise.
    pub bind: IpAddr,
    /// The host that URLs name: a name or an address under which clients reach what listens at `bind`.
    pub advertise: Option<String>,
    /// The first broker's port; broker i listens i higher. 0 picks free ports.
    pub port: u16,
    /// The first broker's admin port; broker i listens i higher. 0 picks free ports.
    pub admin_port: u16,
    /// The ports for TLS, beside the plain ones, if there are any.
    pub tls: Option<TlsOptions>,
}

/// Where a cluster listens for TLS.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// The certificate of every broker.
    pub certificate: Tls,
    /// The first broker's port; broker i listens i higher. 0 picks free ports.
    pub port: u16,
    /// The first broker's admin port; broker i listens i higher. 0 picks free ports.
    pub admin_port: u16,
}

impl TlsOptions {
    /// Free ports, with this certificate.
    pub fn new(certificate: Tls) -> Self {
        TlsOptions { certificate, port: 0, admin_port: 0 }
    }
}

impl Default for TcpOptions {
    fn default() -> Self {
        TcpOptions {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            advertise: None,
            port: 0,
            admin_port: 0,
            tls: None,
        }
    }
}

impl TcpOptions {
    /// A listener at the `index`-th port from `first` on, and its URL.
    async fn listen(&self, first: u16, index: u32, scheme: &str) -> io::Result<(TcpListener, String)> {
        let offset = u16::try_from(index).ok();
        let port = match first {
            0 => Some(0),
            first => offset.and_then(|i| first.checked_add(i)),
        };
        let port = port.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("port {first} + {index} is beyond 65535"))
        })?;
        let address = SocketAddr::new(self.bind, port);
        let listener = TcpListener::bind(address)
            .await
            .map_err(|e| io::Error::new(e.kind(), format!("cannot listen at {address}: {e}")))?;
        let port = listener.local_addr()?.port();
        let host = match &self.advertise {
            Some(host) => host
                .parse()
                .map_or_else(|_| format!("{host}:{port}"), |ip| SocketAddr::new(ip, port).to_string()),
            None => SocketAddr::new(self.bind, port).to_string(),
        };
        Ok((listener, format!("{scheme}://{host}")))
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
            let id = BrokerId(i);
            let (service, address) = options.listen(options.port, i, "pulsar").await?;
            let (admin, admin_address) = options.listen(options.admin_port, i, "http").await?;
            brokers.push((id, service, false));
            admins.push((id, admin, None));
            let mut broker =
                Addresses { service: address, service_tls: None, admin: admin_address, admin_tls: None };
            if let Some(tls) = &options.tls {
                let (service, address) = options.listen(tls.port, i, "pulsar+ssl").await?;
                let (admin, admin_address) = options.listen(tls.admin_port, i, "https").await?;
                brokers.push((id, service, true));
                admins.push((id, admin, Some(tls.certificate.clone())));
                broker.service_tls = Some(address);
                broker.admin_tls = Some(admin_address);
            }
            addresses.push(broker);
        }
        let certificate = options.tls.map(|tls| tls.certificate);
        let cluster = SimCluster::start(config, certificate, addresses, Clock::system());
        for (id, listener, tls) in brokers {
            let handle = cluster.clone();
            cluster.spawn(async move { handle.run_listener(id, listener, tls).await });
        }
        for (id, listener, certificate) in admins {
            let handle = cluster.clone();
            cluster.spawn(async move { handle.run_admin(id, listener, certificate).await });
        }
        Ok(cluster)
    }

    /// Serves a broker's admin REST.
    async fn run_admin(&self, id: BrokerId, listener: TcpListener, certificate: Option<Tls>) {
        // Made once: a router that is served as it is builds every route anew for each connection.
        let service = self.admin_router(id).merge(self.control_router()).into_make_service();
        let handle = self.clone();
        let stopped = async move { handle.stopped().await };
        let served = match certificate {
            Some(certificate) => {
                let listener = self.cut_off(TlsListener::new(listener, &certificate));
                axum::serve(listener, service).with_graceful_shutdown(stopped).await
            }
            None => axum::serve(self.cut_off(listener), service).with_graceful_shutdown(stopped).await,
        };
        if let Err(error) = served {
            warn!(%error, broker = id.0, "admin listener ended");
        }
    }

    /// A listener whose connections break [`LINGER`] after the cluster stopped. axum waits for requests that are under
    /// way, and a client that never sends the rest of one, or does not read its answer, would hold up the end.
    fn cut_off<L>(&self, inner: L) -> CutOffListener<L> {
        CutOffListener { inner, cluster: self.clone() }
    }

    /// Accepts connections to a broker. While the broker is down its port is closed, so that connecting is refused.
    async fn run_listener(&self, id: BrokerId, listener: TcpListener, tls: bool) {
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
            self.shared.ports.send_if_modified(|ports| ports.insert((id, tls), runs) != Some(runs));
            tokio::select! {
                accepted = accept(open.as_ref()) => match accepted {
                    Ok((stream, peer)) => {
                        // Small frames are answered at once.
                        let _ = stream.set_nodelay(true);
                        match tls {
                            true => self.accept_tls(id, stream, &peer.to_string()),
                            false => self.accept(id, stream, &peer.to_string()),
                        };
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

struct CutOffListener<L> {
    inner: L,
    cluster: SimCluster,
}

impl<L: Listener> Listener for CutOffListener<L> {
    type Io = CutOff<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (inner, address) = self.inner.accept().await;
        let cluster = self.cluster.clone();
        let end = Box::pin(async move {
            cluster.stopped().await;
            tokio::time::sleep(LINGER).await;
        });
        (CutOff { inner, end }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}

/// A byte stream that breaks when `end` comes.
struct CutOff<S> {
    inner: S,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<S: Unpin> CutOff<S> {
    /// The stream, or an error when the end came; `context` is woken then.
    fn open(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut S>> {
        // A finished future must not be polled again; the error ends the connection, but nothing relies on it.
        if self.end.as_mut().poll(context).is_ready() {
            self.end = Box::pin(std::future::ready(()));
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the cluster shut down"));
        }
        Ok(Pin::new(&mut self.inner))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CutOff<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.open(context)?.poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CutOff<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.open(context)?.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.open(context)?.poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.open(context)?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.open(context)?.poll_shutdown(context)
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}
