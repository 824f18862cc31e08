//! An entry: what SEND carries to a broker, what the broker stores, and what MESSAGE carries to a consumer.
//!
//! ```text
//! [0x0e02 | size (4) | BrokerEntryMetadata] [0x0e01 | CRC32C (4)] metadata size (4) | MessageMetadata | payload
//! ```
//!
//! Both bracketed parts are optional. The checksum covers everything behind itself. A broker stores and delivers the
//! bytes as they are; compressed, chunked and encrypted payloads stay opaque here.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use thiserror::Error;

use crate::{
    pulsar::{BrokerEntryMetadata, MessageMetadata},
    required::{self, MissingField},
};

const MAGIC_CRC32C: u16 = 0x0e01;
const MAGIC_BROKER_METADATA: u16 = 0x0e02;

/// A parsed entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What the broker added in front of the entry, if the consumer asked for it.
    pub broker: Option<BrokerEntryMetadata>,
    /// The checksum that was on the wire, if there was one. It was right.
    pub checksum: Option<u32>,
    /// The producer's metadata.
    pub metadata: MessageMetadata,
    /// The payload: one message, a batch, or a chunk; compressed and encrypted as the metadata says.
    pub payload: Bytes,
}

/// Why bytes are not an entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EntryError {
    /// A part ends early.
    #[error("entry ends within its {0}")]
    Truncated(&'static str),
    /// The checksum does not fit the bytes behind it.
    #[error("checksum {found:08x} does not match the entry, which has {computed:08x}")]
    Checksum {
        /// The checksum on the wire.
        found: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A metadata message is not protobuf.
    #[error("malformed entry metadata: {0}")]
    Malformed(String),
    /// A required metadata field is absent.
    #[error(transparent)]
    Missing(#[from] MissingField),
}

impl Entry {
    /// An entry without broker metadata; its checksum is computed when it is encoded.
    pub fn new(metadata: MessageMetadata, payload: Bytes) -> Self {
        Entry { broker: None, checksum: None, metadata, payload }
    }

    /// Parses an entry and verifies its checksum.
    pub fn parse(mut bytes: Bytes) -> Result<Self, EntryError> {
        let malformed = |e: prost::DecodeError| EntryError::Malformed(e.to_string());
        let mut broker = None;
        if magic(&bytes) == Some(MAGIC_BROKER_METADATA) {
            bytes.advance(2);
            let part = sized(&mut bytes, "broker metadata")?;
            broker = Some(BrokerEntryMetadata::decode(part).map_err(malformed)?);
        }
        let mut checksum = None;
        if magic(&bytes) == Some(MAGIC_CRC32C) {
            bytes.advance(2);
            let found = bytes.try_get_u32().map_err(|_| EntryError::Truncated("checksum"))?;
            let computed = crc32c::crc32c(&bytes);
            if found != computed {
                return Err(EntryError::Checksum { found, computed });
            }
            checksum = Some(found);
        }
        let metadata = sized(&mut bytes, "metadata")?;
        required::check_message(&required::METADATA, &metadata)?;
        let metadata = MessageMetadata::decode(metadata).map_err(malformed)?;
        Ok(Entry { broker, checksum, metadata, payload: bytes })
    }

    /// The entry as it goes on the wire, with a fresh checksum.
    pub fn to_bytes(&self) -> Bytes {
        let mut buf = BytesMut::with_capacity(
            10 + self.metadata.encoded_len()
                + self.payload.len()
                + self.broker.as_ref().map_or(0, |b| 6 + b.encoded_len()),
        );
        if let Some(broker) = &self.broker {
            put_broker_metadata(broker, &mut buf);
        }
        let body = buf.len() + 6;
        buf.put_u16(MAGIC_CRC32C);
        buf.put_u32(0);
        buf.put_u32(self.metadata.encoded_len() as u32);
        self.metadata.encode_raw(&mut buf);
        buf.put_slice(&self.payload);
        let checksum = crc32c::crc32c(buf.get(body..).unwrap_or_default());
        if let Some(place) = buf.get_mut(body - 4..body) {
            place.copy_from_slice(&checksum.to_be_bytes());
        }
        buf.freeze()
    }
}

/// Puts broker entry metadata in front of the bytes of a stored entry.
pub fn with_broker_metadata(broker: &BrokerEntryMetadata, entry: &[u8]) -> Bytes {
    let mut buf = BytesMut::with_capacity(6 + broker.encoded_len() + entry.len());
    put_broker_metadata(broker, &mut buf);
    buf.put_slice(entry);
    buf.freeze()
}

fn put_broker_metadata(broker: &BrokerEntryMetadata, buf: &mut BytesMut) {
    buf.put_u16(MAGIC_BROKER_METADATA);
    buf.put_u32(broker.encoded_len() as u32);
    broker.encode_raw(buf);
}

fn magic(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|b| u16::from_be_bytes(*b))
}

fn sized(bytes: &mut Bytes, part: &'static str) -> Result<Bytes, EntryError> {
    let size = bytes.try_get_u32().map_err(|_| EntryError::Truncated(part))? as usize;
    if size > bytes.len() {
        return Err(EntryError::Truncated(part));
    }
    Ok(bytes.split_to(size))
}
