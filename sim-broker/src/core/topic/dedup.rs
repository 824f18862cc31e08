//! Deduplication: the highest sequence id that was stored for each producer name.

use std::collections::HashMap;

use stc_proto::pulsar::{CommandSend, MessageMetadata};

/// The highest sequence ids, by producer name. They outlive the producers.
#[derive(Debug, Default)]
pub(super) struct Deduplication {
    highest: HashMap<String, u64>,
}

impl Deduplication {
    /// Whether an entry of this producer was stored before. If not, it counts as stored from now on.
    ///
    /// A batch covers the sequence ids from its own to its highest one. The chunks of one message share a sequence id,
    /// so only the last one is looked at.
    pub(super) fn is_duplicate(
        &mut self,
        producer: &str,
        send: &CommandSend,
        metadata: &MessageMetadata,
    ) -> bool {
        if send.is_chunk()
            && let (Some(chunk), Some(chunks)) = (metadata.chunk_id, metadata.num_chunks_from_msg)
            && i64::from(chunk) != i64::from(chunks) - 1
        {
            return false;
        }
        let highest = send.sequence_id.max(send.highest_sequence_id());
        match self.highest.get_mut(producer) {
            Some(stored) if send.sequence_id <= *stored => true,
            Some(stored) => {
                *stored = highest;
                false
            }
            None => {
                self.highest.insert(producer.to_owned(), highest);
                false
            }
        }
    }

    /// The highest sequence id that was stored for a producer name; -1 when there is none.
    pub(super) fn last_sequence_id(&self, producer: &str) -> i64 {
        self.highest.get(producer).map_or(-1, |id| *id as i64)
    }
}
