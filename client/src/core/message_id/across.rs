//! Positions that span topics: what a namespace's consumer had delivered of each (client-behavior §6).

use std::{collections::BTreeMap, sync::Arc};

use super::{ACROSS, MessageId, take, take_counted};

/// The furthest message of each topic that a namespace's consumer had delivered when it delivered a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Across {
    /// The consumer, which tells how often each topic came to it; lost in bytes.
    pub(crate) consumer: Option<u64>,
    pub(crate) topics: BTreeMap<Arc<str>, Furthest>,
}

/// The last message of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Furthest {
    /// As the topic's own consumer delivered it: with the positions of its segments.
    pub(crate) id: MessageId,
    /// Which stay of the topic in the consumer's set that was; 0 from bytes.
    pub(crate) stay: u64,
}

impl Across {
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let count = |count: usize, bytes: &mut Vec<u8>| {
            // Nothing here is ever that long.
            bytes.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        };
        count(self.topics.len(), bytes);
        for (topic, furthest) in &self.topics {
            count(topic.len(), bytes);
            bytes.extend_from_slice(topic.as_bytes());
            let id = furthest.id.to_bytes();
            count(id.len(), bytes);
            bytes.extend_from_slice(&id);
        }
    }

    /// Reads it off the front; identifiers within have a single topic.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let count = u32::from_be_bytes(take(bytes)?);
        let mut topics = BTreeMap::new();
        for _ in 0..count {
            let topic = std::str::from_utf8(take_counted(bytes)?).ok()?;
            let id = take_counted(bytes)?;
            // Bytes that nest would let others choose how deep this goes.
            if id.get(1) == Some(&ACROSS) {
                return None;
            }
            let id = MessageId::from_bytes(id).ok().filter(|id| id.position().is_some())?;
            topics.insert(topic.into(), Furthest { id, stay: 0 });
        }
        Some(Across { consumer: None, topics })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::message_id::{Position, Slice, Vector};

    fn at(ledger: u64) -> Position {
        Position { segment: 0, ledger, entry: 1, batch_index: -1, batch_size: 0 }
    }

    fn id() -> MessageId {
        let slices = vec![Slice { at: at(7), shared: false }];
        let own = MessageId::delivered(at(7), Vector { delivered: None, slices });
        let topics = [("topic://a/b/c", own), ("topic://a/b/d", at(9).into())];
        let topics = topics.map(|(topic, id)| (topic.into(), Furthest { id, stay: 3 })).into();
        MessageId::across(at(7), Arc::new(Across { consumer: Some(2), topics }))
    }

    #[test]
    fn positions_of_topics_survive_bytes() {
        let id = id();
        let restored = MessageId::from_bytes(&id.to_bytes()).unwrap();
        let (was, is) = (id.topics().unwrap(), restored.topics().unwrap());
        assert_eq!(is.consumer, None);
        for ((topic, before), (same, after)) in was.topics.iter().zip(&is.topics) {
            assert_eq!((topic, before.id.to_bytes(), 0), (same, after.id.to_bytes(), after.stay));
        }
        assert_eq!((&restored, &id), (&at(7).into(), &at(7).into()));
    }

    #[test]
    fn torn_nested_and_longer_bytes_are_refused() {
        let bytes = id().to_bytes();
        for end in 0..bytes.len() {
            MessageId::from_bytes(&bytes[..end]).unwrap_err();
        }
        MessageId::from_bytes(&[&bytes[..], &[0]].concat()).unwrap_err();
        let nested = Across {
            consumer: None,
            topics: [("topic://a/b/c".into(), Furthest { id: id(), stay: 0 })].into(),
        };
        let nested = MessageId::across(at(7), Arc::new(nested));
        MessageId::from_bytes(&nested.to_bytes()).unwrap_err();
    }

    /// As the first release that had it wrote it.
    #[test]
    fn the_form_stays_readable() {
        let place = [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 0, 0,
            0, 0,
        ];
        let topic = b"topic://a/b/d";
        let inner = [&[1, 1][..], &place].concat();
        let bytes =
            [&[1, 4][..], &place, &[0, 0, 0, 1], &[0, 0, 0, 13], topic, &[0, 0, 0, 34], &inner].concat();
        let id = MessageId::from_bytes(&bytes).unwrap();
        assert_eq!(id.topics().unwrap().topics["topic://a/b/d"].id, at(9).into());
        assert_eq!(id.to_bytes(), bytes);
    }
}
