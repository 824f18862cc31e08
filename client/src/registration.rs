//! The registration of an ordered consumer on its connection to the controller (wire-protocol §6.2). The state machines
//! decide when and where; this sends SCALABLE_TOPIC_SUBSCRIBE and SCALABLE_TOPIC_UNSUBSCRIBE and hands on what comes back,
//! in the order in which the controller sent it.

use std::{sync::Arc, time::Duration};

use stc_proto::{
    Command,
    pulsar::{CommandScalableTopicSubscribe, CommandScalableTopicUnsubscribe, ScalableConsumerType},
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use crate::{
    client::Shared,
    connection::{Connection, Event, EventKind, EventSender, Party},
    core::{assignment::Assignment, deviant::Deviant, error::Error, session::Register},
    layout_watch::LayoutWatch,
};

/// How long the answer to SCALABLE_TOPIC_UNSUBSCRIBE is waited for.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// What became of a registration.
#[derive(Debug)]
pub(crate) enum RegistrationEvent {
    /// The controller at this URL answered with an assignment.
    Registered { generation: u64, at: String, assignment: Assignment },
    /// The controller pushed an assignment.
    Update { generation: u64, assignment: Assignment },
    /// There is no registration: it failed, or its connection is lost.
    Lost { generation: u64, error: Error },
    /// SCALABLE_TOPIC_UNSUBSCRIBE is answered, or given up.
    Left(Result<(), Error>),
}

/// Who registers.
#[derive(Debug, Clone)]
pub(crate) struct Registrant {
    pub(crate) topic: String,
    /// The subscription or checkpoint group.
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) kind: ScalableConsumerType,
}

struct Current {
    generation: u64,
    connection: Arc<Connection>,
    id: u64,
    /// Until when the controller has to answer; `None` once it has.
    unanswered: Option<Instant>,
    /// SCALABLE_TOPIC_UNSUBSCRIBE was sent.
    left: bool,
}

/// See the module.
pub(crate) struct Registration {
    client: Arc<Shared>,
    registrant: Registrant,
    /// The consumer's id, the same in all registrations.
    id: u64,
    attempts: u64,
    current: Option<Current>,
    sender: EventSender,
    events: mpsc::UnboundedReceiver<Event>,
    connecting: JoinSet<(u64, Result<Arc<Connection>, Error>)>,
    leaving: JoinSet<Result<(), Error>>,
}

