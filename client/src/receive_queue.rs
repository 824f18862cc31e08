//! The one receive queue of a consumer: the messages of all its segments, in the order of their arrival.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::core::{consumer::Delivery, error::Error};

#[derive(Debug, Default)]
pub(crate) struct ReceiveQueue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Delivery>,
    closed: bool,
}

impl ReceiveQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, delivery: Delivery) {
        self.state().messages.push_back(delivery);
        self.changed.notify_one();
    }

    /// Takes out what a segment delivered and nobody received: it will be delivered again.
    pub(crate) fn purge(&self, segment: u64) {
        self.state().messages.retain(|delivery| delivery.segment != segment);
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
    pub(crate) fn try_pop(&self) -> Result<Option<Delivery>, Error> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::closed("consumer"));
        }
        Ok(state.messages.pop_front())
    }

    /// Waits for the next message. Nothing is lost when the future is dropped.
    pub(crate) async fn pop(&self) -> Result<Delivery, Error> {
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
}
