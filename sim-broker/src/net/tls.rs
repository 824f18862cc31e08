//! TLS: the certificate of a cluster, and the handshake before a connection.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::debug;

use super::{
    SimCluster,
    link::{self, Incoming},
};
use crate::core::ConnId;

/// How long a client of the admin REST may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// The certificate of a cluster with its key, and what a client has to trust. Clones share them.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    trust: String,
}

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// There is no certificate, or no key, that can be read.
    #[error("not a PEM file with {wanted}: {reason}")]
    Pem {
        /// What was looked for.
        wanted: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The certificate and the key do not fit.
    #[error("the certificate cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

impl Tls {
    /// A new certificate from a new authority, both gone with the process. It is valid for `localhost`, the loopback
    /// addresses, `host`, and the names `broker-0`… of a cluster in memory.
    pub fn self_signed(brokers: u32, host: Option<&str>) -> Result<Self, TlsError> {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "sim-broker test authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate()?;
        let trust = authority.self_signed(&authority_key)?.pem();

        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        names.extend(host.map(str::to_owned).filter(|name| !names.contains(name)));
        names.extend((0..brokers).map(|i| format!("broker-{i}")));
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "sim-broker");
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &Issuer::new(authority, authority_key))?;
        Tls::new(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()), trust)
    }

    /// A certificate (with what leads to its authority, if anything) and its key, both PEM.
    pub fn from_pem(certificates: &str, key: &str) -> Result<Self, TlsError> {
        let pem =
            |wanted| move |e: rustls::pki_types::pem::Error| TlsError::Pem { wanted, reason: e.to_string() };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(pem("certificates"))?;
        if chain.is_empty() {
            return Err(TlsError::Pem { wanted: "certificates", reason: "there are none".to_owned() });
        }
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(pem("a private key"))?;
        Tls::new(chain, Ok(key), certificates.to_owned())
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: Result<PrivateKeyDer<'static>, &'static str>,
        trust: String,
    ) -> Result<Self, TlsError> {
        let key = key.map_err(|e| rustls::Error::General(e.to_owned()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Tls { config: Arc::new(config), trust })
    }

    /// What a client has to trust, as PEM: the authority of a certificate that was made here, or the certificates that
    /// were given.
    pub fn trust_pem(&self) -> &str {
        &self.trust
    }

    /// What shakes hands with clients, for other listeners that are to show this certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.clone())
    }
}

/// Shakes hands, then runs a connection until either side closes it.
pub(super) async fn run<S>(
    cluster: SimCluster,
    conn: ConnId,
    stream: S,
    acceptor: TlsAcceptor,
    mut incoming: Incoming,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let shaken: io::Result<_> = tokio::select! {
        result = acceptor.accept(stream) => result,
        // Such as one that takes too long.
        () = incoming.closed() => return,
        () = cluster.stopped() => {
            return cluster.with(|c, now| c.close(conn, "the cluster shut down", now));
        }
    };
    match shaken {
        Ok(stream) => link::run(cluster, conn, stream, incoming).await,
        Err(error) => {
            cluster.with(|c, now| c.closed(conn, &format!("the TLS handshake failed: {error}"), now));
        }
    }
}

/// A listener for the admin REST over TLS. Handshakes run beside each other: a client that does not go on holds up
/// nobody else.
pub(super) struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
}

impl TlsListener {
    pub(super) fn new(listener: TcpListener, tls: &Tls) -> Self {
        TlsListener { listener, acceptor: tls.acceptor(), handshakes: JoinSet::new() }
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                // axum's own way with failures: it waits and tries again.
                (stream, peer) = axum::serve::Listener::accept(&mut self.listener) => {
                    let acceptor = self.acceptor.clone();
                    self.handshakes.spawn(async move {
                        match timeout(HANDSHAKE, acceptor.accept(stream)).await {
                            Ok(Ok(stream)) => Some((stream, peer)),
                            Ok(Err(error)) => {
                                debug!(%error, %peer, "TLS handshake failed");
                                None
                            }
                            Err(_) => None,
                        }
                    });
                }
                Some(shaken) = self.handshakes.join_next() => if let Ok(Some(shaken)) = shaken {
                    return shaken;
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
