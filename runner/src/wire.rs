//! The journal, decoded into what scenarios ask about: producers, sends, subscriptions, watches.

use std::collections::BTreeMap;

use sim_broker::core::ids::{BrokerId, ConnId};
use sim_broker::core::journal::{Direction, Event, Record};
use stc_proto::pulsar::{
    CommandAck, CommandScalableTopicLookup, CommandSubscribe, KeyValue, MessageMetadata, ScalableTopicDag,
    ServerError,
};
use stc_proto::{Command, Entry, SegmentName, batch};

/// A view of the journal at one moment.
#[derive(Debug)]
pub struct Wire {
    records: Vec<Record>,
}

/// A PRODUCER command and what became of it.
#[derive(Debug, Clone)]
pub struct WireProducer {
    /// Number of the PRODUCER record.
    pub n: u64,
    /// Connection.
    pub conn: ConnId,
    /// The broker that it was sent to.
    pub broker: Option<BrokerId>,
    /// `producer_id`.
    pub id: u64,
    /// `topic`.
    pub topic: String,
    /// `producer_name`, if the client gave one.
    pub name: Option<String>,
    /// Whether PRODUCER_SUCCESS came.
    pub opened: bool,
    /// The error that came instead.
    pub refused: Option<ServerError>,
    /// Number of the record that ended it: CLOSE_PRODUCER from either side, or the loss of the connection.
    pub ended: Option<u64>,
    /// Whether the client sent CLOSE_PRODUCER.
    pub closed_by_client: bool,
}

/// A SEND and its messages.
#[derive(Debug, Clone)]
pub struct WireSend {
    /// Number of the record.
    pub n: u64,
    /// Time, in ms since the cluster started.
    pub t_ms: u64,
    /// Connection.
    pub conn: ConnId,
    /// Topic of its producer; empty when there is no such producer.
    pub topic: String,
    /// `producer_id`.
    pub producer: u64,
    /// `sequence_id`.
    pub sequence_id: u64,
    /// The entry's outer metadata.
    pub metadata: MessageMetadata,
    /// Keys and payloads of its messages, in order.
    pub messages: Vec<WireMessage>,
}

/// One message of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireMessage {
    /// Its key.
    pub key: Option<String>,
    /// Its payload. Of a compressed or encrypted entry the whole entry's.
    pub payload: Vec<u8>,
    /// Its properties.
    pub properties: Vec<KeyValue>,
    /// The application's own time for it, in ms since 1970; 0 for none.
    pub event_time: u64,
}

/// A SUBSCRIBE command and what became of it.
#[derive(Debug, Clone)]
pub struct WireSubscription {
    /// Number of the record.
    pub n: u64,
    /// Connection.
    pub conn: ConnId,
    /// The broker that it was sent to.
    pub broker: Option<BrokerId>,
    /// The command.
    pub command: CommandSubscribe,
    /// Whether SUCCESS came.
    pub opened: bool,
    /// Number of the record that ended it: CLOSE_CONSUMER from either side, or the loss of the connection.
    pub ended: Option<u64>,
    /// Whether the client sent CLOSE_CONSUMER or UNSUBSCRIBE.
    pub closed_by_client: bool,
}

/// A layout watch.
#[derive(Debug, Clone)]
pub struct WireWatch {
    /// Number of the SCALABLE_TOPIC_LOOKUP record.
    pub n: u64,
    /// Time, in ms since the cluster started.
    pub t_ms: u64,
    /// Connection.
    pub conn: ConnId,
    /// The command.
    pub command: CommandScalableTopicLookup,
    /// Layouts that came, with the numbers of their records.
    pub layouts: Vec<(u64, ScalableTopicDag)>,
    /// Number of the record that ended it: SCALABLE_TOPIC_CLOSE, or the loss of the connection.
    pub ended: Option<u64>,
    /// Whether the client sent SCALABLE_TOPIC_CLOSE.
    pub closed_by_client: bool,
}

impl Wire {
    /// A view of these records, oldest first.
    pub fn new(records: Vec<Record>) -> Wire {
        Wire { records }
    }

    /// All records.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Number of the newest record; 0 when there is none.
    pub fn last(&self) -> u64 {
        self.records.last().map_or(0, |r| r.n)
    }

    /// The commands that clients sent, in order.
    pub fn from_clients(&self) -> impl Iterator<Item = (&Record, ConnId, &Command)> {
        self.commands(Direction::ToBroker)
    }

