//! The client's clocks. Retries and timeouts run on tokio's clock, so that they stand still when a test pauses it;
//! publish and delivery times are taken from a wall clock that a test can replace.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::{Duration, Instant};

use crate::core::{Millis, Now};

/// Tells what time it is (data-model §3).
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// The system's clock, read once (data-model §3); from there it advances with tokio's, so paused time pauses it as well.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
    started_ms: u64,
}

impl SystemClock {
    /// A clock that shows the system's time now.
    pub fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SystemClock { started: Instant::now(), started_ms: since_1970.as_millis() as u64 }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        self.started_ms + self.started.elapsed().as_millis() as u64
    }
}

/// Both clocks of the state machines.
pub(crate) struct Clocks {
    started: Instant,
    wall: Box<dyn Clock>,
}

impl Clocks {
    pub(crate) fn new(wall: Box<dyn Clock>) -> Self {
        Clocks { started: Instant::now(), wall }
    }

    pub(crate) fn now(&self) -> Now {
        Now { mono: self.started.elapsed().as_millis() as Millis, wall: self.wall.now_ms() }
    }

    /// When a deadline of a state machine is reached.
    pub(crate) fn instant(&self, mono: Millis) -> Instant {
        self.started + Duration::from_millis(mono)
    }
}
