//! The per-segment producers or consumers of one producer or consumer on their connections: ids, events, orderly
//! closing. The state machines know segments; brokers know ids on connections. This is where the two meet.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use stc_proto::{
    Command, Frame,
    pulsar::{CommandCloseConsumer, CommandCloseProducer},
};
use tokio::{runtime::Handle, sync::mpsc, task::JoinSet};

use crate::{
    client::Shared,
    connection::{Answer, Connection, Event, EventKind, EventSender, Party},
    core::{
        deviant::Deviant,
        error::{Category, Error},
    },
};

/// How long the answer to CLOSE_PRODUCER or CLOSE_CONSUMER is waited for.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// An attachment that stands.
struct Attachment {
    connection: Arc<Connection>,
    id: u64,
    /// The broker has closed it: there is nothing to close on the wire any more.
    closed_by_broker: bool,
}

/// Something that happened to a segment's attachment.
#[derive(Debug)]
pub(crate) enum SegmentEvent {
    /// The broker sent something.
    Frame { segment: u64, frame: Box<Frame> },
    /// The broker answered our close, or did not in time.
    Closed { segment: u64 },
    /// The connection is lost.
    Lost { segment: u64 },
}

/// See the module.
pub(crate) struct Attachments {
    client: Arc<Shared>,
    party: Party,
    /// The id of each segment's producer or consumer, the same through all its attachments.
    ids: BTreeMap<u64, u64>,
    segments: BTreeMap<u64, u64>,
    standing: BTreeMap<u64, Attachment>,
    sender: EventSender,
    events: mpsc::UnboundedReceiver<Event>,
    /// What came for an id whose attachment is not known to stand yet.
    early: Vec<Event>,
    closing: JoinSet<u64>,
}

