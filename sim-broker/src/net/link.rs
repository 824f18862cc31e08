//! One connection over any byte stream.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use stc_proto::{Decoder, Frame, frame::FRAME_PADDING};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    sync::{
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        oneshot,
    },
};
use tracing::debug;

use super::SimCluster;
use crate::core::ConnId;

/// How many bytes are read, and encoded, at a time.
const CHUNK: usize = 64 * 1024;

/// How long a closed connection may take to send what is queued, before it is cut off.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// What a queued frame weighs beside its payload, in bytes: about what a command takes.
const COMMAND_WEIGHT: usize = 256;

/// The cluster's end of a connection: frames go in here. Dropping it closes the connection once they are sent.
#[derive(Debug)]
pub(super) struct Link {
    frames: UnboundedSender<Frame>,
    waiting: Arc<AtomicUsize>,
    /// Tells by its end that the connection is closed.
    _open: oneshot::Sender<()>,
}

/// The task's end of a connection.
#[derive(Debug)]
pub(super) struct Incoming {
    frames: UnboundedReceiver<Frame>,
    waiting: Arc<AtomicUsize>,
    closed: oneshot::Receiver<()>,
}

impl Incoming {
    /// Resolves when the cluster closed the connection.
    pub(super) async fn closed(&mut self) {
        // Nothing is ever sent: it resolves when the other end is dropped.
        let _ = (&mut self.closed).await;
    }
}

impl Link {
    pub(super) fn new() -> (Link, Incoming) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (open, closed) = oneshot::channel();
        let link = Link { frames: sender, waiting: waiting.clone(), _open: open };
        (link, Incoming { frames: receiver, waiting, closed })
    }

    /// Queues a frame; returns how many bytes wait now.
    pub(super) fn send(&self, frame: Frame) -> usize {
        let weight = weight(&frame);
        // Counted before it is queued: the writing task may take it off, and its weight, at once.
        let before = self.waiting.fetch_add(weight, Ordering::Relaxed);
        // A closed channel means that the task ended and the cluster is about to hear of it.
        let _ = self.frames.send(frame);
        before.saturating_add(weight)
    }
}

fn weight(frame: &Frame) -> usize {
    COMMAND_WEIGHT + frame.payload.as_ref().map_or(0, |p| p.len())
}

/// Runs a connection until either side closes it.
pub(super) async fn run<S>(cluster: SimCluster, conn: ConnId, stream: S, incoming: Incoming)
where
    S: AsyncRead + AsyncWrite + Send,
{
    let (mut reader, mut writer) = tokio::io::split(stream);
    let Incoming { mut frames, waiting, closed } = incoming;
    let later_release = cluster.read(|c| c.config().unknown_fields);
    let encode = if later_release { Frame::encode_with_unknown_fields } else { Frame::encode };
    let cut_off = async {
        // Nothing is ever sent: it resolves when the other end is dropped.
        let _ = closed.await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        biased;
        reason = read(&cluster, conn, &mut reader) => {
            cluster.with(|c, now| c.closed(conn, &reason, now));
            // A client that only closed its own half still reads what was answered before.
            let _ = tokio::time::timeout(LINGER, write(&mut frames, &waiting, encode, &mut writer)).await;
        }
        // A client that does not read would keep it open for ever.
        () = cut_off => debug!(%conn, "cut off"),
        result = write(&mut frames, &waiting, encode, &mut writer) => {
            if let Err(error) = result {
                cluster.with(|c, now| c.closed(conn, &error.to_string(), now));
            }
        }
        () = cluster.stopped() => {
            cluster.with(|c, now| c.close(conn, "the cluster shut down", now));
        }
    }
    // The peer may be gone already, or not read.
    let _ = tokio::time::timeout(LINGER, writer.shutdown()).await;
    debug!(%conn, "ended");
}

/// Reads frames until the client closes; returns why it ended. After a frame that is none, the rest is ignored.
async fn read<S: AsyncRead>(cluster: &SimCluster, conn: ConnId, reader: &mut ReadHalf<S>) -> String {
    let limit = cluster.read(|c| c.config().profile.max_message_size as usize) + FRAME_PADDING;
    let decoder = Decoder::new(limit);
    // Never holds more than one frame of that limit and one chunk.
    let mut buffer = BytesMut::new();
    loop {
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(frame)) => cluster.with(|c, now| c.receive(conn, Ok(frame), now)),
                Ok(None) => break,
                Err(error) => {
                    cluster.with(|c, now| c.receive(conn, Err(error), now));
                    // The cluster closes the connection; the other half of the task ends it.
                    return std::future::pending().await;
                }
            }
        }
        buffer.reserve(CHUNK);
        match (&mut *reader).take(CHUNK as u64).read_buf(&mut buffer).await {
            Ok(0) => return "the client closed the connection".to_owned(),
            Ok(_) => {}
            Err(error) => return error.to_string(),
        }
    }
}

/// Writes frames until the cluster closes the connection.
async fn write<S: AsyncWrite>(
    frames: &mut UnboundedReceiver<Frame>,
    waiting: &AtomicUsize,
    encode: fn(&Frame, &mut BytesMut),
    writer: &mut WriteHalf<S>,
) -> std::io::Result<()> {
    let mut buffer = BytesMut::new();
    while let Some(frame) = frames.recv().await {
        let mut written = weight(&frame);
        encode(&frame, &mut buffer);
        while buffer.len() < CHUNK
            && let Ok(frame) = frames.try_recv()
        {
            written += weight(&frame);
            encode(&frame, &mut buffer);
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        buffer.clear();
        waiting.fetch_sub(written, Ordering::Relaxed);
    }
    Ok(())
}
