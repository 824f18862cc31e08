//! Checkpoints (data-model §5): opaque positions over all segments, serialisable.

use std::{collections::BTreeMap, fmt};

use crate::core::{
    error::{Category, Error},
    message_id::take,
};

/// A position in a topic (data-model §5): everything that a checkpoint consumer had received when it was captured.
/// Opaque: its bytes are for storing, not for reading.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Checkpoint(pub(crate) Start);

/// Where a checkpoint consumer starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Start {
    Earliest,
    Latest,
    /// Behind the last received message of each segment. A segment that is absent is read from its oldest message.
    Behind(Marks),
}

/// The last received messages, by segment.
pub(crate) type Marks = BTreeMap<u64, Mark>;

/// A message within a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) ledger: u64,
    pub(crate) entry: u64,
    /// The place within a batch; -1 for an entry with one message.
    pub(crate) batch_index: i32,
}

const VERSION: u8 = 1;
const EARLIEST: u8 = 0;
const BEHIND: u8 = 1;
const LATEST: u8 = 2;
/// One segment in bytes.
const MARK_SIZE: usize = 28;

impl Checkpoint {
    /// Before the oldest message that is still there.
    pub fn earliest() -> Self {
        Checkpoint(Start::Earliest)
    }

    /// Behind the newest message: a consumer that starts here gets what is published from then on.
    pub fn latest() -> Self {
        Checkpoint(Start::Latest)
    }

    /// The checkpoint as bytes, which this and every later version of this client reads.
    ///
    /// The form is this client's own: a version (1 byte), a kind (1 byte), and for a captured one the number of
    /// segments (4 bytes) and four big-endian numbers for each.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Start::Earliest => vec![VERSION, EARLIEST],
            Start::Latest => vec![VERSION, LATEST],
            Start::Behind(marks) => {
                let mut bytes = vec![VERSION, BEHIND];
                // There are never that many segments.
                let count = u32::try_from(marks.len()).unwrap_or(u32::MAX);
                bytes.extend_from_slice(&count.to_be_bytes());
                for (segment, mark) in marks.iter().take(count as usize) {
                    for number in [*segment, mark.ledger, mark.entry] {
                        bytes.extend_from_slice(&number.to_be_bytes());
                    }
                    bytes.extend_from_slice(&mark.batch_index.to_be_bytes());
                }
                bytes
            }
        }
    }

    /// Restores a checkpoint.
    ///
    /// # Errors
    /// `InvalidConfiguration` when the bytes are not from [`Checkpoint::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let bad =
            |what: &str| Error::new(Category::InvalidConfiguration, format!("not a checkpoint: {what}"));
        let early = || bad("it ends early");
        let mut rest = bytes;
        let [version, kind] = take(&mut rest).ok_or_else(early)?;
        if version != VERSION {
            return Err(bad("its version is not known"));
        }
        let start = match kind {
            EARLIEST => Start::Earliest,
            LATEST => Start::Latest,
            BEHIND => {
                let count = u32::from_be_bytes(take(&mut rest).ok_or_else(early)?) as usize;
                if rest.len() != count.saturating_mul(MARK_SIZE) {
                    return Err(bad("its parts do not add up"));
                }
                let mut marks = Marks::new();
                for _ in 0..count {
                    let mut number = || take(&mut rest).map(u64::from_be_bytes).ok_or_else(early);
                    let (segment, ledger, entry) = (number()?, number()?, number()?);
                    let batch_index = i32::from_be_bytes(take(&mut rest).ok_or_else(early)?);
                    marks.insert(segment, Mark { ledger, entry, batch_index });
                }
                Start::Behind(marks)
            }
            _ => return Err(bad("its kind is not known")),
        };
        match rest {
            [] => Ok(Checkpoint(start)),
            _ => Err(bad("something follows it")),
        }
    }
}

/// Shows the serialised form, not the parts.
impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checkpoint(")?;
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(marks: &[(u64, u64, u64, i32)]) -> Checkpoint {
        let mark = |&(segment, ledger, entry, batch_index)| (segment, Mark { ledger, entry, batch_index });
        Checkpoint(Start::Behind(marks.iter().map(mark).collect()))
    }

    #[test]
    fn checkpoints_survive_bytes() {
        let captured = behind(&[(0, 7, 3, -1), (5, u64::MAX, 0, 12)]);
        for checkpoint in [Checkpoint::earliest(), Checkpoint::latest(), behind(&[]), captured] {
            assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes()).unwrap(), checkpoint);
        }
    }

    /// As the first release wrote it.
    #[test]
    fn the_form_of_version_1_stays_readable() {
        let mark =
            [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 70, 0, 0, 0, 0, 0, 0, 0, 2, 255, 255, 255, 255];
        let bytes = [&[1, 1, 0, 0, 0, 1][..], &mark].concat();
        assert_eq!(Checkpoint::from_bytes(&bytes).unwrap(), behind(&[(3, 70, 2, -1)]));
        assert_eq!(Checkpoint::from_bytes(&[1, 0]).unwrap(), Checkpoint::earliest());
        assert_eq!(Checkpoint::from_bytes(&[1, 2]).unwrap(), Checkpoint::latest());
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let mut long = behind(&[(3, 70, 2, -1)]).to_bytes();
        long.push(0);
        for bytes in [&[][..], &[1], &[2, 0], &[1, 7], &[1, 1, 255, 255, 255, 255], &[1, 0, 0], &long] {
            let error = Checkpoint::from_bytes(bytes).unwrap_err();
            assert_eq!(error.category(), Category::InvalidConfiguration, "{bytes:?}");
        }
    }
}
