//! From messages to entries: how the messages of one segment are grouped, stamped and encoded (key-shared §3).

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use bytes::{Bytes, BytesMut};
use stc_proto::{
    Entry, KeyHash, batch,
    pulsar::{CompressionType, KeyValue, MessageMetadata, SingleMessageMetadata},
};

use super::{
    Millis, Now, compression,
    deviant::{Deviance, Deviant},
    encryption::seal::Sealer,
    error::{Category, Error},
    layout::{Segment, bucket_hash},
    memory::Reservation,
    transaction::TxnId,
};

/// A message on its way: encoded by its schema, routed by its key, not yet part of an entry.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// Its place in the order of the application's send calls; also names it towards the shell.
    pub(crate) order: u64,
    pub(crate) key: Option<String>,
    /// Whether the key is base64 for bytes that need not be text; the hash is that of the bytes.
    pub(crate) key_is_base64: bool,
    /// Computed once; its two halves route the segment and the bucket.
    pub(crate) hash: Option<KeyHash>,
    pub(crate) payload: Bytes,
    pub(crate) properties: Vec<(String, String)>,
    /// Milliseconds since 1970.
    pub(crate) event_time: Option<u64>,
    /// Set by the application; otherwise it is chosen when the message is sent.
    pub(crate) sequence_id: Option<u64>,
    /// Milliseconds since 1970.
    pub(crate) deliver_at: Option<i64>,
    pub(crate) replicate_to: Vec<String>,
    /// When the send times out, on the clock that never jumps.
    pub(crate) deadline: Option<Millis>,
    /// The transaction that it belongs to.
    pub(crate) txn: Option<TxnId>,
    /// How often its segment was gone.
    pub(crate) attempts: u32,
    /// Its share of the client's memory.
    pub(crate) memory: Option<Arc<Reservation>>,
}

impl Outgoing {
    /// Whether it may share an entry. What belongs to the entry as a whole (delivery time, replication, a sequence id
    /// of the application's own) keeps a message alone.
    fn may_share(&self) -> bool {
        self.deliver_at.is_none() && self.replicate_to.is_empty() && self.sequence_id.is_none()
    }

    /// A rough size in a batch, in bytes.
    pub(crate) fn size(&self) -> usize {
        let properties: usize = self.properties.iter().map(|(k, v)| k.len() + v.len() + 6).sum();
        self.payload.len() + self.key.as_ref().map_or(0, String::len) + properties + 24
    }
}

/// When messages are batched (client-api §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchLimits {
    pub(crate) enabled: bool,
    pub(crate) max_messages: usize,
    /// In bytes, before compression.
    pub(crate) max_bytes: usize,
    /// How long a message waits for company, in milliseconds.
    pub(crate) max_delay: Millis,
}

/// How the entries of one segment are grouped and stamped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grouping<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) limits: BatchLimits,
    /// Whether the broker was observed to know entry buckets (key-shared §9).
    pub(crate) buckets_observed: bool,
    pub(crate) deviance: Deviance,
}

