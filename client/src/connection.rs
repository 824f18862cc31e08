//! One connection to a broker: handshake, keep-alive, answers to requests, and what the broker sends on its own.
//!
//! A single task owns the link. It ends when the link does or when the last handle is dropped, and then tells
//! everyone who waits for an answer or for events.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use stc_proto::{
    Command, Decoder, Frame, FrameError,
    frame::{DEFAULT_MAX_MESSAGE_SIZE, FRAME_PADDING},
    pulsar::*,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use crate::{
    address::BrokerAddress,
    authentication::Authentication,
    core::{
        deviant::{Deviance, Deviant},
        error::{Category, Error},
        secure::use_tls_addresses,
    },
    transport::Link,
};

/// What a broker sends to a producer, a consumer or a layout watch.
#[derive(Debug)]
pub(crate) struct Event {
    /// The connection it came on.
    pub(crate) connection: u64,
    pub(crate) kind: EventKind,
}

#[derive(Debug)]
pub(crate) enum EventKind {
    /// A frame for the producer, consumer or session with this id.
    Frame { id: u64, frame: Box<Frame> },
    /// The connection is lost.
    Lost,
}

pub(crate) type EventSender = mpsc::UnboundedSender<Event>;

/// Whose ids they are: brokers number producers and consumers separately, sessions have ids of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Party {
    Producer,
    Consumer,
    Session,
    /// A consumer's registration with a controller; the ids are consumer ids.
    Registration,
    /// A watch of the transaction coordinators.
    Coordinators,
    /// A watch of a namespace's topics.
    Namespace,
}

/// How connections introduce themselves and when they count as dead.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) keep_alive: Duration,
    /// For opening the link and the handshake together.
    pub(crate) timeout: Duration,
    pub(crate) authentication: Option<Arc<dyn Authentication>>,
    pub(crate) deviance: Deviance,
    /// What was shown first, for a deviant that shows it again.
    pub(crate) shown: Arc<OnceLock<Bytes>>,
}

impl ConnectionSettings {
    /// The method and the credentials as they are now.
    fn credentials(&self) -> Result<(String, Option<Bytes>), Error> {
        Ok(match &self.authentication {
            Some(authentication) => {
                let now = Bytes::from(authentication.data()?);
                let first = self.shown.get_or_init(|| now.clone());
                let stale = self.deviance.is(Deviant::StaleCredentials);
                (authentication.method().to_owned(), Some(if stale { first.clone() } else { now }))
            }
            None => ("none".to_owned(), None),
        })
    }

    /// The answer to AUTH_CHALLENGE.
    fn respond(&self) -> Result<CommandAuthResponse, Error> {
        if self.authentication.is_none() {
            let why = "the broker asks for credentials and none are configured";
            return Err(Error::new(Category::Authentication, why));
        }
        let (method, data) = self.credentials()?;
        Ok(CommandAuthResponse {
            client_version: Some(CLIENT_VERSION.into()),
            response: Some(AuthData { auth_method_name: Some(method), auth_data: data }),
            protocol_version: Some(ProtocolVersion::V21 as i32),
        })
    }
}

const CLIENT_VERSION: &str = concat!("stc-client-", env!("CARGO_PKG_VERSION"));

/// How often a broker may ask for credentials before it answers CONNECT.
const MAX_CHALLENGES: usize = 10;

/// A handle to a connection. The connection ends with its last handle.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    address: BrokerAddress,
    outbox: mpsc::UnboundedSender<Frame>,
    state: Arc<Mutex<State>>,
    features: FeatureFlags,
    max_message_size: usize,
}

/// Ordered maps, so that those who are told of a loss are told in the same order in every run.
#[derive(Debug, Default)]
struct State {
    /// Why the connection is lost, once it is.
    lost: Option<Error>,
    requests: BTreeMap<u64, oneshot::Sender<Result<Command, Error>>>,
    /// Requests whose answers go to a party, in order with what else the broker sends it.
    expected: BTreeMap<u64, (Party, u64)>,
    parties: BTreeMap<(Party, u64), EventSender>,
}

