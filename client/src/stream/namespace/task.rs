//! The task behind the consumer of a namespace: follows the watch, opens the consumers of topics that come and closes those
//! of topics that go.

use std::{sync::Arc, time::Duration};

use stc_proto::TopicName;
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use super::{
    super::{
        kind::{Request, Stream},
        open::{self, Settings},
    },
    Begun, Member, Members,
};
use crate::{
    client::Shared,
    consumer::{Done, Handle},
    core::{
        backoff::Backoff,
        deviant::Deviant,
        error::{Category, Error},
        namespace::{Effect, Namespace},
        stream::StreamDelivery,
    },
    namespace_watch::{NamespaceWatch, Update, Watched},
    producer::sleep,
    receive_queue::ReceiveQueue,
};

type Opened = (String, u64, Result<Handle<Stream>, Error>);

pub(super) struct Task {
    client: Arc<Shared>,
    alive: mpsc::Sender<()>,
    settings: Settings,
    /// The consumer's name; those of its topics are made of it.
    name: String,
    watched: Watched,
    core: Namespace,
    watch: Option<NamespaceWatch>,
    backoff: Backoff,
    reopening: JoinSet<Result<NamespaceWatch, Error>>,
    opening: JoinSet<Opened>,
    closing_topics: JoinSet<String>,
    members: Arc<Members>,
    queue: Arc<ReceiveQueue<StreamDelivery>>,
    opened: Option<Done>,
    closers: mpsc::UnboundedReceiver<Done>,
}

impl Task {
    pub(super) fn new(client: Arc<Shared>, alive: mpsc::Sender<()>, core: Namespace, begun: Begun) -> Self {
        let Begun { settings, name, watched, watch, members, queue, opened, closers } = begun;
        Task {
            backoff: Backoff::new(client.backoff, client.rng()),
            client,
            alive,
            settings,
            name,
            watched,
            core,
            watch: Some(watch),
            reopening: JoinSet::new(),
            opening: JoinSet::new(),
            closing_topics: JoinSet::new(),
            members,
            queue,
            opened: Some(opened),
            closers,
        }
    }

    /// Runs until the consumer is closed.
    pub(super) async fn run(mut self) {
        let first = loop {
            self.perform();
            let deadline = self.core.next_deadline();
            let now = self.client.clocks.now();
            if deadline.is_some_and(|at| at <= now.mono) {
                self.core.tick(now);
                continue;
            }
            let deadline: Option<Instant> = deadline.map(|at| self.client.clocks.instant(at));
            // In a fixed order, so that one seed gives one run.
            tokio::select! {
                biased;
                update = next(&mut self.watch) => self.updated(update),
                Some(Ok(reopened)) = self.reopening.join_next(), if !self.reopening.is_empty() => {
                    match reopened {
                        Ok(watch) => self.watch = Some(watch),
                        Err(error) => self.reopen(&error),
                    }
                }
                Some(Ok(opened)) = self.opening.join_next(), if !self.opening.is_empty() => {
                    self.topic_opened(opened);
                }
                Some(Ok(topic)) = self.closing_topics.join_next(), if !self.closing_topics.is_empty() => {
                    self.core.closed(&topic);
                }
                closer = self.closers.recv() => break closer,
                () = self.client.closing() => break None,
                () = sleep(deadline) => self.core.tick(self.client.clocks.now()),
            }
        };
        self.end(first).await;
    }

    /// Closes everything; acknowledges nothing.
    async fn end(mut self, first: Option<Done>) {
        self.queue.close();
        drop(self.watch.take());
        self.reopening.abort_all();
        // What is not open yet closes by itself, once its future is dropped.
        self.opening.shutdown().await;
        let members = std::mem::take(&mut *self.members.lock());
        for member in members.into_values() {
            let topic = member.handle.face.topic.to_string();
            self.closing_topics.spawn(async move {
                // It is best effort.
                let _ = member.handle.close().await;
                topic
            });
        }
        while self.closing_topics.join_next().await.is_some() {}
        self.closers.close();
        let mut closer = first;
        while let Some(done) = closer {
            let _ = done.send(Ok(()));
            closer = self.closers.recv().await;
        }
    }

