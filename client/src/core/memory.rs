//! The memory that messages on their way take in a client, and its limit.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Shared by all producers of a client.
pub(crate) struct Memory {
    /// In bytes.
    limit: usize,
    used: AtomicUsize,
    /// Called when something was given back while the limit was reached.
    freed: Box<dyn Fn() + Send + Sync>,
}

/// Memory that a message holds until it is dropped.
pub(crate) struct Reservation {
    memory: Arc<Memory>,
    size: usize,
}

impl Memory {
    pub(crate) fn new(limit: usize, freed: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Memory { limit, used: AtomicUsize::new(0), freed: Box::new(freed) })
    }

    /// Memory for a message of this many bytes; none while the limit is reached. The message that reaches it may go
    /// above it: otherwise a large one would wait for ever behind small ones of other producers.
    pub(crate) fn reserve(self: &Arc<Self>, size: usize) -> Option<Arc<Reservation>> {
        let reserved = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            (used < self.limit).then(|| used.saturating_add(size))
        });
        reserved.ok().map(|_| Arc::new(Reservation { memory: self.clone(), size }))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let before = self.memory.used.fetch_sub(self.size, Ordering::Relaxed);
        // Below the limit nobody was refused.
        if before >= self.memory.limit {
            (self.memory.freed)();
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("limit", &self.limit).field("used", &self.used).finish_non_exhaustive()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({})", self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_passed_once_and_given_back() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let memory = Memory::new(100, move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let small = memory.reserve(60).unwrap();
        let large = memory.reserve(1000).unwrap();
        assert!(memory.reserve(1).is_none());
        drop(small);
        assert!(memory.reserve(1).is_none(), "the large one is still there");
        drop(large.clone());
        assert!(memory.reserve(1).is_none());
        drop(large);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert!(memory.reserve(1).is_some());
    }
}
