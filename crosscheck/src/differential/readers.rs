//! The consumers of a sequence, and what they received and did not acknowledge.
//!
//! Which consumer of a queue gets a message is the broker's choice, so acknowledgements name messages by their order of
//! sending, and go to whoever of the subscription has received them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value as Json, json};
use stc_client::{Checkpoint, CheckpointConsumer, Error, Message, MessageId, QueueConsumer, StreamConsumer};
use tokio::sync::watch;

use super::op::Kind;
use super::trace::{Place, Seen};
use super::world::REST;

/// A consumer of any kind.
#[derive(Clone)]
pub(super) enum Consumer {
    /// Ordered, shared by key.
    Stream(StreamConsumer<String>),
    /// Not ordered.
    Queue(QueueConsumer<String>),
    /// Ordered, from a position that the application keeps.
    Checkpoint(CheckpointConsumer<String>),
}

impl Consumer {
    async fn receive(&self) -> Result<Message<String>, Error> {
        match self {
            Consumer::Stream(consumer) => consumer.receive().await,
            Consumer::Queue(consumer) => consumer.receive().await,
            Consumer::Checkpoint(consumer) => consumer.receive().await,
        }
    }

    async fn receive_within(&self, limit: Duration) -> Option<Message<String>> {
        let received = match self {
            Consumer::Stream(consumer) => consumer.receive_timeout(limit).await,
            Consumer::Queue(consumer) => consumer.receive_timeout(limit).await,
            Consumer::Checkpoint(consumer) => consumer.receive_timeout(limit).await,
        };
        received.ok().flatten()
    }

    /// Closes it.
    ///
    /// # Errors
    /// As the client says.
    pub(super) async fn close(&self) -> Result<(), Error> {
        match self {
            Consumer::Stream(consumer) => consumer.close().await,
            Consumer::Queue(consumer) => consumer.close().await,
            Consumer::Checkpoint(consumer) => consumer.close().await,
        }
    }

    async fn acknowledge(&self, id: &MessageId) -> Option<Result<(), Error>> {
        match self {
            Consumer::Stream(consumer) => Some(consumer.acknowledge_cumulative(id).await),
            Consumer::Queue(consumer) => Some(consumer.acknowledge(id).await),
            Consumer::Checkpoint(_) => None,
        }
    }
}

/// A consumer and what it received.
pub(super) struct Reader {
    /// The consumer.
    pub(super) consumer: Consumer,
    topic: u8,
    kind: Kind,
    subscription: u8,
    /// What it received and did not acknowledge, by number of sending.
    held: BTreeMap<u64, MessageId>,
    /// The last message of each `Receive` that brought something.
    ends: BTreeMap<u32, MessageId>,
}

impl Reader {
    /// A consumer that has not received anything.
    #[must_use]
    pub(super) fn new(consumer: Consumer, topic: u8, kind: Kind, subscription: u8) -> Reader {
        Reader { consumer, topic, kind, subscription, held: BTreeMap::new(), ends: BTreeMap::new() }
    }
}

/// All consumers of a sequence.
#[derive(Default)]
pub(super) struct Readers {
    readers: BTreeMap<u8, Reader>,
    /// How many `Receive` steps there were.
    receives: u32,
}

/// What a group received, with the consumer's number.
type Got = Vec<(u8, Message<String>)>;

impl Readers {
    /// Whether there is one of this number.
    #[must_use]
    pub(super) fn has(&self, number: u8) -> bool {
        self.readers.contains_key(&number)
    }

    /// What a group is to receive yet, and how often each.
    fn missing(&self, group: &str, due: &Seen) -> BTreeMap<String, usize> {
        let mut missing = due_to(group, due);
        for (number, reader) in self.readers.iter().filter(|(_, reader)| reader.kind == Kind::Queue) {
            if self.group(*number) == group {
                missing.retain(|value, _| !reader.held.keys().any(|held| *value == format!("m{held}")));
            }
        }
        missing
    }

