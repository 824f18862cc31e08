//! The one receive queue of a consumer: the messages of all its segments, in the order of their arrival.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::{
    core::{consumer::Delivery, error::Error},
    schema::Writers,
};

/// What a receive queue holds.
pub(crate) trait Queued {
    /// What the queue keeps of everything that was taken out of it.
    type Passed: Default + Send;

    /// It is taken out.
    fn pass(&self, _: &mut Self::Passed) {}

    /// The message in it.
    fn delivery(&mut self) -> &mut Delivery;
}

impl Queued for Delivery {
    type Passed = ();

    fn delivery(&mut self) -> &mut Delivery {
        self
    }
}

pub(crate) struct ReceiveQueue<T: Queued = Delivery> {
    state: Mutex<State<T>>,
    /// Present when the consumer's schema wants to know what messages were written with.
    writers: Option<Writers>,
    changed: Notify,
    /// Tells those who ask the broker for a schema that the queue is closed.
    ended: Notify,
}

struct State<T: Queued> {
    messages: VecDeque<T>,
    passed: T::Passed,
    closed: bool,
}

/// A message whose schema the broker has to be asked for first. The message stays where it is.
struct Unknown {
    segment: u64,
    version: Bytes,
}

enum Next<T> {
    Ready(T),
    Nothing,
    Unknown(Unknown),
}

impl<T: Queued> ReceiveQueue<T> {
    pub(crate) fn new(writers: Option<Writers>) -> Self {
        let state = State { messages: VecDeque::new(), passed: T::Passed::default(), closed: false };
        ReceiveQueue { state: Mutex::new(state), writers, changed: Notify::new(), ended: Notify::new() }
    }

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
        self.ended.notify_waiters();
    }

    /// Waits for the next message. Nothing is lost when the future is dropped.
    pub(crate) async fn pop(&self) -> Result<T, Error> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on a push or a close is not missed.
            changed.as_mut().enable();
            match self.next()? {
                Next::Ready(delivery) => return Ok(delivery),
                Next::Nothing => changed.await,
                Next::Unknown(unknown) => self.ask(unknown).await,
            }
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
            if let Some(unknown) = self.first_unknown(max)
                && Instant::now() < until
            {
                let _ = timeout_at(until, self.ask(unknown)).await;
                continue;
            }
            let mut taken = Vec::new();
            while taken.len() < max {
                match self.next() {
                    Ok(Next::Ready(next)) => taken.push(next),
                    Ok(Next::Nothing | Next::Unknown(_)) => break,
                    Err(error) if taken.is_empty() => return Err(error),
                    Err(_) => break,
                }
            }
            return Ok(taken);
        }
    }

    /// Takes the next message, if one is there and everything is known about it.
    fn next(&self) -> Result<Next<T>, Error> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::closed("consumer"));
        }
        let Some(front) = state.messages.front_mut() else { return Ok(Next::Nothing) };
        if let Some(unknown) = self.complete(front) {
            return Ok(Next::Unknown(unknown));
        }
        let Some(next) = state.messages.pop_front() else { return Ok(Next::Nothing) };
        next.pass(&mut state.passed);
        Ok(Next::Ready(next))
    }

    /// Adds what is known about the schema of a message; what has to be asked for if nothing is.
    fn complete(&self, queued: &mut T) -> Option<Unknown> {
        let delivery = queued.delivery();
        let (writers, version) = (self.writers.as_ref()?, delivery.message.schema_version.as_ref()?);
        match writers.get(version) {
            Some(writer) => {
                delivery.message.writer = writer;
                None
            }
            None => Some(Unknown { segment: delivery.segment, version: version.clone() }),
        }
    }

    fn first_unknown(&self, max: usize) -> Option<Unknown> {
        self.writers.as_ref()?;
        self.state().messages.iter_mut().take(max).find_map(|queued| self.complete(queued))
    }

    /// Asks the broker, until the queue is closed.
    async fn ask(&self, Unknown { segment, version }: Unknown) {
        let mut ended = std::pin::pin!(self.ended.notified());
        ended.as_mut().enable();
        if let Some(writers) = &self.writers
            && !self.state().closed
        {
            tokio::select! {
                biased;
                () = writers.fetch(segment, version) => {}
                () = ended => {}
            }
        }
    }
}
