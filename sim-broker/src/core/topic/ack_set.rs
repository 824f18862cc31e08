//! Which messages of a batch are not acknowledged yet, as MESSAGE and ACK carry it.

/// A set of message indexes within a batch: a bit that is set stands for a message that is *not* acknowledged.
/// Bit `i` of the batch is bit `i % 64` of word `i / 64`; trailing zero words are left out on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AckSet(Vec<u64>);

impl AckSet {
    /// What `wire` leaves of a batch of this many messages. Takes as much memory as `wire` does, whatever the batch
    /// claims to hold.
    pub(super) fn first(messages: u32, wire: &[i64]) -> Self {
        let mut left = messages;
        let words = wire.iter().map_while(|word| {
            let bits = left.min(64);
            left -= bits;
            (bits > 0).then(|| *word as u64 & (u64::MAX >> (64 - bits)))
        });
        AckSet(words.collect())
    }

    /// Takes out what `wire` acknowledges, that is, does not have. Returns how many messages were taken out.
    pub(super) fn intersect(&mut self, wire: &[i64]) -> u32 {
        let before = self.unacked();
        for (i, word) in self.0.iter_mut().enumerate() {
            *word &= wire.get(i).map_or(0, |w| *w as u64);
        }
        before - self.unacked()
    }

    /// How many messages are not acknowledged.
    pub(super) fn unacked(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The set as it goes on the wire.
    pub(super) fn to_wire(&self) -> Vec<i64> {
        let len = self.0.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        self.0.iter().take(len).map(|word| *word as i64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_shrink_to_nothing() {
        let mut set = AckSet::first(70, &[-2, -1, -1]);
        assert_eq!(set.unacked(), 69);
        assert_eq!(set.to_wire(), [-2, 63]);
        // Words that the wire leaves out are zero, so their messages are acknowledged.
        assert_eq!(set.intersect(&[-4]), 7);
        assert_eq!(set.to_wire(), [-4]);
        assert_eq!(set.intersect(&[-1, -1, -1]), 0);
        assert_eq!(set.intersect(&[]), 62);
        assert!(set.to_wire().is_empty());
        assert_eq!(AckSet::first(u32::MAX, &[1]).unacked(), 1);
    }
}