impl Attachments {
    pub(crate) fn new(client: Arc<Shared>, party: Party) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        Attachments {
            client,
            party,
            ids: BTreeMap::new(),
            segments: BTreeMap::new(),
            standing: BTreeMap::new(),
            sender,
            events,
            early: Vec::new(),
            closing: JoinSet::new(),
        }
    }

    /// The id of a segment's producer or consumer; a new one with `fresh`.
    pub(crate) fn id(&mut self, segment: u64, fresh: bool) -> u64 {
        if let Some(id) = self.ids.get(&segment)
            && !fresh
        {
            return *id;
        }
        let id = match self.party {
            Party::Consumer | Party::Registration => self.client.consumer_id(),
            Party::Producer | Party::Session | Party::Coordinators | Party::Namespace => {
                self.client.producer_id()
            }
        };
        if let Some(before) = self.ids.insert(segment, id) {
            self.segments.remove(&before);
        }
        self.segments.insert(id, segment);
        id
    }

    /// Where the events of a new attachment go.
    pub(crate) fn sender(&self) -> EventSender {
        self.sender.clone()
    }

    /// An attachment stands now. Gives what came for it already.
    pub(crate) fn establish(&mut self, segment: u64, connection: Arc<Connection>) -> Vec<SegmentEvent> {
        let Some(id) = self.ids.get(&segment).copied() else { return Vec::new() };
        let (on, open) = (connection.id(), connection.is_open());
        self.standing.insert(segment, Attachment { connection, id, closed_by_broker: false });
        let early = std::mem::take(&mut self.early).into_iter();
        let (mine, rest) = early.partition(|event| {
            matches!(event.kind, EventKind::Frame { id: of, .. } if of == id && event.connection == on)
        });
        self.early = rest;
        let mine: Vec<Event> = mine;
        let mut events: Vec<SegmentEvent> = mine.into_iter().flat_map(|event| self.sort(event)).collect();
        if !open {
            // Its loss was told while nobody knew of the attachment.
            self.standing.remove(&segment);
            events.push(SegmentEvent::Lost { segment });
        }
        events
    }

    /// An attachment that nobody wants any more has come about: closes it. Its segment may be forgotten, or have a newer
    /// one.
    pub(crate) fn discard(&self, id: u64, connection: &Connection) {
        connection.unregister(self.party, id);
        connection.send(self.close_command(id));
    }

    /// Sends a frame on a segment's attachment; nowhere when there is none.
    pub(crate) fn send(&self, segment: u64, frame: impl FnOnce(u64) -> Frame) {
        if let Some(attachment) = self.standing.get(&segment) {
            attachment.connection.send(frame(attachment.id));
        }
    }

    /// Sends a request on a segment's attachment at once; its answer can be waited for later.
    ///
    /// # Errors
    /// `NotConnected` when there is no attachment.
    pub(crate) fn begin<C: Into<Command>>(
        &self,
        segment: u64,
        command: impl FnOnce(u64, u64) -> C,
    ) -> Result<Answer, Error> {
        let gone = || Error::not_connected("the segment is not attached any more");
        let attachment = self.standing.get(&segment).ok_or_else(gone)?;
        let request_id = self.client.pool.request_id();
        attachment.connection.begin(request_id, command(attachment.id, request_id))
    }

    /// Closes a segment's attachment; [`SegmentEvent::Closed`] tells that the broker has answered.
    pub(crate) fn detach(&mut self, segment: u64) {
        let Some(attachment) = self.standing.get(&segment) else {
            self.closing.spawn(async move { segment });
            return;
        };
        let (connection, id) = (attachment.connection.clone(), attachment.id);
        let request_id = self.client.pool.request_id();
        let command = close(self.party, id, request_id);
        self.closing.spawn(async move {
            if let Err(error) = connection.request(request_id, command, Some(CLOSE_TIMEOUT)).await {
                // A broker that closed it first does not know it any more.
                tracing::debug!(segment, %error, "closing a segment's attachment");
            }
            segment
        });
    }

    /// Lets go of a segment without waiting for anything.
    pub(crate) fn forget(&mut self, segment: u64) {
        let attachment = self.standing.remove(&segment);
        if let Some(id) = self.ids.remove(&segment) {
            self.segments.remove(&id);
            if let Some(attachment) = attachment {
                attachment.connection.unregister(self.party, id);
                if !attachment.closed_by_broker && attachment.connection.is_open() {
                    attachment.connection.send(self.close_command(id));
                }
            }
        }
    }

    fn close_command(&self, id: u64) -> Command {
        close(self.party, id, self.client.pool.request_id())
    }

    /// What happened next: the answer to a close, or something on any connection.
    pub(crate) async fn next(&mut self) -> Vec<SegmentEvent> {
        let closing = !self.closing.is_empty();
        tokio::select! {
            biased;
            event = self.events.recv() => event.map(|event| self.sort(event)).unwrap_or_default(),
            closed = self.closing.join_next(), if closing => match closed {
                Some(Ok(segment)) => {
                    if let Some(attachment) = self.standing.remove(&segment) {
                        attachment.connection.unregister(self.party, attachment.id);
                    }
                    vec![SegmentEvent::Closed { segment }]
                }
                _ => Vec::new(),
            },
        }
    }

    /// Finds the segments that an event concerns.
    fn sort(&mut self, event: Event) -> Vec<SegmentEvent> {
        match event.kind {
            EventKind::Lost => {
                let lost: Vec<u64> = self
                    .standing
                    .iter()
                    .filter(|(_, attachment)| attachment.connection.id() == event.connection)
                    .map(|(segment, _)| *segment)
                    .collect();
                let mut events = Vec::new();
                for segment in lost {
                    self.standing.remove(&segment);
                    events.push(SegmentEvent::Lost { segment });
                }
                self.early.retain(|early| early.connection != event.connection);
                events
            }
            EventKind::Frame { id, ref frame } => {
                let Some(segment) = self.segments.get(&id).copied() else { return Vec::new() };
                let Some(attachment) = self.standing.get_mut(&segment) else {
                    self.early.push(event);
                    return Vec::new();
                };
                if attachment.connection.id() != event.connection || attachment.id != id {
                    return Vec::new();
                }
                if matches!(frame.command, Command::CloseProducer(_) | Command::CloseConsumer(_)) {
                    attachment.closed_by_broker = true;
                }
                let EventKind::Frame { frame, .. } = event.kind else { return Vec::new() };
                vec![SegmentEvent::Frame { segment, frame }]
            }
        }
    }
}

impl Drop for Attachments {
    /// Whatever still stands is closed on the wire, best effort.
    fn drop(&mut self) {
        if self.client.deviance.is(Deviant::CloseLeavesProducers) {
            return;
        }
        let segments: Vec<u64> = self.standing.keys().copied().collect();
        for segment in segments {
            self.forget(segment);
        }
    }
}

