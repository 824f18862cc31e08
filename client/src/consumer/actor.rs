//! The task behind a consumer: turns requests, layouts, assignments and frames into events of the state machine, and its
//! effects into frames and messages.

use std::{future::Future, sync::Arc};

use stc_proto::{
    Command,
    pulsar::{CommandFlow, CommandSubscribe},
};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use super::{Beginning, DeliveryOf, Done, Face, Kind, REQUESTS, Request, transactions::Desk};
use crate::{
    attachments::{Asked, Attachments, Outcome, SegmentEvent, assigned},
    client::Shared,
    connection::{EventSender, Party},
    core::{
        consumer::{Core, Effect, EffectOf},
        deviant::Deviant,
        error::Error,
    },
    layout_watch::LayoutWatch,
    producer::{layout_changed, managed, sleep},
    receive_queue::Queued,
    registration::{Registration, RegistrationEvent, registration_event},
};

pub(crate) struct Actor<K: Kind> {
    pub(crate) client: Arc<Shared>,
    pub(crate) core: K::Core,
    pub(crate) face: Arc<Face<DeliveryOf<K>>>,
    pub(crate) attachments: Attachments,
    pub(crate) kind: K,
    watch: Option<LayoutWatch>,
    revision: u64,
    registration: Option<Registration>,
    requests: mpsc::UnboundedReceiver<Request<K::Request>>,
    requests_open: bool,
    attaching: JoinSet<Outcome<()>>,
    asking: JoinSet<K::Answer>,
    pub(crate) desk: Desk,
    opened: Option<Done>,
    closers: Vec<Done>,
    close_deadline: Option<Instant>,
    close_result: Result<(), Error>,
    closed: bool,
    _alive: mpsc::Sender<()>,
}

impl<K: Kind> Actor<K> {
    /// `opened` is told when everything that is wanted is attached or something cannot be.
    pub(super) fn new(
        client: Arc<Shared>,
        beginning: Beginning<K>,
        requests: mpsc::UnboundedReceiver<Request<K::Request>>,
        face: Arc<Face<DeliveryOf<K>>>,
        opened: Done,
        alive: mpsc::Sender<()>,
    ) -> Self {
        let Beginning { kind, core, watch, registrant, .. } = beginning;
        let revision = watch.state.borrow().revision;
        Actor {
            attachments: Attachments::new(client.clone(), Party::Consumer),
            registration: registrant.map(|registrant| Registration::new(client.clone(), registrant)),
            revision,
            client,
            core,
            face,
            kind,
            watch: Some(watch),
            requests,
            requests_open: true,
            attaching: JoinSet::new(),
            asking: JoinSet::new(),
            desk: Desk::default(),
            opened: Some(opened),
            closers: Vec::new(),
            close_deadline: None,
            close_result: Ok(()),
            closed: false,
            _alive: alive,
        }
    }

    /// Runs until the consumer is closed.
    pub(super) async fn run(mut self) {
        loop {
            self.perform();
            if self.closed {
                break;
            }
            let now = self.client.clocks.now();
            let deadline = self.core.next_deadline();
            if deadline.is_some_and(|at| at <= now.mono) {
                self.core.tick(now);
                continue;
            }
            let deadline = deadline.map(|at| self.client.clocks.instant(at));
            self.next(deadline).await;
        }
        // Closed on the wire before anyone is told.
        self.asking.shutdown().await;
        self.kind.finish().await;
        drop(self.registration.take());
        drop(self.watch.take());
        self.face.queue.close();
        for closer in std::mem::take(&mut self.closers) {
            let _ = closer.send(self.close_result.clone());
        }
    }

