//! Controllers at work: registrations of ordered consumers, assignments, grace periods, drained parents.

use std::collections::BTreeMap;

use stc_proto::{Layout, SegmentName, TopicName, name::Domain, pulsar::*};

use super::{Cluster, flow::Due, scalable::Scalable};
use crate::core::{
    controller::{
        assignment::{GroupKind, Share},
        groups::{GroupKey, Look, Progress},
    },
    ids::{BrokerId, ConnId, ConsumerKey, Millis},
    journal::{Direction, Event},
    profile::ControllerElection,
    topic::Reader,
};

/// A registration, as its connection knows it.
#[derive(Debug, Clone)]
pub(super) struct Registration {
    pub(super) topic: TopicName,
    key: GroupKey,
    name: String,
}

/// A registered consumer and what it is to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The subscription or checkpoint group.
    pub group: GroupKey,
    /// The consumer's name.
    pub consumer: String,
    /// Its connection and consumer id; `None` in the grace period.
    pub session: Option<ConsumerKey>,
    /// What it is to read.
    pub shares: Vec<Share>,
}

impl Cluster {
    // ---- Commands ----

    /// SCALABLE_TOPIC_SUBSCRIBE. Every failure is an UnknownError, as in 5.0.1. A name that is registered already
    /// keeps its registration, and this session takes it over.
    pub(super) fn scalable_subscribe(
        &mut self,
        conn: ConnId,
        command: CommandScalableTopicSubscribe,
        now: Millis,
    ) {
        let Some(broker) = self.conns.get(&conn).map(|c| c.broker) else { return };
        let topic = TopicName::parse(&command.topic).ok().filter(|topic| self.scalable.contains_key(topic));
        let Some(topic) = topic else {
            // Of a migrated topic, 5.0.1 finds the controller by the classic name too, and not that it leads.
            let scalable = TopicName::parse(&command.topic)
                .ok()
                .filter(|topic| topic.domain() == Domain::Persistent)
                .and_then(|topic| self.scalable.get(&topic.with_domain(Domain::Topic)));
            let migrated = scalable.is_some_and(|s| s.layout.segments().any(|s| s.legacy_topic.is_some()));
            let message = if migrated {
                format!("This broker is not the leader for topic: {}", command.topic)
            } else {
                format!("Failed to initialize controller for {}", command.topic)
            };
            return self.refuse(conn, &command.into(), ServerError::UnknownError, &message);
        };
        // The first broker that is asked leads, where nobody does yet.
        if !self.need_controller(&topic, Some(broker), now) || self.owner(&topic) != Some(broker) {
            let message = format!("This broker is not the leader for topic: {}", command.topic);
            return self.refuse(conn, &command.into(), ServerError::UnknownError, &message);
        }
        let kind = match command.consumer_type() {
            ScalableConsumerType::Stream => GroupKind::Stream,
            ScalableConsumerType::Checkpoint => GroupKind::Checkpoint,
        };
        let session = ConsumerKey { conn, id: command.consumer_id };
        let registration = Registration {
            topic: topic.clone(),
            key: GroupKey { subscription: command.subscription, kind },
            name: command.consumer_name,
        };
        let (key, name) = (registration.key.clone(), registration.name.clone());
        let before = self.conns.get_mut(&conn).and_then(|c| c.registrations.remove(&session.id));
        if let Some(before) = before.filter(|b| (&b.topic, &b.key, &b.name) != (&topic, &key, &name)) {
            self.detach(&before, session, now);
        }
        let Some(scalable) = self.scalable.get_mut(&topic) else { return };
        let new = scalable.groups.register(&key, &name, session);
        if let Some(c) = self.conns.get_mut(&conn) {
            c.registrations.insert(session.id, registration);
        }
        let own_update = self.config.profile.updates_before_response;
        if new {
            self.rebalance(&topic, &key, Some(&name).filter(|_| !own_update).map(String::as_str), now);
        } else if own_update {
            self.send_assignments(&topic, &key, |member| member == name);
        }
        let assignment = self.scalable.get(&topic).and_then(|scalable| {
            let shares = scalable.groups.assign(&key, &scalable.layout).remove(&name)?;
            Some(on_the_wire(scalable, &shares))
        });
        let request_id = command.request_id;
        self.effects.send(
            conn,
            CommandScalableTopicSubscribeResponse { request_id, assignment, ..Default::default() },
        );
        if new {
            self.push_stored_beside(&topic);
        }
    }

