//! TLS on either side of a tap: the client's handshake, the broker's, and who is trusted there.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::Address;
use super::{Options, Tls};

/// The authorities whose certificates of brokers are trusted.
#[derive(Clone)]
pub struct Trust {
    connector: TlsConnector,
}

/// Why nobody can be trusted.
#[derive(Debug, Error)]
pub enum TrustError {
    /// The text is not PEM, or has no certificate.
    #[error("not a PEM file with certificates: {0}")]
    Pem(String),
    /// A certificate cannot be used.
    #[error("a certificate cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Trust {
    /// Trusts the authorities of a PEM text.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn pem(text: &str) -> Result<Trust, TrustError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            roots.add(certificate.map_err(|e| TrustError::Pem(e.to_string()))?)?;
        }
        if roots.is_empty() {
            return Err(TrustError::Pem("there are none".to_owned()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Trust { connector: TlsConnector::from(Arc::new(config)) })
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").finish_non_exhaustive()
    }
}

/// Bytes either way, whatever carries them.
pub(super) trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Pipe for T {}

/// A client's stream, once it has shaken hands if the tap speaks TLS.
pub(super) async fn accept(certificate: Option<&Tls>, client: TcpStream) -> Result<Box<dyn Pipe>, String> {
    let _ = client.set_nodelay(true);
    match certificate {
        None => Ok(Box::new(client)),
        Some(tls) => match tls.acceptor().accept(client).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(e) => Err(format!("the TLS handshake failed: {e}")),
        },
    }
}

/// A stream to a broker.
pub(super) async fn connect(options: &Options, upstream: &Address) -> Result<Box<dyn Pipe>, String> {
    let failed = |e: &dyn fmt::Display| format!("{}: {e}", upstream.host_port);
    let server = TcpStream::connect(&upstream.host_port).await.map_err(|e| failed(&e))?;
    let _ = server.set_nodelay(true);
    if !upstream.tls {
        return Ok(Box::new(server));
    }
    let Some(trust) = &options.trust else {
        return Err(failed(&"the certificates to trust are not given"));
    };
    let name = ServerName::try_from(upstream.host().to_owned()).map_err(|e| failed(&e))?;
    let shaken = trust.connector.connect(name, server).await;
    shaken
        .map(|stream| Box::new(stream) as Box<dyn Pipe>)
        .map_err(|e| failed(&format!("the TLS handshake failed: {e}")))
}