fn close(party: Party, id: u64, request_id: u64) -> Command {
    match party {
        Party::Consumer | Party::Registration => {
            CommandCloseConsumer { consumer_id: id, request_id, ..Default::default() }.into()
        }
        Party::Producer | Party::Session | Party::Coordinators | Party::Namespace => {
            CommandCloseProducer { producer_id: id, request_id, ..Default::default() }.into()
        }
    }
}

/// The URL that a CLOSE_PRODUCER or CLOSE_CONSUMER names, if any.
pub(crate) fn assigned(command: &Command) -> Option<String> {
    let url = match command {
        Command::CloseProducer(close) => &close.assigned_broker_service_url,
        Command::CloseConsumer(close) => &close.assigned_broker_service_url,
        _ => &None,
    };
    url.clone().filter(|url| !url.is_empty())
}

/// An attachment that is asked for. One that is given up before anybody took it is taken back: the broker has granted it,
/// or may do so still.
pub(crate) struct Asked {
    client: Arc<Shared>,
    connection: Arc<Connection>,
    party: Party,
    id: u64,
    /// PRODUCER or SUBSCRIBE that is not answered.
    request_id: Option<u64>,
    settled: bool,
}

impl Asked {
    /// For a producer or consumer that is about to be asked for; its events go to `events`.
    ///
    /// # Errors
    /// `NotConnected` when the connection is lost.
    pub(crate) fn begin(
        client: Arc<Shared>,
        connection: Arc<Connection>,
        (party, id): (Party, u64),
        events: EventSender,
    ) -> Result<Self, Error> {
        connection.register(party, id, events)?;
        Ok(Asked { client, connection, party, id, request_id: None, settled: false })
    }

    /// Sends PRODUCER or SUBSCRIBE and waits for its answer; without `limit` as long as the connection lives.
    ///
    /// # Errors
    /// As for [`Connection::request`].
    pub(crate) async fn request(
        &mut self,
        request_id: u64,
        command: impl Into<Command>,
        limit: Option<Duration>,
    ) -> Result<Command, Error> {
        self.request_id = Some(request_id);
        let answer = self.connection.request(request_id, command, limit).await;
        self.request_id = None;
        answer
    }

    /// The broker granted it, and it is taken.
    pub(crate) fn taken(mut self) -> Arc<Connection> {
        self.settled = true;
        self.connection.clone()
    }

    /// It was not granted; after a time-out the broker may grant it still.
    pub(crate) fn failed(mut self, error: &Error) {
        self.settled = error.category() != Category::Timeout;
        self.connection.unregister(self.party, self.id);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        self.connection.unregister(self.party, self.id);
        let (party, id, request_id) = (self.party, self.id, self.client.pool.request_id());
        let command = close(party, id, request_id);
        let (Some(asked), Ok(runtime)) = (self.request_id, Handle::try_current()) else {
            self.connection.send(command);
            return;
        };
        let Ok(late) = self.connection.wait_on(asked, "PRODUCER or SUBSCRIBE") else { return };
        let Ok(closed) = self.connection.begin(request_id, command) else { return };
        // Nothing that this holds lets client or connection live longer.
        let limit = self.client.operation_timeout;
        let (client, connection) = (Arc::downgrade(&self.client), Arc::downgrade(&self.connection));
        runtime.spawn(async move {
            if granted_behind(closed, late, limit).await
                && let (Some(client), Some(connection)) = (client.upgrade(), connection.upgrade())
            {
                connection.send(close(party, id, client.pool.request_id()));
            }
        });
    }
}

/// Whether a broker answered a close, since it knew of nothing to close yet, and granted what was to be closed after that.
async fn granted_behind(closed: Answer, mut late: Answer, limit: Duration) -> bool {
    // An error says too that the broker is past it.
    let _ = closed.wait(Some(CLOSE_TIMEOUT)).await;
    !late.is_there() && late.wait(Some(limit)).await.is_ok()
}

/// How an attempt to attach a segment ended.
pub(crate) struct Outcome<T> {
    pub(crate) segment: u64,
    /// Of the producer or consumer.
    pub(crate) id: u64,
    pub(crate) generation: u64,
    pub(crate) result: Result<(Asked, T), Error>,
}