    /// SCALABLE_TOPIC_UNSUBSCRIBE. Succeeds for a registration that is gone too (wire-protocol §6.2).
    pub(super) fn scalable_unsubscribe(
        &mut self,
        conn: ConnId,
        command: CommandScalableTopicUnsubscribe,
        now: Millis,
    ) {
        let session = ConsumerKey { conn, id: command.consumer_id };
        let registration = self.conns.get_mut(&conn).and_then(|c| c.registrations.remove(&session.id));
        let left = registration.filter(|r| {
            let scalable = self.scalable.get_mut(&r.topic);
            scalable.is_some_and(|scalable| scalable.groups.leave(&r.key, &r.name, session))
        });
        if let Some(Registration { topic, key, .. }) = &left {
            self.rebalance(topic, key, None, now);
        }
        self.effects.send(conn, CommandSuccess { request_id: command.request_id, schema: None });
        if let Some(Registration { topic, .. }) = &left {
            self.push_stored_beside(topic);
        }
    }

    /// A connection is gone, and its registrations enter their grace periods.
    pub(super) fn sessions_lost(
        &mut self,
        conn: ConnId,
        registrations: BTreeMap<u64, Registration>,
        now: Millis,
    ) {
        for (id, registration) in registrations {
            self.detach(&registration, ConsumerKey { conn, id }, now);
        }
    }

    fn detach(&mut self, registration: &Registration, session: ConsumerKey, now: Millis) {
        let Registration { topic, key, name } = registration;
        let grace_ms = self.config.pace.grace_ms;
        let Some(scalable) = self.scalable.get_mut(topic) else { return };
        if let Some(timer) = scalable.groups.detach(key, name, session, grace_ms) {
            let due =
                Due::Grace(topic.clone(), scalable.life, Box::new((key.clone(), name.clone())), timer.stamp);
            self.agenda.add(now + timer.after, due);
        }
    }

    // ---- Leading ----

    /// A broker leads a topic from now on, for the first time or again: nobody has a session with it yet.
    pub(super) fn lead(&mut self, topic: &TopicName, leader: BrokerId, now: Millis) {
        self.succeed(topic, Some(leader), now);
    }

    /// A broker that led a topic does so no longer. Where controllers are elected with the topic, `next` does; else nobody
    /// until something needs it.
    pub(super) fn give_up_lead(&mut self, topic: &TopicName, next: BrokerId, now: Millis) {
        let next = Some(next).filter(|_| self.config.profile.controller == ControllerElection::Eager);
        self.succeed(topic, next, now);
    }

    fn succeed(&mut self, topic: &TopicName, leader: Option<BrokerId>, now: Millis) {
        let pace = self.config.pace;
        let Some(scalable) = self.scalable.get_mut(topic) else { return };
        let before = std::mem::replace(&mut scalable.controller, leader);
        scalable.term += 1;
        let (life, term) = (scalable.life, scalable.term);
        let graces = scalable.groups.lose_sessions(pace.grace_ms);
        let keys: Vec<GroupKey> = scalable.groups.keys().cloned().collect();
        for (key, name, timer) in graces {
            let due = Due::Grace(topic.clone(), life, Box::new((key, name)), timer.stamp);
            self.agenda.add(now + timer.after, due);
        }
        self.agenda.add(now + self.config.profile.prune_interval_ms, Due::Prune(topic.clone(), life, term));
        for key in keys {
            self.start_looking(topic, &key, now);
        }
        let mut deposed = Vec::new();
        for (conn, c) in &mut self.conns {
            let before = c.registrations.len();
            c.registrations.retain(|_, registration| registration.topic != *topic);
            if c.registrations.len() != before {
                deposed.push(*conn);
            }
        }
        match leader {
            Some(leader) => self.log_controller(topic, "lead", leader.to_string(), now),
            None => self.log_controller(topic, "give up", String::new(), now),
        }
        if before.is_some() && self.config.profile.deposed_leader_closes {
            for conn in deposed {
                self.lose(conn, "broker", &format!("{topic} has another leader"), now);
            }
        }
    }

