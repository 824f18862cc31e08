//! What follows from the assignment and the state of things: registering, attaching, draining, detaching.

use super::{
    Effect, Ending, StreamCore, Subscribe,
    segment::{Attachment, Phase, StreamSegment},
};
use crate::core::{
    Now,
    assignment::{Assigned, Assignment, Mode},
    backoff::Backoff,
    deviant::Deviant,
    stream::deliveries::Deliveries,
};

impl StreamCore {
    /// Takes over from the assignment which segments are wanted, and how.
    pub(super) fn apply_assignment(&mut self) {
        let Some(assignment) = &self.assignment else { return };
        let deviance = self.config.deviance;
        let mut wanted = assignment.segments.clone();
        if deviance.is(Deviant::SkipAssignedSegment) && wanted.len() > 1 {
            wanted.pop_last();
        }
        if deviance.is(Deviant::AttachUnassigned) {
            for segment in self.view.layout.segments() {
                let topic = segment.topic(&self.view.topic, deviance);
                let mode = Mode::Exclusive;
                wanted.entry(segment.id).or_insert(Assigned { topic, mode, range: None });
            }
        }
        for (id, Assigned { topic, mut mode, .. }) in wanted.clone() {
            if deviance.is(Deviant::AlwaysExclusive) {
                mode = Mode::Exclusive;
            }
            if deviance.is(Deviant::AlwaysShared) && mode == Mode::Exclusive {
                let ranges = self.view.layout.segment(id).map(|segment| segment.buckets.ranges());
                let range = |r: &stc_proto::HashRange| (i32::from(r.start()), i32::from(r.end()));
                mode = Mode::Shared(ranges.unwrap_or_default().iter().map(range).collect());
            }
            let (limits, rng) = (self.config.backoff, &mut self.rng);
            let segment = self.segments.entry(id).or_insert_with(|| {
                StreamSegment::new(topic, Backoff::new(limits, rng.fork()), Backoff::new(limits, rng.fork()))
            });
            segment.address = self.view.brokers.get(&id).cloned();
            let keeps = deviance.is(Deviant::NeverFlips) && segment.wanted.is_some();
            if !keeps {
                segment.wanted = Some(mode);
            }
            if let Some(attachment) = &mut segment.attachment
                && attachment.phase == Phase::Attached
                && deviance.is(Deviant::Resubscribes)
            {
                attachment.phase = Phase::Detaching;
                self.effects.push(Effect::Detach { segment: id });
            }
        }
        if !deviance.is(Deviant::KeepDroppedSegments) {
            for (_, segment) in self.segments.iter_mut().filter(|(id, _)| !wanted.contains_key(id)) {
                segment.wanted = None;
            }
        }
    }

    /// For the deviant that does not register.
    pub(super) fn assign_everything(&mut self) {
        let assigned = |segment: &crate::core::layout::Segment| {
            let topic = segment.topic(&self.view.topic, self.config.deviance);
            (segment.id, Assigned { topic, mode: Mode::Exclusive, range: None })
        };
        let segments = self.view.layout.segments().map(assigned).collect();
        self.assignment = Some(Assignment { epoch: self.view.layout.epoch, segments });
        self.apply_assignment();
    }

    /// Does what the state of things asks for.
    pub(super) fn advance(&mut self, now: Now) {
        let registers = !self.config.deviance.is(Deviant::NeverRegisters);
        if self.ending == Ending::Not && self.synced && registers {
            let controller = self.view.controller.as_ref();
            self.effects.extend(self.session.step(controller, now).map(Effect::Register));
        }
        let ids: Vec<u64> = self.segments.keys().copied().collect();
        for id in ids {
            self.step(id, now);
        }
        let ready = self.assignment.is_some() && self.segments.values().all(StreamSegment::is_ready);
        if self.opening.is_some() && ready {
            self.opening = None;
            self.effects.push(Effect::Opened(Ok(())));
        }
        if self.ending == Ending::Detaching && self.segments.is_empty() {
            self.say_closed();
        }
    }

    /// Attaches, drains or detaches one segment.
    fn step(&mut self, id: u64, now: Now) {
        let deviance = self.config.deviance;
        let Some(segment) = self.segments.get_mut(&id) else { return };
        let closing = self.ending == Ending::Detaching;
        let Some(attachment) = &mut segment.attachment else {
            if closing || segment.wanted.is_none() {
                self.segments.remove(&id);
                self.positions.remove(&id);
                self.generations.remove(&id);
                self.effects.push(Effect::Forget { segment: id });
            } else if self.ending == Ending::Not && self.synced && segment.not_before <= now.mono {
                self.attach(id);
            }
            return;
        };
        let keep = segment.wanted.as_ref() == Some(&attachment.mode);
        match attachment.phase {
            // The close does not wait for acknowledgements: what is open comes again.
            Phase::Attached | Phase::Draining if closing => self.detach(id),
            Phase::Attached if !keep => {
                let no_drain = match segment.wanted {
                    Some(_) => deviance.is(Deviant::NoDrainBeforeFlip),
                    None => deviance.is(Deviant::DropIgnoresDrain),
                };
                if no_drain {
                    return self.detach(id);
                }
                attachment.phase = Phase::Draining;
                let generation = attachment.generation;
                if deviance.is(Deviant::AcksToDrain) {
                    self.want_everything();
                }
                // From here on nothing of it is received any more; what is told back as withdrawn is not waited for.
                if !deviance.is(Deviant::DeliverWhileDraining) {
                    self.effects.push(Effect::Withdraw { segment: id, generation });
                } else {
                    self.step(id, now);
                }
                self.acks_due = None;
                self.send_acks(now);
            }
            Phase::Draining if attachment.deliveries.is_settled(deviance) => self.detach(id),
            Phase::Attaching | Phase::Attached | Phase::Draining | Phase::Detaching => {}
        }
    }

    fn detach(&mut self, id: u64) {
        if let Some(attachment) = self.segments.get_mut(&id).and_then(|segment| segment.attachment.as_mut()) {
            attachment.phase = Phase::Detaching;
            self.effects.push(Effect::Detach { segment: id });
        }
    }

    fn attach(&mut self, id: u64) {
        let Some(segment) = self.segments.get_mut(&id) else { return };
        let Some(mode) = segment.wanted.clone() else { return };
        let generation = self.next_generation;
        self.next_generation += 1;
        segment.attachment = Some(Attachment {
            generation,
            mode: mode.clone(),
            phase: Phase::Attaching,
            at: None,
            deliveries: Deliveries::default(),
            consumed: 0,
            acks_after: 0,
        });
        let address = match (&segment.redirect, &segment.address, segment.lookup) {
            (Some(redirect), _, _) => Some(redirect.clone()),
            (None, Some(address), false) => Some(address.clone()),
            _ => None,
        };
        self.effects.push(Effect::Subscribe(Subscribe {
            segment: id,
            generation,
            topic: segment.topic.clone(),
            mode,
            address,
            fresh: segment.fresh,
        }));
    }
}
