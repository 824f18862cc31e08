//! The client's way to the transaction coordinators: one task, which begins with the first transaction.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use stc_proto::{Command, pulsar::*};
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{
    client::Shared,
    connection::{Connection, Event, EventKind, Party},
    core::{
        Millis,
        deviant::Deviant,
        error::{Category, Error},
        transaction::{
            Part, TxnId,
            coordinators::{Ask, Coordinators, Discovery, Effect},
        },
    },
    producer::sleep,
    watching::{Updates, Watching},
};

/// The topic whose partition i is looked up for coordinator i where there is no watch.
const ASSIGN: &str = "persistent://pulsar/system/transaction_coordinator_assign";

type Answer = Result<Option<TxnId>, Error>;

/// A request to a coordinator, and until when its answer is waited for.
struct Request {
    ask: Ask,
    deadline: Millis,
    done: oneshot::Sender<Answer>,
}

/// The handle of the task. The task ends with the last handle, or when the client closes.
pub(crate) struct CoordinatorClient {
    requests: Mutex<Option<mpsc::UnboundedSender<Request>>>,
    start: Mutex<Option<Task>>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl CoordinatorClient {
    pub(crate) fn new(client: Arc<Shared>) -> Self {
        let (requests, receiver) = mpsc::unbounded_channel();
        let core = Coordinators::new(client.backoff, client.rng(), client.deviance);
        let task = Task {
            client,
            core,
            requests: receiver,
            waiting: BTreeMap::new(),
            watch: None,
            connections: BTreeMap::new(),
            discovering: JoinSet::new(),
            connecting: JoinSet::new(),
            sending: JoinSet::new(),
        };
        CoordinatorClient {
            requests: Mutex::new(Some(requests)),
            start: Mutex::new(Some(task)),
            running: Mutex::default(),
        }
    }

    /// Asks a coordinator, and waits for the answer until `deadline`.
    ///
    /// # Errors
    /// What the coordinator answers, `Timeout`, `AlreadyClosed`.
    pub(crate) async fn ask(&self, ask: Ask, deadline: Millis) -> Answer {
        if let Some(task) = lock(&self.start).take() {
            *lock(&self.running) = Some(tokio::spawn(task.run()));
        }
        let (done, answer) = oneshot::channel();
        let requests = lock(&self.requests).clone();
        let closed = || Error::closed("client");
        requests.ok_or_else(closed)?.send(Request { ask, deadline, done }).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Ends the task, and waits until it has told the broker.
    pub(crate) async fn close(&self) {
        lock(&self.requests).take();
        let running = lock(&self.running).take();
        if let Some(running) = running {
            // It neither panics nor is aborted.
            let _ = running.await;
        }
    }
}

/// Nothing is left half done while one of these locks is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What finding out about coordinators gave.
enum Found {
    /// The watch is open, and this came first.
    Watch(Watch, TcAssignmentsSnapshot),
    /// There is no watch, and so many coordinators.
    Classic(u64),
}

/// The watch on one connection. Dropping it closes it on the wire.
struct Watch {
    watching: Watching,
    events: Updates,
}

struct Task {
    client: Arc<Shared>,
    core: Coordinators,
    requests: mpsc::UnboundedReceiver<Request>,
    waiting: BTreeMap<u64, oneshot::Sender<Answer>>,
    watch: Option<Watch>,
    /// Each coordinator's connection, and the connect that it came from.
    connections: BTreeMap<u64, Arc<Connection>>,
    discovering: JoinSet<Result<Found, Error>>,
    connecting: JoinSet<(u64, u64, Result<Arc<Connection>, Error>)>,
    sending: JoinSet<(u64, u64, Answer)>,
}

impl Task {
    async fn run(mut self) {
        loop {
            self.perform();
            let now = self.client.clocks.now().mono;
            let deadline = self.core.next_deadline();
            if deadline.is_some_and(|at| at <= now) {
                self.core.tick(now);
                continue;
            }
            let deadline = deadline.map(|at| self.client.clocks.instant(at));
            tokio::select! {
                biased;
                event = watch_event(&mut self.watch) => self.watched(event),
                Some(Ok(found)) = self.discovering.join_next(), if !self.discovering.is_empty() => self.found(found),
                Some(Ok(connected)) = self.connecting.join_next(), if !self.connecting.is_empty() => {
                    let (coordinator, generation, result) = connected;
                    let result = result.map(|connection| {
                        self.connections.insert(coordinator, connection);
                    });
                    self.core.connected(coordinator, generation, result, self.client.clocks.now().mono);
                }
                Some(Ok((request, attempt, answer))) = self.sending.join_next(), if !self.sending.is_empty() => {
                    self.core.answered(request, attempt, answer, self.client.clocks.now().mono);
                }
                request = self.requests.recv() => match request {
                    Some(Request { ask, deadline, done }) => {
                        let id = self.core.ask(ask, deadline, self.client.clocks.now().mono);
                        self.waiting.insert(id, done);
                    }
                    None => return,
                },
                () = sleep(deadline) => self.core.tick(self.client.clocks.now().mono),
            }
        }
    }

    fn found(&mut self, found: Result<Found, Error>) {
        let now = self.client.clocks.now().mono;
        match found {
            Ok(Found::Watch(watch, first)) => {
                self.watch = Some(watch);
                self.core.discovered(Ok(Discovery::Watch), now);
                self.snapshot(first);
            }
            Ok(Found::Classic(parallelism)) => {
                self.core.discovered(Ok(Discovery::Classic(parallelism)), now);
            }
            Err(error) => self.core.discovered(Err(error), now),
        }
    }

    fn watched(&mut self, event: Option<Event>) {
        match event {
            Some(Event { kind: EventKind::Frame { frame, .. }, .. }) => {
                let Command::WatchTcAssignmentsUpdate(update) = frame.command else { return };
                match update.snapshot {
                    Some(snapshot) => self.snapshot(snapshot),
                    None => {
                        tracing::warn!(error = ?update.error, message = ?update.message, "no coordinators in an update");
                        self.lost();
                    }
                }
            }
            Some(Event { kind: EventKind::Lost, .. }) | None => self.lost(),
        }
    }

    fn lost(&mut self) {
        self.watch = None;
        self.core.watch_lost(self.client.clocks.now().mono);
    }

    fn snapshot(&mut self, snapshot: TcAssignmentsSnapshot) {
        let leader = |assignment: TcAssignment| Some((assignment.tc_id, assignment.broker_service_url?));
        let leaders = snapshot.assignments.into_iter().filter_map(leader).collect();
        self.core.snapshot(snapshot.parallelism.into(), leaders, self.client.clocks.now().mono);
    }

    /// Carries out what the state machine asks for.
    fn perform(&mut self) {
        for effect in self.core.take_effects() {
            let client = self.client.clone();
            match effect {
                Effect::Discover => {
                    let probe = self.core.uses_watch(true);
                    let anyhow = self.core.uses_watch(false);
                    self.discovering.spawn(discover(client, probe, anyhow));
                }
                Effect::Connect { coordinator, generation, address } => {
                    self.connecting.spawn(async move {
                        (coordinator, generation, connect(&client, coordinator, address.as_deref()).await)
                    });
                }
                Effect::Send { request, attempt, coordinator, ask } => {
                    let connection = self.connections.get(&coordinator).cloned();
                    self.sending.spawn(async move {
                        let answer = match connection {
                            Some(connection) => send(&client, &connection, coordinator, ask).await,
                            None => Err(Error::not_connected("the coordinator is not connected")),
                        };
                        (request, attempt, answer)
                    });
                }
                Effect::Settle { request, result } => {
                    if let Some(done) = self.waiting.remove(&request) {
                        let _ = done.send(result);
                    }
                }
            }
        }
    }
}

/// The next event of a watch; pends while there is none.
async fn watch_event(watch: &mut Option<Watch>) -> Option<Event> {
    match watch {
        Some(watch) => watch.events.recv().await,
        None => std::future::pending().await,
    }
}

/// Opens the watch where the broker offers it, else counts the coordinators (compatibility §3).
async fn discover(client: Arc<Shared>, where_offered: bool, anywhere: bool) -> Result<Found, Error> {
    let connection = client.pool.service().await?;
    let watches = if connection.supports_coordinator_watch() { where_offered } else { anywhere };
    if !watches {
        return count(&client, &connection).await;
    }
    let id = client.session_id();
    let close = CommandWatchTcAssignmentsClose { watch_id: id };
    let (watching, events) = Watching::begin(connection.clone(), Party::Coordinators, id, close)?;
    let mut watch = Watch { watching, events };
    connection.send(Command::from(CommandWatchTcAssignments { watch_id: id }));
    let update = loop {
        let first = timeout(client.operation_timeout, watch.events.recv()).await;
        let late = |_| Error::unanswered(format!("{} did not tell its coordinators", connection.address()));
        match first.map_err(late)? {
            Some(Event { kind: EventKind::Frame { frame, .. }, .. }) => {
                if let Command::WatchTcAssignmentsUpdate(update) = frame.command {
                    break update;
                }
            }
            Some(Event { kind: EventKind::Lost, .. }) | None => {
                return Err(Error::not_connected("the connection was lost"));
            }
        }
    };
    match update.snapshot {
        Some(snapshot) => Ok(Found::Watch(watch, snapshot)),
        None => {
            watch.watching.end_silently();
            let code = update.error.unwrap_or(ServerError::UnknownError as i32);
            Err(Error::server(code, update.message.as_deref().unwrap_or_default()))
        }
    }
}

async fn count(client: &Shared, connection: &Connection) -> Result<Found, Error> {
    let request_id = client.pool.request_id();
    let command =
        CommandPartitionedTopicMetadata { topic: ASSIGN.to_owned(), request_id, ..Default::default() };
    match connection.request(request_id, command, Some(client.operation_timeout)).await? {
        Command::PartitionedMetadataResponse(answer) => match (answer.error, answer.partitions()) {
            (Some(error), _) => Err(Error::server(error, answer.message())),
            (None, 0) => {
                Err(Error::new(Category::NotSupported, "the cluster has no transaction coordinators"))
            }
            (None, partitions) => Ok(Found::Classic(partitions.into())),
        },
        other => Err(Error::not_connected(format!("{} answered PARTITIONED_METADATA", other.name()))),
    }
}

/// Connects to a coordinator and introduces the client to it.
async fn connect(client: &Shared, coordinator: u64, address: Option<&str>) -> Result<Arc<Connection>, Error> {
    let connection = match address {
        Some(url) => client.pool.broker(url).await?,
        None => client.pool.lookup(&format!("{ASSIGN}-partition-{coordinator}")).await?,
    };
    let request_id = client.pool.request_id();
    let scalable = Some(connection.supports_coordinator_watch());
    let command = CommandTcClientConnectRequest { request_id, tc_id: coordinator, scalable };
    connection.request(request_id, command, Some(client.operation_timeout)).await?;
    Ok(connection)
}

/// Sends a request to a coordinator.
async fn send(client: &Shared, connection: &Connection, coordinator: u64, ask: Ask) -> Answer {
    let request_id = client.pool.request_id();
    let scalable = Some(connection.supports_coordinator_watch());
    let halves = |txn: TxnId| (Some(txn.number), Some(txn.coordinator));
    let command: Command = match ask {
        Ask::New(ttl) => {
            CommandNewTxn { request_id, txn_ttl_millis: Some(ttl), tc_id: Some(coordinator), scalable }.into()
        }
        Ask::Add(txn, Part::Topic(topic)) => {
            let (txnid_least_bits, txnid_most_bits) = halves(txn);
            let partitions = vec![topic];
            CommandAddPartitionToTxn { request_id, txnid_least_bits, txnid_most_bits, partitions, scalable }
                .into()
        }
        Ask::Add(txn, Part::Subscription { topic, subscription }) => {
            let (txnid_least_bits, txnid_most_bits) = halves(txn);
            let subscription = vec![Subscription { topic, subscription }];
            CommandAddSubscriptionToTxn {
                request_id,
                txnid_least_bits,
                txnid_most_bits,
                subscription,
                scalable,
            }
            .into()
        }
        Ask::End(txn, commit) => {
            let (txnid_least_bits, txnid_most_bits) = halves(txn);
            let action = if commit { TxnAction::Commit } else { TxnAction::Abort };
            if client.deviance.is(Deviant::OwnEndCommands) {
                connection.send(Command::from(CommandEndTxnOnPartition {
                    request_id: client.pool.request_id(),
                    txnid_least_bits,
                    txnid_most_bits,
                    topic: Some("persistent://public/default/none".to_owned()),
                    txn_action: Some(action as i32),
                    ..Default::default()
                }));
            }
            let txn_action = Some(action as i32);
            CommandEndTxn { request_id, txnid_least_bits, txnid_most_bits, txn_action, scalable }.into()
        }
    };
    match connection.request(request_id, command, Some(client.operation_timeout)).await? {
        Command::NewTxnResponse(answer) => {
            Ok(Some(TxnId { coordinator: answer.txnid_most_bits(), number: answer.txnid_least_bits() }))
        }
        _ => Ok(None),
    }
}
