//! The stored entries of a topic, in order.

use bytes::Bytes;
use stc_proto::{Entry, KeyHash, pulsar::MessageMetadata};

use super::uncommitted::Uncommitted;
use crate::core::ids::{Millis, TxnId};

/// The place of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The ledger's id. A topic has one ledger.
    pub ledger: u64,
    /// The entry, counted from 0.
    pub entry: u64,
}

/// A stored entry, as [`Topic::stored`](super::Topic::stored) lists them.
#[derive(Debug, Clone, Copy)]
pub struct StoredEntry<'a> {
    /// Where it is.
    pub position: Position,
    /// When it was stored.
    pub stored_at: Millis,
    /// Its bytes, as they were sent; [`stc_proto::Entry::parse`] reads them.
    pub bytes: &'a Bytes,
    /// Whether consumers may see it: not when its transaction was aborted, nor from the first entry of an open one on.
    pub visible: bool,
}

/// One entry, and what dispatching needs of its metadata.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) bytes: Bytes,
    pub(super) stored_at: Millis,
    pub(super) publish_time: Millis,
    /// When a Shared or Key_Shared subscription may deliver it; 0: at once.
    pub(super) deliver_at: Millis,
    /// Messages in all entries before this one.
    pub(super) messages_before: u64,
    /// Messages in this entry, at least 1.
    pub(super) messages: u32,
    /// The bucket half of the sticky key's hash.
    pub(super) key_hash: u16,
    /// The lower end of the entry's bucket stamp, if its producer stamped it (key-shared §3).
    pub(super) hash_min: Option<u16>,
    /// Whether the entry is a batch (of one message, perhaps).
    pub(super) batch: bool,
    /// What it is a part of, if it is a chunk.
    pub(super) chunk: Option<Box<Chunk>>,
}

/// A part of a large message.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) uuid: String,
    pub(super) last: bool,
}

impl Chunk {
    fn of(metadata: &MessageMetadata) -> Option<Self> {
        let (uuid, index) = (metadata.uuid.clone()?, metadata.chunk_id?);
        Some(Chunk { uuid, last: index.saturating_add(1) == metadata.num_chunks_from_msg? })
    }
}

#[derive(Debug)]
pub(super) struct Ledger {
    id: u64,
    entries: Vec<Stored>,
    messages: u64,
    bytes: u64,
    terminated: bool,
    uncommitted: Uncommitted,
}

impl Ledger {
    pub(super) fn new(id: u64) -> Self {
        Ledger {
            id,
            entries: Vec::new(),
            messages: 0,
            bytes: 0,
            terminated: false,
            uncommitted: Uncommitted::default(),
        }
    }

    /// Stores an entry; `parsed` is what its bytes hold. Returns its number.
    pub(super) fn append(&mut self, bytes: Bytes, parsed: &Entry, now: Millis) -> u64 {
        let metadata = &parsed.metadata;
        let messages = metadata.num_messages_in_batch.map_or(1, |n| n.max(1)) as u32;
        let entry = self.len();
        self.bytes += bytes.len() as u64;
        self.entries.push(Stored {
            bytes,
            stored_at: now,
            publish_time: metadata.publish_time,
            deliver_at: metadata.deliver_at_time.map_or(0, |at| at.max(0) as Millis),
            messages_before: self.messages,
            messages,
            key_hash: sticky_hash(metadata),
            hash_min: metadata.entry_hash_min.and_then(|hash| u16::try_from(hash).ok()),
            batch: metadata.num_messages_in_batch.is_some(),
            chunk: Chunk::of(metadata).map(Box::new),
        });
        self.messages += u64::from(messages);
        entry
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The number of entries, which is also the number of the next one.
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn get(&self, entry: u64) -> Option<&Stored> {
        self.entries.get(usize::try_from(entry).ok()?)
    }

    /// An entry that consumers may see: none from the first one of an open transaction on.
    pub(super) fn readable(&self, entry: u64) -> Option<&Stored> {
        self.get(entry).filter(|_| self.uncommitted.first().is_none_or(|first| entry < first))
    }

    /// An entry that was just stored belongs to a transaction.
    pub(super) fn hold(&mut self, txn: TxnId, entry: u64) {
        self.uncommitted.hold(txn, entry);
    }

    /// A transaction ended. Returns its entries when they were aborted, `None` when it has none here.
    pub(super) fn end(&mut self, txn: TxnId, commit: bool) -> Option<Vec<u64>> {
        self.uncommitted.end(txn, commit)
    }

    /// Whether an open transaction has entries here.
    pub(super) fn has_open(&self, txn: TxnId) -> bool {
        self.uncommitted.has(txn)
    }

    /// The entries of aborted transactions, in order.
    pub(super) fn aborted(&self) -> impl Iterator<Item = u64> + '_ {
        self.uncommitted.aborted()
    }

