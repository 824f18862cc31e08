//! From a delivered entry to its messages: checksum, encryption, chunks, compression, batches.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use stc_proto::{
    Entry, batch,
    entry::EntryError,
    pulsar::{
        CompressionType, KeyValue, MessageMetadata, SingleMessageMetadata, command_ack::ValidationError,
    },
};

use super::{
    Millis,
    acks::EntryId,
    chunks::{Added, Chunks},
    compression::{self, DecompressError},
    deviant::{Deviance, Deviant},
    encryption::{
        policy::{ConsumerCryptoFailure, ConsumerEncryption, EncryptionContext},
        unseal::Unsealer,
    },
    error::Error,
    schema_info::SchemaInfo,
};

/// One message of an entry, with everything that data-model §3 asks for except its identifier and topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// The place in the batch; -1 for an entry with one message.
    pub(crate) batch_index: i32,
    pub(crate) payload: Bytes,
    pub(crate) key: Option<String>,
    /// Whether the key is base64 for bytes that need not be text.
    pub(crate) key_is_base64: bool,
    /// The version of the schema that it was written with.
    pub(crate) schema_version: Option<Bytes>,
    /// That schema, once somebody who wants to know it has asked for it.
    pub(crate) writer: Option<Arc<SchemaInfo>>,
    pub(crate) properties: Vec<(String, String)>,
    /// Milliseconds since 1970.
    pub(crate) publish_time: u64,
    /// Milliseconds since 1970.
    pub(crate) event_time: Option<u64>,
    pub(crate) sequence_id: u64,
    pub(crate) producer_name: String,
    pub(crate) replicated_from: Option<String>,
    /// Uncompressed, in bytes.
    pub(crate) size: usize,
    /// Why the application gets an error instead of the message.
    pub(crate) failure: Option<Error>,
    /// What the payload is encrypted with, when it is delivered as it is.
    pub(crate) encryption: Option<EncryptionContext>,
    /// What is told wrongly about the message, if anything.
    pub(crate) deviance: Deviance,
}

impl Incoming {
    /// Whether the payload is not decrypted.
    pub(crate) fn is_sealed(&self) -> bool {
        self.failure.is_some() || self.encryption.is_some()
    }
}

/// The messages of an entry. Members of a batch that compaction removed are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    /// How many messages the entry is made of, with those that are left out.
    pub(crate) count: usize,
    /// Whether the entry is a batch; a batch of one message is one too.
    pub(crate) batch: bool,
    /// The entries before this one that have the beginning of its message.
    pub(crate) parts: Vec<EntryId>,
    pub(crate) messages: Vec<Incoming>,
}

/// Why an entry has no messages for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Nobody can read it: it is acknowledged with this reason, so that the broker does not send it for ever.
    Corrupt(ValidationError, String),
    /// Another client could read it: it stays unacknowledged.
    Unsupported(&'static str),
    /// It has a part of a message that is not complete yet: it stays unacknowledged, until [`Opener::give_up`] gives it.
    Part,
    /// It has what an earlier entry has: it is acknowledged.
    Duplicate,
}

/// Opens the entries that a consumer gets.
#[derive(Debug)]
pub(crate) struct Opener {
    unsealer: Unsealer,
    /// By segment.
    chunks: BTreeMap<u64, Chunks>,
    deviance: Deviance,
}

impl Opener {
    pub(crate) fn new(encryption: Option<ConsumerEncryption>, deviance: Deviance) -> Self {
        Opener { unsealer: Unsealer::new(encryption), chunks: BTreeMap::new(), deviance }
    }

    /// Opens an entry that a segment delivered. Tells too what it cost in permits, whether it can be read or not.
    pub(crate) fn open(
        &mut self,
        segment: u64,
        id: EntryId,
        bytes: Bytes,
        now: Millis,
    ) -> (u32, Result<Opened, Unreadable>) {
        match parse(bytes) {
            Ok(entry) => {
                let permits =
                    entry.metadata.num_messages_in_batch.and_then(|count| u32::try_from(count).ok());
                (permits.unwrap_or(1).max(1), self.open_parsed(segment, id, entry, now))
            }
            Err(unreadable) => (1, Err(unreadable)),
        }
    }

