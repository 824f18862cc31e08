//! What follows from layout, assignment and the state of things: which segments are read, from where, and when.

use std::collections::BTreeMap;

use stc_proto::HashRange;

use super::{
    CheckpointCore, Effect, Ending, Subscribe,
    position::Start,
    reader::{Asking, From, Reader},
};
use crate::core::{Link, Millis, Now, backoff::Backoff, deviant::Deviant};

impl CheckpointCore {
    /// Takes over from layout and assignment which segments are read.
    pub(super) fn choose(&mut self) {
        let deviance = self.config.deviance;
        let layout = self.view.layout.clone();
        let active_only = deviance.is(Deviant::CheckpointActiveOnly);
        let segments = layout.segments().filter(|segment| segment.active || !active_only);
        let mut wanted: BTreeMap<u64, (String, Option<HashRange>)> =
            segments.map(|s| (s.id, (s.topic(&self.view.topic, deviance), Some(s.range)))).collect();
        if self.config.grouped && !deviance.is(Deviant::GroupReadsAll) {
            let assigned = self.assignment.iter().flat_map(|assignment| &assignment.segments);
            wanted = assigned.map(|(id, assigned)| (*id, (assigned.topic.clone(), assigned.range))).collect();
        }
        for (id, (topic, range)) in &wanted {
            if !self.readers.contains_key(id) {
                let from = self.origin(*id);
                let (limits, rng) = (self.config.backoff, &mut self.rng);
                let since = self.next_generation;
                let mut reader = Reader::new(topic.clone(), from, since, Backoff::new(limits, rng.fork()));
                reader.range = *range;
                if let From::Behind(Some(mark)) = from {
                    reader.skip = u32::from(deviance.is(Deviant::RestoreSkipsOne));
                    self.effects.push(Effect::Mark { segment: *id, mark });
                }
                self.readers.insert(*id, reader);
            }
        }
        for (id, reader) in &mut self.readers {
            reader.address = self.view.brokers.get(id).cloned();
            if let Some(segment) = layout.segment(*id) {
                reader.active = segment.active;
                reader.range = Some(segment.range);
            } else if !self.config.grouped {
                reader.active = false;
            }
            reader.wanted = wanted.contains_key(id);
        }
    }

    /// Where the first reader of a segment starts.
    fn origin(&self, id: u64) -> From {
        let latest =
            self.config.start == Start::Latest && !self.deviance().is(Deviant::CheckpointStartsEarliest);
        let gained = self.config.grouped && self.opening.is_none();
        match self.resume.get(&id) {
            None if gained && self.deviance().is(Deviant::GroupGainsAtLatest) => From::Latest,
            Some(mark) => From::Behind(Some(*mark)),
            None if latest && self.at_create.contains(&id) => From::Latest,
            None => From::Behind(None),
        }
    }

    pub(super) fn advance(&mut self, now: Now) {
        if self.ending == Ending::Not && self.synced && self.registers() {
            let controller = self.view.controller.as_ref();
            self.effects.extend(self.session.step(controller, now).map(Effect::Register));
        }
        let ids: Vec<u64> = self.readers.keys().copied().collect();
        for id in ids {
            self.step(id, now);
        }
        let assigned = self.assignment.is_some() || !self.config.grouped;
        let ready = |(id, reader): (&u64, &Reader)| {
            let starts = reader.wanted && (reader.from == From::Latest || self.may_start(*id));
            !starts || (reader.link == Link::Attached && reader.from != From::Latest)
        };
        if self.opening.is_some() && assigned && self.readers.iter().all(ready) {
            self.opening = None;
            self.effects.push(Effect::Opened(Ok(())));
        }
        if self.ending == Ending::Detaching && self.readers.is_empty() {
            self.say_closed();
        }
    }