    /// Whether anybody has a consumer of the topic.
    pub(super) fn read(&self, topic: u8) -> bool {
        self.readers.values().any(|reader| reader.topic == topic)
    }

    /// How many stream consumers a subscription has.
    #[must_use]
    pub(super) fn streams(&self, topic: u8, subscription: u8) -> usize {
        self.members_of(topic, Kind::Stream, subscription)
    }

    /// How many consumers of a kind a subscription has.
    #[must_use]
    pub(super) fn members_of(&self, topic: u8, kind: Kind, subscription: u8) -> usize {
        let of = |reader: &&Reader| {
            (reader.topic, reader.kind, reader.subscription) == (topic, kind, subscription)
        };
        self.readers.values().filter(of).count()
    }

    /// The subscriptions that have stream consumers, with their topics.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = (u8, u8)> {
        let streams = self.readers.values().filter(|reader| reader.kind == Kind::Stream);
        streams.map(|reader| (reader.topic, reader.subscription))
    }

    /// The topic and subscription of a stream consumer.
    pub(super) fn subscription_of(&self, consumer: u8) -> Option<(u8, u8)> {
        let reader = self.readers.get(&consumer).filter(|reader| reader.kind == Kind::Stream)?;
        Some((reader.topic, reader.subscription))
    }

    /// A stream consumer of a subscription.
    pub(super) fn stream_of(&self, topic: u8, subscription: u8) -> Option<u8> {
        let mut numbers = self.readers.keys().copied();
        numbers.find(|number| self.subscription_of(*number) == Some((topic, subscription)))
    }

    /// Whether the consumer's group holds anything that it did not acknowledge.
    pub(super) fn holds(&self, consumer: u8) -> bool {
        let members = self.members(consumer);
        members.iter().filter_map(|member| self.readers.get(member)).any(|reader| !reader.held.is_empty())
    }

    /// Adds one.
    pub(super) fn add(&mut self, number: u8, reader: Reader) {
        self.readers.insert(number, reader);
    }

    /// Takes one away.
    pub(super) fn remove(&mut self, number: u8) -> Option<Reader> {
        self.readers.remove(&number)
    }

    /// All receive until nothing comes any more, or until what is due has come. `None` without consumers.
    pub(super) async fn receive(&mut self, due: Option<&Seen>, patience: Duration) -> Option<Seen> {
        if self.readers.is_empty() {
            return None;
        }
        let mut groups: BTreeMap<String, Vec<(u8, Consumer)>> = BTreeMap::new();
        for (number, reader) in &self.readers {
            groups.entry(self.group(*number)).or_default().push((*number, reader.consumer.clone()));
        }
        let gathering = groups.into_iter().map(|(group, consumers)| {
            let due = due.map(|due| self.missing(&group, due));
            async move { (group, gather(consumers, due, patience).await) }
        });
        let gathered = join_all(gathering.collect::<Vec<_>>()).await;
        let mut seen = Seen::new();
        self.receives += 1;
        for (group, got) in gathered {
            self.note(&group, got, &mut seen);
        }
        self.note_queues(&mut seen);
        Some(seen)
    }

    fn note(&mut self, group: &str, got: Got, seen: &mut Seen) {
        let mut keys: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (consumer, message) in got {
            let value = message.value().unwrap_or_default();
            let number = value.trim_start_matches('m').parse().unwrap_or(u64::MAX);
            let Some(reader) = self.readers.get_mut(&consumer) else { continue };
            reader.held.insert(number, message.id().clone());
            reader.ends.insert(self.receives, message.id().clone());
            if reader.kind.is_ordered() {
                keys.entry(message.key().unwrap_or_default().to_owned()).or_default().push(number);
            }
        }
        for (key, mut numbers) in keys {
            if key.is_empty() {
                numbers.sort_unstable();
            }
            let values: Vec<String> = numbers.iter().map(|number| format!("m{number}")).collect();
            seen.insert(Place::Received { group: group.to_owned(), key }, json!(values));
        }
    }

    /// Of queues, what all consumers hold. How often each message came, and to whom, is the broker's choice: what one
    /// consumer leaves when it closes comes again to the others.
    fn note_queues(&self, seen: &mut Seen) {
        let mut held: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for (number, reader) in self.readers.iter().filter(|(_, reader)| reader.kind == Kind::Queue) {
            held.entry(self.group(*number)).or_default().extend(reader.held.keys());
        }
        for (group, numbers) in held {
            let values: Vec<String> = numbers.iter().map(|number| format!("m{number}")).collect();
            seen.insert(Place::Received { group, key: String::new() }, json!(values));
        }
    }

    /// Acknowledges one message of a queue. `None` when nothing was received.
    pub(super) async fn acknowledge(&mut self, consumer: u8, nth: u8) -> Option<Result<(), Error>> {
        let (holder, number) = self.nth(consumer, nth)?;
        let reader = self.readers.get_mut(&holder).filter(|reader| reader.kind == Kind::Queue)?;
        let id = reader.held.remove(&number)?;
        reader.consumer.acknowledge(&id).await
    }

    /// Acknowledges everything that the consumer's group received. `None` when that is nothing.
    pub(super) async fn acknowledge_all(&mut self, consumer: u8) -> Option<Result<(), Error>> {
        let mut result = None;
        for member in self.members(consumer) {
            let Some(reader) = self.readers.get_mut(&member) else { continue };
            let held = std::mem::take(&mut reader.held);
            let ids: Vec<MessageId> = match reader.kind {
                Kind::Queue => held.into_values().collect(),
                Kind::Stream => reader.ends.last_key_value().map(|(_, id)| id.clone()).into_iter().collect(),
                Kind::Checkpoint | Kind::Resumed => Vec::new(),
            };
            for id in ids {
                match reader.consumer.acknowledge(&id).await {
                    Some(Err(error)) => return Some(Err(error)),
                    other => result = other.or(result),
                }
            }
        }
        result
    }

    /// Acknowledges to the end of an earlier `Receive`. `None` when there was none.
    pub(super) async fn acknowledge_to(&mut self, consumer: u8, receive: u8) -> Option<Result<(), Error>> {
        let members = self.members(consumer);
        let mut receives: Vec<u32> = Vec::new();
        for reader in members.iter().filter_map(|member| self.readers.get(member)) {
            if reader.kind != Kind::Stream {
                return None;
            }
            receives.extend(reader.ends.keys());
        }
        receives.sort_unstable();
        receives.dedup();
        let chosen = *receives.get(usize::from(receive).checked_rem(receives.len())?)?;
        let mut result = None;
        for member in members {
            let Some(reader) = self.readers.get(&member) else { continue };
            let Some((_, id)) = reader.ends.range(..=chosen).next_back() else { continue };
            match reader.consumer.acknowledge(id).await {
                Some(Err(error)) => return Some(Err(error)),
                other => result = other.or(result),
            }
        }
        result
    }

    /// Acknowledges at one queue consumer what another has received. `None` without either.
    pub(super) async fn acknowledge_foreign(
        &self,
        consumer: u8,
        of: u8,
        nth: u8,
    ) -> Option<Result<(), Error>> {
        let (holder, number) = self.nth(of, nth)?;
        let id = self.readers.get(&holder)?.held.get(&number)?;
        let reader = self.readers.get(&consumer).filter(|reader| reader.kind == Kind::Queue)?;
        reader.consumer.acknowledge(id).await
    }

    /// Has one message of a queue delivered again. `None` when nothing was received.
    pub(super) async fn give_back(&mut self, consumer: u8, nth: u8) -> Option<Result<(), Error>> {
        let (holder, number) = self.nth(consumer, nth)?;
        let reader = self.readers.get_mut(&holder)?;
        let Consumer::Queue(queue) = &reader.consumer else { return None };
        let id = reader.held.remove(&number)?;
        Some(queue.negative_acknowledge(&id).await)
    }

    /// The topic and position of a checkpoint consumer.
    #[must_use]
    pub(super) fn checkpoint(&self, consumer: u8) -> Option<(u8, Checkpoint)> {
        let reader = self.readers.get(&consumer)?;
        match &reader.consumer {
            Consumer::Checkpoint(consumer) => Some((reader.topic, consumer.checkpoint())),
            _ => None,
        }
    }

    /// Who shares a subscription with a consumer, itself included; a checkpoint consumer shares with nobody.
    fn members(&self, consumer: u8) -> Vec<u8> {
        let Some(one) = self.readers.get(&consumer) else { return Vec::new() };
        let shares = |number: u8, other: &Reader| match one.kind {
            Kind::Stream | Kind::Queue => {
                (other.topic, other.kind, other.subscription) == (one.topic, one.kind, one.subscription)
            }
            Kind::Checkpoint | Kind::Resumed => number == consumer,
        };
        self.readers.iter().filter(|(n, other)| shares(**n, other)).map(|(n, _)| *n).collect()
    }

    fn group(&self, consumer: u8) -> String {
        match self.readers.get(&consumer) {
            Some(one) if matches!(one.kind, Kind::Stream | Kind::Queue) => {
                format!("s{} of t{}", one.subscription, one.topic)
            }
            _ => format!("K{consumer}"),
        }
    }

    /// The n-th message that a consumer's group holds, and who holds it.
    fn nth(&self, consumer: u8, nth: u8) -> Option<(u8, u64)> {
        let members = self.members(consumer);
        let held = members.iter().filter_map(|member| Some((*member, self.readers.get(member)?)));
        let mut held: Vec<(u64, u8)> = held
            .flat_map(|(member, reader)| reader.held.keys().map(move |number| (*number, member)))
            .collect();
        held.sort_unstable();
        held.dedup_by_key(|(number, _)| *number);
        let (number, holder) = *held.get(usize::from(nth).checked_rem(held.len())?)?;
        Some((holder, number))
    }
}

