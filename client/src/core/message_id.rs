//! Message identifiers (data-model §4): opaque, totally ordered within a topic, serialisable. Those of a stream consumer
//! carry the position vector that a cumulative acknowledgement needs (client-behavior §6).

mod across;

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

pub(crate) use self::across::{Across, Furthest};
use super::error::{Category, Error};

/// Identifies one message within a topic (data-model §4). Opaque: its bytes are for storing, not for reading.
///
/// Identifiers of one topic have a total order, which agrees with the order of publishing for all messages of one
/// key. It says nothing about messages of different keys. Two identifiers are equal when they name the same message.
#[derive(Clone)]
pub struct MessageId(Inner);

#[derive(Clone)]
enum Inner {
    Earliest,
    /// With what had been delivered by then, when a stream consumer delivered it.
    At(Position, Option<Arc<Vector>>),
    /// With what had been delivered of each topic by then, when a namespace's consumer delivered it.
    Across(Position, Arc<Across>),
    Latest,
}

/// What a stream consumer had delivered, this message included, when it delivered this message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vector {
    /// The consumer and its count of deliveries; lost in bytes.
    pub(crate) delivered: Option<Delivered>,
    /// The last delivered message of each segment, in the order of segments.
    pub(crate) slices: Vec<Slice>,
}

/// One delivery of one consumer of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) consumer: u64,
    pub(crate) sequence: u64,
}

/// How far one segment was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) at: Position,
    /// Other consumers had a share of the segment, so that not everything before was delivered here.
    pub(crate) shared: bool,
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
/// A message with a position vector.
const DELIVERED: u8 = 3;
/// A message with an identifier for each topic.
const ACROSS: u8 = 4;
/// One segment of a vector in bytes.
const SLICE_SIZE: usize = 33;

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
    /// The form is this client's own: a version (1 byte), a kind (1 byte), for a message five big-endian numbers, and
    /// for one of a stream consumer the number of segments (4 bytes) and for each five numbers and a flag. One of a
    /// namespace's consumer has the number of topics (4 bytes) instead, and for each the length of its name (4 bytes), the
    /// name, the length of an identifier (4 bytes) and the identifier.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Inner::Earliest => vec![VERSION, EARLIEST],
            Inner::Latest => vec![VERSION, LATEST],
            Inner::At(at, None) => {
                let mut bytes = vec![VERSION, AT];
                at.write(&mut bytes);
                bytes
            }
            Inner::At(at, Some(vector)) => {
                let mut bytes = vec![VERSION, DELIVERED];
                at.write(&mut bytes);
                // There are never that many segments.
                let count = u32::try_from(vector.slices.len()).unwrap_or(u32::MAX);
                bytes.extend_from_slice(&count.to_be_bytes());
                for slice in vector.slices.iter().take(count as usize) {
                    slice.at.write(&mut bytes);
                    bytes.push(u8::from(slice.shared));
                }
                bytes
            }
            Inner::Across(at, across) => {
                let mut bytes = vec![VERSION, ACROSS];
                at.write(&mut bytes);
                across.write(&mut bytes);
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
            AT => Inner::At(Position::read(&mut rest).ok_or_else(|| bad("it ends early"))?, None),
            DELIVERED => {
                let early = || bad("it ends early");
                let at = Position::read(&mut rest).ok_or_else(early)?;
                let count = u32::from_be_bytes(take(&mut rest).ok_or_else(early)?) as usize;
                if rest.len() != count.saturating_mul(SLICE_SIZE) {
                    return Err(bad("its parts do not add up"));
                }
                let mut slices = Vec::with_capacity(count);
                for _ in 0..count {
                    let at = Position::read(&mut rest).ok_or_else(early)?;
                    let [flags] = take(&mut rest).ok_or_else(early)?;
                    slices.push(Slice { at, shared: flags & 1 == 1 });
                }
                Inner::At(at, Some(Arc::new(Vector { delivered: None, slices })))
            }
            ACROSS => {
                let early = || bad("it ends early");
                let at = Position::read(&mut rest).ok_or_else(early)?;
                let across = Across::read(&mut rest).ok_or_else(early)?;
                Inner::Across(at, Arc::new(across))
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
            Inner::At(at, _) | Inner::Across(at, _) => Some(at),
            Inner::Earliest | Inner::Latest => None,
        }
    }

    /// A message that a namespace's consumer delivers.
    pub(crate) fn across(at: Position, across: Arc<Across>) -> Self {
        MessageId(Inner::Across(at, across))
    }

    /// What had been delivered of each topic with this message; `None` for one that no namespace's consumer delivered.
    pub(crate) fn topics(&self) -> Option<&Across> {
        match &self.0 {
            Inner::Across(_, across) => Some(across),
            _ => None,
        }
    }

    /// A message that a stream consumer delivers.
    pub(crate) fn delivered(at: Position, vector: Vector) -> Self {
        MessageId(Inner::At(at, Some(Arc::new(vector))))
    }

    /// What had been delivered with this message; `None` for one that no stream consumer delivered.
    pub(crate) fn vector(&self) -> Option<&Vector> {
        match &self.0 {
            Inner::At(_, vector) => vector.as_deref(),
            Inner::Earliest | Inner::Across(..) | Inner::Latest => None,
        }
    }

    /// What identifiers are compared by.
    fn key(&self) -> (u8, Option<Position>) {
        match self.0 {
            Inner::Earliest => (0, None),
            Inner::At(at, _) | Inner::Across(at, _) => (1, Some(at)),
            Inner::Latest => (2, None),
        }
    }
}