impl Registration {
    pub(crate) fn new(client: Arc<Shared>, registrant: Registrant) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        Registration {
            id: if client.deviance.is(Deviant::OneConsumerId) { 0 } else { client.consumer_id() },
            client,
            registrant,
            attempts: 0,
            current: None,
            sender,
            events,
            connecting: JoinSet::new(),
            leaving: JoinSet::new(),
        }
    }

    /// Registers, in place of whatever registration there was.
    pub(crate) fn register(&mut self, register: Register) {
        if let Some(old) = self.current.take() {
            old.connection.unregister(Party::Registration, old.id);
        }
        self.connecting.abort_all();
        let (client, topic) = (self.client.clone(), self.registrant.topic.clone());
        self.connecting.spawn(async move {
            if client.deviance.is(Deviant::LookupBeforeRegister) {
                let _ = client.pool.lookup(&topic).await;
            }
            let connection = client.pool.controller(&topic, register.controller.as_deref()).await;
            (register.generation, connection)
        });
    }

    fn connected(&mut self, generation: u64, connection: Arc<Connection>) -> Result<(), Error> {
        let again = self.attempts > 0;
        self.attempts += 1;
        let mut name = self.registrant.name.clone();
        if again && self.client.deviance.is(Deviant::NewNameOnReconnect) {
            name = format!("{name}-{}", self.attempts);
        }
        let id = self.id;
        connection.register(Party::Registration, id, self.sender.clone())?;
        let request_id = self.client.pool.request_id();
        let command = CommandScalableTopicSubscribe {
            request_id,
            topic: self.registrant.topic.clone(),
            subscription: self.registrant.group.clone(),
            consumer_name: name,
            consumer_id: id,
            consumer_type: self.registrant.kind as i32,
        };
        connection.ask(Party::Registration, id, request_id, command);
        let unanswered = Some(Instant::now() + self.client.operation_timeout);
        self.current = Some(Current { generation, connection, id, unanswered, left: false });
        Ok(())
    }

    /// Tells the controller that the consumer goes.
    pub(crate) fn leave(&mut self) {
        let answer = self.current.as_mut().and_then(|current| {
            current.left = true;
            let request_id = self.client.pool.request_id();
            let command = CommandScalableTopicUnsubscribe { request_id, consumer_id: current.id };
            current.connection.begin(request_id, command).ok()
        });
        self.leaving.spawn(async move {
            match answer {
                Some(answer) => answer.wait(Some(LEAVE_TIMEOUT)).await.map(drop),
                None => Ok(()),
            }
        });
    }

    /// What happened next.
    pub(crate) async fn next(&mut self) -> Option<RegistrationEvent> {
        let limit = self.current.as_ref().and_then(|current| current.unanswered);
        let (connecting, leaving) = (!self.connecting.is_empty(), !self.leaving.is_empty());
        tokio::select! {
            biased;
            event = self.events.recv() => event.and_then(|event| self.sort(event)),
            connected = self.connecting.join_next(), if connecting => match connected {
                Some(Ok((generation, connection))) => {
                    let result = connection.and_then(|connection| self.connected(generation, connection));
                    result.err().map(|error| RegistrationEvent::Lost { generation, error })
                }
                // Superseded by another attempt.
                _ => None,
            },
            left = self.leaving.join_next(), if leaving => {
                left.and_then(Result::ok).map(RegistrationEvent::Left)
            }
            () = until(limit), if limit.is_some() => {
                let current = self.current.take()?;
                current.connection.unregister(Party::Registration, current.id);
                let error = Error::unanswered("the controller did not answer in time");
                Some(RegistrationEvent::Lost { generation: current.generation, error })
            }
        }
    }

    fn sort(&mut self, event: Event) -> Option<RegistrationEvent> {
        let current = self.current.as_mut().filter(|current| current.connection.id() == event.connection)?;
        let generation = current.generation;
        let frame = match event.kind {
            EventKind::Lost => {
                self.current = None;
                let error = Error::not_connected("the connection to the controller is lost");
                return Some(RegistrationEvent::Lost { generation, error });
            }
            EventKind::Frame { frame, .. } => frame,
        };
        let error = match frame.command {
            Command::ScalableTopicAssignmentUpdate(update) => {
                let assignment = Assignment::from_wire(&update.assignment);
                return Some(RegistrationEvent::Update { generation, assignment });
            }
            Command::ScalableTopicSubscribeResponse(response) => {
                current.unanswered = None;
                match (response.error, response.assignment) {
                    (None, Some(assignment)) => {
                        let assignment = Assignment::from_wire(&assignment);
                        let at = current.connection.address().to_string();
                        return Some(RegistrationEvent::Registered { generation, at, assignment });
                    }
                    (None, None) => Error::server(i32::MAX, "the answer has no assignment"),
                    (Some(error), _) => Error::server(error, response.message.as_deref().unwrap_or_default()),
                }
            }
            Command::Error(error) => Error::server(error.error, &error.message),
            _ => return None,
        };
        current.connection.unregister(Party::Registration, current.id);
        self.current = None;
        Some(RegistrationEvent::Lost { generation, error })
    }
}

impl Drop for Registration {
    /// A consumer that did not get as far as leaving leaves now, best effort.
    fn drop(&mut self) {
        let Some(current) = self.current.take() else { return };
        current.connection.unregister(Party::Registration, current.id);
        if !current.left
            && current.connection.is_open()
            && !self.client.deviance.is(Deviant::NoUnsubscribeOnClose)
        {
            let request_id = self.client.pool.request_id();
            let command = CommandScalableTopicUnsubscribe { request_id, consumer_id: current.id };
            current.connection.send(Command::from(command));
        }
    }
}

/// What a deviant does: registers a consumer that needs no controller.
pub(crate) async fn register_needlessly(client: &Shared, watch: &LayoutWatch, group: &str, name: &str) {
    let (topic, controller) = {
        let state = watch.state.borrow();
        (state.view.topic.to_string(), state.view.controller.clone())
    };
    if let Ok(connection) = client.pool.controller(&topic, controller.as_deref()).await {
        let command = CommandScalableTopicSubscribe {
            request_id: client.pool.request_id(),
            topic,
            subscription: group.to_owned(),
            consumer_name: name.to_owned(),
            consumer_id: client.consumer_id(),
            consumer_type: ScalableConsumerType::Stream as i32,
        };
        connection.send(Command::from(command));
    }
}

async fn until(limit: Option<Instant>) {
    match limit {
        Some(limit) => sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

/// What happened next to a registration, if there is one.
pub(crate) async fn registration_event(registration: &mut Option<Registration>) -> Option<RegistrationEvent> {
    match registration {
        Some(registration) => registration.next().await,
        None => std::future::pending().await,
    }
}
