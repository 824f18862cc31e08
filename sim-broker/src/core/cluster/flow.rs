//! The way of a frame through the cluster: faults, state change, faults again, journal, output. Also work that is due
//! later.

use std::collections::{BTreeMap, BTreeSet};

use stc_proto::{Command, Frame, FrameError, TopicName};

use super::{Cluster, Output, about};
use crate::core::{
    controller::groups::GroupKey,
    effects::Effect,
    fault::{At, FaultEffect, Strike},
    ids::{BrokerId, ConnId, Millis},
    journal::{Direction, Event},
    topic::UNSOLICITED,
};

/// Work that is due at some time.
#[derive(Debug)]
pub(super) enum Due {
    /// A frame that a fault delayed, on its way to the broker.
    Inbound(ConnId, Frame),
    /// A frame that a fault delayed, on its way to the client.
    Outbound(ConnId, Frame),
    /// Time to ping a connection.
    KeepAlive(ConnId),
    /// The answer to a connection's n-th challenge has to be there.
    Challenge(ConnId, u64),
    /// A stored topic has something to deliver.
    Tick(TopicName),
    /// What a broker owned when it died the given time goes to others.
    Failover(BrokerId, u64),
    /// The time of a transaction of this coordinator is over.
    TxnTimeout(u64),
    /// A controller looks for segments to prune. The second part tells lives of a topic apart, the third its leaders.
    Prune(TopicName, u64, u64),
    /// A consumer's grace period is over. The life of its topic, its group and name, and the timer's stamp.
    Grace(TopicName, u64, Box<(GroupKey, String)>, u64),
    /// A controller looks for segments that a group has drained. The life of the topic and the timer's stamp.
    Drained(TopicName, u64, Box<GroupKey>, u64),
    /// The loads of a topic's segments are reported. The second part tells lives of a topic apart.
    LoadReport(TopicName, u64),
    /// A connection's namespace watch of this id and stamp is told what changed.
    TopicSet(ConnId, u64, u64),
}

/// What is due when, oldest first; equal times in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<(Millis, u64), Due>,
    next: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Millis, due: Due) {
        self.entries.insert((at, self.next), due);
        self.next += 1;
    }

    fn take(&mut self, now: Millis) -> Option<Due> {
        let entry = self.entries.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub(super) fn next(&self) -> Option<Millis> {
        self.entries.keys().next().map(|(at, _)| *at)
    }
}

impl Cluster {
    /// Something arrived on a connection. Bytes that are not a frame close it.
    pub fn receive(&mut self, conn: ConnId, frame: Result<Frame, FrameError>, now: Millis) {
        if !self.conns.contains_key(&conn) {
            return;
        }
        self.heard(conn);
        match frame {
            Ok(frame) => {
                self.log(conn, Direction::ToBroker, Event::Frame(frame.clone()), now);
                self.remember_request(conn, &frame.command);
                let overtaken = self.take_overtaken(conn, Direction::ToBroker);
                self.inbound(conn, frame, now);
                self.settle(now);
                if let Some(frame) = overtaken {
                    self.serve(conn, frame, now);
                }
            }
            Err(error) => {
                let reason = error.to_string();
                self.log(conn, Direction::ToBroker, Event::BadFrame { reason: reason.clone() }, now);
                self.effects.close(conn, reason);
            }
        }
        self.settle(now);
    }

    /// Does what is due. Call it at [`Cluster::next_deadline`].
    pub fn tick(&mut self, now: Millis) {
        while let Some(due) = self.agenda.take(now) {
            match due {
                Due::Inbound(conn, frame) => self.serve(conn, frame, now),
                Due::Outbound(conn, frame) => self.emit(conn, frame, now),
                Due::KeepAlive(conn) => self.keep_alive(conn, now),
                Due::Challenge(conn, n) => self.challenge_due(conn, n),
                Due::Tick(name) => {
                    if let Some(stored) = self.stored.get_mut(&name) {
                        stored.tick_at = None;
                        self.on_topic(&name, |topic, effects| topic.tick(now, effects));
                    }
                }
                Due::Failover(broker, death) => self.fail_over(broker, death, now),
                Due::TxnTimeout(coordinator) => self.time_out_transactions(coordinator, now),
                Due::Prune(topic, life, term) => self.prune_due(&topic, life, term, now),
                Due::Grace(topic, life, member, stamp) => {
                    self.grace_over(&topic, life, &member, stamp, now);
                }
                Due::Drained(topic, life, key, stamp) => {
                    self.look_for_drained(&topic, life, &key, stamp, now);
                }
                Due::LoadReport(topic, life) => self.report_loads(&topic, life, now),
                Due::TopicSet(conn, watch, stamp) => self.tell_topic_set(conn, watch, stamp),
            }
            self.settle(now);
        }
    }

