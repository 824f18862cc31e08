//! The answers that a fault waits for which strikes after the broker acted.
//!
//! What a broker does cannot be seen from outside, but its answer shows that it is done. A command without an answer is
//! followed by a PING: connections keep the order of commands.

use sim_broker::core::cluster::about;
use sim_broker::core::fault::Strike;
use stc_proto::Command;

/// What shows that the broker acted on a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The answer to a request.
    Request(u64),
    /// The receipt of a send, or its error.
    Receipt { producer: u64, sequence: u64 },
    /// The next layout of a watch.
    Layout(u64),
    /// The end of the handshake.
    Connected,
    /// The PONG for a PING of the proxy.
    Pong,
}

impl Answer {
    /// What will answer a command.
    pub(super) fn to(command: &Command) -> Answer {
        match command {
            Command::Connect(_) => Answer::Connected,
            Command::Send(c) => Answer::Receipt { producer: c.producer_id, sequence: c.sequence_id },
            Command::ScalableTopicLookup(c) => Answer::Layout(c.session_id),
            Command::Ack(c) => c.request_id.map_or(Answer::Pong, Answer::Request),
            other => about::request_id(other).map_or(Answer::Pong, Answer::Request),
        }
    }

    /// Whether a command of the broker is it.
    pub(super) fn is(&self, command: &Command) -> bool {
        match (self, command) {
            (Answer::Connected, Command::Connected(_)) => true,
            (Answer::Receipt { producer, sequence }, Command::SendReceipt(c)) => {
                (*producer, *sequence) == (c.producer_id, c.sequence_id)
            }
            (Answer::Receipt { producer, sequence }, Command::SendError(c)) => {
                (*producer, *sequence) == (c.producer_id, c.sequence_id)
            }
            (Answer::Layout(session), Command::ScalableTopicUpdate(c)) => *session == c.session_id,
            (Answer::Request(id), Command::AckResponse(c)) => c.request_id == Some(*id),
            // These carry request ids of the broker's own.
            (_, Command::CloseProducer(_) | Command::CloseConsumer(_)) => false,
            (Answer::Request(id), other) => about::request_id(other) == Some(*id),
            _ => false,
        }
    }
}

/// A fault that waits for an answer.
#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) answer: Answer,
    pub(super) strike: Strike,
    /// The command's name.
    pub(super) command: &'static str,
    /// What the client is told instead, for an error.
    pub(super) error: Option<Command>,
}
