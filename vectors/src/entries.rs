//! `entries`: what producers store, as bytes and taken apart: single messages, batches, chunks, encrypted entries.

use bytes::{Bytes, BytesMut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stc_proto::{
    Entry, batch, fields,
    pulsar::{EncryptionKeys, KeyValue, MessageMetadata, SingleMessageMetadata},
};

use crate::{Document, GenerateError, document::About};

/// The entries of one segment in stored order, and the messages in them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What the case shows.
    pub note: String,
    /// The entries.
    pub entries: Vec<Stored>,
    /// The messages in the order in which they are complete. Of an encrypted entry its sealed payload, as a consumer gets it
    /// that has no key.
    pub messages: Vec<Message>,
}

/// One entry.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// All of it in lower-case hex: 0e01, CRC32C of all that follows it, size of the metadata, metadata, payload. The
    /// metadata's fields are in ascending order.
    pub entry: String,
    /// The checksum as a number.
    pub crc32c: u32,
    /// The fields of `MessageMetadata`: names as in the protocol, bytes in hex, absent fields absent.
    pub metadata: Map<String, Value>,
    /// The members of a batch: the fields of their `SingleMessageMetadata`. Empty for what is no batch or is encrypted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Map<String, Value>>,
}

/// One message.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Its key; null without one.
    pub key: Option<String>,
    /// Its sequence id.
    pub sequence_id: u64,
    /// Its payload in lower-case hex.
    pub payload: String,
    /// The entries that it is in, counted from 0.
    pub entries: Vec<usize>,
}

const NAME: &str = "entries";

fn error(reason: impl std::fmt::Display) -> GenerateError {
    GenerateError::new(NAME, reason)
}

fn object(json: Value) -> Result<Map<String, Value>, GenerateError> {
    match json {
        Value::Object(map) => Ok(map),
        other => Err(error(format!("fields are an object, not {other}"))),
    }
}

fn metadata(sequence_id: u64) -> MessageMetadata {
    MessageMetadata {
        producer_name: "orders-0".into(),
        sequence_id,
        publish_time: 1_796_030_193_132,
        ..Default::default()
    }
}

fn member(key: Option<&str>, sequence_id: Option<u64>) -> SingleMessageMetadata {
    SingleMessageMetadata { partition_key: key.map(str::to_owned), sequence_id, ..Default::default() }
}

fn keyed(key: &str, sequence_id: u64) -> MessageMetadata {
    MessageMetadata { partition_key: Some(key.into()), ..metadata(sequence_id) }
}

/// A case being put together.
struct Draft {
    note: &'static str,
    entries: Vec<Stored>,
    messages: Vec<Message>,
}

impl Draft {
    fn new(note: &'static str) -> Self {
        Draft { note, entries: Vec::new(), messages: Vec::new() }
    }

    fn store(&mut self, metadata: &MessageMetadata, payload: &[u8]) -> Result<usize, GenerateError> {
        let bytes = Entry::new(metadata.clone(), Bytes::copy_from_slice(payload)).to_bytes();
        let crc32c = Entry::parse(bytes.clone()).map_err(error)?.checksum;
        let crc32c = crc32c.ok_or_else(|| error("an entry has a checksum"))?;
        let metadata = object(fields::to_json("MessageMetadata", metadata))?;
        let entry = fields::hex(&bytes);
        self.entries.push(Stored { entry, crc32c, metadata, members: Vec::new() });
        Ok(self.entries.len() - 1)
    }

    fn gives(&mut self, key: Option<&str>, sequence_id: u64, payload: &[u8], entries: Vec<usize>) {
        let (key, payload) = (key.map(str::to_owned), fields::hex(payload));
        self.messages.push(Message { key, sequence_id, payload, entries });
    }

