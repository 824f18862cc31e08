//! One assigned segment and its attachment.
//!
//! Everything that an attachment delivered, and how far its drain is, lives in [`Attachment`] and ends with it. The next
//! generation starts from nothing, so no earlier one can hold it up or let it go too soon. As long as an attachment
//! exists, draining or not, it is the one that acknowledgements go to.

use super::deliveries::Deliveries;
use crate::core::{
    Link, Millis,
    assignment::Mode,
    backoff::Backoff,
    consumer::{Life, Segment},
    deviant::{Deviance, Deviant},
    place::Place,
    transaction::acks::Reach,
};

/// What came of one SUBSCRIBE, from its beginning to the end of the attachment.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) mode: Mode,
    /// Nothing is delivered any more; what was has to be acknowledged, and the broker to accept it.
    pub(crate) draining: bool,
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
    pub(crate) place: Place,
    /// Present while the place is attaching, attached or detaching.
    pub(crate) attachment: Option<Attachment>,
    /// What earlier attachments delivered that is not acknowledged.
    pub(crate) late: Deliveries,
    pub(crate) acks_backoff: Backoff,
}

impl StreamSegment {
    pub(crate) fn new<H, D, O>(topic: String, life: &mut Life<H, D, O>) -> Self {
        StreamSegment {
            topic,
            wanted: None,
            place: life.place(),
            attachment: None,
            late: Deliveries::default(),
            acks_backoff: life.new_backoff(),
        }
    }

    /// The attachment of that generation, if it is still the current one.
    pub(crate) fn of(&mut self, generation: u64) -> Option<&mut Attachment> {
        self.attachment.as_mut().filter(|_| self.place.generation == generation)
    }

    /// Whether nothing that the application got of it is without the broker's acceptance, or in a transaction that is open.
    pub(crate) fn is_settled(&self, deviance: Deviance) -> bool {
        let pending = self.late.has_pending() && !deviance.is(Deviant::DrainCountsOpenTransactions);
        let attachment = self.attachment.as_ref();
        !pending && attachment.is_none_or(|attachment| attachment.deliveries.is_settled(deviance))
    }

    /// Whether it is attached as the assignment asks for.
    pub(crate) fn is_ready(&self) -> bool {
        let as_wanted =
            |attachment: &Attachment| !attachment.draining && self.wanted.as_ref() == Some(&attachment.mode);
        let stands = self.place.link == Link::Attached && self.attachment.as_ref().is_some_and(as_wanted);
        self.wanted.is_none() || stands
    }
}

impl Segment for StreamSegment {
    fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    fn reach(&self) -> Reach {
        match &self.attachment {
            Some(attachment) if self.place.is_attached() => {
                if attachment.mode.is_shared() {
                    Reach::Shared
                } else {
                    Reach::Alone
                }
            }
            _ => Reach::Away,
        }
    }

    fn retry_at(&self) -> Option<Millis> {
        self.place.retry_at().filter(|_| self.wanted.is_some())
    }
}