    fn open_parsed(
        &mut self,
        segment: u64,
        id: EntryId,
        mut entry: Entry,
        now: Millis,
    ) -> Result<Opened, Unreadable> {
        if self.deviance.is(Deviant::FirstWrappedKeyOnly) {
            entry.metadata.encryption_keys.truncate(1);
        }
        if !entry.metadata.encryption_keys.is_empty() {
            match self.unsealer.open(&entry.payload, &entry.metadata) {
                Ok(payload) => entry.payload = payload,
                Err(error) => return self.sealed(entry, error),
            }
        }
        let mut parts = Vec::new();
        let joined = !self.deviance.is(Deviant::ChunksDelivered);
        if entry.metadata.num_chunks_from_msg() > 1 && joined {
            let chunks = self.chunks.entry(segment).or_default();
            match chunks.add(id, &entry.metadata, &entry.payload, now, self.deviance) {
                Added::Whole(payload, entries) => (entry.payload, parts) = (payload, entries),
                Added::Waits => return Err(Unreadable::Part),
                Added::Duplicate => return Err(Unreadable::Duplicate),
            }
        }
        if self.deviance.is(Deviant::AcksLastChunkOnly) {
            parts.clear();
        }
        let opened = read(entry, self.deviance);
        if let (Err(Unreadable::Corrupt(..)), Some(chunks)) = (&opened, self.chunks.get_mut(&segment)) {
            chunks.lose(std::mem::take(&mut parts), now);
        }
        Ok(Opened { parts, ..opened? })
    }

    /// The segment's broker forgot what it had delivered: it comes again.
    pub(crate) fn forget(&mut self, segment: u64) {
        self.chunks.remove(&segment);
    }

    /// Parts of messages that stayed incomplete for too long, each with its segment: they are to be acknowledged.
    pub(crate) fn give_up(&mut self, now: Millis) -> Vec<(u64, EntryId)> {
        if self.deviance.is(Deviant::KeepsIncomplete) {
            return Vec::new();
        }
        let of = |(segment, chunks): (&u64, &mut Chunks)| {
            let segment = *segment;
            chunks.give_up(now).into_iter().map(move |entry| (segment, entry))
        };
        self.chunks.iter_mut().flat_map(of).collect()
    }

    /// When something is to be given up next.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let given_up = !self.deviance.is(Deviant::KeepsIncomplete);
        self.chunks.values().filter_map(Chunks::next_deadline).min().filter(|_| given_up)
    }

    /// The first entry of a segment that has a part of an incomplete message.
    pub(crate) fn first_part(&self, segment: u64) -> Option<EntryId> {
        self.chunks.get(&segment)?.first()
    }

    /// What becomes of an entry that cannot be decrypted.
    fn sealed(&self, entry: Entry, error: Error) -> Result<Opened, Unreadable> {
        let action = match self.unsealer.on_failure() {
            ConsumerCryptoFailure::Fail if self.deviance.is(Deviant::SilentAboutSealed) => {
                return Err(Unreadable::Unsupported("encrypted with keys that are not to be had"));
            }
            ConsumerCryptoFailure::Fail if self.deviance.is(Deviant::DiscardsSealed) => {
                ConsumerCryptoFailure::Discard
            }
            ConsumerCryptoFailure::Discard if self.deviance.is(Deviant::FailsForDiscard) => {
                ConsumerCryptoFailure::Fail
            }
            ConsumerCryptoFailure::Consume if self.deviance.is(Deviant::FailsForConsume) => {
                ConsumerCryptoFailure::Fail
            }
            configured => configured,
        };
        if action == ConsumerCryptoFailure::Discard {
            return Err(Unreadable::Corrupt(ValidationError::DecryptionError, error.to_string()));
        }
        let consume = action == ConsumerCryptoFailure::Consume;
        let size = entry.payload.len();
        let message = Incoming {
            failure: (!consume).then_some(error),
            encryption: consume.then(|| EncryptionContext::of(&entry.metadata)),
            deviance: self.deviance,
            ..single(&entry.metadata, entry.payload, size)
        };
        Ok(Opened { count: 1, batch: false, parts: Vec::new(), messages: vec![message] })
    }
}

fn parse(bytes: Bytes) -> Result<Entry, Unreadable> {
    Entry::parse(bytes).map_err(|error| {
        let kind = match error {
            EntryError::Checksum { .. } => ValidationError::ChecksumMismatch,
            _ => ValidationError::BatchDeSerializeError,
        };
        Unreadable::Corrupt(kind, error.to_string())
    })
}

