//! What all consumers share outside their state machines: the handle that the public ones are made of, what it shares
//! with the consumer's task, and how both come about. A [`Kind`] says what is its own.

mod actor;
mod transactions;

use std::{sync::Arc, time::Duration};

use stc_proto::pulsar::CommandSubscribe;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::actor::Actor;
use crate::{
    client::Shared,
    core::{
        consumer::{Core, LifeConfig, Subscribe},
        deviant::{Deviance, Deviant},
        encryption::policy::ConsumerEncryption,
        error::{Category, Error},
    },
    layout_watch::LayoutWatch,
    receive_queue::{Inlet, Outlet, Queued, ReceiveQueue},
    registration::Registrant,
    schema::Writers,
    transaction::{Operation, Transaction},
};

/// How many requests of the application a task takes at once; then it is the turn of other events.
pub(crate) const REQUESTS: usize = 256;

/// Tells a task's requester how it went.
pub(crate) type Done = oneshot::Sender<Result<(), Error>>;

/// What goes into the receive queue of consumers of this kind.
pub(crate) type DeliveryOf<K> = <<K as Kind>::Core as Core>::Delivery;

/// Queue, stream or checkpoint consumer: what the shell does differently for each. The value is what all SUBSCRIBEs of a
/// consumer have in common.
pub(crate) trait Kind: Clone + Send + Sync + 'static {
    type Core: Core<How: Send, Delivery: Queued + Send, Own: Send, Segment: Send> + Send;

    /// What handles ask of the task besides the close.
    type Request: Send;

    /// What somebody answers later that the task waits for beside everything else.
    type Answer: Send;

    /// The application asks for something.
    fn request(actor: &mut Actor<Self>, request: Self::Request);

    /// Carries out what only this kind asks for.
    fn carry_out(actor: &mut Actor<Self>, own: <Self::Core as Core>::Own);

    /// The subscription that acknowledgements in transactions are made on; readers make none.
    fn subscription(&self) -> &str {
        ""
    }

    /// A message goes into the receive queue.
    fn arrives(_face: &Face<DeliveryOf<Self>>, _delivery: &DeliveryOf<Self>) {}

    /// Whoever the task waited for answered.
    fn answered(actor: &mut Actor<Self>, answer: Self::Answer);

    /// Lets go of what is left once nothing is attached any more.
    fn finish(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// SUBSCRIBE for a segment, but for what the task fills in: topic, metadata and ids.
    fn subscribe(
        &self,
        client: &Shared,
        subscribe: &Subscribe<<Self::Core as Core>::How>,
    ) -> CommandSubscribe;
}

/// What a handle asks of the consumer's task.
pub(crate) enum Request<R> {
    Own(R),
    Close(Done),
}

/// What handles and the task share.
pub(crate) struct Face<D: Queued> {
    pub(crate) topic: Arc<str>,
    pub(crate) queue: Inlet<D>,
    pub(crate) deviance: Deviance,
    client: Arc<Shared>,
}

/// What a consumer's task is begun with.
pub(crate) struct Beginning<K: Kind> {
    pub(crate) kind: K,
    pub(crate) core: K::Core,
    pub(crate) watch: LayoutWatch,
    /// `None` for one that no controller is told of.
    pub(crate) registrant: Option<Registrant>,
    pub(crate) receiver_queue: u32,
    /// The queue of a consumer of many topics and the number of this one's lane in it; `None` for one of its own.
    pub(crate) lane: Option<(Arc<ReceiveQueue<DeliveryOf<K>>>, u64)>,
    /// Whether the schema wants to know what messages were written with.
    pub(crate) wants_writer: bool,
}

/// The consumer as the application holds it. All clones are one consumer; it closes when the last one is dropped.
pub(crate) struct Handle<K: Kind> {
    requests: mpsc::UnboundedSender<Request<K::Request>>,
    pub(crate) face: Arc<Face<DeliveryOf<K>>>,
    pub(crate) outlet: Outlet<DeliveryOf<K>>,
}

impl<K: Kind> Clone for Handle<K> {
    fn clone(&self) -> Self {
        Handle { requests: self.requests.clone(), face: self.face.clone(), outlet: self.outlet.clone() }
    }
}

