//! The layout watch of a producer or queue consumer (wire-protocol §4): resolves the topic, follows its layout, and
//! opens the session again, under the same id, when its connection is lost.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use stc_proto::{
    Command, TopicName,
    name::Domain,
    pulsar::{CommandScalableTopicClose, CommandScalableTopicLookup, CommandScalableTopicUpdate},
};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::{
    client::Shared,
    connection::{Event, EventKind, Party},
    core::{
        backoff::Backoff,
        deviant::{Deviance, Deviant},
        error::{Category, Error},
        tracker::{Applied, Tracker, View},
    },
    watching::{Updates, Watching},
};

/// What a layout watch tells.
#[derive(Debug, Clone)]
pub(crate) struct WatchState {
    pub(crate) view: View,
    /// Counts the layouts that were applied.
    pub(crate) revision: u64,
    /// False from the loss of the connection until a new watch has brought a layout.
    pub(crate) synced: bool,
}

/// An open layout watch. Dropping it closes the session on the wire.
pub(crate) struct LayoutWatch {
    pub(crate) state: watch::Receiver<WatchState>,
    refresh: Arc<Notify>,
    /// The next lookup is made because the current layout is wrong.
    doubted: Arc<AtomicBool>,
    session: SharedSession,
    task: JoinHandle<()>,
}

impl LayoutWatch {
    /// Looks the topic up anew, because what the current layout says is not there. The layout that the topic has counts,
    /// whatever its epoch: it may be another topic of the same name. It is not created for that.
    pub(crate) fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
        self.refresh();
    }

    /// Looks the topic up anew, in a session that takes the place of the current one.
    pub(crate) fn refresh(&self) {
        self.refresh.notify_one();
    }
}