impl Grouping<'_> {
    /// Whether messages share entries here. On a managed segment only by bucket, and so only where the broker was
    /// observed to know buckets: otherwise a batch would break the key affinity of consumers.
    pub(crate) fn batches(&self) -> bool {
        let known = self.segment.legacy.is_some()
            || self.buckets_observed
            || self.deviance.is(Deviant::BatchWithoutObservation);
        self.limits.enabled && known
    }

    /// Whether a message that waits is worth waiting longer: false when one is here that goes alone, or the limits
    /// are reached.
    pub(crate) fn may_wait<'m>(&self, queue: impl Iterator<Item = &'m Outgoing>) -> bool {
        let (mut count, mut bytes) = (0, 0);
        for message in queue {
            count += 1;
            bytes += message.size();
            if !message.may_share() || count >= self.limits.max_messages || bytes >= self.limits.max_bytes {
                return false;
            }
        }
        self.batches()
    }

    /// Puts messages together that share an entry. Groups come in the order of their first messages, and within a
    /// bucket, so for each key, the order of the messages stays.
    pub(crate) fn pack(&self, messages: impl Iterator<Item = Outgoing>) -> Vec<Vec<Outgoing>> {
        let mut groups: Vec<Vec<Outgoing>> = Vec::new();
        // By bucket: the group that still takes messages, and its size.
        let mut open: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for message in messages {
            if !self.batches() || !message.may_share() {
                open.clear();
                groups.push(vec![message]);
                continue;
            }
            let bucket = self.bucket(&message);
            let size = message.size();
            let group = open.get_mut(&bucket).and_then(|(index, bytes)| {
                let group = groups.get_mut(*index)?;
                let same = group.first().is_some_and(|first| first.txn == message.txn);
                let room = group.len() < self.limits.max_messages && *bytes + size <= self.limits.max_bytes;
                let fits = same && room;
                *bytes += size;
                fits.then_some(group)
            });
            match group {
                Some(group) => group.push(message),
                None if self.deviance.is(Deviant::FullBatchSpills) && open.contains_key(&bucket) => {
                    groups.first_mut().into_iter().for_each(|first| first.push(message.clone()));
                }
                None => {
                    open.insert(bucket, (groups.len(), size));
                    groups.push(vec![message]);
                }
            }
        }
        groups
    }

    /// All messages of an entry are of one bucket. Messages without a key have no bucket hash and go with bucket 0.
    /// Legacy segments have no buckets.
    fn bucket(&self, message: &Outgoing) -> usize {
        if self.segment.legacy.is_some() || self.deviance.is(Deviant::BatchMixesBuckets) {
            return 0;
        }
        let hash = message.hash.map_or(0, |hash| bucket_hash(hash, self.deviance));
        self.segment.bucket(hash, self.deviance)
    }

    /// The smallest and the largest bucket hash of an entry's messages. Messages without a key do not count; an entry
    /// that has no others is stamped 0/0, as released clients do.
    fn stamp(&self, messages: &[Outgoing]) -> Option<(u32, u32)> {
        let deviance = self.deviance;
        if self.segment.legacy.is_some() || !self.buckets_observed || deviance.is(Deviant::NoStamp) {
            return None;
        }
        let alone = messages.len() == 1;
        let delayed = messages.iter().any(|m| m.deliver_at.is_some());
        if alone && deviance.is(Deviant::NoStampOnSingle) || delayed && deviance.is(Deviant::NoStampOnDelayed)
        {
            return None;
        }
        if deviance.is(Deviant::StampWholeRing) {
            return Some((0, 0xFFFF));
        }
        let keyless = deviance.is(Deviant::KeylessCountsAsZero).then_some(0);
        let hash = |m: &Outgoing| m.hash.map(|hash| bucket_hash(hash, deviance)).or(keyless);
        let hashes = || messages.iter().filter_map(hash);
        if deviance.is(Deviant::KeylessWholeRing) && hashes().next().is_none() {
            return Some((0, 0xFFFF));
        }
        let (min, max) = (hashes().min().unwrap_or(0), hashes().max().unwrap_or(0));
        if deviance.is(Deviant::StampNominal) {
            let range = self.segment.buckets.ranges().into_iter().find(|range| range.contains(min));
            return range.map(|range| (range.start().into(), range.end().into()));
        }
        Some((min.into(), max.into()))
    }
}

/// What an entry says about its producer, and how its payload goes.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema_version: Option<&'a Bytes>,
    pub(crate) compression: CompressionType,
    /// The largest entry the broker takes, in bytes.
    pub(crate) max_size: usize,
    pub(crate) now: Now,
    /// Present when payloads are encrypted.
    pub(crate) sealer: Option<&'a mut Sealer>,
    /// Present when a message that is larger than the broker takes goes in several entries: the largest payload of
    /// one, in bytes; 0 for what the broker takes.
    pub(crate) chunk_size: Option<usize>,
}

