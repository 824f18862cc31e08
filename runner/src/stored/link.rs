//! One connection of the suite's own to a broker: handshake, requests and their answers, keep-alive.

use bytes::{Bytes, BytesMut};
use stc_proto::pulsar::{
    CommandConnect, CommandError, CommandPong, CommandProducer, CommandSend, MessageMetadata, ServerError,
};
use stc_proto::{Command, Decoder, Entry, Frame};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::judge::Trouble;

/// What the suite calls itself to a broker.
const NAME: &str = concat!("stc-runner ", env!("CARGO_PKG_VERSION"));

/// The protocol version of Pulsar 5.
const PROTOCOL_VERSION: i32 = 21;

/// Bytes to a broker and back.
pub(super) trait Pipe: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Pipe for T {}

/// A connection that has done its handshake.
pub(super) struct Link {
    stream: Box<dyn Pipe>,
    buffer: BytesMut,
    decoder: Decoder,
    requests: u64,
}

impl Link {
    /// Connects to `host:port`. `through` is the broker behind it when that is a proxy.
    pub(super) async fn open(address: &str, through: Option<&str>) -> Result<Link, Trouble> {
        let stream = TcpStream::connect(address).await.map_err(|e| Trouble(format!("{address}: {e}")))?;
        stream.set_nodelay(true)?;
        Link::over(Box::new(stream), through).await
    }

    /// Does the handshake on a stream that leads to a broker.
    pub(super) async fn over(stream: Box<dyn Pipe>, through: Option<&str>) -> Result<Link, Trouble> {
        let mut link = Link { stream, buffer: BytesMut::new(), decoder: Decoder::default(), requests: 0 };
        let connect = CommandConnect {
            client_version: NAME.to_owned(),
            protocol_version: Some(PROTOCOL_VERSION),
            proxy_to_broker_url: through.map(str::to_owned),
            ..CommandConnect::default()
        };
        link.send(connect).await?;
        match link.next().await?.command {
            Command::Connected(_) => Ok(link),
            other => Err(unexpected("CONNECT", &other)),
        }
    }

    /// A request id that was not used on this connection, from 1 up.
    pub(super) fn request_id(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// Sends a command.
    pub(super) async fn send(&mut self, frame: impl Into<Frame>) -> Result<(), Trouble> {
        let bytes = frame.into().to_bytes();
        Ok(self.stream.write_all(&bytes).await?)
    }

    /// Opens a producer. Gives the error that the broker refuses it with.
    pub(super) async fn open_producer(
        &mut self,
        topic: String,
        producer_id: u64,
    ) -> Result<Result<(), CommandError>, Trouble> {
        let request_id = self.request_id();
        self.send(CommandProducer { topic, producer_id, request_id, ..Default::default() }).await?;
        match self.answer().await? {
            Command::ProducerSuccess(_) => Ok(Ok(())),
            Command::Error(error) => Ok(Err(error)),
            other => Err(unexpected("PRODUCER", &other)),
        }
    }

    /// Publishes an entry of one message by an open producer, and waits for the receipt.
    pub(super) async fn publish(
        &mut self,
        producer_id: u64,
        metadata: MessageMetadata,
        payload: Bytes,
    ) -> Result<(), Trouble> {
        let send = CommandSend { producer_id, sequence_id: metadata.sequence_id, ..Default::default() };
        self.send(Frame::with_payload(send, Entry::new(metadata, payload).to_bytes())).await?;
        match self.answer().await? {
            Command::SendReceipt(_) => Ok(()),
            other => Err(unexpected("SEND", &other)),
        }
    }

    /// The next frame that is not for a consumer: 5.0.1 sends messages to one whose close it has answered.
    pub(super) async fn answer(&mut self) -> Result<Command, Trouble> {
        loop {
            match self.next().await?.command {
                Command::Message(_) | Command::ActiveConsumerChange(_) | Command::ReachedEndOfTopic(_) => {}
                other => return Ok(other),
            }
        }
    }

    /// The next frame that is no PING; those are answered.
    pub(super) async fn next(&mut self) -> Result<Frame, Trouble> {
        loop {
            while let Some(frame) = self.decoder.decode(&mut self.buffer)? {
                if matches!(frame.command, Command::Ping(_)) {
                    self.send(CommandPong {}).await?;
                } else {
                    return Ok(frame);
                }
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(Trouble::new("the broker closed the connection that reads what is stored"));
            }
        }
    }
}

/// The answer to `request` is none that the protocol has for it.
pub(super) fn unexpected(request: &str, answer: &Command) -> Trouble {
    if let Command::Error(error) = answer {
        let code = ServerError::try_from(error.error).map_or("an unknown error", |e| e.as_str_name());
        return Trouble(format!("{request} was answered with {code}: {}", error.message));
    }
    Trouble(format!("{request} was answered with {}", answer.name()))
}