    /// The commands that brokers sent, in order.
    pub fn from_brokers(&self) -> impl Iterator<Item = (&Record, ConnId, &Command)> {
        self.commands(Direction::ToClient)
    }

    fn commands(&self, direction: Direction) -> impl Iterator<Item = (&Record, ConnId, &Command)> {
        self.records
            .iter()
            .filter(move |r| r.direction == direction)
            .filter_map(|r| Some((r, r.conn?, &r.frame()?.command)))
    }

    /// Every PRODUCER command, in order.
    pub fn producers(&self) -> Vec<WireProducer> {
        let mut producers: Vec<WireProducer> = Vec::new();
        let mut requests: BTreeMap<(ConnId, u64), usize> = BTreeMap::new();
        for record in &self.records {
            let Some(conn) = record.conn else { continue };
            if matches!(record.event, Event::TcpClose { .. }) {
                let open = producers.iter_mut().filter(|p| p.conn == conn && p.ended.is_none());
                open.for_each(|p| p.ended = Some(record.n));
            }
            let Some(frame) = record.frame() else { continue };
            match (&frame.command, record.direction) {
                (Command::Producer(c), Direction::ToBroker) => {
                    requests.insert((conn, c.request_id), producers.len());
                    producers.push(WireProducer {
                        n: record.n,
                        conn,
                        broker: record.broker,
                        id: c.producer_id,
                        topic: c.topic.clone(),
                        name: c.producer_name.clone(),
                        opened: false,
                        refused: None,
                        ended: None,
                        closed_by_client: false,
                    });
                }
                (Command::ProducerSuccess(c), Direction::ToClient) => {
                    let asked = requests.get(&(conn, c.request_id)).and_then(|i| producers.get_mut(*i));
                    if let Some(producer) = asked {
                        producer.opened = c.producer_ready.unwrap_or(true);
                    }
                }
                (Command::Error(c), Direction::ToClient) => {
                    if let Some(producer) =
                        requests.get(&(conn, c.request_id)).and_then(|i| producers.get_mut(*i))
                    {
                        producer.refused = ServerError::try_from(c.error).ok();
                        producer.ended = Some(record.n);
                    }
                }
                (Command::CloseProducer(c), direction) => {
                    let open =
                        |p: &&mut WireProducer| p.conn == conn && p.id == c.producer_id && p.ended.is_none();
                    if let Some(producer) = producers.iter_mut().rev().find(open) {
                        producer.ended = Some(record.n);
                        producer.closed_by_client = direction == Direction::ToBroker;
                    }
                }
                _ => {}
            }
        }
        producers
    }

    /// Every SEND, in order.
    pub fn sends(&self) -> Vec<WireSend> {
        let mut topics: BTreeMap<(ConnId, u64), String> = BTreeMap::new();
        let mut sends = Vec::new();
        for (record, conn, command) in self.from_clients() {
            match command {
                Command::Producer(c) => {
                    topics.insert((conn, c.producer_id), c.topic.clone());
                }
                Command::Send(c) => {
                    let Some(entry) = record.entry() else { continue };
                    sends.push(WireSend {
                        n: record.n,
                        t_ms: record.t_ms,
                        conn,
                        topic: topics.get(&(conn, c.producer_id)).cloned().unwrap_or_default(),
                        producer: c.producer_id,
                        sequence_id: c.sequence_id,
                        messages: messages(&entry),
                        metadata: entry.metadata,
                    });
                }
                _ => {}
            }
        }
        sends
    }

