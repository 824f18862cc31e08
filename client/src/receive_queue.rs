//! The one receive queue of a consumer: the messages of all its segments, in the order of their arrival.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::core::{consumer::Delivery, error::Error};

/// What a receive queue holds.
pub(crate) trait Queued {
    /// What the queue keeps of everything that was taken out of it.
    type Passed: Default;

    /// It is taken out.
    fn pass(&self, _: &mut Self::Passed) {}
}

impl Queued for Delivery {
    type Passed = ();
}

pub(crate) struct ReceiveQueue<T: Queued = Delivery> {
    state: Mutex<State<T>>,
    changed: Notify,
}

struct State<T: Queued> {
    messages: VecDeque<T>,
    passed: T::Passed,
    closed: bool,
}

impl<T: Queued> Default for ReceiveQueue<T> {
    fn default() -> Self {
        let state = State { messages: VecDeque::new(), passed: T::Passed::default(), closed: false };
        ReceiveQueue { state: Mutex::new(state), changed: Notify::new() }
    }
}

impl<T: Queued> ReceiveQueue<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, delivery: T) {
        self.state().messages.push_back(delivery);
        // All of them: one that waits for several messages leaves this one to the others.
        self.changed.notify_waiters();
    }

    /// Takes out what nobody received and nobody will: from now on it cannot be received any more.
    pub(crate) fn purge(&self, gone: impl Fn(&T) -> bool) -> Vec<T> {
        let mut state = self.state();
        let messages = std::mem::take(&mut state.messages);
        let (purged, kept) = messages.into_iter().partition(gone);
        state.messages = kept;
        Vec::from(purged as VecDeque<T>)
    }

    /// Works on what the queue keeps of everything that was taken out; nothing is taken out meanwhile.
    pub(crate) fn passed<R>(&self, work: impl FnOnce(&mut T::Passed) -> R) -> R {
        work(&mut self.state().passed)
    }

    /// Ends all receives, now and later.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.messages.clear();
        drop(state);
        self.changed.notify_waiters();
    }

    /// Takes the next message, if one is there.
    pub(crate) fn try_pop(&self) -> Result<Option<T>, Error> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::closed("consumer"));
        }
        let next = state.messages.pop_front();
        if let Some(next) = &next {
            next.pass(&mut state.passed);
        }
        Ok(next)
    }

    /// Waits for the next message. Nothing is lost when the future is dropped.
    pub(crate) async fn pop(&self) -> Result<T, Error> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on a push or a close is not missed.
            changed.as_mut().enable();
            if let Some(delivery) = self.try_pop()? {
                return Ok(delivery);
            }
            changed.await;
        }
    }

    /// Waits until `enough` messages are there or the time is over, and takes up to `max`. Nothing is taken before
    /// that, so nothing is lost when the future is dropped.
    pub(crate) async fn pop_many(&self, max: usize, enough: usize, until: Instant) -> Result<Vec<T>, Error> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let waiting = {
                let state = self.state();
                !state.closed && state.messages.len() < enough.min(max) && Instant::now() < until
            };
            if waiting {
                // When the time is over the condition above is.
                let _ = timeout_at(until, changed).await;
                continue;
            }
            let mut taken = Vec::new();
            while taken.len() < max {
                match self.try_pop() {
                    Ok(Some(next)) => taken.push(next),
                    Ok(None) => break,
                    Err(error) if taken.is_empty() => return Err(error),
                    Err(_) => break,
                }
            }
            return Ok(taken);
        }
    }
}
