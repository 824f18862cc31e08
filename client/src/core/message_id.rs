//! Message identifiers (data-model §4): opaque, totally ordered within a topic, serialisable.

use std::fmt;

use super::error::{Category, Error};

/// Identifies one message within a topic (data-model §4). Opaque: its bytes are for storing, not for reading.
///
/// Identifiers of one topic have a total order, which agrees with the order of publishing for all messages of one
/// key. It says nothing about messages of different keys.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(Inner);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Inner {
    Earliest,
    At(Position),
    Latest,
}

/// Where a message is stored. The order of the fields is the order of identifiers: a key's messages move to segments
/// with ever higher ids, and ledgers, entries and places in a batch ascend within a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) ledger: u64,
    pub(crate) entry: u64,
    /// The place within a batch and the number of messages in it; -1 and 0 for an entry with one message.
    pub(crate) batch_index: i32,
    pub(crate) batch_size: i32,
}

const VERSION: u8 = 1;
const EARLIEST: u8 = 0;
const AT: u8 = 1;
const LATEST: u8 = 2;

impl MessageId {
    /// The oldest message that is still there (data-model §4).
    pub fn earliest() -> Self {
        MessageId(Inner::Earliest)
    }

    /// The next message to be published (data-model §4).
    pub fn latest() -> Self {
        MessageId(Inner::Latest)
    }

    /// The identifier as bytes, which this and every later version of this client reads (data-model §4, stability
    /// §4.3).
    ///
    /// The form is this client's own: a version (1 byte), a kind (1 byte) and for a message five big-endian numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Inner::Earliest => vec![VERSION, EARLIEST],
            Inner::Latest => vec![VERSION, LATEST],
            Inner::At(at) => {
                let mut bytes = vec![VERSION, AT];
                for number in [at.segment, at.ledger, at.entry] {
                    bytes.extend_from_slice(&number.to_be_bytes());
                }
                for number in [at.batch_index, at.batch_size] {
                    bytes.extend_from_slice(&number.to_be_bytes());
                }
                bytes
            }
        }
    }

    /// Restores an identifier (data-model §4, stability §4.3).
    ///
    /// # Errors
    /// `InvalidConfiguration` when the bytes are not from [`MessageId::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let bad =
            |what: &str| Error::new(Category::InvalidConfiguration, format!("not a message id: {what}"));
        let (head, mut rest) = bytes.split_at_checked(2).ok_or_else(|| bad("too short"))?;
        let &[version, kind] = head else { return Err(bad("too short")) };
        if version != VERSION {
            return Err(bad("its version is not known"));
        }
        let id = match kind {
            EARLIEST => Inner::Earliest,
            LATEST => Inner::Latest,
            AT => {
                let long = |rest: &mut &[u8]| {
                    let (number, tail) = rest.split_first_chunk().ok_or_else(|| bad("it ends early"))?;
                    *rest = tail;
                    Ok::<u64, Error>(u64::from_be_bytes(*number))
                };
                let int = |rest: &mut &[u8]| {
                    let (number, tail) = rest.split_first_chunk().ok_or_else(|| bad("it ends early"))?;
                    *rest = tail;
                    Ok::<i32, Error>(i32::from_be_bytes(*number))
                };
                Inner::At(Position {
                    segment: long(&mut rest)?,
                    ledger: long(&mut rest)?,
                    entry: long(&mut rest)?,
                    batch_index: int(&mut rest)?,
                    batch_size: int(&mut rest)?,
                })
            }
            _ => return Err(bad("its kind is not known")),
        };
        if !rest.is_empty() {
            return Err(bad("something follows it"));
        }
        Ok(MessageId(id))
    }

    pub(crate) fn position(&self) -> Option<Position> {
        match self.0 {
            Inner::At(at) => Some(at),
            Inner::Earliest | Inner::Latest => None,
        }
    }
}

impl From<Position> for MessageId {
    fn from(at: Position) -> Self {
        MessageId(Inner::At(at))
    }
}

/// Shows the serialised form, not the parts.
impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({self})")
    }
}

/// The serialised form in hex.
impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(segment: u64, ledger: u64, entry: u64, batch_index: i32) -> MessageId {
        Position { segment, ledger, entry, batch_index, batch_size: if batch_index < 0 { 0 } else { 9 } }
            .into()
    }

    #[test]
    fn identifiers_survive_bytes() {
        for id in [MessageId::earliest(), MessageId::latest(), at(3, 70, 2, -1), at(0, u64::MAX, u64::MAX, 8)]
        {
            assert_eq!(MessageId::from_bytes(&id.to_bytes()).unwrap(), id);
        }
    }

    #[test]
    fn the_form_of_version_1_stays_readable() {
        let bytes = [
            1, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 70, 0, 0, 0, 0, 0, 0, 0, 2, 255, 255, 255,
            255, 0, 0, 0, 0,
        ];
        assert_eq!(MessageId::from_bytes(&bytes).unwrap(), at(3, 70, 2, -1));
    }

    #[test]
    fn order_is_by_segment_then_place() {
        let sorted = [
            MessageId::earliest(),
            at(0, 9, 9, -1),
            at(1, 2, 0, 0),
            at(1, 2, 0, 1),
            at(1, 2, 1, -1),
            at(1, 3, 0, -1),
            MessageId::latest(),
        ];
        assert!(sorted.is_sorted());
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let mut long = at(1, 2, 3, -1).to_bytes();
        long.push(0);
        for bytes in [&[][..], &[1], &[2, 0], &[1, 7], &[1, 1, 0], &[1, 0, 0], &long] {
            let error = MessageId::from_bytes(bytes).unwrap_err();
            assert_eq!(error.category(), Category::InvalidConfiguration, "{bytes:?}");
        }
    }
}
