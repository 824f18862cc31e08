//! The task behind a stream consumer: turns requests, layouts, assignments and frames into events of the state machine,
//! and its effects into frames and messages.

use std::sync::Arc;

use stc_proto::{
    Command,
    pulsar::{
        CommandAck, CommandFlow, CommandSubscribe, IntRange, KeySharedMeta, KeySharedMode, KeyValue,
        Schema as WireSchema, command_ack::AckType, command_subscribe,
    },
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};

use super::{Face, Request};
use crate::{
    attachments::{Attachments, Outcome, SegmentEvent, assigned},
    client::Shared,
    connection::{EventSender, Party},
    core::{
        assignment::Mode,
        deviant::Deviant,
        error::Error,
        message_id::Position,
        stream::{Effect, StreamCore, Subscribe, deliveries::Ack},
    },
    layout_watch::LayoutWatch,
    producer::{layout_changed, managed, sleep},
    registration::{Registration, RegistrationEvent, registration_event},
};

/// What every SUBSCRIBE of a consumer carries.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) subscription: String,
    pub(crate) name: String,
    pub(crate) initial_position: command_subscribe::InitialPosition,
    pub(crate) schema: Option<WireSchema>,
    pub(crate) properties: Vec<KeyValue>,
    pub(crate) read_compacted: bool,
    pub(crate) replicate_state: bool,
}

/// The answer to an acknowledgement.
struct Acked {
    segment: u64,
    generation: u64,
    ticket: u64,
    result: Result<(), Error>,
}

pub(crate) struct Actor {
    client: Arc<Shared>,
    core: StreamCore,
    watch: Option<LayoutWatch>,
    revision: u64,
    settings: Settings,
    registration: Option<Registration>,
    requests: mpsc::UnboundedReceiver<Request>,
    requests_open: bool,
    face: Arc<Face>,
    attachments: Attachments,
    attaching: JoinSet<Outcome<u64>>,
    acking: JoinSet<Acked>,
    closers: Vec<oneshot::Sender<Result<(), Error>>>,
    close_deadline: Option<Instant>,
    close_result: Result<(), Error>,
    closed: bool,
    _alive: mpsc::Sender<()>,
}

impl Actor {
    #[expect(clippy::too_many_arguments, reason = "each is a part of what the builder puts together")]
    pub(crate) fn new(
        client: Arc<Shared>,
        core: StreamCore,
        watch: LayoutWatch,
        settings: Settings,
        registration: Registration,
        requests: mpsc::UnboundedReceiver<Request>,
        face: Arc<Face>,
        alive: mpsc::Sender<()>,
    ) -> Self {
        let revision = watch.state.borrow().revision;
        Actor {
            attachments: Attachments::new(client.clone(), Party::Consumer),
            revision,
            client,
            core,
            watch: Some(watch),
            settings,
            registration: Some(registration),
            requests,
            requests_open: true,
            face,
            attaching: JoinSet::new(),
            acking: JoinSet::new(),
            closers: Vec::new(),
            close_deadline: None,
            close_result: Ok(()),
            closed: false,
            _alive: alive,
        }
    }

    /// Runs until the consumer is closed. `opened` is told when everything assigned is attached or something cannot be.
    pub(crate) async fn run(mut self, opened: oneshot::Sender<Result<(), Error>>) {
        let mut opened = Some(opened);
        loop {
            self.perform(&mut opened);
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
        drop(self.registration.take());
        drop(self.watch.take());
        self.face.queue.close();
        for closer in std::mem::take(&mut self.closers) {
            let _ = closer.send(self.close_result.clone());
        }
    }

    /// Waits for one event and hands it to the state machine. In a fixed order, so that one seed gives one run.
    async fn next(&mut self, deadline: Option<Instant>) {
        let closing = self.close_deadline.is_some();
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
            Some(acked) = self.acking.join_next(), if !self.acking.is_empty() => {
                acked.into_iter().for_each(|Acked { segment, generation, ticket, result }| {
                    let now = self.client.clocks.now();
                    self.core.ack_answered(segment, generation, ticket, result, now);
                });
            }
            request = self.requests.recv(), if self.requests_open => self.request(request),
            () = self.client.closing(), if !closing => self.close(),
            () = sleep(deadline) => self.core.tick(self.client.clocks.now()),
            () = sleep(self.close_deadline), if closing => self.core.abort(),
        }
    }

