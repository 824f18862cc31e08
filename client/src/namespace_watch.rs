//! The watch of a namespace's topics on the wire (wire-protocol §7): opens it, first or again, and tells what comes.

use std::time::Duration;

use stc_proto::{
    Command,
    pulsar::{
        CommandGetTopicsOfNamespace, CommandWatchScalableTopics, CommandWatchScalableTopicsClose,
        CommandWatchScalableTopicsUpdate, KeyValue, command_watch_scalable_topics_update,
    },
};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    client::Shared,
    connection::{Connection, Event, EventKind, Party},
    core::{
        backoff::Backoff,
        deviant::Deviant,
        error::{Category, Error},
    },
    watching::{Updates, Watching},
};

/// What is watched.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    /// The watch's id, the same whenever it is opened.
    pub(crate) id: u64,
    /// `tenant/namespace`.
    pub(crate) namespace: String,
    /// Each has to be among a topic's properties.
    pub(crate) filters: Vec<(String, String)>,
}

/// What the broker tells.
#[derive(Debug)]
pub(crate) enum Update {
    /// All topics.
    Snapshot(Vec<String>),
    /// What changed.
    Diff { removed: Vec<String>, added: Vec<String> },
    /// The watch is no more.
    Lost(Error),
}

/// An open watch on one connection. Dropping it closes it on the wire.
pub(crate) struct NamespaceWatch {
    watching: Watching,
    events: Updates,
}

impl NamespaceWatch {
    /// Opens the watch and waits for the first snapshot.
    ///
    /// # Errors
    /// What the first update says (error-model §4), `NotSupported` without broker support, and what connecting fails with
    /// once the operation's time is over.
    pub(crate) async fn first(client: &Shared, watched: &Watched) -> Result<(Self, Vec<String>), Error> {
        let deadline = Instant::now() + client.operation_timeout;
        let mut backoff = Backoff::new(client.backoff, client.rng());
        loop {
            let error = match NamespaceWatch::establish(client, watched).await {
                Ok(established) => return Ok(established),
                Err(error) => error,
            };
            let pause = Duration::from_millis(backoff.delay());
            if !error.is_transient() || Instant::now() + pause >= deadline {
                return Err(error);
            }
            sleep(pause).await;
        }
    }

    async fn establish(client: &Shared, watched: &Watched) -> Result<(Self, Vec<String>), Error> {
        let mut watch = NamespaceWatch::open(client, watched, None).await?;
        if client.deviance.is(Deviant::ListsNamespace) {
            return Ok((watch, Vec::new()));
        }
        let until = Instant::now() + client.operation_timeout;
        loop {
            let late = |_| Error::timeout(format!("no broker told the topics of {}", watched.namespace));
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left, watch.next()).await.map_err(late)? {
                Update::Snapshot(topics) => return Ok((watch, topics)),
                Update::Lost(error) if client.deviance.is(Deviant::IgnoreNamespaceError) => {
                    tracing::debug!(%error, "ignoring that the watch is refused");
                    return Ok((watch, Vec::new()));
                }
                Update::Lost(error) => return Err(error),
                // Of what cannot be known yet.
                Update::Diff { .. } => {}
            }
        }
    }

    /// Opens the watch; with the hash of a set only a set that differs is told.
    ///
    /// # Errors
    /// `NotSupported` without broker support, and what connecting fails with.
    pub(crate) async fn open(
        client: &Shared,
        watched: &Watched,
        current_hash: Option<String>,
    ) -> Result<Self, Error> {
        let connection = client.pool.service().await?;
        if !connection.supports_scalable_topics() && !client.deviance.is(Deviant::IgnoreFeatureFlags) {
            let why = format!("{} does not advertise support for scalable topics", connection.address());
            return Err(Error::new(Category::NotSupported, why));
        }
        let close = CommandWatchScalableTopicsClose { watch_id: watched.id };
        let (watching, events) = Watching::begin(connection.clone(), Party::Namespace, watched.id, close)?;
        if client.deviance.is(Deviant::ListsNamespace) {
            list(client, &connection, watched);
        } else {
            connection.send(Command::from(CommandWatchScalableTopics {
                watch_id: watched.id,
                namespace: watched.namespace.clone(),
                property_filters: filters(client, watched),
                current_hash,
            }));
        }
        Ok(NamespaceWatch { watching, events })
    }

    /// What the broker tells next.
    pub(crate) async fn next(&mut self) -> Update {
        loop {
            let update = match self.events.recv().await {
                Some(Event { kind: EventKind::Frame { frame, .. }, .. }) => match frame.command {
                    Command::WatchScalableTopicsUpdate(update) => update,
                    _ => continue,
                },
                Some(Event { kind: EventKind::Lost, .. }) | None => {
                    return Update::Lost(Error::not_connected("the connection was lost"));
                }
            };
            if let Some(update) = self.sort(update) {
                return update;
            }
        }
    }

    fn sort(&mut self, update: CommandWatchScalableTopicsUpdate) -> Option<Update> {
        use command_watch_scalable_topics_update::Event;
        if let Some(error) = update.error {
            self.watching.end_silently();
            return Some(Update::Lost(Error::server(error, update.message.as_deref().unwrap_or_default())));
        }
        match update.event {
            Some(Event::Snapshot(snapshot)) => Some(Update::Snapshot(snapshot.topics)),
            Some(Event::Diff(diff)) => Some(Update::Diff { removed: diff.removed, added: diff.added }),
            None => {
                tracing::warn!("an update of a namespace that says nothing");
                None
            }
        }
    }
}

fn filters(client: &Shared, watched: &Watched) -> Vec<KeyValue> {
    let count = match client.deviance.is(Deviant::FirstFilterOnly) {
        true => 1,
        false => watched.filters.len(),
    };
    let filter = |(key, value): &(String, String)| KeyValue { key: key.clone(), value: value.clone() };
    let mut filters: Vec<KeyValue> = watched.filters.iter().take(count).map(filter).collect();
    if filters.is_empty() && client.deviance.is(Deviant::InventsFilter) {
        filters.push(KeyValue { key: "invented".into(), value: "yes".into() });
    }
    filters
}

/// What a deviant does: asks for the list of classic topics.
fn list(client: &Shared, connection: &Connection, watched: &Watched) {
    connection.send(Command::from(CommandGetTopicsOfNamespace {
        request_id: client.pool.request_id(),
        namespace: watched.namespace.clone(),
        ..Default::default()
    }));
}
