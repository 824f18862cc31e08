//! The cluster's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::core::Millis;

/// Milliseconds since 1970: a start, what tokio's clock went since, and what control calls added.
#[derive(Debug)]
pub struct Clock {
    base: Millis,
    started: Instant,
}

impl Clock {
    /// A clock that shows `base` now.
    pub fn starting_at(base: Millis) -> Self {
        Clock { base, started: Instant::now() }
    }

    /// A clock that shows the system's time.
    pub fn system() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock::starting_at(whole_ms(since))
    }

    /// What the clock shows.
    pub fn now(&self) -> Millis {
        self.base.saturating_add(whole_ms(self.started.elapsed()))
    }

    /// Moves the clock forward.
    pub fn advance(&mut self, ms: u64) {
        self.base = self.base.saturating_add(ms);
    }

    /// When the clock will show `at`, if nobody moves it.
    pub fn instant(&self, at: Millis) -> Instant {
        self.started + Duration::from_millis(at.saturating_sub(self.base))
    }
}

fn whole_ms(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
