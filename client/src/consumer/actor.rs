//! The task behind a queue consumer: turns requests, layouts and frames into events of the state machine, and its
//! effects into frames and messages.

use std::sync::Arc;

use stc_proto::{
    Command,
    pulsar::{
        CommandAck, CommandFlow, CommandRedeliverUnacknowledgedMessages, CommandSubscribe, KeyValue,
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
        consumer::{ConsumerCore, Effect, Subscribe},
        deviant::Deviant,
        error::Error,
    },
    layout_watch::LayoutWatch,
    producer::{layout_changed, managed, sleep, without_schema},
};

/// What every SUBSCRIBE of a consumer carries.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) subscription: String,
    pub(crate) name: String,
    /// Whether the application gave the name.
    pub(crate) named: bool,
    pub(crate) initial_position: command_subscribe::InitialPosition,
    pub(crate) schema: Option<WireSchema>,
    pub(crate) properties: Vec<KeyValue>,
}

pub(crate) struct Actor {
    client: Arc<Shared>,
    core: ConsumerCore,
    watch: Option<LayoutWatch>,
    revision: u64,
    settings: Settings,
    requests: mpsc::UnboundedReceiver<Request>,
    requests_open: bool,
    face: Arc<Face>,
    attachments: Attachments,
    attaching: JoinSet<Outcome<()>>,
    closers: Vec<oneshot::Sender<Result<(), Error>>>,
    close_deadline: Option<Instant>,
    closed: bool,
    _alive: mpsc::Sender<()>,
}

impl Actor {
    pub(crate) fn new(
        client: Arc<Shared>,
        core: ConsumerCore,
        watch: LayoutWatch,
        settings: Settings,
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
            requests,
            requests_open: true,
            face,
            attaching: JoinSet::new(),
            closers: Vec::new(),
            close_deadline: None,
            closed: false,
            _alive: alive,
        }
    }

    /// Runs until the consumer is closed. `opened` is told when every segment is subscribed or one cannot be.
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
            Some(outcome) = self.attaching.join_next(), if !self.attaching.is_empty() => {
                // Subscribing neither panics nor is aborted while the set lives.
                outcome.into_iter().for_each(|outcome| self.attached(outcome));
            }
            events = self.attachments.next() => events.into_iter().for_each(|event| self.event(event)),
            request = self.requests.recv(), if self.requests_open => self.request(request),
            () = self.client.closing(), if !closing => self.close(),
            () = sleep(deadline) => self.core.tick(self.client.clocks.now()),
            () = sleep(self.close_deadline), if closing => self.core.abort(),
        }
    }

    fn request(&mut self, request: Option<Request>) {
        let refused = self.close_deadline.is_some().then(|| Error::closed("consumer"));
        match request {
            Some(Request::Acknowledge(id, done)) => {
                let result = refused.map_or_else(|| self.core.acknowledge(&id), Err);
                // On the wire before the application is told.
                self.perform(&mut None);
                let _ = done.send(result);
            }
            Some(Request::Reject(id, done)) => {
                let now = self.client.clocks.now();
                let result = refused.map_or_else(|| self.core.reject(&id, now), Err);
                let _ = done.send(result);
            }
            Some(Request::Consumed(segment)) => self.core.consumed(segment, 1),
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

    fn attached(&mut self, outcome: Outcome<()>) {
        let Outcome { segment, generation, result } = outcome;
        let now = self.client.clocks.now();
        match result {
            Ok((connection, ())) => {
                // First, as the state machine grants permits at once.
                let early = self.attachments.establish(segment, connection.clone());
                let at = connection.address().to_string();
                if self.core.attached(segment, generation, at, now) {
                    early.into_iter().for_each(|event| self.event(event));
                } else {
                    self.attachments.discard(segment, &connection);
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
                Command::ReachedEndOfTopic(_) => self.core.end_of_topic(segment, now),
                command @ Command::CloseConsumer(_) => {
                    self.core.closed_by_broker(segment, assigned(&command), now);
                }
                _ => {}
            },
        }
    }

    /// Carries out what the state machine asks for.
    fn perform(&mut self, opened: &mut Option<oneshot::Sender<Result<(), Error>>>) {
        for effect in self.core.take_effects() {
            match effect {
                Effect::Subscribe(subscribe) => {
                    let id = self.attachments.id(subscribe.segment, false);
                    let (client, settings) = (self.client.clone(), self.settings.clone());
                    let events = self.attachments.sender();
                    self.attaching.spawn(self::subscribe(client, settings, subscribe, id, events));
                }
                Effect::Flow { segment, permits } => self.attachments.send(segment, |consumer_id| {
                    CommandFlow { consumer_id, message_permits: permits }.into()
                }),
                Effect::Ack { segment, ids, cumulative, invalid } => {
                    self.attachments.send(segment, |consumer_id| {
                        let ack_type = if cumulative { AckType::Cumulative } else { AckType::Individual };
                        CommandAck {
                            consumer_id,
                            ack_type: ack_type as i32,
                            message_id: ids,
                            validation_error: invalid.map(|reason| reason as i32),
                            ..Default::default()
                        }
                        .into()
                    });
                }
                Effect::Redeliver { segment, ids } => self.attachments.send(segment, |consumer_id| {
                    CommandRedeliverUnacknowledgedMessages {
                        consumer_id,
                        message_ids: ids,
                        consumer_epoch: None,
                    }
                    .into()
                }),
                Effect::Detach { segment } => self.attachments.detach(segment),
                Effect::Forget { segment } => self.attachments.forget(segment),
                Effect::Deliver(delivery) => self.face.queue.push(delivery),
                Effect::Purge { segment } => {
                    self.face.queue.purge(|delivery| delivery.segment == segment);
                }
                Effect::Opened(result) => {
                    if let Some(opened) = opened.take() {
                        let _ = opened.send(result);
                    }
                }
                Effect::Closed => self.closed = true,
            }
        }
    }
}

/// Sends SUBSCRIBE for a segment at its broker.
async fn subscribe(
    client: Arc<Shared>,
    settings: Settings,
    subscribe: Subscribe,
    consumer_id: u64,
    events: EventSender,
) -> Outcome<()> {
    let (segment, generation) = (subscribe.segment, subscribe.generation);
    let result = async {
        let connection = client.pool.connect(&subscribe.topic, subscribe.address.as_deref()).await?;
        connection.register(Party::Consumer, consumer_id, events)?;
        let request_id = client.pool.request_id();
        let sub_type = if client.deviance.is(Deviant::ExclusiveSubscription) {
            command_subscribe::SubType::Exclusive
        } else if client.deviance.is(Deviant::SubscribeFailover) {
            command_subscribe::SubType::Failover
        } else {
            command_subscribe::SubType::Shared
        };
        let command = CommandSubscribe {
            topic: subscribe.topic,
            subscription: settings.subscription,
            sub_type: sub_type as i32,
            consumer_id,
            request_id,
            consumer_name: Some(if settings.named {
                format!("{}-seg-{segment}", settings.name)
            } else {
                settings.name
            }),
            durable: Some(true),
            metadata: if subscribe.legacy { vec![managed()] } else { Vec::new() },
            schema: settings.schema.filter(|_| !without_schema(&client, segment)),
            initial_position: Some(settings.initial_position as i32),
            subscription_properties: settings.properties,
            ..Default::default()
        };
        let answer = connection.request(request_id, command, Some(client.operation_timeout)).await;
        if let Err(error) = answer {
            connection.unregister(Party::Consumer, consumer_id);
            return Err(error);
        }
        Ok((connection, ()))
    };
    Outcome { segment, generation, result: result.await }
}