impl<K: Kind> Handle<K> {
    /// Starts the task and waits until everything that is wanted is attached.
    pub(crate) async fn open(
        client: Arc<Shared>,
        alive: mpsc::Sender<()>,
        mut beginning: Beginning<K>,
    ) -> Result<Self, Error> {
        let state = || beginning.watch.state.clone();
        let writers = beginning.wants_writer.then(|| Writers::new(client.clone(), state()));
        let topic: Arc<str> = beginning.core.topic().into();
        let (queue, lane) = beginning.lane.take().unwrap_or_else(|| (Arc::new(ReceiveQueue::new()), 0));
        let enough = beginning.receiver_queue as usize;
        let outlet = Outlet { queue: queue.clone(), deviance: client.deviance, enough };
        let face = Arc::new(Face {
            topic: topic.clone(),
            queue: Inlet::new(queue, lane, topic, writers),
            deviance: client.deviance,
            client: client.clone(),
        });
        let (requests, receiver) = mpsc::unbounded_channel();
        let (opened, ready) = oneshot::channel();
        let actor = Actor::new(client, beginning, receiver, face.clone(), opened, alive);
        tokio::spawn(actor.run());
        // Dropped on failure, the consumer leaves and closes what is attached so far.
        let handle = Handle { requests, face, outlet };
        match ready.await {
            Ok(opened) => opened.map(|()| handle),
            Err(_) => Err(Error::closed("client")),
        }
    }

    pub(crate) async fn receive(&self) -> Result<DeliveryOf<K>, Error> {
        Ok(self.outlet.receive().await?.delivery)
    }

    pub(crate) async fn receive_timeout(&self, limit: Duration) -> Result<Option<DeliveryOf<K>>, Error> {
        Ok(self.outlet.receive_timeout(limit).await?.map(|received| received.delivery))
    }

    pub(crate) async fn receive_multi(
        &self,
        max: usize,
        limit: Duration,
    ) -> Result<Vec<DeliveryOf<K>>, Error> {
        let received = self.outlet.receive_multi(max, limit).await?;
        Ok(received.into_iter().map(|received| received.delivery).collect())
    }

    /// Tells the task something that needs no answer; on a closed consumer nobody listens.
    pub(crate) fn tell(&self, request: K::Request) {
        let _ = self.requests.send(Request::Own(request));
    }

    /// # Errors
    /// `AlreadyClosed`.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        let open = !self.face.queue.is_closed() && !self.requests.is_closed();
        open.then_some(()).ok_or_else(|| Error::closed("consumer"))
    }

    /// Asks the task for something.
    pub(crate) async fn ask(&self, request: impl FnOnce(Done) -> K::Request) -> Result<(), Error> {
        let (done, answer) = oneshot::channel();
        let request = Request::Own(request(done));
        self.requests.send(request).map_err(|_| Error::closed("consumer"))?;
        answer.await.unwrap_or_else(|_| Err(Error::closed("consumer")))
    }

    /// Asks the task for an acknowledgement in a transaction.
    pub(crate) async fn ask_in(
        &self,
        transaction: &Transaction,
        request: impl FnOnce(Operation, Done) -> K::Request,
    ) -> Result<(), Error> {
        let operation = transaction.txn.begin(&self.face.client)?;
        self.ask(|done| request(operation, done)).await
    }

    /// Closes the consumer, or waits for the close that is under way.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        let (done, closed) = oneshot::channel();
        if self.requests.send(Request::Close(done)).is_err() {
            // Closed before.
            return if self.face.deviance.is(Deviant::CloseNotIdempotent) {
                Err(Error::closed("consumer"))
            } else {
                Ok(())
            };
        }
        // The task can end with the request unread: it is closed then.
        closed.await.unwrap_or(Ok(()))
    }
}

/// What the state machine of a consumer of this client has to know of it.
pub(crate) fn life(client: &Shared, encryption: Option<ConsumerEncryption>) -> LifeConfig {
    LifeConfig {
        encryption,
        open_limit: client.operation_timeout.as_millis() as u64,
        backoff: client.backoff,
        deviance: client.deviance,
    }
}

/// Checks what an application set.
///
/// # Errors
/// `InvalidConfiguration`.
pub(crate) fn check_receiver_queue(messages: u32) -> Result<(), Error> {
    let why = "the receiver queue holds at least one message";
    (messages > 0).then_some(()).ok_or_else(|| Error::new(Category::InvalidConfiguration, why))
}

/// Checks the subscription that an application set.
///
/// # Errors
/// `InvalidConfiguration`.
pub(crate) fn check_subscription(name: Option<String>) -> Result<String, Error> {
    let missing = || Error::new(Category::InvalidConfiguration, "no subscription is set");
    name.filter(|name| !name.is_empty()).ok_or_else(missing)
}