    /// Sees to it that a topic has a controller, on the broker `asked` or, without one, where the topic falls to.
    /// `false` while there is none to be had.
    pub(super) fn need_controller(
        &mut self,
        topic: &TopicName,
        asked: Option<BrokerId>,
        now: Millis,
    ) -> bool {
        let Some(scalable) = self.scalable.get(topic) else { return false };
        if let Some(leader) = scalable.controller {
            return self.is_up(leader);
        }
        let Some(leader) = asked.or_else(|| self.place(topic)) else { return false };
        self.lead(topic, leader, now);
        self.push(topic);
        true
    }

    /// The life and the running leader of a topic, if it is still the life that a timer was set in.
    fn led(&self, topic: &TopicName, life: u64) -> Option<&Scalable> {
        let scalable = self.scalable.get(topic).filter(|scalable| scalable.life == life)?;
        scalable.controller.filter(|leader| self.is_up(*leader)).map(|_| scalable)
    }

    // ---- Timers ----

    /// A grace period is over. While nobody leads it goes on: the next leader sets a new timer.
    pub(super) fn grace_over(
        &mut self,
        topic: &TopicName,
        life: u64,
        (key, name): &(GroupKey, String),
        stamp: u64,
        now: Millis,
    ) {
        if self.led(topic, life).is_none() {
            return;
        }
        let Some(scalable) = self.scalable.get_mut(topic) else { return };
        if scalable.groups.expire(key, name, stamp) {
            self.log_controller(topic, "expire", format!("{name} of {}", key.subscription), now);
            self.rebalance(topic, key, None, now);
            self.push_stored_beside(topic);
        }
    }

    /// Time to look for segments that a group has drained.
    pub(super) fn look_for_drained(
        &mut self,
        topic: &TopicName,
        life: u64,
        key: &GroupKey,
        stamp: u64,
        now: Millis,
    ) {
        let pace = self.config.pace;
        let Some(scalable) = self.led(topic, life) else { return };
        let layout = scalable.layout.clone();
        let progress: BTreeMap<u64, Progress> =
            layout.segments().map(|s| (s.id, self.progress(topic, key, s.id))).collect();
        let of = |id| progress.get(&id).copied().unwrap_or(Progress::Open);
        let Some(scalable) = self.scalable.get_mut(topic) else { return };
        match scalable.groups.look((key, stamp), &layout, &pace, now, of) {
            Look::Drained => {
                self.log_controller(topic, "drained", format!("parents of {}", key.subscription), now);
                self.rebalance(topic, key, None, now);
            }
            Look::Again(timer) => {
                let due = Due::Drained(topic.clone(), life, Box::new(key.clone()), timer.stamp);
                self.agenda.add(now + timer.after, due);
            }
            Look::Over => {}
        }
    }

    fn start_looking(&mut self, topic: &TopicName, key: &GroupKey, now: Millis) {
        let pace = self.config.pace;
        let Some(scalable) = self.scalable.get_mut(topic) else { return };
        if let Some(timer) = scalable.groups.start_looking(key, &scalable.layout, &pace) {
            let due = Due::Drained(topic.clone(), scalable.life, Box::new(key.clone()), timer.stamp);
            self.agenda.add(now + timer.after, due);
        }
    }

    // ---- What is read to the end ----

    /// How far a group is with a sealed segment.
    fn progress(&self, topic: &TopicName, key: &GroupKey, segment: u64) -> Progress {
        let found = self.scalable.get(topic).and_then(|scalable| {
            let stored = scalable.stored_name(scalable.layout.segment(segment)?);
            Some((scalable, &self.stored.get(&stored)?.topic))
        });
        let Some((scalable, topic)) = found else { return Progress::Open };
        let read = match key.kind {
            GroupKind::Stream => topic.drained(&key.subscription),
            GroupKind::Checkpoint => topic.is_empty_and_sealed(),
        };
        match (read, key.kind) {
            (true, _) => Progress::Read,
            (false, GroupKind::Stream) => Progress::Open,
            (false, GroupKind::Checkpoint) => progress_of(scalable, key, segment, &topic.readers()),
        }
    }

