//! The groups of consumers that a controller knows, and what each group has read to the end.
//!
//! All of this outlives the broker that leads: the next one finds the registrations, without their sessions, and gives
//! each consumer a new grace period to come back in.

use std::collections::{BTreeMap, BTreeSet};

use stc_proto::Layout;

use super::assignment::{GroupKind, Share, assign, assignable};
use crate::core::ids::{ConsumerKey, Millis};

/// What consumers share: a subscription, or a checkpoint group. The two are apart even when they have one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey {
    /// The name of the subscription or checkpoint group.
    pub subscription: String,
    /// What it is.
    pub kind: GroupKind,
}

/// How a controller's timers run.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long a registration without a session is kept, in ms.
    pub grace_ms: Millis,
    /// How long after a change of the assignment a controller first looks for drained parents, in ms. Each look that
    /// finds nothing doubles the time to the next.
    pub drain_poll_ms: Millis,
    /// The longest time between two such looks, in ms.
    pub drain_poll_max_ms: Millis,
}

/// The groups of one topic.
#[derive(Debug)]
pub struct Groups {
    groups: BTreeMap<GroupKey, Group>,
    /// Whether checkpoint groups get children after their parents, as streams do.
    checkpoint_gate: bool,
    /// Tells timers apart: one whose stamp is not the current one any more has nothing to do.
    stamp: u64,
}

#[derive(Debug, Default)]
struct Group {
    members: BTreeMap<String, Member>,
    /// Sealed segments that the group has read to the end, as the controller last saw it.
    drained: BTreeSet<u64>,
    /// Sealed segments whose reader came to the end; the next look at the segments takes them in.
    finished: BTreeSet<u64>,
    /// Sealed segments that were found delivered, and since when.
    delivered: BTreeMap<u64, Millis>,
    poll: Poll,
}

#[derive(Debug, Default)]
struct Poll {
    stamp: u64,
    delay: Millis,
}

#[derive(Debug)]
struct Member {
    /// Where assignments are sent; `None` in the grace period.
    session: Option<ConsumerKey>,
    stamp: u64,
}

/// A timer to set: when it is due, from now, and the stamp to come back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// In ms from now.
    pub after: Millis,
    /// What it is told by.
    pub stamp: u64,
}

/// How far a group is with a sealed segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Something is left.
    Open,
    /// All of it was delivered to somebody who acknowledges nothing: it counts as read when that was so for as long as
    /// a grace period.
    Delivered,
    /// All of it was acknowledged.
    Read,
}

/// What a look at the sealed segments found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Segments were drained: the assignments change.
    Drained,
    /// Nothing new: look again.
    Again(Timer),
    /// There is nothing to look for any more, or somebody else looks.
    Over,
}

impl Groups {
    /// No groups. `checkpoint_gate`: see [`Profile`](crate::core::Profile).
    pub fn new(checkpoint_gate: bool) -> Self {
        Groups { groups: BTreeMap::new(), checkpoint_gate, stamp: 0 }
    }

    /// The groups that have members.
    pub fn keys(&self) -> impl Iterator<Item = &GroupKey> {
        self.groups.keys()
    }

    /// The members of a group, by name, with their sessions.
    pub fn members(&self, key: &GroupKey) -> impl Iterator<Item = (&str, Option<ConsumerKey>)> {
        let members = self.groups.get(key).into_iter().flat_map(|group| &group.members);
        members.map(|(name, member)| (name.as_str(), member.session))
    }

    fn gated(&self, key: &GroupKey) -> bool {
        key.kind == GroupKind::Stream || self.checkpoint_gate
    }

    fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    // ---- Members come and go ----

    /// Registers a consumer, or gives the registration of that name a new session: that of a consumer that came back,
    /// or of another one that took the name. Returns whether the group has a member more.
    pub fn register(&mut self, key: &GroupKey, name: &str, session: ConsumerKey) -> bool {
        let stamp = self.next_stamp();
        let group = self.groups.entry(key.clone()).or_default();
        let member = Member { session: Some(session), stamp };
        group.members.insert(name.to_owned(), member).is_none()
    }

    /// A consumer leaves for good. `false` when the registration is gone or has another session.
    pub fn leave(&mut self, key: &GroupKey, name: &str, session: ConsumerKey) -> bool {
        self.remove(key, name, |member| member.session == Some(session))
    }