/// What a group is to receive, and how often each.
fn due_to(wanted: &str, due: &Seen) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (place, values) in due {
        if matches!(place, Place::Received { group, .. } if group == wanted) {
            let values = values.as_array().into_iter().flatten().filter_map(Json::as_str);
            values.for_each(|value| *counts.entry(value.to_owned()).or_insert(0) += 1);
        }
    }
    counts
}

/// Receives with all consumers of a group until nothing comes, or until what is due has come and nothing more is there.
async fn gather(
    consumers: Vec<(u8, Consumer)>,
    due: Option<BTreeMap<String, usize>>,
    patience: Duration,
) -> Got {
    let got = RefCell::new(Got::new());
    let Some(due) = due else {
        join_all(consumers.iter().map(|(number, consumer)| async {
            while let Some(message) = consumer.receive_within(REST).await {
                got.borrow_mut().push((*number, message));
            }
        }))
        .await;
        return got.into_inner();
    };
    let complete = watch::Sender::new(due.is_empty());
    let due = RefCell::new(due);
    let end = tokio::time::Instant::now() + patience;
    join_all(consumers.iter().map(|(number, consumer)| async {
        let mut completed = complete.subscribe();
        loop {
            let message = tokio::select! {
                biased;
                _ = completed.wait_for(|complete| *complete) => break,
                message = consumer.receive() => message,
                () = tokio::time::sleep_until(end) => break,
            };
            let Ok(message) = message else { break };
            let value = message.value().unwrap_or_default();
            got.borrow_mut().push((*number, message));
            let mut due = due.borrow_mut();
            if let Some(left) = due.get_mut(&value) {
                *left -= 1;
                if *left == 0 {
                    due.remove(&value);
                }
            }
            if due.is_empty() {
                complete.send_replace(true);
            }
        }
        while let Some(message) = consumer.receive_within(Duration::ZERO).await {
            got.borrow_mut().push((*number, message));
        }
    }))
    .await;
    got.into_inner()
}