    fn is_read(&self, topic: &TopicName, key: &GroupKey, segment: u64) -> bool {
        self.progress(topic, key, segment) == Progress::Read
    }

    /// A consumer was told that its segment is at its end. A reader may go before the next look, so that is noted.
    pub(super) fn reached_end(&mut self, conn: ConnId, consumer: u64) {
        let Some(name) = self.conns.get(&conn).and_then(|c| c.consumers.get(&consumer)) else { return };
        let topic = match name.domain() {
            Domain::Segment => match SegmentName::of(name) {
                Ok(segment) => segment.topic,
                Err(_) => return,
            },
            _ => name.partitioned().with_domain(Domain::Topic),
        };
        let Some(scalable) = self.scalable.get(&topic) else { return };
        let segment = scalable.layout.segments().find(|s| scalable.stored_name(s) == *name).map(|s| s.id);
        let Some(segment) = segment else { return };
        let keys = scalable.groups.keys().filter(|key| key.kind == GroupKind::Checkpoint);
        let read: Vec<GroupKey> = keys.filter(|key| self.is_read(&topic, key, segment)).cloned().collect();
        if let Some(scalable) = self.scalable.get_mut(&topic) {
            read.iter().for_each(|key| scalable.groups.finished(key, segment));
        }
    }

    /// A stream subscription was moved: what it had drained, it may have to read again.
    pub(super) fn subscription_moved(&mut self, topic: &TopicName, subscription: &str, now: Millis) {
        if !self.config.profile.seek_reopens_segments {
            return;
        }
        let key = GroupKey { subscription: subscription.to_owned(), kind: GroupKind::Stream };
        let Some(scalable) = self.scalable.get(topic) else { return };
        let drained: Vec<u64> =
            scalable.layout.segments().map(|s| s.id).filter(|id| self.is_read(topic, &key, *id)).collect();
        let Some(scalable) = self.scalable.get_mut(topic) else { return };
        if scalable.groups.recheck(&key, |id| drained.contains(&id)) {
            self.rebalance(topic, &key, None, now);
        }
    }

    // ---- Assignments ----

    /// Tells every group of a topic what it is to read now.
    pub(super) fn rebalance_all(&mut self, topic: &TopicName, now: Millis) {
        let Some(scalable) = self.scalable.get(topic) else { return };
        let keys: Vec<GroupKey> = scalable.groups.keys().cloned().collect();
        for key in keys {
            self.rebalance(topic, &key, None, now);
        }
    }

    /// Tells the members of a group what they are to read now, in the order of their names, but for one of them; and
    /// looks for drained segments anew.
    fn rebalance(&mut self, topic: &TopicName, key: &GroupKey, except: Option<&str>, now: Millis) {
        self.send_assignments(topic, key, |name| Some(name) != except);
        self.start_looking(topic, key, now);
    }

    fn send_assignments(&mut self, topic: &TopicName, key: &GroupKey, to: impl Fn(&str) -> bool) {
        let Some(scalable) = self.scalable.get(topic) else { return };
        let shares = scalable.groups.assign(key, &scalable.layout);
        for (name, session) in scalable.groups.members(key) {
            if let (Some(session), Some(shares), true) = (session, shares.get(name), to(name)) {
                let assignment = on_the_wire(scalable, shares);
                let update = CommandScalableTopicAssignmentUpdate { consumer_id: session.id, assignment };
                self.effects.send(session.conn, update);
            }
        }
    }

    /// In 5.0.1 registrations and policies are stored beside the layout, and a change of any pushes the layout.
    pub(super) fn push_stored_beside(&mut self, topic: &TopicName) {
        if self.config.profile.registrations_push_layout {
            self.push(topic);
        }
    }

