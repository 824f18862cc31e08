//! What follows from the assignment and the state of things: attaching, draining, detaching.

use std::collections::BTreeMap;

use bytes::Bytes;
use stc_proto::pulsar::CommandMessage;

use super::{
    Effect, Own, StreamCore, StreamDelivery,
    deliveries::Deliveries,
    segment::{Attachment, StreamSegment},
};
use crate::core::{
    Link, Millis, Now,
    assignment::{Assigned, Assignment, Mode},
    consumer::{Core, Life},
    deviant::Deviant,
    error::{Category, Error},
    transaction::TxnId,
};

impl Core for StreamCore {
    type How = Mode;
    type Delivery = StreamDelivery;
    type Own = Own;
    type Segment = StreamSegment;

    fn life(&self) -> &Life<Mode, StreamDelivery, Own> {
        &self.life
    }

    fn segments(&self) -> &BTreeMap<u64, StreamSegment> {
        &self.segments
    }

    fn parts(&mut self) -> (&mut Life<Mode, StreamDelivery, Own>, &mut BTreeMap<u64, StreamSegment>) {
        (&mut self.life, &mut self.segments)
    }

    fn on_another_topic(&mut self) {
        self.positions.clear();
        self.generations.clear();
    }

    fn choose(&mut self) {
        let deviance = self.deviance();
        if deviance.is(Deviant::NeverRegisters) {
            self.life.assignment = Some(self.everything());
        }
        let Some(assignment) = &self.life.assignment else { return };
        let mut wanted = assignment.segments.clone();
        if deviance.is(Deviant::SkipAssignedSegment) && wanted.len() > 1 {
            wanted.pop_last();
        }
        if deviance.is(Deviant::AttachUnassigned) {
            for (id, assigned) in self.everything().segments {
                wanted.entry(id).or_insert(assigned);
            }
        }
        for (id, Assigned { topic, mut mode, .. }) in wanted.clone() {
            if deviance.is(Deviant::AlwaysExclusive) {
                mode = Mode::Exclusive;
            }
            if deviance.is(Deviant::AlwaysShared) && mode == Mode::Exclusive {
                let ranges = self.life.view.layout.segment(id).map(|segment| segment.buckets.ranges());
                let range = |r: &stc_proto::HashRange| (i32::from(r.start()), i32::from(r.end()));
                mode = Mode::Shared(ranges.unwrap_or_default().iter().map(range).collect());
            }
            let life = &mut self.life;
            let segment = self.segments.entry(id).or_insert_with(|| StreamSegment::new(topic, life));
            let keeps = deviance.is(Deviant::NeverFlips) && segment.wanted.is_some();
            if !keeps {
                segment.wanted = Some(mode);
            }
            let draining = segment.attachment.as_ref().is_some_and(|attachment| attachment.draining);
            if deviance.is(Deviant::Resubscribes) && !draining {
                self.detach(id);
            }
        }
        if !deviance.is(Deviant::KeepDroppedSegments) {
            for (_, segment) in self.segments.iter_mut().filter(|(id, _)| !wanted.contains_key(id)) {
                segment.wanted = None;
            }
        }
    }

    /// Attaches, drains or detaches one segment.
    fn step(&mut self, id: u64, now: Now) {
        let deviance = self.deviance();
        let Some(segment) = self.segments.get_mut(&id) else { return };
        let closing = self.life.is_detaching();
        let generation = segment.place.generation;
        let settled = segment.is_settled(deviance);
        match (segment.place.link, &mut segment.attachment) {
            (Link::Idle | Link::Waiting(_), _) if closing || segment.wanted.is_none() => {
                self.segments.remove(&id);
                self.positions.remove(&id);
                self.generations.remove(&id);
                self.life.effects.push(Effect::Forget { segment: id });
            }
            (Link::Idle, _) if self.life.may_attach() => self.attach(id),
            // The close does not wait for acknowledgements: what is open comes again.
            (Link::Attached, _) if closing => self.detach(id),
            (Link::Attached, Some(attachment)) if attachment.draining && settled => {
                self.detach(id);
            }
            (Link::Attached, Some(attachment))
                if !attachment.draining && segment.wanted.as_ref() != Some(&attachment.mode) =>
            {
                let no_drain = match segment.wanted {
                    Some(_) => deviance.is(Deviant::NoDrainBeforeFlip),
                    None => deviance.is(Deviant::DropIgnoresDrain),
                };
                if no_drain {
                    return self.detach(id);
                }
                attachment.draining = true;
                if deviance.is(Deviant::AcksToDrain) {
                    self.want_everything();
                }
                // From here on nothing of it is received any more; what is told back as withdrawn is not waited for.
                if !deviance.is(Deviant::DeliverWhileDraining) {
                    self.own(Own::Withdraw { segment: id, generation });
                } else {
                    self.step(id, now);
                }
                self.acks_due = None;
                self.send_acks(now);
            }
            _ => {}
        }
    }