    fn updated(&mut self, update: Update) {
        match update {
            Update::Snapshot(topics) => {
                self.backoff.reset();
                self.core.snapshot(topics);
            }
            Update::Diff { removed, added } => {
                self.backoff.reset();
                self.core.diff(removed, added);
            }
            Update::Lost(error) => {
                self.watch = None;
                if self.client.deviance.is(Deviant::NamespaceNotRewatched) {
                    return;
                }
                self.reopen(&error);
            }
        }
    }

    /// Opens the watch again, after a pause.
    fn reopen(&mut self, error: &Error) {
        tracing::debug!(namespace = %self.watched.namespace, %error, "the watch is lost");
        let deviance = self.client.deviance;
        let mut hash = Some(self.core.hash()).filter(|_| !deviance.is(Deviant::NoCurrentHash));
        if deviance.is(Deviant::EmptySetHash) {
            hash = Some("00000000".to_owned());
        }
        if deviance.is(Deviant::AwaitsSnapshot) {
            self.core.snapshot(Vec::new());
        }
        let (client, watched) = (self.client.clone(), self.watched.clone());
        let pause = Duration::from_millis(self.backoff.delay());
        self.reopening.spawn(async move {
            tokio::time::sleep(pause).await;
            NamespaceWatch::open(&client, &watched, hash).await
        });
    }

    fn topic_opened(&mut self, (topic, stay, result): Opened) {
        let result = result.map(|handle| {
            self.members.lock().insert(topic.clone(), Member { handle, stay });
        });
        self.core.opened(&topic, result, self.client.clocks.now());
    }

    /// Carries out what the state machine asks for.
    fn perform(&mut self) {
        loop {
            let effects = self.core.take_effects();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out(effect));
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Open { topic, stay } => self.open_topic(topic, stay),
            Effect::Close { topic } => self.close_topic(topic),
            Effect::Subscribed(result) => {
                if let Some(opened) = self.opened.take() {
                    // Nobody waits any more when the subscribe was given up.
                    let _ = opened.send(result);
                }
            }
        }
    }

    fn open_topic(&mut self, topic: String, stay: u64) {
        if self.client.deviance.is(Deviant::FirstTopicOnly) && stay > 1 {
            return self.core.opened(&topic, Ok(()), self.client.clocks.now());
        }
        let (client, alive, settings) = (self.client.clone(), self.alive.clone(), self.settings.clone());
        let name = self.name.clone();
        let lane = Some((self.queue.clone(), stay));
        let invalid = |error: stc_proto::name::NameError| Error::new(Category::Unknown, error.to_string());
        let parsed = TopicName::parse(&topic).map_err(invalid);
        self.opening.spawn(async move {
            let opened = async {
                let parsed = parsed?;
                let name = format!("{name}-{}", parsed.local());
                open::open(&client, alive, settings, parsed, name, lane).await
            };
            (topic, stay, opened.await)
        });
    }

    fn close_topic(&mut self, topic: String) {
        let member = self.members.lock().remove(&topic);
        let furthest = self.queue.across().and_then(|across| across.topics.get(topic.as_str()).cloned());
        self.queue.forget(&topic);
        let acks = self.client.deviance.is(Deviant::AcksOnRemoval);
        self.closing_topics.spawn(async move {
            if let Some(member) = member {
                if let Some(furthest) = furthest.filter(|_| acks) {
                    let _ = member.handle.ask(|done| Request::Acknowledge(furthest.id, done)).await;
                }
                // It is best effort.
                let _ = member.handle.close().await;
            }
            topic
        });
    }
}

/// What a watch tells next; pends while there is none.
async fn next(watch: &mut Option<NamespaceWatch>) -> Update {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}
