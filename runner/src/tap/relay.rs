//! One connection, both ways.

use std::net::SocketAddr;

use bytes::{Buf as _, Bytes, BytesMut};
use sim_broker::core::ids::{BrokerId, ConnId};
use sim_broker::core::journal::{Direction, Event};
use stc_proto::{Frame, FrameError, frame};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::net::TcpStream;

use super::address::Address;
use super::{Tap, rewrite, tls};

/// How large a frame may be, in bytes; far above what brokers allow by default.
const LARGEST: usize = 128 << 20;

/// Relays until one side closes.
pub(super) async fn run(
    tap: Tap,
    client: TcpStream,
    peer: SocketAddr,
    upstream: Address,
    broker: BrokerId,
    conn: ConnId,
) {
    let note = |event| tap.record(Some(broker), Some(conn), Direction::Internal, event);
    let certificate = tap.options().certificate.as_ref();
    note(Event::TcpOpen { peer: peer.to_string(), tls: certificate.is_some() });
    let client = match tls::accept(certificate, client).await {
        Ok(client) => client,
        Err(reason) => return note(Event::TcpClose { side: "client", reason }),
    };
    let server = match tls::connect(tap.options(), &upstream).await {
        Ok(server) => server,
        Err(reason) => return note(Event::TcpClose { side: "broker", reason }),
    };
    let (from_client, mut to_client) = split(client);
    let (from_broker, mut to_broker) = split(server);
    let way = |direction| Way { tap: &tap, broker, conn, direction, by_tls: upstream.tls };
    let (up, down) = (way(Direction::ToBroker), way(Direction::ToClient));
    let (side, reason) = tokio::select! {
        reason = up.relay(from_client, &mut to_broker) => ("client", reason),
        reason = down.relay(from_broker, &mut to_client) => ("broker", reason),
    };
    note(Event::TcpClose { side, reason });
    // TLS has a goodbye of its own. Whoever is gone already does not need it.
    let _ = tokio::join!(to_client.shutdown(), to_broker.shutdown());
}

/// One way of a connection.
struct Way<'a> {
    tap: &'a Tap,
    broker: BrokerId,
    conn: ConnId,
    direction: Direction,
    /// Whether the broker is spoken to by TLS.
    by_tls: bool,
}

impl Way<'_> {
    /// Why it ended.
    async fn relay(&self, mut from: impl AsyncRead + Unpin, to: &mut (impl AsyncWrite + Unpin)) -> String {
        let mut buffer = BytesMut::new();
        loop {
            while let Some(frame) = take(&mut buffer) {
                let sent = match frame {
                    Ok(frame) => to.write_all(&self.pass(frame)).await,
                    Err(reason) => {
                        self.tell(Event::BadFrame { reason: reason.clone() });
                        return reason;
                    }
                };
                if let Err(e) = sent {
                    return e.to_string();
                }
            }
            if let Err(e) = to.flush().await {
                return e.to_string();
            }
            match from.read_buf(&mut buffer).await {
                Ok(0) => return "it closed the connection".to_owned(),
                Ok(_) => {}
                Err(e) => return e.to_string(),
            }
        }
    }

    /// Records a frame. What is to be sent for it.
    fn pass(&self, bytes: Bytes) -> Bytes {
        let mut frame = match decode(bytes.clone()) {
            Ok(frame) => frame,
            // The two sides may know more than this program does.
            Err(FrameError::UnknownCommand(_)) => return bytes,
            Err(e) => {
                self.tell(Event::BadFrame { reason: e.to_string() });
                return bytes;
            }
        };
        self.tell(Event::Frame(frame.clone()));
        let to_client = self.direction == Direction::ToClient;
        let mut told = |plain: Option<&str>, tls: Option<&str>| self.tap.told(plain, tls, self.by_tls);
        if to_client && rewrite::urls(&mut frame.command, &mut told) {
            return frame.to_bytes();
        }
        bytes
    }

    fn tell(&self, event: Event) {
        self.tap.record(Some(self.broker), Some(self.conn), self.direction, event);
    }
}

/// Takes the bytes of one frame off the buffer; `None` when there is no whole one yet.
pub(crate) fn take(buffer: &mut BytesMut) -> Option<Result<Bytes, String>> {
    let size: [u8; 4] = buffer.get(..4)?.try_into().ok()?;
    let total = u32::from_be_bytes(size) as usize;
    if total > LARGEST {
        return Some(Err(format!("a frame of {total} bytes")));
    }
    (buffer.len() >= 4 + total).then(|| Ok(buffer.split_to(4 + total).freeze()))
}

/// Decodes the bytes of one frame.
pub(crate) fn decode(mut bytes: Bytes) -> Result<Frame, FrameError> {
    let malformed = || FrameError::Malformed("a frame without a command".to_owned());
    let size: [u8; 4] = bytes.get(4..8).and_then(|b| b.try_into().ok()).ok_or_else(malformed)?;
    let size = u32::from_be_bytes(size) as usize;
    bytes.advance(8);
    if size > bytes.len() {
        return Err(malformed());
    }
    let command = frame::decode_command(bytes.split_to(size))?;
    Ok(Frame { command, payload: (!bytes.is_empty()).then_some(bytes) })
}
