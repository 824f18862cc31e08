//! What a client's connections carry, seen from inside the client: a transport that decodes what passes.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::BytesMut;
use stc_client::{BoxFuture, BrokerAddress, Link, TcpTransport, Transport};
use stc_proto::{Command, Decoder};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Something that happened on a connection.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The connection's number.
    pub connection: u64,
    /// The port of the broker that it leads to.
    pub port: u16,
    /// What happened.
    pub what: What,
}

impl Seen {
    /// It as a line; none for messages and what belongs to each of them.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let what = match &self.what {
            What::Sent(Command::Send(_) | Command::Ack(_) | Command::Flow(_)) => return None,
            What::Received(Command::SendReceipt(_) | Command::Message(_)) => return None,
            What::Received(Command::AckResponse(response)) if response.error.is_none() => return None,
            What::Sent(command) => format!("> {} {}", command.name(), command.fields()),
            What::Received(command) => format!("< {} {}", command.name(), command.fields()),
            What::Refused => "refused".to_owned(),
            What::Closed => "closed".to_owned(),
        };
        Some(format!("    {} c{} {what}", self.port, self.connection))
    }
}

/// What may happen on a connection.
#[derive(Debug, Clone)]
pub enum What {
    /// The broker could not be reached.
    Refused,
    /// The client sent a command.
    Sent(Command),
    /// The broker sent a command.
    Received(Command),
    /// Either side closed it.
    Closed,
}

/// All connections of a client, in the order of what happened.
#[derive(Debug, Clone, Default)]
pub struct Wire {
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicU64>,
}

impl Wire {
    /// How much was seen until now.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// What was seen since a mark.
    #[must_use]
    pub fn since(&self, mark: usize) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(mark..).unwrap_or_default().to_vec()
    }

    fn record(&self, connection: u64, port: u16, what: What) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(Seen { connection, port, what });
    }
}

impl Transport for Wire {
    fn connect<'a>(&'a self, address: &'a BrokerAddress) -> BoxFuture<'a, io::Result<Box<dyn Link>>> {
        Box::pin(async move {
            let connection = self.connections.fetch_add(1, Ordering::Relaxed);
            let port = address.port;
            match TcpTransport.connect(address).await {
                Ok(link) => {
                    let wire = self.clone();
                    let (sent, received) = (BytesMut::new(), BytesMut::new());
                    Ok(Box::new(Tapped { link, wire, connection, port, sent, received }) as Box<dyn Link>)
                }
                Err(error) => {
                    self.record(connection, port, What::Refused);
                    Err(error)
                }
            }
        })
    }
}

/// A link that decodes what passes.
struct Tapped {
    link: Box<dyn Link>,
    wire: Wire,
    connection: u64,
    port: u16,
    sent: BytesMut,
    received: BytesMut,
}

impl Tapped {
    /// Takes whole frames off a buffer. After one that cannot be read the rest of that direction is lost, which the
    /// client sees as a broken connection itself.
    fn record(wire: &Wire, connection: u64, port: u16, buffer: &mut BytesMut, what: fn(Command) -> What) {
        while let Ok(Some(frame)) = Decoder::default().decode(buffer) {
            wire.record(connection, port, what(frame.command));
        }
    }
}

impl AsyncRead for Tapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let this = &mut *self;
        ready!(Pin::new(&mut this.link).poll_read(context, buffer))?;
        this.received.extend_from_slice(buffer.filled().get(before..).unwrap_or_default());
        Tapped::record(&this.wire, this.connection, this.port, &mut this.received, What::Received);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = ready!(Pin::new(&mut this.link).poll_write(context, bytes))?;
        this.sent.extend_from_slice(bytes.get(..written).unwrap_or_default());
        Tapped::record(&this.wire, this.connection, this.port, &mut this.sent, What::Sent);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_shutdown(context)
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        self.wire.record(self.connection, self.port, What::Closed);
    }
}
