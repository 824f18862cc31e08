//! The schemas that the messages of a topic were written with, asked of the broker once for each version.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use stc_proto::{Command, pulsar::CommandGetSchema};
use tokio::{sync::watch, time::Instant};

use super::SchemaInfo;
use crate::{
    client::Shared,
    core::{backoff::Backoff, error::Error},
    layout_watch::WatchState,
};

/// See the module. Versions are the topic's, whichever segment a message came from (data-model §6).
pub(crate) struct Writers {
    client: Arc<Shared>,
    layout: watch::Receiver<WatchState>,
    /// `None` for a version that the broker does not know.
    known: Mutex<BTreeMap<Bytes, Option<Arc<SchemaInfo>>>>,
    /// Held while the broker is asked, so that all who receive wait for one answer.
    asking: tokio::sync::Mutex<()>,
}

impl Writers {
    pub(crate) fn new(client: Arc<Shared>, layout: watch::Receiver<WatchState>) -> Self {
        Writers { client, layout, known: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Bytes, Option<Arc<SchemaInfo>>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The schema of a version, if the broker was asked for it; it may not have known it.
    pub(crate) fn get(&self, version: &Bytes) -> Option<Option<Arc<SchemaInfo>>> {
        self.known().get(version).cloned()
    }

    /// Asks for a version. A broker that cannot be reached is asked again for as long as an operation may take; then
    /// the version counts as unknown.
    pub(crate) async fn fetch(&self, segment: u64, version: Bytes) {
        let _asking = self.asking.lock().await;
        if self.get(&version).is_some() {
            return;
        }
        let until = Instant::now() + self.client.operation_timeout;
        let mut backoff = Backoff::new(self.client.backoff, self.client.rng());
        let schema = loop {
            let error = match self.ask(segment, version.clone()).await {
                Ok(schema) => break Some(Arc::new(schema)),
                Err(error) => error,
            };
            let pause = std::time::Duration::from_millis(backoff.delay());
            if !error.is_transient() || Instant::now() + pause > until {
                tracing::warn!(segment, version = ?version, %error, "the schema of a message is not known");
                break None;
            }
            tokio::time::sleep(pause).await;
        };
        self.known().insert(version, schema);
    }

    async fn ask(&self, segment: u64, version: Bytes) -> Result<SchemaInfo, Error> {
        let (topic, address) = {
            let state = self.layout.borrow();
            let (view, deviance) = (&state.view, self.client.deviance);
            // A segment that is pruned by now has no broker; the others know the topic's schemas as well.
            let of = view.layout.segment(segment).or_else(|| view.layout.active().next());
            let of = of.ok_or_else(|| Error::not_connected("the topic has no active segment"))?;
            (of.topic(&view.topic, deviance), view.brokers.get(&of.id).cloned())
        };
        let pool = &self.client.pool;
        let connection = match pool.connect(&topic, address.as_deref()).await {
            Ok(connection) => connection,
            // The layout may name a broker that is gone.
            Err(error) if error.is_transient() => pool.connect(&topic, None).await?,
            Err(error) => return Err(error),
        };
        let request_id = pool.request_id();
        let command = CommandGetSchema { request_id, topic, schema_version: Some(version) };
        let answer = connection.request(request_id, command, Some(self.client.operation_timeout)).await?;
        let Command::GetSchemaResponse(answer) = answer else {
            return Err(Error::not_connected(format!("{} answered GET_SCHEMA", answer.name())));
        };
        match (answer.error_code, answer.schema) {
            (Some(code), _) => Err(Error::server(code, answer.error_message.as_deref().unwrap_or_default())),
            (None, Some(schema)) => Ok(SchemaInfo::from_wire(schema)),
            (None, None) => Err(Error::not_connected("the answer to GET_SCHEMA has no schema")),
        }
    }
}

impl std::fmt::Debug for Writers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writers").finish_non_exhaustive()
    }
}
