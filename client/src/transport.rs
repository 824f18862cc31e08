//! How connections come about. TCP by default; a test passes its own transport, such as links in memory.

use std::{future::Future, io, pin::Pin};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use crate::address::BrokerAddress;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A byte stream to a broker (wire-protocol §10).
pub trait Link: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Link for T {}

/// Opens links to brokers (wire-protocol §10). TLS is the client's own affair: it shakes hands on the link when the
/// address asks for it.
pub trait Transport: Send + Sync + 'static {
    /// Opens a link to the broker at this address.
    fn connect<'a>(&'a self, address: &'a BrokerAddress) -> BoxFuture<'a, io::Result<Box<dyn Link>>>;
}

/// Plain TCP (wire-protocol §10).
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpTransport;

impl Transport for TcpTransport {
    fn connect<'a>(&'a self, address: &'a BrokerAddress) -> BoxFuture<'a, io::Result<Box<dyn Link>>> {
        Box::pin(async move {
            let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Link>)
        })
    }
}
