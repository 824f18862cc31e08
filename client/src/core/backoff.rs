//! Retry delays (client-behavior §9) and the seeded generator behind their jitter.

use super::Millis;

/// SplitMix64: a small generator whose whole state is its seed.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// An independent generator.
    pub(crate) fn fork(&mut self) -> Self {
        Rng(self.next())
    }
}

/// Delays that double from `initial` to `max`, each shortened by up to a tenth so that many clients do not retry
/// in step.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    initial: Millis,
    max: Millis,
    next: Millis,
    rng: Rng,
}

impl Backoff {
    pub(crate) fn new(limits: BackoffLimits, rng: Rng) -> Self {
        let initial = limits.initial.max(1);
        Backoff { initial, max: limits.max.max(initial), next: initial, rng }
    }

    /// The delay before the next attempt, in milliseconds.
    pub(crate) fn delay(&mut self) -> Millis {
        let delay = self.next;
        self.next = (delay * 2).min(self.max);
        delay - self.rng.next() % (delay / 10 + 1)
    }

    /// An attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = self.initial;
    }
}

/// The first and the longest delay, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackoffLimits {
    pub(crate) initial: Millis,
    pub(crate) max: Millis,
}

/// How often a send is tried again when its segment is gone (client-behavior §4).
pub(crate) const SEGMENT_GONE_ATTEMPTS: u32 = 10;

/// How long the n-th attempt (from 1) waits for a newer layout: 100 ms more each time, at most 500 ms. All ten
/// together give the layout 4 s to arrive.
pub(crate) fn segment_gone_delay(attempt: u32) -> Millis {
    (100 * Millis::from(attempt)).min(500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_limit_with_less_than_a_tenth_of_jitter() {
        let mut backoff = Backoff::new(BackoffLimits { initial: 100, max: 1000 }, Rng::new(1));
        for expected in [100, 200, 400, 800, 1000, 1000] {
            let delay = backoff.delay();
            assert!(delay <= expected && delay >= expected - expected / 10, "{delay} for {expected}");
        }
        backoff.reset();
        assert!(backoff.delay() <= 100);
    }

    #[test]
    fn one_seed_gives_one_sequence() {
        let take = |seed| {
            let mut rng = Rng::new(seed);
            [rng.next(), rng.next(), rng.fork().next()]
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn a_gone_segment_is_waited_for_four_seconds_in_all() {
        let total: Millis = (1..=SEGMENT_GONE_ATTEMPTS).map(segment_gone_delay).sum();
        assert_eq!(total, 4000);
    }
}
