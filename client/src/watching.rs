//! What every watch is on its connection (wire-protocol §4, §7, §8): it gets what the broker tells, and is closed there when
//! it is dropped.

use std::sync::Arc;

use stc_proto::Command;
use tokio::sync::mpsc;

use crate::{
    connection::{Connection, Event, Party},
    core::error::Error,
};

/// What the broker tells a watch.
pub(crate) type Updates = mpsc::UnboundedReceiver<Event>;

/// A watch on one connection. Dropping it closes it on the wire.
pub(crate) struct Watching {
    connection: Arc<Connection>,
    party: Party,
    id: u64,
    close: Option<Box<Command>>,
}

impl Watching {
    /// Listens for a watch that is about to be opened; `close` is what closes it.
    ///
    /// # Errors
    /// `NotConnected` when the connection is lost already.
    pub(crate) fn begin(
        connection: Arc<Connection>,
        party: Party,
        id: u64,
        close: impl Into<Command>,
    ) -> Result<(Self, Updates), Error> {
        let (sender, updates) = mpsc::unbounded_channel();
        connection.register(party, id, sender)?;
        Ok((Watching { connection, party, id, close: Some(Box::new(close.into())) }, updates))
    }

    /// The broker keeps no watch that it refused: it is not closed on the wire.
    pub(crate) fn end_silently(&mut self) {
        self.close = None;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.connection.unregister(self.party, self.id);
        if let Some(close) = self.close.take().filter(|_| self.connection.is_open()) {
            self.connection.send(*close);
        }
    }
}