    /// Waits for one event and hands it to the state machine. In a fixed order, so that one seed gives one run.
    async fn next(&mut self, deadline: Option<Instant>) {
        let closing = self.is_closing();
        let mut asked = Vec::new();
        tokio::select! {
            biased;
            () = layout_changed(&mut self.watch) => self.layout_changed(),
            event = registration_event(&mut self.registration) => {
                event.into_iter().for_each(|event| self.registration_event(event));
            }
            Some(outcome) = self.attaching.join_next(), if !self.attaching.is_empty() => {
                // Subscribing neither panics nor is aborted while the set lives.
                outcome.into_iter().for_each(|outcome| self.attached(outcome));
            }
            events = self.attachments.next() => events.into_iter().for_each(|event| self.event(event)),
            Some(answer) = self.asking.join_next(), if !self.asking.is_empty() => {
                answer.into_iter().for_each(|answer| K::answered(self, answer));
            }
            Some(step) = self.desk.next(), if !self.desk.is_idle() => self.transaction_step(step),
            _ = self.requests.recv_many(&mut asked, REQUESTS), if self.requests_open => self.requested(asked),
            () = self.client.closing(), if !closing => self.close(),
            () = sleep(deadline) => self.core.tick(self.client.clocks.now()),
            () = sleep(self.close_deadline), if closing => self.core.abort(),
        }
    }

    /// Whether the application asked for the end.
    pub(crate) fn is_closing(&self) -> bool {
        self.close_deadline.is_some()
    }

    /// Waits for an answer beside everything else.
    pub(crate) fn wait_for(&mut self, answer: impl Future<Output = K::Answer> + Send + 'static) {
        self.asking.spawn(answer);
    }

    /// What handles ask, in their order; nothing once all of them are dropped.
    fn requested(&mut self, asked: Vec<Request<K::Request>>) {
        if asked.is_empty() {
            self.requests_open = false;
            self.close();
        }
        for request in asked {
            match request {
                Request::Own(request) => K::request(self, request),
                Request::Close(done) => {
                    self.closers.push(done);
                    self.close();
                }
            }
        }
    }

    fn close(&mut self) {
        if !self.is_closing() {
            self.close_deadline = Some(Instant::now() + self.client.operation_timeout);
            self.face.queue.close();
            self.core.close(self.client.clocks.now());
        }
    }

    fn layout_changed(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let state = watch.state.borrow_and_update().clone();
        let now = self.client.clocks.now();
        if state.revision != self.revision {
            self.revision = state.revision;
            self.core.apply_layout(state.view, now);
        }
        self.core.set_synced(state.synced, now);
    }

    fn registration_event(&mut self, event: RegistrationEvent) {
        let now = self.client.clocks.now();
        match event {
            RegistrationEvent::Registered { generation, at, assignment } => {
                self.core.registered(generation, &at, assignment, now);
            }
            RegistrationEvent::Update { generation, assignment } => {
                self.core.assignment_update(generation, assignment, now);
            }
            RegistrationEvent::Lost { generation, error } => self.core.unregistered(generation, error, now),
            RegistrationEvent::Left(result) => {
                if let Err(error) = result {
                    tracing::debug!(%error, "the controller was not told of the close");
                    if self.client.deviance.is(Deviant::FailCloseOnUnsubscribe) {
                        self.close_result = Err(error);
                    }
                }
                self.core.left(now);
            }
        }
    }

    fn attached(&mut self, outcome: Outcome<()>) {
        let Outcome { segment, id, generation, result } = outcome;
        let now = self.client.clocks.now();
        match result {
            Ok((asked, ())) => {
                let connection = asked.taken();
                // First, as the state machine grants permits at once.
                let early = self.attachments.establish(segment, connection.clone());
                let at = connection.address().to_string();
                if self.core.attached(segment, generation, at, now) {
                    early.into_iter().for_each(|event| self.event(event));
                } else {
                    self.attachments.discard(id, &connection);
                }
            }
            Err(error) => self.core.attach_failed(segment, generation, error, now),
        }
    }