    /// The session of a consumer is gone: its registration stays for the grace period. `None` when the registration is
    /// gone or has another session.
    pub fn detach(
        &mut self,
        key: &GroupKey,
        name: &str,
        session: ConsumerKey,
        grace_ms: Millis,
    ) -> Option<Timer> {
        let stamp = self.next_stamp();
        let member = self.groups.get_mut(key)?.members.get_mut(name)?;
        if member.session != Some(session) {
            return None;
        }
        *member = Member { session: None, stamp };
        Some(Timer { after: grace_ms, stamp })
    }

    /// A grace period is over. `false` when the consumer came back meanwhile.
    pub fn expire(&mut self, key: &GroupKey, name: &str, stamp: u64) -> bool {
        self.remove(key, name, |member| member.session.is_none() && member.stamp == stamp)
    }

    fn remove(&mut self, key: &GroupKey, name: &str, goes: impl Fn(&Member) -> bool) -> bool {
        let Some(group) = self.groups.get_mut(key) else { return false };
        if !group.members.get(name).is_some_and(goes) {
            return false;
        }
        group.members.remove(name);
        if group.members.is_empty() {
            self.groups.remove(key);
        }
        true
    }

    /// Another broker leads, or the same one again: there are no sessions, and every consumer gets a grace period to
    /// come back in. Returns the timers of the grace periods.
    pub fn lose_sessions(&mut self, grace_ms: Millis) -> Vec<(GroupKey, String, Timer)> {
        let mut timers = Vec::new();
        for (key, group) in &mut self.groups {
            for (name, member) in &mut group.members {
                self.stamp += 1;
                *member = Member { session: None, stamp: self.stamp };
                timers.push((key.clone(), name.clone(), Timer { after: grace_ms, stamp: self.stamp }));
            }
        }
        timers
    }

    // ---- Who reads what ----

    /// Who of a group reads what of a layout; every member has an entry.
    pub fn assign(&self, key: &GroupKey, layout: &Layout) -> BTreeMap<String, Vec<Share>> {
        let Some(group) = self.groups.get(key) else { return BTreeMap::new() };
        let names: Vec<&str> = group.members.keys().map(String::as_str).collect();
        assign(&assignable(layout, &group.drained, self.gated(key)), &names, key.kind)
    }

    /// The segments that are not handed out yet, since the group has not read what comes before them.
    pub fn blocked(&self, key: &GroupKey, layout: &Layout) -> BTreeSet<u64> {
        let Some(group) = self.groups.get(key) else { return BTreeSet::new() };
        let handed_out = assignable(layout, &group.drained, self.gated(key));
        let read =
            |id: &u64| group.drained.contains(id) && layout.segment(*id).is_some_and(|s| !s.is_active());
        let mut blocked: BTreeSet<u64> = layout.segments().map(|s| s.id).filter(|id| !read(id)).collect();
        handed_out.iter().for_each(|segment| _ = blocked.remove(&segment.id));
        blocked
    }

    /// Forgets the registrations of a subscription; whoever had one is not told. Returns them.
    pub fn forget(&mut self, subscription: &str) -> usize {
        let before = self.groups.len();
        self.groups.retain(|key, _| key.subscription != subscription);
        before - self.groups.len()
    }

    /// The sealed segments that a group has to read to the end before it gets what comes after them.
    fn undrained(&self, key: &GroupKey, layout: &Layout) -> BTreeSet<u64> {
        let sealed = layout.segments().filter(|s| !s.is_active()).map(|s| s.id);
        match self.groups.get(key) {
            Some(group) if self.gated(key) => sealed.filter(|id| !group.drained.contains(id)).collect(),
            _ => BTreeSet::new(),
        }
    }

    /// Starts looking for drained segments anew, if there are any to be drained.
    pub fn start_looking(&mut self, key: &GroupKey, layout: &Layout, pace: &Pace) -> Option<Timer> {
        let any = !self.undrained(key, layout).is_empty();
        let stamp = self.next_stamp();
        let group = self.groups.get_mut(key)?;
        group.poll = Poll { stamp, delay: pace.drain_poll_ms };
        any.then_some(Timer { after: pace.drain_poll_ms, stamp })
    }

