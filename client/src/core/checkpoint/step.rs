//! What follows from layout, assignment and the state of things: which segments are read, from where, and when.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use stc_proto::{HashRange, pulsar::CommandMessage};

use super::{
    CheckpointCore, CheckpointDelivery, Effect, Own, Reading,
    position::Start,
    reader::{Asking, From, Reader},
};
use crate::core::{
    Link, Millis, Now,
    consumer::{Core, Life},
    deviant::Deviant,
    error::{Category, Error},
    layout::Segment as LayoutSegment,
};

impl Core for CheckpointCore {
    type How = Reading;
    type Delivery = CheckpointDelivery;
    type Own = Own;
    type Segment = Reader;

    fn life(&self) -> &Life<Reading, CheckpointDelivery, Own> {
        &self.life
    }

    fn segments(&self) -> &BTreeMap<u64, Reader> {
        &self.readers
    }

    fn parts(&mut self) -> (&mut Life<Reading, CheckpointDelivery, Own>, &mut BTreeMap<u64, Reader>) {
        (&mut self.life, &mut self.readers)
    }

    /// A topic that is another one is read from its beginning.
    fn on_another_topic(&mut self) {
        let resumed = std::mem::take(&mut self.resume).into_keys();
        let known: BTreeSet<u64> = resumed.chain(self.readers.keys().copied()).collect();
        known.into_iter().for_each(|segment| self.own(Own::Unmark { segment }));
        self.at_create.clear();
    }

    fn choose(&mut self) {
        let deviance = self.deviance();
        let layout = self.life.view.layout.clone();
        self.resume_what_is_left();
        let active_only = deviance.is(Deviant::CheckpointActiveOnly);
        let first_only = deviance.is(Deviant::ReadFirstPartition);
        let left_out = |segment: &LayoutSegment| first_only && segment.legacy.is_some() && segment.id > 0;
        let segments = layout.segments().filter(|s| (s.active || !active_only) && !left_out(s));
        let mut wanted: BTreeMap<u64, (String, Option<HashRange>)> =
            segments.map(|s| (s.id, (s.topic(&self.life.view.topic, deviance), Some(s.range)))).collect();
        if self.config.grouped && !deviance.is(Deviant::GroupReadsAll) {
            let assigned = self.life.assignment.iter().flat_map(|assignment| &assignment.segments);
            wanted = assigned.map(|(id, assigned)| (*id, (assigned.topic.clone(), assigned.range))).collect();
        }
        for (id, (topic, range)) in &wanted {
            if !self.readers.contains_key(id) {
                let from = self.origin(*id);
                let mut reader = Reader::new(topic.clone(), from, &mut self.life);
                reader.range = *range;
                if let From::Behind(Some(mark)) = from {
                    reader.skip = u32::from(deviance.is(Deviant::RestoreSkipsOne));
                    self.own(Own::Mark { segment: *id, mark });
                }
                self.readers.insert(*id, reader);
            }
        }
        for (id, reader) in &mut self.readers {
            if let Some(segment) = layout.segment(*id) {
                reader.active = segment.active;
                reader.range = Some(segment.range);
            } else if !self.config.grouped {
                reader.active = false;
            }
            reader.wanted = wanted.contains_key(id);
        }
    }