impl Connection {
    /// Introduces the client on a new link and starts the connection's task. `through_proxy` is set when the link goes
    /// to a proxy or a service address instead of the broker itself.
    pub(crate) async fn open(
        id: u64,
        address: &BrokerAddress,
        through_proxy: bool,
        mut link: Box<dyn Link>,
        settings: &ConnectionSettings,
    ) -> Result<Arc<Self>, Error> {
        let (method, auth_data) = settings.credentials()?;
        let connect = CommandConnect {
            client_version: CLIENT_VERSION.into(),
            auth_method_name: Some(method),
            auth_data,
            protocol_version: Some(ProtocolVersion::V21 as i32),
            proxy_to_broker_url: through_proxy.then(|| address.authority()),
            feature_flags: Some(FeatureFlags {
                supports_broker_entry_metadata: Some(true),
                supports_partial_producer: Some(true),
                supports_auth_refresh: settings.authentication.is_some().then_some(true),
                ..Default::default()
            }),
            ..Default::default()
        };
        let lost = |error: std::io::Error| Error::not_connected(format!("{address}: {error}"));
        link.write_all(&Frame::from(connect).to_bytes()).await.map_err(lost)?;
        let mut buf = BytesMut::new();
        let mut challenges = 0;
        let connected = loop {
            let frame = read_frame(&mut link, &mut buf, Decoder::default()).await?;
            match frame.command {
                Command::Connected(connected) => break connected,
                Command::Error(error) => return Err(Error::server(error.error, &error.message)),
                Command::AuthChallenge(_) if challenges < MAX_CHALLENGES => {
                    challenges += 1;
                    link.write_all(&Frame::from(settings.respond()?).to_bytes()).await.map_err(lost)?;
                }
                Command::AuthChallenge(_) => {
                    let why = "the broker is not content with any credentials";
                    return Err(Error::new(Category::Authentication, why));
                }
                other => {
                    let why = format!("{address} answered CONNECT with {}", other.name());
                    return Err(Error::not_connected(why));
                }
            }
        };
        let max_message_size = connected
            .max_message_size
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(DEFAULT_MAX_MESSAGE_SIZE);
        let (outbox, frames) = mpsc::unbounded_channel();
        let state = Arc::new(Mutex::new(State::default()));
        let task = Task {
            id,
            outbox: outbox.downgrade(),
            state: state.clone(),
            decoder: Decoder::new(max_message_size.saturating_add(FRAME_PADDING)),
            tls: address.tls,
            settings: settings.clone(),
        };
        tokio::spawn(task.run(link, buf, frames));
        Ok(Arc::new(Connection {
            id,
            address: address.clone(),
            outbox,
            state,
            features: connected.feature_flags.unwrap_or_default(),
            max_message_size,
        }))
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The broker's address; behind a proxy the broker's own.
    pub(crate) fn address(&self) -> &BrokerAddress {
        &self.address
    }

    /// The largest entry that the broker takes, in bytes.
    pub(crate) fn max_message_size(&self) -> usize {
        self.max_message_size
    }

    /// Whether the broker advertises scalable topics (compatibility §3).
    pub(crate) fn supports_scalable_topics(&self) -> bool {
        self.features.supports_scalable_topics.unwrap_or(false)
    }

    /// Whether the broker advertises the watch of transaction coordinators (compatibility §3).
    pub(crate) fn supports_coordinator_watch(&self) -> bool {
        self.features.supports_tc_metadata_discovery.unwrap_or(false)
    }

    pub(crate) fn is_open(&self) -> bool {
        lock(&self.state).lost.is_none()
    }

    /// Queues a frame. When the connection is lost it goes nowhere, and whoever is registered is told of the loss.
    pub(crate) fn send(&self, frame: impl Into<Frame>) {
        // The receiver is gone only when the connection is lost.
        let _ = self.outbox.send(frame.into());
    }

    /// Sends a request and waits for its answer; without `limit` as long as the connection lives.
    ///
    /// # Errors
    /// The broker's error, `Timeout`, or `NotConnected`.
    pub(crate) async fn request(
        &self,
        request_id: u64,
        command: impl Into<Command>,
        limit: Option<Duration>,
    ) -> Result<Command, Error> {
        self.begin(request_id, command)?.wait(limit).await
    }

    /// Sends a request at once; its answer can be waited for later.
    ///
    /// # Errors
    /// `NotConnected` when the connection is lost already.
    pub(crate) fn begin(&self, request_id: u64, command: impl Into<Command>) -> Result<Answer, Error> {
        let command = command.into();
        let answer = self.wait_on(request_id, command.name())?;
        self.send(Frame { command, payload: None });
        Ok(answer)
    }

    /// Waits on for the answer to a request whose [`Answer`] was dropped, if it did not come before.
    ///
    /// # Errors
    /// `NotConnected` when the connection is lost already.
    pub(crate) fn wait_on(&self, request_id: u64, name: &'static str) -> Result<Answer, Error> {
        let (sender, answer) = oneshot::channel();
        let mut state = lock(&self.state);
        if let Some(error) = &state.lost {
            return Err(error.clone());
        }
        state.requests.insert(request_id, sender);
        let forget = ForgetRequest { state: self.state.clone(), request_id };
        Ok(Answer { answer, name, address: self.address.clone(), _forget: forget })
    }

    /// Sends a request whose answer goes to a registered party.
    pub(crate) fn ask(&self, party: Party, id: u64, request_id: u64, command: impl Into<Command>) {
        lock(&self.state).expected.insert(request_id, (party, id));
        self.send(Frame { command: command.into(), payload: None });
    }

    /// Hands on what the broker sends to this producer, consumer or session, and the loss of the connection.
    ///
    /// # Errors
    /// `NotConnected` when the connection is lost already.
    pub(crate) fn register(&self, party: Party, id: u64, events: EventSender) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if let Some(error) = &state.lost {
            return Err(error.clone());
        }
        state.parties.insert((party, id), events);
        Ok(())
    }