/// Encodes messages that go together: one entry, or the chunks of one large message. `sequence_ids` are the first and the
/// last of the messages, which count up one by one; all chunks have the one of their message.
///
/// # Errors
/// When the entry is larger than the broker takes, or compressing or encrypting fails.
pub(crate) fn encode(
    messages: &[Outgoing],
    sequence_ids: (u64, u64),
    sender: &mut Sender<'_>,
    grouping: &Grouping<'_>,
) -> Result<Vec<Bytes>, Error> {
    let deviance = grouping.deviance;
    let needs_buckets = grouping.limits.enabled && deviance.is(Deviant::NeedsBuckets);
    if needs_buckets && grouping.segment.legacy.is_none() && !grouping.buckets_observed {
        return Err(Error::new(Category::Unknown, "no layout carries buckets"));
    }
    let bare = sender.sealer.is_some() && deviance.is(Deviant::NoStampOnEncrypted);
    let stamp = grouping.stamp(messages).filter(|_| !bare);
    let mut metadata = MessageMetadata {
        producer_name: sender.name.to_owned(),
        sequence_id: sequence_ids.0,
        publish_time: sender.now.wall,
        schema_version: sender.schema_version.cloned(),
        entry_hash_min: stamp.map(|(min, _)| min),
        entry_hash_max: stamp.map(|(_, max)| max),
        txnid_most_bits: messages.first().and_then(|m| m.txn).map(|txn| txn.coordinator),
        txnid_least_bits: messages.first().and_then(|m| m.txn).map(|txn| txn.number),
        ..Default::default()
    };
    let payload = match messages {
        [message] => {
            metadata.partition_key = key_of(message, deviance);
            metadata.partition_key_b64_encoded = message.key_is_base64.then_some(true);
            metadata.properties = properties_of(message, deviance);
            metadata.event_time = event_time_of(message, deviance);
            metadata.deliver_at_time = message.deliver_at.filter(|_| !deviance.is(Deviant::DropDelay));
            if !deviance.is(Deviant::DropReplicateTo) {
                metadata.replicate_to = message.replicate_to.clone();
            }
            payload_of(message, deviance)
        }
        messages => {
            let mut buf = BytesMut::new();
            for (message, sequence_id) in messages.iter().zip(sequence_ids.0..) {
                let single = SingleMessageMetadata {
                    properties: properties_of(message, deviance),
                    partition_key: key_of(message, deviance),
                    partition_key_b64_encoded: message.key_is_base64.then_some(true),
                    event_time: event_time_of(message, deviance),
                    sequence_id: Some(sequence_id),
                    ..Default::default()
                };
                batch::append(&mut buf, single, &payload_of(message, deviance));
            }
            metadata.num_messages_in_batch = Some(messages.len() as i32);
            metadata.highest_sequence_id = Some(sequence_ids.1);
            // As classic clients do: the broker reads the key of an entry from here.
            metadata.partition_key = messages.first().and_then(|message| key_of(message, deviance));
            metadata.partition_key_b64_encoded =
                messages.first().filter(|message| message.key_is_base64).map(|_| true);
            buf.freeze()
        }
    };
    let payload = if sender.compression == CompressionType::None {
        payload
    } else {
        if !deviance.is(Deviant::CompressionUntold) {
            metadata.compression = Some(sender.compression as i32);
            metadata.uncompressed_size = Some(payload.len() as u32);
        }
        compression::compress(sender.compression, &payload)
            .map_err(|e| Error::new(Category::Unknown, format!("compressing failed: {e}")))?
            .into()
    };
    if let [_] = messages
        && let Some(chunk_size) = sender.chunk_size
        && let Some(chunks) = chunks(metadata.clone(), payload.len(), chunk_size, sender)?
    {
        let entry = |(metadata, range)| sealed(metadata, payload.slice(range), sender);
        return chunks.into_iter().map(entry).collect();
    }
    Ok(vec![sealed(metadata, payload, sender)?])
}

/// An entry, encrypted where that is wanted.
fn sealed(mut metadata: MessageMetadata, payload: Bytes, sender: &mut Sender<'_>) -> Result<Bytes, Error> {
    let payload = match &mut sender.sealer {
        Some(sealer) => sealer.seal(payload, &mut metadata, sender.now.mono)?,
        None => payload,
    };
    if payload.len() > sender.max_size {
        return Err(Error::new(
            Category::InvalidConfiguration,
            format!(
                "a message of {} bytes is above the broker's limit of {}",
                payload.len(),
                sender.max_size
            ),
        ));
    }
    Ok(Entry::new(metadata, payload).to_bytes())
}

/// The metadata of a chunk, and its part of the payload.
type Chunk = (MessageMetadata, Range<usize>);

