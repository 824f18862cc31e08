//! Several messages in one entry: `size (4) | SingleMessageMetadata | payload`, one behind the other.
//!
//! The whole sequence is what gets compressed; `num_messages_in_batch` in the entry's metadata says how many there
//! are.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use thiserror::Error;

use crate::{pulsar::SingleMessageMetadata, required};

/// Why a payload is not a batch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// The payload ends early.
    #[error("batch ends within message {index}")]
    Truncated {
        /// Which message, counted from 0.
        index: usize,
    },
    /// A message's metadata is not protobuf, or its payload size is absent or negative.
    #[error("malformed metadata of message {index} in a batch")]
    Malformed {
        /// Which message, counted from 0.
        index: usize,
    },
}

/// Appends one message to the payload of a batch; sets `payload_size`.
pub fn append(buf: &mut BytesMut, mut metadata: SingleMessageMetadata, payload: &[u8]) {
    metadata.payload_size = payload.len() as i32;
    buf.put_u32(metadata.encoded_len() as u32);
    metadata.encode_raw(buf);
    buf.put_slice(payload);
}

/// Reads the first `count` messages of an uncompressed batch payload.
///
/// Memory is reserved for what the payload holds, not for what `count` claims.
pub fn read(mut payload: Bytes, count: usize) -> Result<Vec<(SingleMessageMetadata, Bytes)>, BatchError> {
    let mut messages = Vec::new();
    for index in 0..count {
        let truncated = BatchError::Truncated { index };
        let Ok(size) = payload.try_get_u32() else { return Err(truncated) };
        let size = size as usize;
        if size > payload.len() {
            return Err(truncated);
        }
        let malformed = || BatchError::Malformed { index };
        let metadata = payload.split_to(size);
        required::check_message(&required::SINGLE_METADATA, &metadata).map_err(|_| malformed())?;
        let metadata = SingleMessageMetadata::decode(metadata).map_err(|_| malformed())?;
        let size = usize::try_from(metadata.payload_size).map_err(|_| malformed())?;
        if size > payload.len() {
            return Err(truncated);
        }
        messages.push((metadata, payload.split_to(size)));
    }
    Ok(messages)
}
