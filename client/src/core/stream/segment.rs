//! One assigned segment and its attachment.
//!
//! Everything that an attachment delivered, and how far its drain is, lives in [`Attachment`] and ends with it. The next
//! generation starts from nothing, so no earlier one can hold it up or let it go too soon. As long as an attachment
//! exists, draining or not, it is the one that acknowledgements go to.

use super::deliveries::Deliveries;
use crate::core::{Millis, assignment::Mode, backoff::Backoff};

/// How far an attachment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// SUBSCRIBE is under way.
    Attaching,
    /// Messages come.
    Attached,
    /// Nothing is delivered any more; what was has to be acknowledged, and the broker to accept it.
    Draining,
    /// CLOSE_CONSUMER is under way.
    Detaching,
}

/// One SUBSCRIBE and what came of it.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// Unique within the consumer.
    pub(crate) generation: u64,
    pub(crate) mode: Mode,
    pub(crate) phase: Phase,
    /// The broker's URL once attached.
    pub(crate) at: Option<String>,
    pub(crate) deliveries: Deliveries,
    /// Messages taken out of the receive queue since permits were granted last.
    pub(crate) consumed: u32,
    /// Acknowledgements that the broker did not accept are not sent again before this time.
    pub(crate) acks_after: Millis,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct StreamSegment {
    pub(crate) topic: String,
    /// The mode that the assignment asks for; `None` once the segment has left it.
    pub(crate) wanted: Option<Mode>,
    /// The broker that the layout names.
    pub(crate) address: Option<String>,
    /// The broker that the former one named when it closed the attachment.
    pub(crate) redirect: Option<String>,
    /// Ask for the owner instead of trusting the layout.
    pub(crate) lookup: bool,
    pub(crate) attachment: Option<Attachment>,
    /// No SUBSCRIBE before this time.
    pub(crate) not_before: Millis,
    /// What earlier attachments delivered that is not acknowledged.
    pub(crate) late: Deliveries,
    /// Whether the next SUBSCRIBE is for a new consumer, not for the one that lost its connection.
    pub(crate) fresh: bool,
    pub(crate) backoff: Backoff,
    pub(crate) acks_backoff: Backoff,
}

impl StreamSegment {
    pub(crate) fn new(topic: String, backoff: Backoff, acks_backoff: Backoff) -> Self {
        StreamSegment {
            topic,
            wanted: None,
            address: None,
            redirect: None,
            lookup: false,
            attachment: None,
            not_before: 0,
            late: Deliveries::default(),
            fresh: false,
            backoff,
            acks_backoff,
        }
    }

    pub(crate) fn phase(&self) -> Option<Phase> {
        self.attachment.as_ref().map(|attachment| attachment.phase)
    }

    /// The attachment of that generation, if it is still the current one.
    pub(crate) fn of(&mut self, generation: u64) -> Option<&mut Attachment> {
        self.attachment.as_mut().filter(|attachment| attachment.generation == generation)
    }

    /// Whether it is attached as the assignment asks for.
    pub(crate) fn is_ready(&self) -> bool {
        match (&self.wanted, &self.attachment) {
            (Some(wanted), Some(attachment)) => {
                attachment.phase == Phase::Attached && attachment.mode == *wanted
            }
            (None, _) => true,
            (Some(_), None) => false,
        }
    }
}