    /// The last entry that consumers may see.
    pub(super) fn last_readable(&self) -> Option<(u64, &Stored)> {
        let end = self.uncommitted.first().unwrap_or(self.len());
        let entry = (0..end).rev().find(|entry| !self.uncommitted.is_aborted(*entry))?;
        Some((entry, self.get(entry)?))
    }

    /// Messages in the entries before this one.
    pub(super) fn messages_before(&self, entry: u64) -> u64 {
        self.get(entry).map_or(self.messages, |stored| stored.messages_before)
    }

    pub(super) fn last(&self) -> Option<(Position, &Stored)> {
        let entry = self.len().checked_sub(1)?;
        Some((Position { ledger: self.id, entry }, self.entries.last()?))
    }

    /// The first entry published at or after `time`, taking publish times to ascend, as Pulsar does.
    pub(super) fn published_since(&self, time: Millis) -> u64 {
        self.entries.partition_point(|stored| stored.publish_time < time) as u64
    }

    /// Where reading begins for a message id of the wire: ids of older ledgers (and "earliest", -1:-1) are before the
    /// first entry, ids of newer ones (and "latest", whose parts are the largest signed number) behind the last one.
    pub(super) fn resolve(&self, ledger: u64, entry: u64) -> u64 {
        match (ledger as i64).cmp(&(self.id as i64)) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Greater => self.len(),
            std::cmp::Ordering::Equal => (entry as i64).clamp(0, self.len() as i64) as u64,
        }
    }

    /// The number of a stored entry that a client names, `None` when there is no such entry.
    pub(super) fn known(&self, ledger: u64, entry: u64) -> Option<u64> {
        (ledger == self.id && entry < self.len()).then_some(entry)
    }

    pub(super) fn terminate(&mut self) {
        self.terminated = true;
    }

    pub(super) fn terminated(&self) -> bool {
        self.terminated
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = StoredEntry<'_>> + '_ {
        (0..).zip(&self.entries).map(|(entry, stored)| StoredEntry {
            position: Position { ledger: self.id, entry },
            stored_at: stored.stored_at,
            bytes: &stored.bytes,
            visible: self.readable(entry).is_some() && !self.uncommitted.is_aborted(entry),
        })
    }
}

/// The hash that Key_Shared goes by: of the ordering key, else the partition key, else a key of the message's own.
fn sticky_hash(metadata: &MessageMetadata) -> u16 {
    if let Some(key) = &metadata.ordering_key {
        KeyHash::of_bytes(key).bucket()
    } else if let Some(key) = &metadata.partition_key {
        match metadata.partition_key_b64_encoded() {
            // The hash is of the key itself, which is bytes that the producer had to put into a text field.
            true => KeyHash::of_bytes(&base64(key).unwrap_or_else(|| key.clone().into_bytes())).bucket(),
            false => KeyHash::of(key).bucket(),
        }
    } else {
        KeyHash::of(&format!("{}-{}", metadata.producer_name, metadata.sequence_id)).bucket()
    }
}

/// Decodes standard base64, padded or not; `None` for anything else.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0u32);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_keys_hash_as_their_bytes() {
        assert_eq!(base64("a2V5LTA=").unwrap(), b"key-0");
        assert_eq!(base64("a2V5LTA").unwrap(), b"key-0");
        assert_eq!(base64("not base64!"), None);
        let text = MessageMetadata { partition_key: Some("key-0".into()), ..Default::default() };
        let bytes = MessageMetadata {
            partition_key: Some("a2V5LTA=".into()),
            partition_key_b64_encoded: Some(true),
            ..Default::default()
        };
        assert_eq!(sticky_hash(&text), 0xf8bf);
        assert_eq!(sticky_hash(&bytes), 0xf8bf);
    }

    #[test]
    fn ids_of_other_ledgers_resolve_to_the_ends() {
        let mut ledger = Ledger::new(7);
        for _ in 0..3 {
            let entry = Entry::new(MessageMetadata::default(), Bytes::new());
            ledger.append(entry.to_bytes(), &entry, 0);
        }
        let latest = i64::MAX as u64;
        assert_eq!(ledger.resolve(u64::MAX, u64::MAX), 0);
        assert_eq!(ledger.resolve(latest, latest), 3);
        assert_eq!(ledger.resolve(6, 2), 0);
        assert_eq!(ledger.resolve(7, 2), 2);
        assert_eq!(ledger.resolve(7, 99), 3);
        assert_eq!(ledger.known(7, 3), None);
    }
}