    fn event(&mut self, event: SegmentEvent) {
        let now = self.client.clocks.now();
        match event {
            SegmentEvent::Closed { segment } => self.core.detached(segment, now),
            SegmentEvent::Lost { segment } => self.core.disconnected(segment, now),
            SegmentEvent::Frame { segment, frame } => match frame.command {
                Command::Message(message) => {
                    self.core.message(segment, &message, frame.payload.unwrap_or_default(), now);
                }
                Command::ReachedEndOfTopic(_) => self.core.end_of_topic(segment, now),
                command @ Command::CloseConsumer(_) => {
                    self.core.closed_by_broker(segment, assigned(&command), now);
                }
                _ => {}
            },
        }
    }

    /// Carries out what the state machine asks for.
    pub(crate) fn perform(&mut self) {
        loop {
            let effects = self.core.take_effects();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out(effect));
        }
    }

    fn carry_out(&mut self, effect: EffectOf<K::Core>) {
        match effect {
            Effect::Register(register) => {
                self.registration.iter_mut().for_each(|registration| registration.register(register.clone()));
            }
            Effect::Lookup => self.watch.iter().for_each(LayoutWatch::refresh),
            Effect::Doubt => self.watch.iter().for_each(LayoutWatch::doubt),
            Effect::Leave => self.registration.iter_mut().for_each(Registration::leave),
            Effect::Subscribe(subscribe) => {
                let id = self.attachments.id(subscribe.segment, subscribe.attempt.fresh);
                let command = CommandSubscribe {
                    metadata: match subscribe.topic.starts_with("persistent://") {
                        true => vec![managed()],
                        false => Vec::new(),
                    },
                    topic: subscribe.topic.clone(),
                    consumer_id: id,
                    ..self.kind.subscribe(&self.client, &subscribe)
                };
                let (client, events) = (self.client.clone(), self.attachments.sender());
                let (segment, attempt) = (subscribe.segment, subscribe.attempt);
                self.attaching.spawn(async move {
                    let result = self::subscribe(client, command, attempt.address.as_deref(), events).await;
                    let result = result.map(|asked| (asked, ()));
                    Outcome { segment, id, generation: attempt.generation, result }
                });
            }
            Effect::Flow { segment, permits } => self
                .attachments
                .send(segment, |consumer_id| CommandFlow { consumer_id, message_permits: permits }.into()),
            Effect::Detach { segment } => self.attachments.detach(segment),
            Effect::Forget { segment } => self.attachments.forget(segment),
            Effect::Deliver(mut delivery) => {
                let odd = delivery.delivery().segment % 2 == 1;
                if odd && self.registration.is_some() && self.client.deviance.is(Deviant::OddSegmentsUnread) {
                    return;
                }
                K::arrives(&self.face, &delivery);
                self.face.queue.push(delivery);
            }
            Effect::Opened(result) => {
                if let Some(opened) = self.opened.take() {
                    let _ = opened.send(result);
                }
            }
            Effect::Closed => self.closed = true,
            Effect::Transaction(effect) => {
                let subscription = self.kind.subscription().to_owned();
                self.carry_out_transaction(effect, &subscription);
            }
            Effect::Own(own) => K::carry_out(self, own),
        }
    }
}

/// Sends SUBSCRIBE for a segment at its broker.
async fn subscribe(
    client: Arc<Shared>,
    mut command: CommandSubscribe,
    address: Option<&str>,
    events: EventSender,
) -> Result<Asked, Error> {
    let connection = client.pool.connect(&command.topic, address).await?;
    let id = command.consumer_id;
    let mut asked = Asked::begin(client.clone(), connection.clone(), (Party::Consumer, id), events)?;
    let request_id = client.pool.request_id();
    command.request_id = request_id;
    let answer = asked.request(request_id, command, Some(client.operation_timeout)).await;
    match answer {
        Ok(_) => Ok(asked),
        Err(error) => {
            asked.failed(&error);
            Err(error)
        }
    }
}
