//! TLS on the links to brokers: which certificates are trusted, and the handshake.

use std::{fmt, io, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio_rustls::TlsConnector;

use crate::{
    address::BrokerAddress,
    core::error::{Category, Error},
    transport::Link,
};

/// What a client needs for `pulsar+ssl://` (wire-protocol §10). Nothing is trusted that is not named here: brokers of
/// one cluster have certificates of an authority that the application knows.
#[derive(Clone)]
pub struct TlsOptions {
    config: Arc<ClientConfig>,
    roots: Arc<RootCertStore>,
}

fn invalid(what: &str, why: impl fmt::Display) -> Error {
    Error::new(Category::InvalidConfiguration, format!("{what}: {why}"))
}

impl TlsOptions {
    /// Trusts the authorities of a PEM text. The name in a broker's certificate has to be that of its address.
    ///
    /// # Errors
    /// `InvalidConfiguration` when the text has no certificate, or one that cannot be used.
    pub fn trust_pem(pem: &str) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| invalid("the trusted certificates", error))?;
            roots.add(certificate).map_err(|error| invalid("a trusted certificate", error))?;
        }
        if roots.is_empty() {
            return Err(invalid("the trusted certificates", "there are none in the PEM text"));
        }
        let roots = Arc::new(roots);
        let config = builder(&roots)?.with_no_client_auth();
        Ok(TlsOptions { config: Arc::new(config), roots })
    }

    /// Shows brokers a certificate of the client's own: its chain and its key, as PEM texts.
    ///
    /// # Errors
    /// `InvalidConfiguration` when the texts are no such thing.
    pub fn identity_pem(self, chain: &str, key: &str) -> Result<Self, Error> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
        let chain = chain.map_err(|error| invalid("the client's certificate", error))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
        let key = key.map_err(|error| invalid("the client's key", error))?;
        let config = builder(&self.roots)?.with_client_auth_cert(chain, key);
        let config = config.map_err(|error| invalid("the client's certificate", error))?;
        Ok(TlsOptions { config: Arc::new(config), roots: self.roots })
    }

    /// Shakes hands on a link.
    ///
    /// # Errors
    /// `NotConnected`; when the broker's certificate is not trusted no other attempt can help.
    pub(crate) async fn secure(
        &self,
        address: &BrokerAddress,
        link: Box<dyn Link>,
    ) -> Result<Box<dyn Link>, Error> {
        let name = ServerName::try_from(address.host.clone())
            .map_err(|error| Error::new(Category::InvalidServiceUrl, format!("{address}: {error}")))?;
        let shaken = TlsConnector::from(self.config.clone()).connect(name, link).await;
        match shaken {
            Ok(link) => Ok(Box::new(link)),
            Err(error) => Err(failed(address, &error)),
        }
    }
}

fn builder(
    roots: &Arc<RootCertStore>,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, Error> {
    let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS", error))?;
    Ok(versions.with_root_certificates(roots.clone()))
}

fn failed(address: &BrokerAddress, error: &io::Error) -> Error {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match of_tls {
        Some(rustls::Error::InvalidCertificate(why)) => {
            Error::new(Category::NotConnected, format!("{address}: its certificate is not trusted: {why}"))
        }
        _ => Error::not_connected(format!("{address}: the TLS handshake failed: {error}")),
    }
}

/// Shows no key.
impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions").finish_non_exhaustive()
    }
}
