//! What a call wants to happen outside the state machine.

use stc_proto::Frame;

use super::ids::ConnId;

/// One thing to do. Effects are carried out in the order in which they were appended.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all effects are frames; a box for each would cost more"
)]
pub enum Effect {
    /// Send a frame to a client.
    Send(ConnId, Frame),
    /// Close a connection, after what was sent on it before. The reason goes to the journal, not to the wire.
    Close(ConnId, String),
}

/// The list that core code appends its effects to.
#[derive(Debug, Default)]
pub struct Effects {
    list: Vec<Effect>,
}

impl Effects {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a frame, or a bare command, to a client.
    pub fn send(&mut self, conn: ConnId, frame: impl Into<Frame>) {
        self.list.push(Effect::Send(conn, frame.into()));
    }

    /// Closes a connection. The owner of the connection reports back when that has happened, as with any lost one.
    pub fn close(&mut self, conn: ConnId, reason: impl Into<String>) {
        self.list.push(Effect::Close(conn, reason.into()));
    }

    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many effects there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Takes all effects out, oldest first; the list keeps its memory.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect> + '_ {
        self.list.drain(..)
    }

    /// The effects, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Effect> {
        self.list.iter()
    }
}
