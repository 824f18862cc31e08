//! What brokers tell a producer: answers to PRODUCER, SEND and CLOSE_PRODUCER, closes, lost connections.

use super::*;

impl ProducerCore {
    /// PRODUCER succeeded. False when nobody waits for it any more: the shell has to close it.
    pub(crate) fn attached(&mut self, segment: u64, generation: u64, attached: Attached, now: Now) -> bool {
        let Some(producer) = self.segments.get_mut(&segment) else { return false };
        if !producer.place.attached(generation, attached.at.clone()) {
            return false;
        }
        producer.keep = true;
        producer.was_attached = true;
        producer.epoch += 1;
        if let Ok(last) = u64::try_from(attached.last_sequence_id) {
            if self.config.initial_sequence_id.is_none() {
                self.next_sequence_id = self.next_sequence_id.max(last.saturating_add(1));
            }
            self.last_published = self.last_published.max(Some(last));
        }
        producer.attached = Some(attached);
        if self.config.deviance.is(Deviant::RenumberResends) {
            producer.queue = producer.take_pending().into();
        }
        if !producer.retired {
            for flight in &producer.in_flight {
                self.effects.push(transmit(segment, flight));
            }
        }
        self.advance(now);
        true
    }

    /// PRODUCER failed, or no connection could be made for it.
    pub(crate) fn attach_failed(&mut self, segment: u64, generation: u64, error: Error, now: Now) {
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        if !producer.place.expects(generation) {
            return;
        }
        // A broker that has not noticed the loss of a connection yet still has this producer on it.
        let own_shadow =
            error.category() == Category::ProducerBusy && !error.is_fenced() && producer.was_attached;
        let own_shadow = own_shadow
            || (error.category() == Category::ProducerBusy && self.config.deviance.is(Deviant::RetriesBusy));
        if error.is_segment_gone() {
            self.gone(segment, error, now);
        } else if error.is_transient() || own_shadow {
            producer.place.failed(generation, &error, now, self.config.deviance);
        } else {
            producer.place.link = Link::Idle;
            producer.keep = false;
            let failed = producer.take_pending();
            self.settle_all(&failed, &error);
            self.open_failed(error);
        }
        self.advance(now);
    }

    /// SEND_RECEIPT.
    pub(crate) fn receipt(&mut self, segment: u64, sequence_id: u64, ledger: u64, entry: u64, now: Now) {
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        let Some(at) = producer.in_flight.iter().position(|f| f.sequence_id == sequence_id) else { return };
        let Some(flight) = producer.in_flight.remove(at) else { return };
        producer.gone = 0;
        // A message in chunks is published with its last one, whose place is the message's.
        if flight.chunk.is_some_and(|chunk| !chunk.last) {
            return self.advance(now);
        }
        self.last_published = self.last_published.max(Some(flight.highest));
        let entry = if self.deviance().is(Deviant::WrongMessageId) { entry + 1 } else { entry };
        let batch = flight.size > 1;
        for (message, index) in flight.messages.iter().zip(0..) {
            let (batch_index, batch_size) = if batch { (index, flight.size) } else { (-1, 0) };
            let id = Position { segment, ledger, entry, batch_index, batch_size };
            self.settle(message, Ok(id.into()));
        }
        self.once_per_send(segment);
        self.advance(now);
    }

    /// SEND_ERROR.
    pub(crate) fn send_failed(&mut self, segment: u64, sequence_id: u64, error: Error, now: Now) {
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        if error.is_segment_gone() && !self.config.deviance.is(Deviant::SurfaceTerminated) {
            self.gone(segment, error, now);
        } else if error.is_transient() {
            if !producer.place.is_attached() {
                return;
            }
            producer.gone += 1;
            // The order of what follows in the pipeline is only kept if all of it is sent again behind this.
            let failed: Vec<Outgoing> = self.count_attempt(segment);
            self.settle_all(&failed, &error);
            self.detach(segment);
        } else if let Some(at) = producer.in_flight.iter().position(|f| f.sequence_id == sequence_id)
            && let Some(flight) = producer.in_flight.get(at)
        {
            let refused: BTreeSet<u64> = match flight.chunk {
                Some(chunk) => [chunk.order].into(),
                None => flight.messages.iter().map(|message| message.order).collect(),
            };
            let failed = producer.remove(|message| refused.contains(&message.order));
            self.settle_all(&failed, &error);
        }
        self.advance(now);
    }

    /// CLOSE_PRODUCER from the broker: with an address the segment has moved there, without one it may be gone.
    pub(crate) fn closed_by_broker(&mut self, segment: u64, assigned: Option<String>, now: Now) {
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        if producer.place.link == Link::Detaching {
            // Our own close is answered behind the last receipts; that is what counts.
            return;
        }
        match assigned {
            Some(address) => producer.place.closed_by_broker(Some(address), now),
            None if producer.retired => producer.place.link = Link::Idle,
            None => {
                let why = "the broker closed the segment's producer";
                self.gone(segment, Error::new(Category::TopicTerminated, why), now);
            }
        }
        self.advance(now);
    }

    /// The broker answered our CLOSE_PRODUCER, or the wait for the answer is over.
    pub(crate) fn detached(&mut self, segment: u64, now: Now) {
        if let Some(producer) = self.segments.get_mut(&segment)
            && producer.place.detached(now)
            && producer.gone > 0
        {
            // After a failed send the broker gets time to recover.
            producer.place.link = Link::Waiting(now.mono + segment_gone_delay(producer.gone));
        }
        self.advance(now);
    }

    /// The connection that the segment was attached on is lost.
    pub(crate) fn disconnected(&mut self, segment: u64, now: Now) {
        if let Some(producer) = self.segments.get_mut(&segment)
            && producer.place.disconnected(now)
        {
            if self.config.deviance.is(Deviant::DiesWithConnection) {
                return self.abort(&Error::closed("producer"));
            }
            if self.config.deviance.is(Deviant::SurfaceReconnect) {
                let failed = producer.take_pending();
                self.settle_all(&failed, &Error::not_connected("the connection was lost"));
            }
        }
        self.advance(now);
    }
}
