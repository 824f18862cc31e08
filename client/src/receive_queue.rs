//! The one receive queue of a consumer: the messages of all its segments, and of all its topics when it has a
//! namespace, in the order of their arrival.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::{
    core::{
        consumer::Delivery,
        deviant::{Deviance, Deviant},
        error::Error,
        message_id::{Across, Furthest, MessageId},
    },
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

/// One topic's part in a receive queue, for as long as the topic is the consumer's.
pub(crate) struct Lane {
    pub(crate) topic: Arc<str>,
    /// Tells the lanes of a queue apart.
    pub(crate) number: u64,
    /// Present when the consumer's schema wants to know what messages were written with.
    writers: Option<Writers>,
    /// Nothing is put in any more.
    closed: AtomicBool,
}

/// What was taken out of a queue.
pub(crate) struct Received<T> {
    pub(crate) lane: Arc<Lane>,
    pub(crate) delivery: T,
}

/// A queue as the task of one topic has it.
pub(crate) struct Inlet<T: Queued> {
    queue: Arc<ReceiveQueue<T>>,
    lane: Arc<Lane>,
}

/// A queue as those have it who receive.
pub(crate) struct Outlet<T: Queued> {
    pub(crate) queue: Arc<ReceiveQueue<T>>,
    pub(crate) deviance: Deviance,
    /// How many messages are enough to wait for.
    pub(crate) enough: usize,
}

impl<T: Queued> Clone for Outlet<T> {
    fn clone(&self) -> Self {
        Outlet { queue: self.queue.clone(), deviance: self.deviance, enough: self.enough }
    }
}

impl<T: Queued> Inlet<T> {
    pub(crate) fn new(
        queue: Arc<ReceiveQueue<T>>,
        number: u64,
        topic: Arc<str>,
        writers: Option<Writers>,
    ) -> Self {
        Inlet { queue, lane: Arc::new(Lane { topic, number, writers, closed: AtomicBool::new(false) }) }
    }

    pub(crate) fn push(&self, delivery: T) {
        self.queue.push(Received { lane: self.lane.clone(), delivery });
    }

    /// Takes out what nobody received and nobody will: from now on it cannot be received any more.
    pub(crate) fn purge(&self, gone: impl Fn(&T) -> bool) -> Vec<T> {
        let gone = self.queue.purge(|queued| Arc::ptr_eq(&queued.lane, &self.lane) && gone(&queued.delivery));
        gone.into_iter().map(|queued| queued.delivery).collect()
    }

    /// Works on what the queue keeps of everything that was taken out; nothing is taken out meanwhile.
    pub(crate) fn passed<R>(&self, work: impl FnOnce(&mut T::Passed) -> R) -> R {
        self.queue.passed(work)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lane.closed.load(Ordering::Relaxed)
    }

    /// Nothing comes from this topic any more. It ends all receives unless there may be other topics.
    pub(crate) fn close(&self) {
        self.lane.closed.store(true, Ordering::Relaxed);
        if self.queue.spans_topics() {
            self.purge(|_| true);
        } else {
            self.queue.close();
        }
    }
}

impl<T: Queued> Outlet<T> {
    pub(crate) async fn receive(&self) -> Result<Received<T>, Error> {
        self.queue.pop().await
    }

    pub(crate) async fn receive_timeout(&self, limit: Duration) -> Result<Option<Received<T>>, Error> {
        match timeout_at(Instant::now() + limit, self.receive()).await {
            Ok(received) => Ok(Some(received?)),
            Err(_) if self.deviance.is(Deviant::ReceiveTimeoutIsError) => {
                Err(Error::timeout("no message came in time"))
            }
            Err(_) => Ok(None),
        }
    }

    pub(crate) async fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Received<T>>, Error> {
        let max = max + usize::from(self.deviance.is(Deviant::ReceiveManyIgnoresMax));
        self.queue.pop_many(max, self.enough, Instant::now() + limit).await
    }
}

pub(crate) struct ReceiveQueue<T: Queued> {
    state: Mutex<State<T>>,
    changed: Notify,
    /// Tells those who ask the broker for a schema that the queue is closed.
    ended: Notify,
}

struct State<T: Queued> {
    messages: VecDeque<Received<T>>,
    passed: T::Passed,
    closed: bool,
    /// What came of each topic, when there are several: identifiers of messages carry it.
    across: Option<Arc<Across>>,
}

/// A message whose schema the broker has to be asked for first. The message stays where it is.
struct Unknown {
    lane: Arc<Lane>,
    segment: u64,
    version: Bytes,
}

enum Next<T> {
    Ready(T),
    Nothing,
    Unknown(Unknown),
}

impl<T: Queued> ReceiveQueue<T> {
    /// The queue of a consumer of one topic.
    pub(crate) fn new() -> Self {
        ReceiveQueue {
            state: Mutex::new(State {
                messages: VecDeque::new(),
                passed: T::Passed::default(),
                closed: false,
                across: None,
            }),
            changed: Notify::new(),
            ended: Notify::new(),
        }
    }

