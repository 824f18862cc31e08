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

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ranges: impl IntoIterator<Item = HashRange>) -> Vec<String> {
        ranges.into_iter().map(|r| r.to_string()).collect()
    }

    #[test]
    fn the_remainder_goes_to_the_last_tile() {
        assert_eq!(texts(HashRange::tiles(3)), ["0000-5554", "5555-aaa9", "aaaa-ffff"]);
        assert_eq!(texts(HashRange::tiles(0)), ["0000-ffff"]);
        assert_eq!(HashRange::tiles(u32::MAX).len(), 65536);
    }

    #[test]
    fn ranges_are_cut_at_the_middle() {
        let (low, high) = HashRange::FULL.halves().unwrap();
        assert_eq!(texts([low, high]), ["0000-7fff", "8000-ffff"]);
        assert_eq!(high.join(low), Some(HashRange::FULL));
        assert_eq!(low.join(low), None);
        assert_eq!(HashRange::new(5, 5).unwrap().halves(), None);
    }

    #[test]
    fn ends_do_not_wrap() {
        let last = HashRange::new(0xFFFF, 0xFFFF).unwrap();
        let first = HashRange::new(0, 0).unwrap();
        assert_eq!((first.join(last), last.join(first)), (None, None));
        assert_eq!(HashRange::new(1, 0), None);
        assert!(serde_json::from_str::<HashRange>(r#"{"start":1,"end":0}"#).is_err());
    }
}
