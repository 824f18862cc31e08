//! What is still done when somebody asks this process to end (Ctrl-C, SIGTERM): brokers that it started are ended.

use std::thread;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// Signals that wait: one that comes while a broker starts takes effect when it can be ended.
pub struct Caught(Signals);

/// To be kept until the broker has ended: once it is dropped, signals do nothing until somebody catches them again.
#[derive(Debug)]
pub struct Armed(Handle);

impl Caught {
    /// From here on.
    ///
    /// # Errors
    /// When signals cannot be caught.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Caught(Signals::new([SIGINT, SIGTERM]).context("cannot listen for signals")?))
    }

    /// Cleans up and ends this process on the first signal, with the code by which a shell tells it: 128 and its number.
    #[must_use]
    pub fn before_the_end(mut self, clean_up: impl FnOnce() + Send + 'static) -> Armed {
        let handle = self.0.handle();
        thread::spawn(move || {
            if let Some(signal) = self.0.forever().next() {
                clean_up();
                std::process::exit(128 + signal);
            }
        });
        Armed(handle)
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.0.close();
    }
}
