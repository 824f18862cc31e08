//! The one receive queue of a consumer: the messages of all its segments, in the order of their arrival.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::{
    core::{consumer::Delivery, error::Error},
    schema::Writers,
};

#[derive(Debug, Default)]
pub(crate) struct ReceiveQueue {
    state: Mutex<State>,
    /// Present when the consumer's schema wants to know what messages were written with.
    writers: Option<Writers>,
    changed: Notify,
    /// Tells those who ask the broker for something that the queue is closed.
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Delivery>,
    closed: bool,
}

impl ReceiveQueue {
    pub(crate) fn new(writers: Option<Writers>) -> Self {
        ReceiveQueue { writers, ..Default::default() }
    }

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
        self.ended.notify_waiters();
    }

    /// Takes the next message, if one is there and everything is known about it.
    fn next(&self) -> Result<Next, Error> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::closed("consumer"));
        }
        let Some(front) = state.messages.front_mut() else { return Ok(Next::Nothing) };
        if let (Some(writers), Some(version)) = (&self.writers, &front.message.schema_version) {
            match writers.get(version) {
                Some(writer) => front.message.writer = writer,
                None => {
                    return Ok(Next::Unknown { segment: front.segment, version: version.clone() });
                }
            }
        }
        Ok(state.messages.pop_front().map_or(Next::Nothing, |delivery| Next::Ready(Box::new(delivery))))
    }

    /// Waits for the next message. Nothing is lost when the future is dropped.
    pub(crate) async fn pop(&self) -> Result<Delivery, Error> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on a push or a close is not missed.
            changed.as_mut().enable();
            match self.next()? {
                Next::Ready(delivery) => return Ok(*delivery),
                Next::Nothing => changed.await,
                Next::Unknown { segment, version } => {
                    // Should this future be dropped, another one goes on with the message.
                    let _pass_on = PassOn(&self.changed);
                    let mut closed = std::pin::pin!(self.ended.notified());
                    closed.as_mut().enable();
                    if let Some(writers) = &self.writers
                        && !self.state().closed
                    {
                        tokio::select! {
                            biased;
                            () = writers.fetch(segment, version) => {}
                            () = closed => {}
                        }
                    }
                }
            }
        }
    }
}

enum Next {
    Ready(Box<Delivery>),
    Nothing,
    /// The broker has to be asked for the schema of the next message first. The message stays where it is.
    Unknown {
        segment: u64,
        version: Bytes,
    },
}

struct PassOn<'a>(&'a Notify);

impl Drop for PassOn<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