impl PartialEq for MessageId {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for MessageId {}

impl Hash for MessageId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for MessageId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MessageId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Position {
    /// Appends the five numbers.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        for number in [self.segment, self.ledger, self.entry] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for number in [self.batch_index, self.batch_size] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
    }

    /// Reads them off the front.
    pub(crate) fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Position {
            segment: u64::from_be_bytes(take(bytes)?),
            ledger: u64::from_be_bytes(take(bytes)?),
            entry: u64::from_be_bytes(take(bytes)?),
            batch_index: i32::from_be_bytes(take(bytes)?),
            batch_size: i32::from_be_bytes(take(bytes)?),
        })
    }
}

/// Takes bytes off the front that their number (4 bytes) stands before.
fn take_counted<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = u32::from_be_bytes(take(bytes)?);
    let (head, tail) = bytes.split_at_checked(count as usize)?;
    *bytes = tail;
    Some(head)
}

/// Takes as many bytes off the front.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = bytes.split_first_chunk()?;
    *bytes = tail;
    Some(*head)
}

impl From<Position> for MessageId {
    fn from(at: Position) -> Self {
        MessageId(Inner::At(at, None))
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
    fn a_position_vector_survives_bytes_and_does_not_count_for_equality() {
        let plain = at(3, 70, 2, -1);
        let slice = |id: &MessageId, shared| Slice { at: id.position().unwrap(), shared };
        let slices = vec![slice(&at(0, 7, 1, 4), true), slice(&plain, false)];
        let vector = Vector { delivered: Some(Delivered { consumer: 1, sequence: 9 }), slices };
        let id = MessageId::delivered(plain.position().unwrap(), vector.clone());
        let restored = MessageId::from_bytes(&id.to_bytes()).unwrap();
        assert_eq!(restored.vector(), Some(&Vector { delivered: None, ..vector }));
        assert_eq!((&restored, &id), (&plain, &plain));
        let mut torn = id.to_bytes();
        torn.pop();
        MessageId::from_bytes(&torn).unwrap_err();
    }

    /// Version 1 of an identifier with a vector, as the first release wrote it.
    #[test]
    fn the_form_with_a_vector_stays_readable() {
        let place = [
            0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 70, 0, 0, 0, 0, 0, 0, 0, 2, 255, 255, 255, 255, 0,
            0, 0, 0,
        ];
        let bytes = [&[1, 3][..], &place, &[0, 0, 0, 1], &place, &[1]].concat();
        let id = MessageId::from_bytes(&bytes).unwrap();
        let slice = Slice { at: at(3, 70, 2, -1).position().unwrap(), shared: true };
        assert_eq!(id.vector().unwrap().slices, [slice]);
        assert_eq!(id.to_bytes(), bytes);
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
