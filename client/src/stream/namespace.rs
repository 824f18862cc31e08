//! The consumer of a namespace (client-api §4.4): a stream consumer for each of its topics, all of which put their messages
//! into one queue. This is the handle, which acknowledges to all of them; [`task`] opens and closes them.

mod task;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{mpsc, oneshot};

use self::task::Task;
use super::{
    kind::{Request, Stream},
    open::{Settings, consumer_number},
};
use crate::{
    client::Shared,
    consumer::{Done, Handle},
    core::{
        deviant::Deviant,
        error::{Category, Error},
        message_id::{Across, Furthest, MessageId},
        namespace::Namespace,
        stream::StreamDelivery,
    },
    namespace_watch::{NamespaceWatch, Watched},
    receive_queue::{Outlet, ReceiveQueue},
    transaction::Transaction,
};

/// The consumer of a topic of the namespace, for one stay of the topic in the set.
#[derive(Clone)]
struct Member {
    handle: Handle<Stream>,
    stay: u64,
}

/// The topics that are open, by name.
#[derive(Default)]
struct Members(Mutex<BTreeMap<String, Member>>);

impl Members {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Member>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, topic: &str) -> Option<Member> {
        self.lock().get(topic).cloned()
    }
}

/// The consumer as handles hold it. It closes when the last clone is dropped.
#[derive(Clone)]
pub(super) struct NamespaceHandle {
    pub(super) namespace: Arc<str>,
    pub(super) outlet: Outlet<StreamDelivery>,
    /// Tells this consumer from others of the process.
    number: u64,
    members: Arc<Members>,
    closers: mpsc::UnboundedSender<Done>,
}

/// What a task is begun with.
struct Begun {
    settings: Settings,
    /// The consumer's name; those of its topics are made of it.
    name: String,
    watched: Watched,
    watch: NamespaceWatch,
    members: Arc<Members>,
    queue: Arc<ReceiveQueue<StreamDelivery>>,
    opened: Done,
    closers: mpsc::UnboundedReceiver<Done>,
}

/// Subscribes to the topics of a namespace: those that are there when this returns, and those that come later.
///
/// # Errors
/// What the watch is refused with, and what one of the topics is.
pub(super) async fn open(
    client: Arc<Shared>,
    alive: mpsc::Sender<()>,
    settings: Settings,
    name: String,
    watched: Watched,
) -> Result<NamespaceHandle, Error> {
    let (watch, topics) = NamespaceWatch::first(&client, &watched).await?;
    let number = consumer_number();
    let queue = Arc::new(ReceiveQueue::across_topics(number));
    let outlet =
        Outlet { queue: queue.clone(), deviance: client.deviance, enough: settings.receiver_queue as usize };
    let (closers, closing) = mpsc::unbounded_channel();
    let (opened, ready) = oneshot::channel();
    let members = Arc::new(Members::default());
    let handle = NamespaceHandle {
        namespace: watched.namespace.as_str().into(),
        outlet,
        number,
        members: members.clone(),
        closers,
    };
    let core = Namespace::new(topics, client.backoff, client.rng(), client.deviance);
    let begun = Begun { settings, name, watched, watch, members, queue, opened, closers: closing };
    let task = Task::new(client, alive, core, begun);
    tokio::spawn(task.run());
    match ready.await {
        Ok(opened) => opened.map(|()| handle),
        Err(_) => Err(Error::closed("client")),
    }
}

impl NamespaceHandle {
    /// A message was taken out of the queue.
    pub(super) fn consumed(&self, topic: &str, stay: u64, segment: u64, generation: u64) {
        if let Some(member) = self.members.get(topic).filter(|member| member.stay == stay) {
            member.handle.tell(Request::Consumed { segment, generation });
        }
    }

    /// Acknowledges everything up to a message in all topics (client-behavior §6). What had come of a topic that has left
    /// since is passed over.
    pub(super) async fn acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        for (member, id) in self.parts(id)? {
            let done = member.handle.ask(|done| Request::Acknowledge(id, done)).await;
            self.unless_left(&member, done)?;
        }
        Ok(())
    }

    /// The same in a transaction.
    pub(super) async fn acknowledge_in(&self, id: &MessageId, within: &Transaction) -> Result<(), Error> {
        for (member, id) in self.parts(id)? {
            // Where the topic leaves meanwhile the transaction cannot be whole.
            let ask = |operation, done| Request::AcknowledgeIn(id, operation, done);
            member.handle.ask_in(within, ask).await?;
        }
        Ok(())
    }

    /// What is to be acknowledged of each topic that is there.
    fn parts(&self, id: &MessageId) -> Result<Vec<(Member, MessageId)>, Error> {
        if self.closers.is_closed() {
            return Err(Error::closed("consumer"));
        }
        let deviance = self.outlet.deviance;
        let latest = self.outlet.queue.across().filter(|_| deviance.is(Deviant::TopicsAtAcknowledgement));
        let across: &Across = match (&latest, id.topics()) {
            (Some(latest), _) => latest,
            (None, Some(across)) => across,
            (None, None) => {
                let why = "only messages of a namespace's consumer can be acknowledged to one";
                return Err(Error::new(Category::InvalidConfiguration, why));
            }
        };
        let own = |furthest: &Furthest| furthest.id == *id;
        let mut parts = Vec::new();
        for (topic, furthest) in &across.topics {
            if deviance.is(Deviant::AckOnlyOwnTopic) && !own(furthest) {
                continue;
            }
            // Of another consumer, or from bytes, it is not known which stay of the topic was meant.
            let unknown = across.consumer != Some(self.number);
            let member = self.members.get(topic).filter(|member| unknown || member.stay == furthest.stay);
            match member {
                Some(member) => parts.push((member, furthest.id.clone())),
                None if deviance.is(Deviant::AckFailsWithoutTopic) => {
                    return Err(Error::new(Category::NotFound, format!("{topic} is not there any more")));
                }
                None => tracing::debug!(%topic, "passing over what came of a topic that left"),
            }
        }
        Ok(parts)
    }

    /// A topic that leaves while it is told has nothing acknowledged, and that is no failure.
    fn unless_left(&self, member: &Member, done: Result<(), Error>) -> Result<(), Error> {
        let left = || {
            let there = self.members.get(&member.handle.face.topic);
            !self.closers.is_closed() && there.is_none_or(|there| there.stay != member.stay)
        };
        match done {
            Err(error) if error.category() == Category::AlreadyClosed && left() => Ok(()),
            done => done,
        }
    }

    /// Closes all of it, or waits for the close that is under way.
    pub(super) async fn close(&self) -> Result<(), Error> {
        let (done, closed) = oneshot::channel();
        if self.closers.send(done).is_err() {
            return if self.outlet.deviance.is(Deviant::CloseNotIdempotent) {
                Err(Error::closed("consumer"))
            } else {
                Ok(())
            };
        }
        // The task can end with the request unread: it is closed then.
        closed.await.unwrap_or(Ok(()))
    }
}