    fn single(mut self, metadata: &MessageMetadata, payload: &[u8]) -> Result<Self, GenerateError> {
        let at = self.store(metadata, payload)?;
        self.gives(metadata.partition_key.as_deref(), metadata.sequence_id, payload, vec![at]);
        Ok(self)
    }

    fn batch(
        mut self,
        outer: MessageMetadata,
        members: &[(SingleMessageMetadata, &[u8])],
    ) -> Result<Self, GenerateError> {
        let mut payload = BytesMut::new();
        for (single, value) in members {
            batch::append(&mut payload, single.clone(), value);
        }
        let count = i32::try_from(members.len()).map_err(error)?;
        let outer = MessageMetadata { num_messages_in_batch: Some(count), ..outer };
        let at = self.store(&outer, &payload)?;
        let mut listed = Vec::new();
        for ((single, value), index) in members.iter().zip(0..) {
            // The size is the encoder's.
            let payload_size = i32::try_from(value.len()).map_err(error)?;
            let written = SingleMessageMetadata { payload_size, ..single.clone() };
            listed.push(object(fields::to_json("SingleMessageMetadata", &written))?);
            let sequence_id = single.sequence_id.unwrap_or(outer.sequence_id + index);
            self.gives(single.partition_key.as_deref(), sequence_id, value, vec![at]);
        }
        if let Some(stored) = self.entries.last_mut() {
            stored.members = listed;
        }
        Ok(self)
    }

    /// Chunks in this order: message and the place of the chunk in it.
    fn chunks(
        mut self,
        messages: &[(&str, u64, &[&[u8]])],
        order: &[(usize, usize)],
    ) -> Result<Self, GenerateError> {
        let mut seen: Vec<Vec<usize>> = vec![Vec::new(); messages.len()];
        for (message, part) in order {
            let (key, sequence_id, parts) = messages.get(*message).ok_or_else(|| error("no such message"))?;
            let payload = parts.get(*part).ok_or_else(|| error("no such chunk"))?;
            let whole = parts.concat();
            let metadata = MessageMetadata {
                uuid: Some(format!("orders-0-{sequence_id}")),
                num_chunks_from_msg: Some(i32::try_from(parts.len()).map_err(error)?),
                total_chunk_msg_size: Some(i32::try_from(whole.len()).map_err(error)?),
                chunk_id: Some(i32::try_from(*part).map_err(error)?),
                ..keyed(key, *sequence_id)
            };
            let at = self.store(&metadata, payload)?;
            let entries = seen.get_mut(*message).ok_or_else(|| error("no such message"))?;
            if entries.len() == *part {
                entries.push(at);
                if entries.len() == parts.len() {
                    let entries = entries.clone();
                    self.gives(Some(key), *sequence_id, &whole, entries);
                }
            }
        }
        Ok(self)
    }

    fn done(self) -> Case {
        Case { note: self.note.to_owned(), entries: self.entries, messages: self.messages }
    }
}

fn wrapped(name: &str, byte: u8, size: usize, about: &[(&str, &str)]) -> EncryptionKeys {
    let pair = |(key, value): &(&str, &str)| KeyValue { key: (*key).into(), value: (*value).into() };
    EncryptionKeys {
        key: name.into(),
        value: vec![byte; size].into(),
        metadata: about.iter().map(pair).collect(),
    }
}

fn encrypted(sequence_id: u64, keys: Vec<EncryptionKeys>) -> MessageMetadata {
    MessageMetadata {
        encryption_keys: keys,
        encryption_param: Some(Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])),
        entry_hash_min: Some(0xf8bf),
        entry_hash_max: Some(0xf8bf),
        ..keyed("key-0", sequence_id)
    }
}