    pub(crate) fn unregister(&self, party: Party, id: u64) {
        lock(&self.state).parties.remove(&(party, id));
    }
}

/// The answer to a request, still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    answer: oneshot::Receiver<Result<Command, Error>>,
    name: &'static str,
    address: BrokerAddress,
    _forget: ForgetRequest,
}

impl Answer {
    /// Whether it has come, or cannot come.
    pub(crate) fn is_there(&mut self) -> bool {
        !matches!(self.answer.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    /// Waits for it; without `limit` as long as the connection lives.
    ///
    /// # Errors
    /// The broker's error, `Timeout`, or `NotConnected`.
    pub(crate) async fn wait(self, limit: Option<Duration>) -> Result<Command, Error> {
        let answer = match limit {
            Some(limit) => timeout(limit, self.answer).await.map_err(|_| {
                Error::unanswered(format!("{} did not answer {} in time", self.address, self.name))
            })?,
            None => self.answer.await,
        };
        answer.unwrap_or_else(|_| Err(Error::not_connected("the connection is lost")))
    }
}

#[derive(Debug)]
struct ForgetRequest {
    state: Arc<Mutex<State>>,
    request_id: u64,
}

impl Drop for ForgetRequest {
    fn drop(&mut self) {
        lock(&self.state).requests.remove(&self.request_id);
    }
}

/// A panic elsewhere while the lock was held leaves maps that are still whole.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the connection's task works with.
struct Task {
    id: u64,
    /// Weak, so that the task does not keep itself alive.
    outbox: mpsc::WeakUnboundedSender<Frame>,
    state: Arc<Mutex<State>>,
    decoder: Decoder,
    tls: bool,
    settings: ConnectionSettings,
}

impl Task {
    async fn run(self, link: Box<dyn Link>, buf: BytesMut, frames: mpsc::UnboundedReceiver<Frame>) {
        let (reader, mut writer) = tokio::io::split(link);
        let heard = Mutex::new(Instant::now());
        // Side by side, never one after the other: a peer that waits for us to read must not wait for ever.
        let error = tokio::select! {
            biased;
            error = self.read(reader, buf, &heard) => error,
            error = write(&mut writer, frames) => error,
            error = self.keep_alive(&heard) => error,
        };
        let _ = writer.shutdown().await;
        tracing::debug!(connection = self.id, %error, "connection ended");
        let (requests, parties) = {
            let mut state = lock(&self.state);
            state.lost = Some(error.clone());
            (std::mem::take(&mut state.requests), std::mem::take(&mut state.parties))
        };
        for answer in requests.into_values() {
            let _ = answer.send(Err(error.clone()));
        }
        for events in parties.into_values() {
            let _ = events.send(Event { connection: self.id, kind: EventKind::Lost });
        }
    }

    async fn read(
        &self,
        mut reader: impl AsyncReadExt + Unpin,
        mut buf: BytesMut,
        heard: &Mutex<Instant>,
    ) -> Error {
        loop {
            let announced = command_size(&buf);
            match self.decoder.decode(&mut buf) {
                Ok(Some(frame))
                    if self.settings.deviance.is(Deviant::RefuseUnknownFields)
                        && announced != Some(frame.command.encoded_len()) =>
                {
                    return Error::not_connected("a command has unknown fields");
                }
                Ok(Some(frame)) => self.dispatch(frame),
                // A command of a later version of the protocol (stability §4.1).
                Err(FrameError::UnknownCommand(number)) => {
                    tracing::debug!(number, "skipping an unknown command")
                }
                Err(error) => return Error::not_connected(format!("unreadable frame: {error}")),
                Ok(None) => {
                    match reader.read_buf(&mut buf).await {
                        Ok(0) => return Error::not_connected("the broker closed the connection"),
                        Ok(_) => {}
                        Err(error) => return Error::not_connected(error.to_string()),
                    }
                    *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                }
            }
        }
    }

    /// Pings the broker when it is quiet, and gives it up when it stays quiet.
    async fn keep_alive(&self, heard: &Mutex<Instant>) -> Error {
        loop {
            let last = *heard.lock().unwrap_or_else(PoisonError::into_inner);
            let quiet = last.elapsed();
            if quiet >= self.settings.keep_alive * 2 {
                return Error::not_connected("the broker does not answer PING");
            }
            if quiet >= self.settings.keep_alive {
                self.reply(CommandPing {});
                tokio::time::sleep_until(last + self.settings.keep_alive * 2).await;
            } else {
                tokio::time::sleep_until(last + self.settings.keep_alive).await;
            }
        }
    }

    fn reply(&self, command: impl Into<Frame>) {
        if let Some(outbox) = self.outbox.upgrade() {
            let _ = outbox.send(command.into());
        }
    }

    fn dispatch(&self, mut frame: Frame) {
        use Command as C;
        if self.tls && !self.settings.deviance.is(Deviant::IgnoreTlsAddresses) {
            use_tls_addresses(&mut frame.command);
        }
        match &frame.command {
            C::Ping(_) => {
                if !self.settings.deviance.is(Deviant::NoPong) {
                    self.reply(CommandPong {});
                }
            }
            C::Pong(_) => {}
            C::AuthChallenge(_) if self.settings.deviance.is(Deviant::NoFreshCredentials) => {}
            C::AuthChallenge(_) => match self.settings.respond() {
                Ok(response) => self.reply(response),
                // The broker closes the connection in its own time.
                Err(error) => tracing::warn!(%error, "no answer to the broker's question for credentials"),
            },
            // Exclusive access is still waited for: the answer that counts comes later, with the same request id.
            C::ProducerSuccess(success) if success.producer_ready == Some(false) => {}
            C::Error(CommandError { request_id, .. })
            | C::ScalableTopicSubscribeResponse(CommandScalableTopicSubscribeResponse {
                request_id, ..
            }) if lock(&self.state).expected.contains_key(request_id) => {
                let mut state = lock(&self.state);
                let first = state.expected.keys().next().copied();
                let asked = first.filter(|_| self.settings.deviance.is(Deviant::AnyAnswerWillDo));
                let party = state.expected.remove(&asked.unwrap_or(*request_id));
                drop(state);
                if let Some((party, id)) = party {
                    self.hand_on(party, id, frame);
                }
            }
            C::Error(error) => {
                let failure = Error::server(error.error, &error.message);
                self.answer(error.request_id, Err(failure));
            }
            C::Success(CommandSuccess { request_id, .. })
            | C::ProducerSuccess(CommandProducerSuccess { request_id, .. })
            | C::LookupResponse(CommandLookupTopicResponse { request_id, .. })
            | C::GetSchemaResponse(CommandGetSchemaResponse { request_id, .. })
            | C::PartitionedMetadataResponse(CommandPartitionedTopicMetadataResponse {
                request_id, ..
            }) => {
                self.answer(*request_id, Ok(frame.command));
            }
            C::GetLastMessageIdResponse(answer) => self.answer(answer.request_id, Ok(frame.command)),
            C::AckResponse(CommandAckResponse { request_id: Some(request_id), error, message, .. }) => {
                let answer = match error {
                    Some(error) => Err(Error::server(*error, message.as_deref().unwrap_or_default())),
                    None => Ok(()),
                };
                self.answer(*request_id, answer.map(|()| frame.command));
            }
            C::TcClientConnectResponse(CommandTcClientConnectResponse { request_id, error, message })
            | C::NewTxnResponse(CommandNewTxnResponse { request_id, error, message, .. })
            | C::AddPartitionToTxnResponse(CommandAddPartitionToTxnResponse {
                request_id,
                error,
                message,
                ..
            })
            | C::AddSubscriptionToTxnResponse(CommandAddSubscriptionToTxnResponse {
                request_id,
                error,
                message,
                ..
            })
            | C::EndTxnResponse(CommandEndTxnResponse { request_id, error, message, .. }) => {
                let answer = match error {
                    Some(error) => Err(Error::server(*error, message.as_deref().unwrap_or_default())),
                    None => Ok(()),
                };
                self.answer(*request_id, answer.map(|()| frame.command));
            }
            C::WatchScalableTopicsUpdate(update) => {
                self.hand_on(Party::Namespace, update.watch_id, frame);
            }
            C::WatchTcAssignmentsUpdate(update) => {
                self.hand_on(Party::Coordinators, update.watch_id, frame);
            }
            C::SendReceipt(CommandSendReceipt { producer_id: id, .. })
            | C::SendError(CommandSendError { producer_id: id, .. })
            | C::CloseProducer(CommandCloseProducer { producer_id: id, .. }) => {
                self.hand_on(Party::Producer, *id, frame);
            }
            C::Message(CommandMessage { consumer_id: id, .. })
            | C::CloseConsumer(CommandCloseConsumer { consumer_id: id, .. })
            | C::ReachedEndOfTopic(CommandReachedEndOfTopic { consumer_id: id })
            | C::ActiveConsumerChange(CommandActiveConsumerChange { consumer_id: id, .. }) => {
                self.hand_on(Party::Consumer, *id, frame);
            }
            C::ScalableTopicUpdate(update) => self.hand_on(Party::Session, update.session_id, frame),
            C::ScalableTopicAssignmentUpdate(update) => {
                self.hand_on(Party::Registration, update.consumer_id, frame);
            }
            other => tracing::debug!(command = other.name(), "nobody waits for this command"),
        }
    }

    fn answer(&self, request_id: u64, answer: Result<Command, Error>) {
        if let Some(waiting) = lock(&self.state).requests.remove(&request_id) {
            let _ = waiting.send(answer);
        }
    }

    fn hand_on(&self, party: Party, id: u64, frame: Frame) {
        if let Some(events) = lock(&self.state).parties.get(&(party, id)) {
            let kind = EventKind::Frame { id, frame: Box::new(frame) };
            let _ = events.send(Event { connection: self.id, kind });
        }
    }
}

/// Writes what is queued, several frames at once when they are there. Ends when all handles are dropped.
async fn write(
    writer: &mut (impl AsyncWriteExt + Unpin),
    mut frames: mpsc::UnboundedReceiver<Frame>,
) -> Error {
    const ENOUGH: usize = 64 * 1024;
    let mut buf = BytesMut::new();
    while let Some(frame) = frames.recv().await {
        frame.encode(&mut buf);
        while buf.len() < ENOUGH
            && let Ok(frame) = frames.try_recv()
        {
            frame.encode(&mut buf);
        }
        if let Err(error) = writer.write_all(&buf).await {
            return Error::not_connected(error.to_string());
        }
        if let Err(error) = writer.flush().await {
            return Error::not_connected(error.to_string());
        }
        buf.clear();
    }
    Error::not_connected("nobody uses the connection any more")
}

/// The size in bytes that the frame at the front of a buffer announces for its command.
fn command_size(buf: &[u8]) -> Option<usize> {
    let size: [u8; 4] = buf.get(4..8)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(size)).ok()
}

async fn read_frame(link: &mut Box<dyn Link>, buf: &mut BytesMut, decoder: Decoder) -> Result<Frame, Error> {
    loop {
        match decoder.decode(buf) {
            Ok(Some(frame)) => return Ok(frame),
            Ok(None) => {}
            Err(error) => return Err(Error::not_connected(format!("unreadable frame: {error}"))),
        }
        match link.read_buf(buf).await {
            Ok(0) => return Err(Error::not_connected("the broker closed the connection in the handshake")),
            Ok(_) => {}
            Err(error) => return Err(Error::not_connected(error.to_string())),
        }
    }
}