    /// The registered consumers of a topic by group and name, and what each is to read. Empty for an unknown topic.
    pub(super) fn registered(&self, topic: &TopicName) -> Vec<Registered> {
        let Some(scalable) = self.scalable.get(topic) else { return Vec::new() };
        let of_group = |key: &GroupKey| {
            let mut shares = scalable.groups.assign(key, &scalable.layout);
            let member = |(name, session): (&str, Option<ConsumerKey>)| Registered {
                group: key.clone(),
                consumer: name.to_owned(),
                session,
                shares: shares.remove(name).unwrap_or_default(),
            };
            scalable.groups.members(key).map(member).collect::<Vec<_>>()
        };
        scalable.groups.keys().flat_map(of_group).collect()
    }

    /// Sends any assignment to a registered consumer, whatever its controller thinks of it. `false` when nobody of that
    /// name has a session.
    pub(super) fn send_raw_assignment(
        &mut self,
        topic: &TopicName,
        subscription: &str,
        consumer: &str,
        assignment: &ScalableConsumerAssignment,
    ) -> bool {
        let sessions: Vec<ConsumerKey> = self
            .registered(topic)
            .into_iter()
            .filter(|r| r.group.subscription == subscription && r.consumer == consumer)
            .filter_map(|r| r.session)
            .collect();
        for session in &sessions {
            let update = CommandScalableTopicAssignmentUpdate {
                consumer_id: session.id,
                assignment: assignment.clone(),
            };
            self.effects.send(session.conn, update);
        }
        !sessions.is_empty()
    }

    fn log_controller(&mut self, topic: &TopicName, change: &'static str, detail: String, now: Millis) {
        let leader = self.scalable.get(topic).and_then(|scalable| scalable.controller);
        let event = Event::Controller { topic: topic.to_string(), change, detail };
        self.journal.append(now, leader, None, Direction::Internal, event);
    }
}

/// How far a checkpoint group is with a sealed segment. There is no cursor to ask, so its readers are: the one that is
/// named after the member that has the segment (`<member>-seg-<id>`); without such a one, those on that member's
/// connection to the controller; without those, all readers of the segment. Each of them has to have acknowledged what
/// comes after its start position, or to acknowledge nothing and have been sent all of it. With no reader attached
/// nothing is known, and the children wait.
fn progress_of(scalable: &Scalable, key: &GroupKey, segment: u64, readers: &[Reader]) -> Progress {
    let shares = scalable.groups.assign(key, &scalable.layout);
    let Some((member, _)) = shares.iter().find(|(_, list)| list.iter().any(|s| s.segment == segment)) else {
        return Progress::Open;
    };
    let session = scalable.groups.members(key).find(|(name, _)| name == member).and_then(|(_, s)| s);
    let named = format!("{member}-seg-{segment}");
    let by_name: Vec<&Reader> = readers.iter().filter(|reader| reader.name == named).collect();
    let by_conn: Vec<&Reader> =
        readers.iter().filter(|reader| session.is_some_and(|s| s.conn == reader.key.conn)).collect();
    let all: Vec<&Reader> = readers.iter().collect();
    match [by_name, by_conn, all].into_iter().find(|found| !found.is_empty()) {
        Some(found) if found.iter().all(|reader| reader.done) => Progress::Read,
        Some(found) if found.iter().all(|reader| reader.done || reader.delivered) => Progress::Delivered,
        _ => Progress::Open,
    }
}

/// An assignment as the wire has it.
fn on_the_wire(scalable: &Scalable, shares: &[Share]) -> ScalableConsumerAssignment {
    let layout: &Layout = &scalable.layout;
    let segments = shares
        .iter()
        .filter_map(|share| Some((share, layout.segment(share.segment)?)))
        .map(|(share, segment)| ScalableAssignedSegment {
            segment_id: segment.id,
            hash_start: segment.range.start().into(),
            hash_end: segment.range.end().into(),
            segment_topic: scalable.stored_name(segment).to_string(),
            bucket_ranges: share
                .bucket_ranges
                .iter()
                .map(|range| IntRange { start: range.start().into(), end: range.end().into() })
                .collect(),
        })
        .collect();
    ScalableConsumerAssignment { layout_epoch: layout.epoch(), segments }
}