impl Drop for LayoutWatch {
    fn drop(&mut self) {
        self.task.abort();
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The session as it is now; `None` while it is not open.
type SharedSession = Arc<Mutex<Option<Watching>>>;

/// Parses a topic name as applications give it: canonical, or one of the forms of the migration bridge.
///
/// # Errors
/// `InvalidConfiguration` for anything that is no such name.
pub(crate) fn parse_topic(name: Option<&str>, deviance: Deviance) -> Result<TopicName, Error> {
    let invalid = |why: String| Error::new(Category::InvalidConfiguration, why);
    let name = name.ok_or_else(|| invalid("no topic is set".into()))?;
    let topic = TopicName::parse(name).map_err(|error| invalid(error.to_string()))?;
    match topic.domain() {
        _ if deviance.is(Deviant::ShortNameIsScalable) && !name.contains("://") => {
            Ok(topic.with_domain(Domain::Topic))
        }
        Domain::Topic | Domain::Persistent => Ok(topic),
        Domain::NonPersistent | Domain::Segment => {
            Err(invalid(format!("{name}: a topic:// or persistent:// name is needed")))
        }
    }
}

/// Opens a layout watch and waits for its first layout. With `create` a topic that is absent is created where the policy
/// permits, whenever it is looked up.
///
/// # Errors
/// What the first update says (error-model §4), `NotSupported` without broker support, and what connecting fails with
/// once the operation's time is over.
pub(crate) async fn open(client: &Arc<Shared>, topic: TopicName, create: bool) -> Result<LayoutWatch, Error> {
    let one_for_all = client.deviance.is(Deviant::OneSessionId);
    let id = if one_for_all { 1 } else { client.session_id() };
    let mut follower = Follower {
        client: client.clone(),
        id,
        given: topic.clone(),
        create,
        tracker: Tracker::new(client.deviance),
        backoff: Backoff::new(client.backoff, client.rng()),
    };
    let deadline = Instant::now() + client.operation_timeout;
    let (session, events) = loop {
        let failure = match follower.establish(&topic, create).await {
            Ok(opened) => break opened,
            Err(failure) => failure,
        };
        let (error, again) = match failure {
            Failure::Refused(error) => {
                let again = client.deviance.retries_refusal(&error);
                (error, again)
            }
            Failure::Unreachable(error) => {
                let again = error.is_transient();
                (error, again)
            }
        };
        let pause = std::time::Duration::from_millis(follower.backoff.delay());
        if again && Instant::now() + pause < deadline {
            sleep(pause).await;
            continue;
        }
        if error.category() == Category::NotSupported && client.deviance.is(Deviant::HangWithoutSupport) {
            std::future::pending::<()>().await;
        }
        if error.category() == Category::NotFound && client.deviance.is(Deviant::InventsTopic) {
            return follower.invented();
        }
        #[cfg(feature = "deviants")]
        let error = if client.deviance.is(Deviant::NotFoundAsGeneric) { error.into_generic() } else { error };
        return Err(error);
    };
    follower.backoff.reset();
    let view = follower.tracker.current().cloned();
    let view = view.ok_or_else(|| Error::new(Category::Unknown, "the watch brought no layout"))?;
    Ok(follower.start(view, Some(session), Some(events)))
}

/// Why a session could not be opened.
enum Failure {
    /// The broker's answer: it is final when the watch is opened first.
    Refused(Error),
    /// No broker, or none that answered.
    Unreachable(Error),
}

/// Follows the layouts of one topic.
struct Follower {
    client: Arc<Shared>,
    id: u64,
    /// The name that the application gave.
    given: TopicName,
    /// Whether looking it up may create it.
    create: bool,
    tracker: Tracker,
    backoff: Backoff,
}

impl Follower {
    /// Opens the session under this name and applies its first layout.
    /// With `create` a topic that is absent is created where the policy permits.
    async fn establish(&mut self, name: &TopicName, create: bool) -> Result<(Watching, Updates), Failure> {
        let client = self.client.clone();
        let connection = client.pool.lookup(name.as_str()).await.map_err(Failure::Unreachable)?;
        if !connection.supports_scalable_topics() && !client.deviance.is(Deviant::IgnoreFeatureFlags) {
            let why = format!("{} does not advertise support for scalable topics", connection.address());
            return Err(Failure::Refused(Error::new(Category::NotSupported, why)));
        }
        let close = CommandScalableTopicClose { session_id: self.id };
        let (mut session, mut events) = Watching::begin(connection.clone(), Party::Session, self.id, close)
            .map_err(Failure::Unreachable)?;
        let create = (!create || client.deviance.is(Deviant::NeverCreates)).then_some(false);
        connection.send(Command::from(CommandScalableTopicLookup {
            session_id: self.id,
            topic: name.to_string(),
            create_if_missing: create,
        }));
        loop {
            let first = timeout(client.operation_timeout, events.recv()).await;
            let lost = || Failure::Unreachable(Error::not_connected("the connection was lost"));
            let update = match first {
                Err(_) => {
                    let why = format!("{} did not answer the lookup of {name}", connection.address());
                    return Err(Failure::Refused(Error::timeout(why)));
                }
                Ok(Some(Event { kind: EventKind::Frame { frame, .. }, .. })) => match frame.command {
                    Command::ScalableTopicUpdate(update) => update,
                    _ => continue,
                },
                Ok(Some(Event { kind: EventKind::Lost, .. }) | None) => return Err(lost()),
            };
            if let Some(error) = update.error
                && update.dag.is_none()
            {
                if client.deviance.is(Deviant::IgnoreWatchError) {
                    continue;
                }
                session.end_silently();
                let message = update.message.unwrap_or_default();
                return Err(Failure::Refused(Error::server(error, &message)));
            }
            self.tracker.look_up();
            if let Err(error) = self.apply(update)
                && self.tracker.current().is_none()
            {
                return Err(Failure::Refused(error));
            }
            if client.deviance.is(Deviant::NoWatchClose) {
                session.end_silently();
            }
            return Ok((session, events));
        }
    }

    /// Takes an update. True when it brought a layout that counts.
    fn apply(&mut self, update: CommandScalableTopicUpdate) -> Result<bool, Error> {
        let Some(dag) = update.dag else {
            tracing::warn!(topic = %self.given, error = ?update.error, message = ?update.message, "update without a layout");
            return Ok(false);
        };
        let resolved = update.resolved_topic_name.as_deref().map(TopicName::parse).and_then(Result::ok);
        let known = || self.tracker.current().map(|view| view.topic.clone());
        let topic = match resolved {
            _ if self.client.deviance.is(Deviant::IgnoreResolvedName) => self.given.clone(),
            Some(resolved) => resolved,
            _ => known().unwrap_or_else(|| self.given.with_domain(Domain::Topic)),
        };
        match self.tracker.apply(&dag, topic) {
            Applied::Yes => {
                if let Some(view) = self.tracker.current() {
                    self.note(view);
                }
                Ok(true)
            }
            Applied::Stale { current } => {
                tracing::debug!(topic = %self.given, epoch = dag.epoch, current, "ignoring an older layout");
                Ok(false)
            }
            Applied::Refused(error) => {
                tracing::warn!(topic = %self.given, epoch = dag.epoch, %error, "refusing a layout");
                let why = format!("the layout of {} cannot be worked with: {error}", self.given);
                Err(Error::new(Category::Unknown, why))
            }
        }
    }

    fn note(&self, view: &View) {
        let uncovered = view.layout.uncovered();
        if uncovered > 0 {
            tracing::warn!(topic = %view.topic, uncovered, "the active segments do not cover the ring");
        }
        if view.layout.has_buckets() {
            self.client.buckets_observed.store(true, Ordering::Relaxed);
        }
    }

    fn start(self, view: View, session: Option<Watching>, events: Option<Updates>) -> LayoutWatch {
        let (state, receiver) = watch::channel(WatchState { view, revision: 1, synced: true });
        let session = Arc::new(Mutex::new(session));
        let (refresh, doubted) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let task =
            tokio::spawn(self.follow(state, session.clone(), events, refresh.clone(), doubted.clone()));
        LayoutWatch { state: receiver, refresh, doubted, session, task }
    }

    async fn follow(
        mut self,
        state: watch::Sender<WatchState>,
        session: SharedSession,
        mut events: Option<Updates>,
        refresh: Arc<Notify>,
        doubted: Arc<AtomicBool>,
    ) {
        if self.client.deviance.is(Deviant::ClosesWatch) {
            *session.lock().unwrap_or_else(PoisonError::into_inner) = None;
            std::future::pending::<()>().await;
        }
        loop {
            while let Some(Event { kind: EventKind::Frame { frame, .. }, .. }) = tokio::select! {
                biased;
                event = next(&mut events) => event,
                () = refresh.notified() => None,
            } {
                if let Command::ScalableTopicUpdate(update) = frame.command {
                    let _ = self.apply(update).map(|applied| applied && self.publish(&state));
                }
            }
            state.send_modify(|state| state.synced = false);
            *session.lock().unwrap_or_else(PoisonError::into_inner) = None;
            if self.client.deviance.is(Deviant::NoRewatch) {
                state.send_modify(|state| state.synced = true);
                std::future::pending::<()>().await;
            }
            let doubted = doubted.swap(false, Ordering::Relaxed);
            if doubted {
                self.tracker.doubt();
            }
            let (opened, again) = loop {
                sleep(std::time::Duration::from_millis(self.backoff.delay())).await;
                let name = self.name_again();
                match self.establish(&name, self.create && !doubted).await {
                    Ok(opened) => break opened,
                    Err(Failure::Refused(error) | Failure::Unreachable(error)) => {
                        tracing::debug!(topic = %name, %error, "opening the layout watch again failed");
                    }
                }
            };
            self.backoff.reset();
            *session.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            events = Some(again);
            self.publish(&state);
        }
    }

    /// The name to open the watch under again: the canonical one. The canonical name of a classic topic that is not
    /// migrated names no topic yet, and looking it up would create one.
    fn name_again(&self) -> TopicName {
        match self.tracker.current() {
            Some(view) if !view.layout.is_legacy() || self.renames_classic() => view.topic.clone(),
            _ => self.given.clone(),
        }
    }

    fn renames_classic(&self) -> bool {
        self.client.deviance.is(Deviant::RewatchesCanonicalName)
    }

    fn publish(&self, state: &watch::Sender<WatchState>) -> bool {
        if let Some(view) = self.tracker.current() {
            state.send_modify(|state| {
                state.view = view.clone();
                state.revision += 1;
                state.synced = true;
            });
        }
        true
    }

    /// A watch on a topic that is not there, with one segment.
    fn invented(mut self) -> Result<LayoutWatch, Error> {
        use stc_proto::pulsar::{ScalableTopicDag, SegmentInfoProto};
        let whole = SegmentInfoProto { hash_end: 65535, ..Default::default() };
        let dag = ScalableTopicDag { segments: vec![whole], ..Default::default() };
        self.apply(CommandScalableTopicUpdate { dag: Some(dag), ..Default::default() })?;
        let view = self.tracker.current().cloned();
        let view = view.ok_or_else(|| Error::new(Category::Unknown, "the watch brought no layout"))?;
        Ok(self.start(view, None, None))
    }
}

async fn next(events: &mut Option<Updates>) -> Option<Event> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}
