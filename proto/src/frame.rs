//! Frames: the length-prefixed units of a connection.
//!
//! ```text
//! total size (4) | command size (4) | BaseCommand | headers and payload of an entry (SEND and MESSAGE only)
//! ```
//!
//! Sizes are big-endian; the total size counts everything behind itself. The bytes behind the command are handed on
//! unparsed: [`crate::Entry`] reads them. Hostile bytes give a [`FrameError`], never a panic, and never make the
//! decoder reserve more than the limit.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{self, WireType};
use thiserror::Error;

use crate::{
    command::{Command, TYPE_FIELD},
    required::{self, MissingField},
};

/// The largest entry that a broker announces by default (`max_message_size` in CONNECTED), in bytes.
pub const DEFAULT_MAX_MESSAGE_SIZE: usize = 5 * 1024 * 1024;

/// What a frame may hold beyond the largest message, in bytes: the command, metadata and sizes.
pub const FRAME_PADDING: usize = 10 * 1024;

/// One frame: a command, and the entry bytes behind it where the command carries some.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The command.
    pub command: Command,
    /// Headers and payload of an entry, as they are on the wire. `None` when nothing follows the command.
    pub payload: Option<Bytes>,
}

impl<T: Into<Command>> From<T> for Frame {
    fn from(command: T) -> Self {
        Frame { command: command.into(), payload: None }
    }
}

impl Frame {
    /// A frame with entry bytes behind the command.
    pub fn with_payload(command: impl Into<Command>, payload: Bytes) -> Self {
        Frame { command: command.into(), payload: Some(payload) }
    }

    /// Appends the frame, both sizes included.
    pub fn encode(&self, buf: &mut BytesMut) {
        self.encode_sized(self.command.encoded_len(), buf, Command::encode);
    }

    /// Appends the frame with a command that has fields of a later release; see
    /// [`Command::encode_with_unknown_fields`].
    pub fn encode_with_unknown_fields(&self, buf: &mut BytesMut) {
        let size = self.command.encoded_len_with_unknown_fields();
        self.encode_sized(size, buf, Command::encode_with_unknown_fields);
    }

    fn encode_sized(&self, command: usize, buf: &mut BytesMut, encode: fn(&Command, &mut BytesMut)) {
        let payload = self.payload.as_deref().unwrap_or_default();
        buf.reserve(8 + command + payload.len());
        buf.put_u32((4 + command + payload.len()) as u32);
        buf.put_u32(command as u32);
        encode(&self.command, buf);
        buf.put_slice(payload);
    }

    /// The encoded frame, both sizes included.
    pub fn to_bytes(&self) -> Bytes {
        let mut buf = BytesMut::new();
        self.encode(&mut buf);
        buf.freeze()
    }
}

/// Why bytes are not a frame. The connection they came from cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The frame announces more than the limit.
    #[error("frame of {size} bytes exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The announced total size in bytes.
        size: usize,
        /// The largest total size that is read, in bytes.
        limit: usize,
    },
    /// The command's size does not fit into the frame.
    #[error("command of {command} bytes does not fit into a frame of {total} bytes")]
    CommandSize {
        /// The announced command size in bytes.
        command: usize,
        /// The announced total size in bytes.
        total: usize,
    },
    /// The command is not protobuf, or its body is not what its type says.
    #[error("malformed command: {0}")]
    Malformed(String),
    /// `BaseCommand.type` is absent.
    #[error("command without a type")]
    NoType,
    /// The type is not in the protocol.
    #[error("unknown command type {0}")]
    UnknownCommand(u32),
    /// The type is known, but its body is absent.
    #[error("{0} command without its body")]
    NoBody(&'static str),
    /// A required field is absent. prost would read it as its default.
    #[error(transparent)]
    Missing(#[from] MissingField),
}

/// Takes frames off a growing buffer.
#[derive(Debug, Clone, Copy)]
pub struct Decoder {
    limit: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new(DEFAULT_MAX_MESSAGE_SIZE + FRAME_PADDING)
    }
}