    /// Whether everything that came before a segment is read.
    pub(super) fn may_start(&self, id: u64) -> bool {
        if self.deviance().is(Deviant::ChildBeforeParent) {
            return true;
        }
        let Some(reader) = self.readers.get(&id) else { return true };
        // An ancestor that is not read here is pruned, or another member's, and the controller has seen to it.
        let mut read_here = self.readers.iter().filter(|(_, other)| !other.withdrawn);
        read_here.all(|(other_id, other)| other.is_finished() || !reader.comes_after(id, *other_id, other))
    }

    /// Attaches or detaches one reader, as layout, assignment and its parents ask for.
    fn step(&mut self, id: u64, now: Now) {
        let may_start = self.may_start(id);
        let receiver_queue = self.config.receiver_queue;
        let Some(reader) = self.readers.get_mut(&id) else { return };
        if let Link::Waiting(until) = reader.link
            && until <= now.mono
        {
            reader.link = Link::Idle;
        }
        // Another member reads it from now on.
        if self.config.grouped && !reader.wanted && !reader.withdrawn && self.ending == Ending::Not {
            reader.withdrawn = true;
            self.effects.push(Effect::Withdraw { segment: id });
        }
        // Without a group nobody else reads it: what is still there of one that the layout lost is read to its end.
        let drains = !self.config.grouped
            && (reader.waiting > 0 || (reader.link == Link::Attached && !reader.is_finished()));
        let leaves = self.ending == Ending::Detaching || reader.withdrawn || (!reader.wanted && !drains);
        match reader.link {
            Link::Attached if leaves => {
                reader.link = Link::Detaching;
                self.effects.push(Effect::Detach { segment: id });
            }
            Link::Attached => {
                let again = match reader.asking {
                    Asking::No => true,
                    Asking::UnderWay { .. } => false,
                    Asking::Later(until) => until <= now.mono,
                };
                if reader.has_question() && again {
                    reader.asking = Asking::UnderWay { sealed: !reader.active };
                    let generation = reader.generation;
                    self.effects.push(Effect::Ask { segment: id, generation });
                }
                if reader.from != From::Latest && may_start && !reader.granted {
                    reader.granted = true;
                    reader.consumed = 0;
                    self.effects.push(Effect::Flow { segment: id, permits: receiver_queue });
                }
            }
            Link::Attaching | Link::Detaching => {}
            Link::Idle | Link::Waiting(_) if leaves => {
                let back = reader.withdrawn && reader.wanted && self.ending == Ending::Not;
                if self.view.layout.segment(id).is_none() && self.ending == Ending::Not {
                    self.resume.remove(&id);
                    self.effects.push(Effect::Unmark { segment: id });
                }
                self.readers.remove(&id);
                self.effects.push(Effect::Forget { segment: id });
                if back {
                    self.choose();
                    self.step(id, now);
                }
            }
            Link::Idle if self.ending == Ending::Not && self.synced => {
                if may_start || reader.from == From::Latest {
                    self.attach(id);
                }
            }
            Link::Idle | Link::Waiting(_) => {}
        }
    }

    fn attach(&mut self, id: u64) {
        let Some(reader) = self.readers.get_mut(&id) else { return };
        reader.link = Link::Attaching;
        reader.generation = self.next_generation;
        self.next_generation += 1;
        let address = match (&reader.redirect, &reader.address, reader.lookup) {
            (Some(redirect), _, _) => Some(redirect.clone()),
            (None, Some(address), false) => Some(address.clone()),
            _ => None,
        };
        self.effects.push(Effect::Subscribe(Subscribe {
            segment: id,
            generation: reader.generation,
            topic: reader.topic.clone(),
            from: reader.from,
            address,
            fresh: reader.fresh,
            number: self.rng.next(),
        }));
    }

    pub(super) fn say_closed(&mut self) {
        if self.ending != Ending::Closed {
            self.ending = Ending::Closed;
            self.effects.push(Effect::Closed);
        }
    }
}

impl Reader {
    /// The attachment is over. What is in the receive queue stays there: the next reader goes on behind it.
    pub(super) fn lost(&mut self, until: Millis) {
        self.link = Link::Waiting(until);
        self.at = None;
        self.granted = false;
        self.asking = Asking::No;
    }
}