    /// Looks which sealed segments a group has read to the end; `progress` tells of one of them.
    pub fn look(
        &mut self,
        (key, stamp): (&GroupKey, u64),
        layout: &Layout,
        pace: &Pace,
        now: Millis,
        progress: impl Fn(u64) -> Progress,
    ) -> Look {
        let open = self.undrained(key, layout);
        let Some(group) = self.groups.get_mut(key).filter(|group| group.poll.stamp == stamp) else {
            return Look::Over;
        };
        if open.is_empty() {
            return Look::Over;
        }
        let finished = std::mem::take(&mut group.finished);
        let before = group.drained.len();
        for id in open {
            let read = match progress(id) {
                _ if finished.contains(&id) => true,
                Progress::Read => true,
                Progress::Delivered => {
                    let since = *group.delivered.entry(id).or_insert(now);
                    now.saturating_sub(since) >= pace.grace_ms
                }
                Progress::Open => {
                    group.delivered.remove(&id);
                    false
                }
            };
            if read {
                group.delivered.remove(&id);
                group.drained.insert(id);
            }
        }
        if group.drained.len() > before {
            return Look::Drained;
        }
        group.poll.delay = group.poll.delay.saturating_mul(2).min(pace.drain_poll_max_ms);
        Look::Again(Timer { after: group.poll.delay, stamp })
    }

    /// Notes that a reader of a group came to the end of a sealed segment.
    pub fn finished(&mut self, key: &GroupKey, segment: u64) {
        if let Some(group) = self.groups.get_mut(key) {
            group.finished.insert(segment);
        }
    }

    /// A subscription was moved: `drained` tells which of the segments that were drained still are. Returns whether the
    /// assignments change.
    pub fn recheck(&mut self, key: &GroupKey, drained: impl Fn(u64) -> bool) -> bool {
        let Some(group) = self.groups.get_mut(key) else { return false };
        let before = group.drained.len();
        group.drained.retain(|id| drained(*id));
        group.drained.len() < before
    }

    /// Whether no group waits for a sealed segment to be read.
    pub fn need_no_more(&self, segment: u64) -> bool {
        self.groups.iter().all(|(key, group)| !self.gated(key) || group.drained.contains(&segment))
    }