    /// Every SUBSCRIBE, in order.
    pub fn subscriptions(&self) -> Vec<WireSubscription> {
        let mut found: Vec<WireSubscription> = Vec::new();
        for record in &self.records {
            let Some(conn) = record.conn else { continue };
            if matches!(record.event, Event::TcpClose { .. }) {
                let open = found.iter_mut().filter(|s| s.conn == conn && s.ended.is_none());
                open.for_each(|s| s.ended = Some(record.n));
            }
            let Some(frame) = record.frame() else { continue };
            let mut end = |consumer: u64, by_client: bool| {
                let open = |s: &&mut WireSubscription| {
                    s.conn == conn && s.command.consumer_id == consumer && s.ended.is_none()
                };
                if let Some(subscription) = found.iter_mut().rev().find(open) {
                    subscription.ended = Some(record.n);
                    subscription.closed_by_client = by_client;
                }
            };
            match (&frame.command, record.direction) {
                (Command::CloseConsumer(c), direction) => {
                    end(c.consumer_id, direction == Direction::ToBroker);
                }
                (Command::Unsubscribe(c), _) => end(c.consumer_id, true),
                (Command::Subscribe(c), Direction::ToBroker) => found.push(WireSubscription {
                    n: record.n,
                    conn,
                    broker: record.broker,
                    command: c.clone(),
                    opened: false,
                    ended: None,
                    closed_by_client: false,
                }),
                (Command::Success(c), Direction::ToClient) => {
                    let asked =
                        |s: &&mut WireSubscription| s.conn == conn && s.command.request_id == c.request_id;
                    if let Some(subscription) = found.iter_mut().find(asked) {
                        subscription.opened = true;
                    }
                }
                (Command::Error(c), Direction::ToClient) => {
                    let asked =
                        |s: &&mut WireSubscription| s.conn == conn && s.command.request_id == c.request_id;
                    if let Some(subscription) = found.iter_mut().find(asked) {
                        subscription.ended = Some(record.n);
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Every layout watch, in order.
    pub fn watches(&self) -> Vec<WireWatch> {
        let mut found: Vec<WireWatch> = Vec::new();
        for record in &self.records {
            let Some(conn) = record.conn else { continue };
            if matches!(record.event, Event::TcpClose { .. }) {
                let open = found.iter_mut().filter(|w| w.conn == conn && w.ended.is_none());
                open.for_each(|w| w.ended = Some(record.n));
            }
            let Some(frame) = record.frame() else { continue };
            match (&frame.command, record.direction) {
                (Command::ScalableTopicUpdate(c), Direction::ToClient) => {
                    if let (Some(watch), Some(dag)) = (open_watch(&mut found, conn, c.session_id), &c.dag) {
                        watch.layouts.push((record.n, dag.clone()));
                    }
                }
                (Command::ScalableTopicClose(c), direction) => {
                    if let Some(watch) = open_watch(&mut found, conn, c.session_id) {
                        watch.ended = Some(record.n);
                        watch.closed_by_client = direction == Direction::ToBroker;
                    }
                }
                (Command::ScalableTopicLookup(c), Direction::ToBroker) => found.push(WireWatch {
                    n: record.n,
                    t_ms: record.t_ms,
                    conn,
                    command: c.clone(),
                    layouts: Vec::new(),
                    ended: None,
                    closed_by_client: false,
                }),
                _ => {}
            }
        }
        found
    }

    /// Every ACK with the topic of its consumer, in order.
    pub fn acks(&self) -> Vec<(u64, String, CommandAck)> {
        let mut topics: BTreeMap<(ConnId, u64), String> = BTreeMap::new();
        let mut acks = Vec::new();
        for (record, conn, command) in self.from_clients() {
            match command {
                Command::Subscribe(c) => {
                    topics.insert((conn, c.consumer_id), c.topic.clone());
                }
                Command::Ack(c) => {
                    let topic = topics.get(&(conn, c.consumer_id)).cloned().unwrap_or_default();
                    acks.push((record.n, topic, c.clone()));
                }
                _ => {}
            }
        }
        acks
    }
}

/// The newest open watch of a session; session ids count on their connection.
fn open_watch(watches: &mut [WireWatch], conn: ConnId, session: u64) -> Option<&mut WireWatch> {
    watches.iter_mut().rev().find(|w| w.conn == conn && w.command.session_id == session && w.ended.is_none())
}

/// The messages of an entry. One that cannot be taken apart counts as one message.
pub fn messages(entry: &Entry) -> Vec<WireMessage> {
    let metadata = &entry.metadata;
    let plain = metadata.compression.unwrap_or(0) == 0 && metadata.encryption_keys.is_empty();
    // An entry is a batch when it says how many messages it has, be it one.
    let count = metadata.num_messages_in_batch.and_then(|n| usize::try_from(n).ok());
    if let (true, Some(count)) = (plain, count)
        && let Ok(members) = batch::read(entry.payload.clone(), count)
    {
        let message = |(m, payload): (stc_proto::pulsar::SingleMessageMetadata, bytes::Bytes)| WireMessage {
            event_time: m.event_time(),
            key: m.partition_key,
            payload: payload.to_vec(),
            properties: m.properties,
        };
        return members.into_iter().map(message).collect();
    }
    vec![WireMessage {
        key: metadata.partition_key.clone(),
        payload: entry.payload.to_vec(),
        properties: metadata.properties.clone(),
        event_time: metadata.event_time(),
    }]
}

/// The segment id in a segment topic's name; `None` for any other topic.
pub fn segment_of(topic: &str) -> Option<u64> {
    SegmentName::parse(topic).ok().map(|name| name.id)
}