impl Decoder {
    /// A decoder that refuses frames whose total size is above `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Decoder { limit }
    }

    /// Takes one frame off the front of `buf`. `Ok(None)` means that more bytes are needed; nothing is taken then.
    ///
    /// An unknown command is taken off the buffer before its error is returned, so that a peer which ignores unknown
    /// commands (stability §4.1) can go on with the next frame. Every other error leaves the stream unreadable.
    pub fn decode(&self, buf: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let Some(total) = peek_u32(buf, 0) else { return Ok(None) };
        if total > self.limit {
            return Err(FrameError::TooLarge { size: total, limit: self.limit });
        }
        let Some(size) = peek_u32(buf, 4) else { return self.need_more(buf, total) };
        if total < 4 || size > total - 4 {
            return Err(FrameError::CommandSize { command: size, total });
        }
        if buf.len() < 4 + total {
            return self.need_more(buf, total);
        }
        let mut frame = buf.split_to(4 + total).freeze();
        frame.advance(8);
        let command = decode_command(frame.split_to(size))?;
        let payload = (!frame.is_empty()).then_some(frame);
        Ok(Some(Frame { command, payload }))
    }

    fn need_more(&self, buf: &mut BytesMut, total: usize) -> Result<Option<Frame>, FrameError> {
        if total < 4 {
            return Err(FrameError::CommandSize { command: 0, total });
        }
        // At most `limit`, which was checked first: one reservation instead of many doublings.
        buf.reserve((4 + total).saturating_sub(buf.len()));
        Ok(None)
    }
}

fn peek_u32(buf: &[u8], at: usize) -> Option<usize> {
    let bytes: [u8; 4] = buf.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes) as usize)
}

/// Finds the type of a `BaseCommand` unless it is given, and the body of that type if it comes behind. The last
/// occurrence wins, as protobuf has it for a scalar; nobody splits a body in two.
fn scan(mut rest: &[u8], given: Option<u32>) -> Result<(Option<u32>, Option<&[u8]>), FrameError> {
    let malformed = |e: prost::DecodeError| FrameError::Malformed(e.to_string());
    let (mut kind, mut body) = (given, None);
    while !rest.is_empty() {
        let (field, wire) = encoding::decode_key(&mut rest).map_err(malformed)?;
        match (field, wire) {
            (TYPE_FIELD, WireType::Varint) => {
                let value = encoding::decode_varint(&mut rest).map_err(malformed)?;
                let value = u32::try_from(value).unwrap_or(u32::MAX);
                if given.is_none() && kind.replace(value) != Some(value) {
                    body = None;
                }
            }
            (_, WireType::LengthDelimited) => {
                let len = encoding::decode_varint(&mut rest).map_err(malformed)?;
                let (value, behind) = usize::try_from(len)
                    .ok()
                    .and_then(|len| rest.split_at_checked(len))
                    .ok_or_else(|| FrameError::Malformed("body longer than the command".into()))?;
                if kind == Some(field) {
                    body = Some(value);
                }
                rest = behind;
            }
            _ => encoding::skip_field(wire, field, &mut rest, Default::default()).map_err(malformed)?,
        }
    }
    Ok((kind, body))
}

/// Decodes a `BaseCommand`. Bodies of other types than the announced one, and unknown fields, are skipped.
pub fn decode_command(bytes: Bytes) -> Result<Command, FrameError> {
    let malformed = |e: prost::DecodeError| FrameError::Malformed(e.to_string());
    // The type comes first in every known encoder, but need not: without it, look for it before the body.
    let (kind, body) = match scan(&bytes, None)? {
        (Some(kind), None) => scan(&bytes, Some(kind))?,
        found => found,
    };
    let kind = kind.ok_or(FrameError::NoType)?;
    let Some(name) = Command::name_of(kind) else { return Err(FrameError::UnknownCommand(kind)) };
    let body = bytes.slice_ref(body.ok_or(FrameError::NoBody(name))?);
    required::check_command(kind, &body)?;
    match Command::decode_body(kind, body) {
        Some(decoded) => decoded.map_err(malformed),
        None => Err(FrameError::UnknownCommand(kind)),
    }
}
