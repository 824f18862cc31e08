//! Inclusive ranges of a 16-bit hash space.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An inclusive range of 16-bit hashes; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Bounds", into = "Bounds")]
pub struct HashRange {
    start: u16,
    end: u16,
}

#[derive(Serialize, Deserialize)]
struct Bounds {
    start: u16,
    end: u16,
}

impl TryFrom<Bounds> for HashRange {
    type Error = &'static str;
    fn try_from(Bounds { start, end }: Bounds) -> Result<Self, Self::Error> {
        HashRange::new(start, end).ok_or("the range ends before it starts")
    }
}

impl From<HashRange> for Bounds {
    fn from(HashRange { start, end }: HashRange) -> Self {
        Bounds { start, end }
    }
}

impl HashRange {
    /// The whole space, `0x0000..=0xFFFF`.
    pub const FULL: HashRange = HashRange { start: 0, end: u16::MAX };

    /// `start..=end`; `None` when `end` is before `start`.
    pub fn new(start: u16, end: u16) -> Option<Self> {
        (start <= end).then_some(HashRange { start, end })
    }

    /// The first hash in the range.
    pub fn start(self) -> u16 {
        self.start
    }

    /// The last hash in the range.
    pub fn end(self) -> u16 {
        self.end
    }

    /// Whether the range holds this hash.
    pub fn contains(self, hash: u16) -> bool {
        (self.start..=self.end).contains(&hash)
    }

    /// How many hashes are in the range, `1..=65536`.
    pub fn width(self) -> u32 {
        u32::from(self.end - self.start) + 1
    }

    /// Both halves, cut at the middle; the lower one takes the odd hash. `None` for a range of one hash.
    pub fn halves(self) -> Option<(HashRange, HashRange)> {
        if self.start == self.end {
            return None;
        }
        let middle = self.start + (self.end - self.start) / 2;
        Some((HashRange { start: self.start, end: middle }, HashRange { start: middle + 1, end: self.end }))
    }

    /// The union of two ranges that touch, in either order; `None` when they do not.
    pub fn join(self, other: HashRange) -> Option<HashRange> {
        let (low, high) = if self.start <= other.start { (self, other) } else { (other, self) };
        (low.end.checked_add(1) == Some(high.start)).then_some(HashRange { start: low.start, end: high.end })
    }

    /// `n` ranges that tile the space with a nominal width of 65536/n, as Pulsar cuts initial segments: every range
    /// but the last has the floor of that width. `n` is clamped to `1..=65536`.
    pub fn tiles(n: u32) -> Vec<HashRange> {
        let n = n.clamp(1, 65536);
        let width = 65536 / n;
        (0..n)
            .map(|i| HashRange {
                start: (i * width) as u16,
                end: if i + 1 == n { u16::MAX } else { ((i + 1) * width - 1) as u16 },
            })
            .collect()
    }
}

impl fmt::Display for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}-{:04x}", self.start, self.end)
    }
}