    /// A segment is no longer in the layout.
    pub fn pruned(&mut self, segment: u64) {
        for group in self.groups.values_mut() {
            group.drained.remove(&segment);
            group.finished.remove(&segment);
            group.delivered.remove(&segment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::ConnId;

    const PACE: Pace = Pace { grace_ms: 60_000, drain_poll_ms: 2_000, drain_poll_max_ms: 9_000 };

    fn key() -> GroupKey {
        GroupKey { subscription: "s".into(), kind: GroupKind::Stream }
    }

    fn session(conn: u64) -> ConsumerKey {
        ConsumerKey { conn: ConnId(conn), id: 0 }
    }

    fn segments(groups: &Groups, layout: &Layout, name: &str) -> Vec<u64> {
        groups.assign(&key(), layout).get(name).unwrap().iter().map(|share| share.segment).collect()
    }

    fn look_at(groups: &mut Groups, timer: Timer, layout: &Layout, now: Millis, progress: Progress) -> Look {
        groups.look((&key(), timer.stamp), layout, &PACE, now, |_| progress)
    }

    #[test]
    fn a_consumer_that_comes_back_in_time_keeps_its_registration() {
        let mut groups = Groups::new(true);
        assert!(groups.register(&key(), "a", session(1)));
        let timer = groups.detach(&key(), "a", session(1), 60_000).unwrap();
        assert!(!groups.register(&key(), "a", session(2)));
        assert!(!groups.expire(&key(), "a", timer.stamp), "it came back");
        let again = groups.detach(&key(), "a", session(2), 60_000).unwrap();
        assert!(!groups.expire(&key(), "a", timer.stamp), "an older timer");
        assert!(groups.expire(&key(), "a", again.stamp));
        assert_eq!(groups.keys().count(), 0);
    }

    #[test]
    fn only_the_current_session_can_leave_or_be_lost() {
        let mut groups = Groups::new(true);
        groups.register(&key(), "a", session(1));
        assert!(!groups.register(&key(), "a", session(2)), "the name is taken over");
        assert!(!groups.leave(&key(), "a", session(1)));
        assert_eq!(groups.detach(&key(), "a", session(1), 60_000), None);
        assert!(groups.leave(&key(), "a", session(2)));
        assert!(!groups.leave(&key(), "a", session(2)));
    }

    #[test]
    fn a_new_leader_starts_every_grace_period_anew() {
        let mut groups = Groups::new(true);
        groups.register(&key(), "a", session(1));
        groups.register(&key(), "b", session(2));
        let old = groups.detach(&key(), "a", session(1), 60_000).unwrap();
        let timers = groups.lose_sessions(60_000);
        assert_eq!(timers.len(), 2);
        assert!(groups.members(&key()).all(|(_, session)| session.is_none()));
        assert!(!groups.expire(&key(), "a", old.stamp));
        for (key, name, timer) in timers {
            assert!(groups.expire(&key, &name, timer.stamp));
        }
    }

    #[test]
    fn looks_slow_down_until_something_changes() {
        let layout = Layout::initial(1, 4, 0).split(0, 0).unwrap();
        let mut groups = Groups::new(true);
        groups.register(&key(), "a", session(1));
        assert_eq!(groups.start_looking(&key(), &Layout::initial(1, 4, 0), &PACE), None, "nothing is sealed");
        let mut timer = groups.start_looking(&key(), &layout, &PACE).unwrap();
        let mut times = vec![timer.after];
        for _ in 0..4 {
            let Look::Again(next) = groups.look((&key(), timer.stamp), &layout, &PACE, 0, |_| Progress::Open)
            else {
                panic!("looks again")
            };
            timer = next;
            times.push(timer.after);
        }
        assert_eq!(times, [2_000, 4_000, 8_000, 9_000, 9_000]);
        assert_eq!(segments(&groups, &layout, "a"), [0]);
        assert_eq!(look_at(&mut groups, timer, &layout, 0, Progress::Read), Look::Drained);
        assert_eq!(segments(&groups, &layout, "a"), [1, 2]);
        assert_eq!(groups.start_looking(&key(), &layout, &PACE), None);
        assert_eq!(look_at(&mut groups, timer, &layout, 0, Progress::Read), Look::Over);
    }

    #[test]
    fn what_is_delivered_and_never_acknowledged_counts_as_read_after_a_grace_period() {
        let layout = Layout::initial(1, 4, 0).split(0, 0).unwrap();
        let mut groups = Groups::new(true);
        groups.register(&key(), "a", session(1));
        let timer = groups.start_looking(&key(), &layout, &PACE).unwrap();
        let mut look =
            |now, progress| matches!(look_at(&mut groups, timer, &layout, now, progress), Look::Drained);
        assert!(!look(10_000, Progress::Delivered));
        assert!(!look(69_999, Progress::Delivered));
        // The reader came back and has to be sent everything again.
        assert!(!look(70_000, Progress::Open));
        assert!(!look(80_000, Progress::Delivered));
        assert!(!look(139_999, Progress::Delivered));
        assert!(look(140_000, Progress::Delivered));
    }

    #[test]
    fn a_subscription_moved_back_reads_its_parents_again() {
        let layout = Layout::initial(1, 4, 0).split(0, 0).unwrap();
        let mut groups = Groups::new(true);
        groups.register(&key(), "a", session(1));
        let timer = groups.start_looking(&key(), &layout, &PACE).unwrap();
        look_at(&mut groups, timer, &layout, 0, Progress::Read);
        assert!(!groups.recheck(&key(), |_| true));
        assert!(groups.recheck(&key(), |_| false));
        assert_eq!(segments(&groups, &layout, "a"), [0]);
    }

    #[test]
    fn a_checkpoint_group_waits_for_parents_where_the_profile_says_so() {
        let layout = Layout::initial(1, 4, 0).split(0, 0).unwrap();
        let key = GroupKey { kind: GroupKind::Checkpoint, ..key() };
        for gate in [true, false] {
            let mut groups = Groups::new(gate);
            groups.register(&key, "a", session(1));
            let read: Vec<u64> = groups.assign(&key, &layout)["a"].iter().map(|s| s.segment).collect();
            let timer = groups.start_looking(&key, &layout, &PACE);
            if gate {
                assert_eq!(read, [0]);
                groups.finished(&key, 0);
                let look = groups.look((&key, timer.unwrap().stamp), &layout, &PACE, 0, |_| Progress::Open);
                assert_eq!(look, Look::Drained);
                assert_eq!(groups.assign(&key, &layout)["a"].len(), 2);
            } else {
                assert_eq!((read, timer), (vec![1, 0, 2], None));
            }
        }
    }
}
