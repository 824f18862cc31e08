//! What the program told, and the running figures that steps wait for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// One line of the program, see `adapters/java-soak`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The program takes commands.
    Ready,
    /// The producer is about to send a message.
    Sending {
        /// Its key.
        key: String,
        /// Its value, which no other message has.
        value: String,
    },
    /// A send has its result.
    Sent {
        /// The message's value.
        value: String,
        /// Why it failed, if it did.
        #[serde(default)]
        error: Option<String>,
    },
    /// The producer has stopped and every send has its result.
    Stopped,
    /// A consumer is subscribed.
    Opened {
        /// Its name.
        consumer: String,
    },
    /// A consumer is gone.
    Closed {
        /// Its name.
        consumer: String,
    },
    /// Where a checkpoint consumer stood when it left.
    Position {
        /// Its name.
        consumer: String,
        /// The serialized checkpoint, hex.
        position: String,
    },
    /// A consumer received a message.
    Received {
        /// Its name.
        consumer: String,
        /// The message's key.
        key: Option<String>,
        /// The message's value.
        value: String,
        /// Its redelivery count.
        redelivered: u32,
    },
    /// A consumer is about to acknowledge messages.
    Acknowledged {
        /// Its name.
        consumer: String,
        /// Their values.
        values: Vec<String>,
    },
    /// A consumer is about to give a message back.
    GivenBack {
        /// Its name.
        consumer: String,
        /// The message's value.
        value: String,
    },
    /// A call failed.
    Failed {
        /// Which.
        what: String,
        /// Why.
        error: String,
    },
}

/// Who shares what: each message is to reach one consumer of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The subscription of the stream consumers.
    Stream,
    /// The subscription of the queue consumers.
    Queue,
    /// The checkpoint consumer and who goes on from its checkpoint.
    Checkpoint,
    /// The consumer group of checkpoint consumers.
    Shared,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 4] = [Group::Stream, Group::Queue, Group::Checkpoint, Group::Shared];

    /// Whether the brokers keep its position.
    #[must_use]
    pub fn acknowledges(self) -> bool {
        matches!(self, Group::Stream | Group::Queue)
    }

    /// Whether messages of one key come in order.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        self != Group::Queue
    }
}

/// Everything that was told, in order.
#[derive(Debug, Default)]
pub struct Log {
    events: Vec<Event>,
    /// Which group each consumer is in.
    groups: BTreeMap<String, Group>,
    ready: bool,
    sending: usize,
    /// The sends without a result: which one each value is.
    under_way: BTreeMap<String, usize>,
    stops: usize,
    opened: BTreeSet<String>,
    closed: BTreeSet<String>,
    positions: BTreeMap<String, String>,
    received: BTreeMap<Group, BTreeSet<String>>,
    acknowledged: BTreeMap<Group, BTreeSet<String>>,
    trouble: Option<String>,
}

impl Log {
    /// Says which group a consumer is in; before it is opened.
    pub fn enrol(&mut self, consumer: &str, group: Group) {
        self.groups.insert(consumer.to_owned(), group);
    }

    /// Adds what was told.
    pub fn add(&mut self, event: Event) {
        match &event {
            Event::Ready => self.ready = true,
            Event::Sending { value, .. } => {
                self.under_way.insert(value.clone(), self.sending);
                self.sending += 1;
            }
            Event::Stopped => self.stops += 1,
            Event::Opened { consumer } => _ = self.opened.insert(consumer.clone()),
            Event::Closed { consumer } => _ = self.closed.insert(consumer.clone()),
            Event::Position { consumer, position } => {
                self.positions.insert(consumer.clone(), position.clone());
            }
            Event::Received { consumer, value, .. } => {
                if let Some(group) = self.group(consumer) {
                    self.received.entry(group).or_default().insert(value.clone());
                }
            }
            Event::Acknowledged { consumer, values } => {
                if let Some(group) = self.group(consumer) {
                    self.acknowledged.entry(group).or_default().extend(values.iter().cloned());
                }
            }
            Event::Failed { what, error } => self.fail(format!("{what}: {error}")),
            Event::Sent { value, error: Some(error) } => {
                self.fail(format!("the send of {value} failed: {error}"));
            }
            Event::Sent { value, error: None } => _ = self.under_way.remove(value),
            Event::GivenBack { .. } => {}
        }
        self.events.push(event);
    }

    /// Notes why waiting is of no use any more; the first reason counts.
    pub fn fail(&mut self, trouble: String) {
        self.trouble.get_or_insert(trouble);
    }

    /// Why waiting is of no use any more.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The group of a consumer.
    #[must_use]
    pub fn group(&self, consumer: &str) -> Option<Group> {
        self.groups.get(consumer).copied()
    }

    /// What was told.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Whether the program takes commands.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// How many messages the producer began to send.
    #[must_use]
    pub fn sending(&self) -> usize {
        self.sending
    }

    /// Whether the first sends, so many of them, have their results.
    #[must_use]
    pub fn is_sent(&self, first: usize) -> bool {
        self.under_way.values().all(|send| *send >= first)
    }

    /// How often the producer stopped.
    #[must_use]
    pub fn stops(&self) -> usize {
        self.stops
    }

    /// Whether a consumer is, or was, subscribed.
    #[must_use]
    pub fn is_opened(&self, consumer: &str) -> bool {
        self.opened.contains(consumer)
    }

    /// Whether a consumer has left.
    #[must_use]
    pub fn is_closed(&self, consumer: &str) -> bool {
        self.closed.contains(consumer)
    }

    /// The checkpoint that a consumer left with.
    #[must_use]
    pub fn position(&self, consumer: &str) -> Option<&str> {
        self.positions.get(consumer).map(String::as_str)
    }

    /// How many different messages a group received.
    #[must_use]
    pub fn received(&self, group: Group) -> usize {
        self.received.get(&group).map_or(0, BTreeSet::len)
    }

    /// How many different messages a group acknowledged.
    #[must_use]
    pub fn acknowledged(&self, group: Group) -> usize {
        self.acknowledged.get(&group).map_or(0, BTreeSet::len)
    }
}