/// The chunks of a message; `None` when one entry takes it all.
///
/// # Errors
/// When the metadata leaves no room for a payload.
fn chunks(
    metadata: MessageMetadata,
    length: usize,
    limit: usize,
    sender: &Sender<'_>,
) -> Result<Option<Vec<Chunk>>, Error> {
    let Ok(total) = i32::try_from(length) else { return Ok(None) };
    let mut metadata = MessageMetadata {
        uuid: Some(format!("{}-{}", metadata.producer_name, metadata.sequence_id)),
        // As large as they get, until the size of a chunk is known.
        num_chunks_from_msg: Some(total),
        total_chunk_msg_size: Some(total),
        chunk_id: Some(total),
        ..metadata
    };
    let overhead = Entry::new(metadata.clone(), Bytes::new()).to_bytes().len()
        + sender.sealer.as_ref().map_or(0, |sealer| sealer.overhead());
    let room = sender.max_size.saturating_sub(overhead);
    let size = if limit == 0 { room } else { limit.min(room) };
    if length <= size {
        return Ok(None);
    }
    if size == 0 {
        let (metadata, max) = (overhead, sender.max_size);
        let why = format!("{metadata} bytes of metadata fill the broker's limit of {max} for each chunk");
        return Err(Error::new(Category::InvalidConfiguration, why));
    }
    metadata.num_chunks_from_msg = i32::try_from(length.div_ceil(size)).ok();
    let starts = (0..length).step_by(size).zip(0..);
    let chunk = |(start, index)| {
        let metadata = MessageMetadata { chunk_id: Some(index), ..metadata.clone() };
        (metadata, start..length.min(start + size))
    };
    Ok(Some(starts.map(chunk).collect()))
}

fn key_of(message: &Outgoing, deviance: Deviance) -> Option<String> {
    message.key.clone().filter(|_| !deviance.is(Deviant::DropKey))
}

fn event_time_of(message: &Outgoing, deviance: Deviance) -> Option<u64> {
    message.event_time.filter(|_| !deviance.is(Deviant::DropEventTime))
}

fn properties_of(message: &Outgoing, deviance: Deviance) -> Vec<KeyValue> {
    if deviance.is(Deviant::DropProperties) {
        return Vec::new();
    }
    message
        .properties
        .iter()
        .map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() })
        .collect()
}

