//! The task behind a producer: turns requests, layouts and frames into events of the state machine, and its effects
//! into frames and results.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use stc_proto::{
    Command, Frame, TopicName,
    pulsar::{CommandProducer, CommandSend, KeyValue, ProducerAccessMode, Schema as WireSchema},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{Face, Request, SendResult};
use crate::{
    attachments::{Asked, Attachments, Outcome, SegmentEvent, assigned},
    client::Shared,
    connection::{EventSender, Party},
    consumer::REQUESTS,
    core::{
        Now,
        deviant::Deviant,
        error::Error,
        producer::{Attach, Attached, Effect, ProducerCore},
        transaction::{Part, TxnId},
    },
    layout_watch::LayoutWatch,
    transaction::{Operation, Txn},
};

/// How long a refused producer waits for the answers of other segments.
const TAKING_BACK: Duration = Duration::from_secs(5);

/// What every PRODUCER of a producer carries.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) access: ProducerAccessMode,
    pub(crate) schema: Option<WireSchema>,
    pub(crate) properties: Vec<KeyValue>,
    pub(crate) initial_subscription: Option<String>,
}

/// Tells a broker that a classic topic is used by a client that can follow its migration.
pub(crate) fn managed() -> KeyValue {
    KeyValue { key: "__pulsar.v5.managed".into(), value: "true".into() }
}

pub(crate) struct Actor {
    client: Arc<Shared>,
    core: ProducerCore,
    watch: Option<LayoutWatch>,
    revision: u64,
    settings: Settings,
    requests: mpsc::UnboundedReceiver<Request>,
    requests_open: bool,
    face: Arc<Face>,
    attachments: Attachments,
    attaching: JoinSet<Outcome<Attached>>,
    tickets: HashMap<u64, (oneshot::Sender<SendResult>, Option<Operation>)>,
    /// The transactions of pending sends, and how many of each.
    transactions: BTreeMap<TxnId, (Arc<Txn>, usize)>,
    enlisting: JoinSet<(u64, TxnId, Result<(), Error>)>,
    flushes: Vec<(u64, oneshot::Sender<()>)>,
    closers: Vec<oneshot::Sender<Result<(), Error>>>,
    /// When a close that cannot be completed is given up.
    close_deadline: Option<Instant>,
    close_result: Result<(), Error>,
    /// Who waits for exclusive access that cannot be had, and why not.
    refused: Option<(oneshot::Sender<Result<(), Error>>, Error)>,
    closed: bool,
    memory_freed: watch::Receiver<()>,
    _alive: mpsc::Sender<()>,
}

impl Actor {
    pub(crate) fn new(
        client: Arc<Shared>,
        core: ProducerCore,
        watch: LayoutWatch,
        settings: Settings,
        requests: mpsc::UnboundedReceiver<Request>,
        face: Arc<Face>,
        alive: mpsc::Sender<()>,
    ) -> Self {
        let revision = watch.state.borrow().revision;
        let memory_freed = client.memory_freed.subscribe();
        Actor {
            attachments: Attachments::new(client.clone(), Party::Producer),
            revision,
            client,
            core,
            watch: Some(watch),
            settings,
            requests,
            requests_open: true,
            face,
            attaching: JoinSet::new(),
            tickets: HashMap::new(),
            transactions: BTreeMap::new(),
            enlisting: JoinSet::new(),
            flushes: Vec::new(),
            closers: Vec::new(),
            close_deadline: None,
            close_result: Ok(()),
            refused: None,
            closed: false,
            memory_freed,
            _alive: alive,
        }
    }

