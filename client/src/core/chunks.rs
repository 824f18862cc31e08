//! Large messages put together again: a producer sent them in several entries, the chunks, which arrive in order within a
//! segment, with other messages and other producers' chunks between them.
//!
//! A message that stays incomplete must not hold memory or the segment for ever: a seal sends the whole message to the
//! successor, and its first chunks stay behind. What does not become a message is given up a while after it came.

use bytes::{Bytes, BytesMut};
use stc_proto::pulsar::MessageMetadata;

use super::{
    Millis,
    acks::EntryId,
    deviant::{Deviance, Deviant},
};

/// How many incomplete messages of a segment are kept; of more, the oldest give way. As many as with released clients.
const MAX_PENDING: usize = 10;
/// How long an incomplete message is kept after its last chunk, in milliseconds. As long as with released clients.
const MAX_AGE: Millis = 60_000;

/// The incomplete messages of one segment.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// The oldest in front.
    pending: Vec<Partial>,
    /// Chunks that became no message, and since when.
    lost: Vec<(EntryId, Millis)>,
}

#[derive(Debug)]
struct Partial {
    uuid: String,
    payload: BytesMut,
    /// Of all chunks together, in bytes.
    size: usize,
    count: i32,
    entries: Vec<EntryId>,
    last_at: Millis,
}

/// What became of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Its message is not complete yet, or will not be: the entry stays as it is until it is given up.
    Waits,
    /// The message is complete: its payload, still compressed, and the entries of its chunks before this one.
    Whole(Bytes, Vec<EntryId>),
    /// What is in this entry was in an earlier one.
    Duplicate,
}

impl Chunks {
    /// Adds a chunk that arrived; `payload` is decrypted.
    pub(crate) fn add(
        &mut self,
        id: EntryId,
        metadata: &MessageMetadata,
        payload: &Bytes,
        now: Millis,
        deviance: Deviance,
    ) -> Added {
        let uuid = if deviance.is(Deviant::ChunksMixed) { "" } else { metadata.uuid() };
        let index = metadata.chunk_id();
        let known = self.pending.iter().position(|partial| partial.uuid == uuid);
        let mut partial = match known {
            Some(at) => self.pending.remove(at),
            None if index == 0 => Partial::new(uuid, metadata),
            None => {
                self.lost.push((id, now));
                return Added::Waits;
            }
        };
        let next = i32::try_from(partial.entries.len()).unwrap_or(i32::MAX);
        if index < next && !deviance.is(Deviant::ChunkTwice) {
            let again = partial.entries.contains(&id);
            self.pending.push(partial);
            return if again { Added::Waits } else { Added::Duplicate };
        }
        let fits = partial.payload.len() + payload.len() <= partial.size;
        let gaps = deviance.is(Deviant::ChunkGapJoined);
        if index > next && !gaps || !fits || metadata.num_chunks_from_msg() != partial.count {
            // One between is lost: what is here will not become a message.
            self.lose(partial.entries, now);
            self.lost.push((id, now));
            return Added::Waits;
        }
        partial.payload.extend_from_slice(payload);
        if index + 1 == partial.count && (partial.payload.len() == partial.size || gaps) {
            return Added::Whole(partial.payload.freeze(), partial.entries);
        }
        partial.entries.push(id);
        partial.last_at = now;
        self.pending.push(partial);
        if self.pending.len() > MAX_PENDING {
            let oldest = self.pending.remove(0);
            self.lose(oldest.entries, now);
        }
        Added::Waits
    }

    /// What is in these entries will not become a message.
    pub(crate) fn lose(&mut self, entries: Vec<EntryId>, now: Millis) {
        self.lost.extend(entries.into_iter().map(|entry| (entry, now)));
    }

    /// Takes out the entries that have waited too long: nobody will get what is in them.
    pub(crate) fn give_up(&mut self, now: Millis) -> Vec<EntryId> {
        let old = |since: &Millis| since.saturating_add(MAX_AGE) <= now;
        let (stale, kept) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|partial: &Partial| old(&partial.last_at));
        self.pending = kept;
        let mut entries: Vec<EntryId> = Vec::from_iter(stale).into_iter().flat_map(|p| p.entries).collect();
        entries.extend(self.lost.iter().filter(|(_, since)| old(since)).map(|(entry, _)| *entry));
        self.lost.retain(|(_, since)| !old(since));
        entries
    }

    /// When something is to be given up next.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let pending = self.pending.iter().map(|partial| partial.last_at);
        let since = pending.chain(self.lost.iter().map(|(_, since)| *since)).min()?;
        Some(since.saturating_add(MAX_AGE))
    }

    /// The first entry of an incomplete message.
    pub(crate) fn first(&self) -> Option<EntryId> {
        self.pending.iter().filter_map(|partial| partial.entries.first()).min().copied()
    }
}