fn payload_of(message: &Outgoing, deviance: Deviance) -> Bytes {
    if deviance.is(Deviant::MangleValue) {
        let mut bytes = message.payload.to_vec();
        match bytes.last_mut() {
            Some(last) => *last ^= 1,
            None => bytes.push(0),
        }
        return bytes.into();
    }
    message.payload.clone()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{super::layout::Layout, super::layout::tests::dag, *};

    pub(crate) fn message(order: u64, key: Option<&str>) -> Outgoing {
        Outgoing {
            order,
            key: key.map(Into::into),
            key_is_base64: false,
            hash: key.map(KeyHash::of),
            payload: Bytes::from(format!("v{order}")),
            properties: Vec::new(),
            event_time: None,
            sequence_id: None,
            deliver_at: None,
            replicate_to: Vec::new(),
            deadline: None,
            txn: None,
            attempts: 0,
            memory: None,
        }
    }

    const LIMITS: BatchLimits = BatchLimits { enabled: true, max_messages: 3, max_bytes: 1000, max_delay: 1 };

    fn segment(splits: &[u32]) -> Segment {
        let mut dag = dag(0, &[(0, 0, 65535, true)]);
        dag.segments[0].entry_bucket_splits = splits.to_vec();
        Layout::from_dag(&dag).unwrap().segment(0).unwrap().clone()
    }

    fn grouping(segment: &Segment, buckets_observed: bool) -> Grouping<'_> {
        Grouping { segment, limits: LIMITS, buckets_observed, deviance: Deviance::default() }
    }

    fn orders(groups: &[Vec<Outgoing>]) -> Vec<Vec<u64>> {
        groups.iter().map(|g| g.iter().map(|m| m.order).collect()).collect()
    }

    fn sender(compression: CompressionType) -> Sender<'static> {
        Sender {
            name: "p",
            schema_version: None,
            compression,
            max_size: 10_000,
            now: Now { mono: 0, wall: 77 },
            sealer: None,
            chunk_size: None,
        }
    }

    fn encoded(messages: &[Outgoing], grouping: &Grouping<'_>, compression: CompressionType) -> Entry {
        let mut sender = sender(compression);
        let last = messages.len() as u64 + 9;
        let entries = encode(messages, (10, last), &mut sender, grouping).unwrap();
        Entry::parse(entries.into_iter().next().unwrap()).unwrap()
    }

    #[test]
    fn entries_hold_one_bucket_and_keep_the_order_of_each_key() {
        let segment = segment(&[0x8000]);
        // key-0 f8bf and key-4 f9a6 are in the upper bucket, key-1 15a0 and key-2 550c in the lower one.
        let keys = ["key-0", "key-1", "key-4", "key-2", "key-0", "key-0"];
        let messages = keys.iter().zip(0..).map(|(key, order)| message(order, Some(key)));
        let groups = grouping(&segment, true).pack(messages);
        assert_eq!(orders(&groups), [vec![0, 2, 4], vec![1, 3], vec![5]]);
    }

    #[test]
    fn nothing_is_batched_before_buckets_were_observed() {
        let segment = segment(&[]);
        let messages = || (0..3).map(|order| message(order, Some("k")));
        assert_eq!(orders(&grouping(&segment, false).pack(messages())), [[0], [1], [2]]);
        assert!(!grouping(&segment, false).may_wait(messages().collect::<Vec<_>>().iter().take(1)));
        assert_eq!(orders(&grouping(&segment, true).pack(messages())), [[0, 1, 2]]);
    }

    #[test]
    fn a_message_that_goes_alone_closes_the_batches_before_it() {
        let segment = segment(&[]);
        let mut messages: Vec<_> = (0..3).map(|order| message(order, Some("k"))).collect();
        messages[1].deliver_at = Some(5);
        assert_eq!(orders(&grouping(&segment, true).pack(messages.into_iter())), [[0], [1], [2]]);
    }

    #[test]
    fn stamps_are_the_hashes_present() {
        let segment = segment(&[0x8000]);
        let grouping = grouping(&segment, true);
        let entry = encoded(
            &[message(0, Some("key-1")), message(1, Some("key-2"))],
            &grouping,
            CompressionType::None,
        );
        assert_eq!(
            (entry.metadata.entry_hash_min, entry.metadata.entry_hash_max),
            (Some(0x15a0), Some(0x550c))
        );
        let one = encoded(&[message(0, Some("key-0"))], &grouping, CompressionType::None).metadata;
        assert_eq!((one.entry_hash_min, one.entry_hash_max), (Some(0xf8bf), Some(0xf8bf)));
        let none = encoded(&[message(0, None)], &grouping, CompressionType::None).metadata;
        assert_eq!((none.entry_hash_min, none.entry_hash_max), (Some(0), Some(0)));
        let mixed = encoded(&[message(0, None), message(1, Some("key-1"))], &grouping, CompressionType::None);
        assert_eq!(mixed.metadata.entry_hash_min, Some(0x15a0), "the keyed message decides");
    }

    #[test]
    fn nothing_is_stamped_before_buckets_were_observed() {
        let segment = segment(&[]);
        let entry = encoded(&[message(0, Some("k"))], &grouping(&segment, false), CompressionType::None);
        assert_eq!(entry.metadata.entry_hash_min, None);
    }

    #[test]
    fn attributes_reach_the_metadata() {
        let segment = segment(&[]);
        let mut one = message(0, Some("key-1"));
        one.properties = vec![("a".into(), "1".into())];
        one.event_time = Some(5);
        one.deliver_at = Some(9);
        one.replicate_to = vec!["west".into()];
        let metadata = encoded(&[one], &grouping(&segment, true), CompressionType::None).metadata;
        assert_eq!(metadata.partition_key.as_deref(), Some("key-1"));
        assert_eq!(metadata.properties[0].value, "1");
        assert_eq!((metadata.event_time, metadata.deliver_at_time), (Some(5), Some(9)));
        assert_eq!(metadata.replicate_to, ["west"]);
        assert_eq!((metadata.sequence_id, metadata.publish_time), (10, 77));
        assert_eq!(metadata.entry_hash_min, Some(0x15a0), "delayed messages are stamped too");
    }

    #[test]
    fn chunks_without_room_for_a_payload_are_refused() {
        let segment = segment(&[]);
        let mut large = message(0, None);
        large.properties = vec![("a".into(), "x".repeat(10_000))];
        let mut sender = Sender { chunk_size: Some(0), ..sender(CompressionType::None) };
        let refused = encode(&[large], (0, 0), &mut sender, &grouping(&segment, true)).unwrap_err();
        assert_eq!(refused.category(), Category::InvalidConfiguration);
    }

    #[test]
    fn batches_are_compressed_as_a_whole() {
        let segment = segment(&[]);
        let messages = [message(0, Some("k")), message(1, Some("k"))];
        let entry = encoded(&messages, &grouping(&segment, true), CompressionType::Zstd);
        let size = entry.metadata.uncompressed_size.unwrap() as usize;
        let plain = compression::decompress(CompressionType::Zstd, &entry.payload, size).unwrap();
        let read = batch::read(plain, 2).unwrap();
        assert_eq!(read[1].1, "v1");
        assert_eq!(read[1].0.sequence_id, Some(11));
        assert_eq!(entry.metadata.highest_sequence_id, Some(11));
    }
}