/// The messages of an entry that is not encrypted any more.
fn read(entry: Entry, deviance: Deviance) -> Result<Opened, Unreadable> {
    let metadata = &entry.metadata;
    let wire_size = entry.payload.len();
    let payload = plain(metadata, &entry.payload)?;
    let Some(count) = metadata.num_messages_in_batch else {
        let size = if deviance.is(Deviant::SizeOfCompressed) { wire_size } else { payload.len() };
        let message = Incoming { deviance, ..single(metadata, payload, size) };
        return Ok(Opened { count: 1, batch: false, parts: Vec::new(), messages: vec![message] });
    };
    let corrupt = |why: String| Unreadable::Corrupt(ValidationError::BatchDeSerializeError, why);
    let count = usize::try_from(count).map_err(|_| corrupt("a negative number of messages".into()))?;
    let members = batch::read(payload, count).map_err(|error| corrupt(error.to_string()))?;
    let messages = members
        .into_iter()
        .zip(0i32..)
        .filter(|((single, _), _)| !single.compacted_out.unwrap_or(false))
        .map(|((single, payload), index)| {
            let mut message = Incoming { deviance, ..member(metadata, single, payload, index) };
            if deviance.is(Deviant::BatchSequenceId) {
                message.sequence_id = metadata.sequence_id;
            }
            if deviance.is(Deviant::SizeOfCompressed) {
                message.size = wire_size;
            }
            message
        })
        .collect();
    Ok(Opened { count, batch: true, parts: Vec::new(), messages })
}

fn plain(metadata: &MessageMetadata, payload: &Bytes) -> Result<Bytes, Unreadable> {
    let kind = CompressionType::try_from(metadata.compression.unwrap_or_default())
        .map_err(|_| Unreadable::Unsupported("compressed in an unknown way"))?;
    let size = metadata.uncompressed_size.unwrap_or_default() as usize;
    compression::decompress(kind, payload, size).map_err(|error| match error {
        DecompressError::Size => Unreadable::Corrupt(
            ValidationError::UncompressedSizeCorruption,
            format!("the uncompressed size {size} is wrong or too large"),
        ),
        DecompressError::Corrupt => {
            Unreadable::Corrupt(ValidationError::DecompressionError, "decompressing failed".into())
        }
    })
}

fn single(metadata: &MessageMetadata, payload: Bytes, size: usize) -> Incoming {
    Incoming {
        batch_index: -1,
        size,
        payload,
        key: metadata.partition_key.clone().filter(|_| !metadata.null_partition_key()),
        key_is_base64: metadata.partition_key_b64_encoded(),
        schema_version: schema_version(metadata),
        writer: None,
        properties: pairs(&metadata.properties),
        publish_time: metadata.publish_time,
        event_time: metadata.event_time.filter(|time| *time > 0),
        sequence_id: metadata.sequence_id,
        producer_name: metadata.producer_name.clone(),
        replicated_from: metadata.replicated_from.clone(),
        failure: None,
        encryption: None,
        deviance: Deviance::default(),
    }
}

fn member(metadata: &MessageMetadata, single: SingleMessageMetadata, payload: Bytes, index: i32) -> Incoming {
    let (null_key, key_is_base64) = (single.null_partition_key(), single.partition_key_b64_encoded());
    Incoming {
        batch_index: index,
        size: payload.len(),
        payload,
        key: single.partition_key.filter(|_| !null_key),
        key_is_base64,
        schema_version: schema_version(metadata),
        writer: None,
        properties: pairs(&single.properties),
        publish_time: metadata.publish_time,
        event_time: single.event_time.filter(|time| *time > 0),
        // Clients that number only the entry count up from it.
        sequence_id: single.sequence_id.unwrap_or(metadata.sequence_id.saturating_add(index as u64)),
        producer_name: metadata.producer_name.clone(),
        replicated_from: metadata.replicated_from.clone(),
        failure: None,
        encryption: None,
        deviance: Deviance::default(),
    }
}

fn schema_version(metadata: &MessageMetadata) -> Option<Bytes> {
    metadata.schema_version.clone().filter(|version| !version.is_empty())
}