    /// Runs until the producer is closed. `opened` is told when exclusive access is there or cannot be had.
    pub(crate) async fn run(mut self, mut opened: Option<oneshot::Sender<Result<(), Error>>>) {
        loop {
            if self.client.buckets_observed.load(Ordering::Relaxed) {
                self.core.observe_buckets();
            }
            self.perform(&mut opened);
            if self.closed {
                break;
            }
            if self.refused.is_some() && self.close_deadline.is_none() {
                self.close();
                continue;
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
        if let Some((opened, error)) = self.refused.take() {
            // What was asked for on other segments comes about still, and would be in the way of whoever tries next. Each is
            // closed as its answer is dropped. Waiting for access has no end.
            let waits = self.settings.access == ProducerAccessMode::WaitForExclusive;
            let all = async { while !waits && self.attaching.join_next().await.is_some() {} };
            let _ = timeout(TAKING_BACK, all).await;
            let _ = opened.send(Err(error));
        }
        for closer in std::mem::take(&mut self.closers) {
            let _ = closer.send(self.close_result.clone());
        }
    }

    /// Waits for one event and hands it to the state machine. In a fixed order, so that one seed gives one run.
    async fn next(&mut self, deadline: Option<Instant>) {
        let closing = self.close_deadline.is_some();
        let mut asked = Vec::new();
        tokio::select! {
            biased;
            () = layout_changed(&mut self.watch) => self.layout_changed(),
            Some(outcome) = self.attaching.join_next(), if !self.attaching.is_empty() => {
                // Attaching neither panics nor is aborted while the set lives.
                outcome.into_iter().for_each(|outcome| self.attached(outcome));
            }
            Some(Ok((segment, txn, result))) = self.enlisting.join_next(), if !self.enlisting.is_empty() => {
                self.core.enlisted(segment, txn, result, self.client.clocks.now());
            }
            events = self.attachments.next() => events.into_iter().for_each(|event| self.event(event)),
            _ = self.memory_freed.changed(), if self.core.waits_for_memory() => {
                self.core.tick(self.client.clocks.now());
            }
            _ = self.requests.recv_many(&mut asked, REQUESTS), if self.requests_open => self.requested(asked),
            () = self.client.closing(), if !closing => self.close(),
            () = sleep(deadline) => self.core.tick(self.client.clocks.now()),
            () = sleep(self.close_deadline), if closing => {
                self.close_result = Err(Error::timeout("what was pending could not be published before the close"));
                let error = Error::timeout("the producer was closed before the message could be published");
                self.core.abort(&error);
            }
        }
    }

    /// What handles ask, in their order; nothing once all of them are dropped.
    fn requested(&mut self, asked: Vec<Request>) {
        if asked.is_empty() {
            self.requests_open = false;
            self.close();
        }
        let now = self.client.clocks.now();
        asked.into_iter().for_each(|request| self.request(request, now));
    }

    fn request(&mut self, request: Request, now: Now) {
        match request {
            Request::Send(message, operation, ticket) => {
                if let Some(txn) = operation.as_ref().and_then(Operation::txn) {
                    self.transactions.entry(txn.id()).or_insert_with(|| (txn.clone(), 0)).1 += 1;
                }
                let order = self.core.send(*message, now);
                self.tickets.insert(order, (ticket, operation));
            }
            Request::Flush(done) => {
                let before = self.core.flush(now);
                if self.client.deviance.is(Deviant::FlushReturnsEarly) {
                    let _ = done.send(());
                } else {
                    self.flushes.push((before, done));
                }
            }
            Request::Close(done) => {
                self.closers.push(done);
                self.close();
            }
        }
    }

    fn close(&mut self) {
        if self.close_deadline.is_none() {
            self.close_deadline = Some(Instant::now() + self.client.operation_timeout);
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

    fn attached(&mut self, outcome: Outcome<Attached>) {
        let Outcome { segment, id, generation, result } = outcome;
        let now = self.client.clocks.now();
        match result {
            Ok((asked, attached)) => {
                let connection = asked.taken();
                // First, as the state machine may send on it at once.
                let early = self.attachments.establish(segment, connection.clone());
                if self.core.attached(segment, generation, attached, now) {
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
                Command::SendReceipt(receipt) => {
                    // Without an identifier for what deduplication dropped.
                    let id = receipt.message_id.unwrap_or_default();
                    self.core.receipt(segment, receipt.sequence_id, id.ledger_id, id.entry_id, now);
                }
                Command::SendError(failed) => {
                    let error = Error::server(failed.error, &failed.message);
                    self.core.send_failed(segment, failed.sequence_id, error, now);
                }
                command @ Command::CloseProducer(_) => {
                    self.core.closed_by_broker(segment, assigned(&command), now);
                }
                _ => {}
            },
        }
    }

    /// Forgets a transaction whose last pending send has its result.
    fn leave(&mut self, operation: &Operation) {
        let Some(id) = operation.txn().map(|txn| txn.id()) else { return };
        if let Some((_, pending)) = self.transactions.get_mut(&id) {
            *pending -= 1;
            if *pending == 0 {
                self.transactions.remove(&id);
            }
        }
    }

    /// Carries out what the state machine asks for.
    fn perform(&mut self, opened: &mut Option<oneshot::Sender<Result<(), Error>>>) {
        let effects = self.core.take_effects();
        if let Some(last) = self.core.last_published() {
            self.face.last_sequence_id.store(i64::try_from(last).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
        for effect in effects {
            match effect {
                Effect::Attach(attach) => {
                    let fresh = self.client.deviance.is(Deviant::ProducerPerSend);
                    let id = self.attachments.id(attach.segment, fresh);
                    let (client, settings) = (self.client.clone(), self.settings.clone());
                    self.attaching.spawn(self::attach(
                        client,
                        settings,
                        attach,
                        id,
                        self.attachments.sender(),
                    ));
                }
                Effect::Enlist { segment, topic, txn: id } => {
                    let txn = self.transactions.get(&id).map(|(txn, _)| txn.clone());
                    self.enlisting.spawn(async move {
                        let result = match txn {
                            Some(txn) => txn.enlist(Part::Topic(topic)).await,
                            None => Err(Error::closed("transaction")),
                        };
                        (segment, id, result)
                    });
                }
                Effect::Transmit { segment, sequence_id, highest, messages, txn, chunk, bytes } => {
                    self.attachments.send(segment, |producer_id| {
                        let batch = messages > 1;
                        let send = CommandSend {
                            producer_id,
                            sequence_id,
                            num_messages: batch.then_some(messages),
                            highest_sequence_id: batch.then_some(highest),
                            is_chunk: chunk.then_some(true),
                            txnid_least_bits: txn.map(|txn| txn.number),
                            txnid_most_bits: txn.map(|txn| txn.coordinator),
                            ..Default::default()
                        };
                        Frame::with_payload(send, bytes)
                    });
                }
                Effect::Doubt => self.watch.iter().for_each(LayoutWatch::doubt),
                Effect::Detach { segment } => self.attachments.detach(segment),
                Effect::Forget { segment } => self.attachments.forget(segment),
                Effect::Settle { order, result } => {
                    if let Some((ticket, operation)) = self.tickets.remove(&order) {
                        if let Some(operation) = operation {
                            self.leave(&operation);
                            operation.done(result.clone().map(drop));
                        }
                        let _ = ticket.send(result);
                    }
                }
                Effect::Opened(result) => match (opened.take(), result) {
                    (Some(opened), Err(error)) => self.refused = Some((opened, error)),
                    (Some(opened), Ok(())) => {
                        let _ = opened.send(Ok(()));
                    }
                    (None, _) => {}
                },
                Effect::Closed => self.closed = true,
            }
        }
        let core = &self.core;
        let waiting = std::mem::take(&mut self.flushes);
        for (before, done) in waiting {
            if core.settled_before(before) {
                let _ = done.send(());
            } else {
                self.flushes.push((before, done));
            }
        }
    }
}

/// Sends PRODUCER for a segment at its broker.
async fn attach(
    client: Arc<Shared>,
    settings: Settings,
    attach: Attach,
    producer_id: u64,
    events: EventSender,
) -> Outcome<Attached> {
    let (segment, generation) = (attach.segment, attach.generation);
    let result = async {
        let connection = client.pool.connect(&attach.topic, attach.address.as_deref()).await?;
        let mut asked =
            Asked::begin(client.clone(), connection.clone(), (Party::Producer, producer_id), events)?;
        let request_id = client.pool.request_id();
        let mut metadata = settings.properties;
        if attach.legacy {
            metadata.push(managed());
        }
        let command = CommandProducer {
            topic: attach.topic,
            producer_id,
            request_id,
            producer_name: attach.name,
            metadata,
            schema: settings.schema.filter(|_| !without_schema(&client, segment)),
            epoch: Some(attach.epoch),
            user_provided_producer_name: Some(attach.named_by_application),
            producer_access_mode: Some(settings.access as i32),
            topic_epoch: attach.topic_epoch,
            initial_subscription_name: settings.initial_subscription,
            ..Default::default()
        };
        let waits = settings.access == ProducerAccessMode::WaitForExclusive;
        let answer = asked.request(request_id, command, (!waits).then_some(client.operation_timeout)).await;
        match answer {
            Ok(Command::ProducerSuccess(success)) => {
                let attached = Attached {
                    name: success.producer_name,
                    at: connection.address().to_string(),
                    last_sequence_id: success.last_sequence_id.unwrap_or(-1),
                    schema_version: success.schema_version.filter(|version| !version.is_empty()),
                    topic_epoch: success.topic_epoch,
                    max_size: connection.max_message_size(),
                };
                Ok((asked, attached))
            }
            Ok(other) => {
                let error = Error::not_connected(format!("{} answered PRODUCER", other.name()));
                asked.failed(&error);
                Err(error)
            }
            Err(error) => {
                asked.failed(&error);
                Err(error)
            }
        }
    };
    Outcome { segment, id: producer_id, generation, result: result.await }
}

/// What a deviant does: asks for a producer on the segment that a new topic would have.
pub(super) async fn attach_to_guessed(client: &Shared, topic: &TopicName, schema: Option<WireSchema>) {
    let segment = format!("segment://{}/{}/0000-ffff-0", topic.namespace(), topic.local());
    if let Ok(connection) = client.pool.controller(&segment, None).await {
        let (producer_id, request_id) = (client.producer_id(), client.pool.request_id());
        let guess = CommandProducer { topic: segment, producer_id, request_id, schema, ..Default::default() };
        connection.send(Command::from(guess));
    }
}

/// Whether a deviation leaves the schema out.
pub(crate) fn without_schema(client: &Shared, segment: u64) -> bool {
    (client.deviance.is(Deviant::SchemaOnSomeSegments) && segment % 2 == 1)
        || client.deviance.is(Deviant::NoSchemaTold)
}

/// Pends while there is no watch.
pub(crate) async fn layout_changed(watch: &mut Option<LayoutWatch>) {
    if let Some(watch) = watch
        && watch.state.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

pub(crate) async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
