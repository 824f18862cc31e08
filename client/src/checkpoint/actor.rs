//! The task behind a checkpoint consumer: turns requests, layouts, assignments and frames into events of the state
//! machine, and its effects into frames and messages.

use std::sync::Arc;

use stc_proto::{
    Command,
    pulsar::{
        CommandAck, CommandFlow, CommandGetLastMessageId, CommandGetLastMessageIdResponse, CommandSubscribe,
        MessageIdData, Schema as WireSchema, command_ack::AckType, command_subscribe,
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
        checkpoint::{CheckpointCore, Effect, Subscribe, reader::From},
        deviant::Deviant,
        error::Error,
    },
    layout_watch::LayoutWatch,
    producer::{layout_changed, managed, sleep},
    registration::{Registration, RegistrationEvent, registration_event},
};

/// What every SUBSCRIBE of a consumer carries.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) schema: Option<WireSchema>,
}

/// The answer to GET_LAST_MESSAGE_ID.
struct Last {
    segment: u64,
    generation: u64,
    answer: Result<CommandGetLastMessageIdResponse, Error>,
}

pub(crate) struct Actor {
    client: Arc<Shared>,
    core: CheckpointCore,
    watch: Option<LayoutWatch>,
    revision: u64,
    settings: Settings,
    registration: Option<Registration>,
    requests: mpsc::UnboundedReceiver<Request>,
    requests_open: bool,
    face: Arc<Face>,
    attachments: Attachments,
    attaching: JoinSet<Outcome<u64>>,
    asking: JoinSet<Last>,
    closers: Vec<oneshot::Sender<Result<(), Error>>>,
    close_deadline: Option<Instant>,
    closed: bool,
    _alive: mpsc::Sender<()>,
}

impl Actor {
    #[expect(clippy::too_many_arguments, reason = "each is a part of what the builder puts together")]
    pub(crate) fn new(
        client: Arc<Shared>,
        core: CheckpointCore,
        watch: LayoutWatch,
        settings: Settings,
        registration: Option<Registration>,
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
            registration,
            requests,
            requests_open: true,
            face,
            attaching: JoinSet::new(),
            asking: JoinSet::new(),
            closers: Vec::new(),
            close_deadline: None,
            closed: false,
            _alive: alive,
        }
    }

    /// Runs until the consumer is closed. `opened` is told when everything is attached that can be read now, or
    /// something cannot be.
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
            let _ = closer.send(Ok(()));
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
            Some(last) = self.asking.join_next(), if !self.asking.is_empty() => {
                last.into_iter().for_each(|Last { segment, generation, answer }| {
                    self.core.last_message(segment, generation, answer, self.client.clocks.now());
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
            Some(Request::Consumed { segment, generation, mark }) => {
                self.core.consumed(segment, generation, now);
                if self.client.deviance.is(Deviant::CheckpointAcks) {
                    let id =
                        MessageIdData { ledger_id: mark.ledger, entry_id: mark.entry, ..Default::default() };
                    self.attachments.send(segment, |consumer_id| {
                        CommandAck {
                            consumer_id,
                            ack_type: AckType::Cumulative as i32,
                            message_id: vec![id],
                            ..Default::default()
                        }
                        .into()
                    });
                }
            }
            Some(Request::AskAgain) => self.core.ask_again(now),
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
                    self.core.message(segment, &message, frame.payload.unwrap_or_default(), now);
                }
                command @ Command::CloseConsumer(_) => {
                    self.core.closed_by_broker(segment, assigned(&command), now);
                }
                // REACHED_END_OF_TOPIC follows acknowledgements, of which there are none.
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
            Effect::Ask { segment, generation } => self.ask(segment, generation),
            Effect::Detach { segment } => self.attachments.detach(segment),
            Effect::Forget { segment } => self.attachments.forget(segment),
            Effect::Deliver(delivery) => {
                if self.face.deviance.is(Deviant::CheckpointNotAtomic) {
                    self.face.queue.passed(|marks| marks.insert(delivery.delivery.segment, delivery.mark));
                }
                self.face.queue.push(delivery);
            }
            Effect::Withdraw { segment } => {
                self.face.queue.purge(|queued| queued.delivery.segment == segment);
                let received = self.face.queue.passed(|marks| marks.get(&segment).copied());
                self.core.withdrawn(segment, received);
            }
            Effect::Unmark { segment } => {
                self.face.queue.passed(|marks| marks.remove(&segment));
            }
            Effect::Mark { segment, mark } => {
                self.face.queue.passed(|marks| marks.insert(segment, mark));
            }
            Effect::Opened(result) => {
                if let Some(opened) = opened.take() {
                    let _ = opened.send(result);
                }
            }
            Effect::Closed => self.closed = true,
        }
    }

    fn ask(&mut self, segment: u64, generation: u64) {
        let answer = self
            .attachments
            .begin(segment, |consumer_id, request_id| CommandGetLastMessageId { consumer_id, request_id });
        let limit = self.client.operation_timeout;
        self.asking.spawn(async move {
            let answer = match answer {
                Some(Ok(answer)) => answer.wait(Some(limit)).await,
                Some(Err(error)) => Err(error),
                None => Err(Error::not_connected("the segment is not attached any more")),
            };
            let answer = answer.and_then(|command| match command {
                Command::GetLastMessageIdResponse(answer) => Ok(answer),
                other => Err(Error::not_connected(format!("{} answered GET_LAST_MESSAGE_ID", other.name()))),
            });
            Last { segment, generation, answer }
        });
    }
}

/// Sends SUBSCRIBE for the reader of a segment at its broker.
async fn subscribe(
    client: Arc<Shared>,
    settings: Settings,
    subscribe: Subscribe,
    consumer_id: u64,
    events: EventSender,
) -> Outcome<u64> {
    let Subscribe { segment, generation, topic, from, address, number, .. } = subscribe;
    let result = async {
        let connection = client.pool.connect(&topic, address.as_deref()).await?;
        connection.register(Party::Consumer, consumer_id, events)?;
        let request_id = client.pool.request_id();
        let durable = client.deviance.is(Deviant::CheckpointDurable);
        let command = CommandSubscribe {
            metadata: if topic.starts_with("persistent://") { vec![managed()] } else { Vec::new() },
            topic,
            // Its own, so that no two readers are ever in each other's way.
            subscription: format!("reader-{:010x}", number >> 24),
            sub_type: command_subscribe::SubType::Exclusive as i32,
            consumer_id,
            request_id,
            consumer_name: Some(format!("{}-seg-{segment}", settings.name)),
            durable: Some(durable),
            start_message_id: Some(start_message_id(from)),
            initial_position: durable.then_some(command_subscribe::InitialPosition::Earliest as i32),
            read_compacted: Some(false),
            schema: settings.schema,
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

/// The last message that a reader has seen, as brokers take it: they begin with that entry.
fn start_message_id(from: From) -> MessageIdData {
    let (ledger_id, entry_id, batch_index) = match from {
        // -1:-1 and the largest numbers stand for the oldest and the next message.
        From::Behind(None) => (u64::MAX, u64::MAX, -1),
        From::Latest => (i64::MAX as u64, i64::MAX as u64, -1),
        From::Behind(Some(mark)) => (mark.ledger, mark.entry, mark.batch_index),
    };
    MessageIdData { ledger_id, entry_id, batch_index: Some(batch_index), ..Default::default() }
}