pub(crate) fn document() -> Result<Document, GenerateError> {
    let about = About {
        name: NAME,
        title: "Entries and the messages in them",
        description: "What producers store: single messages, batches, the chunks of large messages, encrypted entries. \
                      Each entry as bytes and taken apart, and the messages that a consumer gets out of them.",
        specification: "client-api §3.1, key-shared §3, key-shared §8",
        seed: None,
    };
    let stamped = |low: u32, high: u32, outer: MessageMetadata| MessageMetadata {
        entry_hash_min: Some(low),
        entry_hash_max: Some(high),
        ..outer
    };
    let sealed: Vec<u8> = (0..24).collect();
    let large: (&str, u64, &[&[u8]]) = ("key-0", 7, &[b"0123456789", b"0123456789", b"01234"]);
    let other: (&str, u64, &[&[u8]]) = ("key-1", 8, &[b"abcdef", b"ghi"]);
    let cases = vec![
        Draft::new("a message without a key").single(&metadata(0), b"hello")?.done(),
        Draft::new("a message with a key").single(&keyed("key-0", 1), b"hello")?.done(),
        Draft::new("an empty message with an empty key").single(&keyed("", 2), b"")?.done(),
        Draft::new("a stamped message").single(&stamped(0xf8bf, 0xf8bf, keyed("key-0", 3)), b"hello")?.done(),
        Draft::new("properties and the times of event and delivery")
            .single(
                &MessageMetadata {
                    properties: vec![
                        KeyValue { key: "origin".into(), value: "test".into() },
                        KeyValue { key: "b\u{fc}cher".into(), value: String::new() },
                    ],
                    event_time: Some(1_700_000_000_123),
                    deliver_at_time: Some(1_796_030_200_000),
                    ..keyed("key-0", 4)
                },
                "gr\u{fc}\u{df}e".as_bytes(),
            )?
            .done(),
        Draft::new("a batch of one message")
            .batch(keyed("key-0", 5), &[(member(Some("key-0"), Some(5)), b"one")])?
            .done(),
        Draft::new("a batch with keys and without, stamped")
            .batch(
                stamped(
                    0x15a0,
                    0x550c,
                    MessageMetadata { highest_sequence_id: Some(8), ..keyed("key-1", 6) },
                ),
                &[
                    (member(Some("key-1"), Some(6)), b"one"),
                    (member(None, Some(7)), b""),
                    (member(Some("key-2"), Some(8)), b"three"),
                ],
            )?
            .done(),
        Draft::new("members without sequence ids count up from the entry's")
            .batch(
                MessageMetadata { highest_sequence_id: Some(11), ..metadata(10) },
                &[(member(None, None), b"a"), (member(None, None), b"b")],
            )?
            .done(),
        Draft::new("a large message in three chunks").chunks(&[large], &[(0, 0), (0, 1), (0, 2)])?.done(),
        Draft::new("chunks of two messages alternate")
            .chunks(&[large, other], &[(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)])?
            .done(),
        Draft::new("a chunk that is stored twice counts once")
            .chunks(&[other], &[(0, 0), (0, 0), (0, 1), (0, 1)])?
            .done(),
        Draft::new("a large message without one of its chunks is none")
            .chunks(&[large, other], &[(0, 0), (0, 2), (1, 0), (1, 1)])?
            .done(),
        Draft::new("an encrypted message: the wrapped data key, the nonce, ciphertext and tag")
            .single(&encrypted(12, vec![wrapped("rsa", 0xab, 256, &[])]), &sealed)?
            .done(),
        Draft::new("the data key wrapped for two recipients, with what their keys' owners say of them")
            .single(
                &encrypted(
                    13,
                    vec![wrapped("rsa", 0xab, 256, &[]), wrapped("p256", 0xcd, 133, &[("version", "2")])],
                ),
                &sealed,
            )?
            .done(),
        Draft::new("a message that was compressed before it was encrypted")
            .single(
                &MessageMetadata {
                    compression: Some(2),
                    uncompressed_size: Some(5),
                    ..encrypted(14, vec![wrapped("rsa", 0xab, 256, &[])])
                },
                &sealed,
            )?
            .done(),
    ];
    Document::new(&about, &cases)
}