    fn is_ready(&self) -> bool {
        self.life.assignment.is_some() && self.segments.values().all(StreamSegment::is_ready)
    }

    fn on_attached(&mut self, segment: u64, now: Now) {
        let as_wanted = |stream: &StreamSegment| stream.wanted.is_some() && stream.is_ready();
        let stays = self.life.is_open() && self.segments.get(&segment).is_some_and(as_wanted);
        // Before the permits, so that the broker does not send what is acknowledged already.
        self.send_acks(now);
        // Not when it is let go again at once.
        if stays {
            self.life.effects.push(Effect::Flow { segment, permits: self.config.receiver_queue });
        }
    }

    /// What was delivered on the attachment and not acknowledged comes again, here or to another consumer.
    fn on_lost(&mut self, segment: u64, _: bool) {
        let Some(stream) = self.segments.get_mut(&segment) else { return };
        if let Some(attachment) = stream.attachment.take() {
            attachment.deliveries.outlive(&mut stream.late);
            self.life.opener.forget(segment);
            let generation = stream.place.generation;
            self.own(Own::Withdraw { segment, generation });
        }
    }

    fn forgives(&self, _: &StreamSegment, error: &Error) -> bool {
        match error.category() {
            // The former owner may still drain the segment.
            Category::ConsumerBusy => !self.deviance().is(Deviant::ConsumerBusySurfaces),
            // It can be drained and pruned between the assignment and the subscribe: the next assignment says so.
            Category::NotFound | Category::TopicTerminated => true,
            _ => false,
        }
    }

    fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, now: Now) {
        self.arrived(segment, command, payload, now);
    }

    fn on_transaction_end(&mut self, txn: TxnId, committed: bool, _: Now) {
        for segment in self.segments.values_mut() {
            let StreamSegment { attachment, late, .. } = segment;
            let exclusive = attachment.as_ref().is_some_and(|attachment| !attachment.mode.is_shared());
            let deliveries = attachment.as_mut().map(|attachment| &mut attachment.deliveries);
            match (committed, deliveries) {
                (true, deliveries) => {
                    deliveries.into_iter().for_each(|deliveries| deliveries.committed(txn));
                    late.committed(txn);
                }
                (false, Some(deliveries)) => deliveries.aborted(txn, exclusive, late),
                (false, None) => Deliveries::default().aborted(txn, exclusive, late),
            }
        }
    }

    /// Acknowledges nothing that the application has not acknowledged.
    fn before_close(&mut self, now: Now) {
        if self.deviance().is(Deviant::AcksOnClose) {
            self.want_everything();
        }
        self.acks_due = None;
        self.send_acks(now);
    }

    fn due(&mut self, now: Now) {
        if self.acks_due.is_some_and(|due| due <= now.mono) {
            self.acks_due = None;
        }
        for (segment, entry) in self.life.opener.give_up(now.mono) {
            let attachment = self.segments.get_mut(&segment).and_then(|stream| stream.attachment.as_mut());
            attachment.into_iter().for_each(|attachment| attachment.deliveries.give_up(&entry));
        }
        self.send_acks(now);
    }

    fn own_deadline(&self) -> Option<Millis> {
        let open = self.segments.values().filter(|stream| stream.place.is_attached());
        let acks = open.filter_map(|stream| stream.attachment.as_ref()).filter_map(|attachment| {
            let sends = attachment.deliveries.has_wanted() && self.acks_due.is_none();
            sends.then_some(attachment.acks_after)
        });
        acks.chain(self.acks_due).min()
    }
}

impl StreamCore {
    fn attach(&mut self, id: u64) {
        let Some(segment) = self.segments.get_mut(&id) else { return };
        let Some(mode) = segment.wanted.clone() else { return };
        segment.attachment = Some(Attachment {
            mode: mode.clone(),
            draining: false,
            deliveries: Deliveries::default(),
            consumed: 0,
            acks_after: 0,
        });
        self.life.attach(id, &segment.topic, &mut segment.place, mode);
    }

    /// All segments of the layout, for the deviants that do not ask the controller.
    fn everything(&self) -> Assignment {
        let layout = &self.life.view.layout;
        let assigned = |segment: &crate::core::layout::Segment| {
            let topic = segment.topic(&self.life.view.topic, self.deviance());
            (segment.id, Assigned { topic, mode: Mode::Exclusive, range: None })
        };
        Assignment { epoch: layout.epoch, segments: layout.segments().map(assigned).collect() }
    }
}