    fn step(&mut self, id: u64, now: Now) {
        let may_start = self.may_start(id);
        let receiver_queue = self.config.receiver_queue;
        let Some(reader) = self.readers.get_mut(&id) else { return };
        // Another member reads it from now on.
        if self.config.grouped && !reader.wanted && !reader.withdrawn && self.life.is_open() {
            reader.withdrawn = true;
            self.life.effects.push(Effect::Own(Own::Withdraw { segment: id }));
        }
        // Without a group nobody else reads it: what is still there of one that the layout lost is read to its end.
        let drains = !self.config.grouped
            && (reader.waiting > 0 || (reader.place.link == Link::Attached && !reader.is_finished()));
        let leaves = self.life.is_detaching() || reader.withdrawn || (!reader.wanted && !drains);
        match reader.place.link {
            Link::Attached if leaves => self.detach(id),
            Link::Attached => {
                let again = match reader.asking {
                    Asking::No => true,
                    Asking::UnderWay { .. } => false,
                    Asking::Later(until) => until <= now.mono,
                };
                if reader.has_question() && again {
                    reader.asking = Asking::UnderWay { sealed: !reader.active };
                    let generation = reader.place.generation;
                    self.life.effects.push(Effect::Own(Own::Ask { segment: id, generation }));
                }
                if reader.from != From::Latest && may_start && !reader.granted {
                    reader.granted = true;
                    reader.consumed = 0;
                    self.life.effects.push(Effect::Flow { segment: id, permits: receiver_queue });
                }
            }
            Link::Attaching | Link::Detaching => {}
            Link::Idle | Link::Waiting(_) if leaves => {
                let back = reader.withdrawn && reader.wanted && self.life.is_open();
                if self.life.view.layout.segment(id).is_none() && self.life.is_open() {
                    self.resume.remove(&id);
                    self.own(Own::Unmark { segment: id });
                }
                self.readers.remove(&id);
                self.life.effects.push(Effect::Forget { segment: id });
                if back {
                    self.choose();
                    self.locate();
                    self.step(id, now);
                }
            }
            Link::Idle if self.life.may_attach() => {
                if may_start || reader.from == From::Latest {
                    let how = Reading { from: reader.start(), number: self.life.rng.next() };
                    self.life.attach(id, &reader.topic, &mut reader.place, how);
                }
            }
            Link::Idle | Link::Waiting(_) => {}
        }
    }

    fn is_ready(&self) -> bool {
        let assigned = self.life.assignment.is_some() || !self.config.grouped;
        let ready = |(id, reader): (&u64, &Reader)| {
            let starts = reader.wanted && (reader.from == From::Latest || self.may_start(*id));
            !starts || (reader.place.is_attached() && reader.from != From::Latest)
        };
        assigned && self.readers.iter().all(ready)
    }

    fn on_attached(&mut self, segment: u64, _: Now) {
        let generation = self.readers.get(&segment).map(|reader| reader.place.generation);
        if self.deviance().is(Deviant::RestoreAsksBroker) {
            self.life
                .effects
                .extend(generation.map(|generation| Effect::Own(Own::Ask { segment, generation })));
        }
    }

    /// What is in the receive queue stays there: the next reader goes on behind it.
    fn on_lost(&mut self, segment: u64, broken: bool) {
        let deviance = self.deviance();
        let Some(reader) = self.readers.get_mut(&segment) else { return };
        reader.granted = false;
        reader.asking = Asking::No;
        // Lost again before all of it was read again, the part itself may not have come again.
        reader.incomplete = self.life.opener.first_part(segment).or(reader.incomplete);
        self.life.opener.forget(segment);
        if broken && deviance.is(Deviant::ReadersStartOver) {
            reader.from = From::Behind(None);
        }
    }

    fn forgives(&self, reader: &Reader, error: &Error) -> bool {
        error.category() == Category::NotFound && !reader.active
    }

    fn message(&mut self, segment: u64, command: &CommandMessage, payload: Bytes, now: Now) {
        self.arrived(segment, command, payload, now);
    }

    /// Readers acknowledge nothing: what will not become a message is forgotten.
    fn due(&mut self, now: Now) {
        self.life.opener.give_up(now.mono);
    }

    fn own_deadline(&self) -> Option<Millis> {
        let asking = self.readers.values().filter_map(|reader| match reader.asking {
            Asking::Later(until) if reader.place.is_attached() && reader.has_question() => Some(until),
            _ => None,
        });
        asking.min()
    }
}

impl CheckpointCore {
    /// Lets go of positions in segments that the layout has lost.
    fn resume_what_is_left(&mut self) {
        let layout = self.life.view.layout.clone();
        let pruned: Vec<u64> =
            self.resume.keys().copied().filter(|id| layout.segment(*id).is_none()).collect();
        for id in pruned {
            self.resume.remove(&id);
            if !self.readers.contains_key(&id) {
                self.own(Own::Unmark { segment: id });
            }
        }
    }

    /// Where the first reader of a segment starts.
    fn origin(&self, id: u64) -> From {
        let latest =
            self.config.start == Start::Latest && !self.deviance().is(Deviant::CheckpointStartsEarliest);
        let gained = self.config.grouped && !self.life.is_opening();
        match self.resume.get(&id) {
            None if gained && self.deviance().is(Deviant::GroupGainsAtLatest) => From::Latest,
            Some(mark) => From::Behind(Some(*mark)),
            None if latest && self.at_create.contains(&id) => From::Latest,
            None => From::Behind(None),
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
}