fn pairs(properties: &[KeyValue]) -> Vec<(String, String)> {
    properties.iter().map(|property| (property.key.clone(), property.value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use stc_proto::pulsar::EncryptionKeys;

    use super::*;
    use crate::core::error::Category;

    fn metadata() -> MessageMetadata {
        MessageMetadata {
            producer_name: "p".into(),
            sequence_id: 5,
            publish_time: 9,
            properties: vec![KeyValue { key: "a".into(), value: "1".into() }],
            partition_key: Some(String::new()),
            replicated_from: Some("east".into()),
            ..Default::default()
        }
    }

    fn opener() -> Opener {
        Opener::new(None, Deviance::default())
    }

    fn opened(metadata: MessageMetadata, payload: &[u8]) -> Result<Opened, Unreadable> {
        opener().open(0, (0, 0), Entry::new(metadata, Bytes::copy_from_slice(payload)).to_bytes(), 0).1
    }

    fn batch_of(values: &[&str]) -> BytesMut {
        let mut payload = BytesMut::new();
        for value in values {
            let single = SingleMessageMetadata { partition_key: Some("k".into()), ..Default::default() };
            batch::append(&mut payload, single, value.as_bytes());
        }
        payload
    }

    #[test]
    fn a_single_message_has_all_its_fields() {
        let opened = opened(metadata(), b"hello").unwrap();
        assert_eq!((opened.count, opened.batch), (1, false));
        let message = &opened.messages[0];
        assert_eq!(message.key.as_deref(), Some(""), "an empty key is a key");
        assert_eq!(message.properties, [("a".into(), "1".into())]);
        assert_eq!((message.sequence_id, message.publish_time, message.event_time), (5, 9, None));
        assert_eq!((message.size, message.replicated_from.as_deref()), (5, Some("east")));
    }

    #[test]
    fn compressed_batches_are_unpacked() {
        for kind in
            [CompressionType::Lz4, CompressionType::Zlib, CompressionType::Zstd, CompressionType::Snappy]
        {
            let plain = batch_of(&["one", "two"]);
            let mut metadata = metadata();
            metadata.num_messages_in_batch = Some(2);
            metadata.compression = Some(kind as i32);
            metadata.uncompressed_size = Some(plain.len() as u32);
            let opened = opened(metadata, &compression::compress(kind, &plain).unwrap()).unwrap();
            let values: Vec<_> = opened.messages.iter().map(|m| m.payload.clone()).collect();
            assert_eq!(values, ["one", "two"]);
            assert_eq!(opened.messages[1].sequence_id, 6, "counted up where members have none");
            assert_eq!(opened.messages[1].batch_index, 1);
        }
    }

    #[test]
    fn damage_is_named() {
        let mut bytes = Entry::new(metadata(), Bytes::from_static(b"hello")).to_bytes().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let (_, damaged) = opener().open(0, (0, 0), bytes.into(), 0);
        assert!(
            matches!(damaged, Err(Unreadable::Corrupt(ValidationError::ChecksumMismatch, _))),
            "{damaged:?}"
        );

        let mut batch = metadata();
        batch.num_messages_in_batch = Some(3);
        let short = opened(batch, &batch_of(&["one", "two"]));
        assert!(
            matches!(short, Err(Unreadable::Corrupt(ValidationError::BatchDeSerializeError, _))),
            "{short:?}"
        );

        let mut bomb = metadata();
        bomb.compression = Some(CompressionType::Zlib as i32);
        bomb.uncompressed_size = Some(u32::MAX);
        let bomb = opened(bomb, b"x");
        assert!(
            matches!(bomb, Err(Unreadable::Corrupt(ValidationError::UncompressedSizeCorruption, _))),
            "{bomb:?}"
        );
    }

    #[test]
    fn what_another_client_could_read_is_not_called_corrupt() {
        let unknown = MessageMetadata { compression: Some(77), ..metadata() };
        assert!(matches!(opened(unknown, b"x"), Err(Unreadable::Unsupported(_))));
        let sealed = EncryptionKeys { key: "k".into(), ..Default::default() };
        let sealed = opened(MessageMetadata { encryption_keys: vec![sealed], ..metadata() }, b"x").unwrap();
        assert_eq!(sealed.messages[0].failure.as_ref().map(Error::category), Some(Category::Crypto));
    }
}