impl Partial {
    fn new(uuid: &str, metadata: &MessageMetadata) -> Self {
        Partial {
            uuid: uuid.to_owned(),
            // Grows by what the chunks hold, not by what they claim.
            payload: BytesMut::new(),
            size: usize::try_from(metadata.total_chunk_msg_size()).unwrap_or_default(),
            count: metadata.num_chunks_from_msg(),
            entries: Vec::new(),
            last_at: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Millis = MAX_AGE / 2;

    fn add(chunks: &mut Chunks, entry: u64, uuid: &str, (index, count): (i32, i32), now: Millis) -> Added {
        let metadata = MessageMetadata {
            uuid: Some(uuid.to_owned()),
            chunk_id: Some(index),
            num_chunks_from_msg: Some(count),
            total_chunk_msg_size: Some(count * 2),
            ..Default::default()
        };
        chunks.add((1, entry), &metadata, &Bytes::from(format!("{uuid}{index}")), now, Deviance::default())
    }

    fn whole(text: &'static str, entries: &[u64]) -> Added {
        Added::Whole(Bytes::from_static(text.as_bytes()), entries.iter().map(|entry| (1, *entry)).collect())
    }

    #[test]
    fn chunks_of_several_messages_may_alternate() {
        let mut chunks = Chunks::default();
        assert_eq!(add(&mut chunks, 0, "a", (0, 3), 0), Added::Waits);
        assert_eq!(add(&mut chunks, 1, "b", (0, 2), 0), Added::Waits);
        assert_eq!(chunks.first(), Some((1, 0)));
        assert_eq!(add(&mut chunks, 2, "a", (1, 3), 0), Added::Waits);
        assert_eq!(add(&mut chunks, 3, "b", (1, 2), 0), whole("b0b1", &[1]));
        assert_eq!(add(&mut chunks, 4, "a", (2, 3), 0), whole("a0a1a2", &[0, 2]));
        assert_eq!((chunks.first(), chunks.next_deadline()), (None, None));
    }

    #[test]
    fn what_is_there_twice_counts_once() {
        let mut chunks = Chunks::default();
        add(&mut chunks, 0, "a", (0, 2), 0);
        assert_eq!(add(&mut chunks, 0, "a", (0, 2), 0), Added::Waits, "delivered again");
        assert_eq!(add(&mut chunks, 1, "a", (0, 2), 0), Added::Duplicate, "stored again");
        assert_eq!(add(&mut chunks, 2, "a", (1, 2), 0), whole("a0a1", &[0]));
    }

    #[test]
    fn without_one_of_its_chunks_a_message_is_given_up() {
        let mut chunks = Chunks::default();
        add(&mut chunks, 0, "a", (0, 3), 0);
        assert_eq!(add(&mut chunks, 1, "a", (2, 3), HALF), Added::Waits);
        assert_eq!(add(&mut chunks, 2, "b", (1, 2), HALF), Added::Waits, "its first is missing");
        assert_eq!(chunks.next_deadline(), Some(HALF + MAX_AGE));
        assert_eq!(chunks.give_up(MAX_AGE), []);
        assert_eq!(chunks.give_up(HALF + MAX_AGE), [(1, 0), (1, 1), (1, 2)]);
        assert_eq!(chunks.next_deadline(), None);
    }

    #[test]
    fn a_message_waits_a_minute_for_each_chunk() {
        let mut chunks = Chunks::default();
        add(&mut chunks, 0, "a", (0, 3), 0);
        add(&mut chunks, 1, "a", (1, 3), HALF);
        assert_eq!(chunks.give_up(MAX_AGE), []);
        assert_eq!(chunks.give_up(HALF + MAX_AGE), [(1, 0), (1, 1)]);
        assert_eq!(add(&mut chunks, 2, "a", (2, 3), HALF + MAX_AGE), Added::Waits, "too late");
    }

    #[test]
    fn of_too_many_the_oldest_gives_way() {
        let mut chunks = Chunks::default();
        for n in 0..=MAX_PENDING as u64 {
            add(&mut chunks, n, &format!("{n}"), (0, 2), n);
        }
        assert_eq!(chunks.pending.len(), MAX_PENDING);
        assert_eq!(chunks.first(), Some((1, 1)));
    }

    #[test]
    fn a_message_larger_than_it_says_is_given_up() {
        let mut chunks = Chunks::default();
        add(&mut chunks, 0, "a", (0, 2), 0);
        assert_eq!(add(&mut chunks, 1, "a", (1, 3), 0), Added::Waits, "another count");
        assert_eq!(chunks.first(), None);
    }
}
