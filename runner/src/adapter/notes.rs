//! What an adapter was asked and what it answered, as notes in the journal of the broker side: between the frames that
//! followed from it, so that a diagram shows which call of the application led to what.

use serde::Serialize;
use stc_adapter_protocol::{ClientError, Operation};

use crate::client::Asked;
use crate::target::Broker;

/// How a note begins about what the client is to do.
pub(crate) const ASKED: &str = "client asked: ";

/// How a note begins about what the client reports.
pub(crate) const ANSWERED: &str = "client answered: ";

/// How much of the parameters or the result a note has, in characters.
const SHOWN: usize = 300;

/// Where a scenario's notes go to: the journal, and the list of what is not answered yet.
pub(super) struct Notes {
    pub(super) broker: Broker,
    pub(super) open: Asked,
}

impl Notes {
    pub(super) fn asked<O: Operation>(&self, id: u64, params: &O) {
        self.open.asked(id, O::METHOD);
        self.broker.mark(|| format!("{ASKED}{}{}", O::METHOD, shown(params)));
    }

    pub(super) fn answered<O: Operation>(&self, id: u64, outcome: &Result<O::Result, ClientError>) {
        self.open.answered(id, O::METHOD);
        self.broker.mark(|| match outcome {
            Ok(result) => format!("{ANSWERED}{}{}", O::METHOD, shown(result)),
            Err(error) => format!("{ANSWERED}{} failed: {error}", O::METHOD),
        });
    }
}

/// The value after a space; nothing for none.
fn shown(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if text == "null" || text == "{}" {
        return String::new();
    }
    let mut start = format!(" {}", text.chars().take(SHOWN).collect::<String>());
    if text.chars().nth(SHOWN).is_some() {
        start.push('…');
    }
    start
}