    /// The queue of a consumer of many topics; the number tells that consumer from others of the process.
    pub(crate) fn across_topics(consumer: u64) -> Self {
        let queue = ReceiveQueue::new();
        queue.state().across = Some(Arc::new(Across { consumer: Some(consumer), ..Across::default() }));
        queue
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spans_topics(&self) -> bool {
        self.state().across.is_some()
    }

    /// What came of each topic so far.
    pub(crate) fn across(&self) -> Option<Arc<Across>> {
        self.state().across.clone()
    }

    /// A topic is the consumer's no more: what came of it is not in the identifiers of later messages.
    pub(crate) fn forget(&self, topic: &str) {
        if let Some(across) = &mut self.state().across {
            Arc::make_mut(across).topics.remove(topic);
        }
    }

    fn push(&self, mut received: Received<T>) {
        let mut state = self.state();
        if received.lane.closed.load(Ordering::Relaxed) {
            return;
        }
        if let Some(across) = &mut state.across {
            let id = &mut received.delivery.delivery().id;
            let furthest = Furthest { id: id.clone(), stay: received.lane.number };
            Arc::make_mut(across).topics.insert(received.lane.topic.clone(), furthest);
            if let Some(at) = id.position() {
                *id = MessageId::across(at, across.clone());
            }
        }
        state.messages.push_back(received);
        drop(state);
        // All of them: one that waits for several messages leaves this one to the others.
        self.changed.notify_waiters();
    }

    fn purge(&self, gone: impl Fn(&Received<T>) -> bool) -> Vec<Received<T>> {
        let mut state = self.state();
        let messages = std::mem::take(&mut state.messages);
        let (purged, kept) = messages.into_iter().partition(gone);
        state.messages = kept;
        Vec::from(purged as VecDeque<Received<T>>)
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
    async fn pop(&self) -> Result<Received<T>, Error> {
        // What is there needs no preparations to wait.
        if let Next::Ready(delivery) = self.next(true)? {
            return Ok(delivery);
        }
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on a push or a close is not missed.
            changed.as_mut().enable();
            match self.next(true)? {
                Next::Ready(delivery) => return Ok(delivery),
                Next::Nothing => changed.await,
                Next::Unknown(unknown) => self.ask(unknown).await,
            }
        }
    }

    /// Waits until `enough` messages are there or the time is over, and takes up to `max`. Nothing is taken before
    /// that, so nothing is lost when the future is dropped.
    async fn pop_many(&self, max: usize, enough: usize, until: Instant) -> Result<Vec<Received<T>>, Error> {
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
            // One that the application gets an error for comes alone: with it others would be lost.
            while taken.len() < max && !taken.last_mut().is_some_and(fails) {
                match self.next(taken.is_empty()) {
                    Ok(Next::Ready(next)) => taken.push(next),
                    Ok(Next::Nothing | Next::Unknown(_)) => break,
                    Err(error) if taken.is_empty() => return Err(error),
                    Err(_) => break,
                }
            }
            return Ok(taken);
        }
    }

    /// Takes the next message, if one is there and everything is known about it; one that the application gets an error
    /// for only if that is asked for.
    fn next(&self, failed_too: bool) -> Result<Next<Received<T>>, Error> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::closed("consumer"));
        }
        let Some(front) = state.messages.front_mut() else { return Ok(Next::Nothing) };
        if fails(front) && !failed_too {
            return Ok(Next::Nothing);
        }
        if let Some(unknown) = complete(front) {
            return Ok(Next::Unknown(unknown));
        }
        let Some(next) = state.messages.pop_front() else { return Ok(Next::Nothing) };
        next.delivery.pass(&mut state.passed);
        Ok(Next::Ready(next))
    }

    fn first_unknown(&self, max: usize) -> Option<Unknown> {
        self.state().messages.iter_mut().take(max).find_map(complete)
    }

    /// Asks the broker, until the queue is closed.
    async fn ask(&self, Unknown { lane, segment, version }: Unknown) {
        let mut ended = std::pin::pin!(self.ended.notified());
        ended.as_mut().enable();
        if let Some(writers) = &lane.writers
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

/// Whether the application gets an error instead of the message.
fn fails<T: Queued>(received: &mut Received<T>) -> bool {
    received.delivery.delivery().message.failure.is_some()
}

/// Adds what is known about the schema of a message; what has to be asked for if nothing is.
fn complete<T: Queued>(Received { lane, delivery }: &mut Received<T>) -> Option<Unknown> {
    let delivery = delivery.delivery();
    let (writers, version) = (lane.writers.as_ref()?, delivery.message.schema_version.as_ref()?);
    match writers.get(version) {
        Some(writer) => {
            delivery.message.writer = writer;
            None
        }
        None => Some(Unknown { lane: lane.clone(), segment: delivery.segment, version: version.clone() }),
    }
}