    /// When the next [`Cluster::tick`] is due.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.agenda.next()
    }

    /// A frame on its way to the broker meets the faults, then its handler.
    fn inbound(&mut self, conn: ConnId, frame: Frame, now: Millis) {
        let Some(strike) = self.strike(conn, &frame, Direction::ToBroker) else {
            return self.serve(conn, frame, now);
        };
        let described = strike.describe();
        let Strike { effect, at, id } = strike;
        let name = frame.command.name();
        let mut held = None;
        let error = match &effect {
            FaultEffect::Error { code, message } => about::error_answer(&frame.command, code.0, message),
            _ => None,
        };
        // The journal names the fault before what it does.
        if let (FaultEffect::Hold, At::Before) = (&effect, at) {
            held = Some(self.faults.hold(id, conn, Direction::ToBroker, frame.clone()));
        }
        let event = Event::Fault { id, effect: described, command: name, held };
        self.log(conn, Direction::ToBroker, event, now);
        if at == At::After {
            let copy = frame.clone();
            self.serve(conn, frame, now);
            return self.strike_answers(conn, copy, id, effect, error, now);
        }
        match effect {
            FaultEffect::Drop | FaultEffect::Hold => {}
            FaultEffect::Delay { ms } => self.agenda.add(now + ms, Due::Inbound(conn, frame)),
            FaultEffect::Close => self.effects.close(conn, format!("fault {id} struck {name}")),
            FaultEffect::Error { .. } => self.answer(conn, error),
            FaultEffect::Duplicate => {
                self.serve(conn, frame.clone(), now);
                self.settle(now);
                self.serve(conn, frame, now);
            }
            FaultEffect::Reorder => self.set_overtaken(conn, Direction::ToBroker, frame),
        }
    }

    /// The broker acted on a frame; the fault strikes what it answers on that connection.
    fn strike_answers(
        &mut self,
        conn: ConnId,
        frame: Frame,
        id: u64,
        effect: FaultEffect,
        error: Option<Command>,
        now: Millis,
    ) {
        if effect == FaultEffect::Duplicate {
            return self.serve(conn, frame, now);
        }
        let all: Vec<Effect> = self.effects.drain().collect();
        let mut answers = Vec::new();
        for one in all {
            match one {
                Effect::Send(to, answer) if to == conn => answers.push(answer),
                Effect::Send(to, other) => self.effects.send(to, other),
                Effect::Close(to, reason) => self.effects.close(to, reason),
            }
        }
        match effect {
            FaultEffect::Delay { ms } => {
                for answer in answers {
                    self.agenda.add(now + ms, Due::Outbound(conn, answer));
                }
            }
            FaultEffect::Hold => {
                for answer in answers {
                    let command = answer.command.name();
                    let held = self.faults.hold(id, conn, Direction::ToClient, answer);
                    let event = Event::Fault { id, effect: "hold".into(), command, held: Some(held) };
                    self.log(conn, Direction::ToClient, event, now);
                }
            }
            FaultEffect::Close => {
                let reason = format!("fault {id} struck after {}", frame.command.name());
                self.effects.close(conn, reason);
            }
            FaultEffect::Error { .. } => self.answer(conn, error),
            _ => {}
        }
    }

    fn answer(&mut self, conn: ConnId, answer: Option<Command>) {
        if let Some(answer) = answer {
            self.effects.send(conn, answer);
        }
    }

    /// Carries out effects until nothing is left: what they close may have effects of its own.
    pub(super) fn settle(&mut self, now: Millis) {
        while !self.effects.is_empty() {
            let list: Vec<Effect> = self.effects.drain().collect();
            for effect in list {
                match effect {
                    Effect::Send(conn, frame) => self.outbound(conn, frame, now),
                    Effect::Close(conn, reason) => self.lose(conn, "broker", &reason, now),
                }
            }
        }
    }

    /// A frame on its way to the client meets the faults, then the wire.
    fn outbound(&mut self, conn: ConnId, frame: Frame, now: Millis) {
        if !self.conns.contains_key(&conn) {
            return;
        }
        let strike = self.strike(conn, &frame, Direction::ToClient);
        self.note_broker_close(conn, &frame.command);
        self.forget_request(conn, &frame.command);
        if let Command::ReachedEndOfTopic(end) = &frame.command {
            self.reached_end(conn, end.consumer_id);
        }
        let overtaken = self.take_overtaken(conn, Direction::ToClient);
        match strike {
            Some(strike) => self.strike_outbound(conn, frame, strike, now),
            None => self.emit(conn, frame, now),
        }
        if let Some(frame) = overtaken {
            self.emit(conn, frame, now);
        }
    }

    fn strike_outbound(&mut self, conn: ConnId, frame: Frame, strike: Strike, now: Millis) {
        let described = strike.describe();
        let Strike { id, effect, at } = strike;
        let name = frame.command.name();
        let held = (effect == FaultEffect::Hold)
            .then(|| self.faults.hold(id, conn, Direction::ToClient, frame.clone()));
        let event = Event::Fault { id, effect: described, command: name, held };
        self.log(conn, Direction::ToClient, event, now);
        match effect {
            FaultEffect::Drop | FaultEffect::Hold | FaultEffect::Error { .. } => {}
            FaultEffect::Delay { ms } => self.agenda.add(now + ms, Due::Outbound(conn, frame)),
            FaultEffect::Close => {
                if at == At::After {
                    self.emit(conn, frame, now);
                }
                self.lose(conn, "broker", &format!("fault {id} struck {name}"), now);
            }
            FaultEffect::Duplicate => {
                self.emit(conn, frame.clone(), now);
                self.emit(conn, frame, now);
            }
            FaultEffect::Reorder => self.set_overtaken(conn, Direction::ToClient, frame),
        }
    }

    /// Puts a frame on the wire.
    pub(super) fn emit(&mut self, conn: ConnId, frame: Frame, now: Millis) {
        if self.conns.contains_key(&conn) {
            self.log(conn, Direction::ToClient, Event::Frame(frame.clone()), now);
            self.output.push(Output::Frame(conn, frame));
        }
    }

    /// Forgets a connection and everything that hangs on it.
    pub(super) fn lose(&mut self, conn: ConnId, side: &'static str, reason: &str, now: Millis) {
        if !self.conns.contains_key(&conn) {
            return;
        }
        let direction = if side == "client" { Direction::ToBroker } else { Direction::ToClient };
        self.log(conn, direction, Event::TcpClose { side, reason: reason.to_owned() }, now);
        let Some(gone) = self.conns.remove(&conn) else { return };
        self.faults.forget(conn);
        self.forget_held_pushes(conn);
        // In the order of their names, which does not depend on the order of opening.
        let topics: BTreeSet<&TopicName> = gone
            .producers
            .values()
            .chain(gone.closed_producers.values())
            .chain(gone.consumers.values())
            .collect();
        for name in topics {
            self.on_topic(name, |topic, effects| topic.disconnect(conn, now, effects));
        }
        self.sessions_lost(conn, gone.registrations, now);
        self.output.push(Output::Close(conn));
    }

    fn strike(&mut self, conn: ConnId, frame: &Frame, direction: Direction) -> Option<Strike> {
        self.faults.status().next()?; // most clusters have no faults, and then this is free
        let c = self.conns.get(&conn)?;
        about::strike(&mut self.faults, frame, direction, c.broker, conn, c)
    }

    fn set_overtaken(&mut self, conn: ConnId, direction: Direction, frame: Frame) {
        if let Some(c) = self.conns.get_mut(&conn) {
            let [inbound, outbound] = &mut c.overtaken;
            let place = if direction == Direction::ToBroker { inbound } else { outbound };
            *place = Some(frame);
        }
    }

    /// The frame that the next one overtakes, if there is one.
    fn take_overtaken(&mut self, conn: ConnId, direction: Direction) -> Option<Frame> {
        let [inbound, outbound] = &mut self.conns.get_mut(&conn)?.overtaken;
        if direction == Direction::ToBroker { inbound.take() } else { outbound.take() }
    }

    fn remember_request(&mut self, conn: ConnId, command: &Command) {
        let Some(id) = about::request_id(command) else { return };
        let Some(c) = self.conns.get_mut(&conn) else { return };
        if let Some(topic) = about::subject(command, c).topic {
            c.requests.insert(id, topic);
        }
    }

    fn forget_request(&mut self, conn: ConnId, command: &Command) {
        if let (Some(id), Some(c)) = (about::request_id(command), self.conns.get_mut(&conn)) {
            c.requests.remove(&id);
        }
    }

    /// A producer or consumer that the broker closes is none any more on its connection.
    fn note_broker_close(&mut self, conn: ConnId, command: &Command) {
        let Some(c) = self.conns.get_mut(&conn) else { return };
        match command {
            Command::CloseProducer(close) if close.request_id == UNSOLICITED => {
                if let Some(topic) = c.producers.remove(&close.producer_id) {
                    c.closed_producers.insert(close.producer_id, topic);
                }
            }
            Command::CloseConsumer(close) if close.request_id == UNSOLICITED => {
                c.consumers.remove(&close.consumer_id);
            }
            _ => {}
        }
    }
}