    fn request(&mut self, request: Option<Request>) {
        let now = self.client.clocks.now();
        match request {
            Some(Request::Acknowledge(id, done)) => {
                let result = match self.close_deadline {
                    Some(_) => Err(Error::closed("consumer")),
                    None => self.core.acknowledge(&id, now),
                };
                // On the wire before the application is told.
                self.perform(&mut None);
                let _ = done.send(result);
            }
            Some(Request::Consumed { segment, generation }) => self.core.consumed(segment, generation, 1),
            Some(Request::Close(done)) => {
                self.closers.push(done);
                self.close();
            }
            None => {
                self.requests_open = false;
                self.close();
            }
        }
    }

    fn close(&mut self) {
        if self.close_deadline.is_none() {
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

    fn attached(&mut self, outcome: Outcome<u64>) {
        let Outcome { segment, generation, result } = outcome;
        let now = self.client.clocks.now();
        match result {
            Ok((connection, id)) => {
                // First, as the state machine grants permits at once.
                let early = self.attachments.establish(segment, connection.clone());
                let at = connection.address().to_string();
                if self.core.attached(segment, generation, at, now) {
                    early.into_iter().for_each(|event| self.event(event));
                } else {
                    self.attachments.discard_id(id, &connection);
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
                    self.core.message(segment, &message, frame.payload.unwrap_or_default());
                }
                command @ Command::CloseConsumer(_) => {
                    self.core.closed_by_broker(segment, assigned(&command), now);
                }
                // The end of a sealed segment changes nothing here: the controller notices that it is drained, and
                // the next assignment names what comes after it.
                _ => {}
            },
        }
    }

    /// Carries out what the state machine asks for.
    fn perform(&mut self, opened: &mut Option<oneshot::Sender<Result<(), Error>>>) {
        loop {
            let effects = self.core.take_effects();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out(effect, opened));
        }
    }

    fn carry_out(&mut self, effect: Effect, opened: &mut Option<oneshot::Sender<Result<(), Error>>>) {
        match effect {
            Effect::Register(register) => {
                self.registration.iter_mut().for_each(|registration| registration.register(register.clone()));
            }
            Effect::Lookup => self.watch.iter().for_each(LayoutWatch::refresh),
            Effect::Leave => self.registration.iter_mut().for_each(Registration::leave),
            Effect::Subscribe(subscribe) => {
                let id = self.attachments.id(subscribe.segment, subscribe.fresh);
                let (client, settings) = (self.client.clone(), self.settings.clone());
                let events = self.attachments.sender();
                self.attaching.spawn(self::subscribe(client, settings, subscribe, id, events));
            }
            Effect::Flow { segment, permits } => self
                .attachments
                .send(segment, |consumer_id| CommandFlow { consumer_id, message_permits: permits }.into()),
            Effect::Ack { segment, generation, ack } => self.acknowledge(segment, generation, ack),
            Effect::Invalid { segment, id, reason } => self.attachments.send(segment, |consumer_id| {
                CommandAck {
                    consumer_id,
                    ack_type: AckType::Individual as i32,
                    message_id: vec![id],
                    validation_error: Some(reason as i32),
                    ..Default::default()
                }
                .into()
            }),
            Effect::Detach { segment } => self.attachments.detach(segment),
            Effect::Forget { segment } => self.attachments.forget(segment),
            Effect::Deliver(delivery) => self.face.queue.push(delivery),
            Effect::Withdraw { segment, generation } => {
                let gone = self.face.queue.purge(|queued| queued.generation == generation);
                let places: Vec<Position> =
                    gone.iter().filter_map(|queued| queued.delivery.id.position()).collect();
                self.core.withdrawn(segment, generation, &places, self.client.clocks.now());
            }
            Effect::Opened(result) => {
                if let Some(opened) = opened.take() {
                    let _ = opened.send(result);
                }
            }
            Effect::Closed => self.closed = true,
        }
    }

    /// Sends an acknowledgement that the broker is to answer: a drain waits until it has accepted it.
    fn acknowledge(&mut self, segment: u64, generation: u64, Ack { ticket, ids, cumulative }: Ack) {
        let ack_type = if cumulative { AckType::Cumulative } else { AckType::Individual };
        let answer = self.attachments.begin(segment, |consumer_id, request_id| CommandAck {
            consumer_id,
            ack_type: ack_type as i32,
            message_id: ids,
            request_id: Some(request_id),
            ..Default::default()
        });
        let limit = self.client.operation_timeout;
        self.acking.spawn(async move {
            let lost = || Err(Error::not_connected("the segment is not attached any more"));
            let result = match answer {
                Some(Ok(answer)) => answer.wait(Some(limit)).await.map(drop),
                Some(Err(error)) => Err(error),
                None => lost(),
            };
            Acked { segment, generation, ticket, result }
        });
    }
}

/// Sends SUBSCRIBE for a segment at its broker.
async fn subscribe(
    client: Arc<Shared>,
    settings: Settings,
    subscribe: Subscribe,
    consumer_id: u64,
    events: EventSender,
) -> Outcome<u64> {
    let Subscribe { segment, generation, topic, mode, address, .. } = subscribe;
    let result = async {
        let connection = client.pool.connect(&topic, address.as_deref()).await?;
        connection.register(Party::Consumer, consumer_id, events)?;
        let request_id = client.pool.request_id();
        let (sub_type, key_shared_meta) = match &mode {
            Mode::Exclusive => (command_subscribe::SubType::Exclusive, None),
            Mode::Shared(ranges) => {
                let meta = key_shared(&client, ranges);
                (command_subscribe::SubType::KeyShared, Some(meta))
            }
        };
        let command = CommandSubscribe {
            metadata: if topic.starts_with("persistent://") { vec![managed()] } else { Vec::new() },
            topic,
            subscription: settings.subscription,
            sub_type: sub_type as i32,
            consumer_id,
            request_id,
            consumer_name: Some(format!("{}-seg-{segment}", settings.name)),
            durable: Some(!client.deviance.is(Deviant::NonDurableStream)),
            // Brokers refuse it on segments with several readers.
            read_compacted: Some(settings.read_compacted && !mode.is_shared()),
            replicate_subscription_state: settings.replicate_state.then_some(true),
            schema: settings.schema,
            initial_position: Some(settings.initial_position as i32),
            key_shared_meta,
            subscription_properties: settings.properties,
            ..Default::default()
        };
        let answer = connection.request(request_id, command, Some(client.operation_timeout)).await;
        if let Err(error) = answer {
            connection.unregister(Party::Consumer, consumer_id);
            return Err(error);
        }
        Ok((connection, consumer_id))
    };
    Outcome { segment, generation, result: result.await }
}

/// How a shared segment is subscribed (key-shared §4).
fn key_shared(client: &Shared, ranges: &[(i32, i32)]) -> KeySharedMeta {
    let deviance = client.deviance;
    let mut hash_ranges: Vec<IntRange> =
        ranges.iter().map(|(start, end)| IntRange { start: *start, end: *end }).collect();
    if deviance.is(Deviant::WrongKeySharedRanges) {
        hash_ranges.truncate(1);
    }
    let mode = match deviance.is(Deviant::AutoSplitKeyShared) {
        true => KeySharedMode::AutoSplit,
        false => KeySharedMode::Sticky,
    };
    KeySharedMeta {
        key_shared_mode: mode as i32,
        hash_ranges,
        entry_bucket_dispatch: (!deviance.is(Deviant::NoEntryBucketFlag)).then_some(true),
        ..Default::default()
    }
}
